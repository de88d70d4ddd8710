//! The thread that unwinds: rounds in, records in the order of time out, copies of stacks turned into chains.
//!
//! ```text
//!  held back | first pass | second pass      sorted by time; up to the newest record of the first pass: out,
//!  ───────────────────────▲──────────        the rest is held back
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::table_cache::{Slot, TableCache};
use super::{Done, Ends, Order, Round};
use crate::abi::{context, misc};
use crate::address::Avma;
use crate::record::sample::{Registers as SampledRegisters, user_part};
use crate::record::unwound::{self, Lost};
use crate::record::{Layouts, RawRecord, Record, Records, Sample, kind};
use crate::session::RunningProcesses;
use crate::unwind::{Arch, End, Frame, Joiner, Registers, Space, Tables, Walker};

/// How long a round waits for tables that are being read.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// How long a round may take; what is not unwound by then is written as it is.
const BUDGET: Duration = Duration::from_millis(250);
/// Spaces kept at a time.
const MOST_SPACES: usize = 256;
/// Samples below which one thread is faster than several.
const WORTHWHILE: usize = 400;

/// What unwinds, and all it knows.
pub(crate) struct RoundUnwinder {
    layouts: Layouts,
    lost: Lost,
    most: usize,
    hurry: Arc<AtomicBool>,
    running: RunningProcesses,
    tables: TableCache,
    /// By version and word size.
    spaces: FxHashMap<(u32, Arch), Arc<CachedSpace>>,
    /// What was last seen of threads; `None` if cut stacks stay so.
    joiner: Option<Joiner>,
    /// One for each thread that unwinds at a time.
    workers: Vec<UnwindWorker>,
    /// Records that are too new to be dealt with.
    held: Vec<u8>,
}

/// A process's code as the unwinder wants it.
struct CachedSpace {
    space: Space,
    /// See [`RunningProcesses::version`].
    version: u32,
    /// Where code lies whose tables are still being read.
    missing: Vec<(u64, u64)>,
    /// The table cache's age when this was made.
    age: u64,
}

/// What becomes of a record.
enum Disposition<'a> {
    /// It is written as it is.
    Stays(&'a [u8]),
    /// It is unwound.
    Unwinds(RawRecord<'a>, Sample<'a>, Option<Arc<CachedSpace>>),
    /// It is written with its copy.
    Keeps(RawRecord<'a>, Sample<'a>),
}

/// How a sample was walked.
struct Walked {
    /// Where its frames lie among the worker's.
    frames: Range<usize>,
    /// How many of them come from the copy; the others the kernel found.
    own: usize,
    /// Where the walk ended; `None` where nothing could be walked.
    end: Option<End>,
}

#[derive(Default)]
struct UnwindWorker {
    walker: Walker,
    values: Vec<u64>,
    chain: Vec<Frame>,
    /// Of all samples of a round.
    frames: Vec<Frame>,
    /// One for each of its dispositions; `None` for what is not unwound, and for a twin's.
    walked: Vec<Option<Walked>>,
}

impl RoundUnwinder {
    pub(crate) fn new(
        layouts: Layouts,
        lost: Lost,
        most: usize,
        joins: bool,
        hurry: Arc<AtomicBool>,
    ) -> Self {
        Self {
            layouts,
            lost,
            most,
            joiner: joins.then(Joiner::default),
            hurry,
            running: RunningProcesses::default(),
            tables: TableCache::new(),
            spaces: FxHashMap::default(),
            workers: Vec::new(),
            held: Vec::new(),
        }
    }

    pub(crate) fn obey(&mut self, order: Order) -> Option<Done> {
        match order {
            Order::Known(records) => {
                Records::new(&records).for_each(|record| self.running.note(&record));
                None
            }
            Order::Round(round) => Some(self.round(round, false)),
            Order::End(round) => Some(self.round(round, true)),
        }
    }

