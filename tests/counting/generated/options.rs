//! Generates and checks docs/perf-options.md, which says how pmc handles each option of the newest perf.
//! `generated/perf-options.txt` lists perf's options (made by `tests/perf-options`). The answers come from
//! the parser and its table of perf options; nothing is written by hand.

use crate::kit::{self, oracle};

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use clap::{Arg, Command as Parser};
use pmc::cli::perf_only::PERF_ONLY;
use pmc::cli::perf_options::{OPTIONS, OptionTreatment, PerfOption};

/// The newest perf's options, one per line.
const PERF: &str = include_str!("perf-options.txt");

/// An option of a perf command, such as `stat record` and `-f, --force`.
#[derive(Debug, Clone, Copy)]
struct Theirs {
    command: &'static str,
    spelling: &'static str,
}

/// Value of an option.
enum Value {
    None,
    /// Joined to the option by `=`.
    Optional,
    Required,
}

/// How pmc handles the option.
enum Verdict {
    Same,
    /// Under this name.
    Named(String),
    OfTable(&'static PerfOption),
    Unanswered,
}

fn perf_commands() -> impl Iterator<Item = &'static str> {
    PERF.lines().filter_map(|line| line.strip_prefix("command: "))
}

fn perf_options() -> impl Iterator<Item = Theirs> {
    let lines = PERF.lines().filter(|line| !line.starts_with("command: "));
    lines
        .map(|line| line.split_once(": ").expect("COMMAND: OPTION"))
        .map(|(command, spelling)| Theirs { command, spelling })
}

/// Returns the pmc command with this name, which may be a subcommand.
fn find<'a>(parser: &'a Parser, command: &str) -> Option<&'a Parser> {
    // The parser's name for `stat record` is `stat-record`.
    let joined = parser.find_subcommand(command.replace(' ', "-"));
    joined.or_else(|| command.split(' ').try_fold(parser, |parser, word| parser.find_subcommand(word)))
}

impl Theirs {
    fn short(self) -> Option<char> {
        self.spelling.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')
    }

    fn long(self) -> Option<&'static str> {
        let (_, long) = self.spelling.split_once("--")?;
        Some(&long[..long.find([' ', '[']).unwrap_or(long.len())])
    }

    fn value(self) -> Value {
        match self.spelling {
            text if text.contains("[=") => Value::Optional,
            text if text.contains(" <") || text.ends_with(" ...") => Value::Required,
            _ => Value::None,
        }
    }

    /// Returns the option in Markdown, without its value.
    fn shown(self) -> String {
        let short = self.short().map(|letter| format!("`-{letter}`"));
        let long = self.long().map(|long| format!("`--{long}`"));
        short.into_iter().chain(long).collect::<Vec<_>>().join(" ")
    }

    fn is(self, option: &PerfOption) -> bool {
        option.is_of(self.command)
            && self.long().or(Some("")) == Some(option.long().unwrap_or_default())
            && (self.long().is_some() || self.short() == option.short())
    }

    /// Returns pmc's argument for this option.
    fn argument(self, parser: &Parser) -> Option<&Arg> {
        let by_long = |argument: &&Arg| {
            self.long().is_some_and(|long| {
                argument.get_long() == Some(long)
                    || argument.get_all_aliases().unwrap_or_default().contains(&long)
            })
        };
        let by_short = |argument: &&Arg| self.short().is_some() && argument.get_short() == self.short();
        let find = |is: &dyn Fn(&&Arg) -> bool| parser.get_arguments().find(is);
        find(&by_long).or_else(|| find(&by_short))
    }

    /// Returns why pmc refuses an option that it knows, and what to do instead. The answer comes from running
    /// pmc. This works only for commands that read a recording, because the others would measure.
    fn refusal(self) -> Option<(String, String)> {
        let reads =
            perf_options().any(|other| other.command == self.command && other.long() == Some("input"));
        if !reads || self.long() == Some("input") || self.command == "record" {
            return None;
        }
        let typed =
            self.long().map_or_else(|| format!("-{}", self.short().unwrap_or('?')), |l| format!("--{l}"));
        let with_value = match self.value() {
            Value::None => typed.clone(),
            Value::Optional | Value::Required => format!("{typed}=x"),
        };
        let words = self.command.split(' ').chain([with_value.as_str(), "-i", "/nonexistent"]);
        let stderr = kit::run(&words.collect::<Vec<_>>()).stderr;
        if !stderr.starts_with(&format!("pmc: pmc {} has no {typed}\n", self.command)) {
            return None;
        }
        let line = |label: &str| stderr.lines().find_map(|line| line.trim_start().strip_prefix(label));
        Some((line("why: ").unwrap_or_default().to_owned(), line("try: ").unwrap_or_default().to_owned()))
    }

    fn verdict(self, parser: &Parser) -> Verdict {
        if let Some(option) = OPTIONS.iter().find(|option| self.is(option)) {
            return Verdict::OfTable(option);
        }
        match find(parser, self.command).and_then(|parser| self.argument(parser)) {
            Some(argument) if self.long().is_none() || argument.get_long() == self.long() => Verdict::Same,
            Some(argument) => Verdict::Named(argument.get_long().map_or_else(
                || format!("`-{}`", argument.get_short().expect("an option has a name")),
                |long| format!("`--{long}`"),
            )),
            None => Verdict::Unanswered,
        }
    }
}

