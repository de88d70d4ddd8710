//! The feature sections: perf's metadata about the machine, the command and the events, which is stored
//! separately from the records.
//!
//! Converts a section's bytes to a value and back. Each section is declared once in the table at
//! [`Features`], with its number, name and type. Each type declares its fields once ([`Wire`]), for reading
//! as well as writing. Sources: `tools/perf/util/header.c` and `Documentation/perf.data-file-format.txt`,
//! Linux 6.18.
//!
//! ```text
//! text    | u32 length, a multiple of 64 | bytes, NUL, zeros |
//! list    | u32 count | items |
//! ```

mod simpleperf;
mod wire;

pub use simpleperf::DeviceFile;
pub use wire::{EventDesc, MetaInfo, RawSection};
use wire::{FeatureFields, Wire, wire};

use crate::record::Cursor;
use pmc_sys::abi::misc;

wire! {
    /// `NRCPUS`.
    pub struct CpuCount {
        /// Number of possible CPUs.
        pub available: u32,
        /// Number of online CPUs.
        pub online: u32,
    }

    /// A row of `NUMA_TOPOLOGY`.
    pub struct NumaNode {
        /// The node's number.
        pub node: u32,
        /// Memory, in KiB.
        pub total_kib: u64,
        /// Free memory, in KiB.
        pub free_kib: u64,
        /// The node's CPUs, as a list such as `0-3`.
        pub cpus: String,
    }

    /// A row of `PMU_MAPPINGS`.
    pub struct PmuMapping {
        /// `attr.type`.
        pub kind: u32,
        /// The PMU's name.
        pub name: String,
    }

    /// A row of `GROUP_DESC`.
    pub struct GroupDesc {
        /// The group's name; may be empty.
        pub name: String,
        /// Index of the group's leader among the events.
        pub leader: u32,
        /// Number of events in the group.
        pub members: u32,
    }

    /// `CACHE`: version 1, then one row per cache.
    pub struct Caches {
        /// Always 1.
        pub version: u32,
        /// The caches.
        pub levels: Vec<CacheLevel>,
    }

    /// A row of `CACHE`.
    pub struct CacheLevel {
        /// Cache level, 1 to 4.
        pub level: u32,
        /// Size of a cache line, in bytes.
        pub line_size: u32,
        /// Number of sets.
        pub sets: u32,
        /// Number of ways.
        pub ways: u32,
        /// `Data`, `Instruction` or `Unified`.
        pub kind: String,
        /// Size, such as `32K`.
        pub size: String,
        /// CPUs that share the cache, as a list.
        pub cpus: String,
    }

    /// `SAMPLE_TIME`.
    pub struct SampleTime {
        /// Time of the first sample, in nanoseconds.
        pub first: u64,
        /// Time of the last sample, in nanoseconds.
        pub last: u64,
    }

    /// `COMPRESSED`.
    pub struct Compression {
        /// Always 1.
        pub version: u32,
        /// Compression type; 1 is zstd.
        pub kind: u32,
        /// Compression level.
        pub level: u32,
        /// Compression ratio, rounded.
        pub ratio: u32,
        /// Maximum unpacked size of one `COMPRESSED` record, in bytes.
        pub mmap_len: u32,
    }

    /// `CLOCK_DATA`: the same time on two clocks.
    pub struct ClockData {
        /// Always 1.
        pub version: u32,
        /// Number of the recording's clock (`clock_gettime(2)`), or [`ClockData::DEFAULT_CLOCK`].
        pub clockid: u32,
        /// Time on the wall clock, in nanoseconds.
        pub wall_clock_ns: u64,
        /// Time on the recording's clock, in nanoseconds.
        pub clockid_time_ns: u64,
        /// Maximum difference between the two times, in nanoseconds. Only pmc writes it; perf ignores it.
        pub uncertainty_ns: Option<u64>,
    }

    /// A row of `HYBRID_TOPOLOGY`.
    pub struct HybridPmu {
        /// Name of a core PMU.
        pub name: String,
        /// The PMU's CPUs, as a list.
        pub cpus: String,
    }

    /// A row of `PMU_CAPS`.
    pub struct PmuCaps {
        /// Name and value of each capability.
        pub caps: Vec<(String, String)>,
        /// The PMU's name.
        pub name: String,
    }

    /// A row of `BPF_BTF`.
    pub struct BpfBtf {
        /// The program's BTF id.
        pub id: u32,
        /// The type data.
        pub data: Vec<u8>,
    }

    /// `E_MACHINE`.
    pub struct ElfMachine {
        /// ELF `e_machine` of the recorded machine's programs.
        pub machine: u32,
        /// ELF `e_flags`.
        pub flags: u32,
    }

    /// `MEM_TOPOLOGY`.
    pub struct MemTopology {
        /// Always 1.
        pub version: u64,
        /// Size of a memory block, in bytes.
        pub block_size: u64,
        /// The number of nodes, followed by the nodes; see [`MemNode`].
        pub nodes: wire::LongList<MemNode>,
    }

    /// A row of `MEM_TOPOLOGY`: the memory blocks of a node.
    pub struct MemNode {
        /// The node's number.
        pub node: u64,
        /// Number of blocks.
        pub size: u64,
        /// The bitmap of the blocks.
        pub bits: wire::Bitmap,
    }
}

