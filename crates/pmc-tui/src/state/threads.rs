//! Processes and threads as lines: each process with its total, followed by its threads if it has several.

use rustc_hash::FxHashMap;

use super::scroll::Scroll;
use pmc_analysis::profile::sampled::thread_states::StateRun;
use pmc_analysis::profile::sampled::{QueryAnswer, SampleValue, StringId, ThreadState};

#[derive(Debug, Clone, PartialEq)]
pub struct ThreadLine {
    /// The process.
    pub pid: i32,
    /// The thread; `None` for the whole process.
    pub tid: Option<i32>,
    /// The name. A process has the name of its first thread, if known.
    pub comm: StringId,
    /// Sum of the samples.
    pub value: SampleValue,
    /// The cost: periods, or latencies if shares refer to wall-clock time.
    pub cost: u64,
    /// The thread whose states the line shows: the line's thread, or the only thread of its process.
    pub timeline: Option<i32>,
}

/// The pane's state.
#[derive(Debug, Default)]
pub struct ThreadsPane {
    /// Cursor and top line.
    pub scroll: Scroll,
    pub lines: Vec<ThreadLine>,
}

impl ThreadsPane {
    /// Sets new totals. The cursor stays on its process or thread.
    pub fn set(&mut self, answer: &QueryAnswer, height: usize) {
        let held = self.lines.get(self.scroll.cursor).map(|line| (line.pid, line.tid));
        let mut by_pid: FxHashMap<i32, Vec<ThreadLine>> = FxHashMap::default();
        for thread in &answer.threads {
            let cost = answer.query.share_of.cost(&thread.value);
            let lines = by_pid.entry(thread.pid).or_default();
            // A renamed thread still gets only one line.
            match lines.iter_mut().find(|line| line.tid == Some(thread.tid)) {
                Some(line) => {
                    line.value += &thread.value;
                    line.cost = line.cost.saturating_add(cost);
                }
                None => lines.push(ThreadLine {
                    pid: thread.pid,
                    tid: Some(thread.tid),
                    comm: thread.comm,
                    value: thread.value.clone(),
                    cost,
                    timeline: Some(thread.tid),
                }),
            }
        }
        let mut groups: Vec<(ThreadLine, Vec<ThreadLine>)> = by_pid
            .into_iter()
            .filter_map(|(pid, threads)| {
                let main = threads.iter().find(|line| line.tid == Some(pid)).or(threads.first())?;
                let mut value = SampleValue::default();
                threads.iter().for_each(|line| value += &line.value);
                let sum = ThreadLine {
                    pid: main.pid,
                    tid: None,
                    comm: answer.process_names.get(&pid).copied().unwrap_or(main.comm),
                    value,
                    cost: threads.iter().fold(0, |sum, line| sum.saturating_add(line.cost)),
                    timeline: main.tid.filter(|_| threads.len() == 1),
                };
                Some((sum, threads))
            })
            .collect();
        groups.sort_by_key(|(sum, _)| (std::cmp::Reverse(sum.cost), sum.pid));
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

/// Divides the time from `from` to `until` into `width` columns. Returns for each column the state in which
/// the thread spent most of the time; `None` if the thread did not exist or its state is unknown.
pub fn timeline(runs: &[StateRun], span: (u64, u64), width: u16) -> Vec<Option<ThreadState>> {
    state_times(runs, span, width).map(ThreadState::longest).collect()
}

/// Divides the time from `from` to `until` into `width` columns. Returns for each column the time that the
/// thread spent in each state.
pub fn state_times(
    runs: &[StateRun],
    (from, until): (u64, u64),
    width: u16,
) -> impl Iterator<Item = [u64; 3]> {
    let span = until.saturating_sub(from);
    let at = move |column: u16| {
        from.saturating_add((u128::from(span) * u128::from(column) / u128::from(width.max(1))) as u64)
    };
    let mut runs = runs.iter().peekable();
    let times = move |column: u16| {
        let (begin, end) = (at(column), at(column + 1));
        let mut times = [0; 3];
        while let Some(run) = runs.peek() {
            times[run.state as usize] += run.until.min(end).saturating_sub(run.from.max(begin));
            if run.until > end {
                break;
            }
            runs.next();
        }
        times
    };
    (0..width).map(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{Blocked, Running};

    #[test]
    fn timeline_shows_the_main_state_of_each_column() {
        let run = |from, until, state| StateRun { from, until, state };
        let runs = [run(100, 130, Blocked), run(130, 150, Running), run(170, 190, Blocked)];
        let (none, running, blocked) = (None, Some(Running), Some(Blocked));
        assert_eq!(timeline(&runs, (100, 200), 5), [blocked, running, running, blocked, blocked]);
        assert_eq!(timeline(&runs, (100, 200), 2), [blocked, blocked]);
        let fine = timeline(&runs, (90, 200), 11);
        assert_eq!(
            fine,
            [&[none][..], &[blocked; 3], &[running; 2], &[none; 2], &[blocked; 2], &[none]].concat()
        );
        assert_eq!(timeline(&runs, (0, u64::MAX), 1), [blocked]);
        assert_eq!(timeline(&runs, (5, 5), 3), [none; 3]);
    }
}
