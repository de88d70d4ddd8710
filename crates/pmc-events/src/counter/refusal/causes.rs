//! The causes of refusals. There is one function for each errno, which checks the facts in order of
//! importance.
//!
//! Source of the errnos: `kernel/events/core.c`, `arch/x86/events/core.c`, `drivers/perf/arm_pmu.c`,
//! `perf_event_open(2)`.

use super::RefusalKind::*;
use super::missing_feature::OmittableFeature;
use super::missing_feature::contradiction;
use super::privilege::{access, perm};
use super::{FailedCall, Refusal, RefusalText, explained};
use crate::counter::facts::{KnownPmu, MachineFacts};
use crate::hint::Hint;
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::sys::credentials::Seccomp;
use pmc_sys::sys::errno;

/// Returns the explanation for this errno.
pub(super) fn explain(number: i32, refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    // If the CPU does not exist, that is the cause, regardless of the kernel's errno.
    if refusal.call == FailedCall::Open
        && let Some(explained) = refusal.slot.cpu.and_then(|cpu| missing_cpu(cpu, facts))
    {
        return explained;
    }
    match number {
        errno::ENOENT => noent(refusal, facts),
        errno::EINVAL => inval(refusal, facts),
        errno::E2BIG => explained(
            BadRequest,
            format!(
                "this kernel does not support a requested field: the request is {} bytes long",
                refusal.attr.size()
            ),
            "omit config3, config4 and the terms that use them, or use a newer kernel",
        ),
        errno::EACCES => access(refusal, facts),
        errno::EPERM => perm(refusal, facts),
        errno::ESRCH => explained(
            NotFound,
            match refusal.slot.tid {
                Some(tid) => format!("thread {tid} does not exist or has ended"),
                None => "the process has ended".to_owned(),
            },
            "find the process with ps -eL",
        ),
        errno::EBADF => match (refusal.slot.cpu, refusal.group_before) {
            (Some(_), 0) => explained(
                BadRequest,
                "the directory is not a cgroup that supports perf events",
                "use a cgroup in the unified hierarchy under /sys/fs/cgroup, or in the perf_event controller's hierarchy",
            ),
            _ => explained(BadRequest, "the group leader is not a perf event", ""),
        },
        errno::EOPNOTSUPP => notsupp(refusal, facts),
        errno::EBUSY => match refusal.call {
            FailedCall::Map { .. } => explained(Busy, "another event uses this event's ring buffer", ""),
            _ => explained(
                Busy,
                format!("another program uses {} exclusively", pmu_words(&refusal.attr, facts)),
                Hint::StopOtherMeasurement,
            ),
        },
        errno::ENODEV => nodev(refusal, facts),
        errno::EMFILE => explained(
            OutOfDescriptors,
            match facts.open_files {
                Some(most) => format!(
                    "all {most} file descriptors of this process are in use, and each event needs one per CPU or thread"
                ),
                None => {
                    "all file descriptors of this process are in use, and each event needs one per CPU or thread"
                        .to_owned()
                }
            },
            "raise the limit (ulimit -n), or count fewer events, CPUs or threads",
        ),
        errno::ENFILE => {
            explained(OutOfDescriptors, "the system has no file descriptors left", "raise sysctl fs.file-max")
        }
        errno::ENOSPC => match refusal.attr.kind() {
            kind::BREAKPOINT => explained(
                Busy,
                "all breakpoint registers of the CPU are in use",
                "use fewer mem: events (x86 has four debug registers), or quit the debugger that uses the registers",
            ),
            _ => explained(
                Busy,
                "the PMU has no room left for this event",
                "count fewer events of this PMU at the same time",
            ),
        },
        errno::EOVERFLOW => explained(
            BadRequest,
            match (refusal.attr.sample_max_stack(), facts.settings.max_stack) {
                (asked, Some(most)) if asked > 0 => {
                    format!("{asked} frames were requested, but kernel.perf_event_max_stack is {most}")
                }
                _ => "the requested call chain is deeper than kernel.perf_event_max_stack".to_owned(),
            },
            "request fewer frames, or raise kernel.perf_event_max_stack",
        ),
        errno::ENOSYS => nosys(refusal, facts),
        errno::ENOMEM => match refusal.call {
            FailedCall::Map { bytes } => explained(
                OutOfMemory,
                format!("the kernel cannot allocate {bytes} bytes for a ring buffer"),
                Hint::SmallerRingsAndAux,
            ),
            _ => explained(
                OutOfMemory,
                "the kernel has no memory left for another event",
                "count fewer events, CPUs or threads",
            ),
        },
        errno::EFAULT => match facts.pmu_of(&refusal.attr) {
            Some(pmu) if is_probe(pmu) && refusal.attr.config1_text().is_none() => no_probe_text(pmu),
            _ => explained(Other, "the kernel could not read the request's memory: this is a bug in pmc", ""),
        },
        errno::EINTR | errno::EAGAIN => {
            explained(Busy, "the kernel was interrupted while setting up the event", "try again")
        }
        errno::ENXIO => explained(NoHardware, "the event's device is absent or disabled", ""),
        _ => explained(
            Other,
            "the reason is unknown: the kernel reports none, and pmc found no cause on this machine",
            "",
        ),
    }
}

