//! Options of `pmc lock`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use pmc_command::sampling_options::ProcessSelector;
use pmc_command::values;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::host::CpuList;

/// Show waits for locks: for kernel locks, and for user-space locks with the threads that hold them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock user -- ./program              a program's locks: which threads wait where, and which hold them
  pmc lock user -p 4711 --duration 10s    locks of a running process
  pmc lock contention -a -- sleep 10      kernel locks, by the function that takes them
  pmc lock record -a -- sleep 10          only record; perf lock contention reads the file, too")]
pub struct LockArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: LockCommand,
}

/// The subcommands of `pmc lock`.
#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// Record waits for locks into a file
    Record(Box<LockRecordArgs>),
    /// Show waits for user-space locks, and which threads hold them
    User(Box<LockUserArgs>),
    /// Show waits for kernel locks
    Contention(Box<LockContentionArgs>),
}

/// The threads or CPUs to record.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LockTargets {
    /// Record system-wide, on all CPUs
    #[arg(short = 'a', long)]
    pub(crate) all_cpus: bool,

    /// Record these running processes, by pid or name, with all their threads
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID|NAME,…",
        value_delimiter = ',',
        conflicts_with = "tids"
    )]
    pub(crate) pids: Vec<ProcessSelector>,

    /// Record these running threads
    #[arg(long = "tid", value_name = "TID,…", value_delimiter = ',', value_parser = values::thread_id)]
    pub(crate) tids: Vec<u32>,

    /// Record system-wide on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub(crate) cpus: Option<CpuList>,

    /// Stop recording after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "timeout", value_name = "TIME", value_parser = values::timeout)]
    pub(crate) duration: Option<Duration>,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub(crate) mmap_pages: Option<RingSize>,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Sources of symbols, and settings of the recording that is made first.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LockSources {
    /// Print only errors and losses
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Root directory of the recorded machine, for programs and sources
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,

    /// Copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Recorded kernel's image with symbols
    #[arg(long, value_name = "FILE")]
    pub(crate) vmlinux: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) targets: LockTargets,
}

/// Record waits for locks into a file.
#[derive(Debug, Args)]
pub(crate) struct LockRecordArgs {
    /// Record user-space locks instead of kernel locks
    #[arg(long)]
    pub(crate) user: bool,

    /// Output file; `-` writes a stream to stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) output: PathBuf,

    /// Maximum number of frames in the call chains of kernel locks
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_stack: u16,

    /// Print only errors and losses
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) targets: LockTargets,
}

/// Show waits for kernel locks, from a recording or while a command runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock contention                      the waits in perf.data, by the function that takes the lock
  pmc lock contention -t                   by the thread that waits
  pmc lock contention -l                   by lock
  pmc lock contention -o -a -- sleep 10    by the thread that holds the lock meanwhile
  pmc lock contention -Y spinlock,rwsem    only locks of these types
  pmc lock contention -a -- sleep 10       record ten seconds of the whole machine, then show them
Options and columns are perf's. perf skips the 3 (6.1) or 4 (7.2) innermost functions before it looks for the caller;
pmc skips only lock functions. --stack-skip 3 shows perf's callers.")]
pub(crate) struct LockContentionArgs {
    /// Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Show the threads that wait
    #[arg(short = 't', long, conflicts_with = "lock_addr")]
    pub(crate) threads: bool,

    /// Show the locks, by address and symbol
    #[arg(short = 'l', long)]
    pub(crate) lock_addr: bool,

    /// Show the threads that release the locks for which others wait
    #[arg(short = 'o', long, conflicts_with_all = ["threads", "lock_addr"])]
    pub(crate) lock_owner: bool,

    /// Sort by: contended, wait_total, wait_max, wait_min or avg_wait
    #[arg(short = 'k', long, value_name = "FIELD", default_value = "wait_total")]
    pub(crate) key: String,

    /// Columns, from the same names [default: contended,wait_total,wait_max,avg_wait]
    #[arg(short = 'F', long, value_name = "FIELD,…", value_delimiter = ',')]
    pub(crate) field: Vec<String>,

    /// Only locks of these types: spinlock, rwlock, rwlock:R, rwsem, mutex, …
    #[arg(short = 'Y', long, value_name = "TYPE,…", value_delimiter = ',')]
    pub(crate) type_filter: Vec<String>,

    /// Only these locks, by address or symbol
    #[arg(short = 'L', long, value_name = "LOCK,…", value_delimiter = ',')]
    pub(crate) lock_filter: Vec<String>,

    /// Only waits with such a function in their stack, by a part of its name
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) callstack_filter: Vec<String>,

    /// Maximum number of rows to print; 0 prints all [default: all]
    #[arg(short = 'E', long, visible_alias = "limit", value_name = "N")]
    pub(crate) entries: Option<usize>,

    /// Size of perf's BPF maps (accepted; pmc needs none)
    #[arg(short = 'M', long, value_name = "N")]
    pub(crate) map_nr_entries: Option<u64>,

    /// Count while recording (accepted; pmc records events, and needs no BPF)
    #[arg(short = 'b', long)]
    pub(crate) use_bpf: bool,

    /// Read recordings of other users (accepted; pmc always does)
    #[arg(short = 'f', long)]
    pub(crate) force: bool,

    /// Print the stacks
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_stack: u16,

    /// Number of innermost functions that are not the caller
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) stack_skip: usize,

    /// Print comma-separated values, with this separator
    #[arg(short = 'x', long, value_name = "SEPARATOR")]
    pub(crate) field_separator: Option<String>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "field_separator")]
    pub(crate) json: bool,

    /// Write the table to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) sources: LockSources,
}

/// Show waits for user-space locks, from a recording or while a command runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock user -- ./program                record a command, then show its locks
  pmc lock user -p 4711 --duration 10s      a running process
  pmc lock record --user -- ./program; pmc lock user -i perf.data
Only waits are seen, never locks that were free. Condition variables, joins, barriers and idle pools are no locks,
and are summed in one line. Semaphores are locks if threads that wait for them also post them.")]
pub(crate) struct LockUserArgs {
    /// Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Recording to write
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) output: PathBuf,

    /// Maximum number of locks to print; 0 prints all [default: 10; all with --json]
    #[arg(short = 'E', long, visible_alias = "limit", value_name = "N")]
    pub(crate) entries: Option<usize>,

    /// Print all waiting and holding functions, not only the three with the longest times
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 127)]
    pub(crate) max_stack: u16,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) sources: LockSources,
}
