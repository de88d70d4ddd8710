//! `pmc complete`: prints the words that may continue a command line, for the scripts in `completions`.
//!
//! Receives the words after `pmc`, the last of which ends at the cursor and may be empty. The first line of
//! the answer may say what else the shell should do:
//!
//! ```text
//!   --all-user<TAB>Count in user mode only    a word that begins like the last one, and its description
//!   :list                                     the words are items of a list, which may continue
//!   :files                                    complete the name of a file
//!   :command 2                                complete the last two words as a command line of their own
//! ```

mod values;

use std::ffi::OsString;
use std::io::{Write, stdout};

use clap::{Arg, ArgAction, Command};

use crate::cli::spelling::{self, TypedOption};
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::text::clean;

/// What may continue a command line.
#[derive(Debug, PartialEq, Eq)]
enum Completion {
    Words(Vec<Candidate>),
    /// Items of a list, which may continue.
    Items(Vec<Candidate>),
    Files,
    /// This number of words at the end is a command line of another program.
    Command(usize),
}

/// A word that may replace the last one.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    word: String,
    /// One line; may be empty.
    about: String,
}

impl Candidate {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// Prints what may continue these words. `parser` is pmc's parser.
///
/// # Errors
/// Fails if a write fails.
pub(super) fn run(words: &[OsString], mut parser: Command) -> Result<Exit> {
    parser.build();
    let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut text = String::new();
    let candidates = match completion(words, &mut parser) {
        Completion::Words(candidates) => candidates,
        Completion::Items(candidates) => {
            text += ":list\n";
            candidates
        }
        Completion::Files => {
            text += ":files\n";
            Vec::new()
        }
        Completion::Command(words) => {
            text += &format!(":command {words}\n");
            Vec::new()
        }
    };
    for Candidate { word, about } in candidates {
        text += &format!("{}\t{}\n", clean(&word), clean(&about));
    }
    stdout().write_all(text.as_bytes()).map_err(|error| Error::output("the completions", error))?;
    Ok(Exit::Done)
}

/// The part of a command line in front of the last word.
struct CommandLine<'p> {
    command: &'p Command,
    /// The options of the command that were typed.
    options: Vec<TypedOption>,
    /// Number of operands.
    operands: usize,
    /// Whether `--` was typed, after which no word is an option.
    has_ended_options: bool,
    /// The option whose value the last word is.
    value_of: Option<&'p Arg>,
}

/// Returns what may continue these words. `parser` is built.
fn completion(mut words: Vec<String>, parser: &mut Command) -> Completion {
    let last = words.pop().unwrap_or_default();
    let mut before: Vec<OsString> =
        std::iter::once("pmc".into()).chain(words.into_iter().map(OsString::from)).collect();
    spelling::rewrite(&mut before, parser);
    let line = match CommandLine::read(parser, &before[1..]) {
        Ok(line) => line,
        Err(completion) => return completion,
    };
    let completion = match line.value_of {
        Some(option) => values::of_option(option, &last),
        None if line.has_ended_options || !last.starts_with('-') => line.operand(),
        None => match line.value_in(&last) {
            Some((head, option, value)) => return starting(values::of_option(option, value), head, value),
            None => Completion::Words(line.options()),
        },
    };
    starting(completion, "", &last)
}

/// Keeps the candidates that begin with `start`, and puts `head` in front of them.
fn starting(completion: Completion, head: &str, start: &str) -> Completion {
    let kept = |mut candidates: Vec<Candidate>| {
        candidates.retain(|candidate| candidate.word.starts_with(start));
        candidates.iter_mut().for_each(|candidate| candidate.word.insert_str(0, head));
        candidates
    };
    match completion {
        Completion::Words(candidates) => Completion::Words(kept(candidates)),
        Completion::Items(candidates) => Completion::Items(kept(candidates)),
        other => other,
    }
}

impl<'p> CommandLine<'p> {
    /// Reads the words in front of the last one. If they begin the command line of another program, returns
    /// that.
    fn read(parser: &'p Command, before: &[OsString]) -> std::result::Result<Self, Completion> {
        let (options, operands) = (Vec::new(), 0);
        let mut line = Self { command: parser, options, operands, has_ended_options: false, value_of: None };
        for (index, word) in before.iter().enumerate() {
            let word = word.to_string_lossy();
            if line.value_of.take().is_some() {
                continue;
            }
            if !line.has_ended_options && word.starts_with('-') && word.len() > 1 {
                line.has_ended_options = word == "--";
                let (options, value_follows) = spelling::options_in(line.command, &word);
                line.options.extend(options);
                let last = line.options.last().filter(|_| value_follows);
                line.value_of = last.and_then(|typed| line.argument(&typed.option));
            } else if let Some(subcommand) =
                line.command.find_subcommand(&*word).filter(|_| line.operands == 0)
            {
                line = Self { command: subcommand, options: Vec::new(), ..line };
            } else if line.positional().is_some_and(Arg::is_trailing_var_arg_set) {
                return Err(Completion::Command(before.len() - index + 1));
            } else {
                line.operands += 1;
            }
        }
        Ok(line)
    }