/// Returns the text of docs/perf-options.md.
pub(super) fn page(parser: &Parser) -> String {
    let mut page = String::from(
        "# perf's options\n\n\
         What pmc does with every option that perf 7.2 prints in `perf COMMAND -h`. Made from the parser, and from\n\
         runs of pmc, by `PMC_BLESS=1 cargo test --test counting generated`, which also checks it: nothing here is written by hand, and the reasons\n\
         are what pmc says when the option is typed. *Same*: the same name and the same meaning; how pmc differs within that stands in\n\
         [coming-from-perf.md](coming-from-perf.md).\n",
    );
    let mut commands: Vec<&str> = perf_options().map(|option| option.command).collect();
    commands.dedup();
    for command in commands {
        let _ = write!(page, "\n## perf {command}\n\n| perf | pmc | |\n|---|---|---|\n");
        let all = || perf_options().filter(move |option| option.command == command);
        let refusals: Vec<_> = all().map(|option| (option.spelling, option.refusal())).collect();
        let refusal = |option: Theirs| {
            let own = refusals.iter().find(|(spelling, _)| *spelling == option.spelling);
            own.and_then(|(_, refusal)| refusal.as_ref())
        };
        let is_same =
            |option: &Theirs| matches!(option.verdict(parser), Verdict::Same) && refusal(*option).is_none();
        let same = all().filter(is_same).map(Theirs::shown);
        let same = same.collect::<Vec<_>>().join(", ");
        if !same.is_empty() {
            let _ = writeln!(page, "| {same} | same | |");
        }
        for option in all() {
            let (what, why) = match option.verdict(parser) {
                Verdict::Same => match refusal(option) {
                    Some((why, instead)) => ("refused".to_owned(), format!("{why}; instead: {instead}")),
                    None => continue,
                },
                Verdict::Named(name) => (name, String::new()),
                Verdict::Unanswered => ("unknown".to_owned(), String::new()),
                Verdict::OfTable(of_table) => match of_table.answer {
                    OptionTreatment::AlreadySo(why) | OptionTreatment::Ignored(why) => {
                        ("accepted, no effect".to_owned(), why.to_owned())
                    }
                    OptionTreatment::Refused(why, instead) => {
                        ("refused".to_owned(), format!("{why}; instead: {instead}"))
                    }
                },
            };
            let _ = writeln!(page, "| {} | {what} | {} |", option.shown(), why.replace('|', "\\|"));
        }
    }
    page += "\n## Commands that pmc has not\n\n| perf | what it does | instead |\n|---|---|---|\n";
    for (names, what, instead) in PERF_ONLY {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} | {what} | {} |", names.join(", "), instead.replace('|', "\\|"));
    }
    page
}

