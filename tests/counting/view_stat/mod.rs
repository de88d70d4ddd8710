//! Every output format for counts, from counts built here: no kernel needed.
//!
//! The goldens are in `tests/data/golden/stat`; `perf` compares the lines with perf's own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::kit;
mod perf;
mod samples;

use std::io;

use pmc_analysis::profile::counts::{
    Aggregation, EventRole, MissingValueReason, PlaceLabel, RunTime, StatCounts, StatEvent, StatValue,
};
use pmc_analysis::profile::gate::RunFailures;
use pmc_analysis::profile::metrics::derive;
use pmc_analysis::profile::metrics::shadow::shadow;
use pmc_analysis::profile::versus::{CommandMeasurements, compare};
use pmc_text::units::Count;
use pmc_view::openmetrics;
use pmc_view::stat::{StatStyle, StatSubject, csv, document, json, text, versus};

use samples::*;

#[test]
fn csv_lines_match_perf() {
    // As perf 6.1 prints `perf stat -x, -e
    // task-clock,context-switches,page-faults,cpu-clock,cycles,duration_time true`.
    let want = "\
0.64,msec,task-clock,638016,100.00,0.525,CPUs utilized
0,,context-switches,638016,100.00,0.000,/sec
49,,page-faults,638016,100.00,76.801,K/sec
0.63,msec,cpu-clock,638016,100.00,0.522,CPUs utilized
<not supported>,,cycles,0,100.00,,
1216013,ns,duration_time,1216013,100.00,1.906,G/sec
";
    assert_eq!(written(|out| csv::write(out, &software(), &plain())), want);
    let semicolons =
        written(|out| csv::write(out, &software(), &StatStyle { separator: ";".into(), ..plain() }));
    assert_eq!(semicolons, want.replace(',', ";"));
}

#[test]
fn json_keys_and_order_match_perf() {
    let got = written(|out| json::write(out, &software(), &plain()));
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"counter-value" : "0.638016", "unit" : "msec", "event" : "task-clock", "event-runtime" : 638016, "pcnt-running" : 100.00, "metric-value" : 0.524679, "metric-unit" : "CPUs utilized"}"#
    );
    assert_eq!(
        lines[4],
        r#"{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "event-runtime" : 0, "pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}"#
    );
    assert_eq!(lines.len(), 6);
}

#[test]
fn json_lines_of_all_modes_parse() {
    let mut all = vec![software(), hardware(), repeated()];
    all.extend(PLACES.map(|a| placed(a, None)));
    all.extend(PLACES.map(|a| placed(a, Some(1_050_095_660))));
    for counts in &mut all {
        counts.events[0].name = "task\"clock\n".into();
        counts.derived = derive(counts, &[formula("x=page-faults / 2").unwrap()]);
        for metric_only in [false, true] {
            let style = StatStyle { metric_only, ..plain() };
            let got = written(|out| json::write(out, counts, &style));
            assert!(!got.is_empty());
            for line in got.lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            }
        }
    }
}

#[test]
fn aggregation_columns_come_first_like_perf() {
    let first = |aggregation, time| {
        let got = written(|out| csv::write(out, &placed(aggregation, time), &plain()));
        got.lines().next().unwrap().to_owned()
    };
    let rest = "51.96,msec,task-clock,51960682,100.00,1.000,CPUs utilized";
    assert_eq!(first(Aggregation::Cpu, None), format!("CPU0,{rest}"));
    assert_eq!(first(Aggregation::Core, None), format!("S0-D0-C0,1,{rest}"));
    assert_eq!(first(Aggregation::Die, None), format!("S0-D0,1,{rest}"));
    assert_eq!(first(Aggregation::Socket, None), format!("S0,1,{rest}"));
    assert_eq!(first(Aggregation::Node, None), format!("N0,1,{rest}"));
    assert_eq!(first(Aggregation::Thread, None), format!("ba?sh-4910,{rest}"));
    assert_eq!(first(Aggregation::Core, Some(50_125_284)), format!("     0.050125284,S0-D0-C0,1,{rest}"));
    let summary = StatStyle { summary: true, ..plain() };
    let got = written(|out| csv::write(out, &software(), &summary));
    assert!(got.starts_with("         summary,0.64,msec,task-clock,"), "{got}");
}