    fn argument(&self, id: &clap::Id) -> Option<&'p Arg> {
        self.command.get_arguments().find(|arg| arg.get_id() == id)
    }

    /// Returns the option in a word that also contains the beginning of its value: what precedes the value,
    /// the option, and the value.
    fn value_in<'w>(&self, word: &'w str) -> Option<(&'w str, &'p Arg, &'w str)> {
        let typed = spelling::options_in(self.command, word).0.pop()?;
        let option = self.argument(&typed.option).filter(|option| option.get_action().takes_values())?;
        let rest = word.get(typed.value..).filter(|rest| !rest.is_empty())?;
        let begin = typed.value + usize::from(rest.starts_with('='));
        Some((&word[..begin], option, &word[begin..]))
    }

    /// Returns the positional argument to which the next operand belongs.
    fn positional(&self) -> Option<&'p Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let is_repeated = |arg: &&&Arg| matches!(arg.get_action(), ArgAction::Append);
        all.get(self.operands).or(all.last().filter(is_repeated)).copied()
    }

    /// Returns what the last word may be, if it is no option.
    fn operand(&self) -> Completion {
        let subcommands: Vec<Candidate> = self
            .command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| {
                Candidate::new(
                    command.get_name(),
                    command.get_about().map(ToString::to_string).unwrap_or_default(),
                )
            })
            .collect();
        if !subcommands.is_empty() {
            return Completion::Words(subcommands);
        }
        match self.positional() {
            Some(operand) if operand.is_trailing_var_arg_set() => Completion::Command(1),
            Some(operand) => values::of_option(operand, ""),
            None => Completion::Words(Vec::new()),
        }
    }

    /// Returns the options of the command that may follow those that were typed.
    fn options(&self) -> Vec<Candidate> {
        let excludes = |arg: &Arg, other: &Arg| {
            self.command.get_arg_conflicts_with(arg).iter().any(|found| found.get_id() == other.get_id())
        };
        let typed: Vec<&Arg> = self.options.iter().filter_map(|typed| self.argument(&typed.option)).collect();
        let is_excluded = |arg: &Arg| typed.iter().any(|typed| excludes(arg, typed) || excludes(typed, arg));
        let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
        let mut candidates = Vec::new();
        for arg in shown.filter(|arg| !is_excluded(arg)) {
            let longs = arg.get_long_and_visible_aliases().unwrap_or_default().into_iter();
            let longs = longs.map(|long| format!("--{long}"));
            let shorts = arg.get_short_and_visible_aliases().unwrap_or_default().into_iter();
            let spellings = longs.chain(shorts.map(|short| format!("-{short}")));
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            candidates.extend(spellings.map(|spelling| Candidate::new(spelling, about.clone())));
        }
        candidates
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static PARSER: LazyLock<Command> = LazyLock::new(|| {
        let mut parser = crate::command::parser();
        parser.build();
        parser
    });

    /// Returns the words that may continue a command line, or what the shell should do.
    fn offers(line: &str) -> Vec<String> {
        match completion(line.split(' ').map(str::to_owned).collect(), &mut PARSER.clone()) {
            Completion::Words(candidates) | Completion::Items(candidates) => {
                candidates.into_iter().map(|candidate| candidate.word).collect()
            }
            Completion::Files => vec!["files".to_owned()],
            Completion::Command(words) => vec![format!("command of {words}")],
        }
    }

    #[test]
    fn commands_options_and_values_are_offered() {
        for (line, want) in [
            ("stat-re", &["stat-record", "stat-report"][..]),
            ("lock us", &["user"]),
            ("stat --all-u", &["--all-user"]),
            ("stat -A --no-ag", &["--no-aggr"]),
            ("stat record --all-u", &["--all-user"]),
            ("record --call-graph=dw", &["files"]),
            ("stat --reserve y", &["yield"]),
            ("stat --reserve=y", &["--reserve=yield"]),
            ("stat --no-such=", &[]),
            ("help sched", &["sched"]),
            ("report ", &["files"]),
            ("report -i ", &["files"]),
            ("man reco", &["record"]),
            ("ma", &[]),
        ] {
            assert_eq!(offers(line), want, "{line}");
        }
        assert!(offers("").contains(&"stat".to_owned()) && !offers("").contains(&"complete".to_owned()));
        assert!(offers("stat -").contains(&"-e".to_owned()));
    }

    #[test]
    fn words_of_another_program_are_left_to_the_shell() {
        for (line, want) in [
            ("record -- tru", "command of 1"),
            ("record tru", "command of 1"),
            ("record ls -l --col", "command of 3"),
            ("record -g dwarf -- ls -l", "command of 2"),
            ("lock user -p 1 -- ls ", "command of 2"),
        ] {
            assert_eq!(offers(line), [want], "{line}");
        }
    }

    #[test]
    fn options_that_conflict_with_typed_ones_are_not_offered() {
        assert_eq!(offers("stat --pi"), ["--pid"]);
        assert_eq!(offers("profile --all-c"), ["--all-cpus"]);
        assert!(offers("profile -p 1 --all-c").is_empty());
    }
}
