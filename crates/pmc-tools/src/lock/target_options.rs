//! The options that choose the threads or CPUs to record.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use pmc_command::sampling_options::ProcessSelector;
use pmc_command::values;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::host::CpuList;

/// The threads or CPUs to record.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LockTargetOptions {
    /// Record system-wide, on all CPUs
    #[arg(short = 'a', long)]
    pub(super) all_cpus: bool,

    /// Record these running processes, by pid or name, with all their threads
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID|NAME,…",
        value_delimiter = ',',
        conflicts_with = "tids"
    )]
    pub(super) pids: Vec<ProcessSelector>,

    /// Record these running threads
    #[arg(long = "tid", value_name = "TID,…", value_delimiter = ',', value_parser = values::thread_id)]
    pub(super) tids: Vec<u32>,

    /// Record system-wide on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub(super) cpus: Option<CpuList>,

    /// Stop recording after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "timeout", value_name = "TIME", value_parser = values::timeout)]
    pub(super) duration: Option<Duration>,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub(super) mmap_pages: Option<RingSize>,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

impl LockTargetOptions {
    /// Whether the options select targets to record, so that no existing recording is read.
    pub(super) fn are_given(&self) -> bool {
        self.all_cpus
            || self.cpus.is_some()
            || !(self.pids.is_empty() && self.tids.is_empty() && self.command.is_empty())
    }
}
