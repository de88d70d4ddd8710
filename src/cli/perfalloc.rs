//! Options of the `perfalloc` personality: those of its getopt string `dDf:hv`, not clap's.
//!
//! Receives the words after the program's name, and returns the parsed command. As in glibc, options may
//! stand between operands. Options of COMMAND are therefore parsed as pmc's, unless `--` precedes them
//! or `POSIXLY_CORRECT` is set. An option that ends the program (`-h`, `-v` or an invalid one) takes
//! effect immediately; the rest is not parsed.

use std::ffi::OsString;
use std::path::PathBuf;

use super::getopt::{self, Order, Wrong};

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// `-h`.
    Help,
    /// `-v`.
    Version,
    /// An invalid option, with getopt's message but without the program's name.
    Wrong(String),
    /// Reserve the counters.
    Reserve(Perfalloc),
}

/// Settings of the reservation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Perfalloc {
    /// Whether `-d` came after any `-D`.
    pub background: bool,
    /// `-f FILE`.
    pub file: Option<PathBuf>,
    /// The operands: the command.
    pub command: Vec<OsString>,
}

/// Parses the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>, posixly_correct: bool) -> Typed {
    let order = if posixly_correct { Order::OptionsFirst } else { Order::Permuted };
    let wrong = |wrong| {
        Typed::Wrong(match wrong {
            Wrong::Unknown(letter) => format!("invalid option -- '{letter}'"),
            Wrong::NoValue(letter) => format!("option requires an argument -- '{letter}'"),
        })
    };
    let mut typed = Perfalloc::default();
    let operands = getopt::read(words, "dDf:hv", order, wrong, |letter, value| {
        match letter {
            'd' => typed.background = true,
            'D' => typed.background = false,
            'h' => return Err(Typed::Help),
            'v' => return Err(Typed::Version),
            _ => typed.file = value.map(PathBuf::from),
        }
        Ok(())
    });
    match operands {
        Ok(command) => Typed::Reserve(Perfalloc { command, ..typed }),
        Err(ended) => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, posixly_correct: bool) -> Typed {
        parse(line.split_whitespace().map(OsString::from), posixly_correct)
    }

    fn reserve(background: bool, file: &str, command: &[&str]) -> Typed {
        let file = (!file.is_empty()).then(|| file.into());
        Typed::Reserve(Perfalloc { background, file, command: command.iter().map(OsString::from).collect() })
    }

    #[test]
    fn options_are_found_between_operands() {
        assert_eq!(read("ls -d -f x dir", false), reserve(true, "x", &["ls", "dir"]));
        assert_eq!(read("ls -d dir", true), reserve(false, "", &["ls", "-d", "dir"]));
        assert_eq!(read("-dD -- ls -d", false), reserve(false, "", &["ls", "-d"]));
        assert_eq!(read("a -- -d -- b", false), reserve(false, "", &["a", "-d", "--", "b"]));
        assert_eq!(read("-dfx - y", false), reserve(true, "x", &["-", "y"]));
    }

    #[test]
    fn the_first_that_ends_the_program_counts() {
        assert_eq!(read("-hv", false), Typed::Help);
        assert_eq!(read("-v -x", false), Typed::Version);
        assert_eq!(read("ls -l", false), Typed::Wrong("invalid option -- 'l'".into()));
        assert_eq!(read("--help", false), Typed::Wrong("invalid option -- '-'".into()));
        assert_eq!(read("-f", false), Typed::Wrong("option requires an argument -- 'f'".into()));
    }
}
