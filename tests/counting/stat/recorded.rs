//! `stat record` and `stat report`: both perfs can read pmc's files, pmc can read both perfs' files, and all
//! report the same.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{BUSY, Value, kit, pmc};
use crate::kit::oracle;

/// Returns the CSV fields that describe the count: time, place and CPUs if present, value, unit, event.
fn counted(csv: &str) -> Vec<String> {
    let lines = csv.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let fields = lines.filter(|fields| fields.len() > 5).map(|fields| fields[..fields.len() - 4].join(","));
    fields.collect()
}

/// Returns the output of `perf stat -x, report` for a file.
fn reported_by(perf: &Path, file: &str, options: &[&str]) -> Vec<String> {
    let args = [&["stat", "-x,", "report", "-i", file], options].concat();
    counted(&String::from_utf8_lossy(&oracle::ask(perf, &args).stderr))
}

fn folder() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data").to_str().unwrap().to_owned();
    (dir, file)
}

/// Records with pmc and returns its output in the form of [`counted`].
#[track_caller]
fn record(file: &str, args: &[&str]) -> Vec<String> {
    counted(&pmc(&[&["record", "-x,", "-o", file], args].concat()))
}

const EVENTS: &str = "task-clock,page-faults,{context-switches,cpu-migrations}";

#[test]
fn recorded_counts_match_the_output_and_both_perfs_read_them() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    let (_dir, file) = folder();
    for options in [
        &["-e", EVENTS, "sh", "-c", *BUSY][..],
        &["-e", "page-faults,duration_time", "true"],
        &["-e", EVENTS, "-I", "50", "sleep", "0.12"],
        &["-a", "-e", "cpu-clock,page-faults", "true"],
        &["-a", "-A", "-e", "page-faults,duration_time", "true"],
        &["-a", "-A", "-I", "50", "-e", "page-faults,duration_time", "sleep", "0.12"],
        &["-a", "--per-socket", "-e", "page-faults", "true"],
        &["-a", "--per-die", "-e", "page-faults", "-I", "50", "sleep", "0.12"],
        &["-C", "0", "-A", "-e", "page-faults", "true"],
        // One event needs no ID. This one has its own name.
        &["-e", "page-faults,name=faults", "true"],
    ] {
        let printed = record(&file, options);
        assert!(!printed.is_empty(), "{options:?}");
        assert_eq!(counted(&pmc(&["report", "-x,", "-i", &file])), printed, "{options:?}");
        for (number, perf) in oracle::perfs().iter().enumerate() {
            let mut theirs = reported_by(perf, &file, &[]);
            let mut ours = printed.clone();
            if number > 0 && options.contains(&"-I") {
                // perf 7.2 sums the interval values, whichever tool wrote the file.
                let first = printed[0].split(',').next().unwrap();
                theirs.retain(|line| line.starts_with(first));
                ours.retain(|line| line.starts_with(first));
            }
            // It also has a row for each CPU on which an event does not count.
            theirs.retain(|line| !line.contains("<not counted>") || ours.contains(line));
            assert_eq!(theirs, ours, "{options:?}, {perf:?}");
        }
    }
}

#[test]
fn aggregation_is_chosen_at_report_time() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    let (_dir, file) = folder();
    record(&file, &["-a", "--per-core", "-e", "page-faults,cpu-clock", "true"]);
    for option in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
        let ours = counted(&pmc(&["report", "-x,", option, "-i", &file]));
        assert!(!ours.is_empty());
        for perf in oracle::perfs() {
            let mut perfs = reported_by(&perf, &file, &[option]);
            let mut ours = ours.clone();
            // Newer perfs pad CPU numbers and use other orders.
            perfs.sort();
            ours.sort();
            assert_eq!(ours, perfs, "{option}, {perf:?}");
        }
    }
    let ran = kit::run(&["stat", "report", "--per-thread", "-i", &file]).expect(1);
    ran.says(&["not recorded per thread", "stat record -p"]);
}

