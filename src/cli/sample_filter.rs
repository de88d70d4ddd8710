//! Options shared by `report`, `script` and `annotate`: selection of samples, and completion of their
//! stacks.

use clap::Args;

/// Filters; what none is given for counts whole.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SampleFilter {
    /// Include only threads with these names
    #[arg(short = 'c', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) comms: Vec<String>,

    /// Include only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,

    /// Include only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,

    /// Include only samples on these CPUs, such as 0-3,8
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<String>,

    /// Do not complete truncated stacks from other samples of the thread
    #[arg(long)]
    pub(crate) no_join: bool,
}
