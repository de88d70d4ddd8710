//! Advice to the user. Options are stored as values, because personalities use different letters for them.
//!
//! The libraries do not know the program's commands and options: they say what may help as a [`Hint`], a
//! value of their own. The program's table ([`set_table`]) turns it into advice that names them.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An option mentioned in advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdvisedOption {
    /// `-c`: the number of events between two samples.
    Period,
    /// `-i`: the recording to read.
    Input,
    /// `-p`: the processes to measure.
    Processes,
    /// `-o` of commands that record.
    Recording,
    /// `-o` of an export to one file.
    ExportFile,
    /// `-o` of an export to a directory.
    ExportFolder,
    /// Any other option; no personality has its own letter for it.
    Named(&'static str),
}

impl fmt::Display for AdvisedOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Period => "-c",
            Self::Input => "-i",
            Self::Processes => "-p",
            Self::Recording | Self::ExportFile | Self::ExportFolder => "-o",
            Self::Named(name) => name,
        })
    }
}

/// The option letters of a personality.
pub type OptionLetters = &'static [(AdvisedOption, &'static str)];

/// What may help, as a value of the library that found the problem. `Display` says it without naming commands
/// or options of a program.
pub trait Hint: fmt::Debug + fmt::Display + Any + Send + Sync {}

/// Turns the [`Hint`]s that it knows into advice that names commands and options.
pub type HintTable = fn(&dyn Any) -> Option<Advice>;

static TABLE: OnceLock<HintTable> = OnceLock::new();

/// Sets the program's table of hints. Only the first call has an effect.
pub fn set_table(table: HintTable) {
    let _ = TABLE.set(table);
}

/// A suggestion for the user. [`Display`](fmt::Display) prints pmc's options.
#[derive(Debug, Clone)]
pub struct Advice(Words);

#[derive(Debug, Clone)]
enum Words {
    /// Text without options of pmc, except in command lines that begin with `pmc`.
    Plain(String),
    /// Text with options of pmc.
    Options(String),
    /// Text in which `{option}` is replaced by the option.
    Option(AdvisedOption, String),
    Hint(Arc<dyn Hint>),
}

impl PartialEq for Advice {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

/// Converts text without options of pmc, except in command lines that begin with `pmc`.
impl<T: Into<String>> From<T> for Advice {
    fn from(text: T) -> Self {
        Self(Words::Plain(text.into()))
    }
}

impl Advice {
    /// Returns advice that names options of pmc, which a personality does not have.
    pub fn options(text: impl Into<String>) -> Self {
        Self(Words::Options(text.into()))
    }

    /// Returns advice about an option, for which a personality may have another letter.
    pub fn about(option: AdvisedOption, text: impl Into<String>) -> Self {
        Self(Words::Option(option, text.into()))
    }

    /// Returns the advice that the program's table has for a hint, or the hint's own words.
    pub fn hint(hint: impl Hint) -> Self {
        Self(Words::Hint(Arc::new(hint)))
    }

    /// Returns the advice in the program's words.
    fn resolved(&self) -> Cow<'_, Self> {
        match &self.0 {
            Words::Hint(hint) => Cow::Owned(
                TABLE.get().and_then(|table| table(&**hint)).unwrap_or_else(|| hint.to_string().into()),
            ),
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns the text of the advice, with the option letters of a personality. If the personality has no
    /// letter for an option, the text uses pmc's options and says so.
    pub(super) fn spelled(&self, letters: OptionLetters) -> String {
        let this = self.resolved();
        let own = match &this.0 {
            Words::Plain(text) => Some(text.clone()),
            Words::Option(option, text) => {
                let letter = letters.iter().find(|(known, _)| known == option);
                letter.map(|(_, letter)| text.replace("{option}", letter))
            }
            Words::Options(_) | Words::Hint(_) => None,
        };
        own.unwrap_or_else(|| format!("in pmc's own options: {this}"))
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resolved().0 {
            Words::Plain(text) | Words::Options(text) => f.write_str(text),
            Words::Option(option, text) => f.write_str(&text.replace("{option}", &option.to_string())),
            Words::Hint(hint) => hint.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personalities_have_their_own_letters() {
        const LETTERS: OptionLetters = &[(AdvisedOption::Period, "-n")];
        let both = |advice: Advice| (advice.to_string(), advice.spelled(LETTERS));
        let known = Advice::about(AdvisedOption::Period, "a smaller {option}");
        assert_eq!(both(known), ("a smaller -c".into(), "a smaller -n".into()));
        let unknown = Advice::about(AdvisedOption::Input, "{option} FILE");
        assert_eq!(both(unknown), ("-i FILE".into(), "in pmc's own options: -i FILE".into()));
        let options = Advice::options("lower the frequency (-F)");
        assert_eq!(options.to_string(), "lower the frequency (-F)");
        assert_eq!(options.spelled(LETTERS), "in pmc's own options: lower the frequency (-F)");
        assert_eq!(Advice::from("mkdir -p x").spelled(LETTERS), "mkdir -p x");
    }
}
