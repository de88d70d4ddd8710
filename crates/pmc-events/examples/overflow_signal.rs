//! Receives a signal at each overflow of an event, up to a limit: see "Overflow handling" in
//! `perf_event_open(2)`. `fcntl` sets the receiver and the signal, `PERF_EVENT_IOC_REFRESH` sets the limit.
//!
//! `cargo run -p pmc-events --example overflow_signal`
#![allow(unsafe_code, reason = "signal handlers are set with sigaction")]
#![allow(clippy::print_stdout, reason = "this is a program, not a library")]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pmc_events::counter::target::TargetSlot;
use pmc_events::counter::{CounterFlags, Mode, allocate};
use pmc_events::event;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

/// Numbers of signals before the limit was reached, and at the limit.
static MORE: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicU32 = AtomicU32::new(0);

/// `si_code` at the limit: the kernel has disabled the event.
const POLL_HUP: i32 = 6;

extern "C" fn overflowed(_: i32, info: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: the kernel passes a valid pointer to a handler with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    if code == POLL_HUP { &LAST } else { &MORE }.fetch_add(1, Relaxed);
}

/// Works until `overflows` milliseconds of CPU time have passed, each with a signal. Returns the number of
/// signals before the limit and at the limit.
///
/// # Errors
/// If the kernel refuses the event.
pub fn count_overflows(overflows: u32) -> Result<(u32, u32)> {
    let groups = event::parse("cpu-clock:u,period=1000000", &Host::live())?;
    let refused = |refusal: Box<pmc_events::counter::refusal::Refusal>| {
        refusal.explain(&Default::default()).into_error("opening the clock")
    };
    let flags = CounterFlags::default();
    let mut request = allocate(&groups[0].events[0], Mode::TaskSampling, flags, None).map_err(refused)?;
    let event = request.open(TargetSlot::OURSELVES, None, None).map_err(refused)?;
    let (fd, signal) = (event.as_fd().as_raw_fd(), libc::SIGRTMIN());
    // SAFETY: the action is fully initialized, the handler only accesses atomics, and the event owns the
    // descriptor.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = overflowed as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        // `struct f_owner_ex`: F_OWNER_TID, this thread.
        let owner = [0, libc::gettid()];
        const F_SETOWN_EX: i32 = 15;
        const F_SETSIG: i32 = 10;
        libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr());
        libc::fcntl(fd, F_SETSIG, signal);
        libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_ASYNC);
    }
    event.refresh(overflows).map_err(|error| Error::io("starting the clock", error))?;
    let begun = Instant::now();
    while LAST.load(Relaxed) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::hint::spin_loop();
    }
    Ok((MORE.load(Relaxed), LAST.load(Relaxed)))
}

fn main() -> Result<()> {
    let (more, last) = count_overflows(5)?;
    println!("{more} overflows before the limit, {last} at the limit");
    Ok(())
}
