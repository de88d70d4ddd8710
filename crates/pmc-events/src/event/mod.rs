//! Converts event text to requests: `cycles:u,{instructions,branches}:S,uncore_imc/cas_reads/,period=1000`
//! becomes [`EventGroup`]s of [`EventSpec`]s, each with the `perf_event_attr` fields that the text
//! determines.
//!
//! Takes text and a [`Host`](pmc_sys::host::Host), which may be a saved machine, since no events are opened.
//! Returns specs without a target; `counter` decides where and how to open them.
//!
//! ```text
//! text ──syntax──► words ──resolve──► EventGroup
//!                            │ tries these in order and stops at the first match:
//!                            ├ generic     cycles, task-clock, L1-dcache-load-misses, duration_time
//!                            ├ terms       PMU/TERMS/, by the formats and events in sysfs
//!                            ├ names       vendor event names, from vendor's tables
//!                            ├ probe       mem:, uprobe:, kprobe:, sdt:, tracepoints
//!                            ├ freebsd     unhalted-cycles, SOFT-CLOCK.HARD
//!                            └ libpfm      skx::MEM_LOAD_RETIRED:L3_MISS, recognised by its two colons
//! ```
//!
//! ```
//! use pmc_events::{event, hint::Hint};
//! use pmc_sys::host::Host;
//!
//! let host = Host::live();
//! let groups = event::parse("task-clock,page-faults:u", &host)?;
//! assert_eq!(groups.iter().map(|group| group.events.len()).sum::<usize>(), 2);
//! let wrong = event::parse("page-fualts", &host).unwrap_err();
//! assert_eq!((wrong.suggestions[0].as_str(), wrong.remedy), ("page-faults", Some(Hint::ShowEvents)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod did_you_mean;
mod error;
mod freebsd_aliases;
mod freebsd_masks;
mod glob;
pub mod libpfm;
pub mod listing;
mod names;
pub mod perfevent_conf;
mod probe;
mod qualify;
mod resolve;
mod syntax;
mod terms;
pub mod vendor;

use std::path::PathBuf;

use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::{CGROUP_SWITCHES, CONTEXT_SWITCHES, CPU_CLOCK, CPU_MIGRATIONS};
use pmc_sys::abi::{Attr, generic};
use pmc_sys::host::CpuList;
use pmc_sys::host::tracer::Tracer;

pub use error::{ParseError, TextSpan};
pub use probe::{
    EventTarget, FindProgram, KernelFunction, LineRange, ProbeArgument, ProbeNames, ProbePoint, ProbeSyntax,
    kernel_functions, probe_event_name, probe_group, with_libraries,
};
pub use resolve::{EventParser, parse};

/// Events that are scheduled together or not at all.
#[derive(Debug, Clone)]
pub struct EventGroup {
    /// The members, of which the first is the leader. A plain event is a group of one.
    pub events: Vec<EventSpec>,
    /// Whether the text has braces, so that the members form a group in the kernel.
    pub braces: bool,
    /// `:W`: if the kernel rejects the group, open its members separately.
    pub weak: bool,
    /// `:S`: only the leader samples; the others are read along with it.
    pub leader_sampling: bool,
}

