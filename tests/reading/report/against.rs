//! What perf and pmc say of the same recording, held against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::kit::{self, oracle};

/// Shares by (comm, dso, symbol): total, own.
pub(crate) type Shares = BTreeMap<(String, String, String), (f64, f64)>;

/// perf's table, event by event; unresolved addresses of a module are one row, as pmc has them.
pub(crate) fn perf_report(file: &Path, children: bool) -> BTreeMap<String, Shares> {
    let fields = if children { "overhead_children,overhead,comm,dso,sym" } else { "overhead,comm,dso,sym" };
    let with = if children { "--children" } else { "--no-children" };
    let text = oracle::perf_of(
        file,
        &[
            "report",
            "--stdio",
            "--no-group",
            "--no-inline",
            "-g",
            "none",
            "-t",
            "\t",
            "-F",
            fields,
            with,
            "--percent-limit",
            "0",
        ],
    );
    let mut events: BTreeMap<String, Shares> = BTreeMap::new();
    let mut event = String::new();
    for line in text.lines() {
        if let Some((_, names)) = line.split_once(" of event").filter(|_| line.starts_with("# Samples")) {
            // `of events 'a, b'` heads the leader's table.
            event = names.split('\'').nth(1).unwrap_or("").split(',').next().unwrap_or("").to_owned();
            events.entry(event.clone()).or_default();
        } else if !line.starts_with('#') && !line.is_empty() {
            let words: Vec<&str> = line.split('\t').map(str::trim).collect();
            let percent = |word: &str| word.trim_end_matches('%').parse::<f64>().unwrap_or(0.0);
            let (total, rest) = if children { (percent(words[0]), &words[1..]) } else { (0.0, &words[..]) };
            let symbol = match rest[3].split_once("] ") {
                Some((level, address))
                    if address.trim_start_matches("0x").len() == 16
                        && address.trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    format!("{level}] [unknown]")
                }
                _ => rest[3].to_owned(),
            };
            let key = (rest[1].to_owned(), rest[2].to_owned(), told(&symbol));
            let row = events.entry(event.clone()).or_default().entry(key).or_default();
            *row = (row.0 + total, row.1 + percent(rest[0]));
        }
    }
    events
}

pub(crate) fn pmc_json(file: &Path, options: &[&str]) -> Value {
    let mut args = vec!["report", "--json", "--no-cache", "-i", file.to_str().expect("a plain path")];
    args.extend(options);
    let ran = kit::run(&args).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

pub(crate) fn shares(event: &Value) -> Shares {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or("").to_owned();
    let rows = event["rows"].as_array().expect("rows");
    let share = |row: &Value, name: &str| row[name]["percent"].as_f64().unwrap_or(0.0);
    let key = |row: &Value| {
        let symbol = format!("[{}] {}", text(row, "level"), text(row, "sym"));
        (text(row, "comm"), text(row, "dso"), told(&symbol))
    };
    let mut all = Shares::new();
    for row in rows {
        let sum = all.entry(key(row)).or_default();
        *sum = (sum.0 + share(row, "total"), sum.1 + share(row, "self"));
    }
    all
}

/// Compares both tables of a recording. Names in code that others build (demangled differently) are left to the symbol tests.
#[track_caller]
pub(crate) fn agree(file: &Path, comms: &[&str]) {
    let ours_whole = pmc_json(file, &["--no-inline", "--no-children", "-g", "none"]);
    let of_event = |document: &Value, name: &str| {
        let events = document["events"].as_array().expect("events");
        events
            .iter()
            .find(|event| event["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no event {name}"))
    };
    let mut compared = 0;
    for (name, theirs) in perf_report(file, false) {
        let ours = shares(&of_event(&ours_whole, &name));
        for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            if !comms.is_empty() && !comms.contains(&key.0.as_str()) {
                continue;
            }
            let (a, b) = (theirs.get(key).map_or(0.0, |r| r.1), ours.get(key).map_or(0.0, |r| r.1));
            assert!((a - b).abs() <= 0.1, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "{}: nothing to compare", file.display());
}

/// The same for the shares with children, of perf's top 20.
#[track_caller]
pub(crate) fn children_agree(file: &Path) {
    let ours_whole = pmc_json(file, &["--no-inline"]);
    for (name, theirs) in perf_report(file, true) {
        let event = ours_whole["events"].as_array().expect("events").iter().find(|e| e["name"] == *name);
        let ours = shares(event.expect("the event is there"));
        let mut top: Vec<_> = theirs.iter().collect();
        top.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        for (key, (a, _)) in top.into_iter().take(20) {
            // perf looks a return address up as it is, and so finds the function behind a call that never returns.
            if key.1.starts_with("ld-linux") || key.2.ends_with("[unknown]") {
                continue;
            }
            let b = ours.get(key).map_or(0.0, |row| row.0);
            assert!((a - b).abs() <= 0.5, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
        }
    }
}

/// perf says samples and occurrences as `# Samples: 1K`, so the exact sums come from its script.
pub(crate) fn perf_sums(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in oracle::perf_of(file, &["script", "-G", "-F", "event,period"]).lines() {
        let mut words = line.split_whitespace();
        let (Some(period), Some(event)) = (words.next(), words.next()) else { continue };
        let sum = sums.entry(event.trim_end_matches(':').to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + period.parse::<u64>().expect("a period"));
    }
    sums
}

#[track_caller]
pub(crate) fn totals_agree(file: &Path) {
    let document = pmc_json(file, &["--no-inline"]);
    let theirs = perf_sums(file);
    assert!(!theirs.is_empty());
    for event in document["events"].as_array().expect("events") {
        let name = event["name"].as_str().expect("a name");
        let ours = (event["samples"].as_u64().expect("a count"), event["period"].as_u64().expect("a sum"));
        assert_eq!(ours, theirs.get(name).copied().unwrap_or_default(), "{}: {name}", file.display());
    }
    let samples: u64 = theirs.values().map(|(samples, _)| samples).sum();
    assert_eq!(document["trust"]["samples"].as_u64(), Some(samples));
}

pub(crate) fn script(program: &str, file: &Path, options: &[&str]) -> String {
    let all = [&["script"], options].concat();
    if program == "perf" {
        return oracle::perf_of(file, &all);
    }
    let run = kit::pmc().args(all).arg("-i").arg(file).output().expect("pmc starts");
    String::from_utf8(run.stdout).expect("text")
}

/// A symbol as both tell it: perf knows no names for the stubs of functions that are chosen at run time (`[.] @plt`).
fn told(symbol: &str) -> String {
    if symbol.ends_with("@plt") { "a stub".to_owned() } else { unversioned(symbol) }
}

/// The line without the version behind a symbol: of two versions at one address either name is right.
pub(crate) fn unversioned(line: &str) -> String {
    match line.split_once('@') {
        Some((name, rest)) => format!("{name}{}", rest.trim_start_matches(|c: char| c != '+' && c != ' ')),
        None => line.to_owned(),
    }
}

#[track_caller]
pub(crate) fn scripts_agree(file: &Path, options: &[&str]) {
    let (theirs, ours) = (script("perf", file, options), script("pmc", file, options));
    assert!(!theirs.is_empty(), "{}: perf script {options:?} prints nothing", file.display());
    for (number, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(unversioned(a), unversioned(b), "{} {options:?}: line {}", file.display(), number + 1);
    }
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{} {options:?}", file.display());
}
