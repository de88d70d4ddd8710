//! Reads the registers that a signal interrupted from the stack, because often no unwind table describes the
//! code that returns from the signal: the vdso of 32-bit x86 (pmc cannot read its file), the vdso of arm64
//! (Linux 5.8 and later omit the entry), and musl.
//!
//! ```text
//!   handler's caller          its stack, as the kernel wrote it
//!   mov $number, %eax   sp -> signal number, ..., all registers of the interrupted function, ...
//!   int $0x80
//! ```
//!
//! Takes the address and the stack pointer of a frame. Returns the [`SignalFrame`], if the code or the stack
//! contains the instructions or the marks of the kernel. The layouts are those of the kernel's
//! `asm/sigcontext.h` and `asm/ucontext.h`, and of `asm/sigframe.h` for what comes before them.

use gimli::Register;

use super::arch::Arch;
use super::code::{RETURN_X86, RETURN_X86_INFO, is_signal_return};
use super::space::Space;

/// The registers at the instruction that a signal interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalFrame {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    /// The link register; 0 on x86.
    pub(super) lr: u64,
    arch: Arch,
    /// Address of the saved registers.
    registers: u64,
}

/// Header of the first record after arm64's registers: `FPSIMD_MAGIC`, and its size.
const FPSIMD_AARCH64: u64 = 0x4650_8001 | 528 << 32;

/// Offsets from the stack pointer to the saved registers, and to the mark on the stack.
struct SignalFrameLayout {
    registers: u64,
    mark: u64,
}

/// `struct sigframe_ia32` after its return address: the signal, `sigcontext_32`, the x87 state, the mask.
const X86: SignalFrameLayout = SignalFrameLayout { registers: 4, mark: 4 + 88 + 624 + 4 };
/// `struct rt_sigframe_ia32` after its return address: the signal, two pointers, `siginfo`, `ucontext_ia32`.
const X86_INFO: SignalFrameLayout = SignalFrameLayout { registers: 12 + 128 + 20, mark: 12 + 128 + 116 };
/// `struct rt_sigframe` of x86-64 after its return address: `ucontext`.
const X86_64_REGISTERS: u64 = 40;
/// `struct rt_sigframe` of arm64: `siginfo`, `ucontext` with `sigcontext` (from `regs`) and its records.
const AARCH64: SignalFrameLayout = SignalFrameLayout { registers: 128 + 176 + 8, mark: 128 + 176 + 288 };

impl SignalFrame {
    /// Returns the signal frame at `sp`, if the code at `address` returns from a signal. `word` reads a word
    /// of the stack.
    pub(super) fn find(
        space: &Space,
        address: u64,
        sp: u64,
        word: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<Self> {
        let arch = space.arch();
        let mut at = |offset: u64| word(sp.wrapping_add(offset));
        let offset = match arch {
            Arch::X86 => {
                let mut code = |layout: &SignalFrameLayout| {
                    Some((at(layout.mark)? | at(layout.mark + 4)? << 32).to_le_bytes())
                };
                let is_plain = code(&X86) == Some(RETURN_X86);
                let is_with_info = !is_plain && code(&X86_INFO) == Some(RETURN_X86_INFO);
                if is_plain { X86.registers } else { is_with_info.then_some(X86_INFO.registers)? }
            }
            Arch::X86_64 => is_signal_return(arch, space.code(address)?).then_some(X86_64_REGISTERS)?,
            Arch::Aarch64 => {
                // The code of a recording from another machine may be unknown.
                let is_return = space.code(address).is_none_or(|code| is_signal_return(arch, code));
                (is_return && at(AARCH64.mark)? == FPSIMD_AARCH64).then_some(AARCH64.registers)?
            }
        };
        let mut slot = |slot: u64| at(offset + slot * space.word());
        let [ip, stack, fp, lr] = match arch {
            Arch::X86 => [slot(14)?, slot(7)?, slot(6)?, 0],
            Arch::X86_64 => [slot(16)?, slot(15)?, slot(10)?, 0],
            Arch::Aarch64 => [slot(32)?, slot(31)?, slot(29)?, slot(30)?],
        };
        Some(Self { ip, sp: stack, fp, lr, arch, registers: sp.wrapping_add(offset) })
    }

    /// Returns the interrupted value of a register.
    pub(super) fn register(
        &self,
        register: Register,
        word: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let number = usize::from(register.0);
        let (slot, size) = match self.arch {
            Arch::X86_64 => (*SLOTS_X86_64.get(number)?, 8),
            Arch::X86 => (*SLOTS_X86.get(number)?, 4),
            Arch::Aarch64 => (u64::from(register.0), 8),
        };
        word(self.registers.wrapping_add(slot * size)).filter(|_| number <= 32)
    }
}

/// Saved registers of x86-64 by DWARF number, counted in words: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx,
/// rsp, rip.
const SLOTS_X86_64: [u64; 17] = [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16];
/// Saved registers of 32-bit x86 by DWARF number: after four segments edi, esi, ebp, esp, ebx, edx, ecx, eax,
/// two words, and eip.
const SLOTS_X86: [u64; 9] = [11, 10, 9, 8, 7, 6, 5, 4, 14];

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::address::{Avma, FileOffset, Mapping};
    use crate::unwind::{ChainEnd, UnwindRegisters, Walker};

