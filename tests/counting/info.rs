//! `pmc info` on the test machine: text, JSON, events held by other processes, and an unprivileged user.

use crate::kit;

use std::process::{Command, Stdio};

use kit::{Ran, need, need_perf_events, need_root, pmc, run};
use serde_json::Value;

fn json(ran: Ran) -> Value {
    serde_json::from_str(&ran.expect(0).stdout).expect("one JSON document")
}

/// Runs `pmc` as an unprivileged user.
fn as_nobody(args: &[&str]) -> Option<Ran> {
    if !need_root() || !kit::need_program("setpriv") {
        return None;
    }
    // Other users may not be able to read the build folder, so copy the binary to an open one.
    let folder = tempfile::Builder::new().prefix("pmc-nobody").tempdir().expect("a folder");
    let copy = folder.path().join("pmc");
    kit::copy_program(kit::binary(), &copy);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("an open folder");
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"])
        .arg(&copy)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("setpriv starts");
    Some(output.into())
}

fn verdict<'a>(info: &'a Value, command: &str) -> &'a Value {
    let verdicts = info["verdicts"].as_array().expect("verdicts");
    verdicts.iter().find(|verdict| verdict["command"] == command).unwrap_or_else(|| panic!("no {command}"))
}

#[test]
fn text_has_all_sections_in_80_columns() {
    let ran = run(&["info"]).expect(0).prints(&[
        "Kernel",
        "Hardware counters",
        "PMUs",
        "Processes with counters",
        "NMI watchdog",
        "This user",
        "What works",
        "stat -a",
    ]);
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
        assert!(!line.ends_with(' '), "{line:?}");
    }
}

#[test]
fn json_document_matches_the_kernel() {
    let info = json(run(&["info", "--json"]));
    assert_eq!(info["version"], 1);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(info["kernel"], release.trim());
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let level: Option<i64> = level.map(|text| text.trim().parse().unwrap());
    assert_eq!(info["settings"]["perf_event_paranoid"].as_i64(), level);
    assert_eq!(info["user"]["uid"].as_u64(), Some(u64::from(rustix::process::geteuid().as_raw())));

    let user_access = std::fs::read_to_string("/proc/sys/kernel/perf_user_access")
        .or_else(|_| std::fs::read_to_string("/sys/bus/event_source/devices/cpu/rdpmc"));
    let user_access: Option<i64> = user_access.ok().map(|text| text.trim().parse().unwrap());
    assert_eq!(info["settings"]["user_access"].as_i64(), user_access);
    let words = if user_access.is_some() { "programs" } else { "no PMU lets programs read" };
    let text = run(&["info"]).expect(0).stdout;
    assert!(text.lines().any(|line| line.contains("rdpmc") && line.contains(words)), "{text}");

    let mut devices: Vec<String> = std::fs::read_dir("/sys/bus/event_source/devices")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    devices.sort();
    let mut shown: Vec<&str> =
        info["pmus"].as_array().unwrap().iter().map(|pmu| pmu["name"].as_str().unwrap()).collect();
    shown.sort_unstable();
    assert_eq!(shown, devices);
}

#[test]
fn counters_are_listed_or_missing_with_a_reason() {
    let info = json(run(&["info", "--json"]));
    let units = info["counters"].as_array().unwrap();
    for unit in units {
        assert!(unit["general"].as_u64().is_some_and(|general| (1..64).contains(&general)), "{unit}");
        assert!(unit["free"].as_u64() <= unit["general"].as_u64(), "{unit}");
    }
    for event in info["hardware_events"].as_array().unwrap() {
        let refused = event["state"] == "refused";
        assert_eq!(refused || event["state"] == "waiting", event["reason"].is_object(), "{event}");
        if refused && units.is_empty() {
            assert_eq!(event["reason"]["errno"], "ENOENT");
            assert!(event["reason"]["cause"].as_str().unwrap().contains("hardware counters"), "{event}");
        }
    }
}

#[test]
fn reported_capabilities_match_commands() {
    if !need_perf_events() {
        return;
    }
    let info = json(run(&["info", "--json"]));
    for (command, args) in [
        ("stat", vec!["stat", "-x,", "-e", "cpu-clock", "--", "true"]),
        ("stat -a", vec!["stat", "-x,", "-a", "-e", "cpu-clock", "--", "true"]),
    ] {
        let works = run(&args).status == Some(0);
        assert_eq!(works, verdict(&info, command)["state"] != "not", "{command}");
    }
}

#[test]
fn open_events_are_shown_per_process() {
    if !need_perf_events() {
        return;
    }
    let mut holder = pmc()
        .args(["stat", "-e", "task-clock:u,page-faults:u", "--", "sleep", "30"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a holder");
    let pid = u64::from(holder.id());
    kit::wait_for_counters(holder.id(), 2);
    let info = json(run(&["info", "--json"]));
    let processes = info["holders"]["processes"].as_array().unwrap().clone();
    let seen = processes.into_iter().find(|process| process["pid"].as_u64() == Some(pid));
    let pid = rustix::process::Pid::from_raw(holder.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    holder.wait().unwrap();
    let seen = seen.expect("the holder is listed");
    assert_eq!(seen["comm"], "pmc");
    assert_eq!(seen["events"].as_u64(), Some(2), "{seen}");
}

#[test]
fn unprivileged_user_sees_what_is_missing() {
    let Some(ran) = as_nobody(&["info", "--json"]) else { return };
    let info = json(ran);
    assert_eq!(info["user"]["uid"].as_u64(), Some(65534));
    assert_eq!(info["user"]["capabilities"].as_array().map(Vec::len), Some(0));
    let level = info["settings"]["perf_event_paranoid"].as_i64();
    if !need("paranoid", level == Some(2), "kernel.perf_event_paranoid is not 2") {
        return;
    }
    let allowed = &info["user"]["allowed"];
    assert_eq!((&allowed["user"], &allowed["kernel"]), (&Value::Bool(true), &Value::Bool(false)));
    let system = verdict(&info, "stat -a");
    assert_eq!((&system["state"], &system["reasons"][0]["errno"]), (&"not".into(), &"EACCES".into()));
    let cause = system["reasons"][0]["cause"].as_str().unwrap();
    assert!(cause.contains("perf_event_paranoid is 2") && cause.contains("uid 65534"), "{cause}");
    assert_eq!(verdict(&info, "stat")["state"], "limited");
    assert!(info["holders"]["hidden"].as_u64() > Some(0), "root's processes are closed to others");
}

#[test]
fn closed_pipe_is_not_an_error() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    let output = pmc().arg("info").stdout(Stdio::from(writer)).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn full_disk_is_reported() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = pmc().arg("info").stdout(Stdio::from(full)).output().unwrap();
    Ran::from(output).expect(1).says(&["ENOSPC", "free some space"]);
}
