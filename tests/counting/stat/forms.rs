//! Output formats and destinations, with CSV and JSON lines compared to perf's.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::{Document, count, fields, kit, perf, pmc};

const EVENTS: &str =
    "task-clock,context-switches,cpu-migrations,page-faults,minor-faults,major-faults,cpu-clock";

#[test]
fn csv_fields_match_perf() {
    if !kit::need_perf_events() || !kit::need_program("perf") {
        return;
    }
    for (separator, options) in [
        (",", &["-x,"][..]),
        (";", &["-x;"]),
        ("\t", &["-x", "\\t"]),
        (",", &["-x,", "-r", "3"]),
        (",", &["-x,", "--all-user"]),
        (",", &["-x,", "-i"]),
        (",", &["-x,", "--no-big-num"]),
    ] {
        let args = [options, &["-e", EVENTS, "--", "true"]].concat();
        let (ours, perfs) = (fields(&pmc(&args), separator, 2), fields(&perf(&args), separator, 2));
        assert_eq!(ours.len(), 7, "{options:?}: {ours:?}");
        for (name, perfs) in &perfs {
            let ours = &ours[name];
            assert_eq!(ours.len(), perfs.len(), "{options:?}: {ours:?} {perfs:?}");
            assert_eq!(ours[1], perfs[1], "unit of {name}");
            // perf prints 0 for events that cannot be counted in user mode.
            if options.contains(&"--all-user") && ["context-switches", "cpu-migrations"].contains(&&**name) {
                assert_eq!((&*ours[0], &*perfs[0]), ("<not counted>", "0"), "{name}");
                continue;
            }
            // The unit of a rate changes with its size, so only check whether there is one.
            assert_eq!(
                ours.last().unwrap().is_empty(),
                perfs.last().unwrap().is_empty(),
                "{ours:?} {perfs:?}"
            );
        }
    }
}

/// Habits of perf users: options joined to their values, commands without `--`, and command options that pmc
/// must not interpret.
#[test]
fn perf_option_spellings_are_accepted() {
    if !kit::need_perf_events() {
        return;
    }
    for args in [
        &["stat", "-etask-clock", "-r2", "ls", "-a", "/"][..],
        &["stat", "--event=task-clock", "--repeat=2", "ls", "-r", "/"],
        &["stat", "--ev", "task-clock", "--no-inh", "ls", "--al", "/"],
        &["stat", "-x,", "-e", "task-clock", "ls", "--all", "/"],
        &["stat", "-i", "-e", "task-clock", "-B", "-v", "ls", "-e"],
        &["stat", "-I1000", "-e", "task-clock", "sh", "-c", "exit 0"],
        &["stat", "--json-output", "-e", "task-clock", "ls", "/"],
        &["stat", "-ddd", "-n", "ls"],
    ] {
        let ran = kit::run(args);
        assert!(
            [Some(0), Some(2)].contains(&ran.status) && !ran.stderr.starts_with("error:"),
            "{args:?}: {ran:?}"
        );
        assert!(ran.stderr.contains("task-clock") || args.contains(&"-n"), "{args:?}: {ran:?}");
    }
}

/// `pmc stat -x, CMD 2>&1 | …`: messages appear as data lines or not at all.
#[test]
fn csv_on_stderr_has_no_other_lines() {
    if !kit::need_perf_events() {
        return;
    }
    // Rows appear and say so if the machine has no counters.
    let csv = pmc(&["-x,", "--", "true"]);
    assert!(csv.lines().all(|line| line.split(',').count() >= 7), "{csv}");
    assert!(csv.contains("cycles"), "{csv}");
    let lines = pmc(&["-j", "--", "true"]);
    for line in lines.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {lines}"));
    }
    assert!(lines.contains("cycles"), "{lines}");
    let document: serde_json::Value = serde_json::from_str(&pmc(&["--json=2", "--", "true"])).unwrap();
    assert!(document["events"].as_array().unwrap().iter().any(|event| event["name"] == "cycles"));
    let page = pmc(&["--openmetrics", "--", "true"]);
    assert!(page.starts_with("# TYPE ") && page.contains("cycles"), "{page}");
    // Warnings of every kind.
    let vs = ["stat", "--vs", "sh -c 'exit 4'", "--vs", "true", "-r", "1", "-e", "page-faults"];
    let ran = kit::run(&[&vs[..], &["-j"]].concat()).expect(4);
    serde_json::from_str::<serde_json::Value>(&ran.stderr).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr));
    kit::run(&vs).expect(4).says(&["ended with status 4"]);
}

