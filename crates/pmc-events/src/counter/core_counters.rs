//! Determines how many counters each core has, how wide they are, and how many are free, by querying the CPU
//! and by opening trial events.
//!
//! Takes [`MachineFacts`] (the list of core PMUs); returns a [`CoreUnit`] for each kind of core. The results
//! come from two sources and are reported separately: the CPU (CPUID, x86 only), and the kernel, which
//! refuses a group that does not fit:
//!
//! ```text
//! leader      pinned  event A   accepted
//! member 1            event A   accepted
//!  ...
//! member n            event A   EINVAL  -> n general counters
//! + cycles, instructions, ref-cycles: each event that is still accepted has a fixed counter
//! ```
//! It then briefly enables smaller and smaller groups until the kernel can schedule one. The size of that
//! group is the number of free counters. This corresponds to NetBSD's `pmc_get_num_counters` and busy state,
//! but requires no table of CPU models.

use std::time::{Duration, Instant};

use super::facts::{KnownPmu, MachineFacts};
use super::refusal::Refusal;
use super::request::{CounterFlags, CountingStart, OpenRequest};
use super::target::TargetSlot;
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic;
use pmc_sys::host::CpuList;
use pmc_sys::sys::arch::{self, CoreCounters};
use pmc_sys::sys::header_page::HeaderPage;
use pmc_sys::sys::perf::EventFd;
use pmc_text::units::Count;

/// The counters of one kind of core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreUnit {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// The CPUs that have this PMU; `None` for all.
    pub cpus: Option<CpuList>,
    /// The counters reported by the CPU.
    pub claimed: Option<CoreCounters>,
    /// The counters found by opening events; `None` if the kernel accepts no suitable event.
    pub probed: Option<ProbedCounters>,
    /// Counter width in bits, from the kernel's shared page; `None` if not available.
    pub width: Option<u16>,
}

/// Counters found by opening events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedCounters {
    /// Number of general counters.
    pub general: u32,
    /// Number of additional counters that accepted cycles, instructions or ref-cycles while the general
    /// counters were full.
    pub fixed: u32,
    /// Number of general counters that are currently free; `None` if unknown.
    pub free: Option<u32>,
    /// The event used for probing.
    pub event: &'static str,
}

/// Generic hardware events used to probe for general counters. Events without a fixed counter on any CPU come
/// first. Instructions come last, since they usually have a fixed counter.
const GENERAL_EVENTS: [u64; 7] = [5, 4, 2, 3, 7, 8, 1];

/// Generic hardware events that have a fixed counter on many CPUs.
const FIXED_EVENTS: [u64; 3] = [0, 1, 9];

/// Upper bound on the number of counters per core.
const MOST_COUNTERS: usize = 64;

/// How long a trial event runs.
const MOMENT: Duration = Duration::from_micros(300);

/// State of an event, derived from its enabled and running times (NetBSD: `pmc_counter_isconfigured`,
/// `pmc_counter_isrunning`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CounterState {
    /// The event was not enabled, or its task did not run.
    Idle,
    /// The event was on a counter all the time.
    Running,
    /// The event shared its counter with other events, and was on it for this fraction of the time (0 to 1).
    Shared(f64),
    /// The event was enabled, but never on a counter: the counters are busy.
    Waiting,
}

impl CounterState {
    /// Computes the state from two readings of the same event.
    pub(crate) fn between(earlier: Count, later: Count) -> Self {
        let passed = later.since(earlier);
        match (passed.enabled_ns, passed.running_ns) {
            (0, _) => Self::Idle,
            (_, 0) => Self::Waiting,
            (enabled, running) if running >= enabled => Self::Running,
            _ => Self::Shared(passed.share()),
        }
    }
}

/// Finds the counters of every kind of core in this machine. Takes a few milliseconds per kind. The result is
/// empty if no core PMU is registered.
pub fn core_units(facts: &MachineFacts) -> Vec<CoreUnit> {
    facts.core_pmus().map(|pmu| on_a_core_of(pmu, || core_unit(pmu, facts))).collect()
}

