//! Features of perf_event_open(2) beyond counting and sampling: request fields by name, commands to running
//! events, signals. The requests that strace shows are those that pmc sent to the kernel.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../crates/pmc-events/examples/overflow_signal.rs"]
#[allow(dead_code, unreachable_pub, reason = "its `main` is for who runs the example")]
mod overflow_signal;
#[path = "../../crates/pmc-events/examples/watchpoint.rs"]
#[allow(dead_code, unreachable_pub, reason = "its `main` is for who runs the example")]
mod watchpoint;

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::kit;

fn ready() -> bool {
    kit::need_perf_events() && kit::need_root()
}

fn need_breakpoints() -> bool {
    let ran = kit::run(&["stat", "-x,", "-e", "mem:0x1000:w:u", "--", "true"]);
    let breaks = !ran.stderr.contains("<not supported>");
    kit::need("breakpoints", breaks, "this machine has no hardware breakpoints")
}

/// Returns the counts of a CSV, one per row.
fn counts(csv: &str) -> Vec<&str> {
    csv.lines().filter_map(|line| line.split_once(',').map(|(count, _)| count)).collect()
}

/// Returns the requests that pmc makes for this event, as seen by strace.
fn asked(command: &str, event: &str) -> String {
    let all = ["-v", "-s", "1", "-e", "trace=perf_event_open", "-e", "signal=none", kit::binary(), command];
    let own = std::process::id().to_string();
    let rest = ["-e", event, "-p", &own, "--timeout", "1"];
    let output = if command == "record" { &["-o", "/dev/null"][..] } else { &[] };
    let ran = Command::new("strace").args(all).args(output).args(rest).output().unwrap();
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn sample_fields_are_selected_by_name() {
    if !ready() || !kit::need_program("strace") {
        return;
    }
    for (qualifier, field) in [
        ("text_poke", "text_poke=1"),
        ("inherit_thread", "inherit_thread=1"),
        ("remove_on_exec", "remove_on_exec=1"),
        ("remove_on_exec,sig_data=77", "sig_data=0x4d"),
        ("stream_id", "PERF_SAMPLE_STREAM_ID"),
        ("no-inherit", "inherit=0"),
        ("overwrite", "write_backward=1"),
        ("max-stack=9,callchain", "sample_max_stack=9"),
        ("nr=5", "inherit=0"),
    ] {
        let calls = asked("record", &format!("page-faults,{qualifier}"));
        let call = calls.lines().find(|call| call.contains("PERF_COUNT_SW_PAGE_FAULTS"));
        assert!(call.is_some_and(|call| call.contains(field)), "{qualifier}: {calls}");
    }
    let calls = asked("stat", "page-faults,inherit_thread,remove_on_exec");
    assert!(calls.contains("inherit_thread=1") && calls.contains("remove_on_exec=1"), "{calls}");
}

#[test]
fn evlist_shows_the_fields() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let events = "page-faults,text_poke,inherit_thread,stream_id,sig_data=0x77,max-stack=9,callchain";
    kit::run(&["record", "-o", &file, "-e", events, "--", "true"]).expect(0);
    kit::run(&["evlist", "-v", "-i", &file]).expect(0).prints(&[
        "text_poke: 1",
        "inherit_thread: 1",
        "STREAM_ID",
        "sig_data: 0x77",
        "sample_max_stack: 9",
    ]);
}

/// The kernel may hand a child's event instance to its parent at a context switch, so this test does not
/// check whose instance it is.
#[test]
fn samples_have_stream_ids() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let record = ["record", "-o", &file, "-e", "page-faults,stream_id,period=1", "--", "true"];
    kit::run(&record).expect(0);
    let script = kit::run(&["script", "-F", "stream_id", "-i", &file]).expect(0).stdout;
    assert!(!script.is_empty() && script.lines().all(|id| id.trim().parse::<u64>().unwrap() > 0), "{script}");
    kit::run(&["script", "-D", "-i", &file]).expect(0).prints(&["... stream_id: "]);
    kit::run(&["script", "--json", "-i", &file]).expect(0).prints(&["\"stream_id\":"]);
}

