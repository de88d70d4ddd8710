//! Checks that each test named by `docs/heritage.md` and `docs/reliability.md` exists, and that each command in
//! `docs/heritage.md` parses.
//!
//! A row is `| original | with pmc | test |`. Quoted text in the second column that begins with the name of
//! one of our programs must parse as that program's command line. Event text must parse on one of the
//! recorded machines in `tests/data/sysfs`. The third column names tests as cargo prints them, after the name
//! of their binary (`unit` for tests in `src`). A row that begins with **No:** explains why Linux cannot
//! support the feature, and needs no test.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::CommandFactory as _;
use pmc::cli::Cli;
use pmc_compat::{netbsd, perfalloc, pmcstat, tprof};
use pmc_events::event;
use pmc_sys::host::Host;

use super::sources::{files, root, sources};

/// The systems, in the order of the page.
const SYSTEMS: [&str; 5] = [
    "## PCP's perfalloc and pmdaperfevent",
    "## perf_event_open(2)",
    "## FreeBSD's pmc_allocate and pmcstat",
    "## NetBSD's pmc(9), pmc(1) and tprof(8)",
    "## The persistent-events series",
];

/// Row of a table.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    /// Line number, from 1.
    line: usize,
    /// Trimmed columns.
    columns: Vec<&'a str>,
}

/// Returns the rows below a heading, without table headers and separator lines.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Row<'a>> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != heading).skip(1);
    let lines =
        lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    lines
        .map(|(at, line)| Row { line: at + 1, columns: columns(line) })
        .filter(|row| row.columns[0] != "original" && !row.columns[0].starts_with("---"))
        .collect()
}

/// Returns the columns between a row's bars; `\|` does not separate columns.
fn columns(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|');
    let ends = line.char_indices().filter(|(at, c)| *c == '|' && !line[..*at].ends_with('\\'));
    let mut from = 0;
    ends.map(|(end, _)| std::mem::replace(&mut from, end + 1)..end).map(|range| line[range].trim()).collect()
}

/// Returns the quoted parts (in backticks) of a column.
fn quoted(column: &str) -> impl Iterator<Item = String> + '_ {
    column.split('`').skip(1).step_by(2).map(|quoted| quoted.replace("\\|", "|"))
}

/// Returns the package's tests as cargo prints them, after the name of their binary.
fn tests(root: &Path) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let unit = sources(root).into_iter().map(|source| (Path::new("unit").join(source.path), source.text));
    for (path, text) in files(&root.join("tests"), "rs").into_iter().chain(unit) {
        let below = path.with_extension("");
        let words = below.iter().filter_map(|word| word.to_str());
        let words = words.filter(|word| !["main", "lib", "mod"].contains(word)).collect::<Vec<_>>();
        tests.extend(tests_of(&words.join("::"), &text));
    }
    tests
}

/// Returns the tests of one file, including those inside proptest macros, which a Rust parser does not see.
fn tests_of(module: &str, text: &str) -> Vec<String> {
    let (mut inner, mut is_test, mut tests) = (String::new(), false, Vec::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            inner = format!("{name}::");
        } else if line == "}" {
            inner.clear();
        }
        is_test |= line.trim() == "#[test]";
        let function = line.trim().trim_start_matches("pub ").strip_prefix("fn ");
        if let Some((name, _)) = function.filter(|_| is_test).and_then(|rest| rest.split_once(['(', '<'])) {
            tests.push(format!("{module}::{inner}{name}"));
            is_test = false;
        }
    }
    tests
}

/// Splits a command into words as a shell would.
pub(super) fn words(command: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => {
                words.extend(word.take());
                continue;
            }
            _ => {
                word.get_or_insert_default().push(letter);
                continue;
            }
        }
        word.get_or_insert_default();
    }
    words.extend(word);
    words.into_iter().map(OsString::from).collect()
}

/// Returns the fault in a command, if the command begins with one of our program names and has a fault.
fn fault(command: &str, hosts: &[Host]) -> Option<String> {
    let words = words(command);
    let (program, rest) = words.split_first()?;
    match program.to_str()? {
        "perfalloc" => match perfalloc::parse(rest.to_vec(), false) {
            perfalloc::CommandLine::Wrong(wrong) => Some(wrong),
            _ => None,
        },
        "pmcstat" => pmcstat::options::CommandLine::parse(rest.to_vec()).err(),
        "tprof" => tprof::CommandLine::parse(rest.to_vec()).err(),
        "pmc" if netbsd::parse(rest).is_some() => netbsd::parse(rest)?.err().map(str::to_owned),
        "pmc" => {
            let mut words = words;
            // Commands of two words.
            if words.get(1).is_some_and(|word| word == "stat")
                && let Some(second) = words.get(2).filter(|word| *word == "record" || *word == "report")
            {
                words[1] = ["stat-", second.to_str()?].concat().into();
                words.remove(2);
            }
            let matches = match Cli::command().try_get_matches_from(words) {
                Err(answer) if answer.use_stderr() => return Some(answer.to_string()),
                Err(_) => return None,
                Ok(matches) => matches,
            };
            let (_, typed) = matches.subcommand()?;
            let events = typed.try_get_many::<String>("events").ok().flatten()?;
            events.filter_map(|text| unread(text, hosts)).next()
        }
        _ => None,
    }
}

