//! Finds the tracepoints for locks among a recording's events, and reads their fields.

use pmc_analysis::session::Session;
use pmc_perfdata::record::tracepoint::{Payload, TracingData};
use pmc_sys::abi::TracepointField;

/// The information that a tracepoint provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TracepointRole {
    /// A wait for a kernel lock begins.
    ContentionBegin,
    /// A wait for a kernel lock ends.
    ContentionEnd,
    /// A thread wakes another one.
    Waking,
    /// The system call `futex` begins.
    Futex,
    /// The system call `futex_wait` begins.
    FutexWait,
    /// The system call `futex_waitv` begins.
    FutexWaitAny,
    /// The system call `futex_wake` begins.
    FutexWake,
    /// One of the futex system calls returns.
    FutexExit,
}

/// Maximum number of fields to read per tracepoint.
const FIELDS: usize = 3;

/// The tracepoints, each with its name, role and fields.
const TRACEPOINTS: [(&str, TracepointRole, &[&str]); 11] = [
    ("contention_begin", TracepointRole::ContentionBegin, &["lock_addr", "flags"]),
    ("contention_end", TracepointRole::ContentionEnd, &["lock_addr"]),
    ("sched_waking", TracepointRole::Waking, &["pid", "common_flags"]),
    ("sys_enter_futex", TracepointRole::Futex, &["uaddr", "op"]),
    ("sys_exit_futex", TracepointRole::FutexExit, &["ret"]),
    ("sys_enter_futex_wait", TracepointRole::FutexWait, &["uaddr"]),
    ("sys_exit_futex_wait", TracepointRole::FutexExit, &["ret"]),
    ("sys_enter_futex_waitv", TracepointRole::FutexWaitAny, &[]),
    ("sys_exit_futex_waitv", TracepointRole::FutexExit, &["ret"]),
    ("sys_enter_futex_wake", TracepointRole::FutexWake, &["uaddr"]),
    ("sys_exit_futex_wake", TracepointRole::FutexExit, &["ret"]),
];

/// The tracepoints for locks in a recording.
#[derive(Debug)]
pub(super) struct LockTracepoints {
    /// Role and fields of each event.
    of: Vec<Option<(TracepointRole, Vec<TracepointField>)>>,
    is_byte_swapped: bool,
}

impl LockTracepoints {
    pub(super) fn new(session: &Session) -> Self {
        let data = session.reader.features().tracing_data.as_ref();
        let Some(data) = data.and_then(|raw| TracingData::parse(&raw.0)) else {
            return Self { of: Vec::new(), is_byte_swapped: false };
        };
        let known = |event: &pmc_perfdata::perfdata::RecordedEvent| {
            let format = data.format(event.attr.config())?;
            let is_it = |(name, ..): &&(&str, TracepointRole, &[&str])| *name == format.name;
            let (_, role, names) = TRACEPOINTS.iter().find(is_it)?;
            let field = |name: &&str| format.fields.iter().find(|field| field.name == **name).cloned();
            Some((*role, names.iter().map(field).collect::<Option<Vec<_>>>()?))
        };
        let is_tracepoint = |event: &&pmc_perfdata::perfdata::RecordedEvent| {
            event.attr.kind() == pmc_sys::abi::attr::kind::TRACEPOINT
        };
        let of =
            session.reader.events().iter().map(|event| Some(event).filter(is_tracepoint).and_then(known));
        Self { of: of.collect(), is_byte_swapped: data.is_byte_swapped }
    }

    /// Whether the recording has a tracepoint with one of these roles.
    pub(super) fn have(&self, roles: &[TracepointRole]) -> bool {
        self.of.iter().flatten().any(|(role, _)| roles.contains(role))
    }

    /// Returns a sample's role and the values of its fields; `None` for other events and damaged payloads.
    pub(super) fn read(&self, event: usize, bytes: &[u8]) -> Option<(TracepointRole, [u64; FIELDS])> {
        let (role, fields) = self.of.get(event)?.as_ref()?;
        let payload = Payload { bytes, is_byte_swapped: self.is_byte_swapped };
        let mut values = [0; FIELDS];
        for (value, field) in values.iter_mut().zip(fields) {
            *value = payload.number_in(field)? as u64;
        }
        Some((*role, values))
    }
}
