//! Values of processes and threads over time.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A time in a recording: nanoseconds of the recording's clock, or the offset in its data if the events have
/// no times.
pub type Timestamp = u64;

/// Values, each valid from its timestamp on. Has inline space for one value, because most threads have only
/// one name.
pub(super) type Timeline<T> = SmallVec<[(Timestamp, T); 1]>;

/// Values by process or thread. Stored contiguously, because a hash table would reserve twice the space.
pub(super) type ById<T> = IndexMap<i32, T, FxBuildHasher>;

/// Returns the value at a timestamp, or the first value if the timestamp is earlier.
pub(super) fn at<T: Copy>(timeline: &Timeline<T>, timestamp: Timestamp) -> Option<T> {
    let after = timeline.partition_point(|(from, _)| *from <= timestamp);
    timeline.get(after.saturating_sub(1)).map(|(_, value)| *value)
}

/// Removes all values older than the one that is valid at this timestamp.
pub(super) fn past<T: Copy>(timeline: &mut Timeline<T>, before: Timestamp) {
    let after = timeline.partition_point(|(from, _)| *from <= before);
    timeline.drain(..after.saturating_sub(1));
    timeline.shrink_to_fit();
}
