//! Sample attributes that distinguish rows, in addition to event, stack and name.
//!
//! Defines the attributes, and how to read each of them from a sample. `profile` formats them.

use super::thread_time::ThreadState;
use pmc_perfdata::record::Sample;
use pmc_perfdata::record::sample::BranchEntry;
use pmc_sys::abi::sample_type;

/// Bytes in a cache line, on the machines that pmc supports.
const CACHE_LINE: u64 = 64;

/// A sample attribute that distinguishes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleAttribute {
    /// The process.
    Pid,
    /// The name of the process when the sample was taken, numbered like
    /// [`RowKey::comm`](super::samples::RowKey::comm).
    ProcessName,
    /// The thread.
    Tid,
    /// The CPU.
    Cpu,
    /// The time slice; each slice has this many nanoseconds.
    Time(u64),
    /// The time bucket, for exports. [`TimeBuckets`] places the borders.
    Bucket(TimeBuckets),
    /// The cgroup's number.
    Cgroup,
    /// The cost that the hardware measured.
    Weight,
    /// The data address.
    Addr,
    /// The tracepoint's payload, as a number in `payloads` of [`super::samples`]; `u64::MAX` without a
    /// payload.
    Payload,
    /// The origin of a branch: an address in the sample, and a location number after it is resolved.
    From,
    /// The flags of a branch.
    BranchFlags,
    /// The accessed data: an address in the sample, and a location number after it is resolved.
    Data,
    /// The data's cache line, represented like `Data`.
    DataLine,
    /// The origin of a branch as a plain address.
    FromAddr,
    /// The target of a branch as a plain address.
    ToAddr,
    /// The memory level that provided the data.
    DataSrc,
    /// The physical address of the data.
    PhysAddr,
    /// Page size of the data, in bytes.
    DataPage,
    /// Page size of the code, in bytes.
    CodePage,
    /// Cycles from dispatch to retirement.
    InsLatency,
    /// Cycles in a pipeline stage.
    StageCycles,
    /// Number of running threads of the workload.
    Parallelism,
    /// Transaction flags.
    Transaction,
    /// The state of the thread: 0 running, 1 runnable, 2 blocked.
    State,
    /// The number of the [`WaitSite`](crate::profile::sampled::wait_site::WaitSite). Filled in by `profile`,
    /// not from the sample.
    WaitSite,
    /// Where the program's own function waits: a location number. Filled in by `profile`, not from the
    /// sample.
    WaitFunction,
    /// The [`WaitPartner`](pmc_perfdata::record::WaitPartner) of a wait, as a word; 0 if the thread ran.
    WaitPartner,
    /// The function that `--parent` searches for. Filled in by `profile`, not from the sample.
    Parent,
}

impl SampleAttribute {
    /// Whether the attribute is an address that is resolved to a location.
    pub(crate) fn is_place(self) -> bool {
        matches!(self, Self::From | Self::Data | Self::DataLine)
    }

    /// Returns the fields of a sample that contain the attribute, as in `attr.sample_type`. Returns 0 if
    /// every sample of pmc has them, if they need more than a field (branches, context switches), or if
    /// `profile` fills in the attribute.
    pub fn sample_type(self) -> u64 {
        match self {
            Self::Cpu => sample_type::CPU,
            Self::Weight | Self::InsLatency | Self::StageCycles => sample_type::OWN_WEIGHT,
            Self::Addr | Self::Data | Self::DataLine => sample_type::ADDR,
            Self::DataSrc => sample_type::DATA_SRC,
            Self::PhysAddr => sample_type::PHYS_ADDR,
            Self::DataPage => sample_type::DATA_PAGE_SIZE,
            Self::CodePage => sample_type::CODE_PAGE_SIZE,
            Self::Transaction => sample_type::TRANSACTION,
            Self::Cgroup => sample_type::CGROUP,
            Self::Payload => sample_type::RAW,
            Self::Pid
            | Self::ProcessName
            | Self::Tid
            | Self::Time(_)
            | Self::Bucket(_)
            | Self::From
            | Self::BranchFlags
            | Self::FromAddr
            | Self::ToAddr
            | Self::Parallelism
            | Self::State
            | Self::WaitSite
            | Self::WaitFunction
            | Self::WaitPartner
            | Self::Parent => 0,
        }
    }

    /// Whether reading the attribute requires a full parse of the sample.
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

/// Time buckets that start at multiples of their length on another clock than the recording's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBuckets {
    /// Length of a bucket in nanoseconds; at least 1.
    pub length: u64,
    /// Time from the start of a bucket to the zero of the recording's clock, in nanoseconds; less than
    /// `length`.
    pub phase: u64,
}

impl TimeBuckets {
    /// Creates buckets that start at multiples of `length` nanoseconds on a clock that is ahead of the
    /// recording's clock by `ahead` nanoseconds.
    pub fn aligned(length: u64, ahead: i64) -> Self {
        let length = length.max(1);
        Self { length, phase: i128::from(ahead).rem_euclid(length.into()) as u64 }
    }

    /// Returns the number of the bucket that contains this time of the recording's clock.
    fn number(self, time: u64) -> u64 {
        time.saturating_add(self.phase) / self.length
    }

