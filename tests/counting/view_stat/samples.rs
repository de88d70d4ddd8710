//! The counts that the tests show in every format, and helpers to get at the output.

use std::io;

use pmc_analysis::profile::counts::CountPart;
use pmc_analysis::profile::counts::{
    Aggregation, CpuTime, EventRole, MissingValueReason, PlaceLabel, RunTime, StatCounts, StatEvent, StatRow,
    StatValue,
};
use pmc_analysis::profile::metrics::formula::Formula;
use pmc_analysis::profile::metrics::library::{Binder, MetricLibrary, definition};
use pmc_analysis::profile::metrics::literals::MetricEnvironment;
use pmc_analysis::profile::metrics::named::NAMED;
use pmc_text::units::Count;
use pmc_view::stat::{StatStyle, StatSubject};

/// Returns one of pmc's own metrics by name, or one written as `NAME=EXPRESSION`.
pub(crate) fn formula(text: &str) -> pmc_sys::error::Result<Formula> {
    let written = text.contains('=').then(|| definition(text)).transpose()?;
    let library = MetricLibrary::new(NAMED.iter().copied().chain(written));
    let name = written.map_or(text, |written| written.name);
    let wanted = library.named(name).last().expect("a metric of this name");
    Binder::new(&library, &MetricEnvironment::UNKNOWN).formula(wanted)
}

pub(crate) fn event(name: &str, role: EventRole) -> StatEvent {
    StatEvent {
        name: name.into(),
        role: Some(role),
        level: name.split_once(':').map(|(_, l)| l.to_owned()).unwrap_or_default(),
        scale: 1.0,
        unit: String::new(),
        snapshot: false,
        group: 0,
        cgroup: None,
    }
}

/// Returns a clock: counted in nanoseconds, shown in milliseconds.
pub(crate) fn clock(name: &str, role: EventRole) -> StatEvent {
    StatEvent { scale: 1e-6, unit: "msec".into(), ..event(name, role) }
}

pub(crate) fn counted(value: u64, ns: u64) -> StatValue {
    StatValue::Counted { count: Count { value, enabled_ns: ns, running_ns: ns }, counters: 1, runs: vec![] }
}

pub(crate) fn shared(value: u64, enabled_ns: u64, running_ns: u64) -> StatValue {
    StatValue::Counted { count: Count { value, enabled_ns, running_ns }, counters: 1, runs: vec![] }
}

pub(crate) fn unsupported() -> StatValue {
    StatValue::NotSupported(MissingValueReason {
        errno: Some("ENOENT"),
        cause: "this machine shows no hardware counters".into(),
        remedy: "use task-clock, or give the virtual machine a PMU".into(),
    })
}

pub(crate) fn row(place: PlaceLabel, summed: u32, values: Vec<StatValue>) -> StatRow {
    StatRow { place, summed, values }
}

/// perf's counts for `true`.
pub(crate) fn software() -> StatCounts {
    let ns = 638_016;
    let events = vec![
        clock("task-clock", EventRole::TaskClock),
        event("context-switches", EventRole::Other),
        event("page-faults", EventRole::Other),
        clock("cpu-clock", EventRole::CpuClock),
        event("cycles", EventRole::Cycles),
        StatEvent { unit: "ns".into(), ..event("duration_time", EventRole::DurationTime) },
    ];
    let values = vec![
        counted(638_016, ns),
        counted(0, ns),
        counted(49, ns),
        counted(634_500, ns),
        unsupported(),
        counted(1_216_013, 1_216_013),
    ];
    StatCounts {
        events,
        rows: vec![row(PlaceLabel::default(), 1, values)],
        elapsed_ns: 1_216_013,
        cpu_time: Some(CpuTime { user_ns: 1_642_000, system_ns: 0 }),
        ..Default::default()
    }
}

