//! NetBSD's pmc(1) and tprof(8), and the counter features of pmc(9): parts of counts, detached counters, old
//! command lines.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kit::{self, Ran};

const FAULTS: &str = "page-faults:u";
/// Two children. The final `exit` keeps the shell from running the second one without a fork.
const PARENT: &str = "/bin/true; /bin/true; exit 3";

/// Returns the rows of the CSV: part and value.
fn parts(text: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let mut fields = line.split(',');
        (fields.next().unwrap().to_owned(), fields.next().unwrap().parse().unwrap())
    };
    text.lines().map(row).collect()
}

#[track_caller]
fn of(parts: &[(String, u64)], name: &str) -> u64 {
    parts.iter().find(|(part, _)| part == name).unwrap_or_else(|| panic!("{parts:?}")).1
}

#[test]
fn self_and_children_counts_are_separate() {
    if !kit::need_perf_events() {
        return;
    }
    let ran = kit::run(&["stat", "--children", "-x,", "-e", FAULTS, "--", "sh", "-c", PARENT]).expect(3);
    let rows = parts(&ran.stderr);
    let [own, children, sum] = ["self", "children", "sum"].map(|part| of(&rows, part));
    assert_eq!(rows.len(), 3);
    assert!(own > 0 && children > 0, "{rows:?}");
    assert_eq!(own + children, sum);
    // In text, in the parts of a document, and in groups.
    let text = kit::run(&["stat", "--children", "-e", FAULTS, "--", "sh", "-c", PARENT]).expect(3).stderr;
    let head = text.lines().find(|line| line.contains("children")).unwrap();
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), ["self", "children", "sum"]);
    let group = format!("{{{FAULTS},minor-faults:u}}");
    let line = ["stat", "--children", "--json=2", "-e", &group, "--", "sh", "-c", PARENT];
    let document: Value = serde_json::from_str(&kit::run(&line).expect(3).stderr).unwrap();
    let places: Vec<_> =
        document["total"]["rows"].as_array().unwrap().iter().map(|row| &row["place"]["part"]).collect();
    assert_eq!(places, ["self", "children", "sum"]);
}

/// A thread that touches 4 MiB.
const THREAD: &str = "
#include <pthread.h>
#include <stdlib.h>
static void *touch(void *unused)
{
    volatile char *page = malloc(1 << 22);
    for (int at = 0; at < 1 << 22; at += 4096)
        page[at] = 1;
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, touch, NULL);
    return pthread_join(thread, NULL);
}
";

#[test]
fn threads_are_not_children() {
    if !kit::need_perf_events() || !kit::need_program("gcc") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.file("thread.c"), THREAD).unwrap();
    place.run(Path::new("gcc"), &["-pthread", "-o", "thread", "thread.c"]).expect(0);
    let rows =
        parts(&place.pmc(&["stat", "--children", "-x,", "-e", FAULTS, "--", "./thread"]).expect(0).stderr);
    assert_eq!((of(&rows, "children"), of(&rows, "self")), (0, of(&rows, "sum")));
    let alone = place.pmc(&["stat", "-i", "-x,", "-e", FAULTS, "--", "./thread"]).expect(0).stderr;
    let alone: u64 = alone.split(',').next().unwrap().parse().unwrap();
    assert!(of(&rows, "self") > alone, "{rows:?} and {alone} of the first thread");
}

