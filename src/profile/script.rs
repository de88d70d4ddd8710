//! Samples one by one, with names: what `pmc script` prints.
//!
//! Plain data: `analysis` fills in an [`Entry`] for each sample, a view prints it. [`Fields`] says what of
//! it.

use std::sync::Arc;

/// What samples and other records hold, for those who print it.
use crate::record::decode::{BranchFlags, DataSource};
use crate::record::sample::{ReadValues, Registers, Weight};
use crate::record::{RawRecord, Record, Sample};

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The address as it was recorded.
    pub address: u64,
    /// The place in the file for code that is mapped from one, else the address.
    pub offset: u64,
    /// The function; foreign text.
    pub symbol: Option<Arc<str>>,
    /// Bytes from its start.
    pub into: u64,
    /// Bytes of the function; 0 where that is not known.
    pub size: u64,
    /// The module's path; foreign text.
    pub dso: Option<Arc<str>>,
    /// Source file and line.
    pub source: Option<(Arc<str>, u32)>,
    /// The file of its code was found.
    pub has_file: bool,
    /// Inlined into the function of the next place.
    pub inlined: bool,
    /// Whether the address is the kernel's.
    pub in_kernel: bool,
}

/// The places at all addresses of a recording: one an address, several where calls were inlined.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Place>,
    ends: Vec<u32>,
}

impl Places {
    /// Adds what stands at the next address, innermost first.
    pub fn push(&mut self, places: impl IntoIterator<Item = Place>) {
        self.all.extend(places);
        self.ends.push(self.all.len() as u32);
    }

    /// What stands at the address of this number; nothing for a number that was never given.
    pub fn at(&self, number: u32) -> &[Place] {
        let number = number as usize;
        let Some(&end) = self.ends.get(number) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start as usize..end as usize]
    }

    /// Number of addresses.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// A branch with the numbers of the addresses at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Where from.
    pub from: u64,
    /// Where to.
    pub to: u64,
    /// Predicted, in a transaction, cycles.
    pub flags: BranchFlags,
    /// Number of `from` in [`Places`].
    pub from_at: u32,
    /// Number of `to` in [`Places`].
    pub to_at: u32,
}

/// One sample. Fields that were not recorded are `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry<'a> {
    /// The thread's name; foreign text.
    pub comm: &'a str,
    /// The process.
    pub pid: Option<i32>,
    /// The thread.
    pub tid: Option<i32>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Nanoseconds.
    pub time: Option<u64>,
    /// Occurrences.
    pub period: Option<u64>,
    /// Index of the event.
    pub event: usize,
    /// The record's `misc` bits.
    pub misc: u16,
    /// Address of the data.
    pub addr: Option<u64>,
    /// Its number in [`Places`], where names of data were asked for.
    pub addr_at: Option<u32>,
    /// Cost of the instruction.
    pub weight: Option<Weight>,
    /// Where the data came from.
    pub data_src: Option<DataSource>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// The event's own id, where children inherited it: that of their copy.
    pub stream_id: Option<u64>,
    /// Bytes of the data's page.
    pub data_page: Option<u64>,
    /// Bytes of the code's page.
    pub code_page: Option<u64>,
    /// Path of the cgroup, or its number; foreign text.
    pub cgroup: Option<&'a str>,
    /// Registers of the process.
    pub user_regs: Option<Registers<'a>>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'a>>,
    /// Last branches, newest first.
    pub branches: &'a [Branch],
    /// A tracepoint's payload as text; foreign.
    pub trace: Option<&'a str>,
    /// Its fields by name, where they were asked for; foreign.
    pub trace_fields: &'a [(String, String)],
    /// The bytes of a BPF program's output.
    pub bpf: Option<&'a [u8]>,
    /// Numbers of the addresses, innermost first; one where there is no call chain.
    pub places: &'a [u32],
    /// Whether the places are a call chain.
    pub has_chain: bool,
}

