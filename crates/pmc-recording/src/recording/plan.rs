//! Plans that commands make from their arguments. A plan specifies the targets, the time, the events and the
//! output.
//!
//! Plans are plain values that contain neither clap types nor open descriptors. A command's `plan.rs` makes a
//! plan, and [`open`](super::open), [`live`](super::live), [`file`](super::file) and
//! [`counting`](super::counting) carry it out.

use std::ffi::OsString;
use std::path::PathBuf;

use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::reservation::Policy;
use pmc_events::counter::rings::AuxOptions;
use pmc_sys::host::CpuList;
use pmc_sys::host::tracer::Tracer;
use pmc_sys::sys::output_file;

/// The targets of a measurement.
#[derive(Debug, Clone)]
pub enum MeasurementScope {
    /// The command and its descendants.
    Command,
    /// These processes, with all threads.
    Processes(Vec<u32>),
    /// These processes and their descendants, with all threads.
    Families(Vec<u32>),
    /// These threads.
    Threads(Vec<u32>),
    /// All processes of this user, given by name or number.
    User(String),
    /// All threads of the machine, one by one.
    AllThreads,
    /// Everything on these CPUs.
    Cpus(CpuList),
}

/// When measuring starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delay {
    /// Together with the command.
    #[default]
    None,
    /// After a delay of this many nanoseconds.
    Ns(u64),
    /// When an order arrives through the control channel.
    UntilOrder,
}

/// When a measurement begins and ends, and the command to run meanwhile.
#[derive(Debug, Clone, Default)]
pub struct RunSchedule {
    /// Command to start; may be empty. The measurement ends when the command ends.
    pub command: Vec<OsString>,
    /// Additional environment variables for the command.
    pub environment: Vec<(OsString, OsString)>,
    /// When measuring starts.
    pub delay: Delay,
    /// Times at which the events are switched off, on again, and so on, in nanoseconds from the start. The
    /// last entry switches them off and ends the measurement. If empty, the events stay on.
    pub switches: Vec<u64>,
    /// Maximum duration in nanoseconds.
    pub timeout_ns: Option<u64>,
}

/// Synthesized records for tasks that are already running when the recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthesis {
    /// Threads with their names.
    pub tasks: bool,
    /// Mappings of these threads' processes.
    pub mappings: bool,
    /// Cgroups, if the events record them.
    pub cgroups: bool,
}

impl Synthesis {
    /// All kinds of records.
    pub(crate) const ALL: Self = Self { tasks: true, mappings: true, cgroups: true };
}

/// Which events exclude pmc itself. The kernel supports this only for tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfExclusion {
    /// No events.
    Never,
    /// All tracepoints; there must be at least one.
    Tracepoints,
    /// All events if all of them are tracepoints, otherwise none, so that pairs of events stay complete.
    AllOrNone,
}

/// The events to sample, their targets, and the sampling options.
#[derive(Debug, Clone)]
pub struct SamplePlan {
    /// Event strings as the user typed them; empty: cycles.
    pub events: Vec<String>,
    /// Filters, each with the index of its event string in `events`.
    pub filters: Vec<(usize, String)>,
    /// The targets.
    pub scope: MeasurementScope,
    /// Names of cgroups: one for all events, or one per event.
    pub cgroups: Vec<String>,
    /// Sampling options for the kernel.
    pub options: SampleOptions,
    /// Which events exclude pmc itself.
    pub excludes_self: SelfExclusion,
    /// Synthesized records for running tasks.
    pub synthesis: Synthesis,
    /// Whether the frequency in `options` is the kernel's limit (`-F max`).
    pub freq_max: bool,
    /// Whether a frequency above the kernel's limit is an error instead of a warning.
    pub strict_freq: bool,
    /// Whether it is an error if another event or rate has to be used instead.
    pub strict: bool,
    /// Whether samples begin with their event's id even if there is only one event.
    pub with_id: bool,
    /// Whether and how off-CPU time is recorded too.
    pub off_cpu: Option<OffCpuPlan>,
    /// Whether the events start before the command's exec instead of with it, so that the exec is recorded.
    pub includes_exec: bool,
    /// Whether stack copies are unwound while recording instead of being written to the file.
    pub unwinds: bool,
    /// Whether truncated stacks are completed from earlier samples of the same thread.
    pub joins: bool,
    /// Whether there is one ring per thread instead of one per CPU.
    pub per_thread: bool,
    /// Whether records of mappings and tasks go to separate rings, which keep the newest records.
    pub tracks_apart: bool,
    /// Whether to include records that the rings of persistent events already contain.
    pub backlog: bool,
    /// Pages per ring; `None`: as many as are useful and allowed.
    pub ring_pages: Option<usize>,
    /// Useful size of a ring in bytes, for samples without stack copies.
    pub useful_ring: u64,
    /// Pages per AUX area, into which the hardware writes its trace; `None`: perf's default.
    pub aux_pages: Option<usize>,
    /// Bytes of trace data in each sample of an event whose group leader is a trace.
    pub aux_sample: Option<u32>,
    /// The trace settings, once the events are known.
    pub trace: Option<TracePlan>,
    /// How to treat reservations of the hardware counters by other programs.
    pub reserve: Policy,
    /// When to measure.
    pub run_schedule: RunSchedule,
    /// Whether to print the size of the rings.
    pub verbose: bool,
}

