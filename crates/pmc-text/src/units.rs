//! Counts, times and dates, and their formatting for display.
//!
//! Formatted values have no colour or alignment.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// One reading of a counter, as returned by the kernel.
///
/// `enabled_ns` is the time during which the event was enabled, and `running_ns` the time during which it was
/// on a counter. They differ if there are more events than hardware counters, because the events then take
/// turns (`perf_event_open(2)`, `PERF_FORMAT_TOTAL_TIME_ENABLED`/`RUNNING`). All three values only increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Unscaled number of occurrences (nanoseconds for clocks).
    pub value: u64,
    /// Time during which the event was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// Time during which the event was on a counter, in nanoseconds.
    pub running_ns: u64,
}

impl Count {
    /// Returns the estimate for the whole enabled time: `value × enabled ÷ running`. `None` if the event
    /// never ran.
    pub fn scaled(self) -> Option<f64> {
        match (self.running_ns, self.enabled_ns) {
            (0, _) => None,
            (running, enabled) if running >= enabled => Some(self.value as f64),
            (running, enabled) => Some(self.value as f64 * (enabled as f64 / running as f64)),
        }
    }

    /// Returns the fraction of the enabled time during which the event was on a counter (0 to 1). Returns 1
    /// if the event was never enabled.
    pub fn share(self) -> f64 {
        if self.enabled_ns == 0 { 1.0 } else { (self.running_ns as f64 / self.enabled_ns as f64).min(1.0) }
    }

    /// Returns the difference from an `earlier` reading of the same counter.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(earlier.value),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }
}

impl Count {
    /// Adds the count of another counter that takes turns with this one on the same task, on another CPU or
    /// core type. Both were enabled over the same period, so their enabled times are not added up.
    pub fn take_turns(&mut self, other: Self) {
        let enabled_ns = self.enabled_ns.max(other.enabled_ns);
        *self += other;
        self.enabled_ns = enabled_ns;
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.value = self.value.wrapping_add(other.value);
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }
}

/// A timestamp on the clock of a recording: nanoseconds since an arbitrary start, usually boot. The attr's
/// `clockid` selects the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PerfTime(pub u64);