    const SP: u64 = 0x7ffe_0000;
    // The code in which the signal came, its caller, the handler, and the code that returns from the signal.
    const INTERRUPTED: u64 = 0x40_0100;
    const CALLER: u64 = 0x40_0200;
    const HANDLER: u64 = 0x40_0300;
    const RETURN: u64 = 0x40_0400;
    /// Size of a copy that contains the signal frame and the frame above it.
    const COPY: u64 = 0x1200;

    /// A stack of words at offsets from [`SP`].
    fn stack(width: usize, words: impl IntoIterator<Item = (u64, u64)>) -> Vec<u8> {
        let words: HashMap<u64, u64> = words.into_iter().collect();
        let word = |at: u64| words.get(&at).copied().unwrap_or(0).to_le_bytes();
        (0..COPY).step_by(width).flat_map(|at| word(at)[..width].to_vec()).collect()
    }

    /// Walks a stack on which a handler has a frame record at `SP + 64`. Above it is the signal frame, whose
    /// saved frame pointer leads to a record of the interrupted function.
    fn walked(arch: Arch, signal_frame: &[(u64, u64)]) -> (Vec<(u64, u64)>, ChainEnd) {
        let width = if arch == Arch::X86 { 4 } else { 8 };
        let record =
            [(64, SP + 0x1100), (64 + width, RETURN), (0x1100, SP + 0x1180), (0x1100 + width, CALLER)];
        let words = record.into_iter().chain(signal_frame.iter().copied());
        let registers =
            UnwindRegisters { ip: HANDLER, sp: SP, fp: SP + 64, lr: RETURN, ..UnwindRegisters::default() };
        let mut space = Space::new(arch);
        space.add(&Mapping { start: Avma(0x40_0000), len: 0x1000, offset: FileOffset(0) }, None);
        let mut chain = Vec::new();
        let end = Walker::default().walk(&space, &registers, &stack(width as usize, words), 100, &mut chain);
        let frames = chain.iter().map(|frame| (frame.address.0, frame.word() - frame.address.0)).collect();
        (frames, end)
    }

    /// The frames after the handler's: the address, and 1 for those that are not return addresses.
    fn whole() -> Vec<(u64, u64)> {
        vec![(RETURN, 1), (INTERRUPTED, 1), (CALLER, 0)]
    }

    #[test]
    fn walk_goes_on_at_the_interrupted_function_of_32_bit_x86() {
        let sp = 64 + 8;
        let halves = |at: u64, code: [u8; 8]| {
            let code = u64::from_le_bytes(code);
            [(at, code & 0xffff_ffff), (at + 4, code >> 32)]
        };
        let saved = |at: u64| [(at + 24, SP + 0x1100), (at + 28, SP + 0x1000), (at + 56, INTERRUPTED)];
        for (registers, mark, code) in [(4, 720, RETURN_X86), (160, 256, RETURN_X86_INFO)] {
            let mut frame = [&saved(sp + registers)[..], &halves(sp + mark, code)].concat();
            assert_eq!(walked(Arch::X86, &frame).0[1..], whole(), "{registers}");
            // Without the code, the frame pointer is followed: the interrupted function is missing.
            frame.truncate(3);
            assert_eq!(walked(Arch::X86, &frame).0[1..], [(RETURN, 0), (CALLER, 0)]);
        }
    }

    #[test]
    fn walk_goes_on_at_the_interrupted_function_of_arm64() {
        let registers = 64 + 16 + 312;
        let frame = [
            (registers + 29 * 8, SP + 0x1100),
            (registers + 30 * 8, 0x40_0555),
            (registers + 31 * 8, SP + 0x1000),
            (registers + 32 * 8, INTERRUPTED),
            (64 + 16 + 592, FPSIMD_AARCH64),
        ];
        let (frames, _) = walked(Arch::Aarch64, &frame);
        assert!(frames.ends_with(&whole()), "{frames:x?}");
        let (frames, _) = walked(Arch::Aarch64, &frame[..4]);
        assert!(!frames.contains(&(INTERRUPTED, 1)), "{frames:x?}");
    }

    #[test]
    fn registers_are_read_by_dwarf_number() {
        for (arch, size, want) in [(Arch::X86_64, 8, [13, 12, 14, 11]), (Arch::X86, 4, [11, 10, 9, 8])] {
            let frame = SignalFrame { ip: 0, sp: 0, fp: 0, lr: 0, arch, registers: SP };
            let read = [0, 1, 2, 3].map(|number| frame.register(Register(number), &mut |at| Some(at - SP)));
            assert_eq!(read, want.map(|slot| Some(slot * size)));
            assert_eq!(frame.register(Register(40), &mut Some), None);
        }
    }
}
