//! Requests to running counters.
//!
//! [`allocate`] is the one door to the kernel's counters: it turns an [`EventSpec`] and a [`Mode`] into a checked
//! request, as FreeBSD's `pmc_allocate(3)` does. [`target`] says where to count, [`counter_set`] opens whole
//! lists of groups there and reads them. What the kernel refused is handed on as it said it.

pub mod counter_set;
pub mod facts;
pub mod fit;
pub mod machine;
pub mod openable;
pub mod refusal;
pub mod reservation;
pub mod rings;
pub mod sampling;
pub mod target;
pub mod verdict;

use std::io;

use crate::abi::attr::Flag;
use crate::abi::{Attr, read_format, sample_type};
use crate::event::{EventSpec, Source};
use crate::sys::errno;
use crate::sys::perf::{EventFd, OpenTarget};

/// What a counter counts, and whether it samples: FreeBSD's four modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything on a CPU, counting (`PMC_MODE_SC`).
    SystemCounting,
    /// Everything on a CPU, sampling (`PMC_MODE_SS`).
    SystemSampling,
    /// A thread, counting (`PMC_MODE_TC`).
    TaskCounting,
    /// A thread, sampling (`PMC_MODE_TS`).
    TaskSampling,
}

impl Mode {
    fn samples(self) -> bool {
        matches!(self, Self::SystemSampling | Self::TaskSampling)
    }

    fn system(self) -> bool {
        matches!(self, Self::SystemCounting | Self::SystemSampling)
    }
}

/// What else is asked of a counter (`PMC_F_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Children started later are counted too (`inherit`).
    pub descendants: bool,
    /// The increment is logged at each context switch; counting tasks only.
    pub log_cswitch: bool,
    /// The sum is logged when a process exits; counting tasks only.
    pub log_exit: bool,
    /// Samples carry call chains; sampling only.
    pub callchain: bool,
}

/// A checked request, ready to be opened in any number of places.
#[derive(Debug, Clone)]
pub struct Allocated {
    attr: Attr,
}

/// Checks a request and completes its `perf_event_attr`. Nothing is opened yet.
///
/// `cpu` is the CPU of a system mode, and must be `None` for task modes, as in `pmc_allocate(3)`.
///
/// # Errors
/// `EINVAL` for flags that do not fit the mode, a system mode without a CPU, or an event that is not the kernel's;
/// `ENXIO` for the persistent PMU of 2013, whose flag bit means something else to a mainline kernel.
pub fn allocate(spec: &EventSpec, mode: Mode, flags: Flags, cpu: Option<u32>) -> io::Result<Allocated> {
    let invalid = || io::Error::from_raw_os_error(errno::EINVAL);
    let Source::Kernel(attr) = &spec.source else { return Err(invalid()) };
    if spec.persistent {
        return Err(io::Error::from_raw_os_error(errno::ENXIO));
    }
    if mode.system() != cpu.is_some()
        || flags.callchain && !mode.samples()
        || (flags.log_cswitch || flags.log_exit) && mode != Mode::TaskCounting
    {
        return Err(invalid());
    }
    let mut attr = attr.clone();
    attr.set(Flag::Disabled, true);
    attr.set(
        Flag::Inherit,
        spec.qualifiers.inherit.unwrap_or(flags.descendants || spec.qualifiers.descendants),
    );
    if !mode.samples() {
        // A counting event has no period, though a tracepoint's or breakpoint's spec has one for sampling; perf's identifier costs nothing and tells its events from others'.
        attr.set_period(0);
        attr.set_sample_type(sample_type::IDENTIFIER);
        attr.set_read_format(read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING);
    }
    Ok(Allocated { attr })
}

impl Allocated {
    /// The request as the kernel will get it.
    pub fn attr(&self) -> &Attr {
        &self.attr
    }

    /// The request, to be completed by who knows the target.
    pub fn attr_mut(&mut self) -> &mut Attr {
        &mut self.attr
    }

    /// Opens the counter in a place, in the group of `leader` if there is one.
    ///
    /// # Errors
    /// The kernel's: see `perf_event_open(2)`.
    pub fn open(&self, place: OpenTarget<'_>, leader: Option<&EventFd>) -> io::Result<EventFd> {
        EventFd::open(&self.attr, place, leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::attr::kind;

    fn task_clock() -> EventSpec {
        EventSpec::new("task-clock", Source::Kernel(Attr::new(kind::SOFTWARE, 1)))
    }

    fn code(result: io::Result<Allocated>) -> Option<i32> {
        result.err().and_then(|e| e.raw_os_error())
    }

    #[test]
    fn what_pmc_allocate_checks_is_checked() {
        let spec = task_clock();
        let none = Flags::default();
        assert!(allocate(&spec, Mode::TaskCounting, none, None).is_ok());
        assert!(allocate(&spec, Mode::SystemCounting, none, Some(0)).is_ok());
        assert_eq!(code(allocate(&spec, Mode::SystemCounting, none, None)), Some(errno::EINVAL));
        assert_eq!(code(allocate(&spec, Mode::TaskCounting, none, Some(0))), Some(errno::EINVAL));
        let callchain = Flags { callchain: true, ..none };
        assert_eq!(code(allocate(&spec, Mode::TaskCounting, callchain, None)), Some(errno::EINVAL));
        assert!(allocate(&spec, Mode::TaskSampling, callchain, None).is_ok());
        let log = Flags { log_exit: true, ..none };
        assert_eq!(code(allocate(&spec, Mode::SystemCounting, log, Some(0))), Some(errno::EINVAL));
    }
}
