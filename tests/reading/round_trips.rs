//! Exports that pmc reads again: the table "Round trips" of docs/import.md states what each format keeps, and
//! this test measures it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::imports::theirs;
use crate::kit;

/// A profile with three events, of which one has a unit, two processes, threads, kernel code, inlined functions, code without names,
/// recursion and names with spaces.
const PROFILE: &str = "\
io worker  7/8  [000]  1.000001:  1000000 cpu-clock:u:
\tffffffff81000010 vfs_read+0x1 ([kernel.kallsyms])
\t    55d000000010 read_all (inlined)
\t    55d000000010 parse+0x1 (/usr/bin/app)
\t    55d000000018 parse+0x2 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)

web  9/9  [001]  1.500000:  3000000 cpu-clock:u:
\t    7f1200000010 [unknown] (/usr/lib/libz.so.1)
\t    55d000000020 main+0x1 (/usr/bin/app)

web  9/9  [001]  2.400000:  4096 heap (bytes):
\t    55d000000028 std::vector<int, a>::push(int const&)+0x1 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)

web  9/9  [001]  2.500000:  250 page-faults:u:
\t    55d000000028 std::vector<int, a>::push(int const&)+0x1 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)

io worker  7/8  [000]  2.750000:  1000000 cpu-clock:u:
\t    55d000000030 parse+0x9 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)

io worker  7/8  [000]  3.000000:  1000000 cpu-clock:u:
\t    55d000000030 parse+0x9 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)
";

/// The columns of the table, with the command whose output must be the same before and after.
const COLUMNS: [(&str, &[&str]); 8] = [
    ("own costs", &["report", "--csv", "--no-children", "-F", "period,sym"]),
    ("events", &["evlist"]),
    ("callers", &["export", "-q", "--format", "folded", "-o", "-"]),
    ("modules", &["report", "--csv", "--no-children", "-F", "dso,sym"]),
    ("kernel mode", &["report", "--csv", "--no-children", "-F", "sym"]),
    ("numbers of samples", &["report", "--csv", "--no-children", "-F", "sample,sym"]),
    ("threads", &["report", "--csv", "--no-children", "-F", "comm,tid"]),
    ("times", &["script", "-F", "time"]),
];

/// The formats that pmc writes and reads.
const FORMATS: [&str; 5] = ["folded", "pprof", "speedscope", "firefox", "callgrind"];

/// Output of a command, without what other columns show.
fn shown(column: &str, words: &[&str], file: &Path) -> String {
    let words = [words, &["-i", file.to_str().unwrap()]].concat();
    let mut text = kit::run(&words).expect(0).stdout;
    if column != "kernel mode" {
        text = text.replace("[k] ", "[.] ");
    }
    match words[0] {
        "report" => rows_of_first_event(&text),
        "script" => times_from_the_first(&text),
        _ => text,
    }
}

/// Returns the rows of the first event in a CSV document, sorted, because equal rows may change places.
fn rows_of_first_event(text: &str) -> String {
    let mut rows = text.lines().skip(1).filter_map(|line| line.split_once(',')).peekable();
    let first = rows.peek().map(|(event, _)| *event);
    let mut rows: Vec<&str> = rows.filter(|(event, _)| Some(*event) == first).map(|(_, row)| row).collect();
    rows.sort_unstable();
    rows.join("\n")
}

/// Returns the microseconds from the first sample to each sample.
fn times_from_the_first(text: &str) -> String {
    let time = |line: &str| line.trim().trim_end_matches(':').replace('.', "").parse::<u64>().ok();
    let times: Vec<u64> = text.lines().filter_map(time).collect();
    times.iter().map(|time| format!("{}\n", time - times[0])).collect()
}

/// Returns the cells of the table's row for a format: "yes" or "no".
fn measured(format: &str) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let [ours, first, second] = ["ours.txt", "first", "second"].map(|name| folder.path().join(name));
    fs::write(&ours, PROFILE).unwrap();
    for (from, to) in [(&ours, &first), (&first, &second)] {
        let paths = [from, to].map(|path| path.to_str().unwrap());
        kit::run(&["export", "-q", "--format", format, "-o", paths[1], paths[0]]).expect(0);
    }
    let cells = COLUMNS.iter().map(|(what, words)| {
        let [before, after, again] = [&ours, &first, &second].map(|file| shown(what, words, file));
        if before == after && after == again { "yes" } else { "no" }
    });
    cells.collect()
}

#[test]
fn table_states_what_each_format_keeps() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/import.md")).unwrap();
    let table = page.split("## Round trips").nth(1).expect("docs/import.md has the section");
    let row = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = table.lines().filter(|line| line.starts_with('|')).map(row);
    let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
    let heading: Vec<String> = std::iter::once("format".to_owned()).chain(names).collect();
    let head = lines.next().unwrap();
    assert_eq!(head[..heading.len()], heading[..], "the columns of the table");
    let stated: Vec<Vec<String>> = lines.skip(1).take(FORMATS.len()).collect();
    let mut differing = Vec::new();
    for (format, stated) in FORMATS.iter().zip(&stated) {
        let cells: Vec<&str> = std::iter::once(*format).chain(measured(format)).collect();
        if cells != stated[..cells.len()] {
            differing.push(format!("| {} |", cells.join(" | ")));
            continue;
        }
        let has_loss = cells.contains(&"no");
        assert_eq!(has_loss, stated.get(cells.len()).is_some_and(|reason| !reason.is_empty()), "{stated:?}");
    }
    assert!(differing.is_empty(), "docs/import.md must state:\n{}", differing.join("\n"));
}

/// The events of a Go heap profile count objects and bytes. Their names, units and sums survive.
#[test]
fn events_with_units_survive() {
    let original = theirs("go.heap.pb.gz");
    let folder = tempfile::tempdir().unwrap();
    let exported = folder.path().join("exported");
    let path = exported.to_str().unwrap();
    let sums = |file: &Path| {
        let text =
            kit::run(&["report", "--stdio", "-g", "none", "-i", file.to_str().unwrap()]).expect(0).stdout;
        let mut sums = BTreeMap::new();
        for part in text.split(" of event '").skip(1) {
            let (event, rest) = part.split_once('\'').unwrap();
            let sum = rest.split_once("(approx.): ").unwrap().1.lines().next().unwrap();
            sums.insert(event.to_owned(), sum.to_owned());
        }
        sums
    };
    let expected = sums(&original);
    assert_eq!(expected.len(), 4, "{expected:?}");
    for format in ["pprof", "speedscope", "firefox", "callgrind"] {
        kit::run(&["export", "-q", "--format", format, "-o", path, original.to_str().unwrap()]).expect(0);
        let got = sums(&exported);
        assert!(got.keys().eq(expected.keys()), "{format}: {got:?}");
        for (event, sum) in &expected {
            // The weights of the Firefox Profiler are times, bytes, or numbers of samples.
            let is_kept = format != "firefox" || event.ends_with("(bytes)");
            assert!(!is_kept || got[event] == *sum, "{format}: {event} {sum}, {got:?}");
        }
    }
    let script = kit::run(&["script", "-i", original.to_str().unwrap()]).expect(0).stdout;
    fs::write(&exported, script).unwrap();
    assert_eq!(sums(&exported), expected);
    // Pictures name the unit, and so does pprof.
    let image =
        kit::run(&["export", "-q", "--format", "svg", "-o", "-", original.to_str().unwrap()]).expect(0);
    assert!(image.stdout.contains(" bytes, ") && !image.stdout.contains("occurrences"));
}
