//! Builds tables from counters: selects the events to show, and assigns the counters to them.
//!
//! Receives the opened counter set and its readings, and returns [`StatCounts`]. This module decides which
//! counts belong together; `profile::tally` adds them up.

use pmc_sys::error::Advice;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use super::parts;
use pmc_analysis::profile::counts::CountPart;
use pmc_analysis::profile::tally::{CountJoin, Tally};
use pmc_analysis::profile::{
    self,
    counts::{Aggregation, CpuTime, EventRole, MissingValueReason, PlaceLabel, StatCounts, StatEvent},
};
use pmc_events::counter::counter_set::{CounterReading, CounterSet};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::refusal::{self, Explanation, Refusal};
use pmc_events::counter::reservation::LockFile;
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::{EventSource, EventSpec, Tool};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::host::Host;
use pmc_sys::host::cpu::{self, Topology};
use pmc_sys::host::process::ThreadInfo;
use pmc_text::units::Count;

/// Information about the machine, read on demand.
pub(super) struct StatMachine<'a> {
    pub(super) host: &'a Host,
    facts: OnceCell<MachineFacts>,
    topology: OnceCell<Topology>,
    first_cpu: OnceCell<Option<u32>>,
    /// The level and index of each CPU's cache, for tables with one row per cache.
    caches: OnceCell<BTreeMap<u32, (u32, u32)>>,
    /// Whether the counts come from a recording. If so, the state of this machine cannot explain missing
    /// values.
    is_elsewhere: bool,
}

impl<'a> StatMachine<'a> {
    pub(super) fn new(host: &'a Host) -> Self {
        Self {
            host,
            facts: OnceCell::new(),
            topology: OnceCell::new(),
            first_cpu: OnceCell::new(),
            caches: OnceCell::new(),
            is_elsewhere: false,
        }
    }

    /// Describes the recorded machine, as far as the recording contains this information.
    pub(super) fn recorded(host: &'a Host, topology: Topology, first_cpu: Option<u32>) -> Self {
        let (topology, first_cpu) = (topology.into(), first_cpu.into());
        Self { topology, first_cpu, is_elsewhere: true, ..Self::new(host) }
    }

    pub(super) fn facts(&self) -> &MachineFacts {
        self.facts.get_or_init(|| {
            let mut facts = MachineFacts::own(self.host);
            let others = LockFile::open(&LockFile::default_path(self.host)).and_then(|file| file.others());
            facts.reservation =
                others.ok().and_then(|o| Some(format!("{} reserved the counters", o.first()?)));
            facts
        })
    }

    fn first_cpu(&self) -> Option<u32> {
        *self.first_cpu.get_or_init(|| self.host.online_cpus().first())
    }

    /// Returns a CPU's cache at this level. All calls must request the same level.
    fn cache(&self, cpu: u32, level: Option<u32>) -> Option<(u32, u32)> {
        let all = || {
            let caches = |cpu| Some((cpu, cpu::cache(self.host, cpu, level)?));
            self.host.online_cpus().iter().filter_map(caches).collect()
        };
        self.caches.get_or_init(all).get(&cpu).copied()
    }

    fn topology(&self) -> &Topology {
        self.topology.get_or_init(|| Topology::read(self.host))
    }
}

/// The events of a table, and where their counts come from.
pub(super) struct ShownEvents {
    events: Vec<StatEvent>,
    /// For each event of the set, its column, and how to combine its counts with those of other events in the
    /// column.
    columns: Vec<(usize, CountJoin)>,
    /// For each event of the set, why the kernel refused it, if it did.
    refused: Vec<Option<MissingValueReason>>,
    /// For each event of the set, whether it always counts 0.
    blind: Vec<bool>,
    /// For each event of the set, whether it may have to wait for a hardware counter. If so, its count is
    /// scaled.
    waits: Vec<bool>,
    /// The event of each column, used to explain why it never ran.
    specs: Vec<EventSpec>,
    /// Values that pmc measures itself: event, column and kind.
    tools: Vec<(usize, usize, Tool)>,
    aggregation: Aggregation,
    /// For each event of the set, the part that it counts, if the table has a row for each part.
    parts: Vec<Option<CountPart>>,
    /// Whether to scale the counts of multiplexed events to the full time.
    scale: bool,
}

/// The time span that a table covers.
pub(super) struct TablePeriod<'a> {
    pub(super) threads: &'a [ThreadInfo],
    /// End of the interval; `None` for a whole run.
    pub(super) timestamp_ns: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) cpu_time: Option<CpuTime>,
    /// Nanoseconds during which the counters were yielded to a process that had reserved them.
    pub(super) yielded_ns: u64,
    /// Whether counting was disabled the whole time.
    pub(super) off: bool,
}

