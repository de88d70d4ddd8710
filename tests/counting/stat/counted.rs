//! Counts against values known from elsewhere.

use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc;

use rustix::param::page_size;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use super::{BUSY, Document, count, kit, start, wait_for_counters};

/// Returns the calling thread's CPU time in milliseconds.
fn own_cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Uses this much CPU time.
fn burn(ms: f64) {
    let end = own_cpu_ms() + ms;
    while own_cpu_ms() < end {
        std::hint::black_box((0..1000u64).sum::<u64>());
    }
}

fn small_pages() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    kit::need("small pages", !setting.contains("[always]"), "transparent huge pages are always used here")
}

#[test]
fn page_faults_match_touched_pages() {
    if !crate::kit::need_kernel_mode() || !small_pages() {
        return;
    }
    let faults = |mib: usize| {
        let size = format!("bs={mib}M");
        count(&["-e", "page-faults", "--", "dd", "if=/dev/zero", "of=/dev/null", &size, "count=1"])
            .number("page-faults")
    };
    let pages = (48 << 20) as f64 / page_size() as f64;
    let more = faults(64) - faults(16);
    assert!((more - pages).abs() < 100.0, "{more} more faults for {pages} more pages");
}

#[test]
fn task_clock_matches_wait4() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let counts = count(&["-e", "task-clock,duration_time,user_time,system_time", "--", "sh", "-c", *BUSY]);
    let (clock, wall) = (counts.number("task-clock"), counts.number("duration_time") / 1e6);
    let used = (counts.number("user_time") + counts.number("system_time")) / 1e6;
    // wait4's times include the fork and the wait before the exec; the count does not.
    assert!(clock <= used + 1.0 && clock > used * 0.9 - 20.0, "task-clock {clock} ms, wait4 {used} ms");
    assert!(clock <= wall, "one thread on more than one CPU: {clock} of {wall} ms");
    assert!((counts.seconds("elapsed_s") * 1e3 - wall).abs() < 0.001);
}

#[test]
fn children_are_counted_by_default() {
    if !crate::kit::need_kernel_mode() || !small_pages() {
        return;
    }
    let child = ["--", "sh", "-c", "dd if=/dev/zero of=/dev/null bs=64M count=1; :"];
    let pages = (64 << 20) as f64 / page_size() as f64;
    let faults = |options: &[&str]| count(&[options, &child[..]].concat()).number("page-faults");
    assert!(faults(&["-e", "page-faults"]) >= pages);
    for no in ["-i", "--no-inherit"] {
        let own = faults(&["-e", "page-faults", no]);
        assert!(own < pages / 4.0, "{no}: {own} faults of the shell alone");
    }
}

#[test]
fn context_switches_match_sleeps() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done";
    let counts = count(&["-e", "context-switches:u,cs", "--", "sh", "-c", script]);
    // Each sleep sleeps once, and the shell sleeps once for each.
    let switches = counts.number("cs");
    assert!((20.0..2000.0).contains(&switches), "{switches} switches");
    let own = count(&["-i", "-e", "cs", "--", "sh", "-c", script]).number("cs");
    assert!(own >= 10.0 && own < switches, "{own} of {switches} switches are the shell's");
}

#[test]
fn command_is_counted_from_its_first_instruction() {
    if !kit::need_perf_events() || !kit::need_program("perf") {
        return;
    }
    let faults = |text: String| -> f64 { text.split(',').next().unwrap().parse().unwrap() };
    let args = ["-x,", "-e", "page-faults", "--", "true"];
    let (ours, perfs) = (faults(super::pmc(&args)), faults(super::perf(&args)));
    assert!((ours - perfs).abs() <= 6.0, "page faults of true: pmc {ours}, perf {perfs}");
}

