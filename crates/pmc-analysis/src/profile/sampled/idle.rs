//! Idle threads: decides which waits are only waits for work, and folds them into groups.
//!
//! Receives the rows of waits with their sites, and the functions of their stacks. Removes the waits of idle
//! threads from the rows, and keeps them with the groups, so that views can show them on request.
//!
//! ```text
//!   service    futex_do_wait ◄ pthread_cond_wait ◄ Monitor::wait ◄ thread_native_entry   only the runtime
//!   pool       worker 1   condition ▓▓▓▓▓▓▓▓▓▓▓ run ▓▓▓▓▓▓     the same stack, and another thread wakes them
//!              worker 2   condition ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!   lock       waiter 1   semaphore ▓▓▓▓▓ woken by waiter 2    never folded
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::LocationCalls;
use super::code_owner::{CodeOwners, StackOwners};
use super::strings::{StringId, StringTable};
use super::wait_site::{IdleRule, WaitSite};
use crate::session::intern::{Interner, words};
use crate::session::samples::{RowKey, SampleAttribute};
use crate::session::thread_time::ThreadState;
use crate::session::{History, ResolvedStacks, SampleValue};
use pmc_perfdata::record::WaitPartner;

/// Minimum share of its time that an idle thread waits in one place, unless the place shows that it works for
/// the runtime or waits for measured threads.
const MIN_SHARE_IN_ONE_PLACE: f64 = 0.8;

/// Prefixes of the names of threads that the JVM starts for itself. Some run Java code, and others wait from
/// the start, before pmc can unwind their stacks. The kernel cuts names to 15 bytes.
const JVM_THREADS: &[&str] = &[
    "Attach Listener",
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Common-Cleaner",
    "Finalizer",
    "G1 Conc#",
    "G1 Main Marker",
    "G1 Refine#",
    "G1 Service",
    "GC Thread#",
    "Monitor Deflati",
    "Notification Th",
    "Reference Handl",
    "Service Thread",
    "Signal Dispatch",
    "Sweeper thread",
    "VM Periodic Tas",
    "VM Thread",
];

/// Why a thread's waits count as waits for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleReason {
    /// The thread belongs to a language runtime or to the C library, such as a garbage collector.
    Service,
    /// Several threads wait in the same place, as in a thread pool.
    Pool,
    /// The thread waits for events from outside: the main loop of a server or of a user interface.
    Events,
    /// The thread waits for threads to end that are measured themselves.
    Threads,
    /// The thread waits for child processes that are measured themselves.
    Children,
}

impl IdleReason {
    /// Returns the words shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "runtime service",
            Self::Pool => "thread pool",
            Self::Events => "event loop",
            Self::Threads => "waiting for measured threads",
            Self::Children => "waiting for measured child processes",
        }
    }
}

/// Idle threads that wait at the same site for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleGroup {
    /// Why the waits count as waits for work.
    pub reason: IdleReason,
    /// What the threads wait for.
    pub site: WaitSite,
    /// The program's own function that waits; `None` if all functions belong to the runtime. Untrusted text.
    pub function: Option<String>,
    /// The distinct names of the threads, longest wait first; untrusted text.
    pub names: Vec<String>,
    /// Number of threads.
    pub threads: usize,
    /// Sum of the waits in nanoseconds.
    pub waited_ns: u64,
}

/// A thread of the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MeasuredThread {
    /// The thread's process.
    pub(crate) process: i32,
    /// The process that started the thread's process, if known.
    pub(crate) parent: Option<i32>,
    /// The thread's name.
    pub(crate) name: String,
}

impl MeasuredThread {
    pub(crate) fn from_history(history: &History, tid: i32) -> Self {
        let process = history.task(tid).map_or(tid, |task| task.pid);
        let name = history.task_name(tid).map(|name| String::from_utf8_lossy(name).into_owned());
        Self {
            process,
            parent: history.task(process).and_then(|task| task.parent),
            name: name.unwrap_or_default(),
        }
    }
}

