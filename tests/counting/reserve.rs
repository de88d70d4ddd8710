//! Tests the reservation protocol against the original: PCP's `perfalloc` and `pmdaperfevent` (Debian package
//! `pcp`). Each test uses a private lock file. This process checks locks with `F_GETLK`, because it is not
//! the process that holds them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail loudly too")]

use crate::kit::{self, ProcessGuard};

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::time::Duration;

use pmc_events::counter::reservation::{self, Policy, ReservationState, Watcher};
use pmc_sys::error::Warning;
use pmc_sys::sys::lock::{self, LockKind};
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use tempfile::TempDir;

const PCP: &str = "/usr/lib/pcp/pmdas/perfevent";

/// An event that needs a counter, reserved whether or not the machine has one.
const HELD: &[&str] = &["-e", "cycles", "--reserve=require"];

/// Whether the machine has counters. Without them pmc reserves nothing unless asked to.
fn has_counters() -> bool {
    pmc_sys::host::Host::live().core_pmu().is_some()
}

/// Returns PCP's `perfalloc` and pmc under that name, in a folder.
fn perfallocs(folder: &Path) -> [PathBuf; 2] {
    let ours = folder.join("perfalloc");
    symlink(kit::binary(), &ours).unwrap();
    [Path::new(PCP).join("perfalloc"), ours]
}

fn need_pcp() -> bool {
    kit::need(
        "pcp",
        Path::new(PCP).join("perfalloc").exists(),
        "PCP's perfalloc is not installed (Debian: pcp)",
    )
}

/// Requires hardware counters. For machines without them, tests/pmu covers the gaps.
fn need_counters() -> bool {
    kit::need("counters", has_counters(), "the machine has no hardware counters")
}

