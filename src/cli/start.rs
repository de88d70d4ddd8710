//! Options of `pmc start` and `pmc stop`.

use std::path::PathBuf;

use clap::Args;

/// Count on all CPUs in the background until `pmc stop`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc start page-faults:u page-faults:k         one counter for user mode, one for the kernel
  pmc stop                                      print a row per counter and a column per CPU, and stop
  pmc start --profile=cpu-clock:k               sample the kernel into ring buffers
  pmc stop -o kernel.data                       write the samples to a file, for pmc report
pmc persist lists these events as counter0, counter1, …, profile.")]
pub struct StartArgs {
    /// Events to count, each with its privilege levels: NAME:u, NAME:k, NAME:uk
    #[arg(value_name = "EVENT", required_unless_present = "profile")]
    pub(crate) events: Vec<String>,

    /// Also sample this event and keep the newest samples [default: cycles, or cpu-clock without hardware
    /// counters]
    #[arg(long, value_name = "EVENT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) profile: Option<String>,
}

/// Show the counts since `pmc start`, and stop counting.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Output file for the samples of --profile
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) output: PathBuf,

    /// Print one JSON document
    #[arg(short = 'j', long)]
    pub(crate) json: bool,
}