/// `CPU_TOPOLOGY`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuTopology {
    /// CPUs of each package (of each die in newer perf versions), as lists.
    pub core_siblings: Vec<String>,
    /// CPUs of each core, as lists.
    pub thread_siblings: Vec<String>,
    /// Core and package of each CPU.
    pub cpus: Vec<(u32, u32)>,
    /// CPUs of each die, as lists; empty in files before Linux 5.3.
    pub die_siblings: Vec<String>,
    /// Die of each CPU.
    pub dies: Vec<u32>,
}

impl Wire for CpuTopology {
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
        let (core_siblings, thread_siblings) = (Wire::read(f, so_far)?, Wire::read(f, so_far)?);
        let count = so_far.nr_cpus.as_ref().map_or(0, |n| n.available);
        let mut cpus = Vec::new();
        let mut dies = Vec::new();
        let mut die_siblings = Vec::new();
        for _ in 0..count {
            // Sections of older perf versions end after the lists.
            let Some(cpu) = f.u32().zip(f.u32()) else { break };
            cpus.push(cpu);
        }
        if !f.is_empty() {
            die_siblings = Wire::read(f, so_far)?;
            for _ in 0..count {
                dies.push(f.u32()?);
            }
        }
        Some(Self { core_siblings, thread_siblings, cpus, die_siblings, dies })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.core_siblings.write(out);
        self.thread_siblings.write(out);
        self.cpus.iter().for_each(|cpu| cpu.write(out));
        if !self.dies.is_empty() {
            self.die_siblings.write(out);
            self.dies.iter().for_each(|die| die.write(out));
        }
    }
}

/// A row of `BUILD_ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// The guest's pid, or −1.
    pub pid: i32,
    /// `misc` of the record: 1 kernel, 2 user.
    pub misc: u16,
    /// The build-id, up to 20 bytes.
    pub id: Vec<u8>,
    /// Path or bracketed name; untrusted bytes.
    pub name: Vec<u8>,
}

/// `BUILD_ID`: consecutive records in the format of `HEADER_BUILD_ID`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildIds(pub Vec<BuildIdEntry>);

impl Wire for BuildIds {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        let mut rows = Vec::new();
        while !f.is_empty() {
            let (_kind, misc, size) = (f.u32()?, f.u16()?, f.u16()?);
            let pid = f.u32()? as i32;
            let field = f.take(24)?;
            let name = f.take(usize::from(size).checked_sub(BEFORE_NAME)?)?;
            let len = if misc & misc::BUILD_ID_SIZE != 0 { usize::from(field[20]).min(20) } else { 20 };
            let name = crate::record::bytes::until_nul(name).to_vec();
            rows.push(BuildIdEntry {
                pid,
                misc: misc & !misc::BUILD_ID_SIZE,
                id: field[..len].to_vec(),
                name,
            });
        }
        Some(Self(rows))
    }

    fn write(&self, out: &mut Vec<u8>) {
        for row in &self.0 {
            row.write_record(0, out);
        }
    }
}

