//! Parses the argument of `--time`, which selects a part of a recording.

use pmc_analysis::analysis::request::TimeSpan;
use pmc_sys::error::{Error, Result};
use pmc_text::units::parse_duration;

/// Parses the argument of `--time`: two times in seconds or with a unit, either of which may be omitted
/// (`1.5,`, `5s,`), or two percentages (`10%-20%`).
///
/// # Errors
/// Fails if the text does not have one of these forms.
pub fn time_span(text: &str) -> Result<TimeSpan> {
    let bad = || {
        Error::usage(format!("invalid time range {text:?}"))
            .try_this("use FROM,TO in seconds (either may be omitted), or 10%-20%")
    };
    if let Some((from, to)) = text.split_once('-').filter(|_| text.contains('%')) {
        let part = |word: &str| word.trim().trim_end_matches('%').parse::<f64>().map_err(|_| bad());
        return Ok(TimeSpan::Percent(part(from)?, part(to)?));
    }
    let (from, to) = text.split_once(',').ok_or_else(bad)?;
    let time = |word: &str, missing: u64| match word.trim() {
        "" => Ok(missing),
        word => nanoseconds(word).or_else(|| parse_duration(word, None)).ok_or_else(bad),
    };
    Ok(TimeSpan::Clock(time(from, 0)?, time(to, u64::MAX)?))
}

/// Parses seconds with a fraction. Unlike a float, the result is exact to the nanosecond.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_parse_exactly() {
        assert_eq!(nanoseconds("4547.409503001"), Some(4_547_409_503_001));
        assert_eq!(nanoseconds("7"), Some(7_000_000_000));
        assert_eq!(nanoseconds("7.x"), None);
    }

    #[test]
    fn time_spans_parse() {
        assert_eq!(time_span("1.5,").unwrap(), TimeSpan::Clock(1_500_000_000, u64::MAX));
        assert_eq!(time_span("10%-20%").unwrap(), TimeSpan::Percent(10.0, 20.0));
        for bad in ["", "1", "1-2", "a,b", "x%-y%"] {
            assert!(time_span(bad).is_err(), "{bad}");
        }
    }
}
