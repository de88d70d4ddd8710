//! What a request may give up, and what it has given up.
//!
//! Decides nothing: after which answer what is given up is one table in [`open`](crate::counter::open).

/// A part of a request that may be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The kernel's levels, which this user may not see: user mode only.
    UserOnly,
    /// That the user part of call chains comes later (Linux 6.19).
    DeferredChains,
    /// A step of `precise_ip`, where the text wants the highest that there is.
    Precision,
    /// Children of an event whose counts are read with samples (Linux 6.13).
    InheritedReads,
    /// That guests are left out, which some PMUs cannot.
    HostGuestExclusion,
    /// The count of lost records (Linux 6.0).
    LostCount,
    /// Build ids of mappings, and weights in parts (Linux 5.12).
    BuildIds,
    /// The kernel's own and BPF's symbols, the index of the branch stack (Linux 5.1).
    KernelSymbols,
    /// Whether a new name came by exec (Linux 3.16).
    ExecNames,
}

/// What a request has given up, and how often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenUp([u8; Fallback::ExecNames as usize + 1]);

impl GivenUp {
    /// Whether this was given up.
    pub fn has(self, what: Fallback) -> bool {
        self.0[what as usize] > 0
    }

    /// Once more.
    pub(in crate::counter) fn add(&mut self, what: Fallback) {
        self.0[what as usize] += 1;
    }
}
