//! `pmc annotate` against `perf annotate`, `objdump` and programs with known costs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use crate::kit;

use crate::kit::{burn::burn_flags, lab, oracle};

mod disassembler;
mod elsewhere;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::Lab;
use serde_json::Value;

/// Three functions that take 50, 30 and 20 % of the time. In `fifty` one line takes nearly all of it.
const SHARES: &str = r#"
__attribute__((noinline)) void fifty(long n) {
    sink += 1;
    sink += chain(sink, 50 * n); /* hot */
    sink += 2;
}
__attribute__((noinline)) void thirty(long n) { sink += chain(sink, 30 * n); }
__attribute__((noinline)) void twenty(long n) { sink += chain(sink, 20 * n); }
int main(void) {
    for_cpu_ms(500) { long n = uneven(); fifty(n); thirty(n); twenty(n); }
    return 0;
}
"#;

const FLAGS: [&str; 2] = ["-O1", "-g"];

fn shares(lab: &Lab) -> PathBuf {
    lab.build("shares", &[lab::CHAIN, SHARES].concat(), &FLAGS)
}

fn annotate(file: &Path, options: &[&str]) -> kit::Ran {
    let mut args = vec!["annotate", "--stdio2", "--no-cache", "-i", file.to_str().unwrap()];
    args.extend(options);
    kit::run(&args)
}

fn json(file: &Path, options: &[&str]) -> Value {
    let ran = annotate(file, &[&["--json"], options].concat()).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no list {name}"))
}

/// Number of samples of the first event.
fn samples(item: &Value) -> u64 {
    item["costs"][0]["samples"].as_u64().unwrap_or(0)
}

fn notes(function: &Value) -> String {
    list(function, "notes").iter().map(|note| note["text"].as_str().unwrap().to_owned() + "\n").collect()
}

#[test]
fn shares_per_function_and_line_are_correct() {
    let Some(lab) = Lab::new() else { return };
    let program = shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "5000"], &program);
    let document = json(&file, &["--functions", "0"]);
    assert_eq!(document["version"], 1);
    for (name, want) in [("fifty", 50.0), ("thirty", 30.0), ("twenty", 20.0)] {
        let function = list(&document, "functions").iter().find(|f| f["symbol"] == name).unwrap();
        let of = &function["events"][0]["function"];
        let (percent, error) = (of["percent"].as_f64().unwrap(), of["error"].as_f64().unwrap());
        // The interval contains the true value in 19 of 20 runs. Allow 1.5 points more for noise of the
        // machine.
        assert!((percent - want).abs() < 2.5 * error + 1.5, "{name}: {percent} ±{error}");
        assert!(error > 0.1 && error < 10.0, "{error}");
        // Every sample is attributed to exactly one instruction and one line.
        let own = of["samples"].as_u64().unwrap();
        assert_eq!(list(function, "instructions").iter().map(samples).sum::<u64>(), own, "{name}");
        assert_eq!(list(function, "lines").iter().map(samples).sum::<u64>(), own, "{name}");
    }
    let fifty = list(&document, "functions").iter().find(|f| f["symbol"] == "fifty").unwrap();
    let hottest = list(fifty, "lines").iter().max_by_key(|line| samples(line)).unwrap();
    assert!(hottest["text"].as_str().unwrap().contains("imul"), "{hottest}");
    // A sample that waits for the last multiplication may be attributed to the next instruction, which
    // belongs to the loop.
    assert!(hottest["costs"][0]["percent"].as_f64().unwrap() > 60.0, "{hottest}");
    let inlined = list(fifty, "instructions").iter().find(|i| i["mnemonic"] == "imul").unwrap();
    assert_eq!((&inlined["function"], &inlined["inlined"]), (&"chain".into(), &true.into()));
    assert_eq!(inlined["line"], hottest["line"]);

    let text = annotate(&file, &["fifty"]).expect(0);
    let text = text.prints(&[
        "fifty  in shares",
        "Costliest lines",
        "imul %0, %0",
        "chain (inlined):",
        "precise level 0",
        "±",
    ]);
    assert!(!text.stdout.contains('\u{1b}') && !text.stdout.contains("thirty  in"), "{}", text.stdout);
    assert!(text.stdout.contains('▸') && text.stdout.contains('╰'), "a loop has an arrow\n{}", text.stdout);
    // The report names inlined functions, too. Most of this function's cost is in `fifty`.
    annotate(&file, &["chain"])
        .expect(0)
        .prints(&["fifty  in shares", "chain is inlined into this function"]);
    annotate(&file, &["chain", "-d", "libc.so.6"]).expect(1).says(&["no function named"]);
    let source = annotate(&file, &["fifty", "--source-only"]).expect(0);
    let hot =
        source.stdout.lines().find(|line| line.contains('│') && line.contains("volatile(\"imul")).unwrap();
    assert!(hot.contains('%'), "{hot}");
    assert!(!source.stdout.contains("imul    %r"), "{}", source.stdout);
    let bare = annotate(&file, &["fifty", "--no-source", "-M", "intel", "--asm-raw", "-n"]).expect(0);
    bare.prints(&["48 0f af", "imul    r"])
        .stdout
        .contains("sink += 1")
        .then(|| panic!("source in spite of --no-source"));
    let window = annotate(&file, &["fifty", "--max-rows", "4"]).expect(0);
    let rows = window.stdout.lines().filter(|line| line.contains('│')).count();
    assert!(rows <= 4 && window.stdout.contains("imul"), "{}", window.stdout);
    let few = annotate(&file, &["--functions", "1"])
        .expect(0)
        .prints(&["fifty  in", "more functions have samples"]);
    assert!(!few.stdout.contains("thirty  in"));
    let above = annotate(&file, &["--functions", "0", "--percent-limit", "25"])
        .expect(0)
        .prints(&["fifty  in", "thirty  in"]);
    assert!(!above.stdout.contains("twenty  in"));
}

