//! Wakers: what ended a thread's wait, and which threads ran while it waited for a CPU.
//!
//! The kernel samples each wake-up in the context of the waker (`sched:sched_waking`). Receives these samples
//! and the `SWITCH` records; splits each wait at its wake-up.
//!
//! ```text
//!   thread 7   running │ blocked ················ waking │ runnable ········ │ running
//!                                                   ▲              ▲
//!   waker                           thread 8 ───────┘              │
//!   CPU of thread 7's next run              running: thread 9 ─────┘   thread 9 ran instead
//! ```

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::wait::{Wait, WaitPart};
use crate::recording::plan::OffCpuPlan;
use pmc_events::event::{EventGroup, EventParser};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::tracepoint::Payload;
use pmc_perfdata::record::{Layouts, Sample, Thread, WaitPartner};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::{KallsymsLine, TracepointField};
use pmc_sys::error::Result;
use pmc_sys::host::Host;

const SYSTEM: &str = "sched";
const WAKING: &str = "sched_waking";

/// Number of kernel functions to record at a wake-up. There are ten functions between an expired timer and
/// the wake-up of a thread through epoll.
const FRAMES: u16 = 12;

/// Longest time, in nanoseconds, from a thread's wake-up to the record that it leaves its CPU. In between,
/// the kernel samples the thread's stack. Without a limit, a wake-up that came just in time to prevent a wait
/// would count for a later one.
const LEAVING: u64 = 1_000_000;

/// Returns the event that samples each wake-up on the machine.
///
/// # Errors
/// Fails if the kernel has no such tracepoint, or if pmc may not read it.
pub(in crate::recording) fn wakeup_event(parser: &mut EventParser<'_>) -> Result<Vec<EventGroup>> {
    let mut groups = parser.parse(&format!("{SYSTEM}:{WAKING}"))?;
    for spec in groups.iter_mut().flat_map(|group| &mut group.events) {
        spec.system_wide = true;
        spec.qualifiers.system = true;
        spec.qualifiers.samples_wakeups = true;
        spec.qualifiers.call_graph = Some("fp".to_owned());
        spec.qualifiers.max_stack = Some(FRAMES);
    }
    Ok(groups)
}

/// Finds the event that samples wake-ups. It comes after the events that the user requested.
pub(super) fn find(plan: OffCpuPlan, taken: &[RecordedEvent]) -> Option<usize> {
    if !plan.has_wakers {
        return None;
    }
    taken.iter().rposition(|event| event.attr.kind() == kind::TRACEPOINT)
}

/// Tracks wake-ups, and the threads that run on each CPU.
///
/// Wake-ups are sampled on all CPUs, because timers and programs that are not recorded also wake recorded
/// threads. A thread that is about to wait can be woken before the kernel writes that it left its CPU. Its
/// wait is then runnable from the start.
///
/// An interrupt wakes a thread in the context of an unrelated thread. The record's flags show that this
/// happened, and the kernel functions on the stack show whether a timer caused the interrupt.
pub(super) struct WakeTracker {
    /// The id of the woken thread in the tracepoint's payload.
    pid: TracepointField,
    /// The wake-up of each thread's current or next wait: its time and origin.
    wakeups: FxHashMap<i32, (u64, WaitPartner)>,
    cpus: FxHashMap<u32, CpuRuns>,
    timers: Option<TimerFunctions>,
    host: Host,
    /// Threads whose names are in the recording. Bounded by the kernel's maximum number of thread IDs.
    known: FxHashSet<i32>,
}

impl WakeTracker {
    /// Returns `None` if the tracepoint's format cannot be read.
    pub(super) fn new(host: Host) -> Option<Self> {
        let fields = host.tracepoint_fields(SYSTEM, WAKING).ok()?;
        Some(Self::with(fields.into_iter().find(|field| field.name == "pid")?, host))
    }

    fn with(pid: TracepointField, host: Host) -> Self {
        Self {
            pid,
            wakeups: FxHashMap::default(),
            cpus: FxHashMap::default(),
            timers: None,
            host,
            known: FxHashSet::default(),
        }
    }

