//! Recording details: `pmc evlist` and `pmc buildid-list` compared with perf.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::Path;
use std::process::Command;

use crate::kit;
use crate::kit::lab::Lab;

/// Output of a perf command for the file, without its tips.
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
fn events_and_build_ids_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let events = "{cpu-clock,page-faults}:S,sched:sched_switch";
    let program = lab.build("nap", "int usleep(unsigned); int main(void) { return usleep(20000); }", &[]);
    let file = lab.record("perf.data", &["-e", events, "-g"], &program);
    for form in [&[][..], &["-F"], &["-g"], &["--trace-fields"], &["-v"]] {
        let words = [&["evlist"], form].concat();
        // perf 6.1 omits a config of 0; perf 7.2 prints it.
        let ours = pmc(&words, &file).replace(", config: 0,", ",");
        assert_eq!(ours, perf(&words, &file), "{form:?}");
    }
    assert!(pmc(&["evlist", "-v"], &file).starts_with("cpu-clock: type: 1, size: 128, config: 0, "));
    for form in [&[][..], &["-H"]] {
        let words = [&["buildid-list"], form].concat();
        let (ours, theirs) = (pmc(&words, &file), perf(&words, &file));
        // With hits, perf lists only the files that it opened. If two files were mapped at one page in turn,
        // pmc lists both.
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

#[test]
fn kallsyms_lookup_matches_perf() {
    if !(kit::need_program("perf") && kit::need_root()) {
        return;
    }
    let perf = |words: &[&str]| {
        String::from_utf8(Command::new("perf").args(words).output().unwrap().stdout).unwrap()
    };
    let words = ["kallsyms", "vfs_read", "vfs_write", "no_such_symbol"];
    assert_eq!(kit::run(&words).expect(1).stdout, perf(&words));
    kit::run(&["kallsyms", "_text,vfs_read"]).expect(0).prints(&["_text: [kernel] [kernel.kallsyms] 0xffff"]);
    assert_eq!(kit::run(&["buildid-list", "-m"]).expect(0).stdout, perf(&["buildid-list", "-m"]));
}

#[test]
fn recording_is_read_from_stdin_by_default() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("spin", "int main(void) { burn_ms(200); }", &[]);
    let file = lab.record("perf.data", &["-e", "cpu-clock"], &program);
    let run = |line: &str, folder: &Path| -> kit::Ran {
        let pmc = kit::pmc().get_program().to_owned();
        let line = format!("pmc() {{ \"$PMC\" \"$@\"; }}; {line}");
        Command::new("sh").args(["-c", &line]).current_dir(folder).env("PMC", pmc).output().unwrap().into()
    };
    let empty = lab.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let named = format!("pmc report --stdio --no-cache -i {}", file.display());
    let whole = run(&named, &empty).expect(0).prints(&["spin"]).stdout;
    let rows = |text: &str| {
        text.lines().filter(|line| line.contains("[.] main")).map(str::to_owned).collect::<Vec<_>>()
    };
    for line in ["cat FILE | pmc report --stdio --no-cache", "pmc report --stdio --no-cache < FILE"] {
        let run = run(&line.replace("FILE", file.to_str().unwrap()), &empty).expect(0);
        assert_eq!(rows(&run.stdout), rows(&whole), "{line}");
    }
    run("pmc evlist < /dev/null", file.parent().unwrap()).expect(0).prints(&["cpu-clock"]);
    run(": | pmc evlist", file.parent().unwrap()).expect(0).prints(&["cpu-clock"]);
    // pmc must not consume a list that a shell loop reads from standard input.
    let list = "printf '1\\n2\\n' > list; while read number; do pmc evlist; done < list";
    run(list, file.parent().unwrap()).expect(0).prints(&["cpu-clock\ncpu-clock\n"]);
    let late = format!("(sleep 3; cat {}) | pmc evlist", file.display());
    run(&late, &empty).expect(0).prints(&["cpu-clock"]).says(&["waiting for a recording on standard input"]);
    run(": | pmc evlist", &empty).expect(1).says(&["perf.data", "ENOENT"]);
}

#[test]
fn recording_may_be_the_first_word_or_follow_i() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("spin", "int main(void) { burn_ms(50); }", &[]);
    let file = lab.record("perf.data", &["-e", "cpu-clock"], &program);
    let file = file.to_str().unwrap();
    let archive = lab.path("new.archive");
    let to = ["-o", archive.to_str().unwrap()];
    let commands: [&[&str]; 8] = [
        &["archive", to[0], to[1]],
        &["evlist", "-v"],
        &["buildid-list"],
        &["info", "--header"],
        &["script", "-F", "comm,ip"],
        &["export", "--format", "folded", "-o", "-"],
        &["report", "--stdio"],
        &["flamegraph", "-o", "-"],
    ];
    for words in commands {
        let first = kit::run(&[words, &[file]].concat()).expect(0);
        std::fs::remove_file(&archive).ok();
        let named = kit::run(&[words, &["-i", file]].concat()).expect(0);
        assert_eq!(first.stdout, named.stdout, "{words:?}");
        // With -i, the first word of `report` is a part of functions' names.
        if words[0] != "report" {
            kit::run(&[words, &[file, "-i", file]].concat()).expect(2).says(&["--input"]);
        }
    }
}