/// Size of header, pid and id of a build-id record.
const BEFORE_NAME: usize = 36;

impl ClockData {
    /// The number of the kernel's default clock for samples, which has none in `clock_gettime(2)`.
    pub const DEFAULT_CLOCK: u32 = u32::MAX;

    /// Returns the offset from the recording's clock to wall-clock time, in nanoseconds.
    pub fn to_wall_ns(&self) -> i64 {
        self.wall_clock_ns.wrapping_sub(self.clockid_time_ns) as i64
    }
}

impl BuildIdEntry {
    /// Writes the record for the section or for a stream. In the section, `kind` is 0, as in perf's files.
    pub fn write_record(&self, kind: u32, out: &mut Vec<u8>) {
        let name = &self.name[..self.name.len().min(8192)];
        // The name must be followed by at least one NUL. The total size must be a multiple of 8, because perf
        // 7 rejects other sizes.
        let size = (BEFORE_NAME + name.len() + 1).next_multiple_of(8);
        let id = &self.id[..self.id.len().min(20)];
        out.extend(kind.to_ne_bytes());
        out.extend((self.misc | misc::BUILD_ID_SIZE).to_ne_bytes());
        out.extend((size as u16).to_ne_bytes());
        out.extend(self.pid.to_ne_bytes());
        let mut field = [0; 24];
        field[..id.len()].copy_from_slice(id);
        field[20] = id.len() as u8;
        out.extend(field);
        out.extend(name);
        out.resize(out.len() + size - BEFORE_NAME - name.len(), 0);
    }
}

