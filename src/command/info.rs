//! `pmc info`: examines the machine, its kernel and the user's permissions, and prints the results.
//!
//! Collects the findings of `host`, `sys` and `counter` in a [`MachineReport`]. The view formats and rates
//! them.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cli::info::InfoArgs;
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::profile::machine::{self as shown, MachineReport};
use pmc_command::pager::PagedOutput;
use pmc_command::reasons::{cleaned, no_tracepoint, why};
use pmc_events::counter::capability::{self, Capability, ThisKernel, UseCase, UseCaseStatus};
use pmc_events::counter::core_counters::{self, CoreUnit, CounterState};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::refusal;
use pmc_events::counter::reservation::{self, LockFile};
use pmc_events::event::listing;
use pmc_events::event::vendor::Vendor;
use pmc_formats::import;
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::{Attr, generic};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::host::cpu::{Processor, Topology};
use pmc_sys::host::holders::PerfEventProcesses;
use pmc_sys::sys::credentials::{Limits, LinuxCapability, Seccomp};
use pmc_sys::sys::process;
use pmc_text::text::as_json;

/// What to describe.
pub(super) enum InfoRequest {
    /// The machine, or only its counters.
    Machine { only_counters: bool, json: bool },
    /// A recording, or only its header, with at most `limit` events, IDs per event and build-ids; 0 is all.
    Recording { file: PathBuf, only_header: bool, limit: usize, json: bool },
}

