//! Source and assembly: which function, which line, with the source lines or without, and which of the
//! functions inlined there are open.
//!
//! ```text
//!     function begins          shown            a block: from the row where an inlined function begins, to
//!   ▸ inlined: 3 instructions  its row alone    where one begins or goes on that it is not inlined into it
//!     function goes on         shown
//! ```

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::scroll::Scroll;
use super::search::Search;
use crate::profile::annotate::{Kind, Listing, Row};
use crate::profile::sampled::FunctionRef;
use crate::sort;

/// The pane's state.
#[derive(Debug, Default)]
pub struct Code {
    /// Whose code it is, or will be.
    pub function: Option<FunctionRef>,
    /// The code, or why there is none; `None` until it comes.
    pub listing: Option<Result<Arc<Listing>, String>>,
    /// Cursor and uppermost line, in `shown`.
    pub scroll: Scroll,
    /// Indices of the shown rows in the listing's.
    pub shown: Vec<u32>,
    /// The rows of inlined functions of which the first alone is shown, in order.
    folds: Vec<Range<u32>>,
    /// The first rows of inlined functions that were opened.
    opened: FxHashSet<u32>,
    /// The inlined function whose costliest line is looked for.
    inlined: Option<String>,
    /// Columns that source and assembly are moved to the left by.
    pub shift: usize,
    /// Without source lines.
    pub no_source: bool,
    /// How many of the costliest lines were visited.
    visited: usize,
}

/// The words of a row, as searches see them.
pub fn words(listing: &Listing, row: &Row) -> String {
    match &row.kind {
        Kind::Function { name, .. } => name.to_string(),
        Kind::Source { file, line, .. } => listing.text(*file, *line).unwrap_or_default().to_owned(),
        Kind::Instruction(i) => {
            let target = i.target.as_ref().or(i.refers.as_ref()).and_then(|target| target.name.as_ref());
            let target = target.map_or("", |(name, _)| name);
            format!("{:x} {} {} {target}", i.address, i.mnemonic, i.operands)
        }
        Kind::Address(address) => format!("{address:x}"),
    }
}

impl Code {
    /// Another function's code will come.
    pub fn wait_for(&mut self, function: FunctionRef) {
        if self.function.as_ref() != Some(&function) {
            *self = Self { function: Some(function), no_source: self.no_source, ..Self::default() };
        }
    }

    /// The cursor is to go to the costliest line of this function, which is inlined into the one that is
    /// here, or will be.
    pub fn look_for(&mut self, inlined: String, event: usize, height: usize) {
        match self.rows() {
            Some(_) => drop(self.hottest_inlined(&inlined, event, height)),
            None => self.inlined = Some(inlined),
        }
    }

    /// It came. The cursor goes to the costliest line, of the inlined function that was chosen, unless this
    /// function was there already.
    pub fn set(
        &mut self,
        function: FunctionRef,
        listing: Result<Arc<Listing>, String>,
        event: usize,
        height: usize,
    ) {
        if self.function.as_ref() != Some(&function) {
            return;
        }
        // Whoever asked for a function of any module, or for the costliest, learns which one it is.
        if let Ok(found) = &listing
            && function.dso.is_empty()
        {
            self.function = Some(FunctionRef { dso: found.dso.clone(), symbol: found.symbol.clone() });
        }
        let is_new = !matches!(self.listing, Some(Ok(_)));
        self.listing = Some(listing);
        self.rebuild(height);
        if is_new {
            self.visited = 0;
            // Whoever asked for an inlined function gets the one that it is inlined into.
            let is_other = self.rows().is_some_and(|found| found.symbol != function.symbol);
            let inlined = self.inlined.take().or_else(|| is_other.then_some(function.symbol));
            if !inlined.is_some_and(|inlined| self.hottest_inlined(&inlined, event, height)) {
                self.hottest(event, height);
            }
        }
    }

    /// The code, where it is there.
    pub fn rows(&self) -> Option<&Arc<Listing>> {
        self.listing.as_ref()?.as_ref().ok()
    }

    fn rebuild(&mut self, height: usize) {
        self.folds.clear();
        let Some(listing) = self.rows().cloned() else {
            self.shown.clear();
            return;
        };
        let held = self.shown.get(self.scroll.cursor).copied();
        self.shown.clear();
        // Of a file whose text is not there one line says so.
        let mut missing = FxHashSet::default();
        // Open inlined functions around the row, outermost first; the folded one that it lies in.
        let mut around: Vec<(usize, &str)> = Vec::new();
        let mut folded: Option<(usize, &str)> = None;
        for (at, row) in (0u32..).zip(&listing.rows) {
            if let Kind::Function { name, depth } = &row.kind {
                let own = (*depth, &**name);
                folded = folded.filter(|folded| own.0 > folded.0 || own == *folded);
                around.retain(|outer| outer.0 < own.0 || *outer == own);
                if folded.is_none() && own.0 > 0 && around.last() != Some(&own) {
                    if self.opened.contains(&at) {
                        around.push(own);
                    } else {
                        folded = Some(own);
                        self.folds.push(at..at + 1);
                        self.shown.push(at);
                        continue;
                    }
                }
            }
            if folded.is_some() {
                self.folds.last_mut().into_iter().for_each(|fold| fold.end = at + 1);
                continue;
            }
            let takes = match &row.kind {
                Kind::Source { .. } if self.no_source => false,
                Kind::Source { file, line, .. } => {
                    listing.text(*file, *line).is_some() || missing.insert(*file)
                }
                _ => true,
            };
            if takes {
                self.shown.push(at);
            }
        }
        let line = held.map_or(0, |held| self.line_of(held));
        self.scroll.put(line, self.shown.len(), height);
    }

