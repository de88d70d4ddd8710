//! Collects statistics about records while they are written to a file: number of samples, losses, and files
//! with samples.
//!
//! Receives each record once, in any order. Returns counts and, for the `BUILD_ID` section, the mapped files
//! with samples. Costs only a few nanoseconds per record, because sampled addresses are stored as pages and
//! matched with the mappings at the end.
//!
//! ```text
//! sample: ip, chain ──page──► recently seen? (small table) ──no──► set of (process, page)
//! MMAP, MMAP2, FORK ────────► mappings of each process, and its parent process
//!                                   at the end: pages × mappings = files
//! ```
//! Times are ignored: a page counts for every file that the process or one of its ancestors has ever mapped
//! at its address. The result may therefore contain files without samples, but no file with samples is
//! missing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::error::PerfdataError;
use super::feature::BuildIdEntry;
use super::reader::Reader;
use crate::record::{Layouts, MappedFileId, Mmap, RawRecord, Record, kind};
use pmc_sys::abi::{CpuMode, context, misc};
use pmc_text::units::{Count, PerfTime};

/// Number of bits of the smallest page size on any machine. Mappings start and end at page boundaries.
const PAGE_BITS: u32 = 12;
/// Number of entries in the table of recently seen pages.
const LATELY: usize = 1 << 12;
/// Maximum length of a chain of parent processes. Longer chains are circular.
const MOST_PARENTS: usize = 64;
/// Maximum number of pages and of mappings to keep. If there are more, every known file counts as sampled.
const MAX_PAGES: usize = 1 << 20;
/// First kernel address on 64-bit machines.
const KERNEL: u64 = 1 << 63;

/// Statistics of records.
#[derive(Debug)]
pub struct RecordTally {
    /// Number of samples.
    pub samples: u64,
    /// Number of context switches (`SWITCH` and `SWITCH_CPU_WIDE` records).
    pub switches: u64,
    /// Number of lost records and samples, from the kernel's `LOST` and `LOST_SAMPLES` records.
    pub lost: u64,
    /// The part of `lost` that `LOST_SAMPLES` records report.
    pub lost_samples: u64,
    /// Number of times that the kernel throttled an event.
    pub throttled: u64,
    /// Number of samples whose id does not belong to a known event.
    pub strangers: u64,
    /// Sums of the threads' counts, by event id (from `READ` records).
    pub reads: FxHashMap<u64, Count>,
    /// Times of the earliest and the latest sample.
    pub times: Option<(PerfTime, PerfTime)>,
    wants_hits: bool,
    lately: Box<[u64; LATELY]>,
    pages: FxHashSet<(i32, u64)>,
    mappings: FxHashMap<i32, Vec<HitMapping>>,
    parents: FxHashMap<i32, i32>,
    /// Number of all mappings.
    mapped: usize,
}

#[derive(Debug)]
struct HitMapping {
    start: u64,
    end: u64,
    file: HitFile,
}

/// A mapped file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HitFile {
    /// Path or bracketed name, as untrusted bytes.
    pub name: Vec<u8>,
    /// Whether the file is the kernel or a kernel module.
    pub is_kernel: bool,
    /// The build-id, if the mapping record contains it.
    pub build_id: Option<Vec<u8>>,
    /// A process that mapped the file, since the file may be visible only in this process's mount namespace.
    pub pid: i32,
}

impl RecordTally {
    /// Scans all records of a recording, and finds the files with samples.
    ///
    /// # Errors
    /// Fails if the records cannot be read.
    pub fn of_files_hit(reader: &Reader) -> Result<Self, PerfdataError> {
        let mut tally = Self::new(true);
        reader.scan(|record| tally.note(record, reader.layouts()))?;
        Ok(tally)
    }

    /// Creates an empty tally. `wants_hits` enables the search for files with samples.
    pub fn new(wants_hits: bool) -> Self {
        Self {
            samples: 0,
            switches: 0,
            lost: 0,
            lost_samples: 0,
            throttled: 0,
            strangers: 0,
            reads: FxHashMap::default(),
            times: None,
            wants_hits,
            lately: Box::new([0; LATELY]),
            pages: FxHashSet::default(),
            mappings: FxHashMap::default(),
            parents: FxHashMap::default(),
            mapped: 0,
        }
    }

    /// Adds a record.
    #[inline]
    pub fn note(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        match raw.kind {
            kind::SAMPLE => self.sample(raw, layouts),
            kind::SWITCH | kind::SWITCH_CPU_WIDE => self.switches += 1,
            kind::LOST | kind::LOST_SAMPLES => match raw.parse() {
                Some(Record::Lost(lost)) => self.lost = self.lost.saturating_add(lost.lost),
                Some(Record::LostSamples(lost)) => {
                    self.lost = self.lost.saturating_add(lost);
                    self.lost_samples = self.lost_samples.saturating_add(lost);
                }
                _ => {}
            },
            kind::THROTTLE => match raw.parse() {
                Some(Record::Throttle(throttle)) if throttle.is_reservation() => {}
                _ => self.throttled += 1,
            },
            kind::READ => {
                if let Some(read) = layouts.counter_read(raw) {
                    *self.reads.entry(read.id).or_default() += read.count;
                }
            }
            kind::MMAP | kind::MMAP2 | kind::FORK => self.task(raw),
            _ => {}
        }
    }

