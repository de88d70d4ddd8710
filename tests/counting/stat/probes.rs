//! Probes in functions of programs and at markers, and the children of programs that hit them (this needs
//! root, as probes do). Breakpoints at symbols.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{count, kit, start, wait_for, wait_for_counters};

/// Returns `uprobe:` with the C library's `malloc`, or `None` if it is not available.
fn malloc() -> Option<String> {
    let pmu = Path::new("/sys/bus/event_source/devices/uprobe").exists();
    if !kit::need_perf_events()
        || !kit::need_root()
        || !kit::need("uprobe-pmu", pmu, "no uprobe PMU")
        || !kit::need_tracefs("sched")
    {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .find_map(|line| Some(line[line.find('/')?..].to_owned()).filter(|p| p.contains("/libc.so")));
    let there = kit::need("libc", library.is_some(), "this test has no shared C library");
    there.then(|| format!("uprobe:{}:malloc", library.unwrap_or_default()))
}

/// Returns the number of this process's probes in tracefs.
fn probes_of(pid: u32) -> usize {
    let list = kit::tracefs().expect("probes need tracefs").with_file_name("uprobe_events");
    let list = std::fs::read_to_string(list).expect("root may read it");
    list.lines().filter(|line| line.contains(&format!("pmc_{pid}/"))).count()
}

const SCRIPT: &str = "ls / >/dev/null && echo alive";

#[test]
fn uprobes_count_children_without_harm() {
    let Some(event) = malloc() else { return };
    let user_mode = format!("{event}:u");
    let count = |event: &str, options: &[&str]| {
        let words = [&["stat", "-x,", "-e", event], options, &["--", "sh", "-c", SCRIPT]].concat();
        let ran = kit::run(&words).expect(0);
        assert!(ran.stdout.lines().all(|line| line == "alive") && !ran.stdout.is_empty(), "{}", ran.stderr);
        ran.stderr.split(',').next().unwrap().parse::<u64>().unwrap_or_else(|e| panic!("{e}: {}", ran.stderr))
    };
    let run = |options: &[&str]| count(&event, options);
    let (all, own, again) = (run(&[]), run(&["-i"]), run(&["-r", "2"]));
    assert!(count(&user_mode, &[]) > own, "what happens in programs happens in user mode, in children too");
    assert!(own > 0 && all > own && again > own, "{all} and {again} with children, {own} without");
}

/// A process that was already running forks while it is counted, and continues.
#[test]
fn running_process_with_uprobe_forks_safely() {
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
fn probes_of_a_killed_pmc_are_removed() {
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

/// Runs a command without mounted tracefs and debugfs, and checks that it mounts nothing there.
#[track_caller]
fn without_tracefs(command: &[&str]) -> kit::Ran {
    const SCRIPT: &str = "umount -l /sys/kernel/debug /sys/kernel/tracing 2>/dev/null
        before=$(cat /proc/mounts); \"$@\"; status=$?
        [ \"$(cat /proc/mounts)\" = \"$before\" ] || echo 'the mounts have changed'; exit $status";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).args(command);
    let ran = kit::Ran::from(unshare.env("LC_ALL", "C").stdin(Stdio::null()).output().unwrap());
    assert!(!ran.stdout.contains("the mounts have changed"), "{command:?}");
    ran
}

/// Without a mounted tracefs pmc reads a private one that only it can see.
#[test]
fn root_works_without_mounted_tracefs() {
    let Some(event) = malloc() else { return };
    if !kit::need_program("unshare") {
        return;
    }
    let pmc = |arguments: &[&str]| without_tracefs(&[&[kit::binary()], arguments].concat());
    let descriptors = ["sh", "-c", "ls /proc/self/fd; true"];
    let fork = [&["stat", "-x,", "-e", "sched:sched_process_fork", "--"], &descriptors[..]].concat();
    let ran = pmc(&fork).expect(0);
    assert_eq!(ran.stdout, without_tracefs(&descriptors).stdout, "the command inherits no descriptor");
    assert!(ran.stderr.starts_with("1,,sched:sched_process_fork,"), "{}", ran.stderr);
    pmc(&["list", "sched:*"]).expect(0).prints(&["sched:sched_switch"]);
    let count = |options: &[&str]| {
        let words = [&["stat", "-x,", "-e", &event], options, &["--", "sh", "-c", SCRIPT]].concat();
        let ran = pmc(&words).expect(0);
        ran.stderr.split(',').next().unwrap().parse::<u64>().unwrap_or_else(|e| panic!("{e}: {}", ran.stderr))
    };
    assert!(count(&[]) > count(&["-i"]), "children inherit the probe");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let file = file.to_str().unwrap();
    let record = ["record", "-q", "-o", file, "-e", "sched:*", "-a", "--", "sh", "-c", "ls; ls"];
    pmc(&record).expect(0);
    // The recording contains the formats of its tracepoints.
    pmc(&["script", "-i", file]).expect(0).prints(&["sched:sched_process_exec: filename=", "prev_comm="]);
}

/// If no tracefs is available, a probe's count excludes children, and pmc says so.
#[test]
fn without_tracefs_children_are_not_probed() {
    let Some(event) = malloc() else { return };
    // This machine's /sys without /sys/kernel.
    let sys = tempfile::tempdir().unwrap();
    for name in ["bus", "devices", "fs"] {
        std::os::unix::fs::symlink(Path::new("/sys").join(name), sys.path().join(name)).unwrap();
    }
    let mut pmc = kit::pmc();
    pmc.args(["stat", "-e", &event, "--", "sh", "-c", SCRIPT]).env("SYSFS_PATH", sys.path());
    let ran = kit::Ran::from(pmc.output().unwrap()).expect(0);
    assert_eq!(ran.says(&["excludes new processes", "tracefs"]).stdout, "alive\n");
}

#[test]
fn unprivileged_missing_tracefs_is_explained() {
    if !kit::need_root() || !kit::need_program("unshare") || !kit::need_program("setpriv") {
        return;
    }
    let pmc =
        ["setpriv", "--bounding-set=-sys_admin", kit::binary(), "stat", "-e", "sched:sched_switch", "true"];
    without_tracefs(&pmc).expect(2).says(&["tracefs is not mounted", "mount -t tracefs"]);
}

/// A program that hits the marker `toy:tick` and writes `counter` five times each. With an argument it first
/// waits for a byte. It prints whether the marker's semaphore is raised.
const MARKS: &str = r#"
#include <stdio.h>
#include <unistd.h>
volatile int counter;
long long wide = 1;
#ifndef USES
static unsigned short watched __attribute__((section(".probes"), used));
__asm__(".pushsection .stapsdt.base,\"a\",\"progbits\"\nbase: .space 1\n.popsection");
#define MARK(name, semaphore) __asm__ volatile( \
	"990: nop\n" \
	".pushsection .note.stapsdt,\"\",\"note\"\n" \
	".balign 4\n" \
	".4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n" \
	"992: .balign 4\n" \
	"993: .8byte 990b, base, " semaphore "\n" \
	".asciz \"toy\"\n" \
	".asciz \"" name "\"\n" \
	".asciz \"\"\n" \
	"994: .balign 4\n" \
	".popsection")
__attribute__((noinline)) const char *tick(int times)
{
	MARK("thrice", "0");
	while (times--) {
		MARK("tick", "watched");
		counter++;
	}
	MARK("thrice", "0");
	MARK("thrice", "0");
	return watched ? "watched" : "alone";
}
#else
const char *tick(int times);
#endif
#ifndef LIBRARY
int main(int argc, char **argv)
{
	char go;
	if (argc > 1 && read(0, &go, 1) != 1)
		return 1;
	puts(tick(5));
	wide++;
	return 0;
}
#endif
"#;

/// Returns a folder with this program: `fixed`, `pie`, and `uses`, which has the marker in a library. Returns
/// `None` if the program cannot be built or probes are not allowed.
fn marks() -> Option<tempfile::TempDir> {
    malloc()?;
    if !kit::need_program("gcc") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("marks.c"), MARKS).unwrap();
    for options in [
        "-no-pie -o fixed marks.c",
        "-fPIE -pie -o pie marks.c",
        "-DLIBRARY -fPIC -shared -o libmarks.so marks.c",
        "-DUSES -o uses marks.c -L. -lmarks -Wl,-rpath,$ORIGIN",
    ] {
        let gcc = Command::new("gcc").arg("-O2").args(options.split(' ')).current_dir(&folder).status();
        assert!(gcc.unwrap().success(), "gcc {options}");
    }
    Some(folder)
}

/// Returns an event's count for a program run, and the program's output.
#[track_caller]
fn counted(event: &str, options: &[&str], command: &[&str]) -> (u64, String) {
    let ran = kit::run(&[&["stat", "-x,", "-e", event], options, &["--"], command].concat()).expect(0);
    let count = ran.stderr.split(',').next().unwrap().parse();
    (count.unwrap_or_else(|e| panic!("{event}: {e}: {}", ran.stderr)), ran.stdout)
}

#[test]
fn sdt_markers_are_counted_with_semaphores() {
    let Some(folder) = marks() else { return };
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let five = (5, "watched\n".to_owned());
    for program in [path("fixed"), path("pie"), path("uses")] {
        assert_eq!(counted("sdt_toy:tick", &[], &[&program]), five, "{program}");
        assert_eq!(counted("sdt_t*:ti*:u", &["-i"], &[&program]), five, "{program}");
        // The marker counts as one event at several places, and it has no semaphore.
        assert_eq!(counted("sdt_toy:thrice", &[], &[&program]), (3, "alone\n".to_owned()), "{program}");
        assert_eq!(counted("sdt_toy:tick", &["-a"], &[&program]).1, "watched\n", "{program}");
    }
    let named = format!("sdt:{}:toy:tick", path("pie"));
    assert_eq!(counted(&named, &[], &["sh", "-c", &format!("{}; true", path("pie"))]), five);
    let refused = |event: &str, words: &[&str]| {
        kit::run(&["stat", "-e", event, "--", &path("uses")]).expect(2).says(words);
    };
    refused(
        "sdt_toy:tock",
        &["have a marker named `toy:tock`", "did you mean `toy:tick`", "sdt:PATH:toy:tock"],
    );
    refused(&format!("sdt:{}:a:b", path("uses")), &["no marker `a:b`", "no markers found", "readelf -n"]);
    refused("sdt:/no/file:a:b", &["cannot read the markers of /no/file"]);
    kit::run(&["stat", "-e", "sdt_a:b", "-a", "--timeout", "1"]).expect(2).says(&["no program to search"]);
}

/// Counts a program from a waiting state to its end, and returns the output of pmc and of the program.
fn attached(event: &str, program: &Path) -> (String, String) {
    let folder = program.parent().unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (orders, answers) = (path("orders"), path("answers"));
    let _ = Command::new("mkfifo").args([&orders, &answers]).stderr(Stdio::null()).status();
    let mut waits = Command::new(program);
    let mut waits = waits.arg("x").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The program's libraries are mapped once it reads (system call 0 on x86-64, 63 elsewhere).
    wait_for("the program's call", || {
        let link = std::fs::read_link(format!("/proc/{}/exe", waits.id()));
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", waits.id())).unwrap_or_default();
        let reads = call.starts_with("0 0x0 ") || call.starts_with("63 0x0 ");
        reads && link.is_ok_and(|link| link == program.canonicalize().unwrap())
    });
    let pid = waits.id().to_string();
    let control = format!("fifo:{orders},{answers}");
    let counting = start(&["stat", "-x,", "-e", event, "-p", &pid, "-D", "-1", "--control", &control]);
    wait_for_counters(counting.id(), 1);
    let open = |path: &str| OpenOptions::new().read(true).write(true).open(path).unwrap();
    open(&orders).write_all(b"enable\n").unwrap();
    let mut answer = String::new();
    BufReader::new(open(&answers)).read_line(&mut answer).unwrap();
    assert_eq!(answer, "ack\n");
    waits.stdin.take().unwrap().write_all(b"x").unwrap();
    let said = waits.wait_with_output().unwrap().stdout;
    let ran = kit::Ran::from(counting.wait_with_output().unwrap()).expect(0);
    (ran.stderr, String::from_utf8(said).unwrap())
}

#[test]
fn markers_of_running_processes_are_found_in_maps() {
    let Some(folder) = marks() else { return };
    for program in ["pie", "uses"] {
        let (counts, said) = attached("sdt_toy:tick", &folder.path().join(program));
        assert!(counts.starts_with("5,,sdt_toy:tick,") && said == "watched\n", "{counts}{said}");
    }
}

#[test]
fn breakpoints_accept_symbols() {
    let Some(folder) = marks() else { return };
    let breaks = kit::run(&["stat", "-x,", "-e", "mem:0x1000:w:u", "--", "true"]);
    let breaks = !breaks.stderr.contains("<not supported>");
    if !kit::need("breakpoints", breaks, "this machine has no hardware breakpoints") {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let count = |event: &str| counted(event, &[], &[&path("fixed")]).0;
    // The kernel also writes there when it executes the program.
    assert_eq!((count("mem:&counter:w:u"), count("mem:&counter+0/4:w:u"), count("mem:&tick")), (5, 5, 1));
    assert_eq!((count("mem:&wide:w:u"), count("mem:&wide+4/4:w:u")), (1, 1));
    let refused = |event: &str, program: &str, words: &[&str]| {
        kit::run(&["stat", "-e", event, "--", &path(program)]).expect(2).says(words);
    };
    refused("mem:&cuonter:w", "fixed", &["no symbol `cuonter`", "did you mean `counter`"]);
    refused("mem:&counter:w", "pie", &["the address of `counter` is known only", "PIE", "-p PID"]);
    refused("mem:&no_such_thing:k", "pie", &["the kernel has no symbol"]);
    for (event, program, count) in
        [("mem:&counter:w", "pie", "5,"), ("mem:&counter:w", "uses", "5,"), ("mem:&tick", "uses", "1,")]
    {
        let (counts, _) = attached(event, &folder.path().join(program));
        assert!(counts.starts_with(count), "{event} {program}: {counts}");
    }
}
