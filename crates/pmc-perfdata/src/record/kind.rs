//! Record types: for each, its number, its name as perf prints it (without `PERF_RECORD_`), how its fields
//! are decoded, and how its bytes are swapped.
//!
//! Sources: `include/uapi/linux/perf_event.h` (below 64) and `tools/lib/perf/include/perf/event.h` (64 and
//! above), Linux 6.19.

use super::RawRecord;
use super::bytes::{Cursor, RecordWords};
use super::kernel::*;
use super::user::*;

/// The content after the fixed-width fields, for [`super::swap`].
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rest {
    /// A string or bytes, left unchanged.
    Keep,
    /// `u64` words up to the end.
    Words,
    /// An attr, then ids.
    Attr,
    /// Rows of a `u64` and a 16-byte string.
    Threads,
    /// A set of CPUs.
    Cpus,
    /// According to the sample's layout.
    Sample,
    /// According to the type of the `EVENT_UPDATE`.
    Update,
}

/// Defines the record types. A row has the number's name, the number, the variant of [`Record`] with its
/// fields and the function that decodes them, the widths of the fields at the front, and what follows them.
/// Further types have the same fields as another one.
macro_rules! record_types {
    (
        types { $($(#[$doc:meta])* $name:ident = $number:literal, $variant:ident
            $(($payload:ty)
        = |$c:pat_param, $raw:pat_param| $parse:expr)?, [$($width:literal),*] $rest:ident;)+ }
        further { $($(#[$more_doc:meta])* $more:ident = $more_number:literal, $same:ident

        = |$more_c:pat_param, $more_raw:pat_param| $more_parse:expr, [$($more_width:literal),*] $more_rest:ident;)+ }
    ) => {
        $($(#[$doc])* pub const $name: u32 = $number;)+
        $($(#[$more_doc])* pub const $more: u32 = $more_number;)+

        /// Returns the name of a record type, such as `MMAP2`; `None` for types that Linux 6.19 does not
        /// define.
        pub fn name(kind: u32) -> Option<&'static str> {
            let name = match kind {
                $($number => stringify!($name),)+
                $($more_number => stringify!($more),)+
                _ => return None,
            };
            Some(name.strip_prefix("HEADER_").unwrap_or(name))
        }

        /// Returns the widths of a record's fields at its front, and what follows them.
        pub(super) fn shape(kind: u32) -> (&'static [u8], Rest) {
            match kind {
                $($number => (&[$($width),*], Rest::$rest),)+
                $($more_number => (&[$($more_width),*], Rest::$more_rest),)+
                _ => (&[], Rest::Keep),
            }
        }

        /// A record with its fields. Strings are the bytes before the first NUL, not checked for UTF-8. Later
        /// versions of Linux add types.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Record<'a> {
            $($(#[$doc])* $variant $(($payload))?,)+
            /// A type that Linux 6.19 does not define. Callers use its size to skip it, and count it.
            Unknown(u32),
        }

        impl<'a> Record<'a> {
            /// Decodes the fields; `None` if the record is too short for them.
            pub(super) fn parse(raw: RawRecord<'a>) -> Option<Self> {
                let cursor = &mut Cursor::new(raw.body());
                Some(match raw.kind {
                    $($number => Self::$variant $(({
                        let decode
        = |$c: &mut Cursor<'a>, $raw: RawRecord<'a>| -> Option<$payload> { $parse };
                        decode(cursor, raw)?
                    }))?,)+
                    $($more_number => Self::$same({
                        let decode = |$more_c: &mut Cursor<'a>, $more_raw: RawRecord<'a>| $more_parse;
                        decode(cursor, raw)?
                    }),)+
                    unknown => Self::Unknown(unknown),
                })
            }
        }
    };
}

record_types! {
    types {
        /// A mapping, in its oldest form.
        MMAP = 1, Mmap(Mmap<'a>) = |c, raw| Mmap::parse(c, raw.misc), [4, 4, 8, 8, 8] Keep;
        /// Records that did not fit into the ring.
        LOST = 2, Lost(Lost) = |c, _| Lost::parse(c), [] Words;
        /// A thread's new name.
        COMM = 3, Comm(Comm<'a>) = |c, raw| Comm::parse(c, raw.misc), [4, 4] Keep;
        /// The end of a thread.
        EXIT = 4, Exit(Task) = |c, _| Task::parse(c), [4, 4, 4, 4, 8] Keep;
        /// Sampling exceeded the kernel's limit and is paused for the current tick.
        THROTTLE = 5, Throttle(Throttle) = |c, _| Throttle::parse(c), [] Words;
        /// Sampling resumes.
        UNTHROTTLE = 6, Unthrottle(Throttle) = |c, _| Throttle::parse(c), [] Words;
        /// The start of a thread.
        FORK = 7, Fork(Task) = |c, _| Task::parse(c), [4, 4, 4, 4, 8] Keep;
        /// An inherited counter's last value.
        READ = 8, Read(Read<'a>) = |c, _| Read::parse(c), [4, 4] Words;
        /// A sample.
        SAMPLE = 9, Sample(&'a [u8]) = |_, raw| Some(raw.body()), [] Sample;
        /// A mapping with its inode or build-id.
        MMAP2 = 10, Mmap2(Mmap2<'a>) = |c, raw| Mmap2::parse(c, raw.misc), [4, 4, 8, 8, 8, 4, 4, 8, 8, 4, 4] Keep;
        /// New data in the AUX area.
        AUX = 11, Aux(Aux) = |c, _| Aux::parse(c), [] Words;
        /// The start of an instruction trace.
        ITRACE_START = 12, ItraceStart(Thread) = |c, _| Thread::parse(c), [4, 4] Keep;
        /// Samples that the hardware dropped.
        LOST_SAMPLES = 13, LostSamples(u64) = |c, _| c.u64(), [] Words;
        /// A context switch of the event's task.
        SWITCH = 14, Switch(Switch) = |_, raw| Some(Switch::new(raw.misc, None)), [] Keep;
        /// A context switch on the event's CPU.
        SWITCH_CPU_WIDE = 15, SwitchCpuWide(Switch) = |c, raw| Switch::parse(c, raw.misc), [4, 4] Keep;
        /// A task's namespaces.
        NAMESPACES = 16, Namespaces(Namespaces<'a>) = |c, _| Namespaces::parse(c), [4, 4] Words;
        /// A kernel symbol was registered or unregistered.
        KSYMBOL = 17, Ksymbol(Ksymbol<'a>) = |c, _| Ksymbol::parse(c), [8, 4, 2, 2] Keep;
        /// A BPF program was loaded or unloaded.
        BPF_EVENT = 18, BpfEvent(BpfEvent) = |c, _| BpfEvent::parse(c), [2, 2, 4] Keep;
        /// A new cgroup.
        CGROUP = 19, Cgroup(Cgroup<'a>) = |c, _| Cgroup::parse(c), [8] Keep;
        /// A change of kernel text.
        TEXT_POKE = 20, TextPoke(TextPoke<'a>) = |c, _| TextPoke::parse(c), [8, 2, 2] Keep;
        /// The hardware id used by AUX output.
        AUX_OUTPUT_HW_ID = 21, AuxOutputHwId(u64) = |c, _| c.u64(), [] Words;
        /// The user part of an earlier sample's call chain.
        CALLCHAIN_DEFERRED = 22, CallchainDeferred(CallchainDeferred<'a>)
            = |c, _| CallchainDeferred::parse(c), [] Words;

        /// An event's attr and ids (pipe mode).
        HEADER_ATTR = 64, HeaderAttr(HeaderAttr<'a>) = |c, _| HeaderAttr::parse(c), [] Attr;
        /// An event's name (before Linux 3.0).
        HEADER_EVENT_TYPE = 65, EventType(EventType<'a>) = |c, _| EventType::parse(c), [8] Keep;
        /// Tracing data follows the record (pipe mode).
        HEADER_TRACING_DATA = 66, TracingData(u32) = |c, _| c.u32(), [4] Keep;
        /// A file's build-id.
        HEADER_BUILD_ID = 67, BuildId(BuildIdRecord<'a>) = |c, raw| BuildIdRecord::parse(c, raw.misc), [4] Keep;
        /// No later record is older than any record before the previous `FINISHED_ROUND`.
        FINISHED_ROUND = 68, FinishedRound, [] Keep;
        /// The event, CPU and thread of each id.
        ID_INDEX = 69, IdIndex(IdIndex<'a>) = |c, _| IdIndex::parse(c), [] Words;
        /// Settings for decoding AUX data.
        AUXTRACE_INFO = 70, AuxtraceInfo(AuxtraceInfo<'a>) = |c, _| AuxtraceInfo::parse(c), [4, 4] Words;
        /// AUX data follows the record.
        AUXTRACE = 71, Auxtrace(Auxtrace) = |c, _| Auxtrace::parse(c), [8, 8, 8, 4, 4, 4, 4] Keep;
        /// An error reported by an AUX decoder.
        AUXTRACE_ERROR = 72, AuxtraceError(AuxtraceError<'a>)
            = |c, _| AuxtraceError::parse(c), [4, 4, 4, 4, 4, 4, 8, 8] Keep;
        /// The recorded threads.
        THREAD_MAP = 73, ThreadMap(ThreadMap<'a>) = |c, _| ThreadMap::parse(c), [8] Threads;
        /// The recorded CPUs.
        CPU_MAP = 74, CpuMap(CpuMap<'a>) = |c, _| CpuMap::parse(c), [] Cpus;
        /// Settings of `perf stat record`.
        STAT_CONFIG = 75, StatConfig(RecordWords<'a>) = |c, _| c.pairs(), [] Words;
        /// One count.
        STAT = 76, Stat(StatCount) = |c, _| StatCount::parse(c), [8, 4, 4, 8, 8, 8] Keep;
        /// The end of a round of counts.
        STAT_ROUND = 77, StatRound(StatRound) = |c, _| StatRound::parse(c), [] Words;
        /// Unit, scale, name or CPUs of an event.
        EVENT_UPDATE = 78, EventUpdate(EventUpdate<'a>) = |c, _| EventUpdate::parse(c), [8, 8] Update;
        /// The parameters for converting the TSC to perf's timestamps.
        TIME_CONV = 79, TimeConv(TimeConv) = |c, _| TimeConv::parse(c), [8, 8, 8, 8, 8] Keep;
        /// A feature section (pipe mode).
        HEADER_FEATURE = 80, HeaderFeature(HeaderFeature<'a>) = |c, _| HeaderFeature::parse(c), [8] Keep;
        /// Compressed records.
        COMPRESSED = 81, Compressed(&'a [u8]) = |_, raw| Some(raw.body()), [] Keep;
        /// The end of the synthesized records.
        FINISHED_INIT = 82, FinishedInit, [] Keep;
        /// Variables of a BPF program.
        BPF_METADATA = 84, BpfMetadata(BpfMetadata<'a>) = |c, _| BpfMetadata::parse(c), [] Keep;
        /// `/proc/schedstat` of a CPU. The body's layout depends on its version field.
        SCHEDSTAT_CPU = 85, Schedstat(&'a [u8]) = |_, raw| Some(raw.body()), [] Keep;
    }

    further {
        /// Compressed records with an exact size (Linux 6.16).
        COMPRESSED2 = 83, Compressed = |c, _| sized(c), [8] Keep;
        /// The `/proc/schedstat` counters of a scheduling domain.
        SCHEDSTAT_DOMAIN = 86, Schedstat = |_, raw| Some(raw.body()), [] Keep;
    }
}

/// Reads a size, then that many bytes.
fn sized<'a>(c: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = c.u64()?;
    c.take(usize::try_from(size).ok()?)
}

/// The first type defined by perf instead of the kernel.
pub const FIRST_USER: u32 = 64;

/// The first type defined by simpleperf (Android).
pub const FIRST_SIMPLEPERF: u32 = 1 << 15;
/// The last type that is treated as a simpleperf type. simpleperf has defined about a dozen types so far.
pub const LAST_SIMPLEPERF: u32 = FIRST_SIMPLEPERF + 255;
