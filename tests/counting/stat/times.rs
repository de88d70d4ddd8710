//! Intervals, delay, timeout, control commands, repeated runs and comparisons.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{BUSY, count, kit, pmc, start, wait_for_counters};

#[test]
fn intervals_are_periodic() {
    if !kit::need_perf_events() {
        return;
    }
    let text = pmc(&["-I", "50", "-x,", "-e", "task-clock", "--", "sleep", "1"]);
    let times: Vec<f64> =
        text.lines().map(|line| line.trim().split(',').next().unwrap().parse().unwrap()).collect();
    // On a busy machine an interval may end late or be skipped, but never end early.
    let last = times[times.len() - 1];
    assert!(times.len() >= 3 && times.len() as f64 <= last / 0.05 + 1.5, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    // A late interval does not delay the following ones.
    let is_on_the_beat = |time: &f64| (time / 0.05).fract() < 0.5 || (time / 0.05).fract() > 0.9;
    assert!(times[times.len() / 2..times.len() - 1].iter().any(is_on_the_beat), "{times:?}");
}

#[test]
fn interval_count_and_summary_are_supported() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let lines = |args: &[&str]| pmc(args).lines().filter(|line| line.contains("cpu-clock")).count();
    assert_eq!(lines(&["-a", "-I", "20", "--interval-count", "3", "-e", "cpu-clock"]), 3);
    assert_eq!(lines(&["-a", "-I", "20", "--interval-count", "2", "--summary", "-e", "cpu-clock"]), 3);
    let csv = pmc(&["-a", "-I", "20", "--interval-count", "1", "--summary", "-x,", "-e", "cpu-clock"]);
    assert!(csv.lines().nth(1).unwrap().trim_start().starts_with("summary,"), "{csv}");
    let plain = pmc(&[
        "-a",
        "-I",
        "20",
        "--interval-count",
        "1",
        "--summary",
        "--no-csv-summary",
        "-x,",
        "-e",
        "cpu-clock",
    ]);
    assert!(!plain.contains("summary"), "{plain}");
    // A pipe is not a screen to clear.
    let piped = pmc(&["-a", "-I", "20", "--interval-count", "2", "--interval-clear", "-e", "cpu-clock"]);
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn delay_excludes_the_beginning() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let script = "dd if=/dev/zero of=/dev/null bs=32M count=1 2>/dev/null; sleep 2.5; :";
    let faults = |options: &[&str]| {
        let counts = count(&[options, &["-e", "page-faults", "--", "sh", "-c", script]].concat());
        counts.value("page-faults").unwrap_or(0.0)
    };
    let (all, late) = (faults(&[]), faults(&["-D", "2000"]));
    assert!(late < all / 10.0, "{late} of {all}");
    // A command that ends before the delay does.
    kit::run(&["stat", "-e", "task-clock", "-D", "60000", "--", "true"])
        .expect(0)
        .says(&["<not counted>", "counting was disabled"]);
}

/// The delay is not part of the measurement: it adds no elapsed time, no interval and no timeout.
#[test]
fn delay_is_not_part_of_the_elapsed_time() {
    if !kit::need_perf_events() {
        return;
    }
    const DELAY: f64 = 2.0;
    let begun = Instant::now();
    let most = || begun.elapsed().as_secs_f64() - DELAY;
    let counts = count(&["-D", "2000", "-e", "task-clock,duration_time", "--", "sleep", "2.2"]);
    let (elapsed, most) = (counts.seconds("elapsed_s"), most());
    assert!(elapsed <= most && counts.number("duration_time") <= most * 1e9, "{elapsed} s of {most}");

    let begun = Instant::now();
    let text = pmc(&["-D", "2000", "-I", "100", "-x,", "-e", "task-clock", "--", "sleep", "2.5"]);
    let most = begun.elapsed().as_secs_f64() - DELAY;
    let time = |line: &str| line.trim().split(',').next().unwrap().parse::<f64>().unwrap();
    assert!(text.lines().all(|line| time(line) <= most), "within {most} s: {text}");
    assert!(text.lines().count() > 0);

    // It measures for the requested time, however long the start took.
    let counts = count(&["-D", "1000", "--timeout", "200", "-e", "task-clock", "--", "sleep", "60"]);
    assert!(counts.seconds("elapsed_s") >= 0.2, "{}", counts.0);
}

#[test]
fn timeout_ends_counting() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let elapsed = count(&["-a", "-e", "cpu-clock", "--timeout", "100"]).seconds("elapsed_s");
    assert!((0.1..600.0).contains(&elapsed), "{elapsed}");
}

