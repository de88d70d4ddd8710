//! Processes and threads as lines: each process with its sum, and its threads below it if it has several.

use rustc_hash::FxHashMap;

use super::scroll::Scroll;
use pmc_analysis::profile::sampled::{QueryAnswer, StringId};
use pmc_sys::sort;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadLine {
    /// The process.
    pub(crate) pid: i32,
    /// The thread; `None` for the whole process.
    pub(crate) tid: Option<i32>,
    /// The name. A process has the name of its first thread if that is known.
    pub(crate) comm: StringId,
    /// The number of samples.
    pub(crate) samples: u64,
    /// The cost: periods, or latencies if shares refer to those.
    pub(crate) cost: u64,
}

/// The pane's state.
#[derive(Debug, Default)]
pub(crate) struct ThreadsPane {
    /// Cursor and top line.
    pub(crate) scroll: Scroll,
    pub(crate) lines: Vec<ThreadLine>,
}

impl ThreadsPane {
    /// Sets new sums. The cursor stays on its process or thread.
    pub(crate) fn set(&mut self, answer: &QueryAnswer, height: usize) {
        let held = self.lines.get(self.scroll.cursor).map(|line| (line.pid, line.tid));
        let mut by_pid: FxHashMap<i32, Vec<ThreadLine>> = FxHashMap::default();
        for thread in &answer.threads {
            let cost = answer.query.share_of.cost(&thread.value);
            let lines = by_pid.entry(thread.pid).or_default();
            // A renamed thread is still one thread.
            match lines.iter_mut().find(|line| line.tid == Some(thread.tid)) {
                Some(line) => {
                    line.samples += thread.value.samples;
                    line.cost = line.cost.saturating_add(cost);
                }
                None => lines.push(ThreadLine {
                    pid: thread.pid,
                    tid: Some(thread.tid),
                    comm: thread.comm,
                    samples: thread.value.samples,
                    cost,
                }),
            }
        }
        let mut groups: Vec<(ThreadLine, Vec<ThreadLine>)> = by_pid
            .into_iter()
            .filter_map(|(pid, threads)| {
                let main = threads.iter().find(|line| line.tid == Some(pid)).or(threads.first())?;
                let sum = ThreadLine {
                    tid: None,
                    comm: answer.process_names.get(&pid).copied().unwrap_or(main.comm),
                    samples: threads.iter().map(|line| line.samples).sum(),
                    cost: threads.iter().fold(0, |sum, line| sum.saturating_add(line.cost)),
                    ..*main
                };
                Some((sum, threads))
            })
            .collect();
        sort::by_key(&mut groups, |(sum, _)| (std::cmp::Reverse(sum.cost), sum.pid));
        self.lines.clear();
        for (sum, threads) in groups {
            self.lines.push(sum);
            if threads.len() > 1 {
                self.lines.extend(threads);
            }
        }
        let line = held.and_then(|held| self.lines.iter().position(|line| (line.pid, line.tid) == held));
        self.scroll.put(line.unwrap_or(self.scroll.cursor), self.lines.len(), height);
    }
}