#[test]
fn line_shares_within_a_function_are_correct() {
    let Some(lab) = Lab::new() else { return };
    let source = r#"
#define ROUND __asm__ volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0" : "+r"(x));
__attribute__((noinline)) unsigned long work(unsigned long x, long n) {
    for (long i = 0; i < 50 * n; i++) { ROUND } /* 50 */
    for (long i = 0; i < 30 * n; i++) { ROUND } /* 30 */
    for (long i = 0; i < 20 * n; i++) { ROUND } /* 20 */
    return x;
}
int main(void) { for_cpu_ms(500) sink = work(sink, uneven()); return 0; }
"#;
    let program = lab.build("lines", &[lab::CHAIN, source].concat(), &FLAGS);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "5000"], &program);
    let document = json(&file, &["work"]);
    let text = annotate(&file, &["work", "--source-only"]).expect(0);
    for want in [50.0, 30.0, 20.0] {
        let mark = format!("/* {want} */");
        let line = list(&document["functions"][0], "lines")
            .iter()
            .find(|line| line["text"].as_str().is_some_and(|text| text.contains(&mark)))
            .unwrap();
        let cost = &line["costs"][0];
        let (percent, error) = (cost["percent"].as_f64().unwrap(), cost["error"].as_f64().unwrap());
        assert!((percent - want).abs() < 2.5 * error + 1.5, "{mark}: {percent} ±{error}");
        // The text shows the same percentages, rounded to one decimal place.
        let row = text.stdout.lines().find(|row| row.contains('│') && row.contains(&mark)).unwrap();
        let shown: f64 = row.split('%').next().and_then(|part| part.trim().parse().ok()).unwrap();
        assert!((shown - percent).abs() < 0.06, "{row}");
    }
}

/// perf's percentages by address.
fn perf_annotate(file: &Path, symbol: &str) -> BTreeMap<u64, f64> {
    let text = oracle::perf_of(file, &["annotate", "--stdio", "-s", symbol]);
    let line = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let percent: f64 = parts.next()?.trim().parse().ok()?;
        let address = u64::from_str_radix(parts.next()?.trim(), 16).ok()?;
        Some((address, percent))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn instruction_costs_match_perf_annotate() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    let program = shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock", "-F", "5000"], &program);
    for name in ["fifty", "thirty", "twenty"] {
        let theirs = perf_annotate(&file, name);
        assert!(theirs.len() > 5, "{name}: {theirs:?}");
        let document = json(&file, &[name]);
        let ours: BTreeMap<u64, f64> = list(&document["functions"][0], "instructions")
            .iter()
            .map(|i| (i["address"].as_u64().unwrap(), i["costs"][0]["percent"].as_f64().unwrap_or(0.0)))
            .collect();
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{name}");
        for (address, percent) in theirs {
            assert!(
                (percent - ours[&address]).abs() < 0.011,
                "{name} {address:x}: {percent} {}",
                ours[&address]
            );
        }
    }
}