    /// The line where a row is, or the one that stands for it.
    fn line_of(&self, row: u32) -> usize {
        self.shown.partition_point(|shown| *shown <= row).saturating_sub(1)
    }

    /// The row of the cursor.
    pub fn row(&self) -> Option<u32> {
        self.shown.get(self.scroll.cursor).copied()
    }

    /// The rows that a row stands for, if it is that of a folded function.
    pub fn folded(&self, row: u32) -> Option<Range<usize>> {
        let fold = self.folds.iter().find(|fold| fold.start == row)?;
        Some(fold.start as usize..fold.end as usize)
    }

    /// Whether a row is that of a function that was opened.
    pub fn is_open(&self, row: u32) -> bool {
        self.opened.contains(&row)
    }

    /// Opens the function that begins in the cursor's row, or closes it; whether one does.
    pub fn toggle_inlined(&mut self, height: usize) -> bool {
        let Some(row) = self.row() else { return false };
        let is_folded = self.folds.iter().any(|fold| fold.start == row);
        if is_folded {
            self.opened.insert(row);
        } else if !self.opened.remove(&row) {
            return false;
        }
        self.rebuild(height);
        true
    }

    /// Puts the cursor on a row.
    pub fn go_to(&mut self, row: u32, height: usize) {
        let line = self.reveal(row, height);
        self.scroll.put(line, self.shown.len(), height);
    }

    /// Puts the cursor on a row, and this in the middle of the screen.
    fn centre(&mut self, row: u32, height: usize) {
        let line = self.reveal(row, height);
        self.scroll.centre(line, self.shown.len(), height);
    }

    /// Opens the functions that a row is folded in; its line.
    fn reveal(&mut self, row: u32, height: usize) -> usize {
        while let Some(fold) = self.folds.iter().find(|fold| fold.start != row && fold.contains(&row)) {
            self.opened.insert(fold.start);
            self.rebuild(height);
        }
        self.line_of(row)
    }

    /// With or without source lines.
    pub fn toggle_source(&mut self, height: usize) {
        self.no_source = !self.no_source;
        self.rebuild(height);
    }

    /// Keeps the cursor on the screen.
    pub fn refit(&mut self, height: usize) {
        self.scroll.by(0, self.shown.len(), height);
    }

    /// The costliest instruction; called again, the next.
    pub fn hottest(&mut self, event: usize, height: usize) {
        let Some(listing) = self.rows().cloned() else { return };
        let rows = (0u32..).zip(&listing.rows);
        let mut costly: Vec<(u64, u32)> = rows
            .filter(|(_, row)| row.is_code() && row.value(event).period > 0)
            .map(|(at, row)| (row.value(event).period, at))
            .collect();
        sort::by_key(&mut costly, |(period, at)| (std::cmp::Reverse(*period), *at));
        costly.truncate(20);
        if let Some((_, row)) = costly.get(self.visited % costly.len().max(1)) {
            self.visited += 1;
            self.centre(*row, height);
        }
    }

    /// The costliest instruction of a function that is inlined here, and of what is inlined into that. Says
    /// whether there is one.
    fn hottest_inlined(&mut self, inlined: &str, event: usize, height: usize) -> bool {
        let Some(listing) = self.rows().cloned() else { return false };
        let mut within = None;
        let mut costliest = None;
        for (at, row) in (0u32..).zip(&listing.rows) {
            if let Kind::Function { name, depth } = &row.kind {
                within = match within {
                    _ if *depth > 0 && **name == *inlined => Some(*depth),
                    Some(outer) if *depth > outer => Some(outer),
                    _ => None,
                };
            } else if within.is_some() && row.is_code() {
                let cost = (row.value(event).period, std::cmp::Reverse(at));
                costliest = costliest.max(Some(cost).filter(|(period, _)| *period > 0));
            }
        }
        let Some((_, std::cmp::Reverse(row))) = costliest else { return false };
        self.centre(row, height);
        true
    }

    /// To where the jump of the cursor's line leads.
    pub fn follow(&mut self, height: usize) -> bool {
        let (Some(listing), Some(row)) = (self.rows(), self.row()) else { return false };
        let Some(jump) = listing.jumps.iter().find(|jump| jump.from == row as usize) else { return false };
        let to = jump.to as u32;
        self.centre(to, height);
        true
    }

    /// The function that the cursor's line calls, by name.
    pub fn callee(&self) -> Option<String> {
        let listing = self.rows()?;
        let row = listing.rows.get(self.row()? as usize)?;
        match &row.kind {
            Kind::Instruction(i) => i.target.as_ref()?.name.as_ref().map(|(name, _)| name.clone()),
            _ => None,
        }
    }

    /// The next row that matches, the cursor's being the first, or the one before it; goes round.
    pub fn find(&self, search: &Search, skips_own: bool, backwards: bool) -> Option<u32> {
        let listing = self.rows()?;
        let (len, here) = (listing.rows.len(), self.row()? as usize);
        let is_there = |row: &Row| !(self.no_source && matches!(row.kind, Kind::Source { .. }));
        let matches =
            |at: &usize| is_there(&listing.rows[*at]) && search.finds(&words(listing, &listing.rows[*at]));
        let found = if backwards {
            (1..=len).map(|back| (here + len - back) % len).find(matches)
        } else {
            let from = here + usize::from(skips_own);
            (0..len).map(|on| (from + on) % len).find(matches)
        };
        found.map(|at| at as u32)
    }
}
