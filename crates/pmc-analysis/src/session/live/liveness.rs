//! Determines from records which processes and threads have ended, without asking the kernel about each of
//! them.
//!
//! Task records show whether a process or thread has ended. This module also decides when to ask the kernel
//! anyway, because records may be lost and a process may outlive its main thread.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::session::history::Timestamp;
use crate::session::samples::{SampleAttribute, SampleQuery};
use pmc_perfdata::record::Thread;

/// The id −1, which replaces the ids of processes and threads that have ended.
pub(crate) const ENDED: u64 = -1i64 as u64;
/// Time after a thread's exit record during which the thread may still run (and be sampled) in the kernel.
const LINGER_NS: u64 = 500_000_000;
/// Number of turns after which pmc asks the kernel about all processes and threads. This corrects the effects
/// of lost or wrong records.
const ASKING: u32 = 32;

/// The processes and threads that have ended, and the positions of their ids in rows.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// Exit times of threads.
    ended: FxHashMap<i32, Timestamp>,
    /// Processes that have had more than one thread.
    threaded: FxHashSet<i32>,
    /// Number of lost records at the end of the last turn.
    lost: u64,
    turns: u32,
    /// Whether to ask the kernel about all processes and threads until this turn ends.
    asks: bool,
    /// Processes and threads that the user selected by id. They keep their ids when they end.
    named: FxHashSet<i32>,
    /// Positions of the process and thread ids among a row's attributes, if requested.
    pid: Option<usize>,
    tid: Option<usize>,
}

impl Liveness {
    /// Creates a state in which nothing has ended.
    pub(super) fn new(query: &SampleQuery) -> Self {
        let at = |attribute| query.attributes.iter().position(|other| *other == attribute);
        Self { pid: at(SampleAttribute::Pid), tid: at(SampleAttribute::Tid), ..Self::default() }
    }

    /// Marks processes or threads as selected by id.
    pub(super) fn name(&mut self, ids: impl IntoIterator<Item = i32>) {
        self.named.extend(ids);
    }

    /// Records the start of a thread.
    pub(super) fn began(&mut self, thread: Thread) {
        self.ended.remove(&thread.tid);
        if thread.pid != thread.tid {
            self.threaded.insert(thread.pid);
        }
    }

    /// Records the exit of a thread.
    pub(super) fn ended(&mut self, thread: Thread, timestamp: Timestamp) {
        self.ended.insert(thread.tid, timestamp);
    }

    /// Whether a process or thread is running, according to the records.
    pub(super) fn is_alive_in_records(&self, id: i32) -> bool {
        !self.ended.contains_key(&id) || self.threaded.contains(&id)
    }

    /// Ends a turn. `lost` is the number of records lost so far.
    pub(super) fn end_round(&mut self, lost: u64) {
        self.turns = self.turns.wrapping_add(1);
        self.asks = self.lost != lost || self.turns.is_multiple_of(ASKING);
        self.lost = lost;
    }

