//! Options of `pmc list`.

use std::path::PathBuf;

use clap::Args;

/// List the events that this machine can count; pmc tries each one.
#[derive(Debug, Args)]
#[command(after_help = "\
Words narrow the list. These name kinds: hw, cache, sw, tool, pmu, vendor, raw, breakpoint,
probe, marker, freebsd, tracepoint, metric, metricgroup; so does the name of a PMU, such as msr.
Any other word is looked for in names and descriptions, and a pattern must fit the whole name:
  pmc list hw cache            the generic events of the hardware
  pmc list miss                everything about misses
  pmc list vendor l3_miss      the events of the makers' manuals that have this in their names
  pmc list 'sched:*' --long    the scheduler's tracepoints with their fields")]
pub struct ListArgs {
    /// Kinds, search words, or patterns such as 'sched:*'
    #[arg(value_name = "WORD|GLOB")]
    pub words: Vec<String>,

    /// Show attr fields, aliases, units, tracepoint fields and metric formulas
    #[arg(short = 'l', short_alias = 'v', long, aliases = ["long-desc", "details"])]
    pub long: bool,

    /// Show descriptions (default; --no-desc shows only names)
    #[arg(short = 'd', long, overrides_with = "no_desc")]
    pub desc: bool,

    /// Do not show descriptions
    #[arg(long, overrides_with = "desc")]
    pub no_desc: bool,

    /// List only events of this PMU
    #[arg(long, value_name = "PMU")]
    pub unit: Option<String>,

    /// Include deprecated events
    #[arg(long)]
    pub deprecated: bool,

    /// Import events and metrics from a copy of Intel's perfmon, Arm's data or the kernel's pmu-events
    #[arg(long, value_name = "DIR", conflicts_with_all = ["words", "json", "long", "unit", "output", "raw_dump"])]
    pub import: Option<PathBuf>,

    /// Write the list to this file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print one JSON document (its `version` changes if a field changes its meaning)
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Print the names of usable events on one line, as perf does for shell completion
    #[arg(long, conflicts_with_all = ["json", "long", "names"])]
    pub raw_dump: bool,

    /// Print names only, one per line, without trying them (for shell completion)
    #[arg(long, hide = true, conflicts_with_all = ["json", "long"])]
    pub names: bool,
}
