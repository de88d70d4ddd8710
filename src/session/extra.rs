//! Properties of samples that rows are told apart by, besides event, stack and name.
//!
//! Decides only which there are; pass 2 reads them from samples, `profile` turns them into words.

/// A property of samples that rows are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The CPU.
    Cpu,
    /// The time, in slices of so many nanoseconds.
    Time(u64),
    /// The cgroup's number.
    Cgroup,
    /// The cost that the hardware told.
    Weight,
    /// The period.
    Period,
    /// The address of the data.
    Addr,
    /// The tracepoint's payload: a number in [`Samples::payloads`], or `u64::MAX`.
    Payload,
    /// Where a branch came from: an address, then the number of its location.
    From,
    /// The flags of a branch.
    BranchFlags,
    /// The data: an address, then the number of its location.
    Data,
    /// The line of the cache that the data are in, the same way.
    DataLine,
    /// The bare address that a branch came from.
    FromAddr,
    /// The bare address that a branch went to.
    ToAddr,
    /// Where the data came from.
    DataSrc,
    /// The physical address of the data.
    PhysAddr,
    /// Bytes of the data's page.
    DataPage,
    /// Bytes of the code's page.
    CodePage,
    /// Cycles from dispatch to retirement.
    InsLatency,
    /// Cycles in a stage of the pipeline.
    StageCycles,
    /// Transaction flags.
    Transaction,
    /// The function that `--parent` looks for. Not the sample's: `profile` fills it in.
    Parent,
}

impl Extra {
    /// Whether it is an address that becomes a location.
    pub fn is_place(self) -> bool {
        matches!(self, Self::From | Self::Data | Self::DataLine)
    }

    /// Whether it lies behind a sample's first fields.
    pub(super) fn is_late(self) -> bool {
        matches!(
            self,
            Self::Cgroup
                | Self::Payload
                | Self::DataSrc
                | Self::PhysAddr
                | Self::DataPage
                | Self::CodePage
                | Self::InsLatency
                | Self::StageCycles
                | Self::Transaction
        )
    }
}
