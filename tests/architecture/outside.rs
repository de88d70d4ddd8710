//! The libraries for other programs do not know pmc, and work without it: a program outside the workspace
//! (`tests/outside`) reads a recording from memory and parses an event.

use std::path::Path;
use std::process::Command;

use clap::CommandFactory as _;
use pmc::cli::Cli;
use pmc_perfdata::perfdata::Reader;
use regex_lite::Regex;

use super::kit::need;
use super::modules::texts;
use super::sources::{files, root};

/// The libraries for other programs.
const LIBRARIES: [&str; 3] = ["pmc-perfdata", "pmc-events", "pmc-symbols"];

/// Their texts name what may help as a `Hint`; `crates/pmc-command/src/advice.rs` knows the commands.
#[test]
fn libraries_name_no_command_and_no_option() {
    let mut parser = Cli::command();
    // The parser of a command is filled when it is built.
    parser.build();
    let commands: Vec<&str> = parser.get_subcommands().map(clap::Command::get_name).collect();
    let options = parser.get_subcommands().flat_map(clap::Command::get_arguments);
    let options: Vec<&str> = options.filter_map(clap::Arg::get_long).collect();
    let word = Regex::new(r"\bpmc ([a-z-]+)|(?:^|[ (`])--([a-z-]+)").expect("a pattern");
    let names_one = |text: &str| {
        word.captures_iter(text).any(|found| {
            let is_command = found.get(1).is_some_and(|name| commands.contains(&name.as_str()));
            is_command || found.get(2).is_some_and(|name| options.contains(&name.as_str()))
        })
    };
    assert!(
        names_one("see pmc list") && names_one("use more (--max-stack)") && !names_one("pmc lists ulimit -n")
    );
    let mut found = Vec::new();
    for library in LIBRARIES {
        for (path, text) in files(&root().join("crates").join(library).join("src"), "rs") {
            let named = texts(&text).into_iter().filter(|(text, _)| names_one(text));
            found
                .extend(named.map(|(text, line)| format!("{library}/src/{}:{line}: {text}", path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Runs a command and returns what it prints.
fn printed(command: &mut Command) -> String {
    let out = command.output().expect("the program starts");
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("a text")
}

#[test]
fn program_outside_the_workspace_uses_the_libraries() {
    // Rust needs a linker.
    let has_linker = Command::new("cc").arg("--version").output().is_ok();
    if !need("cc", has_linker, "cc is not installed") {
        return;
    }
    let root = root();
    // A copy, because cargo writes Cargo.lock beside the manifest.
    let place = root.join("target/outside");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(place.join("src")).expect("a folder");
    let copy = |from: &str, to: &str| {
        std::fs::copy(root.join(from), place.join(to)).expect("a copy");
    };
    copy("tests/outside/Cargo.toml", "Cargo.toml");
    copy("tests/outside/src/main.rs", "src/main.rs");
    copy("Cargo.lock", "Cargo.lock");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--offline", "--quiet", "--target-dir"]).arg(root.join("target"));
    printed(build.arg("--manifest-path").arg(place.join("Cargo.toml")));

    for (name, event) in
        [("fp.data", "task-clock,page-faults"), ("packed.data", "cycels"), ("stream.data", "")]
    {
        let path = root.join("tests/data/perfdata").join(name);
        let run = printed(Command::new(root.join("target/debug/outside")).arg(&path).arg(event));
        assert!(run.starts_with(&first_line(&path)), "{name}: {run}");
        let said = match event {
            "cycels" => "unknown event `cycels`: Some(ShowEvents)\n",
            "" => "",
            _ => "2 events\n",
        };
        assert!(run.ends_with(said), "{name}: {run}");
    }
}

/// Returns what the program says about a recording, from a pass over the file.
fn first_line(path: &Path) -> String {
    let reader = Reader::open(path).expect("a recording");
    let (mut count, mut samples, mut last) = (0, 0, None);
    let mut visit = |record: &pmc_perfdata::record::RawRecord<'_>| {
        count += 1;
        samples += usize::from(reader.layouts().sample(record).is_some());
        last = reader.layouts().time(record).max(last);
    };
    reader.scan(&mut visit).expect("a pass");
    assert!(samples > 0, "{}", path.display());
    format!("{count} records, {samples} samples until {last:?}\n")
}
