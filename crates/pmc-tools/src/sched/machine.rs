//! Tracks the state of all tasks over time: running, waiting, or waiting for a CPU.
//!
//! ```text
//!            out          waking         in                 out
//!   ──running─┼─────────────┼────────────┼──────running──────┼──
//!             │             │─ delay ────│                   │
//!             │──── wait ────────────────│────── run ────────│
//! ```
//! A preempted task is still runnable, so its delay begins when its wait begins. All three intervals belong
//! to the task, on whichever CPU it runs.

use std::collections::VecDeque;

use pmc_analysis::interval::{Interval, IntervalEngine, Overlap, PairingCounts};

use super::tasks::{SchedTaskId, SchedTasks, slot};

/// The state of a task that is still runnable.
pub(super) const RUNNABLE: u8 = b'R';

/// The states of a task that has exited: a zombie, or already removed. It never runs again.
const DEAD: [u8; 2] = [b'Z', b'X'];

/// Number of stretches to keep per CPU, for finding the tasks that ran during a delay.
const HISTORY: usize = 1024;

/// Maximum number of tasks to list as having run during a delay.
const MAX_RUNNERS: usize = 8;

/// The tasks that ran on a CPU while another task waited for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Runners {
    /// The tasks that ran longest, each with its running time in nanoseconds, longest first.
    pub(super) tasks: Vec<(SchedTaskId, u64)>,
    /// Running time of all other tasks, in nanoseconds.
    pub(super) others: u64,
}

/// Counts of matched and unmatched events in a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchedCounts {
    /// Number of periods on a CPU whose start and end are both known.
    pub(super) runs: u64,
    /// Number of delays whose start and end are both known.
    pub(super) delays: u64,
    /// Number of switches away from a task without an earlier switch to that task.
    pub(super) unseen_runs: u64,
    /// Number of switches to tasks whose wake-up is not in the recording.
    pub(super) unwoken: u64,
    /// Number of wake-ups of tasks that were running or had already been woken.
    pub(super) redundant_wakeups: u64,
    /// Number of times that a task left a CPU, or was switched to, twice in a row.
    pub(super) repeated: u64,
    /// Number of intervals that end before they start.
    pub(super) backwards: u64,
    /// Number of unfinished intervals that were dropped to limit memory use.
    pub(super) expired: u64,
    /// Number of intervals during which records were lost.
    pub(super) with_loss: u64,
    /// Number of lost records.
    pub(super) lost: u64,
}

impl SchedCounts {
    /// Adds the counts of an interval engine.
    pub(super) fn add(&mut self, pairs: &PairingCounts) {
        self.repeated += pairs.replaced;
        self.backwards += pairs.backwards;
        self.expired += pairs.expired;
        self.with_loss += pairs.with_loss;
    }
}

/// A stretch of time during which a task ran on a CPU.
#[derive(Debug, Clone, Copy)]
struct CpuStretch {
    task: SchedTaskId,
    begin: u64,
    end: u64,
}

/// The state of a task, and its intervals since it was last switched out.
#[derive(Debug, Clone, Default)]
struct TaskState {
    /// Whether any event has mentioned the task.
    is_seen: bool,
    /// Whether the task has been switched in and not yet out.
    is_running: bool,
    /// The wait before the task was switched in, with its state when it was switched out.
    wait: Option<Interval<u8>>,
    /// The delay before the task was switched in.
    delay: Option<Interval<()>>,
    /// Time of the last migration while waiting.
    migrated: u64,
    /// Whether the task has exited. It may still have to be switched out.
    has_exited: bool,
}

/// A task was switched out.
#[derive(Debug)]
pub(super) struct SwitchedOut {
    pub(super) task: SchedTaskId,
    pub(super) cpu: u32,
    pub(super) time: u64,
    /// The letter of the task's state.
    pub(super) state: u8,
    /// The time for which it ran; `None` if no record shows when it was switched in.
    pub(super) run: Option<Interval<u32>>,
    pub(super) wait: Option<Interval<u8>>,
    pub(super) delay: Option<Interval<()>>,
    /// Time of the last migration during the delay.
    pub(super) migrated: u64,
}

/// A task was switched in.
#[derive(Debug)]
pub(super) struct SwitchedIn {
    pub(super) task: SchedTaskId,
    /// The time since the task was woken or preempted.
    pub(super) delay: Option<Interval<()>>,
    /// The time since the task was switched out.
    pub(super) wait: Option<Interval<u8>>,
    /// Whether this is the first event that mentions the task.
    pub(super) is_first: bool,
}