/// A private `PCP_PMDAS_DIR` with a lock file.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self::empty();
        File::create(place.lock_file()).unwrap();
        place
    }

    /// Creates one without the lock file.
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("perfevent")).unwrap();
        Self { dir }
    }

    fn lock_file(&self) -> PathBuf {
        self.dir.path().join("perfevent/perflock")
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("PCP_PMDAS_DIR", self.dir.path())
            .env("LC_ALL", "C")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Returns the command `pmc reserve` on this lock file.
    fn reserve(&self, words: &[&str]) -> Command {
        let mut command = self.command(kit::binary());
        command.arg("reserve").args(words);
        command
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> kit::Ran {
        self.reserve(words).output().unwrap().into()
    }

    /// Returns the process that holds the reservation, as the agent would ask. Must not be called while this
    /// process has a POSIX lock on the file.
    fn holder(&self) -> Option<u32> {
        let file = File::open(self.lock_file()).unwrap();
        let request = Flock { length: 1, ..Flock::from(FlockType::WriteLock) };
        let found = fcntl_getlk(&file, &request).unwrap()?;
        Some(found.pid.map_or(0, |pid| pid.as_raw_nonzero().get() as u32))
    }

    #[track_caller]
    fn wait_for_holder(&self, wanted: Option<u32>) {
        until(&format!("the holder is {wanted:?}"), || self.holder() == wanted);
    }
}

#[track_caller]
fn until(what: &str, is: impl FnMut() -> bool) {
    kit::wait_for(what, is);
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn warnings(policy: Policy, place: &Place) -> String {
    let prepared = reservation::prepare(policy, &place.lock_file()).unwrap();
    prepared.warnings.iter().map(Warning::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn check_names_the_original_perfalloc() {
    if !need_pcp() {
        return;
    }
    let place = Place::new();
    assert_eq!(warnings(Policy::Check, &place), "", "without a reservation, there is nothing to report");
    let perfalloc = ProcessGuard::start(&mut place.command(format!("{PCP}/perfalloc")));
    let pid = perfalloc.0.id();
    place.wait_for_holder(Some(pid));
    let said = warnings(Policy::Check, &place);
    assert!(said.contains(&format!("perfalloc (pid {pid})")), "{said}");
    let status = reservation::status(&place.lock_file());
    assert!(status.exists && format!("{:?}", status.holders).contains(&pid.to_string()), "{status:?}");
    drop(perfalloc);
    assert_eq!(warnings(Policy::Check, &place), "");
}

#[test]
fn other_processes_see_our_pid_until_a_signal_ends_pmc() {
    let place = Place::new();
    for signal in [Signal::INT, Signal::HUP, Signal::TERM] {
        let mut pmc = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
        place.wait_for_holder(Some(pmc.0.id()));
        pmc.signal(signal);
        assert_eq!(pmc.0.wait().unwrap().code(), Some(0), "{signal:?}");
        assert_eq!(place.holder(), None);
    }
}

#[test]
fn killed_pmc_leaves_no_lock() {
    let place = Place::new();
    let mut pmc = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    place.wait_for_holder(Some(pmc.0.id()));
    pmc.signal(Signal::KILL);
    assert_eq!(pmc.0.wait().unwrap().signal(), Some(9));
    assert_eq!(place.holder(), None);
}

#[test]
fn two_reservations_share_and_the_second_gets_a_note() {
    let place = Place::new();
    let first = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    place.wait_for_holder(Some(first.0.id()));
    let mut second = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::piped()));
    let mut said = String::new();
    BufReader::new(second.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains(&format!("pmc (pid {})", first.0.id())), "{said}");
    let both = reservation::status(&place.lock_file()).holders.unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    drop(first);
    place.wait_for_holder(Some(second.0.id()));
}

#[test]
fn write_lock_refuses_and_its_holder_is_named() {
    let place = Place::new();
    let file = File::options().read(true).write(true).open(place.lock_file()).unwrap();
    lock::take(&file, LockKind::Write).unwrap();
    let us = format!("(pid {})", std::process::id());
    place.run(&["echo", "ran"]).expect(1).says(&["holds them exclusively", &us, "try:"]).silent();
    place.run(&["-d"]).expect(1).says(&[&us]);
    lock::release(&file).unwrap();
    place.run(&["echo", "ran"]).expect(0).prints(&["ran"]);
}

#[test]
fn holder_of_an_ofd_lock_is_found() {
    let place = Place::new();
    let file = File::open(place.lock_file()).unwrap();
    lock::take_for_description(&file, LockKind::Read).unwrap();
    place
        .run(&["true"])
        .expect(0)
        .says(&["pmc reserved the hardware counters, but so did", &format!("(pid {})", std::process::id())]);
}

#[test]
fn missing_lock_file_is_explained_and_can_be_created() {
    let place = Place::empty();
    let missing = place.run(&["echo", "ran"]);
    let missing = missing.expect(1).says(&["does not exist", "perflock", "--create", "omit pmc reserve"]);
    assert!(!missing.stderr.contains("--reserve="), "it has no such option: {}", missing.stderr);
    missing.silent();
    place.run(&["-d"]).expect(1).says(&["does not exist"]);
    assert!(reservation::prepare(Policy::Require, &place.lock_file()).is_err());
    let silent = reservation::prepare(Policy::Auto, &place.lock_file()).unwrap();
    assert!(silent.reservation.is_none() && silent.warnings.is_empty());
    place.run(&["--create", "echo", "ran"]).expect(0).prints(&["ran"]);
    place.run(&["--create", "echo", "again"]).expect(0).prints(&["again"]);
}

#[test]
fn command_keeps_its_options_and_status() {
    let place = Place::new();
    place.run(&["sh", "-c", "exit 7"]).expect(7);
    place.run(&["echo", "-d", "-f", "--help"]).expect(0).prints(&["-d -f --help\n"]);
    place.run(&["--", "echo", "-v"]).expect(0).prints(&["-v\n"]);
    place.run(&["no-such-command-anywhere"]).expect(127).says(&["no-such-command-anywhere"]);
    place.run(&["/"]).expect(126);
    place.run(&["sh", "-c", "kill -9 $$"]).expect(128 + 9);
    let other = place.dir.path().join("other");
    place.run(&["-f", other.to_str().unwrap(), "true"]).expect(1).says(&["other"]);
    place.run(&["-x"]).expect(2);
    place.run(&["-v"]).expect(0).prints(&[env!("CARGO_PKG_VERSION")]);
    place.run(&["-h"]).expect(0).prints(&["COMMAND"]);
}

#[test]
fn lock_is_held_before_the_command_starts_and_not_inherited() {
    let place = Place::new();
    for _ in 0..20 {
        let ran = place.run(&["sh", "-c", "echo $PPID; cat /proc/locks; ls -l /proc/self/fd"]).expect(0);
        let pmc = ran.stdout.lines().next().unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(place.lock_file()).unwrap());
        let held = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.len() == 8
                && words[3] == "READ"
                && words[4] == pmc
                && words[5].ends_with(&format!(":{inode}"))
        };
        assert!(ran.stdout.lines().any(held), "{}", ran.stdout);
        assert!(!ran.stdout.contains("perflock"), "{}", ran.stdout);
        assert_eq!(place.holder(), None);
    }
}

