//! Sort keys, with perf's names. They determine which samples share a row.

use std::str::FromStr;

use super::strings::StringId;
use crate::session::samples::SampleAttribute;
use pmc_sys::error::Error;
use pmc_text::text;

/// A sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "perf's names")]
pub enum SortKey {
    Comm,
    /// A thread, identified by its ID and name; perf's `pid`.
    Thread,
    /// A process, identified by its ID and name; perf's `tgid`.
    Process,
    Tid,
    Dso,
    Symbol,
    SrcLine,
    SrcFile,
    SymbolSize,
    SymbolOffset,
    DsoSize,
    Cpu,
    Socket,
    Time,
    Cgroup,
    Trace,
    Period,
    Weight,
    LocalWeight,
    Addr,
    SymbolFrom,
    SymbolTo,
    DsoFrom,
    DsoTo,
    SrcLineFrom,
    SrcLineTo,
    AddrFrom,
    AddrTo,
    Mispredict,
    InTx,
    Abort,
    Cycles,
    SymbolDaddr,
    DsoDaddr,
    SymbolIaddr,
    Mem,
    Snoop,
    Tlb,
    Locked,
    Blocked,
    MemOp,
    Cache,
    Memory,
    DTlb,
    DCacheLine,
    PhysDaddr,
    DataPageSize,
    CodePageSize,
    InsLatency,
    LocalInsLatency,
    StageCycles,
    LocalStageCycles,
    Transaction,
    CgroupId,
    Parent,
    State,
    WaitSite,
    WaitFunction,
    WaitLine,
    Waker,
    RanInstead,
    Parallelism,
    CommNoDigit,
    /// A tracepoint field: an index into [`Profile::trace_fields`](super::Profile::trace_fields).
    TraceField(u8),
}

/// The name that the user types, the key, and perf's column heading.
const KEYS: &[(&str, SortKey, &str)] = &[
    ("comm", SortKey::Comm, "Command"),
    ("pid", SortKey::Thread, "Pid:Command"),
    ("tid", SortKey::Tid, "Tid"),
    ("dso", SortKey::Dso, "Shared Object"),
    ("sym", SortKey::Symbol, "Symbol"),
    ("symbol", SortKey::Symbol, "Symbol"),
    ("function", SortKey::Symbol, "Symbol"),
    ("srcline", SortKey::SrcLine, "Source:Line"),
    ("srcfile", SortKey::SrcFile, "Source File"),
    ("symbol_size", SortKey::SymbolSize, "Symbol size"),
    ("symoff", SortKey::SymbolOffset, "Symbol Offset"),
    ("dso_size", SortKey::DsoSize, "DSO size"),
    ("cpu", SortKey::Cpu, "CPU"),
    ("socket", SortKey::Socket, "Socket"),
    ("time", SortKey::Time, "Time"),
    ("cgroup", SortKey::Cgroup, "Cgroup"),
    ("trace", SortKey::Trace, "Trace output"),
    ("weight", SortKey::Weight, "Weight"),
    ("local_weight", SortKey::LocalWeight, "Local Weight"),
    ("addr", SortKey::Addr, "Data Address"),
    ("symbol_from", SortKey::SymbolFrom, "Source Symbol"),
    ("symbol_to", SortKey::SymbolTo, "Target Symbol"),
    ("dso_from", SortKey::DsoFrom, "Source Shared Object"),
    ("dso_to", SortKey::DsoTo, "Target Shared Object"),
    ("srcline_from", SortKey::SrcLineFrom, "From Source:Line"),
    ("srcline_to", SortKey::SrcLineTo, "To Source:Line"),
    ("addr_from", SortKey::AddrFrom, "Source Address"),
    ("addr_to", SortKey::AddrTo, "Target Address"),
    ("mispredict", SortKey::Mispredict, "Branch Mispredicted"),
    ("in_tx", SortKey::InTx, "Branch in transaction"),
    ("abort", SortKey::Abort, "Transaction abort"),
    ("cycles", SortKey::Cycles, "Basic Block Cycles"),
    ("symbol_daddr", SortKey::SymbolDaddr, "Data Symbol"),
    ("dso_daddr", SortKey::DsoDaddr, "Data Object"),
    ("symbol_iaddr", SortKey::SymbolIaddr, "Code Symbol"),
    ("mem", SortKey::Mem, "Memory access"),
    ("snoop", SortKey::Snoop, "Snoop"),
    ("tlb", SortKey::Tlb, "TLB access"),
    ("locked", SortKey::Locked, "Locked"),
    ("blocked", SortKey::Blocked, "Blocked"),
    ("op", SortKey::MemOp, "Mem Op"),
    ("cache", SortKey::Cache, "Cache"),
    ("memory", SortKey::Memory, "Memory"),
    ("dtlb", SortKey::DTlb, "D-TLB"),
    ("dcacheline", SortKey::DCacheLine, "Data Cacheline"),
    ("phys_daddr", SortKey::PhysDaddr, "Data Physical Address"),
    ("data_page_size", SortKey::DataPageSize, "Data Page Size"),
    ("code_page_size", SortKey::CodePageSize, "Code Page Size"),
    ("ins_lat", SortKey::InsLatency, "INSTR Latency"),
    ("local_ins_lat", SortKey::LocalInsLatency, "Local INSTR Latency"),
    ("p_stage_cyc", SortKey::StageCycles, "Pipeline Stage Cycle"),
    ("local_p_stage_cyc", SortKey::LocalStageCycles, "Local Pipeline Stage Cycle"),
    ("transaction", SortKey::Transaction, "Transaction"),
    ("cgroup_id", SortKey::CgroupId, "cgroup id (dev/inode)"),
    ("parent", SortKey::Parent, "Parent symbol"),
    ("state", SortKey::State, "State"),
    ("wait_site", SortKey::WaitSite, "Waits for"),
    ("wait_func", SortKey::WaitFunction, "In function"),
    ("wait_line", SortKey::WaitLine, "At line"),
    ("waker", SortKey::Waker, "Woken by"),
    ("ran_instead", SortKey::RanInstead, "Ran instead"),
    ("parallelism", SortKey::Parallelism, "Parallelism"),
    ("comm_nodigit", SortKey::CommNoDigit, "CommNoDigit"),
    ("tgid", SortKey::Process, "Tgid:Command"),
    // These are perf's names for the same field of a sample.
    ("retire_lat", SortKey::StageCycles, "Pipeline Stage Cycle"),
    ("local_retire_lat", SortKey::LocalStageCycles, "Local Pipeline Stage Cycle"),
];

