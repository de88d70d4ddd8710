//! Samples one by one, with names: what `pmc script` prints.

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The address as it was recorded.
    pub address: u64,
    /// The place in the file for code that is mapped from one, else the address.
    pub offset: u64,
    /// The function; foreign text.
    pub symbol: Option<String>,
    /// Bytes from its start.
    pub into: u64,
    /// The module's path; foreign text.
    pub dso: Option<String>,
    /// Source file and line.
    pub source: Option<(String, u32)>,
    /// Inlined into the function of the next place.
    pub inlined: bool,
    /// Whether the address is the kernel's.
    pub in_kernel: bool,
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
    /// Address of the data.
    pub addr: Option<u64>,
    /// Cost of the instruction.
    pub weight: Option<u64>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// A tracepoint's payload as text; foreign.
    pub trace: Option<&'a str>,
    /// Numbers of the places, innermost first; one where there is no call chain.
    pub places: &'a [u32],
    /// Whether the places are a call chain.
    pub has_chain: bool,
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
}

/// All fields with their names.
pub const FIELDS: [(&str, Field); 16] = [
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
];

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields(u32);

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

    /// Puts a field in or takes it out.
    pub fn set(&mut self, field: Field, on: bool) {
        let bit = 1 << field as u32;
        if on { self.0 |= bit } else { self.0 &= !bit }
    }
}