#[test]
fn recorded_threads_keep_their_names() {
    if !kit::need_perf_events() {
        return;
    }
    let (_dir, file) = folder();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    kit::wait_until_idle(sleeper.id());
    pmc(&["record", "--per-thread", "-p", &pid, "-e", "duration_time,page-faults", "-o", &file, "true"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let name = format!("sleep-{pid}");
    let report = pmc(&["report", "-x,", "--per-thread", "-i", &file]);
    assert!(report.lines().all(|line| line.starts_with(&format!("{name},"))), "{report}");
    let ran = kit::run(&["stat", "report", "-A", "-i", &file]).expect(1);
    ran.says(&["not recorded per CPU", "-a, or -C CPUS"]);
}

#[test]
fn recordings_of_both_perfs_are_read() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    let (_dir, file) = folder();
    for perf in oracle::perfs() {
        for options in [
            &["-e", EVENTS, "true"][..],
            &["-a", "-e", "page-faults", "true"],
            &["-a", "-A", "-e", "page-faults,cpu-clock", "-I", "50", "sleep", "0.12"],
            &["-a", "--per-core", "-e", "page-faults", "true"],
            &["-a", "--per-node", "-e", "page-faults", "true"],
            &["-a", "-e", "cycles,page-faults", "true"],
        ] {
            let args = [&["stat", "-x,", "record", "-o", &file], options].concat();
            let mut printed = counted(&String::from_utf8_lossy(&oracle::ask(&perf, &args).stderr));
            let mut ours = counted(&pmc(&["report", "-x,", "-i", &file]));
            printed.sort();
            ours.sort();
            assert!(!ours.is_empty());
            assert_eq!(ours, printed, "{options:?}, {perf:?}");
        }
    }
}

/// Runs a shell line that may use `$pmc`, `$perf` and `$newest`, and returns its stdout.
#[track_caller]
fn shell(line: &str) -> String {
    let perfs = oracle::perfs();
    let newest = perfs.last().unwrap();
    let output = oracle::ask_until_answered(|_| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("pmc", kit::binary()).env("perf", "perf").env("newest", newest);
        shell
    });
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn stat_recordings_work_through_pipes() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    // The command's output does not go into the recording.
    let record = "stat record -o - -a -A -e page-faults,cpu-clock echo hello 2>/dev/null";
    for (writer, readers) in
        [("pmc", &["pmc", "perf", "newest"][..]), ("perf", &["pmc"]), ("newest", &["pmc"])]
    {
        for reader in readers {
            let record =
                if writer == "pmc" { record.to_owned() } else { record.replace("echo hello", "true") };
            let text = shell(&format!("\"${writer}\" {record} | \"${reader}\" stat report -i - 2>&1"));
            let rows = ["CPU0", "page-faults", "msec cpu-clock", "seconds time elapsed"];
            assert!(rows.iter().all(|row| text.contains(row)), "{writer} | {reader}: {text}");
        }
    }
}

#[test]
fn script_matches_perf_and_report_suggests_stat_report() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    let (_dir, file) = folder();
    record(&file, &["-a", "-I", "50", "-e", "page-faults,cpu-clock", "sleep", "0.12"]);
    let ours = kit::run(&["script", "-i", &file]).expect(0).stdout;
    assert!(ours.starts_with("CPU   THREAD             VAL"), "{ours}");
    assert_eq!(ours, oracle::says("perf", &["script", "-i", &file]));
    let json = kit::run(&["script", "-j", "-i", &file]).expect(0).stdout;
    assert_eq!(json.lines().count() + 1, ours.lines().count());
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["record"], &first["event"]), (&"STAT".into(), &"page-faults".into()));
    kit::run(&["report", "-i", &file]).expect(1).says(&["has no samples", "pmc stat report -i"]);
}

