//! Ends of runs: the command's status, signals, and the counts up to that point.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{Document, kit, start, wait_for, wait_for_counters};

#[test]
fn exit_status_of_the_command_is_passed_on() {
    if !kit::need_perf_events() {
        return;
    }
    let status = |script: &str| kit::run(&["stat", "-e", "task-clock", "--", "sh", "-c", script]);
    status("exit 7").expect(7).says(&["task-clock"]);
    status("kill -9 $$").expect(137).says(&["task-clock"]);
    status("kill -TERM $$").expect(143).says(&["task-clock"]);
}

#[test]
fn unstartable_command_exits_like_the_shell() {
    if !kit::need_perf_events() {
        return;
    }
    let stat = |command: &str| kit::run(&["stat", "-e", "task-clock", "--", command]);
    let ran =
        stat("no-such-command").expect(127).says(&["pmc: running `no-such-command`: No such file", "PATH"]);
    assert!(!ran.stderr.contains("time elapsed"), "nothing ran: {}", ran.stderr);
    stat("/no/such/file").expect(127).says(&["its interpreter is missing"]);
    stat("/dev/null").expect(126).says(&["Permission denied (EACCES)", "chmod +x /dev/null"]);
    stat("/").expect(126).says(&["is a directory"]);
    stat("echo hi").expect(127).says(&["sh -c 'echo hi'"]);
}

