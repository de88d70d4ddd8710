//! Runs the README's commands as printed and compares their output with the README.
//!
//! A block of commands is indented by four spaces. `$ ` begins a command, and its output follows. Numbers
//! may differ, and the actual output may have more lines between those shown. A line `…` marks omitted
//! lines.

use std::path::Path;
use std::process::Command;

use crate::kit;

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
    // Samples in a stripped library have no symbol, which changes the rest of the line.
    let line = line.split_once(" reach a root,").map_or(line, |(before, _)| before);
    // On a busy machine, a few runs may not show a difference.
    let line = if line.contains("No difference between B and A detected") {
        "B is 1 times as fast as A.".to_owned()
    } else {
        line.replace("no difference shown", "faster")
    };
    let words = line.split_whitespace().filter(|word| !is_bar(word) && !is_sign(word));
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

/// The first line of the README's output that was not printed in this order.
fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(skeleton);
    shown.iter().filter(|line| line.trim() != "…").find_map(|line| {
        let wanted = skeleton(line);
        let matches = |line: String| match wanted.strip_suffix(" …") {
            Some(beginning) => line.starts_with(beginning),
            None => line == wanted,
        };
        (!printed.by_ref().any(matches)).then_some(line.as_str())
    })
}

#[test]
fn lines_are_compared_without_numbers() {
    let shown = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    let printed = " 12.5% ±0.3  ███░  main › f\nother\n   3.1%  g (inlined)\n";
    assert_eq!(missing(&shown(&["99.0% ±1.2  █░  main › f", "…", "0.1% g …"]), printed), None);
    assert_eq!(missing(&shown(&["other", "1% ±2 main › f"]), printed), Some("1% ±2 main › f"));
    assert_eq!(missing(&shown(&["1% h"]), printed), Some("1% h"));
    assert_eq!(missing(&shown(&["382 KiB; 15 µs of CPU"]), "1.4 MiB; 2.1 ms of CPU"), None);
}

#[test]
fn readme_commands_print_what_it_shows() {
    let programs = ["bash", "g++", "gzip", "sed"].map(kit::need_program);
    if !programs.iter().all(|&is_there| is_there) || !kit::need_root() || !kit::need_perf_events() {
        return;
    }
    if Path::new("/sys/bus/event_source/devices/cpu").exists() {
        println!("skipped: the README shows a machine without hardware counters");
        return;
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(checkout.join("README.md")).expect("the README");
    let (files, commands) = shown(&readme);
    assert!(files.len() == 1 && commands.len() > 9, "{} files, {} commands", files.len(), commands.len());
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(checkout.join("docs"), folder.path().join("docs")).expect("a link");
    for (name, text) in files {
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
        if let Some(line) = missing(&lines, &printed) {
            panic!("$ {command}\nprinted\n{printed}\nand the README shows\n{line}");
        }
        let shows_error = lines.iter().any(|line| line.starts_with("  try:"));
        assert!(ran.status.success() || shows_error, "$ {command}: {}\n{printed}", ran.status);
    }
}