#[test]
fn option_list_matches_the_newest_perf() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf-options");
    let perfs = oracle::perfs();
    let [_, newest] = &perfs[..] else { return };
    let list = Command::new(&script).arg(newest).output().expect("the script starts");
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counting/generated/perf-options.txt");
    if std::env::var_os("PMC_BLESS").is_some() {
        std::fs::write(&file, &list).expect("the file can be written");
    }
    assert!(list == PERF, "tests/perf-options {} prints another list", newest.display());
}

#[test]
fn every_perf_option_is_classified() {
    let parser = super::parser();
    let unanswered = perf_options().filter(|option| matches!(option.verdict(parser), Verdict::Unanswered));
    let unanswered: Vec<Theirs> = unanswered.collect();
    assert!(unanswered.is_empty(), "no answer: {unanswered:#?}");
}

#[test]
fn every_perf_command_is_classified() {
    let parser = super::parser();
    for command in perf_commands() {
        let elsewhere = PERF_ONLY.iter().find(|(names, ..)| names.contains(&command));
        assert!(find(parser, command).is_some() != elsewhere.is_some(), "perf {command}");
        if let Some((_, what, instead)) = elsewhere {
            let ran = kit::run(&[command])
                .expect(2)
                .says(&[&format!("pmc has no command {command}"), &format!("why: perf {command} {what}")]);
            instead.split("; ").fold(ran, |ran, advice| ran.says(&[&format!("try: {advice}")]));
        }
    }
}

/// Options whose values differ from perf's, with the reason.
const OTHER_VALUES: &[(&str, &str, &str)] =
    &[("record", "-S, --snapshot[=<opts>]", "perf's are for the traces of processors")];

/// If an option requires a value but perf's takes none, it would swallow the next word.
#[test]
fn options_take_values_like_perf() {
    let parser = super::parser();
    let mut differ = Vec::new();
    for option in perf_options() {
        let Some(argument) = find(parser, option.command).and_then(|parser| option.argument(parser)) else {
            continue;
        };
        let takes = argument.get_action().takes_values();
        let must = takes && argument.get_num_args().is_none_or(|range| range.min_values() > 0);
        let is_joined = argument.is_require_equals_set();
        let fits = match option.value() {
            Value::None => !must && (!takes || is_joined),
            Value::Optional => takes && !must,
            Value::Required => takes && !is_joined,
        };
        let is_meant = |(command, spelling, _): &(&str, &str, &str)| {
            (*command, *spelling) == (option.command, option.spelling)
        };
        if !fits && !OTHER_VALUES.iter().any(is_meant) {
            differ.push(format!("{}: {}", option.command, option.spelling));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Every option hidden from the help is a perf option and has a reason in the table.
#[test]
fn hidden_options_have_a_reason() {
    let parser = super::parser();
    for option in perf_options() {
        let argument = find(parser, option.command).and_then(|parser| option.argument(parser));
        let is_hidden =
            argument.is_some_and(|argument| argument.is_hide_set() && argument.get_id() != "input");
        assert!(!is_hidden || OPTIONS.iter().any(|of_table| option.is(of_table)), "{option:?}");
    }
}

#[test]
fn option_behaviour_matches_the_table() {
    for option in OPTIONS {
        let OptionTreatment::Refused(why, instead) = option.answer else { continue };
        let command = option.commands().next().expect("a command");
        let typed =
            if option.takes_value() { format!("{}=x", option.typed()) } else { option.typed().to_owned() };
        // Options before the command need a command.
        let (words, name) = match command {
            "pmc" => (vec![typed.as_str(), "version"], "pmc".to_owned()),
            _ => (command.split(' ').chain([typed.as_str()]).collect(), format!("pmc {command}")),
        };
        let refused = kit::run(&words);
        refused.expect(2).says(&[&format!("{name} has no {}", option.typed()), why, instead]);
    }
}
