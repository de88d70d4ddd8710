//! `--switch-output`: when the recording goes on in another file, and what the files are called.

use std::path::{Path, PathBuf};

use super::plan;
use crate::error::{Error, Result};
use crate::sys::clock;

/// What begins another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum Switch {
    /// SIGUSR2.
    Signal,
    /// The file has so many bytes.
    Bytes(u64),
    /// So many nanoseconds have passed.
    Ns(u64),
}

/// Reads the option's value.
pub(super) fn parse(text: &str) -> Result<Switch> {
    const S: u64 = 1_000_000_000;
    if text == "signal" {
        return Ok(Switch::Signal);
    }
    let wrong = || {
        Error::usage(format!("--switch-output={text}: expected signal, a size or a time"))
            .try_this("--switch-output=100M, or --switch-output=30s (s, m, h, d)")
    };
    let (digits, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let factor = match unit {
        "s" => S,
        "m" => 60 * S,
        "h" => 3600 * S,
        "d" => 24 * 3600 * S,
        _ => return plan::size("--switch-output", text).map(Switch::Bytes).map_err(|_| wrong()),
    };
    let ns = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).filter(|&ns| ns > 0);
    ns.map(Switch::Ns).ok_or_else(wrong)
}

/// `perf.data` with the date and time behind it, as perf names such files: `perf.data.2026112105061234`.
pub(super) fn name(base: &Path) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(clock::local_stamp());
    name.into()
}
