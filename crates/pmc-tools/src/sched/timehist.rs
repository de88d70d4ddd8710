//! The history of each CPU: each run of a task, with the wait before it, and the sums of these times.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::str::FromStr;

use rustc_hash::FxHashSet;

use pmc_analysis::analysis::ProgressSink;
use pmc_analysis::analysis::request::TimeSpan;
use pmc_analysis::analysis::script::NamedRecording;
use pmc_analysis::session::order::SampleUnwinding;
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::cpulist::CpuList;

use super::SchedRecording;
use super::chains::{self, SwitchChains};
use super::events::{EventContext, MAX_CPUS, SchedSource, SwitchSide};
use super::machine::{Runners, SchedCounts, SchedMachine, SwitchedOut};
use super::replay::{SchedStep, replay};
use super::tasks::{SchedTask, SchedTaskId, SchedTasks, UNKNOWN, slot};

/// Number of CPUs to assume if the recording does not contain it. perf assumes the same.
const CPUS: u32 = 4;

/// Which parts of the history to show, and how.
#[derive(Debug)]
pub(super) struct TimehistRequest {
    /// Processes to include; empty for all.
    pub(super) pids: FxHashSet<i32>,
    /// Threads to include; empty for all.
    pub(super) tids: FxHashSet<i32>,
    /// CPUs to include.
    pub(super) cpus: Option<CpuList>,
    /// Task priorities to include.
    pub(super) priorities: Option<Priorities>,
    /// Time range to include.
    pub(super) time: Option<TimeSpan>,
    /// Whether to include only idle tasks.
    pub(super) idle: bool,
    /// Whether to include wake-ups.
    pub(super) wakeups: bool,
    /// Whether to include migrations.
    pub(super) migrations: bool,
    /// Whether to include the tasks that ran during each delay.
    pub(super) blame: bool,
    /// Maximum length of call chains, and where to look for symbols; `None` to omit call chains.
    pub(super) chains: Option<(usize, SymbolOptions)>,
    /// Whether to print the next task.
    pub(super) next: bool,
    /// Whether to print one column per CPU.
    pub(super) cpu_visual: bool,
    /// Whether to print the task's state at the end of its run.
    pub(super) state: bool,
    /// Whether to print the time between wake-up and migration.
    pub(super) pre_migrations: bool,
    /// Whether to print priorities.
    pub(super) show_prio: bool,
    /// Whether to print the lines.
    pub(super) lines: bool,
    /// Whether to print each task's totals.
    pub(super) summary: bool,
    /// Maximum number of lines and, in JSON, of tasks in the totals.
    pub(super) limit: usize,
    /// Whether to print JSON objects.
    pub(super) json: bool,
}

/// A list of the kernel's priorities, 0 to 139.
#[derive(Debug, Clone)]
pub(super) struct Priorities(CpuList);

impl FromStr for Priorities {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("{text:?} is not a list of priorities")).try_this("a list such as 0-99,120")
        };
        let list: CpuList = text.parse().map_err(|_| wrong())?;
        if list.first().is_none_or(|first| first >= 140) { Err(wrong()) } else { Ok(Self(list)) }
    }
}

impl Priorities {
    fn contains(&self, priority: i64) -> bool {
        u32::try_from(priority).is_ok_and(|priority| priority < 140 && self.0.contains(priority))
    }
}

/// A period in which a task ran on a CPU, and the wait before it.
#[derive(Debug, Clone)]
pub(super) struct TimehistRun<'a> {
    /// The task.
    pub(super) task: SchedTaskId,
    /// The CPU.
    pub(super) cpu: u32,
    /// The end of the period, in nanoseconds of the recording's clock.
    pub(super) time: u64,
    /// The letter of the task's state at the end.
    pub(super) state: char,
    /// Preceding time off the CPU in nanoseconds; 0 if unknown.
    pub(super) wait: u64,
    /// The part of this time after the wake-up or preemption.
    pub(super) delay: u64,
    /// The part of this time before a migration.
    pub(super) before_migration: u64,
    /// Time on the CPU in nanoseconds; 0 if unknown.
    pub(super) run: u64,
    /// Whether records were lost during any of these times.
    pub(super) has_loss: bool,
    /// Whether the switch to the task is missing, although the recording contains earlier switches of this
    /// CPU. If so, all times are unknown.
    pub(super) is_unseen: bool,
    /// Priority at the start and at the end, if known.
    pub(super) prio: (Option<i64>, i64),
    /// Name (untrusted text) and thread id of the task that runs next.
    pub(super) next: Option<(Cow<'a, str>, i32)>,
    /// The tasks that ran on this CPU during the delay, if requested.
    pub(super) ran: Runners,
    /// The functions of the call chain at the end, innermost first, except those of the scheduler; `None` for
    /// functions without a name. Untrusted text.
    pub(super) chain: Vec<Option<&'a str>>,
}

