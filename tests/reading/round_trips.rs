//! Exports that pmc reads again: the table "Round trips" of docs/import.md states what each format keeps, and
//! this test measures it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::path::Path;

use crate::kit;

/// A profile with two events, two processes, threads, kernel code, inlined functions, code without names,
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
