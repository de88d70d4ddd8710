//! Readers of running persistent events: `record` and `top`, several in parallel.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{EXEC, Run, Worker, ready};
use crate::kit::{self, Ran, oracle};

impl Run {
    /// Starts a reader with a command, and waits until the command runs. The command ends after
    /// [`release_command`](Self::release_command).
    #[track_caller]
    pub(super) fn read(&self, words: &[&str], name: &str) -> Child {
        let began = self.path(&format!("{name}.began"));
        let script = format!(
            "echo > {}; until [ -e {} ]; do sleep 0.05; done",
            began.display(),
            self.path("go").display()
        );
        let child = self.command(words).args(["--", "sh", "-c", &script]).stderr(Stdio::piped()).spawn();
        kit::wait_for("the reader's command", || began.exists());
        child.expect("pmc starts")
    }

    pub(super) fn release_command(&self) {
        fs::write(self.path("go"), "").expect("a file");
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Returns the number of a recording's lines that contain this text.
    #[track_caller]
    pub(super) fn lines(&self, file: &str, what: &str) -> usize {
        let ran = self.pmc(&["script", "-i", file]).expect(0);
        ran.stdout.lines().filter(|line| line.contains(what)).count()
    }
}

pub(super) fn ended(child: Child) -> Ran {
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn several_recorders_each_get_all_records() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::held(&run);
    worker.work(3);
    let (now, all) = (run.file("now.data"), run.file("all.data"));
    let record = ["record", "-e", "persistent/execs/", "-o"];
    let readers = [
        run.read(&[&record[..], &[&now]].concat(), "now"),
        run.read(&[&record[..], &[&all, "--backlog"]].concat(), "all"),
    ];
    worker.work(20);
    // A third reader, without a command or a named process, starts and stops.
    let third = run.file("third.data");
    let reader = run.command(&[&record[..], &[&third]].concat()).stderr(Stdio::piped()).spawn();
    let reader = reader.expect("pmc starts");
    kit::wait_for("the third recording", || fs::exists(&third).unwrap_or(false));
    worker.work(5);
    kill_process(Pid::from_child(&reader), Signal::INT).expect("it is there");
    ended(reader).expect(0).says(&["5 samples, none lost"]);
    // So does one that is killed: its data are readable, and nothing stays paused.
    let fourth = run.file("fourth.data");
    let mut killed = run.read(&[&record[..], &[&fourth, "--backlog"]].concat(), "fourth");
    // The file is put in place once the recording runs.
    kit::wait_for("the fourth recording", || fs::exists(&fourth).unwrap_or(false));
    killed.kill().expect("it is there");
    killed.wait().expect("it ends");
    run.pmc(&["script", "-i", &fourth]).expect(0);
    run.release_command();
    for reader in readers {
        ended(reader).expect(0).says(&["none lost"]);
    }
    for (file, samples) in [(&now, 25), (&all, 28), (&third, 5)] {
        assert_eq!(run.lines(file, "filename=/bin/true"), samples, "{file}");
        for perf in oracle::perfs() {
            let script = oracle::says(&perf, &["script", "-F", "comm,event,trace", "-i", file]);
            let lines = script.lines().filter(|line| line.contains("filename=/bin/true"));
            assert_eq!(lines.count(), samples, "{}: {script}", perf.display());
        }
    }
    // The ring holds the same records as without readers.
    assert_eq!(run.snapshot("execs", "/bin/true").len(), 28);
    assert_eq!(run.count("execs"), 28);
}

#[test]
fn persistent_events_are_recorded_with_others() {
    if !ready() || !kit::need_program("perf") {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    for (name, mode) in [("execs", "--overwrite"), ("oldest", "--normal")] {
        run.pmc(&["persist", "add", name, "-e", EXEC, "-p", &worker.pid(), mode]).expect(0);
    }
    worker.work(2);
    let file = run.file("both.data");
    let events = "persistent/execs/,page-faults,persistent/oldest/";
    let reader = run.read(&["record", "-e", events, "-c", "1", "-o", &file], "both");
    worker.work(7);
    run.release_command();
    ended(reader).expect(0).says(&["none lost"]);
    // Records that wait in a ring that keeps the oldest have no reader yet, so this reader gets them.
    assert_eq!(run.lines(&file, "filename=/bin/true"), 7 + 9);
    assert!(run.lines(&file, "page-faults") > 50);
    assert!(run.snapshot("oldest", "/bin/true").is_empty());
    for perf in oracle::perfs() {
        let script = oracle::says(&perf, &["script", "-F", "comm,event,trace", "-i", &file]);
        let count = |what: &str| script.lines().filter(|line| line.contains(what)).count();
        assert_eq!(count("filename=/bin/true"), 16, "{}: {script}", perf.display());
        assert!(count("page-faults") > 50);
    }
    // The reader gets the event as it was added.
    let record = |words: &[&str]| {
        run.pmc(&[&["record", "-o", &file, "-e", "persistent/execs/"], words, &["--", "true"]].concat())
    };
    record(&["-g"]).expect(2).says(&["have no call chains", "--call-graph fp"]);
    record(&["-F", "99"]).expect(2).says(&["of a running event", "-F, -c"]);
    record(&["-p", &worker.pid()]).expect(2).says(&["of a running event", "-p, -t, -u"]);
    // Options that apply when opening events cannot change an event that is already open.
    for (option, what) in [
        (&["-j", "any"][..], "branches (-j, -b)"),
        (&["-d"], "sample fields (-d"),
        (&["-i"], "no children (-i)"),
        (&["--all-user"], "a level"),
        (&["-C", "0"], "CPUs (-C)"),
        (&["--overwrite"], "which records"),
    ] {
        if option[0] != "-C" || pmc_sys::host::Host::live().online_cpus().iter().count() > 1 {
            record(option).expect(2).says(&["of a running event", what]);
        }
    }
    let beside = ["-e", "persistent/execs/,page-faults", "-p", &worker.pid(), "--", "true"];
    for command in ["record", "stat"] {
        run.pmc(&[&[command][..], &beside].concat()).expect(2).says(&["of a running event", "-p, -t, -u"]);
    }
    record(&["-k", "realtime"]).expect(2).says(&["monotonic"]);
    run.pmc(&["record", "-o", &file, "-e", "{persistent/execs/,page-faults}", "--", "true"])
        .expect(2)
        .says(&["cannot join a group"]);
}

#[test]
fn small_ring_reports_lost_records() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--pages", "1"]).expect(0);
    let file = run.file("few.data");
    let reader = run.read(&["record", "-e", "persistent/execs/", "-o", &file], "few");
    // The reader is stopped while the ring is overwritten several times.
    let pid = Pid::from_child(&reader);
    kill_process(pid, Signal::STOP).expect("it is there");
    worker.work(400);
    kill_process(pid, Signal::CONT).expect("it is there");
    run.release_command();
    let ran = ended(reader).expect(0).says(&["records lost"]);
    let samples = run.lines(&file, "filename=/bin/true");
    assert!((10..400).contains(&samples), "{samples}: {}", ran.stderr);
}

/// The kernel reports losses with the next record that fits. Here no record follows.
#[test]
fn records_lost_at_the_end_are_reported() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let add = ["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--pages", "1", "--normal"];
    run.pmc(&add).expect(0);
    let file = run.file("full.data");
    let reader = run.read(&["record", "-e", "persistent/execs/", "-o", &file], "full");
    let pid = Pid::from_child(&reader);
    kill_process(pid, Signal::STOP).expect("it is there");
    worker.work(400);
    kill_process(pid, Signal::CONT).expect("it is there");
    run.release_command();
    ended(reader).expect(0).says(&["records lost"]);
    let told = run.pmc(&["report", "--json", "-i", &file]).expect(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let of = |what: &str| told["trust"][what].as_u64().expect("a number");
    let (samples, lost) = (of("samples"), of("lost_records"));
    // Some of the lost records are not samples.
    assert!(samples < 400 && samples + lost >= 400, "{}", told["trust"]);
}

/// Readers of a ring that keeps the oldest share its records: a record that another reader takes is not lost.
#[test]
fn records_taken_by_another_reader_are_not_lost() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid(), "--normal"]).expect(0);
    let files = ["one.data", "two.data"].map(|name| run.file(name));
    let readers = files.each_ref().map(|file| {
        run.read(&["record", "-e", "persistent/execs/", "-o", file], file.rsplit('/').next().unwrap_or(""))
    });
    for _ in 0..10 {
        worker.work(5);
        // One reader stops for a while, and the other gets all records.
        kill_process(Pid::from_child(&readers[0]), Signal::STOP).expect("it is there");
        worker.work(5);
        kill_process(Pid::from_child(&readers[0]), Signal::CONT).expect("it is there");
    }
    run.release_command();
    for reader in readers {
        ended(reader).expect(0).says(&["none lost"]);
    }
    let lines: usize = files.iter().map(|file| run.lines(file, "filename=/bin/true")).sum();
    assert_eq!(lines, 100);
}

