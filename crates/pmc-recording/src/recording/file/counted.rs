//! Total counts of a command's events. A reader compares them with the samples to detect missing samples.
//!
//! Receives the counters' final readings and the result of `wait4(2)` for the command; returns a count per
//! event.

use crate::recording::plan::{FilePlan, MeasurementScope, SamplePlan};
use pmc_events::counter::rings::{InstanceReading, Rings};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::generic;
use pmc_sys::sys::process::CommandOutcome;

/// Whether the samples cover everything that the events count. If not, a reader cannot compare the two.
pub(super) fn samples_all(plan: &SamplePlan, file: &FilePlan, rings: &Rings) -> bool {
    let leaves_out =
        file.rotation.is_some() || file.rotates_at.is_some() || rings.has_backward() || rings.has_limits();
    matches!(plan.scope, MeasurementScope::Command) && !leaves_out
}

/// Returns the count of each event for a command that has ended, including its descendants.
pub(super) fn by_command(
    events: &[RecordedEvent],
    readings: &[InstanceReading],
    outcome: CommandOutcome,
) -> Vec<u64> {
    let mut counted = vec![0u64; events.len()];
    for InstanceReading { instance, count, .. } in readings {
        counted[instance.event] = counted[instance.event].saturating_add(count.value);
    }
    for (event, counted) in events.iter().zip(&mut counted) {
        // The kernel's clocks count both user and kernel mode, even if only one of them is sampled.
        let is_clock = generic::is_clock(&event.attr);
        let excludes = |flag| is_clock && event.attr.get(flag);
        if excludes(Flag::ExcludeKernel) {
            *counted = outcome.user_ns.min(*counted);
        } else if excludes(Flag::ExcludeUser) {
            *counted = outcome.system_ns.min(*counted);
        }
    }
    counted
}
