//! `misc` in a record's header: flags whose meaning hangs on the record's type (`PERF_RECORD_MISC_*`).

use perf_event_open_sys::bindings as b;

/// Bits 0–2: see [`super::CpuMode`].
pub const CPUMODE_MASK: u16 = b::PERF_RECORD_MISC_CPUMODE_MASK as u16;
/// Reading `/proc/PID/maps` took too long: mappings are missing.
pub const PROC_MAP_PARSE_TIMEOUT: u16 = b::PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT as u16;
/// On `MMAP*`: not executable.
pub const MMAP_DATA: u16 = b::PERF_RECORD_MISC_MMAP_DATA as u16;
/// On `COMM`: because of exec.
pub const COMM_EXEC: u16 = b::PERF_RECORD_MISC_COMM_EXEC as u16;
/// On `FORK`: perf made it for an exec.
pub const FORK_EXEC: u16 = b::PERF_RECORD_MISC_FORK_EXEC as u16;
/// On `SWITCH*`: away from the task.
pub const SWITCH_OUT: u16 = b::PERF_RECORD_MISC_SWITCH_OUT as u16;
/// On `SAMPLE`: the address is exact.
pub const EXACT_IP: u16 = b::PERF_RECORD_MISC_EXACT_IP as u16;
/// On `SWITCH*`: the task could have gone on.
pub const SWITCH_OUT_PREEMPT: u16 = b::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT as u16;
/// On `MMAP2`: a build-id stands where device and inode would.
pub const MMAP_BUILD_ID: u16 = b::PERF_RECORD_MISC_MMAP_BUILD_ID as u16;
/// On `HEADER_BUILD_ID`, which is perf's own record: the build-id's size is given (perf's
/// `PERF_RECORD_MISC_BUILD_ID_SIZE`).
pub const BUILD_ID_SIZE: u16 = 1 << 15;
