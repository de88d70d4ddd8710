//! A snapshot of the machine and of this process, used to explain why an event was refused. Taken when the
//! first event is refused.
//!
//! Takes a [`Host`] (any root) and [`Credentials`]. Returns plain values. [`super::refusal`] explains
//! refusals with them and makes no system calls, so its tests can use snapshots of other machines.

use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::kind;
use pmc_sys::host::cpu::Processor;
use pmc_sys::host::settings::PerfEventSettings;
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::credentials::{Credentials, Limits};

/// Properties of a PMU that are used in explanations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPmu {
    /// Name in `/sys/bus/event_source/devices`.
    pub(crate) name: String,
    /// `attr.type` of its events.
    pub(crate) kind: u32,
    /// `cpus`: the CPUs that have this core PMU (hybrid and Arm machines).
    pub(crate) cpus: Option<CpuList>,
    /// `cpumask`: the CPUs on which events of a package-wide PMU are opened. Such a PMU cannot measure a
    /// single task.
    pub(crate) cpumask: Option<CpuList>,
}

impl KnownPmu {
    /// Whether this is a core PMU, according to perf's rule: its name is `cpu`, or it lists its CPUs.
    pub(crate) fn is_core(&self) -> bool {
        self.name == "cpu" || self.cpus.is_some()
    }
}

/// A snapshot of the machine and this process.
#[derive(Debug, Clone, Default)]
pub struct MachineFacts {
    /// Kernel settings.
    pub settings: PerfEventSettings,
    /// PMUs in sysfs, by name.
    pub(crate) pmus: Vec<KnownPmu>,
    /// Online CPUs.
    pub online: CpuList,
    /// CPUs that may exist; empty if unknown.
    pub(crate) possible: CpuList,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// The hypervisor's name, if known.
    pub hypervisor: Option<String>,
    /// Credentials of this process.
    pub credentials: Credentials,
    /// Limit on open descriptors.
    pub(crate) open_files: Option<u64>,
    /// `/sys/kernel/security/lockdown`: the active mode, unless it is `none`.
    pub(crate) lockdown: Option<String>,
    /// Whether SELinux is enforcing.
    pub(crate) selinux: bool,
    /// The holders of the hardware counter reservation, as text. Set by callers that have looked up the
    /// reservation.
    pub reservation: Option<String>,
}

impl MachineFacts {
    /// Collects the facts about this machine and this process.
    pub fn own(host: &Host) -> Self {
        let mut facts = Self::read(host, Credentials::own());
        facts.open_files = Limits::own().open_files;
        if facts.virtual_machine && facts.hypervisor.is_none() {
            facts.hypervisor = pmc_sys::sys::arch::hypervisor();
        }
        facts
    }

    /// Collects the facts about the machine that `host` represents, and about a process with these
    /// credentials.
    pub(crate) fn read(host: &Host, credentials: Credentials) -> Self {
        let list = |path: &str| host.text(path).and_then(|t| t.parse().ok());
        let processor = Processor::read(host);
        Self {
            settings: PerfEventSettings::read(host),
            pmus: pmus(host),
            online: host.online_cpus(),
            possible: list("/sys/devices/system/cpu/possible").unwrap_or_default(),
            virtual_machine: processor.virtual_machine,
            hypervisor: processor.hypervisor,
            credentials,
            open_files: None,
            lockdown: host
                .text("/sys/kernel/security/lockdown")
                .and_then(|modes| Some(modes.split_once('[')?.1.split_once(']')?.0.to_owned()))
                .filter(|mode| mode != "none"),
            selinux: host.number("/sys/fs/selinux/enforce") == Some(1u32),
            reservation: None,
        }
    }

    /// Returns the PMU that handles this `attr.type`, if sysfs lists it.
    pub(crate) fn pmu(&self, kind: u32) -> Option<&KnownPmu> {
        self.pmus.iter().find(|pmu| pmu.kind == kind)
    }

    /// Returns the core PMUs: none (in many virtual machines), one, or several (on hybrid machines).
    pub(crate) fn core_pmus(&self) -> impl Iterator<Item = &KnownPmu> {
        self.pmus.iter().filter(|pmu| pmu.is_core())
    }

    /// Returns the core PMU that handles generic and raw requests: the PMU of type 4, or else the first core
    /// PMU.
    fn first_core_pmu(&self) -> Option<&KnownPmu> {
        self.pmu(kind::RAW).or_else(|| self.core_pmus().next())
    }

    /// Returns the PMU that handles this request. Generic types go to the PMU named in the upper half of
    /// config (hybrid machines), or else to the first core PMU. All other types go to the PMU of that type.
    pub fn pmu_of(&self, attr: &Attr) -> Option<&KnownPmu> {
        match attr.kind() {
            kind::HARDWARE | kind::HW_CACHE => match (attr.config() >> 32) as u32 {
                0 => self.first_core_pmu(),
                named => self.pmu(named),
            },
            kind::RAW => self.first_core_pmu(),
            other => self.pmu(other),
        }
    }

    /// Whether the request requires a core PMU that this machine lacks: sysfs lists PMUs, but none of them
    /// handles the request.
    pub(crate) fn lacks_hardware(&self, attr: &Attr) -> bool {
        let of_cores = matches!(attr.kind(), kind::HARDWARE | kind::HW_CACHE | kind::RAW);
        of_cores && !self.pmus.is_empty() && self.pmu_of(attr).is_none()
    }
}

fn pmus(host: &Host) -> Vec<KnownPmu> {
    let known = |name: String| {
        let pmu = host.pmu(&name)?;
        Some(KnownPmu { kind: pmu.kind, cpus: pmu.core_cpus(), cpumask: pmu.cpumask(), name })
    };
    host.pmu_names().into_iter().filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;
    use pmc_sys::host::Host;

    #[test]
    fn requests_are_matched_to_their_pmu() {
        let facts = MachineFacts::read(&Host::rooted(test_data("host/hybrid")), Credentials::default());
        let name = |kind, config| facts.pmu_of(&Attr::new(kind, config)).map(|pmu| pmu.name.as_str());
        assert_eq!(name(kind::HARDWARE, 0), Some("cpu_core"));
        assert_eq!(name(kind::HARDWARE, 10 << 32), Some("cpu_atom"));
        assert_eq!(name(kind::SOFTWARE, 0), Some("software"));
        assert_eq!(name(77, 0), None);
        assert_eq!(facts.core_pmus().count(), 2);
    }

    #[test]
    fn machine_without_core_pmu_is_recognized() {
        let facts =
            MachineFacts::read(&Host::rooted(test_data("host/vm-without-pmu")), Credentials::default());
        assert_eq!(facts.core_pmus().count(), 0);
        assert!(facts.virtual_machine);
        assert!(facts.pmu_of(&Attr::new(kind::RAW, 0x1c2)).is_none());
        assert!(facts.lacks_hardware(&Attr::new(kind::RAW, 0x1c2)));
        assert!(!facts.lacks_hardware(&Attr::new(kind::SOFTWARE, 0)));
        // Without sysfs, the PMUs are unknown.
        assert!(!MachineFacts::default().lacks_hardware(&Attr::new(kind::HARDWARE, 0)));
    }
}
