//! The vendors' metrics: each can be computed, and its value agrees with perf's own expression of that name.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;

use pmc_analysis::profile::counts::MissingValueReason;
use pmc_analysis::profile::metrics::formula::{Formula, Operand};
use pmc_analysis::profile::metrics::library::{Binder, MetricDefinition, MetricLibrary};
use pmc_analysis::profile::metrics::literals::{Literals, MetricEnvironment};
use pmc_events::event::vendor::table::{PACKED, frames, unpack};

use crate::kit::{need, need_perf_events, oracle};

/// Family, model and stepping of a CPU for each table of metrics.
const MODELS: [(&str, &str); 21] = [
    ("haswell", "6-3C-3"),
    ("haswellx", "6-3F-2"),
    ("broadwell", "6-3D-4"),
    ("broadwellx", "6-4F-1"),
    ("skylake", "6-5E-3"),
    ("skylakex", "6-55-4"),
    ("cascadelakex", "6-55-7"),
    ("icelake", "6-7E-5"),
    ("icelakex", "6-6A-6"),
    ("rocketlake", "6-A7-1"),
    ("tigerlake", "6-8C-1"),
    ("sapphirerapids", "6-8F-4"),
    ("emeraldrapids", "6-CF-1"),
    ("graniterapids", "6-AD-1"),
    ("alderlake_goldencove", "6-97-2"),
    ("meteorlake_redwoodcove", "6-AA-4"),
    ("lunarlake_lioncove", "6-BD-1"),
    ("arrowlake_lioncove", "6-C6-1"),
    ("sierraforest", "6-AF-3"),
    ("grandridge", "6-B6-0"),
    ("clearwaterforest", "6-DD-0"),
];

/// Differences between these tables and perf 7.2's, with the reasons.
const DIFFER: [(&str, &[&str], &[&str]); 11] = [
    (
        "the share of uops is taken of another sum",
        &["sapphirerapids", "emeraldrapids", "icelakex", "graniterapids"],
        &["tma_info_frontend_dsb_coverage"],
    ),
    (
        "version 5.2 of the method here, 5.1 there",
        &["sapphirerapids", "emeraldrapids"],
        &["tma_lock_latency", "tma_split_loads"],
    ),
    (
        "bandwidth is bound by 12 outstanding reads here, by 4 there; and what rests on it",
        &["sapphirerapids", "emeraldrapids", "graniterapids"],
        &[
            "tma_mem_bandwidth",
            "tma_mem_latency",
            "tma_bottleneck_data_cache_memory_bandwidth",
            "tma_bottleneck_data_cache_memory_latency",
            "tma_bottleneck_memory_synchronization",
            "tma_bottleneck_other_bottlenecks",
        ],
    ),
    ("a divisor of 2 here, of 3.3 there", &["rocketlake"], &["tma_ms"]),
    (
        "perf takes persistent memory's share off",
        &["cascadelakex"],
        &["tma_dram_bound", "tma_bottleneck_memory_synchronization", "tma_bottleneck_other_bottlenecks"],
    ),
    (
        "the same, as part of the whole",
        &["icelakex"],
        &[
            "tma_bottleneck_data_cache_memory_bandwidth",
            "tma_bottleneck_data_cache_memory_latency",
            "tma_bottleneck_memory_synchronization",
        ],
    ),
    ("perf left `PEBS` in place of a latency", &["graniterapids"], &["tma_remote_cache", "tma_remote_mem"]),
    (
        "perf goes by the latency of mispredictions",
        &["graniterapids"],
        &[
            "tma_cond_nt_mispredicts",
            "tma_cond_tk_mispredicts",
            "tma_ind_call_mispredicts",
            "tma_ind_jump_mispredicts",
            "tma_ret_mispredicts",
        ],
    ),
    (
        "other forms of what rests on retire latencies",
        &["meteorlake_redwoodcove", "lunarlake_lioncove", "arrowlake_lioncove"],
        &["tma_contested_accesses", "tma_data_sharing", "tma_l3_hit_latency"],
    ),
    (
        "and what rests on those, as far as these numbers show it",
        &["meteorlake_redwoodcove"],
        &[
            "tma_bottleneck_data_cache_memory_bandwidth",
            "tma_bottleneck_data_cache_memory_latency",
            "tma_bottleneck_memory_synchronization",
        ],
    ),
    (
        "the ARB's threshold is `thresh` here, `cmask` there",
        &["skylake", "meteorlake_redwoodcove"],
        &["tma_info_system_mem_parallel_reads"],
    ),
];

