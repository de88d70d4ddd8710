//! Test programs do not count iterations to use CPU time: CPUs differ in speed (`tests/kit/burn.rs`).

use std::path::Path;

use regex_lite::Regex;

use super::sources::{files, root};

/// Files with long loops over system calls or nodes of a list, whatever time they take.
const COUNT_EVENTS: &[&str] = &["recording/latency.rs", "recording/record/stacks.rs"];

/// Folders with programs for an emulated CPU, of perf's tests, of the kit, and of this rule.
const OTHERS: &[&str] = &["pmu", "perf-suite", "kit", "architecture"];

fn counts_iterations(line: &str) -> bool {
    let long_loop =
        Regex::new(r"-lt [0-9]{5,}|for \([^;]*;[^;]*< ?[0-9]{5,};|while ?\(i < [0-9]{5,}\)").unwrap();
    long_loop.is_match(line)
}

#[test]
fn test_programs_work_for_a_stated_time() {
    let mut found = Vec::new();
    for (path, text) in ["rs", "c"].iter().flat_map(|ending| files(&root().join("tests"), ending)) {
        let name = path.display();
        let is_other = OTHERS.iter().any(|folder| path.starts_with(folder));
        if is_other || COUNT_EVENTS.iter().any(|file| path == Path::new(file)) {
            continue;
        }
        let lines = (1..).zip(text.lines()).filter(|(_, line)| counts_iterations(line));
        found.extend(lines.map(|(number, line)| format!("tests/{name}:{number}: {line}")));
    }
    assert!(found.is_empty(), "use for_cpu_ms or busy_shell:\n{}", found.join("\n"));
    let rejected = ["while [ $i -lt 20000 ]", "for (long i = 0; i < 30000; i++)"];
    let accepted = ["while [ $i -lt 300 ]", "for (long i = 0; i < loops(30000); i++)"];
    assert!(rejected.iter().all(|line| counts_iterations(line)));
    assert!(!accepted.iter().any(|line| counts_iterations(line)));
}
