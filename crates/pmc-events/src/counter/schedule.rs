//! Groups the events of metrics so that each metric is exact where possible.
//!
//! Takes the event sets of the metrics and the counters that each event can use. Returns groups, each of
//! which fits on the counters. The kernel makes the final decision when the groups are opened.
//!
//! ```text
//! metric A   cycles a b c d      4 general counters; cycles have a fixed one
//! metric B   cycles a e
//!
//! group 1   {cycles a b c d}     an event that several metrics need is counted once
//! group 2   {e}                  B spans two groups: it is estimated if they are multiplexed
//! ```

/// The bit of fixed counter 0; lower bits are general counters.
pub(crate) const FIRST_FIXED: u32 = 32;

/// The counters that an event needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterNeed {
    /// No hardware counter. The event is a software event, which can join any group.
    Nothing,
    /// A separate group: the event is counted by pmc itself, or by a device whose counters need no
    /// scheduling.
    Alone,
    /// One of these counters of the PMU with this `attr.type`: bit n is general counter n, and bit
    /// [`FIRST_FIXED`] + n is fixed counter n.
    OneOf(u32, u64),
    /// The slots counter of the PMU with this `attr.type`. The slots event must lead its group.
    Slots(u32),
    /// No counter, but the event must follow the slots event in its group (topdown events such as
    /// `topdown-retiring`).
    PartOfSlots(u32),
}

impl CounterNeed {
    fn pmu(self) -> Option<u32> {
        match self {
            Self::Nothing | Self::Alone => None,
            Self::OneOf(pmu, _) | Self::Slots(pmu) | Self::PartOfSlots(pmu) => Some(pmu),
        }
    }
}

