//! The machine as a profiler sees it, ready to be shown: what counts here, who holds it, what this user may
//! do.
//!
//! A command fills it; `view` only reads it. Field names are those of the JSON document, which is versioned:
//! fields are added, and none changes its meaning without a new [`VERSION`]. Strings of the system are
//! cleaned of control characters when it is filled.

use std::collections::BTreeMap;

use serde::Serialize;

/// The version of the JSON document of `pmc info`.
pub const VERSION: u32 = 1;

/// Everything `pmc info` knows.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// [`VERSION`].
    pub version: u32,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// The CPUs.
    pub cpu: Cpu,
    /// The makers' events and metrics that pmc knows for these CPUs.
    pub event_tables: EventTables,
    /// The PMUs, by name.
    pub pmus: Vec<Pmu>,
    /// Hardware counters, one entry for each kind of core; empty where the kernel has no core PMU.
    pub counters: Vec<Counters>,
    /// The generic hardware events, each tried.
    pub hardware_events: Vec<HardwareEvent>,
    /// Who has counters or perf events.
    pub holders: Holders,
    /// Kernel settings.
    pub settings: Settings,
    /// Who asks, and what the kernel lets this user do.
    pub user: User,
    /// What works, one entry for each use, each tried.
    pub verdicts: Vec<Verdict>,
}

/// The CPUs.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// The maker's name.
    pub model: Option<String>,
    /// Vendor and numbers, as event tables go by them.
    pub id: Option<String>,
    /// CPUs on line, as a list.
    pub online: String,
    /// How many.
    pub cpus: usize,
    /// Sockets.
    pub sockets: usize,
    /// Dies.
    pub dies: usize,
    /// Cores.
    pub cores: usize,
    /// NUMA nodes that have CPUs.
    pub nodes: usize,
    /// Whether cores run several hardware threads.
    pub smt: bool,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// Whose, if known.
    pub hypervisor: Option<String>,
}

/// Tables of the makers' events and metrics.
#[derive(Debug, Clone, Serialize)]
pub struct EventTables {
    /// The id by which tables know the CPU: `GenuineIntel-6-55-7`; `None` where the machine does not say.
    pub cpu: Option<String>,
    /// One for each kind of core, then the uncore's; empty where there is none for this CPU.
    pub tables: Vec<EventTable>,
}

/// A table of a maker's events and metrics.
#[derive(Debug, Clone, Serialize)]
pub struct EventTable {
    /// The model that it is of: `skylakex`.
    pub model: String,
    /// The PMU of the cores; empty for the uncore.
    pub pmu: String,
    /// Whether this machine has a PMU that counts them.
    pub here: bool,
    /// How many events it has.
    pub events: usize,
    /// How many metrics it has.
    pub metrics: usize,
    /// Whether the events were imported by the user (`pmc list --import`); else they are in this program.
    pub imported_events: bool,
    /// Whether the metrics were.
    pub imported_metrics: bool,
}

/// A PMU of `/sys/bus/event_source/devices`.
#[derive(Debug, Clone, Serialize)]
pub struct Pmu {
    /// Its name.
    pub name: String,
    /// `attr.type` of its events.
    #[serde(rename = "type")]
    pub kind: u32,
    /// Its named events.
    pub events: Vec<String>,
    /// Its terms with the bits they stand for.
    pub formats: BTreeMap<String, String>,
    /// The CPUs that have it (core PMUs of hybrid and Arm machines).
    pub cpus: Option<String>,
    /// The CPUs it is opened on (package and device PMUs).
    pub cpumask: Option<String>,
    /// What its `caps` folder says.
    pub capabilities: BTreeMap<String, String>,
}

/// The counters of one kind of core.
#[derive(Debug, Clone, Serialize)]
pub struct Counters {
    /// The PMU.
    pub pmu: String,
    /// The CPUs that have it; `None`: all.
    pub cpus: Option<String>,
    /// Counters that take any event.
    pub general: Option<u32>,
    /// Bits of those.
    pub general_width: Option<u32>,
    /// Counters wired to one event.
    pub fixed: Option<u32>,
    /// Bits of those.
    pub fixed_width: Option<u32>,
    /// General counters that the kernel could give just now.
    pub free: Option<u32>,
    /// How the numbers were found: `cpuid`, `probe`, both joined by `+`, or `none`.
    pub found_by: String,
    /// The same in a sentence, with a contradiction if there is one.
    pub how: String,
}