/// Returns the fault in event text that does not parse on any of these machines.
fn unread(text: &str, hosts: &[Host]) -> Option<String> {
    let mut faults = hosts.iter().map(|host| event::parse(text, host));
    if faults.any(|read| read.is_ok()) {
        return None;
    }
    let fault = event::parse(text, hosts.first()?).err()?;
    Some(format!("no saved machine reads the event {text}: {}", fault.message))
}

/// Returns the faults of these rows, one line each.
fn faults(rows: &[Row<'_>], tests: &BTreeSet<String>, hosts: &[Host]) -> Vec<String> {
    let mut faults = Vec::new();
    for Row { line, columns } in rows {
        let mut wrong = |what: String| faults.push(format!("docs/heritage.md:{line}: {what}"));
        let &[there, with, proof] = columns.as_slice() else {
            wrong(format!("{} columns, not three", columns.len()));
            continue;
        };
        if there.is_empty() || with.is_empty() {
            wrong("an empty column".into());
        }
        for command in quoted(with) {
            if let Some(fault) = fault(&command, hosts) {
                wrong(format!("`{command}`: {fault}"));
            }
        }
        let named: Vec<String> = quoted(proof).collect();
        for test in named.iter().filter(|test| !tests.contains(*test)) {
            wrong(format!("there is no test {test}"));
        }
        if named.is_empty() && !with.starts_with("**No:**") {
            wrong("nothing proves it".into());
        }
    }
    faults
}

#[test]
fn heritage_page_is_correct() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/heritage.md")).expect("the page");
    let trees = fs::read_dir(root.join("tests/data/sysfs")).expect("saved machines");
    let hosts: Vec<Host> = trees.map(|tree| Host::rooted(tree.expect("a tree").path())).collect();
    let tests = tests(&root);
    for system in SYSTEMS {
        let rows = rows(&page, system);
        assert!(rows.len() >= 40, "{system} has {} rows", rows.len());
        let faults = faults(&rows, &tests, &hosts);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

/// Each test that the page on reliability names as proof exists.
#[test]
fn reliability_page_names_existing_tests() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/reliability.md")).expect("the page");
    let binaries = ["unit::", "counting::", "reading::", "recording::"];
    let named = page.split('`').filter(|word| binaries.iter().any(|binary| word.starts_with(binary)));
    let (named, tests) = (named.collect::<Vec<_>>(), tests(&root));
    assert!(named.len() >= 10, "{named:?}");
    let missing: Vec<_> = named.into_iter().filter(|name| !tests.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn incorrect_heritage_page_is_detected() {
    let tests = BTreeSet::from(["counting::stat::counts".to_owned()]);
    let hosts = [Host::rooted(root().join("tests/data/sysfs/virtual"))];
    let wrong = |row: &str| {
        faults(
            &rows(&format!("## S\n\n| original | with pmc | test |\n|---|---|---|\n{row}\n"), "## S"),
            &tests,
            &hosts,
        )
    };
    let proof = "`counting::stat::counts`";
    for right in [
        format!("| `x` | `pmc stat -e cpu-clock,page-faults -- true` | {proof} |"),
        format!("| `x` | `perfalloc -f /run/lock -- ls -l`, `pmcstat -p cycles ls` | {proof} |"),
        format!("| `a\\|b` | `pmc stat record -o 'a file' true`: words | {proof} |"),
        "| `x` | **No:** Linux has none | – |".to_owned(),
    ] {
        assert_eq!(wrong(&right), Vec::<String>::new(), "{right}");
    }
    for (row, what) in [
        (format!("| `x` | `pmc stat --no-such-option true` | {proof} |"), "--no-such-option"),
        (format!("| `x` | `pmc stat -e no-such-event true` | {proof} |"), "no-such-event"),
        (format!("| `x` | `perfalloc -x` | {proof} |"), "x"),
        (format!("| `x` | `pmcstat -p` | {proof} |"), "p"),
        ("| `x` | `pmc top` | `counting::stat::gone` |".to_owned(), "there is no test counting::stat::gone"),
        ("| `x` | `pmc top` | – |".to_owned(), "nothing proves it"),
        ("| `x` | `pmc top` |".to_owned(), "2 columns"),
    ] {
        let faults = wrong(&row);
        assert!(
            faults.len() == 1 && faults[0].starts_with("docs/heritage.md:5: ") && faults[0].contains(what),
            "{row}: {faults:?}"
        );
    }
}