macro_rules! features {
    ($($(#[$doc:meta])* $number:literal $name:ident $field:ident: $type:ty;)*) => {
        /// Number of a feature section.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "perf's names")]
        #[repr(u32)]
        pub enum FeatureNumber {
            $($(#[$doc])* $name = $number,)*
        }

        impl FeatureNumber {
            /// All known features, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns perf's name, such as `CPU_TOPOLOGY`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }

        /// The contents of a recording's sections; `None` for missing sections.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Features {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl Features {
            /// Parses a section. Returns `false` if its contents are invalid.
            pub(super) fn set(&mut self, feature: FeatureNumber, bytes: &[u8], is_byte_swapped: bool) -> bool {
                let mut fields = FeatureFields::new(Cursor::new(bytes), is_byte_swapped);
                match feature {
                    $(FeatureNumber::$name => {
                        self.$field = Wire::read(&mut fields, self);
                        self.$field.is_some()
                    })*
                }
            }

            /// Returns the bytes of a section, if present.
            pub fn section(&self, feature: FeatureNumber) -> Option<Vec<u8>> {
                let mut out = Vec::new();
                match feature {
                    $(FeatureNumber::$name => self.$field.as_ref()?.write(&mut out),)*
                }
                Some(out)
            }
        }
    };
}

features! {
    /// Tracepoint formats; see `record::tracepoint`.
    1 TRACING_DATA tracing_data: RawSection;
    /// Build-ids of the files with samples.
    2 BUILD_ID build_ids: BuildIds;
    /// `uname -n`.
    3 HOSTNAME hostname: String;
    /// `uname -r`.
    4 OSRELEASE os_release: String;
    /// Version of the recorder.
    5 VERSION version: String;
    /// `uname -m`.
    6 ARCH arch: String;
    /// Number of CPUs.
    7 NRCPUS nr_cpus: CpuCount;
    /// The CPU's name.
    8 CPUDESC cpu_desc: String;
    /// Vendor, family, model and stepping, or the MIDR.
    9 CPUID cpuid: String;
    /// Memory, in KiB.
    10 TOTAL_MEM total_mem_kib: u64;
    /// The recorder's command line.
    11 CMDLINE cmdline: Vec<String>;
    /// The events with names and ids.
    12 EVENT_DESC event_desc: EventDesc;
    /// Cores, packages, dies.
    13 CPU_TOPOLOGY cpu_topology: CpuTopology;
    /// Memory nodes.
    14 NUMA_TOPOLOGY numa_topology: Vec<NumaNode>;
    /// Samples contain branch stacks; the section is empty.
    15 BRANCH_STACK branch_stack: RawSection;
    /// The PMUs' names and `attr.type` numbers.
    16 PMU_MAPPINGS pmu_mappings: Vec<PmuMapping>;
    /// Groups of events.
    17 GROUP_DESC groups: Vec<GroupDesc>;
    /// Offsets and sizes of AUX data in the file.
    18 AUXTRACE auxtrace: RawSection;
    /// The file was written by `perf stat record`; the section is empty.
    19 STAT stat: RawSection;
    /// The caches.
    20 CACHE caches: Caches;
    /// Times of the first and last sample.
    21 SAMPLE_TIME sample_time: SampleTime;
    /// Memory blocks of the nodes.
    22 MEM_TOPOLOGY mem_topology: MemTopology;
    /// Resolution of the recording's clock, in nanoseconds.
    23 CLOCKID clockid_resolution_ns: u64;
    /// The recording is a directory; version 1.
    24 DIR_FORMAT dir_format: u64;
    /// BPF programs, as described by the kernel.
    25 BPF_PROG_INFO bpf_prog_info: RawSection;
    /// BTF types of the BPF programs.
    26 BPF_BTF bpf_btf: Vec<BpfBtf>;
    /// Compression of the records.
    27 COMPRESSED compressed: Compression;
    /// Capabilities of the core PMU.
    28 CPU_PMU_CAPS cpu_pmu_caps: Vec<(String, String)>;
    /// Times of the wall clock and of the recording's clock, read together.
    29 CLOCK_DATA clock_data: ClockData;
    /// Core PMUs of a hybrid machine.
    30 HYBRID_TOPOLOGY hybrid_topology: Vec<HybridPmu>;
    /// Capabilities of the other PMUs.
    31 PMU_CAPS pmu_caps: Vec<PmuCaps>;
    /// Scheduling domains.
    32 CPU_DOMAIN_INFO cpu_domain_info: RawSection;
    /// The ELF machine.
    33 E_MACHINE e_machine: ElfMachine;
    /// Size of a cache line, in bytes.
    34 CLN_SIZE cache_line: RawSection;
    /// simpleperf's symbols for the files on the device; see [`DeviceFile`].
    128 FILE device_files: RawSection;
    /// simpleperf's metadata about itself, the device and its events (`FEAT_META_INFO`). In pmc's recordings,
    /// it contains the counts of the events.
    129 META_INFO meta_info: MetaInfo;
    /// The files on the device, in the format of newer versions of simpleperf.
    132 FILE2 device_files2: RawSection;
    /// Symbols, lines and code of the sampled addresses, written by `pmc archive`. perf skips it.
    200 ARCHIVE archive: RawSection;
}

impl Features {
    /// Returns the index of the leader of an event's group, or the event's own index if it has no group.
    pub fn group_leader(&self, event: usize) -> usize {
        let inside = |group: &&GroupDesc| {
            let first = group.leader as usize;
            (first..first.saturating_add(group.members as usize)).contains(&event)
        };
        self.groups.iter().flatten().find(inside).map_or(event, |group| group.leader as usize)
    }
}

impl FeatureNumber {
    /// Returns the feature with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| *f as u64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RawRecord, Record, kind};

    #[test]
    fn build_id_records_are_complete_for_any_name_length() {
        for len in [0, 1, 2, 3, 4, 26, 27, 28, 63, 64, 4095, 8192, 9000] {
            for id in [&[7; 20][..], &[9; 8]] {
                let row = BuildIdEntry { pid: -1, misc: 2, id: id.to_vec(), name: vec![b'n'; len] };
                let mut out = Vec::new();
                row.write_record(kind::HEADER_BUILD_ID, &mut out);
                assert_eq!(out.len() % 8, 0, "{len}");
                let record = RawRecord::first(&out).unwrap();
                assert_eq!(record.bytes.len(), out.len());
                let Some(Record::BuildId(read)) = record.parse() else { panic!("{len}") };
                assert_eq!((read.pid, read.id, read.name.len()), (-1, id, len.min(8192)));
            }
        }
    }
}
