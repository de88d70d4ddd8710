//! Event text to requests: `cycles:u,{instructions,branches}:S,uncore_imc/cas_reads/,period=1000` becomes
//! [`EventGroup`]s of [`EventSpec`]s, each with the `perf_event_attr` fields that the text decides.
//!
//! Receives text and a [`Host`](crate::host::Host) (a snapshot: nothing is opened, the machine is not
//! needed). Hands on specs without a target; `counter` adds where and how they are opened.
//!
//! ```text
//! text ──syntax──► words ──resolve──► EventGroup
//!                            │ asks, in this order, and stops at the first that knows the name:
//!                            ├ generic     cycles, task-clock, L1-dcache-load-misses, duration_time
//!                            ├ terms       PMU/TERMS/ through the formats and events of sysfs
//!                            ├ names       the makers' names, through the tables of vendor
//!                            ├ probe       mem:, uprobe:, kprobe:, sdt:, tracepoints
//!                            ├ freebsd     unhalted-cycles, SOFT-CLOCK.HARD
//!                            └ libpfm      skx::MEM_LOAD_RETIRED:L3_MISS, told by its two colons
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

use crate::abi::Attr;
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CGROUP_SWITCHES, CONTEXT_SWITCHES, CPU_CLOCK, CPU_MIGRATIONS, TASK_CLOCK};
use crate::host::CpuList;
use crate::host::tracer::Tracer;

pub use error::{ParseError, Span};
pub use probe::{FindProgram, Subject, with_libraries};
pub use resolve::{Parser, parse};

/// Events that go on the hardware together or not at all.
#[derive(Debug, Clone)]
pub struct EventGroup {
    /// The members; the first is the leader. A plain event is a group of one.
    pub events: Vec<EventSpec>,
    /// Whether braces were written: only then the members are opened as a kernel group.
    pub braces: bool,
    /// `:W`: when the kernel refuses the group, open its members singly.
    pub weak: bool,
    /// `:S`: only the leader samples, the others are read with it.
    pub leader_sampling: bool,
}

/// One event as its text decides it.
#[derive(Debug, Clone)]
pub struct EventSpec {
    /// The name shown to the user, by perf's rule: the text as it was typed, or `name=`.
    pub name: String,
    /// What is counted.
    pub source: Source,
    /// The PMU that counts it, as sysfs names it (`cpu`, `uncore_imc_0`, `software`); the generic types have
    /// `None` unless the text or the machine (hybrid) names one.
    pub pmu: Option<String>,
    /// The CPUs on which it is opened for the whole package or device: the PMU's `cpumask`, or the `cpu=`
    /// qualifier.
    pub cpus: Option<CpuList>,
    /// Factor from the count to `unit` (`events/NAME.scale`); 1 where there is none.
    pub scale: f64,
    /// Unit of the scaled value (`events/NAME.unit`), such as `Joules`; empty for plain counts.
    pub unit: String,
    /// Nanoseconds of one tick, for FreeBSD's clocks: the kernel counts time, and periods are said in ticks.
    pub tick_ns: Option<u64>,
    /// A tracepoint of the kernel that tells only of what happened in user mode: `usr` leaves none of it out.
    pub tells_of_user_mode: bool,
    /// `.snapshot`: the value is a level, not a sum; intervals show it as it is.
    pub snapshot: bool,
    /// `.per-pkg`: one CPU of a package stands for all.
    pub per_package: bool,
    /// Whether the text chose levels (`u`, `k`, `h`, `usr`, `os` …), so that `--all-user` must not.
    pub levels_chosen: bool,
    /// `P`, or an event that can only be sampled precisely: the highest `precise_ip` that the machine takes.
    pub precise_max: bool,
    /// Instances of one PMU wildcard (`uncore_imc*`) or both halves of a hybrid event carry the same number:
    /// shown as one row unless `--no-merge`.
    pub merge: Option<u32>,
    /// Counted on [`cpus`](Self::cpus), or on all, whatever the target (perf's `system_wide`): the PMU counts
    /// a package or a device (it has a `cpumask`), never one task; or it is wanted beside counts of tasks.
    pub system_wide: bool,
    /// The CPUs that have this PMU, where the machine's cores differ: elsewhere the event cannot be opened
    /// for a CPU, and a task is counted only while it runs on one of them.
    pub core_cpus: Option<CpuList>,
    /// `G`, `H`, `guest` or `host` chose between host and guests.
    pub exclusion_chosen: bool,
    /// `S`: in a sample, the values of the group are read too.
    pub sample_read: bool,
    /// The filter expression that belongs to the event's meaning, for tracepoints.
    pub filter: Option<String>,
    /// A tracepoint that happens with user mode's registers.
    pub of_user_mode: bool,
    /// The counters that it can use, where its maker's table says so.
    pub counters: Option<Counters>,
    /// The period at which its maker samples it.
    pub recommended_period: Option<u64>,
    /// It counts nothing, but has hardware write a trace.
    pub trace: Option<Trace>,
    /// What else the qualifiers asked for.
    pub qualifiers: Qualifiers,
}

