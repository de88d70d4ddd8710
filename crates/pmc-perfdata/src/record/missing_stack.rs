//! Waits that are recorded without a call chain, and why.

/// Why a sample of a wait has no call chain. The reason's number is stored as the sample's address, because
/// no code has such an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingStack {
    /// The kernel did not record the stack, or it was lost.
    NotRecorded,
    /// The sample is the sum of a thread's waits below the threshold (`--off-cpu-thresh`).
    ShortWaits,
    /// The thread left its CPU while stacks were not sampled, because there were too many context switches.
    NotSampled,
}

impl MissingStack {
    const ALL: [Self; 3] = [Self::NotRecorded, Self::ShortWaits, Self::NotSampled];

    /// Returns the address that samples with this reason have.
    pub fn address(self) -> u64 {
        self as u64
    }

    /// Returns the reason encoded in a sample's address, if any.
    pub fn of_address(address: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.address() == address)
    }

    /// Returns the name to show instead of the missing functions.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotRecorded => "[no stack]",
            Self::ShortWaits => "[short waits]",
            Self::NotSampled => "[stack not sampled]",
        }
    }
}
