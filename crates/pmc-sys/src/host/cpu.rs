//! The CPUs: their positions (node, socket, die, core, hardware thread), their models, and the hypervisor.
//!
//! [`Topology`] is for aggregation, and [`Processor`] for explanations. If a machine does not number its
//! sockets or dies, pmc assumes a single one with number 0.
//!
//! ```text
//! node 0                       node 1
//! socket 0                     socket 1
//!   die 0          die 1         die 0 ...
//!     core 0         core 0
//!       cpu 0, 8       cpu 4, 12
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Host;
use super::cpulist::CpuList;
use crate::sys::arch;

/// The position of a CPU. Core numbers are unique within a die, and die numbers within a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuLocation {
    /// NUMA node; `None` on kernels without NUMA.
    pub node: Option<u32>,
    /// `physical_package_id`.
    pub socket: u32,
    /// `die_id`.
    pub die: u32,
    /// `cluster_id`; `None` if the firmware reports no clusters.
    pub cluster: Option<u32>,
    /// `core_id`.
    pub core: u32,
    /// Index among the hardware threads of its core, starting at 0.
    pub thread: u32,
}

/// The positions of all online CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    seats: BTreeMap<u32, CpuLocation>,
}

impl Topology {
    /// Reads `/sys/devices/system/cpu` and `/sys/devices/system/node`: about five small files per CPU.
    pub fn read(host: &Host) -> Self {
        let nodes = nodes(host);
        let seats = host
            .online_cpus()
            .iter()
            .map(|cpu| {
                let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
                // Missing firmware data is reported as -1, which does not parse as a u32.
                let id = |name: &str| host.number::<u32>(format!("{topology}/{name}"));
                let siblings: CpuList = ["core_cpus_list", "thread_siblings_list"]
                    .iter()
                    .find_map(|name| host.text(format!("{topology}/{name}"))?.parse().ok())
                    .unwrap_or_default();
                let location = CpuLocation {
                    node: nodes.get(&cpu).copied(),
                    socket: id("physical_package_id").unwrap_or(0),
                    die: id("die_id").unwrap_or(0),
                    cluster: id("cluster_id"),
                    core: id("core_id").unwrap_or(cpu),
                    thread: siblings.iter().take_while(|&sibling| sibling < cpu).count() as u32,
                };
                (cpu, location)
            })
            .collect();
        Self { seats }
    }

    /// Creates a topology from known positions.
    pub fn from_locations(seats: BTreeMap<u32, CpuLocation>) -> Self {
        Self { seats }
    }

    /// The position of a CPU; `None` if the CPU is not online.
    pub fn location(&self, cpu: u32) -> Option<CpuLocation> {
        self.seats.get(&cpu).copied()
    }

    /// All CPUs and their positions, sorted by CPU number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, CpuLocation)> + '_ {
        self.seats.iter().map(|(&cpu, &location)| (cpu, location))
    }

    /// The online CPUs.
    pub fn cpus(&self) -> CpuList {
        self.seats.keys().copied().collect()
    }

    /// Number of sockets.
    pub fn sockets(&self) -> usize {
        self.distinct(|location| location.socket)
    }

    /// Number of dies.
    pub fn dies(&self) -> usize {
        self.distinct(|location| (location.socket, location.die))
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.distinct(|location| (location.socket, location.die, location.core))
    }

    /// Number of NUMA nodes that have CPUs.
    pub fn nodes(&self) -> usize {
        self.distinct(|location| location.node)
    }

    /// Whether a core has more than one hardware thread.
    pub fn smt(&self) -> bool {
        self.seats.values().any(|location| location.thread > 0)
    }

    fn distinct<T: Ord>(&self, key: impl Fn(&CpuLocation) -> T) -> usize {
        self.seats.values().map(key).collect::<BTreeSet<_>>().len()
    }
}

