//! `pmc report` and `pmc script` against perf: both read recordings that the installed perf made.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::kit;

mod against;
mod branches;
mod code;
mod convert;
mod dump;
mod everywhere;
mod hostile;
mod inject;
mod lab;
mod latency;
mod options;
mod ours;
mod records;
mod script;
mod stitched;
mod streams;
mod tasks;
mod theirs;
mod under_rows;
mod unreadable;

use inferno::collapse::Collapse as _;
use std::collections::BTreeSet;
use std::path::Path;

use self::against::{pmc_json, script};
use self::lab::{DEEP, Lab, MANY};

#[test]
fn stackcollapse_reads_script_output() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("fp", &["-e", "cpu-clock", "-g"], &[deep.to_str().expect("plain")], false);
    let lines = script("pmc", &file, &[]);
    let mut folded = Vec::new();
    inferno::collapse::perf::Folder::default()
        .collapse(lines.as_bytes(), &mut folded)
        .expect("the lines are read");
    let folded = String::from_utf8_lossy(&folded);
    assert!(folded.lines().any(|line| line.contains("main;middle;") && line.contains("leaf")), "{folded}");
}

#[test]
fn tables_trees_and_filters_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let fp = lab.record("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], &[deep.to_str().unwrap()], false);
    let fp = fp.to_str().unwrap();
    let text = kit::run(&["report", "--stdio", "--tree", fp]).expect(0);
    let text = text.prints(&[
        "Children",
        "Self",
        "[.] leaf",
        "\n# Call tree, caller first",
        "\n# Trust: ",
        "none lost",
    ]);
    // In piped output, perf's columns are in perf's positions, and all other lines are comments.
    for line in text.stdout.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_share = |word: &str| word.strip_suffix('%').is_some_and(|n| n.parse::<f64>().is_ok());
        assert!(is_share(words[0]) && is_share(words[1]) && words[2] == "deep", "{line}");
    }
    let first =
        text.stdout.lines().filter(|line| !line.starts_with('#')).take(12).collect::<Vec<_>>().join("\n");
    assert!(first.contains("[.] down") && first.contains("[.] other"), "{first}");
    assert!(!text.stdout.contains('\u{1b}'));
    // The tree counts every sample once: self costs add up to the total.
    let document = pmc_json(Path::new(fp), &["--percent-limit", "0"]);
    let event = &document["events"][0];
    let (mut own, mut names) = (0, BTreeSet::new());
    for node in event["tree"]["nodes"].as_array().unwrap() {
        own += node["self"]["period"].as_u64().unwrap();
        names.insert(node["symbol"].as_str().unwrap());
    }
    assert_eq!(Some(own), event["period"].as_u64());
    assert!(names.contains("inlined") && names.contains("leaf"));
    let callee = pmc_json(Path::new(fp), &["-g", "callee"]);
    let top = &callee["events"][0]["tree"]["nodes"][0];
    assert!(["leaf", "other", "inlined"].contains(&top["symbol"].as_str().unwrap()), "{top}");
    assert_eq!(callee["events"][0]["tree"]["order"], "callee");
    let joined = kit::run(&["report", "--tree", "--collapse-recursion", "--no-inline", fp]).expect(0);
    let tree = joined.stdout.split("Call tree").nth(1).unwrap();
    assert!(!tree.contains("down › down"), "{tree}");

    let flat = lab.record("flat", &["-e", "task-clock", "-F", "4000"], &[many.to_str().unwrap()], false);
    let whole = pmc_json(&flat, &[]);
    let period = whole["events"][0]["period"].as_u64().unwrap();
    let only = pmc_json(&flat, &["--comms", "worker"]);
    let only = &only["events"][0];
    let filtered = only["filtered"]["period"].as_u64().unwrap();
    assert!(filtered > 0 && filtered < period && only["period"].as_u64() == Some(period), "{only}");
    let rows: u64 =
        only["rows"].as_array().unwrap().iter().map(|row| row["self"]["period"].as_u64().unwrap()).sum();
    assert_eq!(rows + filtered, period);
    let by_tid = pmc_json(&flat, &["-s", "pid,tid"]);
    let tids: BTreeSet<_> =
        by_tid["events"][0]["rows"].as_array().unwrap().iter().map(|r| r["tid"].as_i64()).collect();
    assert!(tids.len() >= 8, "three threads, five processes: {tids:?}");
    let csv =
        kit::run(&["report", "--csv", "-F", "overhead,sample,sym", "-i", flat.to_str().unwrap()]).expect(0);
    assert!(csv.stdout.starts_with("Event,Overhead,Samples,Symbol\ntask-clock,"), "{}", csv.stdout);
}

#[test]
fn unsupported_requests_are_explained() {
    kit::run(&["report", "-i", "/does/not/exist"]).expect(1).says(&["/does/not/exist", "ENOENT"]);
    kit::run(&["report", "-s", "symbl"]).expect(2).says(&["symbl", "did you mean", "symbol"]);
    kit::run(&["report", "-g", "upwards"]).expect(2).says(&["caller, callee or none"]);
    kit::run(&["script", "-i", "/dev/null"]).expect(1);
}
