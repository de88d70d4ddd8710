//! The processors whose stacks can be unwound.

/// The processors whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// That of a process on a machine of this one, by what its registers came with (`PERF_SAMPLE_REGS_ABI_…`:
    /// 1 of 32 bits, 2 of 64). `None` for 32-bit Arm.
    pub fn of_process(self, abi: u64) -> Option<Self> {
        match (self, abi) {
            (machine, 2) => Some(machine),
            (Self::X86_64 | Self::X86, 1) => Some(Self::X86),
            _ => None,
        }
    }
}
