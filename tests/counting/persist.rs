//! Persistent events: held events keep counting while no client is connected, any number of readers can read
//! them, and no client can harm the holder.

mod owners;
mod readers;
mod service;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pmc_recording::persistent::PersistentEntry;
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::{HolderRequest, LONGEST_REQUEST, send};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{self, Ran, oracle};

const EXEC: &str = "sched:sched_process_exec";

fn ready() -> bool {
    kit::need_root() && kit::need_perf_events() && kit::need_tracefs("sched")
}

/// A private run directory, with a foreground holder once [`hold`](Self::hold) was called.
struct Run {
    folder: tempfile::TempDir,
    holder: Option<Child>,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Other users must be able to reach the socket.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
        Self { folder, holder: None }
    }

    fn held() -> Self {
        let mut run = Self::new();
        run.hold();
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn directory(&self) -> RunDirectory {
        RunDirectory::at(self.path("run"))
    }

    #[track_caller]
    fn entries(&self) -> Vec<PersistentEntry> {
        self.directory().entries().expect("the run directory is readable")
    }

    #[track_caller]
    fn entry(&self, name: &str) -> Option<PersistentEntry> {
        self.directory().entry(name).expect("the run directory is readable")
    }

    /// Names of the held entries.
    #[track_caller]
    fn names(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| entry.definition.name).collect()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut pmc = kit::pmc();
        pmc.args(words).env("PMC_PERSISTENT_DIR", self.path("run"));
        pmc
    }

    #[track_caller]
    fn pmc(&self, words: &[&str]) -> Ran {
        self.command(words).output().expect("pmc starts").into()
    }

    /// Starts a holder and waits until it answers.
    #[track_caller]
    fn hold(&mut self) {
        let log = File::create(self.path("said")).expect("a file");
        let holder = self.command(&["persist", "hold"]).stderr(log).spawn().expect("it starts");
        self.holder = Some(holder);
        let said = || fs::read_to_string(self.path("said")).unwrap_or_default();
        kit::wait_for("the holder", || said().contains("listening"));
    }

    /// Ends the holder with a signal, and returns its output.
    #[track_caller]
    fn end(&mut self, signal: Signal) -> String {
        let mut holder = self.holder.take().expect("there is one");
        let pid = Pid::from_child(&holder);
        kill_process(pid, signal).expect("it is there");
        holder.wait().expect("it ends");
        fs::read_to_string(self.path("said")).expect("it said something")
    }

    /// Returns an entry's count, summed over all CPUs.
    #[track_caller]
    fn count(&self, name: &str) -> u64 {
        let ran = self.pmc(&["persist", "read", "--json", name]).expect(0);
        let document = kit::schema::document("persist-read", &ran.stdout);
        let rows = document["counts"]["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["value"].as_u64().expect("a number")).sum()
    }

    /// Returns the lines of a snapshot that contain this text.
    #[track_caller]
    fn snapshot(&self, name: &str, what: &str) -> Vec<String> {
        let file = self.path(&format!("{name}-{}.data", std::process::id()));
        let _ = fs::remove_file(&file);
        self.pmc(&["persist", "snapshot", name, "-o", file.to_str().expect("plain")]).expect(0);
        let ran = self.pmc(&["script", "-i", file.to_str().expect("plain")]).expect(0);
        ran.stdout.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            let _ = holder.kill();
            let _ = holder.wait();
            return;
        }
        // A holder that was started for an entry ends with its last entry.
        for entry in self.entries() {
            let _ = self.command(&["persist", "rm", &entry.id.to_string()]).output();
        }
    }
}

/// A shell that runs a program once for each line sent to it. These programs cause the only events of an
/// entry opened on it.
struct Worker {
    child: Child,
    done: PathBuf,
    lines: usize,
}

impl Worker {
    fn start(run: &Run) -> Self {
        let worker = Self::by(run, Command::new("env"));
        // `env` replaces itself with the shell, which must not count as work.
        kit::wait_for_program(worker.child.id(), "sh");
        worker
    }

