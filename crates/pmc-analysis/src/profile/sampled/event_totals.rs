//! Properties of events that are known before their rows are processed.

use super::idle::IdleWaits;
use super::waits::ThreadTimeSums;
use crate::session::SampleValue;

/// The properties of an event that are known before its rows are processed.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventTotals {
    /// The event's name; untrusted text.
    pub(crate) name: String,
    /// Index of the group's leader; the event's own index if it does not belong to a group.
    pub(crate) leader: usize,
    /// Sum of all samples.
    pub(crate) total: SampleValue,
    /// Sum of the samples that were excluded before rows were built.
    pub(crate) filtered: SampleValue,
    /// Running and waiting time, without the sites, if the event measures both.
    pub(crate) thread_time: Option<ThreadTimeSums>,
}

impl EventTotals {
    /// Adds the waits of idle threads, which the totals do not include.
    pub(crate) fn add_idle(totals: &mut [Self], idle: &IdleWaits) {
        for (key, value) in &idle.rows {
            totals[key.event as usize].total += value;
        }
        for sums in totals.iter_mut().filter_map(|of| of.thread_time.as_mut()) {
            sums.idle = (0, 0);
            sums.idle_groups.clear();
        }
    }
}