/// The waits of idle threads.
#[derive(Debug, Default)]
pub(crate) struct IdleWaits {
    /// Number of idle threads.
    pub(crate) threads: usize,
    /// The rows of their waits.
    pub(crate) rows: Vec<(RowKey, SampleValue)>,
    /// The same waits by group, longest first.
    pub(crate) groups: Vec<IdleGroup>,
}

impl IdleWaits {
    /// Returns the other rows and, if `with_idle` is set, these rows, sorted by key.
    pub(crate) fn select<'a>(
        &self,
        others: &'a [(RowKey, SampleValue)],
        with_idle: bool,
    ) -> Cow<'a, [(RowKey, SampleValue)]> {
        if !with_idle || self.rows.is_empty() {
            return others.into();
        }
        let mut rows = [others, &self.rows].concat();
        rows.sort_by_key(|(key, _)| *key);
        rows.into()
    }

    /// Returns the number of idle threads, and their total waiting time.
    pub(crate) fn sums(&self) -> (usize, u64) {
        let waited = self.rows.iter().fold(0u64, |sum, (_, value)| sum.saturating_add(value.period));
        (self.threads, waited)
    }
}

/// The rows of a profile whose waits have sites, and what their stacks and threads are.
#[derive(Clone, Copy)]
pub(crate) struct IdleInput<'a> {
    pub(crate) attributes: &'a Interner,
    pub(crate) kinds: &'a [SampleAttribute],
    pub(crate) code: &'a LocationCalls,
    pub(crate) texts: &'a StringTable,
    /// Returns the process and name of a thread.
    pub(crate) thread: &'a dyn Fn(i32) -> MeasuredThread,
}

/// Removes the waits of idle threads, and returns them.
pub(crate) fn remove_idle(resolved: &mut ResolvedStacks, input: IdleInput<'_>) -> IdleWaits {
    let at = |wanted| input.kinds.iter().position(|attribute| *attribute == wanted);
    let (Some(site_at), Some(tid_at)) = (at(SampleAttribute::WaitSite), at(SampleAttribute::Tid)) else {
        return IdleWaits::default();
    };
    let partner_at = at(SampleAttribute::WaitPartner);
    let mut owners = CodeOwners::new(input.code, input.texts);
    let mut stacks: FxHashMap<u32, StackOwners> = FxHashMap::default();
    let mut census = WaitCensus::default();
    for (key, value) in &resolved.rows {
        let list = words(input.attributes.get(key.attributes).1);
        let tid = list.get(tid_at).unwrap_or(0) as i32;
        let site = WaitSite::of_word(list.get(site_at).unwrap_or(0));
        let partner =
            partner_at.and_then(|at| list.get(at)).map_or(WaitPartner::Unknown, WaitPartner::of_word);
        let owners = match site.state() {
            ThreadState::Blocked => {
                *stacks.entry(key.stack).or_insert_with(|| owners.of_stack(resolved.stack(key.stack)))
            }
            ThreadState::Running | ThreadState::Runnable => StackOwners::default(),
        };
        census.add(tid, key.stack, ObservedWait { site, owners, time: value.period, partner }, input.thread);
    }
    let idle = census.idle();
    let word = |key: &RowKey, at: usize| words(input.attributes.get(key.attributes).1).get(at).unwrap_or(0);
    let is_idle = |(key, _): &mut (RowKey, _)| idle.contains_key(&(word(key, tid_at) as i32, key.stack));
    let rows = resolved.rows.extract_if(.., is_idle).collect();
    let name = |call: usize| input.code.calls()[call].short;
    let groups = census.groups(&idle, &name, input.texts);
    let threads = idle.keys().map(|(tid, _)| tid).collect::<FxHashSet<_>>().len();
    IdleWaits { threads, rows, groups }
}

/// Waits of a thread with the same stack.
#[derive(Debug, Clone, Copy)]
struct ObservedWait {
    site: WaitSite,
    owners: StackOwners,
    /// Nanoseconds; for the running state, of running time.
    time: u64,
    /// What ended the wait.
    partner: WaitPartner,
}

