//! Code generated at run time: Node's, and Python's trampolines.

use super::*;

/// Whether the symbol of a frame of generated code contains all of these words.
fn is(frame: &Frame, words: &[&str]) -> bool {
    words.iter().all(|word| frame.symbol.contains(word))
}

/// Checks that most stacks contain these functions, callees before callers.
#[track_caller]
fn expect_callers(file: &Path, wanted: &[&[&str]]) {
    let stacks = stacks(file);
    assert!(stacks.len() >= *LEAST, "only {} samples", stacks.len());
    let holds = |stack: &&Vec<Frame>| {
        let mut rest = stack.iter();
        wanted.iter().all(|words| rest.any(|frame| is(frame, words)))
    };
    let good = stacks.iter().filter(holds).count();
    let other = stacks.iter().rev().find(|stack| !holds(stack));
    assert!(good * 10 >= stacks.len() * 6, "{good} of {} have {wanted:?}; one is {other:#?}", stacks.len());
}

#[test]
fn node_writes_a_perf_map() {
    if !ready(&["node"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.js"));
    let script = source.to_str().unwrap();
    let file = lab.record(&["-g"], &["node", "--perf-basic-prof", "--no-turbo-inlining", script]);
    // Node's symbols include the source location of the function.
    let serve = format!("serve {script}:3");
    let day = format!("day {script}:7");
    expect_callers(&file, &[&[&serve], &[&day]]);
    let row = &report(&file)["events"][0]["rows"][0];
    assert!(row["sym"].as_str().unwrap().contains(&serve), "{row}");
}

/// A Python that can write a perf map, from any installation: Debian 12 has none.
pub(super) fn python() -> Option<PathBuf> {
    let versions = ["python3.14", "python3.13", "python3.12", "python3"].map(kit::on_path);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
    let by_hand = home.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let by_hand = by_hand.map(|version| version.path().join("bin/python3"));
    let can = |python: &PathBuf| {
        let asks = "import sys; sys.exit(not sys.is_stack_trampoline_active())";
        let output = Command::new(python).args(["-X", "perf", "-c", asks]).output();
        output.is_ok_and(|output| output.status.success())
    };
    versions.into_iter().flatten().chain(by_hand).find(can)
}

#[test]
fn python_writes_a_perf_map() {
    let python = python();
    if !kit::need("python-3.12", python.is_some(), "no Python 3.12 or later is installed") || !ready(&[]) {
        return;
    }
    let python = python.unwrap();
    let (lab, source) = (Lab::new(), source("shop.py"));
    let script = source.to_str().unwrap();
    let file =
        lab.record(&["--call-graph", "dwarf,16384"], &[python.to_str().unwrap(), "-X", "perf", script]);
    // Each stack has the innermost function. Its callers follow a trampoline, which has no unwind
    // information unless this Python was built with frame pointers.
    expect_callers(&file, &[&[&format!("py::serve:{script}")]]);
    let names: Vec<String> = stacks(&file).into_iter().flatten().map(|frame| frame.symbol).collect();
    assert!(names.contains(&format!("py::day:{script}")));
}

#[test]
fn python_trampolines_appear_between_c_frames() {
    if !ready(&["gcc"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("trampoline.c"));
    let program = lab.text("prog");
    lab.run("gcc", &["-O1", "-g", "-fno-omit-frame-pointer", source.to_str().unwrap(), "-o", &program]);
    let file = lab.record(&["-g"], &[&program]);
    let wanted = [
        at("evaluate_serve", "evaluate"),
        named("py::serve:/srv/shop.py"),
        at("evaluate_day", "day"),
        named("py::day:/srv/shop.py"),
        at("main", "main"),
    ];
    expect_stack(&file, &source, &wanted);
    expect_row(&file, &source, "prog", "evaluate_serve", "evaluate");
}
