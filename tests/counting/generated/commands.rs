//! The Markdown page of each command in docs/commands, from the same parser as its man page, and the list of
//! these pages in docs/llms.txt.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command as Parser};

/// The heading in docs/llms.txt below which the pages are listed, up to the end of the file.
const LIST: &str = "\n## Commands\n\n";

/// Returns the path of every page with its content, and docs/llms.txt with the list of the pages.
pub(super) fn pages(parser: &Parser, docs: &Path) -> Vec<(PathBuf, String)> {
    let list = docs.join("llms.txt");
    let by_hand = fs::read_to_string(&list).expect("a committed file");
    let by_hand = by_hand.split(LIST).next().unwrap_or_default();
    let mut listed = format!("{by_hand}{LIST}");
    let mut pages = Vec::new();
    for command in parser.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(listed, "- [commands/{name}.md](commands/{name}.md): {about}");
        pages.push((docs.join(format!("commands/{name}.md")), page(parser, command, docs)));
    }
    pages.push((list, listed));
    pages
}

fn page(parser: &Parser, command: &Parser, docs: &Path) -> String {
    let mut page = String::new();
    section(&mut page, parser, command, 1);
    statuses(&mut page, command);
    see_also(&mut page, command, docs);
    page
}

/// Writes a command: its description, synopsis, options, subcommands and examples.
fn section(page: &mut String, parser: &Parser, command: &Parser, level: usize) {
    let heading = "#".repeat(level);
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").lines().map(|line| format!("`{}`", line.trim()));
    let usage = usage.collect::<Vec<_>>().join(", ");
    let _ = writeln!(page, "{heading} {name}\n\n{}\n\nSynopsis: {usage}", sentence(&about));
    let ids = |command: &Parser| -> BTreeSet<String> {
        command.get_arguments().filter(|arg| !arg.is_hide_set()).map(|arg| arg.get_id().to_string()).collect()
    };
    let same =
        parser.find_subcommand(command.get_name()).filter(|same| level > 1 && ids(same) == ids(command));
    if let Some(same) = same {
        let name = same.get_name();
        let _ = writeln!(page, "\nThe options are those of [pmc {name}]({name}.md).");
        return;
    }
    options(page, command, &heading);
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        let text = text.to_string();
        let title = if text.starts_with("Examples:") { "Examples" } else { "Notes" };
        let text = text.trim_start_matches("Examples:").trim_matches('\n');
        let _ = writeln!(page, "\n{heading}# {title}");
        let lines: Vec<&str> = text.lines().collect();
        // Commands are indented, their explanations are not.
        for block in lines.chunk_by(|a, b| a.starts_with("  ") == b.starts_with("  ")) {
            let text = block.join("\n");
            let _ = match text.starts_with("  ") {
                true => writeln!(page, "\n```text\n{text}\n```"),
                false => writeln!(page, "\n{}", text.trim()),
            };
        }
    }
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        page.push('\n');
        section(page, parser, subcommand, level + 1);
    }
}

/// Writes the arguments and options, under the headings of the help.
fn options(page: &mut String, command: &Parser, heading: &str) {
    let mut groups: Vec<(Option<&str>, Vec<&Arg>)> = Vec::new();
    // `--help` and the like are in the page of `pmc help`.
    let is_listed = |arg: &&Arg| !arg.is_hide_set() && !["help", "no_pager"].contains(&arg.get_id().as_str());
    for arg in command.get_arguments().filter(is_listed) {
        match groups.iter_mut().find(|(title, _)| *title == arg.get_help_heading()) {
            Some((_, args)) => args.push(arg),
            None => groups.push((arg.get_help_heading(), vec![arg])),
        }
    }
    groups.sort_by_key(|(title, _)| title.is_some());
    if !groups.is_empty() {
        let _ = writeln!(page, "\n{heading}# Options");
    }
    for (title, args) in groups {
        title.into_iter().for_each(|title| page.push_str(&format!("\n{heading}## {title}\n")));
        page.push('\n');
        for arg in args {
            let _ = writeln!(page, "- {}", option(arg));
        }
    }
}

/// Returns one line: the spellings of an option, its meaning, its values and its default.
fn option(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().join(" ");
    let value = match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
        (false, _) => String::new(),
        (true, true) => format!("[={names}]"),
        (true, false) => format!(" {names}"),
    };
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    let mut spellings: Vec<String> =
        short.into_iter().chain(longs.iter().map(|long| format!("--{long}"))).collect();
    match spellings.last_mut() {
        Some(last) => last.push_str(&value),
        None => spellings.push(value.trim().to_owned()),
    }
    let spellings: Vec<String> = spellings.iter().map(|spelling| format!("`{spelling}`")).collect();
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = format!("{}: {}", spellings.join(", "), sentence(&help));
    let quoted =
        |words: Vec<String>| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned());
    let values: Vec<String> = values.collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        let _ = write!(line, " Values: {}.", quoted(values));
    }
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let defaults: Vec<String> = defaults.collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(line, " Default: {}.", quoted(defaults));
    }
    line
}

/// Ends a text with a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn statuses(page: &mut String, command: &Parser) {
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let mut lines = vec![
        "0: success",
        "1: an error, or pmc could read only part of a recording and showed this part",
        "2: an error in the command line",
    ];
    if has("fail_if") {
        lines.push("With `--fail-if`: 0 for a pass, 1 for a regression, 2 if the runs cannot tell");
    }
    if has("command") {
        lines.push("127: the command does not exist; 126: it cannot be executed; 128 + N: signal N ended it");
    }
    page.push_str("\n## Exit status\n\n");
    lines.iter().for_each(|line| page.push_str(&format!("- {line}\n")));
    page.push_str("\n[errors.md](../errors.md#exit-statuses) lists all statuses.\n");
}

/// Writes links to the pages that explain the command, and to the schemas of its JSON documents.
fn see_also(page: &mut String, command: &Parser, docs: &Path) {
    let name = command.get_name();
    let text = page.clone();
    let named = text.split("docs/").skip(1).filter_map(|rest| Some(&rest[..rest.find(".md")?]));
    let mut links: Vec<String> = Vec::new();
    for topic in std::iter::once(name).chain(named) {
        let link = format!("[{topic}.md](../{topic}.md)");
        if docs.join(format!("{topic}.md")).is_file() && !links.contains(&link) {
            links.push(link);
        }
    }
    let schemas = fs::read_to_string(docs.join("schemas/README.md")).expect("a committed file");
    let is_own =
        |line: &&str| line.starts_with('|') && line.contains(&format!("`pmc {} ", name.replace('-', " ")));
    for line in schemas.lines().filter(is_own) {
        let file = line.split_once("](").and_then(|(_, rest)| rest.split_once(')')).expect("a link").0;
        links.push(format!("[schemas/{file}](../schemas/{file})"));
    }
    links.push(format!("`man pmc-{name}`"));
    let _ = write!(page, "\n## See also\n\n{}\n", links.join(", "));
}
