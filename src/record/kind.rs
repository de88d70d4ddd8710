//! The numbers of the records, and their names as perf prints them (without `PERF_RECORD_`).
//!
//! Decides nothing. Sources: `include/uapi/linux/perf_event.h` (below 64) and
//! `tools/lib/perf/include/perf/event.h` (64 and above), Linux 6.18.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u32 = $number;)*

        /// The name of a record, such as `MMAP2`; `None` for numbers that Linux 6.18 does not know.
        pub fn name(kind: u32) -> Option<&'static str> {
            let name = match kind { $($number => stringify!($name),)* _ => return None };
            Some(name.strip_prefix("HEADER_").unwrap_or(name))
        }
    };
}

kinds! {
    /// A mapping, in its oldest form.
    MMAP = 1;
    /// Records that did not fit into the ring.
    LOST = 2;
    /// A thread took a name.
    COMM = 3;
    /// A thread ended.
    EXIT = 4;
    /// The kernel took samples too often and stopped for this tick.
    THROTTLE = 5;
    /// It goes on.
    UNTHROTTLE = 6;
    /// A thread began.
    FORK = 7;
    /// An inherited counter's last value.
    READ = 8;
    /// A sample.
    SAMPLE = 9;
    /// A mapping with its inode or build-id.
    MMAP2 = 10;
    /// Bytes arrived in the AUX area.
    AUX = 11;
    /// An instruction trace began.
    ITRACE_START = 12;
    /// Samples that the hardware dropped.
    LOST_SAMPLES = 13;
    /// A context switch of the task the event belongs to.
    SWITCH = 14;
    /// A context switch on the CPU the event belongs to.
    SWITCH_CPU_WIDE = 15;
    /// A task's namespaces.
    NAMESPACES = 16;
    /// A symbol came into or left the kernel.
    KSYMBOL = 17;
    /// A BPF program came or went.
    BPF_EVENT = 18;
    /// A cgroup was made.
    CGROUP = 19;
    /// Kernel text was changed.
    TEXT_POKE = 20;
    /// Which hardware id AUX output uses.
    AUX_OUTPUT_HW_ID = 21;
    /// The user part of an earlier sample's call chain.
    CALLCHAIN_DEFERRED = 22;

    /// An event's attr and ids (pipe form).
    HEADER_ATTR = 64;
    /// An event's name (before Linux 3.0).
    HEADER_EVENT_TYPE = 65;
    /// Tracing data follows the record (pipe form).
    HEADER_TRACING_DATA = 66;
    /// A file's build-id.
    HEADER_BUILD_ID = 67;
    /// No record after this one is older than any before the previous one.
    FINISHED_ROUND = 68;
    /// Which event, CPU and thread each id belongs to.
    ID_INDEX = 69;
    /// How to read AUX data.
    AUXTRACE_INFO = 70;
    /// AUX data follows the record.
    AUXTRACE = 71;
    /// An error of an AUX decoder.
    AUXTRACE_ERROR = 72;
    /// The threads recorded.
    THREAD_MAP = 73;
    /// The CPUs recorded.
    CPU_MAP = 74;
    /// How `perf stat record` was run.
    STAT_CONFIG = 75;
    /// One count.
    STAT = 76;
    /// A round of counts ended.
    STAT_ROUND = 77;
    /// Unit, scale, name or CPUs of an event.
    EVENT_UPDATE = 78;
    /// How TSC and `perf` time relate.
    TIME_CONV = 79;
    /// A feature section (pipe form).
    HEADER_FEATURE = 80;
    /// Compressed records.
    COMPRESSED = 81;
    /// All synthesized records stand before this one.
    FINISHED_INIT = 82;
    /// Compressed records with an exact size (Linux 6.16).
    COMPRESSED2 = 83;
    /// Variables of a BPF program.
    BPF_METADATA = 84;
    /// `/proc/schedstat` of a CPU.
    SCHEDSTAT_CPU = 85;
    /// `/proc/schedstat` of a scheduling domain.
    SCHEDSTAT_DOMAIN = 86;
}

/// The first number that perf gives, not the kernel.
pub const FIRST_USER: u32 = 64;

/// The first number that simpleperf (Android) gives.
pub const FIRST_SIMPLEPERF: u32 = 1 << 15;
/// The last number that is taken for one of simpleperf's, which has given a dozen.
pub const LAST_SIMPLEPERF: u32 = FIRST_SIMPLEPERF + 255;