#[test]
fn hooks_run_around_each_run() {
    if !kit::need_perf_events() {
        return;
    }
    let args = [
        "stat",
        "--pre",
        "echo pre",
        "--post",
        "echo post",
        "--show-output",
        "-r",
        "2",
        "-e",
        "task-clock",
        "--",
        "echo",
        "run",
    ];
    assert_eq!(kit::run(&args).expect(0).stdout, "pre\nrun\npost\npre\nrun\npost\n");
    kit::run(&["stat", "--pre", "exit 3", "--", "echo", "run"]).expect(1).says(&["--pre", "`exit 3` failed"]);
}

#[test]
fn sync_option_syncs_before_each_run() {
    if !kit::need_perf_events() || !kit::need_program("strace") {
        return;
    }
    let calls = |options: &[&str]| {
        let output = Command::new("strace")
            .args(["-e", "trace=sync", crate::kit::binary(), "stat", "-e", "task-clock"])
            .args(options)
            .args(["--", "true"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).matches("sync()").count()
    };
    assert_eq!((calls(&[]), calls(&["-S"]), calls(&["--sync", "-r", "2"])), (0, 1, 2));
}

#[test]
fn repeats_print_deviation_and_table() {
    if !kit::need_perf_events() {
        return;
    }
    let text = pmc(&["-r", "4", "-e", "task-clock,page-faults", "--", "true"]);
    for word in ["(4 runs)", "( +-", "median", "95% interval", "seconds time elapsed"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let table = pmc(&["-r", "4", "--table", "-e", "task-clock", "--", "true"]);
    assert!(table.contains("# Table of individual measurements:"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains(") #")).count(), 4, "{table}");
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("runs");
    let script = format!("echo >> {}", trace.display());
    pmc(&["-r", "5", "-e", "task-clock", "--", "sh", "-c", &script]);
    assert_eq!(std::fs::read_to_string(&trace).unwrap().lines().count(), 5);
}

#[test]
fn commands_are_compared() {
    if !kit::need_perf_events() {
        return;
    }
    // These commands differ so much that other load on the machine cannot hide it.
    let text = pmc(&["--vs", "true", "--vs", *BUSY, "-r", "5", "-e", "task-clock"]);
    assert!(text.contains("slower") && text.contains(" p "), "{text}");
    let ran =
        kit::run(&["stat", "--vs", "true", "-r", "3", "--json", "-e", "page-faults", "--", "true"]).expect(0);
    let line = ran.stderr.trim();
    let document: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(document["commands"].as_array().unwrap().len(), 2);
    let ran = kit::run(&["stat", "--vs", "sh -c 'exit 4'", "--vs", "true", "-r", "1", "-e", "page-faults"])
        .expect(4);
    ran.says(&["ended with status 4"]);
}

/// A repeated command's output appears once, in every kind of run, at a terminal and in a pipe.
#[test]
fn repeated_command_prints_once() {
    if !kit::need_perf_events() || !kit::need_program("script") {
        return;
    }
    let stat = format!("{} stat -e page-faults", kit::binary());
    let at_a_terminal = |options: &str| -> String {
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &format!("{stat} {options}"), "/dev/null"]).stdin(std::process::Stdio::null());
        kit::Ran::from(script.output().expect("script starts")).expect(0).stdout
    };
    let heard = |text: &str, word: &str| text.lines().filter(|line| line.trim() == word).count();
    let says = "sh -c 'echo spoken; echo shouted >&2'";
    let text = at_a_terminal(&format!("-r 3 -- {says}"));
    assert_eq!((heard(&text, "spoken"), heard(&text, "shouted")), (1, 1), "{text}");
    let text = at_a_terminal(&format!("-r 3 --show-output -- {says}"));
    assert_eq!((heard(&text, "spoken"), heard(&text, "shouted")), (3, 3), "{text}");
    let text = at_a_terminal("-r 2 --vs 'echo one' --vs 'echo two'");
    assert_eq!((heard(&text, "one"), heard(&text, "two")), (1, 1), "{text}");
    // A progress bar for longer runs.
    let text = at_a_terminal("-r 3 -- sleep 0.4");
    assert!(text.contains("runs [") && text.contains("left"), "{text}");
    for (option, times) in [("-e", 1), ("--show-output", 3)] {
        let option = if option == "-e" { &["-e", "page-faults"][..] } else { &["--show-output"] };
        let piped = kit::run(&[&["stat", "-r", "3"], option, &["--", "echo", "spoken"]].concat()).expect(0);
        assert_eq!(piped.stdout, "spoken\n".repeat(times));
        let sides = ["--vs", "echo one", "--vs", "echo two"];
        let piped = kit::run(&[&["stat", "-r", "3"], option, &sides].concat()).expect(0);
        assert_eq!(piped.stdout, "one\ntwo\n".repeat(times));
    }
}