#[test]
fn inherit_thread_excludes_child_processes() {
    if !ready() || !kit::need_tracefs("syscalls") {
        return;
    }
    let event = "syscalls:sys_enter_exit_group";
    let events = format!("{event},{event},inherit_thread,{event},descendants=0,{event},no-inherit");
    let ran =
        kit::run(&["stat", "-x,", "-e", &events, "--", "sh", "-c", "/bin/true; /bin/true; :"]).expect(0);
    assert_eq!(counts(&ran.stderr), ["3", "1", "1", "1"], "{}", ran.stderr);
    let ran = kit::run(&["stat", "-i", "-e", "task-clock,inherit_thread", "--", "true"]);
    ran.says(&["<not supported>", "inherit_thread requires inherit", "omit --no-inherit (-i)"]);
}

/// Starts a program that waits until it receives a line on stdin.
fn waiting(script: &str) -> (Child, ChildStdin) {
    let mut shell = Command::new("sh");
    let mut child = shell.args(["-c", &format!("read go; {script}")]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

#[test]
fn remove_on_exec_ends_an_event() {
    if !ready() || !kit::need_tracefs("syscalls") {
        return;
    }
    let event = "syscalls:sys_enter_exit_group";
    let events = format!("{event},{event},remove_on_exec");
    let (mut target, mut stdin) = waiting("exec true");
    let pid = target.id().to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut orders = Orders::through(folder.path());
    let options = ["stat", "-x,", "-e", &events, "-p", &pid, "-D", "-1", "--control", &orders.control];
    let counting = kit::pmc().args(options).stderr(Stdio::piped()).spawn().unwrap();
    kit::wait_for_counters(counting.id(), 2);
    orders.give("enable", "ack");
    stdin.write_all(b"\n").unwrap();
    assert!(target.wait().unwrap().success());
    let ran = kit::Ran::from(counting.wait_with_output().unwrap()).expect(0);
    assert_eq!(counts(&ran.stderr), ["1", "0"], "{}", ran.stderr);
    for (command, more) in [("stat", &[][..]), ("record", &["-o", "/dev/null"])] {
        let rest = ["-D", "10", "-e", "cpu-clock,remove_on_exec", "--", "true"];
        let ran = kit::run(&[&[command], more, &rest].concat()).expect(2);
        ran.says(&["would remove the event at the exec that starts the command", "try: ", "-p"]);
    }
}

#[test]
fn sigtrap_without_handler_is_rejected() {
    if !ready() {
        return;
    }
    let (mut target, stdin) = waiting("exit 7");
    let pid = target.id().to_string();
    for command in ["stat", "record"] {
        let ran = kit::run(&[command, "-e", "cpu-clock,sigtrap,remove_on_exec", "-p", &pid]).expect(2);
        ran.says(&[&format!("sigtrap would kill {pid}"), "which has no handler", "pmc record -d"]);
    }
    for flags in ["sigtrap,remove_on_exec", "remove_on_exec"] {
        let ran = kit::run(&["stat", "-a", "-e", &format!("cpu-clock,{flags}"), "--timeout", "1"]).expect(2);
        ran.says(&["applies only to tasks, not to whole CPUs", "-p PID"]);
    }
    drop(stdin);
    assert_eq!(target.wait().unwrap().code(), Some(7));
    let ran = kit::run(&["stat", "-e", "cpu-clock,sigtrap", "--", "true"]);
    ran.says(&["<not supported>", "sigtrap requires remove_on_exec", "add remove_on_exec"]);
}

#[test]
fn event_stops_after_the_sample_limit() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let command = ["sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done"];
    let record = ["record", "--json", "--per-thread", "-o", &file, "-c", "1", "-e"];
    for (event, samples) in [("page-faults,nr=7", 7), ("page-faults,nr=7,no-inherit", 7)] {
        let ran = kit::run(&[&record[..], &[event, "--"], &command].concat()).expect(0);
        let json = kit::schema::document("record", &ran.stdout);
        assert_eq!(json["samples"], samples, "{event}: {}", ran.stdout);
    }
    // By frequency as well.
    let ran = kit::run(&[
        "record",
        "--json",
        "--per-thread",
        "-o",
        &file,
        "-F",
        "20000",
        "-e",
        "page-faults,nr=7",
        "--",
        "sh",
        "-c",
        command[2],
    ]);
    let json: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    // The kernel chooses the number of events between samples; only the limit is guaranteed.
    assert!((1..=7).contains(&json["samples"].as_u64().unwrap()), "{json}");
    let ran = kit::run(&[&record[..], &["page-faults,nr=7,inherit", "--"], &command].concat()).expect(1);
    ran.says(&["the kernel cannot stop an inherited event"]);
    kit::run(&["stat", "-e", "page-faults,nr=0", "--", "true"]).expect(2).says(&["nr must be at least 1"]);
}

#[test]
fn watchpoint_signals_the_thread_that_hit_it() {
    if !ready() || !need_breakpoints() {
        return;
    }
    let variable = Cell::new(0u64);
    let seen = watchpoint::watch(&variable, 42, || {
        for value in 0..3 {
            std::hint::black_box(&variable).set(value);
        }
    });
    let [writes, address, ip, word] = seen.unwrap();
    assert_eq!((writes, address, word), (3, variable.as_ptr() as u64, 42));
    // The instruction belongs to this program itself.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().filter(|line| line.contains(" r-xp ")).any(|line| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        (u64::from_str_radix(start, 16).unwrap()..u64::from_str_radix(end, 16).unwrap()).contains(&ip)
    });
    assert!(own, "{ip:#x}\n{maps}");
}

