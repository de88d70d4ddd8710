//! Usage errors, in pmc's own form.
//!
//! Converts clap's errors to an [`Error`]. Suggests the nearest word, or pmc's replacement for a command that
//! pmc lacks.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use pmc_sys::error::Error;

/// Names of commands that pmc does not have, their purpose, and the nearest pmc equivalent.
type MissingCommands = (&'static [&'static str], &'static str, &'static str);

/// The command that records events that are already open.
const ATTACH: &str = "pmc persist attach";

/// Converts clap's error. `of_perf` and `of_freebsd` list commands of perf and of FreeBSD's pmc that
/// pmc does not have. `is_of_record` tests for an option of `pmc record`.
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
                return Error::usage(format!("pmc has no command {name}"))
                    .why(format!("perf {name} {what}; pmc counts, samples and shows"))
                    .try_this(*instead);
            }
            (None, Some((_, what, instead))) => {
                return Error::usage(format!("pmc has no command {name}"))
                    .why(format!("FreeBSD's pmc {name} {what}; pmc has another command for this"))
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
        // The first paragraph states the error. The tips and the usage that follow are also in --help.
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

/// Returns the valid part of the typed command: `pmc`, `pmc record`.
fn command(complaint: &clap::Error) -> String {
    let usage = complaint.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "pmc").skip(1);
    let literal: Vec<&str> =
        words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    [&["pmc"][..], &literal].concat().join(" ")
}