impl PerfTime {
    /// Returns the timestamp in nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for PerfTime {
    /// Formats the timestamp like perf: in seconds with six decimal places, truncated rather than rounded.
    /// `{:.9}` prints nanoseconds; a width pads on the left.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(6).min(9);
        let part = self.0 % S / 10u64.pow(9 - digits as u32);
        f.pad_integral(true, "", &format!("{}.{part:0digits$}", self.0 / S))
    }
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Converts nanoseconds to milliseconds.
pub fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// A date and time of day in the Gregorian calendar. Prints as `2026-11-21 04:05:06`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "as named; months and days start at 1, weekdays at 0 (Sunday)")]
pub struct CalendarTime {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub weekday: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl CalendarTime {
    /// Converts seconds since 1970 to a date and time in UTC.
    pub fn new(seconds: i64) -> Self {
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Days since 0000-03-01: years start in March, so a leap day is the last day of its year (Howard
        // Hinnant's civil_from_days).
        let shifted = days + 719_468;
        let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self {
            year: year + era * 400 + i64::from(month <= 2),
            month,
            day,
            weekday: (days + 4).rem_euclid(7),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }
}

impl std::fmt::Display for CalendarTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { year, month, day, hour, minute, second, .. } = self;
        write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// Groups consecutive ascending numbers. Returns the first and the last number of each group.
pub fn consecutive(numbers: impl IntoIterator<Item = impl Into<i64>>) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for number in numbers.into_iter().map(Into::into) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// Formats numbers in the kernel's list notation, such as `0-3,8`. Consecutive ascending numbers become a
/// range.
pub fn ranges(numbers: impl IntoIterator<Item = impl Into<i64>>) -> String {
    let shown = |(first, last): &(i64, i64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    consecutive(numbers).iter().map(shown).collect::<Vec<_>>().join(",")
}

/// Whether to print thousands separators. True unless [`follow_locale`] finds a locale without them.
static GROUPED: AtomicBool = AtomicBool::new(true);

/// Enables or disables digit grouping for the whole process, depending on the locale in the environment.
///
/// The C locale has plain digits, which scripts can parse. Only the name of the locale matters: pmc also runs
/// as a static binary, which cannot load locale data. Digits are therefore grouped even if the locale is not
/// installed. The separator is always a comma, because the decimal point is always a point.
pub fn follow_locale(variable: impl Fn(&str) -> Option<OsString>) {
    GROUPED.store(groups(variable), Ordering::Relaxed);
}

/// Whether the locale for numbers has separators. The first nonempty variable of the three names the locale
/// (`locale(7)`).
fn groups(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let mut named = ["LC_ALL", "LC_NUMERIC", "LANG"].into_iter().filter_map(variable);
    let locale = named.find(|name| !name.is_empty()).unwrap_or_default();
    let locale = locale.to_string_lossy();
    let language = locale.split(['.', '@']).next().unwrap_or_default();
    !matches!(language, "" | "C" | "POSIX")
}

/// Formats an integer with a comma between groups of three digits, if the locale has separators:
/// `1,234,567`.
pub fn thousands(value: u64) -> String {
    group_digits(&value.to_string())
}

/// Formats a number of things, with commas as in [`thousands`]: `1 wait`, `1,234 waits`, `2 processes`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if what.ends_with("ss") { "es" } else { "s" };
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { plural })
}

/// Formats a number with `decimals` decimal places, and commas as in [`thousands`]: `1,234.57`.
pub fn thousands_f64(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |t| ("-", t));
    match text.split_once('.') {
        Some((whole, part)) => format!("{sign}{}.{part}", group_digits(whole)),
        None => format!("{sign}{}", group_digits(text)),
    }
}

fn group_digits(digits: &str) -> String {
    if !GROUPED.load(Ordering::Relaxed) {
        return digits.to_owned();
    }
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && c.is_ascii_digit() {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a duration in the largest unit that leaves at least one digit before the decimal point: `1.50 ms`,
/// `12.3 s`, `2 min 5 s`.
pub fn duration(ns: f64) -> String {
    let ns_abs = ns.abs();
    if ns_abs >= 120e9 {
        let seconds = (ns / 1e9).round() as i64;
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        if minutes >= 120 {
            return format!("{} h {} min", minutes / 60, minutes % 60);
        }
        return format!("{minutes} min {seconds} s");
    }
    let (value, unit) = match ns_abs {
        n if n >= 1e9 => (ns / 1e9, "s"),
        n if n >= 1e6 => (ns / 1e6, "ms"),
        n if n >= 1e3 => (ns / 1e3, "µs"),
        _ => return format!("{ns:.0} ns"),
    };
    format!("{} {unit}", significant(value))
}

/// A millisecond in nanoseconds: the default unit for options that take milliseconds in perf.
pub const MS: u64 = 1_000_000;
/// A second in nanoseconds.
pub const S: u64 = 1_000 * MS;

/// Parses a duration such as `5s`, `100ms` or `1.5h` into nanoseconds. Units are ns, us, ms, s, m (min), h
/// and d. A number without a unit is multiplied by `bare`, the default unit in nanoseconds; with `None`, a
/// unit is required. Returns `None` if the text is not a duration, or if the duration is too long.
pub fn parse_duration(text: &str, bare: Option<u64>) -> Option<u64> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[at..].trim_start() {
        "" => bare?,
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => MS,
        "s" => S,
        "m" | "min" => 60 * S,
        "h" => 3600 * S,
        "d" => 24 * 3600 * S,
        _ => return None,
    };
    let ns = match text[..at].parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit)?,
        // Rounds to the nearest nanosecond, because a decimal such as 0.1 is not exact in binary.
        Err(_) => (text[..at].parse::<f64>().ok()? * unit as f64).round() as u64,
    };
    // Durations are added to clock readings, so the sum must not overflow.
    (ns <= i64::MAX as u64).then_some(ns)
}

/// Parses a size in bytes such as `64K`, `100M` or `2G`; the unit may be missing or `B`. Returns `None` if
/// the text is not a size, and for 0.
pub fn parse_size(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'B' => Some(0),
        b'K' => Some(10),
        b'M' => Some(20),
        b'G' => Some(30),
        _ => None,
    };
    let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift.unwrap_or(0)).filter(|&bytes| bytes > 0)
}