/// Tracks the state of all tasks.
#[derive(Debug)]
pub(super) struct SchedMachine {
    pub(super) tasks: SchedTasks,
    runs: IntervalEngine<SchedTaskId, u32>,
    waits: IntervalEngine<SchedTaskId, u8>,
    delays: IntervalEngine<SchedTaskId, ()>,
    states: Vec<TaskState>,
    /// The most recent stretches on each CPU.
    cpus: Vec<VecDeque<CpuStretch>>,
    has_wakeups: bool,
    counts: SchedCounts,
}

impl SchedMachine {
    /// Creates a machine without tasks. `has_wakeups` tells whether the recording contains wake-ups.
    pub(super) fn new(has_wakeups: bool) -> Self {
        Self {
            has_wakeups,
            tasks: SchedTasks::default(),
            runs: IntervalEngine::new(Overlap::Replace),
            waits: IntervalEngine::new(Overlap::Replace),
            delays: IntervalEngine::new(Overlap::Replace),
            states: Vec::new(),
            cpus: Vec::new(),
            counts: SchedCounts::default(),
        }
    }

    fn state(&mut self, task: SchedTaskId) -> &mut TaskState {
        slot(&mut self.states, task.index())
    }

    /// Handles a task that leaves its CPU.
    pub(super) fn switch_out(&mut self, task: SchedTaskId, cpu: u32, time: u64, state: u8) -> SwitchedOut {
        let run = self.runs.end(&task, time);
        if let Some(run) = &run {
            self.remember(cpu, CpuStretch { task, begin: run.begin, end: time });
        }
        let known = self.state(task);
        known.is_seen = true;
        known.is_running = false;
        let (wait, delay) = (known.wait.take(), known.delay.take());
        let migrated = std::mem::take(&mut known.migrated);
        // A wake-up of a task that is already running causes no delay.
        self.delays.forget(&task);
        if !DEAD.contains(&state) {
            self.waits.begin(task, time, state);
        }
        if state == RUNNABLE {
            self.delays.begin(task, time, ());
        }
        SwitchedOut { task, cpu, time, state, run, wait, delay, migrated }
    }

    /// Handles a task that gets a CPU.
    pub(super) fn switch_in(&mut self, task: SchedTaskId, cpu: u32, time: u64) -> SwitchedIn {
        let wait = self.waits.end(&task, time);
        let delay = self.delays.end(&task, time);
        self.runs.begin(task, time, cpu);
        let known = self.state(task);
        let is_first = !known.is_seen;
        known.is_seen = true;
        known.is_running = true;
        known.wait.clone_from(&wait);
        known.delay.clone_from(&delay);
        SwitchedIn { task, delay, wait, is_first }
    }

    /// Handles the wake-up of a task.
    pub(super) fn wake(&mut self, task: SchedTaskId, time: u64) {
        let known = self.state(task);
        known.is_seen = true;
        let is_running = known.is_running;
        if is_running || self.delays.current(&task).is_some() {
            self.counts.redundant_wakeups += 1;
        } else {
            self.delays.begin(task, time, ());
        }
    }

    /// Handles the migration of a task to another CPU.
    pub(super) fn migrate(&mut self, task: SchedTaskId, time: u64) {
        self.state(task).migrated = time;
    }

    /// Records that an event has mentioned the task.
    pub(super) fn mark_seen(&mut self, task: SchedTaskId) {
        self.state(task).is_seen = true;
    }

    /// Handles the exit of a task. As in perf, the task's last run has no wait before it.
    pub(super) fn exit(&mut self, task: SchedTaskId) {
        let known = self.state(task);
        known.has_exited = true;
        known.wait = None;
        known.delay = None;
    }

    /// Whether a task has exited.
    pub(super) fn has_exited(&self, task: SchedTaskId) -> bool {
        self.states.get(task.index()).is_some_and(|known| known.has_exited)
    }

    /// Handles the loss of `count` records before this time.
    pub(super) fn lose(&mut self, time: u64, count: u64) {
        self.counts.lost = self.counts.lost.saturating_add(count);
        self.runs.lose(time);
        self.waits.lose(time);
        self.delays.lose(time);
    }

    /// Raises the number of lost records to `count`, for losses that only other records report.
    pub(super) fn lost_at_least(&mut self, count: u64) {
        self.counts.lost = self.counts.lost.max(count);
    }

    fn remember(&mut self, cpu: u32, stretch: CpuStretch) {
        let history = slot(&mut self.cpus, cpu as usize);
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(stretch);
    }

