//! Metric expressions, and the vendors' files that contain them.

use std::fs;

use pmc_analysis::profile::counts::{
    EventRole, MissingValueReason, StatCounts, StatEvent, StatRow, StatValue,
};
use pmc_analysis::profile::metrics::formula::{Formula, Operand};
use pmc_analysis::profile::metrics::library::{Binder, MetricDefinition, MetricLibrary, definition};
use pmc_analysis::profile::metrics::literals::{Literals, MetricEnvironment};
use pmc_analysis::profile::metrics::{self, topdown};
use pmc_events::event::vendor::Vendor;
use pmc_events::event::vendor::import::import;
use pmc_sys::host::Host;
use pmc_text::units::Count;

use crate::with_text;

/// A metric in each line, `NAME=EXPRESSION`, which may be followed by a tab and the threshold.
pub fn expressions(data: &[u8]) {
    with_text(data, |text| {
        let line = |line| {
            let (line, threshold) = str::split_once(line, '\t').unwrap_or((line, ""));
            Some(MetricDefinition { threshold, groups: "all", ..definition(line).ok()? })
        };
        bind(&MetricLibrary::new(text.lines().filter_map(line)));
    });
}

/// Binds all metrics and computes them from made-up counts, one by one and as in a table of `stat`.
fn bind(library: &MetricLibrary<'_>) {
    let environment = MetricEnvironment {
        literals: Literals { num_cpus: Some(4.0), smt_on: Some(1.0), ..Literals::default() },
        has_event: &|name| name.len() % 2 == 0,
        source_count: &|name| Some(name.len() as f64),
        retire_latency: &|_| Some(1.5),
        is_cpuid: &|pattern| pattern.len() % 2 == 0,
    };
    let mut binder = Binder::new(library, &environment);
    let mut formulas = Vec::new();
    for metric in library.definitions() {
        let _ = (metric.factor_and_unit(), library.named(metric.name).count());
        let _ = library.groups().iter().map(|group| library.of_group(group).count()).sum::<usize>();
        match binder.formula(metric) {
            Ok(formula) => {
                let mut lookup = |operand: &Operand| Ok((operand.name.len() % 7) as f64);
                let _ = (formula.evaluate(&mut lookup), formula.crossed(&mut lookup));
                formulas.push(formula);
            }
            Err(error) => drop(error.to_string()),
        }
    }
    formulas.truncate(MOST_FORMULAS);
    let factor = formulas.len() as f64 - 2.5;
    formulas.push(Formula::sum(
        "sum",
        "J",
        [("cycles".to_owned(), factor), ("x".to_owned(), 1e300)].into_iter(),
    ));
    derive(&formulas);
}

/// Number of metrics that a table shows, and of events that are counted for them.
const MOST_FORMULAS: usize = 16;
const MOST_EVENTS: usize = 24;

/// Counts, with the times for which their events were enabled and running: none, all, and impossible ones.
const COUNTS: [Count; 8] = [
    Count { value: 0, enabled_ns: 0, running_ns: 0 },
    Count { value: 0, enabled_ns: 1000, running_ns: 1000 },
    Count { value: u64::MAX, enabled_ns: u64::MAX, running_ns: 1 },
    Count { value: 3_000_000_000, enabled_ns: 1_000_000_000, running_ns: 1_000_000_000 },
    Count { value: 7, enabled_ns: 1000, running_ns: 10 },
    Count { value: u64::MAX, enabled_ns: 1, running_ns: 1 },
    Count { value: 1, enabled_ns: 10, running_ns: u64::MAX },
    Count { value: 20_000, enabled_ns: 1000, running_ns: 999 },
];

/// Roles of events that tables of `stat` print metrics for.
const ROLES: [EventRole; 14] = [
    EventRole::TaskClock,
    EventRole::Cycles,
    EventRole::Instructions,
    EventRole::Branches,
    EventRole::BranchMisses,
    EventRole::CacheReferences,
    EventRole::CacheMisses,
    EventRole::StalledFrontend,
    EventRole::StalledBackend,
    EventRole::L1dLoads,
    EventRole::L1dLoadMisses,
    EventRole::CpuClock,
    EventRole::Energy,
    EventRole::Other,
];

