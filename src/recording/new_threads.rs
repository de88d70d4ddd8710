//! Threads that began while events were being opened.
//!
//! Opening takes its time (for 2,000 threads some 50 ms), and what a thread starts before it is reached
//! inherits nothing. So the threads are listed again until nobody new is there. Those that began below a
//! thread that had its events already have inherited them: the kernel has told of them in a ring, and they
//! must not be opened a second time.
//!
//! Left over is the moment in which one thread's events are opened, CPU by CPU: what it starts just then may
//! lack those of the later CPUs, or have those of the earlier ones twice.

use std::collections::HashSet;

use super::plan::{SamplePlan, Scope};
use super::targets::{explain, make_room_for_events, slots, threads};
use crate::counter::rings::Rings;
use crate::error::Result;
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::record::{Record, walk};

/// A process that starts threads faster than we can open events is not chased for ever.
const ROUNDS: usize = 10;

/// Opens the events for them, in rings of so many pages where they need rings of their own; adds them to
/// `known`.
pub(super) fn attach(
    plan: &SamplePlan,
    host: &Host,
    rings: &mut Rings,
    known: &mut Vec<Alive>,
    pages: usize,
) -> Result<()> {
    if !matches!(plan.scope, Scope::Processes(_) | Scope::Families(_) | Scope::User(_)) {
        return Ok(());
    }
    let mut opened = known.len();
    for _ in 0..ROUNDS {
        // Whoever has ended meanwhile is no reason to fail: others have their events.
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

/// Those who are not known yet.
fn unknown(now: Vec<Alive>, known: &[Alive]) -> Vec<Alive> {
    let known: HashSet<u32> = known.iter().map(|thread| thread.tid).collect();
    now.into_iter().filter(|thread| !known.contains(&thread.tid)).collect()
}

/// Threads that the kernel has told of in the rings.
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