/// The CPU's cache at this level, or its last-level cache if no level is given. Returns its level and its ID
/// (the kernel's `id`, or else the first CPU that shares the cache). `None` if the kernel does not report the
/// cache.
pub fn cache(host: &Host, cpu: u32, level: Option<u32>) -> Option<(u32, u32)> {
    let folder = |index: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
    let level_of = |index: u32| host.number::<u32>(format!("{}/level", folder(index)));
    let all = (0..).map_while(|index| Some((level_of(index)?, index)));
    // For each level, the kernel lists the data cache or unified cache first.
    let (level, index) = match level {
        Some(level) => all.into_iter().find(|(own, _)| *own == level)?,
        None => all.max_by_key(|(level, _)| *level)?,
    };
    let shared = || -> Option<u32> {
        host.text(format!("{}/shared_cpu_list", folder(index)))?.parse::<CpuList>().ok()?.first()
    };
    Some((level, host.number(format!("{}/id", folder(index))).or_else(shared)?))
}

/// The node of each CPU, from the nodes' `cpulist`.
fn nodes(host: &Host) -> BTreeMap<u32, u32> {
    let online: CpuList =
        host.text("/sys/devices/system/node/online").and_then(|t| t.parse().ok()).unwrap_or_default();
    let mut of = BTreeMap::new();
    for node in online.iter() {
        let cpus = host.text(format!("/sys/devices/system/node/node{node}/cpulist"));
        if let Some(cpus) = cpus.and_then(|t| t.parse::<CpuList>().ok()) {
            of.extend(cpus.iter().map(|cpu| (cpu, node)));
        }
    }
    of
}

/// The CPU model and the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Processor {
    /// The vendor's name; on Arm, the kinds of cores.
    pub model: Option<String>,
    /// `AMD 25/17/1` or `Arm 0xd0c`: vendor and the numbers used by event tables.
    pub id: Option<String>,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// The hypervisor, if a file identifies it.
    pub hypervisor: Option<String>,
}