/// A record as it lies in the file, with whose it is.
#[derive(Debug, Clone)]
pub struct Dumped<'a> {
    /// Its bytes.
    pub raw: RawRecord<'a>,
    /// The file; foreign text.
    pub file: &'a str,
    /// Its offset in it.
    pub offset: u64,
    /// The CPU, where the recording has CPUs: `Some(None)` where such a record has none.
    pub cpu: Option<Option<u64>>,
    /// When, in nanoseconds; likewise.
    pub time: Option<Option<u64>>,
    /// Its fields; `None` when it is too short for them.
    pub record: Option<Record<'a>>,
    /// What it holds that has no fields, in words.
    pub words: Option<String>,
    /// The event of a sample or of counts; foreign text.
    pub event: Option<&'a str>,
    /// The counts of a `READ`.
    pub values: Option<ReadValues<'a>>,
    /// A sample's fields; `None` for other records, and where the event is not known.
    pub sample: Option<Sample<'a>>,
    /// Occurrences that it stands for: its own, or its event's.
    pub period: u64,
    /// Its branches are its callers (LBR call stacks).
    pub calls_are_branches: bool,
    /// Whose sample it is.
    pub owner: Option<Owner>,
    /// The machine's registers are those of `aarch64`, not of `x86_64`.
    pub is_aarch64: bool,
}

/// Whose a sample is; foreign text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The thread's name.
    pub comm: String,
    /// What was running.
    pub dso: Option<String>,
}

/// A field of a line, by perf's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "perf's names")]
pub enum Field {
    Comm,
    Pid,
    Tid,
    Cpu,
    Time,
    Event,
    Period,
    Trace,
    Ip,
    Sym,
    SymOff,
    Dso,
    Addr,
    SrcLine,
    Weight,
    PhysAddr,
    Misc,
    UserRegs,
    IntrRegs,
    BrStack,
    BrStackSym,
    BrStackOff,
    DataSrc,
    DataPageSize,
    CodePageSize,
    InsLat,
    Flags,
    Synth,
    BpfOutput,
    SrcCode,
    Cgroup,
    Ipc,
    CallIndent,
    Tod,
    StreamId,
    DsOff,
    MachinePid,
    Vcpu,
}

/// All fields with their names.
pub const FIELDS: [(&str, Field); 38] = [
    ("comm", Field::Comm),
    ("pid", Field::Pid),
    ("tid", Field::Tid),
    ("cpu", Field::Cpu),
    ("time", Field::Time),
    ("event", Field::Event),
    ("period", Field::Period),
    ("trace", Field::Trace),
    ("ip", Field::Ip),
    ("sym", Field::Sym),
    ("symoff", Field::SymOff),
    ("dso", Field::Dso),
    ("addr", Field::Addr),
    ("srcline", Field::SrcLine),
    ("weight", Field::Weight),
    ("phys_addr", Field::PhysAddr),
    ("misc", Field::Misc),
    ("uregs", Field::UserRegs),
    ("iregs", Field::IntrRegs),
    ("brstack", Field::BrStack),
    ("brstacksym", Field::BrStackSym),
    ("brstackoff", Field::BrStackOff),
    ("data_src", Field::DataSrc),
    ("data_page_size", Field::DataPageSize),
    ("code_page_size", Field::CodePageSize),
    ("ins_lat", Field::InsLat),
    ("flags", Field::Flags),
    ("synth", Field::Synth),
    ("bpf-output", Field::BpfOutput),
    ("srccode", Field::SrcCode),
    ("cgroup", Field::Cgroup),
    ("ipc", Field::Ipc),
    ("callindent", Field::CallIndent),
    ("tod", Field::Tod),
    ("stream_id", Field::StreamId),
    ("dsoff", Field::DsOff),
    // Of samples of guests, which no recording that pmc reads has: empty.
    ("machine_pid", Field::MachinePid),
    ("vcpu", Field::Vcpu),
];

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fields(u64);

impl Fields {
    /// Those of a list.
    pub fn of(list: &[Field]) -> Self {
        let mut fields = Self::default();
        list.iter().for_each(|field| fields.set(*field, true));
        fields
    }

    /// Whether a field is in it.
    pub fn has(self, field: Field) -> bool {
        self.0 >> field as u32 & 1 == 1
    }

    /// Whether one of these is in it.
    pub fn has_any(self, list: &[Field]) -> bool {
        list.iter().any(|field| self.has(*field))
    }

    /// Whether none is in it: events of this kind are not printed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Puts a field in or takes it out.
    pub fn set(&mut self, field: Field, on: bool) {
        let bit = 1 << field as u32;
        if on { self.0 |= bit } else { self.0 &= !bit }
    }
}
