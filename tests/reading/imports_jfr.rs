//! Recordings of Java Flight Recorder. The JDK's own `jfr print` says what a recording of a JVM contains.
//! `fuzz/README.md` describes the file in the form of async-profiler.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use crate::kit::{self, Ran};

/// Each kind of event, the name of its event in pmc, and the fields with its value and its object.
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("jdk.ExecutionSample", "jdk.ExecutionSample", "", ""),
    ("jdk.NativeMethodSample", "jdk.NativeMethodSample", "", ""),
    ("jdk.ObjectAllocationSample", "jdk.ObjectAllocationSample (bytes)", "weight", "objectClass"),
    ("jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationInNewTLAB (bytes)", "tlabSize", "objectClass"),
    (
        "jdk.ObjectAllocationOutsideTLAB",
        "jdk.ObjectAllocationOutsideTLAB (bytes)",
        "allocationSize",
        "objectClass",
    ),
    ("jdk.JavaMonitorEnter", "jdk.JavaMonitorEnter (nanoseconds)", "duration", "monitorClass"),
    ("jdk.ThreadPark", "jdk.ThreadPark (nanoseconds)", "duration", "parkedClass"),
];

fn run(words: &[&str], file: &Path) -> Ran {
    kit::run(&[words, &["-i", file.to_str().unwrap()]].concat())
}

/// Returns the sum of each folded stack of an event.
fn folded(file: &Path, event: &str) -> BTreeMap<String, u64> {
    let ran = run(&["export", "-q", "--format", "folded", "-o", "-", "--event", event], file).expect(0);
    let split = |line: &str| {
        let (stack, sum) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), sum.parse().unwrap())
    };
    ran.stdout.lines().map(split).collect()
}

/// Lets a JVM write a recording with events of all kinds in several chunks. Requires the JDK.
fn recording_of_jvm(folder: &Path) -> Option<PathBuf> {
    if !kit::need_program("java") || !kit::need_program("jfr") {
        return None;
    }
    let file = folder.join("app.jfr");
    let ran = Command::new("java").arg(kit::data("jfr/App.java")).arg(&file).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(file)
}

/// Returns the events that `jfr print` shows.
fn events_of_jfr_print(file: &Path) -> Vec<Json> {
    let ran =
        Command::new("jfr").args(["print", "--json", "--stack-depth", "64"]).arg(file).output().unwrap();
    let mut json: Json = serde_json::from_slice(&ran.stdout).unwrap();
    match json["recording"]["events"].take() {
        Json::Array(events) => events,
        other => panic!("{other}"),
    }
}

/// Returns the name of a class as Java source code spells it.
fn class_name(name: &str) -> String {
    let name = match name {
        "[B" => "byte[]",
        "[C" => "char[]",
        "[I" => "int[]",
        "[J" => "long[]",
        "[Z" => "boolean[]",
        _ if name.starts_with("[[") => return format!("{}[]", class_name(&name[1..])),
        _ => match name.strip_prefix("[L") {
            Some(name) => return name.replace('/', ".").replace(';', "[]"),
            None => name,
        },
    };
    name.replace('/', ".")
}

/// Converts `PT1M0.017006029S` to nanoseconds.
fn nanoseconds(duration: &str) -> u64 {
    let rest = duration.strip_prefix("PT").unwrap().strip_suffix('S').unwrap();
    let (minutes, seconds) = rest.split_once('M').unwrap_or(("0", rest));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let number = |text: &str| text.parse::<u64>().unwrap();
    (number(minutes) * 60 + number(seconds)) * 1_000_000_000 + number(&format!("{fraction:0<9}"))
}

/// Returns the folded stack of an event, the innermost function last.
fn stack_of(event: &Json, object: &str) -> String {
    let values = &event["values"];
    let thread = match &values["sampledThread"] {
        Json::Null => &values["eventThread"],
        thread => thread,
    };
    let name = thread["javaName"].as_str().or(thread["osName"].as_str()).unwrap();
    // Folded stacks have no spaces in the names of threads.
    let mut names = vec![name.replace(' ', "_")];
    let frames = values["stackTrace"]["frames"].as_array().map(Vec::as_slice).unwrap_or_default();
    for frame in frames.iter().rev() {
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let method = &frame["method"];
        names.push(format!("{}.{}", text(&method["type"]["name"]), text(&method["name"])));
    }
    names.extend(values[object]["name"].as_str().map(class_name));
    names.join(";")
}

