//! `pmc list`: what can be typed.

use clap::Args;

/// List the events that can be counted here, each tried.
#[derive(Debug, Args)]
#[command(after_help = "\
Words narrow the list. These name kinds: hw, cache, sw, tool, pmu, raw, breakpoint,
probe, freebsd, tracepoint; so does the name of a PMU, such as msr. Any other word is
looked for in names and descriptions, and a pattern must fit the whole name:
  pmc list hw cache            the generic events of the hardware
  pmc list miss                everything about misses
  pmc list 'sched:*' --long    the scheduler's tracepoints with their fields")]
pub struct List {
    /// Kinds, words to look for, or patterns such as 'sched:*'
    #[arg(value_name = "WORD|GLOB")]
    pub words: Vec<String>,

    /// Show the request to the kernel, other names, units, and the fields of tracepoints
    #[arg(short = 'l', long)]
    pub long: bool,

    /// Print one JSON document (its `version` changes when a field changes its meaning)
    #[arg(short = 'j', long)]
    pub json: bool,

    /// Print names only, one a line, untried: for the shells' completion
    #[arg(long, hide = true, conflicts_with_all = ["json", "long"])]
    pub names: bool,
}
