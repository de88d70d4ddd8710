//! State of the function table: the shown rows, their order, the cursor and the marks.
//!
//! Sorts and filters an answer's rows. A row is identified across answers by its cells, so the cursor stays
//! on its function while numbers change.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::scroll::Scroll;
use super::search::Search;
use pmc_analysis::profile::sampled::boilerplate;
use pmc_analysis::profile::sampled::{FunctionRef, Profile, ProfileEvent, RowCell, SortKey, TableRow};
use pmc_view::report::cell_words;

/// The sort column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionColumn {
    /// Cost including callees.
    Total,
    /// Own cost.
    Own,
    /// The sort key with this index.
    Key(usize),
}

/// The table's state.
#[derive(Debug)]
pub struct FunctionTable {
    /// Cursor and top row.
    pub scroll: Scroll,
    pub sort: FunctionColumn,
    /// Whether the order is reversed.
    pub reverse: bool,
    /// Indexes of the shown rows in the answer.
    pub shown: Vec<u32>,
    /// Identities of marked rows.
    pub marks: FxHashSet<u64>,
    /// Number of columns that long names are scrolled to the left.
    pub shift: usize,
    /// The row that combines the start-up functions that all programs have, and the number of these
    /// functions.
    pub callers: Option<(u32, usize)>,
    /// Identity of the cursor's row, once the user has moved the cursor.
    held: Option<u64>,
}

impl Default for FunctionTable {
    fn default() -> Self {
        Self {
            scroll: Scroll::default(),
            sort: FunctionColumn::Total,
            reverse: false,
            shown: Vec::new(),
            marks: FxHashSet::default(),
            shift: 0,
            callers: None,
            held: None,
        }
    }
}

/// Returns a row identity that is stable across answers.
pub fn identity(profile: &Profile, row: &TableRow) -> u64 {
    let mut hasher = FxHasher::default();
    for cell in &row.cells {
        match *cell {
            RowCell::Text(id) => hasher.write(profile.texts.get(id).as_bytes()),
            RowCell::Symbol(letter, id) => {
                hasher.write_u32(letter.into());
                hasher.write(profile.texts.get(id).as_bytes());
            }
            RowCell::Line(id, line) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(line);
            }
            RowCell::Offset(letter, id, into) => {
                hasher.write_u32(letter.into());
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(into);
            }
            RowCell::InFunction(id, into) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(into);
            }
            RowCell::InModule(id, address) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u64(address);
            }
            RowCell::Task(number, _) | RowCell::Number(number) => hasher.write_i64(number),
            RowCell::Address(number) | RowCell::Time(number) => hasher.write_u64(number),
            RowCell::Unknown => hasher.write_u8(1),
        }
    }
    hasher.finish()
}

/// Whether a search finds a row: by the name in a single cell, so that `^main$` finds a function, or by the
/// line that all cells make.
fn finds(search: &Search, profile: &Profile, row: &TableRow) -> bool {
    let cells: Vec<String> = row.cells.iter().map(|cell| cell_words(profile, cell)).collect();
    let name_finds = |(cell, words): (&RowCell, &String)| match cell {
        RowCell::Symbol(_, id) => search.finds(profile.texts.get(*id)),
        _ => search.finds(words),
    };
    row.cells.iter().zip(&cells).any(name_finds) || search.finds(&cells.join(" "))
}

/// Returns the function of an event's row, if it has one. For a wait, this is the function of the program
/// that waits, in any module.
pub fn function(profile: &Profile, event: &ProfileEvent, row: &TableRow) -> Option<FunctionRef> {
    let keys = profile.keys_of(event);
    let at = |wanted: SortKey| keys.iter().position(|key| *key == wanted);
    let symbol = match row.cells.get(at(SortKey::Symbol).or_else(|| at(SortKey::WaitFunction))?)? {
        RowCell::Symbol(_, id) | RowCell::Text(id) => profile.texts.get(*id).to_owned(),
        _ => return None,
    };
    if symbol.is_empty() {
        return None;
    }
    Some(FunctionRef { dso: named(profile, event, row, SortKey::Dso).unwrap_or_default(), symbol })
}

/// Returns the value of an event's row for a sort key, if the value is text.
pub fn named(profile: &Profile, event: &ProfileEvent, row: &TableRow, key: SortKey) -> Option<String> {
    let at = profile.keys_of(event).iter().position(|other| *other == key)?;
    match row.cells.get(at)? {
        RowCell::Text(id) => Some(profile.texts.get(*id).to_owned()),
        _ => None,
    }
}

