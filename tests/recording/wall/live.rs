//! Waiting time in `pmc top`: compared with the times that programs measure themselves.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};

use serde_json::Value;

use super::{C, Lab, Measured, agree, measured};
use crate::kit;
use crate::top::screen::shell_line;

const LIVE: &str = include_str!("live.c");

/// Builds the program; returns `None` if this machine cannot run the tests.
#[track_caller]
fn program(lab: &Lab) -> Option<String> {
    let program = lab.build(C, LIVE)?;
    kit::need_kernel_mode().then(|| program.to_str().expect("UTF-8").to_owned())
}

/// Starts the program with a main thread that waits for its other thread, which waits for work.
#[track_caller]
fn idle_program(program: &str) -> kit::ProcessGuard {
    let idle = kit::ProcessGuard::start(Command::new(program).arg("idle").stdin(Stdio::null()));
    kit::wait_for("its threads", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", idle.id())).expect("it runs");
        tasks.count() == 2 && kit::sleeps(idle.id())
    });
    idle
}

/// Runs `pmc top --wall` with these options until the test ends. Returns its output, line by line.
#[track_caller]
fn top(options: &[&str]) -> (kit::ProcessGuard, std::io::Lines<BufReader<ChildStdout>>) {
    let mut pmc = kit::pmc();
    pmc.args(["top", "--wall"]).args(options);
    let mut top = kit::ProcessGuard::start(pmc.stdout(Stdio::piped()));
    let lines = BufReader::new(top.0.stdout.take().expect("a pipe")).lines();
    (top, lines)
}

#[track_caller]
fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn event(object: &Value) -> &Value {
    &object["events"][0]
}

#[track_caller]
fn rows(object: &Value) -> &[Value] {
    event(object)["rows"].as_array().expect("rows")
}

/// Milliseconds per second: running, runnable and blocked.
#[track_caller]
fn rates(value: &Value) -> [f64; 3] {
    let rate = |state| value["ms_per_s"][state].as_f64().unwrap_or_else(|| panic!("no {state} in {value}"));
    [rate("running"), rate("runnable"), rate("blocked")]
}

#[track_caller]
fn elapsed_ns(object: &Value) -> f64 {
    event(object)["thread_time"]["elapsed_ns"].as_f64().expect("a time")
}

/// Checks that waits are not longer than the time in which they occurred.
#[track_caller]
fn check_bounds(object: &Value) {
    let sums = &event(object)["thread_time"];
    let [_, runnable, blocked] = rates(sums);
    let threads = sums["threads"].as_f64().expect("a number");
    assert!(runnable + blocked <= threads * 1000.5, "{object}");
}

#[test]
fn waits_of_a_command_are_shown_per_thread() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    let options = ["top", "--wall", "--json", "--accumulate", "--idle", "-d", "300ms", "-m", "8M"];
    let ran = kit::run(&[&options[..], &["-s", "comm,wait_site", "--", &program]].concat()).expect(0);
    let all: Vec<Value> = ran.stdout.lines().map(object).collect();
    all.iter().for_each(check_bounds);
    let last = all.last().expect("an interval");
    assert_eq!((&last["lost"], &event(last)["name"]), (&0.into(), &"wall-clock".into()), "{last}");
    for Measured { name, wait, .. } in measured(&ran.stderr) {
        let (mut sum, mut at_site) = (0.0, 0.0);
        for row in rows(last).iter().filter(|row| row["comm"] == name) {
            let [_, runnable, blocked] = rates(&row["self"]);
            sum += runnable + blocked;
            at_site += if row["wait_site"] == name { blocked } else { 0.0 };
        }
        agree(&name, sum / 1000.0 * elapsed_ns(last), wait, 0.05);
        // The kernel's part of a stack tells these, even before the program's unwind tables are read.
        if ["sleep", "pipe"].contains(&name.as_str()) {
            assert!(at_site >= 0.9 * sum, "{name}: {at_site} of {sum} ms/s\n{last}");
        }
    }
}

#[test]
fn thread_that_sleeps_throughout_counts_in_each_interval() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    let idle = idle_program(&program);
    let pid = idle.id();
    let (_top, lines) = top(&["--json", "--idle", "-d", "100ms", "-s", "tid", "-p", &pid.to_string()]);
    let mut intervals = 0;
    for line in lines {
        let line = line.expect("a line");
        let object = object(&line);
        check_bounds(&object);
        // An interval without a finished round is empty. The first one begins before the threads are known.
        if elapsed_ns(&object) == 0.0 {
            continue;
        }
        intervals += 1;
        let main = rows(&object).iter().find(|row| row["tid"] == pid).expect("the main thread");
        let [running, runnable, blocked] = rates(&main["self"]);
        assert_eq!((running, runnable), (0.0, 0.0), "{line}");
        assert!(blocked.round() == 1000.0 || intervals == 1 && blocked < 1000.0, "{line}");
        if intervals == 5 {
            return;
        }
    }
}