/// A generic hardware event.
#[derive(Debug, Clone, Serialize)]
pub struct HardwareEvent {
    /// Its name.
    pub event: &'static str,
    /// `running`, `shared`, `waiting` (busy), `idle`, or `refused`.
    pub state: &'static str,
    /// With `shared`: the part of the time it had a counter, 0 to 1.
    pub share: Option<f64>,
    /// With `refused`: why.
    pub reason: Option<Why>,
}

/// Who has counters or perf events.
#[derive(Debug, Clone, Serialize)]
pub struct Holders {
    /// The NMI watchdog has one on each CPU.
    pub nmi_watchdog: Option<bool>,
    /// The reservation of PCP's `perfalloc`.
    pub reservation: Reservation,
    /// Processes with open perf events, most first.
    pub processes: Vec<Process>,
    /// Processes that this user may not look into.
    pub hidden: u32,
    /// The search was cut short.
    pub truncated: bool,
}

/// How the reservation of the hardware counters stands: see `pmc reserve`.
#[derive(Debug, Clone, Serialize)]
pub struct Reservation {
    /// The lock file.
    pub lock_file: String,
    /// Whether it exists: where it does not, nobody takes part.
    pub exists: bool,
    /// Who has reserved, in words.
    pub holders: Vec<String>,
    /// Agents (`pmdaperfevent`) that step aside for a holder: process ids.
    pub agents: Vec<u32>,
    /// Agents that do not watch the lock file, and step aside for nobody: process ids.
    pub deaf_agents: Vec<u32>,
    /// Why the holders cannot be told, if they cannot.
    pub unknown: Option<String>,
}

/// A process with open perf events.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its user.
    pub uid: Option<u32>,
    /// Open perf events.
    pub events: u32,
}

/// Kernel settings by their names below `/proc/sys/kernel`; `null` where this kernel has none.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct Settings {
    pub perf_event_paranoid: Option<i32>,
    pub perf_event_mlock_kb: Option<u64>,
    pub perf_event_max_sample_rate: Option<u64>,
    pub perf_cpu_time_max_percent: Option<u32>,
    pub perf_event_max_stack: Option<u32>,
    pub perf_event_max_contexts_per_stack: Option<u32>,
    pub nmi_watchdog: Option<bool>,
    pub kptr_restrict: Option<u32>,
    pub ptrace_scope: Option<u32>,
    pub unprivileged_bpf_disabled: Option<u32>,
    /// `rdpmc` (x86) or `perf_user_access` (arm64).
    pub user_access: Option<u32>,
}

/// Who asks.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    /// Effective user id.
    pub uid: u32,
    /// Capabilities in effect that perf asks about.
    pub capabilities: Vec<&'static str>,
    /// In a user namespace, where capabilities do not count for perf.
    pub user_namespace: bool,
    /// `off`, `strict`, `filter`.
    pub seccomp: &'static str,
    /// Bytes of memory this user may lock (`RLIMIT_MEMLOCK`); `null`: unlimited.
    pub locked_memory: Option<u64>,
    /// KiB of ring memory on all CPUs together that need no `RLIMIT_MEMLOCK`; `null`: unlimited, or no such
    /// setting.
    pub ring_kb: Option<u64>,
    /// Open files, soft and hard; `null`: unlimited.
    pub open_files: [Option<u64>; 2],
    /// `/proc/kallsyms` shows this user real addresses, so that kernel functions get names.
    pub kernel_symbols: bool,
    /// What the paranoid level leaves to this user.
    pub allowed: Allowed,
}

/// What the paranoid level leaves to this user.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Allowed {
    /// Own processes in user mode.
    pub user: bool,
    /// Own processes in the kernel.
    pub kernel: bool,
    /// Everything on a CPU.
    pub cpu_wide: bool,
    /// The data of tracepoints.
    pub raw_tracepoint: bool,
}

/// Whether one use of pmc works here.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// What one would type, such as `stat -a`.
    pub command: &'static str,
    /// What it is good for, in a few words.
    pub purpose: &'static str,
    /// `works`, `limited`, `not`.
    pub state: &'static str,
    /// What is missing and why.
    pub reasons: Vec<Why>,
}

/// Why something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// What is missing: `hardware events`, `the kernel's part`; empty where it is all of it.
    pub missing: &'static str,
    /// The kernel's errno, if it gave one.
    pub errno: Option<&'static str>,
    /// Why, one clause.
    pub cause: String,
    /// What to try, one clause; empty where nothing helps.
    pub remedy: String,
}
