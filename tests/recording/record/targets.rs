//! Programs that end badly or hide while they are recorded: unmapped code, changed privileges, forks without
//! end, names made of control characters, kills by the kernel. The recording must end, and keep its data.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use rustix::process::Signal;

use super::*;
use crate::kit::burn::least_samples;

const TARGETS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *burn_in_thread(void *unused) { burn_ms(300); return unused; }
static void *exec_in_thread(void *words) { execv(*(char **)words, words); return 0; }
static pid_t start(char **words) {
    pid_t child = fork();
    if (child) return child;
    execv(*words, words);
    _exit(9);
}
int main(int count, char **words) {
    const char *mode = words[1];
    if (!strcmp(mode, "unmap")) {
        burn_ms(100);
        munmap((void *)((uintptr_t)main & ~(uintptr_t)65535), (size_t)1 << 30);
    } else if (!strcmp(mode, "names")) {
        for (int i = 0; i < 200; i++) {
            prctl(PR_SET_NAME, i % 2 ? "\033[31m\r\n\a\b" : "\302\233H\177\377");
            burn_ms(1);
        }
    } else if (!strcmp(mode, "privileged")) {
        burn_ms(100);
        execl(words[2], words[2], "burn", (char *)0);
    } else if (!strcmp(mode, "burn")) {
        burn_ms(300);
    } else if (!strcmp(mode, "comet")) {
        /* Each process starts its successor and ends. */
        for (int i = 0; i < 3000; i++) if (fork()) _exit(0);
    } else if (!strcmp(mode, "leader")) {
        pthread_t thread;
        pthread_create(&thread, 0, burn_in_thread, 0);
        pthread_exit(0);
    } else if (!strcmp(mode, "eat")) {
        burn_ms(100);
        for (;;) memset(malloc(1 << 20), 1, 1 << 20);
    } else if (!strcmp(mode, "child")) {
        waitpid(start(words + 2), 0, 0);
        burn_ms(50);
    } else if (!strcmp(mode, "daemon")) {
        start(words + 2);
    } else if (!strcmp(mode, "killed")) {
        for (int i = 0; i < 100; i++) {
            pid_t child = start(words + 2);
            usleep(i * 20);
            kill(child, SIGKILL);
            waitpid(child, 0, 0);
        }
    } else if (!strcmp(mode, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, exec_in_thread, words + 2);
        pause();
    } else if (!strcmp(mode, "later")) {
        char byte;
        read(0, &byte, 1);
        waitpid(start(words + 2), 0, 0);
    } else if (!strcmp(mode, "wait")) {
        char byte;
        read(0, &byte, 1);
    } else if (!strcmp(mode, "sleep")) {
        usleep(atoi(words[2]));
    }
    return 0;
}
"#;

/// CPU time of the targets before they end or hide, in milliseconds.
const BURNT: u64 = 100;

