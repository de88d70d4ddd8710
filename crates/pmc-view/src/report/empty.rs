//! The reason why a table has no rows.

use super::{ReportLayout, names};
use pmc_analysis::profile::sampled::ProfileEvent;
use pmc_analysis::profile::sampled::stacks::is_clock;
use pmc_text::units::counted;

/// Returns a sentence that explains why the events have no rows; `None` if they have some.
pub(super) fn reason(events: &[&ProfileEvent], layout: &ReportLayout) -> Option<String> {
    if events.iter().any(|event| !event.rows.is_empty()) {
        return None;
    }
    let samples: u64 = events.iter().map(|event| event.total.samples).sum();
    let idle =
        events.iter().filter_map(|event| event.thread_time.as_ref()).map(|sums| sums.idle.0).sum::<usize>();
    let threads = |count: usize| counted(count as u64, "idle thread");
    let filters = layout.filters.join(" ");
    let why = match (layout.filters.is_empty(), samples, idle) {
        (false, _, 0) => format!("no samples pass {filters}"),
        (false, _, idle) => {
            format!("no samples pass {filters}, and the waits of {} are left out (--idle)", threads(idle))
        }
        (true, _, idle) if idle > 0 => format!("all waits are those of {}: --idle shows them", threads(idle)),
        (true, 0, _) if events.iter().all(|event| is_clock(&event.name)) => {
            "no samples: the measured threads did not run, or for less than one sampling period".to_owned()
        }
        (true, 0, _) => {
            format!("no samples: {} did not occur, or less often than the sampling period", names(events))
        }
        (true, ..) => "no sample has a function".to_owned(),
    };
    Some(format!("No rows: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::sampled::waits::ThreadTimeSums;
    use pmc_analysis::session::SampleValue;

    #[test]
    fn empty_tables_have_a_reason() {
        let event = |name: &str, samples, idle| {
            let total = SampleValue { samples, ..SampleValue::default() };
            let sums = ThreadTimeSums { idle: (idle, 0), ..ThreadTimeSums::default() };
            ProfileEvent { name: name.to_owned(), total, thread_time: Some(sums), ..ProfileEvent::default() }
        };
        let plain = ReportLayout::default();
        let filtered = ReportLayout { filters: vec!["--comms foo".to_owned()], ..ReportLayout::default() };
        for (event, layout, why) in [
            (event("page-faults", 0, 0), &plain, "page-faults did not occur"),
            (event("cpu-clock", 0, 0), &plain, "threads did not run"),
            (event("wall-clock", 1, 3), &plain, "all waits are those of 3 idle threads: --idle"),
            (event("cpu-clock", 9, 0), &filtered, "no samples pass --comms foo."),
            (
                event("wall-clock", 9, 1),
                &filtered,
                "--comms foo, and the waits of 1 idle thread are left out",
            ),
        ] {
            let reason = reason(&[&event], layout).expect("a reason");
            assert!(reason.starts_with("No rows: ") && reason.contains(why), "{reason}");
        }
    }
}
