//! `attr.read_format`: what a read of an event gives beside its count (`PERF_FORMAT_*`, `enum
//! perf_event_read_format`).
//!
//! `TOTAL_TIME_ENABLED` and `TOTAL_TIME_RUNNING` are nanoseconds, `ID` the kernel's number of the event,
//! `GROUP` gives all events of the group in one read, `LOST` (Linux 6.0) the records that did not fit into
//! the ring.

super::bits! {
    TOTAL_TIME_ENABLED = PERF_FORMAT_TOTAL_TIME_ENABLED;
    TOTAL_TIME_RUNNING = PERF_FORMAT_TOTAL_TIME_RUNNING;
    ID = PERF_FORMAT_ID;
    GROUP = PERF_FORMAT_GROUP;
    LOST = PERF_FORMAT_LOST;
}