#[test]
fn all_events_are_shown_side_by_side() {
    let Some(lab) = Lab::new() else { return };
    let source = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void touch(char *p, long n) {
    for (long i = 0; i < n; i += 4096)
        p[i] = 1;
}
int main(void) {
    for (int i = 0; i < 60; i++) {
        char *p = aligned_alloc(4096, 8 << 20);
        touch(p, 8 << 20);
        free(p);
    }
    return 0;
}
"#;
    let program = lab.build("touch", source, &["-O1", "-g", "-fno-builtin"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock,page-faults", "-F", "5000"], &program);
    let document = json(&file, &["touch"]);
    let function = &document["functions"][0];
    let faults = function["events"]
        .as_array()
        .unwrap()
        .iter()
        .position(|event| event["name"] == "page-faults")
        .unwrap();
    // Only the store can fault.
    let faulting: Vec<&Value> =
        list(function, "instructions").iter().filter(|i| !i["costs"][faults].is_null()).collect();
    assert_eq!(faulting.len(), 1, "{faulting:?}");
    assert!(faulting[0]["mnemonic"].as_str().unwrap().starts_with("mov"), "{faulting:?}");
    assert_eq!(faulting[0]["costs"][faults]["percent"], 100.0);
    assert_eq!(function["events"][faults]["skid"], "interrupt");
}

/// Parses piped output: the values of all events by address.
fn rows(text: &str, columns: usize) -> BTreeMap<u64, Vec<f64>> {
    let row = |line: &str| {
        let (numbers, rest) = line.split_once(" : ")?;
        let (address, code) = rest.trim_start().split_once(':')?;
        let numbers: Vec<f64> = numbers.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let address = u64::from_str_radix(address, 16).ok()?;
        (numbers.len() == columns && !code.trim().is_empty()).then_some((address, numbers))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn pipe_output_rows_match_perf() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    let program = shares(&lab);
    let single = lab.record("single.data", &["-e", "cpu-clock:u", "-F", "2000"], &program);
    let group = lab.record("group.data", &["-e", "{cpu-clock:u,task-clock:u}", "-F", "2000"], &program);
    for (file, columns) in [(&single, 1), (&group, 2)] {
        for option in [&["-q"][..], &["-n"], &["--show-total-period"], &["--percent-type", "local-hits"]] {
            let name = file.to_str().unwrap();
            let asked = [&["annotate", "--stdio", "-i", name, "fifty"], option].concat();
            let ours = kit::run(&asked).expect(0).stdout;
            let ours_rows = rows(&ours, columns);
            assert!(ours_rows.len() > 5, "{ours}");
            for perf in oracle::perfs() {
                let theirs = oracle::says(&perf, &asked);
                assert_eq!(rows(&theirs, columns), ours_rows, "{}\n{theirs}\n{ours}", perf.display());
            }
        }
    }
    // Every other line is a heading or a comment, and the third word of a row is an address for `awk`.
    let text = kit::run(&["annotate", "-i", single.to_str().unwrap()]).expect(0).stdout;
    assert!(text.contains("Disassembly of shares for cpu-clock:u (") && text.contains(" <fifty>:"), "{text}");
    let is_known = |line: &str| {
        line.starts_with(" Percent |")
            || line.starts_with("----")
            || line.starts_with('#')
            || line.contains(" : ")
    };
    assert!(text.lines().all(is_known), "{text}");
    // Events outside a group get a table each, except with `--group`.
    let two = lab.record("two.data", &["-e", "cpu-clock:u", "-e", "task-clock:u", "-F", "2000"], &program);
    let two = |option: &[&str]| {
        kit::run(&[&["annotate", "-i", two.to_str().unwrap(), "fifty"], option].concat()).expect(0).stdout
    };
    assert_eq!(two(&[]).matches("Disassembly of").count(), 2);
    assert!(rows(&two(&["--group"]), 2).len() > 5);
    // The listing with arrows and colours are available as options.
    assert!(two(&["--stdio2"]).contains('╰'));
    assert!(two(&["--stdio-color", "always"]).contains("\x1b[31m"));
}

#[test]
fn requested_symbols_and_sources_are_shown() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("g++") {
        return;
    }
    let source = "namespace ns { __attribute__((noinline)) long hot(long n) { long x = n; for (long i = 0; i < n; i++) {\n\
                  __asm__ volatile(\"imul %0, %0\" : \"+r\"(x)); } return x; } } // HERE\n\
                  int main() { long s = 0; for_cpu_ms(300) s += ns::hot(loops(100000)); return s == 1; }\n";
    std::fs::create_dir_all(lab.path("deep/src")).unwrap();
    std::fs::write(lab.path("deep/src/hot.cc"), source).unwrap();
    let program = lab.path("hot");
    let built = Command::new("g++")
        .args(burn_flags())
        .args(["-O1", "-g", "-o"])
        .arg(&program)
        .arg(lab.path("deep/src/hot.cc"))
        .status();
    assert!(built.unwrap().success());
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "2000"], &program);
    let file = file.to_str().unwrap();
    let annotated = |options: &[&str]| {
        kit::run(&[&["annotate", "-i", file, "ns::hot"], options].concat()).expect(0).stdout
    };
    assert!(annotated(&[]).contains("<ns::hot"), "{}", annotated(&[]));
    assert!(annotated(&["--no-demangle"]).contains("<_ZN2ns3hotEl>:"), "{}", annotated(&["--no-demangle"]));
    // Sources that moved: `--prefix` replaces the leading folders that `--prefix-strip` removes.
    std::fs::create_dir(lab.path("moved")).unwrap();
    std::fs::rename(lab.path("deep/src/hot.cc"), lab.path("moved/hot.cc")).unwrap();
    assert!(!annotated(&[]).contains("HERE"));
    let depth = lab.path("deep/src").components().count() - 1;
    let (depth, moved) = (depth.to_string(), lab.path("moved"));
    let prefixed = annotated(&["--prefix", moved.to_str().unwrap(), "--prefix-strip", &depth]);
    assert!(prefixed.contains("HERE"), "{prefixed}");
    // Functions of a missing program have no instructions.
    std::fs::rename(&program, lab.path("elsewhere")).unwrap();
    let all = kit::run(&["annotate", "-i", file, "--functions", "0", "--skip-missing", "--json"]).expect(0);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert!(list(&all, "functions").iter().all(|function| !function["bytes_from"].is_null()), "{all}");
}

