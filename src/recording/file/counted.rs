//! What a command's events counted, for the reader: what its samples do not cover is in them.
//!
//! Receives the counters' last readings and what `wait4(2)` says of the command; hands on a count by event.

use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CPU_CLOCK, TASK_CLOCK};
use crate::counter::rings::{Reading, Rings};
use crate::perfdata::RecordedEvent;
use crate::recording::plan::{FilePlan, SamplePlan, Scope};
use crate::sys::process::Outcome;

/// Whether all that the events count of a command is sampled, too, so that a reader may compare.
pub(super) fn samples_all(plan: &SamplePlan, file: &FilePlan, rings: &Rings) -> bool {
    let leaves_out =
        file.rotation.is_some() || file.rotates_at.is_some() || rings.has_backward() || rings.has_limits();
    matches!(plan.scope, Scope::Command) && !leaves_out
}

/// What each event counted of a command that has ended, with all that it started.
pub(super) fn by_command(events: &[RecordedEvent], readings: &[Reading], outcome: Outcome) -> Vec<u64> {
    let mut counted = vec![0u64; events.len()];
    for Reading { instance, count, .. } in readings {
        counted[instance.event] = counted[instance.event].saturating_add(count.value);
    }
    for (event, counted) in events.iter().zip(&mut counted) {
        // The kernel's clocks run in both modes, whichever is sampled.
        let is_clock =
            event.attr.kind() == kind::SOFTWARE && [CPU_CLOCK, TASK_CLOCK].contains(&event.attr.config());
        let excludes = |flag| is_clock && event.attr.get(flag);
        if excludes(Flag::ExcludeKernel) {
            *counted = outcome.user_ns.min(*counted);
        } else if excludes(Flag::ExcludeUser) {
            *counted = outcome.system_ns.min(*counted);
        }
    }
    counted
}
