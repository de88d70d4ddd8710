//! Events that go from a recording to the holder, and to another recording.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::readers::ended;
use super::{EXEC, Run, Worker, ready};
use crate::kit::{self, oracle};

impl Run {
    /// Starts something that writes a recording, and waits until it does.
    #[track_caller]
    fn start(&self, words: &[&str], file: &str) -> Child {
        let child = self.command(words).args(["-o", file]).stderr(Stdio::piped()).spawn();
        kit::wait_for("the recording", || fs::exists(file).unwrap_or(false));
        child.expect("pmc starts")
    }
}

#[test]
fn the_events_of_a_recording_outlive_it() {
    if !ready() {
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
    // The recording has ended whole, and what came since then waits in its rings.
    ended(recorder).expect(0).says(&["3 samples, none lost"]);
    worker.work(4);
    assert_eq!(run.count("execs"), 7, "the event is the same");
    run.pmc(&["persist", "list"]).expect(0).prints(&["execs", &format!("pid {pid}"), "normal"]);
    // A new owner: with him the entry goes, and the holder with its last.
    let attached = run.start(&["persist", "attach", "execs"], &second);
    assert!(run.directory().entries().is_empty());
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

#[test]
fn what_was_added_is_recorded_by_a_new_owner() {
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
        run.let_go();
        ended(attached).expect(0).says(&["8 samples, none lost"]);
        assert_eq!(run.lines(&file, "filename=/bin/true"), 8);
        fs::remove_file(run.path("go")).expect("it is there");
        run.pmc(&["persist", "read", name]).expect(1).says(&["no persistent event"]);
    }
}

#[test]
fn what_cannot_be_handed_over_stays_where_it_is() {
    if !ready() {
        return;
    }
    let run = Run::held();
    let mut worker = Worker::start(&run);
    let adopt = |name: &str, pid: &str| run.pmc(&["persist", "adopt", name, "--from", pid]);
    // Who is no recorder is not even asked.
    adopt("x", &worker.pid()).expect(1).says(&["no events to hand over", "no pmc record"]);
    adopt("x", "999999999").expect(1).says(&["no pmc record"]);
    adopt("7up", &worker.pid()).expect(2).says(&["begins with no letter"]);
    run.pmc(&["persist", "add", "execs", "-e", EXEC, "-p", &worker.pid()]).expect(0);
    adopt("execs", &worker.pid()).expect(2).says(&["held already"]);
    // A command's end with it; those of a holder are held.
    let (command, held) = (run.file("command.data"), run.file("held.data"));
    let of_command = run.read(&["record", "-e", EXEC, "-o", &command], "command");
    let of_holder = run.start(&["record", "-e", "persistent/execs/"], &held);
    for recorder in [&of_command, &of_holder] {
        kill_process(Pid::from_child(recorder), Signal::USR1).expect("it is there");
    }
    worker.work(2);
    run.let_go();
    ended(of_command).expect(0).says(&["the events stay here", "a command's"]);
    kill_process(Pid::from_child(&of_holder), Signal::INT).expect("it is there");
    ended(of_holder).expect(0).says(&["the events stay here", "a holder's already", "2 samples"]);
}
