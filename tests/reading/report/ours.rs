//! Twelve recordings made by pmc: perf report, perf script and linux-perf-data read the same samples as pmc.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::against::{agree, pmc_json, totals_agree};
use super::lab::{DEEP, JIT, Lab, MANY};
use crate::kit::lab::GENERATED;
use crate::kit::{self, oracle};

/// Name, options, program, whether it is a stream, and the threads to compare (none: all).
type Kind<'a> = (&'a str, &'a [&'a str], &'a str, bool, &'a [&'a str]);

/// Records with pmc, as a stream if `pipe`.
#[track_caller]
fn record(lab: &Lab, name: &str, options: &[&str], program: &[&str], pipe: bool) -> PathBuf {
    let file = lab.path(&format!("{name}.data"));
    let record = || {
        let mut pmc = kit::pmc();
        pmc.args(["record", "-q"]).args(options).arg("-o");
        match pipe {
            true => pmc.arg("-").stdout(std::fs::File::create(&file).unwrap()),
            false => pmc.arg(&file).stdout(Stdio::null()),
        };
        let status = pmc.arg("--").args(program).stderr(Stdio::null()).status().expect("pmc starts");
        assert!(status.success(), "{name}: pmc record {options:?}: {status}");
    };
    match pipe {
        true => oracle::make_stream(&file, record),
        false => record(),
    }
    file
}

/// Number of samples that linux-perf-data reads; `None` for a format that it does not support.
fn second_opinion(file: &Path) -> Option<u64> {
    let open = std::io::BufReader::new(std::fs::File::open(file).unwrap());
    let linux_perf_data::PerfFileReader { mut perf_file, mut record_iter } =
        linux_perf_data::PerfFileReader::parse_file(open).ok()?;
    let mut samples = 0;
    while let Some(record) = record_iter.next_record(&mut perf_file).expect("its records are whole") {
        if let linux_perf_data::PerfFileRecord::EventRecord { record, .. } = record {
            samples += u64::from(record.record_type.0 == pmc_perfdata::record::kind::SAMPLE);
        }
    }
    Some(samples)
}

#[test]
fn other_tools_read_the_same_numbers_from_pmc_recordings() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_perf_events() {
        return;
    }
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let jit = lab.build("jit", &[GENERATED, JIT].concat());
    let (deep, many, jit) = (deep.to_str().unwrap(), many.to_str().unwrap(), jit.to_str().unwrap());
    let own: &[&str] = &[];
    let busy: &[&str] = &["many", "worker", "swapper"];
    #[rustfmt::skip]
    let kinds: &[Kind<'_>] = &[
        ("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], deep, false, own),
        ("dwarf", &["-e", "cpu-clock", "-F", "1000", "--call-graph", "dwarf,8192"], deep, false, own),
        ("flat", &["-e", "task-clock", "-F", "2000"], many, false, own),
        ("events", &["-e", "cpu-clock,task-clock,page-faults,context-switches", "-g"], many, false, own),
        ("group", &["-e", "{cpu-clock,task-clock}", "-g"], many, false, own),
        ("traces", &["-e", "sched:sched_switch,sched:sched_process_fork", "-a"], many, false, own),
        ("all", &["-e", "cpu-clock", "-F", "1000", "-a", "-g"], many, false, busy),
        ("packed", &["-e", "cpu-clock", "-F", "2000", "-g", "-z"], many, false, own),
        ("stream", &["-e", "cpu-clock", "-F", "2000", "-g"], many, true, own),
        ("thread", &["-e", "cpu-clock", "-F", "2000", "-i"], deep, false, own),
        ("data", &["-e", "page-faults", "-c", "1", "-d", "-W", "-T"], many, false, own),
        ("jit", &["-e", "cpu-clock", "-g"], jit, false, own),
    ];
    assert_eq!(kinds.len(), 12);
    let mut opinions = BTreeMap::new();
    for (name, options, program, pipe, comms) in kinds {
        let file = record(&lab, name, options, &[program], *pipe);
        // `agree` compares the percentages of perf report, `totals_agree` the sums of perf script.
        agree(&file, comms);
        totals_agree(&file);
        let ours = pmc_json(&file, &["--no-inline"])["trust"]["samples"].as_u64().unwrap();
        if let Some(samples) = second_opinion(&file) {
            assert_eq!(samples, ours, "{name}: linux-perf-data");
            opinions.insert(*name, samples);
        }
    }
    // linux-perf-data supports all formats except streams.
    assert!(opinions.len() >= 11, "{opinions:?}");
}

#[test]
fn unreadable_file_is_named_once() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file =
        lab.record("deep.data", &["-e", "cpu-clock:u", "-F", "2000"], &[deep.to_str().unwrap()], false);
    std::fs::remove_file(&deep).unwrap();
    std::fs::create_dir(&deep).unwrap();
    let [file, out] = [file, lab.path("out")].map(|path| path.to_str().unwrap().to_owned());
    let ways: &[&[&str]] = &[
        &["script", "-i", &file],
        &["report", "--csv", "-i", &file],
        &["data", "convert", "--force", "--to-json", &out, "-i", &file],
        &["export", "--format", "folded", "-o", "-", &file],
        &["export", "--format", "pprof", "-o", &out, &file],
        &["flamegraph", "-o", "-", &file],
        &["diff", &file, &file],
    ];
    for way in ways {
        let ran = kit::run(way).expect(0).says(&["function names or source lines are missing"]);
        let said = format!("{}: not a regular file", deep.display());
        assert_eq!(ran.stderr.matches(&said).count(), 1, "{way:?}: {}", ran.stderr);
    }
}

#[test]
fn descriptor_exhaustion_is_reported_for_symbols() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("few.data", &["-e", "cpu-clock:u", "-F", "2000"], &[deep.to_str().unwrap()], false);
    let script = |limit: &str| {
        let mut pmc = std::process::Command::new("sh");
        pmc.args(["-c", "ulimit -n $0 && exec \"$@\"", limit, kit::binary()]);
        pmc.args(["script", "--no-cache", "-F", "ip,sym", "-i"]).arg(&file);
        let output = pmc.output().expect("sh starts");
        let [names, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), names, said)
    };
    let (_, all, _) = script("64");
    let mut limited = 0;
    for limit in 3..12 {
        let (is_done, names, said) = script(&limit.to_string());
        if is_done && names != all {
            limited += 1;
            assert!(said.contains("names or source lines are missing"), "{limit} descriptors: {said:?}");
            assert!(said.contains("EMFILE"), "{limit} descriptors: {said:?}");
        }
    }
    assert!(limited > 0, "some limit leaves too few descriptors for symbol files");
}