/// An event to show in a table, counted live or in a recording.
pub(super) struct EventColumn<'a> {
    pub(super) spec: Cow<'a, EventSpec>,
    /// Events with the same number were counted over exactly the same time.
    pub(super) group: usize,
    pub(super) cgroup: Option<&'a str>,
    /// Why the kernel refused the event, if it did.
    pub(super) refused: Option<MissingValueReason>,
    /// Whether the kernel was excluded.
    pub(super) user_only: bool,
    /// Whether the event counts in kernel mode.
    pub(super) sees_kernel: bool,
}

impl EventColumn<'_> {
    /// Returns perf's name for the event, which shows whether the kernel is excluded.
    pub(super) fn name(&self) -> String {
        let name = &self.spec.name;
        match self.user_only {
            false => name.clone(),
            true if name.contains(':') || name.ends_with('/') => format!("{name}u"),
            true => format!("{name}:u"),
        }
    }

    /// Returns the factor that converts the count to the displayed unit, and that unit.
    pub(super) fn quantity(&self) -> (f64, &str) {
        quantity(&self.spec)
    }
}

/// Returns the factor that converts an event's count to the displayed unit, and that unit.
pub(super) fn quantity(spec: &EventSpec) -> (f64, &str) {
    match (spec.unit.as_str(), role(spec).shown_in()) {
        ("", Some(clock)) => clock,
        (unit, _) => (spec.scale, unit),
    }
}

/// Returns the events of an opened set, in order. `cgroups` contains each event's cgroup.
pub(super) fn columns<'a>(
    set: &'a CounterSet,
    cgroups: &'a [Option<String>],
    machine: &StatMachine<'_>,
) -> Vec<EventColumn<'a>> {
    let explain = |refusal: &Refusal| reason(refusal.clone().isolate().explain(machine.facts()));
    let events = set.specs().zip(set.refusals()).zip(set.user_only()).zip(set.sees_kernel());
    events
        .zip(set.group_of_events())
        .enumerate()
        .map(|(index, ((((spec, refusal), user_only), sees_kernel), group))| EventColumn {
            spec: Cow::Borrowed(spec),
            group,
            cgroup: cgroups.get(index).and_then(|c| c.as_deref()),
            refused: refusal.map(explain),
            user_only,
            sees_kernel,
        })
        .collect()
}

impl ShownEvents {
    /// Assigns the events to columns.
    pub(super) fn new(
        events: &[EventColumn<'_>],
        aggregation: Aggregation,
        no_merge: bool,
        scale: bool,
    ) -> Self {
        let mut shown = Self {
            events: Vec::new(),
            columns: Vec::new(),
            refused: events.iter().map(|event| event.refused.clone()).collect(),
            blind: events
                .iter()
                .map(|event| !event.sees_kernel && event.spec.is_of_kernel() && !aggregation.is_parted())
                .collect(),
            waits: wait_for_counters(events),
            specs: Vec::new(),
            tools: Vec::new(),
            aggregation,
            parts: events.iter().map(|event| parts::part(&event.spec, aggregation)).collect(),
            scale,
        };
        let mut merged: Vec<(u32, Option<&str>, usize)> = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let EventColumn { spec, group, cgroup, user_only, .. } = event;
            let join = if spec.takes_turns() { CountJoin::Turns } else { CountJoin::Parts };
            let known = spec.merge.filter(|_| !no_merge).map(|number| (number, *cgroup));
            if let Some((.., column)) = merged.iter().find(|(n, c, _)| known == Some((*n, *c))) {
                shown.columns.push((*column, join));
                continue;
            }
            let column = shown.events.len();
            merged.extend(known.map(|(number, cgroup)| (number, cgroup, column)));
            shown.columns.push((column, join));
            if let EventSource::Tool(tool) = spec.source {
                shown.tools.push((index, column, tool));
            }
            let (scale, unit) = event.quantity();
            shown.events.push(StatEvent {
                name: event.name(),
                role: Some(role(spec)),
                level: if aggregation == Aggregation::Levels {
                    String::new()
                } else {
                    level(spec, *user_only)
                },
                scale,
                unit: unit.to_owned(),
                snapshot: spec.snapshot,
                group: *group,
                cgroup: cgroup.map(str::to_owned),
            });
            shown.specs.push(spec.clone().into_owned());
        }
        shown
    }

