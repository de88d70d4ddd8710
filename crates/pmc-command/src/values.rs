//! Values of options that several commands have, and how clap reads them.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use pmc_symbols::symbol::disassemble::Syntax;
use pmc_sys::error::Error;
use pmc_sys::host::cpulist::CpuList;
use pmc_text::units::{self, parse_duration};

/// Returns a parser for an option whose value is one of a few words. Help and completions list the words.
pub fn one_of<T: Clone + Send + Sync>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).map(move |typed| {
        let (_, value) =
            words.iter().find(|(word, _)| *word == typed).expect("clap accepts only these words");
        value.clone()
    })
}

/// The words of `--disassembler-style`.
pub const SYNTAXES: &[(&str, Syntax)] = &[("att", Syntax::Att), ("intel", Syntax::Intel)];

/// A value, and the text that the user typed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed<T> {
    /// The text.
    pub text: String,
    /// The value.
    pub value: T,
}

impl<T: FromStr> FromStr for Typed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { text: text.to_owned(), value: text.parse()? })
    }
}

/// Maximum number of rows or other parts of an output. On the command line, 0 means all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(usize);

impl Limit {
    /// No limit.
    pub const ALL: Self = Self(usize::MAX);

    /// Returns the maximum number.
    pub fn get(self) -> usize {
        self.0
    }

    /// Returns the maximum number of rows: the typed one, or else `usual` in text and all in formats for
    /// programs.
    pub fn rows(typed: Option<Self>, is_text: bool, usual: usize) -> usize {
        typed.map_or(if is_text { usual } else { usize::MAX }, Self::get)
    }
}

impl From<usize> for Limit {
    fn from(typed: usize) -> Self {
        if typed == 0 { Self::ALL } else { Self(typed) }
    }
}

impl FromStr for Limit {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(usize::into)
    }
}

/// The numbers of threads that run at the same time: `1` or `1-2,8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadNumbers(pub CpuList);

impl FromStr for ThreadNumbers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse()
            .map(Self)
            .map_err(|_| Error::usage("not a list of thread counts").try_this("a list such as 1-2,8"))
    }
}

/// A time in nanoseconds, of which a number without a unit means milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Milliseconds(pub u64);

impl FromStr for Milliseconds {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse_duration(text, Some(units::MS)).filter(|ns| *ns > 0).map(Self).ok_or_else(|| {
            Error::usage(format!("must be a time of at least {}", units::duration(1.0)))
                .try_this("100ms, 5s or 2m; a bare number means milliseconds")
        })
    }
}
