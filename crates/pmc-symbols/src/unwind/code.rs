//! Determines whether an address is a return address by checking the program's code.
//!
//! Without tables, unwinding follows frame pointers, which may lead to arbitrary values. A real return
//! address follows a call instruction. An artificial return address at the end of a stack (Go's `goexit`)
//! follows a no-op, so that a lookup one byte earlier finds the right function.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::arch::Arch;

/// A program's file, which is read again for each lookup.
pub(crate) type ProgramFile = Arc<dyn Deref<Target = [u8]> + Send + Sync>;

/// The code of a file.
#[derive(Clone)]
pub(super) struct ProgramCode {
    pub(super) arch: Arch,
    pub(super) program: ProgramFile,
    /// The file range and address of each loaded segment.
    pub(super) segments: Arc<[(Range<u64>, u64)]>,
}

impl fmt::Debug for ProgramCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("arch", &self.arch).finish_non_exhaustive()
    }
}

/// Maximum length of an indirect x86 call: 0xff, two bytes for the operand's addressing mode, four for its
/// displacement.
const LONGEST_CALL: u64 = 7;

/// mov $15, %rax; syscall.
const RETURN_X86_64: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// mov x8, #139; svc #0.
const RETURN_AARCH64: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// pop %eax; mov $119, %eax; int $0x80. The kernel also writes it to the stack.
pub(super) const RETURN_X86: [u8; 8] = [0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80];
/// mov $173, %eax; int $0x80, for handlers with `SA_SIGINFO`. On the stack, a byte of padding follows.
pub(super) const RETURN_X86_INFO: [u8; 8] = [0xb8, 173, 0, 0, 0, 0xcd, 0x80, 0];

impl ProgramCode {
    /// Returns the code from this file address to the end of its segment.
    pub(super) fn at(&self, address: u64) -> Option<&[u8]> {
        self.segments.iter().find_map(|(file, start)| {
            let begin = file.start.checked_add(address.checked_sub(*start)?)?;
            self.program.get(usize::try_from(begin).ok()?..usize::try_from(file.end).ok()?)
        })
    }

    /// Whether the instruction before this file address is a call or the no-op before an artificial return
    /// address.
    pub(super) fn is_behind_call(&self, address: u64) -> bool {
        let covers = |(file, start): &&(Range<u64>, u64)| {
            address.checked_sub(*start).is_some_and(|at| at <= file.end.saturating_sub(file.start))
        };
        let Some((file, start)) = self.segments.iter().find(covers) else { return false };
        let end = file.start.saturating_add(address - start);
        let begin = end.saturating_sub(LONGEST_CALL).max(file.start);
        let (Ok(begin), Ok(end)) = (usize::try_from(begin), usize::try_from(end)) else { return false };
        self.program.get(begin..end).is_some_and(|before| ends_with_call(self.arch, before))
    }
}

/// Whether the code returns from a signal.
pub(super) fn is_signal_return(arch: Arch, code: &[u8]) -> bool {
    match arch {
        Arch::X86_64 => code.starts_with(&RETURN_X86_64),
        Arch::X86 => code.starts_with(&RETURN_X86) || code.starts_with(&RETURN_X86_INFO[..7]),
        Arch::Aarch64 => code.starts_with(&RETURN_AARCH64),
    }
}