/// One event, as parsed from its text.
#[derive(Debug, Clone)]
pub struct EventSpec {
    /// The name shown to the user. As in perf, this is the text as typed, or the value of `name=`.
    pub name: String,
    /// The source of its values.
    pub source: EventSource,
    /// The sysfs name of the PMU that counts the event (`cpu`, `uncore_imc_0`, `software`). `None` for
    /// generic types, unless the text or a hybrid machine determines a PMU.
    pub pmu: Option<String>,
    /// The CPUs on which the event is opened for the whole package or device, from the PMU's `cpumask` or the
    /// `cpu=` qualifier.
    pub cpus: Option<CpuList>,
    /// Factor from the count to `unit` (`events/NAME.scale`); 1 by default.
    pub scale: f64,
    /// Unit of the scaled value (`events/NAME.unit`), such as `Joules`; empty for plain counts.
    pub unit: String,
    /// Nanoseconds per tick, for FreeBSD's clocks: the kernel counts time, and periods are given in ticks.
    pub tick_ns: Option<u64>,
    /// Whether the event is a kernel tracepoint that only reports user-mode events, so that `usr` excludes
    /// none of them.
    pub has_user_mode: bool,
    /// `.snapshot`: the value is a level instead of a sum, and intervals show it unchanged.
    pub snapshot: bool,
    /// `.per-pkg`: one CPU counts for its whole package.
    pub per_package: bool,
    /// Whether the text selects privilege levels (`u`, `k`, `h`, `usr`, `os` …), so that `--all-user` does
    /// not override them.
    pub levels_chosen: bool,
    /// `P`, or an event that only supports precise sampling: use the highest `precise_ip` that the machine
    /// supports.
    pub precise_max: bool,
    /// Number shared by the instances of a PMU wildcard (`uncore_imc*`) or the parts of a hybrid event.
    /// They are shown as one row unless `--no-merge` is given.
    pub merge: Option<u32>,
    /// Whether the event is counted on [`cpus`](Self::cpus) or on all CPUs, regardless of the target (perf's
    /// `system_wide`). This is so if the PMU counts for a whole package or device (it has a `cpumask`) and
    /// never for a single task, or if the user requests such an event in addition to per-task counts.
    pub system_wide: bool,
    /// The CPUs that have this PMU, on hybrid machines. The event cannot be opened on other CPUs, and a
    /// task is counted only while it runs on one of these.
    pub core_cpus: Option<CpuList>,
    /// Whether `G`, `H`, `guest` or `host` selects between host and guests.
    pub exclusion_chosen: bool,
    /// `S`: samples include the values of the group.
    pub sample_read: bool,
    /// The filter expression that is part of the event's meaning, for tracepoints.
    pub filter: Option<String>,
    /// Whether the event is a tracepoint that reports user-mode registers.
    pub of_user_mode: bool,
    /// The counters that the event can use, if the vendor's table lists them.
    pub counters: Option<PmuCounters>,
    /// The vendor's recommended sampling period.
    pub recommended_period: Option<u64>,
    /// Set if the event makes the hardware write a trace instead of counting.
    pub trace: Option<Trace>,
    /// Settings from the other qualifiers.
    pub qualifiers: Qualifiers,
}

/// A set of counters of a PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PmuCounters {
    /// One bit per general counter.
    pub general: u64,
    /// The fixed counter for this event; 0 for the only fixed counter of an uncore unit.
    pub fixed: Option<u8>,
}

impl PmuCounters {
    /// Parses a list in a table: `0-3`, `0,2-3`, `F1`, `F`.
    fn read(text: &str) -> Option<Self> {
        let mut counters = Self { general: 0, fixed: None };
        for part in text.split(',') {
            match part.strip_prefix('F') {
                Some("") => counters.fixed = Some(0),
                Some(number) => counters.fixed = Some(number.parse().ok()?),
                None => {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                    (first..=last.min(63)).for_each(|counter| counters.general |= 1 << counter);
                }
            }
        }
        Some(counters)
    }
}

/// Settings that perf adds to the event's text when it records a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The tracing hardware.
    pub tracer: Tracer,
    /// Default `sample_period`.
    pub(crate) period: u64,
    /// Default values of fields that the text does not set: word index and bits.
    pub defaults: Vec<(usize, u64)>,
    /// `sample_type` bits that the decoder needs.
    pub(crate) fields: u64,
}

/// The mode in which a tracepoint or probe fires, according to the registers that the kernel reports for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// System calls (`syscalls:`) and probes in programs: counted with both `:u` and `:k`.
    User,
    /// All other hooks, even those that concern user mode (`exceptions:page_fault_user`): never counted with
    /// `:u`.
    Kernel,
}

/// Source of an event's values.
#[derive(Debug, Clone)]
pub enum EventSource {
    /// The kernel: the `perf_event_attr` words that the text determines (type, config…, period, levels,
    /// precise).
    Kernel(Attr),
    /// Measured by pmc itself.
    Tool(Tool),
    /// Kept open by a holder, from which its counts and records are read.
    Held(PersistentEvent),
}

/// An event that a holder keeps open (`persistent/NAME/`). Its request must never be passed to the kernel,
/// because these bits have a different meaning there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentEvent {
    /// The directory in which the holder publishes it.
    pub run_directory: PathBuf,
    /// The holder's ID for it.
    pub id: u64,
}

/// Values that do not need a counter (perf's tool events).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Wall-clock time in nanoseconds.
    DurationTime,
    /// User CPU time of the command in nanoseconds.
    UserTime,
    /// System CPU time of the command in nanoseconds.
    SystemTime,
}

