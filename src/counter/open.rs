//! The one door: a checked [`Request`] is opened on a target, and loses on the way only what the kernel will
//! not have.
//!
//! Receives a [`Request`] and a [`TargetSlot`]; hands on an open event, or the [`Refusal`]. What may be given
//! up, after which answer, in which order, is one table, [`FALLBACKS`]. A request remembers what it gave up,
//! so that it asks for no more on the next target.
//!
//! ```text
//! request ──► EACCES ──► without the kernel's part ──► EINVAL ──► host and guests together ──► taken
//!                             FALLBACKS[0]                            FALLBACKS[4]
//! ```
//! [`OpenCache`] opens for trial: what `pmc list` shows, and whether there are cycles at all.

use std::collections::HashMap;
use std::io;

use super::refusal::Refusal;
use super::request::given_up::{Fallback, GivenUp};
use super::request::{Flags, Levels, Mode, Request, allocate};
use super::target::{Cgroup, TargetSlot};
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CPU_CLOCK, CPU_CYCLES};
use crate::abi::{Attr, branch_sample_type, read_format, sample_type};
use crate::event::{EventSpec, Source};
use crate::host::CpuList;
use crate::sys::errno;
use crate::sys::perf::EventFd;

/// One row of the table: what is given up, after which answers of the kernel, from which requests, and how.
struct FallbackRow {
    what: Fallback,
    after: &'static [i32],
    applies: fn(&Request, &Attr) -> bool,
    give_up: fn(&mut Attr),
}

const fn newer(what: Fallback, give_up: fn(&mut Attr)) -> FallbackRow {
    FallbackRow { what, after: &[errno::EINVAL, errno::E2BIG], applies: |_, _| true, give_up }
}

/// What may be given up, in this order; a row that changes nothing is skipped. What pmc asks for of its own
/// accord comes last, the newest features first.
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

impl Request {
    /// What the kernel would not have.
    pub fn given_up(&self) -> GivenUp {
        self.given_up
    }

    /// Opens the event in a slot, for the tasks of a cgroup only if there is one, in the group of `leader` if
    /// there is one.
    ///
    /// # Errors
    /// What the kernel said when nothing more could be given up; `EINVAL` for a slot that is neither
    /// a task nor a CPU.
    pub fn open(
        &mut self,
        slot: TargetSlot,
        cgroup: Option<&Cgroup>,
        leader: Option<&EventFd>,
    ) -> Result<EventFd, Box<Refusal>> {
        let Some(target) = slot.target(cgroup) else {
            let error = io::Error::from_raw_os_error(errno::EINVAL);
            return Err(Box::new(self.refusal(&error, self.whole.clone(), slot)));
        };
        self.negotiate(slot, leader.is_some(), |attr| EventFd::open(attr, target, leader))
    }

    /// Asks until an answer is yes, or nothing is left to be given up.
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
            // A PMU that cannot leave out the kernel does not know what `user mode only` means: privilege is
            // what is missing.
            let for_want_of_privilege = given_up.has(Fallback::UserOnly)
                && !self.given_up.has(Fallback::UserOnly)
                && !has_leader
                && error.raw_os_error() == Some(errno::EINVAL);
            return Err(Box::new(match for_want_of_privilege {
                true => self.refusal(&denied(), self.whole.clone(), slot),
                // What was given up explains nothing: it is refused without that, too.
                false => self.refusal(&error, attr, slot),
            }));
        }
    }

    /// The first row that may follow this answer to `attr`.
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

    fn refusal(&self, error: &io::Error, attr: Attr, slot: TargetSlot) -> Refusal {
        Refusal::new(&self.event, attr, slot, error)
    }

    /// Where the kernel's levels were given up: the refusal that led to it.
    pub fn kernel_refusal(&self, slot: TargetSlot) -> Option<Refusal> {
        self.given_up.has(Fallback::UserOnly).then(|| self.refusal(&denied(), self.whole.clone(), slot))
    }
}

/// The answer after which the kernel's levels are given up.
fn denied() -> io::Error {
    io::Error::from_raw_os_error(errno::EACCES)
}

/// Whether the kernel counts (or samples) cycles at all here.
///
/// # Errors
/// The refusal, if it is not for lack of privilege: that says nothing about counters.
pub fn cycles(mode: Mode) -> Result<(), Box<Refusal>> {
    let cycles = in_user_mode(kind::HARDWARE, CPU_CYCLES, mode, TargetSlot::OURSELVES);
    cycles.or_else(|refusal| if is_privilege(&refusal) { Ok(()) } else { Err(refusal) })
}

/// Whether this user may sample all that runs on a CPU.
pub fn may_sample(cpu: u32) -> bool {
    let slot = TargetSlot { tid: None, cpu: Some(cpu) };
    let clock = in_user_mode(kind::SOFTWARE, CPU_CLOCK, Mode::SystemSampling, slot);
    clock.is_ok() || clock.is_err_and(|refusal| !is_privilege(&refusal))
}

fn is_privilege(refusal: &Refusal) -> bool {
    matches!(refusal.errno, Some(errno::EACCES | errno::EPERM))
}