const NO_TYPES: &str = "pmc does not determine data types; symbol_daddr names variables";
const NO_JOINING: &str = "pmc does not combine branches with call chains; with -b use cycles and mispredict";

/// perf's sort keys that pmc does not support, and why.
const REFUSED: &[(&str, &str)] = &[
    ("ipc_lbr", "this requires the length of every basic block"),
    ("ipc_null", "perf uses this key only as a placeholder; it has no values"),
    ("type", NO_TYPES),
    ("typeoff", NO_TYPES),
    ("typecln", NO_TYPES),
    ("simd", "it requires an Arm SPE trace, which pmc does not decode; perf report reads the same file"),
    ("callchain_branch_predicted", NO_JOINING),
    ("callchain_branch_abort", NO_JOINING),
    ("callchain_branch_cycles", NO_JOINING),
];

impl FromStr for SortKey {
    type Err = Error;

    /// Returns the key with this name. For an unknown name, the error suggests similar ones.
    fn from_str(name: &str) -> Result<Self, Error> {
        let name = name.trim();
        if let Some((_, key, _)) = KEYS.iter().find(|(known, ..)| *known == name) {
            return Ok(*key);
        }
        if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
            return Err(Error::usage(format!("pmc has no sort key {name:?}")).why(*why));
        }
        let error = Error::usage(format!("unknown sort key {name:?}"));
        let near = text::nearest(name, Self::names(), 3);
        Err(match near.first() {
            Some(_) => error.try_this(format!("did you mean {}?", near.join(" or "))),
            None => error.try_this(format!("one of {}", Self::names().collect::<Vec<_>>().join(", "))),
        })
    }
}

impl SortKey {
    /// Whether a name that is not a sort key may be a tracepoint field: it has the syntax of a field, or does
    /// not resemble any sort key.
    pub(crate) fn may_be_trace_field(name: &str) -> bool {
        let is_refused = REFUSED.iter().any(|(known, _)| *known == name);
        name.contains(['.', '/'])
            || name == "trace_fields"
            || !is_refused && text::nearest(name, Self::names(), 1).is_empty()
    }