/// Further differences: each of these two models differs from perf in another metric.
const DIFFER_TOO: [(&str, &str); 2] = [
    ("lunarlake_lioncove", "tma_bottleneck_memory_synchronization"),
    ("arrowlake_lioncove", "tma_bottleneck_data_cache_memory_bandwidth"),
];

fn metrics(model: &str) -> String {
    unpack(PACKED, &format!("intel/{model}.metrics.tsv")).unwrap()
}

fn definition(line: &str) -> MetricDefinition<'_> {
    let mut columns = line.split('\t').chain(std::iter::repeat(""));
    let [name, scale, groups, level, parent, expression, threshold, locate] =
        std::array::from_fn(|_| columns.next().unwrap());
    MetricDefinition {
        name,
        pmu: "cpu",
        scale,
        groups,
        level: level.parse().ok(),
        parent,
        expression,
        threshold,
        locate,
        raw: true,
        ..MetricDefinition::default()
    }
}

fn definitions(table: &str) -> Vec<MetricDefinition<'_>> {
    table.lines().skip(1).map(definition).collect()
}

/// Returns a number from 0 to 1 that depends only on the words and the seed.
fn random(seed: u64, words: &str) -> f64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = words.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), fnv);
    hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

/// The events of a model and their names in expressions.
struct Events {
    /// PMU and terms by lower-case name.
    known: BTreeMap<String, (String, String)>,
    keys: RefCell<HashMap<String, String>>,
}

impl Events {
    fn of(model: &str) -> Self {
        let uncore = model.split('_').next().unwrap();
        let files = [format!("intel/{model}.core.tsv"), format!("intel/{uncore}.uncore.tsv")];
        let mut known = BTreeMap::new();
        for table in files.iter().filter_map(|file| unpack(PACKED, file)) {
            for line in table.lines().skip(1) {
                let mut columns = line.split('\t');
                let [name, pmu, terms] = std::array::from_fn(|_| columns.next().unwrap());
                known.insert(name.to_ascii_lowercase(), (pmu.to_owned(), terms.to_owned()));
            }
        }
        Self { known, keys: RefCell::default() }
    }

    /// Returns the event in a canonical form (PMU, terms as numbers, modifiers), however it is written.
    fn key(&self, name: &str) -> String {
        self.keys.borrow_mut().entry(name.to_owned()).or_insert_with(|| self.encoded(name)).clone()
    }

    fn encoded(&self, name: &str) -> String {
        let name = name.to_ascii_lowercase();
        let (pmu, rest) = name.split_once('/').unwrap_or(("", &name));
        let plain = || rest.split_once(':').unwrap_or((rest, ""));
        let (words, modifiers) = rest.rsplit_once('/').unwrap_or_else(plain);
        // perf also writes `EVENT/cmask=1/`.
        let (mut pmu, event) = if self.known.contains_key(pmu) { ("", Some(pmu)) } else { (pmu, None) };
        let mut terms = BTreeMap::new();
        for word in event.into_iter().chain(words.split(',')) {
            let own = self.known.get(word);
            if let (Some((own, _)), "") = (own, pmu) {
                pmu = own;
            }
            for term in own.map_or(word, |(_, terms)| terms).split(',') {
                let (term, value) = term.split_once('=').unwrap_or((term, "1"));
                let hex = value.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                let number = hex.or_else(|| value.parse().ok());
                terms.insert(term, number.map_or(value.to_owned(), |number| number.to_string()));
            }
        }
        terms.retain(|term, value| value != "0" && *term != "cpu");
        let pmu = pmu.strip_prefix("uncore_").unwrap_or(pmu);
        match pmu.starts_with("cpu") || ["", "msr"].contains(&pmu) {
            true => format!("{terms:?}:{modifiers}"),
            false => format!("{pmu}{terms:?}"),
        }
    }
}

