//! Individual samples with resolved names, as printed by `pmc script`.
//!
//! Contains only plain data. `analysis` fills in one [`ScriptEntry`] per sample, and a view prints it.
//! [`ScriptFields`] selects the fields to print.

use std::sync::Arc;

use pmc_perfdata::record::decode::BranchFlags;
use pmc_perfdata::record::sample::{ReadValues, SampleParts};
use pmc_perfdata::record::{RawRecord, Record, Sample};
pub use pmc_symbols::symbol::disassemble::{Flow, Instruction};
use pmc_sys::abi::sample_type;

/// A function at a recorded address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressFunction {
    /// The recorded address.
    pub address: u64,
    /// Offset in the mapped file, or the address if the code is not mapped from a file.
    pub offset: u64,
    /// The function's name; untrusted text.
    pub symbol: Option<Arc<str>>,
    /// Offset from the function's start, in bytes.
    pub into: u64,
    /// Size of the function in bytes; 0 if unknown.
    pub size: u64,
    /// The module's path; untrusted text.
    pub dso: Option<Arc<str>>,
    /// Source file and line.
    pub source: Option<(Arc<str>, u32)>,
    /// The module's index in the recording.
    pub module: Option<u32>,
    /// Whether the file with the code was found.
    pub has_file: bool,
    /// Whether the function is inlined into the next function at the same address.
    pub inlined: bool,
    /// Whether the address is in the kernel.
    pub in_kernel: bool,
    /// Whether the function is from an imported profile. The import made up its address, offsets and size.
    pub is_imported: bool,
}

/// The source locations of all addresses in a recording: one per address, or several where calls were
/// inlined.
#[derive(Debug, Default)]
pub struct AddressFunctions {
    all: Vec<AddressFunction>,
    ends: Vec<u32>,
}

impl AddressFunctions {
    /// Adds the functions at the next address, innermost first.
    pub fn push(&mut self, places: impl IntoIterator<Item = AddressFunction>) {
        self.all.extend(places);
        self.ends.push(self.all.len() as u32);
    }

    /// Returns the functions at the address with this index; empty if the index is out of range.
    pub fn at(&self, number: u32) -> &[AddressFunction] {
        let number = number as usize;
        let Some(&end) = self.ends.get(number) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start as usize..end as usize]
    }

    /// Returns the number of addresses.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no addresses.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// A branch, with references to the functions at its source and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptBranch {
    /// The source address.
    pub from: u64,
    /// The target address.
    pub to: u64,
    /// Flags and cycles of the branch. The flags show, for example, whether the branch was predicted.
    pub flags: BranchFlags,
    /// Index of the address `from` in [`AddressFunctions`].
    pub from_at: u32,
    /// Index of the address `to` in [`AddressFunctions`].
    pub to_at: u32,
}

/// One line in the listing of the code that ran between branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchLine {
    /// The following code is in a different function from the code above.
    Function {
        /// The function's name; untrusted text.
        name: String,
        /// Offset of the code from the function's start, in bytes.
        into: u64,
    },
    /// An instruction.
    Instruction {
        /// Its address in the process.
        address: u64,
        /// The instruction, with addresses in its file.
        code: Arc<Instruction>,
        /// The branch, if this instruction is the source of one.
        branch: Option<BranchEnd>,
    },
    /// The code in the file does not lead to the next branch.
    Mismatch,
    /// The code branches elsewhere before the sampled address.
    NotReached,
    /// The remaining code is not shown, because it exceeds the limit for one sample.
    TooLong,
}

/// A branch at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchEnd {
    /// Flags and cycles of the branch.
    pub flags: BranchFlags,
    /// Sum of the cycles up to this branch.
    pub total_cycles: u32,
    /// Number of instructions in the block; 0 if its start is unknown.
    pub instructions: u32,
}

