//! Runs the commands that README.md and the pages in `docs` show, and compares their output with the pages. Also
//! makes the pictures again ([`pictures`]).
//!
//! A block of code whose first line begins with `$ ` shows commands and their output. On a page:
//!
//! ```text
//!   12.5% ±0.3   numbers, times, sizes and bars may differ: a word with a digit matches any other such word
//!   …            as a separate line: pmc prints more lines here
//!   main …       at the end of a line: pmc prints more words here
//!   …/prices.py  in a word: any text
//! ```
//!
//! pmc may print further lines between the shown ones, such as a warning. The blocks of a page run in order, in
//! one folder. [`table`] lists what they need, and the blocks that cannot run. `PMC_BLESS=1` replaces the shown
//! lines that pmc no longer prints by the most similar ones, and `PMC_BLESS=all` all lines of such commands. If
//! a line has nothing similar, the whole output replaces it. Read the new text, and shorten long output.

#[path = "../kit/mod.rs"]
mod kit;

mod compare;
mod page;
mod pictures;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use page::{Block, PageCode, ShownCommand};
use table::{CANNOT_RUN, CannotRun, PAGES, PageRun};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(page: &str) -> String {
    std::fs::read_to_string(repository().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Returns the paths of all pages whose blocks are checked.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/schemas"] {
        let files = std::fs::read_dir(repository().join(folder)).expect("a folder");
        let names = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

/// Returns the value of `PMC_BLESS`, if the pages are to be rewritten.
fn blessing() -> Option<String> {
    std::env::var("PMC_BLESS").ok().filter(|value| !value.is_empty())
}

fn reason(page: &str, block: &Block) -> Option<CannotRun> {
    CANNOT_RUN.iter().find(|(path, name, _)| *path == page && *name == block.name()).map(|(.., why)| *why)
}

/// A page whose blocks run in a folder of their own.
struct Running<'a> {
    page: &'a PageRun,
    folder: tempfile::TempDir,
}

impl<'a> Running<'a> {
    fn new(page: &'a PageRun, code: &PageCode) -> Self {
        let running = Self { page, folder: tempfile::tempdir().expect("a temporary folder") };
        for shared in ["docs", "fuzz"] {
            let link = running.folder.path().join(shared);
            std::os::unix::fs::symlink(repository().join(shared), link).expect("a link");
        }
        for (name, text) in &code.sources {
            std::fs::write(running.folder.path().join(name), text).expect("a source");
        }
        let (printed, is_success) = running.run(&format!("set -e; {}", page.setup), false);
        assert!(is_success, "{}: the setup fails:\n{printed}", page.path);
        running
    }

    /// Runs a command as in a shell of the user. Returns what it prints, and whether it succeeds. On a terminal,
    /// pmc's output is for people, and what it prints to stderr follows.
    fn run(&self, command: &str, on_terminal: bool) -> (String, bool) {
        let pmc = Path::new(kit::binary()).parent().expect("a folder").display();
        let path = format!("{pmc}:{}", std::env::var("PATH").expect("a PATH"));
        // The tests run as root, without sudo.
        let command = command.replace("sudo pmc", "pmc");
        let mut shell = Command::new("timeout");
        shell.args(["-k", "5", "300"]);
        match on_terminal {
            true => {
                let line = format!("stty cols 110; {{ {command}; }} 2>stderr; s=$?; cat stderr; exit $s");
                shell.args(["script", "-qec", &line, "/dev/null"])
            }
            false => shell.args(["bash", "-c", &format!("exec 2>&1; {command}")]),
        };
        let folder = self.folder.path();
        shell.current_dir(folder).env("PATH", &path).env("LC_ALL", "en_US.UTF-8").env("NO_COLOR", "1");
        shell.env("XDG_CACHE_HOME", folder).env("PERF_BUILDID_DIR", folder.join("debug")).env("PAGER", "cat");
        shell.env("PROGRAMS", repository().join("tests/documents/programs")).env("REPOSITORY", repository());
        shell.env("SHELL", "/bin/sh").env("TERM", "xterm").env_remove("DEBUGINFOD_URLS");
        let ran = shell.output().expect("the shell starts");
        (String::from_utf8_lossy(&ran.stdout).replace('\r', ""), ran.status.success())
    }

    /// Runs a command, and returns what it prints if that is not what the page shows.
    fn outdated(&self, shown: &ShownCommand) -> Option<String> {
        let on_terminal = self.page.on_terminal.is_some_and(|part| shown.command.contains(part));
        let (printed, is_success) = self.run(&shown.command, on_terminal);
        let is_failure = |(_, line): &(usize, String)| {
            ["try:", "why:", "regression:", "pmc: warning:"]
                .iter()
                .any(|word| line.trim_start().starts_with(word))
        };
        let may_fail = shown.lines.iter().any(is_failure);
        let is_missing = compare::missing(shown, &printed, self.page.is_ordered).is_some();
        (is_missing || !(is_success || may_fail)).then_some(printed)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.run(self.page.teardown, false);
    }
}

/// Whether this machine is like the one that the pages show.
#[track_caller]
fn can_run(page: &PageRun) -> bool {
    let has_programs =
        ["bash", "script"].iter().chain(page.programs).all(|program| kit::need_program(program));
    let has_counters = Path::new("/sys/bus/event_source/devices/cpu").exists();
    has_programs
        && kit::need_root()
        && kit::need_perf_events()
        && kit::need("no-counters", !has_counters, "the pages show a machine without hardware counters")
        && kit::need("x86-64", cfg!(target_arch = "x86_64"), "the pages show a machine with x86-64")
}

/// Whether the block's commands have what they need beyond the needs of the page.
#[track_caller]
fn has_events(block: &Block) -> bool {
    let system = |shown: &ShownCommand| {
        let words = [
            ("pmc trace", "raw_syscalls"),
            ("pmc lock user", "syscalls"),
            ("pmc lock contention", "lock"),
            ("pmc latency", "syscalls"),
            ("pmc sched record", "sched"),
            ("--wakers", "sched"),
            ("pmc probe", "sched"),
        ];
        words.iter().find(|(word, _)| shown.command.contains(word)).map(|(_, system)| *system)
    };
    block.commands.iter().filter_map(system).all(kit::need_tracefs)
}

/// Runs the blocks of a page. With `PMC_BLESS`, rewrites the lines that are outdated.
#[track_caller]
fn check(path: &str) {
    let page = PAGES.iter().find(|page| page.path == path).expect("the page is listed");
    if !can_run(page) {
        return;
    }
    let shown = text(path);
    let code = page::code(&shown);
    let running = Running::new(page, &code);
    let mut faults = String::new();
    let mut replaced: Vec<Replacement> = Vec::new();
    for block in code.blocks.iter().filter(|block| block.has_output() && reason(path, block).is_none()) {
        if !has_events(block) {
            continue;
        }
        for command in &block.commands {
            let Some(printed) = running.outdated(command) else { continue };
            let missing =
                compare::missing(command, &printed, page.is_ordered).unwrap_or("an exit status of 0");
            let at = command.at + 1;
            let _ = writeln!(
                faults,
                "{path}:{at}: $ {}\nprinted\n{printed}\nbut the page shows\n{missing}\n",
                command.command
            );
            let renewed =
                compare::renewed(command, &printed, page.is_ordered, blessing().as_deref() == Some("all"));
            if renewed.len() == command.lines.len() {
                for (&(at, _), line) in command.lines.iter().zip(renewed) {
                    replaced.push(Replacement { range: at..at + 1, indent: block.indent, by: vec![line] });
                }
            } else {
                let next = block.commands.iter().map(|next| next.at).find(|&at| at > command.at);
                let range = command.at + 1..next.unwrap_or(block.end);
                replaced.push(Replacement { range, indent: block.indent, by: renewed });
            }
        }
    }
    if blessing().is_some() {
        std::fs::write(repository().join(path), with_replaced(&shown, replaced))
            .expect("the page is written");
    } else {
        assert!(faults.is_empty(), "{faults}PMC_BLESS=1 rewrites the pages");
    }
}

/// New lines in place of a range of lines of a page.
struct Replacement {
    range: std::ops::Range<usize>,
    indent: &'static str,
    by: Vec<String>,
}

fn with_replaced(page: &str, replaced: Vec<Replacement>) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for Replacement { range, indent, by } in replaced.into_iter().rev() {
        let indented = |line: String| if line.is_empty() { line } else { format!("{indent}{line}") };
        lines.splice(range, by.into_iter().map(indented));
    }
    lines.join("\n") + "\n"
}