#[test]
fn children_of_a_running_process_are_counted_separately() {
    if !kit::need_perf_events() {
        return;
    }
    let mut parent = Command::new("sh");
    parent.args(["-c", "read x; /bin/true; /bin/true; read x"]).stdin(Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    kit::wait_until_idle(parent.id());
    let mut pmc = kit::pmc();
    pmc.args(["stat", "--children", "-x,", "-e", FAULTS, "-p", &parent.id().to_string()]);
    let pmc = pmc.stderr(Stdio::piped()).spawn().unwrap();
    kit::wait_for_counters(pmc.id(), 2);
    // The parent continues only once both counters exist. Even if they are not enabled yet, its children
    // start later.
    kit::wait_until_idle(pmc.id());
    parent.stdin.take().unwrap().write_all(b"\n\n").unwrap();
    let ran: Ran = pmc.wait_with_output().unwrap().into();
    parent.wait().unwrap();
    let rows = parts(&ran.expect(0).stderr);
    assert!(of(&rows, "children") > 0, "{rows:?}");
    assert!(of(&rows, "self") + of(&rows, "children") >= of(&rows, "sum"));
}

#[test]
fn user_and_kernel_mode_share_one_line() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let line = ["--user-kernel", "-e", "page-faults,user_time,system_time", "--", "true"];
    let rows = parts(&kit::run(&[&["stat", "-x,"], &line[..]].concat()).expect(0).stderr);
    let names: Vec<&str> = rows.iter().map(|(part, _)| part.as_str()).collect();
    assert_eq!(names, ["user", "kernel", "user", "kernel"]);
    assert!(rows[0].1 > 0);
    let text = kit::run(&[&["stat"], &line[..]].concat()).expect(0).stderr;
    let faults: Vec<&str> = text.lines().filter(|line| line.ends_with("page-faults")).collect();
    assert_eq!(faults.len(), 1, "{text}");
    assert_eq!(faults[0].split_whitespace().count(), 3);
}

/// An ordinary user gets only the user-mode part, and a message that says why the kernel part is missing.
#[test]
fn unprivileged_kernel_half_is_missing_with_a_reason() {
    const MISSING: &str = "kernel.perf_event_paranoid is";
    let stat = |line: &[&str]| kit::as_nobody(&[&["stat", "--user-kernel"], line].concat());
    let Some(ran) = stat(&["-x,", "-e", "page-faults", "--", "true"]) else { return };
    let text = ran.expect(0).stderr;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').take(2).collect()).collect();
    assert!(rows[0][0] == "user" && rows[0][1].parse::<u64>().unwrap() > 0, "{text}");
    assert_eq!(rows[1], ["kernel", "<not supported>"]);
    let ran = stat(&["-e", "page-faults", "--", "true"]).unwrap().expect(0);
    let ran = ran.says(&["page-faults (kernel): not supported (EACCES)", MISSING, "perf_event_paranoid=1"]);
    assert!(!ran.stderr.contains(":u"), "user mode is counted already: {}", ran.stderr);
    let document = stat(&["--json=2", "-e", "page-faults", "--", "true"]).unwrap().expect(0).stderr;
    let document: Value = serde_json::from_str(&document).unwrap();
    let [user, kernel] = [0, 1].map(|row| &document["total"]["rows"][row]["values"][0]);
    assert!(user["status"] == "counted" && kernel["reason"]["errno"] == "EACCES", "{document}");
    // A limit of the machine is reported before the user's privileges.
    let ran = stat(&["-e", "cycles", "--", "true"]).unwrap();
    let has = |pmu: &str| std::path::Path::new("/sys/bus/event_source/devices").join(pmu).exists();
    if !["cpu", "cpu_core", "cpu_atom"].into_iter().any(has) && cfg!(target_arch = "x86_64") {
        let ran = ran.expect(0).says(&["cycles: not supported (ENOENT)"]);
        assert!(!ran.stderr.contains(MISSING), "{}", ran.stderr);
    }
    stat(&["-a", "-e", "page-faults", "--", "true"]).unwrap().expect(1).says(&["on CPU 0", MISSING]);
    // NetBSD's own command.
    let ran = kit::as_nobody(&["-c", "page-faults", "sh", "-c", PARENT]).unwrap().expect(0);
    let ran = ran.says(&["user mode only", MISSING]);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let ["page-faults:", "user", count] = words[..] else { panic!("{}", ran.stdout) };
    assert!(count.parse::<u64>().unwrap() > 0);
}

/// CPU-wide counters require permission to observe other processes. Without it, nothing is left half started.
#[test]
fn unprivileged_user_cannot_count_cpus() {
    for line in [&["start", "page-faults:uk"][..], &["start", "page-faults:u"], &["start", "--profile"]] {
        let Some(ran) = kit::as_nobody(line) else { return };
        ran.expect(1).says(&[
            "opening ",
            "on CPU 0: Permission denied (EACCES)",
            "sysctl kernel.perf_event_paranoid=0",
            "your own process",
        ]);
    }
    kit::as_nobody(&["stop"]).unwrap().expect(1).says(&["no counters are running"]);
}

