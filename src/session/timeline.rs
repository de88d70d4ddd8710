//! Values of processes and threads over time: what held at a timestamp.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// When in a recording: nanoseconds of its clock, or where its events have no times, the offset in its data.
pub type Timestamp = u64;

/// Values that hold from a timestamp on. Most threads have one name.
pub(super) type Timeline<T> = SmallVec<[(Timestamp, T); 1]>;

/// Values by process or thread. They lie side by side: a hash table would hold room for twice as many.
pub(super) type ById<T> = IndexMap<i32, T, FxBuildHasher>;

/// What holds at a timestamp; before the first, the first.
pub(super) fn at<T: Copy>(timeline: &Timeline<T>, timestamp: Timestamp) -> Option<T> {
    let after = timeline.partition_point(|(from, _)| *from <= timestamp);
    timeline.get(after.saturating_sub(1)).map(|(_, value)| *value)
}

/// Drops what held before the value of this timestamp.
pub(super) fn past<T: Copy>(timeline: &mut Timeline<T>, before: Timestamp) {
    let after = timeline.partition_point(|(from, _)| *from <= before);
    timeline.drain(..after.saturating_sub(1));
    timeline.shrink_to_fit();
}
