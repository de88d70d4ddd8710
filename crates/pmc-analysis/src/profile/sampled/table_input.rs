//! The input for tables: rows of sums that refer to strings by number, and the trait that provides these
//! strings.

use super::code::LocationCalls;
use crate::session::intern::Interner;
use crate::session::samples::{RowKey, SampleAttribute};
use crate::session::{ResolvedStacks, SampleValue};
use pmc_perfdata::record::WaitPartner;

/// Shown instead of the names and ids of ended processes and threads; see
/// [`ENDED`](crate::session::live::ENDED).
pub(crate) const ENDED_NAME: &str = "(ended)";

/// Provides the strings for the numbers in rows.
pub trait RowStrings {
    /// Returns the name of a thread, given the number in a row's key.
    fn comm(&self, comm: u32) -> String;
    /// Returns the last name of a thread, even if the thread has no samples. For a process, this is the name
    /// of its first thread.
    fn task_name(&self, tid: i32) -> Option<String>;
    /// Returns the path of a cgroup.
    fn cgroup(&self, id: u64) -> String;
    /// Returns the socket of a CPU; `None` if it is unknown.
    fn socket(&self, cpu: u64) -> Option<i64>;
    /// Returns how many bytes of a module were mapped by the first process that uses it.
    fn mapped(&self, module: u32) -> Option<u64>;
    /// Returns a tracepoint's payload as text.
    fn payload(&self, number: u64) -> String;
    /// Returns a field of a tracepoint's payload, given its index in
    /// [`Profile::trace_fields`](super::Profile::trace_fields).
    fn payload_field(&self, _number: u64, _field: usize) -> Option<String> {
        None
    }
}

/// The input for tables and trees.
#[derive(Clone, Copy)]
pub struct TableInput<'a> {
    /// The sums by stack, sorted by event and stack: all rows of `resolved`, or the rows that passed a
    /// filter.
    pub rows: &'a [(RowKey, SampleValue)],
    /// The stacks and locations to which the rows refer.
    pub resolved: &'a ResolvedStacks,
    /// The sets of attribute values to which the rows refer.
    pub attributes: &'a Interner,
    /// The attribute of each value in a set.
    pub attribute_kinds: &'a [SampleAttribute],
    /// The functions at each location.
    pub code: &'a LocationCalls,
    /// Provides the strings for the numbers in rows.
    pub words: &'a dyn RowStrings,
}

impl TableInput<'_> {
    /// Returns the text for the partner of a wait. Threads have the format of the key `pid`.
    pub(super) fn partner_name(&self, partner: WaitPartner) -> String {
        match partner {
            WaitPartner::Thread(tid) => match self.words.task_name(tid) {
                Some(name) => format!("{tid}:{name}"),
                None => tid.to_string(),
            },
            other => other.name().unwrap_or("[unknown]").to_owned(),
        }
    }

    /// Returns the address of a location in its module's own address space, or `None` if it is unmapped.
    pub(super) fn offset(&self, location: u32) -> Option<u64> {
        self.code.module(location)?;
        self.resolved.locations.get(location as usize).map(|location| location.offset)
    }
}
