//! The tasks of a recording. A task is a thread, from its creation until its thread id is reused.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

/// Maximum number of tasks. Later tasks share one entry, so that a hostile file cannot exhaust memory.
const MAX_TASKS: usize = 1 << 20;

/// Identifies a task in [`SchedTasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SchedTaskId(pub(super) u32);

impl SchedTaskId {
    /// The idle task as a waker; see [`SchedTasks::idle`] for the idle task of a CPU.
    pub(super) const SWAPPER: Self = Self(0);
    /// Represents all tasks beyond the maximum number.
    const OTHERS: Self = Self(1);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Returns the entry of a task or CPU in a list, and extends the list if necessary.
pub(super) fn slot<T: Default>(all: &mut Vec<T>, at: usize) -> &mut T {
    if all.len() <= at {
        all.resize_with(at + 1, T::default);
    }
    &mut all[at]
}

/// Process id of a task whose process is unknown.
pub(super) const UNKNOWN: i32 = -1;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchedTask {
    /// Thread id; 0 for idle tasks.
    pub(super) tid: i32,
    /// Process id; -1 or 0 if unknown.
    pub(super) pid: i32,
    /// Thread id of the task that created it, if recorded.
    pub(super) parent: Option<i32>,
    /// The name; untrusted text. `None` if unknown.
    name: Option<Box<str>>,
    /// For an idle task, its CPU.
    pub(super) idle_on: Option<u32>,
    /// Whether the name has changed since the last call to [`SchedTasks::take_renamed`].
    is_renamed: bool,
}

impl SchedTask {
    fn new(pid: i32, tid: i32) -> Self {
        Self { tid, pid, parent: None, name: None, idle_on: None, is_renamed: false }
    }

    /// Returns the name; `:TID` if it is unknown, as in perf.
    pub(super) fn comm(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Borrowed(name),
            None => format!(":{}", self.tid).into(),
        }
    }

    /// Whether this is an idle task.
    pub(super) fn is_idle(&self) -> bool {
        self.tid == 0
    }
}

/// All tasks.
#[derive(Debug)]
pub(super) struct SchedTasks {
    all: Vec<SchedTask>,
    by_tid: FxHashMap<i32, SchedTaskId>,
    /// The idle task of each CPU.
    idle: Vec<Option<SchedTaskId>>,
}

impl Default for SchedTasks {
    fn default() -> Self {
        let swapper = SchedTask { name: Some("swapper".into()), ..SchedTask::new(0, 0) };
        let others = SchedTask { name: Some("[other tasks]".into()), ..SchedTask::new(UNKNOWN, UNKNOWN) };
        let by_tid = [(0, SchedTaskId::SWAPPER)].into_iter().collect();
        Self { all: vec![swapper, others], by_tid, idle: Vec::new() }
    }
}

impl SchedTasks {
    /// Returns the task with this ID.
    pub(super) fn get(&self, id: SchedTaskId) -> &SchedTask {
        &self.all[id.index()]
    }

    /// Returns the tasks that still have their thread id at the end of the recording.
    pub(super) fn current(&self) -> impl Iterator<Item = SchedTaskId> + '_ {
        self.by_tid.values().copied()
    }

    /// Returns the idle task of each CPU.
    pub(super) fn idle_tasks(&self) -> impl Iterator<Item = (u32, Option<SchedTaskId>)> + '_ {
        (0..).zip(self.idle.iter().copied())
    }

    fn add(&mut self, task: SchedTask) -> SchedTaskId {
        if self.all.len() >= MAX_TASKS {
            return SchedTaskId::OTHERS;
        }
        self.all.push(task);
        SchedTaskId(self.all.len() as u32 - 1)
    }

    /// Returns the task that has this thread id now. Adds it if it is new. `pid` may be [`UNKNOWN`].
    pub(super) fn get_or_add(&mut self, pid: i32, tid: i32) -> SchedTaskId {
        if let Some(&id) = self.by_tid.get(&tid) {
            let task = &mut self.all[id.index()];
            if id == SchedTaskId::OTHERS {
                return id;
            }
            if task.pid == UNKNOWN || task.pid == 0 && pid > 0 && tid != 0 {
                task.pid = pid;
            }
            return id;
        }
        let id = self.add(SchedTask::new(pid, tid));
        self.by_tid.insert(tid, id);
        id
    }

    /// Returns the idle task of a CPU.
    pub(super) fn idle(&mut self, cpu: u32) -> SchedTaskId {
        if let Some(id) = *slot(&mut self.idle, cpu as usize) {
            return id;
        }
        let new = SchedTask { name: Some("<idle>".into()), idle_on: Some(cpu), ..SchedTask::new(0, 0) };
        let id = self.add(new);
        self.idle[cpu as usize] = Some(id);
        id
    }

    /// Adds a new task with the name of its creator.
    pub(super) fn fork(&mut self, pid: i32, tid: i32, parent: SchedTaskId) {
        let creator = self.get(parent);
        let new =
            SchedTask { parent: Some(creator.tid), name: creator.name.clone(), ..SchedTask::new(pid, tid) };
        let id = self.add(new);
        self.by_tid.insert(tid, id);
    }

    /// Sets a task's name.
    pub(super) fn name(&mut self, id: SchedTaskId, name: &[u8]) {
        if id == SchedTaskId::OTHERS {
            return;
        }
        let task = &mut self.all[id.index()];
        task.name = Some(String::from_utf8_lossy(name).into());
        task.is_renamed = true;
    }

    /// Sets the name of a task that has no name yet. The task has had this name since its start.
    pub(super) fn name_if_unnamed(&mut self, id: SchedTaskId, name: &[u8]) {
        let task = &mut self.all[id.index()];
        if task.name.is_none() {
            task.name = Some(String::from_utf8_lossy(name).into());
        }
    }

    /// Returns whether the name has changed since the last call.
    pub(super) fn take_renamed(&mut self, id: SchedTaskId) -> bool {
        std::mem::take(&mut self.all[id.index()].is_renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_above_the_limit_share_an_entry_without_a_name_of_their_own() {
        let mut tasks = SchedTasks::default();
        for tid in 1..=MAX_TASKS as i32 {
            tasks.get_or_add(7, tid);
        }
        let last = tasks.get_or_add(7, MAX_TASKS as i32);
        tasks.name(last, b"last");
        let others = tasks.get(last);
        assert_eq!((others.comm().as_ref(), others.tid, others.pid), ("[other tasks]", UNKNOWN, UNKNOWN));
        assert_eq!(tasks.all.len(), MAX_TASKS);
    }
}
