//! The names of the traced threads, which are updated from the recorded events.

use std::sync::Arc;

use pmc_perfdata::record::{Record, Thread};
use rustc_hash::FxHashMap;

/// Maximum number of threads whose names are kept.
const MOST_THREADS: usize = 1 << 18;

/// Returns the name of a running thread, if it can be read.
pub(super) type TaskLookup = Box<dyn Fn(i32) -> Option<String>>;

/// A traced thread.
#[derive(Debug, Clone)]
struct TracedTask {
    comm: Arc<str>,
    /// Whether the next event may be the end of a call that began before tracing.
    may_be_in_call: bool,
}

/// All traced threads.
pub(super) struct TracedTasks {
    tasks: FxHashMap<i32, TracedTask>,
    lookup: TaskLookup,
    unknown: Arc<str>,
}

impl TracedTasks {
    /// Returns an empty list. `lookup` returns the names of threads for which there is no record.
    pub(super) fn new(lookup: TaskLookup) -> Self {
        Self { tasks: FxHashMap::default(), lookup, unknown: Arc::from("?") }
    }

    /// Updates the names after a record. Ignores all records except task records.
    pub(super) fn apply(&mut self, record: &Record<'_>) {
        match record {
            Record::Comm(comm) => {
                let name = Arc::from(String::from_utf8_lossy(comm.comm));
                let task = self.get(comm.thread);
                task.comm = name;
                // The exec has not returned yet.
                task.may_be_in_call |= comm.is_exec;
            }
            Record::Fork(fork) => {
                // A child starts with the name of its parent.
                let comm = self.comm(fork.parent);
                self.insert(fork.thread, TracedTask { comm, may_be_in_call: false });
            }
            Record::Exit(exit) => drop(self.tasks.remove(&exit.thread.tid)),
            _ => {}
        }
    }

    /// Returns the name of a thread.
    pub(super) fn comm(&mut self, thread: Thread) -> Arc<str> {
        Arc::clone(&self.get(thread).comm)
    }

    /// Records that this thread has made a call. Returns whether the thread existed before tracing began and
    /// this is its first call.
    pub(super) fn may_be_in_call(&mut self, thread: Thread) -> bool {
        std::mem::replace(&mut self.get(thread).may_be_in_call, false)
    }

    fn get(&mut self, thread: Thread) -> &mut TracedTask {
        if !self.tasks.contains_key(&thread.tid) {
            let comm = (self.lookup)(thread.tid).map_or_else(|| Arc::clone(&self.unknown), Arc::from);
            self.insert(thread, TracedTask { comm, may_be_in_call: true });
        }
        self.tasks.get_mut(&thread.tid).expect("just inserted")
    }

    fn insert(&mut self, thread: Thread, task: TracedTask) {
        if self.tasks.len() >= MOST_THREADS {
            self.tasks.clear();
        }
        self.tasks.insert(thread.tid, task);
    }
}

impl std::fmt::Debug for TracedTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TracedTasks").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}
