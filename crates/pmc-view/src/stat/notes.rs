//! Notes below a table: the reasons for missing counts, each listed once, and explanations of marks.
//!
//! Reasons get their numbers while lines are formatted, and are written at the end.

use std::io::{self, Write};

use super::safe;
use pmc_analysis::profile::counts::MissingValueReason;

/// Maximum number of names in a note before "and N more".
const MOST_NAMES: usize = 8;

/// Notes to write below the table. Each reason occurs once.
#[derive(Default)]
pub(super) struct TableNotes {
    reasons: Vec<(&'static str, MissingValueReason, Vec<String>)>,
    pub(super) shared: bool,
    pub(super) inexact: bool,
}

impl TableNotes {
    /// Returns the number of the note for this reason, starting at 1.
    pub(super) fn number(&mut self, words: &'static str, reason: &MissingValueReason, event: &str) -> usize {
        let known = self.reasons.iter().position(|(w, r, _)| *w == words && r == reason);
        let at = known.unwrap_or_else(|| {
            self.reasons.push((words, reason.clone(), Vec::new()));
            self.reasons.len() - 1
        });
        let names = &mut self.reasons[at].2;
        if !names.iter().any(|name| name == event) {
            names.push(event.to_owned());
        }
        at + 1
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (words, reason, names)) in self.reasons.iter().enumerate() {
            let shown: Vec<_> = names.iter().take(MOST_NAMES).map(|n| safe(n)).collect();
            let more = match names.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let words = words.trim_matches(['<', '>']);
            let errno = reason.errno.map(|e| format!(" ({e})")).unwrap_or_default();
            writeln!(out, " [{}] {}{more}: {words}{errno}", number + 1, shown.join(", "))?;
            writeln!(out, "     why: {}", safe(&reason.cause))?;
            if !reason.remedy.is_empty() {
                writeln!(out, "     try: {}", safe(&reason.remedy))?;
            }
        }
        if self.shared {
            writeln!(
                out,
                " (n% ±m%): counted n% of the time and scaled up; with 95% confidence, the estimate is within m% of the true value."
            )?;
        }
        if self.inexact {
            writeln!(
                out,
                " ~: the parts of this ratio were counted at different times; --exact counts them in separate runs."
            )?;
        }
        Ok(())
    }
}
