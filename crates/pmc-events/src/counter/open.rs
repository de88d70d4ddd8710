//! Opens a checked [`OpenRequest`] on a target. If the kernel refuses a part of the request, opens the event
//! without that part.
//!
//! Takes an [`OpenRequest`] and a [`TargetSlot`]; returns an open event or a [`Refusal`]. The table
//! [`FALLBACKS`] lists the parts that may be dropped from a request, in order, and the errnos after which
//! they are dropped. A request remembers its dropped parts and omits them on the next target too.
//!
//! ```text
//! request ──► EACCES ──► without kernel levels ──► EINVAL ──► host and guests together ──► accepted
//!                            FALLBACKS[0]                         FALLBACKS[4]
//! ```
//! [`OpenCache`] checks for `pmc list` which events can be opened. [`cycles`] checks whether the kernel
//! counts cycles.

use std::collections::HashMap;
use std::io;

use super::refusal::Refusal;
use super::request::given_up::{Fallback, GivenUp};
use super::request::{CounterFlags, Levels, Mode, OpenRequest, allocate};
use super::target::{TargetCgroup, TargetSlot};
use crate::event::{EventSource, EventSpec};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::{CPU_CLOCK, CPU_CYCLES};
use pmc_sys::abi::{Attr, branch_sample_type, read_format, sample_type};
use pmc_sys::host::CpuList;
use pmc_sys::sys::errno;
use pmc_sys::sys::perf::EventFd;

/// A row of [`FALLBACKS`]: the part to drop, the errnos and requests to which the row applies, and the change
/// to the attributes.
struct FallbackRow {
    what: Fallback,
    after: &'static [i32],
    applies: fn(&OpenRequest, &Attr) -> bool,
    give_up: fn(&mut Attr),
}

const fn newer(what: Fallback, give_up: fn(&mut Attr)) -> FallbackRow {
    FallbackRow { what, after: &[errno::EINVAL, errno::E2BIG], applies: |_, _| true, give_up }
}

/// The parts of a request that may be dropped, in this order. A row that would change nothing is skipped.
/// Features that pmc requests on its own initiative come last, the newest first.
const FALLBACKS: [FallbackRow; 9] = [
    FallbackRow {
        what: Fallback::UserOnly,
        after: &[errno::EACCES],
        applies: |_, attr| !attr.get(Flag::ExcludeKernel) && !attr.get(Flag::ExcludeUser),
        give_up: |attr| {
            attr.set(Flag::ExcludeKernel, true);
            attr.set(Flag::ExcludeHv, true);
        },
    },
    newer(Fallback::DeferredChains, |attr| {
        attr.set(Flag::DeferCallchain, false);
        attr.set(Flag::DeferOutput, false);
    }),
    FallbackRow {
        what: Fallback::Precision,
        after: &[errno::EINVAL, errno::EOPNOTSUPP, errno::E2BIG, errno::ENOENT, errno::ENODEV],
        applies: |request, _| request.precise_max,
        give_up: |attr| attr.set_precise_ip(attr.precise_ip().saturating_sub(1)),
    },
    FallbackRow {
        what: Fallback::InheritedReads,
        after: &[errno::EINVAL],
        applies: |_, attr| attr.sample_type() & sample_type::READ != 0,
        give_up: Attr::inherit_nothing,
    },
    FallbackRow {
        what: Fallback::HostGuestExclusion,
        after: &[errno::EINVAL],
        applies: |request, _| !request.exclusion_chosen,
        give_up: |attr| {
            attr.set(Flag::ExcludeGuest, false);
            attr.set(Flag::ExcludeHost, false);
        },
    },
    newer(Fallback::LostCount, |attr| attr.set_read_format(attr.read_format() & !read_format::LOST)),
    newer(Fallback::BuildIds, |attr| {
        attr.set(Flag::BuildId, false);
        let fields = attr.sample_type();
        if fields & sample_type::WEIGHT_STRUCT != 0 {
            attr.set_sample_type(fields & !sample_type::WEIGHT_STRUCT | sample_type::WEIGHT);
        }
    }),
    newer(Fallback::KernelSymbols, |attr| {
        attr.set(Flag::Ksymbol, false);
        attr.set(Flag::BpfEvent, false);
        attr.set_branch_sample_type(attr.branch_sample_type() & !branch_sample_type::HW_INDEX);
    }),
    newer(Fallback::ExecNames, |attr| attr.set(Flag::CommExec, false)),
];