/// Default of [`SamplePlan::useful_ring`]. A ring of this size holds a second of samples at almost any rate,
/// and a larger ring would only cause more cache misses.
const RING: u64 = 2 << 20;

impl SamplePlan {
    /// Returns a plan that samples cycles in this scope with these options, from start to end.
    pub fn on(scope: MeasurementScope, options: SampleOptions) -> Self {
        Self {
            events: Vec::new(),
            filters: Vec::new(),
            scope,
            cgroups: Vec::new(),
            options,
            excludes_self: SelfExclusion::Never,
            synthesis: Synthesis::ALL,
            freq_max: false,
            strict_freq: false,
            strict: false,
            with_id: false,
            off_cpu: None,
            includes_exec: false,
            unwinds: false,
            joins: true,
            per_thread: false,
            tracks_apart: false,
            backlog: false,
            ring_pages: None,
            useful_ring: RING,
            aux_pages: None,
            aux_sample: None,
            trace: None,
            reserve: Policy::default(),
            run_schedule: RunSchedule::default(),
            verbose: false,
        }
    }
}

/// How to record off-CPU time; see [`off_cpu`](super::off_cpu).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuPlan {
    /// Minimum length of a wait with a stack, in nanoseconds. Shorter waits are summed up per thread, without
    /// stacks.
    pub threshold_ns: u64,
    /// Whether to record what wakes waiting threads, and which threads run while they wait for a CPU.
    pub has_wakers: bool,
}

/// The hardware trace and its AUX areas.
#[derive(Debug, Clone)]
pub struct TracePlan {
    /// The kind of tracing hardware.
    pub(crate) tracer: Tracer,
    /// The PMU's name in sysfs.
    pub(crate) pmu: String,
    pub(crate) area: AuxOptions,
    /// Whether only samples contain trace data.
    pub(crate) in_samples: bool,
}

/// Condition for switching to a new output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// SIGUSR2 has arrived.
    Signal,
    /// The file has reached this many bytes.
    Bytes(u64),
    /// This many nanoseconds have passed.
    Ns(u64),
}

/// The destination of a recording.
#[derive(Debug)]
pub struct FilePlan {
    /// Path of the file; `-`: stdout.
    pub path: PathBuf,
    /// Whether the file's name ends with the date and time.
    pub is_stamped: bool,
    /// zstd compression level; `None`: no compression.
    pub compress: Option<i32>,
    /// Condition for switching to a new output file.
    pub rotation: Option<Rotation>,
    /// Trigger events that also switch to a new output file.
    pub rotates_at: Option<String>,
    /// Maximum number of files in a series; older files are removed.
    pub most_files: Option<usize>,
    /// Shell command to run for each finished file of a series.
    pub switch_exec: Option<String>,
    /// Size in bytes at which the recording ends.
    pub max_size: Option<u64>,
    /// Whether SIGUSR2 or an order writes a snapshot of the rings.
    pub snapshots: bool,
    /// Which build-ids the recording contains.
    pub build_ids: BuildIdChoice,
    /// Whether the files are added to the build-id cache.
    pub keeps_files: bool,
    /// Content of `STAT_CONFIG`, if the recording ends with the totals in the format of `stat record`.
    pub stat_config: Vec<[u64; 2]>,
}

impl FilePlan {
    /// Whether the records go to stdout.
    pub fn is_stream(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl FilePlan {
    /// Returns a plan for one plain file.
    pub fn of(path: PathBuf) -> Self {
        Self {
            path: output_file::without_slash(&path).to_owned(),
            is_stamped: false,
            compress: None,
            rotation: None,
            rotates_at: None,
            most_files: None,
            switch_exec: None,
            max_size: None,
            snapshots: false,
            build_ids: BuildIdChoice::None,
            keeps_files: false,
            stat_config: Vec::new(),
        }
    }
}

/// Which build-ids a recording contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildIdChoice {
    /// No build-ids.
    None,
    /// Build-ids of files with samples.
    Hit,
    /// Build-ids of all mapped files.
    All,
}