    /// Returns all names, for suggestions after a typo.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(|(name, ..)| *name)
    }

    /// Returns the name that output documents use, which is the first of the key's names.
    pub fn name(self) -> &'static str {
        KEYS.iter().find(|(_, key, _)| *key == self).map_or("period", |(name, ..)| name)
    }

    /// Returns the name of the field in JSON documents. perf's key `pid` separates threads, so its numbers
    /// are thread IDs and the field is `tid`.
    pub fn field_name(self) -> &'static str {
        match self {
            Self::Thread => Self::Tid.name(),
            key => key.name(),
        }
    }

    /// Returns the key's column heading.
    pub fn heading(self) -> &'static str {
        KEYS.iter().find(|(_, key, _)| *key == self).map_or("Period", |(.., heading)| heading)
    }

    /// Whether the key is a property of the code. If so, each caller in a stack has its own value.
    pub(crate) fn is_of_code(self) -> bool {
        !self.is_of_name() && self.attribute(0).is_none()
    }

    /// Whether the key is derived from the thread's name.
    pub(crate) fn is_of_name(self) -> bool {
        matches!(self, Self::Comm | Self::CommNoDigit)
    }

    /// Whether the key is a property of a branch.
    pub fn is_of_branch(self) -> bool {
        matches!(
            self,
            Self::SymbolFrom
                | Self::SymbolTo
                | Self::DsoFrom
                | Self::DsoTo
                | Self::SrcLineFrom
                | Self::SrcLineTo
                | Self::AddrFrom
                | Self::AddrTo
                | Self::Mispredict
                | Self::InTx
                | Self::Abort
                | Self::Cycles
        )
    }

    /// Whether the key needs source lines.
    pub fn needs_lines(self) -> bool {
        matches!(self, Self::SrcLine | Self::SrcFile | Self::SrcLineFrom | Self::SrcLineTo | Self::WaitLine)
    }

    /// Returns the sample attribute that pass 2 over the recording must keep for this key. Returns `None` if
    /// the key is a property of the code or of the thread's name.
    pub(crate) fn attribute(self, slice: u64) -> Option<SampleAttribute> {
        Some(match self {
            Self::Comm | Self::CommNoDigit => return None,
            Self::Dso | Self::Symbol | Self::SymbolSize | Self::SymbolOffset | Self::DsoSize => return None,
            Self::SrcLine | Self::SrcFile | Self::SymbolIaddr => return None,
            Self::SymbolTo | Self::DsoTo | Self::SrcLineTo => return None,
            Self::Process => SampleAttribute::Pid,
            Self::Thread | Self::Tid => SampleAttribute::Tid,
            Self::Cpu | Self::Socket => SampleAttribute::Cpu,
            Self::Time => SampleAttribute::Time(slice),
            Self::Cgroup | Self::CgroupId => SampleAttribute::Cgroup,
            Self::Trace | Self::TraceField(_) => SampleAttribute::Payload,
            Self::Weight | Self::LocalWeight => SampleAttribute::Weight,
            Self::Addr => SampleAttribute::Addr,
            Self::SymbolFrom | Self::DsoFrom | Self::SrcLineFrom => SampleAttribute::From,
            Self::AddrFrom => SampleAttribute::FromAddr,
            Self::AddrTo => SampleAttribute::ToAddr,
            Self::Mispredict | Self::InTx | Self::Abort | Self::Cycles => SampleAttribute::BranchFlags,
            Self::SymbolDaddr | Self::DsoDaddr => SampleAttribute::Data,
            Self::DCacheLine => SampleAttribute::DataLine,
            Self::Mem | Self::Snoop | Self::Tlb | Self::Locked | Self::Blocked => SampleAttribute::DataSrc,
            Self::MemOp | Self::Cache | Self::Memory | Self::DTlb => SampleAttribute::DataSrc,
            Self::PhysDaddr => SampleAttribute::PhysAddr,
            Self::DataPageSize => SampleAttribute::DataPage,
            Self::CodePageSize => SampleAttribute::CodePage,
            Self::InsLatency | Self::LocalInsLatency => SampleAttribute::InsLatency,
            Self::StageCycles | Self::LocalStageCycles => SampleAttribute::StageCycles,
            Self::Transaction => SampleAttribute::Transaction,
            Self::Parent => SampleAttribute::Parent,
            Self::State => SampleAttribute::State,
            Self::WaitSite => SampleAttribute::WaitSite,
            Self::WaitFunction | Self::WaitLine => SampleAttribute::WaitFunction,
            Self::Waker | Self::RanInstead => SampleAttribute::WaitPartner,
            Self::Parallelism => SampleAttribute::Parallelism,
            Self::Period => SampleAttribute::Period,
        })
    }
}

/// Returns the sample attributes that pass 2 over the recording must keep for these keys, without duplicates.
pub fn attributes<'a>(keys: impl IntoIterator<Item = &'a SortKey>, slice: u64) -> Vec<SampleAttribute> {
    let mut attributes = Vec::new();
    add_attributes(&mut attributes, keys.into_iter().filter_map(|key| key.attribute(slice)));
    attributes
}

/// Adds attributes that are not present yet.
pub fn add_attributes(
    attributes: &mut Vec<SampleAttribute>,
    more: impl IntoIterator<Item = SampleAttribute>,
) {
    for attribute in more {
        if !attributes.contains(&attribute) {
            attributes.push(attribute);
        }
    }
}

/// One cell of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowCell {
    /// Text.
    Text(StringId),
    /// A function, with the letter of its CPU mode.
    Symbol(char, StringId),
    /// A line in a source file.
    Line(StringId, u32),
    /// An offset in bytes from the start of a function, with the letter of its CPU mode.
    Offset(char, StringId, u32),
    /// Code without source lines: offset in bytes from the start of a function, as perf shows it for
    /// `srcline`.
    InFunction(StringId, u32),
    /// Code without source lines or symbols: an address in the module's own address space.
    InModule(StringId, u64),
    /// A thread or process: its ID and last name.
    Task(i64, StringId),
    /// A number.
    Number(i64),
    /// An address.
    Address(u64),
    /// Time in nanoseconds.
    Time(u64),
    /// An unknown value.
    Unknown,
}
