//! Requests for sampling events: builds a `perf_event_attr` from the event's text and the recorder's options,
//! following perf's rules.
//!
//! Takes an [`EventSpec`], its [`SampleRole`] and [`SampleOptions`]; returns the request. Does not open the
//! event.
//!
//! The events write these records:
//!
//! ```text
//! the tracker   mmap, comm, fork, exit, ksymbol, … of its tasks or CPU: one event per recording
//! other events  samples only
//! ```

use std::str::FromStr;

use super::{CounterFlags, CountingStart, Levels, Mode, OpenRequest, allocate, set_levels, set_start};
use crate::counter::refusal::Refusal;
use crate::event::{EventSource, EventSpec, Trace};
use pmc_sys::abi::attr::{Flag, LARGEST_STACK_COPY, kind};
use pmc_sys::abi::generic::DUMMY;
use pmc_sys::abi::{Attr, branch_sample_type, read_format, sample_type};
use pmc_sys::error::Error as UserError;
use pmc_sys::host::tracer::Tracer;
use pmc_sys::sys::arch;

/// Sampling rate for events whose text does not specify one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rate {
    /// perf's default: 4000 samples per second; tracepoints and breakpoints sample every occurrence.
    #[default]
    Default,
    /// Samples per second.
    Frequency(u64),
    /// As many samples per second as the kernel allows. The recorder replaces it by that frequency.
    MaxFrequency,
    /// Occurrences per sample.
    Period(u64),
    /// The vendor's recommended period.
    Recommended,
}

impl Rate {
    /// Parses a frequency: samples per second, or `max`.
    ///
    /// # Errors
    /// Fails if the text is neither `max` nor a positive number.
    pub fn frequency(text: &str) -> Result<Self, UserError> {
        match text {
            "max" => Ok(Self::MaxFrequency),
            _ => positive(text).map(Self::Frequency).ok_or_else(|| {
                UserError::usage("not a valid number").try_this("use samples per second, such as 999, or max")
            }),
        }
    }

    /// Parses a period: occurrences per sample, or `auto`.
    ///
    /// # Errors
    /// Fails if the text is neither `auto` nor a positive number.
    pub fn period(text: &str) -> Result<Self, UserError> {
        match text {
            "auto" => Ok(Self::Recommended),
            _ => positive(text).map(Self::Period).ok_or_else(|| {
                UserError::usage("not a valid number")
                    .try_this("use a number of occurrences, such as 100000, or auto")
            }),
        }
    }
}

/// Parses a number that the kernel accepts as a rate.
fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|&number: &u64| number > 0 && number < 1 << 63)
}

/// perf's default frequency, in Hz.
pub(crate) const DEFAULT_FREQUENCY: u64 = 4000;

/// Source of call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraph {
    /// Frame pointers, which the kernel follows.
    Fp,
    /// Frame pointers, but the kernel records the user part only when the thread returns to user mode (Linux
    /// 6.19). One record then covers all samples since the thread entered the kernel.
    FpDeferred,
    /// The CPU's last branch records (LBR), used as a call stack.
    Lbr,
    /// Registers and this many bytes of the stack, for unwinding later.
    Dwarf(u32),
    /// Both frame pointers and stack copies; each fills gaps in the other.
    Auto(u32),
}

impl CallGraph {
    /// Whether samples contain stack copies for unwinding.
    pub fn copies(self) -> bool {
        self.copied_bytes() > 0
    }

    /// Maximum number of stack bytes per sample.
    pub fn copied_bytes(self) -> u32 {
        match self {
            Self::Dwarf(bytes) | Self::Auto(bytes) => bytes,
            Self::Fp | Self::FpDeferred | Self::Lbr => 0,
        }
    }
}

impl FromStr for CallGraph {
    type Err = UserError;

