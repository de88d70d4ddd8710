//! A recording as a whole: who ran, what was mapped, and the samples added up by stack.
//!
//! Receives an open [`Reader`]; pass 1 ([`Session::open`]) reads the side-band and makes the [`History`];
//! pass 2 ([`samples`]) takes the samples in any order, in parallel, and hands on distinct stacks with their
//! sums. Decides which process, thread name and mapping a sample belongs to. Names of functions are left to
//! `symbol`, adding up by name to `profile`.
//!
//! ```text
//!   records --pass 1--> side-band, sorted by time --> History (epochs, names, modules)
//!      |                                                 |
//!      '----pass 2, chunk by chunk, any order--> rows (event, stack, …) --> locations (module, offset)
//! ```

pub mod call_chain;
mod chunks;
pub mod deferred;
pub mod distinct_addresses;
pub mod history;
pub mod intern;
pub mod live;
pub mod location;
pub mod module;
pub mod order;
pub mod parallelism;
pub mod resolver;
pub mod running_processes;
pub mod sample_attribute;
pub mod samples;
mod sideband;
pub mod space;
mod timeline;
pub mod worker_threads;

use rustc_hash::FxHashMap;

pub use call_chain::{Chains, Unwind, UnwindSample};
pub use history::{AddedSymbol, CommId, Epoch, History, Timestamp};
pub use location::Location;
pub use module::{Kind, Module};
pub use resolver::{Resolved, Stacks};
pub use running_processes::RunningProcesses;
pub use samples::{SampleQuery, Samples, Value};

use crate::abi::sample_type;
use crate::perfdata::{self, Index, Note, Reader};
use crate::record::Thread;
use crate::record::layouts::CounterRead;

/// What the side-band says about the quality of the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Records of any kind that found the ring full (`LOST`).
    pub lost_records: u64,
    /// Samples that were dropped (`LOST_SAMPLES`).
    pub lost_samples: u64,
    /// Samples that events said they lost (`PERF_FORMAT_LOST` in `READ`).
    pub lost_by_events: u64,
    /// How often the kernel stopped an event for the rest of a tick.
    pub throttled: u64,
    /// Nanoseconds in which the hardware events were left to somebody's reservation.
    pub yielded_ns: u64,
    /// First and last time of the side-band's records, in nanoseconds.
    pub last: u64,
}

/// What a counter said when its thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCount {
    /// The thread.
    pub thread: Thread,
    /// What it said.
    pub read: CounterRead,
    /// When it was said; 0 of what the recorder says at the end.
    pub timestamp: Timestamp,
}

/// A recording whose side-band was read.
#[derive(Debug)]
pub struct Session {
    /// The file.
    pub reader: Reader,
    /// Its chunks and the number of records of each kind.
    pub index: Index,
    /// Who ran and what was mapped.
    pub history: History,
    /// What was lost.
    pub facts: Facts,
    /// What threads' counters said when the threads ended.
    pub reads: Vec<ThreadCount>,
    /// Parts of call chains that came later than their samples.
    pub deferred: deferred::Deferred,
    /// Who ran when.
    pub switches: parallelism::Switches,
    /// Paths of cgroups by their number; untrusted bytes.
    pub cgroups: FxHashMap<u64, Vec<u8>>,
    /// Whether timestamps are times; else they are offsets in the file.
    pub has_time: bool,
}

impl Session {
    /// Pass 1.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open(reader: Reader) -> Result<Self, perfdata::Error> {
        // What cannot be started here is told by whoever names.
        let _ = worker_threads::start();
        let has_time = reader.layouts().iter().all(|layout| layout.sample_type() & sample_type::TIME != 0);
        let mut collected = sideband::Sideband::new(has_time);
        let index = reader.scan(|raw| collected.add(raw, reader.layouts()))?;
        let list = reader.features().build_ids.iter().flat_map(|list| &list.0);
        let modules = module::Modules::with_build_ids(list.map(|row| (&row.name[..], &row.id[..])));
        let found = collected.finish(modules);
        Ok(Self {
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

    /// When a record was made that has this time, in nanoseconds, and stands behind so many bytes of records.
    pub fn timestamp(&self, time: Option<u64>, position: Timestamp) -> Timestamp {
        if self.has_time { time.unwrap_or(0) } else { position }
    }

    /// What the user should know about the file.
    pub fn notes(&self) -> &[Note] {
        &self.index.notes
    }
}