impl OpenRequest {
    /// Returns the parts that were dropped because the kernel refused them.
    pub(crate) fn given_up(&self) -> GivenUp {
        self.given_up
    }

    /// Opens the event in a slot. With a cgroup, it counts only that cgroup's tasks. With a `leader`, it
    /// joins the leader's group.
    ///
    /// # Errors
    /// Returns the kernel's last error if no further part can be dropped. Returns `EINVAL` for a slot that
    /// has neither a task nor a CPU.
    pub fn open(
        &mut self,
        slot: TargetSlot,
        cgroup: Option<&TargetCgroup>,
        leader: Option<&EventFd>,
    ) -> Result<EventFd, Box<Refusal>> {
        let Some(target) = slot.target(cgroup) else {
            let error = io::Error::from_raw_os_error(errno::EINVAL);
            return Err(Box::new(self.refusal(&error, self.whole.clone(), slot)));
        };
        self.negotiate(slot, leader.is_some(), |attr| EventFd::open(attr, target, leader))
    }

    /// Opens the event like [`OpenRequest::open`], and also returns its kernel ID.
    pub(super) fn open_with_id(
        &mut self,
        slot: TargetSlot,
        cgroup: Option<&TargetCgroup>,
        leader: Option<&EventFd>,
    ) -> Result<(EventFd, u64), Box<Refusal>> {
        let fd = self.open(slot, cgroup, leader)?;
        let id = fd.id().map_err(|error| self.failed(slot, &error))?;
        Ok((fd, id))
    }

    /// Calls `ask` until it succeeds, dropping a part of the request after each failure. Fails when no
    /// further part can be dropped.
    pub(super) fn negotiate<T>(
        &mut self,
        slot: TargetSlot,
        has_leader: bool,
        mut ask: impl FnMut(&Attr) -> io::Result<T>,
    ) -> Result<T, Box<Refusal>> {
        let (mut attr, mut given_up) = (self.attr.clone(), self.given_up);
        loop {
            let error = match ask(&attr) {
                Ok(opened) => {
                    (self.attr, self.given_up) = (attr, given_up);
                    return Ok(opened);
                }
                Err(error) => error,
            };
            if let Some(row) = error.raw_os_error().and_then(|errno| self.next(errno, &attr)) {
                (FALLBACKS[row].give_up)(&mut attr);
                given_up.add(FALLBACKS[row].what);
                continue;
            }
            // If a PMU cannot exclude the kernel, the fallback to user mode fails with `EINVAL`. The actual
            // cause is insufficient privilege.
            let for_want_of_privilege = given_up.has(Fallback::UserOnly)
                && !self.given_up.has(Fallback::UserOnly)
                && !has_leader
                && error.raw_os_error() == Some(errno::EINVAL);
            return Err(Box::new(match for_want_of_privilege {
                true => self.refusal(&denied(), self.whole.clone(), slot),
                // The kernel refuses the event even without the dropped parts, so they are not the cause.
                false => self.refusal(&error, attr, slot),
            }));
        }
    }

    /// Returns the index of the first fallback row that applies to `attr` after this errno.
    fn next(&self, errno: i32, attr: &Attr) -> Option<usize> {
        FALLBACKS.iter().position(|row| {
            let changes = || {
                let mut less = attr.clone();
                (row.give_up)(&mut less);
                less != *attr
            };
            row.after.contains(&errno) && (row.applies)(self, attr) && changes()
        })
    }

