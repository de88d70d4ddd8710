//! Why an event cannot be counted here: the kernel's errno and the facts of the machine become a kind, a
//! cause and a remedy.
//!
//! A [`Refusal`] says what was asked and what the kernel answered; it becomes words only where they are
//! shown, since the facts about the machine cost a look at many files. Its kinds are those of FreeBSD's
//! `pmc_allocate(3)` and what Linux adds to them. A cause is only named when a fact speaks for it; where none
//! does, the explanation says that the kernel gives no reason.
//!
//! ```text
//! Refusal { event, attr, slot, errno } --isolate: tried without one feature after the other--> culprit
//!        | + Facts
//!        v
//! causes (one function an errno) --> Explanation { errno, kind, cause, remedy } --> Error | a row's reason
//! ```

mod causes;
mod missing_feature;
mod privilege;
#[cfg(test)]
mod tests;

use std::io;

use self::missing_feature::culprit;
use super::facts::Facts;
use super::target::TargetSlot;
use crate::abi::Attr;
use crate::error::Error;
use crate::sys::{errno, errno_name};

pub use self::missing_feature::Feature;

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The request makes no sense to the kernel (FreeBSD: EINVAL).
    BadRequest,
    /// The machine has no counter for it, or it is switched off (FreeBSD: ENXIO).
    NoHardware,
    /// The hardware lacks something the request needs, such as an interrupt for sampling (FreeBSD:
    /// EOPNOTSUPP).
    NoCapability,
    /// This user may not (FreeBSD: EPERM).
    NoPrivilege,
    /// The process or thread is gone (FreeBSD: ESRCH).
    NotFound,
    /// Somebody else uses it (FreeBSD, NetBSD: EBUSY).
    Busy,
    /// The CPU is off line or not there.
    CpuOffline,
    /// No file descriptor is left.
    OutOfDescriptors,
    /// No memory is left, or none that may be locked.
    OutOfMemory,
    /// The kernel has no perf events at all, or hides them.
    NoPerfEvents,
    /// Anything else: the errno says all that is known.
    Other,
}

impl RefusalKind {
    /// The errno that FreeBSD's `pmc_allocate(3)` has for this kind.
    pub fn freebsd_errno(self) -> Option<&'static str> {
        Some(match self {
            Self::BadRequest => "EINVAL",
            Self::NoHardware | Self::CpuOffline | Self::NoPerfEvents => "ENXIO",
            Self::NoCapability => "EOPNOTSUPP",
            Self::NoPrivilege => "EPERM",
            Self::NotFound => "ESRCH",
            Self::Busy => "EBUSY",
            Self::OutOfMemory => "ENOMEM",
            Self::OutOfDescriptors | Self::Other => return None,
        })
    }

    /// A word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::NoHardware => "no-hardware",
            Self::NoCapability => "no-capability",
            Self::NoPrivilege => "no-privilege",
            Self::NotFound => "not-found",
            Self::Busy => "busy",
            Self::CpuOffline => "cpu-offline",
            Self::OutOfDescriptors => "out-of-descriptors",
            Self::OutOfMemory => "out-of-memory",
            Self::NoPerfEvents => "no-perf-events",
            Self::Other => "other",
        }
    }
}

/// An event that is not counted: what was asked of whom, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The event's name.
    pub event: String,
    /// What was asked for.
    pub attr: Attr,
    /// Where it was to count.
    pub slot: TargetSlot,
    /// The call that failed.
    pub call: Call,
    /// The kernel's number; `None` where no system call failed.
    pub errno: Option<i32>,
    /// Members of its kernel group that were open already: 0 for leaders and single events. The group as a
    /// whole may be what does not fit.
    pub group_before: usize,
    /// The feature without which the kernel takes the request, if that has been tried: see
    /// [`Refusal::isolate`].
    pub culprit: Option<Feature>,
    /// Kind, cause and remedy where they are known without a look at the machine.
    known: Option<Explained>,
}

impl Refusal {
    /// The kernel would not open this event there.
    pub fn new(event: &str, attr: Attr, slot: TargetSlot, error: &io::Error) -> Self {
        let errno = error.raw_os_error();
        let known = errno.is_none().then(|| (RefusalKind::Other, error.to_string(), String::new()));
        let event = event.to_owned();
        Self { event, attr, slot, call: Call::Open, errno, group_before: 0, culprit: None, known }
    }