/// A line of the history.
#[derive(Debug, Clone)]
pub(super) enum TimehistLine<'a> {
    /// A task ran.
    Ran(TimehistRun<'a>),
    /// A task woke another one.
    Woken {
        /// Time of the event.
        time: u64,
        /// The CPU of the event.
        cpu: u32,
        /// The task that caused the wake-up. For a wake-up by an interrupt, the interrupted task.
        waker: SchedTaskId,
        /// The woken task.
        woken: SchedTaskId,
    },
    /// A task was moved to another CPU.
    Migrated {
        /// Time of the event.
        time: u64,
        /// The CPU of the event.
        cpu: u32,
        /// The task that moved the other task.
        mover: SchedTaskId,
        /// The moved task.
        migrant: SchedTaskId,
        /// The CPU that the task was moved from.
        from: i64,
        /// The CPU that the task was moved to.
        to: i64,
    },
    /// Records were lost.
    Lost {
        /// Time of the record that reported the loss.
        time: u64,
        /// The CPU.
        cpu: u32,
        /// Number of lost records.
        count: u64,
    },
}

/// The sums of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct TimehistSums {
    /// Number of times that the task ran on a CPU.
    pub(super) count: u64,
    /// Total time on CPUs, in nanoseconds.
    pub(super) run: u64,
    /// Shortest time on a CPU, in nanoseconds.
    pub(super) min: u64,
    /// Longest time on a CPU, in nanoseconds.
    pub(super) max: u64,
    /// Number of times on a CPU whose duration is known.
    measured: u64,
    /// Running mean and sum of squared differences of these durations, for the standard deviation (Welford).
    mean: f64,
    squares: f64,
    /// Total time off CPUs, asleep.
    pub(super) sleep: u64,
    /// Total time off CPUs in uninterruptible sleep.
    pub(super) iowait: u64,
    /// Total time off CPUs after preemption.
    pub(super) preempt: u64,
    /// Total delay.
    pub(super) delay: u64,
    /// Number of migrations.
    pub(super) migrations: u64,
}

impl TimehistSums {
    /// Adds a period on a CPU (`None` if its duration is unknown) and the wait before it. `state` is the
    /// task's state during the wait.
    pub(super) fn add(&mut self, run: Option<u64>, wait: u64, delay: u64, state: u8) {
        self.count += 1;
        self.delay = self.delay.saturating_add(delay);
        match state {
            b'R' => self.preempt = self.preempt.saturating_add(wait),
            b'D' => self.iowait = self.iowait.saturating_add(wait),
            _ => self.sleep = self.sleep.saturating_add(wait),
        }
        let Some(run) = run else { return };
        self.measured += 1;
        self.run = self.run.saturating_add(run);
        self.min = if self.measured == 1 { run } else { self.min.min(run) };
        self.max = self.max.max(run);
        let difference = run as f64 - self.mean;
        self.mean += difference / self.measured as f64;
        self.squares += difference * (run as f64 - self.mean);
    }

    /// Returns the mean time on a CPU.
    pub(super) fn mean(&self) -> u64 {
        self.mean as u64
    }

    /// Returns the standard error of the mean, as a percentage of the mean.
    pub(super) fn relative_error(&self) -> f64 {
        if self.measured < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let n = self.measured as f64;
        100.0 * (self.squares / (n - 1.0) / n).sqrt() / self.mean
    }
}

/// A task and its sums.
#[derive(Debug, Clone)]
pub(super) struct TimehistTotal {
    /// The task.
    pub(super) task: SchedTaskId,
    /// Its sums.
    pub(super) sums: TimehistSums,
}

