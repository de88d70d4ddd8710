//! The counts that the tests show in every format, and helpers to get at the output.

use std::io;

use pmc::profile::counts::Part;
use pmc::profile::counts::{
    Aggregation, Counts, CpuTime, Event, PlaceLabel, Reason, Role, Row, RunTime, Value,
};
use pmc::profile::metrics::formula::Formula;
use pmc::profile::metrics::library::{Binder, Library, definition};
use pmc::profile::metrics::literals::Environment;
use pmc::profile::metrics::named::NAMED;
use pmc::units::Count;
use pmc::view::stat::{StatStyle, Subject};

/// Returns one of pmc's own metrics by name, or one written as `NAME=EXPRESSION`.
pub(crate) fn formula(text: &str) -> pmc::error::Result<Formula> {
    let written = text.contains('=').then(|| definition(text)).transpose()?;
    let library = Library::new(NAMED.iter().copied().chain(written));
    let name = written.map_or(text, |written| written.name);
    let wanted = library.named(name).last().expect("a metric of this name");
    Binder::new(&library, &Environment::UNKNOWN).formula(wanted)
}

pub(crate) fn event(name: &str, role: Role) -> Event {
    Event {
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
pub(crate) fn clock(name: &str, role: Role) -> Event {
    Event { scale: 1e-6, unit: "msec".into(), ..event(name, role) }
}

pub(crate) fn counted(value: u64, ns: u64) -> Value {
    Value::Counted { count: Count { value, enabled_ns: ns, running_ns: ns }, counters: 1, runs: vec![] }
}

pub(crate) fn shared(value: u64, enabled_ns: u64, running_ns: u64) -> Value {
    Value::Counted { count: Count { value, enabled_ns, running_ns }, counters: 1, runs: vec![] }
}

pub(crate) fn unsupported() -> Value {
    Value::NotSupported(Reason {
        errno: Some("ENOENT"),
        cause: "this machine shows no hardware counters".into(),
        remedy: "use task-clock, or give the virtual machine a PMU".into(),
    })
}

pub(crate) fn row(place: PlaceLabel, summed: u32, values: Vec<Value>) -> Row {
    Row { place, summed, values }
}

/// perf's counts for `true`.
pub(crate) fn software() -> Counts {
    let ns = 638_016;
    let events = vec![
        clock("task-clock", Role::TaskClock),
        event("context-switches", Role::Other),
        event("page-faults", Role::Other),
        clock("cpu-clock", Role::CpuClock),
        event("cycles", Role::Cycles),
        Event { unit: "ns".into(), ..event("duration_time", Role::DurationTime) },
    ];
    let values = vec![
        counted(638_016, ns),
        counted(0, ns),
        counted(49, ns),
        counted(634_500, ns),
        unsupported(),
        counted(1_216_013, 1_216_013),
    ];
    Counts {
        events,
        rows: vec![row(PlaceLabel::default(), 1, values)],
        elapsed_ns: 1_216_013,
        cpu_time: Some(CpuTime { user_ns: 1_642_000, system_ns: 0 }),
        ..Default::default()
    }
}

/// A machine with counters and more events than fit: two groups, the second shared.
pub(crate) fn hardware() -> Counts {
    let ns = 1_000_000_000;
    let mut events = vec![
        clock("task-clock", Role::TaskClock),
        event("cycles", Role::Cycles),
        event("instructions", Role::Instructions),
        event("stalled-cycles-frontend", Role::StalledFrontend),
        event("branches", Role::Branches),
        event("branch-misses", Role::BranchMisses),
        event("cache-references", Role::CacheReferences),
        event("cache-misses", Role::CacheMisses),
        Event {
            scale: 2.328_306_436_538_696_3e-10,
            unit: "Joules".into(),
            ..event("power/energy-pkg/", Role::Energy)
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
    Counts {
        events,
        rows: vec![row(PlaceLabel::default(), 1, values)],
        elapsed_ns: 1_250_000_000,
        cpu_time: Some(CpuTime { user_ns: 900_000_000, system_ns: 100_000_000 }),
        ..Default::default()
    }
}

/// Five runs, the fourth disturbed.
pub(crate) fn repeated() -> Counts {
    let clocks = [620_000.0, 630_000.0, 625_000.0, 2_100_000.0, 628_000.0];
    let faults = [49.0, 49.0, 50.0, 49.0, 49.0];
    let elapsed = [1_130_000, 1_120_000, 1_125_000, 4_000_000, 1_128_000];
    let runs = |values: &[f64]| Value::Counted {
        count: Count {
            value: values.iter().sum::<f64>() as u64,
            enabled_ns: 4_603_000,
            running_ns: 4_603_000,
        },
        counters: 1,
        runs: values.to_vec(),
    };
    Counts {
        events: vec![
            clock("task-clock", Role::TaskClock),
            event("page-faults", Role::Other),
            event("cycles", Role::Cycles),
        ],
        rows: vec![row(PlaceLabel::default(), 1, vec![runs(&clocks), runs(&faults), unsupported()])],
        elapsed_ns: 1_700_600,
        runs: elapsed.iter().map(|&elapsed_ns| RunTime { elapsed_ns, cpu_time: None }).collect(),
        ..Default::default()
    }
}

/// Two places of the same kind with a clock and faults. The second place has no faults.
pub(crate) fn placed(aggregation: Aggregation, timestamp_ns: Option<u64>) -> Counts {
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
            let part = if n == 0 { Part::Own } else { Part::Sum };
            PlaceLabel { part: Some(part), ..Default::default() }
        }
        Aggregation::Thread => {
            PlaceLabel { thread: Some(("ba\u{1b}sh".into(), 4910 + n)), ..Default::default() }
        }
    };
    let ns = 51_960_682;
    Counts {
        events: vec![
            clock("task-clock", Role::TaskClock),
            event("page-faults", Role::Other),
            event("cycles", Role::Cycles),
        ],
        rows: vec![
            row(place(0), 1, vec![counted(ns, ns), counted(64, ns), unsupported()]),
            row(place(1), 1, vec![counted(ns, ns), Value::Absent, unsupported()]),
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

pub(crate) fn command() -> Subject {
    Subject::Command(vec!["true".into()])
}

pub(crate) const PLACES: [Aggregation; 6] = [
    Aggregation::Cpu,
    Aggregation::Core,
    Aggregation::Die,
    Aggregation::Socket,
    Aggregation::Node,
    Aggregation::Thread,
];
