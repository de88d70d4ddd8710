//! Clocks: monotonic nanoseconds for measuring, and the local date for files.

use rustix::time::{ClockId, clock_gettime};

/// The kernel's number for `CLOCK_MONOTONIC`.
pub const MONOTONIC: i32 = libc::CLOCK_MONOTONIC;

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the local date and time in the format of `ctime(3)`: `Sat Nov 21 04:05:06 2026`.
pub fn local_date() -> String {
    local_date_of(clock_gettime(ClockId::Realtime).tv_sec)
}

/// Returns a time in seconds since 1970 in the format of [`local_date`].
pub fn local_date_of(seconds: i64) -> String {
    // SAFETY: plain old data, for which zero is a valid value (the name of the zone is a null pointer).
    let mut date: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut date) };
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

/// Returns the local time as digits, from the year to hundredths of a second: `2026112104050612`.
pub fn local_stamp() -> String {
    let now = clock_gettime(ClockId::Realtime);
    // SAFETY: plain old data, for which zero is a valid value (the name of the zone is a null pointer).
    let mut date: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    unsafe { libc::localtime_r(&raw const now.tv_sec, &raw mut date) };
    format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}{:02}",
        date.tm_year + 1900,
        date.tm_mon + 1,
        date.tm_mday,
        date.tm_hour,
        date.tm_min,
        date.tm_sec,
        now.tv_nsec / 10_000_000
    )
}

/// Returns the kernel's number of a clock, given by name (with or without `CLOCK_`) or as a number.
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

/// Returns the current time and the resolution of the clock with this number, in nanoseconds. `None` if the
/// clock does not exist.
pub fn read(number: i32) -> Option<(u64, u64)> {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let (mut now, mut step) = (zero, zero);
    // SAFETY: both pointers are to live locals; an unknown number returns an error.
    let failed = unsafe {
        libc::clock_gettime(number, &raw mut now) != 0 || libc::clock_getres(number, &raw mut step) != 0
    };
    let ns = |time: libc::timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    (!failed).then(|| (ns(now), ns(step)))
}

/// Returns the CPU time used by this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// Returns the CPU time used by this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

fn cpu_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
