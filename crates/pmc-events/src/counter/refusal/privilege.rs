//! EACCES and EPERM: the paranoid level, capabilities, user namespaces, ptrace access, seccomp, lockdown,
//! SELinux.
//!
//! Takes the request and the facts, and makes the same checks as the kernel in the same order. Returns the
//! kind, cause and remedy. Source: `perf_allow_*` and `perf_check_permission` in the kernel's perf core.

use super::RefusalKind::{NoPrivilege, OutOfMemory};
use super::{FailedCall, Refusal, RefusalText, explained};
use crate::counter::facts::MachineFacts;
use crate::hint::Hint;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::sys::credentials::Seccomp;

/// Explains EACCES: the paranoid level, ptrace access, or a security module.
pub(super) fn access(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    let attr = &refusal.attr;
    let who = who(facts);
    let Some(level) = facts.settings.paranoid else {
        return explained(
            NoPrivilege,
            "the kernel denied access, and perf_event_paranoid cannot be read",
            "try as root",
        );
    };
    let allowed = facts.settings.allowance(facts.credentials.perfmon());
    let raise =
        |to: i32| format!("run as root or with CAP_PERFMON, or `sysctl kernel.perf_event_paranoid={to}`");
    let level_is = format!("kernel.perf_event_paranoid is {level}");
    if refusal.slot.tid.is_none() && !allowed.cpu_wide {
        return explained(
            NoPrivilege,
            format!("{level_is}: counting a whole CPU requires 0 or lower, or privileges, and {who}"),
            format!("{}, or measure a command or your own process", raise(0)),
        );
    }
    if !attr.get(Flag::ExcludeKernel) && !allowed.kernel {
        // Few device PMUs can exclude the kernel, so `:u` does not help for their events. Nor does it help
        // for events that count only in the kernel.
        let device =
            attr.kind() >= kind::FIRST_DYNAMIC && facts.pmu_of(attr).is_some_and(|pmu| !pmu.is_core());
        let kernel_alone = attr.get(Flag::ExcludeUser);
        let user_mode = if device || kernel_alone { "" } else { "count user mode only (:u), " };
        return explained(
            NoPrivilege,
            format!("{level_is}: counting in the kernel requires 1 or lower, or privileges, and {who}"),
            format!("{user_mode}{}", raise(1)),
        );
    }
    match facts.pmu_of(attr) {
        Some(pmu) if pmu.name == "uprobe" => {
            return explained(
                NoPrivilege,
                format!(
                    "placing a probe in a program requires CAP_SYS_ADMIN (CAP_PERFMON before Linux 6.16), \
                     and {who}"
                ),
                "run as root or with CAP_SYS_ADMIN",
            );
        }
        Some(pmu) if pmu.name == "kprobe" => {
            return explained(
                NoPrivilege,
                format!("placing a probe requires CAP_PERFMON, and {who}"),
                "run as root or with CAP_PERFMON",
            );
        }
        _ => {}
    }
    if attr.kind() == kind::TRACEPOINT && !allowed.raw_tracepoint {
        return explained(
            NoPrivilege,
            format!("{level_is}: tracepoint data requires -1 or elevated privileges, but {who}"),
            raise(-1),
        );
    }
    // The mainline kernel treats level 3 like level 2. With some distributions' patches, levels 3 and higher
    // deny all events to unprivileged users.
    if !allowed.user {
        return explained(
            NoPrivilege,
            format!("{level_is}, so this kernel denies perf events to unprivileged users, and {who}"),
            raise(2),
        );
    }
    if let Some(tid) = refusal.slot.tid.filter(|&tid| tid != 0)
        && !facts.credentials.perfmon()
    {
        let yama = match facts.settings.ptrace_scope {
            Some(scope @ 1..) => format!(" (kernel.yama.ptrace_scope is {scope})"),
            _ => String::new(),
        };
        return explained(
            NoPrivilege,
            format!("thread {tid} belongs to another user, or tracing it is not permitted{yama}, and {who}"),
            "run as the process's user, as root, or with CAP_PERFMON",
        );
    }
    security_module(facts).unwrap_or_else(|| {
        explained(
            NoPrivilege,
            format!("the kernel refuses although {level_is} and {who}"),
            "look for messages from a security module: dmesg, journalctl -k",
        )
    })
}

/// Explains EPERM: a seccomp filter, the locked-memory limit, or insufficient privilege on an old kernel.
pub(super) fn perm(refusal: &Refusal, facts: &MachineFacts) -> RefusalText {
    if let FailedCall::Map { bytes } = refusal.call {
        let allowance = match facts.settings.mlock_kb {
            Some(kb) => format!("kernel.perf_event_mlock_kb is {kb} per CPU"),
            None => "the allowance is used up".to_owned(),
        };
        return explained(
            OutOfMemory,
            format!(
                "a ring buffer of {bytes} bytes exceeds this user's remaining locked-memory allowance: {allowance}"
            ),
            Hint::SmallerRings,
        );
    }
    if let Some(explained) = security_module(facts) {
        return explained;
    }
    if facts.credentials.seccomp == Seccomp::Filter {
        return explained(
            NoPrivilege,
            "a seccomp filter, as used by container runtimes, refuses perf_event_open with this errno",
            // Docker's default profile allows the call with CAP_PERFMON. Podman 4.3's profile requires
            // CAP_SYS_ADMIN.
            "start the container with --cap-add PERFMON; if that is not enough, also with --security-opt \
             seccomp=unconfined or a profile that allows perf_event_open",
        );
    }
    if refusal.attr.kind() == kind::BREAKPOINT && !facts.credentials.perfmon() {
        return explained(
            NoPrivilege,
            format!("a breakpoint in the kernel requires privileges, and {}", who(facts)),
            "run as root, or add :u",
        );
    }
    if facts.credentials.perfmon() {
        return explained(
            NoPrivilege,
            format!("the kernel refuses although {}", who(facts)),
            "look for messages from a security module: dmesg, journalctl -k",
        );
    }
    // Kernels before 4.8 return EPERM instead of EACCES. Newer kernels still do this for tracepoint data.
    access(refusal, facts)
}

/// Explains a refusal by kernel lockdown or SELinux, if active.
fn security_module(facts: &MachineFacts) -> Option<RefusalText> {
    if facts.lockdown.as_deref() == Some("confidentiality") {
        return Some(explained(
            NoPrivilege,
            "the kernel is locked down (confidentiality), which forbids perf events for all users",
            "boot with lockdown=integrity or none",
        ));
    }
    (facts.selinux && facts.credentials.perfmon()).then(|| {
        explained(
            NoPrivilege,
            "SELinux is enforcing, and its policy controls access to perf events",
            "see `ausearch -m avc -ts recent` for the denial",
        )
    })
}

/// Describes the user and their privileges, as a clause to follow "and".
fn who(facts: &MachineFacts) -> String {
    let who = &facts.credentials;
    let user = if who.uid == 0 { "root".to_owned() } else { format!("uid {}", who.uid) };
    if who.perfmon() {
        format!("{user} has CAP_PERFMON or CAP_SYS_ADMIN")
    } else if who.user_namespace {
        format!("{user} is privileged only in a user namespace, whose capabilities do not apply here")
    } else {
        format!("{user} has no CAP_PERFMON")
    }
}
