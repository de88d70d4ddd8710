//! Options that are used instead of a command and print a list for shells and scripts, as in perf.
//!
//! Receives the first word of the command line, and prints a list from the parser to stdout.

use std::ffi::OsStr;
use std::io::Write;

use pmc_sys::error::{Error, Exit, Result};

/// Prints the list that `word` requests; returns `None` if `word` is not one of these options.
pub(super) fn answer(word: &OsStr, parser: &dyn Fn() -> clap::Command) -> Option<Result<Exit>> {
    let text = match word.to_str()? {
        // Users type `stat-record` as two words.
        "--list-cmds" => {
            let parser = parser();
            let shown = parser.get_subcommands().filter(|command| !command.is_hide_set());
            let names = shown.map(clap::Command::get_name).filter(|name| !name.starts_with("stat-"));
            names.collect::<Vec<_>>().join(" ")
        }
        "--list-opts" => {
            let parser = parser();
            let names = parser.get_arguments().filter_map(clap::Arg::get_long);
            names.map(|name| format!("--{name}")).collect::<Vec<_>>().join(" ")
        }
        // All commands are part of pmc's executable.
        "--exec-path" => match std::env::current_exe() {
            Ok(file) => file.parent()?.display().to_string(),
            Err(error) => return Some(Err(Error::io("finding pmc itself", error))),
        },
        _ => return None,
    };
    let printed = writeln!(std::io::stdout(), "{text}");
    Some(printed.map(|()| Exit::Done).map_err(|error| Error::output("the list", error)))
}
