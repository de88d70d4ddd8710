//! Sort keys, with perf's names. They determine which samples share a row.

use std::str::FromStr;

use KeySource::{BranchTarget, Code, Name, Sample};

use super::code_cells::{self, CodeValue};
use super::sample_cells::{self, SampleValueOf};
use crate::session::samples::SampleAttribute;
use pmc_sys::error::Error;
use pmc_text::text;

/// Where the value of a key comes from.
#[derive(Clone, Copy)]
pub(super) enum KeySource {
    /// The name of the thread.
    Name(SampleValueOf),
    /// A property of the sample. Pass 2 over the recording keeps the attribute for it.
    Sample(SampleAttribute, SampleValueOf),
    /// A property of the code. Each caller in a stack has its own value.
    Code(CodeValue),
    /// A property of the code to which a branch leads.
    BranchTarget(CodeValue),
}

/// A row of the table of keys.
struct KeyRow {
    /// The names that the user may type. Output documents use the first one.
    names: &'static [&'static str],
    /// perf's column heading.
    heading: &'static str,
    source: KeySource,
    /// Whether the value needs source lines.
    needs_lines: bool,
}

/// Defines the sort keys. Each row has the key, its names, its heading, where its value comes from, and
/// `lines` if the value needs source lines.
macro_rules! sort_keys {
    ($($(#[doc = $doc:literal])* $key:ident = [$($name:literal),+], $heading:literal, $source:expr $(, $lines:ident)?;)+) => {
        /// A sort key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "perf's names")]
        pub enum SortKey {
            $($(#[doc = $doc])* $key,)+
            /// A tracepoint field: an index into [`Profile::trace_fields`](super::Profile::trace_fields).
            TraceField(u8),
        }

        /// The keys that the user can name, in the order in which messages list them.
        const KEYS: &[SortKey] = &[$(SortKey::$key),+];

        impl SortKey {
            /// Returns the key's row in the table.
            fn row(self) -> KeyRow {
                match self {
                    $(Self::$key => KeyRow {
                        names: &[$($name),+],
                        heading: $heading,
                        source: $source,
                        needs_lines: !concat!($(stringify!($lines))?).is_empty(),
                    },)+
                    Self::TraceField(_) => KeyRow {
                        names: &["trace_field"],
                        heading: "Trace field",
                        source: Sample(SampleAttribute::Payload, sample_cells::payload),
                        needs_lines: false,
                    },
                }
            }
        }
    };
}

sort_keys! {
    Comm = ["comm"], "Command", Name(sample_cells::comm);
    /// A thread, identified by its ID and name; perf's `pid`.
    Thread = ["pid"], "Pid:Command", Sample(SampleAttribute::Tid, sample_cells::task);
    Tid = ["tid"], "Tid", Sample(SampleAttribute::Tid, sample_cells::task_id);
    Dso = ["dso"], "Shared Object", Code(code_cells::module);
    Symbol = ["sym", "symbol", "function"], "Symbol", Code(code_cells::symbol);
    SrcLine = ["srcline"], "Source:Line", Code(code_cells::line), lines;
    SrcFile = ["srcfile"], "Source File", Code(code_cells::file), lines;
    SymbolSize = ["symbol_size"], "Symbol size", Code(code_cells::symbol_size);
    SymbolOffset = ["symoff"], "Symbol Offset", Code(code_cells::symbol_offset);
    DsoSize = ["dso_size"], "DSO size", Code(code_cells::module_size);
    Cpu = ["cpu"], "CPU", Sample(SampleAttribute::Cpu, sample_cells::number);
    Socket = ["socket"], "Socket", Sample(SampleAttribute::Cpu, sample_cells::socket);
    Time = ["time"], "Time", Sample(SampleAttribute::Time(0), sample_cells::time);
    Cgroup = ["cgroup"], "Cgroup", Sample(SampleAttribute::Cgroup, sample_cells::cgroup);
    Trace = ["trace"], "Trace output", Sample(SampleAttribute::Payload, sample_cells::payload);
    Weight = ["weight"], "Weight", Sample(SampleAttribute::Weight, sample_cells::number);
    LocalWeight = ["local_weight"], "Local Weight", Sample(SampleAttribute::Weight, sample_cells::number);
    Addr = ["addr"], "Data Address", Sample(SampleAttribute::Addr, sample_cells::data_address);
    SymbolFrom = ["symbol_from"], "Source Symbol", Sample(SampleAttribute::From, sample_cells::symbol);
    SymbolTo = ["symbol_to"], "Target Symbol", BranchTarget(code_cells::symbol);
    DsoFrom = ["dso_from"], "Source Shared Object", Sample(SampleAttribute::From, sample_cells::module);
    DsoTo = ["dso_to"], "Target Shared Object", BranchTarget(code_cells::module);
    SrcLineFrom = ["srcline_from"], "From Source:Line",
        Sample(SampleAttribute::From, sample_cells::line), lines;
    SrcLineTo = ["srcline_to"], "To Source:Line", BranchTarget(code_cells::line), lines;
    AddrFrom = ["addr_from"], "Source Address", Sample(SampleAttribute::FromAddr, sample_cells::address);
    AddrTo = ["addr_to"], "Target Address", Sample(SampleAttribute::ToAddr, sample_cells::address);
    Mispredict = ["mispredict"], "Branch Mispredicted",
        Sample(SampleAttribute::BranchFlags, sample_cells::prediction);
    InTx = ["in_tx"], "Branch in transaction",
        Sample(SampleAttribute::BranchFlags, sample_cells::in_transaction);
    Abort = ["abort"], "Transaction abort", Sample(SampleAttribute::BranchFlags, sample_cells::abort);
    Cycles = ["cycles"], "Basic Block Cycles", Sample(SampleAttribute::BranchFlags, sample_cells::cycles);
    SymbolDaddr = ["symbol_daddr"], "Data Symbol", Sample(SampleAttribute::Data, sample_cells::symbol);
    DsoDaddr = ["dso_daddr"], "Data Object", Sample(SampleAttribute::Data, sample_cells::module);
    SymbolIaddr = ["symbol_iaddr"], "Code Symbol", Code(code_cells::symbol);
    Mem = ["mem"], "Memory access", Sample(SampleAttribute::DataSrc, sample_cells::memory_level);
    Snoop = ["snoop"], "Snoop", Sample(SampleAttribute::DataSrc, sample_cells::snoop);
    Tlb = ["tlb"], "TLB access", Sample(SampleAttribute::DataSrc, sample_cells::tlb);
    Locked = ["locked"], "Locked", Sample(SampleAttribute::DataSrc, sample_cells::locked);
    Blocked = ["blocked"], "Blocked", Sample(SampleAttribute::DataSrc, sample_cells::blocked);
    MemOp = ["op"], "Mem Op", Sample(SampleAttribute::DataSrc, sample_cells::operation);
    Cache = ["cache"], "Cache", Sample(SampleAttribute::DataSrc, sample_cells::cache);
    Memory = ["memory"], "Memory", Sample(SampleAttribute::DataSrc, sample_cells::memory);
    DTlb = ["dtlb"], "D-TLB", Sample(SampleAttribute::DataSrc, sample_cells::data_tlb);
    DCacheLine = ["dcacheline"], "Data Cacheline", Sample(SampleAttribute::DataLine, sample_cells::symbol);
    PhysDaddr = ["phys_daddr"], "Data Physical Address",
        Sample(SampleAttribute::PhysAddr, sample_cells::address);
    DataPageSize = ["data_page_size"], "Data Page Size",
        Sample(SampleAttribute::DataPage, sample_cells::page_size);
    CodePageSize = ["code_page_size"], "Code Page Size",
        Sample(SampleAttribute::CodePage, sample_cells::page_size);
    InsLatency = ["ins_lat"], "INSTR Latency", Sample(SampleAttribute::InsLatency, sample_cells::number);
    LocalInsLatency = ["local_ins_lat"], "Local INSTR Latency",
        Sample(SampleAttribute::InsLatency, sample_cells::number);
    // The second name is perf's for the same field of a sample.
    StageCycles = ["p_stage_cyc", "retire_lat"], "Pipeline Stage Cycle",
        Sample(SampleAttribute::StageCycles, sample_cells::number);
    LocalStageCycles = ["local_p_stage_cyc", "local_retire_lat"], "Local Pipeline Stage Cycle",
        Sample(SampleAttribute::StageCycles, sample_cells::number);
    Transaction = ["transaction"], "Transaction",
        Sample(SampleAttribute::Transaction, sample_cells::transaction);
    CgroupId = ["cgroup_id"], "cgroup id (dev/inode)", Sample(SampleAttribute::Cgroup, sample_cells::number);
    Parent = ["parent"], "Parent symbol", Sample(SampleAttribute::Parent, sample_cells::parent);
    State = ["state"], "State", Sample(SampleAttribute::State, sample_cells::state);
    WaitSite = ["wait_site"], "Waits for", Sample(SampleAttribute::WaitSite, sample_cells::wait_site);
    WaitFunction = ["wait_func"], "In function",
        Sample(SampleAttribute::WaitFunction, sample_cells::wait_function);
    WaitLine = ["wait_line"], "At line",
        Sample(SampleAttribute::WaitFunction, sample_cells::wait_line), lines;
    Waker = ["waker"], "Woken by", Sample(SampleAttribute::WaitPartner, sample_cells::waker);
    RanInstead = ["ran_instead"], "Ran instead",
        Sample(SampleAttribute::WaitPartner, sample_cells::ran_instead);
    Parallelism = ["parallelism"], "Parallelism", Sample(SampleAttribute::Parallelism, sample_cells::number);
    CommNoDigit = ["comm_nodigit"], "CommNoDigit", Name(sample_cells::comm_without_digits);
    /// A process, identified by its ID and name; perf's `tgid`.
    Process = ["tgid"], "Tgid:Command", Sample(SampleAttribute::Pid, sample_cells::task);
    /// The name that the process had when the sample was taken. pmc's own key: a function of many threads has
    /// one row.
    ProcessName = ["process"], "Process",
        Sample(SampleAttribute::ProcessName, sample_cells::process_name);
}

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
        if let Some(key) = KEYS.iter().find(|key| key.row().names.contains(&name)) {
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
        KEYS.iter().flat_map(|key| key.row().names).copied()
    }

    /// Returns the name that output documents use, which is the first of the key's names.
    pub fn name(self) -> &'static str {
        self.row().names[0]
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
        self.row().heading
    }

    /// Returns where the key's value comes from.
    pub(super) fn source(self) -> KeySource {
        self.row().source
    }

    /// Returns the function that returns the key's value, if the key is a property of the code.
    pub(super) fn code_value(self) -> Option<CodeValue> {
        match self.source() {
            Code(value) | BranchTarget(value) => Some(value),
            Name(_) | Sample(..) => None,
        }
    }

    /// Whether the key is a property of the code. If so, each caller in a stack has its own value.
    pub(crate) fn is_of_code(self) -> bool {
        self.code_value().is_some()
    }

    /// Whether the key is derived from the thread's name.
    pub(crate) fn is_of_name(self) -> bool {
        matches!(self.source(), Name(_))
    }

    /// Whether the key is a property of a branch.
    pub fn is_of_branch(self) -> bool {
        use SampleAttribute::{BranchFlags, From, FromAddr, ToAddr};
        matches!(self.source(), BranchTarget(_) | Sample(BranchFlags | From | FromAddr | ToAddr, _))
    }

    /// Whether the key needs source lines.
    pub fn needs_lines(self) -> bool {
        self.row().needs_lines
    }

    /// Returns the sample attribute that pass 2 over the recording must keep for this key. Returns `None` if
    /// the key is a property of the code or of the thread's name.
    fn attribute(self, slice: u64) -> Option<SampleAttribute> {
        match self.source() {
            Sample(SampleAttribute::Time(_), _) => Some(SampleAttribute::Time(slice)),
            Sample(attribute, _) => Some(attribute),
            Name(_) | Code(_) | BranchTarget(_) => None,
        }
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
