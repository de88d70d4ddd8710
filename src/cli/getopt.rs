//! Parses single-letter options like getopt(3), for pmc's personalities.
//!
//! Receives the words after the program's name, and the letters. Passes on each option in order, and
//! returns the operands. Each program words its own errors.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// An invalid option.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InvalidOption {
    /// The letter is not an option.
    Unknown(char),
    /// The option requires a value.
    NoValue(char),
}

/// Whether options may follow the first operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandOrder {
    /// Yes, as in glibc.
    Permuted,
    /// No, as in BSD and POSIX.
    OptionsFirst,
}

/// Parses words. Calls `take` with each option and its value, in order, and returns the operands. In
/// `letters`, a colon marks an option with a value. Words after `--` are operands.
///
/// # Errors
/// The first error of `wrong` or `take`; parsing stops there.
pub(crate) fn read<E>(
    words: impl IntoIterator<Item = OsString>,
    letters: &str,
    order: OperandOrder,
    wrong: impl Fn(InvalidOption) -> E,
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
                if order == OperandOrder::OptionsFirst {
                    break;
                }
                continue;
            }
        };
        for (at, &letter) in own.iter().enumerate() {
            let letter = char::from(letter);
            let place = letters.find(letter).filter(|_| letter != ':');
            let place = place.ok_or_else(|| wrong(InvalidOption::Unknown(letter)))?;
            if letters.as_bytes().get(place + 1) != Some(&b':') {
                take(letter, None)?;
                continue;
            }
            let rest = &own[at + 1..];
            let value = if rest.is_empty() { words.next() } else { Some(OsStr::from_bytes(rest).to_owned()) };
            take(letter, Some(value.ok_or_else(|| wrong(InvalidOption::NoValue(letter)))?))?;
            break;
        }
    }
    operands.extend(words);
    Ok(operands)
}