#[test]
fn overflow_signals_stop_at_the_limit() {
    if !ready() {
        return;
    }
    assert_eq!(overflow_signal::count_overflows(5).unwrap(), (4, 1));
}

/// A program with two variables. Each line read sets how often each is written. It prints the variables'
/// addresses, then the number of SIGTRAP signals and the data of the last one (`si_perf_data`).
const VARIABLES: &str = "#include <signal.h>\n#include <stdio.h>\n\
    static volatile long traps, word;\n\
    static void trapped(int signal, siginfo_t *info, void *context) {\n\
      traps++;\n  word = ((long *)info)[3];\n}\n\
    volatile long a, b;\n\
    int main(void) {\n  struct sigaction on = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};\n\
      int n, m;\n  sigaction(SIGTRAP, &on, 0);\n  printf(\"%p %p\\n\", (void *)&a, (void *)&b);\n  fflush(stdout);\n\
      while (scanf(\"%d %d\", &n, &m) == 2) {\n    while (n--) a++;\n    while (m--) b++;\n\
        printf(\"%ld %ld\\n\", traps, word);\n    fflush(stdout);\n  }\n  return 0;\n}\n";

/// The channel of `--control`.
struct Orders {
    /// Value of the option.
    control: String,
    orders: std::fs::File,
    answers: BufReader<std::fs::File>,
}

impl Orders {
    fn through(folder: &Path) -> Self {
        let [orders, answers] = ["orders", "answers"].map(|name| folder.join(name).display().to_string());
        let _ = Command::new("mkfifo").args([&orders, &answers]).stderr(Stdio::null()).status();
        let control = format!("fifo:{orders},{answers}");
        let open = |path: &str| OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self { control, orders: open(&orders), answers: BufReader::new(open(&answers)) }
    }

    /// Sends a command and waits for the answer: accepted or refused.
    #[track_caller]
    fn give(&mut self, order: &str, answer: &str) {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(line.starts_with(answer) && line.ends_with('\n'), "{order}: {line}");
    }
}

/// A running program, its output, and a control channel to the pmc that measures it.
struct Ordered {
    target: Child,
    said: BufReader<std::process::ChildStdout>,
    addresses: Vec<String>,
    pmc: Child,
    orders: Orders,
}