    /// Returns a function that determines whether a process or thread is still running at a timestamp. `ask`
    /// asks the kernel.
    pub(super) fn lives<'a>(
        &'a self,
        before: Timestamp,
        ask: &'a dyn Fn(i32) -> bool,
    ) -> impl Fn(i32) -> bool + 'a {
        move |id| match self.ended.get(&id) {
            _ if self.asks => ask(id),
            Some(_) if self.threaded.contains(&id) => ask(id),
            Some(at) => at.saturating_add(LINGER_NS) > before,
            None => true,
        }
    }

    /// Removes entries that are no longer needed. `knows` returns whether a process still has state.
    pub(super) fn forget(&mut self, before: Timestamp, knows: impl Fn(i32) -> bool) {
        self.ended.retain(|_, at| at.saturating_add(LINGER_NS) > before);
        self.threaded.retain(|pid| knows(*pid));
    }

    /// Whether rows have the process or thread as an attribute.
    pub(super) fn is_in_rows(&self) -> bool {
        self.pid.or(self.tid).is_some()
    }

    /// Replaces the ids of ended processes and threads with [`ENDED`]. Returns whether any id changed.
    pub(super) fn collapse(&self, words: &mut [u64], lives: impl Fn(i32) -> bool) -> bool {
        // The idle task has id 0 and never ends.
        let is_named = |word: u64| self.named.contains(&(word as i32));
        let is_gone = |word: u64| word != 0 && word != ENDED && !is_named(word) && !lives(word as i32);
        let process_is_gone = self.pid.is_some_and(|at| is_gone(words[at]));
        let thread_is_gone = self.tid.is_some_and(|at| {
            words[at] != ENDED && !is_named(words[at]) && (process_is_gone || is_gone(words[at]))
        });
        for at in
            [self.pid.filter(|_| process_is_gone), self.tid.filter(|_| thread_is_gone)].into_iter().flatten()
        {
            words[at] = ENDED;
        }
        process_is_gone || thread_is_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_is_queried_if_records_do_not_tell() {
        let mut ended = Liveness::default();
        let thread = |pid, tid| Thread { pid, tid };
        for one in [thread(1, 1), thread(2, 2), thread(3, 3), thread(3, 4)] {
            ended.began(one);
        }
        for one in [thread(2, 2), thread(3, 3)] {
            ended.ended(one, 1000);
        }
        let asked = std::cell::RefCell::new(Vec::new());
        let lives = |id| {
            asked.borrow_mut().push(id);
            true
        };
        let now = 1000 + LINGER_NS;
        let gone = |ended: &mut Liveness, before, lost| -> Vec<i32> {
            ended.end_round(lost);
            let lives = ended.lives(before, &lives);
            (1..5).filter(|id| !lives(*id)).collect()
        };
        // A thread that has just ended may still run in the kernel.
        assert_eq!(gone(&mut ended, now - 1, 0), [0; 0]);
        // A process may outlive its main thread.
        asked.borrow_mut().clear();
        assert_eq!((gone(&mut ended, now, 0), asked.take()), (vec![2], vec![3]));
        // A lost record may have been an exit record.
        assert_eq!((gone(&mut ended, now, 7), asked.take()), (vec![], vec![1, 2, 3, 4]));
        // The thread id is reused.
        ended.began(thread(2, 2));
        assert_eq!(gone(&mut ended, now, 7), [0; 0]);
        ended.forget(now, |_| false);
        assert!(ended.ended.is_empty() && ended.threaded.is_empty());
    }

    #[test]
    fn thread_ends_by_itself_or_with_its_process() {
        let mut liveness = Liveness::new(&SampleQuery {
            attributes: vec![SampleAttribute::Tid, SampleAttribute::Cpu, SampleAttribute::Pid],
            ..SampleQuery::default()
        });
        let collapsed = |liveness: &Liveness, tid: u64, pid: u64, alive: &[i32]| {
            let mut words = [tid, 5, pid];
            let has_changed = liveness.collapse(&mut words, |id| alive.contains(&id));
            assert_eq!(has_changed, words != [tid, 5, pid]);
            words
        };
        assert_eq!(collapsed(&liveness, 8, 7, &[7, 8]), [8, 5, 7]);
        assert_eq!(collapsed(&liveness, 8, 7, &[7]), [ENDED, 5, 7]);
        assert_eq!(collapsed(&liveness, ENDED, 7, &[7]), [ENDED, 5, 7]);
        // When a process exits, all its threads exit too, including those whose ids differ from the process
        // id.
        assert_eq!(collapsed(&liveness, 8, 7, &[8]), [ENDED, 5, ENDED]);
        assert_eq!(collapsed(&liveness, ENDED, 7, &[]), [ENDED, 5, ENDED]);
        assert_eq!(collapsed(&liveness, ENDED, ENDED, &[]), [ENDED, 5, ENDED]);
        assert_eq!(collapsed(&liveness, 0, 0, &[]), [0, 5, 0]);
        // A process or thread that was selected by id keeps its id.
        liveness.name([7]);
        assert_eq!(collapsed(&liveness, 8, 7, &[]), [ENDED, 5, 7]);
        assert_eq!(collapsed(&liveness, 7, 7, &[]), [7, 5, 7]);
    }
}
