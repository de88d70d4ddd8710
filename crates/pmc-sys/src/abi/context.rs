//! Markers in call chains. A marker precedes a run of addresses and specifies their context. Its value is too
//! large to be an address (`PERF_CONTEXT_*`, `enum perf_callchain_context`).

use perf_event_open_sys::bindings as b;

use super::record_header::CpuMode;

/// The smallest marker (−4095). Smaller numbers are addresses.
pub const MAX: u64 = b::PERF_CONTEXT_MAX;
/// Precedes user addresses.
pub const USER: u64 = b::PERF_CONTEXT_USER;
/// Precedes kernel addresses.
pub const KERNEL: u64 = b::PERF_CONTEXT_KERNEL;
/// pmc's own marker for samples whose context is unknown. It is never written by the kernel.
const UNKNOWN: u64 = -4000i64 as u64;

/// The context of a run of addresses in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the kernel's names")]
pub enum Context {
    Hypervisor,
    Kernel,
    User,
    /// The user part follows in a `CALLCHAIN_DEFERRED` record; the next entry is the cookie of that record.
    UserDeferred,
    Guest,
    GuestKernel,
    GuestUser,
    /// A marker that Linux 6.18 does not define.
    Unknown,
}

impl Context {
    /// Returns the context if a word of a call chain is a marker, or `None` for an address.
    #[inline]
    pub fn from_word(word: u64) -> Option<Self> {
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

    /// Returns the CPU mode of this context.
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

/// Returns the marker that precedes addresses in this mode.
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
    fn context_marker_has_its_mode() {
        for number in 0..=5 {
            let mode = CpuMode::from_misc(number);
            assert_eq!(Context::from_word(marker(mode)).map(Context::mode), Some(mode));
        }
        assert_eq!(Context::from_word(MAX - 1), None);
    }
}