/// Compiles the targets; `None` if something is missing.
fn targets() -> Option<(Lab, PathBuf)> {
    if !ready() || !kit::need_program("gcc") {
        return None;
    }
    let lab = Lab::new();
    let program = lab.program("targets", TARGETS, &["-O1", "-pthread"]);
    // Other users run it, too.
    std::fs::set_permissions(lab.0.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    Some((lab, program))
}

/// Checks that every reader finds the samples that pmc states, and returns their number.
#[track_caller]
fn check_samples(file: &Path, run: &kit::Ran) -> usize {
    let stated = told(&run.stderr, " samples");
    assert_eq!((our_samples(file), perf_samples(file)), (stated, stated), "{}", run.stderr);
    stated
}

#[test]
fn target_that_unmaps_its_code_is_recorded_until_it_dies() {
    let Some((lab, program)) = targets() else { return };
    for mode in ["fp", "dwarf"] {
        let file = lab.path(mode);
        let options = ["-e", "cpu-clock", "-F", "2000", "--call-graph", mode];
        let run = record(&file, &options, &[program.to_str().expect("a path"), "unmap"]);
        let run = run.expect(128 + Signal::SEGV.as_raw());
        assert!(check_samples(&file, &run) >= least_samples(BURNT, 2000), "{}", run.stderr);
    }
}

#[test]
fn names_made_of_control_characters_are_printed_escaped() {
    let Some((lab, program)) = targets() else { return };
    let file = lab.path("names");
    let program = program.to_str().expect("a path");
    let run = record(&file, &["-v", "-e", "cpu-clock", "-F", "2000"], &[program, "names"]).expect(0);
    assert!(our_samples(&file) >= least_samples(2 * BURNT, 2000), "{}", run.stderr);
    let file = file.to_str().expect("a path");
    let commands: &[&[&str]] = &[
        &["report", "--stdio", "-s", "comm,sym", "-i", file],
        &["report", "--tasks", "-i", file],
        &["script", "-i", file],
        &["export", "--format", "folded", "-o", "-", file],
        &["top", "--stdio", "-s", "comm", "-e", "cpu-clock", "--", program, "names"],
        &["trace", "-s", "--", program, "names"],
        &["profile", "--", program, "names"],
    ];
    for words in commands {
        let ran = kit::pmc().current_dir(lab.0.path()).args(*words).output().expect("pmc starts");
        let ran = kit::Ran::from(ran).expect(0);
        for text in [&ran.stdout, &ran.stderr] {
            let control = text.chars().find(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'));
            assert_eq!(control, None, "{words:?}: {text:?}");
        }
    }
}

/// pmc for another user, with a folder of this user and a setuid program.
struct OtherUser<'a> {
    program: &'a Path,
    pmc: PathBuf,
    folder: PathBuf,
    privileged: PathBuf,
}

impl<'a> OtherUser<'a> {
    /// `None` if something is missing.
    fn new(lab: &Lab, program: &'a Path) -> Option<Self> {
        if !kit::need_program("setpriv") {
            return None;
        }
        let (pmc, privileged, folder) = (lab.path("pmc"), lab.path("privileged"), lab.path("theirs"));
        kit::copy_program(kit::binary(), &pmc);
        kit::copy_program(program, &privileged);
        std::fs::set_permissions(&privileged, PermissionsExt::from_mode(0o4755)).expect("it is ours");
        std::fs::create_dir(&folder).expect("a folder");
        std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).expect("root may");
        Some(Self { program, pmc, folder, privileged })
    }

    /// Runs pmc with these options and the target with these words.
    fn run(&self, options: &[&str], words: &[&str]) -> kit::Ran {
        let mut setpriv = Command::new(AS_OTHER_USER[0]);
        setpriv.args(&AS_OTHER_USER[1..]).arg(&self.pmc).args(options);
        setpriv.arg("--").arg(self.program).args(words).env("HOME", &self.folder);
        kit::Ran::from(setpriv.output().expect("setpriv starts")).expect(0)
    }
}

/// These words before a command run it as nobody (user 65534).
const AS_OTHER_USER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn change_of_privileges_that_ends_the_measurement_is_reported() {
    let Some((lab, program)) = targets() else { return };
    let Some(user) = OtherUser::new(&lab, &program) else { return };
    let words = ["privileged", user.privileged.to_str().expect("a path")];
    let run = user.run(&["stat", "-e", "task-clock:u"], &words);
    let run =
        run.says(&["the events were on for", "(setuid, setgid or file capabilities)", "run pmc as root"]);
    assert!(!run.stderr.contains("executed a program"), "{}", run.stderr);
    let file = user.folder.join("perf.data");
    let file_name = file.to_str().expect("a path");
    let run = user.run(&["record", "-e", "cpu-clock:u", "-F", "2000", "-o", file_name], &words);
    let run = run.says(&["the kernel stopped measuring the command", "run pmc as root"]);
    // pmc reports the command only once.
    assert!(!run.stderr.contains(NOT_MEASURED), "{}", run.stderr);
    // perf reads only its own user's files.
    std::os::unix::fs::chown(&file, Some(0), Some(0)).expect("root may");
    assert!(check_samples(&file, &run) >= least_samples(BURNT, 2000), "{}", run.stderr);
}

/// Part of the warning about processes that the kernel stopped measuring.
const NOT_MEASURED: &str = "children when it executed a program";