    /// Records that the recording contains this thread's name.
    pub(super) fn mark_named(&mut self, tid: i32) {
        self.known.insert(tid);
    }

    /// Forgets a thread that has ended.
    pub(super) fn forget(&mut self, tid: i32) {
        self.known.remove(&tid);
        self.wakeups.remove(&tid);
    }

    /// Discards state that may be outdated because records were lost.
    pub(super) fn lose(&mut self) {
        self.wakeups.clear();
        self.cpus.clear();
    }

    /// Returns the thread that the sampled event wakes.
    pub(super) fn woken(&self, sample: &Sample<'_>) -> Option<i32> {
        let bytes = sample.parts()?.raw?;
        i32::try_from(Payload { bytes, is_byte_swapped: false }.number_in(&self.pid)?).ok()
    }

    /// Whether this thread is recorded.
    pub(super) fn knows(&self, tid: i32) -> bool {
        self.known.contains(&tid)
    }

    /// Stores the wake-up of a thread, unless the thread has already been woken since `waits_since`, the
    /// start of its wait. If the recording may lack the waker's name, writes the name to `names`.
    pub(super) fn note(
        &mut self,
        tid: i32,
        waits_since: Option<u64>,
        sample: &Sample<'_>,
        names: Option<(&Layouts, &mut Vec<u8>)>,
    ) {
        let Some(time) = sample.time() else { return };
        let earlier = self.wakeups.get(&tid).map(|(time, _)| *time);
        if waits_since.is_some_and(|since| earlier.is_some_and(|time| time >= since)) {
            return;
        }
        let waker = self.origin(sample);
        self.wakeups.insert(tid, (time.0, waker));
        if let (WaitPartner::Thread(_), Some(thread), Some((layouts, out))) = (waker, sample.thread(), names)
        {
            self.name(thread, layouts, out);
        }
    }

    fn origin(&mut self, sample: &Sample<'_>) -> WaitPartner {
        // `common_flags` in the payload, and its bits; see `trace_flag_type` in the kernel.
        const FLAGS: usize = 2;
        const HARD_IRQ: u8 = 0x08;
        const SOFT_IRQ: u8 = 0x10;
        let raw = sample.parts().and_then(|parts| parts.raw).unwrap_or_default();
        let flags = raw.get(FLAGS).copied().unwrap_or(0);
        if flags & (HARD_IRQ | SOFT_IRQ) == 0 {
            return sample.thread().map_or(WaitPartner::Unknown, |thread| match thread.tid {
                0 => WaitPartner::Idle,
                tid => WaitPartner::Thread(tid),
            });
        }
        let timers = self.timers.get_or_insert_with(|| TimerFunctions::read(&self.host));
        let mut chain = sample.callchain().into_iter().flat_map(|chain| chain.iter());
        match chain.any(|address| timers.contain(address)) {
            true => WaitPartner::Timer,
            false if flags & HARD_IRQ != 0 => WaitPartner::Interrupt,
            false => WaitPartner::SoftIrq,
        }
    }

    /// Writes the name of a thread that is not recorded, unless the name has already been written.
    fn name(&mut self, thread: Thread, layouts: &Layouts, out: &mut Vec<u8>) {
        if !self.known.insert(thread.tid) {
            return;
        }
        let name = u32::try_from(thread.tid).map(|tid| self.host.comm(tid)).unwrap_or_default();
        if !name.is_empty() {
            let mut encoder = Encoder::new(layouts.iter().next().map_or(0, |layout| layout.trailer_size()));
            encoder.comm(thread, name.as_bytes());
            out.extend_from_slice(encoder.bytes());
        }
    }

    /// Handles a thread that is switched in or out.
    pub(super) fn switch(&mut self, tid: i32, cpu: u32, time: u64, is_out: bool) {
        let runs = self.cpus.entry(cpu).or_default();
        if is_out {
            runs.end(tid, time);
        } else {
            runs.current = Some((tid, time));
        }
    }

