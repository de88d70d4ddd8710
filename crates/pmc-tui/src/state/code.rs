//! State of the code pane: the function, the cursor's line, whether source lines are shown, and which inlined
//! functions are open.
//!
//! ```text
//!     function begins          shown          A block extends from the first row of an inlined function
//!   ▸ inlined: 3 instructions  only this row  to the row before another function begins or continues that
//!     function continues       shown          is not inlined into it.
//! ```

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::scroll::Scroll;
use super::search::Search;
use pmc_analysis::profile::annotate::{Listing, ListingRow, RowContent};
use pmc_analysis::profile::sampled::FunctionRef;

/// The pane's state.
#[derive(Debug, Default)]
pub struct CodePane {
    /// The function whose code is shown or has been requested.
    pub function: Option<FunctionRef>,
    /// The code, or the reason why it is not available; `None` until it arrives.
    pub listing: Option<Result<Arc<Listing>, String>>,
    /// Cursor and top line, as indexes into `shown`.
    pub scroll: Scroll,
    /// Indexes of the shown rows in the listing.
    pub shown: Vec<u32>,
    /// Row ranges of folded inlined functions, in order. Only the first row of each range is shown.
    folds: Vec<Range<u32>>,
    /// The first rows of inlined functions that the user opened.
    opened: FxHashSet<u32>,
    /// When the code arrives, the cursor moves to the most expensive line of this inlined function.
    inlined: Option<String>,
    /// Number of columns that source and assembly are scrolled to the left.
    pub shift: usize,
    /// Whether source lines are hidden.
    pub no_source: bool,
    /// How many of the most expensive lines the user has already visited.
    visited: usize,
}

/// Returns the text of a row that searches look at.
pub fn words(listing: &Listing, row: &ListingRow) -> String {
    match &row.kind {
        RowContent::Function { name, .. } => name.to_string(),
        RowContent::Source { file, line, .. } => listing.text(*file, *line).unwrap_or_default().to_owned(),
        RowContent::Instruction(i) => {
            let target = i.target.as_ref().or(i.refers.as_ref()).and_then(|target| target.name.as_ref());
            let target = target.map_or("", |(name, _)| name);
            format!("{:x} {} {} {target}", i.address, i.mnemonic, i.operands)
        }
        RowContent::Address(address) => format!("{address:x}"),
    }
}

impl CodePane {
    /// Prepares the pane for another function's code.
    pub fn wait_for(&mut self, function: FunctionRef) {
        if self.function.as_ref() != Some(&function) {
            *self = Self { function: Some(function), no_source: self.no_source, ..Self::default() };
        }
    }

    /// Moves the cursor to the most expensive line of a function inlined into the shown one, as soon as the
    /// code arrives.
    pub fn look_for(&mut self, inlined: String, event: usize, height: usize) {
        match self.rows() {
            Some(_) => drop(self.hottest_inlined(&inlined, event, height)),
            None => self.inlined = Some(inlined),
        }
    }

