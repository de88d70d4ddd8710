//! Decodes the scheduler's records: its tracepoints, or the kernel's context-switch records.

use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::tracepoint::{KernelNames, Payload, TracepointFormat, TracingData};
use pmc_perfdata::record::{RawRecord, Record, Sample, Thread, kind};
use pmc_sys::abi::TracepointField;
use pmc_sys::abi::attr::{Flag, kind as attr_kind};
use pmc_sys::error::{Error, Result};

use super::machine::RUNNABLE;
use pmc_analysis::session::Session;

/// CPUs with this number or a higher one are ignored, so that a hostile file cannot exhaust memory.
pub(super) const MAX_CPUS: u32 = 1 << 13;

/// Which records contain the context switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchedSource {
    /// The scheduler's tracepoints.
    Tracepoints,
    /// The kernel's `SWITCH` records, which have no wake-ups.
    SwitchRecords,
}

/// Context of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventContext {
    pub(super) time: u64,
    pub(super) cpu: u32,
    /// The thread that caused the event.
    pub(super) thread: Thread,
}

/// One side of a switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct SwitchSide<'a> {
    pub(super) tid: i32,
    pub(super) comm: &'a [u8],
    pub(super) prio: i64,
}

/// A scheduler event.
#[derive(Debug)]
pub(super) enum SchedEvent<'a> {
    Switch {
        prev: SwitchSide<'a>,
        next: SwitchSide<'a>,
        state: u8,
    },
    Waking {
        tid: i32,
    },
    Runtime {
        tid: i32,
        ns: u64,
    },
    Migrate {
        tid: i32,
        from: i64,
        to: i64,
    },
    /// A `SWITCH` record: the context's thread leaves its CPU in this state (`Out`), or gets a CPU (`In`).
    Out {
        state: u8,
    },
    In,
}

/// The fields of a tracepoint.
#[derive(Debug, Clone)]
enum EventFields {
    Switch(Box<SwitchFields>),
    Waking(TracepointField),
    Runtime { tid: TracepointField, ns: TracepointField },
    Migrate { tid: TracepointField, from: TracepointField, to: TracepointField },
}

#[derive(Debug, Clone)]
struct SwitchFields {
    format: TracepointFormat,
    state: TracepointField,
    prev: [TracepointField; 3],
    next: [TracepointField; 3],
}

impl SwitchFields {
    fn new(format: &TracepointFormat) -> Option<Self> {
        let field = |name: &str| format.field(name).cloned();
        Some(Self {
            format: format.clone(),
            state: field("prev_state")?,
            prev: [field("prev_pid")?, field("prev_comm")?, field("prev_prio")?],
            next: [field("next_pid")?, field("next_comm")?, field("next_prio")?],
        })
    }

    fn side<'a>(payload: Payload<'a>, fields: &[TracepointField; 3]) -> Option<SwitchSide<'a>> {
        let [tid, comm, prio] = fields;
        Some(SwitchSide {
            tid: payload.number_in(tid)? as i32,
            comm: payload.text_in(comm).unwrap_or_default(),
            prio: payload.number_in(prio).unwrap_or(0),
        })
    }
}

/// Decodes the events of a recording.
#[derive(Debug, Clone)]
pub(super) struct SchedDecoder {
    pub(super) source: SchedSource,
    /// For each event of the recording, its fields; `None` for events that are not scheduler events.
    fields: Vec<Option<EventFields>>,
    is_byte_swapped: bool,
    /// The letters of task states, by the state's lowest bit. The last entry is the letter of state 0.
    letters: [Option<u8>; 65],
    /// Whether the recording contains the kernel's events that report the running time of tasks.
    pub(super) has_runtime: bool,
    /// Whether the recording contains wake-ups.
    pub(super) has_wakeups: bool,
    /// The event whose samples are switches.
    pub(super) switch_event: Option<usize>,
}

impl SchedDecoder {
    /// # Errors
    /// Fails if the recording has no switches.
    pub(super) fn new(session: &Session) -> Result<Self> {
        let tracing = session.reader.features().tracing_data.as_ref();
        let tracing = tracing.and_then(|raw| TracingData::parse(&raw.0));
        let events = session.reader.events();
        let format = |event: &RecordedEvent| {
            let format = tracing.as_ref()?.format(event.attr.config())?;
            (event.attr.kind() == attr_kind::TRACEPOINT && format.system == "sched").then_some(format)
        };
        let is_there = |name: &str| events.iter().filter_map(format).any(|format| format.name == name);
        // The kernel reports a wake-up with both events, first with `sched_waking`.
        let wakeup = if is_there("sched_waking") { "sched_waking" } else { "sched_wakeup" };
        let fields = |event: &RecordedEvent| {
            let format = format(event)?;
            let field = |name: &str| format.field(name).cloned();
            match format.name.as_str() {
                "sched_switch" => SwitchFields::new(format).map(|all| EventFields::Switch(Box::new(all))),
                "sched_wakeup_new" => Some(EventFields::Waking(field("pid")?)),
                name if name == wakeup => Some(EventFields::Waking(field("pid")?)),
                "sched_stat_runtime" => {
                    Some(EventFields::Runtime { tid: field("pid")?, ns: field("runtime")? })
                }
                "sched_migrate_task" => Some(EventFields::Migrate {
                    tid: field("pid")?,
                    from: field("orig_cpu")?,
                    to: field("dest_cpu")?,
                }),
                _ => None,
            }
        };
        let fields: Vec<_> = events.iter().map(fields).collect();
        let is_switch = |fields: &Option<EventFields>| matches!(fields, Some(EventFields::Switch(_)));
        let switch_event = fields.iter().position(is_switch);
        let has_records = session.index.count(kind::SWITCH) + session.index.count(kind::SWITCH_CPU_WIDE) > 0;
        let source = match (switch_event, has_records) {
            (Some(_), _) => SchedSource::Tracepoints,
            (None, true) => SchedSource::SwitchRecords,
            (None, false) => return Err(no_switches(session)),
        };
        if !session.has_time {
            return Err(Error::new(format!("{} has no times", session.reader.path().display()))
                .try_this("pmc sched record -- COMMAND records them"));
        }
        let has = |test: fn(&EventFields) -> bool| fields.iter().flatten().any(test);
        Ok(Self {
            source,
            has_runtime: has(|fields| matches!(fields, EventFields::Runtime { .. })),
            has_wakeups: has(|fields| matches!(fields, EventFields::Waking(_))),
            switch_event,
            fields,
            is_byte_swapped: tracing.is_some_and(|tracing| tracing.is_byte_swapped),
            letters: [None; 65],
        })
    }