/// The summary at the end of a history.
#[derive(Debug)]
pub(super) struct TimehistSummary {
    /// All tasks.
    pub(super) tasks: SchedTasks,
    /// The tasks that have not exited, longest running first.
    pub(super) living: Vec<TimehistTotal>,
    /// The tasks that have exited.
    pub(super) ended: Vec<TimehistTotal>,
    /// The sums of each CPU's idle task; `None` if it never ran. Empty if the recording cannot contain idle
    /// tasks.
    pub(super) idle: Vec<(u32, Option<TimehistSums>)>,
    /// Duration of the history, in nanoseconds.
    pub(super) duration: u64,
    /// Whether a filter has excluded rows.
    pub(super) is_filtered: bool,
    /// Number of CPUs online.
    pub(super) cpus: u32,
    /// Counts of unmatched events.
    pub(super) counts: SchedCounts,
}

/// The state while the history is visited.
struct Timehist<'r> {
    request: &'r TimehistRequest,
    from: u64,
    to: u64,
    /// Sums by task.
    sums: Vec<TimehistSums>,
    /// For each task, its priority when it last got a CPU.
    prios: Vec<Option<i64>>,
    /// For each CPU, whether it has switched yet.
    has_switched: Vec<bool>,
    /// For each CPU, the last task before it became idle.
    before_idle: Vec<Option<SchedTaskId>>,
    first: u64,
    last: u64,
    is_filtered: bool,
}

/// The times of a row, in nanoseconds.
struct RowTimes {
    wait: u64,
    delay: u64,
    before_migration: u64,
    /// `None` if unknown.
    run: Option<u64>,
}

impl SchedRecording {
    /// Returns the number of CPUs that were online when the recording was made or, as in perf, a default.
    pub(super) fn cpus(&self) -> u32 {
        let counts = self.session.reader.features().nr_cpus.as_ref();
        counts.map_or(CPUS, |counts| counts.online).clamp(1, MAX_CPUS)
    }

    /// Whether the recording may contain idle tasks.
    fn sees_all_tasks(&self) -> bool {
        self.decoder.source == SchedSource::Tracepoints || self.session.index.count(kind::SWITCH_CPU_WIDE) > 0
    }

    /// Whether the switches were recorded with call chains.
    pub(super) fn has_chains(&self) -> bool {
        let event = self.decoder.switch_event.map(|event| &self.session.reader.events()[event]);
        let chains = sample_type::CALLCHAIN | sample_type::STACK_USER;
        event.is_some_and(|event| event.attr.sample_type() & chains != 0)
    }

