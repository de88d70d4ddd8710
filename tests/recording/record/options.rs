//! Effects of `record` options that perf supports only after 6.1, or that are rarely used.

use std::process::Command;

use super::{Lab, SPIN, our_samples, ready, record};
use crate::kit::{self, burn::waiting_shell};
use crate::top::Running;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::kind;

/// Output of `pmc script` for a recording: these fields, one line per sample.
fn script(file: &std::path::Path, fields: &str) -> String {
    let file = file.to_str().expect("a plain path");
    kit::run(&["script", "-i", file, "-F", fields, "-G"]).expect(0).stdout
}

#[test]
fn per_thread_event_can_be_bound_to_one_cpu() {
    if !ready() || !kit::need_program("taskset") || !kit::need("two CPUs", cpus() > 1, "one CPU") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("bound");
    let spins = Running::start(Command::new("taskset").args(["-c", "1", "sh", "-c", SPIN]));
    let pid = spins.pid();
    kit::wait_for_program(spins.id(), "sh");
    let events = "cpu-clock/cpu=0,name=zero/,cpu-clock/cpu=1,name=one/,cpu-clock/name=any/";
    let options = ["--per-thread", "-e", events, "-p", &pid];
    record(&file, &options, &["sh", "-c", waiting_shell(spins.id(), 100)]).expect(0);
    let lines = script(&file, "event");
    let count = |name: &str| lines.lines().filter(|line| line.contains(name)).count();
    assert_eq!(count("zero"), 0, "{lines}");
    assert!(count("one") > 0 && count("any") > 0, "{lines}");
    record(&file, &["--per-thread", "-e", "cpu-clock/cpu=4095/"], &["true"]).expect(1).says(&["CPU 4095"]);
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn recorder_can_be_excluded_from_tracepoints() {
    if !ready() || !kit::need_tracefs("raw_syscalls") {
        return;
    }
    let lab = Lab::new();
    for (options, is_there) in [(&[][..], true), (&["--exclude-perf"], false)] {
        let file = lab.path("calls");
        let mut pmc = kit::pmc();
        pmc.args(["record", "-q", "-a", "-e", "raw_syscalls:sys_enter"]).args(options).arg("-o").arg(&file);
        let mut pmc = pmc.args(["--", "sleep", "0.1"]).spawn().expect("pmc starts");
        let own = pmc.id().to_string();
        assert!(pmc.wait().expect("it ends").success());
        let tids = script(&file, "tid");
        assert_eq!(tids.lines().any(|tid| tid.trim() == own), is_there, "{options:?}");
        assert!(tids.lines().any(|tid| tid.trim() != own), "{options:?}");
    }
    let run = record(&lab.path("none"), &["-e", "cpu-clock", "--exclude-perf"], &["true"]);
    run.expect(2).says(&["--exclude-perf", "requires a tracepoint", "-p, -t or -u"]);
}

#[test]
fn synthesized_records_are_selectable() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("told");
    let sleeps = Running::start(Command::new("sleep").arg("1000"));
    kit::wait_until_idle(sleeps.pid().parse().expect("a number"));
    let pid = sleeps.pid();
    // Whether there are names of tasks, and mappings other than the kernel's.
    let told = |options: &[&str]| {
        let options = [&["-e", "cpu-clock", "-p", &pid, "--timeout", "10"], options].concat();
        record(&file, &options, &[]).expect(0);
        let (mut names, mut mappings) = (0, 0);
        let reader = Reader::open(&file).expect("pmc reads it");
        reader
            .scan(|record| {
                names += usize::from(record.kind == kind::COMM);
                mappings += usize::from(record.kind == kind::MMAP2);
            })
            .expect("the scan reads");
        (names > 0, mappings > 0)
    };
    for (word, want) in [
        ("no", (false, false)),
        ("task", (true, false)),
        ("mmap", (true, true)),
        ("cgroup", (false, false)),
        ("task,mmap", (true, true)),
        ("all", (true, true)),
    ] {
        assert_eq!(told(&["--synth", word]), want, "{word}");
    }
    assert_eq!(told(&[]), (true, true));
    // Data mappings, which the code mappings counted above do not include.
    let size = || std::fs::metadata(&file).expect("it is there").len();
    told(&[]);
    let plain = size();
    told(&["--data-mmap"]);
    assert!(size() > plain);
}

#[test]
fn only_the_recorder_gets_realtime_priority() {
    let lab = Lab::new();
    let file = lab.path("hurry");
    if !ready() {
        return;
    }
    let policies = "for of in $PPID self; do cut -d' ' -f41 /proc/$of/stat; done";
    let run = record(&file, &["-r", "1", "-e", "cpu-clock"], &["sh", "-c", policies]);
    let may = !run.stderr.contains("--realtime 1: Operation not permitted");
    if !kit::need("real time", may, "real-time priorities are not to be had in this container") {
        return;
    }
    // SCHED_FIFO for pmc, SCHED_OTHER for the command.
    assert_eq!(run.expect(0).stdout, "1\n0\n");
    record(&file, &["--realtime", "100"], &["true"]).expect(2).says(&["100", "1..=99"]);
}