    /// Returns the start of a bucket on the recording's clock. The first bucket starts at 0.
    pub(crate) fn start(self, number: u64) -> u64 {
        number.saturating_mul(self.length).saturating_sub(self.phase)
    }
}

/// Values of attributes that are not fields of the sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrence {
    pub(super) time: Option<u64>,
    pub(super) weight: u64,
    /// The counted branch, if rows count branches.
    pub(super) branch: Option<BranchEntry>,
    /// Number of running threads, if known.
    pub(super) running: Option<u32>,
    /// The state of the thread.
    pub(super) state: ThreadState,
    /// The value of [`SampleAttribute::ProcessName`]; any value if it is not requested.
    pub(super) process_name: u32,
}

/// Stores a sample's attributes in `words`, in the order of `attributes`. `payload` returns the number of a
/// tracepoint's payload.
pub(super) fn attribute_words(
    attributes: &[SampleAttribute],
    sample: &Sample<'_>,
    occurrence: Occurrence,
    words: &mut Vec<u64>,
    mut payload: impl FnMut(&[u8]) -> u64,
) {
    words.clear();
    let thread = sample.thread().unwrap_or_default();
    let asks_parts = attributes.iter().any(|attribute| attribute.is_late());
    let parts = if asks_parts { sample.parts() } else { None }.unwrap_or_default();
    let branch = occurrence.branch;
    let more = |pick: fn((u16, u16)) -> u16| {
        parts.weight.and_then(|weight| weight.more()).map_or(0, |more| u64::from(pick(more)))
    };
    words.extend(attributes.iter().map(|attribute| match attribute {
        SampleAttribute::Pid => thread.pid as u64,
        SampleAttribute::ProcessName => occurrence.process_name.into(),
        SampleAttribute::Tid => thread.tid as u64,
        SampleAttribute::Cpu => sample.cpu().map_or(u64::MAX, u64::from),
        SampleAttribute::Time(slice) => occurrence.time.unwrap_or(0) / (*slice).max(1),
        SampleAttribute::Bucket(buckets) => buckets.number(occurrence.time.unwrap_or(0)),
        SampleAttribute::Cgroup => parts.cgroup.unwrap_or(0),
        SampleAttribute::Weight => occurrence.weight,
        SampleAttribute::Addr => sample.addr().unwrap_or(0),
        SampleAttribute::Payload => parts.raw.map_or(u64::MAX, &mut payload),
        SampleAttribute::From | SampleAttribute::FromAddr => branch.map_or(u64::MAX, |branch| branch.from),
        SampleAttribute::ToAddr => branch.map_or(u64::MAX, |branch| branch.to),
        SampleAttribute::BranchFlags => branch.map_or(u64::MAX, |branch| branch.flags.0),
        SampleAttribute::DataLine => sample.addr().map_or(u64::MAX, |addr| addr & !(CACHE_LINE - 1)),
        SampleAttribute::Data => sample.addr().unwrap_or(u64::MAX),
        SampleAttribute::DataSrc => parts.data_src.unwrap_or(u64::MAX),
        SampleAttribute::PhysAddr => parts.phys_addr.unwrap_or(u64::MAX),
        SampleAttribute::DataPage => parts.data_page_size.unwrap_or(u64::MAX),
        SampleAttribute::CodePage => parts.code_page_size.unwrap_or(u64::MAX),
        SampleAttribute::InsLatency => more(|(latency, _)| latency),
        SampleAttribute::StageCycles => more(|(_, cycles)| cycles),
        SampleAttribute::Parallelism => occurrence.running.map_or(u64::MAX, u64::from),
        SampleAttribute::Transaction => parts.transaction.unwrap_or(0),
        SampleAttribute::State => occurrence.state as u64,
        SampleAttribute::WaitPartner if occurrence.state.is_off_cpu() => sample.addr().unwrap_or(0),
        SampleAttribute::WaitPartner => 0,
        SampleAttribute::WaitSite | SampleAttribute::WaitFunction | SampleAttribute::Parent => u64::MAX,
    }));
}

/// Returns the costs that the hardware measured for a sample; see
/// [`SampleValue::weights`](super::samples::SampleValue::weights). All costs are 0 if none were measured.
pub(super) fn weights_of(sample: &Sample<'_>) -> [u64; 3] {
    if sample.layout().sample_type() & (sample_type::WEIGHT | sample_type::WEIGHT_STRUCT) == 0 {
        return [0; 3];
    }
    let Some(weight) = sample.parts().and_then(|parts| parts.weight) else { return [0; 3] };
    let (second, third) = weight.more().unwrap_or_default();
    [weight.value(), second.into(), third.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_start_at_multiples_of_the_other_clock() {
        for ahead in [0, 7, 59, 60, 61, -1, -59, 1_000_003] {
            let buckets = TimeBuckets::aligned(60, ahead);
            for time in [100u64, 119, 120, 121, 4711] {
                let start = buckets.start(buckets.number(time));
                assert_eq!((start as i64 + ahead).rem_euclid(60), 0, "{ahead} {time}");
                assert!(start <= time && time < start + 60, "{ahead} {time} {start}");
            }
        }
        assert_eq!(TimeBuckets::aligned(60, 30).start(0), 0);
        assert_eq!(TimeBuckets::aligned(0, 5).number(u64::MAX), u64::MAX);
    }
}
