//! perf's own records (types from 64): attrs, build-ids, maps of threads and CPUs, stat's counts.
//!
//! The layouts follow `tools/lib/perf/include/perf/event.h` (Linux 6.18). Shorter records of older versions
//! of perf are also supported. `parse` receives a cursor after the header.

use super::attr;
use super::bytes::{Cursor, RecordWords, until_nul};
use super::kernel::Thread;
use pmc_sys::abi::{Attr, misc};

/// An event's attr and its ids (`HEADER_ATTR`).
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderAttr<'a> {
    /// The event's attr.
    pub attr: Attr,
    /// One id per CPU or thread.
    pub ids: RecordWords<'a>,
}

impl<'a> HeaderAttr<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (attr, size) = attr::parse(c.rest())?;
        c.take(size)?;
        Some(Self { attr, ids: c.all_words() })
    }
}

/// An event's name in files from before Linux 3.0 (`HEADER_EVENT_TYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventType<'a> {
    /// The event's config.
    pub id: u64,
    /// The event's name.
    pub name: &'a [u8],
}

impl<'a> EventType<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self { id: c.u64()?, name: c.text() })
    }
}

/// A file's build-id (`HEADER_BUILD_ID`, and the rows of the `BUILD_ID` feature).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildIdRecord<'a> {
    /// −1, or the guest's pid.
    pub pid: i32,
    /// The build-id: 20 bytes, or fewer if the record contains a size.
    pub id: &'a [u8],
    /// The record's `misc`: kernel or user.
    pub misc: u16,
    /// Path, or a name like `[kernel.kallsyms]`.
    pub name: &'a [u8],
}

impl<'a> BuildIdRecord<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>, flags: u16) -> Option<Self> {
        let (pid, field) = (c.i32()?, c.take(24)?);
        let size = if flags & misc::BUILD_ID_SIZE != 0 { usize::from(field[20]).min(20) } else { 20 };
        Some(Self { pid, id: &field[..size], misc: flags, name: c.text() })
    }
}

/// The ring, CPU and thread of each event id (`ID_INDEX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdIndex<'a> {
    rows: RecordWords<'a>,
}

/// A row of [`IdIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdEntry {
    /// The id.
    pub id: u64,
    /// Index of its ring.
    pub idx: u64,
    /// CPU, −1 for any.
    pub cpu: i64,
    /// Thread, −1 for any.
    pub tid: i64,
}

impl<'a> IdIndex<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let count = c.u64()?;
        Some(Self { rows: c.words(count.checked_mul(4)?)? })
    }

    /// Iterates over the rows.
    pub fn iter(&self) -> impl Iterator<Item = IdEntry> + use<'a> {
        self.rows.rows().map(|[id, idx, cpu, tid]| IdEntry { id, idx, cpu: cpu as i64, tid: tid as i64 })
    }
}

/// Settings for decoding AUX data (`AUXTRACE_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxtraceInfo<'a> {
    /// 1 Intel PT, 2 Intel BTS, 3 CoreSight, 4 Arm SPE, 5 s390, 6 HiSilicon PTT, 7 …
    pub kind: u32,
    /// The decoder's private data.
    pub private: RecordWords<'a>,
}

impl<'a> AuxtraceInfo<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let kind = c.u32()?;
        c.u32()?;
        Some(Self { kind, private: c.all_words() })
    }
}

/// A record that is followed by AUX data (`AUXTRACE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "perf's names; only the size matters for skipping")]
pub struct Auxtrace {
    /// Size of the data after the record, in bytes.
    pub size: u64,
    pub offset: u64,
    pub reference: u64,
    pub idx: u32,
    pub tid: u32,
    pub cpu: u32,
}

impl Auxtrace {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            size: c.u64()?,
            offset: c.u64()?,
            reference: c.u64()?,
            idx: c.u32()?,
            tid: c.u32()?,
            cpu: c.u32()?,
        })
    }
}