    /// Starts the shell, and adds its entry `execs` to the run's holder.
    #[track_caller]
    fn held(run: &Run) -> Self {
        let worker = Self::start(run);
        run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid()]).expect(0);
        worker
    }

    /// Starts the shell with this command.
    fn by(run: &Run, mut command: Command) -> Self {
        let done = run.path("done");
        let script = format!("while read line; do /bin/true; echo >> {}; done", done.display());
        command.args(["sh", "-c", &script]).stdin(Stdio::piped());
        Self { child: command.spawn().expect("it starts"), done, lines: 0 }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Runs a program this many times, and waits until all have ended.
    #[track_caller]
    fn work(&mut self, times: usize) {
        let to = self.child.stdin.as_mut().expect("a pipe");
        (0..times).for_each(|_| to.write_all(b"\n").expect("it reads"));
        self.lines += times;
        kit::wait_for("its work", || fs::read(&self.done).is_ok_and(|done| done.len() == self.lines));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_stay_open_without_clients() {
    if !ready() {
        return;
    }
    let run = Run::new();
    let mut worker = Worker::start(&run);
    let pid = worker.pid();
    // The first entry starts a holder.
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &pid]).expect(0).says(&["execs is held", "id 1"]);
    for (name, event) in [("clock", "cpu-clock"), ("faults", "page-faults")] {
        run.pmc(&["persist", "add", name, "-e", event, "-p", &pid, "--call-graph", "fp"]).expect(0);
    }
    worker.work(7);
    assert_eq!(run.count("execs"), 7);
    assert_eq!(run.snapshot("execs", "filename=/bin/true").len(), 7);
    assert!(run.count("faults") > 100 && run.count("clock") > 0);
    assert!(!run.snapshot("faults", "page-faults").is_empty());
    // The published folder has the same layout as the kernel's folder for a PMU.
    let file = |name: &str| fs::read_to_string(run.path("run").join(name)).expect("it is published");
    assert_eq!(file("type").trim().parse::<u32>().ok(), None, "no number of the kernel's");
    assert_eq!(file("format/persistent"), "attr5:23\n");
    assert_eq!(file("events/faults"), "persistent,config=3\n");
    run.pmc(&["persist", "list"]).expect(0).prints(&["execs", EXEC, &format!("pid {pid}"), "overwrite"]);
    run.pmc(&["persist", "show", "3"]).expect(0).prints(&["page-faults", "frame pointers", "attr0=0x1"]);
    run.pmc(&["persist", "read", "execs"]).expect(0).prints(&["all", "7", "100.0%"]);
    run.pmc(&["persist", "rename", "execs", "programs"]).expect(0);
    assert!(!run.path("run/events/execs").exists());
    worker.work(1);
    assert_eq!(run.count("programs"), 8);
    // A name can be used once, and must be a word.
    run.pmc(&["persist", "add", "clock", "-e", "cpu-clock"])
        .expect(2)
        .says(&["already exists", "pmc persist rm clock"]);
    run.pmc(&["persist", "add", "7up", "-e", "cpu-clock"]).expect(2).says(&["does not start with a letter"]);
    run.pmc(&["persist", "add", "a", "-e", "cpu-clocks"]).expect(2).says(&["^", "cpu-clock"]);
    run.pmc(&["persist", "add", "a", "-e", "cpu-clock,page-faults"]).expect(2).says(&["more than one event"]);
    run.pmc(&["persist", "add", "a", "-e", "duration_time"]).expect(2).says(&["not a kernel event"]);
    run.pmc(&["persist", "add", "a", "-e", "cpu-clock", "-C", "9999"]).expect(2).says(&["not online"]);
    // The holder ends with its last entry.
    run.pmc(&["persist", "rm", "programs", "clock", "3"]).expect(0);
    kit::wait_for("the end of the holder", || !run.path("run/socket").exists());
    run.pmc(&["persist", "list"]).expect(0).prints(&["no events are held"]);
    run.pmc(&["persist", "read", "clock"]).expect(1).says(&["no persistent event `clock`"]);
}

