//! Wakers (`pmc record --wakers`): programs whose threads are woken by a known thread, a timer, or a process
//! that is not recorded.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{C, Lab, check_perf, oracle_is_there};
use crate::kit;
use pmc_sys::host::Host;

const WAKERS: &str = include_str!("wakers.c");

/// Whether wake-ups can be recorded here.
#[track_caller]
fn need_wakeups() -> bool {
    kit::need_root() && kit::need_kernel_mode() && kit::need_tracefs("sched/sched_waking")
}

/// Records the program with `--wakers`, and with a second recording that shows how often the kernel wrote that
/// the thread `sleep` was woken; returns this number. Some virtual machines write only part of the wake-ups by
/// interrupts of an idle CPU (to perf as well), sometimes almost none. Such a recording is made again, up to
/// 20 times.
#[track_caller]
fn recording_with_wakeups(lab: &Lab, program: &str) -> Option<(PathBuf, kit::Ran, u64)> {
    let (all, file) = (lab.path("all.data"), lab.path("perf.data"));
    let [all, wall] = [&all, &file].map(|path| path.to_str().expect("UTF-8"));
    let mut words = vec!["record", "-q", "-m", "8M", "-o", all, "-a", "-e", "sched:sched_waking"];
    words.extend(["--filter", "comm == \"sleep\"", "--", kit::binary(), "record", "-q", "--wall"]);
    words.extend(["--wakers", "-m", "8M", "-o", wall, "--", program]);
    let mut last = String::new();
    for _ in 0..20 {
        let ran = kit::run(&words).expect(0);
        let tid = ran.stdout.lines().find_map(|line| line.strip_prefix("sleep ")).expect("a thread");
        let written = kit::run(&["script", "-i", all, "-F", "trace"]).expect(0).stdout;
        let written = written.lines().filter(|line| line.contains(&format!("pid={tid} "))).count();
        if written >= 10 {
            return Some((file, ran, written as u64));
        }
        last = format!("the kernel wrote {written} of 60 wake-ups");
    }
    kit::need("wakeup-samples", false, &last);
    None
}

/// A row of a report.
#[derive(Debug)]
struct Row {
    tid: i64,
    state: String,
    site: String,
    waker: String,
    ran_instead: String,
    samples: u64,
}

#[track_caller]
fn rows(file: &Path) -> Vec<Row> {
    let keys = "tid,state,wait_site,waker,ran_instead";
    let file = file.to_str().expect("UTF-8");
    let row = |row: &serde_json::Value| {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        Row {
            tid: row["tid"].as_i64().expect("a number"),
            state: text("state"),
            site: text("wait_site"),
            waker: text("waker"),
            ran_instead: text("ran_instead"),
            samples: row["self"]["samples"].as_u64().expect("a count"),
        }
    };
    super::rows_of_all_states(file, keys).iter().map(row).collect()
}

/// Checks that nearly all of the wake-ups, by default one per row's sample, have one of these wakers. A busy
/// machine loses some records.
#[track_caller]
fn check<'a>(rows: impl Iterator<Item = &'a Row>, wanted: &[&str], wakeups: Option<u64>) {
    let rows: Vec<&Row> = rows.collect();
    let is_right = |row: &Row| wanted.contains(&row.waker.as_str());
    let right: u64 = rows.iter().filter(|row| is_right(row)).map(|row| row.samples).sum();
    let wakeups = wakeups.unwrap_or_else(|| rows.iter().map(|row| row.samples).sum());
    assert!(right > 0 && right * 10 >= wakeups * 9, "{wanted:?} of {wakeups}: {rows:#?}");
    // The others are unknown, not wrong.
    let wrong = rows.iter().find(|row| !is_right(row) && row.waker != "[unknown]");
    assert!(wrong.is_none(), "{wanted:?}: {wrong:?}");
}