    /// Returns the refusal for an error that occurred after the event was opened.
    pub(super) fn failed(&self, slot: TargetSlot, error: &io::Error) -> Box<Refusal> {
        Box::new(self.refusal(error, self.attr.clone(), slot))
    }

    fn refusal(&self, error: &io::Error, attr: Attr, slot: TargetSlot) -> Refusal {
        Refusal::new(&self.event, attr, slot, error)
    }

    /// Returns the refusal that caused the fallback to user mode, if there was one.
    pub(crate) fn kernel_refusal(&self, slot: TargetSlot) -> Option<Refusal> {
        self.given_up.has(Fallback::UserOnly).then(|| self.refusal(&denied(), self.whole.clone(), slot))
    }
}

/// The error on which a request falls back to user mode.
fn denied() -> io::Error {
    io::Error::from_raw_os_error(errno::EACCES)
}

/// Checks whether the kernel counts (or samples) cycles on this machine.
///
/// # Errors
/// Returns the refusal. Insufficient privilege is not an error here, because the machine may have counters
/// nevertheless.
pub fn cycles(mode: Mode) -> Result<(), Box<Refusal>> {
    let cycles = in_user_mode(kind::HARDWARE, CPU_CYCLES, mode, TargetSlot::OURSELVES);
    cycles.or_else(|refusal| if is_privilege(&refusal) { Ok(()) } else { Err(refusal) })
}

/// Whether this user may sample everything that runs on a CPU.
pub fn may_sample(cpu: u32) -> bool {
    let slot = TargetSlot { tid: None, cpu: Some(cpu) };
    let clock = in_user_mode(kind::SOFTWARE, CPU_CLOCK, Mode::SystemSampling, slot);
    clock.is_ok() || clock.is_err_and(|refusal| !is_privilege(&refusal))
}

fn is_privilege(refusal: &Refusal) -> bool {
    matches!(refusal.errno, Some(errno::EACCES | errno::EPERM))
}

/// Tries to open an event in user mode, which requires the least privilege, because the kernel checks
/// privileges before anything else.
fn in_user_mode(kind: u32, config: u64, mode: Mode, slot: TargetSlot) -> Result<(), Box<Refusal>> {
    /// A long period avoids refusals that are caused by the sample rate limit.
    const PERIOD: u64 = 1 << 20;
    let mut request = allocate(&EventSpec::generic(kind, config), mode, CounterFlags::default(), slot.cpu)?;
    request.levels(Levels::User);
    if mode.samples() {
        request.change(|attr| attr.set_period(PERIOD));
    }
    request.open(slot, None, None).map(drop)
}

/// Result of trying to open an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialOpen {
    /// The event can be opened.
    Opens,
    /// The event can be opened for user mode only; contains the refusal for kernel mode.
    UserOnly(Refusal),
    /// The event cannot be opened.
    Refused(Refusal),
}

/// Tries to open events, and caches the result for each distinct request. Opens them on pmc's own process, or
/// on a CPU if the PMU counts a whole device.
///
/// Closing a tracepoint takes the kernel about 35 ms, so only the first tracepoint is opened. Its result is
/// used for all other tracepoints. Its descriptor stays open until the cache is dropped, so results are not
/// delayed by the slow close.
#[derive(Debug, Default)]
pub struct OpenCache {
    online: CpuList,
    known: HashMap<(Attr, TargetSlot), TrialOpen>,
    tracepoint: Option<TrialOpen>,
    held: Vec<EventFd>,
}

impl OpenCache {
    /// Creates an empty cache. `online` lists the CPUs on which device events may be opened.
    pub fn new(online: &CpuList) -> Self {
        Self { online: online.clone(), ..Self::default() }
    }

