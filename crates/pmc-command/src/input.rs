//! The recording that a command reads, and files next to it.

use std::path::{Path, PathBuf};

use pmc_sys::error::say;
use pmc_sys::sys::standard_input;

/// Returns the recording to read: the named file, or else standard input if it has data, or else `perf.data`.
pub fn input(typed: Option<&PathBuf>) -> PathBuf {
    let waiting = || say::note("waiting for a recording on standard input; use -i perf.data to read a file");
    let unnamed = || if standard_input::has_input(waiting) { "-" } else { "perf.data" }.into();
    typed.cloned().unwrap_or_else(unnamed)
}

/// Returns the path of a recording with a suffix. For standard input, the path is that of `perf.data`.
pub fn with_suffix(recording: &Path, suffix: &str) -> PathBuf {
    let named = if recording.as_os_str() == "-" { Path::new("perf.data") } else { recording };
    let mut path = named.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
