//! What commands make of what was typed: whom to measure, when, what is sampled and how, and where it goes.
//!
//! Plain values, without clap and without anything open. A plan is made by a command's `plan.rs` and carried
//! out by [`open`](super::open), [`live`](super::live), [`file`](super::file) and
//! [`counting`](super::counting).

use std::ffi::OsString;
use std::path::PathBuf;

use crate::counter::request::sampling::SampleOptions;
use crate::counter::reservation::Policy;
use crate::counter::rings::AuxOptions;
use crate::host::CpuList;
use crate::host::tracer::Tracer;

/// Whom to measure.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// The command and its descendants.
    Command,
    /// These processes, all threads.
    Processes(Vec<u32>),
    /// These processes and their descendants, all threads.
    Families(Vec<u32>),
    /// These threads.
    Threads(Vec<u32>),
    /// All processes of this user, by name or number.
    User(String),
    /// All threads of the machine, each by itself.
    AllThreads,
    /// Everything on these CPUs.
    Cpus(CpuList),
}

/// When measuring starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delay {
    /// With the command.
    #[default]
    None,
    /// So many nanoseconds later.
    Ns(u64),
    /// When the control channel says so.
    UntilOrder,
}

/// When a measurement begins and ends, and what runs meanwhile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    /// Started for the measurement, which ends with it; may be empty.
    pub(crate) command: Vec<OsString>,
    /// Variables that it has besides ours.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// When it begins.
    pub(crate) delay: Delay,
    /// When the events go off after that, on again, and so on, in nanoseconds from the start. With the last,
    /// which is off, it is over; empty: they stay on.
    pub(crate) switches: Vec<u64>,
    /// How long it takes at most, in nanoseconds.
    pub(crate) timeout_ns: Option<u64>,
}

/// What is told of tasks that run before the recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Synthesis {
    /// Threads with their names.
    pub(crate) tasks: bool,
    /// What they have mapped.
    pub(crate) mappings: bool,
    /// Cgroups, where these are recorded.
    pub(crate) cgroups: bool,
}

impl Synthesis {
    /// Everything.
    pub(crate) const ALL: Self = Self { tasks: true, mappings: true, cgroups: true };
}

/// What is sampled, on whom, how.
#[derive(Debug, Clone)]
pub(crate) struct SamplePlan {
    /// Event texts as typed; empty: cycles.
    pub(crate) events: Vec<String>,
    /// Filters, each with the index of the event text that it belongs to.
    pub(crate) filters: Vec<(usize, String)>,
    /// Whom.
    pub(crate) scope: Scope,
    /// Names of cgroups: one for all events, or one for each.
    pub(crate) cgroups: Vec<String>,
    /// How the kernel takes samples.
    pub(crate) options: SampleOptions,
    /// Tracepoints leave out pmc itself.
    pub(crate) excludes_self: bool,
    /// What is told of those who run already.
    pub(crate) synthesis: Synthesis,
    /// What `options` says is the kernel's limit itself (`-F max`).
    pub(crate) freq_max: bool,
    /// A frequency above the kernel's limit is an error, not a warning.
    pub(crate) strict_freq: bool,
    /// Nothing else is measured than what was asked for.
    pub(crate) strict: bool,
    /// Samples begin with their event's id, even where there is one event only.
    pub(crate) with_id: bool,
    /// Copies of stacks are unwound at once, not written as they are.
    pub(crate) unwinds: bool,
    /// Those that end with their copy are joined with what was seen of their threads before.
    pub(crate) joins: bool,
    /// A ring for each thread, not for each CPU.
    pub(crate) per_thread: bool,
    /// What tells of mappings and tasks has rings of its own, which keep the newest.
    pub(crate) tracks_apart: bool,
    /// Of persistent events, what their rings hold already is taken too.
    pub(crate) backlog: bool,
    /// Pages of a ring; `None`: as many as are useful and allowed.
    pub(crate) ring_pages: Option<usize>,
    /// Pages of the area beside each ring into which hardware traces; `None`: as many as perf has.
    pub(crate) aux_pages: Option<usize>,
    /// Samples of events whose group a trace leads carry so many bytes of it.
    pub(crate) aux_sample: Option<u32>,
    /// What is traced, once the events are known.
    pub(crate) trace: Option<TracePlan>,
    /// What to do about other people's use of the hardware counters.
    pub(crate) reserve: Policy,
    /// When.
    pub(crate) course: Course,
    /// Says how large the rings are.
    pub(crate) verbose: bool,
}

impl SamplePlan {
    /// Cycles of these, taken by default options, from the start to the end.
    pub(crate) fn on(scope: Scope, options: SampleOptions) -> Self {
        Self {
            events: Vec::new(),
            filters: Vec::new(),
            scope,
            cgroups: Vec::new(),
            options,
            excludes_self: false,
            synthesis: Synthesis::ALL,
            freq_max: false,
            strict_freq: false,
            strict: false,
            with_id: false,
            unwinds: false,
            joins: true,
            per_thread: false,
            tracks_apart: false,
            backlog: false,
            ring_pages: None,
            aux_pages: None,
            aux_sample: None,
            trace: None,
            reserve: Policy::default(),
            course: Course::default(),
            verbose: false,
        }
    }
}

/// What is traced, and into what.
#[derive(Debug, Clone)]
pub(crate) struct TracePlan {
    /// By whom.
    pub(crate) tracer: Tracer,
    /// The PMU, as sysfs names it.
    pub(crate) pmu: String,
    /// The areas beside the rings.
    pub(crate) area: AuxOptions,
    /// The trace goes into samples, and nowhere else.
    pub(crate) in_samples: bool,
}

/// What begins another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// SIGUSR2.
    Signal,
    /// The file has so many bytes.
    Bytes(u64),
    /// So many nanoseconds have passed.
    Ns(u64),
}

/// Where a recording goes.
#[derive(Debug)]
pub(crate) struct FilePlan {
    /// The file; `-`: standard output.
    pub(crate) path: PathBuf,
    /// The file's name ends in date and time.
    pub(crate) is_stamped: bool,
    /// The level of zstd.
    pub(crate) compress: Option<i32>,
    /// What begins another file.
    pub(crate) rotation: Option<Rotation>,
    /// Events that begin another file besides.
    pub(crate) rotates_at: Option<String>,
    /// Older files of a row are removed when there are more than this.
    pub(crate) most_files: Option<usize>,
    /// Bytes at which the recording ends.
    pub(crate) max_size: Option<u64>,
    /// A snapshot of the rings at SIGUSR2 or an order.
    pub(crate) snapshots: bool,
    /// Whose build-ids stand in it.
    pub(crate) build_ids: BuildIdChoice,
    /// Their files are kept in the cache by build-id.
    pub(crate) keeps_files: bool,
    /// What `STAT_CONFIG` says, where the totals stand at the end as `stat record` keeps them.
    pub(crate) stat_config: Vec<[u64; 2]>,
}

impl FilePlan {
    /// Whether the records go to standard output.
    pub(crate) fn is_stream(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl FilePlan {
    /// One plain file.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self {
            path,
            is_stamped: false,
            compress: None,
            rotation: None,
            rotates_at: None,
            most_files: None,
            max_size: None,
            snapshots: false,
            build_ids: BuildIdChoice::None,
            keeps_files: false,
            stat_config: Vec::new(),
        }
    }
}

/// Whose build-ids stand in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildIdChoice {
    /// Nobody's.
    None,
    /// Of the files that samples hit.
    Hit,
    /// Of all that were mapped.
    All,
}