/// Binds every available metric for `rounds` machines and counts, and shows each with its values.
fn computed(
    events: &Events,
    library: &MetricLibrary<'_>,
    rounds: u64,
    see: &mut dyn FnMut(u64, &Formula, &Values<'_>),
) {
    for seed in 0..rounds {
        let literals = Literals {
            smt_on: Some((seed % 2) as f64),
            core_wide: Some(1.0),
            num_cpus: Some(16.0),
            num_cpus_online: Some(14.0),
            num_cores: Some(8.0),
            num_dies: Some(2.0),
            num_packages: Some(2.0),
            system_tsc_freq: Some(2.1e9),
            slots: Some(4.0),
            has_pmem: Some(1.0),
            target_cpu: Some(1.0),
        };
        let environment = MetricEnvironment {
            literals,
            has_event: &|_| true,
            source_count: &|name| Some((8.0 * random(0, &events.key(name))).ceil()),
            retire_latency: &|name| Some(20.0 * random(seed, &format!("latency of {}", events.key(name)))),
            is_cpuid: &|_| false,
        };
        let mut binder = Binder::new(library, &environment);
        for definition in library.definitions() {
            let formula = binder.formula(definition).unwrap_or_else(|error| panic!("{error}"));
            see(seed, &formula, &|operand| 1.0 + 1e6 * random(seed, &events.key(&operand.name)));
        }
    }
}

type Values<'a> = dyn Fn(&Operand) -> f64 + 'a;

#[test]
fn every_metric_of_every_table_can_be_computed() {
    let tables = frames(PACKED).filter(|frame| frame.name.ends_with(".metrics.tsv")).count();
    assert_eq!(tables, MODELS.len());
    let (mut all, mut thresholds, mut known, mut strange) = (0, 0, 0, BTreeSet::new());
    for (model, _) in MODELS {
        let (events, table) = (Events::of(model), metrics(model));
        let library = MetricLibrary::new(definitions(&table));
        all += library.definitions().count();
        computed(&events, &library, 2, &mut |_, formula, value| {
            let got = formula.evaluate(&mut |operand| Ok(value(operand)));
            let is_zero = |why: &MissingValueReason| why.cause.starts_with("division by zero");
            assert!(got.as_ref().map_or_else(is_zero, |_| true), "{model} {}: {got:?}", formula.name);
            thresholds += usize::from(formula.has_threshold());
            known += usize::from(formula.crossed(&mut |operand| Ok(value(operand))).is_some());
            for operand in formula.operands().iter().chain(formula.threshold_operands()) {
                let words = operand.name.split(['/', ',', ':']).map(str::to_ascii_lowercase);
                if !words.into_iter().any(|word| events.known.contains_key(&word)) {
                    strange.insert(operand.name.clone());
                }
            }
        });
    }
    assert_eq!(all, 4403);
    assert!(known <= thresholds && known * 10 > thresholds * 9, "{known} of {thresholds}");
    // Names in no table are the kernel's.
    let kernel = ["tsc", "duration_time", "topdown-", "cpu_core/topdown-", "power/energy-"];
    strange.retain(|name| !kernel.iter().any(|own| name.to_ascii_lowercase().starts_with(own)));
    assert_eq!(strange, BTreeSet::new());
}

#[test]
fn metric_values_match_perfs_expressions() {
    let perfs = oracle::perfs();
    let Some(perf) = perfs.get(1) else { return };
    let version = Command::new(perf).arg("--version").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&version);
    if !need("perf-7.2", version.contains(" 7.2."), &format!("the newest perf here is {}", version.trim())) {
        return;
    }
    // perf lists nothing unless a PMU of this name exists.
    let sysfs = tempfile::tempdir().unwrap();
    let cpu = sysfs.path().join("bus/event_source/devices/cpu");
    std::fs::create_dir_all(cpu.join("format")).unwrap();
    std::fs::write(cpu.join("type"), "4\n").unwrap();
    std::fs::write(cpu.join("format/event"), "config:0-7\n").unwrap();

    let (mut common, mut thresholds) = (0, 0);
    let mut differ = BTreeSet::new();
    let (mut other_units, mut other_thresholds) = (0, 0);
    for (model, id) in MODELS {
        let list = Command::new(perf)
            .args(["list", "--json", "metric"])
            .env("SYSFS_PATH", sysfs.path())
            .env("PERF_CPUID", format!("GenuineIntel-{id}"))
            .output()
            .unwrap();
        let rows: Vec<BTreeMap<String, String>> = serde_json::from_slice(&list.stdout).unwrap();
        let field = |row: usize, key: &str| rows[row].get(key).map_or("", String::as_str);
        let theirs =
            (0..rows.len()).filter(|&row| field(row, "Unit") != "cpu_atom").map(|row| MetricDefinition {
                name: field(row, "MetricName"),
                pmu: "cpu",
                scale: field(row, "ScaleUnit"),
                expression: field(row, "MetricExpr"),
                threshold: field(row, "MetricThreshold"),
                raw: true,
                ..MetricDefinition::default()
            });
        // perf lists a metric once for each of its groups.
        let theirs: BTreeMap<&str, MetricDefinition<'_>> = theirs.map(|own| (own.name, own)).collect();
        let (events, table) = (Events::of(model), metrics(model));
        let ours = definitions(&table);
        let is_common = |own: &&MetricDefinition<'_>| theirs.contains_key(own.name);
        let mut values = HashMap::new();
        computed(&events, &MetricLibrary::new(theirs.values().copied()), 6, &mut |seed, formula, value| {
            let plain = formula.evaluate(&mut |operand| Ok(value(operand)));
            values.insert(
                (seed, formula.name.clone()),
                plain.map(|own| own / theirs[formula.name.as_str()].factor_and_unit().0),
            );
        });
        let library = MetricLibrary::new(ours.iter().copied());
        computed(&events, &library, 6, &mut |seed, formula, value| {
            let Some(theirs) = values.get(&(seed, formula.name.clone())) else { return };
            let factor = library.named(&formula.name).next().unwrap().factor_and_unit().0;
            let plain = formula.evaluate(&mut |operand| Ok(value(operand))).map(|own| own / factor);
            let is_same = match (&plain, theirs) {
                (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
                (a, b) => a.is_err() && b.is_err(),
            };
            if !is_same {
                differ.insert((model, formula.name.clone()));
            }
        });
        for own in ours.iter().filter(is_common) {
            let other = &theirs[own.name];
            common += 1;
            if own.factor_and_unit() != other.factor_and_unit() {
                assert_eq!((own.scale, other.scale), ("1per_instr", ""), "{model} {}", own.name);
                other_units += 1;
            }
            assert_eq!(own.threshold.is_empty(), other.threshold.is_empty(), "{model} {}", own.name);
            if own.threshold.is_empty() {
                continue;
            }
            thresholds += 1;
            if !same_condition(own.threshold, other.threshold) {
                let renamed = own.threshold.replace("tma_l3_miss_bound", "tma_dram_bound");
                assert!(same_condition(&renamed, other.threshold), "{model} {}", own.name);
                other_thresholds += 1;
            }
        }
    }
    let explained = DIFFER.iter().flat_map(|(_, models, names)| {
        models.iter().flat_map(|&model| names.iter().map(move |&name| (model, name.to_owned())))
    });
    let explained: BTreeSet<_> =
        explained.chain(DIFFER_TOO.map(|(model, name)| (model, name.to_owned()))).collect();
    assert_eq!(differ, explained);
    assert_eq!((common, differ.len()), (4343, 56));
    assert_eq!((thresholds, other_thresholds, other_units), (2541, 19, 38));
}

#[test]
fn counts_match_perfs_display() {
    let perfs = oracle::perfs();
    let Some(perf) = perfs.get(1) else { return };
    if !need_perf_events() {
        return;
    }
    let names = ["page_faults_per_second", "cs_per_second"];
    let list = Command::new(perf).args(["list", "--json", "metric"]).output().unwrap();
    let rows: Vec<BTreeMap<String, String>> = serde_json::from_slice(&list.stdout).unwrap();
    let ran = oracle::ask_until_answered(|_| {
        let mut command = Command::new(perf);
        command.args([
            "stat",
            "-x,",
            "-M",
            &names.join(","),
            "--",
            "sh",
            "-c",
            "for i in 1 2 3; do /bin/true; done",
        ]);
        command
    });
    let shown = String::from_utf8(ran.stderr).unwrap();
    // VALUE,UNIT,EVENT,NANOSECONDS,SHARE,METRIC,UNIT  NAME
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split(',').collect()).collect();
    let line_of = |ends: &str| lines.iter().find(|line| line.last().is_some_and(|last| last.ends_with(ends)));
    for name in names {
        let row = rows.iter().find(|row| row.get("MetricName").is_some_and(|own| own == name)).unwrap();
        let (expression, scale) = (row["MetricExpr"].as_str(), row["ScaleUnit"].as_str());
        let library = MetricLibrary::new([MetricDefinition {
            name,
            expression,
            scale,
            raw: true,
            ..MetricDefinition::default()
        }]);
        let literals = Literals { target_cpu: Some(0.0), ..Literals::default() };
        let environment = MetricEnvironment { literals, ..MetricEnvironment::UNKNOWN };
        let definition = library.definitions().next().unwrap();
        let formula = Binder::new(&library, &environment).formula(definition).unwrap();
        // A clock's value in nanoseconds is its run time.
        let count = |operand: &Operand| {
            let event =
                |line: &&Vec<&str>| line.len() > 3 && operand.name.contains(&format!("/{},", line[2]));
            let line = lines.iter().find(event).unwrap_or_else(|| panic!("{operand:?} in {shown}"));
            Ok(line[if line[2] == "task-clock" { 3 } else { 0 }].parse().unwrap())
        };
        let ours = formula.evaluate(&mut { count }).unwrap();
        let line = line_of(name).unwrap_or_else(|| panic!("{name} in {shown}"));
        let theirs: f64 = line[5].parse().unwrap();
        assert!((ours - theirs).abs() <= 0.051, "{name}: {ours} here, {theirs} there: {shown}");
        assert_eq!(line[6], format!("{}  {name}", formula.unit));
    }
}

/// Whether two thresholds agree for random metric values.
fn same_condition(one: &str, other: &str) -> bool {
    let library = MetricLibrary::default();
    let definitions = [one, other].map(|expression| MetricDefinition {
        name: "x",
        expression,
        ..MetricDefinition::default()
    });
    let mut binder = Binder::new(&library, &MetricEnvironment::UNKNOWN);
    let formulas = definitions.each_ref().map(|definition| binder.formula(definition).unwrap());
    (0..50).all(|seed| {
        // Fractions from 0.001 to 1000; later rounds contain more large ones.
        let large = random(seed, "large");
        let value = |operand: &Operand| {
            Ok(0.5 * large + 10f64.powf(6.0 * random(seed, &operand.name) - 3.0) * (1.0 - large))
        };
        let [one, other] = formulas.each_ref().map(|formula| formula.evaluate(&mut { value }));
        one == other
    })
}
