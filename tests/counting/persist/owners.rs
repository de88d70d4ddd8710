//! Events that move from a recording to the holder, and on to another recording.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::readers::ended;
use super::{EXEC, Run, Worker, ready};
use crate::kit::{self, oracle};

impl Run {
    /// Starts a command that writes a recording, and waits until the file exists.
    #[track_caller]
    fn start(&self, words: &[&str], file: &str) -> Child {
        let child = self.command(words).args(["-o", file]).stderr(Stdio::piped()).spawn();
        kit::wait_for("the recording", || fs::exists(file).unwrap_or(false));
        child.expect("pmc starts")
    }
}

#[test]
fn events_outlive_their_recording() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::new();
    let mut worker = Worker::start(&run);
    let pid = worker.pid();
    let (first, second) = (run.file("first.data"), run.file("second.data"));
    let recorder = run.start(&["record", "-e", EXEC, "-p", &pid], &first);
    worker.work(3);
    let from = recorder.id().to_string();
    run.pmc(&["persist", "adopt", "execs", "--from", &from]).expect(0).says(&["execs is held", EXEC]);
    // The recording has ended normally, and later events wait in its rings.
    ended(recorder).expect(0).says(&["3 samples, none lost"]);
    worker.work(4);
    assert_eq!(run.count("execs"), 7, "the event is the same");
    run.pmc(&["persist", "list"]).expect(0).prints(&["execs", &format!("pid {pid}"), "normal"]);
    // A new owner takes the entry away, and the holder ends with its last entry.
    let attached = run.start(&["persist", "attach", "execs"], &second);
    assert!(run.entries().is_empty());
    kit::wait_for("the end of the holder", || !run.path("run/socket").exists());
    worker.work(2);
    kill_process(Pid::from_child(&attached), Signal::INT).expect("it is there");
    ended(attached).expect(0).says(&["6 samples, none lost"]);
    for (file, samples) in [(&first, 3), (&second, 6)] {
        assert_eq!(run.lines(file, "filename=/bin/true"), samples, "{file}");
        for perf in oracle::perfs() {
            let script = oracle::says(&perf, &["script", "-F", "comm,event,trace", "-i", file]);
            let lines = script.lines().filter(|line| line.contains("filename=/bin/true"));
            assert_eq!(lines.count(), samples, "{}: {script}", perf.display());
        }
    }
}

/// The events of one recording form one entry, and each has its own count.
#[test]
fn each_event_of_a_recording_is_counted() {
    if !ready() {
        return;
    }
    let run = Run::new();
    let mut worker = Worker::start(&run);
    let first = run.file("first.data");
    let events = format!("{EXEC},sched:sched_process_exit");
    let recorder = run.start(&["record", "-e", &events, "-p", &worker.pid()], &first);
    worker.work(5);
    let from = recorder.id().to_string();
    run.pmc(&["persist", "adopt", "both", "--from", &from]).expect(0).says(&[&events]);
    ended(recorder).expect(0);
    worker.work(2);
    let read = run.pmc(&["persist", "read", "--json", "both"]).expect(0).stdout;
    let read: serde_json::Value = serde_json::from_str(&read).expect("JSON");
    assert_eq!(read["counts"]["events"], serde_json::json!([EXEC, "sched:sched_process_exit"]));
    let rows = read["counts"]["rows"].as_array().expect("rows");
    let counted: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| (row["event"].as_u64().expect("one"), row["value"].as_u64().expect("one")))
        .collect();
    assert_eq!(counted, [(0, 7), (1, 7)], "{read}");
    run.pmc(&["persist", "read", "both"])
        .expect(0)
        .prints(&[&format!("{EXEC}:"), "sched:sched_process_exit:"]);
    run.pmc(&["stat", "-e", "persistent/both/", "--", "true"])
        .expect(2)
        .says(&["contains several events", "sched_process_exit"]);
    // A recording tells them apart.
    let second = run.file("second.data");
    let reader = run.read(&["record", "-e", "persistent/both/", "-o", &second], "both");
    worker.work(3);
    run.release_command();
    ended(reader).expect(0);
    assert_eq!(run.lines(&second, EXEC), 5);
    // Counts of ended processes are kept, and the list says that no more will come.
    let pid = worker.pid();
    drop(worker);
    kit::wait_for("the end", || run.entry("both").is_some_and(|entry| entry.ended.is_some()));
    run.pmc(&["persist", "list"]).expect(0).prints(&[&format!("pid {pid} (ended)")]);
    assert_eq!(run.count("both"), 10 + 10 + 1, "execs, exits, its own exit");
}