/// Whether the last instruction in these bytes is a call, or the no-op before an artificial return address.
fn ends_with_call(arch: Arch, bytes: &[u8]) -> bool {
    match arch {
        Arch::Aarch64 => {
            let Some(word) = bytes.last_chunk::<4>().map(|word| u32::from_le_bytes(*word)) else {
                return false;
            };
            let is = |mask: u32, code: u32| word & mask == code;
            // bl; blr; blraa and variants; mov x0, x0.
            is(0xfc00_0000, 0x9400_0000)
                || is(0xffff_fc1f, 0xd63f_0000)
                || is(0xfeff_f800, 0xd63f_0800)
                || word == 0xaa00_03e0
        }
        Arch::X86_64 | Arch::X86 => {
            let is_nop = bytes.last() == Some(&0x90);
            let is_direct = bytes.last_chunk::<5>().is_some_and(|call| call[0] == 0xe8);
            let is_indirect = |start: usize| {
                let rest = bytes[start..].strip_prefix(&[0xff])?;
                (operand(rest)? == rest.len()).then_some(())
            };
            is_nop || is_direct || (0..bytes.len()).any(|start| is_indirect(start).is_some())
        }
    }
}

/// Returns the length of an indirect call's operand, after the first byte; `None` if it is not a call.
///
/// ```text
///   ModRM  mod:2 | 2:3, of a call | rm:3      mod 3: a register; rm 4: another byte (SIB) follows
///          then 0, 1 or 4 bytes of distance   mod 0: none, but 4 if there is no base (5); mod 1: 1; mod 2: 4
/// ```
fn operand(bytes: &[u8]) -> Option<usize> {
    let modrm = *bytes.first()?;
    let (mode, kind, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    if kind != 2 {
        return None;
    }
    let (sib, base) = match rm {
        4 if mode != 3 => (1, bytes.get(1)? & 7),
        _ => (0, rm),
    };
    let distance = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(1 + sib + distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_distinguished_from_other_instructions() {
        // Calls as the GNU assembler encodes them: call f; *%rax; *%r11; *(%rax); *8(%rbx); *0x100(%rcx);
        // *f(%rip); *(%rsp); *8(%rsp); *0x100(%rsp); *(,%rax,8).
        let calls: [&[u8]; 11] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd3],
            &[0xff, 0x10],
            &[0xff, 0x53, 8],
            &[0xff, 0x91, 0, 1, 0, 0],
            &[0xff, 0x15, 0, 1, 0, 0],
            &[0xff, 0x14, 0x24],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x94, 0x24, 0, 1, 0, 0],
            &[0xff, 0x14, 0xc5, 0, 0, 0, 0],
        ];
        for call in calls {
            for before in [&[][..], &[0xcc; 7]] {
                let bytes = [before, call].concat();
                assert!(ends_with_call(Arch::X86_64, &bytes[bytes.len().saturating_sub(7)..]), "{call:x?}");
            }
            assert!(!ends_with_call(Arch::X86, &call[..call.len() - 1]), "{call:x?}");
        }
        // jmp *%rax; push (%rax); ret; nothing.
        for other in [&[0xff, 0xe0][..], &[0xff, 0x30], &[0xc3], &[]] {
            assert!(!ends_with_call(Arch::X86_64, other), "{other:x?}");
        }
        // bl; blr x3; blraa x1, sp; mov x0, x0; br x3; ret.
        let words = [0x9400_0001u32, 0xd63f_0060, 0xd73f_083f, 0xaa00_03e0, 0xd61f_0060, 0xd65f_03c0];
        let is_call = words.map(|word| ends_with_call(Arch::Aarch64, &word.to_le_bytes()));
        assert_eq!(is_call, [true, true, true, true, false, false]);
        assert!(ends_with_call(Arch::X86_64, &[0x00, 0x90]));
    }

    #[test]
    fn addresses_are_found_in_segments() {
        let program: ProgramFile = Arc::new(vec![0xcc, 0xff, 0xd0, 0xcc, 0xe8, 0, 0, 0, 0]);
        let code =
            ProgramCode { arch: Arch::X86_64, program, segments: [(1..5, 0x1000), (4..90, 0x2000)].into() };
        let at = [0xfff, 0x1000, 0x1002, 0x1003, 0x2005, 0x2006, 0x3000, u64::MAX];
        let want = [false, false, true, false, true, false, false, false];
        assert_eq!(at.map(|address| code.is_behind_call(address)), want);
    }
}
