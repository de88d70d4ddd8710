//! Options shared by `report`, `script`, `annotate` and `export`: which samples to include, and whether to
//! complete their stacks.

use clap::Args;

use crate::values::Typed;
use pmc_analysis::analysis::request::{SampleSelection, TimeSpan};
use pmc_sys::host::cpulist::CpuList;

/// Filters for samples. Without filters, all samples count.
#[derive(Debug, Clone, Default, Args)]
pub struct SampleFilter {
    /// Include only threads with these names
    #[arg(short = 'c', long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub comms: Vec<String>,

    /// Include only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',', help_heading = "Filters")]
    pub pid: Vec<i32>,

    /// Include only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',', help_heading = "Filters")]
    pub tid: Vec<i32>,

    /// Include only samples on these CPUs, such as 0-3,8
    #[arg(short = 'C', long, value_name = "CPUS", help_heading = "Filters")]
    pub cpu: Option<Typed<CpuList>>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN", help_heading = "Filters")]
    pub time: Option<Typed<TimeSpan>>,

    /// Include the waiting time of idle threads, such as the workers of a pool
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub idle: bool,

    /// Do not complete truncated stacks from other samples of the thread
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub no_join: bool,
}

impl SampleFilter {
    /// Returns the selected samples.
    pub fn selection(&self) -> SampleSelection {
        SampleSelection {
            comms: self.comms.clone(),
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            cpus: self.cpu.as_ref().map(|cpus| cpus.value.iter().collect()),
            time: self.time.as_ref().map(|span| span.value),
            ..SampleSelection::default()
        }
    }
}

/// What percentages refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShareBase {
    /// All samples.
    #[default]
    All,
    /// The samples that pass the filters.
    Filtered,
}

/// The words of `--percentage`.
pub const PERCENTAGES: &[(&str, ShareBase)] =
    &[("absolute", ShareBase::All), ("relative", ShareBase::Filtered)];