/// The holder also takes over `pmc stat`'s counters and counts on from their values.
#[test]
fn counters_outlive_stat() {
    if !ready() {
        return;
    }
    let run = Run::new();
    let mut worker = Worker::start(&run);
    let (said, events) = (run.path("said"), format!("{EXEC},sched:sched_process_exit"));
    let mut stat = run.command(&["stat", "-x,", "-e", &events, "-p", &worker.pid()]);
    let stat = stat.stderr(fs::File::create(&said).expect("a file")).spawn().expect("pmc starts");
    let open = format!("/proc/{}/fd", stat.id());
    let is_perf = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    kit::wait_for("its counters", || {
        fs::read_dir(&open)
            .is_ok_and(|all| all.flatten().filter_map(|file| is_perf(file).then_some(())).count() >= 2)
    });
    // Counting begins a moment later, so earlier events are not counted.
    kit::wait_for("the entry", || {
        let from = stat.id().to_string();
        run.command(&["persist", "adopt", "both", "--from", &from])
            .output()
            .is_ok_and(|ran| ran.status.success())
    });
    let before = run.count("both");
    worker.work(4);
    assert_eq!(run.count("both"), before + 8);
    ended(stat).expect(0);
    let said = fs::read_to_string(&said).expect("its rows");
    assert!(said.contains(EXEC) && said.contains("sched_process_exit"), "{said}");
    run.pmc(&["persist", "list"]).expect(0).prints(&[
        "both",
        "counts only",
        &format!("pid {}", worker.pid()),
    ]);
    run.pmc(&["persist", "attach", "both", "-o", &run.file("none")])
        .expect(2)
        .says(&["was counted, not sampled,"]);
    run.pmc(&["record", "-o", &run.file("none"), "-e", "persistent/both/", "--", "true"])
        .expect(2)
        .says(&["was counted, not sampled,"]);
}

/// A request for a recording meant for another holder is refused, and the recording continues.
#[test]
fn recording_of_another_holder_is_not_touched() {
    if !ready() || !kit::need_program("setpriv") {
        return;
    }
    let (run, other) = (Run::held(), Run::new());
    let mut worker = Worker::start(&run);
    let file = run.file("mine.data");
    let recorder = run.start(&["record", "-e", EXEC, "-p", &worker.pid()], &file);
    let from = recorder.id().to_string();
    let adopt = ["persist", "adopt", "execs", "--from", &from];
    other.pmc(&adopt).expect(1).says(&["does not hand its events", &run.file("run")]);
    // A recording of another user, for that user's holder.
    let theirs = Run::new();
    let binary = theirs.path("pmc");
    kit::copy_program(kit::binary(), &binary);
    let folder = theirs.path("theirs");
    fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).expect("root may");
    let their_file = folder.join("perf.data").display().to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary);
    command.args(["record", "-e", "page-faults:u", "-c", "1", "-o", &their_file, "--", "sleep", "600"]);
    command.env("PMC_PERSISTENT_DIR", folder.join("run")).stderr(Stdio::piped());
    let their = command.spawn().expect("setpriv starts");
    kit::wait_for("their recording", || fs::exists(&their_file).unwrap_or(false));
    let pid = their.id().to_string();
    other
        .pmc(&["persist", "adopt", "x", "--from", &pid])
        .expect(1)
        .says(&["belongs to another user", "sudo -u #65534"]);
    worker.work(2);
    for recorder in [&recorder, &their] {
        kill_process(Pid::from_child(recorder), Signal::INT).expect("it runs still");
    }
    ended(recorder).expect(0).says(&["2 samples, none lost"]);
    assert!(ended(their).stderr.contains("samples"));
    assert!(!folder.join("run").exists() && other.entries().is_empty());
}

