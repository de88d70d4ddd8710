//! `log-exit` and `log-cswitch`: the counts of each thread, compared to the total and to known properties of
//! the programs.

use std::collections::{BTreeMap, BTreeSet};

use super::{Document, kit};
use crate::kit::oracle;

/// A tree of 1 + 20 + 20 × 9 processes.
const TREE: &str = "i=0; while [ $i -lt 20 ]; do
    sh -c 'j=0; while [ $j -lt 9 ]; do /bin/true; j=$((j+1)); done; exit 0' & i=$((i+1)); done; wait";
const PROCESSES: usize = 1 + 20 + 20 * 9;

/// Counts a command into `DIR/perf.data` and returns the output printed meanwhile.
#[track_caller]
fn log(dir: &tempfile::TempDir, args: &[&str]) -> Document {
    let file = dir.path().join("perf.data");
    let all = [&["stat", "record", "--json=2", "-o", file.to_str().unwrap()], args].concat();
    let printed = kit::run(&all).expect(0).stderr;
    Document(serde_json::from_str(&printed).unwrap_or_else(|why| panic!("{why}: {printed}")))
}

/// Returns the output of `stat report` for the recording.
#[track_caller]
fn report(dir: &tempfile::TempDir, option: &str) -> Document {
    let [file, shown] = ["perf.data", "shown"].map(|name| dir.path().join(name));
    let [file, out] = [&file, &shown].map(|path| path.to_str().unwrap());
    let all = ["stat", "report", "--json=2", "-o", out, "-i", file];
    kit::run(&all.into_iter().chain((!option.is_empty()).then_some(option)).collect::<Vec<_>>()).expect(0);
    Document::read(&shown)
}

/// Returns the raw count of each event on each thread, by name and tid.
fn by_thread(rows: &serde_json::Value, document: &Document) -> BTreeMap<(String, u64), u64> {
    let mut counts = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let tid = row["place"]["thread"]["tid"].as_u64().unwrap();
        for value in row["values"].as_array().unwrap() {
            let Some(raw) = value["count"]["raw"].as_u64() else { continue };
            let event = document.0["events"][value["event"].as_u64().unwrap() as usize]["name"].as_str();
            *counts.entry((event.unwrap().to_owned(), tid)).or_default() += raw;
        }
    }
    counts
}

fn sum(counts: &BTreeMap<(String, u64), u64>, event: &str) -> u64 {
    counts.iter().filter(|((own, _), _)| own == event).map(|(_, count)| count).sum()
}

/// Returns the total of an event, raw.
#[track_caller]
fn total(document: &Document, event: &str) -> u64 {
    let events = document.0["events"].as_array().unwrap();
    let index = events.iter().position(|own| own["name"] == event).unwrap();
    let values = document.rows()[0]["values"].as_array().unwrap();
    values.iter().find(|value| value["event"] == index).unwrap()["count"]["raw"].as_u64().unwrap()
}

#[test]
fn exit_counts_of_200_processes_add_up() {
    if !crate::kit::need_kernel_mode() || !kit::need_program("perf") {
        return;
    }
    let run = || {
        let dir = tempfile::tempdir().unwrap();
        let printed = log(&dir, &["--log-exit", "-e", "page-faults:u,task-clock:u", "sh", "-c", TREE]);
        let ends = report(&dir, "--log-exit");
        let counts = by_thread(&ends.0["total"]["rows"], &ends);
        let threads: BTreeSet<u64> = counts.keys().map(|(_, tid)| *tid).collect();
        (dir, printed, ends, counts, threads)
    };
    // If contexts were swapped, the log would omit a process and give its count to another. Also, the kernel
    // sometimes stops publishing a ring when threads end at the same time on two CPUs. pmc reads the written
    // records anyway. Once in a hundred runs one thread's last records overwrite another's.
    let mut runs: Vec<_> = (0..10).map(|_| run()).collect();
    let lengths: Vec<usize> = runs.iter().map(|(.., threads)| threads.len()).collect();
    runs.retain(|(.., threads)| threads.len() == PROCESSES);
    assert!(runs.len() >= 8, "{lengths:?}");
    let (dir, printed, ends, counts, threads) = runs.pop().unwrap();
    for event in ["page-faults:u", "task-clock:u"] {
        assert_eq!(sum(&counts, event), total(&printed, event), "{event}");
        assert!(counts.iter().filter(|((own, _), _)| own == event).all(|(_, count)| *count > 0), "{event}");
    }
    let names: Vec<&str> =
        ends.rows().iter().map(|row| row["place"]["thread"]["comm"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "true").count(), 180);
    assert_eq!(names.iter().filter(|name| **name == "sh").count(), 21);
    // Without the log it is an ordinary recording of counts.
    assert_eq!(total(&report(&dir, ""), "page-faults:u"), total(&printed, "page-faults:u"));
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    for tool in ["report", "script"] {
        let all = [&[tool, "-i", file][..], if tool == "report" { &["-T"] } else { &[] }].concat();
        let said = kit::run(&all).expect(0).stdout;
        let some = threads.iter().next().unwrap().to_string();
        assert!(said.split_whitespace().any(|word| word == some), "{tool}:\n{said}");
    }
    let faults = total(&printed, "page-faults:u").to_string();
    for perf in oracle::perfs() {
        let said = oracle::ask(&perf, &["stat", "report", "-i", file]);
        let said = String::from_utf8_lossy(&said.stderr).replace(',', "");
        assert!(said.split_whitespace().any(|word| word == faults), "{perf:?}:\n{said}");
    }
}