    fn round(&mut self, round: Round, is_last: bool) -> Done {
        let taken = round.bytes.len();
        let mut bytes = std::mem::take(&mut self.held);
        let second = bytes.len() + round.second.unwrap_or(taken);
        bytes.extend_from_slice(&round.bytes);
        drop(round);
        let mut order: Vec<(u64, usize)> = Vec::new();
        let (mut at, mut newest) = (0, 0);
        for record in Records::new(&bytes) {
            let time = self.layouts.time(&record).map_or(0, |time| time.0);
            order.push((time, at));
            if at < second {
                newest = newest.max(time);
            }
            at += record.bytes.len();
        }
        order.sort_unstable();
        let ready = if is_last { order.len() } else { order.partition_point(|(time, _)| *time <= newest) };
        let (now, later) = order.split_at(ready);
        let mut held = Vec::new();
        // In the order of the rings: what has the same time must stay as it came.
        let mut later: Vec<usize> = later.iter().map(|(_, at)| *at).collect();
        later.sort_unstable();
        for record in later.iter().filter_map(|at| RawRecord::first(&bytes[*at..])) {
            held.extend_from_slice(record.bytes);
        }
        let (records, kept, ends) = self.write(&bytes, now);
        self.held = held;
        if self.tables.tidy() {
            self.spaces.clear();
        }
        Done { records, kept, ends, taken }
    }

    fn write(&mut self, bytes: &[u8], order: &[(u64, usize)]) -> (Vec<u8>, u64, Ends) {
        let start = Instant::now();
        let (deadline, end) = (start + PATIENCE, start + BUDGET);
        let is_hurried = self.hurry.load(Ordering::Relaxed);
        // Both are lent out at once: layouts for as long as the dispositions live.
        let layouts = std::mem::take(&mut self.layouts);
        let mut dispositions = Vec::with_capacity(order.len());
        let mut unwound = 0;
        for (_, at) in order {
            let Some(raw) = RawRecord::first(&bytes[*at..]) else { continue };
            let sample = layouts.sample(&raw).map(|(_, sample)| sample);
            dispositions.push(match sample.filter(|s| unwound::has_copy(s.layout().sample_type())) {
                None => {
                    self.running.note(&raw);
                    // They are there for the stacks' sake.
                    let is_data =
                        matches!(raw.kind, kind::MMAP | kind::MMAP2) && raw.misc & misc::MMAP_DATA != 0;
                    if is_data && !self.lost.keeps_data() {
                        continue;
                    }
                    Disposition::Stays(raw.bytes)
                }
                Some(sample) if is_hurried || Instant::now() > end => Disposition::Keeps(raw, sample),
                Some(sample) => {
                    unwound += 1;
                    let pid = sample.thread().map_or(-1, |thread| thread.pid);
                    let arch = sample.parts().and_then(|parts| parts.user_regs).and_then(arch);
                    Disposition::Unwinds(raw, sample, self.space(pid, arch.unwrap_or(ARCH), deadline))
                }
            });
        }
        let threads = if unwound < WORTHWHILE { 1 } else { rayon::current_num_threads() };
        self.workers.resize_with(self.workers.len().max(threads), UnwindWorker::default);
        let most = self.most;
        let each = dispositions.len().div_ceil(threads).max(1);
        let work = |(worker, dispositions): (&mut UnwindWorker, &[Disposition<'_>])| {
            worker.frames.clear();
            worker.walked.clear();
            for disposition in dispositions {
                let walked = match disposition {
                    Disposition::Unwinds(_, sample, known) if Instant::now() <= end => {
                        worker.walk(sample, known.as_deref(), most)
                    }
                    _ => None,
                };
                worker.walked.push(walked);
            }
        };
        if threads == 1 {
            self.workers.iter_mut().zip(dispositions.chunks(each)).for_each(work);
        } else {
            self.workers.par_iter_mut().zip(dispositions.par_chunks(each)).for_each(work);
        }
        // What is joined rests on what came before: one after the other.
        let (mut out, mut kept, mut ends) = (Vec::new(), 0, Ends::default());
        let Self { workers, joiner, lost, .. } = self;
        let (mut frames, mut chain) = (Vec::new(), Vec::new());
        for (worker, dispositions) in workers.iter().zip(dispositions.chunks(each)) {
            for (disposition, walked) in dispositions.iter().zip(&worker.walked) {
                match (disposition, walked) {
                    (Disposition::Stays(bytes), _) => {
                        out.extend_from_slice(bytes);
                        let record = RawRecord::first(bytes).filter(|raw| raw.kind == kind::EXIT);
                        if let Some(Record::Exit(task)) = record.and_then(|raw| raw.parse())
                            && let Some(joiner) = joiner
                        {
                            joiner.forget(task.thread.tid);
                        }
                    }
                    (Disposition::Unwinds(raw, sample, known), Some(walked)) => {
                        frames.clear();
                        frames.extend_from_slice(&worker.frames[walked.frames.clone()][..walked.own]);
                        let followed = &worker.frames[walked.frames.clone()][walked.own..];
                        let tid = sample.thread().map_or(0, |thread| thread.tid);
                        let version = known.as_ref().map(|known| known.version);
                        let join =
                            |joiner: &mut Joiner| joiner.join(tid, version?, walked.end?, most, &mut frames);
                        let joined = joiner.as_mut().and_then(join);
                        chain.clear();
                        chain.extend(
                            frames[..joined.unwrap_or(walked.own)].iter().map(|frame| frame.address.0),
                        );
                        match joined {
                            Some(own) => {
                                chain.push(context::USER);
                                chain.extend(frames[own..].iter().map(|frame| frame.address.0));
                            }
                            None => chain.extend(followed.iter().map(|frame| frame.address.0)),
                        }
                        let is_cut = walked.end == Some(End::Cut) && joined.is_none() && followed.is_empty();
                        ends += Ends {
                            walked: walked.end.is_some().into(),
                            cut: is_cut.into(),
                            joined: joined.is_some().into(),
                        };
                        lost.write(raw, sample, &chain, &mut out);
                    }
                    (Disposition::Keeps(raw, sample) | Disposition::Unwinds(raw, sample, _), _) => {
                        kept += u64::from(unwound::write_twin(raw, sample, &mut out));
                    }
                }
            }
        }
        drop(dispositions);
        self.layouts = layouts;
        (out, kept, ends)
    }

    /// The code of a process as it is now.
    fn space(&mut self, pid: i32, arch: Arch, deadline: Instant) -> Option<Arc<CachedSpace>> {
        let version = self.running.version(pid)?;
        let is_known = |known: &&Arc<CachedSpace>| known.missing.is_empty() || known.age == self.tables.age();
        if let Some(known) = self.spaces.get(&(version, arch)).filter(is_known) {
            return Some(Arc::clone(known));
        }
        let code: Vec<_> = self.running.code(pid).copied().collect();
        let Self { running, tables, .. } = self;
        let mut get = |module| running.module(module).map_or(Slot::Read(None), |of| tables.get(module, of));
        // All are asked for before the first is waited for.
        if code.iter().filter(|mapped| matches!(get(mapped.module), Slot::Reading)).count() > 0 {
            tables.wait(deadline);
        }
        let age = tables.age();
        let mut get = |module| running.module(module).map_or(Slot::Read(None), |of| tables.get(module, of));
        let mut space = Space::new(arch);
        let mut missing = Vec::new();
        for mapped in &code {
            let slot = get(mapped.module);
            let tables: Option<&Tables> = match &slot {
                Slot::Read(tables) => tables.as_deref(),
                Slot::Reading => {
                    missing.push((mapped.mapping.start.0, mapped.mapping.start.0 + mapped.mapping.len));
                    None
                }
            };
            space.add(&mapped.mapping, tables);
        }
        if self.spaces.len() >= MOST_SPACES {
            self.spaces.clear();
        }
        let known = Arc::new(CachedSpace { space, version, missing, age });
        self.spaces.insert((version, arch), Arc::clone(&known));
        Some(known)
    }
}

/// The processor that is recorded is ours.
const ARCH: Arch = if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 };

