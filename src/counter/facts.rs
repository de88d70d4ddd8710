//! What explains a refusal: a snapshot of the machine and of ourselves, taken when the first event is
//! refused.
//!
//! Receives a [`Host`] (any root) and our [`Credentials`]; hands on plain values to [`super::refusal`], which
//! is pure and is tested with snapshots of saved machines. Decides nothing.

use crate::abi::Attr;
use crate::abi::attr::kind;
use crate::host::cpu::Processor;
use crate::host::settings::Settings;
use crate::host::{CpuList, Host};
use crate::sys::credentials::{Credentials, Limits};

/// A PMU as far as explanations need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPmu {
    /// Its name in `/sys/bus/event_source/devices`.
    pub name: String,
    /// `attr.type` of its events.
    pub kind: u32,
    /// `cpus`: the CPUs that have this core PMU (hybrid and Arm machines).
    pub cpus: Option<CpuList>,
    /// `cpumask`: the CPUs through which a package-wide PMU is opened; such a PMU cannot follow a task.
    pub cpumask: Option<CpuList>,
}

impl KnownPmu {
    /// Whether it counts what a core does, by perf's rule: it is `cpu`, or says which CPUs have it.
    pub fn is_core(&self) -> bool {
        self.name == "cpu" || self.cpus.is_some()
    }
}

/// The snapshot.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Kernel settings.
    pub settings: Settings,
    /// PMUs in sysfs, by name.
    pub pmus: Vec<KnownPmu>,
    /// CPUs on line.
    pub online: CpuList,
    /// CPUs that could be there; empty if not known.
    pub possible: CpuList,
    /// A hypervisor runs this machine.
    pub virtual_machine: bool,
    /// Whose it is, if known.
    pub hypervisor: Option<String>,
    /// Ourselves.
    pub credentials: Credentials,
    /// Descriptors that we may have open.
    pub open_files: Option<u64>,
    /// `/sys/kernel/security/lockdown`: the mode in force, if it is not `none`.
    pub lockdown: Option<String>,
    /// SELinux enforces its policy.
    pub selinux: bool,
    /// Who holds the reservation of the hardware counters, in words; filled in by who has asked.
    pub reservation: Option<String>,
}

impl Facts {
    /// Of this machine, for this process.
    pub fn own(host: &Host) -> Self {
        let mut facts = Self::read(host, Credentials::own());
        facts.open_files = Limits::own().open_files;
        if facts.virtual_machine && facts.hypervisor.is_none() {
            facts.hypervisor = crate::sys::arch::hypervisor();
        }
        facts
    }

    /// Of a machine described by files, for a process with these credentials.
    pub fn read(host: &Host, credentials: Credentials) -> Self {
        let list = |path: &str| host.text(path).and_then(|t| t.parse().ok());
        let processor = Processor::read(host);
        Self {
            settings: Settings::read(host),
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

    /// The PMU that takes requests of this `attr.type`, where sysfs has one.
    pub fn pmu(&self, kind: u32) -> Option<&KnownPmu> {
        self.pmus.iter().find(|pmu| pmu.kind == kind)
    }

    /// The core PMUs: none (many virtual machines), one, or several (hybrid).
    pub fn core_pmus(&self) -> impl Iterator<Item = &KnownPmu> {
        self.pmus.iter().filter(|pmu| pmu.is_core())
    }

    /// The core PMU that generic and raw requests go to: the one of type 4, else the first.
    fn first_core_pmu(&self) -> Option<&KnownPmu> {
        self.pmu(kind::RAW).or_else(|| self.core_pmus().next())
    }

    /// The PMU that this request goes to: that of its type, or for the generic types the one named by the
    /// upper half of config (hybrid machines), or else the first core PMU.
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

    /// Whether it asks for a counter of the cores, and sysfs, which has PMUs, has none of them.
    pub fn lacks_hardware(&self, attr: &Attr) -> bool {
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
    use crate::host::saved;

    #[test]
    fn requests_find_their_pmu() {
        let facts = Facts::read(&saved("hybrid"), Credentials::default());
        let name = |kind, config| facts.pmu_of(&Attr::new(kind, config)).map(|pmu| pmu.name.as_str());
        assert_eq!(name(kind::HARDWARE, 0), Some("cpu_core"));
        assert_eq!(name(kind::HARDWARE, 10 << 32), Some("cpu_atom"));
        assert_eq!(name(kind::SOFTWARE, 0), Some("software"));
        assert_eq!(name(77, 0), None);
        assert_eq!(facts.core_pmus().count(), 2);
    }

    #[test]
    fn a_machine_without_core_pmu_is_recognised() {
        let facts = Facts::read(&saved("vm-without-pmu"), Credentials::default());
        assert_eq!(facts.core_pmus().count(), 0);
        assert!(facts.virtual_machine);
        assert!(facts.pmu_of(&Attr::new(kind::RAW, 0x1c2)).is_none());
        assert!(facts.lacks_hardware(&Attr::new(kind::RAW, 0x1c2)));
        assert!(!facts.lacks_hardware(&Attr::new(kind::SOFTWARE, 0)));
        // Without sysfs nobody knows.
        assert!(!Facts::default().lacks_hardware(&Attr::new(kind::HARDWARE, 0)));
    }
}
