//! Runs the commands of the README and of a task in docs/how-to.md as printed, and compares their output.
//!
//! A block of commands is indented by four spaces. `$ ` begins a command, and its output follows. Numbers
//! may differ, and the actual output may have more lines between those shown. A line `…` marks omitted
//! lines.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::kit::{self, burn::loops};

/// A command in the README and its output there.
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// Files whose text the README contains, each with the name given before it, and the commands, in order.
fn shown(readme: &str) -> (Vec<(String, String)>, Vec<Shown>) {
    let (mut files, mut commands) = (Vec::new(), Vec::<Shown>::new());
    let mut named = String::new();
    let mut paragraph = String::new();
    // A block continues after empty lines.
    let mut block: Vec<&str> = Vec::new();
    for line in readme.lines().chain(["end"]) {
        match line.strip_prefix("    ") {
            Some(code) => block.push(code),
            None if line.is_empty() && !block.is_empty() => block.push(""),
            None => {
                if block.first().is_some_and(|first| first.starts_with("#include")) {
                    files.push((named.clone(), block.join("\n")));
                } else if block.first().is_some_and(|first| first.starts_with("$ ")) {
                    for line in block.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()) {
                        match (line.strip_prefix("$ "), commands.last_mut()) {
                            (None, Some(shown)) => shown.lines.push(line.to_owned()),
                            (command, _) => {
                                let command = command.expect("a command comes first").to_owned();
                                commands.push(Shown { command, lines: Vec::new() });
                            }
                        }
                    }
                }
                block.clear();
                paragraph.push_str(line);
                let words: Vec<&str> = paragraph.split('`').collect();
                if let Some(file) = words.iter().rev().find(|word| word.ends_with(".cpp")) {
                    named = (*file).to_owned();
                }
                if line.is_empty() {
                    paragraph.clear();
                }
            }
        }
    }
    (files, commands)
}

/// A line without the parts that differ from run to run: numbers, comparison signs, bars and spacing.
fn skeleton(line: &str) -> String {
    let is_bar = |word: &str| word.chars().all(|c| ('\u{2500}'..='\u{259f}').contains(&c));
    let is_sign = |word: &str| ["(+-", "(", "±", "<", "="].contains(&word);
    // Samples in a stripped library have no symbol, which changes the rest of the line. On a busy machine,
    // threads spend their time differently. Kernels have different functions.
    let line = [" reach a root,", " elapsed, ", "◆"]
        .into_iter()
        .find_map(|end| Some(line.split_once(end)?.0))
        .unwrap_or(line);
    // The names of libc's own functions depend on whether its debug symbols are installed.
    let libc = "libc.so.6";
    let line = &line.find(libc).map_or(line, |at| &line[..at + libc.len()]);
    // On a busy machine, a few runs may not show a difference.
    let line = if line.contains("No difference between B and A detected") {
        "B is 1 times as fast as A.".to_owned()
    } else {
        line.replace("no difference shown", "faster")
    };
    // The columns of a busy machine: waits for a CPU. The command's name, if it is the same in all rows.
    let is_optional = |word: &str| ["CPU", "words"].contains(&word);
    let words = line.split_whitespace();
    let words = words.filter(|word| !is_bar(word) && !is_sign(word) && !is_optional(word));
    let words = words.map(|word| match word {
        _ if word.contains(|c: char| c.is_ascii_digit()) => "#",
        "K/sec" | "M/sec" => "/sec",
        // Slower machines take longer and collect more samples.
        _ => match word.trim_end_matches([';', ',', '.']) {
            "bytes" | "KiB" | "MiB" | "GiB" => "bytes",
            "ns" | "µs" | "ms" => "s",
            _ => word,
        },
    });
    let mut words: Vec<&str> = words.collect();
    words.dedup_by(|one, other| *one == "#" && *other == "#");
    words.join(" ")
}