    fn sample(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        self.samples += 1;
        let Some((_, sample)) = layouts.sample(raw) else {
            self.strangers += 1;
            return;
        };
        if let Some(time) = sample.time() {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        if !self.wants_hits {
            return;
        }
        let pid = sample.thread().map_or(0, |thread| thread.pid);
        if let Some(ip) = sample.ip() {
            let in_kernel = sample.cpu_mode() == CpuMode::Kernel;
            self.hit(if in_kernel { -1 } else { pid }, ip);
        }
        for address in sample.callchain().unwrap_or_default().iter().filter(|&address| address < context::MAX)
        {
            self.hit(if address >= KERNEL { -1 } else { pid }, address);
        }
    }

    #[inline]
    fn hit(&mut self, pid: i32, address: u64) {
        let page = address >> PAGE_BITS;
        // The key combines the page's 52 bits with as much of the pid as fits. A collision costs only a table
        // entry, because the set below stores the whole pid.
        let key = page ^ (pid as u64) << 40 | 1 << 63;
        let place =
            &mut self.lately[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LATELY.ilog2())) as usize];
        if *place != key {
            *place = key;
            if self.pages.len() < MAX_PAGES {
                self.pages.insert((pid, page));
            }
        }
    }

    fn task(&mut self, raw: &RawRecord<'_>) {
        let map = match raw.parse() {
            Some(Record::Fork(task)) if task.thread.pid != task.parent.pid => {
                if self.parents.len() < MAX_PAGES {
                    self.parents.insert(task.thread.pid, task.parent.pid);
                }
                return;
            }
            Some(Record::Mmap(map)) => (map, None),
            Some(Record::Mmap2(map)) => {
                let id = match map.file {
                    MappedFileId::BuildId(id) if !id.is_empty() => Some(id.to_vec()),
                    _ => None,
                };
                (map.map, id)
            }
            _ => return,
        };
        let (Mmap { thread, addr, len, name, is_data, .. }, build_id) = map;
        if is_data {
            return;
        }
        let is_kernel = raw.misc & misc::CPUMODE_MASK == 1 || thread.pid < 0;
        let pid = if is_kernel { -1 } else { thread.pid };
        let end = addr.saturating_add(len);
        let file = HitFile { name: name.to_vec(), is_kernel, build_id, pid };
        if self.mapped >= MAX_PAGES {
            return;
        }
        let mappings = self.mappings.entry(pid).or_default();
        // A program that repeats the same mapping must not exhaust pmc's memory.
        let again = mappings.iter().rev().take(64).any(|m| m.start == addr && m.end == end && m.file == file);
        if !again {
            mappings.push(HitMapping { start: addr, end, file });
            self.mapped += 1;
        }
    }

    /// Returns the files with samples or, with `all`, all mapped files, ordered by name.
    pub fn files(&self, all: bool) -> Vec<HitFile> {
        let mut files: FxHashMap<HitFileIdentity<'_>, &HitFile> = FxHashMap::default();
        let mut add = |file| {
            files.entry(key_of(file)).or_insert(file);
        };
        if all || self.pages.len() >= MAX_PAGES {
            for mapping in self.mappings.values().flatten() {
                add(&mapping.file);
            }
        } else {
            for &(pid, page) in &self.pages {
                let address = page << PAGE_BITS;
                let mut owner = Some(pid);
                for _ in 0..MOST_PARENTS {
                    let Some(pid) = owner else { break };
                    for mapping in self.mappings.get(&pid).into_iter().flatten() {
                        // The kernel's code may start inside a page.
                        if mapping.start >> PAGE_BITS << PAGE_BITS <= address && address < mapping.end {
                            add(&mapping.file);
                        }
                    }
                    owner = self.parents.get(&pid).copied();
                }
            }
        }
        let mut files: Vec<HitFile> = files.into_values().cloned().collect();
        files.sort_unstable();
        files
    }

    /// Returns the build-ids of the files for which `find` returns one.
    pub fn build_ids(
        &self,
        all: bool,
        mut find: impl FnMut(&HitFile) -> Option<Vec<u8>>,
    ) -> Vec<BuildIdEntry> {
        let rows = self.files(all).into_iter().filter_map(|file| Some(file.entry(find(&file)?)));
        let mut rows: Vec<BuildIdEntry> = rows.collect();
        rows.dedup_by(|a, b| a.name == b.name && a.id == b.id);
        rows
    }
}

