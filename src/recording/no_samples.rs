//! Explains why a recording has no samples, from the counts of its sampled events.
//!
//! Receives the plan and the result of the recording; returns a warning with the likely reason.

use super::file::recorder::RecordingResult;
use super::plan::{Delay, MeasurementScope, SamplePlan};
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CPU_CLOCK, TASK_CLOCK};
use crate::error::Warning;
use crate::perfdata::RecordedEvent;
use crate::units::{S, duration, thousands};

/// Returns the likely reason; `None` if there are samples or none were requested. `lost` is the number of
/// lost records.
pub(crate) fn reason(
    plan: &SamplePlan,
    events: &[RecordedEvent],
    run: &RecordingResult,
    lost: u64,
) -> Option<Warning> {
    let none = run.totals.samples + run.totals.unwritten + lost == 0;
    if !none || plan.options.no_samples || run.totals.traced > 0 || run.failed.is_some() {
        return None;
    }
    let because = |why: String, remedy| Some(Warning::NoSamples { why, remedy });
    let elapsed = duration(run.elapsed_ns as f64);
    match plan.run_schedule.delay {
        Delay::Ns(ns) if !run.was_ever_on => {
            let delay = duration(ns as f64);
            return because(
                format!("it was over after {elapsed}, before the delay (-D, {delay})"),
                "a smaller -D",
            );
        }
        Delay::UntilOrder if run.readings.iter().all(|reading| reading.count.value == 0) => {
            let why = "-D -1 waits for the order `enable`, and none came, or nothing happened after it";
            return because(why.to_owned(), "write enable into the channel of --control");
        }
        _ => {}
    }
    let counted = |at: usize| {
        run.readings.iter().filter(|one| one.instance.event == at).map(|one| one.count.value).sum()
    };
    let mut events = events.iter().enumerate().map(|(at, event)| (event, counted(at)));
    // An event that occurred too rarely explains more than one that did not occur.
    let happened = events.clone().find(|&(_, count): &(_, u64)| count > 0);
    let (event, count) = happened.or_else(|| events.next())?;
    let (name, attr) = (event.name(), &event.attr);
    let is_clock = attr.kind() == kind::SOFTWARE && [CPU_CLOCK, TASK_CLOCK].contains(&attr.config());
    let amount = |value: u64| if is_clock { duration(value as f64) } else { thousands(value) };
    let whose = if matches!(plan.scope, MeasurementScope::Cpus(_)) { "CPU" } else { "thread" };
    match count {
        0 if !plan.filters.is_empty() => {
            because(format!("no {name} passed --filter in {elapsed}"), "check the filter, or record longer")
        }
        0 if is_clock || attr.kind() == kind::HARDWARE => because(
            format!("what is recorded never ran on a CPU in {elapsed}, as far as {name} can tell"),
            "record while it works, longer (--timeout), or what it waits for: -e sched:sched_switch",
        ),
        0 => because(format!("{name} did not happen in {elapsed}"), "pmc stat -e counts it at leisure"),
        _ if is_clock && attr.get(Flag::Freq) => {
            let each = amount(S / attr.period().max(1));
            let why = format!(
                "{name} ran for {} only, and a sample is taken after each {each} of one {whose}",
                amount(count)
            );
            because(why, "record something longer, or take more samples a second (-F)")
        }
        _ => {
            let each = if attr.get(Flag::Freq) { "some".to_owned() } else { amount(attr.period()) };
            let why = format!(
                "{name} counted {}, and a sample is taken after each {each} of one {whose}",
                amount(count)
            );
            because(why, "a smaller -c, or record longer")
        }
    }
}