#[test]
fn readers_share_snapshots_and_divide_consumed_records() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let pid = worker.pid();
    for (name, mode) in [("newest", "--overwrite"), ("oldest", "--normal")] {
        run.pmc(&["persist", "add", name, "-e", EXEC, "-p", &pid, "--pages", "1", mode]).expect(0);
    }
    worker.work(5);
    let two = |name: &str| {
        let files = ["a", "b"].map(|reader| run.path(&format!("{name}-{reader}")));
        let snapshot = |file: &Path| {
            run.pmc(&["persist", "snapshot", name, "-o", file.to_str().expect("plain")]).expect(0);
        };
        std::thread::scope(|scope| {
            let readers = files.each_ref().map(|file| scope.spawn(|| snapshot(file)));
            readers.into_iter().for_each(|reader| reader.join().expect("it ends"));
        });
        files.map(|file| {
            let script = run.pmc(&["script", "-i", file.to_str().expect("plain")]).expect(0).stdout;
            script.lines().filter(|line| line.contains("/bin/true")).count()
        })
    };
    assert_eq!(two("newest"), [5, 5]);
    assert_eq!(two("oldest").iter().sum::<usize>(), 5, "each record goes to one reader");
    assert!(run.snapshot("oldest", "/bin/true").is_empty());
    // A page holds about forty records. `newest` keeps the last ones, complete, and `oldest` the first.
    worker.work(200);
    let tid = |line: &String| {
        line.split(" pid=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok())
    };
    let (newest, oldest) = (run.snapshot("newest", "/bin/true"), run.snapshot("oldest", "/bin/true"));
    assert!((10..200).contains(&newest.len()) && (10..200).contains(&oldest.len()), "{}", newest.len());
    assert!(newest.iter().chain(&oldest).all(|line| tid(line).is_some()), "{newest:#?}");
    run.pmc(&["persist", "read", "oldest"]).expect(0).prints(&["205"]);
    worker.work(1);
    assert!(run.snapshot("newest", "/bin/true").len() >= 10);
    assert_eq!(run.snapshot("oldest", "/bin/true").len(), 1, "there is room again");
}

#[test]
fn perf_reads_snapshots() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--call-graph", "fp"]).expect(0);
    run.pmc(&["persist", "add", "all", "-e", "cpu-clock", "--pages", "4"]).expect(0);
    worker.work(6);
    let (execs, all) = (run.path("execs.data"), run.path("all.data"));
    for (name, file) in [("execs", &execs), ("all", &all)] {
        run.pmc(&["persist", "snapshot", name, "-o", file.to_str().expect("plain")]).expect(0);
    }
    for perf in oracle::perfs() {
        let read = |words: &[&str], file: &Path| {
            let words: Vec<&str> =
                words.iter().copied().chain(["-i", file.to_str().expect("plain")]).collect();
            oracle::says(&perf, &words)
        };
        let script = read(&["script", "-F", "comm,event,trace"], &execs);
        let lines = script.lines().filter(|line| line.contains("filename=/bin/true"));
        assert_eq!(lines.count(), 6, "{}: {script}", perf.display());
        assert!(script.contains("true"), "{script}");
        let report = read(&["report", "--stdio"], &all);
        assert!(report.contains("cpu-clock") && report.contains("[kernel.kallsyms]"), "{report}");
    }
}

#[test]
fn stat_counts_persistent_events() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let worker = Worker::start(&run);
    let (pid, done) = (worker.pid(), worker.done.display().to_string());
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &pid]).expect(0);
    let wait = |lines: usize| format!("until [ $(wc -c < {done}) -ge {lines} ]; do sleep 0.01; done");
    // Another process requests the work. The counts are the entry's, between start and end.
    let pipe = format!("/proc/{}/fd/0", worker.pid());
    let work = |lines: usize| format!("for i in 1 2 3; do echo > {pipe}; done; {}", wait(lines));
    let stat = |more: &[&str], script: &str| {
        let words = [&["stat", "-x,", "-e", "persistent/execs/"], more, &["--", "sh", "-c", script]].concat();
        let ran = run.pmc(&words).expect(0);
        let rows: Vec<(u64, String)> = ran
            .stderr
            .lines()
            .filter(|line| line.contains("persistent/execs/"))
            .map(|line| (line.split(',').next().unwrap_or("").parse().unwrap_or(u64::MAX), line.to_owned()))
            .collect();
        rows
    };
    let rows = stat(&[], &work(3));
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [3], "{rows:?}");
    let rows = stat(&["-e", "task-clock"], &work(6));
    assert_eq!(rows.iter().map(|row| row.0).sum::<u64>(), 3, "{rows:?}");
    // Removing an entry during the run affects neither the other counts nor the command's status.
    run.pmc(&["persist", "add", "going", "-e", EXEC, "-p", &pid]).expect(0);
    let both = run.read(&["stat", "-e", "persistent/going/,page-faults:u"], "both");
    run.pmc(&["persist", "rm", "going"]).expect(0);
    run.release_command();
    let ran = readers::ended(both).expect(0).says(&["<not counted>", "has released it"]);
    let faults = ran.stderr.lines().find(|line| line.contains("page-faults:u")).expect(&ran.stderr);
    assert!(!faults.contains("<not counted>"), "{faults}");
    // Counting that is never switched on counts nothing.
    let rows = stat(&["-D", "100000"], &work(9));
    assert!(rows.iter().all(|row| row.0 == 0 || row.1.contains("not counted")), "{rows:?}");
    assert_eq!(run.count("execs"), 9);
    // An event that never happens has the count 0, which is a count.
    let rows = stat(&[], "true");
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [0], "{rows:?}");
    let twice = run.pmc(&["stat", "-r", "2", "-e", "persistent/execs/", "--", "true"]).expect(0);
    assert!(twice.stderr.contains("persistent/execs/"), "{}", twice.stderr);
    // Refused requests, and the reasons.
    let refused = |event: &str| run.pmc(&["stat", "-e", event, "--", "true"]).expect(2);
    refused("persistent/exec/").says(&["`exec`", "expected one of: execs", "pmc persist add exec -e EVENT"]);
    refused("persistent/execs/u").says(&["cannot be changed"]);
    refused("persistent/execs,period=5/").says(&["cannot be changed"]);
    refused("persistent/execs/,usr").says(&["cannot be changed"]);
    run.pmc(&["persist", "add", "again", "-e", "persistent/execs/"]).expect(2).says(&["not a kernel event"]);
    let none = Run::new();
    none.pmc(&["stat", "-e", "persistent/x/", "true"])
        .expect(2)
        .says(&["no holder is running", "pmc persist add x"]);
    drop(worker);
    run.pmc(&["persist", "read", "execs"]).expect(0).prints(&["have ended", "9"]);
}