/// A thread and a stack.
type PlaceKey = (i32, u32);

/// What the threads of a group have in common: the reason, the site, and the program's own function.
type GroupKey = (IdleReason, WaitSite, Option<StringId>);

/// A thread, and how it spent its time except runnable, in nanoseconds.
#[derive(Debug, Default)]
struct ThreadSums {
    thread: MeasuredThread,
    all: u64,
    /// Waits for events, in any place: those of a main loop need no stack to be recognized.
    events: u64,
}

impl ThreadSums {
    /// Whether the thread spent most of its time in waits of this length. False for a length of 0, which a
    /// thread may have in several places.
    fn is_most(&self, time: u64) -> bool {
        time > 0 && time as f64 >= MIN_SHARE_IN_ONE_PLACE * self.all as f64
    }
}

/// What all threads did.
#[derive(Debug, Default)]
struct WaitCensus {
    threads: FxHashMap<i32, ThreadSums>,
    /// The waits by thread and stack. `partner` is not used.
    places: FxHashMap<PlaceKey, ObservedWait>,
    /// The threads that ended the waits.
    wakers: FxHashMap<PlaceKey, FxHashSet<i32>>,
}

impl WaitCensus {
    fn add(&mut self, tid: i32, stack: u32, wait: ObservedWait, thread: &dyn Fn(i32) -> MeasuredThread) {
        let new = || ThreadSums { thread: thread(tid), ..ThreadSums::default() };
        let sums = self.threads.entry(tid).or_insert_with(new);
        // A busy machine does not make a thread less idle.
        if wait.site != WaitSite::Cpu {
            sums.all = sums.all.saturating_add(wait.time);
        }
        if wait.site == WaitSite::Epoll {
            sums.events = sums.events.saturating_add(wait.time);
        }
        if wait.site.state() != ThreadState::Blocked {
            return;
        }
        let place = self.places.entry((tid, stack)).or_insert(ObservedWait { time: 0, ..wait });
        place.time = place.time.saturating_add(wait.time);
        if let WaitPartner::Thread(waker) = wait.partner {
            self.wakers.entry((tid, stack)).or_default().insert(waker);
        }
    }

    /// Returns the idle places, and why they are idle.
    fn idle(&self) -> FxHashMap<PlaceKey, IdleReason> {
        let mut threads_of: FxHashMap<i32, usize> = FxHashMap::default();
        let mut parents: FxHashSet<i32> = FxHashSet::default();
        for ThreadSums { thread, .. } in self.threads.values() {
            *threads_of.entry(thread.process).or_default() += 1;
            parents.extend(thread.parent.filter(|parent| *parent != thread.process));
        }
        let pools = self.pools();
        let reason = |(&(tid, stack), wait): (&PlaceKey, &ObservedWait)| {
            let sums = &self.threads[&tid];
            let thread = &sums.thread;
            let is_service = wait.owners.is_service && (wait.owners.is_go || tid != thread.process)
                || JVM_THREADS.iter().any(|start| thread.name.starts_with(start));
            let is_most = sums.is_most(wait.time);
            let reason = match wait.site {
                WaitSite::Join if threads_of[&thread.process] > 1 => IdleReason::Threads,
                WaitSite::Child if parents.contains(&thread.process) => IdleReason::Children,
                site if is_service && site.idle_rule() != IdleRule::Never => IdleReason::Service,
                WaitSite::Epoll if sums.is_most(sums.events) => IdleReason::Events,
                WaitSite::Poll | WaitSite::Pipe if is_most && parents.contains(&thread.process) => {
                    IdleReason::Children
                }
                _ if pools.contains(&(thread.process, stack)) && is_most => IdleReason::Pool,
                _ => return None,
            };
            (wait.time > 0).then_some(((tid, stack), reason))
        };
        self.places.iter().filter_map(reason).collect()
    }

