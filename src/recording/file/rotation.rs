//! `--switch-output`: when the recording goes on in another file, and what the files are called.

use std::path::{Path, PathBuf};

use crate::sys::clock;

/// `perf.data` with the date and time behind it, as perf names such files: `perf.data.2026112105061234`.
pub(crate) fn name(base: &Path) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(clock::local_stamp());
    name.into()
}
