//! Counts of events that a holder keeps open: they count on, whoever looks. What is ours is what has come
//! while we counted.
//!
//! Receives the events' specs; asks their holders when counting is switched on or off, and hands on readings
//! beside those of the counters that are opened here.

use std::collections::HashMap;

use crate::counter::counter_set::Reading;
use crate::counter::target::TargetSlot;
use crate::error::{Error, Result};
use crate::event::{EventSpec, PersistentEvent, Source};
use crate::persistent::client::ask;
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Answer, Request};
use crate::units::Count;

/// Counts by CPU.
type Counts = HashMap<Option<u32>, Count>;

/// An event of the set that is held.
struct HeldEvent {
    /// Its index.
    event: usize,
    name: String,
    held: PersistentEvent,
    /// What came while counting was on, before it was switched on the last time.
    before: Counts,
    /// The holder's counts when it was; `None` while it is off.
    base: Option<Counts>,
    /// Its holder has let it go, or has ended.
    is_gone: bool,
}

/// Those of a set.
pub(super) struct HeldCounts(Vec<HeldEvent>);

impl HeldCounts {
    /// Which of a set's events are held.
    pub(super) fn of<'a>(events: impl Iterator<Item = &'a EventSpec>) -> Self {
        let held = events.enumerate().filter_map(|(event, spec)| match &spec.source {
            Source::Held(held) => Some(HeldEvent {
                event,
                name: spec.name.clone(),
                held: held.clone(),
                before: Counts::new(),
                base: None,
                is_gone: false,
            }),
            _ => None,
        });
        Self(held.collect())
    }

    /// Counting is on, or off, from now. An event that goes meanwhile is [not counted](Self::read): the
    /// others are.
    ///
    /// # Errors
    /// Whose holder does not answer when counting begins.
    pub(super) fn switch(&mut self, on: bool) -> Result<()> {
        for held in &mut self.0 {
            if on == held.base.is_some() || held.is_gone {
                continue;
            }
            match (held.now(), held.base.take()) {
                (Ok(now), Some(base)) => add(&mut held.before, &now, &base),
                (Ok(now), None) => held.base = Some(now),
                (Err(error), None) if held.before.is_empty() => return Err(error),
                (Err(_), _) => held.is_gone = true,
            }
        }
        Ok(())
    }

    /// Adds what each has counted, on each CPU; without a count where its holder does not answer any more.
    pub(super) fn read(&self, readings: &mut Vec<Reading>) {
        for held in &self.0 {
            let mut counts = held.before.clone();
            let is_gone = match held.base.as_ref().map(|base| (held.now(), base)) {
                Some((Ok(now), base)) => {
                    add(&mut counts, &now, base);
                    false
                }
                Some((Err(_), _)) => true,
                None => held.is_gone,
            };
            if is_gone {
                let slot = TargetSlot { tid: None, cpu: None };
                readings.push(Reading { event: held.event, slot, count: None });
                continue;
            }
            readings.extend(counts.into_iter().map(|(cpu, count)| {
                // Who has slept all the time has counted, too: nothing.
                let count = match count.enabled_ns {
                    0 => Count { enabled_ns: 1, running_ns: 1, ..count },
                    _ => count,
                };
                Reading { event: held.event, slot: TargetSlot { tid: None, cpu }, count: Some(count) }
            }));
        }
    }
}

impl HeldEvent {
    fn now(&self) -> Result<Counts> {
        let directory = RunDirectory::at(&self.held.run_directory);
        let (answer, _) = ask(&directory, &Request::Read { entry: self.held.id.to_string() })?;
        let Answer::Counts(counts) = answer else {
            return Err(Error::new(format!("{}: its holder answered something else", self.name)));
        };
        let count = |row: &crate::persistent::message::CpuCounts| Count {
            value: row.value,
            enabled_ns: row.enabled,
            running_ns: row.running,
        };
        Ok(counts.rows.iter().map(|row| (row.cpu, count(row))).collect())
    }
}

fn add(sum: &mut Counts, now: &Counts, base: &Counts) {
    for (cpu, count) in now {
        let since = count.since(base.get(cpu).copied().unwrap_or_default());
        *sum.entry(*cpu).or_default() += since;
    }
}
