//! The unwinding thread: receives rounds, unwinds stack copies into call chains, and returns records sorted
//! by time.
//!
//! ```text
//!  held back | first pass | second pass      sorted by time; output up to the first pass's newest record,
//!  ───────────────────────▲──────────        newer records are held back
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::table_cache::{TableCache, TableState};
use super::{ChainEndCounts, UnwindRound, UnwoundRound, WorkerMessage};
use pmc_analysis::session::RunningProcesses;
use pmc_perfdata::record::sample::SampledRegisters;
use pmc_perfdata::record::unwound::{self, StrippedFields};
use pmc_perfdata::record::{Layouts, RawRecord, Record, Records, Sample, SampleParts, kind};
use pmc_symbols::unwind::{Arch, ChainEnd, Space, StackFrame, StackUnwinder, StackWalker, UnwindTables};
use pmc_sys::abi::misc;

/// Maximum time that a round waits for unwind tables that are being read.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum time for processing a round. Samples that have not been unwound by then are written unchanged.
const BUDGET: Duration = Duration::from_millis(250);
/// Maximum number of cached address spaces.
const MOST_SPACES: usize = 256;
/// Number of samples below which one thread is faster than several.
const WORTHWHILE: usize = 400;

/// Unwinds the samples of each round, and tracks the state of all processes.
pub(crate) struct RoundUnwinder {
    layouts: Layouts,
    lost: StrippedFields,
    hurry: Arc<AtomicBool>,
    running: RunningProcesses,
    tables: TableCache,
    /// Address spaces by version and word size.
    spaces: FxHashMap<(u32, Arch), Arc<CachedSpace>>,
    unwinder: StackUnwinder,
    /// Records that are too new for the current round.
    held: Vec<u8>,
}

/// A process's code mappings in the form that the unwinder requires.
struct CachedSpace {
    space: Space,
    /// See [`RunningProcesses::version`].
    version: u32,
    /// How much of the process's generated code is included; see [`RunningProcesses::generated`].
    generated: u32,
    /// Address ranges of code whose unwind tables are still being read.
    missing: Vec<(u64, u64)>,
    /// The [age](TableCache::age) of the table cache when this entry was made.
    age: u64,
}

impl CachedSpace {
    /// Returns a copy that includes newly generated code, which has no tables.
    fn with_generated(&self, running: &RunningProcesses, pid: i32) -> Self {
        let mut space = self.space.clone();
        let generated = running.code(pid).filter(|mapped| running.module(mapped.module).is_none());
        generated.for_each(|mapped| space.add(&mapped.mapping, None));
        let Self { version, age, .. } = *self;
        Self { space, version, generated: running.generated(pid), missing: self.missing.clone(), age }
    }
}

struct RoundRecord<'a> {
    /// The record's time in nanoseconds; 0 if the record has no time.
    time: u64,
    raw: RawRecord<'a>,
    sample: Option<Sample<'a>>,
    /// The parts of a sample that are needed for unwinding.
    parts: SampleParts<'a>,
    disposition: Disposition,
}

impl<'a> RoundRecord<'a> {
    fn new(raw: RawRecord<'a>, layouts: &'a Layouts) -> Self {
        let sample = layouts.sample(&raw).map(|(_, sample)| sample);
        let time = sample.map_or_else(|| layouts.sample_id(&raw).time, |sample| sample.time());
        let time = time.map_or(0, |time| time.0);
        Self { time, raw, sample, parts: SampleParts::default(), disposition: Disposition::Stays }
    }
}

/// What to do with a record.
enum Disposition {
    /// Write the record unchanged.
    Stays,
    /// Unwind the sample.
    Unwinds(Option<Arc<CachedSpace>>),
    /// Write the sample with its stack copy.
    Keeps,
    /// Drop the record.
    Goes,
}

impl RoundUnwinder {
    pub(crate) fn new(
        layouts: Layouts,
        lost: StrippedFields,
        most: usize,
        joins: bool,
        hurry: Arc<AtomicBool>,
    ) -> Self {
        Self {
            layouts,
            lost,
            unwinder: StackUnwinder::new(most, joins),
            hurry,
            running: RunningProcesses::default(),
            tables: TableCache::new(),
            spaces: FxHashMap::default(),
            held: Vec::new(),
        }
    }

    pub(crate) fn obey(&mut self, order: WorkerMessage) -> Option<UnwoundRound> {
        match order {
            WorkerMessage::Known(records) => {
                Records::new(&records).for_each(|record| self.running.note(&record));
                None
            }
            WorkerMessage::Round(round) => Some(self.round(round, false)),
            WorkerMessage::End(round) => Some(self.round(round, true)),
        }
    }

