//! The feature sections of a recording: the machine, the command line, the events, the build-ids.
//!
//! Receives the [`Host`] and the tally of the records; returns [`Features`]. Information that is cheap to
//! collect is gathered at the start, and also written to streams. Everything else is added at the end of a
//! file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::recording::plan::BuildIdChoice;
use pmc_perfdata::perfdata::feature::{
    BuildIdEntry, BuildIds, ClockData, CpuCount, CpuTopology, EventDesc, GroupDesc, NumaNode, PmuCaps,
    PmuMapping, RawSection, SampleTime,
};
use pmc_perfdata::perfdata::tally::HitFile;
use pmc_perfdata::perfdata::{Features, RecordTally, RecordedEvent};
use pmc_symbols::symbol::build_id_cache::KERNEL;
use pmc_symbols::symbol::{BuildId, BuildIdCache, SymbolModule, SymbolOptions, identify};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::cpu::{Processor, Topology, recorded_id};
use pmc_sys::host::pmu::Pmu;
use pmc_sys::sys::clock::{self, ClockPair};
use pmc_sys::sys::deleted_file;
use pmc_sys::sys::sample_clock::SampleClock;

/// Returns the features known at the start of any recording. `groups` holds the event indices of each group.
pub(crate) fn of_machine(host: &Host, events: &[RecordedEvent], groups: &[Vec<usize>]) -> Features {
    let processor = Processor::read(host);
    let mut features = Features {
        hostname: host.text("/proc/sys/kernel/hostname"),
        os_release: host.text("/proc/sys/kernel/osrelease"),
        version: Some(concat!("pmc ", env!("CARGO_PKG_VERSION")).to_owned()),
        arch: Some(std::env::consts::ARCH.to_owned()),
        nr_cpus: Some(cpu_count(host)),
        cpu_desc: processor.model,
        cpuid: recorded_id(host),
        total_mem_kib: memory_kib(host, "/proc/meminfo", "MemTotal:"),
        cmdline: Some(std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()),
        event_desc: Some(EventDesc(
            events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone())).collect(),
        )),
        cpu_topology: Some(topology(host)),
        numa_topology: Some(nodes(host)),
        pmu_mappings: Some(pmus(host)),
        cpu_pmu_caps: host.pmu(CPU).map(|pmu| capabilities(&pmu)).filter(|caps| !caps.is_empty()),
        pmu_caps: other_capabilities(host),
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

/// Name of the PMU whose capabilities have a separate section.
const CPU: &str = "cpu";

/// Returns the capabilities of a PMU, for example its number of branch records.
fn capabilities(pmu: &Pmu) -> Vec<(String, String)> {
    let names = pmu.capabilities().into_iter();
    names.filter_map(|name| pmu.capability(&name).map(|value| (name, value))).collect()
}

/// Returns the capabilities of all other PMUs, including those of hybrid CPUs.
fn other_capabilities(host: &Host) -> Option<Vec<PmuCaps>> {
    let names = host.pmu_names().into_iter().filter(|name| name != CPU);
    let of = |name: String| host.pmu(&name).map(|pmu| PmuCaps { caps: capabilities(&pmu), name });
    let all: Vec<PmuCaps> = names.filter_map(of).filter(|pmu| !pmu.caps.is_empty()).collect();
    (!all.is_empty()).then_some(all)
}

/// Returns the features known at the start of a recording of samples.
pub fn at_the_start(host: &Host, groups: &[Vec<usize>], events: &[RecordedEvent]) -> Features {
    let mut features = of_machine(host, events, groups);
    if events.iter().any(|event| event.attr.branch_sample_type() != 0) {
        features.branch_stack = Some(RawSection::default());
    }
    let names: Vec<String> = events.iter().map(RecordedEvent::name).collect();
    let tracepoints: Vec<(&str, u64)> = names
        .iter()
        .zip(events)
        .filter(|(_, event)| event.attr.kind() == kind::TRACEPOINT)
        .map(|(name, event)| (name.as_str(), event.attr.config()))
        .collect();
    if !tracepoints.is_empty() {
        features.tracing_data = host.tracing_data(&tracepoints).map(RawSection);
    }
    features
}

/// The clock of a recording's timestamps, which is read at the start of each file.
#[derive(Debug)]
pub(crate) enum RecordingClock {
    /// The user selected the clock with this number.
    Selected(i32),
    /// The kernel's default clock for samples.
    Default(SampleClock),
    /// The events have no timestamps, or this user may not read the default clock.
    Unknown,
}

impl RecordingClock {
    /// Opens the clock of these events. `selected` is the number of the clock that the user selected.
    pub(crate) fn open(selected: Option<i32>, events: &[RecordedEvent]) -> Self {
        let has_times = |event: &RecordedEvent| event.attr.sample_type() & sample_type::TIME != 0;
        match selected {
            Some(number) => Self::Selected(number),
            None if !events.iter().any(has_times) => Self::Unknown,
            None => SampleClock::open().map_or(Self::Unknown, Self::Default),
        }
    }