fn is_probe(pmu: &KnownPmu) -> bool {
    matches!(pmu.name.as_str(), "uprobe" | "kprobe")
}

/// Explains events such as `uprobe/config1=1/`: the kernel reads a name from the address in config1.
fn no_probe_text(pmu: &KnownPmu) -> RefusalText {
    let what = if pmu.name == "uprobe" { "file" } else { "function" };
    explained(
        BadRequest,
        format!(
            "config1 of the PMU `{}` is the address of the {what}'s name in memory, not a number",
            pmu.name
        ),
        match pmu.name.as_str() {
            "uprobe" => "use uprobe:PATH:SYMBOL or uprobe:PATH:0xOFFSET",
            _ => "use kprobe:FUNCTION or kprobe:MODULE:FUNCTION",
        },
    )
}

/// Returns an explanation if this CPU is offline or does not exist.
fn missing_cpu(cpu: u32, facts: &MachineFacts) -> Option<RefusalText> {
    if facts.online.is_empty() || facts.online.contains(cpu) {
        return None;
    }
    let remedy = format!("choose from the online CPUs: {}", facts.online);
    let known = facts.possible.is_empty() || facts.possible.contains(cpu);
    let why = if known { "is offline" } else { "does not exist on this machine" };
    Some(explained(CpuOffline, format!("CPU {cpu} {why}"), remedy))
}

/// Explains ENOENT: no PMU handles this type, or the PMU does not support the event.
fn noent(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    let attr = &refusal.attr;
    let pmu = facts.pmu_of(attr);
    match (attr.kind(), pmu) {
        (kind::HARDWARE | kind::HW_CACHE | kind::RAW, None) => no_core_pmu(attr, facts),
        (kind::HARDWARE | kind::HW_CACHE | kind::RAW, Some(pmu)) => {
            if let Some(other) = wrong_core(pmu, refusal.slot.cpu, facts) {
                return other;
            }
            let what = if attr.kind() == kind::RAW {
                "event with this code"
            } else {
                "event with this generic name"
            };
            explained(
                NoHardware,
                format!("the PMU `{}` of this CPU has no {what}", pmu.name),
                Hint::ChooseEvent { kinds: "hw cache pmu" },
            )
        }
        (kind::SOFTWARE, _) => explained(
            NoHardware,
            format!("this kernel has no software event number {}", attr.config()),
            Hint::ChooseEvent { kinds: "sw" },
        ),
        (kind::TRACEPOINT, _) => {
            explained(NoHardware, "this kernel has no such tracepoint", Hint::ChooseTracepoint)
        }
        (kind::BREAKPOINT, _) => explained(NoHardware, "this kernel or CPU has no hardware breakpoints", ""),
        (_, Some(pmu)) => {
            if let Some(other) = wrong_core(pmu, refusal.slot.cpu, facts) {
                return other;
            }
            match attr.config1_text() {
                Some(path) if pmu.name == "uprobe" => explained(
                    BadRequest,
                    format!("{} does not exist", path.to_string_lossy()),
                    "specify the full path of the program or library",
                ),
                Some(function) => explained(
                    BadRequest,
                    format!("the kernel has no function {}", function.to_string_lossy()),
                    "look for it in /proc/kallsyms",
                ),
                None => explained(
                    NoHardware,
                    format!("the PMU `{}` has no event with config {:#x}", pmu.name, attr.config()),
                    Hint::ChooseEventOf { pmu: pmu.name.clone() },
                ),
            }
        }
        (number, None) => explained(
            NoHardware,
            format!(
                "no PMU of type {number} is registered: its driver is not loaded, or this machine lacks it"
            ),
            Hint::ShowPmus,
        ),
    }
}

