//! Clocks: monotonic nanoseconds to measure with, and the local date to write into a file.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The local date and time as `ctime(3)` writes it: `Sat Nov 21 04:05:06 2026`.
pub fn local_date() -> String {
    let now = clock_gettime(ClockId::Realtime).tv_sec;
    // SAFETY: plain old data, for which zero is a value (the name of the zone is a null pointer).
    let mut date: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    unsafe { libc::localtime_r(&raw const now, &raw mut date) };
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let name = |names: &[&'static str], index: i32| names.get(index as usize).copied().unwrap_or("???");
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        name(&DAYS, date.tm_wday),
        name(&MONTHS, date.tm_mon),
        date.tm_mday,
        date.tm_hour,
        date.tm_min,
        date.tm_sec,
        date.tm_year + 1900
    )
}