// One test for each page, so that one page can be run by its name.

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn annotate() {
    check("docs/annotate.md");
}

#[test]
fn ci() {
    check("docs/ci.md");
}

#[test]
fn counting() {
    check("docs/counting.md");
}

#[test]
fn diff() {
    check("docs/diff.md");
}

#[test]
fn first_report() {
    check("docs/first-report.md");
}

#[test]
fn how_to() {
    check("docs/how-to.md");
}

#[test]
fn import() {
    check("docs/import.md");
}

#[test]
fn latency() {
    check("docs/latency.md");
}

#[test]
fn lock() {
    check("docs/lock.md");
}

#[test]
fn probe() {
    check("docs/probe.md");
}

#[test]
fn record() {
    check("docs/record.md");
}

#[test]
fn report() {
    check("docs/report.md");
}

#[test]
fn sched() {
    check("docs/sched.md");
}

#[test]
fn schemas() {
    check("docs/schemas/README.md");
}

#[test]
fn top() {
    check("docs/top.md");
}

#[test]
fn trace() {
    check("docs/trace.md");
}

/// Returns the number of blocks by what becomes of them, as a Markdown table.
fn counts(found: &[(String, PageCode)]) -> String {
    let blocks = || found.iter().flat_map(|(page, code)| code.blocks.iter().map(move |block| (page, block)));
    let listed = |why: CannotRun| blocks().filter(|(page, block)| reason(page, block) == Some(why)).count();
    let without = blocks().filter(|(_, block)| !block.has_output()).count();
    let reasons: BTreeMap<CannotRun, usize> =
        CANNOT_RUN.iter().map(|&(.., why)| (why, listed(why))).collect();
    let run = blocks().count() - without - reasons.values().sum::<usize>();
    let mut table = format!("| blocks | |\n|---|---|\n| {run} | run, and their output is compared |\n");
    for (why, count) in reasons {
        let _ = writeln!(table, "| {count} | cannot run: {} |", why.words());
    }
    let _ = writeln!(table, "| {without} | show no output; `tests/architecture` parses them |");
    table
}

