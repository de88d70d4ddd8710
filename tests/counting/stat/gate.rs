//! `pmc stat --vs … --fail-if`: exit status, reasons, and the formats for CI systems.

use serde_json::Value;

use std::sync::LazyLock;

use super::kit::{self, burn::busy_shell};

/// A command that takes far more CPU time than `true`, so that other load cannot hide the difference.
static BUSY: LazyLock<String> = LazyLock::new(|| format!("sh -c '{}'", busy_shell(100)));
const SLOWER: &str = "task-clock > 50% and p < 0.01";

fn gate(options: &[&str]) -> kit::Ran {
    // User mode, because the kernel may not be measured by every user.
    kit::run(&[&["stat", "-e", "task-clock:u"], options].concat())
}

#[test]
fn exit_status_states_the_answer() {
    if !kit::need_perf_events() {
        return;
    }
    let slower = gate(&["--vs", "true", "--vs", &BUSY, "-r", "5", "--fail-if", SLOWER]).expect(1);
    slower.says(&[
        " slower",
        " regression: `task-clock > 50% and p < 0.01` holds for 1 of 1",
        "task-clock:u  +",
    ]);
    // The commands in the other order: far from worse.
    let faster = ["--vs", &BUSY, "--vs", "true", "-r", "5", "--fail-if"];
    gate(&[&faster[..], &["task-clock > 500% and p < 0.01"]].concat()).expect(0).says(&[" pass: "]);
    gate(&[&faster[..], &["task-clock < -50% and p < 0.01"]].concat()).expect(1).says(&[" regression: "]);
    // Two runs are too few, even for a large difference. The comparison is still printed.
    let few = gate(&["--vs", "true", "--vs", &BUSY, "-r", "2", "--fail-if", SLOWER]).expect(2);
    few.says(&[
        "2 commands, 2 runs each",
        " unusable: ",
        "`true` ran 2 times; the minimum is 3",
        "try: -r 10",
    ]);
    // A change of one millionth cannot be told from noise.
    let tiny = ["--vs", &BUSY, "--vs", "true", "-r", "3", "--fail-if", "worse > 0.0001% and p < 0.000001"];
    gate(&tiny).expect(2).says(&[" unusable: ", "too noisy: elapsed", "times as many runs"]);
    let failed = gate(&["--vs", "true", "--vs", "sh -c 'exit 3'", "-r", "3", "--fail-if", SLOWER]).expect(2);
    failed.says(&["2 commands, 3 runs each", "`sh -c 'exit 3'` failed with status 3 in 3 of 3 runs"]);
    // Far less time, but nothing was done.
    let fails = gate(&["--vs", &BUSY, "--vs", "sh -c 'exit 3'", "-r", "3"]).expect(3);
    let fails = fails.says(&[" B failed with status 3 in 3 of 3 runs", "  command failed"]);
    assert!(!fails.stderr.contains("faster"), "{}", fails.stderr);
    let missing = ["--vs", "true", "--vs", "./no-such-program", "-r", "3"];
    gate(&missing).expect(127);
    gate(&[&missing[..], &["--fail-if", SLOWER]].concat()).expect(2).says(&["./no-such-program"]);
}

#[test]
fn invalid_conditions_are_rejected_before_the_commands_run() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let touch = format!("touch {}", ran.display());
    for (condition, words) in [
        ("worse > 3", &["worse > 3\n           ^ expected `%`", "try: --fail-if 'worse > 3%"][..]),
        ("cycles > 3%", &["`cycles` is not measured", "elapsed, task-clock", "try: -e cycles"]),
        ("elapsed > 1% and task-clock > 1%", &["^ expected `elapsed` again"]),
    ] {
        gate(&["--vs", &touch, "--vs", "true", "--fail-if", condition]).expect(2).says(words);
    }
    assert!(!ran.exists());
    gate(&["--fail-if", "worse > 3%", "--", "true"]).expect(2).says(&["--vs"]);
    gate(&["--vs", "a", "--vs", "b", "--format", "junit"]).expect(2).says(&["--fail-if"]);
}

#[test]
fn ci_formats_contain_the_answer() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let summary = dir.path().join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let slower =
        ["stat", "-e", "task-clock:u", "--vs", "true", "--vs", &BUSY, "-r", "4", "--fail-if", SLOWER];
    let mut github = kit::pmc();
    github.args(slower).args(["--format", "github"]).env("GITHUB_STEP_SUMMARY", &summary);
    let github = kit::Ran::from(github.output().unwrap()).expect(1);
    let github = github.says(&[" slower", "\n::error title=pmc%3A regression::task-clock:u: +"]);
    assert_eq!(github.stderr.matches("::").count(), 2, "{}", github.stderr);
    let page = std::fs::read_to_string(&summary).unwrap();
    assert!(page.starts_with("before\n### pmc: regression\n"), "{page}");
    assert!(page.contains("| **fails** | task&#45;clock&#58;u | +"), "{page}");

    let file = dir.path().join("junit.xml");
    let junit = [&slower[..], &["--format", "junit", "-o", file.to_str().unwrap()]].concat();
    kit::run(&junit).expect(1);
    let xml = std::fs::read_to_string(&file).unwrap();
    assert!(
        xml.starts_with("<?xml ") && xml.contains("name=\"task-clock &gt; 50% and p &lt; 0.01\""),
        "{xml}"
    );
    assert!(xml.contains("<failure type=\"regression\" message=\"+"), "{xml}");

    let ran = kit::run(&[&slower[..], &["--json"]].concat()).expect(1);
    let document: Value = serde_json::from_str(ran.stderr.trim()).unwrap();
    let gate = &document["gate"];
    assert_eq!((&gate["verdict"], &gate["condition"]), (&"regression".into(), &SLOWER.into()));
    let [measure] = &gate["measures"].as_array().unwrap()[..] else { panic!("{gate}") };
    assert_eq!((&measure["name"], &measure["fails"]), (&"task-clock:u".into(), &true.into()));
    let test = &document["measures"][1]["sides"][1];
    assert_eq!(measure["change_percent"], test["difference_percent"]);
    assert!(
        (measure["p_adjusted"].as_f64().unwrap() - test["p"].as_f64().unwrap()).abs() < 1e-9,
        "{document}"
    );
}