/// Counters of a PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counters {
    /// A bit for each general counter.
    pub general: u64,
    /// The counter that counts this alone; 0 for the only one of an uncore unit.
    pub fixed: Option<u8>,
}

impl Counters {
    /// Reads a table's list: `0-3`, `0,2-3`, `F1`, `F`.
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

/// What a recorder of a trace asks for besides its text, as perf does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Who traces.
    pub tracer: Tracer,
    /// `sample_period` where nothing is said.
    pub period: u64,
    /// Bits of words of the request, for fields that the text does not name.
    pub defaults: Vec<(usize, u64)>,
    /// Bits of `sample_type`: not samples, but what the decoder goes by.
    pub fields: u64,
}

/// Where tracepoints and probes happen, as far as the kernel tells by the registers that they come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// System calls (`syscalls:`) and probes in programs: counted with `:u` and with `:k` alike.
    User,
    /// All others, even those that are about user mode (`exceptions:page_fault_user`): never with `:u`.
    Kernel,
}

/// Where an event's numbers come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The kernel: the words of `perf_event_attr` that the text decides (type, config…, period, levels,
    /// precise).
    Kernel(Attr),
    /// pmc itself measures it.
    Tool(Tool),
    /// A holder keeps it open: who wants its counts or records asks there.
    Held(PersistentEvent),
}

/// An event that a holder keeps open (`persistent/NAME/`). Its request is the holder's own and must never be
/// given to the kernel, for which the same bits mean something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentEvent {
    /// Where the holder publishes it.
    pub run_directory: PathBuf,
    /// The holder's number for it.
    pub id: u64,
}

/// Events that need no counter (perf's tool events).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Wall-clock time, nanoseconds.
    DurationTime,
    /// User CPU time of the command, nanoseconds.
    UserTime,
    /// System CPU time of the command, nanoseconds.
    SystemTime,
}

impl Tool {
    /// Each with its name and what it measures, in one line.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::DurationTime, "duration_time", "wall-clock time, nanoseconds"),
        (Self::UserTime, "user_time", "time the command spent in user mode, nanoseconds"),
        (Self::SystemTime, "system_time", "time the command spent in the kernel, nanoseconds"),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(tool, ..)| *tool)
    }
}

/// Qualifiers that concern opening, not counting. `None` and `false`: not said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qualifiers {
    /// `call-graph=MODE`: `fp`, `dwarf`, `lbr` or `no`.
    pub call_graph: Option<String>,
    /// `callchain`: said of an event of its own accord, and so refused where it only counts.
    pub callchain: bool,
    /// `stack-size=BYTES`.
    pub stack_size: Option<u32>,
    /// `max-stack=FRAMES`.
    pub max_stack: Option<u16>,
    /// `inherit`/`no-inherit` (perf terms), `descendants`: children that are started from then on are counted
    /// too, or not. With `descendants=0`, or `inherit_thread`, those are threads alone.
    pub inherit: Option<bool>,
    /// `overwrite`/`no-overwrite`.
    pub overwrite: Option<bool>,
    /// `time`/`time=0`.
    pub time: Option<bool>,
    /// `nr=N`: on each thread or CPU the event stops after so many samples.
    pub most_samples: Option<u32>,
    /// `branch_type=WORDS`: bits of `branch_sample_type`.
    pub branch_type: Option<u64>,
    /// `descendants`: of processes, those that they have already, too.
    pub descendants: bool,
    /// `system`: on whole CPUs, beside events that are of processes.
    pub system: bool,
    /// `log-exit`: each thread's count is recorded when it ends.
    pub log_exit: bool,
    /// `log-cswitch`: each thread's count is recorded at its context switches, and when it ends.
    pub log_cswitch: bool,
    /// It leads such a group: context switches, each sampled with the counts of the group.
    pub leads_slices: bool,
}

