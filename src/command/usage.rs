//! Formats usage errors in pmc's own style.
//!
//! Converts a clap error to an [`Error`]. Suggests the most similar word, the pmc equivalent of a command
//! that pmc does not have, or the subcommands that accept an option or a command to run.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use pmc_events::event::ParseError;
use pmc_sys::error::Error;

/// Commands that pmc does not have: names, purpose, and the nearest equivalent in pmc.
type MissingCommands = (&'static [&'static str], &'static str, &'static str);

/// The command for recording events that are already open.
const ATTACH: &str = "pmc persist attach";

/// Adds the command that `words` run to a clap error that does not name it. clap names the command only in
/// some errors, for example not if an option's value is invalid.
pub(super) fn with_command(
    mut complaint: clap::Error,
    words: &[OsString],
    mut parser: clap::Command,
) -> clap::Error {
    if complaint.get(ContextKind::Usage).is_none() {
        parser.build();
        let name = command_of(&parser, words).get_bin_name().unwrap_or("pmc").replace("stat-", "stat ");
        complaint.insert(ContextKind::Usage, ContextValue::String(name));
    }
    complaint
}

/// Returns the command that these words run. The first word is the program's name. `parser` has been built.
pub(super) fn command_of<W: AsRef<OsStr>>(
    parser: &clap::Command,
    words: impl IntoIterator<Item = W>,
) -> &clap::Command {
    let own = words.into_iter().skip(1).take_while(|word| word.as_ref() != "--");
    own.fold(parser, |command, word| command.find_subcommand(word.as_ref()).unwrap_or(command))
}

/// Returns the error of a value's own parser. Names the option, if it is the value of one, by its letter, or
/// by its long name if it has no letter.
fn of_value(complaint: &clap::Error, parser: &clap::Command) -> Option<Error> {
    let source = std::error::Error::source(complaint)?;
    // An error in the syntax of events and probes shows the whole text.
    if let Some(error) = source.downcast_ref::<Box<ParseError>>() {
        return Some(error.clone().into());
    }
    let error = source.downcast_ref::<Error>()?.clone();
    let text = |kind| match complaint.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (name, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let long = name.trim_start_matches("--").split([' ', '=', '[']).next().unwrap_or_default();
    let mut options = command_of(parser, command(complaint).split(' ')).get_arguments();
    let Some(option) = options.find(|option| option.get_long() == Some(long)) else { return Some(error) };
    let typed = option.get_short().map_or_else(|| format!("--{long}"), |letter| format!("-{letter}"));
    let separator = if option.is_require_equals_set() { "=" } else { " " };
    Some(error.of_option(&format!("{typed}{separator}"), value))
}

/// Converts a clap error. `of_perf` and `of_freebsd` list commands of perf and of FreeBSD's pmc that pmc does
/// not have. `parser` is pmc's parser.
pub(super) fn error(
    complaint: &clap::Error,
    [of_perf, of_freebsd]: [&[MissingCommands]; 2],
    mut parser: clap::Command,
) -> Error {
    parser.build();
    if let Some(error) = of_value(complaint, &parser) {
        return error;
    }
    let is_of_record =
        |name: &str| parser.find_subcommand("record").is_some_and(|record| has_option(record, name));
    let texts = |kind| match complaint.get(kind) {
        Some(ContextValue::String(text)) => vec![text.as_str()],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let command = command(complaint);
    let error = match (&texts(ContextKind::InvalidSubcommand)[..], &texts(ContextKind::InvalidArg)[..]) {
        ([name], _) => match (find(of_perf, name), find(of_freebsd, name)) {
            (Some((_, what, instead)), _) => {
                let error =
                    Error::usage(format!("pmc has no command {name}")).why(format!("perf {name} {what}"));
                return instead.split("; ").fold(error, Error::try_this);
            }
            (None, Some((_, what, instead))) => {
                return Error::usage(format!("pmc has no command {name}"))
                    .why(format!("FreeBSD's pmc {name} {what}; this pmc uses a different command for that"))
                    .try_this(*instead);
            }
            (None, None) if command == "pmc" => Error::usage(format!("pmc has no command {name}")),
            (None, None) => {
                let accepts =
                    |sub: &clap::Command| sub.get_positionals().any(clap::Arg::is_trailing_var_arg_set);
                let error = Error::usage(format!("{command} has no subcommand {name}"));
                suggest(error, &parser, &command, &format!("-- {name}"), accepts)
            }
        },
        (_, [name]) if command == ATTACH && is_of_record(name) => {
            return Error::usage(format!("{command} has no option {name}"))
                .why("the events are already open and cannot be changed")
                .try_this(format!("pmc record {name} first, then pmc persist adopt; or pmc persist add"));
        }
        (_, [name]) if complaint.kind() == ErrorKind::UnknownArgument => {
            let error = Error::usage(format!("{command} has no option {name}"));
            suggest(error, &parser, &command, name, |sub| has_option(sub, name))
        }
        // Keep only the first paragraph, which states the error. The tips and the usage after it are also in
        // --help.
        _ => {
            let whole = complaint.render().to_string();
            let whole = whole.strip_prefix("error: ").unwrap_or(&whole);
            Error::usage(whole.split("\n\n").next().unwrap_or(whole).trim_end())
        }
    };
    let near = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let near: Vec<&str> = near.into_iter().flat_map(texts).collect();
    let error =
        if near.is_empty() { error } else { error.try_this(format!("did you mean {}?", near.join(" or "))) };
    error.try_options(format!("{command} --help"))
}

/// Adds the subcommands of `command` that accept the rest of the command line. A subcommand that only records
/// comes last if others show a result.
fn suggest(
    error: Error,
    parser: &clap::Command,
    command: &str,
    rest: &str,
    accepts: impl Fn(&clap::Command) -> bool,
) -> Error {
    let words = command.split(' ').skip(1);
    let Some(command) = words.clone().try_fold(parser, |parser, word| parser.find_subcommand(word)) else {
        return error;
    };
    let is_group = words.count() > 0 && command.has_subcommands();
    let mut accepting: Vec<_> = command.get_subcommands().filter(|sub| is_group && accepts(sub)).collect();
    accepting.sort_by_key(|sub| sub.get_name() == "record");
    accepting.iter().fold(error, |error, sub| {
        let name = sub.get_bin_name().unwrap_or(sub.get_name());
        let about = sub.get_about().map(|about| format!(": {about}")).unwrap_or_default();
        error.try_this(format!("{name} {rest}{about}"))
    })
}

/// Whether a command has this option, which the user typed as `-F` or `--freq`, for example.
fn has_option(command: &clap::Command, typed: &str) -> bool {
    command.get_arguments().any(|option| match typed.strip_prefix("--") {
        Some(long) => option.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long)),
        None => {
            let letters = option.get_short_and_visible_aliases().unwrap_or_default();
            letters.iter().any(|letter| typed.strip_prefix('-') == Some(letter.to_string().as_str()))
        }
    })
}

fn find<'a>(list: &'a [MissingCommands], name: &&str) -> Option<&'a MissingCommands> {
    list.iter().find(|(names, ..)| names.contains(name))
}

/// Returns the valid command words, such as `pmc` or `pmc record`.
fn command(complaint: &clap::Error) -> String {
    let usage = complaint.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "pmc").skip(1);
    let literal: Vec<&str> =
        words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    [&["pmc"][..], &literal].concat().join(" ")
}
