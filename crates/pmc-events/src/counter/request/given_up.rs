//! The parts that a request may give up, and the parts that it has given up.
//!
//! The order and the errnos are in a table in [`open`](crate::counter::open).

/// A part of a request that may be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// Kernel and hypervisor mode, which this user may not observe. The event then counts only user mode.
    UserOnly,
    /// Deferred user part of call chains (Linux 6.19).
    DeferredChains,
    /// One step of `precise_ip`, if the text requests the highest available precision.
    Precision,
    /// Children of an event whose counts are read with samples (Linux 6.13).
    InheritedReads,
    /// Exclusion of guests, which some PMUs do not support.
    HostGuestExclusion,
    /// Number of lost records (Linux 6.0).
    LostCount,
    /// Build IDs of mappings, and split weights (Linux 5.12).
    BuildIds,
    /// Kernel and BPF symbols, and the index of the branch stack (Linux 5.1).
    KernelSymbols,
    /// The flag that marks a new name set by exec (Linux 3.16).
    ExecNames,
}

/// The parts that a request has given up, and how many times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenUp([u8; Fallback::ExecNames as usize + 1]);

impl GivenUp {
    /// Whether this part was dropped from the request.
    pub fn has(self, what: Fallback) -> bool {
        self.0[what as usize] > 0
    }

    pub(in crate::counter) fn add(&mut self, what: Fallback) {
        self.0[what as usize] += 1;
    }
}
