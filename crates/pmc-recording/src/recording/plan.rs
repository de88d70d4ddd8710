//! Requests for measurements. A request specifies the targets, the time, the events and the output.
//!
//! Requests are plain values that contain neither clap types nor open descriptors. A command fills one, from
//! its options or by itself. [`record`](super::record) makes a recording for a [`RecordRequest`].
//! [`live`](super::live) and [`stream`](super::stream) carry out a [`SamplePlan`], and
//! [`counting`](super::counting) the rest. The values that users type implement `FromStr`.

use std::ffi::OsString;
use std::ops::BitOr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::reservation::Policy;
use pmc_events::counter::rings::AuxOptions;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::CpuList;
use pmc_sys::host::tracer::Tracer;
use pmc_sys::sys::{clock, output_file};
use pmc_text::units::{MS, parse_duration, parse_size};

use super::control::ControlChannel;
use super::ring_size::RingSize;

/// A recording to make. The default records cycles of the command into `perf.data`.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// What to sample, and when.
    pub sample: SamplePlan,
    /// Where the records go.
    pub file: FilePlan,
    /// Descriptors or FIFOs from which to read control commands.
    pub control: Option<ControlChannel>,
    /// Real-time priority of the thread that reads the rings.
    pub realtime: Option<i32>,
    /// Name or ID of the persistent entry that provides the events, if any.
    pub attach_to: Option<String>,
    /// Whether to discard the command's output.
    pub hides_output: bool,
    /// Whether to open the events but not to record.
    pub dry_run: bool,
}

impl Default for RecordRequest {
    fn default() -> Self {
        Self {
            sample: SamplePlan { unwinds: true, ..SamplePlan::default() },
            file: FilePlan {
                build_ids: BuildIdChoice::Hit,
                keeps_files: true,
                ..FilePlan::at("perf.data".into())
            },
            control: None,
            realtime: None,
            attach_to: None,
            hides_output: false,
            dry_run: false,
        }
    }
}

/// The targets of a measurement.
#[derive(Debug, Clone, Default)]
pub enum MeasurementScope {
    /// The command and its descendants.
    #[default]
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
    /// When a command arrives through the control channel.
    UntilCommand,
}

impl FromStr for Delay {
    type Err = Error;

    /// Parses a time, or -1.
    fn from_str(text: &str) -> Result<Self> {
        match (text, parse_duration(text, Some(MS))) {
            ("-1", _) => Ok(Self::UntilCommand),
            (_, Some(0)) => Ok(Self::None),
            (_, Some(ns)) => Ok(Self::Ns(ns)),
            (_, None) => Err(Error::usage("not a time").try_options(
                "-D 500ms or -D 2s (a bare number means milliseconds), or -1 to wait for --control",
            )),
        }
    }
}

impl Delay {
    /// Checks that a measurement that starts on a control command has a control channel.
    ///
    /// # Errors
    /// Fails if it has no control channel.
    pub fn check_control(self, has_control: bool) -> Result<()> {
        match self {
            Self::UntilCommand if !has_control => {
                Err(Error::usage("-D -1 requires --control").try_options("add --control fifo:PATH"))
            }
            _ => Ok(()),
        }
    }
}

/// When measuring starts, or the ranges of time in which it is on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DelayOrRanges {
    /// The delay, or the start of the first range.
    pub delay: Delay,
    /// With ranges, the times at which recording is alternately turned off and on; see
    /// [`RunSchedule::switches`].
    pub switches: Vec<u64>,
}

impl FromStr for DelayOrRanges {
    type Err = Error;

