//! Whether the kernel says what a thread has counted when it ends (`inherit_stat`).
//!
//! From Linux 5.13 (`perf: Rework perf_event_exit_event()`) it did not: the thread's context was marked dead
//! before its `READ` was written. 6.19 does again, and so do older ones whose makers took the fix. So no
//! version tells, but a child that inherits an event and ends: is there a `READ` in the ring then?

use std::io;

use crate::abi::Attr;
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::DUMMY;
use crate::record::kind::READ;
use crate::record::walk;
use crate::sys::perf::{EventFd, OpenTarget};
use crate::sys::process::Held;
use crate::sys::ring::{Direction, Ring};

/// Lets a child of this thread end that inherits an event of `cpu`, and looks for what it has counted.
///
/// # Errors
/// The kernel's, for the event, its ring or the child.
pub(super) fn are_counted(cpu: u32) -> io::Result<bool> {
    let mut attr = Attr::new(kind::SOFTWARE, DUMMY);
    for flag in [Flag::Inherit, Flag::InheritStat, Flag::ExcludeKernel, Flag::ExcludeHv] {
        attr.set(flag, true);
    }
    let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let event = EventFd::open(&attr, OpenTarget::TaskOnCpu(own, cpu), None)?;
    // One that is not inherited: where both had the same events, the kernel would swap them when it switches.
    attr.set(Flag::Inherit, false);
    let _guard = EventFd::open(&attr, OpenTarget::TaskOnCpu(own, cpu), None)?;
    let mut ring = Ring::map(&event, 1, Direction::Forward)?;
    // It waits for a word and ends when there is none; by the time it is waited for, the kernel has written.
    drop(Held::start(&["true"])?);
    let mut is_counted = false;
    ring.drain(|slices| {
        walk(slices, &mut Vec::new(), |record| is_counted |= record.kind == READ);
        Ok::<(), io::Error>(())
    })?;
    Ok(is_counted)
}