impl Ordered {
    fn start(folder: &Path, under: Option<[&str; 7]>, command: &[&str], event: &str) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        std::fs::write(path("x.c"), VARIABLES).unwrap();
        let built = Command::new("gcc").args(["-O1", "-o", &path("x"), &path("x.c")]).status().unwrap();
        assert!(built.success());
        let mut run = Command::new(path("x"));
        let mut target = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(target.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let addresses: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (mut orders, pid) = (Orders::through(folder), target.id().to_string());
        let event = event.replace("&a", &addresses[0]);
        let mut pmc = kit::pmc();
        if let Some(under) = under {
            pmc = Command::new("strace");
            pmc.args(under).arg(kit::binary());
        }
        let rest = ["-e", &event, "-p", &pid, "-D", "-1", "--control", &orders.control];
        let pmc = pmc.args(command).args(rest).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if under.is_none() {
            kit::wait_for_counters(pmc.id(), 1);
        }
        orders.give("enable", "ack");
        Self { target, said, addresses, pmc, orders }
    }

    #[track_caller]
    fn order(&mut self, order: &str) {
        self.orders.give(order, "ack");
    }

    #[track_caller]
    fn refused(&mut self, order: &str) {
        self.orders.give(order, "refused: ");
    }

    /// Makes the program write each variable this many times.
    fn write(&mut self, a: u32, b: u32) -> String {
        writeln!(self.target.stdin.as_mut().unwrap(), "{a} {b}").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// Lets the program end.
    fn end(mut self) -> kit::Ran {
        drop(self.target.stdin.take());
        assert!(self.target.wait().unwrap().success());
        kit::Ran::from(self.pmc.wait_with_output().unwrap()).expect(0)
    }
}

#[test]
fn program_with_a_handler_receives_the_signal() {
    if !ready() || !kit::need_program("gcc") || !need_breakpoints() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let event = "mem:&a/8:w:u,sigtrap,remove_on_exec,sig_data=42";
    let mut ordered = Ordered::start(folder.path(), None, &["record", "-o", &file], event);
    assert_eq!(ordered.write(3, 5), "3 42\n");
    ordered.order("disable");
    assert_eq!(ordered.write(1, 1), "3 42\n");
    ordered.end();
    let script = kit::run(&["script", "-F", "event", "-i", &file]).expect(0).stdout;
    assert_eq!(script.lines().count(), 3, "{script}");
}

#[test]
fn counting_breakpoint_can_be_moved() {
    if !ready() || !kit::need_program("gcc") || !need_breakpoints() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let event = "mem:&a/8:w:u,name=w,page-faults";
    let mut ordered = Ordered::start(folder.path(), None, &["stat"], event);
    ordered.write(3, 100);
    let there = ordered.addresses[1].clone();
    ordered.order(&format!("move w {there}"));
    ordered.write(100, 4);
    ordered.order("disable");
    ordered.order("move w 0x1000");
    ordered.order(&format!("move w {there}"));
    ordered.write(1, 1);
    // An invalid command is reported and changes nothing.
    ordered.refused("move page-faults 0x1000");
    ordered.refused("move w 0x1001");
    ordered.refused("period w 5");
    ordered.refused("move nobody 0x1000");
    let ran = ordered.end();
    let is_row = |line: &str| line.split_whitespace().take(2).eq(["7", "w"]);
    assert!(ran.stderr.lines().any(is_row), "{}", ran.stderr);
    ran.says(&[
        "`move page-faults 0x1000`: only breakpoints (mem:…) have an address",
        "`move w 0x1001`: the kernel refuses it: Invalid argument",
        "`period w 5`: it is counted, not sampled",
        "`move nobody 0x1000`: unknown event name",
    ]);
}

#[test]
fn sampling_breakpoint_can_be_moved() {
    if !ready() || !kit::need_program("gcc") || !need_breakpoints() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let mut ordered =
        Ordered::start(folder.path(), None, &["record", "-d", "-o", &file], "mem:&a/8:w:u,name=w");
    ordered.write(3, 100);
    let [a, b] = [0, 1].map(|index| ordered.addresses[index].trim_start_matches("0x").to_owned());
    ordered.order(&format!("move w 0x{b}"));
    ordered.write(100, 4);
    ordered.end();
    let script = kit::run(&["script", "-F", "addr", "-i", &file]).expect(0).stdout;
    let at = |address: &str| script.lines().filter(|line| line.contains(address)).count();
    assert_eq!((at(&a), at(&b)), (3, 4), "{script}");
    let mut ordered = Ordered::start(folder.path(), None, &["record", "-o", &file], "mem:&a/8:w:u,name=w");
    ordered.refused("move w 0x1000");
    ordered.end().says(&["its samples do not contain addresses: record with -d"]);
}

#[test]
fn sampling_rate_can_be_changed_while_recording() {
    if !ready() || ["gcc", "strace"].map(kit::need_program).contains(&false) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, trace) = (path("x.data"), path("trace"));
    let strace = Some(["-f", "-o", &trace, "-e", "trace=ioctl", "-e", "signal=none"]);
    let events = "page-faults:u,cpu-clock,minor-faults/period=9/";
    let mut ordered =
        Ordered::start(folder.path(), strace, &["record", "-i", "-P", "-F", "99", "-o", &file], events);
    ordered.order("freq page-faults:u 999");
    for order in [
        "freq page-faults:u 1000000000",
        "period page-faults:u 99",
        "freq cpu-clock 99",
        "period minor-faults/period=9/ 99",
        "freq nobody 9",
    ] {
        ordered.refused(order);
    }
    ordered.end().says(&[
        "`freq page-faults:u 1000000000`: the kernel refuses it: Invalid argument",
        "`period page-faults:u 99`: the event was opened with a frequency: use `freq`",
        "`freq cpu-clock 99`: for clock events, the kernel would keep writing the old period",
        "`period minor-faults/period=9/ 99`: for software events, only a frequency can be changed",
        "`freq nobody 9`: unknown event name",
    ]);
    let calls = std::fs::read_to_string(trace).unwrap();
    let changes: Vec<&str> = calls.lines().filter(|call| call.contains("IOC_PERIOD")).collect();
    assert!(changes.iter().any(|call| call.contains("[999]") && call.ends_with("= 0")), "{calls}");
    assert!(changes.iter().all(|call| call.contains("[999]") || call.contains("[1000000000]")), "{calls}");
    let record = ["record", "-P", "-F", "99", "-o", &file];
    let mut ordered = Ordered::start(folder.path(), None, &record, "page-faults:u");
    ordered.refused("freq page-faults:u 999");
    ordered.end().says(&["`freq page-faults:u 999`: child processes inherit it", "record with -i, or -a"]);
}