    /// The kernel would not map a ring of so many bytes, header page included.
    pub fn of_ring(event: &str, attr: Attr, bytes: u64, error: &io::Error) -> Self {
        Self { call: Call::Map { bytes }, ..Self::new(event, attr, TargetSlot::OURSELVES, error) }
    }

    /// Refused before the kernel was asked, with the errno that says the same.
    pub fn before_the_kernel(
        event: &str,
        attr: Attr,
        errno: impl Into<Option<i32>>,
        (kind, cause, remedy): (RefusalKind, &str, &str),
    ) -> Self {
        Self {
            event: event.to_owned(),
            attr,
            slot: TargetSlot::OURSELVES,
            call: Call::Open,
            errno: errno.into(),
            group_before: 0,
            culprit: None,
            known: Some((kind, cause.to_owned(), remedy.to_owned())),
        }
    }

    /// So many members of its kernel group were open already.
    #[must_use]
    pub fn after(self, group_before: usize) -> Self {
        Self { group_before, ..self }
    }

    /// Whether the thread or the CPU has gone: then it is not the event that is refused.
    pub fn is_gone(&self) -> bool {
        match self.errno {
            Some(errno::ESRCH) => self.slot.tid.is_some(),
            Some(errno::ENODEV) => self.slot.cpu.is_some(),
            _ => false,
        }
    }

    /// Where the answer leaves it open which part of the request is meant: finds out, by trying it on
    /// ourselves without one [`Feature`] after the other.
    #[must_use]
    pub fn isolate(mut self) -> Self {
        let says_no_more = matches!(self.errno, Some(errno::EINVAL | errno::EOPNOTSUPP));
        if says_no_more && self.call == Call::Open && self.group_before == 0 && self.known.is_none() {
            let slot = if self.slot.tid.is_some() { TargetSlot::OURSELVES } else { self.slot };
            self.culprit = culprit(&self.attr, |attr| slot.opens(attr).is_ok());
        }
        self
    }

    /// Says why, from facts alone.
    pub fn explain(&self, facts: &Facts) -> Explanation {
        let errno = match self.errno {
            // The kernel looks at privileges first; none helps where the hardware is missing.
            Some(errno::EACCES) if facts.lacks_hardware(&self.attr) => Some(errno::ENOENT),
            errno => errno,
        };
        let (kind, cause, remedy) = match (&self.known, errno) {
            (Some(known), _) => known.clone(),
            (None, errno) => causes::of(errno.unwrap_or_default(), self, facts),
        };
        Explanation { errno, kind, cause, remedy }
    }

    /// The CPU on which it was refused, as the end of a sentence: ` on CPU 3`; empty for a task.
    pub fn on_cpu(&self) -> String {
        match self.slot {
            TargetSlot { tid: None, cpu: Some(cpu) } => format!(" on CPU {cpu}"),
            _ => String::new(),
        }
    }
}

/// The system call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `perf_event_open(2)`.
    Open,
    /// Mapping a ring of so many bytes.
    Map {
        /// Bytes of the ring with its header page.
        bytes: u64,
    },
}

/// Why an event is not counted, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The kernel's number; `None` where no system call failed (a counter that never was free).
    pub errno: Option<i32>,
    /// The kind.
    pub kind: RefusalKind,
    /// Why: one clause without a full stop.
    pub cause: String,
    /// What to try: an imperative clause; empty where nothing is known to help.
    pub remedy: String,
}

impl Explanation {
    /// The name of the errno, such as `ENOENT`.
    pub fn errno_name(&self) -> Option<&'static str> {
        self.errno.and_then(errno_name)
    }

    /// The error that says it all, `doing` naming what was tried: `opening cycles on CPU 3`.
    pub fn into_error(self, doing: impl Into<String>) -> Error {
        let mut error = match self.errno {
            Some(number) => Error::io(doing, io::Error::from_raw_os_error(number)),
            None => Error::new(doing),
        };
        error = error.why(self.cause);
        if self.remedy.is_empty() { error } else { error.try_this(self.remedy) }
    }
}

/// Why an event that was opened and enabled never was on a counter (`time_running` 0, or a pinned event that
/// reads nothing).
pub fn never_ran(attr: &Attr, facts: &Facts) -> Explanation {
    let (kind, cause, remedy) = causes::never_ran(attr, facts);
    Explanation { errno: None, kind, cause, remedy }
}

/// Kind, cause and remedy.
type Explained = (RefusalKind, String, String);

fn explained(kind: RefusalKind, cause: impl Into<String>, remedy: impl Into<String>) -> Explained {
    (kind, cause.into(), remedy.into())
}