impl Processor {
    /// Reads `/proc/cpuinfo`, `/sys/hypervisor`, the DMI tables and the device tree.
    pub fn read(host: &Host) -> Self {
        let cpuinfo = host.text("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| field(&cpuinfo, name);
        let flag =
            field("flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
        let arm = arm_cores(&cpuinfo);
        let model = field("model name").map(str::to_owned).or_else(|| arm.clone().map(|(model, _)| model));
        let id = match (field("vendor_id"), field("cpu family"), field("model"), field("stepping")) {
            (Some(vendor), Some(family), Some(model), Some(stepping)) => {
                Some(format!("{vendor} {family}/{model}/{stepping}"))
            }
            _ => arm.map(|(_, id)| id),
        };
        let hypervisor = hypervisor(host, flag);
        Self { model, id, virtual_machine: flag || hypervisor.is_some(), hypervisor }
    }
}

/// The CPU's ID in event tables, in perf's format: `GenuineIntel-6-55-7` (vendor, family, then model and
/// stepping in hexadecimal), or Arm's MIDR as `0x00000000410fd0c0`. `PMC_CPUID`, or else `PERF_CPUID`,
/// overrides the ID of all CPUs.
pub fn event_table_id(host: &Host, cpu: u32) -> Option<String> {
    named_id().or_else(|| own_id(host, cpu))
}

/// The CPU ID that the user selected with `PMC_CPUID` or `PERF_CPUID`, regardless of this machine.
pub fn named_id() -> Option<String> {
    let said = |name: &str| std::env::var(name).ok().filter(|id| !id.is_empty());
    said("PMC_CPUID").or_else(|| said("PERF_CPUID"))
}

/// The CPU ID for the header of a recording, in perf's format: `GenuineIntel,6,85,7`, or Arm's MIDR.
pub fn recorded_id(host: &Host) -> Option<String> {
    let cpuinfo = host.text("/proc/cpuinfo")?;
    let words = ["vendor_id", "cpu family", "model", "stepping"].map(|name| field(&cpuinfo, name));
    let words: Option<Vec<&str>> = words.into_iter().collect();
    words.map(|words| words.join(",")).or_else(|| own_id(host, 0))
}

/// Converts the CPU ID from the header of a recording to an ID in event tables. Old versions of pmc wrote
/// `GenuineIntel 6/85/7`.
pub fn event_table_id_of(recorded: &str) -> Option<String> {
    let mut words = recorded.trim_end_matches('$').split([',', ' ', '/']);
    let first = words.next()?;
    if first.starts_with("0x") {
        return Some(first.to_owned());
    }
    let mut number = || words.next()?.parse::<u32>().ok();
    Some(format!("{first}-{}-{:X}-{:X}", number()?, number()?, number()?))
}

fn own_id(host: &Host, cpu: u32) -> Option<String> {
    if let Some(midr) = host.text(format!("/sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1")) {
        return Some(midr);
    }
    // On x86, all CPUs have the same block; on Arm, each block contains the core type of its CPU.
    let cpuinfo = host.text("/proc/cpuinfo")?;
    let blocks = || cpuinfo.split("\n\n");
    let own = |block: &&str| field(block, "processor").is_some_and(|number| number == cpu.to_string());
    let block = blocks().find(own).or_else(|| blocks().next())?;
    let number = |name: &str| {
        let text = field(block, name)?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    };
    if let (Some(vendor), Some(family)) = (field(block, "vendor_id"), number("cpu family")) {
        return Some(format!("{vendor}-{family}-{:X}-{:X}", number("model")?, number("stepping")?));
    }
    let (implementer, part) = (number("CPU implementer")?, number("CPU part")?);
    let (variant, revision) = (number("CPU variant").unwrap_or(0), number("CPU revision").unwrap_or(0));
    Some(format!("{:#018x}", implementer << 24 | variant << 20 | 0xf << 16 | part << 4 | revision))
}

/// The rate of the time stamp counter in Hz, from the CPU's name (`… CPU @ 2.50GHz`) or from the CPU
/// itself.
pub fn time_stamp_rate(host: &Host) -> Option<f64> {
    let cpuinfo = host.text("/proc/cpuinfo")?;
    let (_, rate) = field(&cpuinfo, "model name").unwrap_or_default().rsplit_once("@ ").unwrap_or_default();
    let named = [("GHz", 1e9), ("MHz", 1e6)]
        .iter()
        .find_map(|(unit, factor)| Some(rate.strip_suffix(unit)?.trim().parse::<f64>().ok()? * factor));
    named.or_else(arch::time_stamp_rate)
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim_end() == name)
        .map(|(_, value)| value.trim())
}

/// The hypervisor, if a file identifies it. `flag` is set if the CPU reports a hypervisor. A vendor name in
/// the DMI tables counts only with `flag`, or together with the name of a virtual product, since the same
/// vendors also sell physical machines.
fn hypervisor(host: &Host, flag: bool) -> Option<String> {
    if let Some(kind) = host.text("/sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    // Strings in the device tree end with a NUL, which also separates the strings of a list.
    let tree = |path: &str| {
        host.text(path).map(|t| t.split('\0').next().unwrap_or_default().to_owned()).filter(|t| !t.is_empty())
    };
    if let Some(compatible) = tree("/proc/device-tree/hypervisor/compatible") {
        return Some(compatible);
    }
    if tree("/proc/device-tree/compatible").is_some_and(|c| c == "linux,dummy-virt") {
        return Some("QEMU virt machine".to_owned());
    }
    let vendor = host.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = host.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    let virtual_product = ["KVM", "QEMU", "VMware", "VirtualBox", "Virtual Machine", "HVM domU", "BHYVE"]
        .iter()
        .any(|name| product.contains(name) || vendor.contains(name));
    match (flag || virtual_product, vendor.trim(), product.trim()) {
        (false, ..) | (true, "", "") => None,
        (true, vendor, product) => Some(format!("{vendor} {product}").trim().to_owned()),
    }
}

/// Names and part numbers of the Arm cores in `/proc/cpuinfo`, without duplicates.
fn arm_cores(cpuinfo: &str) -> Option<(String, String)> {
    let mut names = Vec::new();
    let mut ids = Vec::new();
    let mut implementer = "";
    for (key, value) in cpuinfo.lines().filter_map(|line| line.split_once(':')) {
        match key.trim_end() {
            "CPU implementer" => implementer = value.trim(),
            "CPU part" => {
                let part = value.trim();
                let id = format!("{implementer} {part}");
                if !ids.contains(&id) {
                    names.push(
                        arm_name(implementer, part).map_or_else(|| format!("part {part}"), str::to_owned),
                    );
                    ids.push(id);
                }
            }
            _ => {}
        }
    }
    (!ids.is_empty()).then(|| (names.join(" + "), format!("Arm {}", ids.join(" + "))))
}

/// The name of a core by Arm Ltd (implementer 0x41) or one of a few other vendors, given the part number in
/// `MIDR_EL1`.
fn arm_name(implementer: &str, part: &str) -> Option<&'static str> {
    Some(match (implementer, part) {
        ("0x41", "0xd03") => "Cortex-A53",
        ("0x41", "0xd05") => "Cortex-A55",
        ("0x41", "0xd07") => "Cortex-A57",
        ("0x41", "0xd08") => "Cortex-A72",
        ("0x41", "0xd09") => "Cortex-A73",
        ("0x41", "0xd0a") => "Cortex-A75",
        ("0x41", "0xd0b") => "Cortex-A76",
        ("0x41", "0xd0c") => "Neoverse N1",
        ("0x41", "0xd0d") => "Cortex-A77",
        ("0x41", "0xd40") => "Neoverse V1",
        ("0x41", "0xd41") => "Cortex-A78",
        ("0x41", "0xd44") => "Cortex-X1",
        ("0x41", "0xd49") => "Neoverse N2",
        ("0x41", "0xd4f") => "Neoverse V2",
        ("0xc0", "0xac3") => "Ampere-1",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;

    #[test]
    fn cpu_ids_from_recordings_match_the_tables() {
        let table = |recorded: &str| event_table_id_of(recorded);
        assert_eq!(table("GenuineIntel,6,85,7").as_deref(), Some("GenuineIntel-6-55-7"));
        assert_eq!(table("AuthenticAMD 25/17/1").as_deref(), Some("AuthenticAMD-25-11-1"), "of older pmcs");
        assert_eq!(table("0x00000000410fd0c0").as_deref(), Some("0x00000000410fd0c0"));
        for strange in ["", "Arm 0xd0c", "IBM,3906,704,M03,3.5,002f", "GenuineIntel,6"] {
            assert_eq!(table(strange), None, "{strange}");
        }
        for cpu in ["sapphire-rapids", "zen4", "neoverse-n1"] {
            let host = Host::rooted(test_data(&format!("cpus/{cpu}")));
            let recorded = recorded_id(&host).unwrap();
            assert_eq!(event_table_id_of(&recorded), own_id(&host, 0), "{cpu}: {recorded}");
        }
    }

    #[test]
    fn every_cpu_has_a_topology_position() {
        let topology = Topology::read(&Host::rooted(test_data("host/two-sockets")));
        assert_eq!(topology.cpus().to_string(), "0-2,4-7", "CPU 3 is off line");
        assert_eq!(
            topology.location(5),
            Some(CpuLocation { node: Some(1), socket: 1, die: 0, cluster: None, core: 0, thread: 1 }),
            "cpu5 is the second thread of socket 1's first core"
        );
        assert_eq!(topology.location(3), None);
        assert_eq!((topology.sockets(), topology.dies(), topology.cores(), topology.nodes()), (2, 2, 4, 2));
        assert!(topology.smt());
    }

    #[test]
    fn machine_without_topology_is_one_socket() {
        let topology = Topology::read(&Host::rooted(test_data("host/arm-guest")));
        assert_eq!(
            topology.location(1),
            Some(CpuLocation { node: None, socket: 0, die: 0, cluster: None, core: 1, thread: 0 })
        );
        assert_eq!((topology.sockets(), topology.cores(), topology.smt()), (1, 2, false));
    }

    #[test]
    fn hypervisors_are_named_from_files() {
        let guest = Processor::read(&Host::rooted(test_data("host/arm-guest")));
        assert_eq!(guest.model.as_deref(), Some("Cortex-A57"));
        assert_eq!(guest.hypervisor.as_deref(), Some("QEMU virt machine"));
        assert!(guest.virtual_machine);

        let server = Processor::read(&Host::rooted(test_data("host/two-sockets")));
        assert_eq!(server.id.as_deref(), Some("GenuineIntel 6/106/6"));
        assert!(!server.virtual_machine, "a real machine of a maker that also rents virtual ones");
        assert_eq!(server.hypervisor, None);

        let rented = Processor::read(&Host::rooted(test_data("host/vm-without-pmu")));
        assert!(rented.virtual_machine);
        assert_eq!(rented.hypervisor.as_deref(), Some("Amazon EC2 t3.micro"));
    }
}
