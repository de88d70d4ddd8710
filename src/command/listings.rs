//! Answers to options that stand in place of a command: the lists that perf gives to shells and scripts.
//!
//! Receives the first word of the command line; prints to stdout. What the lists hold comes from the parser.

use std::ffi::OsStr;
use std::io::Write;

use crate::error::{Error, Exit, say};

/// Prints the list that the word asks for, of these commands; `None` where it is another word.
pub(super) fn answer(word: &OsStr, commands: &[&str], parser: &dyn Fn() -> clap::Command) -> Option<Exit> {
    let text = match word.to_str()? {
        // `stat-record` is typed as two words.
        "--list-cmds" => {
            let typed = commands.iter().filter(|name| !name.starts_with("stat-"));
            typed.copied().collect::<Vec<_>>().join(" ")
        }
        "--list-opts" => {
            let parser = parser();
            let names = parser.get_arguments().filter_map(clap::Arg::get_long);
            names.map(|name| format!("--{name}")).collect::<Vec<_>>().join(" ")
        }
        // pmc's commands are in its one file.
        "--exec-path" => match std::env::current_exe() {
            Ok(file) => file.parent()?.display().to_string(),
            Err(error) => {
                say::error(&Error::io("finding pmc itself", error));
                return Some(Exit::Failure);
            }
        },
        _ => return None,
    };
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Some(Exit::Done),
        Err(error) => {
            let error = Error::output("the list", error);
            say::error(&error);
            Some(error.exit_status())
        }
    }
}
