//! Writes counts to a file in the format of `perf stat record`.
//!
//! Receives the opened counters and their totals, round by round. Writes a recording that `pmc stat report`,
//! `perf stat report` and both `script` commands can read. [`counting`](crate::recording::counting) measures,
//! and `perfdata` writes the bytes.
//!
//! ```text
//! EVENT_UPDATE … THREAD_MAP CPU_MAP STAT_CONFIG │ STAT STAT … STAT_ROUND │ STAT STAT … STAT_ROUND │ …
//! unit, scale, name, CPUs; targets; settings    │ totals, per counter    │
//! ```

use std::path::Path;

use rustc_hash::FxHashMap;

use super::features;
use pmc_events::counter::counter_set::{CounterReading, CounterSet};
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::EventSpec;
use pmc_perfdata::perfdata::feature::RawSection;
use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::encode::{Encoder, EventUpdateField, MOST_THREADS};
use pmc_perfdata::record::{StatCount, StatRound};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::{Attr, generic, sample_type};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::sys::standard_output;
use pmc_text::units::Count;

/// How tables display an event. The file stores this for its readers.
pub struct EventDisplay {
    /// The event's name.
    pub name: String,
    /// Factor that converts the event's count to its unit.
    pub scale: f64,
    /// The event's unit; empty for plain counts.
    pub unit: String,
}

/// A recording of counts that is being written.
pub struct CountsFile {
    writer: Writer,
    features: Features,
    records: Encoder,
    /// The thread number that records use for each thread; empty if CPUs are counted.
    threads: FxHashMap<u32, u32>,
    /// The first counted CPU. Counts that do not belong to a CPU are written for this one.
    first_cpu: Option<u32>,
}

impl CountsFile {
    /// Begins the file. `shown` has an entry for each event in the set. `threads` are the counted threads;
    /// empty if CPUs are counted. `config` is the content of `STAT_CONFIG`.
    ///
    /// # Errors
    /// Fails if the file cannot be created or written, or if there are too many threads for the format.
    pub fn create(
        path: &Path,
        host: &Host,
        set: &CounterSet,
        shown: &[EventDisplay],
        threads: &[ThreadInfo],
        cpus: &[u32],
        config: &[[u64; 2]],
    ) -> Result<Self> {
        if threads.len() > MOST_THREADS {
            let count = threads.len();
            return Err(Error::new(format!("recording the counts of {count} threads"))
                .why(format!("a recording of counts supports at most {MOST_THREADS} threads"))
                .try_options("-a, which counts per CPU; or choose fewer processes"));
        }
        let events: Vec<RecordedEvent> = shown
            .iter()
            .zip(set.attrs())
            .enumerate()
            .map(|(index, (shown, attr))| RecordedEvent {
                attr: written(attr),
                ids: vec![id(index)],
                name: Some(shown.name.clone()),
            })
            .collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (event, group) in set.group_of_events().into_iter().enumerate() {
            groups.resize_with(groups.len().max(group + 1), Vec::new);
            groups[group].push(event);
        }
        let features =
            Features { stat: Some(RawSection::default()), ..features::of_machine(host, &events, &groups) };
        let writer = Writer::create(
            path,
            &events,
            &features,
            WriteOptions {
                stream: Some(standard_output::name()),
                replaced: Some(|path, was| {
                    say::note(format!("replaced {}, which was {was}", path.display()))
                }),
                ..WriteOptions::default()
            },
        )?;
        let mut file = Self {
            writer,
            features,
            records: Encoder::new(0),
            threads: threads.iter().map(|thread| thread.tid).zip(0..).collect(),
            first_cpu: cpus.first().copied(),
        };
        for (index, (shown, spec)) in shown.iter().zip(set.specs()).enumerate() {
            file.write_event_update(id(index), shown, spec);
        }
        let everybody = [(-1, "")];
        if threads.is_empty() {
            file.records.thread_map(everybody.into_iter());
        } else {
            file.records.thread_map(threads.iter().map(|t| (i64::from(t.tid), t.comm.as_str())));
        }
        file.records.cpu_map(cpus);
        file.records.stat_config(config);
        file.write()?;
        Ok(file)
    }

    fn write_event_update(&mut self, id: u64, shown: &EventDisplay, spec: &EventSpec) {
        let records = &mut self.records;
        records.event_update(id, &EventUpdateField::Name(&shown.name));
        if !shown.unit.is_empty() {
            records.event_update(id, &EventUpdateField::Unit(&shown.unit));
        }
        if shown.scale != 1.0 {
            records.event_update(id, &EventUpdateField::Scale(shown.scale));
        }
        let cpus = match spec.attr() {
            Some(_) => spec.cpus.as_ref().or(spec.core_cpus.as_ref()).map(|cpus| cpus.iter().collect()),
            None => self.first_cpu.map(|cpu| vec![cpu]),
        };
        if let Some(cpus) = cpus {
            records.event_update(id, &EventUpdateField::Cpus(&cpus));
        }
    }

    /// Writes one round: the totals at `at_ns` nanoseconds after the start. `readings` come from the kernel's
    /// counters, and `measured` contains the events that pmc itself measures. Refused events have no record.
    ///
    /// # Errors
    /// Fails if the round cannot be written. Earlier rounds remain readable.
    pub fn round(
        &mut self,
        readings: &[CounterReading],
        measured: impl Iterator<Item = (usize, u64)>,
        at_ns: u64,
        is_final: bool,
    ) -> Result<()> {
        for CounterReading { event, slot, count } in readings {
            let Some(count) = count else { continue };
            self.count(*event, *slot, *count);
        }
        for (event, value) in measured {
            let count = Count { value, enabled_ns: value.max(1), running_ns: value.max(1) };
            self.count(event, TargetSlot { tid: None, cpu: self.first_cpu }, count);
        }
        self.records.stat_round(StatRound { is_final, time: at_ns });
        self.write()
    }

    fn count(&mut self, event: usize, slot: TargetSlot, count: Count) {
        let thread = slot.tid.and_then(|tid| self.threads.get(&tid));
        self.records.stat(&StatCount {
            id: id(event),
            cpu: slot.cpu.unwrap_or(u32::MAX),
            thread: thread.copied().unwrap_or(0),
            value: count.value,
            enabled: count.enabled_ns,
            running: count.running_ns,
        });
    }

    fn write(&mut self) -> Result<()> {
        self.writer.append(&[self.records.bytes()])?;
        self.records.clear();
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Fails if the file's sections cannot be written.
    pub fn finish(self) -> Result<()> {
        self.writer.finish(&self.features)?;
        Ok(())
    }
}

/// Returns the id by which records refer to an event. It is never 0, because 0 means no event.
fn id(event: usize) -> u64 {
    event as u64 + 1
}

/// Returns the attr to write for an event. It declares that records contain the event's id. An event without
/// a counter gets a dummy event.
fn written(attr: Option<&Attr>) -> Attr {
    let mut attr = attr.cloned().unwrap_or_else(|| Attr::new(kind::SOFTWARE, generic::DUMMY));
    attr.set_sample_type(sample_type::IDENTIFIER);
    attr
}
