//! Reads the counts of sampled events.
//!
//! Takes open [`Rings`]; returns a count for each instance of an event, and totals by thread.

use std::collections::BTreeMap;

use super::{Instance, Rings, SampledSlot};
use pmc_sys::abi::read_format;
use pmc_text::units::Count;

/// The count of an instance.
#[derive(Debug, Clone, Copy)]
pub struct InstanceReading {
    /// The instance.
    pub instance: Instance,
    /// The count, including children that inherited the event. Times that were not read are 0.
    pub count: Count,
    /// Number of records lost because the ring was full.
    pub lost: u64,
}

/// Sums each event's counts by thread. A thread's event has one instance per CPU, and only one of them runs
/// at a time.
pub fn by_thread(readings: &[InstanceReading]) -> BTreeMap<(usize, Option<u32>), Count> {
    let mut counts = BTreeMap::<_, Count>::new();
    for InstanceReading { instance, count, .. } in readings {
        counts.entry((instance.event, instance.slot.tid)).or_default().take_turns(*count);
    }
    counts.values_mut().for_each(|count| count.enabled_ns = count.enabled_ns.max(count.running_ns));
    counts
}

impl Rings {
    /// Reads the count and the number of lost records for each instance.
    pub fn read(&self) -> Vec<InstanceReading> {
        let mut words = vec![0; 3 + 3 * self.events.len()];
        let read = |one: &SampledSlot| {
            let format = self.events[one.event].request.attr().read_format();
            let got = one.fd.read(&mut words).ok()?;
            let times = (format & (read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING))
                .count_ones() as usize;
            let has_lost = format & read_format::LOST != 0;
            // Without a group, the kernel writes value, times, id and lost. In a group, it writes the number
            // of members and the times, then value, id and lost for each member, including this one.
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
            // Kernels before Linux 6.0 do not report the number of lost records.
            Some(InstanceReading {
                instance,
                count: Count { value: *value, enabled_ns, running_ns },
                lost: lost.filter(|_| has_lost).copied().unwrap_or(0),
            })
        };
        self.open.iter().filter_map(read).collect()
    }
}
