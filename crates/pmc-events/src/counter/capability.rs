//! Tests which use cases of pmc work for this user on this machine, by opening the events that each use case
//! needs.
//!
//! Takes [`MachineFacts`], a tracepoint's ID, and a [`Kernel`] that answers requests (the real kernel, or a
//! fake one in tests). Returns a [`Capability`] for each use case. pmc does not predict results from kernel
//! settings; it uses settings only to explain the kernel's refusals.
//!
//! ```text
//! software event --opens--> ring --mapped--> hardware event --opens--> works
//!      | | in user mode only    | small ring only      | refused
//!      | +--> limited: kernel mode missing             +--> limited: hardware events missing
//!      | refused                +--> limited: large rings missing
//!      v
//!    does not work
//! ```

use super::facts::MachineFacts;
use super::refusal::{Explanation, Refusal};
use super::request::sampling::{self, CallGraph, DEFAULT_STACK, Rate, SampleOptions, SampleRole};
use super::request::{CounterFlags, Levels, Mode, OpenRequest, allocate};
use super::target::TargetSlot;
use crate::event::EventSpec;
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::branch_sample_type;
use pmc_sys::abi::generic::{CPU_CLOCK, CPU_CYCLES};
use pmc_sys::sys::header_page::HeaderPage;
use pmc_sys::sys::page_size;
use pmc_sys::sys::perf::EventFd;

/// Whether a use case works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseCaseStatus {
    /// The use case works fully.
    Works,
    /// The use case works partially.
    Limited,
    /// The use case does not work.
    Not,
}

/// The result for one use case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// What was tested.
    pub use_case: UseCase,
    /// Its purpose, in words.
    pub purpose: &'static str,
    /// Whether it works.
    pub status: UseCaseStatus,
    /// The parts that do not work, with the reasons. An empty name means the whole use case.
    pub missing: Vec<(&'static str, Explanation)>,
}

/// Accepts or refuses requests: the running kernel, or a fake one in tests.
pub trait Kernel {
    /// Opens an event, maps a ring of `pages` pages (none if `pages` is 0), and closes both.
    ///
    /// # Errors
    /// Returns the refusal of the call that failed.
    fn accepts(
        &mut self,
        request: &mut OpenRequest,
        slot: TargetSlot,
        ring_pages: usize,
    ) -> Result<(), Box<Refusal>>;
}

/// The running kernel. Closing a tracepoint takes about 35 ms, so tracepoints stay open until this value is
/// dropped.
#[derive(Debug, Default)]
pub struct ThisKernel {
    held: Vec<EventFd>,
}

impl ThisKernel {
    /// Whether a tracepoint is still open.
    pub fn is_slow_to_close(&self) -> bool {
        !self.held.is_empty()
    }
}

impl Kernel for ThisKernel {
    fn accepts(
        &mut self,
        request: &mut OpenRequest,
        slot: TargetSlot,
        ring_pages: usize,
    ) -> Result<(), Box<Refusal>> {
        let event = request.open(slot, None, None)?;
        if ring_pages > 0
            && let Err(error) = HeaderPage::map_with_ring(&event, ring_pages)
        {
            return Err(ring_refused(request, ring_pages, &error));
        }
        if request.attr().kind() == kind::TRACEPOINT {
            self.held.push(event);
        }
        Ok(())
    }
}

fn ring_refused(request: &OpenRequest, pages: usize, error: &std::io::Error) -> Box<Refusal> {
    let bytes = (pages as u64 + 1) * page_size() as u64;
    Box::new(Refusal::of_ring(request.event(), request.attr().clone(), bytes, error))
}

/// How a use case measures its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventUse {
    Count,
    Sample,
    CopyStack,
    Branches,
    Tracepoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CapabilityScope {
    Own,
    Others,
    Cpus,
}

/// A use of events that may need a privilege or hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the table below says what each one is for")]
pub enum UseCase {
    CountCommand,
    CountProcess,
    CountCpus,
    CountTracepoints,
    SampleCommand,
    SampleCpus,
    CopyStacks,
    SampleBranches,
    WatchCpus,
}

/// The use cases to test: purpose, kind of measurement, and scope.
const USES: [(UseCase, &str, EventUse, CapabilityScope); 9] = [
    (UseCase::CountCommand, "count a command", EventUse::Count, CapabilityScope::Own),
    (UseCase::CountProcess, "count another user's process", EventUse::Count, CapabilityScope::Others),
    (UseCase::CountCpus, "count all CPUs", EventUse::Count, CapabilityScope::Cpus),
    (UseCase::CountTracepoints, "count tracepoints", EventUse::Tracepoint, CapabilityScope::Own),
    (UseCase::SampleCommand, "sample a command", EventUse::Sample, CapabilityScope::Own),
    (UseCase::SampleCpus, "sample all CPUs", EventUse::Sample, CapabilityScope::Cpus),
    (UseCase::CopyStacks, "stacks without frame pointers", EventUse::CopyStack, CapabilityScope::Own),
    (UseCase::SampleBranches, "taken branches", EventUse::Branches, CapabilityScope::Own),
    (UseCase::WatchCpus, "watch all CPUs", EventUse::Sample, CapabilityScope::Cpus),
];

