//! Messages about an invalid command line: all in one form, with the closest valid word.

use crate::kit::{self, oracle};

#[test]
fn unknown_command_is_a_usage_error() {
    for (words, said) in [
        (
            &["recrd"][..],
            &["pmc: pmc has no command recrd", "try: did you mean", "record", "try: pmc --help"][..],
        ),
        (&["record", "--fooo"], &["pmc: pmc record has no option --fooo", "try: pmc record --help"]),
        (&["report", "--stdioo"], &["pmc: pmc report has no option --stdioo", "did you mean --stdio?"]),
        (&["stat", "--vs"], &["pmc: a value is required for '--vs <COMMAND>'"]),
        (&["diff", "--percentage"], &["pmc: a value is required"]),
    ] {
        let run = kit::run(words).expect(2).says(said);
        let stray = ["error:", "tip:", "Usage:"].iter().find(|word| run.stderr.contains(**word));
        assert!(stray.is_none() && run.stdout.is_empty(), "{words:?}: {}", run.stderr);
    }
}

#[test]
fn errors_name_the_subcommand_that_accepts_the_words() {
    let lock = &[
        "pmc lock has no subcommand ./x",
        "try: pmc lock user -- ./x: Show waits for user-space locks",
        "try: pmc lock contention -- ./x: ",
        "try: pmc lock record -- ./x: ",
    ][..];
    for (words, said) in [
        (&["lock", "--", "./x"][..], lock),
        (&["lock", "./x"], lock),
        (&["lock", "-p", "1"], &["pmc lock has no option -p", "try: pmc lock user -p: "]),
        (&["lock", "usr"], &["pmc lock has no subcommand usr", "did you mean user?"]),
        (&["sched", "--", "./x"], &["pmc sched has no subcommand ./x", "try: pmc sched record -- ./x: "]),
        (&["sched", "-a"], &["pmc sched has no option -a", "try: pmc sched record -a: "]),
        (&["persist", "-e"], &["pmc persist has no option -e", "try: pmc persist add -e: "]),
    ] {
        let run = kit::run(words).expect(2).says(said);
        // A subcommand that cannot do it is not named.
        assert!(
            !run.stderr.contains("sched latency -") && !run.stderr.contains("persist list -"),
            "{words:?}"
        );
    }
}

#[test]
fn errors_in_values_name_the_help_of_the_subcommand() {
    for (words, help) in [
        (&["lock", "user", "-E", "x"][..], "try: pmc lock user --help"),
        (&["sched", "latency", "-i"], "try: pmc sched latency --help"),
        (&["persist", "add", "-e"], "try: pmc persist add --help"),
        (&["stat", "record", "--limit"], "try: pmc stat record --help"),
        (&["report", "--limit", "x"], "try: pmc report --help"),
        (&["stat", "-r", "x", "report"], "try: pmc stat --help"),
        (&["record", "-F", "--", "report"], "try: pmc record --help"),
    ] {
        kit::run(words).expect(2).says(&[help]);
    }
}

#[test]
fn latency_without_events_names_presets() {
    for (words, target) in [
        (&["latency", "-p", "4711"][..], "-p 4711"),
        (&["latency", "--", "./x", "arg"], "-- ./x"),
        (&["latency"], "-- COMMAND"),
    ] {
        let system_call = format!("try: pmc latency syscall:read {target}: ");
        kit::run(words).expect(2).says(&["no events given", &system_call, "pmc latency runq block"]);
    }
    for (words, said) in [
        (&["latency", "runq", "sched:x"][..], &["runq is a preset, but sched:x is not"][..]),
        (&["latency", "runq", "block", "runq"], &["runq is given twice"]),
        (&["latency", "a:b", "c:d", "e:f"], &["3 events, but an interval has two"]),
        (&["latency", "runq", "block", "-k", "tid"], &["-k: the preset runq has its own key"]),
        (&["latency", "runq", "block", "-I", "1s"], &["-I shows one kind of interval, not 2"]),
        (&["latency", "syscall:read", "block", "-p", "1"], &["block cannot be measured for individual"]),
    ] {
        kit::run(words).expect(2).says(said);
    }
}

#[test]
fn perf_only_commands_suggest_the_nearest_one() {
    for name in ["kwork", "mem", "c2c", "kmem", "kvm", "ftrace", "bench", "timechart"] {
        let why = format!("why: perf {name} ");
        kit::run(&[name, "record"]).expect(2).says(&[&format!("pmc has no command {name}"), &why, "try: "]);
    }
}

