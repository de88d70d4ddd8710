//! Filters for tracepoints. The kernel drops non-matching events before it counts or samples them.

use std::ffi::CString;
use std::io;

use crate::event::EventSpec;
use pmc_sys::sys::perf::EventFd;

/// A filter that the kernel refused: the event, the filter text, and the kernel's error.
pub type RefusedFilter<'a> = (&'a EventSpec, &'a str, io::Error);

/// Applies the filters of open events.
pub(super) fn set<'a>(
    open: impl Iterator<Item = (&'a EventSpec, &'a EventFd)>,
) -> Result<(), RefusedFilter<'a>> {
    for (spec, fd) in open {
        let Some(filter) = &spec.filter else { continue };
        let c = CString::new(filter.as_str()).map_err(io::Error::from);
        c.and_then(|c| fd.set_filter(&c)).map_err(|error| (spec, filter.as_str(), error))?;
    }
    Ok(())
}
