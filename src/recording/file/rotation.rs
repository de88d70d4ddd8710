//! `--switch-output`: when the recording goes on in another file, and what the files are called.

use std::path::{Path, PathBuf};

use crate::sys::clock;

/// What begins another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// SIGUSR2.
    Signal,
    /// The file has so many bytes.
    Bytes(u64),
    /// So many nanoseconds have passed.
    Ns(u64),
}

/// `perf.data` with the date and time behind it, as perf names such files: `perf.data.2026112105061234`.
pub(crate) fn name(base: &Path) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(clock::local_stamp());
    name.into()
}