    /// Parses `fp`, `fp,defer`, `lbr`, `dwarf[,BYTES]` or `auto[,BYTES]`.
    fn from_str(text: &str) -> Result<Self, UserError> {
        let wrong = || {
            UserError::usage("expected auto[,BYTES], dwarf[,BYTES], fp[,defer] or lbr")
                .try_this("dwarf,16384: copies of up to 16 KiB of stack (at most 65528 bytes)")
        };
        let (mode, size) = text.split_once(',').map_or((text, None), |(mode, size)| (mode, Some(size)));
        match (mode, size) {
            ("fp", None) => return Ok(Self::Fp),
            ("fp", Some("defer")) => return Ok(Self::FpDeferred),
            ("lbr", None) => return Ok(Self::Lbr),
            ("dwarf" | "auto", _) => {}
            _ => return Err(wrong()),
        }
        let bytes: u32 = size.map_or(Ok(DEFAULT_STACK), str::parse).map_err(|_| wrong())?;
        // The size must be a multiple of 8 and leave room for the rest of the record.
        let rounded =
            bytes.checked_next_multiple_of(8).filter(|&bytes| bytes > 0 && bytes <= LARGEST_STACK_COPY);
        let bytes = rounded.ok_or_else(wrong)?;
        Ok(if mode == "auto" { Self::Auto(bytes) } else { Self::Dwarf(bytes) })
    }
}

/// perf's default size of a stack copy, in bytes.
pub const DEFAULT_STACK: u32 = 8192;

/// Options that apply to all events of a recording.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// Sampling rate.
    pub rate: Rate,
    /// Source of call chains.
    pub call_graph: Option<CallGraph>,
    /// Maximum number of frames.
    pub max_stack: Option<u16>,
    /// Omit the user part of call chains (`--kernel-callchains`).
    pub kernel_callchains: bool,
    /// Omit the kernel part of call chains (`--user-callchains`).
    pub user_callchains: bool,
    /// Additional sample fields requested by the options: bits of
    /// [`sample_type`](pmc_sys::abi::sample_type).
    pub fields: u64,
    /// `-P`, `--no-period`: whether to record the period, regardless of the rate.
    pub period: Option<bool>,
    /// Record data mappings too (`-d`).
    pub data_mappings: bool,
    /// Filter for branch stacks: bits of [`branch_sample_type`](pmc_sys::abi::branch_sample_type).
    pub branches: Option<u64>,
    /// Mask of the registers to record at the interrupt.
    pub intr_regs: Option<u64>,
    /// Mask of the user-mode registers to record.
    pub user_regs: Option<u64>,
    /// Clock number as in `clock_gettime(2)`.
    pub clock: Option<i32>,
    /// Record mappings with the build IDs of their files. While any event requests build IDs, the kernel also
    /// sets the build-ID flag in mapping records of other events, although these contain no build ID
    /// (`perf_event_mmap_output`). perf 6.1 aborts on those records.
    pub build_ids: bool,
    /// Record namespaces of tasks.
    pub namespaces: bool,
    /// Record cgroups, and the cgroup of each sample.
    pub cgroups: bool,
    /// Record context switches.
    pub switches: bool,
    /// Record each thread's counts when it ends (`-s`).
    pub stat: bool,
    /// Record the enabled and running times with counts.
    pub running_time: bool,
    /// Take no samples (`-n`).
    pub no_samples: bool,
    /// Privilege levels for all events.
    pub levels: Levels,
    /// Record child processes too.
    pub inherit: bool,
    /// Keep the newest records in the ring (`--overwrite`).
    pub backward: bool,
    /// Wake the recorder for each sample.
    pub wakes_always: bool,
    /// Record timestamps; perf omits them only with one ring per thread.
    pub time: bool,
    /// Number of trace bytes after which the kernel wakes the recorder; 0 means half of the AUX area.
    pub aux_watermark: u32,
}

/// perf's defaults: 4000 samples per second with timestamps, including children, without stacks.
impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            rate: Rate::Default,
            call_graph: None,
            max_stack: None,
            kernel_callchains: false,
            user_callchains: false,
            fields: 0,
            period: None,
            data_mappings: false,
            branches: None,
            intr_regs: None,
            user_regs: None,
            clock: None,
            build_ids: true,
            namespaces: false,
            cgroups: false,
            switches: false,
            stat: false,
            running_time: false,
            no_samples: false,
            levels: Levels::AsWritten,
            inherit: true,
            backward: false,
            wakes_always: false,
            time: true,
            aux_watermark: 0,
        }
    }
}

