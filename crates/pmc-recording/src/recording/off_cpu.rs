//! Off-CPU time: turns context switches into samples whose period is the time that a thread was off the CPU.
//!
//! The kernel samples the stack of a thread that leaves its CPU, and reports when it leaves and returns.
//! [`OffCpuWriter`] pairs the two by thread and writes one sample per wait. Readers see ordinary events:
//! `offcpu-time` for blocked threads, and `offcpu-runnable` for threads that waited for a CPU.
//!
//! ```text
//!   thread   running │ sample: stack │ SWITCH out ·········· SWITCH in │ running
//!   file                              ◄──────── period ──────►  sample of offcpu-time, at the end's time
//! ```

pub(super) mod events;
mod shares;
pub(super) mod thinning;
pub(super) mod wait;
pub(super) mod wakers;
mod window;

use events::{BLOCKED_ID, OffCpuSource, RUNNABLE_ID};
use rustc_hash::{FxHashMap, FxHashSet};
use shares::{WaitShare, WaitShares};
use thinning::SamplingHistory;

use pmc_analysis::interval::{IntervalEngine, Overlap};
use pmc_analysis::session::handover::CpuHandovers;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{
    Layouts, MissingStack, RawRecord, Record, Records, Sample, Thread, WaitPartner, kind,
};
use pmc_sys::abi::{CpuMode, context};
use pmc_sys::host::Host;
use pmc_sys::sys::{clock, process};
use wait::{SHORT, StackSampling, SwitchStack, Wait, WaitOwner, WaitPart};
use wakers::WakeTracker;

/// Minimum length in nanoseconds of a wait that counts with its own stack even if that stack was not sampled.
/// pmc reads the stack from memory during the wait.
const LONG_NS: u64 = 100_000_000;

/// Pairs switches, and writes a sample for each wait.
///
/// The stack is a sample of `context-switches` with period 1. The times come from the `SWITCH` records,
/// because the kernel still runs for a while after the sample. These records are small, so they survive even
/// when stacks are lost. The sample of such a wait has no stack. A preempted thread is runnable (the kernel's
/// flag `SWITCH_OUT_PREEMPT`). perf 6.1 and 7.2 report the same sums as pmc.
pub(super) struct OffCpuWriter {
    source: OffCpuSource,
    waits: IntervalEngine<i32, Wait>,
    /// The last sampled stack of each thread since the thread got a CPU.
    stacks: FxHashMap<i32, SwitchStack>,
    /// Threads that existed before the recording and have not appeared in it yet. Their state is unknown
    /// since the recording started.
    initial: FxHashMap<i32, Wait>,
    /// Stacks of blocked threads that were read from the threads' memory, each with the time of reading.
    seen: FxHashMap<i32, (u64, SwitchStack)>,
    /// The last thread whose stack was requested from its memory.
    last_asked: i32,
    /// Ended threads whose IDs have not been reused. Bounded by the kernel's maximum number of thread IDs.
    ended: FxHashSet<i32>,
    /// Sums of waits below the threshold: blocked, runnable.
    short: FxHashMap<i32, (Thread, [u64; 2])>,
    sampling: SamplingHistory,
    /// Waits that began while not all stacks were sampled.
    shares: WaitShares,
    /// Time at which the measurement begins.
    begins_at: u64,
    /// Latest time of a record.
    now: u64,
    handovers: CpuHandovers,
    /// Wake-ups, and the threads that ran on each CPU, if wake-ups are recorded.
    wakers: Option<WakeTracker>,
}

impl OffCpuWriter {
    pub(super) fn new(source: OffCpuSource) -> Self {
        Self {
            source,
            waits: IntervalEngine::new(Overlap::Replace),
            stacks: FxHashMap::default(),
            initial: FxHashMap::default(),
            seen: FxHashMap::default(),
            last_asked: 0,
            ended: FxHashSet::default(),
            short: FxHashMap::default(),
            sampling: SamplingHistory::new(),
            shares: WaitShares::default(),
            begins_at: 0,
            now: 0,
            handovers: CpuHandovers::default(),
            wakers: source.wakeups.and_then(|_| WakeTracker::new(Host::live())),
        }
    }

