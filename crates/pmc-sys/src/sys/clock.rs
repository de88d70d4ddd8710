//! Clocks: monotonic nanoseconds for measuring, and the local date for file names.

use rustix::time::{ClockId, clock_gettime};

use pmc_text::units::CalendarTime;

/// The kernel's number for `CLOCK_MONOTONIC`.
pub const MONOTONIC: i32 = libc::CLOCK_MONOTONIC;

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    now_ns(ClockId::Monotonic)
}

/// Returns the local date and time in the format of `ctime(3)`: `Sat Nov 21 04:05:06 2026`.
pub fn local_date() -> String {
    local_date_of(clock_gettime(ClockId::Realtime).tv_sec)
}

/// Formats a time, in seconds since 1970, like [`local_date`].
pub fn local_date_of(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let CalendarTime { year, month, day, weekday, hour, minute, second } = local(seconds);
    let (weekday, month) = (DAYS[weekday as usize], MONTHS[month as usize - 1]);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

/// Returns the local time as digits, from the year to hundredths of a second: `2026112104050612`.
pub fn local_stamp() -> String {
    let now = clock_gettime(ClockId::Realtime);
    let CalendarTime { year, month, day, hour, minute, second, .. } = local(now.tv_sec);
    let hundredths = now.tv_nsec / 10_000_000;
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}{hundredths:02}")
}

/// Converts seconds since 1970 to a date and time in the local time zone.
fn local(seconds: i64) -> CalendarTime {
    // SAFETY: plain old data, for which zero is a valid value (the name of the zone is a null pointer).
    let mut date: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut date) };
    CalendarTime::new(seconds.saturating_add(date.tm_gmtoff))
}

/// Returns the kernel's number of a clock, which is given by name (with or without `CLOCK_`) or by number.
pub fn number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let name = text.to_ascii_lowercase();
    Some(match name.strip_prefix("clock_").unwrap_or(&name) {
        "realtime" | "real" => libc::CLOCK_REALTIME,
        "monotonic" | "mono" => MONOTONIC,
        "monotonic_raw" | "raw" => libc::CLOCK_MONOTONIC_RAW,
        "boottime" | "boot" => libc::CLOCK_BOOTTIME,
        "tai" => libc::CLOCK_TAI,
        _ => return None,
    })
}

/// Returns the current time of the clock with this number and its resolution, in nanoseconds. `None` if the
/// clock does not exist.
pub fn read(number: i32) -> Option<(u64, u64)> {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let (mut now, mut step) = (zero, zero);
    // SAFETY: both pointers are to live locals; an unknown number only causes an error.
    let failed = unsafe {
        libc::clock_gettime(number, &raw mut now) != 0 || libc::clock_getres(number, &raw mut step) != 0
    };
    (!failed).then(|| (nanoseconds(now.tv_sec, now.tv_nsec), nanoseconds(step.tv_sec, step.tv_nsec)))
}

/// The same time on a clock and on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// Time on the clock, in nanoseconds.
    pub clock_ns: u64,
    /// Time on the wall clock (`CLOCK_REALTIME`), in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Maximum difference between the two times, in nanoseconds.
    pub uncertainty_ns: u64,
}

impl ClockPair {
    /// Reads the clock with this number together with the wall clock.
    pub fn read(number: i32) -> Option<Self> {
        Self::most_exact(|| {
            let (read, bracket) = WallBracket::around(|| read(number));
            bracket?.pair(read?.0)
        })
    }

    /// Returns the most exact of several pairs. A single pair is inexact if this thread was interrupted.
    pub(super) fn most_exact(mut pair: impl FnMut() -> Option<Self>) -> Option<Self> {
        const TRIES: usize = 5;
        (0..TRIES).filter_map(|_| pair()).min_by_key(|pair| pair.uncertainty_ns)
    }
}

/// Readings of the wall clock before and after an action.
#[derive(Debug, Clone, Copy)]
pub(super) struct WallBracket {
    before: u64,
    after: u64,
}

impl WallBracket {
    /// Runs an action. The bracket is `None` if the wall clock was set back meanwhile.
    pub(super) fn around<T>(action: impl FnOnce() -> T) -> (T, Option<Self>) {
        let before = now_ns(ClockId::Realtime);
        let result = action();
        let after = now_ns(ClockId::Realtime);
        (result, (before <= after).then_some(Self { before, after }))
    }

    /// Returns the pair of the bracket's middle and a time that another clock showed during the action.
    pub(super) fn pair(self, clock_ns: u64) -> Option<ClockPair> {
        let width = self.after - self.before;
        let wall_ns = self.before.checked_add(width / 2)?;
        Some(ClockPair { clock_ns, wall_ns, uncertainty_ns: width.div_ceil(2) })
    }
}

/// Returns the CPU time used by this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    now_ns(ClockId::ProcessCPUTime)
}

/// Returns the CPU time used by this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    now_ns(ClockId::ThreadCPUTime)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

fn nanoseconds(seconds: i64, rest: i64) -> u64 {
    seconds as u64 * 1_000_000_000 + rest as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_in_the_middle_of_their_bracket() {
        let pair = WallBracket { before: 100, after: 103 }.pair(7);
        assert_eq!(pair, Some(ClockPair { clock_ns: 7, wall_ns: 101, uncertainty_ns: 2 }));
        let mut widths = [30, 10, 20].into_iter();
        let most_exact = ClockPair::most_exact(|| WallBracket { before: 0, after: widths.next()? }.pair(1));
        assert_eq!(most_exact.map(|pair| pair.uncertainty_ns), Some(5));
        assert_eq!(ClockPair::read(-1), None);
        let real = ClockPair::read(libc::CLOCK_REALTIME).unwrap();
        assert!(real.clock_ns.abs_diff(real.wall_ns) <= real.uncertainty_ns, "{real:?}");
    }
}