    /// Returns the tasks that ran on a CPU during a period that ends now.
    pub(super) fn ran_during(&self, cpu: u32, from: u64, to: u64) -> Runners {
        let mut ran: Vec<(SchedTaskId, u64)> = Vec::new();
        let Some(history) = self.cpus.get(cpu as usize) else { return Runners::default() };
        for stretch in history.iter().rev().take_while(|stretch| stretch.end > from) {
            let time = stretch.end.min(to).saturating_sub(stretch.begin.max(from));
            match ran.iter_mut().find(|(task, _)| *task == stretch.task) {
                Some((_, sum)) => *sum = sum.saturating_add(time),
                None => ran.push((stretch.task, time)),
            }
        }
        ran.retain(|(_, time)| *time > 0);
        ran.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let others = ran.iter().skip(MAX_RUNNERS).fold(0u64, |sum, (_, time)| sum.saturating_add(*time));
        ran.truncate(MAX_RUNNERS);
        Runners { tasks: ran, others }
    }

    /// Returns the counts of unmatched events.
    pub(super) fn counts(&self) -> SchedCounts {
        let (runs, waits, delays) = (self.runs.counts(), self.waits.counts(), self.delays.counts());
        let mut counts = SchedCounts {
            runs: runs.paired,
            delays: delays.paired,
            unseen_runs: runs.ends_only,
            unwoken: if self.has_wakeups { delays.ends_only } else { 0 },
            ..self.counts
        };
        [runs, waits, delays].iter().for_each(|pairs| counts.add(pairs));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::tasks::UNKNOWN;
    use super::*;
    use proptest::prelude::*;

    fn machine() -> (SchedMachine, [SchedTaskId; 3]) {
        let mut machine = SchedMachine::new(true);
        let tasks = [1, 2, 3].map(|tid| machine.tasks.get_or_add(tid, tid));
        (machine, tasks)
    }

    fn switch(
        machine: &mut SchedMachine,
        from: SchedTaskId,
        to: SchedTaskId,
        time: u64,
        state: u8,
    ) -> SwitchedIn {
        machine.switch_out(from, 0, time, state);
        machine.switch_in(to, 0, time)
    }

    #[test]
    fn a_delay_begins_at_the_first_wakeup_after_the_task_left_its_cpu() {
        let (mut machine, [a, b, _]) = machine();
        switch(&mut machine, a, b, 100, b'S');
        // A task that is woken while it runs has no delay.
        machine.wake(b, 110);
        machine.wake(a, 150);
        machine.wake(a, 160);
        let got = switch(&mut machine, b, a, 200, b'R');
        assert_eq!(got.delay.map(|delay| (delay.begin, delay.end)), Some((150, 200)));
        assert_eq!(got.wait.map(|wait| (wait.begin, wait.begun)), Some((100, b'S')));
        // A preempted task is runnable from the start.
        let got = switch(&mut machine, a, b, 230, b'S');
        assert_eq!(got.delay.map(|delay| delay.duration()), Some(30));
        assert_eq!((machine.counts().redundant_wakeups, machine.counts().unwoken), (2, 1));
    }

    #[test]
    fn a_task_that_migrates_keeps_its_intervals() {
        let (mut machine, [a, b, c]) = machine();
        machine.switch_in(a, 0, 100);
        machine.switch_out(a, 0, 130, b'S');
        machine.wake(a, 140);
        machine.migrate(a, 145);
        machine.switch_out(b, 1, 150, b'S');
        machine.switch_in(a, 1, 150);
        machine.switch_out(c, 0, 155, b'S');
        let out = machine.switch_out(a, 1, 190, b'D');
        assert_eq!(out.run.map(|run| (run.begin, run.end, run.begun)), Some((150, 190, 1)));
        assert_eq!(out.wait.map(|wait| wait.duration()), Some(20));
        assert_eq!(out.delay.map(|delay| delay.duration()), Some(10));
        assert_eq!((out.migrated, out.state), (145, b'D'));
    }

    #[test]
    fn a_missing_switch_makes_times_unknown_and_shifts_no_others() {
        let (mut machine, [a, b, c]) = machine();
        switch(&mut machine, a, b, 100, b'S');
        // The switch from b to c is missing.
        let out = machine.switch_out(c, 0, 200, b'S');
        assert_eq!(out.run, None);
        machine.switch_in(a, 0, 200);
        let out = machine.switch_out(a, 0, 250, b'S');
        assert_eq!(out.run.map(|run| run.duration()), Some(50));
        assert_eq!(machine.counts().unseen_runs, 2);
    }

    #[test]
    fn lost_records_mark_the_intervals_that_they_may_have_cut() {
        let (mut machine, [a, b, _]) = machine();
        switch(&mut machine, a, b, 100, b'S');
        machine.lose(150, 7);
        let out = machine.switch_out(b, 0, 200, b'S');
        assert!(out.run.is_some_and(|run| run.has_loss));
        let got = machine.switch_in(a, 0, 200);
        assert!(got.wait.is_some_and(|wait| wait.has_loss));
        let out = machine.switch_out(a, 0, 220, b'S');
        assert!(out.run.is_some_and(|run| !run.has_loss));
        assert_eq!(machine.counts().lost, 7);
    }

    #[test]
    fn a_dead_task_does_not_wait() {
        let (mut machine, [a, b, _]) = machine();
        machine.switch_in(a, 0, 100);
        machine.exit(a);
        // The task was preempted before its last switch.
        switch(&mut machine, a, b, 110, b'R');
        let got = switch(&mut machine, b, a, 130, b'Z');
        assert_eq!(got.wait.map(|wait| wait.duration()), Some(20));
        machine.switch_out(a, 0, 140, b'X');
        assert_eq!((machine.waits.in_progress(), machine.counts().delays), (0, 1));
    }

    #[test]
    fn the_tasks_that_ran_during_a_time_are_summed_up() {
        let (mut machine, [a, b, c]) = machine();
        switch(&mut machine, a, b, 100, b'R');
        switch(&mut machine, b, c, 130, b'R');
        switch(&mut machine, c, b, 180, b'R');
        switch(&mut machine, b, a, 200, b'S');
        let ran = machine.ran_during(0, 110, 200);
        assert_eq!(ran, Runners { tasks: vec![(c, 50), (b, 40)], others: 0 });
        assert_eq!(machine.ran_during(5, 110, 200), Runners::default());
        // Only the newest stretches are kept.
        for time in 0..3 * HISTORY as u64 {
            machine.switch_in(c, 0, 1000 + 2 * time);
            machine.switch_out(c, 0, 1001 + 2 * time, b'S');
        }
        assert_eq!(machine.ran_during(0, 0, u64::MAX).tasks, [(c, HISTORY as u64)]);
    }

    #[test]
    fn a_reused_thread_id_is_another_task() {
        let (mut machine, [a, b, _]) = machine();
        switch(&mut machine, a, b, 100, b'S');
        machine.exit(a);
        assert!(machine.has_exited(a));
        machine.tasks.fork(1, 1, b);
        let new = machine.tasks.get_or_add(UNKNOWN, 1);
        assert!(new != a && !machine.has_exited(new));
        machine.tasks.name(b, b"parent");
        machine.tasks.fork(9, 9, b);
        let child = machine.tasks.get_or_add(UNKNOWN, 9);
        assert_eq!(machine.tasks.get(child).comm(), "parent");
        assert_eq!(machine.tasks.get(child).parent, Some(2));
    }

    proptest! {
        /// For any order of events, no time is longer than the recording, and a task runs on only one
        /// CPU at a time.
        #[test]
        fn any_order_of_events_gives_possible_times(
            events in prop::collection::vec((0u8..6, 0i32..4, 0u32..2, 0u64..50), 0..300),
        ) {
            let (mut machine, mut time) = (SchedMachine::new(true), 0);
            let mut on_cpu = [0u64; 2];
            for (event, tid, cpu, later) in events {
                time += later;
                let task = machine.tasks.get_or_add(tid, tid);
                match event {
                    0 => {
                        let out = machine.switch_out(task, cpu, time, if later % 2 == 0 { b'R' } else { b'S' });
                        let run = out.run.map_or(0, |run| run.duration());
                        prop_assert!(run <= time && out.delay.map_or(0, |delay| delay.duration()) <= time);
                        if tid == 0 {
                            on_cpu[cpu as usize] += run;
                        }
                    }
                    1 => {
                        let got = machine.switch_in(task, cpu, time);
                        let wait = got.wait.map_or(time, |wait| wait.duration());
                        prop_assert!(wait <= time);
                    }
                    2 => machine.wake(task, time),
                    3 => machine.migrate(task, time),
                    4 => machine.lose(time, 1),
                    _ => machine.exit(task),
                }
            }
            // A task runs on only one CPU at a time.
            prop_assert!(on_cpu[0] + on_cpu[1] <= time);
            let ran = machine.ran_during(0, 0, time);
            prop_assert!(ran.tasks.iter().all(|(_, ns)| *ns <= time));
        }
    }
}