#[test]
fn ids_are_never_reused_and_lost_entries_are_reported() {
    if !ready() {
        return;
    }
    let mut run = Run::held();
    let add = |run: &Run, name: &str| run.pmc(&["persist", "add", name, "-e", "page-faults:u"]).expect(0);
    add(&run, "first").says(&["id 1"]);
    run.pmc(&["persist", "rm", "first"]).expect(0);
    add(&run, "second").says(&["id 2"]);
    run.pmc(&["persist", "hold"]).expect(1).says(&["another holder"]);
    run.end(Signal::KILL);
    // Entries that a killed holder still publishes do not count as held, for any command.
    for words in [&["persist", "read", "second"][..], &["persist", "show", "2"]] {
        run.pmc(words).expect(1).says(&["it was lost", "was killed"]);
    }
    run.pmc(&["persist", "list"]).expect(0).prints(&["no events are held", "lost: second", "was killed"]);
    let listed = run.pmc(&["persist", "list", "--json"]).expect(0).stdout;
    let listed = kit::schema::document("persist-list", &listed);
    assert_eq!((&listed["held"], &listed["lost"][0]["name"]), (&serde_json::json!([]), &"second".into()));
    run.hold();
    assert!(fs::read_to_string(run.path("said")).expect("a log").contains("lost: second (page-faults:u)"));
    run.pmc(&["persist", "list"]).expect(0).prints(&["no events are held", "lost: second", "was killed"]);
    run.pmc(&["persist", "read", "second"]).expect(1).says(&["it was lost"]);
    add(&run, "third").says(&["id 3"]);
    let said = run.end(Signal::TERM);
    assert!(said.contains("no longer held: third"), "{said}");
    assert!(!run.path("run/socket").exists() && !run.path("run/type").exists());
    run.hold();
    run.pmc(&["persist", "list", "--json"]).expect(0).prints(&["\"second\"", "\"third\"", "signal 15"]);
    // Removing a lost entry, or adding it again, clears the note that it was lost.
    run.pmc(&["persist", "rm", "2"]).expect(0);
    add(&run, "third").says(&["id 4"]);
    let list = run.pmc(&["persist", "list"]).expect(0).stdout;
    assert!(!list.contains("lost"), "{list}");
    // If no holder runs, `rm` starts one to forget a lost entry.
    run.end(Signal::KILL);
    run.pmc(&["persist", "rm", "4"]).expect(0);
    let list = run.pmc(&["persist", "list"]).expect(0).stdout;
    assert!(!list.contains("lost"), "{list}");
}

