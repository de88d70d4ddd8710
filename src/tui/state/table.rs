//! The table of functions: which rows are shown in which order, where the cursor is, which rows are marked.
//!
//! Receives an answer's rows; decides their order and what the filter leaves. Rows are known again in the
//! next answer by their words, so the cursor stays on its function while numbers change.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::scroll::Scroll;
use super::search::Search;
use crate::profile::sampled::boilerplate;
use crate::profile::sampled::{Cell, Event, FunctionRef, Profile, Row, SortKey};
use crate::sort;
use crate::view::report::cell_words;

/// What the table is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionColumn {
    /// With what it called.
    Total,
    /// Itself.
    Own,
    /// A sort key's words.
    Key(usize),
}

/// The table's state.
#[derive(Debug)]
pub struct FunctionTable {
    /// Cursor and uppermost row.
    pub scroll: Scroll,
    /// What it is sorted by.
    pub sort: FunctionColumn,
    /// The other way round.
    pub reverse: bool,
    /// Indices of the shown rows in the answer's.
    pub shown: Vec<u32>,
    /// Marked rows.
    pub marks: FxHashSet<u64>,
    /// Columns by which long names are moved to the left.
    pub shift: usize,
    /// The row that stands for the callers that every program has, and how many they are.
    pub callers: Option<(u32, usize)>,
    /// The row of the cursor, once it was moved.
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

/// What a row is known by in other answers.
pub fn identity(profile: &Profile, row: &Row) -> u64 {
    let mut hasher = FxHasher::default();
    for cell in &row.cells {
        match *cell {
            Cell::Text(id) => hasher.write(profile.texts.get(id).as_bytes()),
            Cell::Symbol(letter, id) => {
                hasher.write_u32(letter.into());
                hasher.write(profile.texts.get(id).as_bytes());
            }
            Cell::Line(id, line) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(line);
            }
            Cell::Offset(letter, id, into) => {
                hasher.write_u32(letter.into());
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(into);
            }
            Cell::InFunction(id, into) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u32(into);
            }
            Cell::InModule(id, address) => {
                hasher.write(profile.texts.get(id).as_bytes());
                hasher.write_u64(address);
            }
            Cell::Task(number, _) | Cell::Number(number) => hasher.write_i64(number),
            Cell::Address(number) | Cell::Time(number) => hasher.write_u64(number),
            Cell::Unknown => hasher.write_u8(1),
        }
    }
    hasher.finish()
}

/// A row's words, as searches see them.
pub fn words(profile: &Profile, row: &Row) -> String {
    row.cells.iter().map(|cell| cell_words(profile, cell)).collect::<Vec<_>>().join(" ")
}

/// The function of a row, where it has one.
pub fn function(profile: &Profile, row: &Row) -> Option<FunctionRef> {
    let at = |wanted: SortKey| profile.keys.iter().position(|key| *key == wanted);
    let symbol = match row.cells.get(at(SortKey::Symbol)?)? {
        Cell::Symbol(_, id) | Cell::Text(id) => profile.texts.get(*id).to_owned(),
        _ => return None,
    };
    Some(FunctionRef { dso: named(profile, row, SortKey::Dso).unwrap_or_default(), symbol })
}

/// The text of a row under a sort key, where it is one.
pub fn named(profile: &Profile, row: &Row, key: SortKey) -> Option<String> {
    let at = profile.keys.iter().position(|other| *other == key)?;
    match row.cells.get(at)? {
        Cell::Text(id) => Some(profile.texts.get(*id).to_owned()),
        _ => None,
    }
}

impl FunctionTable {
    /// Chooses and orders rows anew; the cursor stays with its row, or at the top if it was never moved.
    ///
    /// `folds`: the callers that every program has, as far as they cost nothing themselves, are one row.
    pub fn rebuild(&mut self, profile: &Profile, event: &Event, filter: &Search, folds: bool, height: usize) {
        let takes = |row: &Row| !filter.is_some() || filter.finds(&words(profile, row));
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
            // That is how they come.
            FunctionColumn::Total => {}
            FunctionColumn::Own => {
                sort::by_key(&mut self.shown, |at| std::cmp::Reverse(event.cost(&row(at).own)))
            }
            FunctionColumn::Key(key) => {
                // A number compares as one; words in any case.
                let by = |at: &u32| match row(at).cells.get(key) {
                    Some(Cell::Task(number, _) | Cell::Number(number)) => (*number, String::new()),
                    Some(cell @ (Cell::Text(_) | Cell::Line(..) | Cell::Offset(..))) => {
                        (0, cell_words(profile, cell).to_lowercase())
                    }
                    Some(cell @ (Cell::InFunction(..) | Cell::InModule(..))) => {
                        (0, cell_words(profile, cell).to_lowercase())
                    }
                    Some(Cell::Symbol(_, id)) => (0, profile.texts.get(*id).to_lowercase()),
                    Some(Cell::Time(time) | Cell::Address(time)) => (*time as i64, String::new()),
                    _ => (i64::MAX, String::new()),
                };
                sort::by_key(&mut self.shown, by);
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

    /// The row of the cursor.
    pub fn row<'a>(&self, event: &'a Event) -> Option<&'a Row> {
        event.rows.get(*self.shown.get(self.scroll.cursor)? as usize)
    }

    /// Puts the cursor on a line, and remembers its row.
    pub fn put(&mut self, line: usize, profile: &Profile, event: &Event, height: usize) {
        self.scroll.put(line, self.shown.len(), height);
        self.hold(profile, event);
    }

    /// Moves the cursor, and remembers its row.
    pub fn by(&mut self, lines: isize, profile: &Profile, event: &Event, height: usize) {
        self.scroll.by(lines, self.shown.len(), height);
        self.hold(profile, event);
    }

    fn hold(&mut self, profile: &Profile, event: &Event) {
        // Whoever is at the top stays at the top, whatever row comes there.
        let row = self.row(event).filter(|_| self.scroll.cursor > 0);
        self.held = row.map(|row| identity(profile, row));
    }

    /// The line of the next (or, backwards, the last) row that matches, from a line on; goes round.
    pub fn find(
        &self,
        profile: &Profile,
        event: &Event,
        search: &Search,
        from: usize,
        backwards: bool,
    ) -> Option<usize> {
        let len = self.shown.len();
        let matches = |line: &usize| search.finds(&words(profile, &event.rows[self.shown[*line] as usize]));
        if backwards {
            (1..=len).map(|back| (from + 2 * len - back) % len).find(matches)
        } else {
            (0..len).map(|on| (from + on) % len).find(matches)
        }
    }

    /// The line of the row that matches and costs most with what it calls; of several the first.
    pub fn largest(&self, profile: &Profile, event: &Event, search: &Search) -> Option<usize> {
        let row = |line: &usize| &event.rows[self.shown[*line] as usize];
        let lines = (0..self.shown.len()).filter(|line| search.finds(&words(profile, row(line))));
        lines.max_by_key(|line| (event.cost(&row(line).total), std::cmp::Reverse(*line)))
    }

    /// Marks the row of the cursor, or takes the mark away.
    pub fn mark(&mut self, profile: &Profile, event: &Event) {
        let Some(row) = self.row(event) else { return };
        let identity = identity(profile, row);
        if !self.marks.remove(&identity) {
            self.marks.insert(identity);
        }
    }
}