    /// Stores how the clock relates to the wall clock now. Keeps the previous relation if this fails.
    pub(crate) fn describe(&mut self, features: &mut Features) {
        let (clockid, now) = match self {
            Self::Selected(number) => {
                features.clockid_resolution_ns = clock::read(*number).map(|(_, resolution)| resolution);
                (*number as u32, ClockPair::read(*number))
            }
            Self::Default(clock) => (ClockData::DEFAULT_CLOCK, clock.read()),
            Self::Unknown => return,
        };
        let Some(ClockPair { clock_ns, wall_ns, uncertainty_ns }) = now else { return };
        features.clock_data = Some(ClockData {
            version: 1,
            clockid,
            wall_clock_ns: wall_ns,
            clockid_time_ns: clock_ns,
            uncertainty_ns: Some(uncertainty_ns),
        });
    }
}

/// Adds the features that are derived from the records.
pub(crate) fn at_the_end(features: &mut Features, tally: &RecordTally, files: &[FileBuildId]) {
    features.sample_time = tally.times.map(|(first, last)| SampleTime { first: first.ns(), last: last.ns() });
    let rows = build_ids(files);
    features.build_ids = (!rows.is_empty()).then_some(BuildIds(rows));
}

/// A file that the recording refers to, with its build-id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileBuildId {
    pub(crate) file: HitFile,
    pub(crate) id: BuildId,
}

/// Build-ids of the files read so far; each file is read only once. The key consists of the file's name and a
/// flag for kernel files.
pub(crate) type KnownIds = FxHashMap<(bool, Vec<u8>), Option<BuildId>>;

/// Returns the files seen so far that are wanted and have a build-id.
pub(crate) fn identified(
    tally: &RecordTally,
    wanted: BuildIdChoice,
    known: &mut KnownIds,
) -> Vec<FileBuildId> {
    if wanted == BuildIdChoice::None {
        return Vec::new();
    }
    // The files that each process maps although another file may have their path by now.
    let mut deleted: FxHashMap<i32, HashSet<PathBuf>> = FxHashMap::default();
    let mut find = |file: &HitFile| {
        let path = Path::new(OsStr::from_bytes(&file.name));
        if deleted.entry(file.pid).or_insert_with(|| deleted_file::paths(file.pid)).contains(path) {
            return identify::of_open(&deleted_file::open(path, file.pid)?);
        }
        identify::build_id(&file.name, file.is_kernel, file.pid)
    };
    let files = tally.files(wanted == BuildIdChoice::All).into_iter().filter_map(|mut file| {
        let id = match &file.build_id {
            Some(id) => BuildId::new(id),
            None => *known.entry((file.is_kernel, file.name.clone())).or_insert_with(|| find(&file)),
        }?;
        // The name of the kernel's mapping ends with a symbol name.
        if file.name.starts_with(KERNEL.as_bytes()) {
            file.name.truncate(KERNEL.len());
        }
        Some(FileBuildId { file, id })
    });
    let mut files: Vec<FileBuildId> = files.collect();
    files.dedup_by(|a, b| a.file.name == b.file.name && a.id == b.id);
    files
}

/// Returns the rows of the build-id section for these files.
pub(crate) fn build_ids(files: &[FileBuildId]) -> Vec<BuildIdEntry> {
    files.iter().map(|FileBuildId { file, id }| file.entry(id.bytes().to_vec())).collect()
}

/// Adds the files to the build-id cache, where perf also finds them.
///
/// # Errors
/// Fails if there is no cache directory, or if a file cannot be added.
pub fn keep(files: &[FileBuildId]) -> Result<()> {
    let cache = BuildIdCache::usual()
        .ok_or_else(|| Error::new("no cache directory: HOME is not set, or belongs to another user"))?;
    let options = SymbolOptions::from_environment();
    for FileBuildId { file, id } in files {
        let path = Path::new(OsStr::from_bytes(&file.name));
        let pid = u32::try_from(file.pid).ok();
        cache.keep(&SymbolModule { build_id: Some(*id), pid, ..SymbolModule::of_name(path) }, &options)?;
    }
    Ok(())
}

fn cpu_count(host: &Host) -> CpuCount {
    let online = host.online_cpus().len() as u32;
    let possible =
        host.text("/sys/devices/system/cpu/present").and_then(|t| t.parse::<pmc_sys::host::CpuList>().ok());
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
        cpus: topology.iter().map(|(_, location)| (location.core, location.socket)).collect(),
        die_siblings: distinct("die_cpus_list", "package_cpus_list"),
        dies: topology.iter().map(|(_, location)| location.die).collect(),
    }
}

fn nodes(host: &Host) -> Vec<NumaNode> {
    let online: pmc_sys::host::CpuList =
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;

    #[test]
    fn pmu_capabilities_are_recorded() {
        let host = |name: &str| Host::rooted(test_data(&format!("sysfs/{name}")));
        let cpu = host("amd-zen").pmu(CPU).expect("it has one");
        assert!(capabilities(&cpu).iter().any(|(name, _)| name == "max_precise"));
        let others = other_capabilities(&host("intel-hybrid")).expect("there are some");
        let core = others.iter().find(|pmu| pmu.name == "cpu_core").expect("it is among them");
        assert!(core.caps.contains(&("branches".to_owned(), "32".to_owned())), "{core:?}");
        assert_eq!(other_capabilities(&host("virtual")), None);
    }
}