    /// Stores the code of a function. If the function was not already shown, moves the cursor to its most
    /// expensive line, or to that of the chosen inlined function.
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
        // The request may have omitted the name or the module, so store the actual ones.
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
            // A request for an inlined function returns the function into which it is inlined.
            let is_other = self.rows().is_some_and(|found| found.symbol != function.symbol);
            let inlined = self.inlined.take().or_else(|| is_other.then_some(function.symbol));
            if !inlined.is_some_and(|inlined| self.hottest_inlined(&inlined, event, height)) {
                self.hottest(event, height);
            }
        }
    }

    /// Returns the code if it is available.
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
        // Show only one line for a file whose text is not available.
        let mut missing = FxHashSet::default();
        // The inlined functions that contain the row: the open ones, outermost first, and the folded one.
        let mut around: Vec<(usize, &str)> = Vec::new();
        let mut folded: Option<(usize, &str)> = None;
        for (at, row) in (0u32..).zip(&listing.rows) {
            if let RowContent::Function { name, depth } = &row.kind {
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
                RowContent::Source { .. } if self.no_source => false,
                RowContent::Source { file, line, .. } => {
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

    /// Returns the line that shows a row, or the line of the fold that hides the row.
    fn line_of(&self, row: u32) -> usize {
        self.shown.partition_point(|shown| *shown <= row).saturating_sub(1)
    }

    /// Returns the row of the cursor.
    pub fn row(&self) -> Option<u32> {
        self.shown.get(self.scroll.cursor).copied()
    }

    /// Returns the rows of the folded function that starts in this row.
    pub fn folded(&self, row: u32) -> Option<Range<usize>> {
        let fold = self.folds.iter().find(|fold| fold.start == row)?;
        Some(fold.start as usize..fold.end as usize)
    }

    /// Whether the user has opened the function that starts in this row.
    pub fn is_open(&self, row: u32) -> bool {
        self.opened.contains(&row)
    }

    /// Opens or closes the function that starts in the cursor's row. Returns false if no function starts
    /// there.
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

    /// Moves the cursor to a row.
    pub fn go_to(&mut self, row: u32, height: usize) {
        let line = self.reveal(row, height);
        self.scroll.put(line, self.shown.len(), height);
    }

    /// Moves the cursor to a row, and scrolls the row to the middle of the screen.
    fn centre(&mut self, row: u32, height: usize) {
        let line = self.reveal(row, height);
        self.scroll.centre(line, self.shown.len(), height);
    }

    /// Opens all folds that contain a row, and returns the row's line.
    fn reveal(&mut self, row: u32, height: usize) -> usize {
        while let Some(fold) = self.folds.iter().find(|fold| fold.start != row && fold.contains(&row)) {
            self.opened.insert(fold.start);
            self.rebuild(height);
        }
        self.line_of(row)
    }

    /// Shows or hides source lines.
    pub fn toggle_source(&mut self, height: usize) {
        self.no_source = !self.no_source;
        self.rebuild(height);
    }

    /// Scrolls so that the cursor is visible.
    pub fn refit(&mut self, height: usize) {
        self.scroll.by(0, self.shown.len(), height);
    }

    /// Moves the cursor to the most expensive instruction. Repeated calls move it to the next most expensive
    /// ones.
    pub fn hottest(&mut self, event: usize, height: usize) {
        let Some(listing) = self.rows().cloned() else { return };
        let rows = (0u32..).zip(&listing.rows);
        let mut costly: Vec<(u64, u32)> = rows
            .filter(|(_, row)| row.is_code() && row.value(event).period > 0)
            .map(|(at, row)| (row.value(event).period, at))
            .collect();
        costly.sort_by_key(|(period, at)| (std::cmp::Reverse(*period), *at));
        costly.truncate(20);
        if let Some((_, row)) = costly.get(self.visited % costly.len().max(1)) {
            self.visited += 1;
            self.centre(*row, height);
        }
    }

    /// Moves the cursor to the most expensive instruction of a function inlined here, including functions
    /// inlined into it. Returns whether there is such an instruction.
    fn hottest_inlined(&mut self, inlined: &str, event: usize, height: usize) -> bool {
        let Some(listing) = self.rows().cloned() else { return false };
        let mut within = None;
        let mut costliest = None;
        for (at, row) in (0u32..).zip(&listing.rows) {
            if let RowContent::Function { name, depth } = &row.kind {
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

    /// Moves the cursor to the target of the jump in its line.
    pub fn follow(&mut self, height: usize) -> bool {
        let (Some(listing), Some(row)) = (self.rows(), self.row()) else { return false };
        let Some(jump) = listing.jumps.iter().find(|jump| jump.from == row as usize) else { return false };
        let to = jump.to as u32;
        self.centre(to, height);
        true
    }

    /// Returns the name of the function that the cursor's line calls.
    pub fn callee(&self) -> Option<String> {
        let listing = self.rows()?;
        let row = listing.rows.get(self.row()? as usize)?;
        match &row.kind {
            RowContent::Instruction(i) => i.target.as_ref()?.name.as_ref().map(|(name, _)| name.clone()),
            _ => None,
        }
    }

    /// Returns the next matching row, or the previous one if `backwards` is set. The search starts with the
    /// cursor's row unless `skips_own` is set, and wraps around.
    pub fn find(&self, search: &Search, skips_own: bool, backwards: bool) -> Option<u32> {
        let listing = self.rows()?;
        let (len, here) = (listing.rows.len(), self.row()? as usize);
        let is_there = |row: &ListingRow| !(self.no_source && matches!(row.kind, RowContent::Source { .. }));
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
