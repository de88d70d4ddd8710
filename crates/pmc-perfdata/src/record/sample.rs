//! The fields of one sample, decoded on demand.
//!
//! Receives a record's body and its [`SampleLayout`]. Fields at fixed offsets are read directly, and at most
//! one field must be skipped to reach the call chain. [`Sample::parts`] decodes all other fields in one pass
//! over the variable part.
//!
//! ```text
//! … period | read | callchain | raw | branches | user regs | user stack | weight | data_src | transaction
//!          | interrupt regs | phys_addr | cgroup | data page | code page | aux
//! ```

use super::RawRecord;
use super::bytes::{Cursor, RecordWords};
use super::kernel::Thread;
use super::sample_layout::{FRONT_BITS, FixedField, SampleLayout, split};
use pmc_sys::abi::{Context, CpuMode, branch_sample_type, context, read_format, sample_type};
use pmc_text::units::PerfTime;

/// A sample. Fields that the event did not select are `None`.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub(super) layout: &'a SampleLayout,
    pub(super) body: &'a [u8],
    pub(super) misc: u16,
}

impl SampleLayout {
    /// Returns the sample in this body; `None` if its one-word fields do not fit.
    #[inline]
    pub fn sample<'a>(&'a self, raw: &RawRecord<'a>) -> Option<Sample<'a>> {
        let body = raw.body();
        (body.len() >= self.front).then_some(Sample { layout: self, body, misc: raw.misc })
    }
}

impl<'a> Sample<'a> {
    #[inline]
    fn fixed_field(&self, field: FixedField) -> Option<u64> {
        self.layout.fixed_word(self.body, field)
    }

