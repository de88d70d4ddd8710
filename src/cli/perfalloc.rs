//! Options of the `perfalloc` personality, parsed with the getopt string `dDf:hv` instead of clap.
//!
//! Receives the words after the program's name, and returns the parsed command. As in glibc, options may
//! appear between operands. The options of COMMAND are therefore interpreted as options of perfalloc, unless
//! `--` precedes them or `POSIXLY_CORRECT` is set. An option that ends the program (`-h`, `-v` or an invalid
//! one) takes effect immediately, and the words after it are not parsed.

use std::ffi::OsString;
use std::path::PathBuf;

use super::getopt::{self, InvalidOption, OperandOrder};

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum PerfallocCommand {
    /// `-h`.
    Help,
    /// `-v`.
    Version,
    /// An invalid option. The string is getopt's message without the program's name.
    Wrong(String),
    /// Reserve the counters.
    Reserve(PerfallocOptions),
}

/// Settings of the reservation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PerfallocOptions {
    /// Whether to run in the background: whether `-d` is the last of the options `-d` and `-D`.
    pub(crate) background: bool,
    /// `-f FILE`.
    pub(crate) file: Option<PathBuf>,
    /// The operands: the command.
    pub(crate) command: Vec<OsString>,
}

/// Parses the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>, posixly_correct: bool) -> PerfallocCommand {
    let order = if posixly_correct { OperandOrder::OptionsFirst } else { OperandOrder::Permuted };
    let wrong = |wrong| {
        PerfallocCommand::Wrong(match wrong {
            InvalidOption::Unknown(letter) => format!("invalid option -- '{letter}'"),
            InvalidOption::NoValue(letter) => format!("option requires an argument -- '{letter}'"),
        })
    };
    let mut typed = PerfallocOptions::default();
    let operands = getopt::read(words, "dDf:hv", order, wrong, |letter, value| {
        match letter {
            'd' => typed.background = true,
            'D' => typed.background = false,
            'h' => return Err(PerfallocCommand::Help),
            'v' => return Err(PerfallocCommand::Version),
            _ => typed.file = value.map(PathBuf::from),
        }
        Ok(())
    });
    match operands {
        Ok(command) => PerfallocCommand::Reserve(PerfallocOptions { command, ..typed }),
        Err(ended) => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, posixly_correct: bool) -> PerfallocCommand {
        parse(line.split_whitespace().map(OsString::from), posixly_correct)
    }

    fn reserve(background: bool, file: &str, command: &[&str]) -> PerfallocCommand {
        let file = (!file.is_empty()).then(|| file.into());
        PerfallocCommand::Reserve(PerfallocOptions {
            background,
            file,
            command: command.iter().map(OsString::from).collect(),
        })
    }

    #[test]
    fn options_may_follow_operands() {
        assert_eq!(read("ls -d -f x dir", false), reserve(true, "x", &["ls", "dir"]));
        assert_eq!(read("ls -d dir", true), reserve(false, "", &["ls", "-d", "dir"]));
        assert_eq!(read("-dD -- ls -d", false), reserve(false, "", &["ls", "-d"]));
        assert_eq!(read("a -- -d -- b", false), reserve(false, "", &["a", "-d", "--", "b"]));
        assert_eq!(read("-dfx - y", false), reserve(true, "x", &["-", "y"]));
    }

    #[test]
    fn first_terminating_option_wins() {
        assert_eq!(read("-hv", false), PerfallocCommand::Help);
        assert_eq!(read("-v -x", false), PerfallocCommand::Version);
        assert_eq!(read("ls -l", false), PerfallocCommand::Wrong("invalid option -- 'l'".into()));
        assert_eq!(read("--help", false), PerfallocCommand::Wrong("invalid option -- '-'".into()));
        assert_eq!(read("-f", false), PerfallocCommand::Wrong("option requires an argument -- 'f'".into()));
    }
}
