//! Records as typed values, decoded from bytes without I/O or copies.
//!
//! Receives the native-endian bytes that the kernel wrote to a ring, or that perf wrote to a file (`swap`
//! converts the opposite byte order). Returns [`Record`]s and [`Sample`]s that borrow from them, and rejects
//! malformed records. `perfdata` reads and writes the files; `session` derives processes and mappings from
//! the records.
//!
//! ```text
//!          0      4     6     8
//! record   | type | misc| size| body … (| sample_id: thread, time, event |)
//!          '---------- size bytes, header included ------------------------'
//! ```
//! Most callers iterate over [`Records`], check `kind` first, and parse only what they need: samples with
//! [`Layouts::sample`], the others with [`RawRecord::parse`].

mod addresses;
pub mod attr;
pub mod bytes;
pub mod decode;
pub mod encode;
mod kernel;
pub mod kind;
pub mod layouts;
mod mapping_by_id;
mod missing_stack;
pub mod sample;
pub mod sample_layout;
pub mod swap;
pub mod tracepoint;
pub mod unwound;
mod user;
mod wait_partner;
mod walk;

pub use addresses::{replace_addresses, replace_words};
pub use bytes::{Cursor, RecordWords};
pub use kernel::*;
pub use layouts::Layouts;
pub use mapping_by_id::write_by_build_id;
pub use missing_stack::MissingStack;
use pmc_sys::abi::CpuMode;
pub use sample::{ChainEntry, Sample, SampleParts};
pub use sample_layout::{SampleId, SampleLayout};
pub use user::*;
pub use wait_partner::WaitPartner;
pub use walk::walk;

/// Size of a record's header in bytes.
pub const HEADER: usize = 8;

/// Returns the size of a record in bytes from its header's fields. In records that only simpleperf defines,
/// the `misc` field holds the upper half of the size.
#[inline]
pub fn size(kind: u32, misc: u16, low: u16) -> usize {
    match kind {
        kind::FIRST_SIMPLEPERF..=kind::LAST_SIMPLEPERF => usize::from(misc) << 16 | usize::from(low),
        _ => low.into(),
    }
}

/// A record with a decoded header and an undecoded body.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// The record type; see [`kind`].
    pub kind: u32,
    /// Flags; see [`misc`](pmc_sys::abi::record_header::misc).
    pub misc: u16,
    /// The whole record, including the header.
    pub bytes: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Returns the first record in these bytes; `None` if they do not contain a complete one.
    #[inline]
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let [a, b, c, d, e, f, g, h] = *header;
        let (kind, misc) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
        let size = size(kind, misc, u16::from_ne_bytes([g, h]));
        if size < HEADER {
            return None;
        }
        Some(Self { kind, misc, bytes: bytes.get(..size)? })
    }

    /// The bytes after the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        // `first` has checked the length.
        &self.bytes[HEADER..]
    }

    /// The CPU mode.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of(self.misc)
    }

    /// Decodes the fields; `None` if the record is too short for them.
    pub fn parse(&self) -> Option<Record<'a>> {
        Record::parse(*self)
    }
}

/// An iterator over consecutive records. Stops before the first incomplete one; see [`Records::rest`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    left: &'a [u8],
}

impl<'a> Records<'a> {
    /// Starts at the first byte, where a record must begin.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Returns the remaining bytes: empty at the end, or beginning with a record that is truncated or has a
    /// size below 8.
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'a>> {
        let record = RawRecord::first(self.left)?;
        self.left = &self.left[record.bytes.len()..];
        Some(record)
    }
}

