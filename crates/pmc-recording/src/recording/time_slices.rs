//! Counts by time slice (`log-cswitch`).
//!
//! Receives groups of events. If a group's counts are logged at context switches, gives the group a leader.
//! The leader samples every switch, and each sample contains the counts of the group. The count of a slice is
//! the difference between two consecutive samples. The count of a thread's last slice is the difference
//! between its last sample and its final count (`READ`).
//!
//! ```text
//!   page-faults,task-clock   ─►  {context-switches, page-faults, task-clock}:S     one sample per switch
//!   {cycles,instructions}    ─►  {context-switches, cycles, instructions}:S
//! ```

use pmc_events::event::{EventGroup, EventSource, EventSpec};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::CONTEXT_SWITCHES;

/// Adds a leader to each group whose counts are logged by slice. If all events are logged and none is in an
/// explicit group, they share one leader and keep their order.
pub fn lead(mut groups: Vec<EventGroup>) -> Vec<EventGroup> {
    let logs = |group: &EventGroup| group.events.iter().any(|event| event.qualifiers.log_cswitch);
    if groups.iter().all(|group| !group.braces && logs(group)) {
        let events: Vec<EventSpec> = groups.drain(..).flat_map(|group| group.events).collect();
        groups.extend((!events.is_empty()).then(|| led(events)));
        return groups;
    }
    groups.into_iter().map(|group| if logs(&group) { led(group.events) } else { group }).collect()
}

fn led(mut events: Vec<EventSpec>) -> EventGroup {
    let mut leader = EventSpec::generic(kind::SOFTWARE, CONTEXT_SWITCHES);
    if let EventSource::Kernel(attr) = &mut leader.source {
        attr.set_period(1);
        // In the kernel, the leader determines how a group is inherited.
        let of_threads = events.iter().filter_map(EventSpec::attr).any(|attr| attr.get(Flag::InheritThread));
        attr.set(Flag::InheritThread, of_threads);
    }
    leader.qualifiers.log_cswitch = true;
    leader.qualifiers.leads_slices = true;
    leader.qualifiers.inherit = events.iter().find_map(|event| event.qualifiers.inherit);
    events.insert(0, leader);
    EventGroup { events, braces: true, weak: false, leader_sampling: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_events::event::parse;
    use pmc_sys::host::Host;

    #[test]
    fn time_slice_groups_get_leaders() {
        let led = |text: &str| {
            let names = |group: EventGroup| {
                let all: Vec<String> = group.events.into_iter().map(|event| event.name).collect();
                format!("{}{}", all.join(" "), if group.leader_sampling { ":S" } else { "" })
            };
            lead(parse(text, &Host::live()).unwrap()).into_iter().map(names).collect::<Vec<_>>()
        };
        assert_eq!(
            led("page-faults,log-cswitch,cpu-clock,log-cswitch"),
            ["context-switches page-faults cpu-clock:S"]
        );
        assert_eq!(
            led("page-faults,{cpu-clock,minor-faults},log-cswitch"),
            ["page-faults", "context-switches cpu-clock minor-faults:S"]
        );
        assert_eq!(led("page-faults,log-exit"), ["page-faults"]);
    }

    #[test]
    fn leader_inherits_like_its_events() {
        for (text, threads_alone) in [("page-faults,descendants=0", true), ("page-faults,descendants", false)]
        {
            let groups = lead(parse(&format!("{text},log-cswitch"), &Host::live()).unwrap());
            let leader = groups[0].events[0].attr().unwrap();
            assert_eq!(leader.get(Flag::InheritThread), threads_alone, "{text}");
        }
    }
}
