//! `pmc compare`: both kinds of runs, the answer as text, page and JSON, exit statuses, and interruptions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value as Json;

use super::groups;
use crate::export::in_browser;
use crate::kit::{self, ProcessGuard, lab, lab::Lab};

const THREE_FUNCTIONS: &str = r"
__attribute__((noinline)) void parse(long n) { sink += chain(sink, n); }
__attribute__((noinline)) void render(long n) { sink += chain(sink, n + n * MORE / 100); sink++; }
__attribute__((noinline)) void store(long n) { sink += chain(sink, n); sink += 2; }
int main(void) {
    for (int i = 0; i < 2000; i++) { long n = uneven() * 30; parse(n); render(n); store(n); }
}
";

/// User mode, because the kernel may not be measured by every user.
const EVENTS: [&str; 6] = ["-e", "task-clock:u", "--sample", "cpu-clock:u", "-F", "9973"];

fn compare(a: &Path, b: &Path, options: &[&str]) -> kit::Ran {
    let mut command = kit::pmc();
    command.arg("compare").args(EVENTS).args(options).args([a, b]);
    command.output().unwrap().into()
}

#[test]
fn slower_function_is_named_in_all_formats() {
    let Some(lab) = Lab::new() else { return };
    let [old, new] = groups::programs(&lab);
    let page = lab.path("page.html");
    let options = ["-r", "4", "--fail-if", groups::SLOWER, "-o", page.to_str().unwrap()];
    let text = compare(&old, &new, &options).expect(1).says(&["page.html is written"]);
    let text = text.prints(&[
        " B is slower: changed +",
        " 2 commands, 4 runs each, in turn:",
        " task-clock:u",
        "  A     4 recordings, ",
        " regression: ",
        "\n   changed  +",
    ]);
    let rows: Vec<&str> = text.stdout.lines().filter(|line| line.contains("[.] ")).collect();
    assert!(
        rows.first().is_some_and(|row| row.contains(" more ") && row.ends_with("[.] changed")),
        "{rows:?}"
    );

    let page = fs::read_to_string(page).unwrap();
    for words in [
        "<code>",
        "B is slower: changed +",
        "task-clock:u",
        "<tr class=\"more\">",
        "[.] changed",
        " regression: ",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // Nothing is loaded.
    assert!(
        page.contains("default-src 'none'") && !page.contains("http:") && !page.contains("https:"),
        "the page refers to the network"
    );
    if kit::need_program("chromium") {
        page_shows_the_difference(&lab, &page);
    }

    let ran = compare(&old, &new, &["-r", "4", "--fail-if", groups::SLOWER, "--json"]).expect(1);
    let document: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["gate"]["verdict"], "regression");
    assert_eq!(document["verdicts"][0]["direction"], "slower");
    assert!(document["verdicts"][0]["headline"].as_str().unwrap().starts_with("B is slower: changed +"));
    assert_eq!(document["counts"]["measures"][1]["name"], "task-clock:u");
    let rows = document["profiles"]["events"][0]["rows"].as_array().unwrap();
    let changed = rows.iter().find(|row| row["sym"] == "changed").unwrap();
    assert_eq!(changed["group_change"]["verdict"], "more");
    assert_eq!(document["profiles"]["files"][5]["path"], "profiled run 2 of B");

    let junit = compare(&old, &new, &["-r", "4", "--fail-if", groups::SLOWER, "--format", "junit"]).expect(1);
    assert!(
        junit.stdout.starts_with("<?xml") && junit.stdout.contains("name=\"changed\" file=\""),
        "{}",
        junit.stdout
    );
    let mut github = kit::pmc();
    github.arg("compare").args(EVENTS).args(["-r", "4", "--fail-if", groups::SLOWER, "--format", "github"]);
    github.args([&old, &new]).env("GITHUB_WORKSPACE", lab.path("new"));
    let github: kit::Ran = github.output().unwrap().into();
    github.expect(1).prints(&["\n::error file=prog.c,line="]);
}

/// The page has the design of an exported page: dark mode, search, and a differential flame graph.
#[track_caller]
fn page_shows_the_difference(lab: &Lab, page: &str) {
    let script = "
        const first = chosen.view, changes = {};
        const walk = (block) => block.children().forEach((below) => {
            const name = data.names[below.fn];
            changes[name] = Math.max(changes[name] || 0, below.change / sums.mostChange);
            walk(below);
        });
        walk(root);
        const colours = ['light', 'dark'].map((which) => { theme(which); return getComputedStyle(document.documentElement).backgroundColor; });
        $('search').value = 'unchanged';
        $('search').dispatchEvent(new Event('input'));
        const visible = [...document.querySelectorAll('#result .functions tr')]
            .filter((row) => row.querySelector('td') && !row.hidden).map((row) => row.textContent);
        show('flame');
        const boxes = drawn.length;
        show('functions');
        const results = { first, changes, colours, visible, boxes, about: $('about').textContent,
            columns: $('functions').textContent, legend: $('legend').textContent,
            tabs: [...document.querySelectorAll('nav [data-view]')].filter((tab) => !tab.hidden).map((tab) => tab.dataset.view),
            requests: performance.getEntriesByType('resource').length };
    ";
    let results = in_browser(lab, page, script, &[]);
    assert_eq!(results["first"], "result", "{results}");
    assert_eq!(results["tabs"], serde_json::json!(["result", "flame", "tree", "functions"]), "{results}");
    // `chain` is inlined into `changed`.
    let change = |name: &str| results["changes"][name].as_f64().unwrap();
    assert!(change("chain") > 0.9 && change("unchanged") == 0.0, "{results}");
    assert_ne!(results["colours"][0], results["colours"][1]);
    let visible = results["visible"].as_array().unwrap();
    assert!(!visible.is_empty(), "{results}");
    assert!(visible.iter().all(|row| row.as_str().unwrap().contains("unchanged")), "{results}");
    let text = |name: &str| results[name].as_str().unwrap();
    assert!(results["boxes"].as_u64().unwrap() > 2 && text("columns").contains("B − A"), "{results}");
    assert!(text("about").contains("4 runs of A and 4 of B") && text("legend").contains("costs more in B"));
    assert_eq!(results["requests"], 0);
}

