//! The feature sections of a recording: the machine, the command line, the events, the build-ids.
//!
//! Receives the [`Host`] and what was recorded; hands on [`Features`]. What costs nothing to know is known at
//! the start (and written into streams); the rest is added when a file ends.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::abi::attr::kind;
use crate::counter::rings::Rings;
use crate::host::Host;
use crate::host::cpu::{Processor, Topology};
use crate::perfdata::feature::{
    BuildIdEntry, BuildIds, ClockData, CpuCount, CpuTopology, EventDesc, GroupDesc, NumaNode, PmuMapping,
    Raw, SampleTime,
};
use crate::perfdata::{Features, RecordTally, RecordedEvent};
use crate::recording::plan::{BuildIdChoice, SamplePlan};
use crate::recording::synthesize::is_path;
use crate::symbol::{BuildId, Image, elf, kernel};
use crate::sys::clock;

/// What is known at the start of any recording. `groups` holds the indices of each group's events.
pub(crate) fn of_machine(host: &Host, events: &[RecordedEvent], groups: &[Vec<usize>]) -> Features {
    let processor = Processor::read(host);
    let mut features = Features {
        hostname: host.text("/proc/sys/kernel/hostname"),
        os_release: host.text("/proc/sys/kernel/osrelease"),
        version: Some(concat!("pmc ", env!("CARGO_PKG_VERSION")).to_owned()),
        arch: Some(std::env::consts::ARCH.to_owned()),
        nr_cpus: Some(cpu_count(host)),
        cpu_desc: processor.model,
        cpuid: processor.id,
        total_mem_kib: memory_kib(host, "/proc/meminfo", "MemTotal:"),
        cmdline: Some(std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()),
        event_desc: Some(EventDesc(
            events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone())).collect(),
        )),
        cpu_topology: Some(topology(host)),
        numa_topology: Some(nodes(host)),
        pmu_mappings: Some(pmus(host)),
        ..Features::default()
    };
    let groups: Vec<GroupDesc> = groups
        .iter()
        .filter(|members| members.len() > 1)
        .map(|members| GroupDesc {
            name: "{anon_group}".to_owned(),
            leader: members[0] as u32,
            members: members.len() as u32,
        })
        .collect();
    features.groups = (!groups.is_empty()).then_some(groups);
    features
}

/// What is known at the start of a recording of samples.
pub(crate) fn at_the_start(
    host: &Host,
    plan: &SamplePlan,
    rings: &Rings,
    events: &[RecordedEvent],
) -> Features {
    let mut features = of_machine(host, events, rings.groups());
    if events.iter().any(|event| event.attr.branch_sample_type() != 0) {
        features.branch_stack = Some(Raw::default());
    }
    if let Some(clockid) = plan.options.clock
        && let Some((now, resolution)) = clock::read(clockid)
    {
        features.clockid_resolution_ns = Some(resolution);
        features.clock_data = Some(ClockData {
            version: 1,
            clockid: clockid as u32,
            wall_clock_ns: clock::read(0).map_or(0, |(wall, _)| wall),
            clockid_time_ns: now,
        });
    }
    let names: Vec<String> = events.iter().map(RecordedEvent::name).collect();
    let tracepoints: Vec<(&str, u64)> = names
        .iter()
        .zip(events)
        .filter(|(_, event)| event.attr.kind() == kind::TRACEPOINT)
        .map(|(name, event)| (name.as_str(), event.attr.config()))
        .collect();
    if !tracepoints.is_empty() {
        features.tracing_data = host.tracing_data(&tracepoints).map(Raw);
    }
    features
}

/// What only the records tell.
pub(crate) fn at_the_end(
    features: &mut Features,
    tally: &RecordTally,
    wanted: BuildIdChoice,
    known: &mut KnownIds,
) {
    features.sample_time = tally.times.map(|(first, last)| SampleTime { first: first.ns(), last: last.ns() });
    let rows = build_ids(tally, wanted, known);
    features.build_ids = (!rows.is_empty()).then_some(BuildIds(rows));
}

/// What was found out by looking into files, by whether it is the kernel's and its name: each is looked into
/// once.
pub(crate) type KnownIds = FxHashMap<(bool, Vec<u8>), Option<BuildId>>;

