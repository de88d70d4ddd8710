//! Converts event text to requests: `cycles:u,{instructions,branches}:S,uncore_imc/cas_reads/,period=1000`
//! becomes [`EventGroup`]s of [`EventSpec`]s, each with the `perf_event_attr` fields that the text
//! determines.
//!
//! Takes text and a [`Host`](pmc_sys::host::Host), which may be a snapshot: it opens nothing and does not
//! need the machine. Returns specs without a target; `counter` decides where and how to open them.
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

mod did_you_mean;
mod error;
mod freebsd_aliases;
mod freebsd_masks;
pub mod glob;
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
pub use probe::{EventTarget, FindProgram, with_libraries};
pub use resolve::{EventParser, parse};

/// Events that are scheduled together or not at all.
#[derive(Debug, Clone)]
pub struct EventGroup {
    /// The members; the first is the leader. A plain event is a group of one.
    pub events: Vec<EventSpec>,
    /// Whether the text has braces; only then the members form a kernel group.
    pub braces: bool,
    /// `:W`: if the kernel refuses the group, open its members separately.
    pub weak: bool,
    /// `:S`: only the leader samples; the others are read with it.
    pub leader_sampling: bool,
}

/// One event, as determined by its text.
#[derive(Debug, Clone)]
pub struct EventSpec {
    /// The name shown to the user, by perf's rule: the text as typed, or `name=`.
    pub name: String,
    /// The source of its values.
    pub source: EventSource,
    /// The PMU that counts it, by its sysfs name (`cpu`, `uncore_imc_0`, `software`). `None` for generic
    /// types, unless the text or a hybrid machine names one.
    pub pmu: Option<String>,
    /// The CPUs on which it is opened for the whole package or device: the PMU's `cpumask`, or the `cpu=`
    /// qualifier.
    pub cpus: Option<CpuList>,
    /// Factor from the count to `unit` (`events/NAME.scale`); 1 by default.
    pub scale: f64,
    /// Unit of the scaled value (`events/NAME.unit`), such as `Joules`; empty for plain counts.
    pub unit: String,
    /// Nanoseconds per tick, for FreeBSD's clocks: the kernel counts time, and periods are given in ticks.
    pub tick_ns: Option<u64>,
    /// A kernel tracepoint that only reports events of user mode, so `usr` excludes nothing.
    pub tells_of_user_mode: bool,
    /// `.snapshot`: the value is a level, not a sum; intervals show it unchanged.
    pub snapshot: bool,
    /// `.per-pkg`: one CPU counts for its whole package.
    pub per_package: bool,
    /// Whether the text chose levels (`u`, `k`, `h`, `usr`, `os` …), so that `--all-user` does not override
    /// them.
    pub levels_chosen: bool,
    /// `P`, or an event that only supports precise sampling: use the highest `precise_ip` the machine
    /// supports.
    pub precise_max: bool,
    /// Number shared by the instances of a PMU wildcard (`uncore_imc*`) or the parts of a hybrid event.
    /// They are shown as one row unless `--no-merge` is given.
    pub merge: Option<u32>,
    /// Whether it is counted on [`cpus`](Self::cpus), or on all CPUs, whatever the target (perf's
    /// `system_wide`). Either the PMU counts a package or a device (it has a `cpumask`), never one task, or
    /// the user wants the event in addition to counts of tasks.
    pub system_wide: bool,
    /// The CPUs that have this PMU, on hybrid machines. The event cannot be opened on other CPUs, and a
    /// task is counted only while it runs on one of these.
    pub core_cpus: Option<CpuList>,
    /// Whether `G`, `H`, `guest` or `host` chose between host and guests.
    pub exclusion_chosen: bool,
    /// `S`: samples include the values of the group.
    pub sample_read: bool,
    /// The filter expression that is part of the event's meaning, for tracepoints.
    pub filter: Option<String>,
    /// Whether it is a tracepoint that reports user-mode registers.
    pub of_user_mode: bool,
    /// The counters that it can use, if the vendor's table lists them.
    pub counters: Option<PmuCounters>,
    /// The vendor's recommended sampling period.
    pub recommended_period: Option<u64>,
    /// Set if the event counts nothing but makes hardware write a trace.
    pub trace: Option<Trace>,
    /// Settings from the other qualifiers.
    pub qualifiers: Qualifiers,
}

/// Counters of a PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PmuCounters {
    /// One bit per general counter.
    pub general: u64,
    /// The fixed counter for this event; 0 for the only one of an uncore unit.
    pub fixed: Option<u8>,
}

