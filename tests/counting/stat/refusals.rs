//! Refused requests: each message says what failed, why and what to try, with the right status.

use std::process::Command;

use super::kit;

#[test]
fn typos_in_options_get_suggestions() {
    let mut command = kit::pmc();
    let ran: kit::Ran = command.args(["stat", "-e", "cycels", "--", "true"]).output().unwrap().into();
    ran.expect(2).says(&["`cycels`", "^^^^^^", "did you mean `cycles`?"]);
}

#[test]
fn missing_targets_are_reported() {
    kit::run(&["stat", "-p", "999999999"]).expect(1).says(&[
        "no process 999999999",
        "PID namespace",
        "try: ps",
    ]);
    kit::run(&["stat", "-t", "999999999"]).expect(1).says(&["no thread 999999999"]);
    kit::run(&["stat", "-C", "9999", "--", "true"])
        .expect(1)
        .says(&["CPU 9999 is not online; the online CPUs are 0", "No supported events found."]);
    kit::run(&["stat", "-C", "x", "--", "true"]).expect(2).says(&["-C x"]);
    kit::run(&["stat", "-p", "abc"]).expect(2).says(&["no process is named `abc`", "pgrep"]);
    kit::run(&["stat", "-p", "0"]).expect(2).says(&["`0` is not a process id"]);
}

#[test]
fn without_target_the_whole_machine_is_counted() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let ran = kit::run(&["stat", "-e", "cpu-clock", "-I", "10", "--interval-count", "2"]).expect(0);
    ran.says(&["no command, process or CPU given: measuring the whole machine", "cpu-clock"]);
}

#[test]
fn missing_core_type_is_reported() {
    let ran = kit::run(&["stat", "--cputype=123", "-e", "task-clock", "--", "true"]).expect(2);
    ran.says(&["--cputype 123: this machine has no cores of this type"]);
}

/// Runs pmc in a mount namespace in which empty file systems cover these folders.
fn run_without(folders: &str, args: &[&str]) -> kit::Ran {
    let script =
        format!("for folder in {folders}; do mount -t tmpfs none $folder || exit 99; done; exec \"$@\"");
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", &script, "sh", kit::binary()]).args(args).env("LC_ALL", "C");
    unshare.output().expect("unshare starts").into()
}

#[test]
fn without_sysfs_all_cpus_are_counted() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("unshare") {
        return;
    }
    let counted = run_without("/sys", &["stat", "-a", "-x,", "-e", "cpu-clock", "--", "true"]).expect(0);
    let value = counted.stderr.lines().find(|line| line.contains("cpu-clock")).expect(&counted.stderr);
    assert!(value.split(',').next().is_some_and(|ms| ms.parse::<f64>().is_ok_and(|ms| ms > 0.0)), "{value}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("perf.data");
    let file = file.to_str().expect("a plain path");
    run_without("/sys", &["record", "-N", "-e", "cpu-clock", "-o", file, "--", "true"]).expect(0);
    run_without("/sys", &["record", "-N", "-a", "-e", "cpu-clock", "-o", file, "--", "true"]).expect(0);
    run_without("/sys /proc", &["stat", "-a", "-e", "cpu-clock", "--", "true"])
        .expect(1)
        .says(&["cannot list the online CPUs", "/proc/stat"]);
}

#[test]
fn unopenable_start_gate_is_an_error() {
    if !kit::need_perf_events() || !kit::need_program("strace") {
        return;
    }
    // The first write of a run releases the command.
    let mut strace = Command::new("strace");
    strace.args([
        "-e",
        "trace=write",
        "-e",
        "inject=write:error=EIO:when=1",
        "-o",
        "/dev/null",
        kit::binary(),
    ]);
    let ran: kit::Ran = strace
        .args(["stat", "-e", "task-clock", "--", "true"])
        .env("LC_ALL", "C")
        .output()
        .expect("strace starts")
        .into();
    ran.expect(126).says(&["running `true`", "EIO"]);
}

#[test]
fn missing_cgroups_are_reported() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let ran = kit::run(&["stat", "-a", "-G", "no/such", "-e", "cpu-clock", "--", "true"]).expect(1);
    ran.says(&["cgroup"]);
    kit::run(&["stat", "-G", "x", "-e", "cpu-clock", "--", "true"]).expect(2).says(&["whole CPUs", "add -a"]);
    kit::run(&["stat", "-a", "-G", "a,b,c", "-e", "cpu-clock", "--", "true"]).expect(1);
}

