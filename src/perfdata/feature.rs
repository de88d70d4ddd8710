//! The feature sections: what perf keeps about machine, command and events beside the records.
//!
//! Receives a section's bytes and gives its value, or the other way round. Each section stands once in the
//! table at
//! [`Features`]: number, name, type; and each type says its fields once ([`Wire`]), from which reading and
//! writing both follow. Sources: `tools/perf/util/header.c` and `Documentation/perf.data-file-format.txt`,
//! Linux 6.18.
//!
//! ```text
//! text    | u32 length, a multiple of 64 | bytes, NUL, zeros |
//! list    | u32 count | items |
//! ```

mod simpleperf;
mod wire;

pub use simpleperf::DeviceFile;
pub use wire::{EventDesc, MetaInfo, Raw};
use wire::{Fields, Wire, wire};

use crate::abi::misc;
use crate::record::Cursor;

wire! {
    /// `NRCPUS`.
    pub struct CpuCount {
        /// CPUs that could be there.
        pub available: u32,
        /// CPUs that were on.
        pub online: u32,
    }

    /// A row of `NUMA_TOPOLOGY`.
    pub struct NumaNode {
        /// Its number.
        pub node: u32,
        /// Memory, in KiB.
        pub total_kib: u64,
        /// Free memory, in KiB.
        pub free_kib: u64,
        /// Its CPUs, as a list such as `0-3`.
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
        /// Its name; may be empty.
        pub name: String,
        /// Index of its leader among the events.
        pub leader: u32,
        /// Number of events in it.
        pub members: u32,
    }

    /// `CACHE`: version 1, then one row a cache.
    pub struct Caches {
        /// 1.
        pub version: u32,
        /// The caches.
        pub levels: Vec<CacheLevel>,
    }

    /// A row of `CACHE`.
    pub struct CacheLevel {
        /// 1 to 4.
        pub level: u32,
        /// Bytes of a line.
        pub line_size: u32,
        /// Number of sets.
        pub sets: u32,
        /// Number of ways.
        pub ways: u32,
        /// `Data`, `Instruction`, `Unified`.
        pub kind: String,
        /// Such as `32K`.
        pub size: String,
        /// CPUs that share it, as a list.
        pub cpus: String,
    }

    /// `SAMPLE_TIME`.
    pub struct SampleTime {
        /// Time of the first sample, in nanoseconds.
        pub first: u64,
        /// Of the last.
        pub last: u64,
    }

    /// `COMPRESSED`.
    pub struct Compression {
        /// 1.
        pub version: u32,
        /// 1: zstd.
        pub kind: u32,
        /// Its level.
        pub level: u32,
        /// Unpacked to packed, rounded.
        pub ratio: u32,
        /// The most bytes that one `COMPRESSED` record unpacks to.
        pub mmap_len: u32,
    }

    /// `CLOCK_DATA`: the same moment on two clocks.
    pub struct ClockData {
        /// 1.
        pub version: u32,
        /// Number of the recording's clock (`clock_gettime(2)`).
        pub clockid: u32,
        /// Wall clock, in nanoseconds.
        pub wall_clock_ns: u64,
        /// The recording's clock, in nanoseconds.
        pub clockid_time_ns: u64,
    }

    /// A row of `HYBRID_TOPOLOGY`.
    pub struct HybridPmu {
        /// A core PMU.
        pub name: String,
        /// Its CPUs, as a list.
        pub cpus: String,
    }

    /// A row of `PMU_CAPS`.
    pub struct PmuCaps {
        /// Name and value of each capability.
        pub caps: Vec<(String, String)>,
        /// The PMU.
        pub name: String,
    }

    /// A row of `BPF_BTF`.
    pub struct BpfBtf {
        /// The program's BTF id.
        pub id: u32,
        /// The types.
        pub data: Vec<u8>,
    }

    /// `E_MACHINE`.
    pub struct Machine {
        /// `e_machine` of the recording machine's programs (ELF).
        pub machine: u32,
        /// `e_flags`.
        pub flags: u32,
    }

    /// `MEM_TOPOLOGY`.
    pub struct MemTopology {
        /// 1.
        pub version: u64,
        /// Bytes of a memory block.
        pub block_size: u64,
        /// Number of nodes, then each; see [`MemNode`].
        pub nodes: wire::Long<MemNode>,
    }

    /// A row of `MEM_TOPOLOGY`: which blocks of memory are in the node.
    pub struct MemNode {
        /// Its number.
        pub node: u64,
        /// Number of blocks.
        pub size: u64,
        /// Bits in `words`.
        pub bits: wire::Bitmap,
    }
}

