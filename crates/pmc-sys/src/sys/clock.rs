//! Clocks: monotonic nanoseconds for measuring, and the local date for file names.

use rustix::time::{ClockId, clock_gettime};

use crate::units::CalendarTime;

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