#[test]
fn children_that_change_privileges_are_reported() {
    let Some((lab, program)) = targets() else { return };
    let Some(user) = OtherUser::new(&lab, &program) else { return };
    let privileged = user.privileged.to_str().expect("a path");
    let program = program.to_str().expect("a path");
    // Users may execute this program, but not read it.
    let secret = lab.path("secret");
    kit::copy_program(user.program, &secret);
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o711)).expect("it is ours");
    let secret = secret.to_str().expect("a path");
    let child = ["child", privileged, "burn"];
    let grandchild = ["child", program, "child", privileged, "burn"];
    let two = ["child", program, "child", privileged, "child", secret, "burn"];
    let unreadable = ["child", secret, "burn"];
    let file = user.folder.join("perf.data");
    // Few samples, so that no record is lost, which could be a mapping.
    let record = ["record", "--json", "-e", "cpu-clock:u", "-F", "100", "-o", file.to_str().expect("a path")];
    // The child of the setuid program is not measured either, so it cannot be reported.
    for words in [&child[..], &grandchild, &two, &unreadable] {
        for mode in ["fp", "dwarf"] {
            let run = user.run(&[&record[..], &["--call-graph", mode]].concat(), words);
            let name = if words == unreadable { "secret" } else { "privileged" };
            let run = run.says(&[NOT_MEASURED, "(setuid, setgid or file capabilities)", "run pmc as root"]);
            let summary: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
            let ended = summary["ended_at_exec"].as_array().expect("a list");
            assert_eq!((ended.len(), ended[0]["name"].as_str()), (1, Some(name)), "{words:?}: {summary}");
            let first = format!("{name} (pid {}) and its {NOT_MEASURED}", ended[0]["pid"]);
            assert!(run.stderr.contains(&first), "{}", run.stderr);
        }
    }
    // Nothing is missing for root, and for events on whole CPUs.
    let file = lab.path("root");
    for options in [&["-e", "cpu-clock"][..], &["-e", "cpu-clock", "-a"]] {
        let run = super::record(&file, options, &[&[program], &child[..]].concat()).expect(0);
        assert!(!run.stderr.contains(NOT_MEASURED), "{options:?}: {}", run.stderr);
    }
}

/// Root's events are removed too, if another user executes the program.
#[test]
fn live_commands_report_children_that_change_privileges() {
    let Some((lab, program)) = targets() else { return };
    let Some(user) = OtherUser::new(&lab, &program) else { return };
    let privileged = user.privileged.to_str().expect("a path");
    let program = program.to_str().expect("a path");
    let (child, ordinary) = (["child", privileged, "burn"], ["child", program, "burn"]);
    let first = |text: &str| {
        let (before, _) = text.split_once(NOT_MEASURED).unwrap_or_else(|| panic!("no warning in {text}"));
        let (_, pid) = before.rsplit_once("privileged (pid ").expect("the program");
        assert!(pid.trim_end_matches(") and its ").parse::<u32>().is_ok(), "{text}");
        assert!(text.contains("(setuid, setgid or file capabilities)"), "{text}");
    };
    for mode in [&["-F", "99", "-e", "cpu-clock:u"][..], &["-F", "99", "--wall"]] {
        let top = [&["top", "--stdio", "-d", "0.1"], mode].concat();
        first(&user.run(&top, &child).stdout);
        let run = user.run(&[&top[..], &["--json"]].concat(), &child);
        let last = kit::schema::document("top", run.stdout.lines().last().expect("a table"));
        first(last["notes"][0].as_str().expect("a note"));
        assert!(!user.run(&top, &ordinary).stdout.contains(NOT_MEASURED));
    }
    // pmc reports the command only once.
    let run = user.run(&["top", "--json", "-e", "cpu-clock:u"], &["privileged", privileged, "burn"]);
    let last = kit::schema::document("top", run.stdout.lines().last().expect("a table"));
    let notes = last["notes"].as_array().expect("a list");
    let note = notes[0].as_str().expect("a note");
    assert!(note.starts_with("the kernel stopped measuring the command") && notes.len() == 1, "{notes:?}");
    if !kit::need_tracefs("syscalls") {
        return;
    }
    let wait = ["syscalls:sys_enter_wait4", "syscalls:sys_exit_wait4"];
    let commands: &[&[&str]] = &[
        &["trace", "-s", "-m", "64M"],
        &["trace", "-m", "64M", "-e", "wait4"],
        &[&["latency"], &wait[..]].concat(),
        &[&["latency", "--call-graph", "dwarf"], &wait[..]].concat(),
    ];
    for words in commands {
        let run = |target: &[&str]| {
            let mut pmc = kit::pmc();
            let ran = pmc.args(*words).arg("--").args(AS_OTHER_USER).arg(program).args(target).output();
            kit::Ran::from(ran.expect("pmc starts")).expect(0).stderr
        };
        first(&run(&child));
        assert!(!run(&ordinary).contains(NOT_MEASURED), "{words:?}");
    }
    // Nothing is missing on whole CPUs.
    let top = ["top", "--stdio", "-e", "cpu-clock", "-a", "--", "setpriv"];
    let run = kit::run(&[&top, &AS_OTHER_USER[1..], &[program], &child].concat()).expect(0);
    assert!(!run.stdout.contains(NOT_MEASURED), "{}", run.stdout);
}

