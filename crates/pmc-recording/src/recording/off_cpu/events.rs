//! The events for off-CPU time: the events that the kernel samples, and the events that the file contains
//! instead.

use super::wakers;
use crate::recording::plan::{OffCpuPlan, SamplePlan};
use pmc_events::counter::request::sampling::CallGraph;
use pmc_events::event::{EventGroup, EventSource, EventSpec};
use pmc_perfdata::perfdata::{BLOCKED_EVENT, RUNNABLE_EVENT, RecordedEvent};
use pmc_sys::abi::attr::{self, Flag};
use pmc_sys::abi::generic::{BPF_OUTPUT, CONTEXT_SWITCHES};
use pmc_sys::abi::{Attr, sample_type};

/// Number of bytes of a thread's stack to copy at each switch. A larger copy makes switches slower.
pub(in crate::recording) const STACK_COPY: u32 = 4 << 10;

/// Fields of the written samples.
pub(super) const FIELDS: u64 = sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::CALLCHAIN
    | sample_type::CPU
    | sample_type::PERIOD
    | sample_type::IDENTIFIER;

/// Ids of the written events. The kernel counts ids up from 1 and never reaches this bit.
pub(super) const BLOCKED_ID: u64 = 1 << 61 | 1;
pub(super) const RUNNABLE_ID: u64 = 1 << 61 | 2;

/// Whether this is the [event](switch_event) that samples each switch.
pub(in crate::recording) fn is_switch_event(spec: &EventSpec) -> bool {
    spec.is_generic(attr::kind::SOFTWARE, CONTEXT_SWITCHES) && spec.qualifiers.stack_size == Some(STACK_COPY)
}

/// Returns the event that samples each switch.
pub(in crate::recording) fn switch_event(plan: &SamplePlan) -> EventGroup {
    let mut spec = EventSpec::generic(attr::kind::SOFTWARE, CONTEXT_SWITCHES);
    if let EventSource::Kernel(attr) = &mut spec.source {
        attr.set_period(1);
    }
    spec.qualifiers.stack_size = Some(STACK_COPY);
    if !plan.options.call_graph.is_some_and(CallGraph::copies) {
        // Frame pointers would miss the function that waits, because libc has none.
        spec.qualifiers.call_graph = Some("dwarf".to_owned());
    }
    EventGroup { events: vec![spec], braces: false, weak: false, leader_sampling: false }
}

/// How a recording measures off-CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffCpuSource {
    /// Index of the event that samples switches, among the events that the kernel samples.
    pub(super) event: usize,
    /// Whether the kernel samples switches. Without permission to measure the kernel, there are no samples,
    /// although the event can be opened (`:u`).
    pub has_stacks: bool,
    /// Whether whole CPUs are recorded, with all their threads.
    pub(super) is_system_wide: bool,
    pub(super) threshold_ns: u64,
    /// Index of the event that samples wake-ups, if it is recorded.
    pub(super) wakeups: Option<usize>,
}

impl OffCpuSource {
    /// Finds the event that samples switches. Replaces its description in the file with the descriptions of
    /// the events that are written instead.
    pub(in crate::recording) fn new(
        plan: OffCpuPlan,
        is_system_wide: bool,
        taken: &[RecordedEvent],
        written: &mut Vec<RecordedEvent>,
    ) -> Option<Self> {
        let is_switch = |event: &RecordedEvent| {
            let attr = &event.attr;
            attr.kind() == attr::kind::SOFTWARE && attr.config() == CONTEXT_SWITCHES && attr.period() == 1
        };
        let event = taken.iter().rposition(is_switch)?;
        let has_stacks = !taken[event].attr.get(Flag::ExcludeKernel);
        let blocked = written.get_mut(event)?;
        let wakeups = wakers::find(plan, taken);
        blocked.attr = written_attr(&blocked.attr, wakeups.is_some());
        blocked.ids.push(BLOCKED_ID);
        blocked.name = Some(BLOCKED_EVENT.to_owned());
        let attr = blocked.attr.clone();
        let mut ids = vec![RUNNABLE_ID];
        // Wake-up samples are not written, but other records that refer to the event's instances are.
        ids.extend(wakeups.iter().flat_map(|at| &taken[*at].ids));
        let runnable = RecordedEvent { attr, ids, name: Some(RUNNABLE_EVENT.to_owned()) };
        match wakeups {
            Some(at) => written[at] = runnable,
            None => written.push(runnable),
        }
        Some(Self { event, has_stacks, is_system_wide, threshold_ns: plan.threshold_ns, wakeups })
    }
}

/// Returns the attr of the written events. As perf does for its off-CPU event, it describes an event that
/// only software writes.
pub(super) fn written_attr(switch: &Attr, has_wakers: bool) -> Attr {
    let mut attr = switch.clone();
    attr.set_config(BPF_OUTPUT);
    attr.set_sample_type(if has_wakers { FIELDS | sample_type::ADDR } else { FIELDS });
    attr.set_sample_stack_user(0);
    attr.set_sample_regs_user(0);
    attr.set(Flag::ExcludeCallchainUser, false);
    attr.set(Flag::ExcludeKernel, false);
    attr
}
