//! Options of `pmc list`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::values::Limit;

/// List the events that this machine can count; pmc tries each one.
#[derive(Debug, Args)]
#[command(after_help = "\
Words narrow the list. Kinds: hw, cache, sw, tool, pmu, vendor, raw, breakpoint,
probe, marker, freebsd, tracepoint, metric, metricgroup, and names of PMUs, such as msr.
pmc searches names and descriptions for any other word. A pattern must match the whole name:
  pmc list hw cache            generic hardware events
  pmc list miss                events related to misses
  pmc list vendor l3_miss      vendor events with this in their names
  pmc list 'sched:*' --long    scheduler tracepoints with their fields")]
pub struct ListArgs {
    /// Kinds, search words, or patterns such as 'sched:*'
    #[arg(value_name = "WORD|GLOB")]
    pub(crate) words: Vec<String>,

    /// Show attr fields, aliases, units, tracepoint fields and metric formulas
    #[arg(short = 'l', short_alias = 'v', long, aliases = ["long-desc", "details"])]
    pub(crate) long: bool,

    /// Show descriptions (default; --no-desc shows only names)
    #[arg(short = 'd', long, overrides_with = "no_desc")]
    pub(crate) desc: bool,

    /// Do not show descriptions
    #[arg(long, overrides_with = "desc")]
    pub(crate) no_desc: bool,

    /// List only events of this PMU
    #[arg(long, value_name = "PMU")]
    pub(crate) unit: Option<String>,

    /// Include deprecated events
    #[arg(long)]
    pub(crate) deprecated: bool,

    /// Import events and metrics from a copy of Intel's perfmon repository, Arm's data or the kernel's
    /// pmu-events
    #[arg(long, value_name = "DIR", conflicts_with_all = ["words", "json", "long", "unit", "output", "raw_dump"])]
    pub(crate) import: Option<PathBuf>,

    /// Write the list to this file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Maximum number of events; 0 prints all [default: all]
    #[arg(long, value_name = "N", conflicts_with_all = ["raw_dump", "names"])]
    pub(crate) limit: Option<Limit>,

    /// Print one JSON document (`version` changes when the meaning of a field changes)
    #[arg(short = 'j', long)]
    pub(crate) json: bool,

    /// Print the names of usable events on one line, as perf does for shell completion
    #[arg(long, conflicts_with_all = ["json", "long", "names"])]
    pub(crate) raw_dump: bool,

    /// Print names only, one per line, without trying them
    #[arg(long, hide = true, conflicts_with_all = ["json", "long"])]
    pub(crate) names: bool,
}