    /// The CPU mode.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::from_misc(self.misc)
    }
    /// The sample's layout.
    pub fn layout(&self) -> &'a SampleLayout {
        self.layout
    }
    /// The body, for printing.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Address of the instruction.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        self.fixed_field(FixedField::Ip)
    }
    /// Thread and process.
    #[inline]
    pub fn thread(&self) -> Option<Thread> {
        let (pid, tid) = split(self.fixed_field(FixedField::Tid)?);
        Some(Thread { pid: pid as i32, tid: tid as i32 })
    }
    /// The time.
    #[inline]
    pub fn time(&self) -> Option<PerfTime> {
        self.fixed_field(FixedField::Time).map(PerfTime)
    }
    /// Address of the data.
    pub fn addr(&self) -> Option<u64> {
        self.fixed_field(FixedField::Addr)
    }
    /// Id of the event's instance.
    #[inline]
    pub fn id(&self) -> Option<u64> {
        self.fixed_field(FixedField::Identifier).or_else(|| self.fixed_field(FixedField::Id))
    }
    /// Id of the inherited instance.
    pub fn stream_id(&self) -> Option<u64> {
        self.fixed_field(FixedField::StreamId)
    }
    /// The CPU.
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        self.fixed_field(FixedField::Cpu).map(|word| split(word).0)
    }
    /// Number of events since the last sample.
    #[inline]
    pub fn period(&self) -> Option<u64> {
        self.fixed_field(FixedField::Period)
    }

    fn variable(&self) -> Option<Cursor<'a>> {
        self.body.get(self.layout.front..).map(Cursor::new)
    }

    /// The call chain, innermost first, with context markers (see [`chain_entries`]); `None` for samples
    /// without a call chain.
    #[inline]
    pub fn callchain(&self) -> Option<RecordWords<'a>> {
        if self.layout.sample_type & sample_type::CALLCHAIN == 0 {
            return None;
        }
        let mut c = self.variable()?;
        if self.layout.sample_type & sample_type::READ != 0 {
            ReadValues::parse(&mut c, self.layout.read_format)?;
        }
        let count = c.u64()?;
        c.words(count)
    }

    /// Decodes all fields after the period in one pass; `None` if a size in the record reaches past its end.
    pub fn parts(&self) -> Option<SampleParts<'a>> {
        Some(self.walk()?.0)
    }

    /// Number of bytes after the last field. Any number except 0 means that the record's size is wrong.
    /// `None` in the same case as [`parts`](Self::parts).
    #[inline]
    pub fn excess(&self) -> Option<u64> {
        // A fast path: this runs for every sample of a recording, and most samples have no variable field
        // except a call chain.
        if self.layout.sample_type & !(FRONT_BITS | sample_type::CALLCHAIN) == 0 {
            let mut rest = self.variable()?;
            if self.layout.sample_type & sample_type::CALLCHAIN != 0 {
                let count = rest.u64()?;
                rest.words(count)?;
            }
            return Some(rest.rest().len() as u64);
        }
        let (_, rest) = self.walk()?;
        // Higher bits select fields that only newer kernels define.
        let is_known = self.layout.sample_type < sample_type::WEIGHT_STRUCT << 1;
        Some(if is_known { rest.len() as u64 } else { 0 })
    }

    #[inline]
    fn walk(&self) -> Option<(SampleParts<'a>, &'a [u8])> {
        let SampleLayout { sample_type, read_format, branch_sample_type, .. } = *self.layout;
        let has = |bit: u64| sample_type & bit != 0;
        let mut c = self.variable()?;
        let mut parts = SampleParts::default();
        if has(sample_type::READ) {
            parts.read = Some(ReadValues::parse(&mut c, read_format)?);
        }
        if has(sample_type::CALLCHAIN) {
            let count = c.u64()?;
            parts.callchain = Some(c.words(count)?);
        }
        if has(sample_type::RAW) {
            let size = c.u32()?;
            parts.raw = Some(c.take(usize::try_from(size).ok()?)?);
        }
        if has(sample_type::BRANCH_STACK) {
            parts.branches = Some(Branches::parse(&mut c, branch_sample_type)?);
        }
        if has(sample_type::REGS_USER) {
            parts.user_regs = SampledRegisters::parse(&mut c, self.layout.user_regs)?;
        }
        if has(sample_type::STACK_USER) {
            parts.user_stack = UserStack::parse(&mut c)?;
        }
        let mut word = |bit: u64| if has(bit) { c.u64().map(Some) } else { Some(None) };
        parts.weight = word(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT)?
            .map(|word| Weight { word, is_struct: has(sample_type::WEIGHT_STRUCT) });
        parts.data_src = word(sample_type::DATA_SRC)?;
        parts.transaction = word(sample_type::TRANSACTION)?;
        if has(sample_type::REGS_INTR) {
            parts.intr_regs = SampledRegisters::parse(&mut c, self.layout.intr_regs)?;
        }
        let mut word = |bit: u64| if has(bit) { c.u64().map(Some) } else { Some(None) };
        parts.phys_addr = word(sample_type::PHYS_ADDR)?;
        parts.cgroup = word(sample_type::CGROUP)?;
        parts.data_page_size = word(sample_type::DATA_PAGE_SIZE)?;
        parts.code_page_size = word(sample_type::CODE_PAGE_SIZE)?;
        if has(sample_type::AUX) {
            let size = c.u64()?;
            parts.aux = Some(c.take(usize::try_from(size).ok()?)?);
        }
        Some((parts, c.rest()))
    }
}

/// The variable part of a sample. Fields that were not selected are `None`, and so are registers and stack if
/// the kernel recorded none.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleParts<'a> {
    /// Counter values.
    pub read: Option<ReadValues<'a>>,
    /// Call chain with context markers.
    pub callchain: Option<RecordWords<'a>>,
    /// A tracepoint's payload (including padding), or raw data of another PMU.
    pub raw: Option<&'a [u8]>,
    /// Last branches, newest first.
    pub branches: Option<Branches<'a>>,
    /// Registers of the process.
    pub user_regs: Option<SampledRegisters<'a>>,
    /// A copy of the process's stack.
    pub user_stack: Option<UserStack<'a>>,
    /// Cost of the sampled instruction.
    pub weight: Option<Weight>,
    /// Source of the data; see [`super::decode`].
    pub data_src: Option<u64>,
    /// Transaction flags; see [`super::decode`].
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<SampledRegisters<'a>>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// The cgroup's id.
    pub cgroup: Option<u64>,
    /// Size of the data's page in bytes.
    pub data_page_size: Option<u64>,
    /// Size of the code's page in bytes.
    pub code_page_size: Option<u64>,
    /// Data from the AUX area.
    pub aux: Option<&'a [u8]>,
}

