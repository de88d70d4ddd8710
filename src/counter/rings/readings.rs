//! What sampling events have counted.
//!
//! Receives [`Rings`] that are open; hands on a count for each place where an event was opened, and those of
//! threads together.

use std::collections::BTreeMap;

use super::{Instance, Rings, SampledSlot};
use crate::abi::read_format;
use crate::units::Count;

/// What an instance has come to.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Which.
    pub instance: Instance,
    /// Its count, those of children that inherited it included; times are 0 where they are not read.
    pub count: Count,
    /// Records that the kernel could not put into the ring.
    pub lost: u64,
}

/// What each event has come to on each thread: its instances there, one a CPU, take turns.
pub fn by_thread(readings: &[Reading]) -> BTreeMap<(usize, Option<u32>), Count> {
    let mut counts = BTreeMap::<_, Count>::new();
    for Reading { instance, count, .. } in readings {
        counts.entry((instance.event, instance.slot.tid)).or_default().take_turns(*count);
    }
    counts.values_mut().for_each(|count| count.enabled_ns = count.enabled_ns.max(count.running_ns));
    counts
}

impl Rings {
    /// What each instance has counted, and what its ring had no room for.
    pub fn read(&self) -> Vec<Reading> {
        let mut words = vec![0; 3 + 3 * self.events.len()];
        let read = |one: &SampledSlot| {
            let format = self.events[one.event].request.attr().read_format();
            let got = one.fd.read(&mut words).ok()?;
            let times = (format & (read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING))
                .count_ones() as usize;
            let has_lost = format & read_format::LOST != 0;
            // Alone: value, times, id, lost. In a group: number, times, then value, id, lost of each, ours
            // among them.
            let (value, lost) = if format & read_format::GROUP == 0 {
                (words.first()?, words[..got].get(1 + times + 1))
            } else {
                let mut rows = words[..got].get(1 + times..)?.chunks_exact(2 + usize::from(has_lost));
                let row = rows.find(|row| row[1] == one.id)?;
                (&row[0], row.get(2))
            };
            let instance = Instance { event: one.event, id: one.id, ring: one.ring, slot: one.slot };
            let both = if times == 2 { words[..got].get(1..3) } else { None };
            let [enabled_ns, running_ns] = both.and_then(|both| both.try_into().ok()).unwrap_or_default();
            // Before Linux 6.0 the kernel does not say.
            Some(Reading {
                instance,
                count: Count { value: *value, enabled_ns, running_ns },
                lost: lost.filter(|_| has_lost).copied().unwrap_or(0),
            })
        };
        self.open.iter().filter_map(read).collect()
    }
}
