//! Tests whether the kernel reports a thread's counts when the thread ends (`inherit_stat`).
//!
//! Linux 5.13 (`perf: Rework perf_event_exit_event()`) broke this: the kernel marked the thread's context
//! dead before it wrote the `READ` record. Linux 6.19 fixed it, and distributions have backported the fix.
//! The version number therefore does not tell whether a kernel is affected. Instead, this test ends a child
//! that inherits an event and looks for a `READ` record in the ring.

use std::io;

use pmc_events::counter::request::{CounterFlags, CountingStart, OpenRequest};
use pmc_events::counter::target::TargetSlot;
use pmc_perfdata::record::kind::READ;
use pmc_perfdata::record::walk;
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic::DUMMY;
use pmc_sys::sys::perf::EventFd;
use pmc_sys::sys::process::PausedChild;
use pmc_sys::sys::ring::{Direction, Ring};

/// Starts and ends a child of this thread that inherits an event on `cpu`. Returns whether the kernel
/// reported the child's counts; `None` if the event, its ring or the child cannot be created.
pub(super) fn are_counted(cpu: u32) -> Option<bool> {
    let event = open(cpu, true)?;
    // Open a second event that is not inherited. If parent and child had equal events, the kernel would swap
    // their contexts at a context switch.
    let _guard = open(cpu, false)?;
    let mut ring = Ring::map(&event, 1, Direction::Forward).ok()?;
    // The child waits at its start gate, and exits when the gate is dropped. Dropping also waits for the
    // child, and by then the kernel has written the record.
    drop(PausedChild::start(&["true"]).ok()?);
    let mut is_counted = false;
    let drained = ring.drain(|slices| {
        walk(slices, &mut Vec::new(), |record| is_counted |= record.kind == READ);
        Ok::<(), io::Error>(())
    });
    drained.ok().map(|_| is_counted)
}

/// Starts an event on this thread that reports the counts of ended threads.
fn open(cpu: u32, descendants: bool) -> Option<EventFd> {
    let flags = CounterFlags { descendants, log_exit: true, ..CounterFlags::default() };
    let mut request = OpenRequest::in_user_mode(kind::SOFTWARE, DUMMY, flags).ok()?;
    request.start(CountingStart::AtOnce);
    request.open(TargetSlot { cpu: Some(cpu), ..TargetSlot::OURSELVES }, None, None).ok()
}