/// Cleaning up a run directory must not leave a holder that clients cannot reach.
#[test]
fn removed_run_directory_is_recreated() {
    if !ready() {
        return;
    }
    let mut run = Run::held();
    let mut worker = Worker::held(&run);
    worker.work(3);
    for part in ["held/1", "socket", "lock", ""] {
        let path = run.path("run").join(part);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.expect("it is there");
        kit::wait_for("the entry", || {
            let directory = run.directory();
            // Without the lock the entry looks as if its holder had been killed.
            let is_held = directory.entry("execs").expect("it is readable").is_some()
                && directory.lost().expect("it is readable").is_empty();
            is_held && run.path("run/socket").exists()
        });
        assert_eq!(run.count("execs"), 3, "{part}");
    }
    // The holder still knows the next number.
    run.pmc(&["persist", "add", "more", "-e", "page-faults:u"]).expect(0).says(&["id 2"]);
    // If the parent folder is gone as well, the holder waits until it is there again.
    let aside = run.path("").parent().expect("a folder").join(format!("aside-{}", std::process::id()));
    fs::rename(run.path(""), &aside).expect("it is ours");
    fs::remove_dir_all(aside.join("run")).expect("it is there");
    let said = || fs::read_to_string(aside.join("said")).expect("it said something");
    kit::wait_for("the message", || said().contains("together with its directory"));
    fs::rename(&aside, run.path("")).expect("it is ours");
    worker.work(4);
    kit::wait_for("the entry", || run.entry("execs").is_some() && run.path("run/socket").exists());
    assert_eq!(run.count("execs"), 7);
    // The holder ends as usual while its run directory is missing.
    fs::rename(run.path(""), &aside).expect("it is ours");
    fs::remove_dir_all(aside.join("run")).expect("it is there");
    kit::wait_for("the message", || said().matches("together with its directory").count() == 2);
    fs::rename(&aside, run.path("")).expect("it is ours");
    let said = run.end(Signal::TERM);
    assert!(said.contains("no longer held: execs") && said.contains("2 held events"), "{said}");
}

/// The run directory is removed, and another holder starts there before the first one can restore it.
#[test]
fn displaced_holder_returns_when_the_other_holder_ends() {
    if !ready() {
        return;
    }
    let mut run = Run::held();
    let mut worker = Worker::held(&run);
    worker.work(3);
    let mut displaced = run.holder.take().expect("there is one");
    let signal = |signal| kill_process(Pid::from_child(&displaced), signal).expect("it is there");
    signal(Signal::STOP);
    fs::remove_dir_all(run.path("run")).expect("it is there");
    let first_said = run.path("first");
    fs::rename(run.path("said"), &first_said).expect("it is ours");
    run.hold();
    run.pmc(&["persist", "add", "other", "-e", "page-faults:u"]).expect(0).says(&["id 1"]);
    signal(Signal::CONT);
    let first_said = || fs::read_to_string(&first_said).expect("a log");
    kit::wait_for("the message", || first_said().contains("another holder has"));
    worker.work(2);
    // It neither publishes its entry nor changes those of the other holder.
    assert_eq!(run.names(), ["other"]);
    run.pmc(&["persist", "read", "other"]).expect(0);
    // The other holder leaves its socket behind.
    run.end(Signal::KILL);
    kit::wait_for("the entry", || run.names() == ["execs"]);
    assert_eq!(run.count("execs"), 5);
    assert_eq!(first_said().matches("another holder has").count(), 1);
    signal(Signal::TERM);
    displaced.wait().expect("it ends");
    assert!(first_said().contains("no longer held: execs"));
    assert!(!run.path("run/socket").exists());
}

/// Some PMUs can only count. Their events can still be held.
#[test]
fn counting_only_events_can_be_held() {
    let msr = Path::new("/sys/bus/event_source/devices/msr/events/tsc");
    if !ready() || !kit::need("msr", msr.exists(), "no msr/tsc/ on this machine") {
        return;
    }
    let run = Run::held();
    run.pmc(&["persist", "add", "tsc", "-e", "msr/tsc/", "-C", "0"])
        .expect(0)
        .says(&["can be counted but not sampled"]);
    run.pmc(&["persist", "list"]).expect(0).prints(&["msr/tsc/", "CPU 0", "counts only"]);
    let before = run.count("tsc");
    assert!(before > 0 && run.count("tsc") > before);
    let ran = run.pmc(&["stat", "-x,", "-e", "persistent/tsc/", "--", "true"]).expect(0);
    let count = ran.stderr.split(',').next().and_then(|count| count.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 0), "{}", ran.stderr);
    let file = run.path("none").display().to_string();
    for words in [
        &["persist", "snapshot", "tsc", "-o", &file][..],
        &["record", "-o", &file, "-e", "persistent/tsc/", "--", "true"],
    ] {
        run.pmc(words).expect(2).says(&["counted, not sampled"]);
    }
    run.pmc(&["start", "msr/tsc/", "page-faults:u"]).expect(0);
    run.pmc(&["stop"]).expect(0).prints(&["msr/tsc/", "page-faults:u", "TOTAL"]);
}