/// One entry of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEntry {
    /// A marker: the following addresses belong to this context.
    Context(Context),
    /// An address.
    Address(u64),
}

impl From<u64> for ChainEntry {
    #[inline]
    fn from(word: u64) -> Self {
        Context::from_word(word).map_or(Self::Address(word), Self::Context)
    }
}

/// Iterates over a call chain's entries, distinguishing markers from addresses.
pub fn chain_entries(
    chain: RecordWords<'_>,
) -> impl DoubleEndedIterator<Item = ChainEntry> + ExactSizeIterator {
    chain.iter().map(ChainEntry::from)
}

/// Iterates over the user part of a call chain, without its marker.
pub fn user_part(chain: RecordWords<'_>) -> impl Iterator<Item = u64> + '_ {
    chain.iter().skip_while(|word| *word != context::USER).skip(1).take_while(|word| *word < context::MAX)
}

/// Counter values in a `READ` record or field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValues<'a> {
    format: u64,
    words: RecordWords<'a>,
}

/// One counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValue {
    /// The count.
    pub value: u64,
    /// The event's id.
    pub id: Option<u64>,
    /// Number of lost records (Linux 6.0).
    pub lost: Option<u64>,
}

impl<'a> ReadValues<'a> {
    /// Decodes the words that the bits of `read_format` select.
    pub fn parse(c: &mut Cursor<'a>, read_format: u64) -> Option<Self> {
        let has = |bit: u64| u64::from(read_format & bit != 0);
        let each = 1 + has(read_format::ID) + has(read_format::LOST);
        let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
        let count = if read_format & read_format::GROUP != 0 {
            let members = c.rest().first_chunk().map(|w| u64::from_ne_bytes(*w))?;
            members.checked_mul(each)?.checked_add(1 + times)?
        } else {
            each + times
        };
        Some(Self { format: read_format, words: c.words(count)? })
    }

    /// The `read_format` bits.
    pub fn format(&self) -> u64 {
        self.format
    }

    /// Returns one of the two times, which follow the number of members or the single value.
    fn time(&self, wanted: u64) -> Option<u64> {
        if self.format & wanted == 0 {
            return None;
        }
        let second =
            wanted == read_format::TOTAL_TIME_RUNNING && self.format & read_format::TOTAL_TIME_ENABLED != 0;
        self.words.get(1 + usize::from(second))
    }
    /// Nanoseconds enabled.
    pub fn enabled_ns(&self) -> Option<u64> {
        self.time(read_format::TOTAL_TIME_ENABLED)
    }
    /// Nanoseconds during which the event was on a hardware counter.
    pub fn running_ns(&self) -> Option<u64> {
        self.time(read_format::TOTAL_TIME_RUNNING)
    }

    /// Iterates over the event's value, or over the values of the group's members, leader first.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + use<'a> {
        let Self { format, words } = *self;
        let (has_id, has_lost) = (format & read_format::ID != 0, format & read_format::LOST != 0);
        let times = usize::from(format & read_format::TOTAL_TIME_ENABLED != 0)
            + usize::from(format & read_format::TOTAL_TIME_RUNNING != 0);
        let each = 1 + usize::from(has_id) + usize::from(has_lost);
        let group = format & read_format::GROUP != 0;
        let count = if group { words.len().saturating_sub(1 + times) / each } else { 1 };
        (0..count).map_while(move |member| {
            // A single value comes before the times, and its id after them. The members of a group all come
            // after the times.
            let (value, next) = if group {
                let at = 1 + times + member * each;
                (at, at + 1)
            } else {
                (0, 1 + times)
            };
            Some(ReadValue {
                value: words.get(value)?,
                id: if has_id { words.get(next) } else { None },
                lost: if has_lost { words.get(next + usize::from(has_id)) } else { None },
            })
        })
    }
}