/// Computes metrics from counts of their events, in which each row has each of [`COUNTS`] at another event.
fn derive(formulas: &[Formula]) {
    let operands =
        formulas.iter().flat_map(|formula| formula.operands().iter().chain(formula.threshold_operands()));
    let mut names: Vec<&str> = operands.map(|operand| operand.name.as_str()).take(MOST_EVENTS).collect();
    names.extend(["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"]);
    let event = |(number, name): (usize, &&str)| StatEvent {
        name: match number % 5 {
            4 => format!("{name}:u"),
            _ => (*name).to_owned(),
        },
        role: Some(ROLES[number % ROLES.len()]),
        level: if number % 5 == 4 { "u".to_owned() } else { String::new() },
        scale: [1.0, 1e-6, 2.3e-10][number % 3],
        unit: String::new(),
        snapshot: false,
        group: number / 3,
        cgroup: (number % 7 == 6).then(|| "/box".to_owned()),
    };
    let value = |number: usize| match number % 11 {
        8 => StatValue::NotCounted(MissingValueReason::new("no counter was free", "-e less")),
        9 => StatValue::Absent,
        10 => StatValue::Counted { count: COUNTS[3], counters: 2, runs: vec![1.0, f64::MAX, 0.0] },
        number => StatValue::Counted { count: COUNTS[number % COUNTS.len()], counters: 1, runs: Vec::new() },
    };
    let row = |row: usize| StatRow {
        place: Default::default(),
        summed: 1,
        values: (0..names.len()).map(|event| value(event + row)).collect(),
    };
    for elapsed_ns in [0, 1_000_000_000, u64::MAX] {
        let counts = StatCounts {
            events: names.iter().enumerate().map(event).collect(),
            rows: (0..COUNTS.len() + 3).map(row).collect(),
            elapsed_ns,
            ..StatCounts::default()
        };
        for derived in metrics::derive(&counts, formulas).iter().chain(&topdown::derive(&counts)) {
            for metric in derived {
                assert!(metric.value.as_ref().map_or(true, |value| value.is_finite()), "{metric:?}");
                assert!(metric.error.is_none_or(|error| error >= 0.0), "{metric:?}");
                assert!(
                    metric.value.as_ref().err().is_none_or(|reason| !reason.cause.is_empty()),
                    "{metric:?}"
                );
            }
            let path = topdown::bottleneck(&derived.iter().collect::<Vec<_>>());
            assert!(path.len() <= derived.len());
        }
        for (row, event) in
            (0..counts.rows.len()).flat_map(|row| (0..names.len()).map(move |event| (row, event)))
        {
            for metric in metrics::shadow::shadow(&counts, row, event) {
                assert!(!metric.value.is_nan() && !metric.plain.is_nan(), "{metric:?}");
            }
        }
    }
}

/// Files of a vendor: the form, then texts separated by zero bytes. The first is the map of models. Imports
/// them, and reads the imported tables, for a model without built-in tables.
pub fn vendor_import(data: &[u8]) {
    let [form, files @ ..] = data else { return };
    let mut files = files.split(|byte| *byte == 0);
    let map = files.next().unwrap_or_default();
    let [first, second] = [files.next(), files.next()].map(Option::unwrap_or_default);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (from, into) = (folder.path().join("from"), folder.path().join("data/pmc/events"));
    let write = |name: &str, text: &[u8]| {
        let path = from.join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let cpuid = match form % 3 {
        0 => {
            let given = "GenuineIntel-6-EE-[01234],V1,/SKX/events/a_core.json,core,,,\n\
                GenuineIntel-6-EE-[01234],V1,/SKX/metrics/a_metrics.json,metrics,,,\n";
            write("mapfile.csv", &[given.as_bytes(), map].concat());
            write("SKX/events/a_core.json", first);
            write("SKX/metrics/perf/a_metrics_perf.json", second);
            "GenuineIntel,6,238,4"
        }
        1 => {
            let given = "GenuineIntel-6-EE-[01234],v1,skx,core\n";
            write("x86/mapfile.csv", &[given.as_bytes(), map].concat());
            write("x86/skx/a.json", first);
            write("x86/standard.json", second);
            "GenuineIntel,6,238,4"
        }
        _ => {
            write("pmu/a.json", first);
            write("pmu/b.json", second);
            "0x00000000410fd0c0"
        }
    };
    if let Err(error) = import(&from, &into) {
        drop(error.to_string());
        return;
    }
    let host = Host::rooted(folder.path().join("root")).with_data_home(folder.path().join("data"));
    let vendor = Vendor::recorded(&host, cpuid);
    for event in vendor.events() {
        let _ = (vendor.named(event.name), vendor.is(event.name));
    }
    let _ = vendor.events().next().and_then(|event| vendor.retire_latency(event.name));
    let metrics = vendor.metrics().map(|metric| MetricDefinition {
        name: metric.name,
        pmu: metric.pmu,
        scale: metric.scale,
        groups: metric.groups,
        parent: metric.parent,
        expression: metric.expr,
        threshold: metric.threshold,
        ..MetricDefinition::default()
    });
    bind(&MetricLibrary::new(metrics));
}
