//! What a recording says of itself: `pmc evlist` and `pmc buildid-list` against perf's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::Path;
use std::process::Command;

use crate::kit;
use crate::kit::lab::Lab;

/// What perf's command prints of the file, without its tips.
fn perf(words: &[&str], file: &Path) -> String {
    let said = Command::new("perf").args(words).arg("-i").arg(file).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let lines = String::from_utf8(said.stdout).unwrap();
    lines.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

fn pmc(words: &[&str], file: &Path) -> String {
    kit::run(&[words, &["-i", file.to_str().unwrap()]].concat()).expect(0).stdout
}

#[test]
fn events_and_build_ids_are_those_that_perf_lists() {
    let Some(lab) = Lab::new() else { return };
    let events = "{cpu-clock,page-faults}:S,sched:sched_switch";
    let program = lab.build("nap", "int usleep(unsigned); int main(void) { return usleep(20000); }", &[]);
    let file = lab.record("perf.data", &["-e", events, "-g"], &program);
    for form in [&[][..], &["-F"], &["-g"], &["--trace-fields"], &["-v"]] {
        let words = [&["evlist"], form].concat();
        assert_eq!(pmc(&words, &file), perf(&words, &file), "{form:?}");
    }
    for form in [&[][..], &["-H"]] {
        let words = [&["buildid-list"], form].concat();
        let (ours, theirs) = (pmc(&words, &file), perf(&words, &file));
        // With hits, perf says only what it had to open; a page that two files had in turn counts for both here.
        assert!(theirs.lines().all(|line| ours.contains(line)), "{form:?}\n{theirs}\n{ours}");
        assert!(form == ["-H"] || ours == theirs, "{theirs}\n{ours}");
    }
    let words = ["buildid-list"];
    assert_eq!(pmc(&words, &program), perf(&words, &program));
    let kernel = Command::new("perf").args(["buildid-list", "-k"]).output().unwrap().stdout;
    assert_eq!(kit::run(&["buildid-list", "-k"]).expect(0).stdout.as_bytes(), kernel);
    kit::run(&["evlist", "-v", "-g", "-i", file.to_str().unwrap()]).expect(2).says(&["--group", "try:"]);
    kit::run(&["evlist", "-i", "/does/not/exist"]).expect(1).says(&["ENOENT"]);
}
