//! `pmc export --format otlp`, read with the official types of the protocol.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::export::export;
use crate::kit;
use crate::kit::burn::least_samples;
use crate::kit::lab::{CHAIN, Lab, TWO_THREADS};

/// Two threads. `inner` is inlined into `outer`.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <unistd.h>
static inline __attribute__((always_inline)) unsigned long inner(unsigned long x) { return chain(x, 100 * uneven()); }
static __attribute__((noinline)) unsigned long outer(unsigned long x) { return inner(x) + 1; }
static void *work(void *arg) { for_cpu_ms(200) sink = outer(sink); usleep(20000); return arg; }
"#;

const FLAGS: [&str; 6] =
    ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-D_GNU_SOURCE", "-Wl,--build-id"];

pub(crate) fn program(lab: &Lab) -> PathBuf {
    lab.build("walk", &[CHAIN, PROGRAM, TWO_THREADS].concat(), &FLAGS)
}

/// Runs `read.py`. `None` if the official Python types are missing.
fn read(mode: &str, files: &[PathBuf]) -> Option<String> {
    if !kit::need_program("python3") {
        return None;
    }
    // `.ci/run` installs the package into a separate folder.
    let packages = std::env::var("PMC_TEST_OTLP").unwrap_or_default();
    let python = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.args(words).args(files).env("PYTHONPATH", &packages).output().unwrap()
    };
    let types = "import opentelemetry.proto.profiles.v1development.profiles_pb2";
    let is_there = python(&["-c", types]).status.success();
    if !kit::need("python-otlp", is_there, "the Python package opentelemetry-proto is not installed") {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/otlp/read.py");
    let output = python(&[script.to_str().unwrap(), mode]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the sums of files, as `read.py` describes them.
pub(crate) fn sums(files: &[PathBuf]) -> Option<Vec<Json>> {
    Some(read("sums", files)?.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Returns the sums of the report's first event, and its self and total sums by function, in this unit.
fn reported(file: &Path, unit: &str) -> (Json, [BTreeMap<String, u64>; 2]) {
    let words = ["report", "--json", "--no-cache", "--no-inline", "-s", "sym", file.to_str().unwrap()];
    let document: Json = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    let event = &document["events"][0];
    let by = |which: &str| {
        let rows = event["rows"].as_array().unwrap().iter();
        let pairs =
            rows.map(|row| (row["sym"].as_str().unwrap().to_owned(), row[which][unit].as_u64().unwrap()));
        pairs.filter(|(_, sum)| *sum > 0).collect()
    };
    (event[unit].clone(), [by("self"), by("total")])
}

fn map(of: &Json) -> BTreeMap<String, u64> {
    serde_json::from_value(of.clone()).unwrap()
}

#[test]
fn official_python_types_read_the_sums_of_the_report() {
    let Some(lab) = Lab::new() else { return };
    let program = program(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000", "-g", "-k", "mono"], &program);
    // The report counts the cost of inlined code as its caller's self cost.
    export(&lab, &file, "times.otlp", &["--no-inline"]);
    export(&lab, &file, "sums.otlp", &["--no-inline", "--aggregate", "--service", "shop\u{1b}"]);
    let origin = ["--service", "shop", "--service-version", "1.4\u{1b}", "--host", "web7"];
    export(&lab, &file, "origin.otlp", &[&["--no-inline"], &origin[..]].concat());
    export(&lab, &file, "inline.otlp", &[]);
    let files = ["times.otlp", "sums.otlp", "inline.otlp", "origin.otlp"].map(|name| lab.path(name));
    let Some(read) = sums(&files) else { return };
    for one in &read {
        assert_eq!(one["unknown"], 0);
        assert_eq!(one["scope"], json!(["pmc", {"opentelemetry.proto.version": "1.10.0"}]));
        assert_eq!(one["profiles"].as_array().unwrap().len(), 1, "{one}");
        assert_eq!(one["profiles"][0]["attributes"], json!({"pmc.event": "cpu-clock"}));
        let build_id = &one["mappings"][program.to_str().unwrap()]["process.executable.build_id.gnu"];
        assert_eq!(build_id.as_str().unwrap().len(), 40, "{one}");
    }
    let [times, sums, inline, origin] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(times["resource"]["service.name"], "unknown_service:walk");
    assert_eq!(sums["resource"]["service.name"], "shop?");
    assert_eq!(times["resource"]["os.type"], "linux");
    assert_eq!(times["resource"].get("service.version"), None);
    assert_eq!(origin["resource"]["service.version"], "1.4?");
    assert_eq!(origin["resource"]["host.name"], "web7");
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(times["resource"]["host.name"], hostname.trim());

    let (samples, [own, total]) = reported(&file, "samples");
    let profile = &times["profiles"][0];
    assert_eq!(
        (&profile["times"], &profile["values"], &profile["shapes"]),
        (&samples, &json!(0), &json!(["times"]))
    );
    assert_eq!((map(&profile["self"]), map(&profile["total"])), (own, total));
    assert_eq!(profile["type"], json!(["samples", "count"]));
    assert_eq!(
        (&profile["period_type"], &profile["period"]),
        (&json!(["cpu", "nanoseconds"]), &json!(500_000))
    );
    let threads = map(&profile["threads"]);
    let least = least_samples(200, 2000) as u64;
    assert!(threads["walk"] >= least && threads["a worker"] >= least, "{threads:?}");

    let (period, [own, total]) = reported(&file, "period");
    let profile = &sums["profiles"][0];
    assert_eq!(
        (&profile["values"], &profile["times"], &profile["shapes"]),
        (&period, &json!(0), &json!(["values"]))
    );
    assert_eq!((map(&profile["self"]), map(&profile["total"])), (own, total));
    assert_eq!(
        (&profile["type"], &profile["period_type"]),
        (&json!(["cpu", "nanoseconds"]), &json!(["cpu", "nanoseconds"]))
    );

    // Leaf first, and inlined functions before their callers.
    let stacks = inline["profiles"][0]["stacks"].as_array().unwrap();
    let begins = |names: &[&str]| {
        stacks.iter().any(|stack| {
            stack.as_array().unwrap().starts_with(&names.iter().map(|name| json!(name)).collect::<Vec<_>>())
        })
    };
    assert!(begins(&["chain", "inner", "outer"]), "{stacks:?}");
    assert!(inline["lines"].as_array().unwrap().contains(&json!(3)), "{inline}");
    assert!(inline["frame_types"].as_array().unwrap().contains(&json!("native")));
}

#[test]
fn times_are_those_of_the_wall_clock() {
    let Some(lab) = Lab::new() else { return };
    let program = program(&lab);
    let now =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let begin = now();
    lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000", "-g", "-k", "mono"], &program);
    // pmc also records the date for the default clock.
    let file = lab.path("pmc.data");
    let words = ["record", "-q", "-e", "cpu-clock", "-F", "2000", "-g", "-o", file.to_str().unwrap(), "--"];
    kit::run(&[&words[..], &[program.to_str().unwrap()]].concat()).expect(0);
    let end = now();
    for name in ["perf.data", "pmc.data"] {
        let file = lab.path(name);
        // The date comes from the recorded clocks, not from the file.
        let open = std::fs::File::options().write(true).open(&file).unwrap();
        open.set_modified(std::time::UNIX_EPOCH).unwrap();
        let out = lab.path("a.otlp");
        let ran = kit::run(&["export", file.to_str().unwrap(), "-o", out.to_str().unwrap()]).expect(0);
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
        let Some(read) = sums(&[out]) else { return };
        let profile = &read[0]["profiles"][0];
        let (from, length) = (profile["time"].as_u64().unwrap(), profile["duration"].as_u64().unwrap());
        assert!(begin < from && length > 0 && from + length < end, "{begin} {from} {length} {end}");
    }

    // Without the recorded clocks, the date is a guess, and unknown for standard input.
    let file = lab.record("old.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program);
    let file = file.to_str().unwrap();
    let out = lab.path("b.otlp");
    let out = out.to_str().unwrap();
    kit::run(&["export", file, "-o", out])
        .expect(0)
        .says(&["estimated from the recording's modification time", "-k CLOCK_MONOTONIC"]);
    let piped = |more: &str| -> kit::Ran {
        let line = format!("cat {file} | {} export -o {out} {more}", kit::binary());
        Command::new("sh").args(["-c", &line]).output().unwrap().into()
    };
    std::fs::remove_file(out).unwrap();
    piped("").expect(1).says(&["times of the samples are unknown", "--aggregate"]);
    assert!(!Path::new(out).exists());
    piped("--aggregate").expect(0);
    assert_eq!(sums(&[out.into()]).unwrap()[0]["profiles"][0]["time"], 0);
}

#[test]
fn waits_are_a_profile_with_durations() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_tracefs("sched") {
        return;
    }
    let program = program(&lab);
    let file = lab.path("wall.data");
    let file = file.to_str().unwrap();
    let words =
        ["record", "-q", "--wall", "-k", "monotonic", "-g", "-o", file, "--", program.to_str().unwrap()];
    kit::run(&words).expect(0);
    for (name, more) in [("times.otlp", None), ("sums.otlp", Some("--aggregate"))] {
        export(&lab, Path::new(file), name, more.as_slice());
    }
    let Some(read) = sums(&["times.otlp", "sums.otlp"].map(|name| lab.path(name))) else { return };
    // Time in which threads waited for a CPU is not in a table by default.
    let words = ["report", "--json", "--no-cache", "--state", "all", "-s", "sym", file];
    let document: Json = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    let periods =
        document["events"].as_array().unwrap().iter().map(|event| event["period"].as_u64().unwrap());
    let period: u64 = periods.sum();
    for (one, shape) in read.iter().zip(["timesvalues", "values"]) {
        assert_eq!(one["unknown"], 0);
        let [running, waiting] = one["profiles"].as_array().unwrap().as_slice() else { panic!("{one}") };
        assert_eq!(running["period_type"], json!(["cpu", "nanoseconds"]));
        assert_eq!((&waiting["type"], &waiting["period"]), (&json!(["off_cpu", "nanoseconds"]), &json!(0)));
        assert_eq!(waiting["shapes"], json!([shape]));
        // Two threads slept for 20 ms each.
        assert!(waiting["values"].as_u64() >= Some(40_000_000), "{waiting}");
    }
    let sum = |which: usize| read[1]["profiles"][which]["values"].as_u64().unwrap();
    assert_eq!(sum(0) + sum(1), period);
}

#[test]
fn structure_is_the_golden_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.otlp");
    // Names of the machine's own kernel and libraries would differ.
    let stored = kit::data("perfdata/fp.data");
    let empty = folder.path().to_str().unwrap();
    let words = ["export", stored.to_str().unwrap(), "-o", file.to_str().unwrap(), "--no-cache"];
    let nothing = ["--symfs", empty, "--kallsyms", "/dev/null", "--time", "0-50%"];
    kit::run(&[&words[..], &nothing].concat()).expect(0);
    let Some(text) = read("structure", &[file]) else { return };
    kit::golden("otlp.txt", &text);
}

#[test]
fn options_are_checked() {
    let usage = |words: &[&str]| kit::run(&[&["export", "perf.data"], words].concat()).expect(2);
    usage(&["-o", "a.svg", "--aggregate"]).says(&["only OTLP supports --aggregate"]);
    for option in ["--service", "--service-version", "--host"] {
        let rule = format!("{option} requires --push, or the format otlp or parquet");
        usage(&["-o", "a.svg", option, "x"]).says(&[&rule]);
    }
    usage(&["--push", "http://a", "-o", "-"]).says(&["--push cannot be combined with -o -"]);
    usage(&["--push", "a:4318"]).says(&["begin with http://", "try: --push http://HOST:PORT"]);
    usage(&["--push", "http://a", "--format", "pprof"]).says(&["which server", "pyroscope=URL", "parca=URL"]);
    usage(&["--push", "http://a", "--format", "html"]).says(&["only the formats otlp and pprof"]);
    let said = usage(&["--push", "https://me:s3cret@a"]).says(&["user or password", "--push-headers"]);
    assert!(!said.stderr.contains("s3cret"), "{}", said.stderr);
}
