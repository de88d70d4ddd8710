//! Tests whether the kernel reports a thread's counts when the thread ends (`inherit_stat`).
//!
//! Linux 5.13 (`perf: Rework perf_event_exit_event()`) broke this: the kernel marked the thread's context
//! dead before it wrote the `READ` record. Linux 6.19 fixed it, and distributions have backported the fix. So
//! the version does not show whether a kernel is affected. Instead, this test ends a child that inherits an
//! event and looks for a `READ` in the ring.

use std::io;

use pmc_perfdata::record::kind::READ;
use pmc_perfdata::record::walk;
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::DUMMY;
use pmc_sys::sys::perf::{EventFd, OpenTarget};
use pmc_sys::sys::process::PausedChild;
use pmc_sys::sys::ring::{Direction, Ring};

/// Starts and ends a child of this thread that inherits an event on `cpu`. Returns whether the kernel
/// reported the child's counts.
///
/// # Errors
/// The kernel's error if the event, its ring or the child cannot be created.
pub(super) fn are_counted(cpu: u32) -> io::Result<bool> {
    let mut attr = Attr::new(kind::SOFTWARE, DUMMY);
    for flag in [Flag::Inherit, Flag::InheritStat, Flag::ExcludeKernel, Flag::ExcludeHv] {
        attr.set(flag, true);
    }
    let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let event = EventFd::open(&attr, OpenTarget::TaskOnCpu(own, cpu), None)?;
    // Open a second event that is not inherited. If parent and child had equal events, the kernel would swap
    // their contexts at a context switch.
    attr.set(Flag::Inherit, false);
    let _guard = EventFd::open(&attr, OpenTarget::TaskOnCpu(own, cpu), None)?;
    let mut ring = Ring::map(&event, 1, Direction::Forward)?;
    // The child waits at its start gate, and exits when the gate is dropped. Dropping also waits for the
    // child, and by then the kernel has written the record.
    drop(PausedChild::start(&["true"])?);
    let mut is_counted = false;
    ring.drain(|slices| {
        walk(slices, &mut Vec::new(), |record| is_counted |= record.kind == READ);
        Ok::<(), io::Error>(())
    })?;
    Ok(is_counted)
}
