//! A warning or note about a result, ready to print.
//!
//! A [`Warning`] is made at the place that detects the problem; a library for other programs advises with a
//! [`Hint`](super::Hint). Only [`say`](super::say) prints it.

use std::fmt;

use super::advice::Advice;

/// Severity of a [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Measured data is missing. Printed even with `--quiet`.
    Loss,
    /// The result may be incomplete.
    Warning,
    /// Useful information.
    Note,
    /// Useful information about the whole run, printed once per process.
    Once,
}

/// A problem that the user should know about.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    pub(super) severity: Severity,
    what: String,
    /// The remedy, or the setting that causes the problem.
    advice: Option<Advice>,
}

impl Warning {
    fn with(severity: Severity, what: impl Into<String>) -> Self {
        Self { severity, what: what.into(), advice: None }
    }

    /// Creates a warning: the result may be incomplete.
    pub fn new(what: impl Into<String>) -> Self {
        Self::with(Severity::Warning, what)
    }

    /// Creates a warning that measured data is missing, which `--quiet` does not silence.
    pub fn loss(what: impl Into<String>) -> Self {
        Self::with(Severity::Loss, what)
    }

    /// Creates a note.
    pub fn note(what: impl Into<String>) -> Self {
        Self::with(Severity::Note, what)
    }

    /// Creates a note about the whole run, which is printed once per process.
    pub fn note_once(what: impl Into<String>) -> Self {
        Self::with(Severity::Once, what)
    }

    /// Adds the remedy, or the setting that causes the problem.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<Advice>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Returns the message without the advice.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the advice, if any.
    pub fn advice(&self) -> Option<&Advice> {
        self.advice.as_ref()
    }

    /// Returns the full message; `spelled` converts the advice to text.
    pub(super) fn text(&self, spelled: impl Fn(&Advice) -> String) -> String {
        match &self.advice {
            None => self.what.clone(),
            Some(advice) => format!("{} ({})", self.what, spelled(advice)),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Advice::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_end_with_a_remedy() {
        let lost = Warning::loss("records were lost");
        assert_eq!((lost.to_string().as_str(), lost.severity), ("records were lost", Severity::Loss));
        assert_eq!(lost.advise("lower the frequency").to_string(), "records were lost (lower the frequency)");
    }
}