/// An error reported by an AUX decoder (`AUXTRACE_ERROR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "perf's names")]
pub struct AuxtraceError<'a> {
    pub kind: u32,
    pub code: u32,
    pub cpu: u32,
    pub thread: Thread,
    pub ip: u64,
    pub message: &'a [u8],
}

impl<'a> AuxtraceError<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (kind, code, cpu, thread) = (c.u32()?, c.u32()?, c.u32()?, Thread::parse(c)?);
        let (format, ip) = (c.u32()?, c.u64()?);
        if format != 0 {
            c.u64()?; // the time, since perf 5.1
        }
        Some(Self { kind, code, cpu, thread, ip, message: c.text() })
    }
}

/// The recorded threads, by pid and comm (`THREAD_MAP`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadMap<'a> {
    rows: RecordWords<'a>,
}

impl<'a> ThreadMap<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let count = c.u64()?;
        Some(Self { rows: c.words(count.checked_mul(3)?)? })
    }

    /// Iterates over pids and comms (empty if unknown to perf).
    pub fn iter(&self) -> impl Iterator<Item = (i64, &'a [u8])> + use<'a> {
        self.rows.as_bytes().as_chunks::<24>().0.iter().map(|row| {
            let (pid, comm) = row.split_at(8);
            (pid.first_chunk().map_or(-1, |p| i64::from_ne_bytes(*p)), until_nul(comm))
        })
    }
}

/// A set of CPUs, in one of perf's three encodings (`CPU_MAP`, `EVENT_UPDATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuMap<'a> {
    /// Numbers, two bytes each; 0xffff is "any".
    List(&'a [u8]),
    /// One bit per CPU, in words of `width` bytes (4 or 8).
    Mask {
        /// Size of a word in bytes.
        width: usize,
        /// The words.
        bits: &'a [u8],
    },
    /// A range of CPUs, plus CPU −1 if `any` is set.
    Range {
        /// Whether "any" is included.
        any: bool,
        /// First CPU.
        first: u16,
        /// Last CPU, inclusive.
        last: u16,
    },
}

impl<'a> CpuMap<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(match c.u16()? {
            0 => {
                let count = usize::from(c.u16()?);
                Self::List(c.take(count * 2)?)
            }
            1 => {
                let (count, width) = (usize::from(c.u16()?), usize::from(c.u16()?));
                if width != 4 && width != 8 {
                    return None;
                }
                if width == 8 {
                    c.take(4)?; // padding
                }
                Self::Mask { width, bits: c.take(count * width)? }
            }
            2 => {
                let any = c.u8()? != 0;
                c.u8()?;
                Self::Range { any, first: c.u16()?, last: c.u16()? }
            }
            _ => return None,
        })
    }

    /// Returns the CPUs in record order; −1 is "any".
    pub fn cpus(&self) -> Vec<i32> {
        match *self {
            Self::List(numbers) => {
                let numbers = numbers.as_chunks().0.iter().map(|n| u16::from_ne_bytes(*n));
                numbers.map(|n| if n == u16::MAX { -1 } else { n.into() }).collect()
            }
            Self::Mask { width, bits } => {
                let word = |bytes: &[u8]| match bytes.first_chunk::<8>() {
                    Some(all) => u64::from_ne_bytes(*all),
                    None => bytes.first_chunk::<4>().map_or(0, |half| u32::from_ne_bytes(*half).into()),
                };
                let mut cpus = Vec::new();
                for (at, bytes) in bits.chunks_exact(width).enumerate() {
                    let word = word(bytes);
                    let set = (0..width * 8).filter(|bit| word >> bit & 1 == 1);
                    cpus.extend(set.map(|bit| (at * width * 8 + bit) as i32));
                }
                cpus
            }
            Self::Range { any, first, last } => {
                any.then_some(-1).into_iter().chain((first..=last).map(i32::from)).collect()
            }
        }
    }
}