/// Formats a size in bytes, in the largest binary unit that leaves at least one digit before the point: `1.5
/// MiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64;
    let mut unit = "";
    for name in UNITS {
        scaled /= 1024.0;
        unit = name;
        if scaled < 1024.0 {
            break;
        }
    }
    format!("{} {unit}", significant(scaled))
}

/// Formats a number with three significant digits, or as an integer from 100 up: `1.23`, `12.3`, `123`.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands_f64(-1234.567, 2), "-1,234.57");
    }

    #[test]
    fn locale_decides_on_separators() {
        let grouped = |names: [&str; 3]| {
            let named = ["LC_ALL", "LC_NUMERIC", "LANG"].into_iter().zip(names).collect::<Vec<_>>();
            groups(|wanted| named.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into()))
        };
        for (names, expected) in [
            (["", "", ""], false),
            (["C", "en_US.UTF-8", "en_US.UTF-8"], false),
            (["", "C.UTF-8", "en_US.UTF-8"], false),
            (["", "", "POSIX"], false),
            (["", "", "en_US.UTF-8"], true),
            (["", "de_DE@euro", "C"], true),
            (["en_GB", "C", "C"], true),
        ] {
            assert_eq!(grouped(names), expected, "{names:?}");
        }
        assert!(!groups(|_| None));
    }

    #[test]
    fn count_is_scaled_by_running_time() {
        let count = Count { value: 100, enabled_ns: 200, running_ns: 50 };
        assert_eq!(count.scaled(), Some(400.0));
        assert_eq!(count.share(), 0.25);
        assert_eq!(Count { value: 0, enabled_ns: 5, running_ns: 0 }.scaled(), None);
    }

    #[test]
    fn times_are_parsed_with_unit() {
        let read = |text| parse_duration(text, Some(MS));
        for (text, ns) in [
            ("250", 250 * MS),
            ("0", 0),
            ("7ns", 7),
            ("50us", 50_000),
            ("50 µs", 50_000),
            ("100ms", 100 * MS),
            ("5s", 5 * S),
            ("0.1s", 100 * MS),
            ("1.5h", 5400 * S),
            ("2m", 120 * S),
            ("2min", 120 * S),
            ("1d", 86_400 * S),
        ] {
            assert_eq!(read(text), Some(ns), "{text}");
        }
        for text in
            ["", "s", ".", "-5s", "+5", "1e3", "inf", "nan", "5M", "5sec", "1m30s", "0x5", "9999999999h"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        // Without its required unit, a number could mean something else, such as a size.
        assert_eq!((parse_duration("30", None), parse_duration("30s", None)), (None, Some(30 * S)));
    }

    #[test]
    fn perf_times_have_width_and_precision() {
        let time = PerfTime(7_000_123_456);
        assert_eq!(
            format!("{time} {time:.9} {time:11.6} {time:16.9}"),
            "7.000123 7.000123456    7.000123      7.000123456"
        );
    }

    #[test]
    fn day_numbers_become_dates() {
        let shown = |seconds| CalendarTime::new(seconds).to_string();
        assert_eq!(shown(-1), "1969-12-31 23:59:59");
        assert_eq!(shown(0), "1970-01-01 00:00:00");
        assert_eq!(shown(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(shown(1_709_251_199), "2024-02-29 23:59:59");
        assert_eq!(shown(4_107_542_400), "2100-03-01 00:00:00");
        assert_eq!([-86_400, 0, 1_709_251_199].map(|at| CalendarTime::new(at).weekday), [3, 4, 4]);
    }

    #[test]
    fn times_use_the_largest_fitting_unit() {
        assert_eq!(duration(12.0), "12 ns");
        assert_eq!(duration(1_500_000.0), "1.50 ms");
        assert_eq!(duration(12_300_000_000.0), "12.3 s");
        assert_eq!(duration(125e9), "2 min 5 s");
        assert_eq!(bytes(1536), "1.50 KiB");
    }
}