#[test]
fn deferred_call_chains_are_requested() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("later");
    let run =
        record(&file, &["-e", "cpu-clock", "--call-graph", "fp,defer"], &["sh", "-c", "ls -R /etc >&2"]);
    let run = run.expect(0);
    let events = kit::run(&["evlist", "-v", "-i", file.to_str().expect("a plain path")]).expect(0).stdout;
    // Either the kernel supports it, or pmc reports that it does not.
    let is_said = run.stderr.contains("cannot defer user-mode call chains (requires Linux 6.19");
    assert_eq!(events.contains("defer_callchain: 1, defer_output: 1"), !is_said, "{events}\n{}", run.stderr);
    assert!(our_samples(&file) > 0);
    kit::run(&["top", "--call-graph", "fp,defer"]).expect(2).says(&["is not supported by top", "pmc top -g"]);
}

#[test]
fn switch_output_event_starts_another_file() {
    if !ready() || !kit::need_tracefs("sched") {
        return;
    }
    let lab = Lab::new();
    // Run programs until there are three files with different names, at most 300 programs.
    let work = "cd $0; n=0; set -- none; until [ -e $1 ] && [ $# -ge 3 ] || [ $((n += 1)) -gt 300 ]; do
                /bin/true; set -- x.2*; done";
    let folder = lab.path("").display().to_string();
    let options = ["-e", "cpu-clock", "--switch-output-event", "sched:sched_process_exec"];
    let run = record(&lab.path("x"), &options, &["sh", "-c", work, &folder]).expect(0);
    let mut samples = 0;
    let (mut count, mut events) = (0, String::new());
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let file = entry.expect("an entry").path();
        samples += our_samples(&file);
        count += 1;
        events += &kit::run(&["evlist", "-i", file.to_str().expect("a plain path")]).expect(0).stdout;
    }
    // Those files, and one with the data after the last program.
    assert!(count >= 4, "{count} files: {}", run.stderr);
    assert_eq!(samples, super::told(&run.stderr, " samples"));
    assert!(!events.contains("sched"), "{events}");
    let often = record(&lab.path("y"), &["--switch-output-event", "cpu-clock"], &["true"]);
    often.expect(2).says(&["needs a period", "cpu-clock/period=1000000/"]);
    let without_series = record(&lab.path("y"), &["--switch-max-files", "3"], &["true"]);
    without_series.expect(2).says(&["requires --switch-output", "--switch-output-event"]);
    let without_series = record(&lab.path("y"), &["--switch-exec", "gzip \"$1\""], &["true"]);
    without_series.expect(2).says(&["--switch-exec requires --switch-output"]);
    let nameless = record(&lab.path("y"), &["--switch-output=60s", "--switch-exec", "gzip"], &["true"]);
    nameless.expect(2).says(&["\"gzip\" does not use the file", "CMD \"$1\""]);
}

#[test]
fn command_owns_the_terminal() {
    if !ready() || !kit::need_program("script") || !kit::need_program("mkfifo") {
        return;
    }
    let lab = Lab::new();
    // An unknown command is reported. The answer to `ping` shows that it was read.
    let line = format!(
        "mkfifo c a; exec 3<>c 4<>a; echo nonsense >&3; echo ping >&3;
         {} record -e cpu-clock -o x --control fd:3,4 -- sh -c 'read answer <&4; echo the last word'",
        kit::binary()
    );
    let said = super::runs::on_a_terminal(&line, &lab).expect(0).stdout;
    let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("no {words:?}: {said}"));
    assert!(at("the last word") < at("unknown command `nonsense`"), "{said}");
    assert!(at("unknown command `nonsense`") < at("samples, none lost"), "{said}");
}

/// Options for trace sizes require a trace.
#[test]
fn trace_options_request_a_trace() {
    for (options, words) in [
        (&["--aux-sample"][..], "requires an event in a group led by a trace"),
        (&["--aux-sample=100K"], "exceeds the maximum size of a sample"),
        (&["-m", "128,4M"], "require an event with an AUX buffer"),
        (&["-S=1M"], "require an event with an AUX buffer"),
        (&["-S=much"], "-S=much: not a valid size"),
    ] {
        let ran = kit::run(&[&["record", "-e", "cpu-clock"], options, &["--", "true"]].concat());
        ran.expect(2).says(&["pmc: ", words, "try: "]);
    }
}

#[test]
fn unsupported_options_suggest_alternatives() {
    for (option, words) in [("--setup-filter=pin", &["BPF", "--filter"][..]), ("--kcore", &["pmc annotate"])]
    {
        kit::run(&["record", option, "--", "true"])
            .expect(2)
            .says(&[&["pmc: ", "why: ", "try: "], words].concat());
    }
}

#[test]
fn waiting_times_exclude_options_that_would_falsify_them() {
    for options in [
        &["--wall", "-D", "100"][..],
        &["--off-cpu", "--overwrite"],
        &["--off-cpu", "-k", "boottime"],
        &["--wall", "--all-user"],
        &["--off-cpu", "--per-thread"],
        &["--wall", "--unwind", "deferred"],
    ] {
        let ran = kit::run(&[&["record"], options, &["--", "true"]].concat());
        ran.expect(2).says(&[options[0], "cannot be combined with", options[1], "why: "]);
    }
    kit::run(&["record", "--off-cpu-thresh=5", "--", "true"])
        .expect(2)
        .says(&["--off-cpu-thresh requires --off-cpu or --wall"]);
    // Each name of the monotonic clock is accepted.
    if kit::need_perf_events() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("perf.data");
        for clock in ["mono", "CLOCK_MONOTONIC", "1"] {
            let options = ["record", "--off-cpu", "-k", clock, "-o", file.to_str().expect("UTF-8")];
            kit::run(&[&options[..], &["--", "true"]].concat()).expect(0);
        }
    }
}
