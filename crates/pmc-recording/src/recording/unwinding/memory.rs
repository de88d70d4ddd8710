//! Stacks, or parts of them, that are read from the memory of threads, because no sample contains them.

use crate::recording::off_cpu::events::STACK_COPY;
use pmc_perfdata::record::sample::{SampledRegisters, UserStack};
use pmc_perfdata::record::{RecordWords, SampleParts, Thread};
use pmc_symbols::unwind::{Arch, UnwindRegisters};
use pmc_sys::host::Host;
use pmc_sys::sys::{clock, process_memory};

/// Number of bytes to read beyond a stack copy.
const OUTER_BYTES: usize = 256 << 10;

/// The stack of a thread that is blocked in a system call, read from its memory.
pub(super) struct BlockedStack {
    pub(super) thread: Thread,
    /// When reading began.
    pub(super) time: u64,
    /// Frame pointer (0, because it is unknown), stack pointer and instruction pointer.
    registers: [u8; 24],
    memory: Vec<u8>,
}

impl BlockedStack {
    /// Returns `None` if the thread is not blocked, or pmc may not read its memory.
    pub(super) fn read(host: &Host, thread: Thread) -> Option<Self> {
        let tid = u32::try_from(thread.tid).ok()?;
        let time = clock::monotonic_ns();
        // On Arm, the caller is in the link register, which cannot be read.
        let at = host.blocked_at(tid).filter(|_| ARCH == Arch::X86_64)?;
        let mut memory = vec![0; STACK_COPY as usize];
        let len = process_memory::read(thread.tid, at.sp, &mut memory);
        memory.truncate(len);
        if host.blocked_at(tid) != Some(at) {
            return None;
        }
        let mut registers = [0; 24];
        registers[8..16].copy_from_slice(&at.sp.to_ne_bytes());
        registers[16..].copy_from_slice(&at.ip.to_ne_bytes());
        Some(Self { thread, time, registers, memory })
    }

    /// Returns the stack in the form of a sample.
    pub(super) fn parts(&self) -> SampleParts<'_> {
        // bp, sp and ip; see `perf_regs.h`.
        const X86: u64 = 0b111 << 6;
        let values = RecordWords::new(&self.registers);
        let user_regs = Some(SampledRegisters { abi: 2, mask: X86, values });
        let user_stack = Some(UserStack::from_bytes(&self.memory));
        SampleParts { user_regs, user_stack, ..SampleParts::default() }
    }
}

/// Returns a sample's stack copy, continued with the thread's memory; `None` if it cannot be read.
pub(super) fn read_full_stack(tid: i32, parts: &SampleParts<'_>) -> Option<Vec<u8>> {
    let copy = parts.user_stack?.bytes;
    let registers = parts.user_regs?;
    let arch = arch(registers)?;
    let values: Vec<u64> = registers.values.iter().collect();
    let sp = UnwindRegisters::from_sample(arch, registers.mask, &values)?.sp;
    let mut whole = copy.to_vec();
    whole.resize(copy.len() + OUTER_BYTES, 0);
    let len = process_memory::read(tid, sp.checked_add(copy.len() as u64)?, &mut whole[copy.len()..]);
    whole.truncate(copy.len() + len);
    (len > 0).then_some(whole)
}

/// The architecture of the recorded machine, which is the architecture that pmc was built for.
pub(super) const ARCH: Arch = if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 };

/// Returns the architecture of the process that the registers belong to; `None` for 32-bit Arm.
pub(super) fn arch(registers: SampledRegisters<'_>) -> Option<Arch> {
    ARCH.of_process(registers.abi)
}
