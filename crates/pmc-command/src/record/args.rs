//! Options of `pmc record` and `pmc sched record`, and their conversion into a [`RecordRequest`]. Checks the
//! rules that clap cannot express.

use std::ffi::OsString;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::RecordDisplay;
use crate::options::filter_places::FilterPlaces;
use crate::options::recording_options::{RecordingOptions, UnwindTime};
use crate::options::settings::RecordingSettings;
use crate::sampling_options::{
    TargetOptions, are_held, check_cgroup_scope, pfm_events, scope, scope_or_machine,
};
use crate::values::{self, one_of};
use pmc_events::counter::Levels;
use pmc_events::counter::request::sampling::{CallGraph, Rate, SampleOptions};
use pmc_events::counter::reservation::Policy;
use pmc_recording::recording::plan::{
    DelayOrRanges, MeasurementScope, OffCpuPlan, RecordRequest, RunSchedule, SamplePlan, SelfExclusion,
};
use pmc_recording::recording::ring_size::RingSizes;
use pmc_sys::abi::attr::LARGEST_AUX_SAMPLE;
use pmc_sys::abi::{branch_sample_type, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::sys::arch::{REGISTER_NAMES, REGISTERS};
use pmc_sys::sys::clock;
use pmc_text::units::MS;

/// Sample a command, running processes or whole CPUs into a file for `pmc report` and `perf report`.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  pmc record -- ./program                       where does its time go?
  pmc record -g -- ./program                    with stacks (frame pointers)
  pmc record --call-graph dwarf -- ./program    with stacks, for programs without frame pointers
  pmc record -g -p 1234 --timeout 10s           a running process, for ten seconds
  pmc record -a -F 99                           the whole machine, until interrupted
  pmc record -e sched:sched_switch --filter 'prev_pid != 0' -a -- sleep 1
  pmc record -g -o - -- ./program | perf script -i -
Event syntax: docs/event-syntax.md, or `pmc list`. More: docs/record.md."
)]
pub struct RecordArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub filter_places: FilterPlaces,

    /// Events to sample (repeatable) [default: cycles, as precise as possible]
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub events: Vec<String>,

    /// Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events", hide_short_help = true)]
    pub pfm_events: Vec<String>,

    /// Filter expression for the tracepoints of the preceding -e
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true, help_heading = "Events")]
    pub filter: Vec<String>,

    /// Do not record tracepoint events that pmc itself causes
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub exclude_perf: bool,

    /// Sample frequency in Hz, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = Rate::frequency, help_heading = "Events")]
    pub freq: Option<Rate>,

    /// Sample every N events; `auto` uses the vendor's recommended period
    #[arg(short = 'c', long, value_name = "N", value_parser = Rate::period, help_heading = "Events")]
    pub count: Option<Rate>,

    /// Fail if the kernel does not allow this frequency
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub strict_freq: bool,

    /// Fail instead of falling back to another event or frequency
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub strict: bool,

    /// Record call chains by frame pointers (-g dwarf is --call-graph dwarf)
    #[arg(short = 'g', help_heading = "Call stacks")]
    pub stacks: bool,

    /// Record call chains: auto[,BYTES] (stack copies and frame pointers), dwarf[,BYTES] (stack copies), fp
    /// (frame pointers), fp,defer (frame pointers, on return to user mode), lbr (branch records)
    #[arg(long, value_name = "MODE", help_heading = "Call stacks")]
    pub call_graph: Option<CallGraph>,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", help_heading = "Call stacks", hide_short_help = true)]
    pub max_stack: Option<u16>,

    /// Record only the kernel part of call chains
    #[arg(long, conflicts_with = "user_callchains", help_heading = "Call stacks", hide_short_help = true)]
    pub kernel_callchains: bool,

    /// Record only the user part of call chains
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub user_callchains: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub targets: TargetOptions,

    /// Record only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)
    #[arg(short = 'G', long = "cgroup", value_name = "NAME,…", value_delimiter = ',', action = ArgAction::Set, help_heading = "Targets")]
    pub cgroups: Vec<String>,

    /// Do not record child processes
    #[arg(short = 'i', long, help_heading = "Targets")]
    pub no_inherit: bool,

    /// Use one ring buffer per thread instead of per CPU; excludes child processes
    #[arg(long, conflicts_with_all = ["all_cpus", "cpus"], help_heading = "Targets", hide_short_help = true)]
    pub per_thread: bool,

    /// When to stop recording, and how to handle the records.
    #[command(flatten)]
    pub recording: RecordingOptions,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two); AREA sizes the AUX
    /// buffer
    #[arg(short = 'm', long, value_name = "SIZE[,AREA]", help_heading = "Rings", hide_short_help = true)]
    pub mmap_pages: Option<RingSizes>,

    /// Read each record immediately after it is written
    #[arg(long, help_heading = "Rings", hide_short_help = true)]
    pub no_buffering: bool,

    /// Delay before recording, in milliseconds or with a unit (2s); -1 waits for --control; 10-20,30-40
    /// records only these ranges and then ends
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Duration")]
    pub delay: Option<DelayOrRanges>,

    /// Also record where threads wait: off-CPU time, with the stack of each wait
    #[arg(long, help_heading = "Waiting time", hide_short_help = true)]
    pub off_cpu: bool,

    /// Sum up waits shorter than this, without their stacks, in milliseconds or with a unit [default: 0]
    #[arg(long, value_name = "TIME", value_parser = threshold, help_heading = "Waiting time", hide_short_help = true)]
    pub off_cpu_thresh: Option<Duration>,

    /// Record who wakes the waiting threads, and who runs while they wait for a CPU (requires --off-cpu or
    /// --wall)
    #[arg(long, help_heading = "Waiting time", hide_short_help = true)]
    pub wakers: bool,

    /// Record all of each thread's time, running and waiting; short for --off-cpu -e cpu-clock
    #[arg(long, conflicts_with = "events", help_heading = "Waiting time")]
    pub wall: bool,

    /// Record no samples, only mappings and processes
    #[arg(short = 'n', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub no_samples: bool,

    /// Record the time of each sample (default)
    #[arg(short = 'T', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub timestamp: bool,

    /// Record the period of each sample (default if it varies)
    #[arg(
        short = 'P',
        long,
        overrides_with = "no_period",
        help_heading = "Fields of samples",
        hide_short_help = true
    )]
    pub period: bool,

    /// Do not record the period of samples
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub no_period: bool,

    /// Record data addresses and data sources
    #[arg(short = 'd', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub data: bool,

    /// Record the data source of memory accesses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub sample_mem_info: bool,

    /// Also record data mappings
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub data_mmap: bool,

    /// Record physical addresses of data
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub phys_data: bool,

    /// Record the page size of data addresses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub data_page_size: bool,

    /// Record the page size of code addresses
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub code_page_size: bool,

    /// Record the cost of each sampled instruction, if the hardware reports it
    #[arg(short = 'W', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub weight: bool,

    /// Record the flags of memory transactions
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub transaction: bool,

    /// Record each thread's counts when it ends
    #[arg(short = 's', long, help_heading = "Other records", hide_short_help = true)]
    pub stat: bool,

    /// Record the CPU of each sample
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub sample_cpu: bool,

    /// Record raw data for all events that provide it
    #[arg(short = 'R', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub raw_samples: bool,

    /// Record taken branches
    #[arg(short = 'b', long, help_heading = "Fields of samples", hide_short_help = true)]
    pub branch_any: bool,

    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …
    #[arg(short = 'j', long, value_name = "FILTER,…", action = ArgAction::Append, value_parser = branches, help_heading = "Fields of samples", hide_short_help = true)]
    pub branch_filter: Vec<u64>,

    /// Record the registers at the interrupt: all, or a list; `?` prints the names
    #[arg(short = 'I', long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = registers, help_heading = "Fields of samples", hide_short_help = true)]
    pub intr_regs: Option<u64>,

    /// Record the user-space registers: all, or a list; `?` prints the names
    #[arg(long, value_name = "REG,…", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = registers, help_heading = "Fields of samples", hide_short_help = true)]
    pub user_regs: Option<u64>,

    /// Record context switches
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub switch_events: bool,

    /// Record when each thread ran, so that report can show shares of wall-clock time
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub latency: bool,

    /// Record namespaces
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub namespaces: bool,

    /// Record cgroups
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub all_cgroups: bool,

    /// Record in user mode only
    #[arg(long, conflicts_with = "all_kernel", help_heading = "Events", hide_short_help = true)]
    pub all_user: bool,

    /// Record in the kernel only
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub all_kernel: bool,

    /// Clock of the timestamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number
    #[arg(
        short = 'k',
        long,
        value_name = "CLOCK",
        help_heading = "Fields of samples",
        hide_short_help = true
    , value_parser = clock_number)]
    pub clockid: Option<i32>,

    /// Attach the newest SIZE bytes of the trace to samples of events in its group [default: 4K]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = aux_sample, help_heading = "Fields of samples", hide_short_help = true)]
    pub aux_sample: Option<u32>,

    /// Keep the newest records in memory and write them at the end
    #[arg(long, help_heading = "Duration", hide_short_help = true)]
    pub overwrite: bool,

    /// For persistent events, include the records that they already hold
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub backlog: bool,

    /// Same as -N: mappings carry build-ids by default if the kernel provides them
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub buildid_mmap: bool,

    /// Put all events into one group
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub group: bool,

    /// With recorded counts (:S), also record how long events were enabled and running
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub running_time: bool,

    /// Start each sample with the event id, even with a single event
    #[arg(long, help_heading = "Fields of samples", hide_short_help = true)]
    pub sample_identifier: bool,

    /// Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require,
    /// yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = one_of(&Policy::NAMED), help_heading = "Events", hide_short_help = true)]
    pub reserve: Policy,

    /// Open the events but do not record
    #[arg(long, help_heading = "Duration", hide_short_help = true)]
    pub dry_run: bool,

    /// Method that -g selects: record.call-graph or call-graph.record-mode
    #[arg(long, hide = true, value_name = "MODE")]
    pub default_call_graph: Option<CallGraph>,

    /// perf's settings.
    #[command(flatten)]
    pub settings: RecordingSettings,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What a command that has the options of `record` chooses itself.
