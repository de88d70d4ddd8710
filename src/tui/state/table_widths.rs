//! Column widths of the table of functions on this screen. The pane uses them for drawing, and a click on the
//! heading to find its column.

use super::ScreenState;
use super::table::FunctionColumn;
use crate::view::report::{cell_words, fit_keys};
use pmc_analysis::profile::sampled::{Profile, ProfileEvent, RowCell};
use pmc_sys::text::{self, DisplayName};

/// Number of rows used to measure the columns.
const MEASURED: usize = 200;

/// Column widths.
pub(in crate::tui) struct TableWidths {
    pub(in crate::tui) has_totals: bool,
    pub(in crate::tui) has_errors: bool,
    /// Whether the share of the other kind of time is shown: see [`Profile::share_of`].
    pub(in crate::tui) has_other: bool,
    pub(in crate::tui) bar: usize,
    /// Widths of the sort keys' columns; 0 for an omitted column.
    pub(in crate::tui) keys: Vec<usize>,
}

impl TableWidths {
    /// Width of the share of the other kind of time.
    pub(in crate::tui) const OTHER: usize = 8;

    pub(in crate::tui) fn of(state: &ScreenState, profile: &Profile, event: &ProfileEvent) -> Self {
        let width = usize::from(state.size.0);
        let has_errors = width >= 72;
        let bar = match width {
            0..100 => 0,
            100..140 => 10,
            _ => 20,
        };
        let numbers = 1 + 8 * (1 + usize::from(profile.has_totals)) + 7 * usize::from(has_errors);
        let numbers = numbers + if profile.has_latency { Self::OTHER + 1 } else { 0 };
        let numbers = numbers + if bar > 0 { bar + 1 } else { 0 };
        let room = width.saturating_sub(numbers);
        let mut keys: Vec<usize> =
            profile.keys.iter().map(|key| text::width(profile.heading(*key))).collect();
        for at in state.table.shown.iter().take(MEASURED) {
            for (width, cell) in keys.iter_mut().zip(&event.rows[*at as usize].cells) {
                let words = match cell {
                    RowCell::Symbol(_, id) => {
                        2 + text::width(&DisplayName::new(profile.texts.get(*id)).text())
                    }
                    _ => text::width(&cell_words(profile, cell)),
                };
                *width = (*width).max(words);
            }
        }
        fit_keys(&mut keys, &profile.keys, (room, width / 2, 1), |at| {
            let mut cells = state.table.shown.iter().map(|row| event.rows[*row as usize].cells.get(at));
            let first = cells.next();
            state.table.sort != FunctionColumn::Key(at) && cells.all(|cell| Some(cell) == first)
        });
        Self { has_totals: profile.has_totals, has_errors, has_other: profile.has_latency, bar, keys }
    }

    /// Returns the table's column at a column of the screen.
    pub(super) fn at(&self, x: usize) -> Option<FunctionColumn> {
        let mut end = 1;
        if self.has_totals {
            end += 8;
            if x < end {
                return Some(FunctionColumn::Total);
            }
        }
        end += 8;
        if x < end {
            return Some(if self.has_totals || x > 0 { FunctionColumn::Own } else { FunctionColumn::Total });
        }
        end += 7 * usize::from(self.has_errors) + (Self::OTHER + 1) * usize::from(self.has_other);
        end += if self.bar > 0 { self.bar + 1 } else { 0 };
        self.keys
            .iter()
            .position(|width| {
                end += if *width > 0 { width + 1 } else { 0 };
                *width > 0 && x < end
            })
            .map(FunctionColumn::Key)
    }
}