#[test]
fn events_that_cannot_be_split_are_rejected() {
    for (line, words) in [
        (&["--children", "-a"][..], "requires processes, not CPUs"),
        (&["--children", "-C", "0"], "requires processes, not CPUs"),
        (&["--children", "-i", "true"], "--no-inherit"),
        (&["--children", "-a", "-G", "x"], "--cgroup"),
        (&["--children", "--exact", "true"], "cannot be combined with --exact"),
        (&["--user-kernel", "--vs", "a", "--vs", "b"], "cannot be combined with --vs"),
        (&["--user-kernel", "-e", "page-faults:u", "true"], "cannot be split this way"),
        (&["--user-kernel", "-e", "task-clock", "true"], "user_time and system_time"),
        (&["--children", "-e", "page-faults,descendants=0", "true"], "cannot be split this way"),
        (&["--children", "--log-exit", "true"], "--children"),
        (&["record", "--children", "true"], "does not support"),
    ] {
        kit::run(&[&["stat"], line].concat()).expect(2).says(&[words]);
    }
}

#[test]
fn pmc_hardware_counters_are_listed() {
    let text = kit::run(&["info", "--counters"])
        .expect(0)
        .prints(&["PMU", "CLASS", "NUMBER", "WIDTH", "FREE"])
        .stdout;
    assert!(text.contains("Processes with counters") && text.contains("NMI watchdog"), "{text}");
    assert!(text.contains("software"), "{text}");
    let has_core = text.contains("general");
    assert!(has_core || text.contains("a PMU for the cores"), "{text}");
    let document = kit::run(&["info", "--counters", "--json"]).expect(0).stdout;
    let document = kit::schema::document("info-counters", &document);
    assert_eq!(document["counters"].as_array().map(|units| !units.is_empty()), Some(has_core));
    assert!(document["holders"].is_object());
}

/// NetBSD 2 to 7: `pmc -c EVENT COMMAND`, `pmc -C`, `pmc -h`, with their statuses.
#[test]
fn netbsd_command_line_works_unchanged() {
    kit::run(&["-C"]).expect(0).says(&["nothing to cancel"]);
    kit::run(&["-C", "x"]).expect(1).says(&["-C stands alone"]);
    kit::run(&["-h"]).expect(0).prints(&["list", "stat"]);
    kit::run(&["-c"]).expect(1).says(&["requires an argument"]);
    kit::run(&["-c", "page-faults"]).expect(1).says(&["no command"]);
    kit::run(&["-c", "no-such-event", "true"]).expect(1);
    // A clock would count all its time twice, and a system call would count as both.
    for event in ["cpu-clock", "task-clock", "page-faults:u"] {
        let ran = kit::run(&["-c", event, "true"]).expect(1).says(&["-c: ", "cannot be split this way"]);
        assert_eq!(ran.stdout, "");
    }
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    // The command's own status is not passed on.
    let said = kit::run(&["-c", "page-faults", "sh", "-c", PARENT]).expect(0).stdout;
    let words: Vec<&str> = said.split_whitespace().collect();
    let ["page-faults:", "user", user, "kernel", kernel] = words[..] else { panic!("{said}") };
    assert!(user.parse::<u64>().unwrap() > 0 && kernel.parse::<u64>().is_ok(), "{said}");
    kit::run(&["-c", "page-faults", "/no/such/command"]).expect(6);
}

#[test]
fn events_use_netbsd_names() {
    let list = kit::run(&["list", "freebsd"]).expect(0).stdout;
    for name in
        ["ins-retired", "branch-retired", "branch-miss-retired", "unhalted-cycles", "itlb-misses", "int-hw"]
    {
        assert!(list.contains(name), "{name}: {list}");
    }
}