#[test]
fn known_wakers_are_named() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, WAKERS) else { return };
    if !need_wakeups() {
        return;
    }
    let program = program.to_str().expect("UTF-8");
    let Some((file, ran, timer_wakeups)) = recording_with_wakeups(&lab, program) else { return };
    let tids: HashMap<&str, i64> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, tid)| Some((name, tid.parse().ok()?)))
        .collect();
    let rows = rows(&file);
    let blocked = |name: &str, site: &'static str| {
        let tid = tids[name];
        rows.iter().filter(move |row| row.tid == tid && row.state == "blocked" && row.site == site)
    };
    let releaser = format!("{}:releaser", tids["releaser"]);
    check(blocked("mutex", "mutex"), &[&releaser], None);
    check(blocked("pipe", "pipe"), &[&releaser], None);
    // Without the kernel's addresses, all interrupts look alike.
    let timers: &[&str] =
        if Host::live().kernel_symbols() { &["[timer]"] } else { &["[interrupt]", "[softirq]"] };
    check(blocked("sleep", "sleep"), timers, Some(timer_wakeups));
    assert!(rows.iter().all(|row| row.waker.is_empty() || row.state == "blocked"), "{rows:#?}");
    if kit::need("real-time", !ran.stdout.contains("no real-time"), "no real-time threads are allowed") {
        for (name, other) in [("first", "second"), ("second", "first")] {
            let other = format!("{}:{other}", tids[other]);
            let waits = rows.iter().filter(|row| row.tid == tids[name] && row.state == "runnable");
            let got: u64 = waits.clone().filter(|row| row.ran_instead == other).map(|row| row.samples).sum();
            assert!(got > 300, "{other} {got}: {:#?}", waits.collect::<Vec<_>>());
        }
    }
    if oracle_is_there() {
        check_perf(&file);
    }
}

#[test]
fn wakers_that_are_not_recorded_have_names() {
    if !kit::need_program("cat") || !need_wakeups() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("perf.data");
    let mut pmc = kit::pmc();
    pmc.args(["record", "-q", "--off-cpu", "--wakers", "-o"]).arg(&file).args(["--", "cat"]);
    let mut pmc = kit::ProcessGuard::start(pmc.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let (mut input, output) = (pmc.0.stdin.take().expect("a pipe"), pmc.0.stdout.take().expect("a pipe"));
    let mut output = BufReader::new(output);
    let cat = kit::wait_for_child(pmc.0.id());
    for _ in 0..100 {
        input.write_all(b"x\n").expect("a line");
        output.read_line(&mut String::new()).expect("an echo");
        // If both share a CPU, `cat` may lose it right after its echo, and would find the next line there.
        kit::wait_for("cat to wait", || kit::sleeps(cat));
    }
    drop(input);
    assert!(pmc.0.wait().expect("an end").success());
    let name = std::fs::read_to_string("/proc/thread-self/comm").expect("a name");
    let rows = rows(&file);
    let ours =
        rows.iter().filter(|row| row.site == "pipe" && row.waker.ends_with(&format!(":{}", name.trim())));
    assert!(ours.map(|row| row.samples).sum::<u64>() > 0, "{rows:#?}");
}

#[test]
fn missing_wakers_are_explained() {
    let lab = Lab::new();
    let file = lab.path("perf.data");
    let file = file.to_str().expect("UTF-8");
    kit::run(&["record", "--wakers", "-o", file, "--", "true"])
        .expect(2)
        .says(&["--wakers requires --off-cpu or --wall"]);
    if kit::need_perf_events() {
        kit::run(&["record", "-q", "--wall", "-o", file, "--", "true"]).expect(0);
        kit::run(&["report", "--stdio", "-s", "waker", "-i", file])
            .expect(1)
            .says(&["the recording has no wakers", "pmc record --wall --wakers"]);
    }
    if let Some(ran) = kit::as_nobody(&["record", "--wall", "--wakers", "-o", file, "--", "true"]) {
        let ran = ran.says(&["sched:sched_waking"]);
        assert_ne!(ran.status, Some(0));
    }
}
