//! Properties of events that are known before their rows are processed.

use super::idle::IdleWaits;
use super::waits::ThreadTimeSums;
use crate::session::SampleValue;
use crate::session::thread_time::{ThreadState, ThreadTime};

/// The properties of an event that are known before its rows are processed.
#[derive(Debug, Clone, Default)]
pub struct EventTotals {
    /// The event's name; untrusted text.
    pub name: String,
    /// Index of the group's leader; the event's own index if it does not belong to a group.
    pub leader: usize,
    /// The state of threads that the event measures; `None` if it measures all states, or no times of
    /// threads.
    pub state: Option<ThreadState>,
    /// See [`ProfileEvent::is_only_sum`](super::ProfileEvent::is_only_sum).
    pub is_only_sum: bool,
    /// Sum of all samples.
    pub total: SampleValue,
    /// Sum of the samples that were excluded before rows were built.
    pub filtered: SampleValue,
    /// How threads spent their time, without the sites, if the event measures times of threads.
    pub thread_time: Option<ThreadTimeSums>,
}

impl EventTotals {
    /// Joins the events that measure times of threads into one event. `recorded_name` returns the name of an
    /// event in the recording.
    pub(crate) fn join(
        totals: &mut [Self],
        thread_time: &ThreadTime,
        recorded_name: impl Fn(usize) -> String,
    ) {
        for index in 0..totals.len() {
            let (joint, Some(_)) = thread_time.joint(index) else { continue };
            (totals[index].state, totals[index].is_only_sum) = (None, false);
            if let Some(name) = thread_time.name(index) {
                totals[index].name = name.to_owned();
                continue;
            }
            let taken = std::mem::take(&mut totals[index]);
            totals[joint].total += taken.total;
            totals[joint].filtered += taken.filtered;
            totals[index] = Self { name: recorded_name(index), leader: taken.leader, ..Self::default() };
        }
    }

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