/// Warm-up runs are neither printed nor counted, and `--prepare` runs before each run.
#[test]
fn warmup_runs_precede_the_measurement() {
    if !kit::need_perf_events() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stat = |options: &[&str]| -> (kit::Ran, String) {
        let mut pmc = kit::pmc();
        pmc.args(["stat", "-e", "page-faults", "--prepare", "echo before >>log"]).args(options);
        let ran = kit::Ran::from(pmc.current_dir(folder.path()).output().expect("pmc starts"));
        let log = folder.path().join("log");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        (ran, text)
    };
    let (ran, log) = stat(&["--warmup", "2", "-r", "3", "--", "sh", "-c", "echo run >>log; echo spoken"]);
    assert_eq!(ran.expect(0).says(&["(3 runs)"]).stdout, "spoken\n");
    assert_eq!(log, "before\nrun\n".repeat(5));
    let (ran, log) = stat(&["--warmup", "1", "-r", "2", "--vs", "echo a >>log", "--vs", "echo b >>log"]);
    ran.expect(0).says(&["2 runs each", "± is half of the 95% confidence interval of the mean"]);
    assert_eq!(log, "before\na\nbefore\nb\n".repeat(3));
    stat(&["--warmup", "1", "--", "true"]).0.expect(2).says(&["try: add -r N"]);
}

#[test]
fn exact_counts_are_not_scaled() {
    if !kit::need_perf_events() {
        return;
    }
    let counts = count(&["--exact", "-e", "task-clock,page-faults", "--", "true"]);
    for value in counts.rows()[0]["values"].as_array().unwrap() {
        assert_eq!(value["count"]["share"], 1.0, "{}", counts.0);
    }
}

/// Creates `ctl` and `ack` in a folder.
fn fifos(dir: &Path) -> (String, String) {
    let [ctl, ack] = ["ctl", "ack"].map(|name| dir.join(name).to_str().unwrap().to_owned());
    assert!(Command::new("mkfifo").args([&ctl, &ack]).status().unwrap().success());
    (ctl, ack)
}

#[test]
fn control_fifo_commands_are_acknowledged() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (ctl, ack) = fifos(dir.path());
    let control = format!("fifo:{ctl},{ack}");
    let child = start(&["stat", "-e", "task-clock", "-D", "-1", "--control", &control, "--", "sleep", "30"]);
    wait_for_counters(child.id(), 1);
    let mut orders = OpenOptions::new().read(true).write(true).open(&ctl).unwrap();
    let mut answers = BufReader::new(OpenOptions::new().read(true).write(true).open(&ack).unwrap());
    // A control command may arrive in pieces. An invalid one is reported and gets no answer.
    for (text, answered) in
        [("pi", false), ("ng\n", true), ("jump\n", false), ("\n", false), ("stop\n", true)]
    {
        orders.write_all(text.as_bytes()).unwrap();
        kit::wait_until_read(&orders);
        if answered {
            let mut answer = String::new();
            answers.read_line(&mut answer).unwrap();
            assert_eq!(answer, "ack\n");
        }
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unknown command `jump`") && said.contains("counting was disabled"), "{said}");
}

#[test]
fn control_commands_enable_and_disable_counting() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (ctl, ack) = fifos(dir.path());
    let file = dir.path().join("counts");
    // Through inherited descriptors this time.
    let script =
        "exec \"$0\" stat -a --json=2 -o \"$3\" -e cpu-clock -D -1 --control fd:8,9 8<>\"$1\" 9<>\"$2\"";
    let mut child = Command::new("sh")
        .args(["-c", script, crate::kit::binary(), &ctl, &ack, file.to_str().unwrap()])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_counters(child.id(), 1);
    let mut orders = OpenOptions::new().read(true).write(true).open(&ctl).unwrap();
    let mut answers = BufReader::new(OpenOptions::new().read(true).write(true).open(&ack).unwrap());
    let mut order = |text: &str| {
        writeln!(orders, "{text}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "ack\n");
    };
    let before = Instant::now();
    order("enable");
    let enabled = Instant::now();
    kit::let_pass(Duration::from_millis(100));
    let least = enabled.elapsed().as_secs_f64() * 1e3;
    order("disable");
    let most = before.elapsed().as_secs_f64() * 1e3;
    kit::let_pass(Duration::from_millis(300));
    order("ping");
    let whole = enabled.elapsed().as_secs_f64() * 1e3;
    order("stop");
    assert!(child.wait().unwrap().success());
    let counts = super::Document::read(&file);
    let counted = counts.number("cpu-clock") / std::thread::available_parallelism().unwrap().get() as f64;
    let elapsed = counts.seconds("elapsed_s") * 1e3;
    assert!(least <= counted && counted <= most, "{counted} of at least {least} and at most {most} ms");
    assert!(elapsed >= whole, "{elapsed} of {whole} ms");
}
