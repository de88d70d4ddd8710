//! System calls by thread: their number, errors and the distribution of their durations.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmc_perfdata::record::Thread;
use pmc_sys::abi::syscall::{SyscallAbi, SyscallTable};
use rustc_hash::FxHashMap;

use super::tracer::{CallResult, TracedCall};
use pmc_analysis::interval::DurationHistogram;

/// Maximum number of threads with separate sums. All further threads share one row.
const MOST_THREADS: usize = 1 << 15;

/// Represents all threads beyond the maximum number.
const OTHERS: Thread = Thread { pid: -1, tid: -1 };

/// A system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallKey {
    /// The ABI.
    pub(super) abi: SyscallAbi,
    /// The number in this ABI.
    pub(super) number: u64,
}

impl CallKey {
    /// Returns the call's name; `None` for an unknown number.
    pub(super) fn name(self) -> Option<&'static str> {
        SyscallTable::get().by_number(self.abi, self.number).map(|call| call.name)
    }
}

/// The sums of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallStatistics {
    /// Durations of the calls that have returned.
    pub(super) durations: DurationHistogram,
    /// Number of failed calls by error number.
    pub(super) errors: BTreeMap<i32, u64>,
    /// Number of calls that had not returned. They are not part of `durations`.
    pub(super) unfinished: u64,
}

impl CallStatistics {
    /// Returns the number of failed calls.
    pub(super) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    fn merge(&mut self, other: &Self) {
        self.durations.merge(&other.durations);
        self.unfinished += other.unfinished;
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }
}

/// The calls of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadCalls {
    /// The thread; -1 for all threads beyond the maximum number.
    pub(super) thread: Thread,
    /// The thread's name at its last call.
    pub(super) comm: Arc<str>,
    /// Sums by call.
    pub(super) calls: FxHashMap<CallKey, CallStatistics>,
}

impl ThreadCalls {
    /// Returns the number of calls that have returned.
    pub(super) fn count(&self) -> u64 {
        self.calls.values().map(|call| call.durations.count()).sum()
    }

    /// Returns the calls, longest total time first.
    pub(super) fn by_time(&self) -> Vec<(CallKey, &CallStatistics)> {
        let mut all: Vec<_> = self.calls.iter().map(|(key, call)| (*key, call)).collect();
        all.sort_by_key(|(key, call)| {
            (std::cmp::Reverse((call.durations.sum(), call.durations.count())), *key)
        });
        all
    }
}

/// The sums of all threads.
#[derive(Debug, Default)]
pub(super) struct CallSummary {
    threads: Vec<ThreadCalls>,
    by_tid: FxHashMap<i32, usize>,
    /// The thread that made the last call.
    last: Option<(Thread, usize)>,
}

impl CallSummary {
    /// Adds a call.
    pub(super) fn add(&mut self, call: &TracedCall) {
        let entered = &call.entered;
        let index = match self.last {
            Some((thread, index)) if thread == entered.thread => index,
            _ => self.index(entered.thread),
        };
        self.last = Some((entered.thread, index));
        let thread = &mut self.threads[index];
        if !Arc::ptr_eq(&thread.comm, &call.comm) && thread.thread != OTHERS {
            thread.comm = Arc::clone(&call.comm);
        }
        let sums = thread.calls.entry(CallKey { abi: entered.abi, number: entered.number }).or_default();
        match call.result {
            CallResult::Unfinished => sums.unfinished += 1,
            CallResult::Value(_) => sums.durations.add(call.duration()),
            CallResult::Error(errno) => {
                sums.durations.add(call.duration());
                *sums.errors.entry(errno).or_default() += 1;
            }
        }
    }

    fn index(&mut self, thread: Thread) -> usize {
        let known = self.by_tid.get(&thread.tid).copied();
        // A new process may have the ID of a process that has exited.
        if let Some(index) = known.filter(|&index| self.threads[index].thread.pid == thread.pid) {
            return index;
        }
        let is_full = self.threads.len() >= MOST_THREADS;
        let thread = if is_full { OTHERS } else { thread };
        if let Some(&index) = self.by_tid.get(&OTHERS.tid).filter(|_| is_full) {
            return index;
        }
        let comm = Arc::from(if is_full { "[other threads]" } else { "" });
        self.by_tid.insert(thread.tid, self.threads.len());
        self.threads.push(ThreadCalls { thread, comm, calls: FxHashMap::default() });
        self.threads.len() - 1
    }

    /// Returns the sums of each thread, most calls first.
    pub(super) fn by_thread(&self) -> Vec<&ThreadCalls> {
        let mut threads: Vec<&ThreadCalls> = self.threads.iter().collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.count()), thread.thread.tid));
        threads
    }

    /// Returns the sums over all threads.
    pub(super) fn total(&self) -> ThreadCalls {
        let mut calls: FxHashMap<CallKey, CallStatistics> = FxHashMap::default();
        for (key, call) in self.threads.iter().flat_map(|thread| &thread.calls) {
            calls.entry(*key).or_default().merge(call);
        }
        ThreadCalls { thread: OTHERS, comm: Arc::from("total"), calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::memory::CallMemory;
    use crate::trace::tracer::EnteredCall;

    fn call(pid: i32, tid: i32, number: u64, duration: u64, result: CallResult) -> TracedCall {
        let thread = Thread { pid, tid };
        let abi = SyscallAbi::X86_64;
        let entered = EnteredCall {
            thread,
            abi,
            number,
            arguments: [0; 6],
            begin: 100,
            memory: CallMemory::default(),
            stack: Box::default(),
        };
        TracedCall { entered, end: 100 + duration, result, comm: Arc::from("dd"), has_loss: false }
    }

    #[test]
    fn calls_are_summed_by_thread_and_in_total() {
        let mut summary = CallSummary::default();
        summary.add(&call(1, 1, 0, 10, CallResult::Value(1)));
        summary.add(&call(1, 1, 0, 30, CallResult::Error(4)));
        summary.add(&call(1, 2, 0, 50, CallResult::Error(4)));
        summary.add(&call(1, 1, 1, 5, CallResult::Value(1)));
        summary.add(&call(1, 1, 231, 0, CallResult::Unfinished));
        let threads = summary.by_thread();
        assert_eq!(
            threads.iter().map(|one| (one.thread.tid, one.count())).collect::<Vec<_>>(),
            [(1, 3), (2, 1)]
        );
        let names: Vec<_> = threads[0].by_time().iter().map(|(key, _)| key.name().unwrap()).collect();
        assert_eq!(names, ["read", "write", "exit_group"]);
        let total = summary.total();
        let read = &total.calls[&CallKey { abi: SyscallAbi::X86_64, number: 0 }];
        assert_eq!((read.durations.count(), read.durations.sum(), read.failed()), (3, 90, 2));
        assert_eq!(total.count(), 4);
    }

    #[test]
    fn too_many_threads_share_a_row() {
        let mut summary = CallSummary::default();
        for tid in 0..MOST_THREADS as i32 + 10 {
            summary.add(&call(tid, tid, 0, 1, CallResult::Value(0)));
        }
        assert_eq!(summary.threads.len(), MOST_THREADS + 1);
        assert_eq!(summary.by_thread()[0].count(), 10);
        assert_eq!(summary.total().count(), MOST_THREADS as u64 + 10);
    }
}
