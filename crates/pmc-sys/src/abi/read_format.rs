//! `attr.read_format`: the values that a read of an event returns in addition to its count (`PERF_FORMAT_*`,
//! `enum perf_event_read_format`).
//!
//! `TOTAL_TIME_ENABLED` and `TOTAL_TIME_RUNNING` are in nanoseconds. `ID` is the kernel's unique ID of the
//! event. `GROUP` returns all events of the group in one read. `LOST` (Linux 6.0) is the number of records
//! that did not fit into the ring buffer.

super::bits! {
    TOTAL_TIME_ENABLED = PERF_FORMAT_TOTAL_TIME_ENABLED;
    TOTAL_TIME_RUNNING = PERF_FORMAT_TOTAL_TIME_RUNNING;
    ID = PERF_FORMAT_ID;
    GROUP = PERF_FORMAT_GROUP;
    LOST = PERF_FORMAT_LOST;
}
