//! `pmc man`: its pages describe every option of every command, and are man pages without errors.

use crate::kit;

use std::fs;
use std::process::Command;

use clap::{Arg, Command as Parser};
use tempfile::TempDir;

use super::parser;

/// Makes all pages. Returns their folder.
fn pages(options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let to = folder.path().join("new/man");
    let to = to.to_str().expect("UTF-8");
    kit::run(&[&["man", "--output", to], options].concat()).expect(0).prints(&[]);
    folder
}

fn page(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join("new/man").join(name)).expect("a page")
}

fn shown(parser: &Parser) -> impl Iterator<Item = &Parser> {
    parser.get_subcommands().filter(|command| !command.is_hide_set())
}

/// Returns the options of a command that a section lacks or does not explain. Options of every command are on
/// the page of pmc.
fn unexplained(command: &Parser, section: &str) -> Vec<String> {
    let listed = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set());
    let is_explained = |arg: &&Arg| {
        let spelling = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => arg.get_value_names().unwrap_or_default().join(" "),
        };
        let terms = section.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
        let mut terms = terms.filter(|(_, text)| !text.trim().is_empty());
        let is_it = |word: &str| {
            let value = word.strip_prefix(&spelling);
            value.is_some_and(|value| value.is_empty() || value.starts_with([' ', '[']))
        };
        terms.any(|(words, _)| words.split("`, `").any(is_it))
    };
    let missing = listed.filter(|arg| !is_explained(arg));
    missing.map(|arg| format!("{}: {}", command.get_bin_name().unwrap_or_default(), arg.get_id())).collect()
}

#[test]
fn every_option_has_a_text_on_its_page() {
    let folder = pages(&["--markdown"]);
    let own = page(&folder, "pmc.md");
    let mut missing = unexplained(parser(), &own);
    for command in shown(parser()) {
        let name = command.get_name();
        let text = page(&folder, &format!("pmc-{name}.md"));
        assert!(own.contains(&format!("- `pmc {name}`: ")), "{name}: {own}");
        missing.extend(unexplained(command, text.split("\n## pmc ").next().unwrap()));
        for subcommand in shown(command) {
            let heading = format!("\n## {}\n", subcommand.get_bin_name().unwrap());
            let section = text.split(&heading).nth(1).unwrap_or_default().split("\n## ").next().unwrap();
            if !section.contains("\nThe options are those of `pmc ") {
                missing.extend(unexplained(subcommand, section));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn man_pages_have_the_same_texts_and_no_errors() {
    let (markdown, man) = (pages(&["--markdown"]), pages(&[]));
    let names = std::iter::once("pmc".to_owned());
    let names: Vec<String> =
        names.chain(shown(parser()).map(|command| format!("pmc-{}", command.get_name()))).collect();
    assert_eq!(fs::read_dir(man.path().join("new/man")).unwrap().count(), names.len());
    for name in &names {
        let text = page(&man, &format!("{name}.1"));
        let lines: Vec<&str> = text.lines().collect();
        // A term is a macro, its words and its meaning.
        let is_term = |lines: &&[&str]| lines[0] == ".TP";
        let terms: Vec<&[&str]> = lines.windows(3).filter(is_term).collect();
        let is_text = |line: &str| !line.is_empty() && !line.starts_with('.');
        assert!(terms.iter().all(|term| is_text(term[1]) && is_text(term[2])), "{name}: {terms:?}");
        let listed = page(&markdown, &format!("{name}.md"));
        assert_eq!(terms.len(), listed.lines().filter(|line| line.starts_with("- `")).count(), "{name}");
        assert!(text.is_ascii() && text.starts_with(&format!(".TH {} 1 ", name.to_uppercase())), "{text}");
    }
    if !kit::need_program("groff") {
        return;
    }
    for name in &names {
        let file = man.path().join(format!("new/man/{name}.1"));
        let ran = Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && said.is_empty() && !ran.stdout.is_empty(), "{name}: {said}");
    }
}

#[test]
fn man_writes_one_page_and_is_hidden() {
    let man = pages(&[]);
    assert_eq!(kit::run(&["man"]).expect(0).stdout, page(&man, "pmc.1"));
    let record = kit::run(&["man", "record"]).expect(0).stdout;
    assert_eq!(record, page(&man, "pmc-record.1"));
    assert!(record.contains("\n\\fB\\-F\\fR, \\fB\\-\\-freq HZ\\fR\n"), "{record}");
    kit::run(&["man", "--markdown", "lock"]).expect(0).prints(&["# pmc lock\n", "\n## pmc lock user\n"]);
    kit::run(&["man", "recrd"]).expect(2).says(&["recrd", "record"]);
    kit::run(&["man", "--output", "/proc/none"]).expect(1).says(&["/proc/none"]);
    let help = kit::run(&["help"]).expect(0).stdout;
    assert!(help.contains("\n  version ") && !help.contains("\n  man "), "{help}");
    let listed = kit::run(&["--list-cmds"]).expect(0).stdout;
    assert!(listed.split_whitespace().all(|name| name != "man"), "{listed}");
}
