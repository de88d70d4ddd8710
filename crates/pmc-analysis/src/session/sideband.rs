//! Collects all records other than samples, and replays them into the history in time order.
//!
//! A file contains the rings of the CPUs one after the other, so a process's mapping may precede the fork of
//! the process. Since the side-band is small, its bytes are kept, sorted by timestamp (then by offset), and
//! replayed.

use rustc_hash::FxHashMap;

use super::deferred::Deferred;
use super::history::{History, Timestamp};
use super::module::Modules;
use super::parallelism::Switches;
use super::{SidebandFacts, ThreadCount};
use pmc_perfdata::record::{Layouts, RawRecord, Record, kind};

/// Number of address space nodes that every recording may use; they take 48 MiB.
const MOST_NODES: usize = 1 << 20;
/// Large side-bands may use one node per this many bytes, so that nodes take at most three times the size of
/// the side-band.
const BYTES_PER_NODE: usize = 16;

/// Side-band records in file order.
#[derive(Debug)]
pub(super) struct Sideband {
    has_time: bool,
    /// Number of bytes of records so far, which serves as the timestamp if there are no times.
    position: u64,
    bytes: Vec<u8>,
    /// Timestamp and start in `bytes` of each record.
    order: Vec<(Timestamp, usize)>,
    facts: SidebandFacts,
    /// Start time of a hardware reservation that has not ended yet.
    yielding_since: Option<u64>,
    cgroups: FxHashMap<u64, Vec<u8>>,
    reads: Vec<ThreadCount>,
    deferred: Deferred,
    switches: Switches,
    /// Whether there are data mappings.
    has_data: bool,
}

/// The contents of the side-band.
pub(super) struct SidebandContents {
    pub(super) history: History,
    pub(super) facts: SidebandFacts,
    pub(super) cgroups: FxHashMap<u64, Vec<u8>>,
    pub(super) reads: Vec<ThreadCount>,
    pub(super) deferred: Deferred,
    pub(super) switches: Switches,
}

impl Sideband {
    pub(super) fn new(has_time: bool) -> Self {
        Self {
            has_time,
            position: 0,
            bytes: Vec::new(),
            order: Vec::new(),
            facts: SidebandFacts::default(),
            yielding_since: None,
            cgroups: FxHashMap::default(),
            reads: Vec::new(),
            deferred: Deferred::default(),
            switches: Switches::default(),
            has_data: false,
        }
    }

    /// Adds a record of the file; ignores samples.
    #[inline]
    pub(super) fn add(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        let at = self.position;
        self.position += raw.bytes.len() as u64;
        match raw.kind {
            kind::SAMPLE => {}
            kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::KSYMBOL | kind::NAMESPACES => {
                let timestamp =
                    if self.has_time { layouts.sample_id(raw).time.map_or(0, |time| time.0) } else { at };
                self.has_data = self.has_data || maps_data(raw);
                self.order.push((timestamp, self.bytes.len()));
                self.bytes.extend_from_slice(raw.bytes);
            }
            kind::LOST
            | kind::LOST_SAMPLES
            | kind::THROTTLE
            | kind::UNTHROTTLE
            | kind::CGROUP
            | kind::READ
            | kind::CALLCHAIN_DEFERRED => self.count(raw, layouts),
            kind::SWITCH | kind::SWITCH_CPU_WIDE | kind::EXIT if self.has_time => self.switch(raw, layouts),
            _ => {}
        }
    }

    fn count(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        match raw.parse() {
            Some(Record::Lost(lost)) => {
                self.facts.lost_records = self.facts.lost_records.saturating_add(lost.lost);
            }
            Some(Record::LostSamples(lost)) => {
                self.facts.lost_samples = self.facts.lost_samples.saturating_add(lost);
            }
            // Each instance of an event reports the same gap.
            Some(Record::Throttle(throttle)) if throttle.is_reservation() => {
                self.yielding_since.get_or_insert(throttle.time.0);
            }
            Some(Record::Unthrottle(throttle)) if throttle.is_reservation() => {
                let since = self.yielding_since.take().unwrap_or(throttle.time.0);
                let gap = throttle.time.0.saturating_sub(since);
                self.facts.yielded_ns = self.facts.yielded_ns.saturating_add(gap);
            }
            Some(Record::Throttle(_)) => self.facts.throttled += 1,
            Some(Record::Cgroup(cgroup)) => {
                self.cgroups.insert(cgroup.id, cgroup.path.to_vec());
            }
            Some(Record::Read(read)) => {
                let Some(said) = layouts.counter_read(raw) else { return };
                let timestamp = layouts.sample_id(raw).time.map_or(0, |time| time.0);
                self.reads.push(ThreadCount { thread: read.thread, read: said, timestamp });
                self.facts.lost_by_events = self.facts.lost_by_events.saturating_add(said.lost);
            }
            Some(Record::CallchainDeferred(part)) => {
                let tid = layouts.sample_id(raw).thread.map_or(0, |thread| thread.tid);
                self.deferred.add(tid, part.cookie, part.chain);
            }
            _ => {}
        }
    }

    fn switch(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        let id = layouts.sample_id(raw);
        let Some(timestamp) = id.time.map(|time| time.0) else { return };
        match raw.parse() {
            Some(Record::Exit(task)) => self.switches.add(timestamp, id.cpu, task.thread.tid, false),
            Some(Record::Switch(switch) | Record::SwitchCpuWide(switch)) => {
                if let Some(thread) = id.thread {
                    self.switches.add(timestamp, id.cpu, thread.tid, !switch.is_out);
                }
            }
            _ => {}
        }
    }

    /// Replays all records.
    pub(super) fn finish(mut self, modules: Modules) -> SidebandContents {
        // Offsets in `bytes` are unique, so equal timestamps stay in file order.
        self.order.sort_unstable();
        let mut history = History::new(modules);
        history.limit_versions(MOST_NODES.max(self.bytes.len() / BYTES_PER_NODE));
        if self.has_data {
            history.keep_data();
        }
        for (timestamp, start) in self.order {
            let Some(raw) = RawRecord::first(&self.bytes[start..]) else { continue };
            history.record(timestamp, &raw);
        }
        history.complete();
        SidebandContents {
            history,
            facts: self.facts,
            cgroups: self.cgroups,
            reads: self.reads,
            deferred: self.deferred,
            switches: self.switches,
        }
    }
}

fn maps_data(raw: &RawRecord<'_>) -> bool {
    if !matches!(raw.kind, kind::MMAP | kind::MMAP2) {
        return false;
    }
    match raw.parse() {
        Some(Record::Mmap(map)) => map.is_data,
        Some(Record::Mmap2(map)) => map.is_data(),
        _ => false,
    }
}