#[test]
fn help_and_version_work_as_commands() {
    let help = kit::run(&["help", "record"]).expect(0);
    assert_eq!(help.stdout, kit::run(&["record", "--help"]).expect(0).stdout);
    kit::run(&["help"]).expect(0).prints(&["record", "Sample a command"]);
    kit::run(&["help", "-m", "stat", "report"]).expect(0).prints(&["Usage: pmc stat report "]);
    kit::run(&["help", "-a"]).expect(0).prints(&["Usage: pmc "]);
    kit::run(&["help", "record", "report"]).expect(2).says(&["pmc has no command record report"]);
    kit::run(&["help", "mem"]).expect(2).says(&["pmc has no command mem", "why: perf mem "]);
    for (name, other) in [("kwork", "pmc latency "), ("timechart", "pmc sched ")] {
        kit::run(&[name]).expect(2).says(&[other]);
    }
    kit::run(&["version"]).expect(0).prints(&[concat!("pmc version ", env!("CARGO_PKG_VERSION"))]);
    kit::run(&["version", "--build-options"]).expect(0).prints(&["[ on  ]  # HAVE_ZSTD_SUPPORT"]);
}

#[test]
fn short_help_shows_common_options() {
    for command in ["record", "stat", "report", "top", "script", "annotate"] {
        let [short, long] = ["-h", "--help"].map(|help| kit::run(&[command, help]).expect(0).stdout);
        let options = |text: &str| text.lines().filter(|line| line.trim_start().starts_with('-')).count();
        assert!((15..=24).contains(&options(&short)), "{short}");
        assert!(options(&long) > 2 * options(&short), "{long}");
        assert!(short.contains(&format!("All options: pmc help {command}")), "{short}");
        // Both helps are grouped, and the short one contains nothing that is missing from the long one.
        let headings = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.ends_with(':') && !line.starts_with(' '))
                .map(str::to_owned)
                .collect()
        };
        assert!(headings(&short).len() > 3, "{short}");
        assert!(headings(&short).iter().all(|heading| headings(&long).contains(heading)), "{long}");
    }
    // A command to run has its own -h.
    kit::run(&["reserve", "-h"]).expect(0).prints(&["Usage: pmc reserve"]);
}

#[test]
fn without_arguments_commands_are_listed() {
    let run =
        kit::run(&[]).expect(2).says(&["Usage: pmc", "Commands:", "profile", "record", "annotate", "help"]);
    assert!(run.stdout.is_empty() && !run.stderr.contains("try:"), "{}", run.stderr);
}

#[test]
fn kallsyms_output_matches_perf() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let asked = ["kallsyms", "schedule", "vfs_read", "no_such_function"];
    let lines = kit::run(&asked).expect(1).stdout;
    assert!(
        lines.starts_with("schedule: [kernel] ") && lines.contains("no_such_function: not found"),
        "{lines}"
    );
    for perf in oracle::perfs() {
        assert_eq!(lines, oracle::says(&perf, &asked), "{}", perf.display());
    }
    kit::run(&["kallsyms", "schedule"]).expect(0);
    kit::run(&["kallsyms"]).expect(2).says(&["required", "pmc kallsyms --help"]);
}

#[test]
fn global_options_print_lists() {
    let commands = kit::run(&["--list-cmds"]).expect(0).stdout;
    let commands: Vec<&str> = commands.split_whitespace().collect();
    assert!(["stat", "record", "report"].iter().all(|name| commands.contains(name)), "{commands:?}");
    let options = kit::run(&["--list-opts"]).expect(0).stdout;
    assert!(options.split_whitespace().any(|option| option == "--buildid-dir"), "{options}");
    let folder = kit::run(&["--exec-path"]).expect(0).stdout;
    let own = std::path::Path::new(kit::binary()).parent().and_then(|folder| folder.canonicalize().ok());
    assert_eq!(std::path::Path::new(folder.trim_end()).canonicalize().ok(), own);
    kit::run(&["--debug", "verbose", "version"]).expect(0).says(&["--debug has no effect"]);
    kit::run(&["--html-path", "version"]).expect(2).says(&["pmc has no --html-path"]);
    kit::run(&["script", "flamegraph"]).expect(2).says(&["pmc flamegraph"]);
}
