//! A signal at each overflow of an event, as `perf_event_open(2)` has it under "Overflow handling", and an end
//! after so many: `fcntl` says who gets which signal, `PERF_EVENT_IOC_REFRESH` how often.
//!
//! `cargo run --example overflow_signal`
#![allow(unsafe_code, reason = "a handler for a signal cannot be set without")]
#![allow(clippy::print_stdout, reason = "it is a program of its own")]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pmc_events::counter::target::TargetSlot;
use pmc_events::counter::{CounterFlags, Mode, allocate};
use pmc_events::event;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

/// Signals with more to come, and last ones.
static MORE: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicU32 = AtomicU32::new(0);

/// `si_code`: the event is over.
const POLL_HUP: i32 = 6;

extern "C" fn overflowed(_: i32, info: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: the kernel hands it to a handler with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    if code == POLL_HUP { &LAST } else { &MORE }.fetch_add(1, Relaxed);
}

/// Works until `overflows` milliseconds of processor time have each sent a signal: how many said that there
/// is more to come, and how many that it was the last.
///
/// # Errors
/// What the kernel says of the event.
pub fn count_overflows(overflows: u32) -> Result<(u32, u32)> {
    let groups = event::parse("cpu-clock:u,period=1000000", &Host::live())?;
    let refused = |refusal: Box<pmc_events::counter::refusal::Refusal>| {
        refusal.explain(&Default::default()).into_error("opening the clock")
    };
    let flags = CounterFlags::default();
    let mut request = allocate(&groups[0].events[0], Mode::TaskSampling, flags, None).map_err(refused)?;
    let event = request.open(TargetSlot::OURSELVES, None, None).map_err(refused)?;
    let (fd, signal) = (event.as_fd().as_raw_fd(), libc::SIGRTMIN());
    // SAFETY: the action is a whole one, the handler touches atomics alone, the descriptor is the event's.
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
    println!("{more} overflows with more to come, {last} that ended the event");
    Ok(())
}
