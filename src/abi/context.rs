//! The markers in call chains: numbers too large for an address, before a run of addresses, that say in which
//! context the run was found (`PERF_CONTEXT_*`, `enum perf_callchain_context`).

use perf_event_open_sys::bindings as b;

use super::CpuMode;

/// The smallest number that is a marker, not an address (−4095).
pub const MAX: u64 = b::PERF_CONTEXT_MAX;
/// Before the addresses of a process.
pub const USER: u64 = b::PERF_CONTEXT_USER;
/// A marker of ours, where the sample does not say in which context it was taken. No kernel writes it.
const UNKNOWN: u64 = -4000i64 as u64;

/// What stands before a run of addresses in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the kernel's names")]
pub enum Context {
    Hypervisor,
    Kernel,
    User,
    /// The user part follows in a `CALLCHAIN_DEFERRED` record with the cookie that is the next entry.
    UserDeferred,
    Guest,
    GuestKernel,
    GuestUser,
    /// A number in the range of markers that Linux 6.18 does not use.
    Unknown,
}

impl Context {
    /// The context that a word of a call chain marks; `None` for an address.
    #[inline]
    pub fn of(word: u64) -> Option<Self> {
        if word < MAX {
            return None;
        }
        Some(match word {
            b::PERF_CONTEXT_HV => Self::Hypervisor,
            b::PERF_CONTEXT_KERNEL => Self::Kernel,
            USER => Self::User,
            b::PERF_CONTEXT_USER_DEFERRED => Self::UserDeferred,
            b::PERF_CONTEXT_GUEST => Self::Guest,
            b::PERF_CONTEXT_GUEST_KERNEL => Self::GuestKernel,
            b::PERF_CONTEXT_GUEST_USER => Self::GuestUser,
            _ => Self::Unknown,
        })
    }

    /// Where the CPU was.
    pub fn mode(self) -> CpuMode {
        match self {
            Self::Hypervisor => CpuMode::Hypervisor,
            Self::Kernel => CpuMode::Kernel,
            Self::User | Self::UserDeferred => CpuMode::User,
            Self::Guest | Self::GuestUser => CpuMode::GuestUser,
            Self::GuestKernel => CpuMode::GuestKernel,
            Self::Unknown => CpuMode::Unknown,
        }
    }
}

/// The marker that stands before addresses of this mode.
pub fn marker(mode: CpuMode) -> u64 {
    match mode {
        CpuMode::Unknown => UNKNOWN,
        CpuMode::Kernel => b::PERF_CONTEXT_KERNEL,
        CpuMode::User => USER,
        CpuMode::Hypervisor => b::PERF_CONTEXT_HV,
        CpuMode::GuestKernel => b::PERF_CONTEXT_GUEST_KERNEL,
        CpuMode::GuestUser => b::PERF_CONTEXT_GUEST_USER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_says_its_mode() {
        for number in 0..=5 {
            let mode = CpuMode::of(number);
            assert_eq!(Context::of(marker(mode)).map(Context::mode), Some(mode));
        }
        assert_eq!(Context::of(MAX - 1), None);
    }
}