/// One sample. Fields that were not recorded are `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptEntry<'a> {
    /// The thread's name; untrusted text.
    pub comm: &'a str,
    /// The process id.
    pub pid: Option<i32>,
    /// The thread id.
    pub tid: Option<i32>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Timestamp in nanoseconds.
    pub time: Option<u64>,
    /// Number of events that the sample represents.
    pub period: Option<u64>,
    /// Index of the event.
    pub event: usize,
    /// The record's `misc` bits.
    pub misc: u16,
    /// Address of the accessed data.
    pub addr: Option<u64>,
    /// Index of the address `addr` in [`AddressFunctions`], if names of data were requested.
    pub addr_at: Option<u32>,
    /// The recorded fields that few samples have.
    pub parts: SampleParts<'a>,
    /// Id of the event instance itself: for events inherited by a child, the id of the child's copy.
    pub stream_id: Option<u64>,
    /// Path of the cgroup, or its number; untrusted text.
    pub cgroup: Option<&'a str>,
    /// The last branches, newest first.
    pub branches: &'a [ScriptBranch],
    /// A tracepoint's payload as text; untrusted.
    pub trace: Option<&'a str>,
    /// The tracepoint's fields by name, if they were requested; untrusted.
    pub trace_fields: &'a [(String, String)],
    /// A tracepoint's payload.
    pub payload: Option<&'a [u8]>,
    /// The bytes of a BPF program's output.
    pub bpf: Option<&'a [u8]>,
    /// Indices of the sampled addresses in [`AddressFunctions`], innermost first. If there is no call chain,
    /// contains only one address.
    pub places: &'a [u32],
    /// Whether `places` is a call chain.
    pub has_chain: bool,
    /// The sampled instruction, if it was requested and its code was found.
    pub instruction: Option<&'a Instruction>,
    /// The code between the branches, oldest first, if it was requested.
    pub blocks: &'a [BranchLine],
}

/// A record as stored in the file; for a sample, also its owner.
#[derive(Debug, Clone)]
pub struct DumpedRecord<'a> {
    /// The record's bytes.
    pub raw: RawRecord<'a>,
    /// Path of the file; untrusted text.
    pub file: &'a str,
    /// Offset of the record in the file.
    pub offset: u64,
    /// The CPU, if the recording stores CPUs; `Some(None)` if this record has no CPU.
    pub cpu: Option<Option<u64>>,
    /// Timestamp in nanoseconds, if the recording stores timestamps; `Some(None)` if this record has no
    /// timestamp.
    pub time: Option<Option<u64>>,
    /// The record's fields; `None` if the record is too short for them.
    pub record: Option<Record<'a>>,
    /// Description of a header record in a stream: an event's attributes, or the name of a section. `None`
    /// for all other records.
    pub words: Option<String>,
    /// The event of a sample or of counts; untrusted text.
    pub event: Option<&'a str>,
    /// The counts in a `READ` record.
    pub values: Option<ReadValues<'a>>,
    /// A sample's fields; `None` for other records, and if the event is unknown.
    pub sample: Option<Sample<'a>>,
    /// Number of events that the sample represents: the period in the sample, or else the event's period.
    pub period: u64,
    /// Whether the sample's branches are its callers (LBR call stacks).
    pub calls_are_branches: bool,
    /// The sample's thread and module.
    pub owner: Option<SampleOwner>,
    /// Whether the recorded machine is `aarch64`, which determines the names of its registers; otherwise
    /// `x86_64`.
    pub is_aarch64: bool,
}

/// The thread and module to which a sample belongs; untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleOwner {
    /// The thread's name.
    pub comm: String,
    /// The module whose code was running.
    pub dso: Option<String>,
}

/// Defines the output fields. Each row has the field, perf's name for it, and the sample fields that it
/// requires (`PERF_SAMPLE_*`), one of which must be recorded.
macro_rules! script_fields {
    ($($field:ident = $name:literal $(, needs $needs:expr)?;)+) => {
        /// An output field, with perf's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "perf's names")]
        pub enum ScriptField {
            $($field,)+
        }

        impl ScriptField {
            /// All fields.
            pub const ALL: &[Self] = &[$(Self::$field),+];

            /// Returns perf's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)+
                }
            }

            /// Returns the sample fields one of which the field requires; `None` if it requires none.
            pub(crate) fn needs(self) -> Option<u64> {
                match self {
                    $(Self::$field => [$($needs)?].first().copied(),)+
                }
            }
        }
    };
}