#[test]
fn stat_report_supports_all_output_formats() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let (dir, file) = folder();
    let options = ["record", "-e", "task-clock,page-faults", "-I", "20", "-o", &file, "sleep", "0.05"];
    let printed = pmc(&options);
    // The output destination and format do not change the counts.
    assert_eq!(pmc(&["report", "-i", &file]), printed);
    let text = pmc(&["report", "--summary", "-M", "page_fault_rate", &file]);
    assert!(text.contains("Performance counter stats") && text.contains("page_fault_rate"), "{text}");
    let out = dir.path().join("counts.json");
    pmc(&["report", "--json=2", "-o", out.to_str().unwrap(), &file]);
    let document = super::Document::read(&out);
    let intervals = document.0["intervals"].as_array().unwrap();
    let sum: f64 = intervals.iter().filter_map(|it| it["rows"][0]["values"][1]["value"].as_f64()).sum();
    assert_eq!(sum, document.number("page-faults"));
    assert!(pmc(&["report", "--openmetrics", &file]).contains("# EOF"));
}

/// Options may come before the word, as in perf. After `--` it is a program's name.
#[test]
fn subcommand_may_follow_options() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let (_dir, file) = folder();
    let before = pmc(&["-e", "page-faults", "-x;", "record", "-o", &file, "true"]);
    assert!(before.contains(";page-faults;"), "{before}");
    assert!(pmc(&["-x;", "report", "-i", &file]).contains(";page-faults;"));
    // pmc's own options come before the command.
    for own in [&["--no-pager"][..], &["--buildid-dir", "stat"]] {
        kit::run(&[own, &["stat", "report", "-i", &file]].concat()).expect(0).says(&["page-faults"]);
    }
    let ran = kit::run(&["stat", "-e", "page-faults", "--", "record", "-o", "/nonexistent/x"]).expect(127);
    ran.says(&["running `record`"]);
    kit::run(&["stat", "record", "-r", "3", "true"]).expect(2).says(&["-r repeats the run"]);
    kit::run(&["stat", "record", "-a", "-G", "/", "true"]).expect(2).says(&["cannot contain events limited"]);
}

#[test]
fn missing_or_truncated_input_is_reported() {
    if !kit::need_perf_events() {
        return;
    }
    let (dir, file) = folder();
    record(&file, &["-e", "page-faults,cpu-clock", "-I", "20", "sleep", "0.05"]);
    let whole = std::fs::read(&file).unwrap();
    let say = |bytes: &[u8]| {
        let torn = dir.path().join("torn");
        std::fs::write(&torn, bytes).unwrap();
        kit::run(&["stat", "report", "-i", torn.to_str().unwrap()])
    };
    // A file cut at any length gives a table or a message, and no crash.
    for cut in (0..whole.len()).step_by(37) {
        let ran = say(&whole[..cut]);
        assert!(matches!(ran.status, Some(0 | 1)) && !ran.stderr.contains("panicked"), "{cut}: {ran:?}");
    }
    for at in (104..whole.len()).step_by(61) {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        let ran = say(&broken);
        assert!(matches!(ran.status, Some(0 | 1)) && !ran.stderr.contains("panicked"), "{at}: {ran:?}");
    }
    let file = format!("{file}.killed");
    // The command must not keep the tests' output open if this test fails.
    let mut pmc = kit::pmc();
    pmc.args(["stat", "record", "-e", "task-clock", "-o", &file, "sleep", "1000"]);
    let recorder = kit::ProcessGuard::start(pmc.stdout(Stdio::null()).stderr(Stdio::null()));
    // The command starts when the file's header is complete. Before that, the file does not show which tool
    // wrote it.
    kit::wait_for_program(kit::wait_for_child(recorder.id()), "sleep");
    drop(recorder);
    kit::run(&["stat", "report", "-i", &file]).expect(1).says(&["has no counts yet", "-I 1000"]);
}
