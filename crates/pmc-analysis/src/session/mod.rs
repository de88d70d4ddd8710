//! A whole recording: its processes and mappings, and its samples aggregated by stack.
//!
//! Pass 1 ([`Session::open`]) reads the side-band records from an open [`Reader`] and creates the
//! [`History`]. Pass 2 ([`samples`]) reads the samples in any order, in parallel, and returns distinct stacks
//! with their sums. A session determines the process, thread name and mapping to which each sample belongs.
//! `symbol` finds function names, and `profile` aggregates by name.
//!
//! ```text
//!   records --pass 1--> side-band, sorted by time --> History (epochs, names, modules)
//!      |                                                 |
//!      '----pass 2, chunk by chunk, any order--> rows (event, stack, …) --> locations (module, offset)
//! ```

pub(crate) mod call_chain;
mod chunks;
pub(crate) mod deferred;
pub(crate) mod distinct_addresses;
pub mod handover;
pub(crate) mod history;
pub mod intern;
pub mod live;
pub(crate) mod location;
pub(crate) mod module;
pub mod order;
pub(crate) mod parallelism;
pub mod resolver;
pub(crate) mod running_processes;
pub(crate) mod sample_attribute;
pub mod samples;
mod sideband;
pub(crate) mod space;
pub mod thread_time;
mod timeline;

use rustc_hash::FxHashMap;

pub(crate) use call_chain::{CallChains, Unwind, UnwindSample};
pub use history::{AddedSymbol, CommId, Epoch, History, Timestamp};
pub use location::CodeLocation;
pub use module::{Module, ModuleKind};
pub use resolver::{ResolvedStacks, StackStore};
pub use running_processes::RunningProcesses;
pub use samples::{SampleQuery, SampleValue, Samples};

use pmc_perfdata::perfdata::{self, Reader, RecordingIndex, RecordingNote};
use pmc_perfdata::record::Thread;
use pmc_perfdata::record::layouts::CounterRead;
use pmc_symbols::symbol::ConvertedStacks;
use pmc_symbols::symbol::archive::original_facts;
use pmc_sys::abi::sample_type;

/// Information about the quality of the recording, from the side-band.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SidebandFacts {
    /// Number of records of any kind that were lost because the ring buffer was full (`LOST`).
    pub(crate) lost_records: u64,
    /// Number of lost samples (`LOST_SAMPLES`).
    pub(crate) lost_samples: u64,
    /// Number of lost samples according to the events' counters (`PERF_FORMAT_LOST` in `READ`).
    pub(crate) lost_by_events: u64,
    /// Number of times that the kernel throttled an event for the rest of a tick.
    pub(crate) throttled: u64,
    /// Nanoseconds during which pmc yielded the hardware events to a reservation.
    pub(crate) yielded_ns: u64,
}

/// A counter's final value when the counter's thread exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCount {
    /// The thread.
    pub thread: Thread,
    /// The counter's value.
    pub read: CounterRead,
    /// Time of the value; 0 if the recorder wrote the value when recording ended.
    pub(crate) timestamp: Timestamp,
}

/// Which details of mappings a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingDetail {
    /// Only the details required for symbolizing addresses.
    Names,
    /// Also the access permissions of each mapping. Parts of a file with different permissions become
    /// separate modules.
    Access,
}

/// A recording after reading its side-band.
#[derive(Debug)]
pub struct Session {
    /// The file.
    pub reader: Reader,
    /// The file's chunks and the number of records of each kind.
    pub index: RecordingIndex,
    /// The processes and mappings.
    pub history: History,
    /// Losses and throttling.
    pub(crate) facts: SidebandFacts,
    /// Final values of threads' counters.
    pub reads: Vec<ThreadCount>,
    /// Deferred parts of call chains.
    pub deferred: deferred::Deferred,
    /// Context switches.
    pub(crate) switches: parallelism::Switches,
    /// Paths of cgroups by cgroup number, as untrusted bytes.
    pub(crate) cgroups: FxHashMap<u64, Vec<u8>>,
    /// How stack copies were converted to call chains, if the recording is an archive of one with copies.
    pub(crate) converted: Option<ConvertedStacks>,
    /// Whether timestamps are times rather than offsets in the file.
    pub has_time: bool,
}

impl Session {
    /// Runs pass 1.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(reader: Reader) -> Result<Self, perfdata::PerfdataError> {
        Self::open_with(reader, MappingDetail::Names)
    }

    /// Runs pass 1 and keeps the given details of mappings.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open_with(reader: Reader, detail: MappingDetail) -> Result<Self, perfdata::PerfdataError> {
        // Ignore errors here, because the symbolizer reports a failure to start the threads.
        let _ = pmc_symbols::worker_threads::start();
        let has_time = reader.layouts().iter().all(|layout| layout.sample_type() & sample_type::TIME != 0);
        let mut collected = sideband::Sideband::new(has_time);
        let index = reader.scan(|raw| collected.add(raw, reader.layouts()))?;
        let list = reader.features().build_ids.iter().flat_map(|list| &list.0);
        let mut modules = module::Modules::with_build_ids(list.map(|row| (&row.name[..], &row.id[..])));
        if detail == MappingDetail::Access {
            modules.keep_access();
        }
        let found = collected.finish(modules);
        let archive = reader.features().archive.as_ref();
        let facts = archive.and_then(|section| original_facts(&section.0).ok());
        Ok(Self {
            converted: facts.and_then(|facts| facts.stacks),
            reader,
            index,
            history: found.history,
            facts: found.facts,
            reads: found.reads,
            deferred: found.deferred,
            switches: found.switches,
            cgroups: found.cgroups,
            has_time,
        })
    }

    /// Returns a record's timestamp, given its time in nanoseconds and the number of bytes of records before
    /// it.
    pub fn timestamp(&self, time: Option<u64>, position: Timestamp) -> Timestamp {
        if self.has_time { time.unwrap_or(0) } else { position }
    }

    /// Notes on the file for the user.
    pub(crate) fn notes(&self) -> &[RecordingNote] {
        &self.index.notes
    }
}