/// The output shows the entries' actual settings, not the text typed.
#[test]
fn entries_are_listed_completely() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let worker = Worker::start(&run);
    run.pmc(&["persist", "add", "bound", "-e", "page-faults,cpu=0", "--pages", "3"]).expect(0);
    let one = ["persist", "add", "trues", "-e", EXEC, "--filter", "filename == \"/bin/true\"", "--json"];
    let added = run.pmc(&one).expect(0).stdout;
    let added = kit::schema::document("persist-entry", &added);
    assert_eq!((&added["id"], &added["name"]), (&2.into(), &"trues".into()));
    run.pmc(&["persist", "show", "trues"]).expect(0).prints(&["filename == \"/bin/true\""]);
    run.pmc(&["persist", "list"]).expect(0).prints(&["OWNER", "root", "CPU 0"]);
    let shown = run.pmc(&["persist", "show", "--json", "bound"]).expect(0).stdout;
    let shown = kit::schema::document("persist-entry", &shown);
    let listed = run.pmc(&["persist", "list", "--json"]).expect(0).stdout;
    assert_eq!(kit::schema::document("persist-list", &listed)["held"][1]["name"], "trues");
    assert_eq!((&shown["pages"], &shown["cpus"]), (&4.into(), &"0".into()));
    // By number, and by the published text.
    for event in ["persistent/1/", "persistent/persistent,config=1/", "persistent/config=1/"] {
        run.pmc(&["stat", "-e", event, "--", "true"]).expect(0).says(&[event]);
    }
    run.pmc(&["list", "persistent"]).expect(0).prints(&["persistent/bound/", "persistent/trues/"]);
    run.pmc(&["stat", "-e", "persistent/9/", "--", "true"]).expect(2).says(&["`9`", "bound"]);
    // The list marks processes that have ended.
    run.pmc(&["persist", "add", "past", "-e", EXEC, "-p", &worker.pid()]).expect(0);
    let pid = worker.pid();
    drop(worker);
    kit::wait_for("the end", || run.entry("past").is_some_and(|entry| entry.ended.is_some()));
    run.pmc(&["persist", "list"]).expect(0).prints(&[&format!("pid {pid} (ended)")]);
    run.pmc(&["persist", "show", "past"]).expect(0).prints(&["ended", "pmc persist rm 3"]);
}

