//! Record types and their names as perf prints them, without `PERF_RECORD_`.
//!
//! Sources: `include/uapi/linux/perf_event.h` (below 64) and `tools/lib/perf/include/perf/event.h` (64 and
//! above), Linux 6.18.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u32 = $number;)*

        /// Returns the name of a record type, such as `MMAP2`; `None` for types that Linux 6.18 does not
        /// define.
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
    /// A thread's new name.
    COMM = 3;
    /// The end of a thread.
    EXIT = 4;
    /// Sampling exceeded the kernel's limit and is paused for the current tick.
    THROTTLE = 5;
    /// Sampling resumes.
    UNTHROTTLE = 6;
    /// The start of a thread.
    FORK = 7;
    /// An inherited counter's last value.
    READ = 8;
    /// A sample.
    SAMPLE = 9;
    /// A mapping with its inode or build-id.
    MMAP2 = 10;
    /// New data in the AUX area.
    AUX = 11;
    /// The start of an instruction trace.
    ITRACE_START = 12;
    /// Samples that the hardware dropped.
    LOST_SAMPLES = 13;
    /// A context switch of the event's task.
    SWITCH = 14;
    /// A context switch on the event's CPU.
    SWITCH_CPU_WIDE = 15;
    /// A task's namespaces.
    NAMESPACES = 16;
    /// A kernel symbol was registered or unregistered.
    KSYMBOL = 17;
    /// A BPF program was loaded or unloaded.
    BPF_EVENT = 18;
    /// A new cgroup.
    CGROUP = 19;
    /// A change of kernel text.
    TEXT_POKE = 20;
    /// The hardware id used by AUX output.
    AUX_OUTPUT_HW_ID = 21;
    /// The user part of an earlier sample's call chain.
    CALLCHAIN_DEFERRED = 22;

    /// An event's attr and ids (pipe mode).
    HEADER_ATTR = 64;
    /// An event's name (before Linux 3.0).
    HEADER_EVENT_TYPE = 65;
    /// Tracing data follows the record (pipe mode).
    HEADER_TRACING_DATA = 66;
    /// A file's build-id.
    HEADER_BUILD_ID = 67;
    /// No later record is older than any record before the previous `FINISHED_ROUND`.
    FINISHED_ROUND = 68;
    /// The event, CPU and thread of each id.
    ID_INDEX = 69;
    /// Settings for decoding AUX data.
    AUXTRACE_INFO = 70;
    /// AUX data follows the record.
    AUXTRACE = 71;
    /// An error reported by an AUX decoder.
    AUXTRACE_ERROR = 72;
    /// The recorded threads.
    THREAD_MAP = 73;
    /// The recorded CPUs.
    CPU_MAP = 74;
    /// Settings of `perf stat record`.
    STAT_CONFIG = 75;
    /// One count.
    STAT = 76;
    /// The end of a round of counts.
    STAT_ROUND = 77;
    /// Unit, scale, name or CPUs of an event.
    EVENT_UPDATE = 78;
    /// The parameters for converting the TSC to perf's timestamps.
    TIME_CONV = 79;
    /// A feature section (pipe mode).
    HEADER_FEATURE = 80;
    /// Compressed records.
    COMPRESSED = 81;
    /// The end of the synthesized records.
    FINISHED_INIT = 82;
    /// Compressed records with an exact size (Linux 6.16).
    COMPRESSED2 = 83;
    /// Variables of a BPF program.
    BPF_METADATA = 84;
    /// `/proc/schedstat` of a CPU.
    SCHEDSTAT_CPU = 85;
    /// The `/proc/schedstat` counters of a scheduling domain.
    SCHEDSTAT_DOMAIN = 86;
}

/// The first type defined by perf instead of the kernel.
pub const FIRST_USER: u32 = 64;

/// The first type defined by simpleperf (Android).
pub const FIRST_SIMPLEPERF: u32 = 1 << 15;
/// The last type that is treated as a simpleperf type. simpleperf has defined about a dozen types so far.
pub const LAST_SIMPLEPERF: u32 = FIRST_SIMPLEPERF + 255;
