//! Call chains under the rows, byte for byte like perf's.

use std::path::Path;

use super::lab::Lab;
use crate::kit::{self, oracle};

/// A function with many callers, at several depths.
const CALLS: &str = r#"
volatile long sink;
#define NOINLINE __attribute__((noinline))
NOINLINE void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
NOINLINE void other(int n) { for (int i = 0; i < n; i++) sink ^= i * 3; }
NOINLINE void down(int d, int n) { if (d == 0) { leaf(n); return; } down(d - 1, n); sink++; }
NOINLINE void first(int n) { leaf(n); sink++; }
NOINLINE void second(int n) { leaf(n / 2); other(n); sink++; }
NOINLINE void third(int n) { for (int i = 0; i < n / 4; i++) sink += i; first(n / 3); sink++; }
NOINLINE void middle(int n) { down(n % 5, loops(2000)); other(loops(1500)); sink++; }
int main(void) {
  int i = 0;
  for_cpu_ms(300) {
    middle(i++); first(loops(900)); second(loops(700)); third(loops(1500));
    middle(i++); first(loops(900)); second(loops(700)); third(loops(1500));
  }
  return 0;
}
"#;

/// Rows of the test program. For other rows, perf 6.1 and 7.2 print unmapped addresses, which pmc omits, or
/// choose another name for the same address.
const OURS: [&str; 10] =
    ["leaf", "other", "down", "first", "second", "third", "middle", "main", "libc.so.6", "calls"];

/// Rows with their chains, sorted, because perf does not define the order of rows with equal cost.
fn blocks(report: &str) -> Vec<String> {
    let mut blocks: Vec<(bool, String)> = Vec::new();
    for line in report.lines().filter(|line| !line.starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        // A row begins with at most ten spaces, a chain with more, a folded chain with none.
        let is_row =
            (1..=10).contains(&indent) && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        match blocks.last_mut() {
            _ if is_row => {
                // perf 7.2 treats kernel functions that are callers as functions of the process.
                let is_ours = OURS.iter().any(|name| line.split_whitespace().last() == Some(name));
                // perf's column widths include rows that it does not print.
                let words: Vec<&str> = line.split_whitespace().collect();
                blocks.push((is_ours, words.join(" ")));
            }
            Some((_, block)) => *block = format!("{block}\n{line}"),
            None => {}
        }
    }
    let ours = blocks.into_iter().filter(|(is_ours, _)| *is_ours);
    let mut blocks: Vec<String> = ours.map(|(_, block)| block.trim_end().to_owned()).collect();
    blocks.sort();
    blocks
}

/// The same with flat and folded chains sorted, because perf does not define the order of chains with equal
/// cost.
fn sorted(block: &str, separator: &str) -> String {
    let (row, chains) = block.split_once('\n').unwrap_or((block, ""));
    let mut chains: Vec<&str> = chains.split(separator).collect();
    chains.sort_unstable();
    format!("{row}\n{}", chains.join(separator))
}

/// A tree's lines without the lines that connect them, sorted, if siblings have the same number. perf orders
/// equal siblings of different modules by memory address.
fn without_order_of_ties(block: &str) -> Option<Vec<&str>> {
    let mut branches: Vec<(usize, &str)> = Vec::new();
    for line in block.lines() {
        if let Some((rails, branch)) = line.split_once("--") {
            branches.push((rails.len(), branch.split_once("--").map_or(branch, |(amount, _)| amount)));
        }
    }
    let branch_count = branches.len();
    branches.sort_unstable();
    branches.dedup();
    if branches.len() == branch_count {
        return None;
    }
    let mut lines: Vec<&str> = block.lines().map(|line| line.trim_matches(['|', ' '])).collect();
    lines.sort_unstable();
    Some(lines)
}

#[track_caller]
fn agree(file: &Path, options: &[&str]) {
    let all = [&["report", "--stdio", "--no-inline"], options].concat();
    let pmc = kit::pmc().args(&all).arg("--no-cache").arg("-i").arg(file).output().expect("pmc starts");
    let ours = blocks(&kit::Ran::from(pmc).expect(0).stdout);
    assert!(ours.len() >= 2, "{options:?}: {ours:?}");
    let is = |shape: &str| options.iter().any(|option| option.contains(shape));
    for perf in oracle::perfs() {
        let file = file.to_str().expect("plain");
        let theirs = oracle::says(&perf, &[&all[..], &["-i", file]].concat());
        // perf 6.1 wrongly marks the omitted rest of a fractal tree as inlined.
        let theirs = blocks(&theirs.replace("[...] (inlined)", "[...]"));
        assert_eq!(theirs.len(), ours.len(), "{} {options:?}", perf.display());
        for (a, b) in theirs.iter().zip(&ours) {
            let (a, b) = match (is("flat"), is("folded")) {
                (true, _) => (sorted(a, "\n\n"), sorted(b, "\n\n")),
                (_, true) => (sorted(a, "\n"), sorted(b, "\n")),
                _ => (a.clone(), b.clone()),
            };
            let of_ties = (without_order_of_ties(&a), without_order_of_ties(&b));
            if matches!(&of_ties, (Some(a), Some(b)) if a == b) {
                continue;
            }
            assert_eq!(a, b, "{} {options:?}:\n{a}\n{b}", perf.display());
        }
    }
}

#[test]
fn call_chains_below_rows_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let calls = lab.build("calls", CALLS);
    let file = lab.path("calls.data");
    let mut pmc = kit::pmc();
    pmc.args(["record", "-q", "-g", "-e", "cpu-clock:u", "-F", "4000", "-o"]).arg(&file).arg("--").arg(calls);
    kit::Ran::from(pmc.output().expect("pmc starts")).expect(0);
    let all: &[&[&str]] = &[
        &[],
        &["-g"],
        &["-G", "--no-children"],
        &["--no-children"],
        &["-g", "caller"],
        &["-g", "callee"],
        &["-g", "none"],
        &["-g", "fractal"],
        &["-g", "flat"],
        &["-g", "folded"],
        &["-g", "graph,5,callee"],
        &["-g", "graph,0,caller,period"],
        &["-g", "fractal,1,callee,count"],
        &["-g", "fractal,0.5,2", "-n"],
        &["-g", "graph,0.5,2"],
        &["--no-children", "-g"],
        &["--no-children", "-g", "fractal"],
        &["--no-children", "-g", "flat,callee"],
        &["--no-children", "-g", "folded,count"],
        &["--percent-limit", "3"],
        &["-s", "sym"],
        &["-s", "sym", "--no-children", "-g", "fractal"],
        &["-s", "comm,dso"],
        &["-s", "comm,dso", "-g", "callee"],
        &["-F", "overhead,sym", "--no-children"],
    ];
    all.iter().for_each(|options| agree(&file, options));

    let file = file.to_str().expect("plain");
    let report = |options: &[&str]| {
        kit::run(&[&["report", "--stdio", "--no-cache", "-i", file], options].concat()).expect(0).stdout
    };
    // `--tree` prints one tree of all samples instead. A table of fields has chains only on request.
    let tree = report(&["--tree"]);
    assert!(tree.contains("\n# Call tree, caller first") && !tree.contains("---"), "{tree}");
    let fields = ["-t", ";", "-s", "sym"];
    assert!(!report(&fields).contains("---"));
    let folded = report(&[&fields[..], &["-g", "folded"]].concat());
    assert!(folded.lines().any(|line| line.contains("% ") && line.contains("main;middle;down")), "{folded}");
}