#[test]
fn log_qualifier_selects_the_logged_events() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let events = "page-faults:u,log-exit,minor-faults:u";
    let printed = log(&dir, &["-e", events, "sh", "-c", "/bin/true; /bin/true"]);
    let ends = report(&dir, "--log-exit");
    let counts = by_thread(&ends.0["total"]["rows"], &ends);
    assert_eq!(sum(&counts, "page-faults:u"), total(&printed, "page-faults:u"));
    assert!(total(&printed, "minor-faults:u") > 0);
    assert_eq!(counts.keys().filter(|(event, _)| event == "minor-faults:u").count(), 0);
}

/// Of processes that were already running: how long each was counted, and the counts.
#[test]
fn log_of_running_tasks_states_the_counted_time() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "while :; do /bin/true; /bin/true & wait; done";
    let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
    let pid = shell.id().to_string();
    let line = ["--log-exit", "-e", "page-faults,descendants", "--timeout", "300", "-p", &pid];
    let printed = log(&dir, &line);
    shell.kill().unwrap();
    shell.wait().unwrap();
    let [whole, ends] = ["", "--log-exit"].map(|option| report(&dir, option));
    let elapsed = |document: &Document| document.0["total"]["elapsed_s"].as_f64().unwrap();
    assert_eq!(elapsed(&ends), elapsed(&whole));
    let names = |document: &Document| -> Vec<String> {
        let events = document.0["events"].as_array().unwrap();
        events.iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&whole), names(&ends)), (names(&printed), names(&printed)));
    let lines = kit::run(&["script", "-i", dir.path().join("perf.data").to_str().unwrap()]).expect(0).stdout;
    assert!(lines.lines().count() > 2, "{lines}");
    for line in lines.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [enabled, running] = [3, 4].map(|at| words[at].parse::<u64>().unwrap());
        assert!(enabled >= running && words[6] == "page-faults", "{lines}");
    }
}