    /// Whether the cache holds an open tracepoint, which is slow to close.
    pub fn is_slow_to_close(&self) -> bool {
        !self.held.is_empty()
    }

    /// Tries to open this event, or returns the cached result.
    pub fn trial(&mut self, spec: &EventSpec) -> TrialOpen {
        let EventSource::Kernel(attr) = &spec.source else { return TrialOpen::Opens };
        let tracepoint = attr.kind() == kind::TRACEPOINT;
        if let Some(known) = self.tracepoint.as_ref().filter(|_| tracepoint) {
            return known.clone();
        }
        let device =
            spec.system_wide.then(|| spec.cpus.as_ref()?.intersection(&self.online).first()).flatten();
        let (mode, slot) = match device {
            Some(cpu) => (Mode::SystemCounting, TargetSlot { tid: None, cpu: Some(cpu) }),
            None => (Mode::TaskCounting, TargetSlot::OURSELVES),
        };
        let request = match allocate(spec, mode, CounterFlags::default(), device) {
            Ok(request) => request,
            Err(refusal) => return TrialOpen::Refused(*refusal),
        };
        let key = (request.attr().clone(), slot);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let outcome = self.open(request, slot);
        if tracepoint {
            self.tracepoint = Some(outcome.clone());
        } else {
            self.known.insert(key, outcome.clone());
        }
        outcome
    }

    fn open(&mut self, mut request: OpenRequest, slot: TargetSlot) -> TrialOpen {
        let event = match request.open(slot, None, None) {
            Ok(event) => event,
            Err(refusal) => return TrialOpen::Refused(*refusal),
        };
        let tracepoint = request.attr().kind() == kind::TRACEPOINT;
        if tracepoint {
            self.held.push(event);
        }
        match request.kernel_refusal(slot) {
            None => TrialOpen::Opens,
            // Tracepoints fire in kernel mode. A tracepoint restricted to user mode opens but never counts.
            Some(refusal) if tracepoint => TrialOpen::Refused(refusal),
            Some(refusal) => TrialOpen::UserOnly(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusal::RefusalKind;
    use super::super::request::sampling::{SampleOptions, SampleRole};
    use super::*;
    use crate::event::parse;
    use pmc_sys::host::Host;

    #[test]
    fn each_row_is_opened_separately() {
        for row in &FALLBACKS {
            let mut given_up = GivenUp::default();
            given_up.add(row.what);
            assert!(FALLBACKS.iter().all(|other| given_up.has(other.what) == (other.what == row.what)));
        }
    }

    /// Opens a request against a fake kernel that answers by `rule`. Returns the parts that were dropped
    /// before the request succeeded, or the refusal's errno.
    fn given_up(text: &str, rule: impl Fn(&Attr) -> Option<i32>) -> Result<Vec<Fallback>, Option<i32>> {
        let spec = parse(text, &Host::live()).unwrap()[0].events[0].clone();
        let role = SampleRole { tracks: true, leads: true, ..SampleRole::default() };
        let options = SampleOptions { fields: sample_type::WEIGHT_STRUCT, ..SampleOptions::default() };
        let mut request = super::super::request::sampling::request(&spec, &options, role).unwrap();
        let answer =
            |attr: &Attr| rule(attr).map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)));
        request.negotiate(TargetSlot::OURSELVES, false, answer).map_err(|refusal| refusal.errno)?;
        Ok(FALLBACKS.iter().map(|row| row.what).filter(|&what| request.given_up().has(what)).collect())
    }