    /// Returns the table of these readings.
    pub(super) fn counts(
        &self,
        readings: &[CounterReading],
        span: &TablePeriod<'_>,
        machine: &StatMachine<'_>,
    ) -> StatCounts {
        let mut tally = Tally::new(self.events.len());
        for reading in readings {
            let Some(&(column, join)) = self.columns.get(reading.event) else { continue };
            let place = self.place(reading.event, reading.slot, span, machine);
            if let Some(reason) = &self.refused[reading.event] {
                tally.refuse(place, spot_number(reading.slot), column, reason);
                continue;
            }
            let seen = reading.count.filter(|_| !self.blind[reading.event]);
            // If a process only waited for its children, its own count was never enabled, but is known to be
            // zero.
            let has_parts = self.aggregation == Aggregation::Children && !span.off && span.yielded_ns == 0;
            let seen = seen.map(|count| match count.enabled_ns {
                0 if has_parts => Count { enabled_ns: 1, running_ns: 1, ..count },
                _ => count,
            });
            let count = seen.map(|count| match self.scale && self.waits[reading.event] {
                true => count,
                false => Count { enabled_ns: count.running_ns, ..count },
            });
            tally.add(place, spot_number(reading.slot), column, count, join);
        }
        let has_row = self.aggregation == Aggregation::Global || !self.tools.is_empty();
        if has_row && !self.aggregation.is_parted() {
            tally.row(self.place(0, self.tool_slot(machine), span, machine));
        }
        for (event, column, value) in self.measured(span) {
            // If another recorder measured the value, it is already among the readings.
            if readings.iter().any(|reading| reading.event == event) {
                continue;
            }
            // A clock's count is also its running time. A time of 0 is a valid count.
            let count =
                value.map(|value| Count { value, enabled_ns: value.max(1), running_ns: value.max(1) });
            let slot = self.tool_slot(machine);
            tally.add(
                self.place(event, slot, span, machine),
                spot_number(slot),
                column,
                count,
                CountJoin::Parts,
            );
        }
        let mut rows = tally.rows(|column| self.idle(column, span, machine));
        if self.aggregation == Aggregation::Children {
            profile::parts::add_children(&mut rows);
        }
        StatCounts {
            events: self.events.clone(),
            rows,
            aggregation: self.aggregation,
            timestamp_ns: span.timestamp_ns,
            elapsed_ns: span.elapsed_ns,
            yielded_ns: span.yielded_ns,
            cpu_time: span.cpu_time,
            ..StatCounts::default()
        }
    }

    /// Returns the values that pmc measures itself, each with its event and column; `None` if there is no
    /// value.
    pub(super) fn measured(
        &self,
        span: &TablePeriod<'_>,
    ) -> impl Iterator<Item = (usize, usize, Option<u64>)> {
        self.tools.iter().map(|&(event, column, tool)| {
            let value = match tool {
                Tool::DurationTime => Some(span.elapsed_ns),
                Tool::UserTime => span.cpu_time.map(|time| time.user_ns),
                Tool::SystemTime => span.cpu_time.map(|time| time.system_ns),
            };
            (event, column, value)
        })
    }

    /// Returns the row of a reading, according to the selected aggregation.
    fn place(
        &self,
        event: usize,
        slot: TargetSlot,
        span: &TablePeriod<'_>,
        machine: &StatMachine<'_>,
    ) -> PlaceLabel {
        let none = PlaceLabel::default();
        if self.aggregation.is_parted() {
            return PlaceLabel { part: self.parts[event], ..none };
        }
        if self.aggregation == Aggregation::Thread {
            // Show values that do not belong to a thread in the first thread's row.
            let Some(tid) = slot.tid.or(span.threads.first().map(|t| t.tid)) else { return none };
            let comm = span.threads.iter().find(|t| t.tid == tid).map(|t| t.comm.clone()).unwrap_or_default();
            return PlaceLabel { thread: Some((comm, tid)), ..none };
        }
        let Some(cpu) = slot.cpu else { return none };
        if self.aggregation == Aggregation::Cpu {
            return PlaceLabel { cpu: Some(cpu), ..none };
        }
        let Some(location) = machine.topology().location(cpu) else { return none };
        match self.aggregation {
            Aggregation::Core => PlaceLabel {
                socket: Some(location.socket),
                die: Some(location.die),
                core: Some(location.core),
                ..none
            },
            Aggregation::Cluster => PlaceLabel {
                socket: Some(location.socket),
                die: Some(location.die),
                cluster: location.cluster,
                ..none
            },
            Aggregation::Cache(level) => PlaceLabel {
                socket: Some(location.socket),
                die: Some(location.die),
                cache: machine.cache(cpu, level),
                ..none
            },
            Aggregation::Die => PlaceLabel { socket: Some(location.socket), die: Some(location.die), ..none },
            Aggregation::Socket => PlaceLabel { socket: Some(location.socket), ..none },
            Aggregation::Node => PlaceLabel { node: location.node, ..none },
            Aggregation::Global
            | Aggregation::Cpu
            | Aggregation::Thread
            | Aggregation::Children
            | Aggregation::Levels => none,
        }
    }

