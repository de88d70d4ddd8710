//! The `misc` bits of a record's header; the lowest three are the CPU mode.

use perf_event_open_sys::bindings as b;

/// Flags in a record header's `misc`. The meaning of a flag depends on the record's type
/// (`PERF_RECORD_MISC_*`).
pub mod misc {
    use perf_event_open_sys::bindings as b;

    /// Bits 0–2: see [`super::CpuMode`].
    pub const CPUMODE_MASK: u16 = b::PERF_RECORD_MISC_CPUMODE_MASK as u16;
    /// On `MMAP*`: the mapping is not executable.
    pub const MMAP_DATA: u16 = b::PERF_RECORD_MISC_MMAP_DATA as u16;
    /// On `COMM`: an exec changed the name.
    pub const COMM_EXEC: u16 = b::PERF_RECORD_MISC_COMM_EXEC as u16;
    /// On `FORK`: perf synthesized the record for an exec.
    pub const FORK_EXEC: u16 = b::PERF_RECORD_MISC_FORK_EXEC as u16;
    /// On `SWITCH*`: the task was switched out.
    pub const SWITCH_OUT: u16 = b::PERF_RECORD_MISC_SWITCH_OUT as u16;
    /// On `SWITCH*`: the task was preempted while runnable.
    pub const SWITCH_OUT_PREEMPT: u16 = b::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT as u16;
    /// On `MMAP2`: a build ID replaces device and inode.
    pub const MMAP_BUILD_ID: u16 = b::PERF_RECORD_MISC_MMAP_BUILD_ID as u16;
    /// On `HEADER_BUILD_ID` (written by perf, not by the kernel): the record contains the size of the build
    /// ID (perf's `PERF_RECORD_MISC_BUILD_ID_SIZE`).
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

const KERNEL: u16 = b::PERF_RECORD_MISC_KERNEL as u16;
const USER: u16 = b::PERF_RECORD_MISC_USER as u16;
const HYPERVISOR: u16 = b::PERF_RECORD_MISC_HYPERVISOR as u16;
const GUEST_KERNEL: u16 = b::PERF_RECORD_MISC_GUEST_KERNEL as u16;
const GUEST_USER: u16 = b::PERF_RECORD_MISC_GUEST_USER as u16;

/// Privilege level of the running code, on the host or in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuMode {
    /// User code.
    User,
    /// The kernel.
    Kernel,
    /// The hypervisor.
    Hypervisor,
    /// User code of a guest.
    GuestUser,
    /// A guest's kernel.
    GuestKernel,
    /// The record does not contain the mode.
    Unknown,
}

impl CpuMode {
    /// Returns the mode from a record's `misc`.
    #[inline]
    pub fn from_misc(misc: u16) -> Self {
        match misc & misc::CPUMODE_MASK {
            KERNEL => Self::Kernel,
            USER => Self::User,
            HYPERVISOR => Self::Hypervisor,
            GUEST_KERNEL => Self::GuestKernel,
            GUEST_USER => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// Returns the `misc` bits of this mode.
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

    /// Returns the letter that perf prints before a symbol for this mode.
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
    fn bits_round_trip() {
        for number in 0..=5 {
            assert_eq!(CpuMode::from_misc(number | misc::COMM_EXEC).bits(), number);
        }
        assert_eq!(CpuMode::from_misc(7), CpuMode::Unknown);
    }
}
