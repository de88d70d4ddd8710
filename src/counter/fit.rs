//! What fits on the counters at once.
//!
//! Receives event groups; finds out by asking the kernel, which refuses (`EINVAL`) to open a group that could
//! not be scheduled even on an empty PMU. Hands on the groups in passes, each of which fits. Counters that
//! somebody else holds for good (a watchdog, a pinned event) are not seen by that check.

use super::request::{Flags, Mode, Start, allocate};
use super::target::TargetSlot;
use crate::event::EventGroup;
use crate::sys::errno;
use crate::sys::perf::EventFd;

/// The groups' indices in passes: those of a pass are on the counters together, all the time. Events that
/// take no counter, or cannot be opened, go with the first pass. A group too large for the machine is a pass
/// of its own.
pub fn passes(groups: &[&EventGroup]) -> Vec<Vec<usize>> {
    let mut passes: Vec<Pass> = Vec::new();
    let mut free = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        if !group.events.iter().any(|event| event.takes_counter()) {
            free.push(index);
            continue;
        }
        match passes.iter_mut().find_map(|pass| pass.takes(group).then_some(pass)) {
            Some(pass) => pass.groups.push(index),
            None => {
                let mut pass = Pass::default();
                if pass.takes(group) || group.events.len() > 1 {
                    pass.groups.push(index);
                    passes.push(pass);
                } else {
                    // Refused by itself: it has no counters to be shared.
                    free.push(index);
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

/// A kernel group of our own, disabled, that grows as long as the kernel lets it.
#[derive(Default)]
struct Pass {
    groups: Vec<usize>,
    open: Vec<EventFd>,
}

impl Pass {
    /// Adds a group if all of it fits beside what is there.
    fn takes(&mut self, group: &EventGroup) -> bool {
        let before = self.open.len();
        for event in &group.events {
            let Ok(mut request) = allocate(event, Mode::TaskCounting, Flags::default(), None) else {
                continue;
            };
            // Nothing is to count, but the kernel's check for Arm leaves out whatever nobody will enable: so
            // the leader waits for an exec that never comes, and the members for their leader.
            request.start(if self.open.is_empty() { Start::Exec } else { Start::AtOnce });
            // The whole pass is to be one group, whatever the text says of each.
            request.pinned(false);
            match request.open(TargetSlot::OURSELVES, None, self.open.first()) {
                Ok(fd) => self.open.push(fd),
                Err(refusal) if refusal.errno == Some(errno::EINVAL) || self.open.is_empty() => {
                    self.open.truncate(before);
                    return false;
                }
                // Refused for another reason: it will have no counter in any pass.
                Err(_) => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn what_takes_no_counter_is_one_pass() {
        let groups =
            crate::event::parse("task-clock,page-faults,{context-switches,cpu-migrations}", &Host::live())
                .unwrap();
        let passes = passes(&groups.iter().collect::<Vec<_>>());
        assert_eq!(passes, [vec![0, 1, 2]]);
    }
}
