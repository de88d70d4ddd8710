//! The unwinding thread: receives rounds, unwinds stack copies into call chains, and returns records sorted
//! by time.
//!
//! ```text
//!  held back | first pass | second pass      sorted by time; output up to the first pass's newest record,
//!  ───────────────────────▲──────────        newer records are held back
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::memory::{ARCH, BlockedStack, arch, read_full_stack};
use super::table_cache::{TableCache, TableState};
use super::{Backlog, ChainEndCounts, KeptCopies, UnwindRound, UnwoundRound, WorkerMessage};
use crate::recording::off_cpu::OffCpuWriter;
use crate::recording::off_cpu::events::OffCpuSource;
use pmc_analysis::session::RunningProcesses;
use pmc_perfdata::record::sample::UserStack;
use pmc_perfdata::record::unwound::{self, StrippedFields};
use pmc_perfdata::record::{Layouts, RawRecord, Record, Records, Sample, SampleParts, kind};
use pmc_symbols::unwind::{Arch, ChainEnd, Space, StackFrame, StackUnwinder, StackWalker, UnwindTables};
use pmc_symbols::worker_threads;
use pmc_sys::abi::{context, misc};
use pmc_sys::host::Host;
use pmc_sys::sys::clock;

/// Maximum time that a round waits for unwind tables that are being read.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum time for processing a round. Samples that have not been unwound by then are written unchanged.
const BUDGET: Duration = Duration::from_millis(250);
/// Maximum time that a round with stacks of switches waits for unwind tables.
pub(crate) const PATIENCE_FOR_SWITCHES: Duration = Duration::from_secs(20);
/// Value of these limits if samples that have not been unwound would lose their stacks.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum number of cached address spaces.
const MOST_SPACES: usize = 256;
/// Maximum number of waiting threads whose stacks are read after each round. Reading a stack takes about 10
/// µs.
const MOST_READ: usize = 256;
/// Maximum number of these threads when the measurement begins, because it waits for their stacks.
const MOST_READ_FIRST: usize = 8192;
/// Maximum number of threads with truncated stacks whose memory is read after each round.
const MOST_OUTER: usize = 32;
/// Number of samples below which one thread is faster than several.
const WORTHWHILE: usize = 400;

/// Unwinds the samples of each round, and tracks the state of all processes.
pub(crate) struct RoundUnwinder {
    layouts: Layouts,
    lost: StrippedFields,
    backlog: Arc<Backlog>,
    running: RunningProcesses,
    tables: TableCache,
    /// Address spaces, keyed by version and word size.
    spaces: FxHashMap<(u32, Arch), Arc<CachedSpace>>,
    unwinder: StackUnwinder,
    /// Records that are too new for the current round.
    held: Vec<u8>,
    off_cpu: Option<OffCpuWriter>,
    /// Time at which the measurement begins, if off-CPU time is measured. Until then, some threads' events
    /// may be off.
    begins_at: u64,
    /// Whether a reader can unwind samples that keep their copies.
    pub(super) defers: bool,
    host: Host,
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
    /// Whether the unwind tables of a frame's code have been read.
    fn is_known(&self, frame: &StackFrame) -> bool {
        !self.missing.iter().any(|(start, end)| (start..end).contains(&&frame.address.0))
    }

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
    /// The sample's event.
    event: usize,
    /// The parts of a sample that are needed for unwinding.
    parts: SampleParts<'a>,
    disposition: Disposition,
}

impl<'a> RoundRecord<'a> {
    fn new(raw: RawRecord<'a>, layouts: &'a Layouts) -> Self {
        let (event, sample) = layouts.sample(&raw).map_or((0, None), |(event, sample)| (event, Some(sample)));
        let time = sample.map_or_else(|| layouts.sample_id(&raw).time, |sample| sample.time());
        let time = time.map_or(0, |time| time.0);
        Self { time, raw, sample, event, parts: SampleParts::default(), disposition: Disposition::Stays }
    }
}