#[test]
fn recordings_of_the_jvm_have_the_events_that_jfr_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = recording_of_jvm(folder.path()) else { return };
    let events = events_of_jfr_print(&file);
    for (kind, name, value, object) in KINDS {
        let of_kind: Vec<&Json> = events.iter().filter(|event| event["type"] == *kind).collect();
        assert!(!of_kind.is_empty(), "{kind}");
        let mut expected = BTreeMap::new();
        for event in &of_kind {
            let value = match &event["values"][value] {
                Json::Null => 1,
                Json::String(duration) => nanoseconds(duration),
                number => number.as_u64().unwrap(),
            };
            *expected.entry(stack_of(event, object)).or_default() += value;
        }
        let found = folded(&file, name);
        assert_eq!(found.values().sum::<u64>(), expected.values().sum::<u64>(), "{kind}");
        // `jfr print` does not find all stacks that are in the chunk before.
        for (stack, sum) in expected.iter().filter(|(stack, _)| stack.split(';').count() > 2) {
            assert!(found.get(stack).is_some_and(|found| found >= sum), "{kind} {stack}: {found:?}");
        }
    }
    // Times, IDs, lines and modules of all samples.
    let script = run(&["script", "--ns", "-F", "tid,time,event"], &file).expect(0).stdout;
    let ours: Vec<String> =
        script.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let mut theirs = Vec::new();
    for event in &events {
        let kind = event["type"].as_str().unwrap();
        let Some((_, name, ..)) = KINDS.iter().find(|row| row.0 == kind) else { continue };
        let values = &event["values"];
        let thread =
            if values["sampledThread"].is_null() { &values["eventThread"] } else { &values["sampledThread"] };
        let time = values["startTime"].as_str().unwrap();
        let (seconds, fraction) = time.trim_end_matches('Z').rsplit_once('.').unwrap_or((time, ""));
        let date = Command::new("date").args(["-u", "+%s", "-d", seconds]).output().unwrap();
        let seconds = String::from_utf8(date.stdout).unwrap();
        theirs.push(format!("{} {}.{:0<9}: {name}:", thread["osThreadId"], seconds.trim(), fraction));
    }
    // In later chunks, `jfr print` converts times with the clock of an earlier chunk.
    let sorted = |rows: Vec<String>| {
        let mut rows: Vec<(String, String, u64)> = rows
            .iter()
            .map(|row| {
                let mut words = row.splitn(3, ' ');
                let mut word = || words.next().unwrap().to_owned();
                let (tid, time, event) = (word(), word(), word());
                (event, tid, time.replace(['.', ':'], "").parse().unwrap())
            })
            .collect();
        rows.sort();
        rows
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    assert_eq!(ours.len(), theirs.len());
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!((&our.0, &our.1), (&their.0, &their.1));
        assert!(our.2.abs_diff(their.2) < 1_000_000, "{our:?} {their:?}");
    }
    let report =
        run(&["report", "--stdio", "-g", "none", "--no-children", "-s", "dso,sym,srcline"], &file).expect(0);
    report.prints(&["java.base", "App.inner", "App:"]);
    // Other formats keep the sums.
    let export = folder.path().join("app.pb.gz");
    run(&["export", "-q", "-o", export.to_str().unwrap()], &file).expect(0);
    for (_, name, ..) in KINDS {
        assert_eq!(folded(&export, name), folded(&file, name), "{name}");
    }
}

/// A recording of two chunks. The numbers are those of `jfr summary` and `jfr print`.
#[test]
fn packed_recordings_of_the_jvm_are_read() {
    let file = seed("jvm-17.jfr.gz");
    for (event, sum) in [
        ("jdk.ExecutionSample", 24),
        ("jdk.NativeMethodSample", 44),
        ("jdk.ObjectAllocationSample (bytes)", 231_710_128),
        ("jdk.ObjectAllocationInNewTLAB (bytes)", 1_454_888),
        ("jdk.ObjectAllocationOutsideTLAB (bytes)", 184_549_768),
        ("jdk.JavaMonitorEnter (nanoseconds)", 1_235_642_307),
        ("jdk.ThreadPark (nanoseconds)", 276_844_465),
    ] {
        assert_eq!(folded(&file, event).values().sum::<u64>(), sum, "{event}");
    }
    let ran = run(&["report", "--stdio", "-n", "-g", "none", "--no-children", "-s", "comm,dso,sym"], &file);
    ran.expect(0)
        .prints(&["worker   unknown        [.] App.inner", "java.base      [.] sun/nio/ch/Net.poll"]);
}

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/imported_profile").join(name)
}

fn async_profiler_form() -> PathBuf {
    seed("async-profiler-form.jfr")
}

