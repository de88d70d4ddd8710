//! `perfalloc`: what can be typed when pmc is called by that name: getopt's `dDf:hv`, not clap's rules.
//!
//! Receives the words after the name; hands on what they mean. As in glibc options are found between the
//! operands too, so options of COMMAND are taken for ours unless `--` comes first or `POSIXLY_CORRECT` is
//! set. An option that ends the program (`-h`, `-v`, a wrong one) does so where it stands; what follows is
//! not looked at.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// `-h`.
    Help,
    /// `-v`.
    Version,
    /// A wrong option: getopt's words, without the program's name.
    Wrong(String),
    /// Reserve.
    Reserve(Perfalloc),
}

/// How to reserve.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Perfalloc {
    /// `-d` came after any `-D`.
    pub background: bool,
    /// `-f FILE`.
    pub file: Option<PathBuf>,
    /// The operands.
    pub command: Vec<OsString>,
}

/// Reads the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>, posixly_correct: bool) -> Typed {
    let mut typed = Perfalloc::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let letters = match word.as_bytes() {
            b"--" => break,
            [b'-', letters @ ..] if !letters.is_empty() => letters,
            _ => {
                typed.command.push(word);
                if posixly_correct {
                    break;
                }
                continue;
            }
        };
        for (at, letter) in letters.iter().enumerate() {
            match letter {
                b'd' => typed.background = true,
                b'D' => typed.background = false,
                b'h' => return Typed::Help,
                b'v' => return Typed::Version,
                b'f' => {
                    let rest = &letters[at + 1..];
                    let value =
                        if rest.is_empty() { words.next() } else { Some(OsStr::from_bytes(rest).to_owned()) };
                    let Some(value) = value else {
                        return Typed::Wrong("option requires an argument -- 'f'".into());
                    };
                    typed.file = Some(PathBuf::from(OsString::from_vec(value.into_vec())));
                    break;
                }
                other => return Typed::Wrong(format!("invalid option -- '{}'", char::from(*other))),
            }
        }
    }
    typed.command.extend(words);
    Typed::Reserve(typed)
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