#[test]
fn dependent_options_are_checked() {
    for (args, words) in [
        (&["-r", "3", "-a"][..], &["-r", "requires a command"][..]),
        (&["--table", "--", "true"], &["add -r N"]),
        (&["--per-core", "--", "true"], &["whole CPUs", "add -a"]),
        (&["-A", "--", "true"], &["whole CPUs"]),
        (&["--per-thread", "--", "true"], &["requires running threads"]),
        (&["--vs", "true"], &["requires two commands"]),
        (&["--append", "--", "true"], &["add -o FILE"]),
        (&["-D", "-1", "--", "true"], &["--control"]),
        (&["-C", "", "--", "true"], &["the list of CPUs is empty"]),
        (&["-D", "-7", "--", "true"], &["milliseconds"]),
        (&["--log-fd", "99", "--", "true"], &["--log-fd 99", "EBADF"]),
        (&["--control", "pipe:3", "--", "true"], &["fd:CTL"]),
        (&["-M", "ipcc", "--", "true"], &["did you mean ipc"]),
        (&["--metric", "x=a+", "--", "true"], &["a+", "^", "expected"]),
        (&["--reserve", "maybe", "--", "true"], &["auto, check, require, yield, off"]),
        (&["--interval-count", "3", "--", "true"], &["--interval-print"]),
        (&["-x,", "-j", "--", "true"], &["cannot be used with"]),
    ] {
        let all: Vec<&str> = ["stat"].iter().chain(args).copied().collect();
        kit::run(&all).expect(2).says(words);
    }
}

#[test]
fn missing_metric_table_is_reported() {
    for (cpu, words) in [
        ("AuthenticAMD-25-17-1", &["the table for this CPU, amdzen4, contains events but no metrics"][..]),
        ("unknown-1-2", &["no vendor metrics table for this CPU (unknown-1-2)"]),
    ] {
        let mut pmc = kit::pmc();
        pmc.env("PMC_CPUID", cpu).args(["stat", "-M", "TopdownL1", "--", "true"]);
        let ran: kit::Ran = pmc.output().expect("pmc starts").into();
        ran.expect(2)
            .says(words)
            .says(&["unknown metric or metric group `TopdownL1`", "pmc list --import DIR"]);
    }
}

#[test]
fn system_wide_counting_requires_privileges() {
    let Some(ran) = kit::as_nobody(&["stat", "-a", "-e", "cpu-clock", "--", "true"]) else { return };
    ran.expect(1).says(&[
        "opening cpu-clock on CPU 0: Permission denied (EACCES)",
        "kernel.perf_event_paranoid is",
        "CAP_PERFMON",
        "sysctl kernel.perf_event_paranoid=0",
    ]);
}

#[test]
fn unprivileged_counts_exclude_the_kernel() {
    let Some(ran) = kit::as_nobody(&["stat", "-e", "task-clock", "--", "true"]) else { return };
    ran.expect(0).says(&["counting user mode only (:u)", "task-clock:u"]);
    let ran = kit::as_nobody(&["stat", "-e", "page-faults:k", "--", "true"]).unwrap();
    let ran = ran.expect(1).says(&["opening page-faults:k", "perf_event_paranoid=1"]);
    assert!(!ran.stderr.contains("count user mode only"), "{}", ran.stderr);
}

/// An ordinary user's kernel events are counted in user mode only, so these never occur.
#[test]
fn unprivileged_kernel_only_events_do_not_print_zero() {
    let events = "context-switches,cpu-migrations,page-faults";
    let Some(ran) = kit::as_nobody(&["stat", "-e", events, "--", "sleep", "0.1"]) else { return };
    let ran = ran.expect(0).says(&["this event occurs in the kernel", "kernel.perf_event_paranoid=1"]);
    assert_eq!(ran.stderr.matches("<not counted>").count(), 2, "{}", ran.stderr);
    let ran = kit::as_nobody(&["stat", "-x,", "-e", "context-switches:u", "--", "true"]).unwrap().expect(0);
    assert!(ran.stderr.starts_with("<not counted>,,context-switches:u,"), "{}", ran.stderr);
    // The message says counting, not sampling, although the kernel writes the log into rings.
    let log = ["stat", "record", "--log-exit", "-e", "page-faults", "-o", "/dev/null", "--", "true"];
    kit::as_nobody(&log).unwrap().expect(0).says(&["counting user mode only"]);
    if !kit::need_root() {
        return;
    }
    // This applies to root's tracepoints with :u, too.
    let ran = kit::run(&["stat", "-x,", "-e", "sched:sched_switch:u", "--", "true"]).expect(0);
    assert!(ran.stderr.starts_with("<not counted>,,sched:sched_switch,"), "{}", ran.stderr);
}

#[test]
fn ignored_options_are_reported() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let own = std::process::id().to_string();
    for (option, value) in [("-a", None), ("-C", Some("0"))] {
        let words = ["stat", "-e", "task-clock", "-p", &own, "--timeout", "10", option];
        let words: Vec<&str> = words.into_iter().chain(value).collect();
        kit::run(&words).expect(0).says(&[&format!("{option} has no effect: -p selects what to measure")]);
    }
    let words = ["record", "-o", "/dev/null", "-a", "-t", &own, "-e", "cpu-clock", "--timeout", "10"];
    kit::run(&words).expect(0).says(&["-a has no effect: -t selects what to measure"]);
}

#[test]
fn processes_of_other_users_cannot_be_counted() {
    let Some(ran) = kit::as_nobody(&["stat", "-e", "task-clock:u", "-p", "1"]) else { return };
    ran.expect(1).says(&["opening task-clock:u", "thread 1 belongs to another user"]);
}