/// An event's role in the recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleRole {
    /// Whether the event also records mappings, names and tasks.
    pub tracks: bool,
    /// Whether the event leads a kernel group or is not grouped.
    pub leads: bool,
    /// `{…}:S`: whether the leader samples and reads this event.
    pub read_by_leader: bool,
    /// Whether the kernel group has several members.
    pub grouped: bool,
    /// Whether each sample starts with its event's ID, which recordings with several events need.
    pub with_id: bool,
    /// Whether the event is bound to a whole CPU.
    pub system: bool,
    /// Whether the kernel starts the event when the waiting child process executes the command.
    pub on_exec: bool,
}

/// Builds the request for an event.
///
/// # Errors
/// Fails in the same cases as [`allocate`]. Only kernel events can be sampled.
pub fn request(
    spec: &EventSpec,
    options: &SampleOptions,
    role: SampleRole,
) -> Result<OpenRequest, Box<Refusal>> {
    let mode = if role.system { Mode::SystemSampling } else { Mode::TaskSampling };
    let trace = spec.trace.as_ref();
    // Traces contain no samples and therefore no call chains.
    let stacks = if trace.is_some() { None } else { stacks(spec, options) };
    let leads_slices = spec.qualifiers.leads_slices;
    let flags = CounterFlags {
        descendants: options.inherit,
        callchain: stacks.is_some(),
        log_exit: spec.qualifiers.log_exit,
        log_cswitch: spec.qualifiers.log_cswitch,
    };
    // The CPU is not known until the event is opened, but the request is the same for all CPUs.
    let mut request = allocate(spec, mode, flags, role.system.then_some(0))?;
    let attr = &mut request.whole;
    set_start(
        attr,
        match (role.leads, role.on_exec) {
            (false, _) => CountingStart::AtOnce,
            (true, false) => CountingStart::Enabled,
            (true, true) => CountingStart::Exec,
        },
    );
    attr.set(Flag::SampleIdAll, true);
    // With 0, the kernel wakes the recorder when half of a ring is full.
    attr.set_wakeup(u32::from(options.wakes_always));
    let mut fields = attr.sample_type() | sample_type::IP | sample_type::TID | options.fields;
    let mut reads = read_format::ID | read_format::LOST;
    match trace {
        Some(trace) => self::trace(trace, options, attr, &mut fields),
        None => rate(spec, options, attr, &mut fields),
    }
    if options.no_samples && !leads_slices && trace.is_none() {
        attr.set_freq(0);
    }
    if role.system {
        fields |= sample_type::CPU;
    }
    if options.time && spec.qualifiers.time != Some(false) || spec.qualifiers.time == Some(true) {
        fields |= sample_type::TIME;
    }
    if attr.kind() == kind::TRACEPOINT {
        fields |= sample_type::RAW | sample_type::TIME | sample_type::CPU;
        // With a fixed period and this field, the kernel writes a sample with weight 1 for every occurrence
        // (`perf_swevent_event`). Without the field, it writes a sample for every Nth occurrence, and readers
        // take the period from the event. perf always requests the field, so its `-c N` has no effect on
        // tracepoints.
        if attr.get(Flag::Freq) || attr.period() <= 1 {
            fields |= sample_type::PERIOD;
        }
    }
    if options.fields & sample_type::RAW != 0 {
        fields |= sample_type::TIME | sample_type::CPU;
    }
    if spec.sample_read || role.read_by_leader {
        fields |= sample_type::READ;
        if role.grouped {
            reads |= read_format::GROUP;
        }
        if role.system {
            // CPU-wide events are never inherited. With the inherit flag, readers would mistake the counts
            // for per-thread counts.
            attr.inherit_nothing();
        }
    }
    if let Some(stacks) = stacks {
        call_graph(spec, options, stacks, attr, &mut fields);
    }
    branches(spec, options, attr, &mut fields);
    registers(options, attr, &mut fields);
    let logs = (options.stat || spec.qualifiers.logs()) && !leads_slices;
    attr.set(Flag::InheritStat, logs);
    if options.running_time || logs || leads_slices {
        reads |= read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING;
    }
    if options.cgroups {
        fields |= sample_type::CGROUP;
    }
    if role.tracks {
        track(options, attr, options.data_mappings || fields & sample_type::STACK_USER != 0);
    }
    if let Some(clock) = options.clock {
        attr.set(Flag::UseClockid, true);
        attr.set_clockid(clock);
    }
    if spec.precise_max {
        attr.set_precise_ip(3);
    }
    set_levels(attr, options.levels);
    // Records that locate trace data must not be overwritten. In overwrite mode, only the trace's AUX area is
    // overwritten.
    let backward = spec.qualifiers.overwrite.unwrap_or(options.backward) && trace.is_none();
    attr.set(Flag::WriteBackward, backward);
    if attr.aux_sample_size() != 0 {
        fields |= sample_type::AUX;
    }
    match options.period {
        Some(true) => fields |= sample_type::PERIOD,
        Some(false) => fields &= !sample_type::PERIOD,
        None => {}
    }
    if role.with_id {
        fields |= sample_type::IDENTIFIER;
    }
    if role.read_by_leader && !role.leads {
        attr.set_freq(0);
        attr.set(Flag::Freq, false);
    }
    attr.set_sample_type(fields);
    attr.set_read_format(reads);
    request.attr.clone_from(&request.whole);
    Ok(request)
}