/// Groups the events. `sets` holds the events of each metric as indices into `needs`; sets that must be exact
/// come first. Each event is in exactly one of the returned groups, which begin with their leader.
///
/// For each set and PMU, ungrouped events join the group that has the most events in common with the set, if
/// they fit. Otherwise they form a new group, or several groups if they do not fit into one.
pub(crate) fn groups(sets: &[Vec<usize>], needs: &[CounterNeed]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for pmu in sets.iter().flatten().filter_map(|&event| match needs[event] {
        CounterNeed::Slots(pmu) | CounterNeed::PartOfSlots(pmu) => Some(pmu),
        _ => None,
    }) {
        // Slots and topdown events must be read together, even if different metrics need them.
        let of_slots = |event: &usize| matches!(needs[*event], CounterNeed::Slots(p) | CounterNeed::PartOfSlots(p) if p == pmu);
        let mut group: Vec<usize> = sets.iter().flatten().copied().filter(of_slots).collect();
        group.sort_by_key(|&event| (!matches!(needs[event], CounterNeed::Slots(_)), event));
        group.dedup();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut is_placed = vec![false; needs.len()];
    groups.iter().flatten().for_each(|&event| is_placed[event] = true);
    for set in sets {
        let mut pmus: Vec<u32> = set.iter().filter_map(|&event| needs[event].pmu()).collect();
        pmus.sort_unstable();
        pmus.dedup();
        for &pmu in &pmus {
            // Events that need no counter join the hardware events of their metric. Both then cover the same
            // time.
            let beside = |need| need == CounterNeed::Nothing && pmus.len() == 1;
            let part = |event: &usize| needs[*event].pmu() == Some(pmu) || beside(needs[*event]);
            let part: Vec<usize> = set.iter().copied().filter(part).collect();
            let mut missing: Vec<usize> = part.iter().copied().filter(|&event| !is_placed[event]).collect();
            missing.dedup();
            missing.iter().for_each(|&event| is_placed[event] = true);
            place(&mut groups, &part, missing, needs);
        }
        for &event in set {
            if !is_placed[event] && (needs[event] == CounterNeed::Alone || pmus.is_empty()) {
                is_placed[event] = true;
                groups.push(vec![event]);
            }
        }
    }
    // Software events of metrics that use several PMUs get separate groups.
    groups.extend(
        sets.iter()
            .flatten()
            .filter(|&&event| !std::mem::replace(&mut is_placed[event], true))
            .map(|&e| vec![e]),
    );
    groups
}

/// Adds each set's ungrouped events to a group that has room for all of them.
pub(crate) fn fill(groups: &mut [Vec<usize>], sets: &[Vec<usize>], needs: &[CounterNeed]) {
    for set in sets {
        let is_new = |event: &&usize| !groups.iter().any(|group| group.contains(event));
        let missing: Vec<usize> = set.iter().filter(is_new).copied().collect();
        let takes = |group: &Vec<usize>| {
            let leader = needs[group[0]];
            let is_beside = |event: &usize| match needs[*event] {
                CounterNeed::PartOfSlots(pmu) => leader == CounterNeed::Slots(pmu),
                need => need.pmu().is_some() && need.pmu() == leader.pmu(),
            };
            missing.iter().all(is_beside) && fits(group.iter().chain(&missing).map(|&event| needs[event]))
        };
        groups.iter_mut().find(|group| takes(group)).into_iter().for_each(|group| group.extend(&missing));
    }
}

/// Assigns groups to the events of a set that are not in any group yet.
fn place(groups: &mut Vec<Vec<usize>>, part: &[usize], mut missing: Vec<usize>, needs: &[CounterNeed]) {
    let shared = |group: &Vec<usize>| group.iter().filter(|event| part.contains(event)).count();
    while !missing.is_empty() {
        let with =
            |group: &Vec<usize>, more: &[usize]| fits(group.iter().chain(more).map(|&event| needs[event]));
        let best = (0..groups.len())
            .filter(|&at| shared(&groups[at]) > 0 && with(&groups[at], &missing))
            .max_by_key(|&at| (shared(&groups[at]), std::cmp::Reverse(at)));
        if let Some(at) = best {
            groups[at].append(&mut missing);
            return;
        }
        let mut group = vec![missing.remove(0)];
        missing.retain(|&event| {
            let goes_with = with(&group, &[event]);
            group.extend(goes_with.then_some(event));
            !goes_with
        });
        groups.push(group);
    }
}

/// Whether events with these needs, all on one PMU, fit on its counters at the same time.
fn fits(needs: impl Iterator<Item = CounterNeed>) -> bool {
    let wanted: Vec<u64> = needs
        .filter_map(|need| match need {
            CounterNeed::OneOf(_, counters) => Some(counters),
            CounterNeed::Slots(_) => Some(1 << (FIRST_FIXED + 3)),
            CounterNeed::Nothing | CounterNeed::PartOfSlots(_) | CounterNeed::Alone => None,
        })
        .collect();
    // Matches events to counters using augmenting paths.
    let mut holders = [None; u64::BITS as usize];
    (0..wanted.len()).all(|event| assign_counter(event, &wanted, &mut holders, &mut 0))
}

/// Assigns a counter to an event. The event that holds this counter may have to move to another counter.
fn assign_counter(event: usize, wanted: &[u64], holders: &mut [Option<usize>; 64], tried: &mut u64) -> bool {
    for counter in 0..holders.len() {
        if (wanted[event] & !*tried) >> counter & 1 == 0 {
            continue;
        }
        *tried |= 1 << counter;
        if holders[counter].is_none_or(|holder| assign_counter(holder, wanted, holders, tried)) {
            holders[counter] = Some(event);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: CounterNeed = CounterNeed::OneOf(4, 0xf);
    const CYCLES: CounterNeed = CounterNeed::OneOf(4, 1 << 33);

    #[test]
    fn fitting_metric_is_one_group_without_duplicates() {
        let needs = [CYCLES, ANY, ANY, ANY, ANY, CounterNeed::Nothing];
        assert_eq!(groups(&[vec![0, 1, 2, 3, 4, 5], vec![0, 2]], &needs), [vec![0, 1, 2, 3, 4, 5]]);
        // The second set has an event in common with the first, whose group has room.
        assert_eq!(groups(&[vec![0, 1], vec![0, 2]], &needs), [vec![0, 1, 2]]);
        // The sets have no event in common, and separate groups are easier to schedule.
        assert_eq!(groups(&[vec![1], vec![2]], &needs), [vec![1], vec![2]]);
    }

    #[test]
    fn metric_that_does_not_fit_is_split() {
        let needs = [CYCLES, ANY, ANY, ANY, ANY, ANY, ANY];
        assert_eq!(groups(&[(0..7).collect()], &needs), [vec![0, 1, 2, 3, 4], vec![5, 6]]);
        assert_eq!(groups(&[vec![0, 1, 2, 3, 4], vec![0, 5, 6]], &needs), [vec![0, 1, 2, 3, 4], vec![5, 6]]);
    }

    #[test]
    fn counter_restrictions_are_respected() {
        // Two events that need counter 2.
        let needs = [CounterNeed::OneOf(4, 0b100), CounterNeed::OneOf(4, 0b100), ANY];
        assert_eq!(groups(&[vec![0, 1, 2]], &needs), [vec![0, 2], vec![1]]);
        // An event that can use several counters does not block events that need one of them.
        let needs = [
            CounterNeed::OneOf(4, 0b11),
            CounterNeed::OneOf(4, 0b11),
            CounterNeed::OneOf(4, 0b111),
            CounterNeed::OneOf(4, 0b1),
        ];
        assert_eq!(groups(&[vec![0, 1, 2]], &needs), [vec![0, 1, 2]]);
        assert_eq!(groups(&[vec![0, 1, 2, 3]], &needs), [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn slots_event_leads_topdown_group() {
        let needs =
            [CounterNeed::PartOfSlots(4), ANY, CounterNeed::Slots(4), CounterNeed::PartOfSlots(4), ANY];
        assert_eq!(groups(&[vec![0, 1], vec![3, 2, 4]], &needs), [vec![2, 0, 3, 1, 4]]);
    }

    #[test]
    fn optional_events_cause_no_multiplexing() {
        let needs =
            [CYCLES, ANY, ANY, ANY, ANY, ANY, CounterNeed::OneOf(4, 1 << 32), CounterNeed::OneOf(10, 1)];
        let mut groups = groups(&[vec![0, 1, 2, 3]], &needs);
        fill(&mut groups, &[vec![0, 4, 5], vec![6, 7], vec![1, 4, 6]], &needs);
        assert_eq!(groups, [vec![0, 1, 2, 3, 4, 6]]);
    }

    #[test]
    fn each_pmu_has_its_own_groups() {
        let needs = [ANY, CounterNeed::OneOf(10, 0x3f), CounterNeed::Alone, CounterNeed::Nothing];
        assert_eq!(groups(&[vec![0, 1, 2, 3]], &needs), [vec![0], vec![1], vec![2], vec![3]]);
        assert_eq!(groups(&[vec![3, 2]], &needs), [vec![3], vec![2]]);
    }
}