    fn round(&mut self, round: UnwindRound, is_last: bool) -> UnwoundRound {
        let UnwindRound { bytes, second } = round;
        // The entries borrow both fields, so take the fields out of `self` for now.
        let (layouts, held) = (std::mem::take(&mut self.layouts), std::mem::take(&mut self.held));
        let entry = |raw| RoundRecord::new(raw, &layouts);
        let (first, second) = bytes.split_at(second.unwrap_or(bytes.len()));
        let mut entries: Vec<RoundRecord<'_>> =
            Records::new(&held).chain(Records::new(first)).map(entry).collect();
        let newest = entries.iter().map(|entry| entry.time).max().unwrap_or(0);
        let newest = if is_last { u64::MAX } else { newest };
        entries.extend(Records::new(second).map(entry));
        // Keep the order of the rings, because records with equal times must not be reordered.
        let later = |entry: &mut RoundRecord<'_>| entry.time > newest;
        for entry in entries.extract_if(.., later) {
            self.held.extend_from_slice(entry.raw.bytes);
        }
        entries.sort_by_key(|entry| entry.time);
        let mut done = UnwoundRound { taken: bytes.len(), ..UnwoundRound::default() };
        self.write(entries, &mut done);
        self.layouts = layouts;
        done.bytes = bytes;
        done.tables_cpu_ns = self.tables.cpu_ns();
        if self.tables.tidy() {
            self.spaces.clear();
        }
        done
    }

    fn write(&mut self, mut entries: Vec<RoundRecord<'_>>, done: &mut UnwoundRound) {
        let start = Instant::now();
        let (deadline, end) = (start + PATIENCE, start + BUDGET);
        let is_hurried = self.hurry.load(Ordering::Relaxed);
        let mut unwound = 0;
        for entry in &mut entries {
            let Some(sample) = entry.sample.filter(|s| unwound::has_copy(s.layout().sample_type())) else {
                self.running.note(&entry.raw);
                // Data mappings were recorded only for unwinding.
                let is_data = matches!(entry.raw.kind, kind::MMAP | kind::MMAP2)
                    && entry.raw.misc & misc::MMAP_DATA != 0;
                if is_data && !self.lost.keeps_data() {
                    entry.disposition = Disposition::Goes;
                }
                continue;
            };
            entry.disposition = if is_hurried || Instant::now() > end {
                Disposition::Keeps
            } else {
                unwound += 1;
                entry.parts = sample.parts().unwrap_or_default();
                let pid = sample.thread().map_or(-1, |thread| thread.pid);
                let arch = entry.parts.user_regs.and_then(arch).unwrap_or(ARCH);
                Disposition::Unwinds(self.space(pid, arch, deadline))
            };
        }
        self.unwinder.walk(&entries, unwound >= WORTHWHILE, |walker, entry| match &entry.disposition {
            Disposition::Unwinds(known) if Instant::now() <= end => walk(walker, entry, known.as_deref()),
            _ => {}
        });
        for (index, RoundRecord { raw, sample, disposition, .. }) in entries.iter().enumerate() {
            let unwound = self.unwinder.stack(index);
            match (disposition, sample, unwound) {
                (Disposition::Goes, ..) => {}
                (Disposition::Unwinds(_), Some(sample), Some(stack)) => {
                    let is_cut = stack.end == Some(ChainEnd::Cut) && !stack.is_joined && !stack.is_completed;
                    done.ends += ChainEndCounts {
                        walked: stack.end.is_some().into(),
                        cut: is_cut.into(),
                        joined: stack.is_joined.into(),
                    };
                    self.lost.write(raw, sample, stack.chain, &mut done.records);
                }
                (Disposition::Unwinds(_) | Disposition::Keeps, Some(sample), _) => {
                    done.kept += u64::from(unwound::write_with_fallback_id(raw, sample, &mut done.records));
                }
                _ => {
                    done.records.extend_from_slice(raw.bytes);
                    if raw.kind == kind::EXIT
                        && let Some(Record::Exit(task)) = raw.parse()
                    {
                        self.unwinder.forget(task.thread.tid);
                    }
                }
            }
        }
    }

