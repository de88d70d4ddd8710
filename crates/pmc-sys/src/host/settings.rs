//! Kernel settings that matter to a profiler, and the operations that the paranoid level allows.
//!
//! A value is `None` if this kernel does not have the setting. pmc never changes settings here. Source:
//! `Documentation/admin-guide/sysctl/kernel.rst`; the checks in `kernel/events/core.c` and
//! `include/linux/perf_event.h`.

use super::Host;

/// Settings in `/proc/sys/kernel` for perf events and related features.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerfEventSettings {
    /// `perf_event_paranoid`; `None` if the kernel has no perf events (or hides them).
    pub paranoid: Option<i32>,
    /// `perf_event_mlock_kb`: KiB of ring memory per CPU that a user may lock in addition to
    /// `RLIMIT_MEMLOCK`.
    pub mlock_kb: Option<u64>,
    /// `perf_event_max_sample_rate`, in samples per second.
    pub max_sample_rate: Option<u64>,
    /// `perf_cpu_time_max_percent`: the share of a CPU that sampling may use before the kernel lowers the
    /// rate. 0 and 100 disable the check.
    pub cpu_time_max_percent: Option<u32>,
    /// `perf_event_max_stack`: maximum number of frames in a call chain.
    pub max_stack: Option<u32>,
    /// `perf_event_max_contexts_per_stack`.
    pub max_contexts_per_stack: Option<u32>,
    /// `nmi_watchdog`: whether the lock-up detector holds a hardware counter on each CPU.
    pub nmi_watchdog: Option<bool>,
    /// `kptr_restrict`: who can see the addresses of kernel symbols: all users (0), privileged users (1), or
    /// no user (2).
    pub kptr_restrict: Option<u32>,
    /// `yama/ptrace_scope`: which processes a user may trace: the user's own (0), only child processes (1),
    /// none except as administrator (2), none at all (3).
    pub ptrace_scope: Option<u32>,
    /// Whether counters can be read from user space: `perf_user_access` (arm64), or the core PMU's `rdpmc`
    /// (x86: 0 never, 1 with an event, 2 always).
    pub user_access: Option<u32>,
    /// `unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<u32>,
}

impl Host {
    /// Whether the kernel can run 32-bit programs. Assumed to be true on architectures other than x86-64.
    pub fn runs_32_bit_programs(&self) -> bool {
        // This setting exists only in kernels with 32-bit system calls.
        cfg!(not(target_arch = "x86_64")) || self.path("/proc/sys/abi/vsyscall32").exists()
    }

    /// Whether `/proc/kallsyms` shows actual addresses to this process. Since this depends on
    /// `kptr_restrict`, `CAP_SYSLOG` and the paranoid level, the file itself is checked. Hidden addresses are
    /// all zero.
    pub fn kernel_symbols(&self) -> bool {
        use std::io::{BufRead, BufReader, Read};
        let Ok(file) = std::fs::File::open(self.path("/proc/kallsyms")) else { return false };
        // The first symbols of a kernel may have address 0 even if all other addresses are shown.
        BufReader::new(file.take(64 * 1024))
            .lines()
            .map_while(Result::ok)
            .take(1000)
            .any(|line| line.split(' ').next().is_some_and(|address| address.bytes().any(|b| b != b'0')))
    }
}

/// The operations that a user may perform (`perf_event_open(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// User-mode events of the user's own processes.
    pub user: bool,
    /// Kernel-mode events of the user's own processes.
    pub kernel: bool,
    /// Everything on a CPU (`-a`, `-C`).
    pub cpu_wide: bool,
    /// Raw tracepoint data.
    pub raw_tracepoint: bool,
}

impl Allowance {
    /// The operations allowed at the level `paranoid`; `privileged` is
    /// [`crate::sys::credentials::Credentials::perfmon`].
    ///
    /// Levels 3 and 4 exist only in some distributions' kernels, and allow nothing.
    pub(crate) fn new(paranoid: i32, privileged: bool) -> Self {
        Self {
            user: privileged || paranoid <= 2,
            kernel: privileged || paranoid <= 1,
            cpu_wide: privileged || paranoid <= 0,
            raw_tracepoint: privileged || paranoid <= -1,
        }
    }
}

impl PerfEventSettings {
    /// Reads all settings, from about ten small files.
    pub fn read(host: &Host) -> Self {
        fn number<T: std::str::FromStr>(host: &Host, name: &str) -> Option<T> {
            host.number(format!("/proc/sys/kernel/{name}"))
        }
        Self {
            paranoid: number(host, "perf_event_paranoid"),
            mlock_kb: number(host, "perf_event_mlock_kb"),
            max_sample_rate: number(host, "perf_event_max_sample_rate"),
            cpu_time_max_percent: number(host, "perf_cpu_time_max_percent"),
            max_stack: number(host, "perf_event_max_stack"),
            max_contexts_per_stack: number(host, "perf_event_max_contexts_per_stack"),
            nmi_watchdog: number::<u32>(host, "nmi_watchdog").map(|on| on != 0),
            kptr_restrict: number(host, "kptr_restrict"),
            ptrace_scope: number(host, "yama/ptrace_scope"),
            user_access: number(host, "perf_user_access")
                .or_else(|| host.number("/sys/bus/event_source/devices/cpu/rdpmc"))
                .or_else(|| host.number("/sys/bus/event_source/devices/cpu_core/rdpmc")),
            unprivileged_bpf_disabled: number(host, "unprivileged_bpf_disabled"),
        }
    }

    /// The operations that these settings allow. None are allowed if `perf_event_paranoid` is missing.
    pub fn allowance(&self, privileged: bool) -> Allowance {
        match self.paranoid {
            Some(level) => Allowance::new(level, privileged),
            None => Allowance { user: false, kernel: false, cpu_wide: false, raw_tracepoint: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;

    #[test]
    fn settings_are_read_from_a_recorded_machine() {
        let settings = PerfEventSettings::read(&Host::rooted(test_data("host/two-sockets")));
        assert_eq!(settings.paranoid, Some(2));
        assert_eq!(settings.nmi_watchdog, Some(true));
        assert_eq!(settings.mlock_kb, Some(516));
        assert_eq!(settings.user_access, Some(1));
        assert_eq!(settings.ptrace_scope, None, "the saved machine has no Yama");
    }

    #[test]
    fn hidden_kernel_addresses_are_recognized() {
        let shows = |text: &str| {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir(root.path().join("proc")).unwrap();
            std::fs::write(root.path().join("proc/kallsyms"), text).unwrap();
            Host::rooted(root.path()).kernel_symbols()
        };
        assert!(shows("0000000000000000 A fixed\nffffffff81000000 T _stext\n"));
        assert!(!shows("0000000000000000 T _stext\n0000000000000000 T _text\n"));
        assert!(!shows(""));
    }

    #[test]
    fn machine_without_perf_events_allows_nothing() {
        let settings = PerfEventSettings::read(&Host::rooted(test_data("host/no-such-machine")));
        assert_eq!(settings, PerfEventSettings::default());
        assert!(!settings.allowance(true).user);
    }

    #[test]
    fn each_paranoid_level_removes_permissions() {
        let allowed = |level, privileged| {
            let a = Allowance::new(level, privileged);
            [a.user, a.kernel, a.cpu_wide, a.raw_tracepoint].iter().filter(|&&yes| yes).count()
        };
        assert_eq!([-1, 0, 1, 2, 3, 4].map(|level| allowed(level, false)), [4, 3, 2, 1, 0, 0]);
        assert_eq!([-1, 2, 4].map(|level| allowed(level, true)), [4, 4, 4]);
    }
}