/// A place to call pmc as `tprof`, with a private run directory.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink(kit::binary(), dir.path().join("tprof")).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, program: &Path, line: &[&str]) -> Ran {
        let mut command = Command::new(program);
        command.args(line).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("PERF_CONFIG", "/dev/null").env("PERF_BUILDID_DIR", "/dev/null").env("LC_ALL", "C");
        command.env("PMC_PERSISTENT_DIR", self.file("run"));
        command.output().unwrap().into()
    }

    fn tprof(&self, line: &[&str]) -> Ran {
        self.run(&self.file("tprof"), line)
    }

    fn pmc(&self, line: &[&str]) -> Ran {
        self.run(Path::new(kit::binary()), line)
    }
}

/// NetBSD 8: `pmc start NAME:OPT …`, `pmc stop`.
#[test]
fn counters_are_started_and_stopped() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    place.pmc(&["stop"]).expect(1).says(&["no counters are running", "pmc start"]);
    place.pmc(&["start", "no-such-event"]).expect(2);
    place
        .pmc(&["start", "page-faults:u", "page-faults:k", "page-faults:uk", "--profile=cpu-clock"])
        .expect(0);
    place.pmc(&["start", "page-faults"]).expect(1).says(&["already running", "pmc stop"]);
    place.pmc(&["persist", "list"]).expect(0).prints(&["counter0", "counter2", "profile"]);
    for _ in 0..8 {
        place.run(Path::new("/bin/true"), &[]).expect(0);
    }
    let text = place.pmc(&["stop", "-o", "kernel.data"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].last(), Some(&"TOTAL"), "{text}");
    let names: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(names, ["page-faults:u", "page-faults:k", "page-faults:uk"]);
    let number = |word: &str| word.replace(',', "").parse::<u64>().unwrap();
    for row in &rows[1..] {
        let [cpus @ .., total] = &row[1..] else { panic!("{text}") };
        assert_eq!(cpus.iter().map(|cpu| number(cpu)).sum::<u64>(), number(total), "{text}");
        assert_eq!(row.len(), rows[0].len() + 1);
    }
    assert!(number(rows[1].last().unwrap()) >= 8, "a process faults at least once: {text}");
    place.pmc(&["evlist", "-i", "kernel.data"]).expect(0).prints(&["cpu-clock"]);
    place.pmc(&["stop"]).expect(1);
    place.pmc(&["start", "page-faults:u"]).expect(0);
    let document = kit::schema::document("stop", &place.pmc(&["stop", "--json"]).expect(0).stdout);
    assert_eq!(document["counters"][0]["event"], "page-faults:u");
    assert!(document["counters"][0]["cpus"][0]["value"].is_u64());
}

#[test]
fn counters_of_one_start_begin_simultaneously() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("strace") {
        return;
    }
    let place = Place::new();
    let trace = place.file("trace");
    let strace = [
        "-f",
        "-qq",
        "-e",
        "trace=perf_event_open,ioctl",
        "-e",
        "signal=none",
        "-o",
        trace.to_str().unwrap(),
    ];
    let start = [kit::binary(), "start", "page-faults:u", "context-switches", "page-faults:k"];
    // This also traces the holder, which runs until all counters are stopped.
    let command = [&strace[..], &start].concat();
    let command: Vec<String> = command.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "strace {} & wait_for=$!; until {} persist list | grep -q counter2; do :; done; {} stop; wait $wait_for",
        command.join(" "),
        kit::binary(),
        kit::binary()
    );
    place.run(Path::new("/bin/sh"), &["-c", &line]).expect(0).prints(&["context-switches"]);
    let trace = std::fs::read_to_string(trace).unwrap();
    let at = |word: &str| -> Vec<usize> {
        trace
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(word) && !line.contains("= -1"))
            .map(|(at, _)| at)
            .collect()
    };
    let (opened, enabled) = (at("perf_event_open("), at("PERF_EVENT_IOC_ENABLE"));
    let own: Vec<usize> =
        opened.iter().copied().filter(|open| enabled.last().is_some_and(|last| open < last)).collect();
    assert!(own.len() >= 3 && enabled.len() >= 3, "{trace}");
    assert!(own.iter().max() < enabled.iter().min(), "{trace}");
}

