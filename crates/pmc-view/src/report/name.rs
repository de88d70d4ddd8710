//! Function names for human readers, in styled parts: mark, scope, name and details.

use super::{GENERATED, INLINED, KERNEL};
use pmc_analysis::profile::sampled::CodeKind;
use pmc_text::terminal::Paint;
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{DisplayName, width};

/// A sequence of pieces of text, each with its role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StyledWords(Vec<(TextRole, String)>);

impl StyledWords {
    /// Returns a piece of text with this role. The text must be safe to print.
    pub(crate) fn new(role: TextRole, words: impl Into<String>) -> Self {
        Self(vec![(role, words.into())])
    }

    /// Returns a function's name in at most `columns` columns. `plain` is the mark for ordinary functions.
    pub(crate) fn of_function(
        name: &str,
        (kind, is_inlined): (CodeKind, bool),
        plain: &str,
        columns: usize,
    ) -> Self {
        let (mark, role) = match kind {
            CodeKind::Kernel => (KERNEL, TextRole::Kernel),
            CodeKind::Generated => (GENERATED, TextRole::Generated),
            CodeKind::Program | CodeKind::Library | CodeKind::Unknown => (plain, TextRole::Plain),
        };
        let mark = if is_inlined { INLINED } else { mark };
        let name = DisplayName::new(name).fit(columns.saturating_sub(width(mark)));
        Self(vec![
            (role, mark.to_owned()),
            (TextRole::Quiet, name.scope),
            (role, name.function),
            (TextRole::Quiet, name.details),
        ])
    }

    /// Returns the width of the text in columns.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, words)| width(words)).sum()
    }

    /// Appends another styled text.
    pub(crate) fn push(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// Returns the text in a subdued style.
    pub(crate) fn quiet(self) -> Self {
        Self(self.0.into_iter().map(|(_, words)| (TextRole::Quiet, words)).collect())
    }

    /// Returns the styled text.
    pub(crate) fn painted(&self, paint: Paint) -> String {
        self.0.iter().map(|(role, words)| paint.words(*role, words)).collect()
    }
}
