//! Threads that started while events were being opened.
//!
//! Opening events takes time (about 50 ms for 2,000 threads). If a thread without events starts another
//! thread, the new thread inherits no events. [`attach`] therefore rescans until it finds no new threads.

use std::collections::HashSet;

use super::plan::{MeasurementScope, SamplePlan};
use super::targets::{explain, make_room_for_events, slots, threads};
use pmc_events::counter::rings::Rings;
use pmc_perfdata::record::{Record, walk};
use pmc_sys::error::Result;
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;

/// Maximum number of rescans, for processes that start threads faster than pmc can open events.
const ROUNDS: usize = 10;

/// Opens the events for new threads, and adds the threads to `known`. If the threads need rings, each ring
/// has the given number of pages.
///
/// If the parent already had events, the new thread has inherited them. The kernel reports such a thread in a
/// ring, and pmc must not open events for it again.
///
/// One gap remains, because a thread's events are opened CPU by CPU. A child that the thread starts meanwhile
/// may lack the events of later CPUs, or have the events of earlier CPUs twice.
pub(super) fn attach(
    plan: &SamplePlan,
    host: &Host,
    rings: &mut Rings,
    known: &mut Vec<Alive>,
    pages: usize,
) -> Result<()> {
    if !matches!(
        plan.scope,
        MeasurementScope::Processes(_) | MeasurementScope::Families(_) | MeasurementScope::User(_)
    ) {
        return Ok(());
    }
    let mut opened = known.len();
    for _ in 0..ROUNDS {
        // If a thread has ended in the meantime, that is not an error: the other threads have their events.
        let now = threads(&plan.scope, host).unwrap_or_default();
        let inherited = if plan.options.inherit { begun(rings) } else { HashSet::new() };
        let new = unknown(now, known);
        if new.is_empty() {
            return Ok(());
        }
        for thread in new {
            if !inherited.contains(&thread.tid) {
                let places = slots(plan, host, std::slice::from_ref(&thread), None, rings);
                opened += 1;
                make_room_for_events(rings.descriptors(opened * places.len()))?;
                for slot in places {
                    rings.open_late(slot, pages).map_err(|refusal| explain(*refusal, host))?;
                }
            }
            known.push(thread);
        }
    }
    Ok(())
}

/// Returns the threads in `now` that are not in `known`.
fn unknown(now: Vec<Alive>, known: &[Alive]) -> Vec<Alive> {
    let known: HashSet<u32> = known.iter().map(|thread| thread.tid).collect();
    now.into_iter().filter(|thread| !known.contains(&thread.tid)).collect()
}

/// Returns the threads whose start the kernel has reported in the rings.
fn begun(rings: &Rings) -> HashSet<u32> {
    let (mut tids, mut joint) = (HashSet::new(), Vec::new());
    rings.peek(|slices| {
        walk(slices, &mut joint, |record| {
            if let Some(Record::Fork(task)) = record.parse() {
                tids.insert(task.thread.tid as u32);
            }
        });
    });
    tids
}