/// Three functions, each with a third of the time. One of them is 30 % slower.
#[test]
fn slower_function_is_in_the_headline() {
    let Some(lab) = Lab::new() else { return };
    let build = |more: u32| {
        let define = format!("-DMORE={more}");
        lab.build(&format!("render-{more}"), &[lab::CHAIN, THREE_FUNCTIONS].concat(), &["-O1", "-g", &define])
    };
    let ran = compare(&build(0), &build(30), &["-r", "10", "--json"]).expect(0);
    let document: Json = serde_json::from_str(&ran.stdout).unwrap();
    let verdict = &document["verdicts"][0];
    let headline = verdict["headline"].as_str().unwrap();
    assert!(headline.starts_with("B is slower: ") && headline.contains("render +"), "{headline}");
    assert_eq!(verdict["direction"], "slower");
}

#[test]
fn equal_programs_pass() {
    let Some(lab) = Lab::new() else { return };
    let [old, _] = groups::programs(&lab);
    let total = "total > 50% and p < 0.01";
    let ran = compare(&old, &old, &["-r", "4", "--fail-if", total]).expect(0);
    ran.prints(&[" pass: `total > 50% and p < 0.01` holds for none of 1 measures"]);
}

#[test]
fn invalid_options_are_rejected_before_the_commands_run() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let touch = format!("touch {}", ran.display());
    for (options, words) in [
        (&["-F", "x"][..], "-F x: not a valid number"),
        (&["--sample", "no-such-event"], "no-such-event"),
        (&["--call-graph", "x"], "--call-graph x"),
        (&["-s", "colour"], "colour"),
        (&["--fail-if", "worse > 3"], "expected `%`"),
        (&["--fail-if", "colour > 3%"], "`colour` is not measured"),
        (&["--format", "junit"], "--fail-if"),
        (&["--json", "-o", "-"], "standard output is used for the answer"),
        (&["-r", "2"], "3..=1000"),
        (&["--budget", "9s"], "--fail-if"),
        (&["--budget", "x", "--fail-if", "worse > 3%"], "--budget x: must be a time"),
    ] {
        kit::run(&[&["compare", &touch, "true"], options].concat()).expect(2).says(&[words]);
    }
    kit::run(&["compare", &touch]).expect(2);
    assert!(!ran.exists());
}

#[test]
fn failing_commands_determine_the_status() {
    if !kit::need_perf_events() {
        return;
    }
    let run = |options: &[&str]| kit::run(&[&["compare", "-r", "3"], &EVENTS[..], options].concat());
    // The output of the first run is shown, but not on standard output.
    let failing = run(&["echo out; echo error >&2; exit 3", "true"]).expect(3);
    let failing = failing.says(&["out\n", "error\n", "ended with status 3"]);
    let failing = failing.prints(&[
        " A failed with status 3 in 6 of 6 runs, so that their times cannot be compared.",
        " 2 commands, 3 runs each",
        "  command failed",
    ]);
    assert!(!failing.stdout.contains("\nout\n") && !failing.stdout.contains("er\n"), "{}", failing.stdout);
    let missing = ["./no-such-program", "true"];
    run(&missing).expect(127).says(&["./no-such-program"]);
    // Not a pass, and not a regression.
    run(&[&missing[..], &["--fail-if", "worse > 3%"]].concat()).expect(2).says(&["./no-such-program"]);
    let gate = run(&["exit 3;", "true", "--fail-if", "worse > 3%"]).expect(2);
    gate.prints(&[" unusable: ", "`exit 3;` failed with status 3 in 6 of 6 runs"]);
    // A command that fails only while it is profiled.
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let late = format!("echo >>{0}; [ $(wc -l <{0}) -le 3 ] || exit 4", runs.display());
    run(&["true", &late, "--fail-if", "total > 300%"])
        .expect(2)
        .prints(&[" B failed with status 4 in 3 of 6 runs", " failed with status 4 in 3 of 6 runs"]);
}

#[test]
fn interrupted_runs_are_not_part_of_the_answer() {
    if !kit::need_perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let program = dir.path().join("program");
    for (blocking, words) in [
        (3, &[" 2 commands, 2 runs each"][..]),
        (5, &[" 2 commands, 3 runs each", "A     1 recording", "Too few runs were profiled"]),
    ] {
        // Run number `blocking` does not end.
        let file = runs.display();
        let script = format!(
            "#!/bin/sh\necho >>{file}\n[ $(wc -l <{file}) -lt {blocking} ] || exec sleep 1000 >/dev/null 2>&1\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let _ = fs::remove_file(&runs);
        let mut command = kit::pmc();
        command.args(["compare", "-r", "3"]).args(EVENTS).args([program.to_str().unwrap(), "true"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut pmc = ProcessGuard::start(&mut command);
        kit::wait_for("the run that does not end", || {
            fs::read(&runs).is_ok_and(|lines| lines.len() == blocking)
        });
        pmc.signal(Signal::INT);
        let status = kit::wait_for_end("pmc compare", &mut pmc.0);
        let text = std::io::read_to_string(pmc.0.stdout.take().unwrap()).unwrap();
        assert!(words.iter().all(|words| text.contains(words)), "{blocking}: {text}");
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status:?}");
    }
}