impl HitFile {
    /// Returns the row for the file in the list of build-ids.
    pub fn entry(&self, id: Vec<u8>) -> BuildIdEntry {
        // The name of the kernel's mapping ends with the symbol that is used to detect relocation.
        let is_text = self.name.starts_with(b"[kernel.kallsyms]");
        let name = if is_text { b"[kernel.kallsyms]".to_vec() } else { self.name.clone() };
        BuildIdEntry { pid: -1, misc: if self.is_kernel { 1 } else { 2 }, id, name }
    }
}

/// The identity of a file, independent of the process that mapped it.
type HitFileIdentity<'a> = (bool, &'a [u8], Option<&'a [u8]>);

fn key_of(file: &HitFile) -> HitFileIdentity<'_> {
    (file.is_kernel, &file.name, file.build_id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::encode::Encoder;
    use crate::record::{Mmap2, Records, Task, Thread};
    use pmc_sys::abi::Attr;
    use pmc_sys::abi::sample_type;

    fn thread(pid: i32) -> Thread {
        Thread { pid, tid: pid }
    }

    fn map(pid: i32, addr: u64, name: &'static [u8], id: &'static [u8]) -> Mmap2<'static> {
        let map = Mmap { thread: thread(pid), addr, len: 0x2000, pgoff: 0, is_data: false, name };
        Mmap2 { map, file: MappedFileId::BuildId(id), prot: 5, flags: 2 }
    }

    /// Appends a sample with `ip` and a call chain, in user mode.
    fn sample_record(pid: i32, ip: u64, chain: &[u64], out: &mut Vec<u8>) {
        let size = 8 + 8 + 8 + 8 + chain.len() * 8;
        out.extend(kind::SAMPLE.to_ne_bytes());
        out.extend(2u16.to_ne_bytes());
        out.extend((size as u16).to_ne_bytes());
        out.extend(ip.to_ne_bytes());
        out.extend(pid.to_ne_bytes());
        out.extend(pid.to_ne_bytes());
        out.extend((chain.len() as u64).to_ne_bytes());
        chain.iter().for_each(|address| out.extend(address.to_ne_bytes()));
    }

    #[test]
    fn files_are_hit_by_samples_of_a_process_and_its_children() {
        let mut attr = Attr::new(1, 0);
        attr.set_sample_type(sample_type::IP | sample_type::TID | sample_type::CALLCHAIN);
        let layouts = Layouts::new([(&attr, &[][..])]);
        let mut told = Encoder::new(0);
        told.mmap2(&map(1, 0x10_0000, b"/bin/parent", &[1]));
        told.mmap2(&map(1, 0x20_0000, b"/lib/called", &[2]));
        told.mmap2(&map(1, 0x30_0000, b"/lib/idle", &[3]));
        told.mmap2(&map(3, 0x10_0000, b"/bin/other", &[4]));
        told.fork(&Task { thread: thread(2), parent: thread(1), time: PerfTime(0) });
        told.kernel_mmap(KERNEL | 0x800, 0x10_0000, 0, b"[kernel.kallsyms]_text");
        told.lost(7, 5);
        let mut bytes = told.bytes().to_vec();
        // The chain starts with CONTEXT_USER.
        sample_record(2, 0x10_1234, &[-512i64 as u64, 0x10_1234, 0x20_1000, KERNEL | 0x900], &mut bytes);
        let mut tally = RecordTally::new(true);
        Records::new(&bytes).for_each(|record| tally.note(&record, &layouts));
        assert_eq!((tally.samples, tally.lost), (1, 5));
        let names = |all| -> Vec<String> {
            let files = tally.files(all).into_iter();
            files.map(|file| String::from_utf8_lossy(&file.name).into_owned()).collect()
        };
        assert_eq!(names(false), ["/bin/parent", "/lib/called", "[kernel.kallsyms]_text"]);
        assert_eq!(names(true).len(), 5);
    }

    #[test]
    fn impossible_losses_do_not_overflow() {
        let layouts = Layouts::default();
        let mut told = Encoder::new(0);
        told.lost(7, u64::MAX);
        told.lost(7, 2);
        let mut tally = RecordTally::new(false);
        Records::new(told.bytes()).for_each(|record| tally.note(&record, &layouts));
        assert_eq!(tally.lost, u64::MAX);
    }

    #[test]
    fn cyclic_parent_links_terminate() {
        let layouts = Layouts::default();
        let mut told = Encoder::new(0);
        told.fork(&Task { thread: thread(1), parent: thread(2), time: PerfTime(0) });
        told.fork(&Task { thread: thread(2), parent: thread(1), time: PerfTime(0) });
        let mut tally = RecordTally::new(true);
        Records::new(told.bytes()).for_each(|record| tally.note(&record, &layouts));
        tally.pages.insert((1, 5));
        assert!(tally.files(false).is_empty());
    }
}
