//! Contention of kernel locks: the rows of `pmc lock contention`, their order, and the types of locks.

mod engine;
mod kernel_symbols;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use pmc_analysis::interval::PairingCounts;
use pmc_command::destination::Destination;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result};
use pmc_text::terminal::Stream;
use pmc_text::text::nearest;

/// Which waits to show, and how.
#[derive(Debug)]
pub(super) struct ContentionRequest {
    /// The recording to read.
    pub(super) input: PathBuf,
    /// How to group waits into rows.
    pub(super) by: ContentionRows,
    /// The field by which rows are sorted.
    pub(super) key: ContentionField,
    /// Flags of the lock types to include; empty for all.
    pub(super) types: Vec<u32>,
    /// The locks to include; empty for all.
    pub(super) locks: Vec<LockFilter>,
    /// Parts of function names: only waits with a matching function in their stack are included. Empty for
    /// all.
    pub(super) callers: Vec<String>,
    /// Maximum number of frames to compare when waits are grouped by stack.
    pub(super) max_stack: usize,
    /// Number of innermost frames to skip when looking for the caller.
    pub(super) stack_skip: usize,
    /// Where to look for symbols.
    pub(super) symbols: SymbolOptions,
    /// The numeric columns.
    pub(super) columns: Vec<ContentionField>,
    /// Maximum number of rows.
    pub(super) rows: usize,
    /// Whether to print stacks.
    pub(super) stacks: bool,
    /// Separator, for comma-separated values.
    pub(super) separator: Option<String>,
    /// Whether to print JSON.
    pub(super) json: bool,
    /// The file to which the table is written, instead of `stream`.
    pub(super) output: Option<PathBuf>,
    pub(super) stream: Stream,
}

/// Shows the waits for kernel locks in a recording.
pub(super) fn show(request: &ContentionRequest) -> Result<Exit> {
    let (result, exit) = engine::contention(super::open(&request.input)?, request, &Bars)?;
    let written = |error| Error::output("the table", error);
    let write = |out: &mut dyn Write| text::write(out, &result, request).map_err(written);
    match &request.output {
        Some(path) => {
            Destination { path, option: AdvisedOption::Named("--output"), keeps: false }.write(write)?
        }
        None => {
            let mut out = PagedOutput::to(request.stream);
            write(&mut out)?;
            out.finish().map_err(written)?;
        }
    }
    Ok(exit)
}

/// A filter that selects locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LockFilter {
    /// The lock at this address.
    Address(u64),
    /// The lock with this variable name.
    Name(String),
}

impl FromStr for LockFilter {
    type Err = std::convert::Infallible;

    /// Parses an argument of `-L`. As in perf, a hexadecimal number, with or without `0x`, is an address.
    fn from_str(typed: &str) -> std::result::Result<Self, Self::Err> {
        let typed = typed.trim();
        let digits = typed.strip_prefix("0x").unwrap_or(typed);
        Ok(u64::from_str_radix(digits, 16).map_or_else(|_| Self::Name(typed.to_owned()), Self::Address))
    }
}

/// The criterion by which waits are grouped into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ContentionRows {
    /// The function that locks.
    #[default]
    Caller,
    /// The thread that waits.
    Thread,
    /// The lock.
    Address,
    /// The thread that releases the lock.
    Owner,
}

/// A numeric field of a row, with perf's name and title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentionField {
    /// Number of waits.
    Contended,
    /// Total waiting time.
    Total,
    /// Longest wait.
    Max,
    /// Shortest wait.
    Min,
    /// Average wait.
    Average,
}

impl ContentionField {
    /// All fields.
    pub(super) const ALL: [Self; 5] = [Self::Contended, Self::Total, Self::Max, Self::Min, Self::Average];
    /// perf's default columns.
    pub(super) const USUAL: [Self; 4] = [Self::Contended, Self::Total, Self::Max, Self::Average];

