//! Explains why a recording has no samples, based on the counts of its sampled events.
//!
//! Receives the plan and the result of the recording; returns a warning with the likely reason.

use super::file::result::RecordingResult;
use super::plan::{Delay, MeasurementScope, SamplePlan};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic;
use pmc_sys::error::{Advice, AdvisedOption, Warning};
use pmc_text::units::{S, duration, thousands};

/// Returns the likely reason; `None` if there are samples or no samples were requested. `lost` is the number
/// of lost records.
pub fn reason(
    plan: &SamplePlan,
    events: &[RecordedEvent],
    run: &RecordingResult,
    lost: u64,
) -> Option<Warning> {
    let none = run.totals.samples + run.totals.unwritten + lost == 0;
    let is_dummy =
        |event: &RecordedEvent| (event.attr.kind(), event.attr.config()) == (kind::SOFTWARE, generic::DUMMY);
    // If only the dummy event is recorded, the user wants records other than samples.
    let wants_none = plan.options.no_samples || events.iter().all(is_dummy);
    if !none || wants_none || run.totals.traced > 0 || run.failed.is_some() {
        return None;
    }
    let because = |why: String, remedy: Advice| Some(no_samples(&why, remedy));
    let elapsed = duration(run.elapsed_ns as f64);
    match plan.run_schedule.delay {
        Delay::Ns(ns) if !run.was_ever_on => {
            let delay = duration(ns as f64);
            return because(
                format!("the target ended after {elapsed}, before the delay (-D, {delay}) expired"),
                Advice::options("a smaller -D"),
            );
        }
        Delay::UntilCommand if run.readings.iter().all(|reading| reading.count.value == 0) => {
            let why =
                "-D -1 waits for the command `enable`, which did not arrive, or no event occurred after it";
            let remedy = Advice::options("send the command enable to the --control channel");
            return because(why.to_owned(), remedy);
        }
        _ => {}
    }
    let counted = |at: usize| {
        run.readings.iter().filter(|one| one.instance.event == at).map(|one| one.count.value).sum()
    };
    let mut events = events.iter().enumerate().map(|(at, event)| (event, counted(at)));
    // Prefer the explanation that an event occurred too rarely to the explanation that another event did not
    // occur.
    let happened = events.clone().find(|&(_, count): &(_, u64)| count > 0);
    let (event, count) = happened.or_else(|| events.next())?;
    let (name, attr) = (event.name(), &event.attr);
    let is_clock = generic::is_clock(attr);
    let amount = |value: u64| if is_clock { duration(value as f64) } else { thousands(value) };
    let whose = if matches!(plan.scope, MeasurementScope::Cpus(_)) { "CPU" } else { "thread" };
    match count {
        0 if !plan.filters.is_empty() => {
            let why = format!("no {name} passed --filter in {elapsed}");
            because(why, "check the filter, or record longer".into())
        }
        0 if is_clock || attr.kind() == kind::HARDWARE => because(
            format!("according to {name}, the target did not run on a CPU for {elapsed}"),
            Advice::options(
                "record while it is busy, record longer (--timeout), or record where it waits: -e \
                 sched:sched_switch",
            ),
        ),
        0 => because(
            format!("{name} did not occur in {elapsed}"),
            "pmc stat -e EVENT counts it without sampling".into(),
        ),
        _ if is_clock && attr.get(Flag::Freq) => {
            let each = amount(S / attr.period().max(1));
            let why = format!(
                "{name} ran for only {}, and pmc takes one sample every {each} in each {whose}",
                amount(count)
            );
            because(why, Advice::options("record longer, or use a higher frequency (-F)"))
        }
        _ => {
            let (count, period) = (amount(count), amount(attr.period()));
            let why = match attr.get(Flag::Freq) {
                true => format!("{name} occurred only {count} times, too rarely for a sample"),
                false if is_clock => {
                    format!(
                        "{name} ran for only {count}, and pmc takes one sample every {period} in each {whose}"
                    )
                }
                false => format!(
                    "{name} occurred only {count} times, and pmc takes one sample per {period} in each {whose}"
                ),
            };
            let remedy = Advice::about(AdvisedOption::Period, "use a smaller {option}, or record longer");
            Some(no_samples(&why, remedy))
        }
    }
}

fn no_samples(why: &str, remedy: Advice) -> Warning {
    Warning::new(format!("no samples: {why}")).advise(remedy)
}