#[test]
fn unprivileged_default_events_have_no_unsupported_rows() {
    let Some(ran) = kit::as_nobody(&["stat", "--", "true"]) else { return };
    let ran = ran.expect(0);
    let told = ran.stderr.contains("pmc: no cycles, instructions, branches: ");
    assert_eq!(told, !ran.stderr.contains("cycles:u  "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("<not supported>") || !told, "{}", ran.stderr);
}

/// The kernel returns EINVAL, EFAULT or EOPNOTSUPP; pmc says which rule was broken.
#[test]
fn contradictory_options_are_rejected() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    for (event, why) in [
        ("cpu-clock/attr5=0x2000000000/", "sigtrap requires remove_on_exec"),
        ("cpu-clock/attr5=0x8000000000000000/", "does not support bits 0x8000000000000000 of attr5"),
        ("cpu-clock/attr14=0x100000000/", "aux_action 0x1 requires a trace"),
        ("cpu-clock/aux-action=pause/", "Linux 6.13 or newer"),
        ("cpu-clock/aux-sample-size=64/", "aux_sample_size 64 requires a trace"),
        ("cpu-clock/aux-output/", "the event's own PMU must be able to write to the"),
        ("uprobe/config1=1/", "config1 of the PMU `uprobe` is the address of the file's name"),
        ("uprobe/config2=1/", "config1 of the PMU `uprobe` is the address of the file's name"),
    ] {
        let ran = kit::run(&["stat", "-e", event, "--", "true"]);
        assert!(!ran.stderr.contains("a bug in pmc"), "{}", ran.stderr);
        ran.says(&["<not supported>", why, "try:"]);
    }
}

#[test]
fn counting_only_events_cannot_be_sampled() {
    let msr = std::path::Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists();
    if !kit::need_perf_events() || !kit::need_root() || !kit::need("msr", msr, "there is no msr PMU") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    for event in ["msr/tsc/", "msr/tsc/u"] {
        let ran = kit::run(&["record", "-o", &file, "-e", event, "--", "true"]).expect(1);
        ran.says(&["can count this event but not sample it", "pmc stat"]);
    }
}

#[test]
fn unwritable_results_are_reported() {
    if !kit::need_perf_events() {
        return;
    }
    let stat = |to: &str| kit::run(&["stat", "-e", "task-clock", "-o", to, "--", "true"]);
    stat("/dev/full").expect(1).says(&[
        "/dev/full",
        "No space left on device (ENOSPC)",
        "try: free some space",
    ]);
    stat("/no/such/dir/file").expect(1).says(&["creating /no/such/dir/file", "ENOENT"]);
    let shell = |script: &str| -> kit::Ran {
        Command::new("sh").args(["-c", script, crate::kit::binary()]).output().unwrap().into()
    };
    shell("\"$0\" stat -e task-clock -o - -- true >&-")
        .expect(1)
        .says(&["-o -", "standard output is closed"]);
    // pmc does not report a stream that the user closed for the command.
    shell("\"$0\" stat -e task-clock -- true >&-").expect(0).says(&["task-clock"]);
    shell("\"$0\" stat -e task-clock -- true 2>&-").expect(0);
    // A closed reader is not a failure: `pmc stat … | head`.
    shell("{ \"$0\" stat -e task-clock -o - -- sleep 0.2; echo $? >&2; } | true").says(&["0\n"]);
    shell(
        "{ \"$0\" stat -e task-clock -- sh -c 'sleep 0.2; exit 3'; echo $? >&3; } 2>&1 3>&1 >/dev/null | cat",
    );
}

#[test]
fn descriptor_limit_is_raised() {
    if !kit::need_perf_events() {
        return;
    }
    let events = vec!["page-faults"; 200].join(",");
    let with = |limit: &str| -> kit::Ran {
        let script = format!("{limit}; exec \"$0\" stat -x, -e {events} -- true");
        Command::new("sh").args(["-c", &script, crate::kit::binary()]).output().unwrap().into()
    };
    // pmc raises the soft limit silently.
    let ran = with("ulimit -Sn 64").expect(0);
    assert_eq!(ran.stderr.lines().count(), 200, "{}", ran.stderr);
    // The hard limit can be raised only with privileges. Otherwise pmc reports it before the command starts.
    let ran = with("ulimit -n 64");
    if ran.status != Some(0) {
        ran.expect(1).says(&["opening counters on 200 file descriptors", "ulimit -n 264", "fewer events"]);
    }
}

#[test]
fn hostile_names_are_sanitized() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("a\u{1b}[31m\u{202e}\nb");
    kit::copy_program("/bin/true", &name);
    let name = name.to_str().unwrap();
    for form in [&[][..], &["-x,"], &["-j"], &["--json=2"], &["-v"], &["--openmetrics"]] {
        let args = [&["stat"], form, &["-e", "task-clock", "--", name]].concat();
        let ran = kit::run(&args).expect(0);
        assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}']), "{form:?}: {:?}", ran.stderr);
    }
    let ran = kit::run(&["stat", "-e", "task-clock", "--", "no\u{1b}]0;such\u{7}"]).expect(127);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{7}']), "{:?}", ran.stderr);
    let ran = kit::run(&["stat", "-e", "\u{1b}[31mcycles", "--", "true"]).expect(2);
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}
