//! Flags of `AUX` records: what is to be known of the piece of a trace that one tells of.
//!
//! Source: `PERF_AUX_FLAG_*` in `include/uapi/linux/perf_event.h`.

use perf_event_open_sys::bindings as b;

/// It is cut off: there was no room for more.
pub const TRUNCATED: u64 = b::PERF_AUX_FLAG_TRUNCATED as u64;
/// Older pieces are written over: the area keeps the newest.
pub const OVERWRITE: u64 = b::PERF_AUX_FLAG_OVERWRITE as u64;
/// It has gaps.
pub const PARTIAL: u64 = b::PERF_AUX_FLAG_PARTIAL as u64;
/// Samples of the hardware fell together.
pub const COLLISION: u64 = b::PERF_AUX_FLAG_COLLISION as u64;