/// Explains a missing core PMU. This is common in virtual machines; on other machines, the interrupt or the
/// driver is missing.
fn no_core_pmu(attr: &Attr, facts: &MachineFacts) -> RefusalText {
    const SOFTWARE: &str = "count software events such as task-clock and page-faults";
    if let Some(named) =
        Some((attr.config() >> 32) as u32).filter(|&named| named != 0 && attr.kind() != kind::RAW)
    {
        return explained(
            NoHardware,
            format!("the request uses PMU type {named}, which is not registered"),
            Hint::ShowPmus,
        );
    }
    match (facts.virtual_machine, &facts.hypervisor) {
        (true, Some(name)) => explained(
            NoHardware,
            format!("this virtual machine has no hardware counters (hypervisor: {name})"),
            format!("enable the virtual PMU in the hypervisor, or {SOFTWARE}"),
        ),
        (true, None) => explained(
            NoHardware,
            "this virtual machine has no hardware counters",
            format!("enable the virtual PMU in the hypervisor, or {SOFTWARE}"),
        ),
        (false, _) => explained(
            NoHardware,
            "the kernel has not registered a PMU for this machine's cores",
            format!("look for `Performance Events` or `PMU` in dmesg, or {SOFTWARE}"),
        ),
    }
}

/// Returns an explanation if this CPU is not one of the PMU's cores.
fn wrong_core(pmu: &KnownPmu, cpu: Option<u32>, facts: &MachineFacts) -> Option<RefusalText> {
    let (cpu, cpus) = (cpu?, pmu.cpus.as_ref()?);
    if cpus.contains(cpu) {
        return None;
    }
    let own = facts.core_pmus().find(|other| other.cpus.as_ref().is_some_and(|cpus| cpus.contains(cpu)));
    let owner = own.map(|other| format!(" (it belongs to `{}`)", other.name)).unwrap_or_default();
    Some(explained(
        NoHardware,
        format!("CPU {cpu} is not a core of the PMU `{}`{owner}", pmu.name),
        format!("count on CPUs {cpus}, or specify the other PMU"),
    ))
}