#[derive(Debug, Default)]
pub struct RecordPreset {
    /// An event in front of those of the options.
    pub first_event: Option<String>,
    /// The target, in place of that of the options.
    pub scope: Option<MeasurementScope>,
}

impl RecordArgs {
    /// What to print about the recording.
    pub fn display(&self) -> RecordDisplay {
        self.recording.display()
    }

    /// Converts the options. Warns about options without effect.
    ///
    /// # Errors
    /// Fails if options contradict each other, or a target does not exist.
    pub fn request(self, host: &Host) -> Result<RecordRequest> {
        self.request_with(RecordPreset::default(), host)
    }

    /// Converts the options of a command that chooses some of them itself.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn request_with(mut self, preset: RecordPreset, host: &Host) -> Result<RecordRequest> {
        self.events.extend(pfm_events(&self.pfm_events));
        if self.wall {
            self.events.push("cpu-clock".to_owned());
        }
        if let Some(first) = preset.first_event {
            self.events.insert(0, first);
            self.filter_places.insert_event();
        }
        let waits = self.waits()?;
        let scope = preset.scope.map_or_else(|| self.scope(host), Ok)?;
        if !self.cgroups.is_empty() {
            check_cgroup_scope(&scope)?;
        }
        if self.per_thread && matches!(scope, MeasurementScope::Cpus(_)) {
            return Err(
                Error::usage("--per-thread requires threads, not CPUs").try_options("-p PID or -t TID")
            );
        }
        let sizes = self.mmap_pages.unwrap_or_default();
        let options = self.sample_options(&scope);
        let DelayOrRanges { delay, switches } = self.delay.unwrap_or_default();
        delay.check_control(self.recording.control.is_some())?;
        let mut sample = SamplePlan {
            events: match (self.group, self.events.is_empty()) {
                (true, false) if self.filter.is_empty() => vec![format!("{{{}}}", self.events.join(","))],
                (true, false) => {
                    return Err(Error::usage(
                        "--group combines all -e into one, and --filter applies to only one -e",
                    )
                    .try_options("-e '{a,b}' --filter … -e c"));
                }
                _ => self.events,
            },
            filters: self.filter_places.assign(self.filter)?,
            cgroups: self.cgroups,
            excludes_self: if self.exclude_perf { SelfExclusion::Tracepoints } else { SelfExclusion::Never },
            strict_freq: self.strict_freq,
            strict: self.strict,
            with_id: self.sample_identifier,
            per_thread: self.per_thread,
            backlog: self.backlog,
            ring: sizes.ring,
            aux_area: sizes.area,
            aux_sample: self.aux_sample,
            reserve: self.reserve,
            run_schedule: RunSchedule { command: self.command, delay, switches, ..RunSchedule::default() },
            ..SamplePlan::on(scope, options)
        };
        if let Some(waits) = waits {
            sample.measure_waits(waits);
        }
        let mut request = RecordRequest { sample, dry_run: self.dry_run, ..RecordRequest::default() };
        self.recording.add_to(&mut request, self.buildid_mmap)?;
        self.settings.apply(&mut request);
        Ok(request)
    }

    fn scope(&self, host: &Host) -> Result<MeasurementScope> {
        let has_command = !self.command.is_empty();
        if are_held(&self.events)
            && !has_command
            && matches!(scope(&self.targets, host)?, MeasurementScope::Command)
        {
            // The targets were chosen when the events were added to the holder.
            return Ok(MeasurementScope::Cpus(host.online_cpus()));
        }
        scope_or_machine(&self.targets, has_command, host)
    }

    /// Whether the recording includes the waiting time of threads.
    fn measures_waits(&self) -> bool {
        self.off_cpu || self.wall
    }

    /// Returns how to record off-CPU time, if an option requests it.
    fn waits(&self) -> Result<Option<OffCpuPlan>> {
        if !self.measures_waits() {
            return match (self.off_cpu_thresh.is_some(), self.wakers) {
                (false, false) => Ok(None),
                (true, _) => Err(Error::usage("--off-cpu-thresh requires --off-cpu or --wall")),
                (_, true) => Err(Error::usage("--wakers requires --off-cpu or --wall")),
            };
        }
        let option = if self.wall { "--wall" } else { "--off-cpu" };
        let refused = [
            (
                self.overwrite || self.recording.snapshot.is_some(),
                "--overwrite",
                "a wait may have begun in records that were overwritten",
            ),
            (
                self.clockid.is_some_and(|clock| clock != clock::MONOTONIC),
                "-k",
                "waits are measured with the `monotonic` clock",
            ),
            (self.per_thread, "--per-thread", "measuring a thread's waits requires records from all CPUs"),
            (self.delay.is_some(), "-D", "context switches are recorded from the start"),
            (!self.cgroups.is_empty(), "-G", "the kernel also reports context switches of other cgroups"),
            (self.all_user, "--all-user", "a thread is in the kernel whenever it leaves its CPU"),
            (
                self.recording.unwind == UnwindTime::Deferred,
                "--unwind deferred",
                "waits are written with their call chains",
            ),
        ];
        if let Some((_, other, why)) = refused.iter().find(|(is_set, ..)| *is_set) {
            return Err(Error::usage(format!("{option} cannot be combined with {other}")).why(*why));
        }
        let threshold_ns = self.off_cpu_thresh.map_or(0, |threshold| threshold.as_nanos() as u64);
        Ok(Some(OffCpuPlan { threshold_ns, has_wakers: self.wakers }))
    }

    /// Converts the options that determine the contents of samples.
    fn sample_options(&self, scope: &MeasurementScope) -> SampleOptions {
        let any = self.branch_any.then_some(branch_sample_type::ANY);
        SampleOptions {
            rate: self.freq.or(self.count).unwrap_or_default(),
            call_graph: self
                .call_graph
                .or(self.stacks.then_some(self.default_call_graph.unwrap_or(CallGraph::Fp))),
            max_stack: self.max_stack,
            kernel_callchains: self.kernel_callchains,
            user_callchains: self.user_callchains,
            fields: self.fields(),
            period: match (self.period, self.no_period) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            data_mappings: self.data || self.data_mmap,
            branches: self.branch_filter.iter().copied().chain(any).reduce(|all, one| all | one),
            intr_regs: self.intr_regs,
            user_regs: self.user_regs,
            // pmc itself records the times of gaps, which requires a clock that pmc can read, unlike the
            // kernel's default clock.
            clock: self.clockid.or((self.reserve == Policy::Yield).then_some(clock::MONOTONIC)),
            namespaces: self.namespaces,
            cgroups: self.all_cgroups,
            switches: self.switch_events || self.latency,
            stat: self.stat,
            running_time: self.running_time,
            no_samples: self.no_samples,
            levels: match (self.all_user, self.all_kernel) {
                (true, _) => Levels::User,
                (_, true) => Levels::Kernel,
                _ => Levels::AsWritten,
            },
            inherit: !self.no_inherit && !self.per_thread && !matches!(scope, MeasurementScope::Threads(_)),
            backward: self.overwrite || self.recording.snapshot.is_some(),
            wakes_always: self.no_buffering,
            ..SampleOptions::default()
        }
    }

    /// Returns the sample fields requested by individual options.
    fn fields(&self) -> u64 {
        let chosen = [
            (self.data, sample_type::ADDR | sample_type::DATA_SRC),
            (self.sample_mem_info, sample_type::DATA_SRC),
            (self.phys_data, sample_type::PHYS_ADDR),
            (self.data_page_size, sample_type::DATA_PAGE_SIZE),
            (self.code_page_size, sample_type::CODE_PAGE_SIZE),
            (self.weight, sample_type::OWN_WEIGHT),
            (self.transaction, sample_type::TRANSACTION),
            (self.sample_cpu, sample_type::CPU),
            (self.raw_samples, sample_type::RAW),
        ];
        chosen.iter().filter(|(on, _)| *on).fold(0, |all, (_, field)| all | field)
    }
}

