//! Options of one letter as getopt(3) finds them, for the programs whose names pmc answers to.
//!
//! Receives the words after the name, and the letters; hands each option on as it is found, and the operands
//! in the end. What is said of a wrong option is each program's own.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What is wrong with an option.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    /// There is none of this letter.
    Unknown(char),
    /// It takes a value, and there is none.
    NoValue(char),
}

/// Whether options are looked for behind the first operand, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// glibc's way.
    Permuted,
    /// BSD's, and POSIX's.
    OptionsFirst,
}

/// Reads words: `take` gets each option with its value, in their order; what is left are the operands.
/// `letters`: those with a colon behind them take a value. What follows `--` is no option.
///
/// # Errors
/// The first of `wrong` and of `take`; what follows it is not looked at.
pub(crate) fn read<E>(
    words: impl IntoIterator<Item = OsString>,
    letters: &str,
    order: Order,
    wrong: impl Fn(Wrong) -> E,
    mut take: impl FnMut(char, Option<OsString>) -> Result<(), E>,
) -> Result<Vec<OsString>, E> {
    let mut words = words.into_iter();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        let own = match word.as_bytes() {
            b"--" => break,
            [b'-', own @ ..] if !own.is_empty() => own,
            _ => {
                operands.push(word);
                if order == Order::OptionsFirst {
                    break;
                }
                continue;
            }
        };
        for (at, &letter) in own.iter().enumerate() {
            let letter = char::from(letter);
            let place = letters.find(letter).filter(|_| letter != ':');
            let place = place.ok_or_else(|| wrong(Wrong::Unknown(letter)))?;
            if letters.as_bytes().get(place + 1) != Some(&b':') {
                take(letter, None)?;
                continue;
            }
            let rest = &own[at + 1..];
            let value = if rest.is_empty() { words.next() } else { Some(OsStr::from_bytes(rest).to_owned()) };
            take(letter, Some(value.ok_or_else(|| wrong(Wrong::NoValue(letter)))?))?;
            break;
        }
    }
    operands.extend(words);
    Ok(operands)
}