impl InfoArgs {
    /// Converts the options.
    pub(super) fn request(&self) -> InfoRequest {
        match self.recording.typed() {
            None => InfoRequest::Machine { only_counters: self.counters, json: self.json },
            Some(file) => InfoRequest::Recording {
                file: file.clone(),
                only_header: self.header,
                limit: self.limit,
                json: self.json,
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or a write fails. A missing feature of the machine is a result, not
/// an error.
pub(super) fn run(request: &InfoRequest) -> Result<Exit> {
    match request {
        InfoRequest::Machine { only_counters, json } => this_machine(*only_counters, *json),
        InfoRequest::Recording { file, only_header, limit, json } => {
            recording(file, *only_header, *limit, *json)
        }
    }
}

fn this_machine(only_counters: bool, json: bool) -> Result<Exit> {
    let mut kernel = ThisKernel::default();
    let machine = machine(&Host::live(), &mut kernel);
    let mut out = PagedOutput::open();
    let written = if json && only_counters {
        let MachineReport { counters, hardware_events, holders, .. } = &machine;
        let document = serde_json::json!({
            "version": 1, "counters": counters, "hardware_events": hardware_events, "holders": holders,
        });
        writeln!(out, "{:#}", as_json(&document))
    } else if only_counters {
        pmc_view::info::write_counters(&mut out, &machine)
    } else if json {
        writeln!(out, "{:#}", as_json(&machine))
    } else {
        pmc_view::info::write(&mut out, &machine)
    };
    written.and_then(|()| out.finish()).map_err(|error| Error::output("the machine's description", error))?;
    if kernel.is_slow_to_close() {
        process::exit_while_child_closes();
    }
    Ok(Exit::Done)
}

fn recording(file: &Path, only_header: bool, limit: usize, json: bool) -> Result<Exit> {
    let reader = import::open(file)?;
    let mut recording = pmc_analysis::analysis::header::read(&reader);
    let mut scanned = None;
    if !only_header {
        let index = reader.scan(|_| {})?;
        let name = |kind| {
            pmc_perfdata::record::kind::name(kind).map_or_else(|| format!("number {kind}"), str::to_owned)
        };
        recording.records = index.counts().map(|(kind, count)| (name(kind), count)).collect();
        // The text gets damage as a warning, as in other commands.
        let shown = index.notes.iter().filter(|note| json || !note.is_damage());
        recording.notes = shown.map(ToString::to_string).collect();
        scanned = Some(index);
    }
    if limit > 0 {
        recording.cut(limit);
    }
    let mut out = PagedOutput::open();
    let written = match (json, only_header) {
        (true, _) => writeln!(out, "{:#}", as_json(&recording)),
        (_, true) => pmc_view::header::write(&mut out, &recording),
        _ => pmc_view::header::everything(&mut out, &recording),
    };
    written
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the recording's description", error))?;
    match scanned {
        Some(index) => Ok(recording_quality::warn_of_notes(&index.notes)),
        None => recording_quality::warn_of_header(&reader),
    }
}

/// Examines the machine.
pub(super) fn machine_report() -> MachineReport {
    machine(&Host::live(), &mut ThisKernel::default())
}

fn machine(host: &Host, kernel: &mut ThisKernel) -> MachineReport {
    let mut facts = MachineFacts::own(host);
    let reservation = reservation(host);
    if !reservation.holders.is_empty() {
        facts.reservation = Some(format!("{} reserved the counters", reservation.holders.join(", ")));
    }
    let limits = Limits::own();
    let tracepoint = host.tracepoint_id("sched", "sched_switch").map_err(no_tracepoint);
    let capabilities = capability::capabilities(kernel, &facts, &tracepoint);
    MachineReport {
        version: shown::VERSION,
        kernel: host.text("/proc/sys/kernel/osrelease").map(cleaned),
        architecture: std::env::consts::ARCH,
        cpu: cpu(host, &facts),
        event_tables: event_tables(host),
        pmus: host.pmu_names().iter().filter_map(|name| host.pmu(name)).map(|pmu| self::pmu(&pmu)).collect(),
        counters: core_counters::core_units(&facts).iter().map(counters).collect(),
        hardware_events: hardware_events(&facts),
        holders: holders(host, &facts, reservation),
        user: user(host, &facts, limits),
        settings: settings(&facts),
        verdicts: capabilities.into_iter().map(self::capability).collect(),
    }
}

fn cpu(host: &Host, facts: &MachineFacts) -> shown::CpuReport {
    let (topology, processor) = (Topology::read(host), Processor::read(host));
    shown::CpuReport {
        model: processor.model.map(cleaned),
        id: processor.id.map(cleaned),
        online: facts.online.to_string(),
        cpus: facts.online.len(),
        sockets: topology.sockets(),
        dies: topology.dies(),
        cores: topology.cores(),
        nodes: topology.nodes(),
        smt: topology.smt(),
        virtual_machine: facts.virtual_machine,
        hypervisor: facts.hypervisor.clone().map(cleaned),
    }
}

fn event_tables(host: &Host) -> shown::EventTables {
    let vendor = Vendor::find(host);
    let here = listing::pmu_names(host);
    let is_here = |pmu: &str| match pmu {
        "" => {
            let is_core = |pmu| vendor.models().iter().any(|model| model.pmu == pmu);
            // The kernel may name Intel's uncore PMUs by number only.
            here.iter().any(|name| name.starts_with("uncore_"))
                || vendor.events().any(|event| !is_core(event.pmu) && here.contains(event.pmu))
        }
        core => here.contains(core),
    };
    let tables = vendor.models().iter().flat_map(|model| {
        let count = model.count();
        let table = |pmu: &str, events, metrics| shown::EventTable {
            model: cleaned(&model.name),
            pmu: cleaned(pmu),
            here: is_here(pmu),
            events,
            metrics,
            imported_events: model.imported_events(),
            imported_metrics: model.imported_metrics(),
        };
        match model.pmu.as_str() {
            "" => vec![table("", count.uncore, count.metrics)],
            core if count.uncore == 0 => vec![table(core, count.cores, count.metrics)],
            core => vec![table(core, count.cores, count.metrics), table("", count.uncore, 0)],
        }
    });
    shown::EventTables { cpu: vendor.id().map(cleaned), tables: tables.collect() }
}

fn pmu(pmu: &pmc_sys::host::pmu::Pmu) -> shown::PmuReport {
    let named = |names: Vec<String>, value: &dyn Fn(&str) -> Option<String>| {
        names.into_iter().filter_map(|name| Some((cleaned(&name), cleaned(value(&name)?)))).collect()
    };
    shown::PmuReport {
        name: cleaned(&pmu.name),
        kind: pmu.kind,
        events: pmu.events().into_iter().map(cleaned).collect(),
        formats: named(pmu.terms(), &|term| pmu.format_text(term)),
        cpus: pmu.core_cpus().map(|cpus| cpus.to_string()),
        cpumask: pmu.cpumask().map(|cpus| cpus.to_string()),
        capabilities: named(pmu.capabilities(), &|name| pmu.capability(name)),
    }
}

/// Describes in one line the number of counters according to each of the two sources. The kernel's number
/// takes precedence.
fn counters(unit: &CoreUnit) -> shown::CoreCounterReport {
    let (claimed, probed) = (unit.claimed, unit.probed);
    let mut how = Vec::new();
    if let Some(claimed) = claimed {
        how.push(format!("{}: {} general, {} fixed", claimed.source, claimed.general, claimed.fixed));
    }
    match probed {
        Some(probed) => how.push(format!(
            "probed: the kernel accepted a group with {} × {}, plus {} on fixed counters",
            probed.general, probed.event, probed.fixed
        )),
        None => how.push("the kernel rejected every generic event that pmc tried".to_owned()),
    }
    let found_by = match (claimed.is_some(), probed.is_some()) {
        (true, true) => "cpuid+probe",
        (true, false) => "cpuid",
        (false, true) => "probe",
        (false, false) => "none",
    };
    let widest = unit.width.map(u32::from);
    shown::CoreCounterReport {
        pmu: cleaned(&unit.pmu),
        cpus: unit.cpus.as_ref().map(ToString::to_string),
        general: probed.map(|p| p.general).or(claimed.map(|c| c.general)),
        general_width: widest.or(claimed.and_then(|c| c.general_width)),
        fixed: claimed.filter(|c| c.fixed > 0).map(|c| c.fixed).or(probed.map(|p| p.fixed)),
        fixed_width: claimed.and_then(|c| c.fixed_width),
        free: probed.and_then(|p| p.free),
        found_by: found_by.to_owned(),
        how: how.join("; "),
    }
}

fn hardware_events(facts: &MachineFacts) -> Vec<shown::HardwareEvent> {
    let hardware = generic::GENERIC.iter().filter(|event| event.kind == kind::HARDWARE);
    let tried = hardware.map(|event| {
        let (state, share, reason) = match core_counters::trial(event.config) {
            Ok(CounterState::Running) => ("running", None, None),
            Ok(CounterState::Shared(share)) => ("shared", Some(share), None),
            Ok(CounterState::Waiting) => {
                let busy = refusal::never_ran(&Attr::new(event.kind, event.config), facts);
                ("waiting", None, Some(why("", busy)))
            }
            Ok(CounterState::Idle) => ("idle", None, None),
            Err(refusal) => ("refused", None, Some(why("", refusal.explain(facts)))),
        };
        let event = generic::name_of(event.kind, event.config).unwrap_or_default();
        shown::HardwareEvent { event, state, share, reason }
    });
    tried.collect()
}

fn holders(host: &Host, facts: &MachineFacts, reservation: shown::ReservationReport) -> shown::HolderReport {
    let found = PerfEventProcesses::find(host, std::process::id());
    let process = |holder: pmc_sys::host::holders::PerfEventProcess| shown::HolderProcess {
        pid: holder.pid,
        comm: cleaned(holder.comm),
        uid: holder.uid,
        events: holder.events,
    };
    shown::HolderReport {
        nmi_watchdog: facts.settings.nmi_watchdog,
        reservation,
        processes: found.processes.into_iter().map(process).collect(),
        hidden: found.hidden,
        truncated: found.truncated,
    }
}

fn reservation(host: &Host) -> shown::ReservationReport {
    let status = reservation::status(&LockFile::default_path(host));
    let (holders, unknown) = match status.holders {
        Ok(holders) => (holders.iter().map(|holder| cleaned(holder.to_string())).collect(), None),
        Err(error) => (Vec::new(), Some(cleaned(error.to_string()))),
    };
    let agents = |watch: bool| {
        let chosen = status.agents.iter().filter(move |agent| (agent.watches != Some(false)) == watch);
        chosen.map(|agent| agent.pid).collect()
    };
    shown::ReservationReport {
        lock_file: cleaned(status.path.to_string_lossy()),
        exists: status.exists,
        holders,
        agents: agents(true),
        deaf_agents: agents(false),
        unknown,
    }
}

fn settings(facts: &MachineFacts) -> shown::KernelSettings {
    let settings = &facts.settings;
    shown::KernelSettings {
        perf_event_paranoid: settings.paranoid,
        perf_event_mlock_kb: settings.mlock_kb,
        perf_event_max_sample_rate: settings.max_sample_rate,
        perf_cpu_time_max_percent: settings.cpu_time_max_percent,
        perf_event_max_stack: settings.max_stack,
        perf_event_max_contexts_per_stack: settings.max_contexts_per_stack,
        nmi_watchdog: settings.nmi_watchdog,
        kptr_restrict: settings.kptr_restrict,
        ptrace_scope: settings.ptrace_scope,
        unprivileged_bpf_disabled: settings.unprivileged_bpf_disabled,
        user_access: settings.user_access,
    }
}

fn user(host: &Host, facts: &MachineFacts, limits: Limits) -> shown::UserReport {
    let who = &facts.credentials;
    let allowed = facts.settings.allowance(who.perfmon());
    // The limit is per CPU. It does not apply to users with permission to lock any amount of memory.
    let ring_kb = facts.settings.mlock_kb.filter(|_| !who.ipc_lock());
    shown::UserReport {
        uid: who.uid,
        capabilities: LinuxCapability::ALL
            .iter()
            .filter(|&&one| who.has(one))
            .map(|one| one.name())
            .collect(),
        user_namespace: who.user_namespace,
        seccomp: match who.seccomp {
            Seccomp::Off => "off",
            Seccomp::Strict => "strict",
            Seccomp::Filter => "filter",
        },
        locked_memory: limits.locked_memory,
        ring_kb: ring_kb.map(|kb| kb.saturating_mul(facts.online.len() as u64)),
        open_files: [limits.open_files, limits.open_files_most],
        kernel_symbols: host.kernel_symbols(),
        allowed: shown::AllowedUses {
            user: allowed.user,
            kernel: allowed.kernel,
            cpu_wide: allowed.cpu_wide,
            raw_tracepoint: allowed.raw_tracepoint,
        },
    }
}

fn capability(capability: Capability) -> shown::UseCaseReport {
    shown::UseCaseReport {
        command: match capability.use_case {
            UseCase::CountCommand => "stat",
            UseCase::CountProcess => "stat -p",
            UseCase::CountCpus => "stat -a",
            UseCase::CountTracepoints => "stat -e sched:*",
            UseCase::SampleCommand => "record",
            UseCase::SampleCpus => "record -a",
            UseCase::CopyStacks => "record --call-graph dwarf",
            UseCase::SampleBranches => "record -b",
            UseCase::WatchCpus => "top",
            _ => "",
        },
        purpose: capability.purpose,
        state: match capability.status {
            UseCaseStatus::Works => "works",
            UseCaseStatus::Limited => "limited",
            UseCaseStatus::Not => "not",
        },
        reasons: capability.missing.into_iter().map(|(missing, reason)| why(missing, reason)).collect(),
    }
}
