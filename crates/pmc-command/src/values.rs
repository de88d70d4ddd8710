//! Values of options that several commands have, and how clap reads them.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use pmc_symbols::symbol::disassemble::Syntax;
use pmc_sys::error::Error;
use pmc_sys::host::cpulist::CpuList;
use pmc_text::units::{self, MS, S, parse_duration, parse_size};

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

/// Parses a size in bytes, such as `100M`.
pub fn size(text: &str) -> Result<u64, Error> {
    parse_size(text)
        .ok_or_else(|| Error::usage("not a valid size").try_this("use a size such as 64K, 100M or 2G"))
}

/// Parses a duration of at least a millisecond, which is also the default unit.
pub fn timeout(text: &str) -> Result<Duration, Error> {
    duration(text, MS, MS)
}

/// Parses a duration. `bare` is the default unit in nanoseconds, and `least` the minimum.
pub fn duration(text: &str, bare: u64, least: u64) -> Result<Duration, Error> {
    parse_duration(text, Some(bare)).filter(|&ns| ns >= least).map(Duration::from_nanos).ok_or_else(|| {
        let (shortest, unit) =
            (units::duration(least as f64), if bare == S { "seconds" } else { "milliseconds" });
        Error::usage(format!("must be a time of at least {shortest}"))
            .try_this(format!("100ms, 5s or 2m; a bare number means {unit}"))
    })
}

/// Parses the ID of a thread.
pub fn thread_id(word: &str) -> Result<u32, Error> {
    word.trim().parse().ok().filter(|&id| id > 0).ok_or_else(|| {
        Error::usage(format!("`{word}` is not a thread id")).try_this("a list of numbers: 12,345")
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