/// Runs `ask` on a thread pinned to the CPUs of this PMU. On a hybrid machine, the results apply to the core
/// on which `ask` runs.
fn on_a_core_of<T: Send>(pmu: &KnownPmu, ask: impl Fn() -> T + Send + Sync) -> T {
    let Some(cpus) = pmu.cpus.as_ref().filter(|cpus| !cpus.is_empty()) else { return ask() };
    let moved = || {
        let mut set = rustix::thread::CpuSet::new();
        for cpu in cpus.iter().filter(|&cpu| (cpu as usize) < rustix::thread::CpuSet::MAX_CPU) {
            set.set(cpu as usize);
        }
        // If pinning fails, the kernel's decisions about groups are still valid.
        let _ = rustix::thread::sched_setaffinity(None, &set);
        ask()
    };
    std::thread::scope(|scope| match scope.spawn(moved).join() {
        Ok(answer) => answer,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn core_unit(pmu: &KnownPmu, facts: &MachineFacts) -> CoreUnit {
    let hybrid = facts.core_pmus().count() > 1;
    let generic = |number: u64| {
        let named = if hybrid { u64::from(pmu.kind) << 32 } else { 0 };
        request(named | number).ok()
    };
    CoreUnit {
        pmu: pmu.name.clone(),
        cpus: pmu.cpus.clone(),
        claimed: arch::counters(),
        probed: probe(&generic),
        width: GENERAL_EVENTS.iter().find_map(|&number| width(generic(number)?)),
    }
}

fn request(config: u64) -> Result<OpenRequest, Box<Refusal>> {
    OpenRequest::in_user_mode(kind::HARDWARE, config, CounterFlags::default())
}

/// Finds the event whose copies occupy the most counters. The size of their group is the number of counters.
fn probe(generic: &impl Fn(u64) -> Option<OpenRequest>) -> Option<ProbedCounters> {
    // Instructions are tried last, and only if no other event opens, because their fixed counter would be
    // mistaken for a general counter.
    let (instructions, others) = GENERAL_EVENTS.split_last()?;
    let mut best: Option<(u64, Vec<EventFd>)> = None;
    for &number in others.iter().chain(std::iter::once(instructions)) {
        if number == *instructions && best.is_some() {
            break;
        }
        let group = fill(&generic(number)?, MOST_COUNTERS);
        if group.len() > best.as_ref().map_or(0, |(_, group)| group.len()) {
            best = Some((number, group));
        }
    }
    let (number, group) = best?;
    let leader = group.first()?;
    let mut fixed = Vec::new();
    for &own in FIXED_EVENTS.iter().filter(|&&own| own != number) {
        fixed.extend(member(&generic(own)?, leader));
    }
    let (general, fixed) = (group.len(), fixed.len());
    drop(group);
    let request = generic(number)?;
    let free = (1..=general).rev().find(|&size| takes(&fill(&request, size)));
    Some(ProbedCounters {
        general: general as u32,
        fixed: fixed as u32,
        free: Some(free.unwrap_or(0) as u32),
        event: generic::name_of(kind::HARDWARE, number).unwrap_or("raw"),
    })
}

/// Opens up to `most` copies of an event in one pinned group, until the kernel refuses.
///
/// A pinned group is either scheduled immediately or permanently in the error state. To remain disabled, the
/// leader waits for an exec that never happens. The Arm driver ignores events that are disabled in any other
/// way, and would accept one event too many.
fn fill(request: &OpenRequest, most: usize) -> Vec<EventFd> {
    let mut leader = request.clone();
    leader.pinned(true);
    leader.start(CountingStart::Exec);
    let mut group: Vec<EventFd> = Vec::new();
    while group.len() < most {
        let opened = match group.first() {
            None => leader.open(TargetSlot::OURSELVES, None, None).ok(),
            Some(first) => member(request, first),
        };
        let Some(event) = opened else { break };
        group.push(event);
    }
    group
}

/// Opens another group member, which starts with its leader.
fn member(request: &OpenRequest, leader: &EventFd) -> Option<EventFd> {
    let mut member = request.clone();
    member.start(CountingStart::AtOnce);
    member.open(TargetSlot::OURSELVES, None, Some(leader)).ok()
}

/// Whether the kernel can schedule this pinned group now. If it cannot, reading the leader returns nothing.
fn takes(group: &[EventFd]) -> bool {
    let Some(leader) = group.first() else { return false };
    if leader.enable(true).is_err() {
        return false;
    }
    spin(MOMENT);
    let mut words = [0; 3];
    matches!(leader.read(&mut words), Ok(3) if words[2] > 0)
}

/// Returns the counter width from the event's shared page, which is valid while the event is on a counter.
fn width(mut request: OpenRequest) -> Option<u16> {
    let event = request.open(TargetSlot::OURSELVES, None, None).ok()?;
    let page = HeaderPage::map(&event).ok()?;
    event.switch(true).ok()?;
    spin(MOMENT);
    Some(page.read().width).filter(|&bits| bits > 0)
}

/// Opens a generic hardware event on pmc's own process in user mode, runs it briefly, and returns its
/// state.
///
/// # Errors
/// Returns the refusal, if the event cannot be opened.
pub fn trial(number: u64) -> Result<CounterState, Box<Refusal>> {
    let mut request = request(number)?;
    let event = request.open(TargetSlot::OURSELVES, None, None)?;
    let failed = |error| request.failed(TargetSlot::OURSELVES, &error);
    let before = reading(&event).map_err(failed)?;
    event.switch(true).map_err(failed)?;
    spin(MOMENT);
    Ok(CounterState::between(before, reading(&event).map_err(failed)?))
}

fn reading(event: &EventFd) -> std::io::Result<Count> {
    let mut words = [0; 3];
    event.read(&mut words)?;
    Ok(Count { value: words[0], enabled_ns: words[1], running_ns: words[2] })
}

/// Spins in user mode, where the events count.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_state_follows_from_times() {
        let at = |enabled_ns, running_ns| Count { value: 0, enabled_ns, running_ns };
        assert_eq!(CounterState::between(at(5, 5), at(5, 5)), CounterState::Idle);
        assert_eq!(CounterState::between(at(5, 5), at(15, 15)), CounterState::Running);
        assert_eq!(CounterState::between(at(5, 5), at(15, 5)), CounterState::Waiting);
        assert_eq!(CounterState::between(at(0, 0), at(10, 4)), CounterState::Shared(0.4));
    }

    /// On a machine with a working core PMU, the CPU and the kernel must report the same number of general
    /// counters.
    #[test]
    fn result_is_consistent_on_this_machine() {
        let facts = MachineFacts::own(&pmc_sys::host::Host::live());
        let units = core_units(&facts);
        assert_eq!(units.len(), facts.core_pmus().count());
        for unit in units {
            if let (Some(claimed), Some(probed)) = (unit.claimed, unit.probed) {
                assert_eq!(claimed.general, probed.general, "{unit:?}");
                assert!(probed.free <= Some(probed.general));
            }
        }
    }

    /// Runs the same search with software events, which always open. The kernel does not limit them, so the
    /// group is as large as requested.
    #[test]
    fn groups_grow_until_the_kernel_refuses() {
        let request =
            |config| OpenRequest::in_user_mode(kind::SOFTWARE, config, CounterFlags::default()).unwrap();
        let group = fill(&request(1), 5);
        if group.is_empty() {
            return;
        }
        assert_eq!(group.len(), 5);
        assert!(takes(&group), "software events are always taken");
        assert!(fill(&request(99), 5).is_empty());
    }
}