/// The build-ids of the files that are wanted, as far as they were seen until now.
pub(crate) fn build_ids(
    tally: &RecordTally,
    wanted: BuildIdChoice,
    known: &mut KnownIds,
) -> Vec<BuildIdEntry> {
    if wanted == BuildIdChoice::None {
        return Vec::new();
    }
    let rows = tally.files(wanted == BuildIdChoice::All).into_iter().filter_map(|file| {
        let id = match &file.build_id {
            Some(id) => BuildId::new(id),
            None => *known
                .entry((file.is_kernel, file.name.clone()))
                .or_insert_with(|| read_build_id(&file.name, file.is_kernel, file.pid)),
        }?;
        let name = match file.name.strip_prefix(b"[kernel.kallsyms]") {
            Some(_) => b"[kernel.kallsyms]".to_vec(),
            None => file.name.clone(),
        };
        Some(BuildIdEntry {
            pid: -1,
            misc: if file.is_kernel { 1 } else { 2 },
            id: id.bytes().to_vec(),
            name,
        })
    });
    let mut rows: Vec<BuildIdEntry> = rows.collect();
    rows.dedup_by(|a, b| a.name == b.name && a.id == b.id);
    rows
}

fn read_build_id(name: &[u8], is_kernel: bool, pid: i32) -> Option<BuildId> {
    match is_kernel {
        true if name.starts_with(b"[kernel.kallsyms]") => kernel::running_build_id(),
        true => module_build_id(name),
        false if is_path(name) => file_build_id(name, pid),
        false => None,
    }
}

/// A file as its process sees it (another mount namespace has other files), or, when that is gone, as we see
/// it.
fn file_build_id(name: &[u8], pid: i32) -> Option<BuildId> {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let theirs = Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").ok()?);
    let image = Image::open(&theirs).or_else(|_| Image::open(path)).ok()?;
    elf::build_id(&image.elf().ok()?)
}

/// `/sys/module/NAME/notes` holds a loaded module's notes, whatever its file is packed with.
fn module_build_id(name: &[u8]) -> Option<BuildId> {
    let text = String::from_utf8_lossy(name);
    let module = text.strip_prefix('[').and_then(|name| name.strip_suffix(']')).map(str::to_owned);
    let module = module.or_else(|| kernel::module_name(Path::new(&*text)))?;
    if module.contains('/') || module.starts_with('.') {
        return None;
    }
    let notes = std::fs::read(format!("/sys/module/{module}/notes/.note.gnu.build-id")).ok()?;
    BuildId::in_notes(&notes)
}

fn cpu_count(host: &Host) -> CpuCount {
    let online = host.online_cpus().len() as u32;
    let possible =
        host.text("/sys/devices/system/cpu/present").and_then(|t| t.parse::<crate::host::CpuList>().ok());
    CpuCount { available: possible.map_or(online, |cpus| cpus.len() as u32), online }
}

fn memory_kib(host: &Host, file: &str, field: &str) -> Option<u64> {
    let text = host.text(file)?;
    let line = text.lines().find(|line| line.contains(field))?;
    line.split(field).nth(1)?.split_whitespace().next()?.parse().ok()
}

fn topology(host: &Host) -> CpuTopology {
    let topology = Topology::read(host);
    let list = |cpu: u32, name: &str| host.text(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}"));
    let distinct = |name: &str, otherwise: &str| {
        let mut all: Vec<String> = Vec::new();
        for cpu in topology.cpus().iter() {
            if let Some(text) =
                list(cpu, name).or_else(|| list(cpu, otherwise)).filter(|text| !all.contains(text))
            {
                all.push(text);
            }
        }
        all
    };
    CpuTopology {
        core_siblings: distinct("package_cpus_list", "core_siblings_list"),
        thread_siblings: distinct("core_cpus_list", "thread_siblings_list"),
        cpus: topology.iter().map(|(_, seat)| (seat.core, seat.socket)).collect(),
        die_siblings: distinct("die_cpus_list", "package_cpus_list"),
        dies: topology.iter().map(|(_, seat)| seat.die).collect(),
    }
}

fn nodes(host: &Host) -> Vec<NumaNode> {
    let online: crate::host::CpuList =
        host.text("/sys/devices/system/node/online").and_then(|t| t.parse().ok()).unwrap_or_default();
    let node = |node: u32| {
        let folder = format!("/sys/devices/system/node/node{node}");
        let meminfo = format!("{folder}/meminfo");
        NumaNode {
            node,
            total_kib: memory_kib(host, &meminfo, "MemTotal:").unwrap_or(0),
            free_kib: memory_kib(host, &meminfo, "MemFree:").unwrap_or(0),
            cpus: host.text(format!("{folder}/cpulist")).unwrap_or_default(),
        }
    };
    online.iter().map(node).collect()
}

fn pmus(host: &Host) -> Vec<PmuMapping> {
    let mapping = |name: String| {
        let kind = host.number(format!("/sys/bus/event_source/devices/{name}/type"))?;
        Some(PmuMapping { kind, name })
    };
    host.pmu_names().into_iter().filter_map(mapping).collect()
}
