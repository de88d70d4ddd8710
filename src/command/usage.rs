//! Formats usage errors in pmc's own style.
//!
//! Converts a clap error to an [`Error`]. Suggests the most similar word, or the pmc equivalent of a command
//! that pmc does not have.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use pmc_sys::error::Error;

/// Commands that pmc does not have: names, purpose, and the nearest equivalent in pmc.
type MissingCommands = (&'static [&'static str], &'static str, &'static str);

/// The command for recording events that are already open.
const ATTACH: &str = "pmc persist attach";

/// Converts a clap error. `of_perf` and `of_freebsd` list commands of perf and of FreeBSD's pmc that pmc does
/// not have. `is_of_record` checks whether a word is an option of `pmc record`.
pub(super) fn error(
    complaint: &clap::Error,
    [of_perf, of_freebsd]: [&[MissingCommands]; 2],
    is_of_record: impl FnOnce(&str) -> bool,
) -> Error {
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
            (None, None) => Error::usage(format!("pmc has no command {name}")),
        },
        (_, [name]) if command == ATTACH && is_of_record(name) => {
            return Error::usage(format!("{command} has no option {name}"))
                .why("the events are already open and cannot be changed")
                .try_this(format!("pmc record {name} first, then pmc persist adopt; or pmc persist add"));
        }
        (_, [name]) if complaint.kind() == ErrorKind::UnknownArgument => {
            Error::usage(format!("{command} has no option {name}"))
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
    error.try_this(format!("{command} --help"))
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