#[test]
fn threads_that_wait_for_work_are_folded() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    let idle = idle_program(&program);
    let pid = idle.id();
    let until = |options: &[&str], is_it: &dyn Fn(&Value, bool) -> bool| {
        let common = ["--json", "-d", "500ms", "-s", "tid", "-p", &pid.to_string()];
        let (_top, mut lines) = top(&[&common[..], options].concat());
        // Until the program's unwind tables are read, the thread waits with various stacks.
        kit::wait_for_some("the interval", || {
            let line = lines.next().expect("another interval").expect("a line");
            let object = object(&line);
            let has_worker =
                rows(&object).iter().any(|row| row["tid"] != pid && rates(&row["self"])[2] > 500.0);
            is_it(&event(&object)["thread_time"]["idle_threads"], has_worker).then_some(())
        });
    };
    // The main thread waits for the worker, which is measured.
    until(&[], &|idle, has_worker| *idle == 2 && !has_worker);
    until(&["--idle"], &|idle, has_worker| *idle == 0 && has_worker);
    // Changed stacks are numbered anew, also those of the folded waits.
    until(&["--idle", "-g", "--ignore-callees", "."], &|idle, has_worker| *idle == 0 && has_worker);
}

#[test]
fn screen_folds_idle_threads_until_asked_for() {
    let lab = Lab::new();
    let Some(program) = program(&lab).filter(|_| kit::need_program("tmux")) else { return };
    let idle = idle_program(&program);
    let (pmc, pid) = (kit::binary(), idle.id().to_string());
    let recording = lab.path("perf.data").display().to_string();
    kit::run(&["record", "--wall", "-q", "--duration", "2s", "-p", &pid, "-o", &recording]).expect(0);
    for line in [format!("{pmc} top --wall -d 0.3 -p {pid}"), format!("{pmc} report -i {recording}")] {
        let folder = tempfile::tempdir().expect("a folder");
        let tmux = shell_line(folder.path(), &line, 100, 24);
        tmux.until_shown("Symbol");
        tmux.keys(&["5"]);
        // The recording lacks the stack of the main thread, which waits throughout.
        tmux.until_shown("(I to show)");
        tmux.keys(&["I"]);
        tmux.until_shown("1 of 3 processes and threads; Enter: only this one; I folds idle threads");
        tmux.keys(&["I"]);
        tmux.until_shown("(I to show)");
    }
}

#[test]
fn plain_tables_show_both_rates() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    let idle = idle_program(&program);
    let (_top, lines) = top(&["--stdio", "--idle", "-d", "300ms", "-p", &idle.id().to_string()]);
    let mut printed = String::new();
    for line in lines {
        let line = line.expect("a line");
        printed += &format!("{line}\n");
        // The function is known once the program's unwind tables have been read.
        if line.trim_end().ends_with("] main") {
            let rates: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            assert!(rates.len() == 2 && rates[0] == 0.0 && (1.0..=1000.0).contains(&rates[1]), "{printed}");
            break;
        }
    }
    for words in ["On-CPU ms/s", "Blocked ms/s", " elapsed, 2 threads: "] {
        assert!(printed.contains(words), "{printed}");
    }
}

#[test]
fn unprivileged_user_sees_exact_times_of_own_processes() {
    let options = ["top", "--wall", "--json", "-d", "600", "--", "sleep", "0.5"];
    let Some(ran) = kit::as_nobody(&options) else { return };
    let ran = ran.expect(0).says(&["waiting times are complete"]);
    let last = object(ran.stdout.lines().last().expect("an interval"));
    check_bounds(&last);
    let [_, _, blocked] = rates(&event(&last)["thread_time"]);
    assert!(blocked * elapsed_ns(&last) / 1000.0 >= 0.49e9, "{last}");
}

#[test]
fn impossible_combinations_are_refused() {
    kit::run(&["top", "--wall", "-G", "x"]).expect(2).says(&["--wall cannot be combined with -G"]);
    kit::run(&["top", "--wall", "-e", "cycles"]).expect(2).says(&["--event"]);
}
