//! The parts that may be dropped from a request, and a record of those that were.
//!
//! A table in [`open`](crate::counter::open) defines their order and the errnos.

/// A part of a request that may be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// Kernel and hypervisor mode, which this user may not observe. The event then counts only in user mode.
    UserOnly,
    /// Deferred user part of call chains (Linux 6.19).
    DeferredChains,
    /// One level of `precise_ip`, if the event's text requests the highest available precision.
    Precision,
    /// Inheritance by children, for an event whose samples contain counts (Linux 6.13).
    InheritedReads,
    /// Exclusion of guests or of the host, which some PMUs do not support.
    HostGuestExclusion,
    /// Number of lost records (Linux 6.0).
    LostCount,
    /// Build IDs in mapping records, and sample weights split into several values (Linux 5.12).
    BuildIds,
    /// Records of kernel symbols and BPF programs (Linux 5.1), and the branch stack's hardware index.
    KernelSymbols,
    /// The flag that marks thread renames caused by exec (Linux 3.16).
    ExecNames,
}

/// The parts that were dropped from a request, and how many times each was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenUp([u8; Fallback::ExecNames as usize + 1]);

impl GivenUp {
    /// Whether this part has been dropped from the request.
    pub fn has(self, what: Fallback) -> bool {
        self.0[what as usize] > 0
    }

    pub(in crate::counter) fn add(&mut self, what: Fallback) {
        self.0[what as usize] += 1;
    }
}