/// The two clocks are the only software events that count time.
#[test]
fn only_clock_events_print_milliseconds() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    for (event, unit) in [("config=0", "msec"), ("config=1", "msec"), ("config=2", ""), ("config=3", "")] {
        let event = format!("software/{event}/");
        let counts = count(&["-e", &event, "--", "true"]);
        assert_eq!(counts.0["events"][0]["unit"], unit, "{event}");
        let number = counts.number(&event);
        assert!(unit == "msec" || number.fract() == 0.0, "{event}: {number}");
    }
}

#[test]
fn tool_events_match_perfs_fields() {
    if !kit::need_perf_events() || !kit::need_program("perf") {
        return;
    }
    let args = ["-x,", "-e", "duration_time", "--", "sleep", "0.05"];
    let (ours, perfs) = (pmc(&args), perf(&args));
    let shape = |text: &str| text.trim().split(',').skip(1).take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(shape(&ours), ["ns", "duration_time"]);
    assert_eq!(shape(&ours), shape(&perfs));
    let ns: f64 = ours.split(',').next().unwrap().parse().unwrap();
    assert!((5e7..6e11).contains(&ns), "{ns}");
}

#[test]
fn json_keys_match_perf() {
    if !kit::need_perf_events() || !kit::need_program("perf") {
        return;
    }
    for options in [&["-j"][..], &["-j", "-r", "2"], &["--json", "--all-user"]] {
        let args = [options, &["-e", EVENTS, "--", "true"]].concat();
        let keys = |text: &str| -> Vec<Vec<String>> {
            let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            lines.map(|line| line.as_object().unwrap().keys().cloned().collect()).collect()
        };
        let (ours, perfs) = (pmc(&args), perf(&args));
        assert_eq!(keys(&ours), keys(&perfs), "{options:?}\n{ours}\n{perfs}");
    }
}

#[test]
fn json_document_has_numbers_and_reasons() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let counts = count(&["-e", "task-clock,page-faults,r1ffffffff", "--", "true"]);
    assert!(counts.number("task-clock") > 0.0);
    if counts.value("r1ffffffff").is_none() {
        let reason = &counts.rows()[0]["values"][2];
        assert_eq!(reason["status"], "not supported");
        assert!(!reason["reason"]["cause"].as_str().unwrap().is_empty(), "{reason}");
    }
    assert_eq!(counts.0["target"]["command"][0], "true");
}

#[test]
fn output_files_are_replaced_or_appended_and_private() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    let name = file.to_str().unwrap();
    let lines = |options: &[&str]| {
        let args = [&["stat", "-x,", "-e", "task-clock", "-o", name], options, &["--", "true"]].concat();
        let ran = kit::run(&args).expect(0);
        assert!(ran.stderr.is_empty(), "{}", ran.stderr);
        std::fs::read_to_string(&file).unwrap().lines().filter(|line| line.contains(",task-clock,")).count()
    };
    assert_eq!((lines(&[]), lines(&[]), lines(&["--append"]), lines(&["--append"])), (1, 1, 2, 3));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("# started on "));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn log_fd_is_written_to() {
    if !kit::need_perf_events() {
        return;
    }
    let script = "\"$0\" stat -e task-clock --log-fd 9 -- true 9>&1 2>/dev/null";
    let ran: kit::Ran = std::process::Command::new("sh")
        .args(["-c", script, crate::kit::binary()])
        .stdout(Stdio::piped())
        .output()
        .unwrap()
        .into();
    ran.expect(0).prints(&["task-clock", "seconds time elapsed"]);
}

