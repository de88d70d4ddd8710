//! Where the CPU was when a record was written: bits 0–2 of the record's `misc` (`PERF_RECORD_MISC_CPUMODE_MASK`).

use perf_event_open_sys::bindings as b;

use super::misc;

const KERNEL: u16 = b::PERF_RECORD_MISC_KERNEL as u16;
const USER: u16 = b::PERF_RECORD_MISC_USER as u16;
const HYPERVISOR: u16 = b::PERF_RECORD_MISC_HYPERVISOR as u16;
const GUEST_KERNEL: u16 = b::PERF_RECORD_MISC_GUEST_KERNEL as u16;
const GUEST_USER: u16 = b::PERF_RECORD_MISC_GUEST_USER as u16;

/// In which privilege, and whose, code ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuMode {
    /// In a process.
    User,
    /// In the kernel.
    Kernel,
    /// In the hypervisor.
    Hypervisor,
    /// In a guest's process.
    GuestUser,
    /// In a guest's kernel.
    GuestKernel,
    /// The kernel did not say.
    Unknown,
}

impl CpuMode {
    /// The mode in a record's `misc`.
    #[inline]
    pub fn of(misc: u16) -> Self {
        match misc & misc::CPUMODE_MASK {
            KERNEL => Self::Kernel,
            USER => Self::User,
            HYPERVISOR => Self::Hypervisor,
            GUEST_KERNEL => Self::GuestKernel,
            GUEST_USER => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// The bits that say so in a record's `misc`.
    pub fn bits(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Kernel => KERNEL,
            Self::User => USER,
            Self::Hypervisor => HYPERVISOR,
            Self::GuestKernel => GUEST_KERNEL,
            Self::GuestUser => GUEST_USER,
        }
    }

    /// The letter that perf puts before a symbol.
    pub fn letter(self) -> char {
        match self {
            Self::User => '.',
            Self::Kernel => 'k',
            Self::Hypervisor => 'H',
            Self::GuestUser => 'u',
            Self::GuestKernel => 'g',
            Self::Unknown => '?',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_there_and_back() {
        for number in 0..=5 {
            assert_eq!(CpuMode::of(number | misc::EXACT_IP).bits(), number);
        }
        assert_eq!(CpuMode::of(7), CpuMode::Unknown);
    }
}
