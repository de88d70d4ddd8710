//! `pmc trace`: exact counts, lines of calls, selections, losses, targets and recordings. The programs know
//! their own calls; strace and perf are the oracles.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kit::{self, lab::Lab};
use serde_json::Value;

/// Reads 1 byte of /dev/zero `argv[1]` times in each of `argv[2]` children, and closes -1 ten times.
const READER: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int reads = atoi(argv[1]), children = atoi(argv[2]);
    int fd = open("/dev/zero", O_RDONLY);
    char byte;
    for (int child = 0; child < children; child++)
        if (!fork()) {
            for (int i = 0; i < reads; i++) read(fd, &byte, 1);
            _exit(0);
        }
    while (wait(0) > 0);
    for (int i = 0; i < 10; i++) close(-1);
    return 0;
}
"#;

/// Makes a file call by call, tells when it has done so, and then waits for its standard input to end.
const WRITER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static char text[] = "some text\n", back[64], path[4096];
static struct stat st;
int main(int argc, char **argv) {
    strcpy(path, argv[1]);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
    write(fd, text, 10);
    int copy = dup(fd);
    lseek(copy, 2, SEEK_SET);
    read(copy, back, 64);
    fstat(copy, &st);
    close(fd);
    write(1, "done\n", 5);
    read(0, back + 32, 1);
    return 3;
}
"#;

/// Ring buffers that hold all calls of these programs, however busy the machine is.
const LARGE: [&str; 2] = ["-m", "64M"];

/// Returns a folder if the machine can trace system calls.
#[track_caller]
fn lab() -> Option<Lab> {
    (kit::need_kernel_mode() && kit::need_tracefs("raw_syscalls")).then(Lab::new)?
}

/// Runs `pmc trace --json` with these options, and returns its document.
#[track_caller]
fn document(options: &[&str], command: &[&str]) -> Value {
    let all = [&["trace", "--json"], &LARGE[..], options, &["--"], command].concat();
    let ran = kit::run(&all).expect(0);
    kit::schema::document("trace-summary", &ran.stderr)
}

/// Returns calls and failed calls by name.
fn counts(calls: &Value) -> BTreeMap<String, (u64, u64)> {
    let call = |call: &Value| {
        let number = |key: &str| call[key].as_u64().expect("a number");
        (call["name"].as_str().expect("a name").to_owned(), (number("calls"), number("failed")))
    };
    calls.as_array().expect("a list").iter().map(call).filter(|(_, (calls, _))| *calls > 0).collect()
}

fn name_of(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[test]
fn counts_are_exact_for_many_children() {
    let Some(lab) = lab() else { return };
    let reader = lab.build("reader", READER, &["-O2", "-w"]);
    let all = document(&["-s"], &[name_of(&reader), "2000", "16"]);
    assert_eq!(all["lost"], 0, "{all:#}");
    for what in ["without_begin", "without_end", "begun_before", "backwards", "with_loss"] {
        assert_eq!(all[what], 0, "{what}: {all:#}");
    }
    let total = counts(&all["total"]);
    // One read loads the C library.
    assert_eq!(total["read"], (16 * 2000 + 1, 0));
    assert_eq!(total["close"].1, 10);
    assert_eq!(total["execve"], (1, 0));
    let children: Vec<u64> = all["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|thread| Some(counts(&thread["calls"]).get("read")?.0))
        .filter(|reads| *reads >= 2000)
        .collect();
    assert_eq!(children, [2000; 16]);
}

#[test]
fn counts_and_errors_are_those_of_strace() {
    let Some(lab) = lab() else { return };
    if !kit::need_program("strace") {
        return;
    }
    let (reader, list) = (lab.build("reader", READER, &["-O2", "-w"]), lab.path("strace"));
    let command = [name_of(&reader), "50", "3"];
    let strace = Command::new("strace").args(["-f", "-c", "-o"]).arg(&list).args(command).status();
    assert!(strace.expect("strace starts").success());
    // `% time  seconds  usecs/call  calls  [errors]  syscall`
    let theirs: BTreeMap<String, (u64, u64)> = std::fs::read_to_string(&list)
        .expect("strace's table")
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, calls) = (words.last()?, words.get(3)?.parse().ok()?);
            let failed = if words.len() == 6 { words[4].parse().ok()? } else { 0 };
            Some(((*name).to_owned(), (calls, failed)))
        })
        .filter(|(name, _)| name != "total")
        .collect();
    assert!(theirs.len() > 5, "{theirs:?}");
    let mut ours = counts(&document(&["-s"], &command)["total"]);
    let mut theirs = theirs;
    // A wait for a child that has not ended yet may be interrupted by the tracer.
    for list in [&mut ours, &mut theirs] {
        list.remove("wait4");
    }
    assert_eq!(ours, theirs);
}

