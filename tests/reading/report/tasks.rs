//! `--tasks` and `--mmaps` against perf: threads below their parents, and the mappings of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::lab::{Lab, MANY};
use crate::kit::{self, oracle};

/// The rows of tasks, and the mappings of each process.
fn listed(text: &str) -> (BTreeSet<String>, BTreeMap<i32, BTreeSet<String>>) {
    let (mut tasks, mut maps) = (BTreeSet::new(), BTreeMap::<i32, BTreeSet<String>>::new());
    let mut process = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once('|') {
            Some((numbers, _)) => {
                tasks.insert(line.to_owned());
                process = numbers.split_whitespace().next().unwrap().parse().unwrap();
            }
            None => {
                maps.entry(process).or_default().insert(line.trim().to_owned());
            }
        }
    }
    (tasks, maps)
}

#[track_caller]
fn agrees(file: &Path, perf: &Path, least: usize) {
    let ask = |tool: &Path| oracle::says(tool, &["report", "--mmaps", "-i", file.to_str().unwrap()]);
    let text = kit::run(&["report", "--mmaps", "-i", file.to_str().unwrap()]).expect(0).stdout;
    let (theirs, ours) = (listed(&ask(perf)), listed(&text));
    // perf 6.1 indents by one column less.
    if perf != Path::new("perf") {
        assert_eq!(ours.0, theirs.0, "{text}");
    }
    // perf 7.2 prints `s` for every mapping with any flag. It has no build ID for the vdso.
    let plain = |map: &String| map.replacen("s ", "p ", 1);
    let files = |maps: &BTreeSet<String>| -> BTreeSet<String> {
        maps.iter().filter(|map| map.contains(" /")).map(plain).collect()
    };
    for (process, maps) in &ours.1 {
        let (ours, theirs) = (files(maps), files(&theirs.1[process]));
        // perf keeps the mappings that an exec removed.
        assert!(ours.len() >= least && ours.is_subset(&theirs), "{process}:\n{ours:#?}\n{theirs:#?}");
    }
    assert!(ours.1.len() >= 6, "{text}");
}

#[test]
fn mappings_have_access_and_inode() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let record = |name, options: &[&str]| {
        lab.record(name, &[&["-e", "task-clock"], options].concat(), &[many.to_str().unwrap()], false)
    };
    let (code, data) = (record("code", &[]), record("data", &["-d"]));
    for perf in oracle::perfs() {
        agrees(&code, &perf, 3);
        agrees(&data, &perf, 10);
    }
    let text = kit::run(&["report", "--mmaps", "-i", data.to_str().unwrap()]).expect(0).stdout;
    for access in [" r-xp ", " r--p ", " rw-p "] {
        assert!(text.lines().any(|line| line.contains(access) && line.ends_with("/many")), "{text}");
    }
    // If the recording has build IDs instead of inodes, the newest perf prints them.
    if let Some(perf) = oracle::perfs().get(1) {
        agrees(&record("ids", &["--buildid-mmap"]), perf, 3);
    }
}