#[test]
fn annotate_works_without_objdump_and_debug_lines() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("strip") {
        return;
    }
    let program = shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "2000"], &program);
    let with = annotate(&file, &["fifty"]).expect(0);
    let mut without = kit::pmc();
    let args = ["annotate", "--stdio2", "--no-cache", "-i", file.to_str().unwrap(), "fifty"];
    let without: kit::Ran = without.args(args).env("PATH", "").output().unwrap().into();
    assert_eq!(without.expect(0).stdout, with.stdout);

    let strip = Command::new("strip").arg("-g").arg(&program).status().unwrap();
    assert!(strip.success());
    let bare = json(&file, &["fifty"]);
    let function = &bare["functions"][0];
    assert!(list(function, "lines").is_empty());
    assert!(list(function, "instructions").iter().any(|i| i["mnemonic"] == "imul" && samples(i) > 0));
    assert!(notes(function).contains("no line information"), "{}", notes(function));
    annotate(&file, &["fifty"]).expect(0).prints(&["no source lines", "try: build it with -g"]);

    // Sources that are missing or changed.
    let program = shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "2000"], &program);
    std::fs::rename(lab.path("shares.c"), lab.path("gone.c")).unwrap();
    annotate(&file, &["fifty"]).expect(0).prints(&["shares.c: No such file", "--symfs", "imul"]);
    std::fs::write(lab.path("shares.c"), "// tab\there \u{1b}[2J\n".repeat(40)).unwrap();
    let changed = annotate(&file, &["fifty"]).expect(0).prints(&["was modified after the program was built"]);
    assert!(!changed.stdout.contains('\u{1b}'), "escape sequences of a source file");
}

#[test]
fn unavailable_annotations_are_explained() {
    let Some(lab) = Lab::new() else { return };
    let program = shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "2000"], &program);
    annotate(&file, &["fiftty"])
        .expect(1)
        .says(&["no function named \"fiftty\" has samples", "did you mean fifty?"]);
    annotate(&file, &["no\u{1b}[31msuch"]).expect(1).says(&["no?[31msuch"]);
    annotate(&file, &["fifty", "-d", "libc.so.6"]).expect(1).says(&["-d shares"]);
    annotate(&file, &["--percent-type", "all"]).expect(2);
    annotate(&file, &["-C", "x"]).expect(2).says(&["not a list of CPUs"]);
    annotate(&lab.path("missing"), &[]).expect(1).says(&["ENOENT"]);
    let global = json(&file, &["fifty", "--percent-type", "global-hits"]);
    let sum: f64 = list(&global["functions"][0], "instructions")
        .iter()
        .map(|i| i["costs"][0]["percent"].as_f64().unwrap_or(0.0))
        .sum();
    let whole = global["functions"][0]["events"][0]["function"]["percent"].as_f64().unwrap();
    assert!((sum - whole).abs() < 0.1, "{sum} {whole}");
    // pmc exits quietly when the reader closes the pipe early.
    let mut child = kit::pmc()
        .args(["annotate", "--functions", "0", "-i", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended: kit::Ran = child.wait_with_output().unwrap().into();
    assert_eq!((ended.clone().expect(0).stderr.as_str(), ended.stdout.as_str()), ("", ""));
    // Without the program there are no symbols, and the error says so.
    std::fs::remove_file(&program).unwrap();
    annotate(&file, &["fifty"]).expect(1).says(&["has samples"]);
}
