//! Architecture-specific queries. Each file defines the same functions.
//!
//! ```text
//! counters()       number of counters per core, as the CPU reports it
//! hypervisor()     the hypervisor of this virtual machine, as it identifies itself
//! clock_reading()  the clock that hardware traces use
//! REGISTER_NAMES   the registers that samples can hold
//! ```

/// The counters of a core, as the CPU reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreCounters {
    /// Number of counters that support any event.
    pub general: u32,
    /// Width of the general counters in bits.
    pub general_width: Option<u32>,
    /// Number of counters dedicated to one event each.
    pub fixed: u32,
    /// Width of the fixed counters in bits.
    pub fixed_width: Option<u32>,
    /// Source of the data, such as `CPUID leaf 0xA`.
    pub source: &'static str,
}

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{REGISTER_NAMES, clock_reading, counters, hypervisor, time_stamp_rate};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::{REGISTER_NAMES, clock_reading, counters, hypervisor, time_stamp_rate};

/// Mask of all [`REGISTER_NAMES`], for `sample_regs_user` and `sample_regs_intr`.
pub const REGISTERS: u64 = {
    let (mut mask, mut at) = (0, 0);
    while at < REGISTER_NAMES.len() {
        mask |= 1 << REGISTER_NAMES[at].1;
        at += 1;
    }
    mask
};
