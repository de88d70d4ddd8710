//! Source and assembly: which function, which line, with the source lines or without.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::scroll::Scroll;
use super::search::Search;
use crate::profile::annotate::{Kind, Listing, Row};
use crate::profile::sampled::FunctionRef;

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

    /// It came. The cursor goes to the costliest line, unless this function was there already.
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
            self.hottest(event, height);
        }
    }

    /// The code, where it is there.
    pub fn rows(&self) -> Option<&Arc<Listing>> {
        self.listing.as_ref()?.as_ref().ok()
    }

    fn rebuild(&mut self, height: usize) {
        let Some(listing) = self.rows().cloned() else {
            self.shown.clear();
            return;
        };
        let held = self.shown.get(self.scroll.cursor).copied();
        // Of a file whose text is not there one line says so.
        let mut missing = FxHashSet::default();
        let mut takes = |row: &Row| match &row.kind {
            Kind::Source { .. } if self.no_source => false,
            Kind::Source { file, line, .. } => listing.text(*file, *line).is_some() || missing.insert(*file),
            _ => true,
        };
        let rows = listing.rows.iter().enumerate();
        self.shown = rows.filter(|(_, row)| takes(row)).map(|(at, _)| at as u32).collect();
        let line = held.map_or(0, |held| self.shown.partition_point(|row| *row < held));
        self.scroll.put(line, self.shown.len(), height);
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
        let is_code = |row: &Row| matches!(row.kind, Kind::Instruction(_) | Kind::Address(_));
        let mut costly: Vec<(u64, usize)> = self
            .shown
            .iter()
            .enumerate()
            .map(|(line, at)| (&listing.rows[*at as usize], line))
            .filter(|(row, _)| is_code(row) && row.value(event).period > 0)
            .map(|(row, line)| (row.value(event).period, line))
            .collect();
        costly.sort_by_key(|(period, line)| (std::cmp::Reverse(*period), *line));
        costly.truncate(20);
        if let Some((_, line)) = costly.get(self.visited % costly.len().max(1)) {
            self.visited += 1;
            self.scroll.centre(*line, self.shown.len(), height);
        }
    }

    /// To where the jump of the cursor's line leads.
    pub fn follow(&mut self, height: usize) -> bool {
        let Some(listing) = self.rows() else { return false };
        let Some(at) = self.shown.get(self.scroll.cursor).copied() else { return false };
        let Some(jump) = listing.jumps.iter().find(|jump| jump.from == at as usize) else { return false };
        let Ok(line) = self.shown.binary_search(&(jump.to as u32)) else { return false };
        let len = self.shown.len();
        self.scroll.centre(line, len, height);
        true
    }

    /// The function that the cursor's line calls, by name.
    pub fn callee(&self) -> Option<String> {
        let listing = self.rows()?;
        let row = listing.rows.get(*self.shown.get(self.scroll.cursor)? as usize)?;
        match &row.kind {
            Kind::Instruction(i) => i.target.as_ref()?.name.as_ref().map(|(name, _)| name.clone()),
            _ => None,
        }
    }

    /// The line of the next row that matches, or of the one before; goes round.
    pub fn find(&self, search: &Search, from: usize, backwards: bool) -> Option<usize> {
        let listing = self.rows()?;
        let len = self.shown.len();
        let matches = |line: &usize| search.finds(&words(listing, &listing.rows[self.shown[*line] as usize]));
        if backwards {
            (1..=len).map(|back| (from + 2 * len - back) % len).find(matches)
        } else {
            (0..len).map(|on| (from + on) % len).find(matches)
        }
    }
}