/// Builds the event that only records mappings, names and tasks, and never samples.
///
/// # Errors
/// Fails in the same cases as [`request`].
pub(crate) fn tracker(
    options: &SampleOptions,
    role: SampleRole,
) -> Result<(EventSpec, OpenRequest), Box<Refusal>> {
    let mut attr = Attr::new(kind::SOFTWARE, DUMMY);
    attr.set_period(1);
    let spec = EventSpec::new("dummy:HG", EventSource::Kernel(attr));
    let plain = SampleOptions {
        rate: Rate::Default,
        call_graph: None,
        fields: options.fields & sample_type::CPU,
        period: Some(false),
        branches: None,
        intr_regs: None,
        user_regs: None,
        stat: false,
        running_time: false,
        no_samples: false,
        backward: false,
        levels: Levels::AsWritten,
        ..options.clone()
    };
    // Unwinding stack copies requires data mappings, so record them if any event copies stacks.
    let data_mappings = options.data_mappings || options.call_graph.is_some_and(CallGraph::copies);
    let role = SampleRole {
        tracks: true,
        leads: true,
        on_exec: false,
        read_by_leader: false,
        grouped: false,
        ..role
    };
    let mut request = request(&spec, &SampleOptions { data_mappings, ..plain }, role)?;
    request.change(|attr| {
        attr.set_period(1);
        // The tracker starts immediately, so that it misses no events while pmc lists the running tasks.
        set_start(attr, CountingStart::AtOnce);
        attr.set_read_format(attr.read_format() & !read_format::GROUP);
    });
    Ok((spec, request))
}

/// Sets the sampling rate. The event's text takes precedence over the options. The options take precedence
/// over period 1, the default for tracepoints and breakpoints.
fn rate(spec: &EventSpec, options: &SampleOptions, attr: &mut Attr, fields: &mut u64) {
    let each_time = matches!(attr.kind(), kind::TRACEPOINT | kind::BREAKPOINT) && attr.period() == 1;
    let written = attr.period() != 0 && !each_time || spec.qualifiers.samples_wakeups;
    if !written {
        match options.rate {
            Rate::Default if each_time => {}
            Rate::Recommended if each_time => {}
            Rate::Recommended => match spec.recommended_period {
                Some(period) => attr.set_period(period),
                None => attr.set_freq(DEFAULT_FREQUENCY),
            },
            Rate::Default | Rate::MaxFrequency => attr.set_freq(DEFAULT_FREQUENCY),
            Rate::Frequency(hertz) => attr.set_freq(hertz),
            Rate::Period(count) => attr.set_period(count),
        }
    }
    if attr.get(Flag::Freq) {
        *fields |= sample_type::PERIOD;
    }
}

/// Sets the period of a tracing event, and adds the fields that perf requests. Traces do not support a
/// frequency, and only SPE supports a period chosen by the user.
fn trace(trace: &Trace, options: &SampleOptions, attr: &mut Attr, fields: &mut u64) {
    *fields |= trace.fields;
    match (trace.tracer, options.rate) {
        (Tracer::ArmSpe, _) if attr.period() != 0 && !attr.get(Flag::Freq) => {}
        (Tracer::ArmSpe, Rate::Period(count)) => attr.set_period(count),
        _ => attr.set_period(trace.period),
    }
    trace.defaults.iter().for_each(|&(word, bits)| {
        attr.or_word(word, bits);
    });
    if attr.aux_watermark() == 0 {
        attr.set_aux_watermark(options.aux_watermark);
    }
}