    /// Returns the field's name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Contended => "contended",
            Self::Total => "wait_total",
            Self::Max => "wait_max",
            Self::Min => "wait_min",
            Self::Average => "avg_wait",
        }
    }

    /// Returns the field's value in a row, which is nanoseconds or a number of waits.
    pub(super) fn value(self, row: &ContentionRow) -> u64 {
        match self {
            Self::Contended => row.contended,
            Self::Total => row.total,
            Self::Max => row.max,
            Self::Min => row.min,
            Self::Average => row.total.checked_div(row.waits).unwrap_or(0),
        }
    }
}

impl FromStr for ContentionField {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|field| field.name() == name.trim());
        known.ok_or_else(|| {
            Error::usage(format!("unknown field {name:?}"))
                .try_this(format!("one of {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

/// The flags of the lock types with one name.
#[derive(Debug, Clone)]
pub(super) struct LockTypes(pub(super) Vec<u32>);

impl FromStr for LockTypes {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let types = types_named(name.trim());
        if !types.is_empty() {
            return Ok(Self(types));
        }
        let mut names: Vec<&str> = LOCK_TYPES.iter().map(|(_, with, _)| *with).collect();
        names.dedup();
        let near = nearest(name, names.iter().copied(), 1);
        let advice = near
            .first()
            .map_or_else(|| format!("one of {}", names.join(", ")), |near| format!("did you mean {near}?"));
        Err(Error::usage("unknown lock type").try_this(advice))
    }
}

/// Types of kernel locks. Each has the flags in `contention_begin`, perf's name with the kind of access, and
/// perf's name without it.
const LOCK_TYPES: [(u32, &str, &str); 13] = [
    (0, "semaphore", "semaphore"),
    (flag::SPIN, "spinlock", "spinlock"),
    (flag::SPIN | flag::READ, "rwlock:R", "rwlock"),
    (flag::SPIN | flag::WRITE, "rwlock:W", "rwlock"),
    (flag::READ, "rwsem:R", "rwsem"),
    (flag::WRITE, "rwsem:W", "rwsem"),
    (flag::RT, "rt-mutex", "rt-mutex"),
    (flag::RT | flag::READ, "rwlock-rt:R", "rwlock-rt"),
    (flag::RT | flag::WRITE, "rwlock-rt:W", "rwlock-rt"),
    (flag::PERCPU | flag::READ, "pcpu-sem:R", "percpu-rwsem"),
    (flag::PERCPU | flag::WRITE, "pcpu-sem:W", "percpu-rwsem"),
    (flag::MUTEX, "mutex", "mutex"),
    (flag::MUTEX | flag::SPIN, "mutex", "mutex"),
];

/// perf's filter name for a mutex on which a thread spins before it sleeps.
const SPINNING_MUTEX: &str = "mutex:spin";

/// The kernel's `LCB_F_*`.
mod flag {
    pub(super) const SPIN: u32 = 1;
    pub(super) const READ: u32 = 1 << 1;
    pub(super) const WRITE: u32 = 1 << 2;
    pub(super) const RT: u32 = 1 << 3;
    pub(super) const PERCPU: u32 = 1 << 4;
    pub(super) const MUTEX: u32 = 1 << 5;
}

/// Whether threads that wait for a lock of this type may sleep, instead of only spinning.
pub(super) fn is_sleeping_lock(flags: u32) -> bool {
    flags & flag::SPIN == 0 || flags & flag::MUTEX != 0
}

/// Returns the names of a type of lock, with and without the kind of access.
pub(super) fn type_names(flags: u32) -> (&'static str, &'static str) {
    let known = LOCK_TYPES.iter().find(|(known, ..)| *known == flags);
    known.map_or(("unknown", "unknown"), |(_, with, without)| (with, without))
}

/// Returns the flags of all lock types with this name, as for perf's `-Y`. A name with `:` selects one type,
/// and a name without `:` selects all kinds of access. Empty if there is no such type.
fn types_named(name: &str) -> Vec<u32> {
    if name == SPINNING_MUTEX {
        return vec![flag::MUTEX | flag::SPIN];
    }
    let plain = if name == "pcpu-sem" { "percpu-rwsem" } else { name };
    let is_it = |(_, with, without): &&(u32, &str, &str)| *with == name || *without == plain;
    LOCK_TYPES.iter().filter(is_it).map(|(flags, ..)| *flags).collect()
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ContentionRow {
    /// Number of waits that began.
    pub(super) contended: u64,
    /// Number of waits that also ended.
    pub(super) waits: u64,
    /// Total duration of the waits in nanoseconds.
    pub(super) total: u64,
    /// The longest wait.
    pub(super) max: u64,
    /// The shortest wait.
    pub(super) min: u64,
    /// Flags of the first wait.
    pub(super) flags: u32,
    /// Address of the lock, for [`ContentionRows::Address`].
    pub(super) address: u64,
    /// The waiting thread, for [`ContentionRows::Thread`], or the thread that releases the lock, for
    /// [`ContentionRows::Owner`]; -1 if unknown.
    pub(super) tid: i32,
    /// The calling function with its offset, the thread's name (`Unknown` if it is not known), or the lock's
    /// symbol; untrusted text.
    pub(super) name: String,
    /// The first wait's stack: addresses and functions with offsets, innermost first; untrusted text.
    pub(super) stack: Vec<(u64, String)>,
}

impl ContentionRow {
    /// Adds a wait.
    pub(super) fn add(&mut self, duration: u64) {
        self.min = if self.waits == 0 { duration } else { self.min.min(duration) };
        self.max = self.max.max(duration);
        self.total = self.total.saturating_add(duration);
        self.waits += 1;
    }
}

/// The result of `pmc lock contention`.
#[derive(Debug, Clone, Default)]
pub(super) struct KernelContention {
    /// The criterion by which waits are grouped into rows.
    pub(super) by: ContentionRows,
    /// The rows with waiting time, largest first.
    pub(super) rows: Vec<ContentionRow>,
    /// Counts of matched and unmatched events.
    pub(super) counts: PairingCounts,
    /// Number of begin events that occurred during a wait for the same lock. A mutex causes two begin events,
    /// because a thread first spins and then sleeps. perf ignores the second one too.
    pub(super) nested: u64,
    /// Number of waits that had not ended at the end of the recording. Their time is not counted.
    pub(super) unfinished: u64,
}

impl KernelContention {
    /// Sorts the rows by a field, largest first, and removes rows without waiting time.
    pub(super) fn sort_by(&mut self, field: ContentionField) {
        self.rows.retain(|row| row.total > 0);
        self.rows.sort_by_key(|row| std::cmp::Reverse(field.value(row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_those_of_perf() {
        assert_eq!(type_names(4), ("rwsem:W", "rwsem"));
        assert_eq!(type_names(99), ("unknown", "unknown"));
        assert_eq!(types_named("rwsem"), [2, 4]);
        assert_eq!(types_named("rwsem:R"), [2]);
        assert_eq!(types_named("pcpu-sem"), [18, 20]);
        assert_eq!(types_named("mutex"), [32, 33]);
        assert_eq!((types_named("mutex:spin"), type_names(33).0), (vec![33], "mutex"));
        assert!(types_named("futex").is_empty());
        assert!(is_sleeping_lock(flag::MUTEX | flag::SPIN) && !is_sleeping_lock(flag::SPIN | flag::READ));
    }

    #[test]
    fn rows_are_sorted_and_empty_rows_removed() {
        let mut row = ContentionRow { contended: 2, ..ContentionRow::default() };
        row.add(5);
        row.add(9);
        let other = ContentionRow { contended: 7, total: 3, waits: 1, ..ContentionRow::default() };
        let empty = ContentionRow { contended: 9, ..ContentionRow::default() };
        let mut all = KernelContention { rows: vec![other, empty, row], ..KernelContention::default() };
        all.sort_by(ContentionField::Total);
        let values = |field: ContentionField| all.rows.iter().map(|row| field.value(row)).collect::<Vec<_>>();
        assert_eq!(values(ContentionField::Total), [14, 3]);
        assert_eq!(values(ContentionField::Average), [7, 3]);
        assert_eq!(values(ContentionField::Min), [5, 0]);
        assert_eq!(values(ContentionField::Contended), [2, 7]);
    }
}