/// A machine with counters and more events than fit: two groups, the second shared.
pub(crate) fn hardware() -> StatCounts {
    let ns = 1_000_000_000;
    let mut events = vec![
        clock("task-clock", EventRole::TaskClock),
        event("cycles", EventRole::Cycles),
        event("instructions", EventRole::Instructions),
        event("stalled-cycles-frontend", EventRole::StalledFrontend),
        event("branches", EventRole::Branches),
        event("branch-misses", EventRole::BranchMisses),
        event("cache-references", EventRole::CacheReferences),
        event("cache-misses", EventRole::CacheMisses),
        StatEvent {
            scale: 2.328_306_436_538_696_3e-10,
            unit: "Joules".into(),
            ..event("power/energy-pkg/", EventRole::Energy)
        },
    ];
    for (group, event) in events.iter_mut().enumerate() {
        event.group = [0, 1, 1, 2, 3, 3, 4, 5, 6][group];
    }
    let values = vec![
        counted(ns, ns),
        counted(3_000_000_000, ns),
        counted(4_500_000_000, ns),
        shared(600_000_000, ns, ns / 2),
        shared(200_000_000, ns, ns / 2),
        shared(25_000_000, ns, ns / 2),
        shared(1_000_000, ns, ns / 4),
        shared(123_450, ns, ns / 3),
        counted(42_949_672_960, ns),
    ];
    StatCounts {
        events,
        rows: vec![row(PlaceLabel::default(), 1, values)],
        elapsed_ns: 1_250_000_000,
        cpu_time: Some(CpuTime { user_ns: 900_000_000, system_ns: 100_000_000 }),
        ..Default::default()
    }
}

/// Five runs, the fourth disturbed.
pub(crate) fn repeated() -> StatCounts {
    let clocks = [620_000.0, 630_000.0, 625_000.0, 2_100_000.0, 628_000.0];
    let faults = [49.0, 49.0, 50.0, 49.0, 49.0];
    let elapsed = [1_130_000, 1_120_000, 1_125_000, 4_000_000, 1_128_000];
    let runs = |values: &[f64]| StatValue::Counted {
        count: Count {
            value: values.iter().sum::<f64>() as u64,
            enabled_ns: 4_603_000,
            running_ns: 4_603_000,
        },
        counters: 1,
        runs: values.to_vec(),
    };
    StatCounts {
        events: vec![
            clock("task-clock", EventRole::TaskClock),
            event("page-faults", EventRole::Other),
            event("cycles", EventRole::Cycles),
        ],
        rows: vec![row(PlaceLabel::default(), 1, vec![runs(&clocks), runs(&faults), unsupported()])],
        elapsed_ns: 1_700_600,
        runs: elapsed.iter().map(|&elapsed_ns| RunTime { elapsed_ns, cpu_time: None }).collect(),
        ..Default::default()
    }
}

/// Two places of the same kind with a clock and faults. The second place has no faults.
pub(crate) fn placed(aggregation: Aggregation, timestamp_ns: Option<u64>) -> StatCounts {
    let place = |n: u32| match aggregation {
        Aggregation::Global => PlaceLabel::default(),
        Aggregation::Cpu => PlaceLabel { cpu: Some(n), ..Default::default() },
        Aggregation::Core => {
            PlaceLabel { socket: Some(0), die: Some(0), core: Some(n), ..Default::default() }
        }
        Aggregation::Cluster => {
            PlaceLabel { socket: Some(0), die: Some(0), cluster: Some(n), ..Default::default() }
        }
        Aggregation::Cache(_) => {
            PlaceLabel { socket: Some(0), die: Some(0), cache: Some((3, n)), ..Default::default() }
        }
        Aggregation::Die => PlaceLabel { socket: Some(0), die: Some(n), ..Default::default() },
        Aggregation::Socket => PlaceLabel { socket: Some(n), ..Default::default() },
        Aggregation::Node => PlaceLabel { node: Some(n), ..Default::default() },
        Aggregation::Children | Aggregation::Levels => {
            let part = if n == 0 { CountPart::Own } else { CountPart::Sum };
            PlaceLabel { part: Some(part), ..Default::default() }
        }
        Aggregation::Thread => {
            PlaceLabel { thread: Some(("ba\u{1b}sh".into(), 4910 + n)), ..Default::default() }
        }
    };
    let ns = 51_960_682;
    StatCounts {
        events: vec![
            clock("task-clock", EventRole::TaskClock),
            event("page-faults", EventRole::Other),
            event("cycles", EventRole::Cycles),
        ],
        rows: vec![
            row(place(0), 1, vec![counted(ns, ns), counted(64, ns), unsupported()]),
            row(place(1), 1, vec![counted(ns, ns), StatValue::Absent, unsupported()]),
        ],
        aggregation,
        timestamp_ns,
        elapsed_ns: 51_964_010,
        ..Default::default()
    }
}

pub(crate) fn written(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn uncoloured(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

pub(crate) fn plain() -> StatStyle {
    StatStyle::default()
}

pub(crate) fn command() -> StatSubject {
    StatSubject::Command(vec!["true".into()])
}

pub(crate) const PLACES: [Aggregation; 6] = [
    Aggregation::Cpu,
    Aggregation::Core,
    Aggregation::Die,
    Aggregation::Socket,
    Aggregation::Node,
    Aggregation::Thread,
];