/// Number of ring pages for sampling: the default limit of `perf_event_mlock_kb` with 4 KiB pages.
const RING_PAGES: usize = 128;
/// Number of pages in the smallest useful ring.
const SMALL_RING_PAGES: usize = 8;
/// Sample frequency, in Hz.
const FREQUENCY: u64 = 1000;

/// Tests every use case. `tracepoint` is the ID of a common tracepoint, or the reason why no tracepoint is
/// available.
pub fn capabilities(
    kernel: &mut dyn Kernel,
    facts: &MachineFacts,
    tracepoint: &Result<u64, Explanation>,
) -> Vec<Capability> {
    USES.iter()
        .map(|&(use_case, purpose, use_, scope)| {
            let mut trial = UseCaseTest { kernel, facts, use_, scope, missing: Vec::new() };
            let usable = match (use_, tracepoint) {
                (EventUse::Tracepoint, Err(why)) => trial.lacks("", why.clone()),
                (EventUse::Tracepoint, Ok(id)) => trial.opens("", kind::TRACEPOINT, *id),
                (EventUse::Branches, _) => trial.opens("", kind::HARDWARE, CPU_CYCLES),
                _ => trial.climb(),
            };
            let status = match (usable, trial.missing.is_empty()) {
                (false, _) => UseCaseStatus::Not,
                (true, false) => UseCaseStatus::Limited,
                (true, true) => UseCaseStatus::Works,
            };
            Capability { use_case, purpose, status, missing: trial.missing }
        })
        .collect()
}

struct UseCaseTest<'a> {
    kernel: &'a mut dyn Kernel,
    facts: &'a MachineFacts,
    use_: EventUse,
    scope: CapabilityScope,
    missing: Vec<(&'static str, Explanation)>,
}