/// Returns the source of the event's call chains: from its text, or else from the options.
fn stacks(spec: &EventSpec, options: &SampleOptions) -> Option<CallGraph> {
    let size = |otherwise| spec.qualifiers.stack_size.unwrap_or(otherwise);
    match (spec.qualifiers.call_graph.as_deref(), options.call_graph) {
        (Some("no"), _) => None,
        (Some("lbr"), _) => Some(CallGraph::Lbr),
        (Some("dwarf") | None, Some(CallGraph::Dwarf(bytes))) => Some(CallGraph::Dwarf(size(bytes))),
        (None, Some(CallGraph::Auto(bytes))) => Some(CallGraph::Auto(size(bytes))),
        (Some("dwarf"), _) => Some(CallGraph::Dwarf(size(DEFAULT_STACK))),
        (Some(_), _) => Some(CallGraph::Fp),
        (None, chosen) => chosen,
    }
}

fn call_graph(
    spec: &EventSpec,
    options: &SampleOptions,
    chosen: CallGraph,
    attr: &mut Attr,
    fields: &mut u64,
) {
    if let Some(frames) = spec.qualifiers.max_stack.or(options.max_stack) {
        attr.set_sample_max_stack(frames);
    }
    let of_kernel = spec.qualifiers.samples_wakeups;
    attr.set(Flag::ExcludeCallchainUser, options.kernel_callchains || of_kernel);
    attr.set(Flag::ExcludeCallchainKernel, options.user_callchains && !of_kernel);
    match chosen {
        CallGraph::Fp => {}
        CallGraph::FpDeferred => attr.set(Flag::DeferCallchain, !options.kernel_callchains),
        CallGraph::Lbr if options.branches.is_none() => {
            *fields |= sample_type::BRANCH_STACK;
            let how = branch_sample_type::USER
                | branch_sample_type::CALL_STACK
                | branch_sample_type::NO_CYCLES
                | branch_sample_type::NO_FLAGS
                | branch_sample_type::HW_INDEX;
            attr.set_branch_sample_type(how);
        }
        // The LBR cannot record both the requested branches and call stacks. Use frame pointers instead, like
        // perf.
        CallGraph::Lbr => {}
        CallGraph::Dwarf(bytes) | CallGraph::Auto(bytes) => {
            // The unwinder requires data mappings too. perf requests them by adding the address and data
            // source fields.
            *fields |=
                sample_type::REGS_USER | sample_type::STACK_USER | sample_type::ADDR | sample_type::DATA_SRC;
            attr.set_sample_regs_user(arch::REGISTERS);
            attr.set_sample_stack_user(bytes);
            let is_alone = matches!(chosen, CallGraph::Dwarf(_));
            attr.set(Flag::ExcludeCallchainUser, is_alone || options.kernel_callchains);
        }
    }
}

fn branches(spec: &EventSpec, options: &SampleOptions, attr: &mut Attr, fields: &mut u64) {
    if let Some(filter) = spec.qualifiers.branch_type.or(options.branches) {
        *fields |= sample_type::BRANCH_STACK;
        attr.set_branch_sample_type(filter);
    }
}

fn registers(options: &SampleOptions, attr: &mut Attr, fields: &mut u64) {
    if let Some(mask) = options.intr_regs {
        *fields |= sample_type::REGS_INTR;
        attr.set_sample_regs_intr(mask);
    }
    if let Some(mask) = options.user_regs {
        *fields |= sample_type::REGS_USER;
        attr.set_sample_regs_user(attr.sample_regs_user() | mask);
    }
}