    /// Adds the threads that exist when the recording starts. If the whole machine is recorded, adds none,
    /// because then only threads that switch are recorded.
    pub(super) fn exist(&mut self, records: &[u8]) {
        if self.source.is_system_wide {
            return;
        }
        let time = clock::monotonic_ns();
        for record in Records::new(records) {
            if let Some(Record::Comm(comm)) = record.parse() {
                self.initial.insert(comm.thread.tid, Wait::new(comm.thread, 0, false, time));
                if let Some(wakers) = &mut self.wakers {
                    wakers.mark_named(comm.thread.tid);
                }
            }
        }
    }

    /// Returns at most this number of waiting threads whose stack is unknown, either because they waited
    /// before the recording began, or because the kernel does not record their stacks. Repeated calls return
    /// all of them in turn.
    pub(super) fn unexplained(&mut self, most: usize) -> Vec<Thread> {
        // A stack that was read before the wait began belongs to an earlier wait.
        let is_unknown = |wait: &&Wait| {
            let seen = self.seen.get(&wait.thread.tid);
            seen.is_none_or(|(time, stack)| *time < wait.since || stack.chain.len() <= SHORT)
        };
        // Most waits that began during a pause are short, and their stacks would not be used.
        let is_long = |wait: &&Wait| {
            wait.sampling != StackSampling::Pause || self.now.saturating_sub(wait.since) > LONG_NS / 2
        };
        let waits = self.initial.values().chain(self.waits.open());
        let waits = waits.filter(|wait| wait.has_short_stack() && !wait.is_runnable).filter(is_long);
        let mut all: Vec<Thread> = waits.filter(is_unknown).map(|wait| wait.thread).collect();
        all.sort_unstable_by_key(|thread| (thread.tid <= self.last_asked, thread.tid));
        all.truncate(most);
        self.last_asked = all.last().map_or(0, |thread| thread.tid);
        all
    }

    /// Stores the stack of a blocked thread, which was read at this time. `chain` includes markers.
    pub(super) fn see(&mut self, thread: Thread, time: u64, chain: Vec<u64>) {
        let ip = chain.get(1).copied().unwrap_or(0);
        self.seen.insert(thread.tid, (time, SwitchStack { chain, ip }));
    }

    /// Records that the kernel starts or stops sampling stacks at this time.
    pub(super) fn samples_stacks(&mut self, time: u64, sampling: StackSampling) {
        self.sampling.add(time, sampling);
    }

    /// Returns the index of the event that samples a stack at each switch.
    pub(super) fn event(&self) -> usize {
        self.source.event
    }

    /// Returns the index of the event that samples wake-ups.
    pub(super) fn wakeups(&self) -> Option<usize> {
        self.source.wakeups
    }

    /// Processes a wake-up. If the recording may lack the waker's name, appends the name.
    pub(super) fn wake(&mut self, sample: &Sample<'_>, layouts: &Layouts, out: &mut Vec<u8>) {
        let Some(wakers) = &mut self.wakers else { return };
        let Some(tid) = wakers.woken(sample) else { return };
        let wait = self.waits.current(&tid).map(|wait| &*wait).or_else(|| self.initial.get(&tid));
        if wait.is_some_and(|wait| wait.is_runnable) || wait.is_none() && !wakers.knows(tid) {
            return;
        }
        let names = (!self.source.is_system_wide).then_some((layouts, out));
        wakers.note(tid, wait.map(|wait| wait.since), sample, names);
    }

    /// Stores the stack of a thread that is about to leave its CPU. `chain` includes markers.
    pub(super) fn stack(&mut self, thread: Thread, chain: Vec<u64>, ip: u64) {
        self.stacks.insert(thread.tid, SwitchStack { chain, ip });
    }

