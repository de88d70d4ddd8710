//! Explains why an event cannot be counted here. Derives a kind, a cause and a remedy from the kernel's errno
//! and facts about the machine.
//!
//! A [`Refusal`] holds the request and the kernel's answer. pmc explains it only when it is displayed,
//! because collecting the facts requires reading many files. The kinds of refusals are those of FreeBSD's
//! `pmc_allocate(3)`, plus a few for Linux. An explanation names a cause only if the facts support it;
//! otherwise it says that the kernel gives no reason.
//!
//! ```text
//! Refusal { event, attr, slot, errno } --isolate: retried without each feature--> culprit
//!        | + Facts
//!        v
//! causes (one function per errno) --> Explanation { errno, kind, cause, remedy } --> Error | a row's reason
//! ```

mod causes;
mod missing_feature;
mod privilege;
#[cfg(test)]
mod tests;

use crate::hint::Hint;
use std::io;

use self::missing_feature::refused_feature;
use super::facts::MachineFacts;
use super::target::TargetSlot;
use pmc_sys::abi::Attr;
use pmc_sys::error::Error;
use pmc_sys::sys::{errno, errno_name};

pub(crate) use self::missing_feature::OmittableFeature;

/// The kind of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The kernel considers the request invalid (FreeBSD: EINVAL).
    BadRequest,
    /// The machine has no counter for the event, or the counter is disabled (FreeBSD: ENXIO).
    NoHardware,
    /// The hardware lacks a feature of the request, such as an interrupt for sampling (FreeBSD:
    /// EOPNOTSUPP).
    NoCapability,
    /// The user lacks privileges (FreeBSD: EPERM).
    NoPrivilege,
    /// The process or thread no longer exists (FreeBSD: ESRCH).
    NotFound,
    /// Another user holds the counter (FreeBSD, NetBSD: EBUSY).
    Busy,
    /// The CPU is offline or does not exist.
    CpuOffline,
    /// No file descriptor is left.
    OutOfDescriptors,
    /// No memory is left, or the limit on locked memory is reached.
    OutOfMemory,
    /// The kernel has no perf events, or hides them.
    NoPerfEvents,
    /// Any other errno.
    Other,
}

impl RefusalKind {
    /// The errno that FreeBSD's `pmc_allocate(3)` returns for this kind.
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
}

/// An event that is not counted: the request, the target and the kernel's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The event's name.
    pub event: String,
    /// The requested attributes.
    pub(crate) attr: Attr,
    /// The slot in which the event was to be opened.
    pub(crate) slot: TargetSlot,
    pub(crate) call: FailedCall,
    /// The kernel's errno; `None` if no system call failed.
    pub errno: Option<i32>,
    /// Number of members of the event's kernel group that were already open; 0 for leaders and single events.
    /// If it is not 0, the group as a whole may not fit.
    pub(crate) group_before: usize,
    /// The feature that makes the kernel refuse the request, if known. See [`Refusal::isolate`].
    pub(crate) refused_feature: Option<OmittableFeature>,
    /// The kind, cause and remedy, if they do not depend on facts about the machine.
    known: Option<RefusalText>,
}

impl Refusal {
    /// Creates the refusal for an event that the kernel did not open in this slot.
    pub(crate) fn new(event: &str, attr: Attr, slot: TargetSlot, error: &io::Error) -> Self {
        let errno = error.raw_os_error();
        let known = errno.is_none().then(|| (RefusalKind::Other, error.to_string(), Hint::from("")));
        let event = event.to_owned();
        Self {
            event,
            attr,
            slot,
            call: FailedCall::Open,
            errno,
            group_before: 0,
            refused_feature: None,
            known,
        }
    }

    /// Creates the refusal for a ring that the kernel did not map. `bytes` includes the header page.
    pub(crate) fn of_ring(event: &str, attr: Attr, bytes: u64, error: &io::Error) -> Self {
        Self { call: FailedCall::Map { bytes }, ..Self::new(event, attr, TargetSlot::OURSELVES, error) }
    }

