//! Compares the text of `pmc trace` with strace's, call by call, for a program that makes many kinds of calls.
//!
//! Both trace the same run, so addresses, times and process ids are equal, too. strace delays the end of each
//! call, so that pmc reads memory that has not changed. Differences that are known, with their reasons, are in
//! `tests/data/trace`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::kit::{self, lab};

const PROGRAM: &str = include_str!("../data/trace/system-calls.c");
/// The start of each call that differs, and the reason.
const DIFFERENCES: &str = include_str!("../data/trace/differences-from-strace-6.1.tsv");
/// The version of strace for which the differences are listed.
const VERSION: &str = "6.1";
/// Minimum number of equal calls with any version of strace.
const LEAST_EQUAL: usize = 150;

/// The calls of each thread, in order.
type Calls = BTreeMap<u32, Vec<String>>;

/// Returns strace's lines. The two parts of an interrupted line are joined.
fn strace_calls(text: &str) -> Calls {
    let mut calls = Calls::new();
    let mut unfinished = BTreeMap::new();
    for line in text.lines() {
        let (tid, call) = line.split_once(' ').expect("a thread");
        let (tid, call) = (tid.parse().expect("a number"), call.trim_start().replace(" (DELAYED)", ""));
        if call.starts_with("---") || call.starts_with("+++") {
            continue;
        }
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(tid, begin.to_owned());
            continue;
        }
        let call = match call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, end)) => unfinished.remove(&tid).expect("the begin of a call") + end,
            None => call,
        };
        // strace aligns the results.
        let (call, result) = call.rsplit_once(" = ").expect("a result");
        calls.entry(tid).or_default().push(format!("{} = {result}", call.trim_end()));
    }
    calls
}

/// Returns pmc's lines without times, names of descriptors and marks.
fn pmc_calls(text: &str) -> Calls {
    let mut calls = Calls::new();
    for line in text.lines() {
        let (_, call) = line.split_once("): ").expect("a time");
        let (thread, call) = call.split_once(' ').expect("a thread");
        let tid = thread.rsplit('/').next().and_then(|tid| tid.parse().ok()).expect("a thread id");
        calls.entry(tid).or_default().push(without_marks(call));
    }
    calls
}

/// Removes `~` where it marks memory, and the names of descriptors. Strings are not changed.
fn without_marks(call: &str) -> String {
    let mut plain = String::new();
    let (mut is_string, mut depth, mut rest) = (false, 0, call);
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        rest = after;
        match next {
            '\\' if is_string => {
                plain.push(next);
                plain.extend(after.chars().next());
                rest = &after[1..];
                continue;
            }
            '"' => is_string = !is_string,
            _ if is_string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '<' if plain.ends_with(|before: char| before.is_ascii_digit()) => {
                rest = &after[after.find('>').expect("the end of a name") + 1..];
                continue;
            }
            // The mark of a set of signals follows it. A `~` before the set inverts it.
            '~' if depth == 0 && (plain.ends_with(']') || !is_signal_set(after)) => continue,
            _ => {}
        }
        plain.push(next);
    }
    plain
}

fn is_signal_set(text: &str) -> bool {
    text.starts_with('[') && text.split_once(']').is_some_and(|(_, after)| after.starts_with('~'))
}

/// Returns each call of the program with strace's and pmc's text.
fn compared(folder: &Path) -> Vec<(String, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let (ours, theirs) = (path("pmc"), path("strace"));
    let strace = ["strace", "-f", "--inject=all:delay_exit=20000", "-o", &theirs, "./system-calls"];
    let mut pmc = kit::pmc();
    pmc.args(["trace", "-m", "64M", "-o", &ours, "--"]).args(strace).current_dir(folder);
    let ran = kit::Ran::from(pmc.output().expect("pmc starts")).expect(0);
    assert!(!ran.stderr.contains("lost"), "{}", ran.stderr);
    let read = |path: &str| std::fs::read_to_string(path).expect("a trace");
    let (strace, mut pmc) = (strace_calls(&read(&theirs)), pmc_calls(&read(&ours)));
    let mut pairs = Vec::new();
    for (tid, theirs) in strace {
        let mut ours = pmc.remove(&tid).expect("calls of the same thread");
        if theirs[0].starts_with("execve(") {
            // Before that, the thread runs strace's own code.
            let begin = ours.iter().position(|call| call.starts_with("execve(")).expect("the program starts");
            ours.drain(..begin);
        }
        assert_eq!(theirs.len(), ours.len(), "calls of thread {tid}: {theirs:#?}\n{ours:#?}");
        pairs.extend(theirs.into_iter().zip(ours));
    }
    pairs
}