impl FunctionTable {
    /// Filters and sorts the rows again. The cursor stays on its row, or at the top if the user never moved
    /// it.
    ///
    /// If `folds` is set, combines the start-up functions that all programs have into one row, except
    /// functions with own cost.
    pub fn rebuild(
        &mut self,
        profile: &Profile,
        event: &ProfileEvent,
        filter: &Search,
        folds: bool,
        height: usize,
    ) {
        let takes = |row: &TableRow| !filter.is_some() || finds(filter, profile, row);
        self.shown = (0..event.rows.len() as u32).filter(|at| takes(&event.rows[*at as usize])).collect();
        let row = |at: &u32| &event.rows[*at as usize];
        self.callers = None;
        if folds && !filter.is_some() {
            let rows = self.shown.iter().map(row).map(|row| (&row.cells[..], row.own.samples));
            if let [first, others @ ..] = &boilerplate::caller_rows(profile, rows)[..] {
                self.callers = Some((self.shown[*first], others.len() + 1));
                let mut lines = 0..;
                self.shown.retain(|_| lines.next().is_none_or(|line| others.binary_search(&line).is_err()));
            }
        }
        match self.sort {
            // The answer's rows are already in this order.
            FunctionColumn::Total => {}
            FunctionColumn::Own => self.shown.sort_by_key(|at| std::cmp::Reverse(event.cost(&row(at).own))),
            FunctionColumn::Key(key) => {
                // Compare numbers numerically, and text case-insensitively.
                let by = |at: &u32| match row(at).cells.get(key) {
                    Some(RowCell::Task(number, _) | RowCell::Number(number)) => (*number, String::new()),
                    Some(cell @ (RowCell::Text(_) | RowCell::Line(..) | RowCell::Offset(..))) => {
                        (0, cell_words(profile, cell).to_lowercase())
                    }
                    Some(cell @ (RowCell::InFunction(..) | RowCell::InModule(..))) => {
                        (0, cell_words(profile, cell).to_lowercase())
                    }
                    Some(RowCell::Symbol(_, id)) => (0, profile.texts.get(*id).to_lowercase()),
                    Some(RowCell::Time(time) | RowCell::Address(time)) => (*time as i64, String::new()),
                    _ => (i64::MAX, String::new()),
                };
                self.shown.sort_by_cached_key(by);
            }
        }
        if self.reverse {
            self.shown.reverse();
        }
        let at =
            self.held.and_then(|held| self.shown.iter().position(|at| identity(profile, row(at)) == held));
        let line = at.unwrap_or(if self.held.is_some() { self.scroll.cursor } else { 0 });
        self.scroll.put(line, self.shown.len(), height);
    }

    /// Returns the row of the cursor.
    pub fn row<'a>(&self, event: &'a ProfileEvent) -> Option<&'a TableRow> {
        event.rows.get(*self.shown.get(self.scroll.cursor)? as usize)
    }

    /// Moves the cursor to a line and remembers its row.
    pub fn put(&mut self, line: usize, profile: &Profile, event: &ProfileEvent, height: usize) {
        self.scroll.put(line, self.shown.len(), height);
        self.hold(profile, event);
    }

    /// Moves the cursor by this number of lines and remembers its row.
    pub fn by(&mut self, lines: isize, profile: &Profile, event: &ProfileEvent, height: usize) {
        self.scroll.by(lines, self.shown.len(), height);
        self.hold(profile, event);
    }

    fn hold(&mut self, profile: &Profile, event: &ProfileEvent) {
        // A cursor at the top stays at the top, even if the top row changes.
        let row = self.row(event).filter(|_| self.scroll.cursor > 0);
        self.held = row.map(|row| identity(profile, row));
    }

    /// Returns the line of the next matching row at or after `from`, or of the previous one before `from`.
    /// Wraps around.
    pub fn find(
        &self,
        profile: &Profile,
        event: &ProfileEvent,
        search: &Search,
        from: usize,
        backwards: bool,
    ) -> Option<usize> {
        let len = self.shown.len();
        let matches = |line: &usize| finds(search, profile, &event.rows[self.shown[*line] as usize]);
        if backwards {
            (1..=len).map(|back| (from + 2 * len - back) % len).find(matches)
        } else {
            (0..len).map(|on| (from + on) % len).find(matches)
        }
    }

    /// Returns the line of the matching row with the largest total cost. If several rows qualify, returns the
    /// first.
    pub fn largest(&self, profile: &Profile, event: &ProfileEvent, search: &Search) -> Option<usize> {
        let row = |line: &usize| &event.rows[self.shown[*line] as usize];
        let lines = (0..self.shown.len()).filter(|line| finds(search, profile, row(line)));
        lines.max_by_key(|line| (event.cost(&row(line).total), std::cmp::Reverse(*line)))
    }

    /// Marks or unmarks the row of the cursor.
    pub fn mark(&mut self, profile: &Profile, event: &ProfileEvent) {
        let Some(row) = self.row(event) else { return };
        let identity = identity(profile, row);
        if !self.marks.remove(&identity) {
            self.marks.insert(identity);
        }
    }
}