/// Parses `--off-cpu-thresh`.
fn threshold(text: &str) -> Result<Duration> {
    values::duration(text, MS, 0)
        .map_err(|_| Error::usage("expected a time").try_options("--off-cpu-thresh 1ms (us, ms, s)"))
}

/// Parses `--aux-sample`, in bytes.
fn aux_sample(text: &str) -> Result<u32> {
    const USUAL: u32 = 4 << 10;
    if text.is_empty() {
        return Ok(USUAL);
    }
    let bytes = values::size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes <= LARGEST_AUX_SAMPLE)
        .ok_or_else(|| Error::usage("exceeds the maximum size of a sample").try_this("at most 60K"))
}

/// Parses `-j`: names of branch types, as a mask of [`branch_sample_type`].
fn branches(text: &str) -> Result<u64> {
    branch_sample_type::filter(text).map_err(|word| {
        let names: Vec<&str> = branch_sample_type::FILTERS.iter().map(|(name, _)| *name).collect();
        Error::usage(format!("unknown branch type `{word}`"))
            .try_this(format!("one of: {}", names.join(", ")))
    })
}

/// Parses names of registers, as a mask. An empty text is all registers. For `?`, the error lists the names.
fn registers(text: &str) -> Result<u64> {
    let names: Vec<&str> = REGISTER_NAMES.iter().map(|(name, _)| *name).collect();
    let listed = || format!("one of: {}", names.join(", "));
    match text {
        "" => return Ok(REGISTERS),
        "?" => return Err(Error::usage("registers available on this machine").try_this(listed())),
        _ => {}
    }
    text.split(',').try_fold(0, |mask, word| {
        let known = REGISTER_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim()));
        let (_, number) =
            known.ok_or_else(|| Error::usage(format!("unknown register `{word}`")).try_this(listed()))?;
        Ok(mask | 1 << number)
    })
}

/// Parses the name or number of a clock.
fn clock_number(text: &str) -> Result<i32> {
    clock::number(text).ok_or_else(|| {
        Error::usage("unknown clock")
            .try_this("one of: realtime, monotonic, monotonic_raw, boottime, tai, or the kernel's number")
    })
}
