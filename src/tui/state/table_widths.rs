//! How wide the columns of the table of functions are on this screen, and which of them stands at a column of
//! it: the pane draws by it, and a click on the heading is looked up in it.

use super::State;
use super::table::FunctionColumn;
use crate::profile::sampled::{Event, Profile, SortKey};
use crate::text;
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
    pub(in crate::tui) keys: Vec<usize>,
}

impl TableWidths {
    /// Columns of the share of the other kind of time.
    pub(in crate::tui) const OTHER: usize = 8;

    pub(in crate::tui) fn of(state: &State, profile: &Profile, event: &Event) -> Self {
        let width = usize::from(state.size.0);
        let has_errors = width >= 72;
        let bar = match width {
            0..90 => 0,
            90..140 => 10,
            _ => 20,
        };
        let numbers = 1 + 8 * (1 + usize::from(profile.has_totals)) + 7 * usize::from(has_errors);
        let numbers = numbers + if profile.has_latency { Self::OTHER + 1 } else { 0 };
        let numbers = numbers + if bar > 0 { bar + 1 } else { 0 };
        let room = width.saturating_sub(numbers);
        let mut keys: Vec<usize> = profile.keys.iter().map(|key| text::width(key.heading())).collect();
        for at in state.table.shown.iter().take(MEASURED) {
            for (width, cell) in keys.iter_mut().zip(&event.rows[*at as usize].cells) {
                *width = (*width).max(text::width(&cell_words(profile, cell)));
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
        let used: usize = keys.iter().rev().skip(1).map(|width| width + 1).sum();
        let used = used + 1;
        if let Some(last) = keys.last_mut() {
            *last = room.saturating_sub(used);
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
                end += width + 1;
                x < end
            })
            .map(FunctionColumn::Key)
    }
}