/// `CPU_TOPOLOGY`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuTopology {
    /// CPUs of each package (die, with newer perfs), as lists.
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
    fn read(f: &mut Fields<'_>, so_far: &Features) -> Option<Self> {
        let (core_siblings, thread_siblings) = (Wire::read(f, so_far)?, Wire::read(f, so_far)?);
        let count = so_far.nr_cpus.as_ref().map_or(0, |n| n.available);
        let mut cpus = Vec::new();
        let mut dies = Vec::new();
        let mut die_siblings = Vec::new();
        for _ in 0..count {
            // Sections of older perfs end behind the lists.
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
    /// −1, or the guest's pid.
    pub pid: i32,
    /// `misc` of the record: 1 kernel, 2 user.
    pub misc: u16,
    /// Up to 20 bytes.
    pub id: Vec<u8>,
    /// Path or bracketed name; foreign bytes as they are.
    pub name: Vec<u8>,
}

/// `BUILD_ID`: records of the `HEADER_BUILD_ID` shape one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuildIds(pub Vec<BuildIdEntry>);

impl Wire for BuildIds {
    fn read(f: &mut Fields<'_>, _: &Features) -> Option<Self> {
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

/// Header, pid and id of such a record.
const BEFORE_NAME: usize = 36;

impl ClockData {
    /// Nanoseconds from a time of the recording's clock to the time of day.
    pub fn to_wall_ns(&self) -> i64 {
        self.wall_clock_ns.wrapping_sub(self.clockid_time_ns) as i64
    }
}

impl BuildIdEntry {
    /// The record, as the section (`kind` 0, as perf leaves it there) and the pipe form have it.
    pub fn write_record(&self, kind: u32, out: &mut Vec<u8>) {
        let name = &self.name[..self.name.len().min(8192)];
        // A NUL at least, and the whole a multiple of 8: perf 7 refuses a file with a record that is not.
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
        /// A section's number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "perf's names")]
        #[repr(u32)]
        pub enum Feature {
            $($(#[$doc])* $name = $number,)*
        }

        impl Feature {
            /// All that are known, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// perf's name, such as `CPU_TOPOLOGY`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }

        /// What the sections of a recording say; `None` where there is none.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Features {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl Features {
            /// Takes a section in; `false` when it does not hold what it should.
            pub(super) fn set(&mut self, feature: Feature, bytes: &[u8], is_foreign: bool) -> bool {
                let mut fields = Fields::new(Cursor::new(bytes), is_foreign);
                match feature {
                    $(Feature::$name => {
                        self.$field = Wire::read(&mut fields, self);
                        self.$field.is_some()
                    })*
                }
            }

            /// The bytes of a section, if there is one.
            pub fn section(&self, feature: Feature) -> Option<Vec<u8>> {
                let mut out = Vec::new();
                match feature {
                    $(Feature::$name => self.$field.as_ref()?.write(&mut out),)*
                }
                Some(out)
            }
        }
    };
}

features! {
    /// The trace formats of tracepoints: see `record::tracepoint`.
    1 TRACING_DATA tracing_data: Raw;
    /// Build-ids of the files that samples hit.
    2 BUILD_ID build_ids: BuildIds;
    /// `uname -n`.
    3 HOSTNAME hostname: String;
    /// `uname -r`.
    4 OSRELEASE os_release: String;
    /// Version of the recorder.
    5 VERSION version: String;
    /// `uname -m`.
    6 ARCH arch: String;
    /// CPUs.
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
    /// Samples hold branch stacks; the section is empty.
    15 BRANCH_STACK branch_stack: Raw;
    /// Numbers of the PMUs.
    16 PMU_MAPPINGS pmu_mappings: Vec<PmuMapping>;
    /// Groups of events.
    17 GROUP_DESC groups: Vec<GroupDesc>;
    /// Where AUX data lie in the file.
    18 AUXTRACE auxtrace: Raw;
    /// The file was written by `perf stat record`; the section is empty.
    19 STAT stat: Raw;
    /// Caches.
    20 CACHE caches: Caches;
    /// First and last sample.
    21 SAMPLE_TIME sample_time: SampleTime;
    /// Memory blocks of the nodes.
    22 MEM_TOPOLOGY mem_topology: MemTopology;
    /// Resolution of the recording's clock, in nanoseconds.
    23 CLOCKID clockid_resolution_ns: u64;
    /// The recording is a directory; version 1.
    24 DIR_FORMAT dir_format: u64;
    /// BPF programs, as the kernel described them.
    25 BPF_PROG_INFO bpf_prog_info: Raw;
    /// Their types.
    26 BPF_BTF bpf_btf: Vec<BpfBtf>;
    /// How records are compressed.
    27 COMPRESSED compressed: Compression;
    /// Capabilities of the core PMU.
    28 CPU_PMU_CAPS cpu_pmu_caps: Vec<(String, String)>;
    /// Wall clock and the recording's clock at one moment.
    29 CLOCK_DATA clock_data: ClockData;
    /// Core PMUs of a hybrid machine.
    30 HYBRID_TOPOLOGY hybrid_topology: Vec<HybridPmu>;
    /// Capabilities of the other PMUs.
    31 PMU_CAPS pmu_caps: Vec<PmuCaps>;
    /// Scheduling domains.
    32 CPU_DOMAIN_INFO cpu_domain_info: Raw;
    /// The ELF machine.
    33 E_MACHINE e_machine: Machine;
    /// Bytes of a cache line.
    34 CLN_SIZE cache_line: Raw;
    /// simpleperf's symbols of the device's files; see [`DeviceFile`].
    128 FILE device_files: Raw;
    /// What simpleperf says of itself, the device and its events (`FEAT_META_INFO`); in pmc's recordings,
    /// what events counted.
    129 META_INFO meta_info: MetaInfo;
    /// The device's files again, in the form of newer simpleperfs.
    132 FILE2 device_files2: Raw;
}

impl Features {
    /// The index of the leader of an event's group; the event's own where it is in none.
    pub fn group_leader(&self, event: usize) -> usize {
        let inside = |group: &&GroupDesc| {
            let first = group.leader as usize;
            (first..first.saturating_add(group.members as usize)).contains(&event)
        };
        self.groups.iter().flatten().find(inside).map_or(event, |group| group.leader as usize)
    }
}

impl Feature {
    /// The feature with this number.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| *f as u64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RawRecord, Record, kind};

    #[test]
    fn build_ids_of_names_of_any_length_are_whole_records() {
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