/// FreeBSD's `pmc_allocate(3)` refuses these with EINVAL: logs for a sampling event, call chains for a
/// counting event.
#[test]
fn flags_invalid_for_the_mode_are_rejected() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.data").display().to_string();
    let einval = "opening page-faults: Invalid argument (EINVAL)";
    let ran = kit::run(&["record", "-o", &file, "-e", "page-faults,log-cswitch", "--", "true"]).expect(1);
    ran.says(&[einval, "log-cswitch logs counts", "pmc stat record -e page-faults,log-cswitch"]);
    let ran = kit::run(&["stat", "-e", "page-faults,callchain", "--", "echo", "ran"]).expect(1);
    let ran = ran.says(&[einval, "only samples have call chains", "pmc record"]);
    assert_eq!(ran.stdout, "", "the command does not start");
    // perf's term keeps perf's meaning: it applies to samples, if there are any.
    kit::run(&["stat", "-e", "page-faults/call-graph=fp/", "--", "true"]).expect(0);
}

#[test]
fn rejected_control_commands_get_an_error_reply() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut orders = Orders::through(folder.path());
    let mut stat = kit::pmc();
    stat.args(["stat", "--control", &orders.control, "-e", "page-faults", "--", "sleep", "1000"]);
    let mut stat = stat.stderr(Stdio::piped()).spawn().unwrap();
    for (order, answer) in [
        ("enable nosuch", "refused: unknown event name"),
        ("disable nosuch", "refused: unknown event name"),
        ("period page-faults 5", "refused: it is counted, not sampled"),
        ("ping", "ack"),
        ("stop", "ack"),
    ] {
        orders.give(order, answer);
    }
    stat.wait().unwrap();
}
