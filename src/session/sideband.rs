//! Collecting everything that is not a sample, to be told to the history in the order of time.
//!
//! Rings of several CPUs lie one behind the other in a file, so a process's mapping may stand before the fork that made the
//! process. The side-band is small: it is kept as bytes, sorted by moment (equal moments by place), and replayed.

use rustc_hash::FxHashMap;

use super::Facts;
use super::history::{History, Moment};
use super::module::Modules;
use crate::record::{Layouts, RawRecord, Record, kind};

/// Side-band records as they came.
#[derive(Debug)]
pub(super) struct Sideband {
    has_time: bool,
    /// Bytes of records walked over: the moment where there are no times.
    position: u64,
    bytes: Vec<u8>,
    /// Moment, start in `bytes`.
    order: Vec<(Moment, usize)>,
    facts: Facts,
    cgroups: FxHashMap<u64, Vec<u8>>,
}

impl Sideband {
    pub(super) fn new(has_time: bool) -> Self {
        Self {
            has_time,
            position: 0,
            bytes: Vec::new(),
            order: Vec::new(),
            facts: Facts::default(),
            cgroups: FxHashMap::default(),
        }
    }

    /// Looks at one record of the file, samples included.
    #[inline]
    pub(super) fn add(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        let at = self.position;
        self.position += raw.bytes.len() as u64;
        match raw.kind {
            kind::SAMPLE => {}
            kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::KSYMBOL => {
                let moment =
                    if self.has_time { layouts.sample_id(raw).time.map_or(0, |time| time.0) } else { at };
                self.order.push((moment, self.bytes.len()));
                self.bytes.extend_from_slice(raw.bytes);
            }
            kind::LOST | kind::LOST_SAMPLES | kind::THROTTLE | kind::CGROUP => self.count(raw),
            _ => {}
        }
    }

    fn count(&mut self, raw: &RawRecord<'_>) {
        match raw.parse() {
            Some(Record::Lost(lost)) => {
                self.facts.lost_records = self.facts.lost_records.saturating_add(lost.lost);
            }
            Some(Record::LostSamples(lost)) => {
                self.facts.lost_samples = self.facts.lost_samples.saturating_add(lost);
            }
            Some(Record::Throttle(_)) => self.facts.throttled += 1,
            Some(Record::Cgroup(cgroup)) => {
                self.cgroups.insert(cgroup.id, cgroup.path.to_vec());
            }
            _ => {}
        }
    }

    /// Replays everything.
    pub(super) fn finish(mut self, modules: Modules) -> (History, Facts, FxHashMap<u64, Vec<u8>>) {
        // A place in `bytes` is unique: equal moments stay in the file's order.
        self.order.sort_unstable();
        let mut history = History::new(modules);
        for (moment, start) in self.order {
            let Some(raw) = RawRecord::first(&self.bytes[start..]) else { continue };
            history.record(moment, &raw);
        }
        history.complete();
        (history, self.facts, self.cgroups)
    }
}