/// The end of the holder must not end the recorded command or the other recorded events.
#[test]
fn command_outlives_the_holder() {
    if !ready() {
        return;
    }
    let mut run = Run::held();
    let mut worker = Worker::held(&run);
    let (alone, beside) = (run.file("alone.data"), run.file("beside.data"));
    let record = |events: &str, file: &str, name: &str| {
        let child = run.read(&["record", "-c", "1", "-e", events, "-o", file], name);
        kit::wait_for("the recording", || fs::exists(file).unwrap_or(false));
        child
    };
    let alone_reader = run.read(&["record", "-e", "persistent/execs/", "-o", &alone], "alone");
    let beside_reader = record("persistent/execs/,page-faults:u", &beside, "beside");
    worker.work(2);
    kit::wait_for("its samples", || fs::exists(&alone).is_ok_and(|is| is) && run.lines(&alone, EXEC) > 0);
    run.end(Signal::KILL);
    // By then both readers have asked again, and their commands run.
    let fallen = |child: &Child| fs::read_to_string(format!("/proc/{}/stat", child.id())).is_err();
    run.hold();
    assert!(!fallen(&alone_reader) && !fallen(&beside_reader));
    run.release_command();
    for reader in [alone_reader, beside_reader] {
        ended(reader).expect(0).says(&["pmc no longer records persistent/execs/"]);
    }
    assert!(run.lines(&beside, "page-faults:u") > 50 && run.lines(&alone, "filename=/bin/true") > 0);
}