impl PmuCounters {
    /// Parses a table's list: `0-3`, `0,2-3`, `F1`, `F`.
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

/// Settings for recording a trace that perf adds to the event's text.
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

/// Where tracepoints and probes fire, as far as the kernel reports it through their registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// System calls (`syscalls:`) and probes in programs: counted with both `:u` and `:k`.
    User,
    /// All others, even those about user mode (`exceptions:page_fault_user`): never counted with `:u`.
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
/// for which the same bits have a different meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentEvent {
    /// The directory in which the holder publishes it.
    pub run_directory: PathBuf,
    /// The holder's ID for it.
    pub id: u64,
}

/// Events that need no counter (perf's tool events).
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
        (Self::UserTime, "user_time", "time the command spent in user mode, nanoseconds"),
        (Self::SystemTime, "system_time", "time the command spent in the kernel, nanoseconds"),
    ];

    /// The tool event of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(tool, ..)| *tool)
    }
}

/// Qualifiers that affect opening, not counting. `None` and `false` mean not given.
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
    /// `inherit`/`no-inherit` (perf terms), `descendants`: whether to count children started later. With
    /// `descendants=0` or `inherit_thread`, only threads are inherited.
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
    /// Leads a `log-cswitch` group: samples each context switch with the group's counts.
    pub leads_slices: bool,
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
            tells_of_user_mode: false,
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

    /// Creates a generic kernel event under its own name.
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

    /// Whether it needs a hardware counter, which is scarce and subject to reservation. PMUs that only read
    /// a free-running register (time stamps, energy, residency) or hook into the kernel do not.
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

    /// Whether the event can distinguish user mode from the kernel, and its text does not choose.
    pub fn has_levels(&self) -> bool {
        match &self.source {
            EventSource::Kernel(attr) => {
                let is_narrowed = [Flag::ExcludeUser, Flag::ExcludeKernel].iter().any(|flag| attr.get(*flag));
                // The kernel's clocks run at every level whatever the flags. System calls and probes in
                // programs count at every level too.
                let goes_on = generic::is_clock(attr) || self.hook() == Some(Hook::User);
                !is_narrowed && !self.system_wide && !goes_on
            }
            EventSource::Tool(tool) => *tool != Tool::DurationTime,
            EventSource::Held(_) => false,
        }
    }

    /// The hook's location, for tracepoints and probes. For these, the kernel uses `:u` to decide whether
    /// the event happens in user mode at all, and ignores `:k`.
    pub fn hook(&self) -> Option<Hook> {
        match self.pmu.as_deref()? {
            "kprobe" => Some(Hook::Kernel),
            "uprobe" => Some(Hook::User),
            "tracepoint" => Some(if self.of_user_mode { Hook::User } else { Hook::Kernel }),
            _ => None,
        }
    }

    /// Whether only the kernel causes this event; if the kernel is excluded, its 0 is not a valid count.
    pub fn is_of_kernel(&self) -> bool {
        const OF_KERNEL: [u64; 3] = [CONTEXT_SWITCHES, CPU_MIGRATIONS, CGROUP_SWITCHES];
        self.hook() == Some(Hook::Kernel)
            || self
                .attr()
                .is_some_and(|attr| attr.kind() == kind::SOFTWARE && OF_KERNEL.contains(&attr.config()))
    }

    /// Whether events shown as one alternate on the same task (the PMUs of hybrid cores), so that their
    /// times must not be added.
    pub fn takes_turns(&self) -> bool {
        self.core_cpus.is_some() && self.merge.is_some()
    }

    /// Whether the event may be opened on this CPU: the text or the PMU can bind it to certain CPUs.
    pub(crate) fn takes_cpu(&self, cpu: u32) -> bool {
        [&self.cpus, &self.core_cpus].into_iter().flatten().all(|cpus| cpus.contains(cpu))
    }

    /// The name of this instance when instances are not merged, in perf's format:
    /// `uncore_imc_0/clockticks/`, `cpu_core/cycles/`, `clockticks [uncore_imc_0]`.
    pub fn unique_name(&self) -> String {
        let (Some(_), Some(pmu)) = (self.merge, &self.pmu) else { return self.name.clone() };
        match self.name.find('/') {
            Some(_) if self.name.starts_with(pmu.as_str()) => self.name.clone(),
            Some(slash) => format!("{pmu}{}", &self.name[slash..]),
            None if self.core_cpus.is_some() => format!("{pmu}/{}/", self.name),
            None => format!("{} [{pmu}]", self.name),
        }
    }

    /// Whether it is this generic event, by `attr.type` and `attr.config`.
    pub fn is_generic(&self, kind: u32, config: u64) -> bool {
        self.attr().is_some_and(|attr| (attr.kind(), attr.config()) == (kind, config))
    }

    /// Turns the event into `cpu-clock` at the same levels, to replace cycles on machines without them.
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
