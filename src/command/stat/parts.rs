//! Counts that are split into parts: `--children` (self, children, sum) and `--user-kernel`.
//!
//! Receives the groups to count. Returns each group together with a second group that counts the other part.
//! Both have the same `merge` number, so they share a row.
//!
//! ```text
//! --children      {cycles}            inherited by threads and processes  sum
//!                 {cycles}            inherited by threads only           self      children = sum - self
//! --user-kernel   {cycles:u, cycles:k}
//! ```
//! The second group has `inherit_thread` set. It must be a separate group, because all members of a group are
//! inherited in the same way as the leader. If a child does not inherit an event, the kernel does not swap
//! the event contexts of parent and child, so their counts do not get mixed up.

use pmc_analysis::profile::counts::Aggregation;
use pmc_analysis::profile::counts::CountPart;
use pmc_command::sampling_options;
use pmc_events::event::{EventGroup, EventSource, EventSpec, Tool};
use pmc_sys::abi::attr::Flag;
use pmc_sys::error::Result;

/// Returns the groups that count the parts, or the groups unchanged if there are no parts.
///
/// # Errors
/// Fails if an event cannot be split into these parts.
pub(super) fn split(groups: Vec<EventGroup>, aggregation: Aggregation) -> Result<Vec<EventGroup>> {
    let events = || groups.iter().flat_map(|group| &group.events);
    match aggregation {
        Aggregation::Children => {
            if let Some(event) = events().find(|event| !has_children(event)) {
                let why = "it cannot be counted per process, or only without children";
                return Err(sampling_options::no_parts("--children", event, why));
            }
        }
        Aggregation::Levels => sampling_options::check_levels("--user-kernel", events())?,
        _ => return Ok(groups),
    }
    let mut free = 1 + events().filter_map(|event| event.merge).max().unwrap_or(0);
    let mut parted = Vec::new();
    for mut group in groups {
        for event in &mut group.events {
            // The events of a pair on a hybrid machine already share a row.
            if event.merge.is_none() && event.attr().is_some() {
                event.merge = Some(free);
                free += 1;
            }
        }
        if aggregation == Aggregation::Children {
            let own = EventGroup {
                events: group
                    .events
                    .iter()
                    .filter_map(|event| with(event, &[Flag::InheritThread], true))
                    .collect(),
                ..group.clone()
            };
            parted.extend([group, own].into_iter().filter(|group| !group.events.is_empty()));
            continue;
        }
        let levels = |event: &EventSpec| {
            let user = with(event, &[Flag::ExcludeKernel, Flag::ExcludeHv], false);
            let kernel = with(event, &[Flag::ExcludeUser, Flag::ExcludeHv], false);
            let parts: Vec<EventSpec> = user.into_iter().chain(kernel).collect();
            if parts.is_empty() { vec![event.clone()] } else { parts }
        };
        let pairs: Vec<Vec<EventSpec>> = group.events.iter().map(levels).collect();
        match group.braces {
            true => parted.push(EventGroup { events: pairs.concat(), ..group }),
            // In one group, both parts are counted at the same time if the hardware has enough counters.
            false => parted.extend(pairs.into_iter().map(|events| EventGroup {
                braces: events.len() > 1,
                weak: true,
                events,
                ..group.clone()
            })),
        }
    }
    Ok(parted)
}

/// Returns a copy of the event with these flags; `None` if it is not a kernel event.
fn with(event: &EventSpec, flags: &[Flag], is_inherited: bool) -> Option<EventSpec> {
    let mut event = event.clone();
    let EventSource::Kernel(attr) = &mut event.source else { return None };
    flags.iter().for_each(|flag| attr.set(*flag, true));
    if is_inherited {
        event.qualifiers.inherit = Some(true);
    }
    Some(event)
}

fn has_children(event: &EventSpec) -> bool {
    let is_held = matches!(event.source, EventSource::Held(_));
    let threads_alone = event.attr().is_some_and(|attr| attr.get(Flag::InheritThread));
    !is_held && !event.system_wide && event.qualifiers.inherit != Some(false) && !threads_alone
}

pub(super) fn part(event: &EventSpec, aggregation: Aggregation) -> Option<CountPart> {
    let has = |flag| event.attr().is_some_and(|attr| attr.get(flag));
    let is_system = matches!(event.source, EventSource::Tool(Tool::SystemTime));
    match aggregation {
        Aggregation::Children if has(Flag::InheritThread) => Some(CountPart::Own),
        Aggregation::Children => Some(CountPart::Sum),
        Aggregation::Levels if is_system || has(Flag::ExcludeUser) => Some(CountPart::Kernel),
        Aggregation::Levels => Some(CountPart::User),
        _ => None,
    }
}
