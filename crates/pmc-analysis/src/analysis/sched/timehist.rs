//! Visits each run of a task, with the wait before it, and sums up these times.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use pmc_perfdata::record::kind;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::abi::sample_type;
use pmc_sys::error::Result;
use pmc_sys::host::cpulist::CpuList;

use super::SchedRecording;
use super::chains::{self, SwitchChains};
use super::events::{EventContext, MOST_CPUS, SchedSource, SwitchSide};
use super::machine::{SchedMachine, SwitchedOut};
use super::replay::{SchedStep, replay};
use crate::analysis::ProgressSink;
use crate::analysis::request::TimeSpan;
use crate::analysis::script::NamedRecording;
use crate::profile::sched::tasks::slot;
use crate::profile::sched::timehist::{RanRow, TimehistLine, TimehistSummary, TimehistSums, TimehistTotal};
use crate::profile::sched::{Runners, SchedTask, SchedTaskId, SchedTasks};
use crate::session::order::SampleUnwinding;

/// Number of CPUs to assume if the recording does not contain it. perf assumes the same.
const CPUS: u32 = 4;

/// Which parts of the history to visit.
#[derive(Debug, Clone, Default)]
pub struct TimehistRequest {
    /// Processes to include; empty for all.
    pub pids: Vec<i32>,
    /// Threads to include; empty for all.
    pub tids: Vec<i32>,
    /// CPUs to include.
    pub cpus: Option<CpuList>,
    /// Task priorities to include; empty for all.
    pub prios: Vec<i64>,
    /// Time range to include.
    pub time: Option<TimeSpan>,
    /// Whether to include only idle tasks.
    pub idle: bool,
    /// Whether to visit wake-ups.
    pub wakeups: bool,
    /// Whether to visit migrations.
    pub migrations: bool,
    /// Whether to find the tasks that ran during each delay.
    pub runners: bool,
    /// Maximum length of call chains, and where to look for symbols; `None` to omit call chains.
    pub chains: Option<(usize, SymbolOptions)>,
}

/// The state while the history is visited.
struct Timehist<'r> {
    request: &'r TimehistRequest,
    from: u64,
    to: u64,
    pids: FxHashSet<i32>,
    tids: FxHashSet<i32>,
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
    pub fn cpus(&self) -> u32 {
        let counts = self.session.reader.features().nr_cpus.as_ref();
        counts.map_or(CPUS, |counts| counts.online).clamp(1, MOST_CPUS)
    }

    /// Whether the recording may contain idle tasks.
    fn sees_all_tasks(&self) -> bool {
        self.decoder.source == SchedSource::Tracepoints || self.session.index.count(kind::SWITCH_CPU_WIDE) > 0
    }

    /// Whether the switches were recorded with call chains.
    pub fn has_chains(&self) -> bool {
        let event = self.decoder.switch_event.map(|event| &self.session.reader.events()[event]);
        let chains = sample_type::CALLCHAIN | sample_type::STACK_USER;
        event.is_some_and(|event| event.attr.sample_type() & chains != 0)
    }

    /// Visits the history in time order. Reports progress while names are looked up.
    ///
    /// # Errors
    /// Fails if the file cannot be read, lacks the times that a filter needs, or `visit` fails.
    pub fn timehist(
        &self,
        request: &TimehistRequest,
        progress: &dyn ProgressSink,
        visit: &mut dyn FnMut(&SchedTasks, &TimehistLine<'_>) -> Result<()>,
    ) -> Result<TimehistSummary> {
        let (from, to) = match request.time {
            Some(span) => span.of(&self.session.reader)?,
            None => (0, u64::MAX),
        };
        let mut hist = Timehist {
            request,
            from,
            to,
            pids: request.pids.iter().copied().collect(),
            tids: request.tids.iter().copied().collect(),
            sums: Vec::new(),
            prios: Vec::new(),
            has_switched: Vec::new(),
            before_idle: Vec::new(),
            first: 0,
            last: 0,
            is_filtered: false,
        };
        let named = request.chains.as_ref().map(|(most, symbols)| chains::request(*most, symbols.clone()));
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
                        let mut chain = || chains.as_mut().map_or_else(Vec::new, |chains| chains.of(record));
                        hist.ran(machine, &out, sides, &mut chain, visit)
                    }
                    SchedStep::Woken(woken) if request.wakeups && hist.is_inside(context.time) => {
                        let waker = machine.tasks.of(context.thread.pid, context.thread.tid);
                        if !(hist.takes(machine.tasks.get(waker)) || hist.takes(machine.tasks.get(woken))) {
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
                        let mover = machine.tasks.of(context.thread.pid, context.thread.tid);
                        if !(hist.takes(machine.tasks.get(mover)) || hist.takes(machine.tasks.get(migrant))) {
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
    fn takes(&self, task: &SchedTask) -> bool {
        (self.pids.is_empty() || self.pids.contains(&task.pid))
            && (self.tids.is_empty() || self.tids.contains(&task.tid))
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
                tid => machine.tasks.of_tid(tid),
            };
            *slot(&mut self.prios, next_task.index()) = Some(next.prio);
        }
        let end = time.min(self.to);
        if self.first == 0 && end >= self.from {
            self.first = end;
        }
        self.last = self.last.max(end);
        let is_idle = machine.tasks.get(task).is_idle();
        let place = cpu as usize;
        if !is_idle {
            *slot(&mut self.before_idle, place) = Some(task);
        }
        let is_cpu_known = std::mem::replace(slot(&mut self.has_switched, place), true);
        let prios = &self.request.prios;
        let is_taken = self.takes(machine.tasks.get(task))
            && (prios.is_empty() || prios.contains(&prio.0.unwrap_or(prio.1)));
        self.is_filtered |= !is_taken;
        if !is_taken || self.request.idle && !is_idle {
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
            let Some(before) = slot(&mut self.before_idle, place).take() else { return Ok(()) };
            slot(&mut self.sums, before.index()).add(known, 0, 0, b'S');
        }
        let has_loss = out.run.as_ref().is_some_and(|run| run.has_loss)
            || out.wait.as_ref().is_some_and(|wait| wait.has_loss);
        let ran = match out.delay.as_ref().filter(|_| self.request.runners) {
            Some(delay) => machine.ran_during(cpu, delay.begin, delay.end),
            None => Runners::default(),
        };
        let row = RanRow {
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
                Some(place) => place.1 = sums,
                None => idle.push((cpu, sums)),
            }
        }
        idle.retain(|(cpu, _)| self.request.cpus.as_ref().is_none_or(|cpus| cpus.contains(*cpu)));
        let totals = (0..).map(SchedTaskId).zip(std::mem::take(&mut self.sums));
        let totals = totals
            .filter(|(task, sums)| sums.count > 0 && self.takes(machine.tasks.get(*task)))
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