#[test]
fn thread_count_matches_its_own_clock() {
    if !kit::need_perf_events() {
        return;
    }
    let (tell, told) = mpsc::channel();
    let (order, orders) = mpsc::channel();
    let burner = std::thread::spawn(move || {
        tell.send(f64::from(gettid().as_raw_nonzero().get())).unwrap();
        orders.recv().unwrap();
        let before = own_cpu_ms();
        burn(150.0);
        tell.send(own_cpu_ms() - before).unwrap();
        // The thread must still exist when the counters are read.
        orders.recv().unwrap();
    });
    let tid = told.recv().unwrap() as i32;
    let idle = gettid().as_raw_nonzero().get();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("counts");
    let (name, tids) = (file.to_str().unwrap(), format!("{tid},{idle}"));
    let mut child = start(&["stat", "--json=2", "-o", name, "-e", "task-clock", "--per-thread", "-t", &tids]);
    wait_for_counters(child.id(), 2);
    order.send(()).unwrap();
    let burned = told.recv().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    order.send(()).unwrap();
    burner.join().unwrap();
    let counts = Document::read(&file);
    assert_eq!(counts.rows().len(), 2);
    let of = |tid: i32| {
        let row = counts.rows().iter().find(|row| row["place"]["thread"]["tid"] == tid);
        row.unwrap_or_else(|| panic!("no thread {tid} in {}", counts.0))["values"][0]["value"].as_f64()
    };
    let counted = of(tid).unwrap();
    assert!((counted - burned).abs() < 40.0, "counted {counted} ms, the thread's clock said {burned}");
    assert!(of(idle).unwrap_or(0.0) < 40.0, "the idle thread: {:?}", of(idle));
}

#[test]
fn later_threads_and_children_are_counted() {
    if !crate::kit::need_kernel_mode() || !small_pages() {
        return;
    }
    let pages = (64 << 20) as f64 / page_size() as f64;
    let faults = |options: &[&str]| {
        let mut target = std::process::Command::new("sh")
            .args(["-c", "read go; dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; :"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("counts");
        let pid = target.id().to_string();
        let mut args =
            vec!["stat", "--json=2", "-o", file.to_str().unwrap(), "-e", "page-faults", "-p", &pid];
        args.extend(options);
        let mut child = start(&args);
        wait_for_counters(child.id(), 1);
        // The counters exist a moment before they count.
        kit::wait_until_idle(child.id());
        // This test ends the process: the shell reads an end of file and continues.
        drop(target.stdin.take());
        target.wait().unwrap();
        assert!(child.wait().unwrap().success(), "pmc ends by itself when the process has ended");
        Document::read(&file).number("page-faults")
    };
    let (all, own) = (faults(&[]), faults(&["-i"]));
    assert!(all >= pages && own < pages / 4.0, "of {pages} pages: {all}, without children {own}");
}

#[test]
fn processes_of_a_user_are_counted() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("setpriv") {
        return;
    }
    // A user ID that is not in use.
    const USER: &str = "54321";
    let mut target = std::process::Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups", "sleep", "5"])
        .spawn()
        .unwrap();
    super::wait_for("the process to be the user's", || {
        std::fs::read_to_string(format!("/proc/{}/status", target.id())).unwrap().contains(USER)
    });
    let ran = kit::run(&["stat", "-e", "task-clock", "-u", USER, "--timeout", "50"]).expect(0);
    ran.says(&["task-clock"]);
    target.kill().unwrap();
    target.wait().unwrap();
    kit::run(&["stat", "-u", USER]).expect(1).says(&["user 54321 has no processes"]);
    kit::run(&["stat", "-u", "no-such-user"]).expect(1).says(&["no user `no-such-user`", "getent passwd"]);
}

#[test]
fn user_and_kernel_levels_are_separated() {
    if !kit::need_perf_events() || !kit::need_root() || !small_pages() {
        return;
    }
    // The kernel touches dd's pages when it copies into them, so those faults count as kernel mode.
    let dd = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=32M", "count=1"];
    let pages = (32 << 20) as f64 / page_size() as f64;
    let faults = |options: &[&str]| count(&[options, &dd[..]].concat());
    let user = faults(&["-e", "page-faults", "--all-user"]).number("page-faults");
    let kernel = faults(&["-e", "page-faults", "--all-kernel"]).number("page-faults");
    let both = faults(&["-e", "page-faults,page-faults:u,page-faults:k"]);
    assert!(kernel >= pages * 0.9 && user < pages * 0.2, "user {user}, kernel {kernel} of {pages}");
    let (u, k) = (both.number("page-faults:u"), both.number("page-faults:k"));
    assert_eq!(both.number("page-faults"), u + k, "{u} + {k}");
}

#[test]
fn groups_and_long_lists_are_counted_completely() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let counts = count(&["-e", "{task-clock,page-faults}", "-e", "{page-faults:u,cs}:W", "--", "true"]);
    assert!(counts.number("page-faults") > 10.0);
    let many = vec!["page-faults"; 300].join(",");
    let lines = super::pmc(&["-x,", "-e", &many, "--", "true"]);
    assert_eq!(lines.lines().count(), 300);
}