impl Tool {
    /// All tool events with their names and one-line descriptions.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::DurationTime, "duration_time", "wall-clock time, nanoseconds"),
        (Self::UserTime, "user_time", "time the command spent in user mode, in nanoseconds"),
        (Self::SystemTime, "system_time", "time the command spent in the kernel, in nanoseconds"),
    ];

    /// The tool event with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(tool, ..)| *tool)
    }
}

/// Qualifiers that affect how an event is opened rather than counted. `None` and `false` mean that a
/// qualifier is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qualifiers {
    /// `call-graph=MODE`: `fp`, `dwarf`, `lbr` or `no`.
    pub call_graph: Option<String>,
    /// `callchain` on the event itself; refused if the event only counts.
    pub callchain: bool,
    /// `stack-size=BYTES`.
    pub stack_size: Option<u32>,
    /// `max-stack=FRAMES`.
    pub max_stack: Option<u16>,
    /// `inherit`/`no-inherit` (perf terms), `descendants`: whether to count children that start later. With
    /// `descendants=0` or `inherit_thread`, only threads inherit the event.
    pub inherit: Option<bool>,
    /// `overwrite`/`no-overwrite`.
    pub overwrite: Option<bool>,
    /// `time`/`time=0`.
    pub time: Option<bool>,
    /// `nr=N`: maximum number of samples on each thread or CPU.
    pub(crate) most_samples: Option<u32>,
    /// `branch_type=WORDS`: bits of `branch_sample_type`.
    pub branch_type: Option<u64>,
    /// `descendants`: include existing child processes.
    pub descendants: bool,
    /// `system`: on whole CPUs, in addition to events of processes.
    pub system: bool,
    /// `log-exit`: record each thread's count when it ends.
    pub log_exit: bool,
    /// `log-cswitch`: record each thread's count at its context switches and when it ends.
    pub log_cswitch: bool,
    /// The leader of a `log-cswitch` group, which samples each context switch with the group's counts.
    pub leads_slices: bool,
    /// Samples every wake-up on whole CPUs, for the waits that other events measure. Keeps only the kernel's
    /// part of call chains. The rate in the options does not apply.
    pub samples_wakeups: bool,
}

impl Qualifiers {
    /// Whether counts of threads are recorded.
    pub fn logs(&self) -> bool {
        self.log_exit || self.log_cswitch
    }
}

impl EventSpec {
    /// Creates a spec from a name and a source, with defaults for everything else.
    pub fn new(name: impl Into<String>, source: EventSource) -> Self {
        Self {
            name: name.into(),
            source,
            pmu: None,
            cpus: None,
            scale: 1.0,
            unit: String::new(),
            tick_ns: None,
            has_user_mode: false,
            snapshot: false,
            per_package: false,
            levels_chosen: false,
            precise_max: false,
            merge: None,
            system_wide: false,
            core_cpus: None,
            exclusion_chosen: false,
            sample_read: false,
            filter: None,
            of_user_mode: false,
            counters: None,
            recommended_period: None,
            trace: None,
            qualifiers: Qualifiers::default(),
        }
    }

    /// Creates a generic kernel event with its own name.
    pub fn generic(kind: u32, config: u64) -> Self {
        let name = pmc_sys::abi::generic::name_of(kind, config);
        Self::kernel(name.map_or_else(|| format!("{kind}:{config:#x}"), str::to_owned), kind, config)
    }

    /// Creates a kernel event. As in perf, guests are excluded unless the text includes them.
    fn kernel(name: impl Into<String>, kind: u32, config: u64) -> Self {
        let mut attr = Attr::new(kind, config);
        attr.set(Flag::ExcludeGuest, true);
        Self::new(name, EventSource::Kernel(attr))
    }

    /// Whether the event needs a hardware counter, which is a scarce resource and can be reserved. PMUs that
    /// only read a free-running register (time stamps, energy, residency) or hook into the kernel do not.
    pub fn takes_counter(&self) -> bool {
        const WITHOUT: [&str; 8] =
            ["software", "tracepoint", "breakpoint", "kprobe", "uprobe", "msr", "power", "persistent"];
        let Some(attr) = self.attr() else { return false };
        match (attr.kind(), self.pmu.as_deref()) {
            (kind::HARDWARE | kind::HW_CACHE | kind::RAW, _) => true,
            (kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT, _) | (_, None) => false,
            (_, Some(pmu)) => !WITHOUT.contains(&pmu) && !pmu.starts_with("cstate_"),
        }
    }