    /// Returns the processes and stacks with which the threads of pools wait.
    fn pools(&self) -> FxHashSet<(i32, u32)> {
        let mut members: FxHashMap<(i32, u32), Vec<i32>> = FxHashMap::default();
        // No record shows which semaphore a thread waits for.
        let mut semaphore_waiters: FxHashMap<i32, FxHashSet<i32>> = FxHashMap::default();
        for (&(tid, stack), wait) in &self.places {
            let sums = &self.threads[&tid];
            let thread = &sums.thread;
            if wait.site == WaitSite::Semaphore {
                semaphore_waiters.entry(thread.process).or_default().insert(tid);
            }
            // Without the program's own function, threads with the same stack may wait in different places.
            let is_work = wait.site.idle_rule() == IdleRule::Pool;
            if is_work && wait.owners.own.is_some() && sums.is_most(wait.time) {
                members.entry((thread.process, stack)).or_default().push(tid);
            }
        }
        let is_pool = |(&(process, stack), members): (&(i32, u32), &Vec<i32>)| {
            let is_semaphore = self.places[&(members[0], stack)].site == WaitSite::Semaphore;
            let wakers = || members.iter().filter_map(|tid| self.wakers.get(&(*tid, stack))).flatten();
            let is_lock = match is_semaphore {
                true => wakers().any(|tid| semaphore_waiters[&process].contains(tid)),
                false => wakers().any(|tid| members.contains(tid)),
            };
            // A semaphore may be a lock, unless the threads that post it are known.
            let is_sure = !is_semaphore || wakers().next().is_some();
            (members.len() > 1 && !is_lock && is_sure).then_some((process, stack))
        };
        members.iter().filter_map(is_pool).collect()
    }