/// tprof(8): `list`, `monitor`, `count`, `analyze`, and their errors.
#[test]
fn tprof_accepts_its_options() {
    let place = Place::new();
    place.tprof(&["-h"]).expect(0).prints(&["tprof monitor", "tprof analyze [-CkLPs]"]);
    place.tprof(&["bottom"]).expect(1).says(&["unknown command", "tprof list"]);
    place.tprof(&["analyze"]).expect(1).says(&["tprof.out"]);
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    place.tprof(&["list"]).expect(0).prints(&["page-faults"]);
    let event = "page-faults:uk,=1";
    place.tprof(&["monitor", "-e", event, "sh", "-c", "/bin/true; /bin/true"]).expect(0).says(&["samples,"]);
    let all =
        place.tprof(&["analyze", "tprof.out"]).expect(0).prints(&["Pid", "Tid", "CPU", "Symbol Offset"]);
    assert!(all.stdout.lines().filter(|line| line.contains('%')).count() > 1, "{}", all.stdout);
    let text = place.tprof(&["analyze", "-CLPs"]).expect(0).prints(&["Shared Object", "Symbol"]).stdout;
    assert!(!text.contains("Pid") && !text.contains("CPU"), "{text}");
    let kernel = place.tprof(&["analyze", "-k", "-s"]).expect(0).stdout;
    assert!(
        kernel
            .lines()
            .filter(|line| line.starts_with(' ') && line.contains('%'))
            .all(|line| line.contains("[k]")),
        "{kernel}"
    );
    place.tprof(&["analyze", "-p", "1", "tprof.out"]);
    let scaled = ["monitor", "-e", "cpu-clock,10", "-o", "scaled.out", "/bin/true"];
    place.tprof(&scaled).expect(0);
    assert!(place.file("scaled.out").exists());
    let count = place.tprof(&["count", "-e", "page-faults:u", "/bin/true"]).expect(0).stderr;
    assert!(count.contains("CPU0") && count.contains("page-faults:u"), "{count}");
    place.tprof(&["count", "-e", "page-faults:u", "-i", "0.05", "sleep", "0.2"]).expect(0).says(&["CPU0"]);
}

/// Messages about samples describe this run's samples, even if there is an older recording. They also name
/// the event that replaced the requested one.
#[test]
fn tprof_reports_only_its_own_samples() {
    let place = Place::new();
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let event = "page-faults:uk,=1";
    place.tprof(&["monitor", "-e", event, "true"]).expect(0).says(&["tprof.out: ", " samples, none lost"]);
    for (line, words) in [
        (&["monitor", "-e", event, "/no/such/command"][..], "/no/such/command"),
        (&["monitor", "-e", "persistent/none/", "true"], "no persistent event"),
        (&["monitor", "-e", event, "-o", "new.out", "/no/such/command"], "/no/such/command"),
    ] {
        let ran = place.tprof(line).says(&[words]);
        assert!(!ran.stderr.contains("samples") && !ran.stderr.contains("pmc: opening"), "{}", ran.stderr);
    }
    let ran = place.tprof(&["monitor", "-e", "cycles", "true"]).expect(0);
    let shown = place.pmc(&["evlist", "-i", "tprof.out"]).expect(0).stdout;
    assert_eq!(ran.stderr.contains("sampling cpu-clock"), shown.contains("cpu-clock"), "{}", ran.stderr);
}

/// `tprof top`: its translation, and one table per interval until it is told to end.
#[test]
fn tprof_top_works() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    let mut top = Command::new(place.file("tprof"));
    top.args(["top", "-acu", "-e", "cpu-clock", "-i", "0.1"]).stdout(Stdio::piped()).stdin(Stdio::null());
    let mut top = top.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(top.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("Overhead")));
    top.kill().unwrap();
    top.wait().unwrap();
}

/// A level after a list would apply to its last event only.
#[test]
fn netbsd_pmc_counts_one_event() {
    let ran = kit::run(&["-c", "page-faults,minor-faults", "true"]).expect(1);
    ran.says(&["`minor-faults` is not a qualifier", "pmc stat --user-kernel -e page-faults,minor-faults"]);
    kit::run(&["-c", "nosuch", "true"]).expect(1).says(&["  nosuch\n"]);
}