    /// Records that a thread was seen running.
    pub(super) fn runs(&mut self, thread: Thread) {
        self.initial.remove(&thread.tid);
    }

    /// Processes a record that is not a sample, and appends a sample for each wait that it ends.
    pub(super) fn follow(&mut self, raw: &RawRecord<'_>, layouts: &Layouts, out: &mut Vec<u8>) {
        match raw.kind {
            kind::SWITCH
            | kind::SWITCH_CPU_WIDE
            | kind::FORK
            | kind::EXIT
            | kind::LOST
            | kind::LOST_SAMPLES => {}
            _ => return,
        }
        let id = layouts.sample_id(raw);
        let time = id.time.map_or(self.now, |time| time.0);
        self.now = self.now.max(time);
        match raw.parse() {
            Some(Record::Switch(switch) | Record::SwitchCpuWide(switch)) => {
                let cpu = id.cpu.unwrap_or(0);
                if let (Some(wakers), Some(thread)) = (&mut self.wakers, id.thread) {
                    wakers.switch(thread.tid, cpu, time, switch.is_out);
                }
                let Some(thread) = id.thread else { return };
                let switched = self.handovers.switch(cpu, thread.tid, time, switch.is_out);
                match switch.is_out {
                    _ if thread.tid <= 0 => {}
                    // A thread that has ended leaves its CPU for the last time.
                    true if self.ended.contains(&thread.tid) => {}
                    true => {
                        self.initial.remove(&thread.tid);
                        let stack = self.stacks.remove(&thread.tid);
                        let sampling = self.sampling.at(time);
                        let wait = Wait::new(thread, cpu, switch.is_preempted, time);
                        self.waits.begin(thread.tid, time, Wait { stack, sampling, ..wait });
                    }
                    false => self.returns(thread, cpu, (switched, time), out),
                }
            }
            // A new thread is runnable until it gets a CPU.
            Some(Record::Fork(task)) => {
                self.ended.remove(&task.thread.tid);
                if let Some(wakers) = &mut self.wakers {
                    wakers.mark_named(task.thread.tid);
                }
                let wait = Wait::new(task.thread, id.cpu.unwrap_or(0), true, time);
                self.waits.begin(task.thread.tid, time, wait);
            }
            Some(Record::Exit(task)) => {
                let tid = task.thread.tid;
                self.initial.remove(&tid);
                self.stacks.remove(&tid);
                self.seen.remove(&tid);
                self.waits.forget(&tid);
                if let Some(wakers) = &mut self.wakers {
                    wakers.forget(tid);
                }
                self.ended.insert(tid);
                if let Some(short) = self.short.remove(&tid) {
                    self.write_short(short, time, out);
                }
                let shares = self.shares.end(tid);
                self.write_shares(shares, time, out);
            }
            Some(_) if matches!(raw.kind, kind::LOST | kind::LOST_SAMPLES) => {
                self.waits.lose(time);
                if let Some(wakers) = &mut self.wakers {
                    wakers.lose();
                }
            }
            _ => {}
        }
    }

    /// Ends the wait of a thread that gets a CPU at the first time, and runs from the second.
    fn returns(&mut self, thread: Thread, cpu: u32, (got, runs): (u64, u64), out: &mut Vec<u8>) {
        let begun = self.waits.current(&thread.tid).map_or(0, |wait| wait.since);
        let time = got.max(begun).min(runs);
        self.stacks.remove(&thread.tid);
        if let Some(mut wait) = self.initial.remove(&thread.tid) {
            wait.cpu = cpu;
            return self.write(&mut wait, time, false, Some(cpu), out);
        }
        if let Some(mut interval) = self.waits.end(&thread.tid, time) {
            self.write(&mut interval.begun, time, interval.has_loss, Some(cpu), out);
        }
    }