    /// Returns the slot for values that do not belong to a CPU. They are shown in the first row, but do not
    /// increase that row's number of CPUs.
    fn tool_slot(&self, machine: &StatMachine<'_>) -> TargetSlot {
        let cpu = if self.aggregation == Aggregation::Global { None } else { machine.first_cpu() };
        TargetSlot { tid: None, cpu }
    }

    fn idle(&self, column: usize, span: &TablePeriod<'_>, machine: &StatMachine<'_>) -> MissingValueReason {
        let spec = &self.specs[column];
        if matches!(spec.source, EventSource::Held(_)) {
            return MissingValueReason::new("its holder has ended or has released it", "pmc persist list");
        }
        let Some(attr) = spec.attr() else {
            if machine.is_elsewhere {
                return MissingValueReason::new("the recording does not contain its value", "");
            }
            return MissingValueReason::new("no command to time", "specify a command to run");
        };
        if span.off {
            return MissingValueReason::new(
                "counting was disabled",
                "send the enable command, or use a shorter delay (-D)",
            );
        }
        if span.yielded_ns > 0 && spec.takes_counter() {
            return MissingValueReason::new(
                "another program had reserved the counters",
                "pmc info shows which program holds the reservation",
            );
        }
        if self.columns.iter().zip(&self.blind).any(|((own, _), blind)| *own == column && *blind) {
            return MissingValueReason::new(
                "this event occurs in the kernel, but only user mode is counted",
                "count kernel mode too (omit :u): requires kernel.perf_event_paranoid=1 or CAP_PERFMON",
            );
        }
        if attr.kind() == kind::SOFTWARE || attr.kind() == kind::TRACEPOINT {
            return MissingValueReason::new("nothing ran there while pmc was counting", "");
        }
        if machine.is_elsewhere {
            return MissingValueReason::new("it never got a counter during the recording", "");
        }
        reason(refusal::never_ran(attr, machine.facts()))
    }
}

fn reason(why: Explanation) -> MissingValueReason {
    MissingValueReason {
        errno: why.errno_name(),
        cause: why.cause,
        remedy: Advice::from(why.remedy).to_string(),
    }
}

/// Returns, for each event, whether it may have to wait for a hardware counter. A group of software events
/// never waits: if it was off, its cgroup did not run, so there was nothing to count.
fn wait_for_counters(events: &[EventColumn<'_>]) -> Vec<bool> {
    let is_software = |spec: &EventSpec| match &spec.source {
        EventSource::Kernel(attr) => matches!(attr.kind(), kind::SOFTWARE | kind::TRACEPOINT),
        EventSource::Tool(_) => true,
        // The holder reports events that never wait as running all the time.
        EventSource::Held(_) => false,
    };
    let waits = |event: &EventColumn<'_>| {
        let mut members = events.iter().filter(|other| other.group == event.group);
        members.any(|member| !is_software(&member.spec))
    };
    events.iter().map(waits).collect()
}

/// Returns the letters of the counted privilege levels; empty for all.
fn level(spec: &EventSpec, user_only: bool) -> String {
    let Some(attr) = spec.attr() else { return String::new() };
    let excluded = [Flag::ExcludeUser, Flag::ExcludeKernel].map(|flag| attr.get(flag));
    match excluded {
        [false, false] if !user_only => String::new(),
        [true, false] => "k".into(),
        [true, true] => "h".into(),
        _ => "u".into(),
    }
}