/// Branch records, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branches<'a> {
    /// Index of the newest entry in the hardware (`HW_INDEX`).
    pub hw_index: Option<u64>,
    entries: RecordWords<'a>,
    /// One word of counters per entry (`COUNTERS`).
    pub counters: Option<RecordWords<'a>>,
}

/// One branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BranchEntry {
    /// Address of the branch.
    pub from: u64,
    /// Address of its target.
    pub to: u64,
    /// See [`super::decode::BranchFlags`].
    pub flags: super::decode::BranchFlags,
}

impl<'a> Branches<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>, branch_sample_type: u64) -> Option<Self> {
        let count = c.u64()?;
        let hw_index =
            if branch_sample_type & branch_sample_type::HW_INDEX != 0 { Some(c.u64()?) } else { None };
        let entries = c.words(count.checked_mul(3)?)?;
        let counters =
            if branch_sample_type & branch_sample_type::COUNTERS != 0 { Some(c.words(count)?) } else { None };
        Some(Self { hw_index, entries, counters })
    }

    /// Number of branches.
    pub fn len(&self) -> usize {
        self.entries.len() / 3
    }
    /// Whether there are no branches.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Iterates over the branches.
    pub fn iter(&self) -> impl Iterator<Item = BranchEntry> + use<'a> {
        let rows = self.entries.rows();
        rows.map(|[from, to, flags]| BranchEntry { from, to, flags: super::decode::BranchFlags(flags) })
    }
}

/// The registers selected by the attr's mask, in ascending order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledRegisters<'a> {
    /// 1: a 32-bit process, 2: a 64-bit one.
    pub abi: u64,
    /// One bit per register (`asm/perf_regs.h` of the architecture).
    pub mask: u64,
    /// The values.
    pub values: RecordWords<'a>,
}

impl<'a> SampledRegisters<'a> {
    /// Decodes the registers; `Some(None)` if the kernel recorded none.
    pub(super) fn parse(c: &mut Cursor<'a>, mask: u64) -> Option<Option<Self>> {
        match c.u64()? {
            0 => Some(None),
            abi => Some(Some(Self { abi, mask, values: c.words(mask.count_ones().into())? })),
        }
    }

    /// The value of the register with this number.
    #[inline]
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(register)?;
        if self.mask & bit == 0 {
            return None;
        }
        self.values.get((self.mask & (bit - 1)).count_ones() as usize)
    }
}

/// A copy of the user stack from the stack pointer upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// The bytes that the kernel could copy.
    pub bytes: &'a [u8],
    /// The requested size in bytes; the rest is padding.
    pub asked: usize,
    /// Offset of the field from the end of the record, in bytes.
    pub(super) from_end: usize,
}

impl<'a> UserStack<'a> {
    /// Creates a stack copy from bytes that do not come from a record.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, asked: bytes.len(), from_end: 0 }
    }

    /// Decodes the copy; `Some(None)` if nothing was copied.
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Option<Self>> {
        let from_end = c.rest().len();
        let asked = usize::try_from(c.u64()?).ok()?;
        if asked == 0 {
            return Some(None);
        }
        let bytes = c.take(asked)?;
        let copied = usize::try_from(c.u64()?).ok()?.min(asked);
        Some(Some(Self { bytes: &bytes[..copied], asked, from_end }))
    }
}

/// The cost of the sampled instruction, as reported by the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    word: u64,
    is_struct: bool,
}

impl Weight {
    /// The weight that perf prints, usually a number of cycles.
    pub fn value(&self) -> u64 {
        if self.is_struct { u64::from(split(self.word).0) } else { self.word }
    }
    /// The second and third weights of `WEIGHT_STRUCT`: instruction latency and pipeline stage cycles.
    pub fn more(&self) -> Option<(u16, u16)> {
        let [.., a, b, c, d] = self.word.to_ne_bytes();
        self.is_struct.then(|| (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])))
    }
}
