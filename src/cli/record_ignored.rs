//! Options of `perf record` that scripts contain and that `pmc record` needs no part of: they are taken, and
//! mostly said.

use clap::Args;

/// What is accepted for perf's sake. Hidden from the help; docs/record.md lists it.
#[derive(Debug, Args, Default)]
pub struct Accepted {
    /// One thread empties all rings
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true, hide = true)]
    pub threads: Option<Option<String>>,

    /// What runs is told at the beginning
    #[arg(long, hide = true)]
    pub tail_synthesize: bool,

    /// Tasks and mappings are told of whatever is recorded
    #[arg(long, value_name = "WHAT", hide = true)]
    pub synth: Option<String>,

    /// The kernel tells of BPF programs as they are loaded
    #[arg(long, hide = true)]
    pub no_bpf_event: bool,

    /// Rings are written straight from memory
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, hide = true)]
    pub aio: Option<Option<String>>,

    /// Rings are emptied from wherever pmc runs
    #[arg(long, value_name = "MODE", hide = true)]
    pub affinity: Option<String>,

    /// Rings are written as they are found
    #[arg(long, value_name = "SIZE", hide = true)]
    pub mmap_flush: Option<String>,

    /// What runs is told by one thread
    #[arg(long, value_name = "N", hide = true)]
    pub num_thread_synthesize: Option<String>,

    /// Reading mappings has no time limit
    #[arg(long, value_name = "MS", hide = true)]
    pub proc_map_timeout: Option<String>,

    /// First and last time are always in the file
    #[arg(long, hide = true)]
    pub timestamp_boundary: bool,

    /// Symbols are looked for when a report is made
    #[arg(long, value_name = "FILE", hide = true)]
    pub vmlinux: Option<String>,

    /// Symbols are looked for when a report is made
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true, hide = true)]
    pub debuginfod: Option<Option<String>>,
}
