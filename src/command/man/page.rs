//! The contents of a page, from the definitions of the options.

use std::collections::BTreeSet;

use clap::{Arg, Command};

/// A page of the manual.
pub(super) struct Page {
    /// `pmc` or `pmc-stat`.
    pub(super) name: String,
    /// What the command does: one line without a full stop.
    pub(super) about: String,
    pub(super) parts: Vec<Part>,
}

/// A part of a page.
pub(super) enum Part {
    /// The title of a section. Level 1 is a section of the page, level 2 a section of that section.
    Heading(usize, String),
    Paragraph(String),
    /// Lines that stay as they are, such as examples.
    Lines(Vec<String>),
    /// The spellings of an option (or another word), and its meaning.
    Term(Vec<String>, String),
}

impl Page {
    /// Returns the page of pmc: its own options, and the list of commands.
    pub(super) fn of_pmc(parser: &Command) -> Self {
        let mut page = Self::new(parser, parser.get_arguments().collect());
        page.heading(1, "Commands");
        for command in parser.get_subcommands().filter(|command| !command.is_hide_set()) {
            page.parts.push(Part::Term(vec![name(command)], sentence(&about(command))));
        }
        page
    }

    /// Returns the page of a command, with a section for each of its subcommands.
    pub(super) fn of_command(parser: &Command, command: &Command) -> Self {
        let mut page = Self::new(command, own_arguments(command));
        page.examples(command, 1);
        for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            page.subcommand(parser, subcommand);
        }
        page.exit_statuses(command);
        page.heading(1, "See also");
        page.paragraph("pmc(1) lists the commands, and `pmc help` prints their options.");
        page
    }

    /// Returns a page that begins with the synopsis and these arguments.
    fn new(command: &Command, arguments: Vec<&Arg>) -> Self {
        let name = name(command).replace(' ', "-");
        let mut page = Self { name, about: about(command), parts: Vec::new() };
        page.heading(1, "Synopsis");
        page.parts.push(Part::Lines(synopsis(command)));
        page.options(arguments, 1);
        page
    }

    fn subcommand(&mut self, parser: &Command, command: &Command) {
        self.heading(1, &name(command));
        self.paragraph(&sentence(&about(command)));
        self.parts.push(Part::Lines(synopsis(command)));
        let ids = |command| -> BTreeSet<&str> {
            own_arguments(command).into_iter().map(|arg| arg.get_id().as_str()).collect()
        };
        // `sched record` has the options of `record`.
        match parser.find_subcommand(command.get_name()).filter(|same| ids(same) == ids(command)) {
            Some(same) => self.paragraph(&format!("The options are those of `{}`.", name(same))),
            None => {
                self.options(own_arguments(command), 2);
                self.examples(command, 2);
            }
        }
    }

    /// Adds arguments and options, under the headings of the help.
    fn options(&mut self, arguments: Vec<&Arg>, level: usize) {
        let mut groups: Vec<(Option<&str>, Vec<&Arg>)> = Vec::new();
        for arg in arguments.into_iter().filter(|arg| !arg.is_hide_set()) {
            match groups.iter_mut().find(|(title, _)| *title == arg.get_help_heading()) {
                Some((_, args)) => args.push(arg),
                None => groups.push((arg.get_help_heading(), vec![arg])),
            }
        }
        groups.sort_by_key(|(title, _)| title.is_some());
        if !groups.is_empty() {
            self.heading(level, "Options");
        }
        for (title, args) in groups {
            title.into_iter().for_each(|title| self.heading(level + 1, title));
            self.parts.extend(args.into_iter().map(|arg| Part::Term(spellings(arg), meaning(arg))));
        }
    }

    /// Adds the text that follows the options in the help. Commands in it are indented, their explanations
    /// are not.
    fn examples(&mut self, command: &Command, level: usize) {
        let Some(text) = command.get_after_long_help().or(command.get_after_help()) else { return };
        let text = text.to_string();
        let examples = text.strip_prefix("Examples:");
        self.heading(level, if examples.is_some() { "Examples" } else { "Notes" });
        let lines: Vec<&str> = examples.unwrap_or(&text).trim_matches('\n').lines().collect();
        for block in lines.chunk_by(|a, b| a.starts_with("  ") == b.starts_with("  ")) {
            match block[0].strip_prefix("  ") {
                Some(_) => {
                    self.parts.push(Part::Lines(block.iter().map(|line| line[2..].to_owned()).collect()))
                }
                None => self.paragraph(&block.join(" ")),
            }
        }
    }

    fn exit_statuses(&mut self, command: &Command) {
        let commands = || std::iter::once(command).chain(command.get_subcommands());
        let has = |id: &str| commands().any(|command| command.get_arguments().any(|arg| arg.get_id() == id));
        self.heading(1, "Exit status");
        let mut add = |status: &str, text: &str| {
            self.parts.push(Part::Term(vec![status.to_owned()], text.to_owned()));
        };
        add("0", "Success.");
        add("1", "An error, or pmc could read only part of a recording and showed this part.");
        add("2", "An error in the command line.");
        if has("command") {
            add("126", "The command cannot be executed.");
            add("127", "The command does not exist.");
            add("128 + N", "Signal N ended the command.");
        }
        if has("fail_if") {
            self.paragraph("With `--fail-if`: 0 for a pass, 1 for a regression, 2 if the runs cannot tell.");
        }
        self.paragraph("docs/errors.md lists all statuses.");
    }

    fn heading(&mut self, level: usize, title: &str) {
        self.parts.push(Part::Heading(level, title.to_owned()));
    }

    fn paragraph(&mut self, text: &str) {
        self.parts.push(Part::Paragraph(text.to_owned()));
    }
}

/// Returns the command as users type it, such as `pmc lock user`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).to_owned()
}

fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

/// Returns the arguments of a command without those that every command has, which are on the page of pmc.
fn own_arguments(command: &Command) -> Vec<&Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set()).collect()
}

fn synopsis(command: &Command) -> Vec<String> {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").lines().map(|line| line.trim().to_owned()).collect()
}

/// Returns the spellings of an option, the last one with its value: `-e`, `--event EVENTS`.
fn spellings(arg: &Arg) -> Vec<String> {
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
    spellings
}

/// Returns the text of an option, with its values and its default.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = sentence(&help.split_whitespace().collect::<Vec<_>>().join(" "));
    if !arg.get_action().takes_values() {
        return text;
    }
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned());
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let words: [(&str, Vec<String>); 2] = [("Values", values.collect()), ("Default", defaults.collect())];
    for (title, words) in words.iter().filter(|(_, words)| !words.is_empty()) {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        text += &format!(" {title}: {}.", words.join(", "));
    }
    text
}

/// Ends a text with a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', '?']) { text.to_owned() } else { format!("{text}.") }
}
