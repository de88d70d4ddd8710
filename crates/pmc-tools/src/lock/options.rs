//! Options of `pmc lock`, and the request that they become.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::contention::{ContentionField, ContentionRequest, ContentionRows, LockFilter, LockTypes};
use super::target_options::LockTargetOptions;
use super::user::UserLockRequest;
use super::{LockRequest, LockView, recording};
use pmc_command::input;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::Limit;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_text::terminal::Stream;

/// Show waits for locks: for kernel locks, and for user-space locks with the threads that hold them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock user -- ./program              a program's locks: which threads wait where, and which hold them
  pmc lock user -p 4711 --duration 10s    locks of a running process
  pmc lock contention -a -- sleep 10      kernel locks, by the function that takes them
  pmc lock record -a -- sleep 10          only record; perf lock contention reads the file, too")]
pub struct LockOptions {
    /// The subcommand.
    #[command(subcommand)]
    command: LockCommand,
}

/// The subcommands of `pmc lock`.
#[derive(Debug, Subcommand)]
enum LockCommand {
    /// Record waits for locks into a file
    Record(Box<LockRecordOptions>),
    /// Show waits for user-space locks, and which threads hold them
    User(Box<UserLockOptions>),
    /// Show waits for kernel locks
    Contention(Box<ContentionOptions>),
}

/// Sources of symbols, and settings of the recording that is made first.
#[derive(Debug, Clone, Default, Args)]
struct LockSourceOptions {
    /// Print only errors and losses
    #[arg(short = 'q', long)]
    quiet: bool,

    /// Root directory of the recorded machine, for programs and sources
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// Recorded kernel's image with symbols
    #[arg(long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    targets: LockTargetOptions,
}

/// Record waits for locks into a file.
#[derive(Debug, Args)]
struct LockRecordOptions {
    /// Record user-space locks instead of kernel locks
    #[arg(long)]
    user: bool,

    /// Output file; `-` writes a stream to stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,

    /// Maximum number of frames in the call chains of kernel locks
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_stack: u16,

    /// Print only errors and losses
    #[arg(short = 'q', long)]
    quiet: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    targets: LockTargetOptions,
}

/// Show waits for kernel locks, from a recording or while a command runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock contention                      the waits in perf.data, by the function that takes the lock
  pmc lock contention -t                   by the thread that waits
  pmc lock contention -l                   by lock
  pmc lock contention -o -a -- sleep 10    by the thread that held the lock
  pmc lock contention -Y spinlock,rwsem    only locks of these types
  pmc lock contention -a -- sleep 10       record ten seconds of the whole machine, then show them
Options and columns are perf's. perf skips the 3 (6.1) or 4 (7.2) innermost functions before it looks for the caller;
pmc skips only lock functions. --stack-skip 3 shows perf's callers.")]
struct ContentionOptions {
    /// Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Show the threads that wait
    #[arg(short = 't', long, conflicts_with = "lock_addr")]
    threads: bool,

    /// Show the locks, by address and symbol
    #[arg(short = 'l', long)]
    lock_addr: bool,

    /// Show the threads that release the locks for which others wait
    #[arg(short = 'o', long, conflicts_with_all = ["threads", "lock_addr"])]
    lock_owner: bool,

    /// Sort by: contended, wait_total, wait_max, wait_min or avg_wait
    #[arg(short = 'k', long, value_name = "FIELD", default_value = "wait_total")]
    key: ContentionField,

    /// Columns, with the names that --key takes [default: contended,wait_total,wait_max,avg_wait]
    #[arg(short = 'F', long, value_name = "FIELD,…", value_delimiter = ',')]
    field: Vec<ContentionField>,

    /// Only locks of these types: spinlock, rwlock, rwlock:R, rwsem, mutex, …
    #[arg(short = 'Y', long, value_name = "TYPE,…", value_delimiter = ',')]
    type_filter: Vec<LockTypes>,

    /// Only these locks, by address or symbol
    #[arg(short = 'L', long, value_name = "LOCK,…", value_delimiter = ',')]
    lock_filter: Vec<LockFilter>,

    /// Only waits with a function in their stack whose name contains one of these
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    callstack_filter: Vec<String>,

    /// Maximum number of rows to print; 0 prints all [default: all]
    #[arg(short = 'E', long, visible_alias = "limit", value_name = "N")]
    entries: Option<Limit>,

    /// No effect: pmc uses no BPF maps
    #[arg(short = 'M', long, value_name = "N")]
    map_nr_entries: Option<u64>,

    /// No effect: pmc records events instead of counting with BPF
    #[arg(short = 'b', long)]
    use_bpf: bool,

    /// No effect: pmc reads recordings of any owner
    #[arg(short = 'f', long)]
    force: bool,

    /// Print the stacks
    #[arg(short = 'v', long, action = ArgAction::Count)]
    verbose: u8,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_stack: u16,

    /// Number of innermost functions to skip when looking for the caller
    #[arg(long, value_name = "N", default_value_t = 0)]
    stack_skip: usize,

    /// Print comma-separated values, with this separator
    #[arg(short = 'x', long, value_name = "SEPARATOR")]
    field_separator: Option<String>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "field_separator")]
    json: bool,

    /// Write the table to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    sources: LockSourceOptions,
}