#[test]
fn fields_containing_the_separator_are_quoted() {
    let mut counts = software();
    counts.events[1].name = "cpu/event=1,umask=2/".into();
    counts.events[2].name = "say \"hi\"".into();
    let got = written(|out| csv::write(out, &counts, &plain()));
    assert!(got.contains("0,,\"cpu/event=1,umask=2/\",638016,"), "{got}");
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(got.as_bytes());
    let names: Vec<String> = reader.records().map(|r| r.unwrap()[2].to_owned()).collect();
    assert_eq!(names[1..3], ["cpu/event=1,umask=2/", "say \"hi\""]);
}

#[test]
fn all_csv_lines_have_equally_many_fields() {
    let mut with_cgroup = hardware();
    for event in &mut with_cgroup.events {
        event.cgroup = Some("/a".into());
    }
    with_cgroup.derived = derive(&with_cgroup, &[formula("ipc").unwrap()]);
    let mut stalled = hardware();
    stalled.aggregation = Aggregation::Socket;
    stalled.rows[0].place.socket = Some(0);
    for counts in [hardware(), with_cgroup, stalled, repeated(), placed(Aggregation::Die, Some(7))] {
        let got = written(|out| csv::write(out, &counts, &plain()));
        let fields: Vec<usize> = got.lines().map(|l| l.matches(',').count()).collect();
        assert!(fields.iter().all(|n| *n == fields[0]), "{fields:?}\n{got}");
    }
}

#[test]
fn software_event_table() {
    kit::golden("stat/software.txt", &written(|out| text::run(out, &software(), &command(), &plain())));
}

#[test]
fn hardware_event_table() {
    let mut counts = hardware();
    let definitions = ["ipc", "branch_mpki"].map(|name| formula(name).unwrap());
    counts.derived = derive(&counts, &definitions);
    kit::golden("stat/hardware.txt", &written(|out| text::run(out, &counts, &command(), &plain())));
    let colour = StatStyle { colour: true, big_num: false, ..plain() };
    kit::golden("stat/hardware-colour.txt", &written(|out| text::run(out, &counts, &command(), &colour)));
    kit::golden("stat/hardware.csv", &written(|out| csv::write(out, &counts, &plain())));
    kit::golden("stat/hardware.jsonl", &written(|out| json::write(out, &counts, &plain())));
}

#[test]
fn repeated_run_table() {
    let style = StatStyle { table: true, ..plain() };
    kit::golden("stat/repeated.txt", &written(|out| text::run(out, &repeated(), &command(), &style)));
    kit::golden("stat/repeated.csv", &written(|out| csv::write(out, &repeated(), &plain())));
    kit::golden("stat/repeated.jsonl", &written(|out| json::write(out, &repeated(), &plain())));
}

#[test]
fn aggregation_tables() {
    let mut all = String::new();
    for aggregation in PLACES {
        all += &written(|out| text::run(out, &placed(aggregation, None), &StatSubject::SystemWide, &plain()));
        let counts = placed(aggregation, Some(1_050_095_660));
        all += &written(|out| text::interval(out, &counts, 0, &plain()));
        all += &written(|out| text::interval(out, &counts, 1, &plain()));
    }
    assert!(!all.contains('\u{1b}'));
    kit::golden("stat/places.txt", &all);
}

#[test]
fn metric_only_columns() {
    let mut all = String::new();
    let style = StatStyle { metric_only: true, ..plain() };
    let mut counts = hardware();
    all += &written(|out| text::run(out, &counts, &command(), &style));
    all += &written(|out| csv::titles(out, &counts, &style));
    all += &written(|out| csv::write(out, &counts, &style));
    all += &written(|out| json::write(out, &counts, &style));
    counts.timestamp_ns = Some(1_000_000_000);
    all += &written(|out| text::interval(out, &counts, 0, &style));
    all += &written(|out| csv::write(out, &counts, &style));
    let cores = placed(Aggregation::Core, None);
    all += &written(|out| text::run(out, &cores, &StatSubject::SystemWide, &style));
    all += &written(|out| csv::titles(out, &cores, &style));
    all += &written(|out| csv::write(out, &cores, &style));
    kit::golden("stat/metric-only.txt", &all);
}