#[test]
fn signals_are_forwarded_to_the_command() {
    let place = Place::new();
    for (name, signal) in [("TERM", Signal::TERM), ("INT", Signal::INT), ("USR1", Signal::USR1)] {
        let script = format!("trap 'exit 42' {name}; echo ready; while :; do sleep 0.01; done");
        let mut pmc = ProcessGuard::start(place.reserve(&["sh", "-c", &script]).stdout(Stdio::piped()));
        let mut ready = String::new();
        BufReader::new(pmc.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        pmc.signal(signal);
        assert_eq!(pmc.0.wait().unwrap().code(), Some(42), "{name}");
        assert_eq!(place.holder(), None);
    }
}

#[test]
fn background_mode_returns_when_the_lock_is_held() {
    let place = Place::new();
    // `output` waits for the end of stdout and stderr too, so this also checks that the background process
    // has closed them.
    let ran = place.run(&["-d"]).expect(0);
    let holder = place.holder().expect("held when the shell goes on");
    assert_eq!(ran.stderr, "");
    assert_eq!(std::fs::read_link(format!("/proc/{holder}/cwd")).unwrap(), Path::new("/"));
    send(holder, Signal::TERM);
    place.wait_for_holder(None);
}

#[test]
fn watcher_ignores_its_own_process() {
    let place = Place::empty();
    let mut watcher = Watcher::new(&place.lock_file());
    assert_eq!(*watcher.poll(), ReservationState::Free, "no file yet");
    File::create(place.lock_file()).unwrap();
    let own = reservation::prepare(Policy::Require, &place.lock_file()).unwrap();
    assert_eq!(*watcher.poll(), ReservationState::Free, "our own does not count");

    let pmc = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    let pid = pmc.0.id();
    until(
        "reserved",
        || matches!(watcher.poll(), ReservationState::Reserved(holder) if holder.to_string() == format!("pmc (pid {pid})")),
    );
    drop(pmc);
    assert_eq!(*watcher.poll(), ReservationState::Free);

    // Another pmc sees our lock; reading the file in this process must not have dropped it.
    let _ = reservation::status(&place.lock_file());
    place.run(&["true"]).expect(0).says(&[&format!("(pid {})", std::process::id())]);
    drop(own);
    assert!(!place.run(&["true"]).expect(0).stderr.contains("also reserved"));
}

/// The real agent under strace, with the trace of its calls on its counters.
struct Agent {
    strace: ProcessGuard,
    stdin: Option<ChildStdin>,
    trace: PathBuf,
}

impl Agent {
    fn need() -> bool {
        need_pcp() && kit::need_program("strace") && kit::need_root()
    }

    /// Starts the agent and waits until it has enabled its counters.
    fn start(place: &Place) -> Self {
        std::fs::copy("/etc/pcp/perfevent/perfevent.conf", place.dir.path().join("perfevent/perfevent.conf"))
            .unwrap();
        let trace = place.dir.path().join("trace");
        let mut command = place.command("strace");
        command.args(["-f", "-e", "trace=ioctl", "-o"]).arg(&trace);
        command.arg(format!("{PCP}/pmdaperfevent")).args(["-U", "root", "-d", "127", "-l"]);
        command
            .arg(place.dir.path().join("log"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut strace = ProcessGuard::start(&mut command);
        let agent = Self { stdin: strace.0.stdin.take(), strace, trace };
        until("the agent enables its counters", || agent.switched().0 > 0);
        agent
    }

    /// Returns how many times the agent has enabled and disabled counters.
    fn switched(&self) -> (usize, usize) {
        let trace = std::fs::read_to_string(&self.trace).unwrap_or_default();
        (trace.matches("PERF_EVENT_IOC_ENABLE").count(), trace.matches("PERF_EVENT_IOC_DISABLE").count())
    }

    /// Waits until the agent's counters are enabled again after a reservation that it saw.
    #[track_caller]
    fn returns(&self) {
        until("the agent enables its counters again", || {
            let (enabled, disabled) = self.switched();
            disabled > 0 && enabled > disabled
        });
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The agent ends when its standard input closes.
        drop(self.stdin.take());
        let _ = self.strace.0.wait();
    }
}

#[test]
fn pcp_agent_yields_before_the_command_and_resumes_after() {
    if !Agent::need() {
        return;
    }
    let place = Place::empty();
    let agent = Agent::start(&place);
    assert_eq!(agent.switched().1, 0);
    let status = reservation::status(&place.lock_file());
    assert!(status.agents.iter().any(|agent| agent.watches == Some(true)), "{status:?}");

    // The command itself checks what the agent has done so far.
    let ran = place.run(&["grep", "-c", "IOC_DISABLE", agent.trace.to_str().unwrap()]).expect(0);
    // All counters were off when the command looked, and may be on again by now.
    let (enabled, disabled) = agent.switched();
    assert_eq!(ran.stdout.trim(), disabled.to_string(), "of {enabled}");
    assert!(disabled > 0 && enabled >= disabled, "{enabled} {disabled}");
    ran.says(&["pmdaperfevent (pid"]);
    agent.returns();

    // The same before the shell continues after -d.
    place.run(&["-d"]).expect(0);
    let (enabled, disabled) = agent.switched();
    assert_eq!(enabled, disabled);
    send(place.holder().unwrap(), Signal::TERM);
    agent.returns();

    // Another user's agent that watches its own file causes no delay and no message.
    let elsewhere = Place::new();
    let status = reservation::status(&elsewhere.lock_file());
    assert!(status.agents.iter().all(|agent| agent.watches == Some(false)), "{status:?}");
    assert_eq!(elsewhere.run(&["true"]).expect(0).stderr, "");
}

/// Runs a program under the name `perfalloc` and returns its status, whether stdout is empty, and stderr.
fn answers(place: &Place, program: &Path, words: &[&str]) -> (Option<i32>, bool, String) {
    let Output { status, stdout, stderr } = place.command(program).args(words).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr).replace(program.to_str().unwrap(), "PROGRAM");
    (status.code(), stdout.is_empty(), stderr)
}

#[test]
fn perfalloc_personality_answers_like_the_original() {
    if !need_pcp() {
        return;
    }
    let place = Place::new();
    let [original, ours] = perfallocs(place.dir.path());
    let missing = place.dir.path().join("missing");
    let missing = missing.to_str().unwrap();
    let cases: &[&[&str]] = &[
        &["-h"],
        &["-v"],
        &["-hv"],
        &["-v", "-x"],
        &["-x"],
        &["-f"],
        &["--help"],
        &["ls", "-l", "/"],
        &["--", "ls", "-l", "/"],
        &["-f", missing],
        &["-f", missing, "-d"],
        &["-f", missing, "echo", "ran"],
        &["sh", "--", "-c", "exit 7"],
        &["--", "sh", "-c", "exit 7"],
        &["--", "sh", "-c", "kill -9 $$"],
        &["no-such-command-anywhere"],
        &["/"],
        &["-D", "-d", "-D", "--", "echo", "-d"],
    ];
    for words in cases {
        assert_eq!(answers(&place, &ours, words), answers(&place, &original, words), "{words:?}");
    }
    // The original's holder does not end if its command ended too early. Ours must end.
    kit::let_pass(Duration::from_millis(300));
    while let Some(left) = place.holder() {
        if std::fs::read_link(format!("/proc/{left}/exe")).is_ok_and(|exe| exe == original) {
            send(left, Signal::KILL);
        }
        // Our holder ends shortly after its command.
        until("it has gone", || place.holder() != Some(left));
    }
    // Refused: -d has succeeded by then, and a command runs anyway.
    let place = Place::new();
    let file = File::options().read(true).write(true).open(place.lock_file()).unwrap();
    lock::take(&file, LockKind::Write).unwrap();
    for words in [&[][..], &["-d"], &["echo", "ran"]] {
        assert_eq!(answers(&place, &ours, words), answers(&place, &original, words), "refused: {words:?}");
    }
}

/// The command may end before the holder waits for signals, also where SIGHUP is ignored, as under nohup.
#[test]
fn perfalloc_personality_ends_with_a_quick_command_under_nohup() {
    if !kit::need_program("strace") {
        return;
    }
    let place = Place::new();
    let [_, ours] = perfallocs(place.dir.path());
    let log = place.dir.path().join("log");
    let mut traced = place.command("env");
    // The holder enters the root directory before it waits, and then gets the signal.
    traced.args(["--ignore-signal=HUP", "strace", "-f", "-e", "inject=chdir:signal=HUP", "-o"]).arg(&log);
    let mut command = ProcessGuard::start(traced.arg(ours).arg("cat").stdin(Stdio::piped()));
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    until("the holder has got the signal", || said().contains("--- SIGHUP"));
    drop(command.0.stdin.take());
    assert!(command.0.wait().unwrap().success());
    assert!(said().contains("+++ killed by SIGHUP +++"), "{}", said());
}

#[test]
fn perfalloc_personality_holds_and_ends_like_the_original() {
    if !need_pcp() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for program in perfallocs(folder.path()) {
        let place = Place::new();
        for (signal, code) in [(Signal::INT, Some(0)), (Signal::HUP, Some(0)), (Signal::TERM, None)] {
            let mut alone = ProcessGuard::start(&mut place.command(&program));
            place.wait_for_holder(Some(alone.0.id()));
            // The handlers are installed after the lock.
            kit::wait_for_handler(alone.0.id(), Signal::INT.as_raw());
            kit::wait_until_idle(alone.0.id());
            alone.signal(signal);
            assert_eq!(alone.0.wait().unwrap().code(), code, "{program:?} {signal:?}");
            assert_eq!(place.holder(), None);
        }
        // The started process becomes the command. Its child holds the lock and ends with it.
        let mut command = place.command(&program);
        let mut becomes = ProcessGuard::start(
            command
                .args(["--", "sh", "-c", "echo $$; read end"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        until("a child holds", || place.holder().is_some());
        assert_ne!(place.holder(), Some(becomes.0.id()));
        drop(becomes.0.stdin.take());
        let mut pid = String::new();
        becomes.0.stdout.take().unwrap().read_to_string(&mut pid).unwrap();
        assert_eq!(pid.trim(), becomes.0.id().to_string());
        place.wait_for_holder(None);
    }
}

/// A check that the kit's results lack.
trait Silent {
    fn silent(self) -> Self;
}

impl Silent for kit::Ran {
    /// Checks that nothing ran: stdout is empty.
    #[track_caller]
    fn silent(self) -> Self {
        assert_eq!(self.stdout, "");
        self
    }
}

/// Returns the command `pmc stat` on this lock file.
fn stat(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(kit::binary());
    command.arg("stat").args(words);
    command
}

#[track_caller]
fn stat_run(place: &Place, words: &[&str]) -> kit::Ran {
    stat(place, words).output().unwrap().into()
}

#[test]
fn stat_reserves_only_for_hardware_events_and_leaves_no_lock_when_killed() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    let mut counting =
        ProcessGuard::start(stat(&place, &[HELD, &["--", "sleep", "5"]].concat()).stderr(Stdio::null()));
    place.wait_for_holder(Some(counting.0.id()));
    counting.signal(Signal::KILL);
    counting.0.wait().unwrap();
    assert_eq!(place.holder(), None);

    for words in [["-e", "task-clock"], ["-e", "cycles:u"]] {
        let off = words[1] == "cycles:u";
        let script = "echo started; read end";
        let mut command = stat(&place, &words);
        command.args(if off { &["--reserve=off"][..] } else { &[] }).args(["--", "sh", "-c", script]);
        let mut counting =
            ProcessGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut started = String::new();
        BufReader::new(counting.0.stdout.take().unwrap()).read_line(&mut started).unwrap();
        assert_eq!(started, "started\n");
        assert_eq!(place.holder(), None, "{words:?} takes no reservation");
        drop(counting.0.stdin.take());
        assert_eq!(counting.0.wait().unwrap().code(), Some(1), "`read` meets the end of its input");
    }
}

#[test]
fn stat_names_the_original_perfalloc() {
    if !need_pcp() || !kit::need_perf_events() || !need_counters() {
        return;
    }
    let place = Place::new();
    let perfalloc = ProcessGuard::start(&mut place.command(format!("{PCP}/perfalloc")));
    let pid = format!("perfalloc (pid {})", perfalloc.0.id());
    place.wait_for_holder(Some(perfalloc.0.id()));
    stat_run(&place, &["-e", "cycles", "--reserve=check", "true"]).expect(0).says(&["reserved by", &pid]);
    stat_run(&place, &[HELD, &["true"]].concat())
        .expect(0)
        .says(&["pmc reserved the hardware counters, but so did", &pid]);
    // Without options, pmc says so only if the machine has counters to share.
    let auto = stat_run(&place, &["-e", "cycles", "true"]).expect(0);
    assert_eq!(has_counters(), auto.stderr.contains("reserved by"), "{}", auto.stderr);
}

#[test]
fn required_reservation_fails_before_the_command() {
    let place = Place::empty();
    let words = ["-e", "cycles", "--reserve=require", "echo", "ran"];
    stat_run(&place, &words).expect(1).says(&["does not exist", "try:", "omit --reserve=require"]).silent();
    let file = File::create_new(place.lock_file()).unwrap();
    lock::take(&file, LockKind::Write).unwrap();
    stat_run(&place, &words).expect(1).says(&[&format!("(pid {})", std::process::id())]).silent();
    let auto = ["-e", "cycles", "echo", "ran"];
    if kit::need_perf_events() {
        let ran = stat_run(&place, &auto).expect(0).prints(&["ran"]);
        assert_eq!(has_counters(), ran.stderr.contains("not reserved"), "{}", ran.stderr);
    }
}

#[test]
fn pcp_agent_yields_for_stat_and_resumes() {
    if !Agent::need() || !kit::need_perf_events() {
        return;
    }
    let place = Place::empty();
    let agent = Agent::start(&place);
    let trace = agent.trace.to_str().unwrap();
    let ran = stat_run(&place, &[HELD, &["--", "grep", "-c", "IOC_DISABLE", trace]].concat()).expect(0);
    assert_eq!(ran.stdout.trim(), agent.switched().0.to_string(), "all disabled before the command started");
    ran.says(&["pmdaperfevent (pid"]);
    agent.returns();
}

/// Hardware events that the machine cannot count were never open, so pmc did not yield.
#[test]
fn unopened_events_do_not_yield() {
    if !kit::need_perf_events() || has_counters() {
        return;
    }
    let place = Place::new();
    let holder = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    place.wait_for_holder(Some(holder.0.id()));
    let words = ["--reserve=yield", "--json=2", "-o", "-", "-e", "cycles,task-clock", "--", "true"];
    let ran = stat_run(&place, &words).expect(0);
    assert!(!ran.stdout.contains("yielded_s") && !ran.stdout.contains("were off"), "{}", ran.stdout);
}

#[test]
fn yielding_reports_the_gap() {
    if !kit::need_perf_events() || !need_counters() {
        return;
    }
    let place = Place::new();
    let words = ["-e", "cycles,task-clock", "--reserve=yield", "--", "sh", "-c"];
    let free = stat_run(&place, &[&words[..], &["sleep 0.3"]].concat()).expect(0);
    assert!(!free.stderr.contains("were off"), "{}", free.stderr);

    // The reservation starts after the counting and ends before it; it lasts 0.5 s.
    let reserve = format!("sleep 0.2; {} reserve sleep 0.5; sleep 0.3", kit::binary());
    let ran = stat_run(&place, &[&words[..], &[&reserve]].concat()).expect(0);
    let gap = ran.stderr.split("were off for ").nth(1).expect(&ran.stderr);
    let (number, rest) = gap.split_once(' ').unwrap();
    let gap_ms: f64 = number.parse().unwrap();
    let whole: f64 =
        rest.strip_prefix("ms of ").and_then(|rest| rest.split(' ').next()?.parse().ok()).expect(gap);
    assert!((1.0..600.0).contains(&whole), "{gap}");
    // The gap does not start before the reservation and covers most of it, although pmc only polls the file.
    assert!(gap_ms > 150.0 && gap_ms < whole * 1e3 - 150.0, "{gap}");
}

#[test]
fn json_reports_the_reservation() {
    let place = Place::new();
    let first = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    place.wait_for_holder(Some(first.0.id()));
    let mut second = place.reserve(&["--json"]);
    let mut second = ProcessGuard::start(second.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(second.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let object = kit::schema::document("reserve", &line);
    assert_eq!((&object["version"], &object["pid"]), (&1.into(), &second.0.id().into()), "{line}");
    assert_eq!(object["lock_file"], place.lock_file().display().to_string());
    assert_eq!(object["shared_with"], serde_json::json!([format!("pmc (pid {})", first.0.id())]));
    assert_eq!(object["agents"], serde_json::json!([]));
    second.signal(Signal::TERM);
    assert_eq!(second.0.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    second.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "", "the object says it all");
}

/// An agent that has not opened the lock file watches no file.
#[test]
fn info_reports_a_failed_agent() {
    let place = Place::new();
    let agent = place.dir.path().join("pmdaperfevent");
    kit::copy_program("/bin/sleep", &agent);
    let agent = ProcessGuard::start(std::process::Command::new(&agent).arg("1000"));
    let said = format!("the agent (pid {}) does not have this file open", agent.0.id());
    kit::wait_until_idle(agent.0.id());
    let ran = kit::Ran::from(place.command(kit::binary()).arg("info").output().unwrap()).expect(0);
    let flowing = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains(&said) && !flowing.contains("honours reservations"), "{}", ran.stdout);
}

#[test]
fn mistyped_path_creates_no_directories() {
    let place = Place::new();
    let typed = place.dir.path().join("no/such/lock");
    let ran = place.run(&["-f", typed.to_str().unwrap(), "--create", "echo", "ran"]).expect(1);
    ran.says(&["cannot create the lock file", "does not exist", "check the -f path"]).silent();
    assert!(!place.dir.path().join("no").exists());
    let mut command = place.reserve(&["--create", "echo", "ran"]);
    command.env("PCP_PMDAS_DIR", place.dir.path().join("mistyped/pmdas"));
    let ran = kit::Ran::from(command.output().unwrap()).expect(1);
    ran.says(&["PCP is not installed", "PCP_PMDAS_DIR"]);
    assert!(!place.dir.path().join("mistyped").exists());
}

#[test]
fn info_shows_who_holds_the_reservation() {
    let place = Place::new();
    let info = || kit::Ran::from(place.command(kit::binary()).arg("info").output().unwrap()).expect(0);
    info().prints(&[&format!("free ({}", place.lock_file().display())]);
    let holder = ProcessGuard::start(place.reserve(&[]).stderr(Stdio::null()));
    place.wait_for_holder(Some(holder.0.id()));
    info().prints(&[&format!("held by pmc (pid {})", holder.0.id())]);
}

#[test]
fn last_of_several_holders_releases_the_reservation() {
    if !need_pcp() {
        return;
    }
    let place = Place::new();
    let mut watcher = Watcher::new(&place.lock_file());
    let start = || ProcessGuard::start(&mut place.command(format!("{PCP}/perfalloc")));
    let mut holders = vec![start(), start(), start()];
    let held = || reservation::status(&place.lock_file()).holders.unwrap();
    until("three holders", || held().len() == 3);
    let named = |holder: &ProcessGuard| format!("perfalloc (pid {})", holder.0.id());
    let said = warnings(Policy::Check, &place);
    assert!(holders.iter().all(|holder| said.contains(&named(holder))), "{said}");
    place.run(&["true"]).expect(0).says(&[&named(&holders[0]), &named(&holders[2])]);
    while let Some(gone) = holders.pop() {
        assert!(matches!(watcher.poll(), ReservationState::Reserved(_)), "{} hold", holders.len() + 1);
        drop(gone);
        assert_eq!(held().len(), holders.len());
    }
    assert_eq!(*watcher.poll(), ReservationState::Free);
    assert_eq!(warnings(Policy::Check, &place), "");
}

#[test]
fn intervals_report_how_long_hardware_was_disabled() {
    if !need_pcp() || !kit::need_perf_events() || !need_counters() {
        return;
    }
    let place = Place::new();
    let perfalloc = ProcessGuard::start(&mut place.command(format!("{PCP}/perfalloc")));
    place.wait_for_holder(Some(perfalloc.0.id()));
    let page = place.dir.path().join("page");
    let scrape = format!("--openmetrics={}", page.display());
    let words = ["--reserve=yield", "-I", "100", "-e", "cycles,task-clock"];
    let rest = ["-o", "-", "--", "sleep", "0.5"];
    // The reservation covers the whole run, so the hardware is off during all of each interval.
    let ran = stat_run(&place, &[&words[..], &[&scrape], &rest].concat()).expect(0);
    let gaps = ran.stdout.lines().filter(|line| line.contains("hardware events were disabled for")).count();
    let intervals = ran.stdout.lines().filter(|line| line.contains("task-clock")).count();
    assert!(intervals >= 2 && gaps == intervals, "{}", ran.stdout);
    let page = std::fs::read_to_string(page).unwrap();
    let of = |name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{page}"));
        line.trim().parse().unwrap()
    };
    assert_eq!(of("pmc_yielded_seconds_total "), of("pmc_elapsed_seconds_total "));

    let ran = stat_run(&place, &[&words[..], &["--json=2"], &rest].concat()).expect(0);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let parts = document["intervals"].as_array().unwrap().iter().chain([&document["total"]]);
    for part in parts {
        assert_eq!(part["yielded_s"], part["elapsed_s"], "{document}");
    }
    assert!(document["warnings"][0]["what"].as_str().unwrap().contains("were off for"), "{document}");

    // Once the reservation ends, the gap is zero.
    drop(perfalloc);
    let ran = stat_run(&place, &[&words[..], &["--json=2"], &rest].concat()).expect(0);
    assert!(!ran.stdout.contains("yielded_s"), "{}", ran.stdout);
}

/// Runs a script in a shell with its own mount namespace, and returns its result.
fn in_own_mounts(place: &Place, script: &str) -> kit::Ran {
    let mut command = place.command("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-ec", script, "sh", kit::binary()]);
    command.arg(place.dir.path()).output().unwrap().into()
}

#[test]
fn lock_file_on_a_read_only_mount_can_be_held_but_not_created() {
    if !need_pcp() || !kit::need_root() || !kit::need_program("unshare") {
        return;
    }
    let read_only = "mount --bind \"$2\" \"$2\"; mount -o remount,bind,ro \"$2\"; ";
    let place = Place::new();
    // The real perfalloc's reservation is visible there, and ours succeeds.
    let perfalloc = ProcessGuard::start(&mut place.command(format!("{PCP}/perfalloc")));
    place.wait_for_holder(Some(perfalloc.0.id()));
    let script = format!("{read_only} exec \"$1\" reserve --create \"$1\" info");
    let ran = in_own_mounts(&place, &script).expect(0);
    assert!(ran.stdout.contains("held by ") && ran.stdout.contains("pmc (pid "), "{}", ran.stdout);
    ran.says(&[&format!("perfalloc (pid {})", perfalloc.0.id())]);
    drop(perfalloc);
    assert_eq!(place.holder(), None);

    std::fs::remove_file(place.lock_file()).unwrap();
    in_own_mounts(&place, &format!("{read_only} exec \"$1\" reserve --create echo ran"))
        .expect(1)
        .says(&["cannot create the lock file", "EROFS", "mounted read-only", "try:"])
        .silent();
    // If the file is missing, pmc reserves nothing, and reports it only if a reservation is required.
    let words = "stat --reserve=require -e cycles -- echo ran";
    in_own_mounts(&place, &format!("{read_only} exec \"$1\" {words}"))
        .expect(1)
        .says(&["does not exist"])
        .silent();
}

#[test]
fn unreadable_lock_file_is_explained() {
    if !kit::need_root() || !kit::need_program("setpriv") {
        return;
    }
    let place = Place::new();
    let all = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    for dir in [place.dir.path(), &place.dir.path().join("perfevent")] {
        std::fs::set_permissions(dir, all(0o755)).unwrap();
    }
    // The binary is in a folder that only its owner may read, so start it before dropping privileges.
    let binary = place.dir.path().join("pmc");
    kit::copy_program(kit::binary(), &binary);
    let run = |words: &[&str]| -> kit::Ran {
        let mut command = place.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary).args(words);
        command.output().unwrap().into()
    };
    std::fs::set_permissions(place.lock_file(), all(0o744)).unwrap();
    run(&["reserve", "echo", "ran"]).expect(0).prints(&["ran"]);
    std::fs::set_permissions(place.lock_file(), all(0o600)).unwrap();
    run(&["reserve", "echo", "ran"])
        .expect(1)
        .says(&["opening the lock file", "EACCES", "chmod a+r"])
        .silent();
    std::fs::remove_file(place.lock_file()).unwrap();
    run(&["reserve", "--create", "echo", "ran"])
        .expect(1)
        .says(&["cannot create the lock file", "as root"])
        .silent();
}

#[test]
fn file_system_without_locks_is_explained() {
    if !need_pcp() || !kit::need_program("strace") {
        return;
    }
    let place = Place::new();
    // Simulate NFS without its lock service: replace the kernel's result, for this file only.
    let run = |words: &[&OsStr]| -> kit::Ran {
        let mut command = place.command("strace");
        command.args(["-f", "-o", "/dev/null", "-e", "trace=fcntl", "-e", "inject=fcntl:error=ENOLCK", "-P"]);
        command.arg(place.lock_file()).args(words).output().unwrap().into()
    };
    let pmc = |words: &[&str]| {
        let words: Vec<&OsStr> =
            std::iter::once(kit::binary()).chain(words.iter().copied()).map(OsStr::new).collect();
        run(&words)
    };
    pmc(&["reserve", "echo", "ran"])
        .expect(1)
        .says(&["locking the lock file", "ENOLCK", "NFS", "PCP_PMDAS_DIR"])
        .silent();
    pmc(&["reserve", "-d"]).expect(1).says(&["ENOLCK"]);
    pmc(&["stat", "--reserve=require", "-e", "cycles", "--", "echo", "ran"])
        .expect(1)
        .says(&["ENOLCK"])
        .silent();
    pmc(&["info"]).expect(0).prints(&["No locks available"]);
    if kit::need_perf_events() {
        let checked =
            pmc(&["stat", "--reserve=check", "-e", "cycles", "--", "echo", "ran"]).expect(0).prints(&["ran"]);
        checked.says(&["without reserving the hardware counters: locking the lock file"]);
        // An agent that cannot check the lock continues, and so does a pmc that yields.
        pmc(&["stat", "--reserve=yield", "-e", "cycles", "--", "echo", "ran"]).expect(0).prints(&["ran"]);
    }
    let [original, ours] = perfallocs(place.dir.path());
    let said = |program: &Path| {
        let ran = run(&[program.as_os_str()]).expect(1);
        ran.stderr.replace(program.to_str().unwrap(), "PROGRAM")
    };
    assert_eq!(said(&ours), said(&original));
}

/// Each option of `perfalloc(1)` alone, and a command, with the original and with pmc under its name.
#[test]
fn commands_from_the_perfalloc_man_page_work() {
    if !need_pcp() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for program in perfallocs(folder.path()) {
        let place = Place::new();
        let other = place.dir.path().join("other");
        File::create(&other).unwrap();
        let ends = |holder: u32| {
            kit::wait_for_handler(holder, Signal::INT.as_raw());
            kit::wait_until_idle(holder);
            send(holder, Signal::INT);
        };
        let mut foreground = ProcessGuard::start(place.command(&program).arg("-D"));
        place.wait_for_holder(Some(foreground.0.id()));
        ends(foreground.0.id());
        assert_eq!(foreground.0.wait().unwrap().code(), Some(0), "{program:?} -D");
        place.wait_for_holder(None);

        kit::Ran::from(place.command(&program).arg("-d").output().unwrap()).expect(0);
        until("the background holds", || place.holder().is_some());
        ends(place.holder().unwrap());
        place.wait_for_holder(None);

        let mut elsewhere = ProcessGuard::start(place.command(&program).arg("-f").arg(&other));
        let holders = || reservation::status(&other).holders.unwrap();
        until("the other file is held", || !holders().is_empty());
        assert_eq!(place.holder(), None, "{program:?} -f");
        ends(elsewhere.0.id());
        assert_eq!(elsewhere.0.wait().unwrap().code(), Some(0), "{program:?} -f");

        let said = |option| kit::Ran::from(place.command(&program).arg(option).output().unwrap()).expect(0);
        for (option, word) in [("-h", "Usage:"), ("-v", "perfalloc")] {
            let ran = said(option);
            assert!(ran.stdout.contains(word) || ran.stderr.contains(word), "{program:?} {option}: {ran:?}");
        }

        // The reservation lasts as long as the command.
        let mut command = ProcessGuard::start(place.command(&program).args(["sleep", "1000"]));
        until("it is held", || place.holder().is_some());
        kit::wait_for_program(command.0.id(), "sleep");
        command.signal(Signal::TERM);
        assert_eq!(command.0.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        place.wait_for_holder(None);
        std::fs::remove_file(place.lock_file()).unwrap();
        assert_eq!(place.command(&program).output().unwrap().status.code(), Some(1), "EXIT_FAILURE");
    }
}