impl Qualifiers {
    /// Whether counts of threads are recorded.
    pub fn logs(&self) -> bool {
        self.log_exit || self.log_cswitch
    }
}

impl EventSpec {
    /// A spec that has a name and a source, and everything else as it is when nothing is said.
    pub fn new(name: impl Into<String>, source: Source) -> Self {
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

    /// A generic event of the kernel under its own name, whatever the machine.
    pub fn generic(kind: u32, config: u64) -> Self {
        let name = crate::abi::generic::name_of(kind, config);
        Self::kernel(name.map_or_else(|| format!("{kind}:{config:#x}"), str::to_owned), kind, config)
    }

    /// An event of the kernel. As perf does, guests are left out unless the text asks for them.
    fn kernel(name: impl Into<String>, kind: u32, config: u64) -> Self {
        let mut attr = Attr::new(kind, config);
        attr.set(Flag::ExcludeGuest, true);
        Self::new(name, Source::Kernel(attr))
    }

    /// Whether it takes one of the hardware's counters, which are few and shared: what a reservation is
    /// about. PMUs that only read a register which counts anyway (time stamps, energy, residency) or hook
    /// into the kernel do not.
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

    /// Whether user mode and the kernel can be told apart of it, and its text leaves open which of them is
    /// meant.
    pub fn has_levels(&self) -> bool {
        let is_clock = [CPU_CLOCK, TASK_CLOCK].iter().any(|clock| self.is_generic(kind::SOFTWARE, *clock));
        match &self.source {
            Source::Kernel(attr) => {
                let is_narrowed = [Flag::ExcludeUser, Flag::ExcludeKernel].iter().any(|flag| attr.get(*flag));
                // The kernel's clocks go on at every level, whatever they are told; and of what happens in
                // user mode it can leave out neither system calls nor probes.
                let goes_on = is_clock || self.hook() == Some(Hook::User);
                !is_narrowed && !self.system_wide && !goes_on
            }
            Source::Tool(tool) => *tool != Tool::DurationTime,
            Source::Held(_) => false,
        }
    }

    /// Where it is hooked in, if it is: then the kernel takes `:u` for the question whether it happens in
    /// user mode at all, and `:k` for none.
    pub fn hook(&self) -> Option<Hook> {
        match self.pmu.as_deref()? {
            "kprobe" => Some(Hook::Kernel),
            "uprobe" => Some(Hook::User),
            "tracepoint" => Some(if self.of_user_mode { Hook::User } else { Hook::Kernel }),
            _ => None,
        }
    }

    /// Whether only the kernel does it: where the kernel is left out, its 0 is no count.
    pub fn is_of_kernel(&self) -> bool {
        const OF_KERNEL: [u64; 3] = [CONTEXT_SWITCHES, CPU_MIGRATIONS, CGROUP_SWITCHES];
        self.hook() == Some(Hook::Kernel)
            || self
                .attr()
                .is_some_and(|attr| attr.kind() == kind::SOFTWARE && OF_KERNEL.contains(&attr.config()))
    }

    /// Whether several events shown as one take turns on the same task (the PMUs of a hybrid machine's
    /// cores), so that their times are not to be added.
    pub fn takes_turns(&self) -> bool {
        self.core_cpus.is_some() && self.merge.is_some()
    }

    /// The name of this instance where instances are not merged, as perf writes it:
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

    /// Makes it `cpu-clock`, at the same levels: what stands in for cycles where there are none.
    pub fn become_cpu_clock(&mut self) {
        let Source::Kernel(attr) = &mut self.source else { return };
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
            Source::Kernel(attr) => Some(attr),
            Source::Tool(_) | Source::Held(_) => None,
        }
    }
}