#[test]
fn command_streams_are_untouched() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let mut child = kit::pmc()
        .args(["stat", "-e", "task-clock", "-o", "/dev/null", "--", "sh", "-c", "cat; echo err >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hi\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"hi\n"[..], &b"err\n"[..]));
}

#[test]
fn command_has_default_signal_handling() {
    if !kit::need_perf_events() {
        return;
    }
    let ran = kit::run(&["stat", "-e", "task-clock", "-o", "/dev/null", "--", "cat", "/proc/self/status"])
        .expect(0);
    let mask = |name: &str| {
        let line = ran.stdout.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    assert_eq!(mask("SigBlk:"), 0);
    // SIGINT, SIGPIPE, SIGTERM and SIGCHLD.
    assert_eq!(mask("SigIgn:") & (1 << 1 | 1 << 12 | 1 << 14 | 1 << 16), 0);
    let script = "yes | head -1 >/dev/null; exit ${PIPESTATUS[0]}";
    if kit::need_program("bash") {
        // A writer whose reader has closed is killed by SIGPIPE, as usual.
        kit::run(&["stat", "-e", "task-clock", "--", "bash", "-c", script]).expect(141);
    }
}

#[test]
fn command_inherits_no_descriptors() {
    if !kit::need_perf_events() {
        return;
    }
    let ran = kit::run(&["stat", "-e", "task-clock", "-o", "/dev/null", "--", "ls", "-l", "/proc/self/fd"]);
    let ran = ran.expect(0);
    assert!(!ran.stdout.contains("perf_event") && !ran.stdout.contains("signalfd"), "{}", ran.stdout);
}

/// Starts pmc as the leader of a process group, as a shell with job control does.
fn start_group(args: &[&str]) -> Child {
    let mut command = kit::pmc();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().unwrap()
}

/// Waits until the command executes, which gives the process its name.
fn wait_for_command(pmc: &Child, name: &str) {
    wait_for("the command to run", || {
        kit::children(pmc.id()).into_iter().any(|pid| kit::has_name(pid, name))
    });
}

/// Waits until the command handles the signal, which a shell does shortly after its start, and returns the
/// command's process ID.
fn wait_for_handler(pmc: &Child, signal: Signal) -> u32 {
    let command = kit::children(pmc.id())[0];
    crate::kit::wait_for_handler(command, signal.as_raw());
    command
}

/// Checks that pmc did not wait for the command, which still runs, and kills it.
#[track_caller]
fn still_runs(command: u32) {
    let exe = std::fs::read_link(format!("/proc/{command}/exe"));
    assert!(exe.is_ok(), "pmc has waited for its command");
    kill_process(Pid::from_raw(command as i32).unwrap(), Signal::KILL).unwrap();
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Returns the run's exit status, signal and stderr.
fn end(child: Child) -> (Option<i32>, Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), status.signal(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn signal_ends_command_and_pmc() {
    if !kit::need_perf_events() {
        return;
    }
    // A signal that is ignored stays ignored, also for the command.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    let is_heeded = ignored & 1 << (Signal::HUP.as_raw() - 1) == 0;
    let mut signals = vec![Signal::INT, Signal::TERM];
    if kit::need("SIGHUP", is_heeded, "SIGHUP is ignored here, as under nohup") {
        signals.push(Signal::HUP);
    }
    for signal in signals {
        for group in [false, true] {
            let child = start_group(&["stat", "-e", "task-clock", "--", "sleep", "600"]);
            wait_for_command(&child, "sleep");
            let command = kit::children(child.id())[0];
            if group { kill_process_group(pid(&child), signal) } else { kill_process(pid(&child), signal) }
                .unwrap();
            let (_, by, said) = end(child);
            assert_eq!(by, Some(signal.as_raw()), "{signal:?} group {group}: {said}");
            assert!(said.contains("task-clock") && said.contains("time elapsed"), "{said}");
            // The command would otherwise sleep for ten minutes.
            assert!(!Path::new(&format!("/proc/{command}/exe")).exists(), "the command was not ended");
        }
    }
}

#[test]
fn command_may_handle_the_signal() {
    if !kit::need_perf_events() {
        return;
    }
    let script = "trap 'exit 5' INT; while :; do sleep 0.02; done";
    for group in [false, true] {
        let child = start_group(&["stat", "-e", "task-clock", "--", "sh", "-c", script]);
        wait_for_command(&child, "sh");
        wait_for_handler(&child, Signal::INT);
        if group {
            kill_process_group(pid(&child), Signal::INT)
        } else {
            kill_process(pid(&child), Signal::INT)
        }
        .unwrap();
        let (status, by, said) = end(child);
        assert_eq!((status, by), (Some(5), None), "group {group}: {said}");
        assert!(said.contains("task-clock"), "{said}");
    }
}

#[test]
fn second_signal_ends_pmc_immediately() {
    if !kit::need_perf_events() {
        return;
    }
    let child = start_group(&[
        "stat",
        "-e",
        "task-clock",
        "--",
        "sh",
        "-c",
        "trap '' INT TERM; i=0; while [ $i -lt 900 ]; do i=$((i+1)); sleep 0.1; done >/dev/null 2>&1",
    ]);
    wait_for_command(&child, "sh");
    let command = wait_for_handler(&child, Signal::INT);
    kill_process(pid(&child), Signal::INT).unwrap();
    // Otherwise the two signals would be merged.
    crate::kit::wait_until_idle(child.id());
    kill_process(pid(&child), Signal::INT).unwrap();
    let mut child = child;
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
    still_runs(command);
}

#[test]
fn sigint_works_in_background_of_a_script() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    // `command &` in a shell without job control ignores SIGINT from the start.
    let script = "trap '' INT; exec \"$0\" stat -a -e cpu-clock";
    let child = std::process::Command::new("sh")
        .args(["-c", script, crate::kit::binary()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_counters(child.id(), 1);
    kill_process(pid(&child), Signal::INT).unwrap();
    let (_, by, said) = end(child);
    assert_eq!(by, Some(Signal::INT.as_raw()), "{said}");
    assert!(said.contains("cpu-clock"), "{said}");
}

#[test]
fn command_ends_the_run_even_if_sigchld_was_ignored() {
    if !kit::need_perf_events() {
        return;
    }
    // The kernel discards the exit status of a child whose parent ignores SIGCHLD.
    let output = crate::kit::pmc_started_by(&["timeout", "60", "env", "--ignore-signal=CHLD"])
        .args(["stat", "-e", "task-clock", "--", "sh", "-c", "exit 3"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn signal_ends_repeated_runs() {
    if !kit::need_perf_events() {
        return;
    }
    let child = start_group(&["stat", "-r", "50", "-e", "task-clock", "--", "sleep", "20"]);
    wait_for_command(&child, "sleep");
    kill_process_group(pid(&child), Signal::INT).unwrap();
    let (_, by, said) = end(child);
    assert_eq!(by, Some(Signal::INT.as_raw()));
    assert!(said.contains("time elapsed"), "{said}");
}

#[test]
fn interrupt_key_ends_a_hook() {
    if !kit::need_perf_events() {
        return;
    }
    let child = start_group(&["stat", "--pre", "exec sleep 60", "-e", "task-clock", "--", "true"]);
    wait_for_command(&child, "sleep");
    kill_process_group(pid(&child), Signal::INT).unwrap();
    let (_, by, said) = end(child);
    assert_eq!(by, Some(Signal::INT.as_raw()), "{said}");
    assert!(said.contains("--pre: `exec sleep 60` was terminated by signal 2"), "{said}");
}

#[test]
fn timeout_ends_the_command() {
    if !kit::need_perf_events() {
        return;
    }
    // The command would run for an hour.
    let ran = kit::run(&["stat", "-e", "task-clock", "--timeout", "100", "--", "sleep", "3600"]).expect(0);
    ran.says(&["task-clock", "seconds user"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("counts");
    let file_name = file.to_str().unwrap();
    kit::run(&[
        "stat",
        "--json=2",
        "-o",
        file_name,
        "-e",
        "task-clock",
        "--timeout",
        "100",
        "--",
        "sleep",
        "3600",
    ])
    .expect(0);
    let elapsed = Document::read(&file).seconds("elapsed_s");
    assert!((0.1..600.0).contains(&elapsed), "{elapsed} s");
}

#[test]
fn command_that_ignores_sigterm_does_not_block_pmc() {
    if !kit::need_perf_events() {
        return;
    }
    let script =
        "trap '' TERM INT; i=0; while [ $i -lt 900 ]; do i=$((i+1)); sleep 0.1; done >/dev/null 2>&1";
    let mut child = start(&["stat", "-e", "task-clock", "--timeout", "300", "--", "sh", "-c", script]);
    wait_for_command(&child, "sh");
    let command = wait_for_handler(&child, Signal::INT);
    // The time is over, and the command ignores it. Before that, the signal must have the same effect.
    kit::let_pass(std::time::Duration::from_millis(500));
    crate::kit::wait_until_idle(child.id());
    kill_process(pid(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
    still_runs(command);
}

#[test]
fn killed_pmc_leaves_no_command_at_the_start_gate() {
    if !kit::need_perf_events() {
        return;
    }
    // pmc fails after the fork, so the command must be gone without having run.
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("ran");
    let script = format!("touch {}", trace.display());
    kit::run(&["stat", "-p", "999999999", "--", "sh", "-c", &script]).expect(1);
    assert!(!trace.exists());
}

#[test]
fn results_print_before_many_tracepoints_are_closed() {
    if !kit::need_perf_events()
        || !kit::need_root()
        || !kit::need_tracefs("syscalls")
        || !kit::need_program("strace")
    {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, trace) = (dir.path().join("counts"), dir.path().join("trace"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=perf_event_open,close,fork,clone,clone3,setsid", "-e", "signal=none"]);
    strace.arg("-o").arg(&trace).arg(kit::binary()).args(["stat", "-x,", "-o"]).arg(&file);
    let ran: kit::Ran = strace.args(["-e", "syscalls:sys_enter_*", "--", "true"]).output().unwrap().into();
    ran.expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let trace = std::fs::read_to_string(&trace).unwrap();
    let calls: Vec<(&str, &str)> = trace.lines().filter_map(|line| line.split_once(' ')).collect();
    let (pmc, _) = calls[0];
    let own: Vec<&str> = calls.iter().filter(|(pid, _)| *pid == pmc).map(|(_, call)| call.trim()).collect();
    let result = |call: &str| call.rsplit_once(" = ").map_or("?", |(_, result)| result).to_owned();
    let opens = |call: &&&str| call.starts_with("perf_event_open(");
    let opened: Vec<String> = own.iter().filter(opens).map(|call| result(call)).collect();
    assert!(opened.len() > 100, "{} counters", opened.len());
    // Closing the counters takes the kernel up to 12 s, so pmc leaves it to a child in its own session. While
    // that child holds them, pmc's own closes are cheap.
    let leaves = |call: &str| call.trim().starts_with("setsid(");
    let behind = calls.iter().find(|(_, call)| leaves(call)).map_or("nobody", |(pid, _)| pid);
    let forked = own.iter().position(|call| result(call) == behind);
    let last = own.iter().rposition(|call| opens(&call)).unwrap();
    let waits = &own[last..forked.unwrap_or_else(|| panic!("no child of pmc's is left behind but {behind}"))];
    let closes = |call: &&&str| opened.iter().any(|fd| call.starts_with(&format!("close({fd})")));
    assert_eq!(waits.iter().filter(closes).count(), 0, "{waits:#?}");
    let close = text.lines().find(|line| line.contains(",syscalls:sys_enter_close,")).unwrap();
    assert!(close.split(',').next().unwrap().parse::<u64>().unwrap() > 0, "{close}");
}
