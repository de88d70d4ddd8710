//! Replays a recording in time order: keeps the names of tasks up to date, and passes each scheduler event to
//! the [`SchedMachine`].

use pmc_perfdata::record::{RawRecord, Record, Thread, kind};
use pmc_sys::error::Result;

use super::events::{EventContext, SchedDecoder, SchedEvent, SwitchSide};
use super::machine::{SchedMachine, SwitchedIn, SwitchedOut};
use super::tasks::{SchedTaskId, UNKNOWN};
use pmc_analysis::analysis::recording_quality;

use pmc_analysis::session::order::{self, SampleUnwinding};
use pmc_analysis::session::{Session, Timestamp};

/// The effect of one event.
#[derive(Debug)]
pub(super) enum SchedStep<'a> {
    /// A task leaves its CPU. If the event contains the next task, both sides of the switch follow.
    Out(SwitchedOut, Option<(SwitchSide<'a>, SwitchSide<'a>)>),
    /// A task gets a CPU.
    In(SwitchedIn),
    /// The context's thread wakes a task.
    Woken(SchedTaskId),
    /// A task ran for this many more nanoseconds.
    Runtime(SchedTaskId, u64),
    /// A task moves from one CPU to another.
    Migrated(SchedTaskId, i64, i64),
    /// Number of records that were lost.
    Lost(u64),
}

/// An event with its record.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayedRecord<'a> {
    pub(super) raw: &'a RawRecord<'a>,
    /// Number of bytes in the records before this one.
    pub(super) position: Timestamp,
    /// The call chain unwound from its stack copy; empty if it has none.
    pub(super) unwound: &'a [u64],
}

/// Called with the effect of each event.
pub(super) type StepVisitor<'v> =
    dyn FnMut(&mut SchedMachine, &EventContext, SchedStep<'_>, &ReplayedRecord<'_>) -> Result<()> + 'v;

/// Visits the effects of all events. Returns the machine in its final state.
///
/// # Errors
/// Fails if the file cannot be read, or `visit` fails.
pub(super) fn replay(
    session: &Session,
    mut decoder: SchedDecoder,
    unwinding: Option<SampleUnwinding<'_>>,
    visit: &mut StepVisitor<'_>,
) -> Result<SchedMachine> {
    let mut machine = SchedMachine::new(decoder.has_wakeups);
    let layouts = session.reader.layouts();
    let is_task = |number| matches!(number, kind::COMM | kind::FORK | kind::EXIT);
    let is_loss = |number| matches!(number, kind::LOST | kind::LOST_SAMPLES);
    let is_read: Vec<bool> = (0..kind::FIRST_USER)
        .map(|number| is_task(number) || is_loss(number) || decoder.reads(number))
        .collect();
    let is_read = |number: u32| is_read.get(number as usize).copied().unwrap_or(false);
    order::records_unwound(session, true, unwinding, is_read, |raw, at, unwound| {
        let record = ReplayedRecord { raw, position: at.position, unwound };
        if is_task(raw.kind) {
            if let Some(task) = raw.parse() {
                apply_task_record(&mut machine, &task);
            }
            return Ok(());
        }
        if is_loss(raw.kind) {
            let Some((context, count)) = loss(session, raw) else { return Ok(()) };
            // `LOST_SAMPLES` records contain the same losses again.
            machine.lose(context.time, if raw.kind == kind::LOST { count } else { 0 });
            return match raw.kind {
                kind::LOST => visit(&mut machine, &context, SchedStep::Lost(count), &record),
                _ => Ok(()),
            };
        }
        let decoded = match raw.kind {
            kind::SAMPLE => layouts.sample(raw).and_then(|(event, sample)| decoder.sample(event, &sample)),
            _ => decoder.switch(session, raw),
        };
        match decoded {
            Some((context, event)) => step(&mut machine, &context, event, &record, visit),
            None => Ok(()),
        }
    })?;
    machine.lost_at_least(recording_quality::lost(session));
    Ok(machine)
}

fn step(
    machine: &mut SchedMachine,
    context: &EventContext,
    event: SchedEvent<'_>,
    record: &ReplayedRecord<'_>,
    visit: &mut StepVisitor<'_>,
) -> Result<()> {
    let &EventContext { time, cpu, thread } = context;
    match event {
        SchedEvent::Switch { prev, next, state } => {
            // The event occurs in the task that leaves the CPU.
            let left = task(machine, cpu, thread.pid, prev.tid);
            let out = machine.switch_out(left, cpu, time, state);
            machine.tasks.name_if_unnamed(left, prev.comm);
            visit(machine, context, SchedStep::Out(out, Some((prev, next))), record)?;
            let got = task(machine, cpu, UNKNOWN, next.tid);
            let switched = machine.switch_in(got, cpu, time);
            visit(machine, context, SchedStep::In(switched), record)
        }
        SchedEvent::Out { state } => {
            let left = task(machine, cpu, thread.pid, thread.tid);
            let out = machine.switch_out(left, cpu, time, state);
            visit(machine, context, SchedStep::Out(out, None), record)
        }
        SchedEvent::In => {
            let got = task(machine, cpu, thread.pid, thread.tid);
            let switched = machine.switch_in(got, cpu, time);
            visit(machine, context, SchedStep::In(switched), record)
        }
        SchedEvent::Waking { tid } => {
            let woken = machine.tasks.get_or_add(0, tid);
            machine.wake(woken, time);
            visit(machine, context, SchedStep::Woken(woken), record)
        }
        SchedEvent::Runtime { tid, ns } => {
            let ran = task(machine, cpu, UNKNOWN, tid);
            machine.mark_seen(ran);
            visit(machine, context, SchedStep::Runtime(ran, ns), record)
        }
        SchedEvent::Migrate { tid, from, to } => {
            let migrant = machine.tasks.get_or_add(0, tid);
            machine.migrate(migrant, time);
            visit(machine, context, SchedStep::Migrated(migrant, from, to), record)
        }
    }
}

/// Returns the task for a thread on a CPU. Each CPU has its own idle task, and all idle tasks have thread id
/// 0.
fn task(machine: &mut SchedMachine, cpu: u32, pid: i32, tid: i32) -> SchedTaskId {
    if tid == 0 { machine.tasks.idle(cpu) } else { machine.tasks.get_or_add(pid, tid) }
}

fn apply_task_record(machine: &mut SchedMachine, record: &Record<'_>) {
    match record {
        Record::Comm(comm) => {
            let Thread { pid, tid } = comm.thread;
            let task = machine.tasks.get_or_add(pid, tid);
            machine.tasks.name(task, comm.comm);
        }
        Record::Fork(fork) => {
            let parent = machine.tasks.get_or_add(fork.parent.pid, fork.parent.tid);
            machine.tasks.fork(fork.thread.pid, fork.thread.tid, parent);
        }
        Record::Exit(exit) => {
            let task = machine.tasks.get_or_add(exit.thread.pid, exit.thread.tid);
            machine.exit(task);
        }
        _ => {}
    }
}

/// Returns the number of lost records that a record reports.
fn loss(session: &Session, raw: &RawRecord<'_>) -> Option<(EventContext, u64)> {
    let count = match raw.parse()? {
        Record::Lost(lost) => lost.lost,
        Record::LostSamples(count) => count,
        _ => return None,
    };
    let id = session.reader.layouts().sample_id(raw);
    let thread = id.thread.unwrap_or(Thread { pid: -1, tid: -1 });
    Some((EventContext { time: id.time?.0, cpu: id.cpu.unwrap_or(0), thread }, count))
}
