//! What a sampling event asks of the kernel: its text and the recorder's options become a `perf_event_attr`,
//! by perf's rules.
//!
//! Receives an [`EventSpec`] with its place in its group, and [`SampleOptions`]; hands on the
//! request. Opens nothing.
//!
//! Which record an event takes beside its samples:
//!
//! ```text
//! the tracker   mmap, comm, fork, exit, ksymbol, … of its tasks or CPU: one event of a recording
//! the others    samples only
//! ```

use super::{Flags, Levels, Mode, Request, Start, allocate, set_levels, set_start};
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::DUMMY;
use crate::abi::{Attr, branch_sample_type, read_format, sample_type};
use crate::counter::refusal::Refusal;
use crate::event::{EventSpec, Source, Trace};
use crate::host::tracer::Tracer;
use crate::sys::arch;

/// How often a sample is taken, for events whose text does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// perf's default: 4000 a second; tracepoints and breakpoints each time.
    Default,
    /// So many a second.
    Frequency(u64),
    /// After so many occurrences.
    Period(u64),
    /// After as many as the event's maker recommends.
    Recommended,
}

/// perf's default, in hertz.
pub const DEFAULT_FREQUENCY: u64 = 4000;

/// Where call chains come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraph {
    /// The kernel follows frame pointers.
    Fp,
    /// The same, the user part when the thread returns to user mode: once for all samples until then
    /// (Linux 6.19).
    FpDeferred,
    /// The processor's last branches, as a stack.
    Lbr,
    /// Registers and so many bytes of the stack, to be unwound later.
    Dwarf(u32),
    /// Both: the kernel follows frame pointers, and copies are unwound; each completes the other.
    Auto(u32),
}

impl CallGraph {
    /// Whether stacks are copied, to be unwound.
    pub fn copies(self) -> bool {
        self.copied_bytes() > 0
    }

    /// At most so many bytes of it.
    pub fn copied_bytes(self) -> u32 {
        match self {
            Self::Dwarf(bytes) | Self::Auto(bytes) => bytes,
            Self::Fp | Self::FpDeferred | Self::Lbr => 0,
        }
    }
}

/// Bytes of stack that perf copies when nothing is said.
pub const DEFAULT_STACK: u32 = 8192;

/// What is asked of every event of a recording.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// How often.
    pub rate: Rate,
    /// Stacks.
    pub call_graph: Option<CallGraph>,
    /// Greatest number of frames.
    pub max_stack: Option<u16>,
    /// `--kernel-callchains`: no user part.
    pub kernel_callchains: bool,
    /// `--user-callchains`: no kernel part.
    pub user_callchains: bool,
    /// More fields of samples ([`sample`]), as the options ask for them.
    pub fields: u64,
    /// `-P`, `--no-period`: the period's field, whatever the rate.
    pub period: Option<bool>,
    /// Data mappings are told too (`-d`).
    pub data_mappings: bool,
    /// Branch stacks with these filters.
    pub branches: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<u64>,
    /// Registers of the process.
    pub user_regs: Option<u64>,
    /// `clock_gettime(2)`'s number of the clock.
    pub clock: Option<i32>,
    /// Mappings are told with the build-ids of their files. While any event asks for that, the kernel marks
    /// the mappings that it tells others of, too, without giving them the build-ids
    /// (`perf_event_mmap_output`): perf 6.1 aborts then.
    pub build_ids: bool,
    /// Namespaces of tasks are told.
    pub namespaces: bool,
    /// Cgroups are told, and stand in samples.
    pub cgroups: bool,
    /// Context switches are told.
    pub switches: bool,
    /// Counts of threads are read when they end (`-s`).
    pub stat: bool,
    /// Times enabled and on a counter stand beside recorded counts.
    pub running_time: bool,
    /// No samples (`-n`).
    pub no_samples: bool,
    /// Levels for all events.
    pub levels: Levels,
    /// Children are recorded too.
    pub inherit: bool,
    /// The ring keeps the newest (`--overwrite`).
    pub backward: bool,
    /// The recorder is woken by each sample.
    pub wakes_always: bool,
    /// Timestamps; perf leaves them out only where there is one ring a thread.
    pub time: bool,
    /// Bytes of trace after which the recorder is woken; 0: half of the AUX area.
    pub aux_watermark: u32,
}

/// perf's own: four thousand samples a second with their times, of children too, without stacks.
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

/// An event's part in the recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampleRole {
    /// It tells of mappings, names and tasks too.
    pub tracks: bool,
    /// It leads a group of the kernel, or is alone.
    pub leads: bool,
    /// `{…}:S`: the leader samples, this one is read with it.
    pub read_by_leader: bool,
    /// A kernel group has several members.
    pub grouped: bool,
    /// Several kinds of samples share the recording: each begins with its event's id.
    pub with_id: bool,
    /// It is bound to a whole CPU.
    pub system: bool,
    /// The kernel starts it when the held task executes its command.
    pub on_exec: bool,
}