#[test]
fn digits_are_grouped_by_locale() {
    if !kit::need_perf_events() {
        return;
    }
    // A command's elapsed nanoseconds have more than three digits.
    let number = |locale: [(&str, &str); 3], options: &[&str]| -> String {
        let mut command = kit::pmc();
        command.args(["stat", "-e", "duration_time"]).args(options).args(["--", "true"]).envs(locale);
        let ran = kit::Ran::from(command.output().expect("pmc starts")).expect(0);
        let line = ran.stderr.lines().find(|line| line.contains("duration_time"));
        line.expect("a row").split_whitespace().next().expect("a number").to_owned()
    };
    let english = [("LC_ALL", ""), ("LC_NUMERIC", ""), ("LANG", "en_US.UTF-8")];
    for options in [&[][..], &["-B"], &["--big-num"], &["--no-big-num", "-B"]] {
        assert!(number(english, options).contains(','), "{options:?}");
    }
    let is_plain = |number: String| number.bytes().all(|b| b.is_ascii_digit());
    assert!(is_plain(number(english, &["--no-big-num"])));
    for locale in [
        [("LC_ALL", "C"), ("LC_NUMERIC", "en_US.UTF-8"), ("LANG", "en_US.UTF-8")],
        [("LC_ALL", ""), ("LC_NUMERIC", "C.UTF-8"), ("LANG", "en_US.UTF-8")],
        [("LC_ALL", ""), ("LC_NUMERIC", ""), ("LANG", "POSIX")],
        [("LC_ALL", ""), ("LC_NUMERIC", ""), ("LANG", "")],
    ] {
        // As in perf, -B permits the locale's separators, but not every locale has any.
        assert!(is_plain(number(locale, &["-B"])), "{locale:?}");
    }
}

#[test]
fn metric_only_prints_only_metrics() {
    if !kit::need_perf_events() {
        return;
    }
    let text = pmc(&["-e", "task-clock", "--metric-only", "--", "true"]);
    assert!(text.contains("CPUs utilized") && !text.contains("task-clock"), "{text}");
    let own = pmc(&["--metric", "each=page-faults/page-faults", "--metric-only", "--", "true"]);
    assert!(own.contains("each") && own.contains('1'), "{own}");
}

#[test]
fn metrics_add_their_events() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let counts = count(&["--metric", "double = 2 * page-faults", "-M", "cpus_utilized", "--", "true"]);
    let metrics = counts.rows()[0]["metrics"].as_array().unwrap();
    let of = |name: &str| metrics.iter().find(|m| m["name"] == name).unwrap()["value"].as_f64().unwrap();
    assert_eq!(of("double"), 2.0 * counts.number("page-faults"));
    let used = counts.number("task-clock") / 1e3 / counts.seconds("elapsed_s");
    assert!((of("cpus_utilized") - used).abs() < 1e-6, "{} {used}", of("cpus_utilized"));
    // perf's names are aliases; the one that was typed is shown.
    let text = pmc(&["-x,", "-M", "page_faults_per_second,migration_rate", "--", "true"]);
    assert!(text.contains("page_faults_per_second") && text.contains("migration_rate"), "{text}");
    // If the machine cannot count cycles, the metric gives the reason instead of appearing without a number.
    let text = pmc(&["-M", "IPC", "-e", "task-clock", "--", "true"]);
    assert!(text.contains("ipc") || text.contains("insn per cycle"), "{text}");
    assert!(!text.contains("its group leader"), "no group was typed: {text}");
}

#[test]
fn quiet_prints_only_errors() {
    if !kit::need_perf_events() {
        return;
    }
    let ran = kit::run(&["stat", "-q", "--", "true"]).expect(0);
    assert!(ran.stderr.is_empty() && ran.stdout.is_empty(), "{ran:?}");
    kit::run(&["stat", "--quiet", "-e", "cycels", "--", "true"]).expect(2).says(&["cycels"]);
}

#[test]
fn unscaled_counts_are_available() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    for option in ["--no-scale", "-c", "--scale"] {
        assert!(count(&[option, "-e", "page-faults", "--", "true"]).number("page-faults") > 10.0);
    }
}

#[test]
fn document_intervals_add_up_to_the_total() {
    if !crate::kit::need_kernel_mode() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("counts");
    let script =
        "for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=4M count=1 2>/dev/null; sleep 0.05; done";
    let name = file.to_str().unwrap();
    kit::run(&["stat", "--json=2", "-o", name, "-I", "50", "-e", "page-faults", "--", "sh", "-c", script])
        .expect(0);
    let counts = Document::read(&file);
    let intervals = counts.0["intervals"].as_array().unwrap();
    assert!(intervals.len() >= 3, "{}", counts.0);
    let parts = intervals.iter().filter_map(|i| i["rows"][0]["values"][0]["value"].as_f64());
    assert_eq!(parts.sum::<f64>(), counts.number("page-faults"), "{}", counts.0);
}
