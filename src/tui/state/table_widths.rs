//! How wide the columns of the table of functions are on this screen, and which of them stands at a column of
//! it: the pane draws by it, and a click on the heading is looked up in it.

use super::State;
use super::table::FunctionColumn;
use crate::profile::sampled::{Cell, Event, Profile, SortKey};
use crate::text::{self, DisplayName};
use crate::view::report::cell_words;

/// Rows that the widths of columns are measured by.
const MEASURED: usize = 200;

/// How wide things are.
pub(in crate::tui) struct TableWidths {
    pub(in crate::tui) has_totals: bool,
    pub(in crate::tui) has_errors: bool,
    /// The share of the other kind of time: see [`Profile::share_of`].
    pub(in crate::tui) has_other: bool,
    pub(in crate::tui) bar: usize,
    /// Of the sort keys' columns; 0: it is left out.
    pub(in crate::tui) keys: Vec<usize>,
}

impl TableWidths {
    /// Columns of the share of the other kind of time.
    pub(in crate::tui) const OTHER: usize = 8;

    pub(in crate::tui) fn of(state: &State, profile: &Profile, event: &Event) -> Self {
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
                    Cell::Symbol(_, id) => 2 + text::width(&DisplayName::new(profile.texts.get(*id)).text()),
                    _ => text::width(&cell_words(profile, cell)),
                };
                *width = (*width).max(words);
            }
        }
        // All but the last share what the last leaves; it gets the rest.
        let count = keys.len();
        let most = room / (count + 1).max(2);
        for (at, (width, key)) in keys.iter_mut().zip(&profile.keys).enumerate() {
            let most = if *key == SortKey::Symbol { room / 2 } else { most };
            if at + 1 < count {
                *width = (*width).min(most.max(4));
            }
        }
        // What the last column is left, with the blanks between all of them.
        let left = |keys: &[usize]| {
            let used = keys.iter().rev().skip(1).filter(|width| **width > 0).map(|width| width + 1);
            room.saturating_sub(used.sum::<usize>() + 1)
        };
        if profile.keys.last() == Some(&SortKey::Symbol) {
            // Names have at least half of the screen. A column that says the same in each row says nothing.
            let cells =
                |at: usize| state.table.shown.iter().map(move |row| event.rows[*row as usize].cells.get(at));
            for at in 0..count - 1 {
                let mut cells = cells(at);
                let first = cells.next();
                let is_sorted_by = state.table.sort == FunctionColumn::Key(at);
                if left(&keys) < width / 2 && !is_sorted_by && cells.all(|cell| Some(cell) == first) {
                    keys[at] = 0;
                }
            }
            let narrowest = 6;
            while left(&keys) < width / 2
                && let Some(widest) = keys[..count - 1].iter_mut().max().filter(|widest| **widest > narrowest)
            {
                *widest -= 1;
            }
        }
        if let Some(rest) = count.checked_sub(1).map(|_| left(&keys))
            && let Some(last) = keys.last_mut()
        {
            *last = rest;
        }
        Self { has_totals: profile.has_totals, has_errors, has_other: profile.has_latency, bar, keys }
    }

    /// The column of numbers or words at a column of the screen.
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