/// That of the process that these are of; `None` for 32-bit Arm.
fn arch(registers: SampledRegisters<'_>) -> Option<Arch> {
    ARCH.of_process(registers.abi)
}

impl UnwindWorker {
    /// Walks a sample. `None` where somebody else may later find a better chain: in a process of 32-bit Arm,
    /// or when tables were not read yet.
    fn walk(&mut self, sample: &Sample<'_>, known: Option<&CachedSpace>, most: usize) -> Option<Walked> {
        let start = self.frames.len();
        let parts = sample.parts();
        let copied = parts.as_ref().and_then(|parts| Some((parts.user_regs?, parts.user_stack)));
        // A kernel thread, or a process about to vanish, has nothing to unwind.
        let Some((recorded, stack)) = copied else {
            return Some(Walked { frames: start..start, own: 0, end: None });
        };
        let arch = arch(recorded)?;
        self.values.clear();
        self.values.extend(recorded.values.iter());
        let registers = Registers::from_sample(arch, recorded.mask, &self.values)?;
        let Some(known) = known else {
            self.frames.push(Frame { address: Avma(registers.ip), sp: registers.sp });
            return Some(Walked { frames: start..start + 1, own: 1, end: None });
        };
        let stack = stack.map_or(&[][..], |stack| stack.bytes);
        let end = self.walker.walk(&known.space, &registers, stack, most, &mut self.chain);
        let own = self.chain.len();
        // The kernel may have followed frame pointers too, and further.
        let recorded = parts.as_ref().and_then(|parts| parts.callchain).unwrap_or_default();
        self.walker.complete(&known.space, user_part(recorded), most, &mut self.chain);
        // Without its tables code is walked by guesses: what went through it is not to be trusted.
        let is_missing =
            |frame: &Frame| known.missing.iter().any(|(start, end)| (start..end).contains(&&frame.address.0));
        if !known.missing.is_empty() && self.chain.iter().any(is_missing) {
            return None;
        }
        self.frames.append(&mut self.chain);
        Some(Walked { frames: start..self.frames.len(), own, end: Some(end) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Attr;
    use crate::abi::attr::Flag;
    use crate::abi::sample_type;
    use crate::record::encode::Encoder;
    use crate::record::layouts::twin_id;
    use crate::record::{Record, Thread};

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
        RoundUnwinder::new(layouts, Lost::new(false, false), 127, true, Arc::new(AtomicBool::new(hurry)))
    }

    fn sample(time: u64, abi: u64) -> Vec<u8> {
        let words = [ID, 0x1000, 1 | 1 << 32, time, abi, 0, 0x7000, 0x1000, 8, 0, 8];
        let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
        record.extend(2u16.to_ne_bytes());
        record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }

    /// A name, with the time in its trailer (pid and tid, time, id).
    fn comm(time: u64, name: &[u8]) -> Vec<u8> {
        let mut out = Encoder::new(24);
        out.comm(Thread { pid: 1, tid: 1 }, name);
        let mut bytes = out.bytes().to_vec();
        let at = bytes.len() - 16;
        bytes[at..at + 8].copy_from_slice(&time.to_ne_bytes());
        bytes
    }

    /// What was written: `S` for a sample, `T` for a twin's, the name for a name.
    fn shown(done: &Done) -> Vec<String> {
        let plain = Lost::new(false, false).attr(&attr()).unwrap();
        let twin = attr();
        let layouts = Layouts::new([(&plain, &[ID][..]), (&twin, &[twin_id(ID)][..])]);
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
    fn records_come_by_time_and_what_is_too_new_waits() {
        let mut unwinder = unwinder(false);
        let first = [sample(30, ABI_64), comm(10, b"a")].concat();
        let second = Some(first.len());
        let bytes = [first, comm(20, b"b"), sample(40, ABI_64), comm(35, b"c")].concat();
        let done = unwinder.obey(Order::Round(Round { bytes, second })).unwrap();
        assert_eq!(shown(&done), ["a", "b", "S"]);
        let done = unwinder.obey(Order::Round(Round { bytes: comm(38, b"d"), second: None })).unwrap();
        assert_eq!(shown(&done), ["c", "d", "S"]);
        let done = unwinder.obey(Order::End(Round { bytes: comm(50, b"e"), second: Some(0) })).unwrap();
        assert_eq!(shown(&done), ["e"]);
    }

    #[test]
    fn samples_keep_their_copies_when_time_is_short_or_nobody_can_unwind_them() {
        for (hurry, abi, want) in
            [(false, ABI_64, "S"), (true, ABI_64, "T"), (false, 1, "S"), (false, 3, "T"), (false, 0, "S")]
        {
            let round = Round { bytes: sample(1, abi), second: None };
            // Without registers the record has none of their words.
            let round = if abi == 0 { Round { bytes: kernel_thread(), ..round } } else { round };
            let done = unwinder(hurry).obey(Order::End(round)).unwrap();
            assert_eq!((shown(&done), done.kept), (vec![want.to_owned()], u64::from(want == "T")), "{abi}");
        }
    }

    /// Neither registers nor a stack.
    fn kernel_thread() -> Vec<u8> {
        let words = [ID, 0x1000, 1 | 1 << 32, 1, 0, 0];
        let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
        record.extend(1u16.to_ne_bytes());
        record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }
}