/// If two ask for the same events, one gets them.
#[test]
fn only_one_of_two_adopters_succeeds() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let file = run.file("wanted.data");
    let recorder = run.start(&["record", "-e", EXEC, "-p", &worker.pid()], &file);
    let from = recorder.id().to_string();
    let both: Vec<Child> = ["one", "two"]
        .map(|name| {
            let mut adopt = run.command(&["persist", "adopt", name, "--from", &from]);
            adopt.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("pmc starts")
        })
        .into();
    let both: Vec<kit::Ran> = both.into_iter().map(ended).collect();
    ended(recorder).expect(0);
    let held = run.names();
    let said: Vec<&str> = both.iter().map(|ran| ran.stderr.as_str()).collect();
    assert_eq!(held.len(), 1, "{held:?}: {said:?}");
    let won: Vec<&str> = ["one", "two"]
        .into_iter()
        .zip(&both)
        .filter(|(_, ran)| ran.stderr.contains("is held:"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(won, held, "{said:?}");
    worker.work(1);
    assert_eq!(run.count(&held[0]), 1);
}

/// A command continues after its recording hands its events over, and a recording attached later knows the
/// command's name and mappings.
#[test]
fn command_continues_without_its_recorder() {
    if !ready() {
        return;
    }
    let run = Run::new();
    let [first, second, said] = ["first.data", "second.data", "said"].map(|name| run.file(name));
    let mut record = run.command(&["record", "-s", "-e", EXEC, "-o", &first, "--"]);
    // The command inherits its recorder's descriptors, so stderr must be a file, not a pipe of this test.
    record.stderr(fs::File::create(&said).expect("a file"));
    let mut worker = Worker::by(&run, record);
    worker.work(3);
    let from = worker.pid();
    run.pmc(&["persist", "adopt", "execs", "--from", &from]).expect(0).says(&["execs is held", EXEC]);
    let mut status = None;
    kit::wait_for("the recorder's end", || {
        status = worker.child.try_wait().expect("a child of ours");
        status.is_some()
    });
    let said = fs::read_to_string(&said).expect("it said something");
    assert!(
        status.is_some_and(|status| status.success()) && said.contains("sh continues as process"),
        "{said}"
    );
    worker.work(4);
    // The exec of the shell itself adds one.
    assert_eq!(run.count("execs"), 8);
    assert_eq!(run.lines(&first, "filename=/bin/true"), 3);
    let attached = run.start(&["persist", "attach", "execs"], &second);
    worker.work(2);
    // The recording ends with its command.
    drop(worker);
    ended(attached).expect(0).says(&["6 samples, none lost"]);
    assert_eq!(run.lines(&second, "filename=/bin/true"), 6);
    let told = run.pmc(&["script", "--show-mmap-events", "-i", &second]).expect(0).stdout;
    assert!(
        told.contains("PERF_RECORD_MMAP2") && told.lines().any(|line| line.trim().starts_with("sh ")),
        "{told}"
    );
}

#[test]
fn added_events_are_recorded_by_a_new_owner() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    for (name, mode) in [("newest", "--overwrite"), ("oldest", "--normal")] {
        run.pmc(&["persist", "add", name, "-e", EXEC, "-p", &worker.pid(), mode]).expect(0);
        worker.work(5);
        let file = run.file(name);
        let attached = run.read(&["persist", "attach", name, "-o", &file], name);
        worker.work(3);
        run.release_command();
        ended(attached).expect(0).says(&["8 samples, none lost"]);
        assert_eq!(run.lines(&file, "filename=/bin/true"), 8);
        fs::remove_file(run.path("go")).expect("it is there");
        run.pmc(&["persist", "read", name]).expect(1).says(&["no persistent event"]);
    }
}

/// A new owner does not wait for processes that ended before it started.
#[test]
fn new_owner_does_not_wait_for_dead_processes() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    run.pmc(&["persist", "add", "past", "-e", EXEC, "-p", &worker.pid()]).expect(0);
    worker.work(5);
    drop(worker);
    let mut owner = run.command(&["persist", "attach", "past", "-o", &run.file("past.data")]);
    let mut owner = owner.stderr(Stdio::piped()).spawn().expect("pmc starts");
    kit::wait_for("its end", || owner.try_wait().expect("it is ours").is_some());
    ended(owner).expect(0).says(&["5 samples, none lost"]);
}

