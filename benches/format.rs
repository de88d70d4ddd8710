//! Time to format counts as text: the cost of an interval without reading the counters.
//!
//! `cargo bench --bench format`. The table is the output of `pmc stat -a -A -I` on 16 CPUs.

use pmc_analysis::profile::counts::{
    Aggregation, EventRole, PlaceLabel, StatCounts, StatEvent, StatRow, StatValue,
};
use pmc_analysis::profile::metrics::library::{Binder, MetricLibrary, definition};
use pmc_analysis::profile::metrics::literals::MetricEnvironment;
use pmc_analysis::profile::statistics::MeasurementSummary;
use pmc_text::units::Count;
use pmc_view::openmetrics;
use pmc_view::stat::{StatStyle, StatSubject, csv, document, json, text};

fn main() {
    divan::main();
}

/// Ten events on each CPU.
fn counts(cpus: u32) -> StatCounts {
    let roles = [
        ("task-clock", EventRole::TaskClock),
        ("cycles", EventRole::Cycles),
        ("instructions", EventRole::Instructions),
        ("branches", EventRole::Branches),
        ("branch-misses", EventRole::BranchMisses),
        ("cache-references", EventRole::CacheReferences),
        ("cache-misses", EventRole::CacheMisses),
        ("page-faults", EventRole::Other),
        ("context-switches", EventRole::Other),
        ("cpu-migrations", EventRole::Other),
    ];
    let event = |(group, (name, role)): (usize, &(&str, EventRole))| {
        let (scale, unit) = role.shown_in().unwrap_or((1.0, ""));
        StatEvent {
            name: (*name).into(),
            role: Some(*role),
            level: String::new(),
            scale,
            unit: unit.into(),
            snapshot: false,
            group,
            cgroup: None,
        }
    };
    let value = |at: u64| StatValue::Counted {
        count: Count { value: 123_456_789 * (at + 1), enabled_ns: 1_000_000_000, running_ns: 700_000_000 },
        counters: 1,
        runs: vec![],
    };
    let row = |cpu| StatRow {
        place: PlaceLabel { cpu: Some(cpu), ..Default::default() },
        summed: 1,
        values: (0..roles.len() as u64).map(value).collect(),
    };
    StatCounts {
        events: roles.iter().enumerate().map(event).collect(),
        rows: (0..cpus).map(row).collect(),
        aggregation: Aggregation::Cpu,
        timestamp_ns: Some(5_000_000_000),
        elapsed_ns: 1_000_000_000,
        ..Default::default()
    }
}

#[divan::bench(args = [16, 256])]
fn interval_as_table(bencher: divan::Bencher<'_, '_>, cpus: u32) {
    let (counts, style) = (counts(cpus), StatStyle::default());
    bencher.bench(|| {
        let mut out = Vec::new();
        text::interval(&mut out, &counts, 1, &style).map(|()| out)
    });
}

#[divan::bench(args = [16, 256])]
fn interval_as_csv(bencher: divan::Bencher<'_, '_>, cpus: u32) {
    let (counts, style) = (counts(cpus), StatStyle::default());
    bencher.bench(|| {
        let mut out = Vec::new();
        csv::write(&mut out, &counts, &style).map(|()| out)
    });
}

#[divan::bench(args = [16, 256])]
fn interval_as_json_lines(bencher: divan::Bencher<'_, '_>, cpus: u32) {
    let (counts, style) = (counts(cpus), StatStyle::default());
    bencher.bench(|| {
        let mut out = Vec::new();
        json::write(&mut out, &counts, &style).map(|()| out)
    });
}

#[divan::bench(args = [16, 256])]
fn run_as_document(bencher: divan::Bencher<'_, '_>, cpus: u32) {
    let counts = counts(cpus);
    bencher.bench(|| {
        let mut out = Vec::new();
        document::write(&mut out, &StatSubject::SystemWide, &counts, &[]).map(|()| out)
    });
}

#[divan::bench(args = [16, 256])]
fn scrape_page(bencher: divan::Bencher<'_, '_>, cpus: u32) {
    let counts = counts(cpus);
    bencher.bench(|| openmetrics::exposition(&counts));
}

#[divan::bench]
fn parse_expression() -> usize {
    let text = "rate=100 * branch-misses / ('cpu/event=0xc4,umask=1/' + max(branches, 1))";
    let library = MetricLibrary::new(definition(text));
    let mut binder = Binder::new(&library, &MetricEnvironment::UNKNOWN);
    let formulas = library.definitions().filter_map(|definition| binder.formula(definition).ok());
    formulas.map(|formula| formula.operands().len()).sum()
}

#[divan::bench]
fn summary_of_hundred_runs() -> Option<MeasurementSummary> {
    let values: Vec<f64> = (0..100).map(|n| f64::from(n * 7919 % 101)).collect();
    MeasurementSummary::from_values(divan::black_box(&values))
}