/// Returns the event's role in metrics, which depends on its encoding, not on its name.
fn role(spec: &EventSpec) -> EventRole {
    let attr = match &spec.source {
        EventSource::Tool(Tool::DurationTime) => return EventRole::DurationTime,
        EventSource::Tool(Tool::UserTime) => return EventRole::UserTime,
        EventSource::Tool(Tool::SystemTime) => return EventRole::SystemTime,
        EventSource::Held(_) => return EventRole::Other,
        EventSource::Kernel(attr) => attr,
    };
    let config = attr.config() as u32;
    match attr.kind() {
        kind::HARDWARE => match config {
            0 => EventRole::Cycles,
            1 => EventRole::Instructions,
            2 => EventRole::CacheReferences,
            3 => EventRole::CacheMisses,
            4 => EventRole::Branches,
            5 => EventRole::BranchMisses,
            6 => EventRole::BusCycles,
            7 => EventRole::StalledFrontend,
            8 => EventRole::StalledBackend,
            9 => EventRole::RefCycles,
            _ => EventRole::Other,
        },
        kind::SOFTWARE => match config {
            0 => EventRole::CpuClock,
            1 => EventRole::TaskClock,
            _ => EventRole::Other,
        },
        // cache | read << 8 | result << 16
        kind::HW_CACHE => match config {
            0x0_00_00 => EventRole::L1dLoads,
            0x1_00_00 => EventRole::L1dLoadMisses,
            0x0_00_01 => EventRole::L1iLoads,
            0x1_00_01 => EventRole::L1iLoadMisses,
            0x0_00_02 => EventRole::LlcLoads,
            0x1_00_02 => EventRole::LlcLoadMisses,
            0x0_00_03 => EventRole::DtlbLoads,
            0x1_00_03 => EventRole::DtlbLoadMisses,
            0x0_00_04 => EventRole::ItlbLoads,
            0x1_00_04 => EventRole::ItlbLoadMisses,
            _ => EventRole::Other,
        },
        _ if spec.unit == "Joules" => EventRole::Energy,
        _ => EventRole::Other,
    }
}

fn spot_number(slot: TargetSlot) -> u64 {
    u64::from(slot.tid.unwrap_or_default()) << 32 | u64::from(slot.cpu.map_or(0, |cpu| cpu + 1))
}

/// Returns the differences from earlier readings of the same counters. `now` may include new counters.
pub(super) fn since(now: &[CounterReading], earlier: &[CounterReading]) -> Vec<CounterReading> {
    let before: HashMap<_, _> = earlier.iter().map(|e| ((e.event, e.slot), e.count)).collect();
    let since = |reading: &CounterReading| {
        let before = before.get(&(reading.event, reading.slot)).copied().flatten().unwrap_or_default();
        CounterReading { count: reading.count.map(|count| count.since(before)), ..*reading }
    };
    now.iter().map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;
    use pmc_events::event::{EventGroup, parse};

    #[test]
    fn initial_readings_are_subtracted_per_counter() {
        let reading = |cpu, value| CounterReading {
            event: 0,
            slot: TargetSlot { tid: None, cpu: Some(cpu) },
            count: Some(Count { value, ..Count::default() }),
        };
        let since = since(&[reading(0, 5), reading(1, 7), reading(2, 12)], &[reading(0, 2), reading(2, 10)]);
        let values: Vec<_> = since.iter().map(|reading| reading.count.unwrap().value).collect();
        assert_eq!(values, [3, 7, 2]);
    }

    #[test]
    fn software_events_are_delayed_only_with_hardware() {
        let waits = |text: &str| {
            let groups = parse(text, &Host::live()).unwrap();
            let members = |(group, of): (usize, EventGroup)| {
                of.events.into_iter().map(move |spec| EventColumn {
                    spec: Cow::Owned(spec),
                    group,
                    cgroup: None,
                    refused: None,
                    user_only: false,
                    sees_kernel: true,
                })
            };
            wait_for_counters(&groups.into_iter().enumerate().flat_map(members).collect::<Vec<_>>())
        };
        assert_eq!(waits("cpu-clock,cycles,page-faults"), [false, true, false]);
        assert_eq!(waits("{cycles,task-clock},{cpu-clock,page-faults}"), [true, true, false, false]);
    }

    #[test]
    fn kernel_probes_count_kernel_mode() {
        let zen = Host::rooted(test_data("sysfs/amd-zen"));
        let is_of_kernel = |text: &str| {
            let groups = parse(text, &zen).unwrap();
            groups.iter().flat_map(|group| &group.events).map(EventSpec::is_of_kernel).collect::<Vec<_>>()
        };
        let probes = "kprobe:vfs_read:u,kretprobe:vfs_read:u,uprobe/config=0/u";
        assert_eq!(is_of_kernel(probes), [true, true, false]);
        assert_eq!(is_of_kernel("context-switches:u,page-faults:u"), [true, false]);
    }

    #[test]
    fn tracepoints_count_kernel_mode_except_system_calls() {
        let host = Host::rooted(test_data("sysfs/virtual"));
        let text = "sched:sched_switch:u,page_fault.write,usr,syscalls:sys_enter_read:u";
        let groups = parse(text, &host).unwrap();
        let events = groups.iter().flat_map(|group| &group.events);
        assert_eq!(events.map(EventSpec::is_of_kernel).collect::<Vec<_>>(), [true, true, false]);
    }
}