/// How long to wait for unwind tables that are being read.
#[derive(Clone, Copy)]
enum TablePatience {
    /// Until this time, once after tables have been requested.
    Once(Instant),
    /// Until this time, or until too many bytes wait.
    Full(Instant),
}

impl TablePatience {
    /// Whether to accept a space without tables that are still being read.
    fn is_exhausted(self, backlog: &Backlog) -> bool {
        match self {
            Self::Once(_) => true,
            Self::Full(deadline) => Instant::now() >= deadline || backlog.is_large(),
        }
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
        backlog: Arc<Backlog>,
        off_cpu: Option<OffCpuSource>,
    ) -> Self {
        Self {
            layouts,
            lost,
            unwinder: StackUnwinder::new(most, joins),
            backlog,
            running: RunningProcesses::default(),
            tables: TableCache::new(),
            spaces: FxHashMap::default(),
            held: Vec::new(),
            off_cpu: off_cpu.map(OffCpuWriter::new),
            begins_at: 0,
            defers: true,
            host: Host::live(),
        }
    }

    pub(crate) fn handle(&mut self, order: WorkerMessage) -> Option<UnwoundRound> {
        match order {
            WorkerMessage::Known(records) => {
                Records::new(&records).for_each(|record| self.running.note(&record));
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.exist(&records);
                }
                self.read_waiting_stacks(MOST_READ);
                None
            }
            WorkerMessage::Begin(answer) => {
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.forget_seen();
                    self.read_waiting_stacks(MOST_READ_FIRST);
                }
                let now = clock::monotonic_ns();
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.begin_at(now);
                    self.begins_at = now;
                }
                // Sending fails only if the recorder has ended.
                let _ = answer.send(now);
                None
            }
            WorkerMessage::StackSampling(time, sampling) => {
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.samples_stacks(time, sampling);
                }
                None
            }
            WorkerMessage::Round(round) => {
                let done = self.round(round, false);
                if !self.backlog.is_old_or_large() {
                    self.read_waiting_stacks(MOST_READ);
                }
                Some(done)
            }
            WorkerMessage::End(round, time) => {
                let mut done = self.round(round, true);
                self.read_waiting_stacks(MOST_READ);
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.finish(time, &mut done.records);
                }
                Some(done)
            }
        }
    }

    /// Reads the stacks of at most this number of waiting threads from their memory, if the kernel has not
    /// recorded them.
    fn read_waiting_stacks(&mut self, most: usize) {
        let Some(off_cpu) = &mut self.off_cpu else { return };
        let threads = off_cpu.unexplained(most);
        if threads.is_empty() {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        let stacks: Vec<BlockedStack> =
            threads.into_iter().filter_map(|thread| BlockedStack::read(&self.host, thread)).collect();
        let stacks: Vec<_> = stacks
            .into_iter()
            .map(|stack| {
                let space = self.space(stack.thread.pid, ARCH, TablePatience::Once(deadline));
                (stack, space)
            })
            .collect();
        self.unwinder.walk(&stacks, false, |walker, (stack, known)| {
            let is_there = |frame: &StackFrame| known.as_ref().is_none_or(|known| known.is_known(frame));
            let space = known.as_ref().map(|known| (&known.space, known.version));
            walker.walk(stack.thread, space, ARCH, &stack.parts(), is_there);
        });
        for (index, (stack, _)) in stacks.iter().enumerate() {
            if let (Some(off_cpu), Some(unwound)) = (&mut self.off_cpu, self.unwinder.stack(index)) {
                off_cpu.see(stack.thread, stack.time, [&[context::USER], unwound.chain].concat());
            }
        }
    }

    fn round(&mut self, round: UnwindRound, is_last: bool) -> UnwoundRound {
        let UnwindRound { bytes, second, settled } = round;
        // The entries borrow both fields, so take the fields out of `self` for now.
        let (layouts, held) = (std::mem::take(&mut self.layouts), std::mem::take(&mut self.held));
        let entry = |raw| RoundRecord::new(raw, &layouts);
        let (first, second) = bytes.split_at(second.unwrap_or(bytes.len()));
        let mut entries: Vec<RoundRecord<'_>> =
            Records::new(&held).chain(Records::new(first)).map(entry).collect();
        let newest = entries.iter().map(|entry| entry.time).max().max(settled).unwrap_or(0);
        let newest = if is_last { u64::MAX } else { newest };
        entries.extend(Records::new(second).map(entry));
        // Keep the order of the rings, because records with equal times must not be reordered.
        let later = |entry: &mut RoundRecord<'_>| entry.time > newest;
        for entry in entries.extract_if(.., later) {
            self.held.extend_from_slice(entry.raw.bytes);
        }
        entries.sort_by_key(|entry| entry.time);
        let mut done = UnwoundRound { taken: bytes.len(), ..UnwoundRound::default() };
        self.write(&layouts, entries, &mut done);
        if let (Some(off_cpu), Some(_)) = (&mut self.off_cpu, settled) {
            off_cpu.write_progress(newest, &mut done.records);
            done.settled = Some(newest);
        }
        self.layouts = layouts;
        done.bytes = bytes;
        done.tables_cpu_ns = self.tables.cpu_ns();
        if self.tables.drop_if_too_large() {
            self.spaces.clear();
        }
        done
    }

    fn write(&mut self, layouts: &Layouts, mut entries: Vec<RoundRecord<'_>>, done: &mut UnwoundRound) {
        let start = Instant::now();
        let (deadline, deadline_of_switches, end) = match self.defers {
            true => (start + PATIENCE, start + PATIENCE_FOR_SWITCHES, start + BUDGET),
            false => (start + LONGEST, start + LONGEST, start + LONGEST),
        };
        let is_hurried = self.backlog.is_old_or_large();
        // The stacks of switches are always unwound, because their copies are not written.
        let switches = self.off_cpu.as_ref().map(OffCpuWriter::event);
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
            let can_wait = Some(entry.event) != switches;
            entry.disposition = if can_wait && (is_hurried || Instant::now() > end) {
                Disposition::Keeps
            } else {
                unwound += 1;
                entry.parts = sample.parts().unwrap_or_default();
                let pid = sample.thread().map_or(-1, |thread| thread.pid);
                let arch = entry.parts.user_regs.and_then(arch).unwrap_or(ARCH);
                let patience = match can_wait {
                    true => TablePatience::Once(deadline),
                    false => TablePatience::Full(deadline_of_switches),
                };
                Disposition::Unwinds(self.space(pid, arch, patience))
            };
        }
        let in_parallel = unwound >= WORTHWHILE && worker_threads::start() == Ok(false);
        self.unwinder.walk(&entries, in_parallel, |walker, entry| match &entry.disposition {
            Disposition::Unwinds(known) if Some(entry.event) == switches || Instant::now() <= end => {
                walk(walker, entry.sample, &entry.parts, known.as_deref())
            }
            _ => {}
        });
        let mut truncated: FxHashMap<i32, usize> = FxHashMap::default();
        for (index, RoundRecord { time, raw, sample, event, disposition, .. }) in entries.iter().enumerate() {
            let is_early = *time > 0 && *time < self.begins_at;
            let unwound = self.unwinder.stack(index);
            let is_truncated = unwound.as_ref().is_some_and(|stack| {
                let ends_early = matches!(stack.end, Some(ChainEnd::Cut | ChainEnd::Unread));
                ends_early && !stack.is_joined && !stack.is_completed
            });
            if let Some(thread) = sample.and_then(|sample| sample.thread()).filter(|_| unwound.is_some()) {
                match is_truncated {
                    true => _ = truncated.insert(thread.tid, index),
                    false => _ = truncated.remove(&thread.tid),
                }
            }
            if let (Some(off_cpu), Some(sample)) = (&mut self.off_cpu, sample) {
                let thread = sample.thread().unwrap_or_default();
                if Some(*event) == switches {
                    let user = unwound.as_ref().map_or(&[][..], |stack| stack.chain);
                    let chain = unwound::whole_chain(sample, user);
                    off_cpu.stack(thread, chain, sample.ip().unwrap_or(0));
                    continue;
                }
                if Some(*event) == off_cpu.wakeups() {
                    off_cpu.wake(sample, layouts, &mut done.records);
                    continue;
                }
                off_cpu.runs(thread);
                if is_early {
                    continue;
                }
            }
            match (disposition, sample, unwound) {
                (Disposition::Goes, ..) => {}
                (Disposition::Unwinds(_), Some(sample), Some(stack)) => {
                    done.ends += ChainEndCounts {
                        walked: stack.end.is_some().into(),
                        cut: (is_truncated && stack.end == Some(ChainEnd::Cut)).into(),
                        joined: stack.is_joined.into(),
                    };
                    self.lost.write(raw, sample, stack.chain, &mut done.records);
                }
                (Disposition::Unwinds(_) | Disposition::Keeps, Some(sample), _) => {
                    let samples = unwound::write_with_fallback_id(raw, sample, &mut done.records).into();
                    let registers = sample.parts().and_then(|parts| parts.user_regs);
                    let is_compat = registers.is_some_and(|registers| arch(registers).is_none());
                    done.kept += KeptCopies { samples, compat: if is_compat { samples } else { 0 } };
                }
                _ => {
                    let measures = matches!(
                        raw.kind,
                        kind::SWITCH | kind::SWITCH_CPU_WIDE | kind::LOST | kind::LOST_SAMPLES
                    );
                    if !is_early || !measures {
                        done.records.extend_from_slice(raw.bytes);
                    }
                    if let Some(off_cpu) = &mut self.off_cpu {
                        off_cpu.follow(raw, layouts, &mut done.records);
                    }
                    if raw.kind == kind::EXIT
                        && let Some(Record::Exit(task)) = raw.parse()
                    {
                        self.unwinder.forget(task.thread.tid);
                        truncated.remove(&task.thread.tid);
                    }
                }
            }
        }
        self.read_outer_frames(&entries, &truncated);
    }

    /// Reads the outer frames of stacks that are longer than their copies from the memory of their threads.
    /// `truncated` contains each thread's newest sample, if its stack is truncated.
    ///
    /// ```text
    ///   sample 1      round ends: read here      sample 2
    ///   f, cut        the words beyond the copy  f at the same place: it has not returned, so the words that
    ///                                            were read belong to its callers
    /// ```
    ///
    /// A stack that was read is used only for later samples, and only if they contain its frames: as with any
    /// earlier stack of the thread, by the joiner.
    fn read_outer_frames(&mut self, entries: &[RoundRecord<'_>], truncated: &FxHashMap<i32, usize>) {
        if truncated.is_empty() || !self.unwinder.joins() || self.backlog.is_old_or_large() {
            return;
        }
        let stacks: Vec<(&RoundRecord<'_>, Vec<u8>)> = truncated
            .iter()
            .take(MOST_OUTER)
            .filter_map(|(tid, index)| {
                let entry = &entries[*index];
                let memory = read_full_stack(*tid, &entry.parts)?;
                Some((entry, memory))
            })
            .collect();
        self.unwinder.walk(&stacks, false, |walker, (entry, memory)| {
            let Disposition::Unwinds(known) = &entry.disposition else { return };
            let parts = SampleParts { user_stack: Some(UserStack::from_bytes(memory)), ..entry.parts };
            walk(walker, entry.sample, &parts, known.as_deref());
        });
        for index in 0..stacks.len() {
            self.unwinder.remember_stack(index);
        }
    }

    /// Returns the current code mappings of a process, with unwind tables.
    fn space(&mut self, pid: i32, arch: Arch, patience: TablePatience) -> Option<Arc<CachedSpace>> {
        let version = self.running.version(pid)?;
        let is_known = |known: &&Arc<CachedSpace>| {
            known.missing.is_empty() || known.age == self.tables.age() && patience.is_exhausted(&self.backlog)
        };
        let generated = self.running.generated(pid);
        if let Some(known) = self.spaces.get_mut(&(version, arch)).filter(|known| is_known(&&**known)) {
            if known.generated < generated {
                *known = Arc::new(known.with_generated(&self.running, pid));
            }
            return Some(Arc::clone(known));
        }
        let code: Vec<_> = self.running.code(pid).copied().collect();
        let Self { running, tables, backlog, .. } = self;
        let mut get =
            |module| running.module(module).map_or(TableState::Read(None), |of| tables.get(module, of));
        // Request all tables before waiting for any of them.
        if code.iter().filter(|mapped| matches!(get(mapped.module), TableState::Reading)).count() > 0 {
            match patience {
                TablePatience::Once(deadline) => tables.wait_once(deadline),
                TablePatience::Full(deadline) => tables.wait(deadline, || backlog.is_large()),
            }
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

/// Unwinds the stack of a sample. Leaves the sample unchanged if a reader may find a better chain later: for
/// a 32-bit Arm process, or if some tables have not been read yet.
fn walk(
    walker: &mut StackWalker,
    sample: Option<Sample<'_>>,
    parts: &SampleParts<'_>,
    known: Option<&CachedSpace>,
) {
    // A kernel thread, or a process that is about to exit, has no user stack to unwind.
    let Some(registers) = parts.user_regs else { return walker.take_empty() };
    let Some(arch) = arch(registers) else { return };
    let thread = sample.and_then(|sample| sample.thread()).unwrap_or_default();
    // Without tables, the unwinder has to guess, so chains through such code are unreliable.
    let is_there = |frame: &StackFrame| known.is_none_or(|known| known.is_known(frame));
    let space = known.map(|known| (&known.space, known.version));
    walker.walk(thread, space, arch, parts, is_there);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::plan::OffCpuPlan;
    use pmc_perfdata::perfdata::RecordedEvent;
    use pmc_perfdata::record::encode::Encoder;
    use pmc_perfdata::record::layouts::fallback_event_id;
    use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Record, Thread};
    use pmc_sys::abi::Attr;
    use pmc_sys::abi::attr::Flag;
    use pmc_sys::abi::generic::CONTEXT_SWITCHES;
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

    fn backlog(is_large: bool) -> Arc<Backlog> {
        Arc::new(Backlog { is_large: is_large.into(), ..Backlog::default() })
    }

    fn unwinder(hurry: bool) -> RoundUnwinder {
        let layouts = Layouts::new([(&attr(), &[ID][..])]);
        RoundUnwinder::new(layouts, StrippedFields::new(false, false), 127, true, backlog(hurry), None)
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
        let done = unwinder(false)
            .handle(WorkerMessage::End(UnwindRound { bytes, ..UnwindRound::default() }, 0))
            .unwrap();
        let plain = StrippedFields::new(false, false).attr(&attr()).unwrap();
        let layouts = Layouts::new([(&plain, &[ID][..])]);
        let callers = |record: RawRecord<'_>| {
            let (_, sample) = layouts.sample(&record)?;
            Some(sample.callchain()?.iter().filter(|word| *word == 0x5_0010).count())
        };
        assert_eq!(Records::new(&done.records).filter_map(callers).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn stacks_of_switches_are_unwound_even_in_a_hurry() {
        let mut switch = attr();
        switch.set_config(CONTEXT_SWITCHES);
        switch.set_period(1);
        let layouts = Layouts::new([(&switch, &[ID][..])]);
        let event = RecordedEvent { attr: switch, ids: vec![ID], name: None };
        let plan = OffCpuPlan::default();
        let source = OffCpuSource::new(plan, false, std::slice::from_ref(&event), &mut vec![event.clone()]);
        let lost = StrippedFields::new(false, false);
        let mut unwinder = RoundUnwinder::new(layouts, lost, 127, true, backlog(true), source);
        let switch = |time: u64, misc: u16| {
            let words = [1 | 1 << 32, time, ID];
            let mut record = kind::SWITCH.to_ne_bytes().to_vec();
            record.extend(misc.to_ne_bytes());
            record.extend((8 + words.len() as u16 * 8).to_ne_bytes());
            record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            record
        };
        let bytes = [comm(1, b"one"), sample(2, ABI_64), switch(3, misc::SWITCH_OUT), switch(9, 0)].concat();
        let done =
            unwinder.handle(WorkerMessage::End(UnwindRound { bytes, ..UnwindRound::default() }, 10)).unwrap();
        let waits: Vec<Vec<u64>> = Records::new(&done.records)
            .filter(|raw| raw.kind == kind::SAMPLE)
            .map(|raw| {
                raw.body().chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
            })
            .collect();
        // Fields: id, address, thread, time, CPU, period, and the chain with its length.
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0][3], waits[0][5]), (9, 6));
        assert!(waits[0][6] > 0 && waits[0].contains(&0x1000), "{waits:x?}");
    }

    #[test]
    fn stacks_of_switches_wait_for_unwind_tables() {
        let program = std::env::current_exe().unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&program.metadata().unwrap());
        let mut unwinder = unwinder(false);
        let mapped = at(1, |out| {
            let thread = Thread { pid: 1, tid: 1 };
            let name = program.as_os_str().as_encoded_bytes();
            let map = Mmap { thread, addr: 0x40_0000, len: 0x100_0000, pgoff: 0, is_data: false, name };
            let file = MappedFileId::Inode { major: 0, minor: 0, inode, generation: 0 };
            out.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
        });
        Records::new(&mapped).for_each(|record| unwinder.running.note(&record));
        // A sample does not wait. Reading the tables of this program takes longer than starting to read them.
        let mut space = |patience| unwinder.space(1, ARCH, patience).expect("the process is known");
        assert_eq!(space(TablePatience::Once(Instant::now())).missing.len(), 1);
        assert_eq!(space(TablePatience::Full(Instant::now() + LONGEST)).missing, []);
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
        let done =
            unwinder.handle(WorkerMessage::Round(UnwindRound { bytes, second, settled: None })).unwrap();
        assert_eq!(shown(&done), ["a", "b", "S"]);
        let done = unwinder
            .handle(WorkerMessage::Round(UnwindRound { bytes: comm(38, b"d"), ..UnwindRound::default() }))
            .unwrap();
        assert_eq!(shown(&done), ["c", "d", "S"]);
        let done = unwinder
            .handle(WorkerMessage::End(
                UnwindRound { bytes: comm(50, b"e"), second: Some(0), settled: None },
                0,
            ))
            .unwrap();
        assert_eq!(shown(&done), ["e"]);
    }

    #[test]
    fn samples_keep_their_stack_copy_if_unwinding_is_late_or_impossible() {
        for (hurry, abi, want) in
            [(false, ABI_64, "S"), (true, ABI_64, "T"), (false, 1, "S"), (false, 3, "T"), (false, 0, "S")]
        {
            let round = UnwindRound { bytes: sample(1, abi), ..UnwindRound::default() };
            // The kernel sets the ABI to 0 for a sample without registers, and writes no register words.
            let round = if abi == 0 { UnwindRound { bytes: kernel_thread(), ..round } } else { round };
            let done = unwinder(hurry).handle(WorkerMessage::End(round, 0)).unwrap();
            let kept = KeptCopies { samples: (want == "T").into(), compat: (abi == 3).into() };
            assert_eq!((shown(&done), done.kept), (vec![want.to_owned()], kept), "{abi}");
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
