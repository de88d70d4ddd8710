//! From a plan to a file, to live batches, or to counts.

pub(crate) mod control;
pub(crate) mod counting;
pub(crate) mod ending;
pub(crate) mod file;
pub(crate) mod launch;
pub(crate) mod live;
mod misattributed;
mod new_threads;
pub(crate) mod open;
pub(crate) mod plan;
pub(crate) mod synthesize;
mod unwinding;