    /// Splits a wait at its wake-up, and finds the partner of each part. `cpu` is the CPU that the thread
    /// got, if any.
    pub(super) fn parts(
        &mut self,
        wait: &Wait,
        whole: WaitPart,
        has_loss: bool,
        cpu: Option<u32>,
    ) -> [Option<WaitPart>; 2] {
        // A part that has been written begins after the wait does.
        let first = if whole.begin == wait.since { wait.since.saturating_sub(LEAVING) } else { whole.begin };
        let tid = wait.thread.tid;
        let wakeup = self.wakeups.get(&tid).copied();
        let wakeup = wakeup.filter(|(time, _)| (first..=whole.end).contains(time) && !has_loss);
        let wakeup = wakeup.map(|(time, waker)| (time.max(whole.begin), waker));
        if wakeup.is_some() || cpu.is_some() {
            self.wakeups.remove(&tid);
        }
        let (blocked, runnable) = match (wait.is_runnable, wakeup) {
            (true, _) => (None, Some(whole)),
            (false, None) => (Some(whole), None),
            (false, Some((time, partner))) => (
                Some(WaitPart { end: time, partner, ..whole }),
                Some(WaitPart { begin: time, is_runnable: true, ..whole }),
            ),
        };
        // A migrated thread waited on its previous CPU, unless another thread used the new one.
        let ran = |part: &WaitPart| {
            let on = |cpu: u32| self.cpus.get(&cpu).map_or(WaitPartner::Unknown, |runs| runs.ran(part));
            let [last, first] = [on(cpu.unwrap_or(wait.cpu)), on(wait.cpu)];
            if matches!(last, WaitPartner::Thread(_)) || first == WaitPartner::Unknown { last } else { first }
        };
        let runnable = runnable.map(|part| WaitPart { partner: ran(&part), ..part });
        [blocked, runnable]
    }
}

/// The threads that ran most recently on a CPU.
#[derive(Debug, Default)]
struct CpuRuns {
    /// The running thread, and the time at which it started to run.
    current: Option<(i32, u64)>,
    /// Earlier threads, each with its start and end.
    runs: VecDeque<(i32, u64, u64)>,
}

impl CpuRuns {
    /// Maximum number of earlier threads.
    const MAX_RUNS: usize = 64;

    fn end(&mut self, tid: i32, time: u64) {
        let Some((_, begin)) = self.current.take().filter(|(current, _)| *current == tid) else { return };
        if self.runs.len() == Self::MAX_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back((tid, begin, time));
    }

    /// Returns the thread that ran longest during this part, if the running threads are known for at least
    /// half of it.
    fn ran(&self, part: &WaitPart) -> WaitPartner {
        let mut sums: FxHashMap<i32, u64> = FxHashMap::default();
        let current = self.current.map(|(tid, begin)| (tid, begin, part.end));
        let latest = self.runs.iter().rev().copied().take_while(|(.., end)| *end > part.begin);
        for (tid, begin, end) in latest.chain(current) {
            let overlap = end.min(part.end).saturating_sub(begin.max(part.begin));
            *sums.entry(tid).or_default() += overlap;
        }
        let known: u64 = sums.values().sum();
        match sums.into_iter().max_by_key(|(tid, sum)| (*sum, *tid)) {
            Some((tid, 1..)) if known >= (part.end - part.begin) / 2 => match tid {
                0 => WaitPartner::Idle,
                tid => WaitPartner::Thread(tid),
            },
            _ => WaitPartner::Unknown,
        }
    }
}

/// Address ranges of the kernel's functions that run expired timers.
struct TimerFunctions(Vec<(u64, u64)>);

impl TimerFunctions {
    const NAMES: [&[u8]; 5] =
        [b"__hrtimer_run_queues", b"call_timer_fn", b"expire_timers", b"__run_timers", b"run_timer_softirq"];

