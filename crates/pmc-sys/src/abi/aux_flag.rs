//! Flags of `AUX` records, which describe the chunk of trace data that the record refers to.
//!
//! Source: `PERF_AUX_FLAG_*` in `include/uapi/linux/perf_event.h`.

use perf_event_open_sys::bindings as b;

/// The AUX data of this record was truncated because the AUX area was full.
pub const TRUNCATED: u64 = b::PERF_AUX_FLAG_TRUNCATED as u64;
/// The AUX area is in overwrite mode: new data overwrites the oldest data.
pub const OVERWRITE: u64 = b::PERF_AUX_FLAG_OVERWRITE as u64;
/// The AUX data of this record has gaps.
pub const PARTIAL: u64 = b::PERF_AUX_FLAG_PARTIAL as u64;
/// A hardware sample collided with another one.
pub const COLLISION: u64 = b::PERF_AUX_FLAG_COLLISION as u64;
