//! The machine from a profiler's point of view, ready to print: available counters, programs that use them,
//! and the user's permissions.
//!
//! A command fills in the fields, without control characters; `view` only reads them. The fields have the
//! same names as in the JSON document.

use std::collections::BTreeMap;

use serde::Serialize;

/// Version of the JSON document that `pmc info` prints.
pub const VERSION: u32 = 1;

/// The information that `pmc info` prints.
///
/// The JSON document is versioned. New fields may be added without a new [`VERSION`], but a field that
/// changes its meaning requires one.
#[derive(Debug, Clone, Serialize)]
pub struct MachineReport {
    /// [`VERSION`].
    pub version: u32,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// Architecture: `x86_64` or `aarch64`.
    pub architecture: &'static str,
    /// The CPUs.
    pub cpu: CpuReport,
    /// Vendor events and metrics that pmc knows for these CPUs.
    pub event_tables: EventTables,
    /// The PMUs, by name.
    pub pmus: Vec<PmuReport>,
    /// Hardware counters, one entry per kind of core; empty if the kernel has no core PMU.
    pub counters: Vec<CoreCounterReport>,
    /// The generic hardware events, each with the result of its test.
    pub hardware_events: Vec<HardwareEvent>,
    /// Programs that hold counters or perf events.
    pub holders: HolderReport,
    /// Kernel settings.
    pub settings: KernelSettings,
    /// The current user and the user's permissions.
    pub user: UserReport,
    /// pmc's use cases, each with the result of a test on this machine.
    pub verdicts: Vec<UseCaseReport>,
}

/// The CPUs.
#[derive(Debug, Clone, Serialize)]
pub struct CpuReport {
    /// The vendor's model name.
    pub model: Option<String>,
    /// Vendor and model numbers, as used in event tables.
    pub id: Option<String>,
    /// List of online CPUs.
    pub online: String,
    /// Number of online CPUs.
    pub cpus: usize,
    /// Number of sockets.
    pub sockets: usize,
    /// Number of dies.
    pub dies: usize,
    /// Number of cores.
    pub cores: usize,
    /// Number of NUMA nodes with CPUs.
    pub nodes: usize,
    /// Whether cores run several hardware threads.
    pub smt: bool,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// The hypervisor's name, if known.
    pub hypervisor: Option<String>,
}

/// The vendors' tables of events and metrics.
#[derive(Debug, Clone, Serialize)]
pub struct EventTables {
    /// The CPU's identifier in the tables, such as `GenuineIntel-6-55-7`; `None` if the machine does not
    /// report an identifier.
    pub cpu: Option<String>,
    /// One table per kind of core, then the uncore table; empty if there are no tables for this CPU.
    pub tables: Vec<EventTable>,
}

/// A table of a vendor's events and metrics.
#[derive(Debug, Clone, Serialize)]
pub struct EventTable {
    /// The CPU model that the table describes, such as `skylakex`.
    pub model: String,
    /// The PMU of the cores that the table describes; empty for the uncore.
    pub pmu: String,
    /// Whether this machine has the PMU that counts the table's events.
    pub here: bool,
    /// Number of events.
    pub events: usize,
    /// Number of metrics.
    pub metrics: usize,
    /// Whether the user imported the events (`pmc list --import`). Otherwise they are built into pmc.
    pub imported_events: bool,
    /// Whether the user imported the metrics.
    pub imported_metrics: bool,
}

/// A PMU in `/sys/bus/event_source/devices`.
#[derive(Debug, Clone, Serialize)]
pub struct PmuReport {
    /// The PMU's name.
    pub name: String,
    /// `attr.type` of its events.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The PMU's named events.
    pub events: Vec<String>,
    /// The PMU's terms, with their bits.
    pub formats: BTreeMap<String, String>,
    /// CPUs that have this PMU (core PMUs of hybrid and Arm machines).
    pub cpus: Option<String>,
    /// CPUs on which the PMU is opened (package and device PMUs).
    pub cpumask: Option<String>,
    /// Contents of the PMU's `caps` folder.
    pub capabilities: BTreeMap<String, String>,
}

/// The counters of one kind of core.
#[derive(Debug, Clone, Serialize)]
pub struct CoreCounterReport {
    /// The PMU.
    pub pmu: String,
    /// CPUs with these counters; `None` means all.
    pub cpus: Option<String>,
    /// Number of counters that can count any event.
    pub general: Option<u32>,
    /// Width of the general counters in bits.
    pub general_width: Option<u32>,
    /// Number of counters that are each dedicated to one event.
    pub fixed: Option<u32>,
    /// Width of the fixed counters in bits.
    pub fixed_width: Option<u32>,
    /// Number of general counters that are currently free.
    pub free: Option<u32>,
    /// How pmc determined these numbers: `cpuid`, `probe`, `cpuid+probe`, or `none`.
    pub found_by: String,
    /// How pmc determined these numbers, as a sentence that also reports contradictions between the sources.
    pub how: String,
}

