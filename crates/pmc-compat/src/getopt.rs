//! Parses single-letter options as getopt(3) does, for pmc's personalities.
//!
//! Receives the words after the program's name, and the option letters. Passes each option to the caller in
//! order, and returns the operands. Each personality formats its own error messages.

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

/// Where options may appear in relation to operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandOrder {
    /// Options may follow operands, as in glibc.
    Permuted,
    /// Options end at the first operand, as in BSD and POSIX.
    OptionsFirst,
}

/// Parses `words`. Calls `take` with each option and its value, in order, and returns the operands. In
/// `letters`, a colon follows each option that takes a value. Words after `--` are operands.
///
/// # Errors
/// Stops at the first error that `wrong` or `take` returns, and returns it.
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