#[test]
fn cgroup_column_is_printed() {
    let mut counts = software();
    for (at, event) in counts.events.iter_mut().enumerate() {
        event.cgroup = Some(if at < 3 { "/" } else { "/user.slice" }.into());
    }
    kit::golden(
        "stat/cgroup.txt",
        &written(|out| text::run(out, &counts, &StatSubject::SystemWide, &plain())),
    );
    let got = written(|out| csv::write(out, &counts, &plain()));
    assert!(got.starts_with("0.64,msec,task-clock,/,638016,100.00,0.525,CPUs utilized\n"), "{got}");
    let got = written(|out| json::write(out, &counts, &plain()));
    assert!(got.contains(r#""event" : "task-clock", "cgroup" : "/", "event-runtime" : 638016"#), "{got}");
}

#[test]
fn json_document_has_numbers_and_reasons() {
    let got = written(|out| {
        document::begin(out, &command(), &software())?;
        document::interval(out, &placed(Aggregation::Global, Some(50_000_000)), 0)?;
        document::interval(out, &placed(Aggregation::Global, Some(100_000_000)), 1)?;
        let warning = pmc_sys::error::Warning::note("a CPU went away");
        document::end(out, &software(), &[warning])
    });
    let value: serde_json::Value = serde_json::from_str(&got).unwrap();
    assert_eq!(value["pmc"]["format"], 2);
    assert_eq!(value["target"]["command"][0], "true");
    assert_eq!(value["intervals"].as_array().unwrap().len(), 2);
    let values = &value["total"]["rows"][0]["values"];
    assert_eq!(values[2]["value"], 49.0);
    assert_eq!(values[2]["metrics"][0]["unit"], "/s");
    assert!((values[2]["metrics"][0]["value"].as_f64().unwrap() - 76_800.58).abs() < 1.0);
    assert!(values[4]["value"].is_null());
    assert_eq!(values[4]["reason"]["errno"], "ENOENT");
    assert_eq!(values[4]["reason"]["cause"], "this machine shows no hardware counters");
    assert_eq!(value["warnings"][0]["what"], "a CPU went away");
    let repeated = written(|out| document::write(out, &command(), &repeated(), &[]));
    let value: serde_json::Value = serde_json::from_str(&repeated).unwrap();
    assert_eq!(value["total"]["runs"]["statistics"]["outliers"][0], 3);
    assert_eq!(value["total"]["rows"][0]["values"][1]["statistics"]["median"], 49.0);
    kit::golden("stat/document.json", &got.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn openmetrics_output_is_valid() {
    let mut counts = hardware();
    counts.events[4].name = "bran\"ches\\\n".into();
    counts.rows[0].values[3] = unsupported();
    counts.derived = derive(&counts, &[formula("ipc").unwrap()]);
    let got = openmetrics::exposition(&counts);
    assert!(got.ends_with("# EOF\n"));
    kit::golden("stat/openmetrics.txt", &got);
    // The format's rules that a scraper checks: one block per family, units as suffix, `_total` on counters,
    // no duplicate sample.
    let (mut family, mut kind, mut seen) = (String::new(), String::new(), std::collections::HashSet::new());
    for line in got.lines().filter(|l| *l != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, what) = rest.split_once(' ').unwrap();
            (family, kind) = (name.to_owned(), what.to_owned());
            assert!(seen.insert(family.clone()), "{family} comes twice");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name.ends_with(&format!("_{unit}")), "{line}");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            assert_eq!(name, format!("{family}{suffix}"));
            assert!(seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line} comes twice");
        }
    }
}

#[test]
fn commands_are_compared() {
    let timed = |command: &str, times: &[u64], faults: &[f64]| {
        let mut counts = repeated();
        counts.runs = times.iter().map(|&elapsed_ns| RunTime { elapsed_ns, cpu_time: None }).collect();
        counts.rows[0].values[1] =
            StatValue::Counted { count: Count::default(), counters: 1, runs: faults.to_vec() };
        counts.rows[0].values[0] = StatValue::Counted {
            count: Count::default(),
            counters: 1,
            runs: times.iter().map(|t| *t as f64 / 2.0).collect(),
        };
        let failures = RunFailures { runs: times.len(), ..RunFailures::default() };
        CommandMeasurements { command: command.to_owned(), counts, metrics: Vec::new(), failures }
    };
    let a =
        timed("sleep 0.1", &[101_000_000, 102_000_000, 100_500_000, 101_300_000], &[49.0, 50.0, 49.0, 49.0]);
    let b = timed("sleep 0.05", &[51_000_000, 52_000_000, 50_500_000, 51_300_000], &[49.0, 49.0, 50.0, 49.0]);
    let c = timed(
        "sleep \u{1b}0.1",
        &[101_500_000, 101_000_000, 101_600_000, 100_900_000],
        &[99.0, 98.0, 99.0, 97.0],
    );
    let comparison = compare(&[a.clone(), b, c]);
    let verdict = comparison.verdict(None);
    kit::golden("stat/versus.txt", &written(|out| versus::text(out, &comparison, &verdict, &plain())));
    for (columns, p, own_lines) in [(100, true, false), (80, true, false), (60, false, true)] {
        let style = StatStyle { width: Some(columns), colour: true, ..plain() };
        let text = uncoloured(&written(|out| versus::text(out, &comparison, &verdict, &style)));
        let wide: Vec<&str> = text.lines().filter(|line| pmc_text::text::width(line) > columns).collect();
        assert!(wide.is_empty(), "{columns}: {wide:#?}\n{text}");
        let has_own_line = text.lines().any(|line| line == " elapsed ms");
        assert_eq!((text.contains("  p < 0.001"), has_own_line), (p, own_lines), "{columns}: {text}");
        assert!(text.contains("faster") && text.contains("no difference shown"), "{text}");
    }
    let got = written(|out| versus::json(out, &comparison, Some(&verdict)));
    let value: serde_json::Value = serde_json::from_str(&got).unwrap();
    assert_eq!(value["measures"][0]["sides"][1]["verdict"], "faster");
    assert_eq!(value["measures"][0]["sides"][2]["verdict"], "no difference shown");
    assert_eq!(value["measures"][2]["sides"][2]["verdict"], "more");
    assert!(value["measures"][3]["sides"][1]["statistics"].is_null());
    let times = [101_000_000, 102_000_000, 900_500_000, 101_300_000, 101_600_000];
    let got = |times: &[u64]| {
        let comparison = compare(&[a.clone(), timed("disturbed", times, &[49.0; 5])]);
        written(|out| versus::text(out, &comparison, &comparison.verdict(None), &plain()))
    };
    let many = [times, times.map(|time| time.min(101_500_000))].concat();
    assert!(got(&many).contains(" Outliers: elapsed time of B in run 3;"), "{}", got(&many));
    // Among five runs one is nearly always an outlier.
    assert!(!got(&times).contains("Outliers"), "{}", got(&times));
}

#[test]
fn lines_fit_the_terminal() {
    let mut counted = vec![("software", software()), ("hardware", hardware()), ("repeated", repeated())];
    let definitions = ["ipc", "branch_mpki"].map(|name| formula(name).unwrap());
    counted[1].1.derived = derive(&counted[1].1, &definitions);
    for aggregation in [Aggregation::Cpu, Aggregation::Socket] {
        counted.push(("placed", placed(aggregation, None)));
    }
    for colour in [false, true] {
        for (what, counts) in &counted {
            for columns in [60, 80, 100] {
                let style = StatStyle { width: Some(columns), colour, ..plain() };
                let mut text = written(|out| text::run(out, counts, &command(), &style));
                let mut timed = (*counts).clone();
                timed.timestamp_ns = Some(1_050_095_660);
                text += &written(|out| text::interval(out, &timed, 0, &style));
                let bare = uncoloured(&text);
                let wide: Vec<&str> = bare.lines().filter(|l| pmc_text::text::width(l) > columns).collect();
                assert!(wide.is_empty(), "{what} {columns}: {wide:#?}\n{text}");
                assert!(*what != "hardware" || colour == text.contains('\u{1b}'), "{text}");
                // Every counted event appears.
                for event in &counts.events {
                    assert!(bare.matches(&event.name).count() >= 2, "{what} {columns}: {bare}");
                }
                let ratios = |text: &str| text.matches(" # ").count() + text.matches(" #~").count();
                let usual = written(|out| text::run(out, counts, &command(), &plain()));
                assert!(ratios(&bare) >= ratios(&usual), "{what} {columns}: {bare}");
            }
        }
    }
    // Output that fits is the same as perf's.
    let style = StatStyle { width: Some(200), ..plain() };
    for (_, counts) in &counted {
        let written = |style: &StatStyle| written(|out| text::run(out, counts, &command(), style));
        let table = |text: &str| text.split("\n\n").take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(table(&written(&style)), table(&written(&plain())));
    }
}

#[test]
fn narrow_repeat_tables_omit_columns() {
    let block = |columns| {
        let style = StatStyle { width: Some(columns), ..plain() };
        let text = written(|out| text::run(out, &repeated(), &command(), &style));
        text.lines().find(|line| line.contains("Over 5 runs:")).unwrap().trim_end().to_owned()
    };
    assert!(block(120).ends_with("max   95% interval of the mean"));
    assert!(block(90).ends_with("max  95% interval") && block(90).contains(" mean "));
    assert!(block(46).ends_with("median     min       max"), "{}", block(46));
}

#[test]
fn metrics_separate_levels_cgroups_and_groups() {
    let unit = |counts: &StatCounts, at| {
        shadow(counts, 0, at).iter().map(|m| (m.unit.to_string(), m.value, m.inexact)).collect::<Vec<_>>()
    };
    let mut counts = hardware();
    assert_eq!(unit(&counts, 1), [("GHz".into(), 3.0, false)]);
    assert_eq!(unit(&counts, 2)[0], ("insn per cycle".into(), 1.5, false));
    // 1.2e9 stalled cycles (scaled) over 4.5e9 instructions, counted at another time.
    assert_eq!(unit(&counts, 2)[1].0, "stalled cycles per insn");
    assert!(unit(&counts, 2)[1].2);
    assert_eq!(unit(&counts, 5), [("of all branches".into(), 12.5, false)]);
    assert!(unit(&counts, 7)[0].2, "two groups, both shared");
    assert_eq!(unit(&counts, 8), [("Watts".into(), 8.0, false)]);
    counts.events[1].level = "u".into();
    assert_eq!(unit(&counts, 2)[0].0, "stalled cycles per insn", "no IPC of different levels");
    counts.events[2].level = "u".into();
    assert_eq!(unit(&counts, 2)[0].0, "insn per cycle");
    counts.events[1].cgroup = Some("/a".into());
    assert!(unit(&counts, 2).is_empty(), "no IPC of different cgroups");
}

#[test]
fn missing_derived_metrics_have_a_reason() {
    let counts = software();
    let definitions = [
        formula("a=instructions / cycles").unwrap(),
        formula("b=page-faults / context-switches").unwrap(),
        formula("c=page-faults / duration_time").unwrap(),
        formula("d=cycles * 2").unwrap(),
    ];
    let row = &derive(&counts, &definitions)[0];
    assert!(row[0].value.as_ref().unwrap_err().cause.contains("`instructions` is not a counted event"));
    assert!(row[1].value.as_ref().unwrap_err().cause.contains("division by zero"));
    assert!((row[2].value.clone().unwrap() - 49.0 / 0.001_216_013).abs() < 1e-6);
    assert_eq!(row[3].value.as_ref().unwrap_err().errno, Some("ENOENT"));
}

#[test]
fn named_metric_uses_events_of_one_level() {
    let mut counts = hardware();
    for at in [1, 2] {
        counts.events[at].level = "u".into();
        counts.events[at].name += ":u";
    }
    let ipc = formula("ipc").unwrap();
    assert_eq!(derive(&counts, std::slice::from_ref(&ipc))[0][0].value, Ok(1.5));
    counts.events[1].level = "k".into();
    assert!(derive(&counts, &[ipc])[0][0].value.is_err());
}

#[test]
fn closed_output_is_an_error_not_a_panic() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (counts, style) = (repeated(), plain());
    for result in [
        text::run(&mut Full, &counts, &command(), &style),
        csv::write(&mut Full, &counts, &style),
        json::write(&mut Full, &counts, &style),
        document::write(&mut Full, &command(), &counts, &[]),
    ] {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn top_down_shares_are_shown_as_metrics() {
    let names = ["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];
    let mut counts = StatCounts {
        events: names.iter().map(|n| event(n, EventRole::Other)).collect(),
        rows: vec![row(PlaceLabel::default(), 1, [1000, 400, 100, 200, 300].map(|v| counted(v, 9)).to_vec())],
        elapsed_ns: 9,
        ..Default::default()
    };
    counts.derived = pmc_analysis::profile::metrics::topdown::derive(&counts);
    let got = written(|out| text::run(out, &counts, &command(), &plain()));
    for line in
        ["40.000 % retiring", "10.000 % bad speculation", "20.000 % frontend bound", "30.000 % backend bound"]
    {
        assert!(got.contains(line), "{got}");
    }
}

#[test]
fn threads_are_sorted_by_activity() {
    let mut counts = placed(Aggregation::Thread, None);
    counts.rows[1].values[0] = counted(99_000_000, 99_000_000);
    let got = written(|out| csv::write(out, &counts, &plain()));
    let places: Vec<&str> = got.lines().map(|l| l.split(',').next().unwrap()).collect();
    assert_eq!(places, ["ba?sh-4911", "ba?sh-4910", "ba?sh-4910", "ba?sh-4910", "ba?sh-4911"]);
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn names_are_sanitized_for_the_terminal(name in ".{0,40}", comm in ".{0,20}") {
            let mut counts = placed(Aggregation::Thread, Some(1));
            counts.events[0].name = name.clone();
            counts.events[1].cgroup = Some(comm.clone());
            counts.rows[0].place.thread = Some((comm.clone(), 1));
            counts.derived = vec![vec![pmc_analysis::profile::counts::DerivedResult {
                name: name.clone(), unit: String::new(), help: comm.clone(), cgroup: None, value: Ok(1.0), crossed: None, inexact: true,
                error: None,
                branch: None,
            }]];
            let subject = StatSubject::Command(vec![name.clone(), comm.clone()]);
            let tables = [
                written(|out| text::run(out, &counts, &subject, &plain())),
                written(|out| text::interval(out, &counts, 0, &plain())),
                written(|out| csv::write(out, &counts, &plain())),
                openmetrics::exposition(&counts),
            ];
            for table in tables {
                prop_assert!(!table.contains(|c: char| c.is_control() && c != '\n'), "{table:?}");
            }
            for line in written(|out| json::write(out, &counts, &plain())).lines() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
            }
        }

        #[test]
        fn arbitrary_expressions_do_not_panic(text in r"[-a-z0-9+*/%|^&<>=#()'\\,.:@ eü]{0,60}") {
            if let Ok(formula) = formula(&format!("x={text}")) {
                let _ = formula.evaluate(&mut |_| Ok(1.5));
            }
        }
    }
}

#[test]
fn event_that_never_ran_does_not_print_zero() {
    let mut counts = software();
    counts.rows[0].values[1] = shared(0, 1_000, 0);
    let style = plain();
    assert!(
        written(|out| csv::write(out, &counts, &style))
            .contains("<not counted>,,context-switches,0,0.00,,\n")
    );
    assert!(
        written(|out| text::run(out, &counts, &command(), &style))
            .contains("<not counted>      context-switches\n")
    );
    assert!(
        written(|out| json::write(out, &counts, &style))
            .contains("\"<not counted>\", \"unit\" : \"\", \"event\" : \"context-switches\"")
    );
}