#[test]
fn native_kernel_and_inlined_frames_of_async_profiler_are_told_apart() {
    let file = async_profiler_form();
    let inlined = "worker;app/Main.run;app/Main.outer;app/Main.inlined";
    let kernel = "worker;app/Main.run;app/Main.föö;JVM_Sleep;do_sys_poll";
    let expected = [(inlined.to_owned(), 2), (kernel.to_owned(), 1)];
    assert_eq!(folded(&file, "jdk.ExecutionSample"), BTreeMap::from(expected));
    let wall = kernel.replace("worker", "[tid=101]");
    assert_eq!(folded(&file, "profiler.WallClockSample"), BTreeMap::from([(wall, 5)]));
    let allocated = format!("{inlined};byte[]");
    let bytes = folded(&file, "jdk.ObjectAllocationInNewTLAB (bytes)");
    assert_eq!(bytes, BTreeMap::from([(allocated, 65_536)]));
    // A virtual thread, and a duration in ticks of a microsecond.
    let blocked = "virtual;app/Main.run;java.lang.Object".to_owned();
    assert_eq!(folded(&file, "jdk.JavaMonitorEnter (nanoseconds)"), BTreeMap::from([(blocked, 250_000)]));
    let cpu = folded(&file, "jdk.CPUTimeSample (nanoseconds)");
    assert_eq!(cpu.values().sum::<u64>(), 40_000_000);
    let rows = ["report", "--stdio", "-n", "-g", "none", "--no-children", "-s", "comm,tid,dso,sym,srcline"];
    let ran = run(&rows, &file).expect(0);
    ran.prints(&["[k] do_sys_poll", "Main:12"])
        .says(&["the JVM cut off the callers of 2 stacks", "1 events have no stack or no thread"]);
    let script = run(&["script", "-F", "comm,pid,tid,time,event,ip,sym,dso"], &file).expect(0);
    script.prints(&["4242/100", "1700000000.000500:", "1700000001.000000:", "JVM_Sleep (libjvm.so)"]);
    // The times are dates, so an export may contain them.
    run(&["export", "-q", "--format", "otlp", "-o", "/dev/null"], &file).expect(0);
}

#[test]
fn damaged_recordings_are_explained_with_the_offset() {
    let whole = fs::read(async_profiler_form()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let fails = |content: &[u8], words: &[&str]| {
        fs::write(&file, content).unwrap();
        run(&["report", "--stdio"], &file).expect(1).says(words);
    };
    let second = whole.windows(4).rposition(|bytes| bytes == b"FLR\0").unwrap();
    fails(&whole[..whole.len() - 1], &["as JFR", &format!("byte {second}: the file is truncated")]);
    fails(&whole[..second + 40], &["as JFR", &format!("byte {second}")]);
    let changed = |at: usize, bytes: &[u8]| {
        let mut content = whole.clone();
        content[at..at + bytes.len()].copy_from_slice(bytes);
        content
    };
    fails(&changed(4, &[0, 9]), &["byte 0: version 9.0"]);
    fails(&changed(16, &[0; 8]), &["byte 0", "was not stopped"]);
    fails(&changed(56, &[0; 8]), &["byte 0", "ticks per second"]);
    fails(&changed(second, b"FLX"), &[&format!("byte {second}: a chunk must start with FLR")]);
    fails(&changed(68, &[0]), &["byte 68: invalid size of an event (0)"]);
    // The rest of a recording that its JVM is still writing is ignored.
    let unfinished = changed(64, &[2]);
    fs::write(&file, [&unfinished[..second], b"12345"].concat()).unwrap();
    run(&["report", "--stdio"], &file).expect(0).says(&["the last 5 bytes are incomplete"]);
}

#[test]
fn recordings_without_samples_are_explained() {
    // Renames the kinds of events, so that none of them is known.
    let whole = fs::read(async_profiler_form()).unwrap();
    let mut content = whole;
    for kind in [
        "jdk.ExecutionSample",
        "profiler.WallClockSample",
        "jdk.ObjectAllocationInNewTLAB",
        "jdk.JavaMonitorEnter",
        "jdk.CPUTimeSample",
    ] {
        let places: Vec<usize> = content
            .windows(kind.len())
            .enumerate()
            .filter(|(_, bytes)| *bytes == kind.as_bytes())
            .map(|(at, _)| at)
            .collect();
        places.into_iter().for_each(|at| content[at] = b'x');
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, content).unwrap();
    run(&["report", "--stdio"], &file)
        .expect(1)
        .says(&["as JFR: it contains none of the events jdk.ExecutionSample"]);
}