/// One count of `perf stat record` (`STAT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "perf's names")]
pub struct StatCount {
    pub id: u64,
    pub cpu: u32,
    pub thread: u32,
    pub value: u64,
    pub enabled: u64,
    pub running: u64,
}

impl StatCount {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            id: c.u64()?,
            cpu: c.u32()?,
            thread: c.u32()?,
            value: c.u64()?,
            enabled: c.u64()?,
            running: c.u64()?,
        })
    }
}

/// The end of a round of counts (`STAT_ROUND`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatRound {
    /// Whether it is the last round (otherwise an interval).
    pub is_final: bool,
    /// Nanoseconds since the start.
    pub time: u64,
}

impl StatRound {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { is_final: c.u64()? == 1, time: c.u64()? })
    }
}

/// An additional property of an event (`EVENT_UPDATE`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventUpdate<'a> {
    /// One of the event's ids.
    pub id: u64,
    /// The updated property.
    pub what: Update<'a>,
}

/// Content of an `EVENT_UPDATE`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Update<'a> {
    /// The unit of the counts.
    Unit(&'a [u8]),
    /// The factor by which to multiply the counts.
    Scale(f64),
    /// The event's name.
    Name(&'a [u8]),
    /// The CPUs on which the event counts.
    Cpus(CpuMap<'a>),
}

impl<'a> EventUpdate<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (kind, id) = (c.u64()?, c.u64()?);
        let what = match kind {
            0 => Update::Unit(c.text()),
            1 => Update::Scale(f64::from_bits(c.u64()?)),
            2 => Update::Name(c.text()),
            3 => Update::Cpus(CpuMap::parse(c)?),
            _ => return None,
        };
        Some(Self { id, what })
    }
}

/// The conversion from the TSC to perf's timestamps (`TIME_CONV`): `time = zero + (tsc * mult >> shift)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's names; see perf_event_mmap_page in perf_event_open(2)")]
pub struct TimeConv {
    pub shift: u64,
    pub mult: u64,
    pub zero: u64,
    /// Since perf 5.11.
    pub more: Option<MoreTimeConv>,
}

/// Additional fields of a `TIME_CONV`, for counters with fewer than 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's names; see perf_event_mmap_page in perf_event_open(2)")]
pub struct MoreTimeConv {
    pub cycles: u64,
    pub mask: u64,
    /// `cap_user_time_zero`: whether `zero` is valid.
    pub has_zero: bool,
    /// `cap_user_time_short`: whether `cycles` and `mask` are valid.
    pub is_short: bool,
}

impl TimeConv {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        let (shift, mult, zero) = (c.u64()?, c.u64()?, c.u64()?);
        Some(Self { shift, mult, zero, more: MoreTimeConv::parse(c) })
    }
}

impl MoreTimeConv {
    fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        let (cycles, mask) = (c.u64()?, c.u64()?);
        Some(Self { cycles, mask, has_zero: c.u8()? != 0, is_short: c.u8()? != 0 })
    }
}

/// A feature section inside the stream (`HEADER_FEATURE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderFeature<'a> {
    /// The feature's number; see `perfdata::feature`.
    pub feature: u64,
    /// The section's bytes, padded.
    pub data: &'a [u8],
}

impl<'a> HeaderFeature<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self { feature: c.u64()?, data: c.rest() })
    }
}

/// Metadata variables of a BPF program (`BPF_METADATA`): a 512-byte name, then rows of a 64-byte key and a
/// 256-byte value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfMetadata<'a> {
    /// The program's name.
    pub program: &'a [u8],
    entries: &'a [u8],
}

impl<'a> BpfMetadata<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (program, count) = (until_nul(c.take(512)?), c.u64()?);
        let size = usize::try_from(count).ok()?.checked_mul(320)?;
        Some(Self { program, entries: c.take(size)? })
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.entries.chunks_exact(320).map(|e| (until_nul(&e[..64]), until_nul(&e[64..])))
    }
}
