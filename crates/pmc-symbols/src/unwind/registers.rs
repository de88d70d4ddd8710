//! The sampled registers from which unwinding starts.

use super::arch::Arch;

/// The sampled registers that unwinding needs. Their numbers in perf (`perf_regs.h`) are 6 (bp), 7 (sp) and 8
/// (ip) on x86, and 29 (x29), 30 (lr), 31 (sp) and 32 (pc) on aarch64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnwindRegisters {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register (aarch64); unused on x86.
    pub lr: u64,
    /// The other registers by DWARF number, which a few functions use to locate their frame. x86-64: 0 rax,
    /// 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 8 to 15. 32-bit x86: 0 eax, 1 ecx, 2 edx, 3 ebx, 6 esi, 7 edi.
    /// aarch64: 0 to 28. Those that were not sampled are 0.
    pub others: [u64; 29],
}

impl UnwindRegisters {
    /// Reads a sample's user registers, given the requested mask and the values in mask order.
    ///
    /// Returns `None` if the mask lacks a required register, or if it has more bits set than there are
    /// values.
    pub fn from_sample(arch: Arch, mask: u64, values: &[u64]) -> Option<Self> {
        let get = |register: u32| {
            let bit = 1u64 << register;
            (mask & bit != 0).then(|| values.get((mask & (bit - 1)).count_ones() as usize).copied()).flatten()
        };
        match arch {
            Arch::X86_64 => {
                // perf's order: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8 … r15 at 16 to 23.
                let mut others = [0; 29];
                for (dwarf, perf) in [(0, 0), (1, 3), (2, 2), (3, 1), (4, 4), (5, 5)] {
                    others[dwarf] = get(perf).unwrap_or(0);
                }
                for (number, other) in others.iter_mut().enumerate().take(16).skip(8) {
                    *other = get(number as u32 + 8).unwrap_or(0);
                }
                Some(Self { ip: get(8)?, sp: get(7)?, fp: get(6)?, lr: 0, others })
            }
            Arch::X86 => {
                let mut others = [0; 29];
                for (dwarf, perf) in [(0, 0), (1, 2), (2, 3), (3, 1), (6, 4), (7, 5)] {
                    others[dwarf] = get(perf).unwrap_or(0);
                }
                let narrow = |register| get(register).map(|value| value & u64::from(u32::MAX));
                Some(Self { ip: narrow(8)?, sp: narrow(7)?, fp: narrow(6)?, lr: 0, others })
            }
            Arch::Aarch64 => {
                let others = std::array::from_fn(|number| get(number as u32).unwrap_or(0));
                Some(Self { ip: get(32)?, sp: get(31)?, fp: get(29)?, lr: get(30)?, others })
            }
        }
    }

    /// Returns the sampled value of a register, by its DWARF number on a 64-bit architecture.
    pub(super) fn by_dwarf_number(&self, arch: Arch, number: u16) -> Option<u64> {
        match (arch, number) {
            (Arch::X86_64, 6) | (Arch::Aarch64, 29) => Some(self.fp),
            (Arch::X86_64, 7) | (Arch::Aarch64, 31) => Some(self.sp),
            (Arch::X86_64, 16) | (Arch::Aarch64, 32) => Some(self.ip),
            (Arch::Aarch64, 30) => Some(self.lr),
            (Arch::X86_64, 0..16) | (Arch::Aarch64, 0..29) => Some(self.others[usize::from(number)]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_by_mask_bit() {
        // bp, sp, ip and r8 of x86-64: perf packs the values in bit order.
        let mask = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 16;
        let registers = UnwindRegisters::from_sample(Arch::X86_64, mask, &[10, 11, 12, 13]).unwrap();
        assert_eq!((registers.fp, registers.sp, registers.ip, registers.others[8]), (10, 11, 12, 13));
        assert!(UnwindRegisters::from_sample(Arch::X86_64, mask, &[10, 11]).is_none());
        assert!(UnwindRegisters::from_sample(Arch::X86_64, 1 << 8, &[1]).is_none());
        // 32-bit x86: ax bx cx dx si di bp sp ip, then the rest in DWARF order.
        let values = [0, 1, 2, 3, 4, 5, 6, 7, 0xffff_ffff_0000_0008];
        let registers = UnwindRegisters::from_sample(Arch::X86, 0x1ff, &values).unwrap();
        assert_eq!((registers.fp, registers.sp, registers.ip), (6, 7, 8));
        assert_eq!(registers.others[..8], [0, 2, 3, 1, 0, 0, 4, 5]);
        let all: Vec<u64> = (0..33).collect();
        let registers = UnwindRegisters::from_sample(Arch::Aarch64, (1 << 33) - 1, &all).unwrap();
        assert_eq!((registers.fp, registers.lr, registers.sp, registers.ip), (29, 30, 31, 32));
    }
}