#[test]
fn screen_shows_that_the_kernel_stopped_measuring_a_child() {
    let Some((lab, program)) = targets() else { return };
    let Some(user) = OtherUser::new(&lab, &program) else { return };
    if !kit::need_program("tmux") {
        return;
    }
    // Users cannot end a program of root, so this child waits for the end of its standard input.
    let mut child = kit::ProcessGuard::start(
        Command::new(AS_OTHER_USER[0])
            .args(&AS_OTHER_USER[1..])
            .arg(&program)
            .args(["later", user.privileged.to_str().expect("a path"), "wait"])
            .stdin(Stdio::piped()),
    );
    kit::wait_for_program(child.id(), "targets");
    let line = format!("{} top -e cpu-clock:u -d 0.1 -p {}", user.pmc.display(), child.id());
    let line = format!("HOME={} {} {line}", user.folder.display(), AS_OTHER_USER.join(" "));
    let tmux = crate::top::screen::shell_line(lab.0.path(), &line, 120, 40);
    tmux.until_shown("lost 0");
    let mut stdin = child.0.stdin.take().expect("a pipe");
    stdin.write_all(b"1").expect("the target reads");
    tmux.until_shown("1 warning: pane 6");
    tmux.keys(&["6"]);
    tmux.until_shown("the kernel stopped measuring privileged (pid ");
    tmux.keys(&["q", "q"]);
    tmux.until_shown("status 0");
}

#[test]
fn ordinary_ends_of_processes_are_not_reported() {
    let Some((lab, program)) = targets() else { return };
    let Some(user) = OtherUser::new(&lab, &program) else { return };
    let program = program.to_str().expect("a path");
    let file = user.folder.join("perf.data");
    let record = ["record", "--json", "-e", "cpu-clock:u", "-F", "100", "-o", file.to_str().expect("a path")];
    let commands: &[&[&str]] = &[
        &["child", program, "burn"],
        &["child", "/bin/sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done; exec /bin/true"],
        &["daemon", program, "sleep", "100000"],
        &["killed", program, "sleep", "1000000"],
        &["child", program, "leader"],
        &["child", program, "thread", program, "burn"],
        &["child", "/does/not/exist"],
    ];
    for words in commands {
        for options in [&[][..], &["--call-graph", "dwarf"], &["--per-thread"]] {
            let run = user.run(&[&record[..], options].concat(), words);
            let summary: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
            assert_eq!(summary["ended_at_exec"], serde_json::json!([]), "{options:?} {words:?}: {run:?}");
        }
    }
}

#[test]
fn processes_that_replace_each_other_are_recorded() {
    let Some((lab, program)) = targets() else { return };
    let file = lab.path("comet");
    let run = record(&file, &["-e", "cpu-clock"], &[program.to_str().expect("a path"), "comet"]).expect(0);
    check_samples(&file, &run);
}

#[test]
fn threads_outlive_the_first_thread() {
    let Some((lab, program)) = targets() else { return };
    let (file, program) = (lab.path("leader"), program.to_str().expect("a path"));
    let run = record(&file, &["-e", "cpu-clock", "-F", "1000"], &[program, "leader"]).expect(0);
    assert!(check_samples(&file, &run) >= least_samples(300, 1000), "the second thread: {}", run.stderr);
    let mut target = kit::ProcessGuard::start(Command::new(program).arg("leader"));
    let pid = target.id().to_string();
    let run = record(&file, &["-e", "cpu-clock", "-F", "1000", "-p", &pid], &[]).expect(0);
    target.0.wait().expect("it is ours");
    check_samples(&file, &run);
}

/// The target ends while pmc finds its threads, opens its events, or has begun to record.
#[test]
fn target_may_end_at_any_moment_of_the_start() {
    let Some((lab, program)) = targets() else { return };
    let file = lab.path("ends");
    let mut recorded = 0;
    for microseconds in (0..40).map(|step| step * 500) {
        let mut target =
            kit::ProcessGuard::start(Command::new(&program).args(["sleep", &microseconds.to_string()]));
        let run = record(&file, &["-e", "cpu-clock", "-p", &target.id().to_string()], &[]);
        target.0.wait().expect("it is ours");
        match run.status {
            Some(0) => {
                check_samples(&file, &run);
                recorded += 1;
            }
            _ => {
                let run = run.expect(1);
                let reasons = ["no process", "the processes ended before pmc opened their events"];
                assert!(reasons.iter().any(|reason| run.stderr.contains(reason)), "{}", run.stderr);
            }
        }
    }
    assert!(recorded > 0);
}

