//! Values of recording options that several commands share, and checks for events that are counted in parts.

use pmc_events::event::EventSpec;
use pmc_recording::recording::plan::Delay;
use pmc_sys::error::{Error, Result};
use pmc_text::units::{self, MS, S, parse_duration};

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

/// Parses `--timeout`, in nanoseconds.
///
/// # Errors
/// Fails if the text is not a time.
pub fn timeout(typed: Option<&str>) -> Result<Option<u64>> {
    typed.map(|text| duration("--timeout", text, MS, MS)).transpose()
}

/// Parses `-D`: a time, or -1.
///
/// # Errors
/// Fails if the text is neither, or it is -1 without a control channel.
pub fn delay(typed: Option<&str>, has_control: bool) -> Result<Delay> {
    match typed {
        None => Ok(Delay::None),
        Some("-1") if has_control => Ok(Delay::UntilOrder),
        Some("-1") => Err(Error::usage("-D -1 requires --control").try_this("add --control fifo:PATH")),
        Some(text) => match parse_duration(text, Some(MS)) {
            Some(0) => Ok(Delay::None),
            Some(ns) => Ok(Delay::Ns(ns)),
            None => Err(Error::usage(format!("-D {text}: not a time")).try_this(
                "-D 500ms or -D 2s (a bare number means milliseconds), or -1 to wait for --control",
            )),
        },
    }
}

/// Parses the argument of `-D`: either ranges, or a delay as in [`delay`]. With ranges, the delay is the
/// start of the first range, and at the returned times recording is alternately turned off and on.
///
/// # Errors
/// Fails in the same cases as [`delay`], and if a range is invalid or the ranges are not in order.
pub fn delay_or_ranges(typed: Option<&str>, has_control: bool) -> Result<(Delay, Vec<u64>)> {
    let Some(text) = typed.filter(|text| text.get(1..).is_some_and(|rest| rest.contains('-'))) else {
        return Ok((delay(typed, has_control)?, Vec::new()));
    };
    let times: Option<Vec<u64>> = text
        .split(',')
        .map(|range| range.split_once('-').map(<[_; 2]>::from))
        .flat_map(|range| range.map_or([None; 2], |ends| ends.map(|end| parse_duration(end, Some(MS)))))
        .collect();
    match times.as_deref() {
        Some([first, rest @ ..]) if times.iter().flatten().is_sorted_by(|a, b| a < b) => {
            let delay = if *first == 0 { Delay::None } else { Delay::Ns(*first) };
            Ok((delay, rest.to_vec()))
        }
        _ => Err(Error::usage(format!("-D {text}: not a list of increasing time ranges"))
            .try_this("-D 10-20,30-40, or with units: -D 1s-2s,2500ms-3s")),
    }
}