/// Returns the table of calls, the number of equal calls, and what the list of differences lacks or has too
/// much.
fn judged(pairs: &[(String, String)]) -> (String, usize, Vec<String>) {
    let mut table = String::new();
    let mut known: Vec<(&str, &str, bool)> = DIFFERENCES
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(call, why)| (call, why, false))
        .collect();
    let (mut equal, mut wrong) = (0, Vec::new());
    for (strace, pmc) in pairs {
        if strace == pmc {
            equal += 1;
            let _ = writeln!(table, "equal    {strace}");
            continue;
        }
        let why = known.iter_mut().find(|(start, ..)| strace.starts_with(start)).map(|known| {
            known.2 = true;
            known.1
        });
        let _ = writeln!(table, "differs  {strace}\n    pmc: {pmc}\n    why: {}", why.unwrap_or("unknown"));
        if why.is_none() {
            wrong.push(format!("differs: {strace}\n    pmc: {pmc}"));
        }
    }
    for (start, _, was_seen) in known {
        if !was_seen {
            wrong.push(format!("is equal now, so remove it from the list: {start}"));
        }
    }
    (table, equal, wrong)
}

fn has_static_libc() -> bool {
    let found = Command::new("gcc").arg("-print-file-name=libc.a").output();
    found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_absolute())
}

#[test]
fn calls_read_like_those_of_strace() {
    let is_x86 = cfg!(target_arch = "x86_64");
    if !kit::need("x86-64", is_x86, "the program makes calls that only x86-64 has")
        || !kit::need_program("gcc")
        || !kit::need_program("strace")
        || !kit::need("libc.a", has_static_libc(), "there is no static C library")
        || !kit::need_root()
        || !kit::need_kernel_mode()
        || !kit::need_tracefs("raw_syscalls")
    {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A static program makes few calls before `main`.
    lab::build(folder.path(), "system-calls", PROGRAM, &["-static", "-O1", "-w"]);
    let version = Command::new("strace").arg("-V").output().expect("strace starts").stdout;
    let is_listed =
        String::from_utf8_lossy(&version).lines().next().is_some_and(|line| line.ends_with(VERSION));
    let pairs = compared(folder.path());
    let (table, equal, wrong) = judged(&pairs);
    println!("{table}{equal} of {} calls are equal", pairs.len());
    assert!(equal >= LEAST_EQUAL, "{equal} of {} calls are equal\n{table}", pairs.len());
    assert!(wrong.is_empty() || !is_listed, "{}", wrong.join("\n"));
}

#[test]
fn unlisted_and_repaired_differences_are_found() {
    let pair = |strace: &str, pmc: &str| (strace.to_owned(), pmc.to_owned());
    let (table, equal, wrong) = judged(&[pair("a() = 0", "a() = 0"), pair("b() = 0", "b(1) = 0")]);
    assert_eq!((equal, wrong.len()), (1, 1 + DIFFERENCES.lines().count()), "{wrong:?}");
    assert!(wrong[0].contains("pmc: b(1) = 0") && wrong[1].starts_with("is equal now"), "{wrong:?}");
    assert!(table.starts_with("equal    a() = 0\ndiffers  b() = 0\n"), "{table}");
}

#[test]
fn marks_are_removed_and_inverted_sets_kept() {
    let call = r#"rt_sigprocmask(SIG_BLOCK, ~[RTMIN]~, [HUP]~, 8) = 0"#;
    assert_eq!(without_marks(call), "rt_sigprocmask(SIG_BLOCK, ~[RTMIN], [HUP], 8) = 0");
    let call = r#"x(3<~/a b>, ~"~\"<1>", ~{sa_mask=~[], f=1}, ~[4, 5], ~0x7 /* 1 var */) = 1 (in ~[3])"#;
    let plain = r#"x(3, "~\"<1>", {sa_mask=~[], f=1}, [4, 5], 0x7 /* 1 var */) = 1 (in [3])"#;
    assert_eq!(without_marks(call), plain);
}
