//! Options of `pmc record`.

use clap::{ArgAction, Args};

use pmc_command::options::recording_options::RecordingOptions;

/// Sample a command, running processes or whole CPUs into a file for `pmc report` and `perf report`.
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
pub struct RecordArgs {
    /// Events to sample (repeatable) [default: cycles, as precise as possible]
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(crate) events: Vec<String>,

    /// Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events", hide_short_help = true)]
    pub(crate) pfm_events: Vec<String>,

    /// Filter expression for the tracepoints of the preceding -e
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true, help_heading = "Events")]
    pub(crate) filter: Vec<String>,

    /// Do not record tracepoint events that pmc itself causes
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) exclude_perf: bool,

    /// Number of `-e` options before each filter. The parsed struct contains no positions, so the caller
    /// takes them from clap's matches.
    #[arg(skip)]
    pub(crate) filter_places: Vec<usize>,

    /// Sample frequency in Hz, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", help_heading = "Events")]
    pub(crate) freq: Option<String>,

    /// Sample every N events; `auto` uses the vendor's recommended period
    #[arg(short = 'c', long, value_name = "N", help_heading = "Events")]
    pub(crate) count: Option<String>,

    /// Fail if the kernel does not allow this frequency
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) strict_freq: bool,

    /// Fail instead of falling back to another event or frequency
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) strict: bool,

    /// Record call chains by frame pointers (-g dwarf is --call-graph dwarf)
    #[arg(short = 'g', help_heading = "Call stacks")]
    pub(crate) stacks: bool,

    /// Record call chains: auto[,BYTES] (stack copies and frame pointers), dwarf[,BYTES] (stack copies), fp
    /// (frame pointers), fp,defer (frame pointers, on return to user mode), lbr (branch records)
    #[arg(long, value_name = "MODE", help_heading = "Call stacks")]
    pub(crate) call_graph: Option<String>,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) max_stack: Option<u16>,

    /// Record only the kernel part of call chains
    #[arg(long, conflicts_with = "user_callchains", help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) kernel_callchains: bool,

    /// Record only the user part of call chains
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) user_callchains: bool,

    /// Record system-wide, on all CPUs
    #[arg(short = 'a', long, help_heading = "Targets")]
    pub(crate) all_cpus: bool,

    /// Record system-wide on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", help_heading = "Targets")]
    pub(crate) cpus: Option<String>,

    /// Record these running processes, by pid or name, with all their threads
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", value_delimiter = ',', conflicts_with_all = ["tids", "uid"], help_heading = "Targets")]
    pub(crate) pids: Vec<String>,

    /// Record these running threads
    #[arg(
        short = 't',
        long = "tid",
        value_name = "TID,…",
        value_delimiter = ',',
        conflicts_with = "uid",
        help_heading = "Targets"
    )]
    pub(crate) tids: Vec<String>,

    /// Record all processes of this user (name or uid)
    #[arg(short = 'u', long = "uid", value_name = "USER", help_heading = "Targets", hide_short_help = true)]
    pub(crate) uid: Option<String>,

    /// Record only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)
    #[arg(short = 'G', long = "cgroup", value_name = "NAME,…", help_heading = "Targets")]
    pub(crate) cgroups: Option<String>,

    /// Do not record child processes
    #[arg(short = 'i', long, help_heading = "Targets")]
    pub(crate) no_inherit: bool,

    /// Use one ring buffer per thread instead of per CPU; excludes child processes
    #[arg(long, conflicts_with_all = ["all_cpus", "cpus"], help_heading = "Targets", hide_short_help = true)]
    pub(crate) per_thread: bool,

    /// When to stop recording, and how to handle the records.
    #[command(flatten)]
    pub(crate) recording: RecordingOptions,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two); AREA sizes the AUX
    /// buffer
    #[arg(short = 'm', long, value_name = "SIZE[,AREA]", help_heading = "Rings", hide_short_help = true)]
    pub(crate) mmap_pages: Option<String>,

    /// Read each record immediately after it is written
    #[arg(long, help_heading = "Rings", hide_short_help = true)]
    pub(crate) no_buffering: bool,

    /// Delay before recording, in milliseconds or with a unit (2s); -1 waits for --control; 10-20,30-40
    /// records only these ranges and then ends
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Duration")]
    pub(crate) delay: Option<String>,

    /// Also record where threads wait: off-CPU time, with the stack of each wait
    #[arg(long, help_heading = "Waiting time", hide_short_help = true)]
    pub(crate) off_cpu: bool,

    /// Sum up waits shorter than this, without their stacks, in milliseconds or with a unit [default: 0]
    #[arg(long, value_name = "TIME", help_heading = "Waiting time", hide_short_help = true)]
    pub(crate) off_cpu_thresh: Option<String>,

    /// Record who wakes the waiting threads, and who runs while they wait for a CPU (requires --off-cpu or
    /// --wall)
    #[arg(long, help_heading = "Waiting time", hide_short_help = true)]
    pub(crate) wakers: bool,

    /// Record all of each thread's time, running and waiting; short for --off-cpu -e cpu-clock
    #[arg(long, conflicts_with = "events", help_heading = "Waiting time")]
    pub(crate) wall: bool,

    /// Record no samples, only mappings and processes
    #[arg(short = 'n', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) no_samples: bool,

    /// Record the time of each sample (default)
    #[arg(short = 'T', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) timestamp: bool,

    /// Record the period of each sample (default if it varies)
    #[arg(
        short = 'P',
        long,
        overrides_with = "no_period",
        help_heading = "Fields of samples",
        hide_short_help = true
    )]
    pub(crate) period: bool,

    /// Do not record the period of samples
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) no_period: bool,

    /// Record data addresses and data sources
    #[arg(short = 'd', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) data: bool,

    /// Record the data source of memory accesses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) sample_mem_info: bool,

    /// Also record data mappings
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) data_mmap: bool,

    /// Record physical addresses of data
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) phys_data: bool,

    /// Record the page size of data addresses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) data_page_size: bool,

    /// Record the page size of code addresses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) code_page_size: bool,

    /// Record the cost of each sampled instruction, if the hardware reports it
    #[arg(short = 'W', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) weight: bool,

    /// Record the flags of memory transactions
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) transaction: bool,

    /// Record each thread's counts when it ends
    #[arg(short = 's', long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) stat: bool,

    /// Record the CPU of each sample
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) sample_cpu: bool,

    /// Record raw data for all events that provide it
    #[arg(short = 'R', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) raw_samples: bool,

    /// Record taken branches
    #[arg(short = 'b', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) branch_any: bool,

    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …
    #[arg(short = 'j', long, value_name = "FILTER,…", action = ArgAction::Append, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) branch_filter: Vec<String>,

    /// Record the registers at the interrupt: all, or a list; `?` prints the names
    #[arg(short = 'I', long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) intr_regs: Option<String>,

    /// Record the user-space registers: all, or a list; `?` prints the names
    #[arg(long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) user_regs: Option<String>,

    /// Record context switches
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) switch_events: bool,

    /// Record when each thread ran, so that report can show shares of wall-clock time
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) latency: bool,

    /// Record namespaces
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) namespaces: bool,

    /// Record cgroups
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) all_cgroups: bool,

    /// Record in user mode only
    #[arg(long, conflicts_with = "all_kernel", help_heading = "Events", hide_short_help = true)]
    pub(crate) all_user: bool,

    /// Record in the kernel only
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) all_kernel: bool,

    /// Clock of the timestamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number
    #[arg(
        short = 'k',
        long,
        value_name = "CLOCK",
        help_heading = "Fields of samples",
        hide_short_help = true
    )]
    pub(crate) clockid: Option<String>,

    /// Attach the newest SIZE bytes of the trace to samples of events in its group [default: 4K]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) aux_sample: Option<String>,

    /// Keep the newest records in memory and write them at the end
    #[arg(long, help_heading = "Duration", hide_short_help = true)]
    pub(crate) overwrite: bool,

    /// For persistent events, include the records that they already hold
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) backlog: bool,

    /// Same as -N: mappings carry build-ids by default if the kernel provides them
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) buildid_mmap: bool,

    /// Put all events into one group
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) group: bool,

    /// With recorded counts (:S), also record how long events were enabled and running
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) running_time: bool,

    /// Start each sample with the event id, even with a single event
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub(crate) sample_identifier: bool,

    /// Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require,
    /// yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = ["auto", "check", "require", "yield", "off"], help_heading = "Events", hide_short_help = true)]
    pub(crate) reserve: String,

    /// Open the events but do not record
    #[arg(long, help_heading = "Duration", hide_short_help = true)]
    pub(crate) dry_run: bool,

    /// Additional environment variables for the command; no option sets them.
    #[arg(skip)]
    pub(crate) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<std::ffi::OsString>,
}