/// A record with its fields. Strings are the bytes before the first NUL, not checked for UTF-8.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is documented at its struct and in `kind`")]
pub enum Record<'a> {
    Mmap(Mmap<'a>),
    Lost(Lost),
    Comm(Comm<'a>),
    Exit(Task),
    Throttle(Throttle),
    Unthrottle(Throttle),
    Fork(Task),
    Read(Read<'a>),
    /// The body; [`Layouts::sample`] decodes it.
    Sample(&'a [u8]),
    Mmap2(Mmap2<'a>),
    Aux(Aux),
    ItraceStart(Thread),
    LostSamples(u64),
    Switch(Switch),
    SwitchCpuWide(Switch),
    Namespaces(Namespaces<'a>),
    Ksymbol(Ksymbol<'a>),
    BpfEvent(BpfEvent),
    Cgroup(Cgroup<'a>),
    TextPoke(TextPoke<'a>),
    AuxOutputHwId(u64),
    CallchainDeferred(CallchainDeferred<'a>),
    HeaderAttr(HeaderAttr<'a>),
    EventType(EventType<'a>),
    /// Size of the tracing data that follows the record, in bytes.
    TracingData(u32),
    BuildId(BuildIdRecord<'a>),
    FinishedRound,
    IdIndex(IdIndex<'a>),
    AuxtraceInfo(AuxtraceInfo<'a>),
    Auxtrace(Auxtrace),
    AuxtraceError(AuxtraceError<'a>),
    ThreadMap(ThreadMap<'a>),
    CpuMap(CpuMap<'a>),
    StatConfig(RecordWords<'a>),
    Stat(StatCount),
    StatRound(StatRound),
    EventUpdate(EventUpdate<'a>),
    TimeConv(TimeConv),
    HeaderFeature(HeaderFeature<'a>),
    /// A piece of the file's zstd stream (`COMPRESSED` and `COMPRESSED2`).
    Compressed(&'a [u8]),
    FinishedInit,
    BpfMetadata(BpfMetadata<'a>),
    /// `/proc/schedstat` as recorded by `perf sched stats`: the body, whose layout depends on its version
    /// field.
    Schedstat(&'a [u8]),
    /// A type that Linux 6.18 does not define. Callers use its size to skip it, and count it.
    Unknown(u32),
}

impl<'a> Record<'a> {
    fn parse(raw: RawRecord<'a>) -> Option<Self> {
        let body = raw.body();
        let mut c = Cursor::new(body);
        Some(match raw.kind {
            kind::MMAP => Self::Mmap(Mmap::parse(&mut c, raw.misc)?),
            kind::LOST => Self::Lost(Lost { id: c.u64()?, lost: c.u64()? }),
            kind::COMM => Self::Comm(Comm::parse(&mut c, raw.misc)?),
            kind::EXIT => Self::Exit(Task::parse(&mut c)?),
            kind::THROTTLE => Self::Throttle(Throttle::parse(&mut c)?),
            kind::UNTHROTTLE => Self::Unthrottle(Throttle::parse(&mut c)?),
            kind::FORK => Self::Fork(Task::parse(&mut c)?),
            kind::READ => Self::Read(Read { thread: Thread::parse(&mut c)?, values: c.all_words() }),
            kind::SAMPLE => Self::Sample(body),
            kind::MMAP2 => Self::Mmap2(Mmap2::parse(&mut c, raw.misc)?),
            kind::AUX => Self::Aux(Aux { offset: c.u64()?, size: c.u64()?, flags: c.u64()? }),
            kind::ITRACE_START => Self::ItraceStart(Thread::parse(&mut c)?),
            kind::LOST_SAMPLES => Self::LostSamples(c.u64()?),
            kind::SWITCH => Self::Switch(Switch::new(raw.misc, None)),
            kind::SWITCH_CPU_WIDE => Self::SwitchCpuWide(Switch::new(raw.misc, Some(Thread::parse(&mut c)?))),
            kind::NAMESPACES => Self::Namespaces(Namespaces::parse(&mut c)?),
            kind::KSYMBOL => Self::Ksymbol(Ksymbol::parse(&mut c)?),
            kind::BPF_EVENT => Self::BpfEvent(BpfEvent::parse(&mut c)?),
            kind::CGROUP => Self::Cgroup(Cgroup { id: c.u64()?, path: c.text() }),
            kind::TEXT_POKE => Self::TextPoke(TextPoke::parse(&mut c)?),
            kind::AUX_OUTPUT_HW_ID => Self::AuxOutputHwId(c.u64()?),
            kind::CALLCHAIN_DEFERRED => Self::CallchainDeferred(CallchainDeferred::parse(&mut c)?),
            kind::HEADER_ATTR => Self::HeaderAttr(HeaderAttr::parse(&mut c)?),
            kind::HEADER_EVENT_TYPE => Self::EventType(EventType { id: c.u64()?, name: c.text() }),
            kind::HEADER_TRACING_DATA => Self::TracingData(c.u32()?),
            kind::HEADER_BUILD_ID => Self::BuildId(BuildIdRecord::parse(&mut c, raw.misc)?),
            kind::FINISHED_ROUND => Self::FinishedRound,
            kind::ID_INDEX => Self::IdIndex(IdIndex::parse(&mut c)?),
            kind::AUXTRACE_INFO => Self::AuxtraceInfo(AuxtraceInfo::parse(&mut c)?),
            kind::AUXTRACE => Self::Auxtrace(Auxtrace::parse(&mut c)?),
            kind::AUXTRACE_ERROR => Self::AuxtraceError(AuxtraceError::parse(&mut c)?),
            kind::THREAD_MAP => Self::ThreadMap(ThreadMap::parse(&mut c)?),
            kind::CPU_MAP => Self::CpuMap(CpuMap::parse(&mut c)?),
            kind::STAT_CONFIG => Self::StatConfig(pairs(&mut c)?),
            kind::STAT => Self::Stat(StatCount::parse(&mut c)?),
            kind::STAT_ROUND => Self::StatRound(StatRound { is_final: c.u64()? == 1, time: c.u64()? }),
            kind::EVENT_UPDATE => Self::EventUpdate(EventUpdate::parse(&mut c)?),
            kind::TIME_CONV => Self::TimeConv(TimeConv::parse(&mut c)?),
            kind::HEADER_FEATURE => Self::HeaderFeature(HeaderFeature { feature: c.u64()?, data: c.rest() }),
            kind::COMPRESSED => Self::Compressed(body),
            kind::FINISHED_INIT => Self::FinishedInit,
            kind::COMPRESSED2 => {
                let size = c.u64()?;
                Self::Compressed(c.take(usize::try_from(size).ok()?)?)
            }
            kind::BPF_METADATA => Self::BpfMetadata(BpfMetadata::parse(&mut c)?),
            kind::SCHEDSTAT_CPU | kind::SCHEDSTAT_DOMAIN => Self::Schedstat(body),
            unknown => Self::Unknown(unknown),
        })
    }
}

/// Reads a count, then that many pairs of words.
fn pairs<'a>(c: &mut Cursor<'a>) -> Option<RecordWords<'a>> {
    let count = c.u64()?;
    c.words(count.checked_mul(2)?)
}
