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

/// A suggestion for the user: text in which `{option}` is replaced by the option, or a [`Hint`].
/// [`Display`](fmt::Display) prints pmc's option.
#[derive(Debug, Clone)]
pub struct Advice {
    text: String,
    option: Option<AdvisedOption>,
    hint: Option<Arc<dyn Hint>>,
}

impl PartialEq for Advice {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl<T: Into<String>> From<T> for Advice {
    fn from(text: T) -> Self {
        Self { text: text.into(), option: None, hint: None }
    }
}

impl Advice {
    /// Returns advice about an option.
    pub fn about(option: AdvisedOption, text: impl Into<String>) -> Self {
        Self { text: text.into(), option: Some(option), hint: None }
    }

    /// Returns the advice that the program's table has for a hint, or the hint's own words.
    pub fn hint(hint: impl Hint) -> Self {
        Self { text: hint.to_string(), option: None, hint: Some(Arc::new(hint)) }
    }

    /// Returns the advice in the program's words.
    fn resolved(&self) -> Cow<'_, Self> {
        let known = self.hint.as_ref().and_then(|hint| TABLE.get()?(&**hint));
        known.map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// Returns the text of the advice, with the option letters of a personality. If the personality has no
    /// letter for an option, the text uses pmc's options and says so.
    pub(super) fn spelled(&self, letters: OptionLetters) -> String {
        let this = self.resolved();
        let letter = this.option.map(|option| letters.iter().find(|(own, _)| *own == option));
        match letter {
            Some(Some((_, letter))) if !names_options(&this.text) => this.text.replace("{option}", letter),
            None if !names_options(&this.text) => this.text.clone(),
            _ => format!("in pmc's own options: {this}"),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let this = self.resolved();
        match this.option {
            Some(option) => f.write_str(&this.text.replace("{option}", &option.to_string())),
            None => f.write_str(&this.text),
        }
    }
}

/// Whether the text mentions pmc options outside command lines.
fn names_options(text: &str) -> bool {
    /// Programs whose command lines appear in advice. A command line ends at a comma or bracket.
    const PROGRAMS: [&str; 11] =
        ["pmc", "perf", "mkdir", "mount", "pgrep", "ps", "sh", "sudo", "sysctl", "taskset", "ulimit"];
    text.split([',', ')']).any(|clause| {
        let words = clause.split(|c: char| c != '-' && !c.is_alphanumeric());
        let mut own = words.take_while(|word| !PROGRAMS.contains(word));
        own.any(|word| word.len() > 1 && word.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personalities_have_their_own_letters() {
        let of = |text: &str| {
            let advice = Advice::about(AdvisedOption::Period, text);
            (advice.to_string(), advice.spelled(&[(AdvisedOption::Period, "-n")]))
        };
        assert_eq!(of("a smaller {option}"), ("a smaller -c".into(), "a smaller -n".into()));
        assert_eq!(of("{option} N, or -F").1, "in pmc's own options: -c N, or -F");
        let unknown = Advice::about(AdvisedOption::Input, "{option} FILE");
        assert_eq!(unknown.spelled(&[]), "in pmc's own options: -i FILE");
        for (text, is_plain) in [
            ("mkdir -p x", true),
            ("record something first (pmc record -o x), or wait", true),
            ("raise kernel.perf_event_mlock_kb, or ulimit -l", true),
            ("lower the frequency (-F), or use larger ring buffers (-m)", false),
            ("pmc list -l, or -m", false),
            ("omit the braces, or exclude children (-i)", false),
        ] {
            assert_eq!(Advice::from(text).spelled(&[]) == text, is_plain, "{text}");
        }
    }
}