/// The new owner decides how the records are stored. What they contain was fixed when the events were opened.
#[test]
fn attaching_supports_record_options() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let [first, packed] = ["first.data", "packed.data"].map(|name| run.file(name));
    let line = ["record", "--call-graph", "dwarf", "-c", "1", "-e", "page-faults:u", "-p", &worker.pid()];
    let recorder = run.start(&line, &first);
    let from = recorder.id().to_string();
    run.pmc(&["persist", "adopt", "faults", "--from", &from]).expect(0);
    ended(recorder).expect(0);
    for (option, words) in [
        ("-F99", "cannot be changed"),
        ("-g", "cannot be changed"),
        ("--all-cpus", "cannot be changed"),
        ("-S", "keep the oldest records"),
        ("--nonsense", "has no option --nonsense"),
    ] {
        run.pmc(&["persist", "attach", "faults", option]).expect(2).says(&[words]);
    }
    // `attach` unwinds copied stacks as `record` does, and compresses records.
    worker.work(3);
    let mut attach =
        run.command(&["persist", "attach", "faults", "-z", "--json", "-o", &packed, "--", "true"]);
    let ran: kit::Ran = attach.output().expect("pmc starts").into();
    let document: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).expect("JSON");
    let samples = document["samples"].as_u64().expect("a number");
    let [unwound, kept] =
        ["stacks_unwound", "copies_kept"].map(|of| document[of].as_u64().expect("a number"));
    // A stack that is not unwound in time keeps its copy.
    assert!(samples > 0 && unwound + kept == samples, "{document}");
    assert_eq!((&document["ended_by"], &document["lost"]), (&"command".into(), &0.into()));
    let shown = run.pmc(&["evlist", "-v", "-i", &packed]).expect(0).stdout;
    let shown = shown.lines().next().unwrap_or_default();
    assert!(shown.contains("CALLCHAIN") && !shown.contains("STACK_USER"), "{shown}");
    run.pmc(&["info", &packed]).expect(0).prints(&["Zstd"]);
    for perf in oracle::perfs() {
        let script = oracle::says(&perf, &["script", "-G", "-F", "event", "-i", &packed]);
        assert_eq!(script.matches("page-faults:u").count() as u64, samples, "{}", perf.display());
    }
    // Switched output files, one after another; the first contains the records from the rings.
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--normal"]).expect(0);
    worker.work(3);
    run.pmc(&["persist", "attach", "execs", "-S"]).expect(2).says(&["keep the oldest records"]);
    // A failed write leaves the entry unchanged.
    run.pmc(&["persist", "attach", "execs", "-o", "/nowhere/at/all"]).expect(1).says(&["/nowhere/at/all"]);
    // So does a command that fails to start.
    let file = run.file("unstarted");
    run.pmc(&["persist", "attach", "execs", "-o", &file, "--", "/no/such/command"]).expect(127);
    run.pmc(&["persist", "show", "execs"]).expect(0);
    let row = run.file("row.data");
    let attached = run.read(&["persist", "attach", "execs", "--switch-output", "-o", &row], "row");
    // Each file name ends with the file's end time, which has more digits than a process ID.
    let is_ended = |path: &String| path.rsplit_once("row.data.").is_some_and(|(_, time)| time.len() == 16);
    let files = || -> Vec<String> {
        let all = fs::read_dir(run.path("")).expect("a folder").map(|file| file.expect("a file").path());
        all.filter_map(|path| path.to_str().map(str::to_owned)).filter(is_ended).collect()
    };
    kill_process(Pid::from_child(&attached), Signal::USR2).expect("it is there");
    kit::wait_for("the first file", || !files().is_empty());
    worker.work(2);
    run.release_command();
    ended(attached).expect(0).says(&["5 samples, none lost"]);
    let mut lines: Vec<usize> = files().iter().map(|file| run.lines(file, "filename=/bin/true")).collect();
    lines.sort_unstable();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn events_that_cannot_be_handed_over_stay() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let adopt = |name: &str, pid: &str| run.pmc(&["persist", "adopt", name, "--from", pid]);
    // A process that is not a recorder is not even asked.
    adopt("x", &worker.pid()).expect(1).says(&["no events to hand over", "not a pmc record or pmc stat"]);
    adopt("x", "999999999").expect(1).says(&["not a pmc record"]);
    adopt("7up", &worker.pid()).expect(2).says(&["does not start with a letter"]);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid()]).expect(0);
    adopt("execs", &worker.pid()).expect(2).says(&["already exists"]);
    // Disabled events would stay off, and a holder's events are already held.
    let (off, held) = (run.file("off.data"), run.file("held.data"));
    let that_is_off = run.read(&["record", "-D", "600000", "-e", EXEC, "-o", &off], "off");
    let both = run.file("both.data");
    let of_both = run.read(&["record", "-e", EXEC, "-e", "cpu-clock,system,freq=9", "-o", &both], "both");
    let few = run.file("few.data");
    let of_few = run.read(&["record", "-e", &format!("{EXEC},nr=9"), "-o", &few], "few");
    let of_holder = run.start(&["record", "-e", "persistent/execs/"], &held);
    for recorder in [&that_is_off, &of_both, &of_few, &of_holder] {
        kill_process(Pid::from_child(recorder), Signal::USR1).expect("it is there");
    }
    worker.work(2);
    run.release_command();
    ended(that_is_off)
        .expect(0)
        .says(&["cannot hand over the events", "some events are disabled (-D, --control"]);
    ended(of_few).expect(0).says(&["cannot hand over the events", "stop after a number of samples"]);
    ended(of_both)
        .expect(0)
        .says(&["cannot hand over the events", "whole CPUs and others measure processes"]);
    let line = ["persist", "add", "x", "-e", "cpu-clock,system", "-p", &worker.pid()];
    run.pmc(&line).expect(2).says(&["-p cannot be combined with `system`"]);
    kill_process(Pid::from_child(&of_holder), Signal::INT).expect("it is there");
    ended(of_holder).expect(0).says(&[
        "cannot hand over the events",
        "already belong to a holder",
        "2 samples",
    ]);
}