    /// Parses a delay, or ranges such as `10-20,30-40`.
    fn from_str(text: &str) -> Result<Self> {
        // The first character may be the sign of -1.
        if !text.get(1..).is_some_and(|rest| rest.contains('-')) {
            return Ok(Self { delay: text.parse()?, switches: Vec::new() });
        }
        let times: Option<Vec<u64>> = text
            .split(',')
            .map(|range| range.split_once('-').map(<[_; 2]>::from))
            .flat_map(|range| range.map_or([None; 2], |ends| ends.map(|end| parse_duration(end, Some(MS)))))
            .collect();
        match times.as_deref() {
            Some([first, rest @ ..]) if times.iter().flatten().is_sorted_by(|a, b| a < b) => {
                let delay = if *first == 0 { Delay::None } else { Delay::Ns(*first) };
                Ok(Self { delay, switches: rest.to_vec() })
            }
            _ => Err(Error::usage("not a list of increasing time ranges")
                .try_options("-D 10-20,30-40, or with units: -D 1s-2s,2500ms-3s")),
        }
    }
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
    /// Maximum duration.
    pub timeout: Option<Duration>,
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
    pub const ALL: Self = Self { tasks: true, mappings: true, cgroups: true };
    /// No records.
    pub const NONE: Self = Self { tasks: false, mappings: false, cgroups: false };
    /// The kinds by perf's names. As in perf, mappings are synthesized only together with tasks.
    pub const NAMED: [(&str, Self); 5] = [
        ("no", Self::NONE),
        ("all", Self::ALL),
        ("task", Self { tasks: true, ..Self::NONE }),
        ("mmap", Self { tasks: true, mappings: true, ..Self::NONE }),
        ("cgroup", Self { cgroups: true, ..Self::NONE }),
    ];
}

impl BitOr for Synthesis {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            tasks: self.tasks || other.tasks,
            mappings: self.mappings || other.mappings,
            cgroups: self.cgroups || other.cgroups,
        }
    }
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
    /// Size of each ring; `None`: as large as is useful and allowed.
    pub ring: Option<RingSize>,
    /// Useful size of a ring for samples without stack copies.
    pub useful_ring: RingSize,
    /// Size of each AUX area, into which the hardware writes its trace; `None`: perf's default.
    pub aux_area: Option<RingSize>,
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

/// Samples cycles of the command, from start to end, and writes stack copies to the file.
impl Default for SamplePlan {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            filters: Vec::new(),
            scope: MeasurementScope::Command,
            cgroups: Vec::new(),
            options: SampleOptions::default(),
            excludes_self: SelfExclusion::Never,
            synthesis: Synthesis::ALL,
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
            ring: None,
            useful_ring: RingSize::SAMPLES,
            aux_area: None,
            aux_sample: None,
            trace: None,
            reserve: Policy::default(),
            run_schedule: RunSchedule::default(),
            verbose: false,
        }
    }
}

impl SamplePlan {
    /// Returns a plan that samples cycles in this scope with these options, from start to end.
    pub fn on(scope: MeasurementScope, options: SampleOptions) -> Self {
        Self { scope, options, ..Self::default() }
    }

    /// Also records where threads wait, with all that this requires: context switches with their CPU, and a
    /// clock that pmc can read, because pmc ends the remaining waits when the recording ends.
    pub fn measure_waits(&mut self, waits: OffCpuPlan) {
        self.off_cpu = Some(waits);
        self.with_id = true;
        self.options.fields |= sample_type::CPU;
        self.options.switches = true;
        self.options.clock.get_or_insert(clock::MONOTONIC);
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

impl FromStr for Rotation {
    type Err = Error;

    /// Parses `signal`, a time with a unit, or a size. As in perf, the default unit is bytes.
    fn from_str(text: &str) -> Result<Self> {
        if text == "signal" {
            return Ok(Self::Signal);
        }
        match parse_duration(text, None) {
            Some(ns) if ns > 0 => Ok(Self::Ns(ns)),
            _ => parse_size(text).map(Self::Bytes).ok_or_else(|| {
                Error::usage("expected signal, a size or a time")
                    .try_options("--switch-output=100M, or --switch-output=30s (ms, s, m, h, d)")
            }),
        }
    }
}

/// The destination of a recording.
#[derive(Debug, Clone)]
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
    /// Whether SIGUSR2 or a control command writes a snapshot of the rings.
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
    pub fn at(path: PathBuf) -> Self {
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