#[test]
fn stopped_recorder_and_target_continue() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("stopped");
    let mut pmc = kit::pmc();
    pmc.args(["record", "-e", "cpu-clock", "-m", "1", "-F", "5000", "-o"]).arg(&file);
    let pmc = kit::ProcessGuard::start(pmc.args(["--", "sh", "-c", SPIN]).stderr(Stdio::piped()));
    let target = kit::wait_for_child(pmc.id());
    kit::wait_for_program(target, "sh");
    kit::wait_for_ticks(target, 5);
    // The ring overflows while pmc is stopped.
    pmc.signal(Signal::STOP);
    kit::wait_for_ticks(target, 20);
    pmc.signal(Signal::CONT);
    let signal = |signal| {
        let command = rustix::process::Pid::from_raw(target as i32).expect("an ID");
        rustix::process::kill_process(command, signal).expect("it runs");
    };
    signal(Signal::STOP);
    kit::wait_for("the target stops", || {
        std::fs::read_to_string(format!("/proc/{target}/stat")).is_ok_and(|stat| stat.contains(") T "))
    });
    signal(Signal::CONT);
    kit::wait_for_ticks(target, 5);
    signal(Signal::TERM);
    let run = finish(pmc).expect(128 + Signal::TERM.as_raw());
    // The ring was full, with more samples than this.
    assert!(told(&run.stderr, " records lost") > 0 && check_samples(&file, &run) > 20, "{}", run.stderr);
}

/// Output of a process that was started with a pipe for stderr.
#[track_caller]
fn finish(mut process: kit::ProcessGuard) -> kit::Ran {
    use std::io::Read;
    let mut stderr = String::new();
    process.0.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    let status = kit::wait_for_end("the recorder", &mut process.0).code();
    kit::Ran { status, stdout: String::new(), stderr }
}

/// A cgroup with little memory, in which the kernel kills a process if it runs out.
struct SmallGroup(PathBuf);

impl SmallGroup {
    fn new(name: &str, limit: u64) -> Option<Self> {
        let make = |folder: &str, file: &str| {
            let group = Path::new(folder).join(format!("pmc-test-{name}-{}", std::process::id()));
            std::fs::create_dir(&group).ok()?;
            let group = Self(group);
            std::fs::write(group.0.join(file), limit.to_string()).ok().map(|()| group)
        };
        let group = make("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            .or_else(|| make("/sys/fs/cgroup", "memory.max"));
        kit::need("memory-cgroup", group.is_some(), "no cgroup can limit memory");
        group
    }

    /// A shell script that enters the group and becomes another program.
    fn enter(&self, score: i32, program: &str) -> String {
        format!(
            "echo {score} >/proc/self/oom_score_adj; echo $$ >{}/cgroup.procs; {program}",
            self.0.display()
        )
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        kit::wait_for("the group is empty", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn target_killed_for_its_memory_is_recorded_until_then() {
    let Some((lab, program)) = targets() else { return };
    let Some(group) = SmallGroup::new("target", 64 << 20) else { return };
    let file = lab.path("eaten");
    let shell = group.enter(0, &format!("exec {} eat", program.display()));
    let run = record(&file, &["-e", "cpu-clock", "-g", "-F", "2000"], &["sh", "-c", &shell]);
    let run = run.expect(128 + Signal::KILL.as_raw());
    assert!(check_samples(&file, &run) >= least_samples(BURNT, 2000), "{}", run.stderr);
}

#[test]
fn recorder_killed_for_its_memory_leaves_a_readable_file() {
    let Some((lab, program)) = targets() else { return };
    let Some(group) = SmallGroup::new("recorder", 128 << 20) else { return };
    let file = lab.path("killed");
    let mut shell = Command::new("sh");
    // The kernel prefers processes with a high score.
    shell.args(["-c", &group.enter(1000, r#"exec "$0" "$@""#)]).arg(kit::binary()).process_group(0);
    shell.args(["record", "-q", "-e", "cpu-clock", "-g", "-F", "2000", "-o"]).arg(&file);
    let mut pmc = kit::ProcessGuard::start(shell.args(["--", "sh", "-c", SPIN]));
    let members = rustix::process::Pid::from_child(&pmc.0);
    kit::wait_for("samples", || file.exists() && Reader::open(&file).is_ok() && our_samples(&file) > 0);
    let eater =
        Command::new("sh").args(["-c", &group.enter(0, &format!("exec {} eat", program.display()))]).status();
    assert!(!eater.expect("sh starts").success());
    let status = kit::wait_for_end("the recorder", &mut pmc.0);
    let _ = rustix::process::kill_process_group(members, Signal::KILL);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(Signal::KILL.as_raw()),
        "{status}"
    );
    // perf reads only the data that the header covered when the recorder was killed.
    let (ours, theirs) = (our_samples(&file), perf_samples(&file));
    assert!(ours > 0 && ours >= theirs, "{ours} {theirs}");
}