#[test]
fn errors_are_counted_by_number() {
    let Some(lab) = lab() else { return };
    let reader = lab.build("reader", READER, &["-O2", "-w"]);
    let all = document(&["-c"], &[name_of(&reader), "1", "0"]);
    let close = all["total"].as_array().unwrap().iter().find(|call| call["name"] == "close").unwrap();
    assert_eq!(close["errors"]["EBADF"], 10);
    let command = ["trace", "-c", "--errno-summary", "--", name_of(&reader), "1", "0"];
    kit::run(&command).expect(0).says(&["% time", "EBADF: 10", "total", "none lost"]);
}

/// A program that is traced into a file until it waits for its input.
struct Waiting {
    child: std::process::Child,
    file: PathBuf,
}

impl Waiting {
    #[track_caller]
    fn start(lab: &Lab, options: &[&str]) -> Self {
        let (writer, file) = (lab.build("writer", WRITER, &["-O0", "-w"]), lab.path("lines"));
        let mut pmc = kit::pmc();
        pmc.args(["trace", "-o"]).arg(&file).args(LARGE).args(options).arg("--").arg(&writer);
        pmc.arg(lab.path("made")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = pmc.spawn().expect("pmc starts");
        Self { child, file }
    }

    /// Waits for a line that ends with these words, then lets the program end. Returns the output and the
    /// lines.
    #[track_caller]
    fn finish(mut self, until: &str) -> (kit::Ran, String) {
        let lines = || std::fs::read_to_string(&self.file).unwrap_or_default();
        kit::wait_for("the lines of the calls", || lines().contains(until));
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("pmc ends");
        (output.into(), std::fs::read_to_string(&self.file).expect("lines"))
    }
}

/// Returns the lines without their times and thread.
fn calls(lines: &str) -> Vec<&str> {
    lines.lines().filter_map(|line| line.split_once("): ")?.1.split_once(' ').map(|(_, call)| call)).collect()
}

#[test]
fn lines_show_paths_descriptors_flags_and_contents() {
    let Some(lab) = lab() else { return };
    let (ran, lines) = Waiting::start(&lab, &[]).finish("done");
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(3), "done\n"), "{}", ran.stderr);
    let made = lab.path("made");
    let made = name_of(&made);
    let calls = calls(&lines);
    let has = |wanted: &str| assert!(calls.contains(&wanted), "no {wanted:?} in\n{lines}");
    // The path is still in memory, and so is the program, while it waits.
    has(&format!("openat(AT_FDCWD, ~\"{made}\", O_RDWR|O_CREAT|O_TRUNC, 0640) = 3<~{made}>"));
    has(&format!("write(3<~{made}>, ~\"some text\\n\", 10) = 10"));
    has(&format!("dup(3<~{made}>) = 4<~{made}>"));
    has(&format!("lseek(4<~{made}>, 2, SEEK_SET) = 2"));
    has(&format!("read(4<~{made}>, ~\"me text\\n\", 64) = 8"));
    has(&format!(
        "newfstatat(4<~{made}>, ~\"\", ~{{st_mode=S_IFREG|0640, st_size=10, ...}}, AT_EMPTY_PATH) = 0"
    ));
    has(&format!("close(3<~{made}>) = 0"));
    has("exit_group(3) = ?");
    assert!(calls[0].starts_with("execve("), "{lines}");
    assert!(calls.iter().any(|call| call.starts_with("write(1<pipe:[")), "{lines}");
}