    /// Returns the groups of idle places. `symbol` returns the name of a call.
    fn groups(
        &self,
        idle: &FxHashMap<PlaceKey, IdleReason>,
        symbol: &dyn Fn(usize) -> StringId,
        texts: &StringTable,
    ) -> Vec<IdleGroup> {
        let mut sums: FxHashMap<GroupKey, FxHashMap<i32, u64>> = FxHashMap::default();
        for (key, reason) in idle {
            let wait = &self.places[key];
            let function = wait.owners.own.filter(|_| *reason != IdleReason::Service).map(symbol);
            let times = sums.entry((*reason, wait.site, function)).or_default();
            let time = times.entry(key.0).or_default();
            *time = time.saturating_add(wait.time);
        }
        let group = |((reason, site, function), times): (GroupKey, FxHashMap<i32, u64>)| {
            let mut by_name: FxHashMap<&str, u64> = FxHashMap::default();
            for (tid, time) in &times {
                *by_name.entry(&self.threads[tid].thread.name).or_default() += *time;
            }
            let mut names: Vec<(&str, u64)> = by_name.into_iter().collect();
            names.sort_by_key(|(name, time)| (Reverse(*time), *name));
            IdleGroup {
                reason,
                site,
                function: function.map(|id| texts.get(id).to_owned()),
                names: names.into_iter().map(|(name, _)| name.to_owned()).collect(),
                threads: times.len(),
                waited_ns: times.values().fold(0, |sum, time| sum.saturating_add(*time)),
            }
        };
        let mut groups: Vec<IdleGroup> = sums.into_iter().map(group).collect();
        groups.sort_by(|a, b| {
            let key = |of: &IdleGroup| (Reverse(of.waited_ns), of.reason, of.site);
            key(a).cmp(&key(b)).then_with(|| a.function.cmp(&b.function))
        });
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WaitSite::*;

    const PROGRAM: StackOwners = StackOwners { own: Some(0), is_service: false, is_go: false };
    const SERVICE: StackOwners = StackOwners { own: None, is_service: true, is_go: false };
    const GO: StackOwners = StackOwners { is_go: true, ..SERVICE };
    /// An interpreter without names, or a stack that was cut.
    const UNKNOWN: StackOwners = StackOwners { own: None, is_service: false, is_go: false };

    /// Threads of processes 1 and 2, which process 1 started. Thread 3 is a child process of process 2.
    fn thread(tid: i32) -> MeasuredThread {
        let (process, parent) = match tid {
            3 => (3, Some(2)),
            20.. => (2, Some(1)),
            _ => (1, None),
        };
        let name = if tid == 19 { "Finalizer" } else { "worker" };
        MeasuredThread { process, parent, name: name.to_owned() }
    }

    /// Returns the idle places of waits: thread, stack, site, time, and the thread that ended the wait.
    fn idle(owners: StackOwners, waits: &[(i32, u32, WaitSite, u64, i32)]) -> Vec<(i32, u32, IdleReason)> {
        let mut census = WaitCensus::default();
        for (tid, stack, site, time, waker) in waits {
            let partner = WaitPartner::of_word(*waker as u64);
            census.add(*tid, *stack, ObservedWait { site: *site, owners, time: *time, partner }, &thread);
        }
        let mut idle: Vec<_> =
            census.idle().into_iter().map(|((tid, stack), reason)| (tid, stack, reason)).collect();
        idle.sort_unstable();
        idle
    }

    #[test]
    fn threads_that_only_wait_for_work_are_idle() {
        let events = [(7, 1, Epoll, 90, 0), (7, 2, Running, 10, 0)];
        assert_eq!(idle(PROGRAM, &events), [(7, 1, IdleReason::Events)]);
        assert_eq!(idle(PROGRAM, &[(7, 1, Epoll, 70, 0), (7, 2, Running, 30, 0)]), []);
        // Some stacks were cut.
        let both = [(7, 1, IdleReason::Events), (7, 2, IdleReason::Events)];
        assert_eq!(idle(UNKNOWN, &[(7, 1, Epoll, 70, 0), (7, 2, Epoll, 30, 0)]), both);
        let pool = [(8, 3, Condition, 50, 0), (9, 3, Condition, 50, 0)];
        assert_eq!(idle(PROGRAM, &pool), [(8, 3, IdleReason::Pool), (9, 3, IdleReason::Pool)]);
        let runnable = [&pool[..], &[(8, 4, Cpu, 500, 0)]].concat();
        assert_eq!(idle(PROGRAM, &runnable).len(), 2);
        // A single thread is no pool, nor are threads of two processes.
        assert_eq!(idle(PROGRAM, &pool[..1]), []);
        assert_eq!(idle(PROGRAM, &[(8, 3, Condition, 50, 0), (20, 3, Condition, 50, 0)]), []);
        // Nor are threads that also do something else, or whose places are not known.
        assert_eq!(idle(PROGRAM, &[&pool[..], &[(9, 4, Disk, 50, 0)]].concat()), []);
        assert_eq!(idle(UNKNOWN, &pool), []);
        assert_eq!(idle(PROGRAM, &[(7, 1, Epoll, 0, 0), (7, 2, Epoll, 0, 0)]), []);
    }

    #[test]
    fn threads_of_the_runtime_are_idle() {
        let waits = [(8, 1, Condition, 10, 0), (8, 2, Running, 90, 0), (9, 3, Sleep, 50, 0)];
        assert_eq!(idle(SERVICE, &waits), [(8, 1, IdleReason::Service), (9, 3, IdleReason::Service)]);
        // The main thread runs the program, unless the program's functions have stacks of their own.
        assert_eq!(idle(SERVICE, &[(1, 1, Condition, 10, 0)]), []);
        assert_eq!(idle(GO, &[(1, 1, Condition, 10, 0)]), [(1, 1, IdleReason::Service)]);
        // The JVM runs Java code in some of its threads.
        assert_eq!(idle(UNKNOWN, &[(19, 1, Condition, 10, 0)]), [(19, 1, IdleReason::Service)]);
        // A lock of the runtime, or its disk.
        assert_eq!(idle(SERVICE, &[(8, 1, Mutex, 10, 0), (9, 1, Mutex, 10, 0), (9, 2, Disk, 90, 0)]), []);
    }

    #[test]
    fn parents_of_measured_threads_and_processes_are_idle() {
        let main = (1, 1, Join, 10, 0);
        assert_eq!(idle(PROGRAM, &[main, (1, 2, Running, 90, 0)]), []);
        assert_eq!(idle(PROGRAM, &[main, (8, 2, Mutex, 90, 0)]), [(1, 1, IdleReason::Threads)]);
        let parent = (20, 1, Child, 10, 0);
        assert_eq!(idle(PROGRAM, &[parent, (21, 2, Running, 90, 0)]), []);
        assert_eq!(idle(PROGRAM, &[parent, (3, 2, Running, 90, 0)]), [(20, 1, IdleReason::Children)]);
        // A parent reads the output of its child. The child waits for something else.
        let pipes = [(20, 1, Poll, 10, 0), (3, 2, Pipe, 90, 0)];
        assert_eq!(idle(PROGRAM, &pipes), [(20, 1, IdleReason::Children)]);
    }

    #[test]
    fn waits_that_other_waiting_threads_end_are_shown() {
        // Threads 8 and 9 wake each other, so they may exclude each other.
        for site in [Semaphore, Condition, Notification] {
            let lock = [(8, 3, site, 50, 9), (9, 3, site, 50, 8)];
            assert_eq!(idle(PROGRAM, &lock), [], "{site:?}");
        }
        let pool = |waker| [(8, 3, Semaphore, 50, waker), (9, 3, Semaphore, 50, 0)];
        assert_eq!(idle(PROGRAM, &pool(0)), []);
        assert_eq!(idle(PROGRAM, &pool(1)), [(8, 3, IdleReason::Pool), (9, 3, IdleReason::Pool)]);
        // Thread 10 posts the semaphore, and waits for one in another function.
        let holder = [(10, 4, Semaphore, 1, 0), (10, 5, Sleep, 99, 0)];
        assert_eq!(idle(PROGRAM, &[&pool(10)[..], &holder].concat()), []);
        // Locks and delays are no work.
        for site in [Mutex, RwLock, KernelLock, Futex, Barrier, Sleep, Socket, Poll, Pipe] {
            assert_eq!(idle(PROGRAM, &[(8, 3, site, 50, 0), (9, 3, site, 50, 0)]), [], "{site:?}");
        }
    }

    #[test]
    fn groups_have_the_names_of_their_threads() {
        let kinds = [SampleAttribute::Tid, SampleAttribute::WaitSite];
        let mut attributes = Interner::default();
        let mut list = Vec::new();
        let mut row = |tid: u64, site: WaitSite, period| {
            crate::session::intern::bytes(&[tid, site.word()], &mut list);
            let key = RowKey { event: 0, stack: 0, comm: 0, attributes: attributes.add(0, &list) };
            (key, SampleValue { samples: 1, period, ..SampleValue::default() })
        };
        let rows = vec![row(7, Epoll, 40), row(19, Epoll, 50), row(18, Running, 1), row(18, Mutex, 1)];
        let mut stacks = Interner::default();
        stacks.add(0, &[]);
        let mut resolved = ResolvedStacks { rows, stacks: stacks.into(), ..ResolvedStacks::default() };
        let (code, texts) = (LocationCalls::default(), StringTable::default());
        let input =
            IdleInput { attributes: &attributes, kinds: &kinds, code: &code, texts: &texts, thread: &thread };
        let idle = remove_idle(&mut resolved, input);
        assert_eq!((idle.threads, idle.rows.len(), resolved.rows.len()), (2, 2, 2));
        assert_eq!(idle.sums(), (2, 90));
        let group = |reason, name: &str, waited_ns| IdleGroup {
            reason,
            site: Epoll,
            function: None,
            names: vec![name.to_owned()],
            threads: 1,
            waited_ns,
        };
        let wanted = [group(IdleReason::Service, "Finalizer", 50), group(IdleReason::Events, "worker", 40)];
        assert_eq!(idle.groups, wanted);
    }
}