    /// Visits the history in time order. Reports progress while names are looked up.
    ///
    /// # Errors
    /// Fails if the file cannot be read, lacks the times that a filter needs, or `visit` fails.
    pub(super) fn timehist(
        &self,
        request: &TimehistRequest,
        progress: &dyn ProgressSink,
        visit: &mut dyn FnMut(&SchedTasks, &TimehistLine<'_>) -> Result<()>,
    ) -> Result<TimehistSummary> {
        let (from, to) = match request.time {
            Some(span) => span.in_recording(&self.session.reader)?,
            None => (0, u64::MAX),
        };
        let mut hist = Timehist {
            request,
            from,
            to,
            sums: Vec::new(),
            prios: Vec::new(),
            has_switched: Vec::new(),
            before_idle: Vec::new(),
            first: 0,
            last: 0,
            is_filtered: false,
        };
        let chains = request.chains.as_ref().filter(|_| self.has_chains());
        let named = chains.map(|(most, symbols)| chains::request(*most, symbols.clone()));
        let named = named.as_ref().map(|named| NamedRecording::load(self.session.clone(), named, progress));
        let named = named.transpose()?;
        let mut unwinder = named.as_ref().map(NamedRecording::unwinder);
        let unwinder = unwinder.as_mut().and_then(|unwinder| unwinder.if_needed());
        let unwinding = unwinder.map(|unwinder| SampleUnwinding { unwinder, wants: &|_, _| true });
        let mut chains = named.as_ref().map(|named| SwitchChains::new(&self.session, named));
        let machine =
            replay(&self.session, self.decoder.clone(), unwinding, &mut |machine, context, step, record| {
                match step {
                    SchedStep::Out(out, sides) => {
                        let mut chain =
                            || chains.as_mut().map_or_else(Vec::new, |chains| chains.functions(record));
                        hist.ran(machine, &out, sides, &mut chain, visit)
                    }
                    SchedStep::Woken(woken) if request.wakeups && hist.is_inside(context.time) => {
                        let waker = machine.tasks.get_or_add(context.thread.pid, context.thread.tid);
                        if !(hist.selects(machine.tasks.get(waker)) || hist.selects(machine.tasks.get(woken)))
                        {
                            return Ok(());
                        }
                        let &EventContext { time, cpu, .. } = context;
                        visit(&machine.tasks, &TimehistLine::Woken { time, cpu, waker, woken })
                    }
                    SchedStep::Migrated(migrant, from, to) => {
                        slot(&mut hist.sums, migrant.index()).migrations += 1;
                        if !request.migrations {
                            return Ok(());
                        }
                        let mover = machine.tasks.get_or_add(context.thread.pid, context.thread.tid);
                        if !(hist.selects(machine.tasks.get(mover))
                            || hist.selects(machine.tasks.get(migrant)))
                        {
                            return Ok(());
                        }
                        let &EventContext { time, cpu, .. } = context;
                        visit(&machine.tasks, &TimehistLine::Migrated { time, cpu, mover, migrant, from, to })
                    }
                    SchedStep::Lost(count) => {
                        let &EventContext { time, cpu, .. } = context;
                        visit(&machine.tasks, &TimehistLine::Lost { time, cpu, count })
                    }
                    _ => Ok(()),
                }
            })?;
        let mut summary = hist.finish(machine, self.cpus());
        if !self.sees_all_tasks() {
            summary.idle.clear();
        }
        Ok(summary)
    }
}

impl Timehist<'_> {
    fn is_inside(&self, time: u64) -> bool {
        (self.from..=self.to).contains(&time)
    }

    /// Whether a task passes the filters.
    fn selects(&self, task: &SchedTask) -> bool {
        let TimehistRequest { pids, tids, .. } = self.request;
        (pids.is_empty() || pids.contains(&task.pid)) && (tids.is_empty() || tids.contains(&task.tid))
    }

    fn ran<'c>(
        &mut self,
        machine: &mut SchedMachine,
        out: &SwitchedOut,
        sides: Option<(SwitchSide<'_>, SwitchSide<'_>)>,
        chain: &mut dyn FnMut() -> Vec<Option<&'c str>>,
        visit: &mut dyn FnMut(&SchedTasks, &TimehistLine<'_>) -> Result<()>,
    ) -> Result<()> {
        let &SwitchedOut { task, cpu, time, state, .. } = out;
        let prio = (*slot(&mut self.prios, task.index()), sides.map_or(0, |(prev, _)| prev.prio));
        if let Some((_, next)) = sides {
            let next_task = match next.tid {
                0 => machine.tasks.idle(cpu),
                tid => machine.tasks.get_or_add(UNKNOWN, tid),
            };
            *slot(&mut self.prios, next_task.index()) = Some(next.prio);
        }
        let end = time.min(self.to);
        if self.first == 0 && end >= self.from {
            self.first = end;
        }
        self.last = self.last.max(end);
        let is_idle = machine.tasks.get(task).is_idle();
        let index = cpu as usize;
        if !is_idle {
            *slot(&mut self.before_idle, index) = Some(task);
        }
        let is_cpu_known = std::mem::replace(slot(&mut self.has_switched, index), true);
        let priorities = self.request.priorities.as_ref();
        let is_selected = self.selects(machine.tasks.get(task))
            && priorities.is_none_or(|priorities| priorities.contains(prio.0.unwrap_or(prio.1)));
        self.is_filtered |= !is_selected;
        if !is_selected || self.request.idle && !is_idle {
            return Ok(());
        }
        let Some(RowTimes { wait, delay, before_migration, run }) = self.times(out) else { return Ok(()) };
        let wait_state = out.wait.as_ref().map_or(b'S', |wait| wait.begun);
        // As in perf, the first run on each CPU has a duration of 0.
        let is_unseen = is_cpu_known && run.is_none();
        let known = if is_unseen { None } else { Some(run.unwrap_or(0)) };
        slot(&mut self.sums, task.index()).add(known, wait, delay, wait_state);
        if self.request.idle {
            // Idle time is attributed to the task that ran before it.
            let Some(before) = slot(&mut self.before_idle, index).take() else { return Ok(()) };
            slot(&mut self.sums, before.index()).add(known, 0, 0, b'S');
        }
        let has_loss = out.run.as_ref().is_some_and(|run| run.has_loss)
            || out.wait.as_ref().is_some_and(|wait| wait.has_loss);
        let ran = match out.delay.as_ref().filter(|_| self.request.blame) {
            Some(delay) => machine.ran_during(cpu, delay.begin, delay.end),
            None => Runners::default(),
        };
        let row = TimehistRun {
            task,
            cpu,
            time: end,
            state: if is_idle { 'I' } else { state.into() },
            wait,
            delay,
            before_migration,
            run: run.unwrap_or(0),
            has_loss,
            is_unseen,
            prio,
            next: sides.map(|(_, next)| (String::from_utf8_lossy(next.comm), next.tid)),
            ran,
            chain: if is_idle { Vec::new() } else { chain() },
        };
        visit(&machine.tasks, &TimehistLine::Ran(row))
    }