script_fields! {
    Comm = "comm";
    Pid = "pid", needs sample_type::TID;
    Tid = "tid", needs sample_type::TID;
    Cpu = "cpu", needs sample_type::CPU;
    Time = "time", needs sample_type::TIME;
    Event = "event";
    Period = "period";
    Trace = "trace";
    Ip = "ip";
    Sym = "sym";
    SymOff = "symoff";
    Dso = "dso";
    Addr = "addr", needs sample_type::ADDR;
    SrcLine = "srcline";
    Weight = "weight", needs sample_type::WEIGHT | sample_type::WEIGHT_STRUCT;
    PhysAddr = "phys_addr", needs sample_type::PHYS_ADDR;
    Misc = "misc";
    UserRegs = "uregs", needs sample_type::REGS_USER;
    IntrRegs = "iregs", needs sample_type::REGS_INTR;
    BrStack = "brstack", needs sample_type::BRANCH_STACK;
    BrStackSym = "brstacksym", needs sample_type::BRANCH_STACK;
    BrStackOff = "brstackoff", needs sample_type::BRANCH_STACK;
    DataSrc = "data_src", needs sample_type::DATA_SRC;
    DataPageSize = "data_page_size", needs sample_type::DATA_PAGE_SIZE;
    CodePageSize = "code_page_size", needs sample_type::CODE_PAGE_SIZE;
    InsLat = "ins_lat", needs sample_type::WEIGHT_STRUCT;
    Flags = "flags";
    Synth = "synth";
    BpfOutput = "bpf-output";
    SrcCode = "srccode";
    Cgroup = "cgroup", needs sample_type::CGROUP;
    Ipc = "ipc";
    CallIndent = "callindent";
    Tod = "tod", needs sample_type::TIME;
    StreamId = "stream_id", needs sample_type::STREAM_ID;
    DsOff = "dsoff";
    // Fields for guest samples. They are always empty, because no recording that pmc reads contains samples
    // of guests.
    MachinePid = "machine_pid";
    Vcpu = "vcpu";
    Insn = "insn";
    InsnLen = "insnlen";
    Disasm = "disasm";
    RetireLat = "retire_lat", needs sample_type::WEIGHT_STRUCT;
    BrStackInsn = "brstackinsn", needs sample_type::BRANCH_STACK;
    BrStackInsnLen = "brstackinsnlen", needs sample_type::BRANCH_STACK;
    BrStackDisasm = "brstackdisasm", needs sample_type::BRANCH_STACK;
}

// A set of fields has a bit for each.
const _: () = assert!(ScriptField::ALL.len() <= 64);

/// Fields that show the code between branches.
pub const BLOCK_FIELDS: [ScriptField; 3] =
    [ScriptField::BrStackInsn, ScriptField::BrStackInsnLen, ScriptField::BrStackDisasm];

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ScriptFields(u64);

impl ScriptFields {
    /// Creates a set from a list.
    pub fn from_list(list: &[ScriptField]) -> Self {
        let mut fields = Self::default();
        list.iter().for_each(|field| fields.set(*field, true));
        fields
    }

    /// Whether the set contains a field.
    pub fn has(self, field: ScriptField) -> bool {
        self.0 >> field as u32 & 1 == 1
    }

    /// Whether the set contains one of these fields.
    pub fn has_any(self, list: &[ScriptField]) -> bool {
        list.iter().any(|field| self.has(*field))
    }

    /// Whether the set is empty. Events with an empty set are not printed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds or removes a field.
    pub(crate) fn set(&mut self, field: ScriptField, on: bool) {
        let bit = 1 << field as u32;
        if on { self.0 |= bit } else { self.0 &= !bit }
    }
}
