//! Metric expressions, and the vendors' files that contain them.

use std::fs;

use pmc_analysis::profile::metrics::formula::Operand;
use pmc_analysis::profile::metrics::library::{Binder, MetricDefinition, MetricLibrary, definition};
use pmc_analysis::profile::metrics::literals::{Literals, MetricEnvironment};
use pmc_events::event::vendor::Vendor;
use pmc_events::event::vendor::import::import;
use pmc_sys::host::Host;

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

/// Binds all metrics and computes them from made-up counts.
fn bind(library: &MetricLibrary<'_>) {
    let environment = MetricEnvironment {
        literals: Literals { num_cpus: Some(4.0), smt_on: Some(1.0), ..Literals::default() },
        has_event: &|name| name.len() % 2 == 0,
        source_count: &|name| Some(name.len() as f64),
        retire_latency: &|_| Some(1.5),
        is_cpuid: &|pattern| pattern.len() % 2 == 0,
    };
    let mut binder = Binder::new(library, &environment);
    for metric in library.definitions() {
        let _ = (metric.factor_and_unit(), library.named(metric.name).count());
        let _ = library.groups().iter().map(|group| library.of_group(group).count()).sum::<usize>();
        match binder.formula(metric) {
            Ok(formula) => {
                let mut lookup = |operand: &Operand| Ok((operand.name.len() % 7) as f64);
                let _ = (formula.evaluate(&mut lookup), formula.crossed(&mut lookup));
            }
            Err(error) => drop(error.to_string()),
        }
    }
}

/// Files of a vendor: the form, then texts separated by zero bytes. The first is the map of models. Imports
/// them, and reads the imported tables.
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
            let given = "GenuineIntel-6-55-[01234],V1,/SKX/events/a_core.json,core,,,\n\
                GenuineIntel-6-55-[01234],V1,/SKX/metrics/a_metrics.json,metrics,,,\n";
            write("mapfile.csv", &[given.as_bytes(), map].concat());
            write("SKX/events/a_core.json", first);
            write("SKX/metrics/perf/a_metrics_perf.json", second);
            "GenuineIntel-6-55-4"
        }
        1 => {
            let given = "GenuineIntel-6-55-[01234],v1,skx,core\n";
            write("x86/mapfile.csv", &[given.as_bytes(), map].concat());
            write("x86/skx/a.json", first);
            write("x86/standard.json", second);
            "GenuineIntel-6-55-4"
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
