//! Probes in functions of programs, and the children of who runs into them: needs root, as probes do.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{count, kit, start, wait_for, wait_for_counters};

/// `uprobe:` and the function `malloc` of the C library; `None` where there is none to be had.
fn malloc() -> Option<String> {
    let pmu = std::path::Path::new("/sys/bus/event_source/devices/uprobe").exists();
    if !kit::need_perf_events() || !kit::need_root() || !kit::need("uprobe-pmu", pmu, "no uprobe PMU") {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .find_map(|line| Some(line[line.find('/')?..].to_owned()).filter(|p| p.contains("/libc.so")));
    let there = kit::need("libc", library.is_some(), "this test has no shared C library");
    there.then(|| format!("uprobe:{}:malloc", library.unwrap_or_default()))
}

/// The probes of this process that tracefs holds.
fn probes_of(pid: u32) -> usize {
    let list = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    list.lines().filter(|line| line.contains(&format!("pmc_{pid}/"))).count()
}

const SCRIPT: &str = "ls / >/dev/null && echo alive";

#[test]
fn children_are_counted_and_not_harmed() {
    let Some(event) = malloc() else { return };
    let run = |options: &[&str]| {
        let words = [&["stat", "-x,", "-e", &event], options, &["--", "sh", "-c", SCRIPT]].concat();
        let ran = kit::run(&words).expect(0);
        assert!(ran.stdout.lines().all(|line| line == "alive") && !ran.stdout.is_empty(), "{}", ran.stderr);
        ran.stderr.split(',').next().unwrap().parse::<u64>().unwrap_or_else(|e| panic!("{e}: {}", ran.stderr))
    };
    let (all, own, again) = (run(&[]), run(&["-i"]), run(&["-r", "2"]));
    assert!(own > 0 && all > own && again > own, "{all} and {again} with children, {own} without");
}

/// A program that knows nothing of us forks while it is counted, and goes on.
#[test]
fn a_process_that_runs_already_forks_unharmed() {
    let Some(event) = malloc() else { return };
    let script = format!("read line; {SCRIPT}");
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let counting = start(&["stat", "-x,", "-e", &event, "-p", &shell.id().to_string()]);
    let pid = counting.id();
    wait_for_counters(pid, 1);
    wait_for("its probe", || probes_of(pid) == 1);
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout == b"alive\n", "{output:?}");
    let ran = kit::Ran::from(counting.wait_with_output().unwrap()).expect(0);
    assert_eq!(probes_of(pid), 0, "nothing is left in tracefs");
    assert!(ran.stderr.contains("uprobe:"), "{}", ran.stderr);
}

#[test]
fn what_a_killed_pmc_left_is_removed() {
    let Some(event) = malloc() else { return };
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let mut killed = start(&["stat", "-e", &event, "-p", &sleeper.id().to_string()]);
    let pid = killed.id();
    wait_for("its probe", || probes_of(pid) == 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    wait_for("its end", || {
        count(&["-e", &event, "--", "true"]);
        probes_of(pid) == 0
    });
}

/// Where no probe can be defined children are left out, and that is said.
#[test]
fn without_tracefs_children_are_left_alone() {
    let Some(event) = malloc() else { return };
    if !kit::need_program("unshare") {
        return;
    }
    let script = "umount -l /sys/kernel/debug; umount -l /sys/kernel/tracing; exec \"$@\"";
    let pmc = [kit::binary(), "stat", "-e", &event, "--", "sh", "-c", SCRIPT];
    let output = Command::new("unshare").args(["-m", "sh", "-c", script, "sh"]).args(pmc).output().unwrap();
    let ran = kit::Ran::from(output).expect(0).says(&["leaves out what is started from now on", "tracefs"]);
    assert_eq!(ran.stdout, "alive\n");
}
