//! Options of `pmc sched`: those of the tool, and `record` and `script` among its subcommands.

use clap::{Args, Subcommand};

use super::script::ScriptArgs;
use pmc_command::record::args::RecordArgs;
use pmc_tools::sched::{SchedGroupOptions, SchedViewOptions};

/// Record and explain what the scheduler does: which tasks wait for a CPU, for how long, and which tasks run
/// instead.
#[derive(Debug, Args)]
#[command(
    infer_subcommands = true,
    after_help = "\
Examples:
  pmc sched record -- make            record the scheduler on all CPUs while make runs
  pmc sched latency                   which tasks wait longest for a CPU, when, and which run instead
  pmc sched timehist -w --state       each time that a task ran, with wake-ups
  pmc sched map                       which CPU runs which task
Without privileges, record sees only the command's own tasks: times on and off CPUs, but no wake-ups.
More: docs/sched.md."
)]
pub struct SchedArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) group: SchedGroupOptions,

    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: SchedCommand,
}

/// The subcommands: one records, the others show a recording.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// Record the scheduler's events; options as for pmc record
    Record(Box<RecordArgs>),
    #[command(flatten)]
    Show(SchedViewOptions),
    /// Print the events one by one; options as for pmc script
    Script(Box<ScriptArgs>),
}