    /// Creates the refusal for an event that pmc rejects before calling the kernel. `errno` is the equivalent
    /// error number.
    pub fn before_the_kernel(
        event: &str,
        attr: Attr,
        errno: impl Into<Option<i32>>,
        (kind, cause, remedy): (RefusalKind, &str, impl Into<Hint>),
    ) -> Self {
        Self {
            event: event.to_owned(),
            attr,
            slot: TargetSlot::OURSELVES,
            call: FailedCall::Open,
            errno: errno.into(),
            group_before: 0,
            refused_feature: None,
            known: Some((kind, cause.to_owned(), remedy.into())),
        }
    }

    /// Sets the number of members of the event's kernel group that were already open.
    #[must_use]
    pub(crate) fn after(self, group_before: usize) -> Self {
        Self { group_before, ..self }
    }

    /// Whether the call failed because the thread or CPU no longer exists, and not because of the event.
    pub(crate) fn is_gone(&self) -> bool {
        match self.errno {
            Some(errno::ESRCH) => self.slot.tid.is_some(),
            Some(errno::ENODEV) => self.slot.cpu.is_some(),
            _ => false,
        }
    }

    /// If the errno is ambiguous, finds the part that the kernel rejects: retries the request without each
    /// [`OmittableFeature`] in turn, on pmc's own process or on the same CPU.
    #[must_use]
    pub fn isolate(mut self) -> Self {
        let says_no_more = matches!(self.errno, Some(errno::EINVAL | errno::EOPNOTSUPP));
        if says_no_more && self.call == FailedCall::Open && self.group_before == 0 && self.known.is_none() {
            let slot = if self.slot.tid.is_some() { TargetSlot::OURSELVES } else { self.slot };
            self.refused_feature = refused_feature(&self.attr, |attr| slot.opens(attr).is_ok());
        }
        self
    }

    /// Explains the refusal, using only these facts.
    pub fn explain(&self, facts: &MachineFacts) -> Explanation {
        let errno = match self.errno {
            // The kernel checks privileges first, but more privileges do not help if the hardware does not
            // exist.
            Some(errno::EACCES) if facts.lacks_hardware(&self.attr) => Some(errno::ENOENT),
            errno => errno,
        };
        let (kind, cause, remedy) = match (&self.known, errno) {
            (Some(known), _) => known.clone(),
            (None, errno) => causes::explain(errno.unwrap_or_default(), self, facts),
        };
        Explanation { errno, kind, cause, remedy }
    }

    /// Returns the CPU on which the event was refused, in the form ` on CPU 3` for the end of a sentence.
    /// Returns an empty string for a task.
    pub fn on_cpu(&self) -> String {
        match self.slot {
            TargetSlot { tid: None, cpu: Some(cpu) } => format!(" on CPU {cpu}"),
            _ => String::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedCall {
    /// `perf_event_open(2)`.
    Open,
    /// `mmap(2)` of a ring with this many bytes.
    Map {
        /// Size of the ring including its header page.
        bytes: u64,
    },
}

/// Why an event is not counted, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The kernel's errno; `None` if no system call failed (the event never got a counter).
    pub errno: Option<i32>,
    /// The kind of the refusal.
    pub kind: RefusalKind,
    /// The cause: one clause without a full stop.
    pub cause: String,
    /// What to try: an imperative clause. Empty if there is no known remedy.
    pub remedy: Hint,
}

impl Explanation {
    /// The name of the errno, such as `ENOENT`.
    pub fn errno_name(&self) -> Option<&'static str> {
        self.errno.and_then(errno_name)
    }

    /// Converts the explanation to an error. `doing` names the operation that failed: `opening cycles on CPU
    /// 3`.
    pub fn into_error(self, doing: impl Into<String>) -> Error {
        let mut error = match self.errno {
            Some(number) => Error::io(doing, io::Error::from_raw_os_error(number)),
            None => Error::new(doing),
        };
        error = error.why(self.cause);
        if self.remedy.is_empty() { error } else { error.try_this(self.remedy) }
    }
}

/// Explains why an event that was opened and enabled was never on a counter (`time_running` is 0, or a
/// pinned event reads nothing).
pub fn never_ran(attr: &Attr, facts: &MachineFacts) -> Explanation {
    let (kind, cause, remedy) = causes::never_ran(attr, facts);
    Explanation { errno: None, kind, cause, remedy }
}

/// Kind, cause and remedy.
type RefusalText = (RefusalKind, String, Hint);

fn explained(kind: RefusalKind, cause: impl Into<String>, remedy: impl Into<Hint>) -> RefusalText {
    (kind, cause.into(), remedy.into())
}
