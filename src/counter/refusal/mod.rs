//! Why an event cannot be counted here: the kernel's errno and the facts of the machine become a kind, a cause and a remedy.
//!
//! Receives what was asked for ([`Asked`]), what the kernel said, and a snapshot of the machine ([`Facts`]); pure, so it is tested
//! with saved machines. Hands on a [`Refusal`], whose kinds are those of FreeBSD's `pmc_allocate(3)` and what Linux adds to them.
//! A cause is only named when a fact speaks for it; where none does, the refusal says that the kernel gives no reason.
//!
//! ```text
//! errno --+
//! attr  --+--> causes (one function an errno) --> Refusal { errno, kind, cause, remedy } --> Error | a row's reason
//! facts --+
//! ```

mod causes;
mod feature;
mod privilege;
#[cfg(test)]
mod tests;

use std::io;

use crate::abi::Attr;
use crate::counter::facts::Facts;
use crate::error::Error;
use crate::sys::errno_name;
use crate::sys::perf::OpenTarget;

pub use feature::{Feature, culprit};

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The request makes no sense to the kernel (FreeBSD: EINVAL).
    BadRequest,
    /// The machine has no counter for it, or it is switched off (FreeBSD: ENXIO).
    NoHardware,
    /// The hardware lacks something the request needs, such as an interrupt for sampling (FreeBSD: EOPNOTSUPP).
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

/// Why an event is not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kernel's number; `None` where no system call failed (a counter that never was free).
    pub errno: Option<i32>,
    /// The kind.
    pub kind: RefusalKind,
    /// Why: one clause without a full stop.
    pub cause: String,
    /// What to try: an imperative clause; empty where nothing is known to help.
    pub remedy: String,
}

impl Refusal {
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

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The request.
    pub attr: &'a Attr,
    /// Where it was to count.
    pub place: OpenTarget<'a>,
    /// The call that failed.
    pub call: Call,
    /// Members of its kernel group that were open already: 0 for leaders and single events.
    pub group_before: usize,
    /// The feature without which the kernel takes the request, if that has been tried: see [`culprit`].
    pub culprit: Option<Feature>,
}

impl<'a> Asked<'a> {
    /// A single event that could not be opened; nothing further was tried.
    pub fn opening(attr: &'a Attr, place: OpenTarget<'a>) -> Self {
        Self { attr, place, call: Call::Open, group_before: 0, culprit: None }
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
    /// `read(2)` of a count.
    Read,
    /// `ioctl(2)`: enable, filter, redirect.
    Control,
}

/// Says why.
pub fn explain(error: &io::Error, asked: &Asked<'_>, facts: &Facts) -> Refusal {
    let Some(errno) = error.raw_os_error() else {
        return Refusal {
            errno: None,
            kind: RefusalKind::Other,
            cause: error.to_string(),
            remedy: String::new(),
        };
    };
    let (kind, cause, remedy) = causes::of(errno, asked, facts);
    Refusal { errno: Some(errno), kind, cause, remedy }
}

/// Why an event that was opened and enabled never was on a counter (`time_running` 0, or a pinned event that reads nothing).
pub fn never_ran(attr: &Attr, facts: &Facts) -> Refusal {
    let (kind, cause, remedy) = causes::never_ran(attr, facts);
    Refusal { errno: None, kind, cause, remedy }
}

/// Kind, cause and remedy.
type Explained = (RefusalKind, String, String);

fn explained(kind: RefusalKind, cause: impl Into<String>, remedy: impl Into<String>) -> Explained {
    (kind, cause.into(), remedy.into())
}
