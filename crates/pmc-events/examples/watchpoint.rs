//! Who writes to a variable? Sets a breakpoint on the variable. The kernel sends SIGTRAP to the thread that
//! wrote, at the instruction that wrote, with a word chosen by this program (`sig_data`) that identifies the
//! breakpoint.
//!
//! `cargo run -p pmc-events --example watchpoint`. `pmc record -d -e mem:ADDRESS:w -p PID` finds the writes
//! of any process from outside, without a signal.
#![allow(unsafe_code, reason = "signal handlers are set with sigaction")]
#![allow(clippy::print_stdout, reason = "this is a program, not a library")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pmc_events::counter::target::TargetSlot;
use pmc_events::counter::{CounterFlags, Mode, allocate};
use pmc_events::event;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

/// The number of signals, and the contents of the last one: the variable's address, the instruction's
/// address, and the breakpoint's word.
static SEEN: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// `si_code` of a signal that an event sends.
const TRAP_PERF: i32 = 6;

/// The kernel's `siginfo_t` of a fault, with the fields for events.
#[repr(C)]
struct PerfInfo {
    signal_errno_code: [i32; 4],
    addr: u64,
    perf_data: u64,
}

extern "C" fn seen(_: i32, info: *const PerfInfo, context: *const libc::ucontext_t) {
    // SAFETY: the kernel passes valid pointers to a handler with SA_SIGINFO.
    let (info, context) = unsafe { (&*info, &*context) };
    if info.signal_errno_code[2] != TRAP_PERF {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    let ip = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(target_arch = "aarch64")]
    let ip = context.uc_mcontext.pc;
    SEEN[0].fetch_add(1, Relaxed);
    for (cell, value) in SEEN[1..].iter().zip([info.addr, ip, info.perf_data]) {
        cell.store(value, Relaxed);
    }
}

/// Watches a variable of this thread while `work` runs. Returns the number of writes, and for the last one
/// the variable's address, the address after the writing instruction, and the breakpoint's word.
///
/// # Errors
/// If the kernel refuses the breakpoint.
pub fn watch(variable: &Cell<u64>, word: u64, work: impl FnOnce()) -> Result<[u64; 4]> {
    // SAFETY: the action is fully initialized, and the handler only accesses atomics.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = seen as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut());
    }
    let text = format!("mem:{:#x}/8:w:u,sigtrap,remove_on_exec,sig_data={word}", variable.as_ptr() as u64);
    let groups = event::parse(&text, &Host::live())?;
    let refused = |refusal: Box<pmc_events::counter::refusal::Refusal>| {
        refusal.explain(&Default::default()).into_error("watching the variable")
    };
    let flags = CounterFlags::default();
    let mut request = allocate(&groups[0].events[0], Mode::TaskSampling, flags, None).map_err(refused)?;
    let event = request.open(TargetSlot::OURSELVES, None, None).map_err(refused)?;
    let switching = |error| Error::io("switching the breakpoint", error);
    SEEN[0].store(0, Relaxed);
    event.switch(true).map_err(switching)?;
    work();
    event.switch(false).map_err(switching)?;
    Ok([0, 1, 2, 3].map(|index| SEEN[index].load(Relaxed)))
}

fn main() -> Result<()> {
    let variable = Cell::new(0u64);
    let [writes, address, ip, word] = watch(&variable, 42, || {
        for value in 0..3 {
            std::hint::black_box(&variable).set(value);
        }
    })?;
    println!("{writes} writes to {address:#x} (breakpoint {word}), the last one just before {ip:#x}");
    Ok(())
}