/// A generic hardware event.
#[derive(Debug, Clone, Serialize)]
pub struct HardwareEvent {
    /// The event's name.
    pub event: &'static str,
    /// State of the event: `running`, `shared`, `waiting` (busy), `idle`, or `refused`.
    pub state: &'static str,
    /// For `shared`: the fraction of the time on a counter, 0 to 1.
    pub share: Option<f64>,
    /// For `refused`: the reason.
    pub reason: Option<MissingReason>,
}

/// Programs that hold counters or perf events.
#[derive(Debug, Clone, Serialize)]
pub struct HolderReport {
    /// Whether the NMI watchdog uses a counter on each CPU.
    pub nmi_watchdog: Option<bool>,
    /// The reservation by PCP's `perfalloc`.
    pub reservation: ReservationReport,
    /// Processes with open perf events; those with the most events come first.
    pub processes: Vec<HolderProcess>,
    /// Number of processes that the current user may not inspect.
    pub hidden: u32,
    /// Whether the search was cut short.
    pub truncated: bool,
}

/// State of the reservation of hardware counters; see `pmc reserve`.
#[derive(Debug, Clone, Serialize)]
pub struct ReservationReport {
    /// The lock file.
    pub lock_file: String,
    /// Whether the lock file exists. Without it, no program takes part in reservations.
    pub exists: bool,
    /// Descriptions of the programs that hold the reservation.
    pub holders: Vec<String>,
    /// Process ids of agents (`pmdaperfevent`) that release their counters while another program holds the
    /// reservation.
    pub agents: Vec<u32>,
    /// Process ids of agents that do not watch the lock file and never release their counters.
    pub deaf_agents: Vec<u32>,
    /// Why the holders are unknown, if they are.
    pub unknown: Option<String>,
}

/// A process with open perf events.
#[derive(Debug, Clone, Serialize)]
pub struct HolderProcess {
    /// Process id.
    pub pid: u32,
    /// The process's name.
    pub comm: String,
    /// The process's user.
    pub uid: Option<u32>,
    /// Number of open perf events.
    pub events: u32,
}

/// Kernel settings, named as in `/proc/sys/kernel`; `null` if the kernel does not have the setting.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct KernelSettings {
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

/// The current user.
#[derive(Debug, Clone, Serialize)]
pub struct UserReport {
    /// Effective user id.
    pub uid: u32,
    /// Effective capabilities that matter for perf events.
    pub capabilities: Vec<&'static str>,
    /// Whether the user is in a user namespace. Capabilities in a user namespace do not apply to perf events.
    pub user_namespace: bool,
    /// Seccomp mode: `off`, `strict` or `filter`.
    pub seccomp: &'static str,
    /// Maximum locked memory in bytes (`RLIMIT_MEMLOCK`); `null` means unlimited.
    pub locked_memory: Option<u64>,
    /// KiB of ring buffers, summed over all CPUs, that do not count against `RLIMIT_MEMLOCK`; `null` means
    /// unlimited, or that the setting is missing.
    pub ring_kb: Option<u64>,
    /// Limits on open files, soft and hard; `null` means unlimited.
    pub open_files: [Option<u64>; 2],
    /// Whether `/proc/kallsyms` shows real addresses to this user. pmc needs them to name kernel functions.
    pub kernel_symbols: bool,
    /// What the current `perf_event_paranoid` level permits.
    pub allowed: AllowedUses,
}

/// What the current `perf_event_paranoid` level permits.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AllowedUses {
    /// Measuring the user's own processes in user mode.
    pub user: bool,
    /// Measuring the user's own processes in the kernel.
    pub kernel: bool,
    /// Measuring everything on a CPU.
    pub cpu_wide: bool,
    /// Reading the data of tracepoints.
    pub raw_tracepoint: bool,
}

/// A use case of pmc, and whether it works on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct UseCaseReport {
    /// The command that the user types, such as `stat -a`.
    pub command: &'static str,
    /// Purpose of the command, in a few words.
    pub purpose: &'static str,
    /// State: `works`, `limited` or `not`.
    pub state: &'static str,
    /// What is missing, and why.
    pub reasons: Vec<MissingReason>,
}

/// The reason why something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingReason {
    /// The missing part, such as `hardware events` or `the kernel's part`; empty if everything is missing.
    pub missing: &'static str,
    /// The kernel's errno, if there is one.
    pub errno: Option<&'static str>,
    /// The cause: one clause.
    pub cause: String,
    /// Suggested remedy: one clause; empty if there is no remedy.
    pub remedy: String,
}
