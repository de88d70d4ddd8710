//! Threads that started while events were being opened.
//!
//! Opening takes time (for 2,000 threads some 50 ms). If a thread that is not yet opened starts another, the
//! new thread inherits nothing. So pmc rescans until it finds no new threads. A thread whose parent already
//! had its events has inherited them. The kernel reports it in a ring, and it must not be opened a second
//! time.
//!
//! One gap remains: while a thread's events are opened CPU by CPU, a child that it starts may miss those of
//! later CPUs, or have those of earlier CPUs twice.

use std::collections::HashSet;

use super::plan::{MeasurementScope, SamplePlan};
use super::targets::{explain, make_room_for_events, slots, threads};
use crate::counter::rings::Rings;
use crate::error::Result;
use crate::host::Host;
use crate::host::process::ThreadInfo as Alive;
use crate::record::{Record, walk};

/// Maximum number of rescans, for processes that start threads faster than pmc can open events.
const ROUNDS: usize = 10;

/// Opens the events for new threads, and adds the threads to `known`. If they need rings, each ring has the
/// given number of pages.
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
        // A thread that has ended in the meantime is not an error: others have their events.
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

/// Returns the threads that are not known yet.
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