fn track(options: &SampleOptions, attr: &mut Attr, data_mappings: bool) {
    let flags =
        [Flag::Mmap, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::Task, Flag::Ksymbol, Flag::BpfEvent];
    for flag in flags {
        attr.set(flag, true);
    }
    attr.set(Flag::BuildId, options.build_ids);
    attr.set(Flag::MmapData, data_mappings);
    attr.set(Flag::Namespaces, options.namespaces);
    attr.set(Flag::Cgroup, options.cgroups);
    attr.set(Flag::ContextSwitch, options.switches);
    attr.set(
        Flag::DeferOutput,
        options.call_graph == Some(CallGraph::FpDeferred) && !options.kernel_callchains,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::host::Host;

    fn options() -> SampleOptions {
        SampleOptions::default()
    }

    fn attr(text: &str, options: &SampleOptions, role: SampleRole) -> Attr {
        let spec = crate::event::parse(text, &Host::live()).unwrap()[0].events[0].clone();
        request(&spec, options, role).unwrap().attr().clone()
    }

    #[test]
    fn event_text_overrides_options() {
        let role = SampleRole { leads: true, ..SampleRole::default() };
        let period = |text, rate| {
            let attr = attr(text, &SampleOptions { rate, ..options() }, role);
            (attr.period(), attr.get(Flag::Freq))
        };
        assert_eq!(period("cpu-clock", Rate::Default), (DEFAULT_FREQUENCY, true));
        assert_eq!(period("cpu-clock", Rate::Frequency(99)), (99, true));
        assert_eq!(period("cpu-clock", Rate::Period(5)), (5, false));
        assert_eq!(period("cpu-clock/period=7/", Rate::Frequency(99)), (7, false));
        assert_eq!(period("mem:0x1000", Rate::Default), (1, false));
        assert_eq!(period("mem:0x1000", Rate::Period(9)), (9, false));
        let mut spec = crate::event::parse("cpu-clock", &Host::live()).unwrap()[0].events[0].clone();
        spec.recommended_period = Some(1009);
        let recommended = SampleOptions { rate: Rate::Recommended, ..options() };
        let asked = request(&spec, &recommended, role).unwrap().attr().clone();
        assert_eq!((asked.period(), asked.get(Flag::Freq)), (1009, false));
    }

    #[test]
    fn only_each_nth_tracepoint_is_written() {
        let mut attr = Attr::new(kind::TRACEPOINT, 1);
        attr.set_period(1);
        let spec = EventSpec::new("a:b", EventSource::Kernel(attr));
        let role = SampleRole { leads: true, ..SampleRole::default() };
        let has_period = |rate, period| {
            let attr = request(&spec, &SampleOptions { rate, period, ..options() }, role).unwrap();
            attr.attr().sample_type() & sample_type::PERIOD != 0
        };
        assert!(has_period(Rate::Default, None) && has_period(Rate::Period(1), None));
        assert!(has_period(Rate::Frequency(99), None) && has_period(Rate::Period(1000), Some(true)));
        assert!(!has_period(Rate::Period(1000), None));
    }

    #[test]
    fn requested_stack_mode_is_set() {
        let role = SampleRole { leads: true, ..SampleRole::default() };
        let dwarf = SampleOptions { call_graph: Some(CallGraph::Dwarf(4096)), ..options() };
        let one = attr("cpu-clock", &dwarf, role);
        assert_eq!((one.sample_stack_user(), one.sample_regs_user()), (4096, arch::REGISTERS));
        assert!(one.get(Flag::ExcludeCallchainUser) && one.sample_type() & sample_type::STACK_USER != 0);
        let own = attr("cpu-clock/call-graph=no/", &dwarf, role);
        assert_eq!(own.sample_type() & (sample_type::CALLCHAIN | sample_type::STACK_USER), 0);
        let fp = attr("cpu-clock", &SampleOptions { call_graph: Some(CallGraph::Fp), ..options() }, role);
        assert_eq!(
            fp.sample_type() & (sample_type::CALLCHAIN | sample_type::STACK_USER),
            sample_type::CALLCHAIN
        );
    }

    #[test]
    fn only_the_tracking_event_requests_side_band() {
        let tracks =
            attr("cpu-clock", &options(), SampleRole { tracks: true, leads: true, ..SampleRole::default() });
        let other = attr("cpu-clock", &options(), SampleRole { leads: true, ..SampleRole::default() });
        for flag in [Flag::Mmap2, Flag::Comm, Flag::Task, Flag::BuildId] {
            assert!(tracks.get(flag) && !other.get(flag), "{flag:?}");
        }
        let (_, alone) = tracker(&options(), SampleRole { with_id: true, ..SampleRole::default() }).unwrap();
        assert!(!alone.attr().get(Flag::Disabled) && alone.attr().get(Flag::Mmap2));
        assert_ne!(alone.attr().sample_type() & sample_type::IDENTIFIER, 0);
    }
}
