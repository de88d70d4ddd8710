//! Errors in event text: the position, what was expected, and suggestions.
//!
//! Takes spans from `syntax` and `resolve`; returns an [`Error`] that shows the text with carets.

use std::fmt;
use std::ops::Range;

use crate::hint::Hint;
use pmc_sys::error::{Advice, Error};
use pmc_text::text;

/// A byte range of the event text, `start..end`.
pub type TextSpan = Range<usize>;

/// Number of columns of the event text to show around the invalid word.
const SHOWN: usize = 90;

/// An error in event text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The whole text.
    pub(crate) text: String,
    /// The span of the invalid word; may be empty if something is missing.
    pub span: TextSpan,
    /// The error, as one clause without a full stop.
    pub message: String,
    /// What the parser expected instead, as a phrase.
    pub expected: Option<Hint>,
    /// Similar names, most similar first.
    pub suggestions: Vec<String>,
    /// The usual cause.
    pub cause: Option<String>,
    /// A remedy.
    pub remedy: Option<Hint>,
}

/// A parse error that has not been attached to its text yet.
#[derive(Debug, Clone)]
pub(super) struct Fault(Box<ParseError>);

/// Shorthand for results in this folder.
pub(super) type ParseResult<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    pub(super) fn at(span: &TextSpan, message: impl Into<String>) -> Self {
        Self(Box::new(ParseError {
            text: String::new(),
            span: span.clone(),
            message: message.into(),
            expected: None,
            suggestions: Vec::new(),
            cause: None,
            remedy: None,
        }))
    }

    pub(super) fn expected(mut self, what: impl Into<Hint>) -> Self {
        self.0.expected = Some(what.into());
        self
    }

    pub(super) fn why(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    pub(super) fn try_this(mut self, remedy: impl Into<Hint>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Converts an error in an alias's text into an error about the alias `word`, with the same cause and
    /// remedy.
    pub(super) fn of_alias(self, word: &str, span: &TextSpan, means: &str) -> Self {
        let ParseError { message, cause, remedy, .. } = *self.within(means);
        let own = format!("`{word}` means `{means}`: {message}");
        let mut fault = Self::at(span, own);
        (fault.0.cause, fault.0.remedy) = (cause, remedy);
        fault
    }

    /// Adds the names most similar to the word as suggestions.
    pub(super) fn meant<'a>(mut self, word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        // A word that is longer than any name is not a typo, and comparing it would be slow.
        if word.len() <= 100 {
            self.0.suggestions = text::nearest(word, candidates, 3).into_iter().map(str::to_owned).collect();
        }
        self
    }

    pub(super) fn within(mut self, text: &str) -> Box<ParseError> {
        text.clone_into(&mut self.0.text);
        let wrong = &mut self.0;
        shorten(&mut wrong.message);
        for hint in [&mut wrong.expected, &mut wrong.remedy] {
            if let Some(Hint::Text(text)) = hint {
                shorten(text);
            }
        }
        self.0
    }
}

/// Cuts out the middle of a message that quotes a very long word.
fn shorten(sentence: &mut String) {
    const LONGEST: usize = 1000;
    if sentence.len() > LONGEST {
        let start: String = sentence.chars().take(LONGEST / 4).collect();
        let end: String = sentence.chars().rev().take(LONGEST / 4).collect();
        *sentence = format!("{start} … {}", end.chars().rev().collect::<String>());
    }
}

impl ParseError {
    /// The text, with carets below the word; empty if there is no text to show.
    pub fn drawing(&self) -> String {
        if self.text.trim().is_empty() {
            return String::new();
        }
        let clean = |part: &str| text::clean(part).into_owned();
        let cut = |at: usize| text::prefix(&self.text, at).len();
        let (start, end) = (cut(self.span.start), cut(self.span.end.max(self.span.start)));
        // If the text is long, only the part around the word is shown.
        let from = if end <= SHOWN { 0 } else { cut(start.saturating_sub(SHOWN / 3)) };
        let to = if self.text.len() <= from + SHOWN {
            self.text.len()
        } else {
            cut((from + SHOWN).max(start + 1))
        };
        let end = end.min(to);
        let before = format!("{}{}", if from > 0 { "…" } else { "" }, clean(&self.text[from..start]));
        let word = clean(&self.text[start..end]);
        let after = format!("{}{}", clean(&self.text[end..to]), if to < self.text.len() { "…" } else { "" });
        let carets = "^".repeat(text::width(&word).max(1));
        format!("{before}{word}{after}\n{}{carets}", " ".repeat(text::width(&before)))
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for ParseError {}

impl From<Box<ParseError>> for Error {
    fn from(wrong: Box<ParseError>) -> Self {
        Self::from(*wrong)
    }
}

impl From<ParseError> for Error {
    fn from(wrong: ParseError) -> Self {
        let mut detail = wrong.drawing();
        if let Some(expected) = wrong.expected {
            if !detail.is_empty() {
                detail.push('\n');
            }
            detail.push_str("expected ");
            detail.push_str(&Advice::from(expected).to_string());
        }
        let mut error = Self::usage(wrong.message).detail(detail);
        if let Some(cause) = wrong.cause {
            error = error.why(cause);
        }
        match wrong.suggestions.as_slice() {
            [] => {}
            [one] => error = error.try_this(format!("did you mean `{one}`?")),
            [rest @ .., last] => {
                let rest: Vec<String> = rest.iter().map(|s| format!("`{s}`")).collect();
                error = error.try_this(format!("did you mean {} or `{last}`?", rest.join(", ")));
            }
        }
        if let Some(remedy) = wrong.remedy {
            error = error.try_this(remedy);
        }
        error
    }
}