/// Explains EINVAL: part of the request is invalid.
fn inval(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    let attr = &refusal.attr;
    if let Some((cause, remedy)) = contradiction(attr) {
        return explained(BadRequest, cause, remedy);
    }
    if let Some(feature) = refusal.refused_feature {
        let late = matches!(
            feature,
            OmittableFeature::LateConfig | OmittableFeature::LateFlags | OmittableFeature::InheritThread
        );
        return explained(if late { BadRequest } else { NoCapability }, feature.cause(), feature.remedy());
    }
    let pmu = facts.pmu_of(attr);
    if let Some(pmu) = pmu.filter(|pmu| is_probe(pmu) && attr.config1_text().is_none()) {
        return no_probe_text(pmu);
    }
    if attr.get(Flag::Freq) {
        if let Some(most) = facts.settings.max_sample_rate.filter(|&most| attr.period() > most) {
            return explained(
                BadRequest,
                format!(
                    "{} samples per second were requested, but kernel.perf_event_max_sample_rate is {most}",
                    attr.period()
                ),
                Hint::LowerFrequency { most },
            );
        }
    } else if attr.period() >> 63 == 1 {
        return explained(BadRequest, "the period exceeds 2^63", "choose a smaller period");
    }
    if let (Some(pmu), Some(_)) = (pmu.filter(|pmu| pmu.cpumask.is_some()), refusal.slot.tid) {
        return explained(
            BadRequest,
            format!("the PMU `{}` counts for a whole package or device and cannot follow a task", pmu.name),
            Hint::WholeCpus,
        );
    }
    if refusal.group_before > 0 {
        if attr.get(Flag::Pinned) || attr.get(Flag::Exclusive) {
            return explained(
                BadRequest,
                "only the first event of a group can be pinned or exclusive",
                "put the modifiers D and e on the first event",
            );
        }
        return explained(
            NoHardware,
            format!(
                "the group does not fit on the PMU, which accepted {} events but not this one",
                refusal.group_before
            ),
            "split the group, or add :W to count its events individually if the group does not fit",
        );
    }
    match (attr.kind(), pmu) {
        (kind::TRACEPOINT, _) => explained(
            NoHardware,
            format!("this kernel has no tracepoint with id {}", attr.config()),
            Hint::ChooseTracepoint,
        ),
        // Addresses with the top bit set are kernel addresses on every architecture that pmc supports.
        (kind::BREAKPOINT, _) if attr.bp_type() & 4 != 0 && attr.config1() >> 63 == 1 => explained(
            BadRequest,
            "the kernel does not allow a breakpoint on its own code here: x86 requires CONFIG_KPROBES, \
             arm64 allows it on whole CPUs only, and some functions are excluded",
            Hint::WholeCpusOrProbe,
        ),
        (kind::BREAKPOINT, _) => explained(
            BadRequest,
            "the CPU cannot watch this address, length or access type",
            "use a length of 1, 2, 4 or 8, and an address that is a multiple of it; omit the length with :x",
        ),
        (_, Some(pmu)) if pmu.name == "kprobe" => explained(
            BadRequest,
            "the kernel does not allow a probe there: the function cannot be probed (kernel entry, tracing or exception code), or no instruction starts at this offset",
            "probe one of its callers; /sys/kernel/debug/kprobes/blacklist lists the functions that cannot be probed",
        ),
        (_, Some(pmu)) if attr.config1_text().is_some() => explained(
            BadRequest,
            format!(
                "the PMU `{}` cannot place a probe there: not a regular file, or no instruction starts at \
                 this offset",
                pmu.name
            ),
            "use the file offset of the function's first instruction",
        ),
        (kind::HARDWARE | kind::HW_CACHE, Some(pmu)) => explained(
            NoHardware,
            format!("the PMU `{}` of this CPU does not support this generic event", pmu.name),
            Hint::ChooseEvent { kinds: "hw cache" },
        ),
        (_, Some(pmu)) if !pmu.is_core() && OmittableFeature::Levels.left_out(attr).is_some() => explained(
            BadRequest,
            format!(
                "the PMU `{}` does not support config {:#x} for only some privilege levels",
                pmu.name,
                attr.config()
            ),
            "omit the modifiers u, k and h: few non-core PMUs support privilege levels",
        ),
        (_, Some(pmu)) => explained(
            BadRequest,
            format!("the PMU `{}` does not support config {:#x}", pmu.name, attr.config()),
            Hint::SeeEventsOf { pmu: pmu.name.clone() },
        ),
        (_, None) => explained(
            BadRequest,
            "the kernel rejects the request as invalid, without giving a reason",
            Hint::ShowRequest,
        ),
    }
}