#[test]
fn json_lines_have_names_and_numbers() {
    let Some(lab) = lab() else { return };
    let (_, lines) = Waiting::start(&lab, &["--json", "-e", "lseek,write"]).finish("done");
    let all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(
        all.iter().map(|call| call["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["write", "lseek", "write"]
    );
    let seek = &all[1];
    assert_eq!((&seek["result"], &seek["error"], &seek["words"][1]), (&2.into(), &Value::Null, &2.into()));
    assert_eq!(seek["args"]["whence"], "SEEK_SET");
    assert_eq!(seek["comm"], "writer");
}

#[test]
fn calls_are_selected_by_name_class_failure_and_duration() {
    let Some(lab) = lab() else { return };
    let names = |options: &[&str]| -> Vec<String> {
        let file = lab.path("names");
        let file = name_of(&file);
        let command = ["--", "sh", "-c", "cat /nosuch; sleep 0.01"];
        kit::run(&[&["trace", "-o", file], options, &command].concat()).expect(0);
        let text = std::fs::read_to_string(file).expect("lines");
        let mut names: Vec<String> =
            calls(&text).into_iter().filter_map(|call| Some(call.split_once('(')?.0.to_owned())).collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(names(&["-e", "openat"]), ["openat"]);
    assert_eq!(names(&["-e", "trace=execve,wait4"]), ["execve", "wait4"]);
    let files = names(&["-e", "%file"]);
    assert!(files.contains(&"openat".to_owned()) && !files.contains(&"read".to_owned()), "{files:?}");
    let others = names(&["-e", "!mmap,openat"]);
    assert!(others.contains(&"close".to_owned()), "{others:?}");
    assert!(!others.contains(&"openat".to_owned()) && !others.contains(&"mmap".to_owned()), "{others:?}");
    let failed = names(&["--failure", "-e", "openat,read,close"]);
    assert_eq!(failed, ["openat"]);
    // A bare number is perf's spelling.
    for long in [["--min-duration", "5"], ["--min-duration", "5ms"], ["--duration", "5"]] {
        let slow = names(&long);
        let has_sleep = slow.iter().any(|name| name.contains("nanosleep"));
        assert!(has_sleep && !slow.contains(&"close".to_owned()), "{long:?}: {slow:?}");
    }
}

#[test]
fn duration_is_the_run_time_and_a_bare_number_selects_calls() {
    for (words, said) in [
        (
            &["--duration", "5", "--min-duration", "3", "--", "true"][..],
            "--duration 5 cannot be used with --min-duration",
        ),
        (
            &["--duration", "5s", "--timeout", "3s", "--", "true"],
            "--duration 5s cannot be used with --timeout",
        ),
        (&["--duration", "5s", "-i", "no.data"], "a recording (-i) has no run time"),
        (&["--duration", "5x", "--", "true"], "--duration 5x: must be a time"),
    ] {
        kit::run(&[&["trace"], words].concat()).expect(2).says(&[said]);
    }
    let Some(lab) = lab() else { return };
    let file = lab.path("timed");
    let traced = |words: &[&str]| kit::run(&[&["trace", "-o", name_of(&file)], words].concat());
    let timed = traced(&["--duration", "100ms", "--", "sleep", "3600"]).expect(0);
    assert!(!timed.stderr.contains("--duration"), "{}", timed.stderr);
    // perf's option does not end a trace. A process that has ended ends it.
    let mut sleeper = Command::new("sleep").arg("3600").spawn().expect("sleep starts");
    let pid = sleeper.id().to_string();
    let mut pmc = kit::pmc();
    pmc.args(["trace", "-p", &pid, "--duration", "10", "-o", name_of(&file)]).stderr(Stdio::piped());
    let pmc = pmc.spawn().expect("pmc starts");
    kit::wait_for("the trace", || file.exists());
    sleeper.kill().and_then(|()| sleeper.wait()).expect("sleep ends");
    let said = String::from_utf8(pmc.wait_with_output().expect("pmc ends").stderr).expect("text");
    assert!(
        said.contains("as in perf; the trace continues") && said.contains("--duration 10s ends it"),
        "{said}"
    );
    for ends in [&["--max-events", "1"][..], &["--timeout", "100ms"]] {
        let own = std::process::id().to_string();
        let ended = traced(&[&["-p", &own, "--duration", "0"], ends].concat()).expect(0);
        assert!(!ended.stderr.contains("as in perf"), "{}", ended.stderr);
    }
}

#[test]
fn whole_machine_leaves_out_pmc_itself() {
    let Some(lab) = lab() else { return };
    let file = lab.path("all");
    let mut pmc = kit::pmc();
    pmc.args(["trace", "-a", "-s", "--json", "--timeout", "500", "-o"]).arg(&file).args(LARGE);
    let mut child = pmc.spawn().expect("pmc starts");
    let own = child.id();
    assert!(child.wait().expect("pmc ends").success());
    let all = kit::schema::document("trace-summary", &std::fs::read_to_string(&file).unwrap());
    let threads = all["threads"].as_array().unwrap();
    assert!(!threads.is_empty() && threads.iter().all(|thread| thread["tid"] != own), "{all:#}");
}

#[test]
fn running_processes_are_traced() {
    let Some(lab) = lab() else { return };
    let mut sleeper =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts");
    kit::wait_until_idle(sleeper.id());
    let (pid, file) = (sleeper.id().to_string(), lab.path("attached"));
    let mut pmc = kit::pmc();
    pmc.args(["trace", "-p", &pid, "-S", "-o"]).arg(&file).stdout(Stdio::null());
    let mut pmc = pmc.spawn().expect("pmc starts");
    let mut input = sleeper.stdin.take().expect("a pipe");
    kit::wait_for("a line of a call", || {
        input.write_all(b"x").expect("cat reads");
        std::fs::read_to_string(&file).is_ok_and(|text| text.contains(" write("))
    });
    drop(input);
    // cat ends at the end of its input, and so does the trace.
    assert!(sleeper.wait().expect("cat ends").success());
    assert!(pmc.wait().expect("pmc ends").success());
    let text = std::fs::read_to_string(&file).expect("lines");
    assert!(calls(&text).iter().any(|call| call.starts_with("write(1</dev/null>, ")), "{text}");
}

#[test]
fn calls_that_do_not_return_are_shown_before_they_return() {
    let Some(lab) = lab() else { return };
    let file = lab.path("blocked");
    let mut pmc = kit::pmc();
    pmc.args(["trace", "-e", "read", "-o"]).arg(&file).args(["--", "cat"]);
    let mut pmc = pmc.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("pmc starts");
    let mut input = pmc.stdin.take().expect("a pipe");
    let lines = |part: &str| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect::<Vec<_>>()
    };
    // Other calls may take long too if the machine is busy.
    let is_begin = |line: &String| line.contains(" (         ): cat/") && line.contains(" read(0<pipe:[");
    let begins = || lines("]>,  <unfinished ...>").iter().filter(|line| is_begin(line)).count();
    kit::wait_for("a call that has not returned", || begins() > 0);
    input.write_all(b"x").expect("cat reads");
    drop(input);
    assert!(pmc.wait().expect("pmc ends").success());
    let ends = lines("<... read resumed>");
    assert!(ends.iter().any(|end| end.ends_with(") = 1") && !end.contains("<pipe")), "{ends:?}");
    assert_eq!(lines("<unfinished ...>").len(), ends.len());
}

#[test]
fn a_command_keeps_its_output_exit_status_and_signals() {
    let Some(lab) = lab() else { return };
    let file = lab.path("o");
    let ran = kit::run(&["trace", "-o", name_of(&file), "--", "sh", "-c", "echo out; echo err >&2; exit 7"])
        .expect(7);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    let ran = kit::run(&["trace", "-o", name_of(&file), "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(ran.status, Some(128 + 15), "{}", ran.stderr);
    kit::run(&["trace", "--", "/nosuch/program"]).expect(127).says(&["running `/nosuch/program`"]);
}

#[test]
fn calls_in_progress_are_shown_when_tracing_begins() {
    let Some(lab) = lab() else { return };
    if !kit::need_program("cat") {
        return;
    }
    let mut cat = Command::new("cat");
    let mut cat = kit::ProcessGuard::start(cat.stdin(Stdio::piped()).stdout(Stdio::null()));
    kit::wait_until_idle(cat.id());
    let (file, pid) = (lab.path("calls"), cat.id().to_string());
    let mut pmc = kit::pmc();
    let mut pmc = kit::ProcessGuard::start(pmc.args(["trace", "-S", "-p", &pid, "-o"]).arg(&file));
    let calls = || std::fs::read_to_string(&file).unwrap_or_default();
    kit::wait_for("the call in progress", || calls().contains("read(0"));
    let first = calls();
    let first = first.lines().next().expect("a line");
    assert!(
        first.contains(&format!("cat/{pid} read(0<pipe:")) && first.contains("<unfinished ...>"),
        "{first}"
    );
    // A trace that ends now counts the call, too.
    let table = kit::run(&["trace", "-s", "--json", "--timeout", "10ms", "-p", &pid]).expect(0).stdout;
    let table: Value = serde_json::from_str(&table).expect("JSON");
    let call = &table["total"][0];
    assert_eq!((&call["name"], &call["unfinished"]), (&"read".into(), &1.into()), "{table}");
    // The filter leaves the call out.
    let others = kit::run(&["trace", "-e", "write", "--timeout", "10ms", "-p", &pid]).expect(0);
    assert_eq!(others.stdout, "");
    cat.0.stdin.as_mut().expect("a pipe").write_all(b"hello\n").expect("cat reads");
    kit::wait_for("its return", || calls().contains("<... read resumed>~\"hello\\n\", 131072) = 6"));
    drop(cat);
    kit::wait_for_end("the trace", &mut pmc.0);
    let end = calls();
    assert!(!end.contains("began before tracing"), "{end}");
    let row = end.lines().find(|line| line.trim_start().starts_with("read ")).expect("a row");
    assert!(row.split_whitespace().nth(1).is_some_and(|calls| calls != "0"), "{end}");
}

#[test]
fn losses_are_counted_and_shown() {
    let Some(lab) = lab() else { return };
    let reader = lab.build("reader", READER, &["-O2", "-w"]);
    let ran =
        kit::run(&["trace", "-s", "-r", "0", "-m", "1", "--", name_of(&reader), "50000", "2"]).expect(0);
    let ran = ran.says(&["records lost", "were lost because the ring buffers were full"]);
    assert!(!ran.stderr.contains("none lost"), "{}", ran.stderr);
    let quiet = ["trace", "-q", "-s", "-r", "0", "-m", "1", "--", name_of(&reader), "50000", "2"];
    kit::run(&quiet).expect(0).says(&["pmc: warning: ", "were lost because the ring buffers were full"]);
}

#[test]
fn calls_of_32_bit_programs_are_marked() {
    let Some(lab) = lab() else { return };
    let is_there = cfg!(target_arch = "x86_64") && Path::new("/proc/sys/abi/vsyscall32").exists();
    if !kit::need("32-bit", is_there, "the kernel runs no 32-bit programs") || !kit::need_program("ld") {
        return;
    }
    // getpid three times, then exit_group(5). The numbers 20 and 252 are other calls in 64-bit programs.
    let source = ".globl _start\n_start: mov $3, %esi\n1: mov $20, %eax\nint $0x80\ndec %esi\njnz 1b\n\
                  mov $252, %eax\nmov $5, %ebx\nint $0x80\n";
    let [from, object, program] = ["a.s", "a.o", "short"].map(|name| lab.path(name));
    std::fs::write(&from, source).expect("the source is written");
    let run = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).status().unwrap().success())
    };
    run("as", &["--32", "-o", name_of(&object), name_of(&from)]);
    run("ld", &["-m", "elf_i386", "-o", name_of(&program), name_of(&object)]);
    let file = lab.path("lines");
    kit::run(&["trace", "-e", "getpid,exit_group", "-o", name_of(&file), "--", name_of(&program)]).expect(5);
    let text = std::fs::read_to_string(&file).expect("lines");
    let names: Vec<&str> = calls(&text).into_iter().filter_map(|call| call.split('(').next()).collect();
    assert_eq!(names, ["getpid[32]", "getpid[32]", "getpid[32]", "exit_group[32]"], "{text}");
}

#[test]
fn recordings_of_perf_and_pmc_have_the_same_calls() {
    let Some(lab) = lab() else { return };
    let reader = lab.build("reader", READER, &["-O2", "-w"]);
    let (perf, pmc) = (lab.path("perf.data"), lab.path("pmc.data"));
    let [program, reads, children] = [name_of(&reader), "300", "2"];
    let record = |program: &str, words: &[&str]| {
        let out = Command::new(program).args(words).output().expect("the recorder starts");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    record("perf", &["trace", "record", "-o", name_of(&perf), "--", program, reads, children]);
    let own = ["trace", "record", "-q", "-o", name_of(&pmc), "--", program, reads, children];
    record(kit::binary(), &own);
    for file in [&perf, &pmc] {
        let ran = kit::run(&["trace", "-s", "--json", "-i", name_of(file)]).expect(0);
        let all = kit::schema::document("trace-summary", &ran.stdout);
        let total = counts(&all["total"]);
        assert_eq!((total["read"], total["close"].1), ((601, 0), 10), "{}: {all:#}", file.display());
        assert_eq!(all["lost"], 0);
        kit::run(&["trace", "-i", name_of(file)]).expect(0).prints(&[" read(", " close(-1) = -1 EBADF"]);
    }
    let other = lab.path("other.data");
    record(kit::binary(), &["record", "-q", "-e", "task-clock", "-o", name_of(&other), "--", "true"]);
    kit::run(&["trace", "-i", name_of(&other)]).expect(1).says(&["no system calls", "pmc trace record"]);
}

#[test]
fn stacks_lead_from_the_call_to_main() {
    let Some(lab) = lab() else { return };
    let reader = lab.build("reader", READER, &["-O0", "-w", "-g", "-fno-omit-frame-pointer"]);
    let file = lab.path("stacks");
    let command =
        ["trace", "-g", "-e", "close", "--failure", "-o", name_of(&file), "--", name_of(&reader), "0", "0"];
    kit::run(&command).expect(0);
    let text = std::fs::read_to_string(&file).expect("lines");
    let stacks: Vec<&str> = text.split(" close(-1) = -1 EBADF (Bad file descriptor)\n").skip(1).collect();
    assert_eq!(stacks.len(), 10, "{text}");
    for stack in stacks {
        let functions: Vec<&str> = stack.lines().map_while(|line| line.strip_prefix("          ")).collect();
        let main = functions.iter().position(|function| function.trim().starts_with("main ("));
        assert_eq!(main, Some(1), "main calls close:\n{text}");
    }
}

#[test]
fn recordings_with_one_end_of_the_calls_are_refused() {
    let Some(lab) = lab() else { return };
    let file = lab.path("half.data");
    for (event, missing) in [("sys_enter", "sys_exit"), ("sys_exit", "sys_enter")] {
        let (event, says) =
            (format!("raw_syscalls:{event}"), format!("lacks the event raw_syscalls:{missing}"));
        kit::run(&["record", "-q", "-e", &event, "-o", name_of(&file), "--", "true"]).expect(0);
        kit::run(&["trace", "-i", name_of(&file)]).expect(1).says(&[&says, "pmc trace record -- COMMAND"]);
    }
}

#[test]
fn missing_permission_and_unknown_names_are_explained() {
    kit::run(&["trace"]).expect(2).says(&["nothing to trace", "pmc trace -- COMMAND"]);
    kit::run(&["trace", "-e", "opanat", "--", "true"]).expect(2).says(&["opanat", "did you mean", "openat"]);
    kit::run(&["trace", "-e", "%fil", "--", "true"]).expect(2).says(&["%file"]);
    let limit = ["trace", "--string-limit", "18446744073709551615", "--", "true"];
    kit::run(&limit).expect(2).says(&["--string-limit", "16777216"]);
    if !kit::need_tracefs("raw_syscalls") {
        return;
    }
    let Some(ran) = kit::as_nobody(&["trace", "--", "true"]) else { return };
    let ran = ran.expect(1).says(&["cannot trace system calls", "tracefs"]);
    let is_mounted = !ran.stderr.contains("tracefs is not mounted");
    ran.says(&[if is_mounted { "sudo pmc trace" } else { "run pmc as root" }]);
}
