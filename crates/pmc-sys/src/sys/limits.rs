//! Reads resource limits, and raises those that would prevent pmc from opening many counters.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Returns a limit of the calling process.
///
/// rustix's `getrlimit` takes for granted that the call succeeds. A seccomp filter can make it fail.
///
/// # Errors
/// Returns the kernel's error.
pub(super) fn limit(resource: Resource) -> io::Result<Rlimit> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a live local of the right type.
    if unsafe { libc::getrlimit(resource as _, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let bound = |value| (value != libc::RLIM_INFINITY).then_some(value);
    Ok(Rlimit { current: bound(limit.rlim_cur), maximum: bound(limit.rlim_max) })
}

/// Makes room for `needed` open descriptors: raises the soft limit up to the hard limit, and beyond it if
/// permitted.
///
/// # Errors
/// Returns the kernel's error if the limit stays below `needed`. [`super::credentials::Limits`] contains the
/// current limits.
pub fn raise_open_files(needed: u64) -> io::Result<()> {
    let limit = limit(Resource::Nofile)?;
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