#[test]
fn users_hold_own_entries_and_read_shared_ones() {
    if !ready() || !kit::need_program("setpriv") {
        return;
    }
    const NOBODY: u32 = 65534;
    let theirs = Run::new();
    // The built binary may be in a folder that only root can read.
    let binary = theirs.path("pmc");
    kit::copy_program(kit::binary(), &binary);
    let user = |run: &Run, words: &[&str]| -> Ran {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary).args(words);
        command.env("PMC_PERSISTENT_DIR", run.path("run")).env("LC_ALL", "C").current_dir("/");
        command.stdin(Stdio::null()).output().expect("setpriv starts").into()
    };
    // A user's own task needs no privilege.
    let mut task = Command::new("setpriv");
    task.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    task.args(["sh", "-c", "while read line; do /bin/true; done"]).stdin(Stdio::piped());
    let mut task = task.spawn().expect("it starts");
    fs::create_dir(theirs.path("run")).expect("a folder");
    std::os::unix::fs::chown(theirs.path("run"), Some(NOBODY), Some(NOBODY)).expect("root may");
    let pid = task.id().to_string();
    kit::wait_for_program(task.id(), "sh");
    let added = user(&theirs, &["persist", "add", "faults", "-e", "page-faults", "-p", &pid, "--pages", "1"]);
    added.expect(0).says(&["user mode only", "faults is held"]);
    user(&theirs, &["persist", "list"]).expect(0).prints(&["page-faults (user mode only)", "overwrite"]);
    let before = theirs.count("faults");
    task.stdin.as_mut().expect("a pipe").write_all(b"\n\n\n").expect("it reads");
    kit::wait_for("faults", || theirs.count("faults") > before + 100);
    let file = theirs.path("run/snapshot");
    user(&theirs, &["persist", "snapshot", "faults", "-o", file.to_str().expect("plain")]).expect(0);
    user(&theirs, &["persist", "add", "init", "-e", "page-faults", "-p", "1"]).expect(1).says(&["EACCES"]);
    user(&theirs, &["persist", "rm", "faults"]).expect(0);
    task.kill().expect("it is there");
    task.wait().expect("it ends");
    // Of root's entries users get only the shared parts.
    let run = Run::held();
    for share in ["nothing", "counts", "records"] {
        run.pmc(&["persist", "add", share, "-e", "page-faults", "--share", share]).expect(0);
    }
    let all: Vec<&str> = vec!["nothing", "counts", "records"];
    user(&run, &["persist", "list"]).expect(0).prints(&all);
    user(&run, &["persist", "read", "nothing"])
        .expect(1)
        .says(&["does not share its counts", "--share counts"]);
    user(&run, &["persist", "read", "counts"]).expect(0).prints(&["page-faults"]);
    user(&run, &["stat", "-e", "persistent/counts/", "--", "true"]).expect(0);
    user(&run, &["persist", "snapshot", "counts", "-o", "-"]).expect(1).says(&["does not share its records"]);
    let copy = user(&run, &["persist", "snapshot", "records", "-o", "-"]).expect(0);
    assert!(copy.stdout.starts_with("PERFILE2"));
    let file = theirs.path("run/shared").display().to_string();
    user(&run, &["record", "-e", "persistent/records/", "--backlog", "-o", &file, "--", "true"])
        .expect(0)
        .says(&["samples, none lost"]);
    user(&run, &["top", "--stdio", "-e", "persistent/records/", "-d", "300", "--duration", "600ms"])
        .expect(0)
        .prints(&["page-faults"]);
    user(&run, &["record", "-e", "persistent/counts/", "-o", &file, "--", "true"])
        .expect(1)
        .says(&["does not share its records"]);
    // A recording contains no events from before its start, even if the shared copy is older.
    let mut worker = Worker::start(&run);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--share", "records"]).expect(0);
    user(&run, &["persist", "snapshot", "execs", "-o", "-"]).expect(0);
    worker.work(50);
    user(&run, &["record", "-N", "-e", "persistent/execs/", "-o", &file, "--", "sleep", "1.5"])
        .expect(0)
        .says(&[" 0 samples, none lost"]);
    run.pmc(&["persist", "rm", "execs"]).expect(0);
    for words in [
        &["persist", "add", "more", "-e", "page-faults"][..],
        &["persist", "rm", "records"],
        &["persist", "rename", "records", "mine"],
        &["persist", "attach", "records", "-o", "/dev/null"],
    ] {
        user(&run, words).expect(1).says(&["another user's"]);
    }
    assert_eq!(run.entries().len(), 3);
    // A client does not trust a holder that runs neither as the same user nor as root.
    user(
        &theirs,
        &["persist", "add", "faults", "-e", "page-faults:u", "-p", &std::process::id().to_string()],
    )
    .expect(1);
}

/// Connects as any client would.
fn connect(run: &Run) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
    let address = SocketAddrUnix::new(run.directory().socket()).expect("a short path");
    rustix::net::connect(&socket, &address).expect("the holder listens");
    socket
}

#[test]
fn killed_client_does_no_harm() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::held(&run);
    let pid = Pid::from_child(run.holder.as_ref().expect("there is one"));
    for turn in 1..=20 {
        // The client asks, then disconnects before the copy is ready. Some disconnect while the holder is
        // stopped.
        let request = HolderRequest::Snapshot { entry: "execs".to_owned(), after: Some(Vec::new()) };
        if turn % 2 == 0 {
            kill_process(pid, Signal::STOP).expect("it is there");
        }
        let client = connect(&run);
        send(&client, &request, LONGEST_REQUEST, &[]).expect("it is sent");
        drop(client);
        kill_process(pid, Signal::CONT).expect("it is there");
        // A later request is answered later: the copy is complete by then, and no record is written into it.
        assert_eq!(run.count("execs"), turn - 1);
        worker.work(1);
        // Nothing stays paused, and no record is missing.
        assert_eq!(run.count("execs"), turn);
        assert_eq!(run.snapshot("execs", "/bin/true").len() as u64, turn);
    }
    let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).expect("it lives").count();
    assert!(open < 40, "{open} descriptors are open");
}