    /// Whether records of this kind contain scheduler events.
    pub(super) fn reads(&self, kind: u32) -> bool {
        match self.source {
            SchedSource::Tracepoints => kind == kind::SAMPLE,
            SchedSource::SwitchRecords => matches!(kind, kind::SWITCH | kind::SWITCH_CPU_WIDE),
        }
    }

    /// Decodes a sample.
    pub(super) fn sample<'a>(
        &mut self,
        event: usize,
        sample: &Sample<'a>,
    ) -> Option<(EventContext, SchedEvent<'a>)> {
        let fields = self.fields.get(event)?.as_ref()?;
        let context = EventContext {
            time: sample.time()?.0,
            cpu: sample.cpu().filter(|cpu| *cpu < MAX_CPUS)?,
            thread: sample.thread().unwrap_or(Thread { pid: -1, tid: -1 }),
        };
        let payload = Payload { bytes: sample.parts()?.raw?, is_byte_swapped: self.is_byte_swapped };
        let number = |field| payload.number_in(field);
        let event = match fields {
            EventFields::Switch(fields) => SchedEvent::Switch {
                prev: SwitchFields::side(payload, &fields.prev)?,
                next: SwitchFields::side(payload, &fields.next)?,
                state: letter(&mut self.letters, fields, payload)?,
            },
            EventFields::Waking(tid) => SchedEvent::Waking { tid: number(tid)? as i32 },
            EventFields::Runtime { tid, ns } => {
                SchedEvent::Runtime { tid: number(tid)? as i32, ns: number(ns)? as u64 }
            }
            EventFields::Migrate { tid, from, to } => {
                SchedEvent::Migrate { tid: number(tid)? as i32, from: number(from)?, to: number(to)? }
            }
        };
        Some((context, event))
    }

    /// Decodes a `SWITCH` record.
    pub(super) fn switch<'a>(
        &self,
        session: &Session,
        raw: &RawRecord<'a>,
    ) -> Option<(EventContext, SchedEvent<'a>)> {
        let (Record::Switch(switch) | Record::SwitchCpuWide(switch)) = raw.parse()? else { return None };
        let id = session.reader.layouts().sample_id(raw);
        let context = EventContext { time: id.time?.0, cpu: id.cpu.unwrap_or(0), thread: id.thread? };
        if context.cpu >= MAX_CPUS {
            return None;
        }
        let event = match (switch.is_out, switch.is_preempted) {
            (true, true) => SchedEvent::Out { state: RUNNABLE },
            (true, false) => SchedEvent::Out { state: b'S' },
            (false, _) => SchedEvent::In,
        };
        Some((context, event))
    }
}

/// Returns the letter of the task's state. It comes from the tracepoint's format, since the bits differ
/// between kernel versions.
fn letter(letters: &mut [Option<u8>; 65], fields: &SwitchFields, payload: Payload<'_>) -> Option<u8> {
    let state = payload.number_in(&fields.state)?;
    let letter = &mut letters[state.trailing_zeros() as usize];
    if letter.is_none() {
        let text = fields.format.print_field("prev_state", payload, KernelNames::NONE)?;
        let first = text.bytes().next().filter(u8::is_ascii_alphabetic);
        // Treat `R+` and unknown bits as a preemption.
        *letter = Some(first.unwrap_or(RUNNABLE));
    }
    *letter
}

fn no_switches(session: &Session) -> Error {
    if session.reader.events().iter().any(|event| event.attr.get(Flag::ContextSwitch)) {
        let file = session.reader.path().display();
        return Error::new(format!("{file} has no context switches"))
            .why("no recorded thread switched on or off a CPU: each either waited or ran the whole time")
            .try_this(
                "record for longer; pmc record --off-cpu also measures threads that wait the whole time",
            );
    }
    let why = match session.reader.features().tracing_data {
        None => {
            "it has no context-switch records, and no sched:sched_switch samples with their field formats"
        }
        Some(_) => "the recording has neither sched:sched_switch samples nor context-switch records",
    };
    Error::new(format!("{} has no scheduler events", session.reader.path().display()))
        .why(why)
        .try_this("pmc sched record -- COMMAND records them")
}