    /// Whether the event can distinguish user mode from kernel mode, and its text does not select either.
    pub fn has_levels(&self) -> bool {
        match &self.source {
            EventSource::Kernel(attr) => {
                let is_narrowed = [Flag::ExcludeUser, Flag::ExcludeKernel].iter().any(|flag| attr.get(*flag));
                // The kernel's clocks count at every level, regardless of the flags, and so do system calls
                // and probes in programs.
                let goes_on = generic::is_clock(attr) || self.hook() == Some(Hook::User);
                !is_narrowed && !self.system_wide && !goes_on
            }
            EventSource::Tool(tool) => *tool != Tool::DurationTime,
            EventSource::Held(_) => false,
        }
    }

    /// The mode in which the event fires; `None` unless it is a tracepoint or probe. For these, `:u` makes
    /// the kernel count either all occurrences or none, and `:k` has no effect.
    pub fn hook(&self) -> Option<Hook> {
        match self.pmu.as_deref()? {
            "kprobe" => Some(Hook::Kernel),
            "uprobe" => Some(Hook::User),
            "tracepoint" => Some(if self.of_user_mode { Hook::User } else { Hook::Kernel }),
            _ => None,
        }
    }

    /// Whether only the kernel causes this event, so that a count of 0 means nothing if the kernel is
    /// excluded.
    pub fn is_of_kernel(&self) -> bool {
        const OF_KERNEL: [u64; 3] = [CONTEXT_SWITCHES, CPU_MIGRATIONS, CGROUP_SWITCHES];
        self.hook() == Some(Hook::Kernel)
            || self
                .attr()
                .is_some_and(|attr| attr.kind() == kind::SOFTWARE && OF_KERNEL.contains(&attr.config()))
    }

    /// Whether events that share a row alternate on the same task, as on the PMUs of hybrid cores. If they
    /// do, their times must not be added up.
    pub fn takes_turns(&self) -> bool {
        self.core_cpus.is_some() && self.merge.is_some()
    }

    /// Whether the event may be opened on this CPU. The text or the PMU can bind it to certain CPUs.
    pub(crate) fn takes_cpu(&self, cpu: u32) -> bool {
        [&self.cpus, &self.core_cpus].into_iter().flatten().all(|cpus| cpus.contains(cpu))
    }

    /// The event's name if PMU instances are not merged, in perf's format: `uncore_imc_0/clockticks/`,
    /// `cpu_core/cycles/`, `clockticks [uncore_imc_0]`.
    pub fn unique_name(&self) -> String {
        let (Some(_), Some(pmu)) = (self.merge, &self.pmu) else { return self.name.clone() };
        match self.name.find('/') {
            Some(_) if self.name.starts_with(pmu.as_str()) => self.name.clone(),
            Some(slash) => format!("{pmu}{}", &self.name[slash..]),
            None if self.core_cpus.is_some() => format!("{pmu}/{}/", self.name),
            None => format!("{} [{pmu}]", self.name),
        }
    }

    /// Whether this is the generic event with this `attr.type` and `attr.config`.
    pub fn is_generic(&self, kind: u32, config: u64) -> bool {
        self.attr().is_some_and(|attr| (attr.kind(), attr.config()) == (kind, config))
    }

    /// Changes the event to `cpu-clock` at the same levels, to replace cycles on machines that cannot count
    /// them.
    pub fn become_cpu_clock(&mut self) {
        let EventSource::Kernel(attr) = &mut self.source else { return };
        attr.set_kind(kind::SOFTWARE);
        attr.set_config(CPU_CLOCK);
        attr.set_precise_ip(0);
        self.precise_max = false;
        let modifiers = self.name.split_once(':').map_or("", |(_, letters)| letters).replace(['p', 'P'], "");
        let colon = if modifiers.is_empty() { "" } else { ":" };
        self.name = format!("cpu-clock{colon}{modifiers}");
    }

    /// The kernel request, if the kernel counts this event.
    pub fn attr(&self) -> Option<&Attr> {
        match &self.source {
            EventSource::Kernel(attr) => Some(attr),
            EventSource::Tool(_) | EventSource::Held(_) => None,
        }
    }
}