    #[test]
    fn fallbacks_are_tried_in_order_and_end() {
        use Fallback::*;
        assert_eq!(given_up("cycles:P", |_| None), Ok(vec![]));
        assert_eq!(given_up("cycles:P", |_| Some(errno::EINVAL)), Err(Some(errno::EINVAL)));
        let old_kernel = |attr: &Attr| {
            let new = attr.get(Flag::CommExec) || attr.precise_ip() > 1;
            new.then_some(errno::EINVAL)
        };
        let newer = [LostCount, BuildIds, KernelSymbols, ExecNames];
        let after = |first| [&[first], newer.as_slice()].concat();
        assert_eq!(given_up("cycles:P", old_kernel), Ok(after(Precision)));
        assert_eq!(given_up("cycles", old_kernel), Ok(after(HostGuestExclusion)));
        let unknown_fields =
            |attr: &Attr| (attr.read_format() & read_format::LOST != 0).then_some(errno::E2BIG);
        assert_eq!(given_up("cpu-clock", unknown_fields), Ok(vec![LostCount]));
        assert_eq!(given_up("cycles", |_| Some(errno::ENOENT)), Err(Some(errno::ENOENT)));
    }

    #[test]
    fn modifiers_from_event_text_are_kept() {
        let needs_both = |attr: &Attr| attr.get(Flag::ExcludeHost).then_some(errno::EINVAL);
        assert_eq!(given_up("cpu-clock:G", needs_both), Err(Some(errno::EINVAL)));
        let no_guests = |attr: &Attr| attr.get(Flag::ExcludeGuest).then_some(errno::EINVAL);
        assert_eq!(given_up("cpu-clock", no_guests), Ok(vec![Fallback::HostGuestExclusion]));
        let precise = |attr: &Attr| (attr.precise_ip() > 0).then_some(errno::EOPNOTSUPP);
        assert_eq!(given_up("cycles:pp", precise), Err(Some(errno::EOPNOTSUPP)));
    }

    #[test]
    fn older_kernels_do_not_read_inherited_counts() {
        let before_6_13 = |attr: &Attr| {
            let reads = attr.sample_type() & sample_type::READ != 0;
            (reads && attr.get(Flag::Inherit)).then_some(errno::EINVAL)
        };
        assert_eq!(given_up("{cpu-clock,page-faults}:S", before_6_13), Ok(vec![Fallback::InheritedReads]));
        assert_eq!(given_up("{cpu-clock,page-faults}:S", |_| None), Ok(vec![]));
    }

    #[test]
    fn unprivileged_user_falls_back_to_user_mode() {
        let paranoid = |attr: &Attr| (!attr.get(Flag::ExcludeKernel)).then_some(errno::EACCES);
        assert_eq!(given_up("cpu-clock", paranoid), Ok(vec![Fallback::UserOnly]));
        assert_eq!(given_up("cpu-clock:k", paranoid), Err(Some(errno::EACCES)));
        // A device PMU does not support privilege levels, so the cause is insufficient privilege.
        let device =
            |attr: &Attr| Some(if attr.get(Flag::ExcludeKernel) { errno::EINVAL } else { errno::EACCES });
        assert_eq!(given_up("cpu-clock", device), Err(Some(errno::EACCES)));
        let deeper =
            |attr: &Attr| Some(if attr.get(Flag::ExcludeKernel) { errno::ENOENT } else { errno::EACCES });
        assert_eq!(given_up("cpu-clock", deeper), Err(Some(errno::ENOENT)));
    }

    #[test]
    fn equal_requests_are_tried_once() {
        let host = Host::live();
        let mut cache = OpenCache::new(&host.online_cpus());
        let mut trial = |text: &str| {
            let groups = parse(text, &host).unwrap();
            cache.trial(&groups[0].events[0])
        };
        assert_eq!(trial("page-faults"), trial("faults"));
        assert_eq!(trial("duration_time"), TrialOpen::Opens);
        let TrialOpen::Refused(refusal) = trial("1:99") else { panic!("no kernel has software event 99") };
        let refusal = refusal.explain(&Default::default());
        assert!(refusal.cause.contains("99") && refusal.kind == RefusalKind::NoHardware, "{refusal:?}");
        assert_eq!(cache.known.len(), 2, "page-faults and faults are one request");
    }
}
