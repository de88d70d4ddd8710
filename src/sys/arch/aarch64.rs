//! arm64: `PMCR_EL0.N` holds the number of counters, but user mode may not read it, and the kernel does not pass it on.

use super::CoreCounters;

/// Not to be had in user mode: probe instead.
pub fn counters() -> Option<CoreCounters> {
    None
}

/// Not to be had in user mode: the device tree and the DMI tables may say.
pub fn hypervisor() -> Option<String> {
    None
}