    /// Returns the current code mappings of a process, with unwind tables.
    fn space(&mut self, pid: i32, arch: Arch, deadline: Instant) -> Option<Arc<CachedSpace>> {
        let version = self.running.version(pid)?;
        let is_known = |known: &&Arc<CachedSpace>| known.missing.is_empty() || known.age == self.tables.age();
        let generated = self.running.generated(pid);
        if let Some(known) = self.spaces.get_mut(&(version, arch)).filter(|known| is_known(&&**known)) {
            if known.generated < generated {
                *known = Arc::new(known.with_generated(&self.running, pid));
            }
            return Some(Arc::clone(known));
        }
        let code: Vec<_> = self.running.code(pid).copied().collect();
        let Self { running, tables, .. } = self;
        let mut get =
            |module| running.module(module).map_or(TableState::Read(None), |of| tables.get(module, of));
        // Request all tables before waiting for any of them.
        if code.iter().filter(|mapped| matches!(get(mapped.module), TableState::Reading)).count() > 0 {
            tables.wait(deadline);
        }
        let age = tables.age();
        let mut get =
            |module| running.module(module).map_or(TableState::Read(None), |of| tables.get(module, of));
        let mut space = Space::new(arch);
        let mut missing = Vec::new();
        for mapped in &code {
            let slot = get(mapped.module);
            let tables: Option<&UnwindTables> = match &slot {
                TableState::Read(tables) => tables.as_deref(),
                TableState::Reading => {
                    missing.push((mapped.mapping.start.0, mapped.mapping.start.0 + mapped.mapping.len));
                    None
                }
            };
            space.add(&mapped.mapping, tables);
        }
        if self.spaces.len() >= MOST_SPACES {
            self.spaces.clear();
        }
        let known = Arc::new(CachedSpace { space, version, generated, missing, age });
        self.spaces.insert((version, arch), Arc::clone(&known));
        Some(known)
    }
}

/// The architecture of the recorded machine, which is the one for which pmc was built.
const ARCH: Arch = if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 };

/// Returns the architecture of the process that the registers belong to; `None` for 32-bit Arm.
fn arch(registers: SampledRegisters<'_>) -> Option<Arch> {
    ARCH.of_process(registers.abi)
}