#[test]
fn every_block_runs_or_is_listed() {
    let found: Vec<(String, PageCode)> =
        pages().into_iter().map(|page| (page.clone(), page::code(&text(&page)))).collect();
    let mut faults = String::new();
    for (page, code) in &found {
        for block in code.blocks.iter().filter(|block| block.has_output()) {
            let runs = PAGES.iter().any(|listed| listed.path == page.as_str());
            if !runs && reason(page, block).is_none() {
                let _ = writeln!(
                    faults,
                    "{page}:{}: neither runs nor is in CANNOT_RUN: {}",
                    block.commands[0].at + 1,
                    block.name()
                );
            }
        }
    }
    for (page, name, _) in CANNOT_RUN {
        let blocks = found.iter().filter(|(path, _)| path == page).flat_map(|(_, code)| &code.blocks);
        match blocks.filter(|block| block.name() == *name).count() {
            1 => {}
            count => drop(writeln!(faults, "CANNOT_RUN names {count} blocks of {page}: {name}")),
        }
    }
    for page in
        PAGES.iter().filter(|page| !include_str!("main.rs").contains(&format!("check({:?});", page.path)))
    {
        let _ = writeln!(faults, "{} has no test", page.path);
    }
    assert!(faults.is_empty(), "{faults}");

    let counts = counts(&found);
    let _ = writeln!(std::io::stderr().lock(), "{counts}");
    let (path, page): (PathBuf, String) = (repository().join("CONTRIBUTING.md"), text("CONTRIBUTING.md"));
    let (before, rest) = page.split_once("<!-- blocks -->\n").expect("the mark for the counts");
    let (stated, after) = rest.split_once("<!-- end -->").expect("its end");
    if blessing().is_some() {
        std::fs::write(path, format!("{before}<!-- blocks -->\n{counts}<!-- end -->{after}"))
            .expect("written");
    } else {
        assert_eq!(stated, counts, "CONTRIBUTING.md states the counts; PMC_BLESS=1 rewrites them");
    }
}
