//! `pmc script`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// Print the samples one by one, in the order of time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc script                              as perf script prints it
  pmc script | stackcollapse-perf.pl      flame graphs
  pmc script -F comm,tid,time,ip,sym      chosen fields
  pmc script -F +srcline,-period          the usual fields, changed
  pmc script --json                       one object a line
Fields: comm, pid, tid, cpu, time, event, period, trace, ip, sym, symoff, dso, addr, srcline, weight, phys_addr.")]
pub struct Script {
    /// The recording (also as -i); `-` is standard input [default: perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// What is printed; +NAME and -NAME change the usual choice
    #[arg(short = 'F', long, value_name = "FIELD,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub fields: Vec<String>,

    /// Leave out callers
    #[arg(short = 'G', long)]
    pub hide_call_graph: bool,

    /// Longest call chain
    #[arg(long, value_name = "FRAMES", default_value_t = 127)]
    pub max_stack: usize,

    /// Only this time: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN")]
    pub time: Option<String>,

    /// Only threads with these names
    #[arg(short = 'c', long, value_name = "NAME,…", value_delimiter = ',')]
    pub comms: Vec<String>,

    /// Only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pid: Vec<i32>,

    /// Only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub tid: Vec<i32>,

    /// Only samples of these CPUs, such as 0-3,8
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub cpu: Option<String>,

    /// Times to the nanosecond
    #[arg(long)]
    pub ns: bool,

    /// Show what the recording says of itself first
    #[arg(long)]
    pub header: bool,

    /// Find inlined functions (default where stacks were copied, as perf does)
    #[arg(long, overrides_with = "no_inline")]
    pub inline: bool,

    /// Names from symbol tables only
    #[arg(long)]
    pub no_inline: bool,

    /// Print one JSON object a line
    #[arg(short = 'j', long)]
    pub json: bool,

    /// A folder that stands for / of the recorded machine
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,

    /// A copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// The recorded kernel's file with symbols
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,

    /// Do not keep results for the next time
    #[arg(long)]
    pub no_cache: bool,
}
