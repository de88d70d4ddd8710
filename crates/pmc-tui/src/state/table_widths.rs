//! Column widths of the function table. The pane uses them to draw, and the mouse handler uses them to find
//! the column of a click on the heading.

use super::ScreenState;
use super::table::FunctionColumn;
use pmc_analysis::profile::sampled::{Profile, ProfileEvent, RowCell, SortKey};
use pmc_text::text::{self, DisplayName};
use pmc_view::report::{cell_words, fit_keys};

/// Maximum number of rows whose widths are measured.
const MEASURED: usize = 200;

/// The thread-time columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadTimeColumns {
    None,
    /// The state in which threads spent most of a row's time.
    State,
    /// Milliseconds per second spent running and blocked.
    Rates,
}

impl ThreadTimeColumns {
    /// Width of a column.
    pub(crate) const EACH: usize = 8;

    pub(crate) fn new(event: &ProfileEvent) -> Self {
        match event.rates(&event.total) {
            Some(_) => Self::Rates,
            // If the event measures one state, all rows have it.
            None if event.has_waits() && event.state.is_none() => Self::State,
            None => Self::None,
        }
    }

    fn width(self) -> usize {
        let columns = match self {
            Self::None => 0,
            Self::State => 1,
            Self::Rates => 2,
        };
        columns * (Self::EACH + 1)
    }
}

/// Column widths.
pub(crate) struct TableWidths {
    pub has_totals: bool,
    pub has_errors: bool,
    /// Whether the share of the other kind of time (see [`Profile::share_of`]) is shown too.
    pub has_other: bool,
    /// Which thread-time columns are shown.
    pub time: ThreadTimeColumns,
    pub bar: usize,
    /// Widths of the sort key columns. A width of 0 omits the column.
    pub keys: Vec<usize>,
}

impl TableWidths {
    /// Width of the column for the other kind of time.
    pub(crate) const OTHER: usize = 8;

    pub(crate) fn new(state: &ScreenState, profile: &Profile, event: &ProfileEvent) -> Self {
        let width = usize::from(state.size.0);
        let time = ThreadTimeColumns::new(event);
        // Waits have no error, so thread-time columns take precedence over errors.
        let has_errors = width >= if time == ThreadTimeColumns::None { 72 } else { 100 };
        // The wait sites tell the states, too.
        let time = match time {
            ThreadTimeColumns::State if profile.keys.contains(&SortKey::WaitSite) => ThreadTimeColumns::None,
            time => time,
        };
        let bar = match width {
            0..100 => 0,
            100..140 => 10,
            _ => 20,
        };
        let numbers = 1 + 8 * (1 + usize::from(profile.has_totals)) + 7 * usize::from(has_errors);
        let numbers = numbers + if profile.has_latency { Self::OTHER + 1 } else { 0 };
        let numbers = numbers + time.width();
        let numbers = numbers + if bar > 0 { bar + 1 } else { 0 };
        let room = width.saturating_sub(numbers);
        let mut keys: Vec<usize> =
            profile.keys_of(event).iter().map(|key| text::width(profile.heading(*key))).collect();
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
        fit_keys(&mut keys, profile.keys_of(event), (room, width / 2, 1), |at| {
            let mut cells = state.table.shown.iter().map(|row| event.rows[*row as usize].cells.get(at));
            let first = cells.next();
            state.table.sort != FunctionColumn::Key(at) && cells.all(|cell| Some(cell) == first)
        });
        let (has_totals, has_other) = (profile.has_totals, profile.has_latency);
        Self { has_totals, has_errors, has_other, time, bar, keys }
    }

    /// Returns the table column at the screen column `x`.
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
        end += self.time.width();
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
