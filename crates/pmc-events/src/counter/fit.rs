//! Determines which event groups fit on the counters at the same time.
//!
//! Takes event groups and tries to open them: the kernel refuses a group (`EINVAL`) that could not be
//! scheduled even on an idle PMU. Splits the groups into passes, each of which fits on the counters. The
//! kernel's check does not consider counters that are permanently in use, for example by a watchdog or a
//! pinned event.

use super::facts::MachineFacts;
use super::request::{CounterFlags, CountingStart, Mode, allocate};
use super::target::TargetSlot;
use crate::event::EventGroup;
use pmc_sys::sys::errno;
use pmc_sys::sys::perf::EventFd;

/// Returns the indices of the groups, split into passes. All groups in a pass fit on the counters at the same
/// time. Groups that need no counter or cannot be opened go into the first pass. A group too large for the
/// machine gets its own pass.
pub fn passes(groups: &[&EventGroup], facts: &MachineFacts) -> Vec<Vec<usize>> {
    let mut passes: Vec<Pass> = Vec::new();
    let mut free = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        if !group.events.iter().any(|event| event.takes_counter()) {
            free.push(index);
            continue;
        }
        match passes.iter_mut().find_map(|pass| pass.takes(group, facts).then_some(pass)) {
            Some(pass) => pass.groups.push(index),
            None => {
                let mut pass = Pass::default();
                if pass.takes(group, facts) && pass.open.is_empty() {
                    // No event of the group could be opened, so the group needs no counter.
                    free.push(index);
                } else {
                    pass.groups.push(index);
                    passes.push(pass);
                }
            }
        }
    }
    let mut result: Vec<Vec<usize>> = passes.into_iter().map(|pass| pass.groups).collect();
    match result.first_mut() {
        Some(first) => {
            first.extend(free);
            first.sort_unstable();
        }
        None if !groups.is_empty() => result.push(free),
        None => {}
    }
    result
}

/// A pass, with its events opened in disabled kernel groups. Events are added to each kernel group until the
/// kernel refuses one. There is one kernel group per PMU: PMUs do not share counters, and the kernel refuses
/// any group that spans two PMUs.
///
/// ```text
/// pass ─┬─ cpu_core      cycles, instructions, …     on pmc's own process
///       ├─ cpu_atom      cycles, instructions, …     on pmc's own process
///       └─ uncore_imc_0  cas_count_read, …           on a CPU in its cpumask: it cannot follow a task
/// ```
#[derive(Default)]
struct Pass {
    groups: Vec<usize>,
    /// The open events of each PMU (never empty), with its `attr.type` if known.
    open: Vec<(Option<u32>, Vec<EventFd>)>,
}

impl Pass {
    /// Adds a group if the whole group fits in this pass.
    fn takes(&mut self, group: &EventGroup, facts: &MachineFacts) -> bool {
        let before: Vec<usize> = self.open.iter().map(|(_, events)| events.len()).collect();
        for event in &group.events {
            let pmu = event.attr().and_then(|attr| facts.pmu_of(attr));
            let cpu = pmu.and_then(|pmu| pmu.cpumask.as_ref()?.first());
            let (mode, slot) = match cpu {
                Some(_) => (Mode::SystemCounting, TargetSlot { tid: None, cpu }),
                None => (Mode::TaskCounting, TargetSlot::OURSELVES),
            };
            let Ok(mut request) = allocate(event, mode, CounterFlags::default(), cpu) else { continue };
            let pmu = pmu.map(|pmu| pmu.kind);
            let beside = self.open.iter().position(|(kind, _)| *kind == pmu);
            // The events need not actually count, but on Arm the kernel only checks events that may become
            // enabled. Therefore the leader waits for an exec that never happens, and the members start with
            // their leader.
            request.start(if beside.is_none() { CountingStart::Exec } else { CountingStart::AtOnce });
            // The whole pass is one group, so a single event must not be pinned, even if its text requests
            // it.
            request.pinned(false);
            let leader = beside.and_then(|at| self.open[at].1.first());
            match (request.open(slot, None, leader), beside) {
                (Ok(fd), Some(at)) => self.open[at].1.push(fd),
                (Ok(fd), None) => self.open.push((pmu, vec![fd])),
                (Err(refusal), Some(_)) if refusal.errno == Some(errno::EINVAL) => {
                    self.open.truncate(before.len());
                    self.open.iter_mut().zip(before).for_each(|((_, events), len)| events.truncate(len));
                    return false;
                }
                // The event was refused for another reason, so it will not occupy a counter in any pass.
                (Err(_), _) => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::host::Host;

    #[test]
    fn events_without_counter_need_one_pass() {
        let host = Host::live();
        let text = "task-clock,page-faults,{context-switches,cpu-migrations}";
        let groups = crate::event::parse(text, &host).unwrap();
        let passes = passes(&groups.iter().collect::<Vec<_>>(), &MachineFacts::own(&host));
        assert_eq!(passes, [vec![0, 1, 2]]);
    }
}
