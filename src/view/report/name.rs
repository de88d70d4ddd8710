//! The name of a function in text for a person: its sign, its scope, itself, its details, each as it looks.

use super::{GENERATED, INLINED, KERNEL};
use crate::profile::sampled::CodeKind;
use crate::terminal::Paint;
use crate::terminal::theme::Role;
use crate::text::{DisplayName, width};

/// Words beside each other, each with what it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::view) struct Words(Vec<(Role, String)>);

impl Words {
    /// Words that are harmless.
    pub(in crate::view) fn new(role: Role, words: impl Into<String>) -> Self {
        Self(vec![(role, words.into())])
    }

    /// A function of such code, in at most so many columns; `plain` is the sign of ordinary ones.
    pub(in crate::view) fn of_function(
        name: &str,
        (kind, is_inlined): (CodeKind, bool),
        plain: &str,
        columns: usize,
    ) -> Self {
        let (mark, role) = match kind {
            CodeKind::Kernel => (KERNEL, Role::Kernel),
            CodeKind::Generated => (GENERATED, Role::Generated),
            _ => (plain, Role::Plain),
        };
        let mark = if is_inlined { INLINED } else { mark };
        let name = DisplayName::new(name).fit(columns.saturating_sub(width(mark)));
        Self(vec![
            (role, mark.to_owned()),
            (Role::Quiet, name.scope),
            (role, name.function),
            (Role::Quiet, name.details),
        ])
    }

    /// Columns that they take.
    pub(in crate::view) fn width(&self) -> usize {
        self.0.iter().map(|(_, words)| width(words)).sum()
    }

    /// Puts others behind them.
    pub(in crate::view) fn push(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// The same, less important.
    pub(in crate::view) fn quiet(self) -> Self {
        Self(self.0.into_iter().map(|(_, words)| (Role::Quiet, words)).collect())
    }

    /// As they are printed.
    pub(in crate::view) fn painted(&self, paint: Paint) -> String {
        self.0.iter().map(|(role, words)| paint.words(*role, words)).collect()
    }
}