/// Explains EOPNOTSUPP: the PMU lacks a feature.
fn notsupp(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    if let Some((cause, remedy)) = contradiction(&refusal.attr) {
        return explained(BadRequest, cause, remedy);
    }
    if let Some(feature) = refusal.refused_feature {
        return explained(NoCapability, feature.cause(), feature.remedy());
    }
    let (attr, pmu) = (&refusal.attr, pmu_words(&refusal.attr, facts));
    let uses = [
        (
            OmittableFeature::BranchStack,
            attr.branch_sample_type() != 0,
            format!("{pmu} does not record branch stacks"),
        ),
        (
            OmittableFeature::Precise,
            attr.precise_ip() > 0,
            format!("{pmu} does not support precise sampling at level {}", attr.precise_ip()),
        ),
        (
            OmittableFeature::Sampling,
            attr.period() != 0,
            format!("{pmu} has no interrupt: it can count but not sample"),
        ),
    ];
    if let Some((feature, _, cause)) = uses.into_iter().find(|(_, is_used, _)| *is_used) {
        return explained(NoCapability, cause, feature.remedy());
    }
    explained(NoCapability, format!("{pmu} lacks a feature that this request needs"), "")
}

/// Explains ENODEV: the CPU or the driver no longer exists.
fn nodev(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    match (refusal.slot.cpu, facts.pmu_of(&refusal.attr)) {
        (cpu, Some(pmu)) => wrong_core(pmu, cpu, facts).unwrap_or_else(|| {
            explained(
                NoHardware,
                format!("the PMU `{}` exists but is not responding: its device may be gone", pmu.name),
                "",
            )
        }),
        (Some(cpu), None) => {
            explained(CpuOffline, format!("CPU {cpu} went offline, or does not have this PMU"), "")
        }
        (None, None) => no_core_pmu(&refusal.attr, facts),
    }
}

/// Explains ENOSYS: the system call does not exist or is hidden.
fn nosys(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    if refusal.attr.sample_stack_user() > 0 && facts.settings.paranoid.is_some() {
        return explained(
            NoCapability,
            "this architecture's kernel cannot copy user stacks",
            Hint::ChainsByFramePointers,
        );
    }
    match (facts.settings.paranoid, facts.credentials.seccomp) {
        (_, Seccomp::Filter) => explained(
            NoPerfEvents,
            "a seccomp filter, as used by sandboxes and container runtimes, hides perf_event_open",
            "run outside the sandbox, or with a profile that allows perf_event_open",
        ),
        (None, _) => explained(
            NoPerfEvents,
            "this kernel was built without perf events (CONFIG_PERF_EVENTS), or is not a real Linux kernel",
            "boot another kernel; gVisor and WSL 1 do not support perf events",
        ),
        _ => explained(NoPerfEvents, "the kernel does not provide perf_event_open", ""),
    }
}

/// Explains why an event was enabled, but never on a counter.
pub(super) fn never_ran(attr: &Attr, facts: &MachineFacts) -> RefusalText {
    let Some(pmu) = facts.pmu_of(attr) else {
        return explained(
            Other,
            "nothing ran while the event was enabled",
            "measure something that runs longer",
        );
    };
    if !pmu.is_core() {
        return explained(
            Busy,
            format!("it never got a counter on the PMU `{}`, or nothing ran during that time", pmu.name),
            "count fewer events of this PMU at the same time",
        );
    }
    let mut holders = Vec::new();
    if facts.settings.nmi_watchdog == Some(true) {
        holders.push("the NMI watchdog uses one counter on each CPU".to_owned());
    }
    holders.extend(facts.reservation.clone());
    let cause = match holders.is_empty() {
        true => format!(
            "it never got a counter on the PMU `{}`: all were in use, or nothing was running",
            pmu.name
        ),
        false => format!("it never got a counter on the PMU `{}`: {}", pmu.name, holders.join("; ")),
    };
    let remedy = if facts.settings.nmi_watchdog == Some(true) {
        "free a counter with `sysctl kernel.nmi_watchdog=0`, or count fewer events".into()
    } else {
        Hint::CountFewer
    };
    explained(Busy, cause, remedy)
}

/// Describes the PMU for use in a sentence: "the PMU `cpu`", or "this kind of event".
fn pmu_words(attr: &Attr, facts: &MachineFacts) -> String {
    facts
        .pmu_of(attr)
        .map_or_else(|| "this kind of event".to_owned(), |pmu| format!("the PMU `{}`", pmu.name))
}
