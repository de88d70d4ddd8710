//! The architectures whose stacks pmc can unwind.

/// The architectures whose stacks pmc can unwind.
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
    /// Returns the architecture of a process on this machine, given the ABI of its registers
    /// (`PERF_SAMPLE_REGS_ABI_…`: 1 for 32 bits, 2 for 64). `None` for 32-bit Arm.
    pub fn of_process(self, abi: u64) -> Option<Self> {
        match (self, abi) {
            (machine, 2) => Some(machine),
            (Self::X86_64 | Self::X86, 1) => Some(Self::X86),
            _ => None,
        }
    }
}