#[test]
fn hostile_requests_are_rejected() {
    if !ready() {
        return;
    }
    let run = Run::held();
    run.pmc(&["persist", "add", "faults", "-e", "page-faults"]).expect(0);
    let texts = [
        r#"{"add":{"name":"x","event":"page-faults","pages":null,"mode":"normal","cpus":null,"pids":[],"call_graph":false,"share":"nothing"}}"#,
        r#"{"read":{"entry":"faults"}}"#,
        r#"{"snapshot":{"entry":"1"}}"#,
        r#"{"rename":{"entry":"faults","name":"../../x"}}"#,
        r#"{"remove":{"entry":"../faults"}}"#,
    ];
    let wrong = [
        r#"{"add":{"name":"x","event":"page-faults","pages":18446744073709551615,"mode":"normal","cpus":null,"pids":[],"call_graph":false,"share":"nothing"}}"#,
        r#"{"add":{"name":"../x","event":"page-faults","pages":1,"mode":"normal","cpus":null,"pids":[],"call_graph":false,"share":"nothing"}}"#,
        r#"{"add":{"name":"x","event":"page-faults","pages":1,"mode":"normal","cpus":"0-4294967295","pids":[],"call_graph":false,"share":"nothing"}}"#,
    ];
    let mut requests: Vec<Vec<u8>> =
        texts.iter().chain(&wrong).skip(3).map(|text| text.as_bytes().to_vec()).collect();
    // Requests with bytes changed, cut off and repeated, from a fixed seed.
    let mut dice = 88_172_645_463_325_252u64;
    let mut next = |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % below as u64) as usize
    };
    for _ in 0..300 {
        let mut bytes = texts[1 + next(texts.len() - 1)].as_bytes().to_vec();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"{}[]\",:\\0"[next(9)]),
                _ => bytes.extend_from_within(at..),
            }
        }
        requests.push(bytes);
    }
    requests.push(vec![b'['; 60_000]);
    requests.push(vec![b' '; 100_000]);
    requests.push(b"\xff\x00\xfe".to_vec());
    for bytes in &requests {
        let client = connect(&run);
        // The kernel rejects a message that is too long for its buffer.
        let _ = rustix::net::send(&client, bytes, SendFlags::NOSIGNAL);
    }
    // Silent connections, more than the holder has room for, must not block other clients.
    let silent: Vec<OwnedFd> = (0..400).map(|_| connect(&run)).collect();
    run.pmc(&["persist", "read", "faults"]).expect(0);
    // Ten times a hundred connections, each of which sends a request and disconnects.
    for _ in 0..1000 {
        let client = connect(&run);
        send(&client, &HolderRequest::Read { entry: "faults".to_owned() }, LONGEST_REQUEST, &[])
            .expect("it is sent");
    }
    run.pmc(&["persist", "read", "faults"]).expect(0);
    drop(silent);
    assert_eq!(run.names(), ["faults"], "none of them made sense");
    let open = || {
        fs::read_dir(format!("/proc/{}/fd", run.holder.as_ref().expect("it").id())).expect("it lives").count()
    };
    kit::wait_for("closed connections", || open() < 40);
}

#[test]
fn full_run_directory_is_reported_and_leaves_no_partial_entry() {
    if !ready() || !kit::need_program("mount") {
        return;
    }
    let mut run = Run::new();
    let small = run.path("run");
    fs::create_dir(&small).expect("a folder");
    let mount =
        |words: &[&str]| Command::new(words[0]).args(&words[1..]).arg(&small).stderr(Stdio::null()).status();
    let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs"])
        .is_ok_and(|ended| ended.success());
    if !kit::need("mount", mounted, "nothing can be mounted here") {
        return;
    }
    run.hold();
    let fill = small.join("full");
    let mut full = OpenOptions::new().create(true).append(true).open(&fill).expect("a file");
    while full.write_all(&[0; 4096]).is_ok() {}
    let add = || run.pmc(&["persist", "add", "faults", "-e", "page-faults:u"]);
    add().expect(1).says(&["ENOSPC", "free some space"]);
    assert!(run.entries().is_empty() && !small.join("events/faults").exists());
    fs::remove_file(&fill).expect("it is there");
    drop(full);
    add().expect(0).says(&["faults is held"]);
    assert!(run.count("faults") < u64::MAX);
    run.end(Signal::TERM);
    assert!(mount(&["umount"]).is_ok_and(|ended| ended.success()));
}