    /// Writes the parts of all waits in progress up to this time, for a live view. The rest of each wait
    /// follows later. No later switch record may have a time before `time`.
    pub(super) fn write_progress(&mut self, time: u64, out: &mut Vec<u8>) {
        let mut initial = std::mem::take(&mut self.initial);
        initial.values_mut().for_each(|wait| self.write(wait, time, false, None, out));
        self.initial = initial;
        let mut waits = std::mem::replace(&mut self.waits, IntervalEngine::new(Overlap::Replace));
        waits.retain(|tid, _, has_loss, wait| {
            // This was the thread's last switch, but the record of the thread's exit was lost.
            let is_over = has_loss && !process::exists(*tid);
            if !is_over {
                self.write(wait, time, has_loss, None, out);
            }
            !is_over
        });
        self.waits = waits;
    }

    /// Ends the recording at this time, and writes the waits that are still in progress.
    pub(super) fn finish(&mut self, time: u64, out: &mut Vec<u8>) {
        let time = time.max(self.now);
        self.write_progress(time, out);
        for (_, short) in std::mem::take(&mut self.short) {
            self.write_short(short, time, out);
        }
        let shares = self.shares.finish();
        self.write_shares(shares, time, out);
    }

    /// Writes the part of a wait up to the time `end` that has not been written yet. `cpu` is the CPU that
    /// the thread got, if any.
    fn write(&mut self, wait: &mut Wait, end: u64, has_loss: bool, cpu: Option<u32>, out: &mut Vec<u8>) {
        let tid = wait.thread.tid;
        // A stack that was read later belongs to a later wait.
        if wait.has_short_stack()
            && self.seen.get(&tid).is_some_and(|(time, _)| *time <= end)
            && let Some((time, stack)) = self.seen.remove(&tid)
        {
            wait.stack = Some(stack).filter(|_| wait.since <= time).or(wait.stack.take());
        }
        let whole = WaitPart {
            begin: wait.written,
            end: end.max(wait.written),
            is_runnable: wait.is_runnable,
            partner: WaitPartner::Unknown,
        };
        wait.written = whole.end;
        let parts = match &mut self.wakers {
            Some(wakers) => wakers.parts(wait, whole, has_loss, cpu),
            None => [Some(whole), None],
        };
        // The thread was woken. The rest of its wait follows.
        wait.is_runnable |= parts[1].is_some();
        for part in parts.iter().flatten() {
            self.write_part(wait, part, out);
        }
    }

    fn write_part(&mut self, wait: &Wait, part: &WaitPart, out: &mut Vec<u8>) {
        if part.end < self.begins_at {
            // A later wait whose stack is not sampled is probably like this one.
            let stack = wait.stack.as_ref().filter(|_| self.source.has_stacks);
            let shares = stack.map(|stack| {
                self.shares.add(wait.owner(part), stack, part.end - part.begin, StackSampling::All)
            });
            return self.write_shares(shares.unwrap_or_default(), self.now, out);
        }
        let period = part.end - part.begin.max(self.begins_at);
        if period < self.source.threshold_ns {
            let (_, sums) = self.short.entry(wait.thread.tid).or_insert((wait.thread, [0; 2]));
            let sum = &mut sums[usize::from(part.is_runnable)];
            *sum = sum.saturating_add(period);
            return;
        }
        let owner = wait.owner(part);
        // Stacks that were read from memory do not contain kernel functions.
        if wait.sampling == StackSampling::Pause && (wait.stack.is_none() || period < LONG_NS) {
            let shares = self.shares.add_without(owner, period);
            return self.write_shares(shares, self.now, out);
        }
        let stack = wait.stack.as_ref().ok_or(MissingStack::NotRecorded);
        self.write_sample(owner, part.end, period, stack, out);
        if let Some(stack) = &wait.stack
            && self.source.has_stacks
        {
            let shares = self.shares.add(owner, stack, period, wait.sampling);
            self.write_shares(shares, self.now, out);
        }
    }