/// A stopped holder does not answer. Other recorded events continue, and the interrupt key ends the
/// recording.
#[test]
fn stopped_holder_blocks_no_client() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let _worker = Worker::held(&run);
    let holder = Pid::from_child(run.holder.as_ref().expect("there is one"));
    let file = run.file("alone.data");
    let alone =
        run.command(&["record", "-e", "persistent/execs/", "-o", &file]).stderr(Stdio::piped()).spawn();
    let alone = alone.expect("pmc starts");
    kit::wait_for("the recording", || fs::exists(&file).unwrap_or(false));
    let stat = run.read(&["stat", "-e", "persistent/execs/,page-faults:u"], "stat");
    kill_process(holder, Signal::STOP).expect("it is there");
    // The signal also ends a reader that still waits for a holder.
    let late = run.command(&["record", "-e", "persistent/execs/", "-o", &run.file("late.data")]);
    let late = { late }.stderr(Stdio::piped()).spawn().expect("pmc starts");
    let caught = |child: &Child| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:").map(str::trim));
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    kit::wait_for("its start", || caught(&late));
    for child in [&alone, &late] {
        kill_process(Pid::from_child(child), Signal::INT).expect("it is there");
    }
    ended(late).says(&["the holder at"]);
    let alone = ended(alone);
    assert!(
        alone.stderr.contains("0 samples") || alone.stderr.contains("is not responding"),
        "{}",
        alone.stderr
    );
    run.release_command();
    let counted = ended(stat).expect(0).says(&["<not counted>"]);
    let faults = counted.stderr.lines().find(|line| line.contains("page-faults:u")).expect("a row");
    assert!(!faults.contains("<not counted>"), "{faults}");
    kill_process(holder, Signal::CONT).expect("it is there");
    assert_eq!(run.count("execs"), 0);
}

#[test]
fn recording_is_complete_when_the_holder_ends() {
    if !ready() {
        return;
    }
    let mut run = Run::held();
    let mut worker = Worker::held(&run);
    let file = run.file("cut.data");
    let reader =
        run.command(&["record", "-e", "persistent/execs/", "-o", &file]).stderr(Stdio::piped()).spawn();
    let reader = reader.expect("pmc starts");
    worker.work(1);
    kit::wait_for("its first sample", || {
        worker.work(1);
        fs::exists(&file).is_ok_and(|is| is) && run.lines(&file, EXEC) > 0
    });
    run.end(Signal::KILL);
    // The holder ends between two requests, or before it answers one.
    let stderr = ended(reader).expect(1).stderr;
    let reasons = ["no holder of persistent events is running", "exited before responding"];
    assert!(reasons.iter().any(|reason| stderr.contains(reason)), "{stderr}");
    assert!(run.lines(&file, "filename=/bin/true") > 0);
}

#[test]
fn top_shows_persistent_events() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let worker = Worker::start(&run);
    // With a frequency, the kernel may take no sample of so few events.
    let event = ["persist", "add", "faults", "-e", "page-faults,period=1", "--call-graph", "fp"];
    run.pmc(&[&event[..], &["-p", &worker.pid()]].concat()).expect(0);
    let pipe = format!("/proc/{}/fd/0", worker.pid());
    let work = format!("for i in 1 2 3 4 5 6 7 8; do echo > {pipe}; sleep 0.1; done");
    let top = ["top", "--stdio", "-s", "comm", "-d", "600", "-e", "persistent/faults/"];
    run.pmc(&[&top[..], &["--", "sh", "-c", &work]].concat()).expect(0).prints(&["true", "page-faults"]);
    run.pmc(&[&top[..], &["-g", "--", "sh", "-c", &work]].concat()).expect(0).prints(&["true"]);
    // With no process to wait for, until told to end.
    let ran = run.pmc(&[&top[..], &["--duration", "300ms"]].concat()).expect(0);
    assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    run.pmc(&[&top[..], &["-p", &worker.pid()]].concat()).expect(2).says(&["of a running event"]);
}