/// The first line of the shown output that was not printed. The order of rows depends on the time that
/// they take, which `is_ordered` requires to be as shown.
fn missing<'a>(shown: &'a [String], printed: &str, is_ordered: bool) -> Option<&'a str> {
    let all: Vec<String> = printed.lines().map(skeleton).collect();
    let mut rest = all.iter();
    shown.iter().filter(|line| line.trim() != "…").find_map(|line| {
        let wanted = skeleton(line);
        let matches = |line: &String| match wanted.strip_suffix(" …") {
            Some(beginning) => line.starts_with(beginning),
            None => *line == wanted,
        };
        let is_there = if is_ordered { rest.any(matches) } else { all.iter().any(matches) };
        (!is_there).then_some(line.as_str())
    })
}

#[test]
fn lines_are_compared_without_numbers() {
    let shown = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    assert_eq!(missing(&shown(&["9% x libc.so.6 _int_malloc"]), "8% x libc.so.6 malloc", true), None);
    assert!(missing(&shown(&["9% x libm.so.6 _int_malloc"]), "8% x libm.so.6 malloc", true).is_some());
    let printed = " 12.5% ±0.3  ███░  main › f\nother\n   3.1%  g (inlined)\n";
    assert_eq!(missing(&shown(&["99.0% ±1.2  █░  main › f", "…", "0.1% g …"]), printed, true), None);
    let turned = shown(&["other", "1% ±2 main › f"]);
    assert_eq!(missing(&turned, printed, true), Some("1% ±2 main › f"));
    assert_eq!(missing(&turned, printed, false), None);
    assert_eq!(missing(&shown(&["1% h"]), printed, false), Some("1% h"));
    assert_eq!(missing(&shown(&["382 KiB; 15 µs of CPU"]), "1.4 MiB; 2.1 ms of CPU", true), None);
    assert_eq!(missing(&shown(&["1 s elapsed, 3 threads: …"]), "2 s elapsed, 3 threads: 1 s", true), None);
}

/// Whether this machine is like the one that the documents show.
#[track_caller]
fn is_as_shown() -> bool {
    let programs = ["bash", "g++", "gzip", "sed"].map(kit::need_program);
    if !programs.iter().all(|&is_there| is_there) || !kit::need_root() || !kit::need_perf_events() {
        return false;
    }
    let has_counters = Path::new("/sys/bus/event_source/devices/cpu").exists();
    if has_counters {
        let skipped = "skipped: the documents show a machine without hardware counters";
        let _ = writeln!(std::io::stderr().lock(), "{skipped}");
    }
    !has_counters
}

/// Runs the commands of a text in a new folder, and checks their output. The text contains one program.
#[track_caller]
fn check(text: &str, is_ordered: bool) {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (files, commands) = shown(text);
    assert!(files.len() == 1 && commands.len() > 4, "{} files, {} commands", files.len(), commands.len());
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(checkout.join("docs"), folder.path().join("docs")).expect("a link");
    for (name, text) in files {
        // The loop between two looks at the clock.
        let text = text.replace("i < 10000;", &format!("i < {};", loops(10_000)));
        std::fs::write(folder.path().join(name), text).expect("a source");
    }
    let pmc = Path::new(kit::binary()).parent().expect("a folder").display();
    let path = format!("{pmc}:{}", std::env::var("PATH").expect("a PATH"));
    for Shown { command, lines } in commands {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("exec 2>&1; {command}")).current_dir(folder.path());
        let ran = shell
            .env("LC_ALL", "en_US.UTF-8")
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", folder.path())
            .output();
        let ran = ran.expect("bash starts");
        let printed = String::from_utf8_lossy(&ran.stdout);
        if let Some(line) = missing(&lines, &printed, is_ordered) {
            panic!("$ {command}\nprinted\n{printed}\nand the document shows\n{line}");
        }
        let shows_error = lines.iter().any(|line| line.starts_with("  try:"));
        assert!(ran.status.success() || shows_error, "$ {command}: {}\n{printed}", ran.status);
    }
}

/// Returns the text of a file of the repository.
fn text(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a document")
}

#[test]
fn readme_commands_print_what_it_shows() {
    if is_as_shown() {
        check(&text("README.md"), true);
    }
}

#[test]
fn commands_for_a_waiting_program_print_what_the_page_shows() {
    if is_as_shown() {
        let page = text("docs/how-to.md");
        let (_, task) = page.split_once("## Why is my program slow").expect("the task");
        check(task.split("\n## ").next().expect("its text"), false);
    }
}