    /// Writes the sums of a thread's short waits: samples without a stack.
    fn write_short(&self, (thread, sums): (Thread, [u64; 2]), time: u64, out: &mut Vec<u8>) {
        for (is_runnable, period) in [(false, sums[0]), (true, sums[1])] {
            if period > 0 {
                let owner = WaitOwner { thread, cpu: 0, is_runnable, partner: WaitPartner::Unknown };
                self.write_sample(owner, time, period, Err(MissingStack::ShortWaits), out);
            }
        }
    }

    fn write_shares(&self, shares: Vec<WaitShare>, time: u64, out: &mut Vec<u8>) {
        for WaitShare { owner, stack, period } in shares {
            self.write_sample(owner, time, period, stack.as_ref().ok_or(MissingStack::NotSampled), out);
        }
    }

    fn write_sample(
        &self,
        WaitOwner { thread, cpu, is_runnable, partner }: WaitOwner,
        time: u64,
        period: u64,
        stack: Result<&SwitchStack, MissingStack>,
        out: &mut Vec<u8>,
    ) {
        let id = if is_runnable { RUNNABLE_ID } else { BLOCKED_ID };
        let (ip, chain) = match stack {
            Ok(stack) => (stack.ip, stack.chain.as_slice()),
            Err(missing) => (missing.address(), &[][..]),
        };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let task = pair(thread.pid as u32, thread.tid as u32);
        let mut fields = vec![id, ip, task, time];
        fields.extend(self.source.wakeups.map(|_| partner.word()));
        fields.extend([pair(cpu, 0), period, chain.len() as u64]);
        fields.extend_from_slice(chain);
        let mode = match chain.first() {
            None => CpuMode::Unknown,
            Some(&context::USER) => CpuMode::User,
            Some(_) => CpuMode::Kernel,
        };
        let mut encoder = Encoder::new(0);
        encoder.sample(mode.bits(), &fields);
        out.extend_from_slice(encoder.bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::events::{FIELDS, written_attr};
    use super::*;
    use pmc_perfdata::perfdata::{BLOCKED_EVENT, RUNNABLE_EVENT};
    use pmc_sys::abi::attr::{self, Flag};
    use pmc_sys::abi::generic::CONTEXT_SWITCHES;
    use pmc_sys::abi::{Attr, misc};
    use proptest::prelude::*;

    pub(super) const SWITCH_ID: u64 = 5;
    /// A thread that exists, and one that does not.
    pub(super) const ALIVE: i32 = 1;
    const DEAD: i32 = i32::MAX;

    pub(super) fn switch_attr() -> Attr {
        let mut attr = Attr::new(attr::kind::SOFTWARE, CONTEXT_SWITCHES);
        attr.set_period(1);
        attr.set_sample_type(FIELDS);
        attr.set(Flag::SampleIdAll, true);
        attr
    }

    /// What happens to a thread.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum ThreadEvent {
        Blocks,
        IsPreempted,
        Returns,
        IsBorn,
        Ends,
        /// Records are lost.
        Loses,
    }
    pub(super) use ThreadEvent::{Blocks, Ends, IsBorn, IsPreempted, Loses, Returns};

    /// Encodes a record as the kernel writes it, with a `sample_id`.
    pub(super) fn record(happening: ThreadEvent, tid: i32, time: u64, is_cpu_wide: bool) -> Vec<u8> {
        let pair = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
        let task = [pair(tid, 77), pair(tid, 77), time];
        let (kind, misc, body) = match happening {
            IsBorn => (kind::FORK, 0, &task[..]),
            Ends => (kind::EXIT, 0, &task[..]),
            Loses => (kind::LOST, 0, &[SWITCH_ID, 3][..]),
            // The other task of the switch.
            _ if is_cpu_wide => (kind::SWITCH_CPU_WIDE, 0, &task[..1]),
            _ => (kind::SWITCH, 0, &[][..]),
        };
        let misc = misc
            | match happening {
                Blocks => misc::SWITCH_OUT,
                IsPreempted => misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT,
                _ => 0,
            };
        // A thread returns on a different CPU from the one that it left.
        let cpu = u64::from(happening == Returns);
        let words = [body, &[pair(tid, tid), time, cpu, SWITCH_ID]].concat();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + words.len() as u16 * 8).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// A written sample.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct Written {
        event: &'static str,
        tid: i32,
        time: u64,
        period: u64,
        frames: usize,
    }