/// Makes the request for an event.
///
/// # Errors
/// As [`allocate`]: what is no event of the kernel's cannot be sampled.
pub fn request(spec: &EventSpec, options: &SampleOptions, role: SampleRole) -> Result<Request, Box<Refusal>> {
    let mode = if role.system { Mode::SystemSampling } else { Mode::TaskSampling };
    let trace = spec.trace.as_ref();
    // A trace has no samples.
    let stacks = if trace.is_some() { None } else { stacks(spec, options) };
    let leads_slices = spec.qualifiers.leads_slices;
    let flags = Flags {
        descendants: options.inherit,
        callchain: stacks.is_some(),
        log_exit: spec.qualifiers.log_exit,
        log_cswitch: spec.qualifiers.log_cswitch,
    };
    // Which CPU is known when it is opened: the request is the same for all.
    let mut request = allocate(spec, mode, flags, role.system.then_some(0))?;
    let attr = &mut request.whole;
    set_start(
        attr,
        match (role.leads, role.on_exec) {
            (false, _) => Start::AtOnce,
            (true, false) => Start::Enabled,
            (true, true) => Start::Exec,
        },
    );
    attr.set(Flag::SampleIdAll, true);
    // Otherwise the recorder is woken when half of a ring is full.
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
        fields |= sample_type::RAW | sample_type::TIME | sample_type::CPU | sample_type::PERIOD;
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
            // Nothing is inherited on a CPU; said to be, its counts would be taken for those of threads.
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
    // What tells where a trace is must not be written over: its own area keeps the newest.
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

/// The event that only tells of mappings, names and tasks, and never samples.
///
/// # Errors
/// As [`request`].
pub fn tracker(options: &SampleOptions, role: SampleRole) -> Result<(EventSpec, Request), Box<Refusal>> {
    let mut attr = Attr::new(kind::SOFTWARE, DUMMY);
    attr.set_period(1);
    let spec = EventSpec::new("dummy:HG", Source::Kernel(attr));
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
    // Data mappings belong to stacks that are copied, whichever event copies them.
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
        // It runs from the start: nothing that happens while we look around shall be missed.
        set_start(attr, Start::AtOnce);
        attr.set_read_format(attr.read_format() & !read_format::GROUP);
    });
    Ok((spec, request))
}

/// The event's text decides; what a tracepoint or breakpoint has by itself (each time) yields to the options.
fn rate(spec: &EventSpec, options: &SampleOptions, attr: &mut Attr, fields: &mut u64) {
    let each_time = matches!(attr.kind(), kind::TRACEPOINT | kind::BREAKPOINT) && attr.period() == 1;
    let written = attr.period() != 0 && !each_time;
    if !written {
        match options.rate {
            Rate::Default if each_time => {}
            Rate::Recommended if each_time => {}
            Rate::Recommended => match spec.recommended_period {
                Some(period) => attr.set_period(period),
                None => attr.set_freq(DEFAULT_FREQUENCY),
            },
            Rate::Default => attr.set_freq(DEFAULT_FREQUENCY),
            Rate::Frequency(hertz) => attr.set_freq(hertz),
            Rate::Period(count) => attr.set_period(count),
        }
    }
    if attr.get(Flag::Freq) {
        *fields |= sample_type::PERIOD;
    }
}

/// How much is traced, and what perf adds. A trace takes no frequency, and only SPE leaves anything out.
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

/// Where the event's call chains come from: its text decides, then the options.
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
    attr.set(Flag::ExcludeCallchainUser, options.kernel_callchains);
    attr.set(Flag::ExcludeCallchainKernel, options.user_callchains);
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
        // Branches of another kind were asked for: both cannot be, and perf then takes frame pointers.
        CallGraph::Lbr => {}
        CallGraph::Dwarf(bytes) | CallGraph::Auto(bytes) => {
            // The unwinder needs to know of data mappings, too; the address and its source are perf's way to
            // ask for them.
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
    use crate::host::Host;

    fn options() -> SampleOptions {
        SampleOptions::default()
    }

    fn attr(text: &str, options: &SampleOptions, role: SampleRole) -> Attr {
        let spec = crate::event::parse(text, &Host::live()).unwrap()[0].events[0].clone();
        request(&spec, options, role).unwrap().attr().clone()
    }

    #[test]
    fn the_text_decides_before_the_options() {
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
    fn stacks_are_asked_for_as_chosen() {
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
    fn one_event_tracks() {
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