    /// Reads the ranges. Returns no ranges if the kernel hides its addresses.
    fn read(host: &Host) -> Self {
        let text = host.kallsyms().unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter_map(KallsymsLine::read);
        let mut symbols: Vec<KallsymsLine<'_>> =
            lines.filter(|symbol| symbol.address != 0 && symbol.is_code()).collect();
        symbols.sort_unstable_by_key(|symbol| symbol.address);
        // The compiler adds suffixes such as `.constprop.0`.
        let is_known = |symbol: &KallsymsLine<'_>| {
            symbol.name.split(|byte| *byte == b'.').next().is_some_and(|name| Self::NAMES.contains(&name))
        };
        let range = |start: u64| {
            let next = symbols.partition_point(|symbol| symbol.address <= start);
            (start, symbols.get(next).map_or(start, |next| next.address))
        };
        Self(symbols.iter().filter(|symbol| is_known(symbol)).map(|symbol| range(symbol.address)).collect())
    }

    fn contain(&self, address: u64) -> bool {
        self.0.iter().any(|(start, end)| (*start..*end).contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::Records;
    use pmc_sys::abi::{Attr, sample_type};

    const WAKEUPS: u64 = 9;
    /// An address in a timer function, and an address in another function.
    const TIMER: u64 = 0xffff_ffff_8142_0bee;
    const OTHER: u64 = 0xffff_ffff_8158_bfcd;

    fn tracker() -> WakeTracker {
        let pid = TracepointField::parse("field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;");
        let mut tracker = WakeTracker::with(pid.expect("a field"), Host::live());
        tracker.timers = Some(TimerFunctions(vec![(TIMER & !0xfff, TIMER + 1)]));
        tracker
    }

    /// Passes a wake-up of thread 7, in the context of thread 8, with these flags and this innermost
    /// function. The thread waits since `waits_since`, or runs.
    fn wake_from(tracker: &mut WakeTracker, waits_since: Option<u64>, time: u64, flags: u64, function: u64) {
        let mut attr = Attr::new(kind::TRACEPOINT, 1);
        let fields = sample_type::TID | sample_type::TIME | sample_type::CALLCHAIN | sample_type::RAW;
        attr.set_sample_type(fields | sample_type::IDENTIFIER);
        let layouts = Layouts::new([(&attr, &[WAKEUPS][..])]);
        let thread = |tid: u64| tid | tid << 32;
        // The payload follows its size of 4 bytes: flags at 2, the woken thread at 24.
        let raw = [36 | flags << 48, 0, 0, 7 << 32, 0];
        let mut encoder = Encoder::new(0);
        encoder.sample(0, &[&[WAKEUPS, thread(8), time, 1, function][..], &raw].concat());
        let raw = Records::new(encoder.bytes()).next().expect("a record");
        let (_, sample) = layouts.sample(&raw).expect("a sample");
        assert_eq!(tracker.woken(&sample), Some(7));
        tracker.note(7, waits_since, &sample, None);
    }

    /// Passes a wake-up of thread 7, which waits since 10.
    fn wake(tracker: &mut WakeTracker, time: u64, flags: u64, function: u64) {
        wake_from(tracker, Some(10), time, flags, function);
    }

    /// Returns the parts of a wait that ends on a CPU.
    fn parts(
        tracker: &mut WakeTracker,
        (begin, end): (u64, u64),
        (is_runnable, has_loss): (bool, bool),
        cpu: u32,
    ) -> [Option<WaitPart>; 2] {
        let wait = Wait::new(Thread { pid: 7, tid: 7 }, 0, is_runnable, begin);
        let whole = part(begin, end, is_runnable, WaitPartner::Unknown);
        tracker.parts(&wait, whole, has_loss, Some(cpu))
    }

    fn part(begin: u64, end: u64, is_runnable: bool, partner: WaitPartner) -> WaitPart {
        WaitPart { begin, end, is_runnable, partner }
    }

    #[test]
    fn waits_are_split_at_the_first_wakeup() {
        let mut tracker = tracker();
        let blocked = |end, partner| Some(part(10, end, false, partner));
        let runnable = |begin, partner| Some(part(begin, 50, true, partner));
        let (task, unknown) = (WaitPartner::Thread(8), WaitPartner::Unknown);
        wake(&mut tracker, 20, 0, OTHER);
        wake(&mut tracker, 30, 0, OTHER);
        assert_eq!(
            parts(&mut tracker, (10, 50), (false, false), 0),
            [blocked(20, task), runnable(20, unknown)]
        );
        // Each wake-up belongs to one wait.
        assert_eq!(parts(&mut tracker, (10, 50), (false, false), 0), [blocked(50, unknown), None]);
        // Near lost records.
        wake(&mut tracker, 20, 0, OTHER);
        assert_eq!(parts(&mut tracker, (10, 50), (false, true), 0), [blocked(50, unknown), None]);
    }

    #[test]
    fn wakeups_of_threads_that_are_leaving_their_cpu_count() {
        let mut tracker = tracker();
        let whole = |begin, end, is_runnable, partner| Some(part(begin, end, is_runnable, partner));
        let (task, timer, unknown) = (WaitPartner::Thread(8), WaitPartner::Timer, WaitPartner::Unknown);
        let runnable = |begin, end| whole(begin, end, true, unknown);
        wake_from(&mut tracker, None, 9, 0, OTHER);
        let got = parts(&mut tracker, (10, 50), (false, false), 0);
        assert_eq!(got, [whole(10, 10, false, task), runnable(10, 50)]);
        // This wake-up came just in time to prevent a wait. The next wait has its own one, or none.
        wake_from(&mut tracker, None, 60, 0, OTHER);
        wake_from(&mut tracker, Some(70), 80, 8, TIMER);
        let got = parts(&mut tracker, (70, 90), (false, false), 0);
        assert_eq!(got, [whole(70, 80, false, timer), runnable(80, 90)]);
        wake_from(&mut tracker, None, 100, 0, OTHER);
        let since = 101 + LEAVING;
        let got = parts(&mut tracker, (since, since + 5), (false, false), 0);
        assert_eq!(got, [whole(since, since + 5, false, unknown), None]);
    }

    #[test]
    fn interrupts_blame_no_thread() {
        let origins = [
            (0x08, TIMER, WaitPartner::Timer),
            (0x10, TIMER, WaitPartner::Timer),
            (0x08, OTHER, WaitPartner::Interrupt),
            (0x10, OTHER, WaitPartner::SoftIrq),
            // Interrupts are off, and the thread is to be preempted.
            (0x05, TIMER, WaitPartner::Thread(8)),
        ];
        for (flags, function, partner) in origins {
            let mut tracker = tracker();
            wake(&mut tracker, 20, flags, function);
            let [blocked, _] = parts(&mut tracker, (10, 50), (false, false), 0);
            assert_eq!(blocked.map(|part| part.partner), Some(partner), "{flags:x} {function:x}");
        }
    }

    #[test]
    fn the_thread_that_ran_most_ran_instead() {
        let mut tracker = tracker();
        let mut run = |tid, cpu, from, to| {
            tracker.switch(tid, cpu, from, false);
            tracker.switch(tid, cpu, to, true);
        };
        for (tid, from, to) in [(3, 0, 30), (4, 30, 35), (3, 35, 50), (0, 100, 200)] {
            run(tid, 0, from, to);
        }
        run(5, 1, 10, 50);
        let mut partner = |begin, end, cpu| {
            let [blocked, runnable] = parts(&mut tracker, (begin, end), (true, false), cpu);
            assert_eq!(blocked, None);
            runnable.expect("a part").partner
        };
        assert_eq!(partner(10, 50, 0), WaitPartner::Thread(3));
        // Thread 5 ran on CPU 1. CPU 2 is unknown, so the previous CPU counts. Later, CPU 0 was idle.
        assert_eq!(partner(10, 50, 1), WaitPartner::Thread(5));
        assert_eq!(partner(10, 50, 2), WaitPartner::Thread(3));
        assert_eq!(partner(100, 150, 0), WaitPartner::Idle);
        // Two threads ran for most of the time, and one of them longer.
        assert_eq!(partner(26, 44, 0), WaitPartner::Thread(3));
        // For most of the time, it is unknown which thread ran.
        assert_eq!(partner(40, 90, 0), WaitPartner::Unknown);
        tracker.lose();
        let [_, runnable] = parts(&mut tracker, (10, 50), (true, false), 0);
        assert_eq!(runnable.map(|part| part.partner), Some(WaitPartner::Unknown));
    }
}