/// Unwinds the stack of a sample. Leaves the sample unchanged if a reader may find a better chain later. This
/// applies to 32-bit Arm processes, and if tables have not been read yet.
fn walk(walker: &mut StackWalker, entry: &RoundRecord<'_>, known: Option<&CachedSpace>) {
    // A kernel thread, or a process that is about to exit, has no user stack to unwind.
    let Some(registers) = entry.parts.user_regs else { return walker.take_empty() };
    let Some(arch) = arch(registers) else { return };
    let thread = entry.sample.and_then(|sample| sample.thread()).unwrap_or_default();
    // Without tables the unwinder guesses, so chains through such code are not reliable.
    let missing = known.map_or(&[][..], |known| &known.missing);
    let is_there =
        |frame: &StackFrame| !missing.iter().any(|(start, end)| (start..end).contains(&&frame.address.0));
    let space = known.map(|known| (&known.space, known.version));
    walker.walk(thread, space, arch, &entry.parts, is_there);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::encode::Encoder;
    use pmc_perfdata::record::layouts::fallback_event_id;
    use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Record, Thread};
    use pmc_sys::abi::Attr;
    use pmc_sys::abi::attr::Flag;
    use pmc_sys::abi::sample_type;

    const ID: u64 = 5;
    const COPIED: u64 = sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::TIME
        | sample_type::REGS_USER
        | sample_type::STACK_USER;

    const ABI_64: u64 = 2;

    fn attr() -> Attr {
        let mut attr = Attr::new(1, 0);
        attr.set_sample_type(COPIED);
        // bp, sp and ip.
        attr.set_sample_regs_user(0b111 << 6);
        attr.set_sample_stack_user(8);
        attr.set(Flag::SampleIdAll, true);
        attr
    }

    fn unwinder(hurry: bool) -> RoundUnwinder {
        let layouts = Layouts::new([(&attr(), &[ID][..])]);
        RoundUnwinder::new(
            layouts,
            StrippedFields::new(false, false),
            127,
            true,
            Arc::new(AtomicBool::new(hurry)),
        )
    }

    fn sample(time: u64, abi: u64) -> Vec<u8> {
        let words = [ID, 0x1000, 1 | 1 << 32, time, abi, 0, 0x7000, 0x1000, 8, 0, 8];
        let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
        record.extend(2u16.to_ne_bytes());
        record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }

    /// Encodes a record with the time in its trailer (pid and tid, time, id).
    fn at(time: u64, write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut out = Encoder::new(24);
        write(&mut out);
        let mut bytes = out.bytes().to_vec();
        let at = bytes.len() - 16;
        bytes[at..at + 8].copy_from_slice(&time.to_ne_bytes());
        bytes
    }

    fn comm(time: u64, name: &[u8]) -> Vec<u8> {
        at(time, |out| out.comm(Thread { pid: 1, tid: 1 }, name))
    }

    #[test]
    fn callers_in_later_generated_code_are_found() {
        let generated = |time: u64, addr: u64| {
            let thread = Thread { pid: 1, tid: 1 };
            let map = Mmap { thread, addr, len: 0x1000, pgoff: 0, is_data: false, name: b"//anon" };
            let file = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
            at(time, |out| out.mmap2(&Mmap2 { map, file, prot: 7, flags: 2 }))
        };
        // A sample in the first piece of code, called from the second. The frame pointer points to the
        // caller's frame pointer, which is null, followed by the return address.
        let called = |time: u64| {
            let words =
                [ID, 0x1_0000, 1 | 1 << 32, time, ABI_64, 0x7000, 0x7000, 0x1_0000, 16, 0, 0x5_0010, 16];
            let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
            record.extend(2u16.to_ne_bytes());
            record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
            record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            record
        };
        let bytes = [generated(1, 0x1_0000), called(2), generated(3, 0x5_0000), called(4)].concat();
        let done = unwinder(false).obey(WorkerMessage::End(UnwindRound { bytes, second: None })).unwrap();
        let plain = StrippedFields::new(false, false).attr(&attr()).unwrap();
        let layouts = Layouts::new([(&plain, &[ID][..])]);
        let callers = |record: RawRecord<'_>| {
            let (_, sample) = layouts.sample(&record)?;
            Some(sample.callchain()?.iter().filter(|word| *word == 0x5_0010).count())
        };
        assert_eq!(Records::new(&done.records).filter_map(callers).collect::<Vec<_>>(), [0, 1]);
    }

    /// Shows the written records: `S` for a sample, `T` for a sample of a fallback event, and the name for a
    /// COMM record.
    fn shown(done: &UnwoundRound) -> Vec<String> {
        let plain = StrippedFields::new(false, false).attr(&attr()).unwrap();
        let fallback = attr();
        let layouts = Layouts::new([(&plain, &[ID][..]), (&fallback, &[fallback_event_id(ID)][..])]);
        Records::new(&done.records)
            .map(|record| match record.parse() {
                Some(Record::Comm(comm)) => String::from_utf8_lossy(comm.comm).into_owned(),
                _ => {
                    let (event, sample) = layouts.sample(&record).unwrap();
                    let has_copy = sample.parts().unwrap().user_stack.is_some();
                    assert_eq!((event, sample.ip()), (0, Some(0x1000)));
                    assert_eq!(sample.callchain().is_some(), !has_copy);
                    if has_copy { "T" } else { "S" }.to_owned()
                }
            })
            .collect()
    }

    #[test]
    fn records_are_ordered_by_time_and_newest_are_held_back() {
        let mut unwinder = unwinder(false);
        let first = [sample(30, ABI_64), comm(10, b"a")].concat();
        let second = Some(first.len());
        let bytes = [first, comm(20, b"b"), sample(40, ABI_64), comm(35, b"c")].concat();
        let done = unwinder.obey(WorkerMessage::Round(UnwindRound { bytes, second })).unwrap();
        assert_eq!(shown(&done), ["a", "b", "S"]);
        let done =
            unwinder.obey(WorkerMessage::Round(UnwindRound { bytes: comm(38, b"d"), second: None })).unwrap();
        assert_eq!(shown(&done), ["c", "d", "S"]);
        let done = unwinder
            .obey(WorkerMessage::End(UnwindRound { bytes: comm(50, b"e"), second: Some(0) }))
            .unwrap();
        assert_eq!(shown(&done), ["e"]);
    }

    #[test]
    fn samples_keep_their_stack_copy_if_unwinding_is_late_or_impossible() {
        for (hurry, abi, want) in
            [(false, ABI_64, "S"), (true, ABI_64, "T"), (false, 1, "S"), (false, 3, "T"), (false, 0, "S")]
        {
            let round = UnwindRound { bytes: sample(1, abi), second: None };
            // If a sample has no registers (its ABI is "none"), the register words are omitted.  (odd: reads
            // as a tautology)
            let round = if abi == 0 { UnwindRound { bytes: kernel_thread(), ..round } } else { round };
            let done = unwinder(hurry).obey(WorkerMessage::End(round)).unwrap();
            assert_eq!((shown(&done), done.kept), (vec![want.to_owned()], u64::from(want == "T")), "{abi}");
        }
    }

    /// A sample without registers and stack.
    fn kernel_thread() -> Vec<u8> {
        let words = [ID, 0x1000, 1 | 1 << 32, 1, 0, 0];
        let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
        record.extend(1u16.to_ne_bytes());
        record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }
}
