//! Reasons why a feature is not available, for `info` and `list`.
//!
//! Converts explanations of refusals, and errors from tracefs, to the types of the views, without control
//! characters.

use pmc_analysis::profile::machine as shown;
use pmc_events::counter::refusal::{Explanation, RefusalKind};
use pmc_events::hint::Hint;
use pmc_sys::error::Advice;
use pmc_sys::host::tracepoint::TracepointError;
use pmc_text::text::clean;

pub fn why(missing: &'static str, why: Explanation) -> shown::MissingReason {
    let errno = why.errno_name();
    shown::MissingReason {
        missing,
        errno,
        cause: cleaned(why.cause),
        remedy: cleaned(Advice::from(why.remedy).to_string()),
    }
}

/// Explains why tracepoint ids are not available on this machine.
pub fn no_tracepoint(error: TracepointError) -> Explanation {
    let kind = match &error {
        TracepointError::Denied(_) => RefusalKind::NoPrivilege,
        TracepointError::NotMounted | TracepointError::Absent => RefusalKind::NoHardware,
    };
    let remedy = error.remedy().map_or(Hint::ChooseTracepoint, Hint::from);
    Explanation { errno: None, kind, cause: error.to_string(), remedy }
}

pub fn cleaned(text: impl AsRef<str>) -> String {
    clean(text.as_ref()).into_owned()
}