/// Show waits for user-space locks, from a recording or while a command runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc lock user -- ./program                record a command, then show its locks
  pmc lock user -p 4711 --duration 10s      a running process
  pmc lock record --user -- ./program; pmc lock user -i perf.data
pmc sees only waits, not locks that were free when taken. Condition variables, joins, barriers and idle pools are
not locks; one line shows their sum. A semaphore counts as a lock if the threads that wait for it also post it.")]
struct UserLockOptions {
    /// Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Recording to write
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,

    /// Maximum number of locks to print; 0 prints all [default: 10; all with --json]
    #[arg(short = 'E', long, visible_alias = "limit", value_name = "N")]
    entries: Option<Limit>,

    /// Print all waiting and holding functions, not only the three with the longest times
    #[arg(short = 'v', long)]
    verbose: bool,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 127)]
    max_stack: u16,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    sources: LockSourceOptions,
}

/// The file that `pmc lock contention` records.
const RECORDED: &str = "perf.data";

impl LockOptions {
    /// # Errors
    /// Fails if options contradict each other, or the kernel lacks the events to record.
    pub fn request(self, host: &Host) -> Result<LockRequest> {
        match self.command {
            LockCommand::Record(typed) => {
                let LockRecordOptions { user, output, max_stack, quiet, targets } = *typed;
                let recording = match user {
                    true => recording::of_programs(targets, output, host)?,
                    false => recording::of_kernel(targets, output, max_stack, false, host)?,
                };
                Ok(LockRequest { recording: Some(recording), watched: None, quiet, view: None })
            }
            LockCommand::Contention(typed) => typed.request(host),
            LockCommand::User(typed) => typed.request(host),
        }
    }
}

impl ContentionOptions {
    fn request(self, host: &Host) -> Result<LockRequest> {
        let columns = if self.field.is_empty() { ContentionField::USUAL.into() } else { self.field };
        let has_key = columns.contains(&self.key);
        let LockSourceOptions { targets, quiet, .. } = self.sources.clone();
        let records = targets.are_given();
        let view = ContentionRequest {
            input: input(self.input.as_ref(), records, RECORDED)?,
            by: match (self.threads, self.lock_addr, self.lock_owner) {
                (true, ..) => ContentionRows::Thread,
                (_, true, _) => ContentionRows::Address,
                (.., true) => ContentionRows::Owner,
                _ => ContentionRows::Caller,
            },
            key: self.key,
            types: self.type_filter.into_iter().flat_map(|types| types.0).collect(),
            locks: self.lock_filter,
            callers: self.callstack_filter,
            max_stack: self.max_stack.into(),
            stack_skip: self.stack_skip,
            symbols: self.sources.symbols()?,
            columns: columns.into_iter().chain((!has_key).then_some(self.key)).collect(),
            rows: Limit::rows(self.entries, false, 0),
            stacks: self.verbose > 0,
            stream: stream(&targets, self.json || self.field_separator.is_some()),
            separator: self.field_separator,
            json: self.json,
            output: self.output,
        };
        let recording = match records {
            true => {
                let output = RECORDED.into();
                Some(recording::of_kernel(targets, output, self.max_stack, self.lock_owner, host)?)
            }
            false => None,
        };
        Ok(LockRequest { recording, watched: None, quiet, view: Some(LockView::Contention(Box::new(view))) })
    }
}

impl UserLockOptions {
    fn request(self, host: &Host) -> Result<LockRequest> {
        let LockSourceOptions { targets, quiet, .. } = self.sources.clone();
        let records = targets.are_given();
        let view = UserLockRequest {
            input: input(self.input.as_ref(), records, &self.output.to_string_lossy())?,
            max_stack: self.max_stack.into(),
            symbols: self.sources.symbols()?,
            rows: Limit::rows(self.entries, !self.json, 10),
            parties: if self.verbose { usize::MAX } else { 3 },
            json: self.json,
            stream: stream(&targets, self.json),
        };
        let (mut recording, mut watched) = (None, None);
        if records {
            watched = Some(recording::watched(&targets, host)?);
            recording = Some(recording::of_programs(targets, self.output, host)?);
        }
        Ok(LockRequest { recording, watched, quiet, view: Some(LockView::User(Box::new(view))) })
    }
}

impl LockSourceOptions {
    /// Returns where to look for symbols.
    fn symbols(&self) -> Result<SymbolOptions> {
        let Self { symfs, kallsyms, vmlinux, .. } = self.clone();
        SymbolFiles { symfs, kallsyms, vmlinux, ..SymbolFiles::default() }.symbol_options()
    }
}

/// Returns the recording to read: the one that is made first, or else the one that the user named.
fn input(typed: Option<&PathBuf>, records: bool, recorded: &str) -> Result<PathBuf> {
    match typed {
        Some(file) if records => Err(Error::usage(format!(
            "-i {} reads a recording, but the command or target requires a new one",
            file.display()
        ))
        .try_options("omit -i, or omit the target")),
        _ if records => Ok(recorded.into()),
        _ => Ok(input::input(typed)),
    }
}

/// Returns the stream for the result. If standard output is a pipe or a file, leaves it to the command.
fn stream(targets: &LockTargetOptions, is_document: bool) -> Stream {
    match !targets.command.is_empty() && !is_document && !Stream::Output.is_terminal() {
        true => Stream::Error,
        false => Stream::Output,
    }
}