    pub(super) fn written(bytes: &[u8]) -> Vec<Written> {
        let attr = written_attr(&switch_attr(), false);
        let layouts = Layouts::new([(&attr, &[BLOCKED_ID][..]), (&attr, &[RUNNABLE_ID][..])]);
        let read = |raw: RawRecord<'_>| {
            let (event, sample) = layouts.sample(&raw).expect("a sample");
            Written {
                event: [BLOCKED_EVENT, RUNNABLE_EVENT][event],
                tid: sample.thread().expect("a thread").tid,
                time: sample.time().expect("a time").0,
                period: sample.period().expect("a period"),
                frames: sample.callchain().expect("a chain").iter().count(),
            }
        };
        Records::new(bytes).map(read).collect()
    }

    pub(super) fn writer(threshold_ns: u64) -> OffCpuWriter {
        let source =
            OffCpuSource { event: 0, has_stacks: true, is_system_wide: false, threshold_ns, wakeups: None };
        OffCpuWriter::new(source)
    }

    /// Processes these events, each with its thread and time, and ends the recording at `end`.
    fn follow(
        threshold_ns: u64,
        is_cpu_wide: bool,
        events: &[(ThreadEvent, i32, u64)],
        end: u64,
    ) -> Vec<Written> {
        let mut writer = writer(threshold_ns);
        let layouts = Layouts::new([(&switch_attr(), &[SWITCH_ID][..])]);
        let mut out = Vec::new();
        for (happening, tid, time) in events {
            if matches!(happening, Blocks | IsPreempted) {
                writer.stack(Thread { pid: *tid, tid: *tid }, vec![context::USER, 0x1000], 0x1000);
            }
            let bytes = record(*happening, *tid, *time, is_cpu_wide);
            Records::new(&bytes).for_each(|raw| writer.follow(&raw, &layouts, &mut out));
        }
        writer.finish(end, &mut out);
        written(&out)
    }

    /// Returns the sums by thread and event.
    fn sums(written: &[Written]) -> BTreeMap<(i32, &'static str), u64> {
        let mut sums = BTreeMap::new();
        for sample in written.iter().filter(|sample| sample.period > 0) {
            *sums.entry((sample.tid, sample.event)).or_default() += sample.period;
        }
        sums
    }

    pub(super) fn sample(event: &'static str, tid: i32, time: u64, period: u64, frames: usize) -> Written {
        Written { event, tid, time, period, frames }
    }

    #[test]
    fn switches_are_paired_by_thread_in_both_forms() {
        let events = [
            (IsBorn, 8, 5),
            (Blocks, 7, 10),
            (Returns, 8, 12),
            (IsPreempted, 8, 20),
            (Returns, 7, 30),
            (Returns, 8, 31),
        ];
        for is_cpu_wide in [false, true] {
            assert_eq!(
                follow(0, is_cpu_wide, &events, 40),
                [
                    sample(RUNNABLE_EVENT, 8, 12, 7, 0),
                    sample(BLOCKED_EVENT, 7, 30, 20, 2),
                    sample(RUNNABLE_EVENT, 8, 31, 11, 2),
                ]
            );
        }
    }

    #[test]
    fn incomplete_waits_are_closed_or_ignored() {
        // Still blocked at the end.
        let blocked = follow(0, false, &[(Blocks, ALIVE, 10)], 50);
        assert_eq!(blocked, [sample(BLOCKED_EVENT, ALIVE, 50, 40, 2)]);
        // A return without a known start, an exit while blocked, and a switch whose return was lost.
        assert_eq!(follow(0, false, &[(Returns, 7, 10)], 50), []);
        assert_eq!(follow(0, false, &[(Blocks, 7, 10), (Ends, 7, 11)], 50), []);
        let replaced =
            follow(0, false, &[(Blocks, 7, 10), (Loses, 7, 15), (Blocks, 7, 20), (Returns, 7, 25)], 50);
        assert_eq!(replaced, [sample(BLOCKED_EVENT, 7, 25, 5, 2)]);
        // The thread's exit was lost, so its wait does not last until the end of the recording.
        let lost_end = |tid| follow(0, false, &[(Blocks, tid, 10), (Loses, tid, 15)], 50);
        assert_eq!(lost_end(DEAD), []);
        assert_eq!(lost_end(ALIVE).len(), 1);
        // Two CPUs whose clocks differ.
        assert_eq!(follow(0, false, &[(Blocks, 7, 10), (Returns, 7, 9)], 50), []);
    }

    #[test]
    fn the_last_switch_of_a_thread_is_no_wait() {
        // When whole CPUs are recorded, the last switch follows the EXIT record. The thread ID is then
        // reused.
        let ended = [(Blocks, 7, 10), (Returns, 7, 20), (Ends, 7, 30), (Blocks, 7, 31)];
        let reused = [(IsBorn, 7, 50), (Returns, 7, 55), (Blocks, 7, 60), (Returns, 7, 65)];
        let periods = |events: &[_]| -> Vec<u64> {
            follow(0, true, events, 100).iter().map(|written| written.period).collect()
        };
        assert_eq!(periods(&ended), [10]);
        assert_eq!(periods(&[&ended[..], &reused].concat()), [10, 5, 5]);
    }

    #[test]
    fn threads_that_exist_at_the_start_are_blocked_until_they_run() {
        let mut encoder = Encoder::new(32);
        for tid in [ALIVE, 7, 8, 9] {
            encoder.comm(Thread { pid: tid, tid }, b"old");
        }
        let mut writer = writer(0);
        writer.exist(encoder.bytes());
        let start = writer.initial[&ALIVE].since;
        let layouts = Layouts::new([(&switch_attr(), &[SWITCH_ID][..])]);
        let mut out = Vec::new();
        // Thread 7 returns, 8 was running, and 9 is seen running.
        for bytes in [record(Returns, 7, start + 10, false), record(Blocks, 8, start + 20, false)] {
            Records::new(&bytes).for_each(|raw| writer.follow(&raw, &layouts, &mut out));
        }
        writer.runs(Thread { pid: 9, tid: 9 });
        writer.finish(start + 100, &mut out);
        let want = [
            sample(BLOCKED_EVENT, 7, start + 10, 10, 0),
            sample(BLOCKED_EVENT, ALIVE, start + 100, 100, 0),
            sample(BLOCKED_EVENT, 8, start + 100, 80, 0),
        ];
        assert_eq!(written(&out), want);
    }

    #[test]
    fn all_waiting_threads_are_asked_for_their_stacks_in_turn() {
        let mut encoder = Encoder::new(32);
        (1..=600).for_each(|tid| encoder.comm(Thread { pid: tid, tid }, b"old"));
        let mut writer = writer(0);
        writer.exist(encoder.bytes());
        // None of the stacks can be read.
        let rounds: Vec<Vec<i32>> =
            (0..3).map(|_| writer.unexplained(256).iter().map(|thread| thread.tid).collect()).collect();
        let asked: FxHashSet<i32> = rounds.iter().flatten().copied().collect();
        assert_eq!((rounds[0].len(), asked.len()), (256, 600));
    }

    #[test]
    fn waits_in_progress_are_written_in_parts() {
        let mut encoder = Encoder::new(32);
        encoder.comm(Thread { pid: 9, tid: 9 }, b"old");
        let mut writer = writer(0);
        writer.exist(encoder.bytes());
        let start = writer.initial[&9].since;
        let layouts = Layouts::new([(&switch_attr(), &[SWITCH_ID][..])]);
        let mut out = Vec::new();
        let follow = |writer: &mut OffCpuWriter, happening, time, out: &mut Vec<u8>| {
            let bytes = record(happening, 7, start + time, false);
            Records::new(&bytes).for_each(|raw| writer.follow(&raw, &layouts, out));
        };
        writer.stack(Thread { pid: 7, tid: 7 }, vec![context::USER, 0x1000], 0x1000);
        follow(&mut writer, Blocks, 10, &mut out);
        writer.write_progress(start + 100, &mut out);
        writer.write_progress(start + 150, &mut out);
        follow(&mut writer, Returns, 160, &mut out);
        writer.write_progress(start + 200, &mut out);
        writer.finish(start + 250, &mut out);
        let of = |tid| written(&out).into_iter().filter(move |sample| sample.tid == tid);
        let part = |time, period| sample(BLOCKED_EVENT, 7, start + time, period, 2);
        assert_eq!(of(7).collect::<Vec<_>>(), [part(100, 90), part(150, 50), part(160, 10)]);
        assert_eq!(of(9).map(|sample| sample.period).collect::<Vec<_>>(), [100, 50, 50, 50]);
        // A thread whose exit was lost does not wait forever.
        let mut out = Vec::new();
        let bytes = [record(Blocks, DEAD, start + 300, false), record(Loses, DEAD, start + 310, false)];
        bytes
            .iter()
            .flat_map(|bytes| Records::new(bytes))
            .for_each(|raw| writer.follow(&raw, &layouts, &mut out));
        writer.write_progress(start + 400, &mut out);
        assert!(written(&out).iter().all(|sample| sample.tid == 9));
        assert_eq!(writer.waits.in_progress(), 0);
    }

    /// Events of a few threads, in time order.
    fn events() -> impl Strategy<Value = Vec<(ThreadEvent, i32, u64)>> {
        let kinds = [Blocks, Blocks, IsPreempted, Returns, Returns, Returns, IsBorn, Ends, Loses];
        let step = (0..kinds.len(), 1..6i32, 0..1000u64);
        proptest::collection::vec(step, 0..200).prop_map(move |steps| {
            let mut now = 0;
            let at = |(kind, tid, pause)| {
                now += pause;
                (kinds[kind], tid, now)
            };
            steps.into_iter().map(at).collect()
        })
    }

    proptest! {
        #[test]
        fn a_threshold_drops_no_time(events in events(), threshold in 0..2000u64, is_cpu_wide: bool) {
            let all = follow(0, is_cpu_wide, &events, 1 << 20);
            let folded = follow(threshold, is_cpu_wide, &events, 1 << 20);
            prop_assert_eq!(sums(&folded), sums(&all));
            prop_assert!(folded.iter().all(|sample| sample.period >= threshold || sample.frames == 0));
        }

        #[test]
        fn any_order_is_survived(
            kinds in proptest::collection::vec(
                prop_oneof![Just(Blocks), Just(IsPreempted), Just(Returns), Just(IsBorn), Just(Ends), Just(Loses)],
                0..100,
            ),
            tids in proptest::collection::vec(prop_oneof![-2..4i32, Just(i32::MAX)], 100),
            times in proptest::collection::vec(prop_oneof![0..50u64, any::<u64>()], 100),
            end: u64,
        ) {
            let events: Vec<_> =
                kinds.into_iter().zip(tids).zip(times).map(|((kind, tid), time)| (kind, tid, time)).collect();
            for sample in follow(0, false, &events, end) {
                prop_assert!(sample.period <= sample.time);
            }
            follow(u64::MAX, false, &events, end);
        }
    }
}
