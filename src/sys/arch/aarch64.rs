//! arm64: `PMCR_EL0.N` holds the number of counters, but user mode may not read it, and the kernel does not
//! pass it on.

use super::CoreCounters;

/// Not to be had in user mode: probe instead.
pub fn counters() -> Option<CoreCounters> {
    None
}

/// There is none of this name.
pub fn time_stamp_rate() -> Option<f64> {
    None
}

/// Not to be had in user mode: the device tree and the DMI tables may say.
pub fn hypervisor() -> Option<String> {
    None
}

/// Nanoseconds of the monotonic clock: nothing of Arm's goes by the counter itself.
pub fn clock_reading() -> u64 {
    crate::sys::clock::monotonic_ns()
}

/// The registers that samples can hold, by name and number (`asm/perf_regs.h`).
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
