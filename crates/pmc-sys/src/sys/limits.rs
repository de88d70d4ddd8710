//! Raises resource limits that prevent opening many counters.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes room for `needed` open descriptors: raises the soft limit up to the hard limit, and beyond it if
/// permitted.
///
/// # Errors
/// The kernel's error, if the limit stays below `needed`. [`super::credentials::Limits`] has the current
/// limits.
pub fn raise_open_files(needed: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let enough = |bound: Option<u64>| bound.is_none_or(|b| b >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    if enough(limit.maximum) {
        return Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })?);
    }
    // Only root can exceed the hard limit.
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: Some(needed) }).map_err(|error| {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        error.into()
    })
}
