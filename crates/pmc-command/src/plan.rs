//! Values of recording options that several commands share, and checks for events that are counted in parts.

use pmc_events::event::EventSpec;
use pmc_sys::error::{Error, Result};
use pmc_text::units::{self, S, parse_duration};

/// Rejects events that cannot distinguish user mode from kernel mode. `option` is the option that requires
/// the distinction.
///
/// # Errors
/// Fails if an event cannot distinguish the two modes. The error names the first such event.
pub fn check_levels<'e>(option: &str, mut events: impl Iterator<Item = &'e EventSpec>) -> Result<()> {
    let why = "the event already selects privilege levels, or always counts at all levels, as clocks do (use user_time and system_time)";
    events.find(|event| !event.has_levels()).map_or(Ok(()), |event| Err(no_parts(option, event, why)))
}

/// Returns the error for an event that cannot be split into the parts that `option` requests.
pub fn no_parts(option: &str, event: &EventSpec, why: &str) -> Error {
    Error::usage(format!("{option}: {} cannot be split this way", event.name))
        .why(why)
        .try_this("use a separate run")
}

/// Assigns each tracepoint filter to the preceding `-e`.
pub fn tracepoint_filters(places: Vec<usize>, filters: Vec<String>) -> Result<Vec<(usize, String)>> {
    let of = |(place, filter): (usize, String)| {
        let event = place.checked_sub(1).ok_or_else(|| {
            Error::usage(format!("--filter '{filter}' must follow the event that it applies to"))
                .try_this("-e sched:sched_switch --filter 'prev_pid != 0'")
        })?;
        Ok((event, filter))
    };
    places.into_iter().zip(filters).map(of).collect()
}

/// Parses a time and returns it in nanoseconds. The default unit is `bare` nanoseconds.
///
/// # Errors
/// Fails if the text is not a time, or the time is shorter than `least`.
pub fn duration(option: &str, text: &str, bare: u64, least: u64) -> Result<u64> {
    parse_duration(text, Some(bare)).filter(|&ns| ns >= least).ok_or_else(|| {
        let (shortest, unit) =
            (units::duration(least as f64), if bare == S { "seconds" } else { "milliseconds" });
        Error::usage(format!("{option} {text}: must be a time of at least {shortest}"))
            .try_this(format!("{option} 100ms, 5s or 2m; a bare number means {unit}"))
    })
}
