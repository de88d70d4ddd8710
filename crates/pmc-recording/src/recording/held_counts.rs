//! Counts of events that a holder keeps open. The events count continuously, so a measurement uses the
//! difference between the counts at its start and at its end.
//!
//! Receives the events' specs, and requests counts from their holders whenever counting is switched on or
//! off. Its readings are added to the readings of this process's own counters.

use std::collections::HashMap;

use std::time::Duration;

use crate::persistent::client::{ask, ask_for};
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{HolderAnswer, HolderRequest};
use pmc_events::event::{EventSource, EventSpec, PersistentEvent};
use pmc_sys::error::{Error, Result};
use pmc_text::units::Count;

/// Counts by CPU and by the event's index within its entry.
type HeldCountMap = HashMap<(usize, Option<u32>), Count>;

/// Maximum time to wait for a holder's counts while a measurement is running. A stopped holder must not block
/// the other events of the measurement.
const PATIENCE: Duration = Duration::from_secs(2);

/// Count of a held event.
pub(super) struct HeldReading {
    /// Index of the event in the set.
    pub(super) event: usize,
    /// Index of the event within its entry. The entry of an adopted recording may contain several events.
    pub(super) member: usize,
    pub(super) cpu: Option<u32>,
    /// The count; `None` if the holder no longer answers.
    pub(super) count: Option<Count>,
}

/// An event of the set that a holder keeps open.
struct HeldSetEvent {
    /// Index of the event in the set.
    event: usize,
    name: String,
    held: PersistentEvent,
    /// Names of the events in its entry; known after the holder's first answer.
    members: Vec<String>,
    /// Counts from earlier periods in which counting was on, excluding the current period.
    before: HeldCountMap,
    /// The holder's counts when counting was last switched on; `None` while counting is off.
    base: Option<HeldCountMap>,
    /// Whether the holder has dropped the event or has ended.
    is_gone: bool,
}

pub(super) struct HeldCounts(Vec<HeldSetEvent>);

impl HeldCounts {
    /// Finds the held events of a set.
    pub(super) fn find<'a>(events: impl Iterator<Item = &'a EventSpec>) -> Self {
        let held = events.enumerate().filter_map(|(event, spec)| match &spec.source {
            EventSource::Held(held) => Some(HeldSetEvent {
                event,
                name: spec.name.clone(),
                held: held.clone(),
                members: Vec::new(),
                before: HeldCountMap::new(),
                base: None,
                is_gone: false,
            }),
            _ => None,
        });
        Self(held.collect())
    }

    /// Switches counting on or off. If an event disappears later, only that event is [not
    /// counted](Self::read).
    ///
    /// # Errors
    /// Fails if a holder does not answer when counting begins.
    pub(super) fn switch(&mut self, on: bool) -> Result<()> {
        for held in &mut self.0 {
            if on == held.base.is_some() || held.is_gone {
                continue;
            }
            let base = held.base.take();
            let patience = (base.is_some() || !held.before.is_empty()).then_some(PATIENCE);
            match (held.now(patience), base) {
                (Ok((now, _)), Some(base)) => add(&mut held.before, &now, &base),
                (Ok((now, members)), None) => (held.base, held.members) = (Some(now), members),
                (Err(error), None) if held.before.is_empty() => return Err(error),
                (Err(_), _) => held.is_gone = true,
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an error for an entry with several events. Callers that show one count per entry use this
    /// check.
    ///
    /// # Errors
    /// Fails if there is such an entry. The error names the first one.
    pub(super) fn refuse_several(&self) -> Result<()> {
        let Some(held) = self.0.iter().find(|held| held.members.len() > 1) else { return Ok(()) };
        let error = Error::usage(format!("{}: this entry contains several events", held.name));
        Err(error
            .why(format!("they are {}; stat shows one count per name", held.members.join(", ")))
            .try_this(format!("pmc persist read {}", held.held.id)))
    }

    /// Reads the count of each event on each CPU.
    pub(super) fn read(&self) -> Vec<HeldReading> {
        let mut readings = Vec::new();
        for held in &self.0 {
            let mut counts = held.before.clone();
            let is_gone = match held.base.as_ref().map(|base| (held.now(Some(PATIENCE)), base)) {
                Some((Ok((now, _)), base)) => {
                    add(&mut counts, &now, base);
                    false
                }
                Some((Err(_), _)) => true,
                None => held.is_gone,
            };
            if is_gone {
                readings.push(HeldReading { event: held.event, member: 0, cpu: None, count: None });
                continue;
            }
            readings.extend(counts.into_iter().map(|((member, cpu), count)| {
                // An event whose threads were asleep the whole time has a valid count: 0.
                let count = match count.enabled_ns {
                    0 => Count { enabled_ns: 1, running_ns: 1, ..count },
                    _ => count,
                };
                HeldReading { event: held.event, member, cpu, count: Some(count) }
            }));
        }
        readings
    }
}

impl HeldSetEvent {
    /// Reads the current counts of the entry, and the names of its events.
    fn now(&self, patience: Option<Duration>) -> Result<(HeldCountMap, Vec<String>)> {
        let directory = RunDirectory::at(&self.held.run_directory);
        let request = HolderRequest::Read { entry: self.held.id.to_string() };
        let (answer, _) = match patience {
            Some(patience) => ask_for(&directory, &request, patience)?,
            None => ask(&directory, &request)?,
        };
        let HolderAnswer::Counts(counts) = answer else {
            return Err(Error::new(format!("{}: unexpected answer from its holder", self.name)));
        };
        let count = |row: &crate::persistent::message::CpuCounts| Count {
            value: row.value,
            enabled_ns: row.enabled,
            running_ns: row.running,
        };
        Ok((counts.rows.iter().map(|row| ((row.event, row.cpu), count(row))).collect(), counts.events))
    }
}

fn add(sum: &mut HeldCountMap, now: &HeldCountMap, base: &HeldCountMap) {
    for (place, count) in now {
        let since = count.since(base.get(place).copied().unwrap_or_default());
        *sum.entry(*place).or_default() += since;
    }
}