#[test]
fn no_events_prints_only_the_time() {
    for null in ["-n", "--null"] {
        let ran = kit::run(&["stat", null, "--", "sleep", "0.05"]).expect(0);
        ran.says(&["seconds time elapsed", "seconds user", "seconds sys"]);
    }
}

#[test]
fn default_events_are_those_the_machine_supports() {
    if !kit::need_perf_events() {
        return;
    }
    let text = pmc_text();
    for event in ["task-clock", "context-switches", "cpu-migrations", "page-faults"] {
        assert!(text.contains(event), "{text}");
    }
    let hardware = !text.contains("pmc: no cycles, instructions, branches: ");
    assert_eq!(hardware, text.contains("      cycles"), "{text}");
    assert!(!text.contains("<not supported>") || hardware, "{text}");
}

fn pmc_text() -> String {
    super::pmc(&["--", "true"])
}

#[test]
fn verbose_prints_raw_readings() {
    if !kit::need_perf_events() {
        return;
    }
    let text = super::pmc(&["-v", "-e", "task-clock", "--", "true"]);
    let line = text.lines().find(|line| line.starts_with("pmc: task-clock in thread")).unwrap();
    let numbers: Vec<u64> =
        line.rsplit(": ").next().unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 3, "value, enabled, running: {line}");
    assert_eq!(numbers[1], numbers[2], "a software event never shares a counter: {line}");
}

/// A filter applies to the event before it. `dd` performs a known number of writes.
#[test]
fn tracepoint_filters_apply_to_counts() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_tracefs("syscalls/sys_enter_write") {
        return;
    }
    let event = "syscalls:sys_enter_write";
    let work = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=7", "status=none"];
    let csv = super::pmc(
        &[
            &["-x,", "-e", event, "--filter", "count == 512", "-e", event, "--filter", "count == 513"],
            &work[..],
        ]
        .concat(),
    );
    let counts: Vec<&str> = csv.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(counts, ["7", "0"], "{csv}");
    for (filter, words) in
        [("nosuchfield == 1", "does not have this field"), ("count ==", "the expression is invalid")]
    {
        kit::run(&["stat", "-e", event, "--filter", filter, "true"]).expect(1).says(&[filter, words]);
    }
    kit::run(&["stat", "-e", "page-faults", "--filter", "x", "true"])
        .expect(2)
        .says(&["is not a tracepoint"]);
    kit::run(&["stat", "--filter", "x", "-e", event, "true"]).expect(2).says(&["must follow the event"]);
}

#[test]
fn metrics_print_once_with_and_without_grouping() {
    if !kit::need_perf_events() {
        return;
    }
    for options in [&["-M", "OS"][..], &["-M", "os,page_fault_rate", "--metric-no-group"]] {
        let csv = super::pmc(&[options, &["-x,", "true"]].concat());
        for metric in ["page_fault_rate", "context_switch_rate"] {
            assert_eq!(csv.matches(metric).count(), 1, "{options:?}: {csv}");
        }
    }
}