    /// Returns the times of a row, clipped to the requested time range; `None` if they are outside it. As in
    /// perf, waits and delays before the range are dropped.
    fn times(&self, out: &SwitchedOut) -> Option<RowTimes> {
        let begin = out.run.as_ref().map(|run| run.begin.max(self.from));
        let is_before_end = self.to == u64::MAX || begin.is_some_and(|begin| begin <= self.to);
        let is_here = self.request.cpus.as_ref().is_none_or(|cpus| cpus.contains(out.cpu));
        if out.time < self.from || !is_before_end || !is_here {
            return None;
        }
        let since = |start: Option<u64>| begin.zip(start).map_or(0, |(to, from)| to.saturating_sub(from));
        let woken = out.delay.as_ref().map(|delay| delay.begin);
        let is_moved = |begin, woken| out.migrated > woken && out.migrated < begin;
        let moved = begin.zip(woken).filter(|&(begin, woken)| is_moved(begin, woken));
        Some(RowTimes {
            wait: since(out.wait.as_ref().map(|wait| wait.begin)),
            delay: since(woken),
            before_migration: moved.map_or(0, |(_, woken)| out.migrated - woken),
            run: begin.map(|begin| out.time.min(self.to).saturating_sub(begin)),
        })
    }

    fn finish(mut self, machine: SchedMachine, cpus: u32) -> TimehistSummary {
        let counts = machine.counts();
        let living: FxHashSet<SchedTaskId> =
            machine.tasks.current().filter(|task| !machine.has_exited(*task)).collect();
        let mut idle: Vec<(u32, Option<TimehistSums>)> = (0..cpus).map(|cpu| (cpu, None)).collect();
        for (cpu, task) in machine.tasks.idle_tasks() {
            let sums = task.and_then(|task| self.sums.get_mut(task.index()).map(std::mem::take));
            let sums = sums.filter(|sums| sums.count > 0);
            match idle.get_mut(cpu as usize) {
                Some(entry) => entry.1 = sums,
                None => idle.push((cpu, sums)),
            }
        }
        idle.retain(|(cpu, _)| self.request.cpus.as_ref().is_none_or(|cpus| cpus.contains(*cpu)));
        let totals = (0..).map(SchedTaskId).zip(std::mem::take(&mut self.sums));
        let totals = totals
            .filter(|(task, sums)| sums.count > 0 && self.selects(machine.tasks.get(*task)))
            .map(|(task, sums)| TimehistTotal { task, sums });
        let (mut living, mut ended): (Vec<_>, Vec<_>) =
            totals.partition(|total| living.contains(&total.task));
        living.sort_by_key(|total| Reverse(total.sums.run));
        ended.sort_by_key(|total| Reverse(total.sums.run));
        TimehistSummary {
            tasks: machine.tasks,
            living,
            ended,
            idle,
            duration: self.last.saturating_sub(self.first),
            is_filtered: self.is_filtered,
            cpus,
            counts,
        }
    }
}