impl UseCaseTest<'_> {
    /// Tries the steps in the module's diagram. Returns `false` if the use case does not work at all.
    fn climb(&mut self) -> bool {
        let mut clock = match self.request(kind::SOFTWARE, CPU_CLOCK) {
            Ok(clock) => clock,
            Err(refusal) => return self.refused("", &refusal),
        };
        let slot = self.slot();
        if let Err(refusal) = self.kernel.accepts(&mut clock, slot, 0) {
            return self.refused("", &refusal);
        }
        let samples = matches!(self.use_, EventUse::Sample | EventUse::CopyStack);
        if samples && let Err(large) = self.kernel.accepts(&mut clock, slot, RING_PAGES) {
            if let Err(small) = self.kernel.accepts(&mut clock, slot, SMALL_RING_PAGES) {
                return self.refused("", &small);
            }
            self.refused("large rings", &large);
        }
        if let Some(refusal) = clock.kernel_refusal(slot) {
            self.refused("kernel mode", &refusal);
        }
        self.opens("hardware events", kind::HARDWARE, CPU_CYCLES);
        true
    }

    fn opens(&mut self, missing: &'static str, kind: u32, config: u64) -> bool {
        let slot = self.slot();
        let opened = self.request(kind, config).and_then(|mut one| self.kernel.accepts(&mut one, slot, 0));
        opened.map_or_else(|refusal| self.refused(missing, &refusal), |()| true)
    }

    fn refused(&mut self, missing: &'static str, refusal: &Refusal) -> bool {
        self.lacks(missing, refusal.explain(self.facts))
    }

    fn lacks(&mut self, missing: &'static str, why: Explanation) -> bool {
        self.missing.push((missing, why));
        false
    }

    fn slot(&self) -> TargetSlot {
        match self.scope {
            CapabilityScope::Own => TargetSlot::OURSELVES,
            CapabilityScope::Others => TargetSlot { tid: Some(1), cpu: None },
            CapabilityScope::Cpus => {
                TargetSlot { tid: None, cpu: Some(self.facts.online.first().unwrap_or(0)) }
            }
        }
    }

    /// Returns the use case's request for this event.
    fn request(&self, kind: u32, config: u64) -> Result<OpenRequest, Box<Refusal>> {
        let spec = EventSpec::generic(kind, config);
        let (system, cpu) = (self.scope == CapabilityScope::Cpus, self.slot().cpu);
        if matches!(self.use_, EventUse::Count | EventUse::Tracepoint) {
            let mode = if system { Mode::SystemCounting } else { Mode::TaskCounting };
            return allocate(&spec, mode, CounterFlags::default(), cpu);
        }
        let allowed = self.facts.settings.max_sample_rate.unwrap_or(FREQUENCY);
        let branches = branch_sample_type::USER | branch_sample_type::ANY;
        let options = SampleOptions {
            rate: Rate::Frequency(allowed.clamp(1, FREQUENCY)),
            call_graph: match self.use_ {
                EventUse::CopyStack => Some(CallGraph::Dwarf(DEFAULT_STACK)),
                EventUse::Branches => None,
                EventUse::Count | EventUse::Sample | EventUse::Tracepoint => Some(CallGraph::Fp),
            },
            branches: (self.use_ == EventUse::Branches).then_some(branches),
            levels: if self.use_ == EventUse::Branches { Levels::User } else { Levels::AsWritten },
            inherit: false,
            ..SampleOptions::default()
        };
        sampling::request(&spec, &options, SampleRole { leads: true, system, ..SampleRole::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::refusal::RefusalKind;
    use crate::hint::Hint;
    use crate::kit::test_data;
    use pmc_sys::abi::Attr;
    use pmc_sys::abi::attr::Flag;
    use pmc_sys::host::Host;
    use pmc_sys::sys::credentials::Credentials;
    use pmc_sys::sys::errno;

    /// A fake kernel that answers according to a rule.
    struct Rule<F>(F);

    impl<F: FnMut(&Attr, TargetSlot, usize) -> Result<(), i32>> Kernel for Rule<F> {
        fn accepts(
            &mut self,
            request: &mut OpenRequest,
            slot: TargetSlot,
            ring: usize,
        ) -> Result<(), Box<Refusal>> {
            request.negotiate(slot, false, |attr| {
                (self.0)(attr, slot, 0).map_err(std::io::Error::from_raw_os_error)
            })?;
            let mapped = if ring > 0 { (self.0)(request.attr(), slot, ring) } else { Ok(()) };
            mapped.map_err(|errno| ring_refused(request, ring, &std::io::Error::from_raw_os_error(errno)))
        }
    }

    fn tried(
        machine: &str,
        uid: u32,
        rule: impl FnMut(&Attr, TargetSlot, usize) -> Result<(), i32>,
    ) -> Vec<Capability> {
        let bits = if uid == 0 { u64::MAX } else { 0 };
        let facts = MachineFacts::read(
            &Host::rooted(test_data(&format!("host/{machine}"))),
            Credentials { uid, capabilities: bits, ..Credentials::default() },
        );
        capabilities(&mut Rule(rule), &facts, &Ok(77))
    }

    fn capability(all: &[Capability], use_case: UseCase) -> &Capability {
        all.iter().find(|one| one.use_case == use_case).unwrap()
    }

    #[test]
    fn kernel_with_all_features() {
        let all = tried("two-sockets", 0, |_, _, _| Ok(()));
        assert!(all.iter().all(|one| one.status == UseCaseStatus::Works), "{all:?}");
    }

    #[test]
    fn machine_without_hardware_counters() {
        let all = tried("vm-without-pmu", 0, |attr, _, _| {
            if attr.kind() == kind::HARDWARE { Err(errno::ENOENT) } else { Ok(()) }
        });
        let stat = capability(&all, UseCase::CountCommand);
        assert_eq!(stat.status, UseCaseStatus::Limited);
        assert_eq!(stat.missing[0].0, "hardware events");
        assert!(stat.missing[0].1.cause.contains("virtual machine"));
        assert_eq!(capability(&all, UseCase::SampleBranches).status, UseCaseStatus::Not);
        assert_eq!(capability(&all, UseCase::CountTracepoints).status, UseCaseStatus::Works);
    }

    #[test]
    fn user_with_paranoid_level_2() {
        let all = tried("two-sockets", 1000, |attr, slot, _| {
            let own = slot == TargetSlot::OURSELVES;
            if own && attr.get(Flag::ExcludeKernel) { Ok(()) } else { Err(errno::EACCES) }
        });
        let stat = capability(&all, UseCase::CountCommand);
        assert_eq!(stat.status, UseCaseStatus::Limited);
        assert_eq!(stat.missing.len(), 1);
        assert_eq!(stat.missing[0].0, "kernel mode");
        for use_case in [UseCase::CountCpus, UseCase::WatchCpus, UseCase::CountProcess] {
            let one = capability(&all, use_case);
            assert_eq!(one.status, UseCaseStatus::Not, "{use_case:?}");
            assert_eq!(one.missing[0].1.kind, RefusalKind::NoPrivilege);
        }
        assert_eq!(capability(&all, UseCase::SampleCommand).status, UseCaseStatus::Limited);
    }

    #[test]
    fn user_without_ring_memory() {
        let all =
            tried(
                "two-sockets",
                1000,
                |_, _, ring| {
                    if ring > SMALL_RING_PAGES { Err(errno::EPERM) } else { Ok(()) }
                },
            );
        let record = capability(&all, UseCase::SampleCommand);
        assert_eq!((record.status, record.missing[0].0), (UseCaseStatus::Limited, "large rings"));
        assert_eq!(record.missing[0].1.remedy, Hint::SmallerRings);
        assert_eq!(capability(&all, UseCase::CountCommand).status, UseCaseStatus::Works);
    }
}
