//! `pmc record`: what can be typed.

use clap::{ArgAction, Args};

use super::recording_options::RecordingOptions;

/// Sample a command, running processes, or whole CPUs into a file that `pmc report` and `perf report` read.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  pmc record -- ./program                       where does its time go?
  pmc record -g -- ./program                    with stacks (frame pointers)
  pmc record --call-graph dwarf -- ./program    with stacks, for programs without frame pointers
  pmc record -g -p 1234 --timeout 10s           a running process, for ten seconds
  pmc record -a -F 99                           the whole machine, until interrupted
  pmc record -e sched:sched_switch --filter 'prev_pid != 0' -a -- sleep 1
  pmc record -g -o - -- ./program | perf script -i -
Event syntax: docs/event-syntax.md, or `pmc list`. More: docs/record.md."
)]
pub struct Record {
    /// Events to sample (repeatable); the default is cycles, as precise as the machine can
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append)]
    pub events: Vec<String>,

    /// Events by libpfm4's names, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append)]
    pub pfm_events: Vec<String>,

    /// Keep only the records for which this expression holds, of the tracepoints of the -e before it
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub filter: Vec<String>,

    /// Leave out, of tracepoints, what pmc itself does
    #[arg(long)]
    pub exclude_perf: bool,

    /// For each filter, how many `-e` stand before it. Places are not the parser's to hand on: whoever has
    /// its matches fills them in.
    #[arg(skip)]
    pub filter_places: Vec<usize>,

    /// Samples a second, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count")]
    pub freq: Option<String>,

    /// Take a sample after so many occurrences; `auto`: as many as the event's maker recommends
    #[arg(short = 'c', long, value_name = "N")]
    pub count: Option<String>,

    /// Fail when the kernel does not allow that many samples a second
    #[arg(long)]
    pub strict_freq: bool,

    /// Fail rather than measure something else: no cpu-clock where there are no cycles, no lower frequency
    #[arg(long)]
    pub strict: bool,

    /// Record call chains (by frame pointers; -g dwarf is --call-graph dwarf)
    #[arg(short = 'g')]
    pub stacks: bool,

    /// Record call chains: auto[,BYTES] (copies of the stack, and frame pointers), dwarf[,BYTES] (copies of
    /// the stack), fp (frame pointers; fp,defer: when the thread returns to user mode), lbr (branch records)
    #[arg(long, value_name = "MODE")]
    pub call_graph: Option<String>,

    /// Greatest number of frames in a call chain
    #[arg(long, value_name = "N")]
    pub max_stack: Option<u16>,

    /// The kernel's part of call chains only
    #[arg(long, conflicts_with = "user_callchains")]
    pub kernel_callchains: bool,

    /// The user part of call chains only
    #[arg(long)]
    pub user_callchains: bool,

    /// Record everything on all CPUs
    #[arg(short = 'a', long)]
    pub all_cpus: bool,

    /// Record everything on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub cpus: Option<String>,

    /// Record these running processes, by number or name, with all their threads
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", value_delimiter = ',', conflicts_with_all = ["tids", "uid"])]
    pub pids: Vec<String>,

    /// Record these running threads
    #[arg(short = 't', long = "tid", value_name = "TID,…", value_delimiter = ',', conflicts_with = "uid")]
    pub tids: Vec<String>,

    /// Record all processes of this user (name or number)
    #[arg(short = 'u', long = "uid", value_name = "USER")]
    pub uid: Option<String>,

    /// Record only in this cgroup; a list goes with the events in order (needs -a or -C)
    #[arg(short = 'G', long = "cgroup", value_name = "NAME,…")]
    pub cgroups: Option<String>,

    /// Do not record children that the command or the processes start
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// One ring for each thread instead of one for each CPU; no children
    #[arg(long, conflicts_with_all = ["all_cpus", "cpus"])]
    pub per_thread: bool,

    /// When it ends, and what becomes of the records.
    #[command(flatten)]
    pub recording: RecordingOptions,

    /// Size of a ring: pages, or bytes with B, K, M or G (a power of two); AREA: of what a trace goes into
    #[arg(short = 'm', long, value_name = "SIZE[,AREA]")]
    pub mmap_pages: Option<String>,

    /// Take each record out of its ring at once
    #[arg(long)]
    pub no_buffering: bool,

    /// Start recording this long after the start: milliseconds, or with a unit (2s); -1: only when --control
    /// says so; 10-20,30-40: only in these ranges of time, after which it ends
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true)]
    pub delay: Option<String>,

    /// Record no samples, only what is mapped and started
    #[arg(short = 'n', long)]
    pub no_samples: bool,

    /// Record the time of each sample (the default)
    #[arg(short = 'T', long)]
    pub timestamp: bool,

    /// Record the period of each sample (the default where it varies)
    #[arg(short = 'P', long, overrides_with = "no_period")]
    pub period: bool,

    /// Do not record the period of samples
    #[arg(long)]
    pub no_period: bool,

    /// Record data addresses and where data came from
    #[arg(short = 'd', long)]
    pub data: bool,

    /// Record where the data of memory accesses came from
    #[arg(long)]
    pub sample_mem_info: bool,

    /// Record mappings of data too
    #[arg(long)]
    pub data_mmap: bool,

    /// Record physical addresses of data
    #[arg(long)]
    pub phys_data: bool,

    /// Record the size of the page that data lie in
    #[arg(long)]
    pub data_page_size: bool,

    /// Record the size of the page that code lies in
    #[arg(long)]
    pub code_page_size: bool,

    /// Record the cost of the sampled instruction, where the hardware knows it
    #[arg(short = 'W', long)]
    pub weight: bool,

    /// Record flags of memory transactions
    #[arg(long)]
    pub transaction: bool,

    /// Record the counts of each thread when it ends
    #[arg(short = 's', long)]
    pub stat: bool,

    /// Record the CPU of each sample
    #[arg(long)]
    pub sample_cpu: bool,

    /// Record the raw data of all events that have some
    #[arg(short = 'R', long)]
    pub raw_samples: bool,

    /// Record taken branches
    #[arg(short = 'b', long)]
    pub branch_any: bool,

    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …
    #[arg(short = 'j', long, value_name = "FILTER,…", action = ArgAction::Append)]
    pub branch_filter: Vec<String>,

    /// Record the registers at the interrupt: all, or those of a list; `?` lists them
    #[arg(short = 'I', long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub intr_regs: Option<String>,

    /// Record the registers of the process: all, or those of a list; `?` lists them
    #[arg(long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub user_regs: Option<String>,

    /// Record context switches
    #[arg(long)]
    pub switch_events: bool,

    /// Record what report needs for shares of time by the clock: when each thread ran
    #[arg(long)]
    pub latency: bool,

    /// Record namespaces
    #[arg(long)]
    pub namespaces: bool,

    /// Record cgroups
    #[arg(long)]
    pub all_cgroups: bool,

    /// Record in user mode only
    #[arg(long, conflicts_with = "all_kernel")]
    pub all_user: bool,

    /// Record in the kernel only
    #[arg(long)]
    pub all_kernel: bool,

    /// The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number
    #[arg(short = 'k', long, value_name = "CLOCK")]
    pub clockid: Option<String>,

    /// Samples of events whose group a trace leads carry the newest bytes of it (4K where not said)
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub aux_sample: Option<String>,

    /// Keep the newest records in memory and write them at the end
    #[arg(long)]
    pub overwrite: bool,

    /// Of persistent events, begin with the records that are held already, not with those from now on
    #[arg(long)]
    pub backlog: bool,

    /// As -N: mappings carry their build-id anyway, wherever the kernel can tell it
    #[arg(long)]
    pub buildid_mmap: bool,

    /// Put all events into one group of the kernel
    #[arg(long)]
    pub group: bool,

    /// Record how long events were enabled and on a counter, where counts are recorded (:S)
    #[arg(long)]
    pub running_time: bool,

    /// Begin each sample with its event's id, even where there is one event only
    #[arg(long)]
    pub sample_identifier: bool,

    /// What to do about a hardware reservation: auto, check, require, yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = ["auto", "check", "require", "yield", "off"])]
    pub reserve: String,

    /// Open everything, record nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Variables that the command has besides ours: nobody types them.
    #[arg(skip)]
    pub environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,

    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<std::ffi::OsString>,
}
