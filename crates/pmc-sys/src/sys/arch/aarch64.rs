//! arm64: `PMCR_EL0.N` contains the number of counters, but user mode cannot read it, and the kernel does not
//! expose it.

use super::CoreCounters;

/// Returns `None`: user mode cannot read the number of counters. Callers must probe instead.
pub fn counters() -> Option<CoreCounters> {
    None
}

/// Returns `None`: arm64 has no time stamp counter.
pub fn time_stamp_rate() -> Option<f64> {
    None
}

/// Returns `None`: user mode cannot identify the hypervisor. The device tree or the DMI tables may identify
/// it.
pub fn hypervisor() -> Option<String> {
    None
}

/// Returns the monotonic clock in nanoseconds, because traces on arm64 do not use the raw counter.
pub fn clock_reading() -> u64 {
    crate::sys::clock::monotonic_ns()
}

/// Names and numbers of the registers that samples can contain (`asm/perf_regs.h`).
pub const REGISTER_NAMES: [(&str, u32); 33] = [
    ("x0", 0),
    ("x1", 1),
    ("x2", 2),
    ("x3", 3),
    ("x4", 4),
    ("x5", 5),
    ("x6", 6),
    ("x7", 7),
    ("x8", 8),
    ("x9", 9),
    ("x10", 10),
    ("x11", 11),
    ("x12", 12),
    ("x13", 13),
    ("x14", 14),
    ("x15", 15),
    ("x16", 16),
    ("x17", 17),
    ("x18", 18),
    ("x19", 19),
    ("x20", 20),
    ("x21", 21),
    ("x22", 22),
    ("x23", 23),
    ("x24", 24),
    ("x25", 25),
    ("x26", 26),
    ("x27", 27),
    ("x28", 28),
    ("x29", 29),
    ("lr", 30),
    ("sp", 31),
    ("pc", 32),
];