/// Opens an event for trial in user mode, which needs the least privilege: the kernel looks at that first.
fn in_user_mode(kind: u32, config: u64, mode: Mode, slot: TargetSlot) -> Result<(), Box<Refusal>> {
    /// Few samples, so that no limit of their rate is the reason.
    const PERIOD: u64 = 1 << 20;
    let mut request = allocate(&EventSpec::generic(kind, config), mode, Flags::default(), slot.cpu)?;
    request.levels(Levels::User);
    if mode.samples() {
        request.change(|attr| attr.set_period(PERIOD));
    }
    request.open(slot, None, None).map(drop)
}

/// Whether an event opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialOpen {
    /// As it is.
    Opens,
    /// Only in user mode: why not in the kernel.
    UserOnly(Refusal),
    /// Not: why.
    Refused(Refusal),
}

/// Opens events for trial, for our own process or on a CPU where the PMU counts a whole device: each distinct
/// request once.
///
/// Tracepoints are not tried one by one, since the kernel takes some 35 ms to close each: the first one that
/// is asked about stands for all, and its descriptor stays open until the whole is dropped, so that the
/// answer is not kept waiting.
#[derive(Debug, Default)]
pub struct OpenCache {
    online: CpuList,
    known: HashMap<(Attr, TargetSlot), TrialOpen>,
    tracepoint: Option<TrialOpen>,
    held: Vec<EventFd>,
}

impl OpenCache {
    /// Nothing is tried yet. `online`: the CPUs on which devices may be counted.
    pub fn new(online: &CpuList) -> Self {
        Self { online: online.clone(), ..Self::default() }
    }

    /// Whether a tracepoint is held open, whose closing the kernel takes its time for.
    pub fn is_slow_to_close(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether this event opens.
    pub fn trial(&mut self, spec: &EventSpec) -> TrialOpen {
        let Source::Kernel(attr) = &spec.source else { return TrialOpen::Opens };
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
        let request = match allocate(spec, mode, Flags::default(), device) {
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

    fn open(&mut self, mut request: Request, slot: TargetSlot) -> TrialOpen {
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
            // A tracepoint fires in the kernel: in user mode it opens and never counts.
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
    use crate::host::Host;

    #[test]
    fn each_row_is_counted_by_itself() {
        for row in &FALLBACKS {
            let mut given_up = GivenUp::default();
            given_up.add(row.what);
            assert!(FALLBACKS.iter().all(|other| given_up.has(other.what) == (other.what == row.what)));
        }
    }

    /// Answers by a rule, and what was given up until it said yes, or the errno of the refusal.
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
    fn fallbacks_are_taken_in_order_and_end() {
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
    fn what_the_text_chose_is_kept() {
        let needs_both = |attr: &Attr| attr.get(Flag::ExcludeHost).then_some(errno::EINVAL);
        assert_eq!(given_up("cpu-clock:G", needs_both), Err(Some(errno::EINVAL)));
        let no_guests = |attr: &Attr| attr.get(Flag::ExcludeGuest).then_some(errno::EINVAL);
        assert_eq!(given_up("cpu-clock", no_guests), Ok(vec![Fallback::HostGuestExclusion]));
        let precise = |attr: &Attr| (attr.precise_ip() > 0).then_some(errno::EOPNOTSUPP);
        assert_eq!(given_up("cycles:pp", precise), Err(Some(errno::EOPNOTSUPP)));
    }

    #[test]
    fn older_kernels_read_no_counts_of_children() {
        let before_6_13 = |attr: &Attr| {
            let reads = attr.sample_type() & sample_type::READ != 0;
            (reads && attr.get(Flag::Inherit)).then_some(errno::EINVAL)
        };
        assert_eq!(given_up("{cpu-clock,page-faults}:S", before_6_13), Ok(vec![Fallback::InheritedReads]));
        assert_eq!(given_up("{cpu-clock,page-faults}:S", |_| None), Ok(vec![]));
    }

    #[test]
    fn who_may_not_see_the_kernel_sees_user_mode() {
        let paranoid = |attr: &Attr| (!attr.get(Flag::ExcludeKernel)).then_some(errno::EACCES);
        assert_eq!(given_up("cpu-clock", paranoid), Ok(vec![Fallback::UserOnly]));
        assert_eq!(given_up("cpu-clock:k", paranoid), Err(Some(errno::EACCES)));
        // The PMU of a device knows no levels: what is missing is the privilege.
        let device =
            |attr: &Attr| Some(if attr.get(Flag::ExcludeKernel) { errno::EINVAL } else { errno::EACCES });
        assert_eq!(given_up("cpu-clock", device), Err(Some(errno::EACCES)));
        let deeper =
            |attr: &Attr| Some(if attr.get(Flag::ExcludeKernel) { errno::ENOENT } else { errno::EACCES });
        assert_eq!(given_up("cpu-clock", deeper), Err(Some(errno::ENOENT)));
    }

    #[test]
    fn the_same_request_is_tried_once() {
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