#[test]
fn time_slices_add_up() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Threads that run one after another, and are therefore switched.
    let script = "for i in 1 2 3 4 5; do /bin/true | cat; done";
    let args = ["--log-cswitch", "-e", "page-faults,task-clock", "sh", "-c", script];
    let file = dir.path().join("perf.data");
    let ran = kit::run(&[&["stat", "record", "-x,", "-o", file.to_str().unwrap()], &args[..]].concat());
    let too_old = ran.stderr.contains("Linux 6.13");
    if !kit::need("time slices", !too_old, "this kernel has no inherited groups that samples read") {
        return;
    }
    let printed = log(&dir, &args);
    let slices = report(&dir, "--log-cswitch");
    let mut in_slices: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let intervals = slices.0["intervals"].as_array().unwrap();
    for interval in intervals {
        for (key, count) in by_thread(&interval["rows"], &slices) {
            *in_slices.entry(key).or_default() += count;
        }
    }
    // The lines of `script` also add up to the total.
    let lines = kit::run(&["script", "--json", "-i", file.to_str().unwrap()]).expect(0).stdout;
    let mut in_lines: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let event = line["event"].as_str().unwrap().to_owned();
        *in_lines.entry(event).or_default() += line["period"].as_u64().unwrap();
    }
    let text = kit::run(&["script", "-i", file.to_str().unwrap()]).expect(0).stdout;
    let lasts =
        text.lines().filter(|line| line.contains("PERF_RECORD_READ") && line.contains(" page-faults "));
    assert!(lasts.count() > 0, "{text}");
    for event in ["page-faults", "task-clock"] {
        assert_eq!(sum(&in_slices, event), total(&printed, event), "{event}");
        assert_eq!(in_lines[event], total(&printed, event), "{event}\n{text}");
    }
    assert!(intervals.len() as u64 > total(&printed, "context-switches"), "the last of each thread, too");
    let ends = report(&dir, "--log-exit");
    let at_ends = by_thread(&ends.0["total"]["rows"], &ends);
    assert_eq!(at_ends.keys().filter(|(event, _)| event == "page-faults").count(), 11);
    for (key, count) in &at_ends {
        assert_eq!(in_slices.get(key), Some(count), "{key:?}");
    }
}

#[test]
fn group_read_is_logged_once() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    let events = "{page-faults:u,minor-faults:u}:S";
    let all = ["record", "--json", "-s", "-n", "-e", events, "-o", file, "sh", "-c", "/bin/true; /bin/true"];
    let ran = kit::run(&all).expect(0);
    let counted: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = kit::run(&["report", "-T", "-i", file]).expect(0).stdout;
    let rows = text.lines().skip_while(|line| !line.contains("PID")).skip(1);
    let rows: Vec<Vec<u64>> =
        rows.map(|row| row.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    for event in counted["events"].as_array().unwrap().iter().take(2) {
        let sum: u64 =
            rows.iter().map(|row| if event["name"] == "minor-faults:u" { row[2] } else { row[3] }).sum();
        assert_eq!(Some(sum), event["count"].as_u64(), "{event}\n{text}");
    }
}

#[test]
fn unsupported_logging_is_reported() {
    let tree = ["true"];
    for (options, words) in [
        (&["--log-exit", "-a"][..], "-a, -C and --per-thread"),
        (&["--log-exit", "-r", "2"], "not logged with -r"),
        (&["-e", "page-faults,log-exit", "-I", "100"], "not logged with -I"),
        (&["--log-exit", "-e", "duration_time"], "no event supports logging"),
        (&["--log-exit", "-o", "/no/such/file"], "pmc stat record -o /no/such/file"),
        (&["-e", "page-faults,log-exit", "-o", "/no/such/file"], "cannot be logged with -o"),
    ] {
        let all = [&["stat"], options, &tree[..]].concat();
        kit::run(&all).expect(2).says(&[words]);
    }
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    kit::run(&["stat", "record", "-o", file, "-e", "page-faults:u", "true"]).expect(0);
    let ran = kit::run(&["stat", "report", "--log-exit", "-i", file]).expect(1);
    ran.says(&["no per-thread counts", "recorded without --log-exit"]);
}

#[test]
fn running_descendants_are_counted() {
    if !kit::need_perf_events() {
        return;
    }
    let mut parent = std::process::Command::new("sh")
        .args(["-c", "sleep 1000 & echo $!; wait"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(parent.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let (pid, child): (u64, u64) = (parent.id().into(), line.trim().parse().unwrap());
    let counted = |events: &str| {
        let document = super::count(&["--per-thread", "-p", &pid.to_string(), "-e", events, "true"]);
        let tid = |row: &serde_json::Value| row["place"]["thread"]["tid"].as_u64().unwrap();
        document.rows().iter().map(tid).collect::<BTreeSet<u64>>()
    };
    assert_eq!(counted("page-faults:u"), BTreeSet::from([pid]));
    assert_eq!(counted("page-faults:u,descendants"), BTreeSet::from([pid, child]));
    let some = ["stat", "-p", &pid.to_string(), "-e", "page-faults:u,descendants,minor-faults:u", "true"];
    kit::run(&some).expect(2).says(&["minor-faults:u does not"]);
    let child = rustix::process::Pid::from_raw(child as i32).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::TERM).unwrap();
    parent.wait().unwrap();
}
