//! The line table of a unit.

use std::rc::Rc;

use super::dies::{DieUnit, RequestLimits};

/// Maximum number of rows to read from a unit's line table, which take 160 MB. A single byte of the file may
/// encode a row.
const MOST_ROWS: usize = 1 << 22;
/// Maximum number of bytes in the paths of a unit's source files. A few bytes of the file may encode a long
/// path.
const MOST_PATH_BYTES: usize = 64 << 20;

/// A row of the line table: the source line of the instructions from this address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRow {
    pub(super) address: u64,
    file: u64,
    /// 0 at the end of a sequence and for code without a line.
    pub(super) line: u32,
    pub(super) is_statement: bool,
    pub(super) ends_prologue: bool,
    ends_sequence: bool,
}

/// The line table of a unit, sorted by address. Rows with the same address keep their order.
#[derive(Debug)]
pub(super) struct UnitRows {
    rows: Vec<LineRow>,
    /// The source files, indexed by their number.
    paths: Vec<String>,
    work: Rc<RequestLimits>,
}

impl UnitRows {
    pub(super) fn read(home: &DieUnit<'_>) -> Self {
        let work = home.work.clone();
        let program = home.unit.line_program.clone().filter(|_| work.steps.take(home.instructions));
        let Some(program) = program else { return Self { rows: Vec::new(), paths: Vec::new(), work } };
        let mut left = MOST_PATH_BYTES;
        let mut path = |file| {
            let path = home.path(file).unwrap_or_default();
            left = left.checked_sub(path.len())?;
            Some(path)
        };
        let paths = (0..home.path_count()).map_while(&mut path).collect();
        let mut rows = Vec::new();
        let mut read = program.rows();
        while let Ok(Some((_, row))) = read.next_row() {
            if rows.len() == MOST_ROWS {
                break;
            }
            rows.push(LineRow {
                address: row.address(),
                file: row.file_index(),
                line: match row.end_sequence() {
                    true => 0,
                    false => row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
                },
                is_statement: row.is_stmt(),
                ends_prologue: row.prologue_end(),
                ends_sequence: row.end_sequence(),
            });
        }
        // At the same address, the end of a sequence comes before the first row of the next sequence.
        rows.sort_by_key(|row| (row.address, !row.ends_sequence));
        Self { rows, paths, work }
    }

    pub(super) fn path(&self, file: u64) -> Option<&str> {
        self.paths.get(usize::try_from(file).ok()?).map(String::as_str)
    }

    pub(super) fn path_of(&self, row: &LineRow) -> &str {
        self.path(row.file).unwrap_or_default()
    }

    /// The source files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The rows with code.
    pub(super) fn rows(&self) -> impl Iterator<Item = &LineRow> {
        self.rows.iter().take_while(|_| self.work.steps.take(1)).filter(|row| row.line != 0)
    }

    /// The rows with code between two addresses, without the second one.
    pub(super) fn between(&self, begin: u64, end: u64) -> impl Iterator<Item = &LineRow> {
        let from = self.rows.partition_point(|row| row.address < begin);
        let inside =
            self.rows[from..].iter().take_while(move |row| row.address < end && self.work.steps.take(1));
        inside.filter(|row| row.line != 0)
    }

    /// Returns the row to which an address belongs: its first statement row, or else its first row.
    pub(super) fn first_at(&self, address: u64) -> Option<&LineRow> {
        let at = self.rows.partition_point(|row| row.address < address);
        let is_here = |row: &&LineRow| row.address == address && self.work.steps.take(1);
        let here = || self.rows[at..].iter().take_while(is_here).filter(|row| row.line != 0);
        here().find(|row| row.is_statement).or_else(|| here().next())
    }

    /// Returns the row of the instruction that contains an address.
    pub(super) fn covering(&self, address: u64) -> Option<&LineRow> {
        let end = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows[..end].last().filter(|row| !row.ends_sequence)?;
        self.first_at(row.address)
    }

    /// Returns the address after the prologue of the function at `entry`. This is the address of the
    /// function's second row, at which unoptimized code has stored its parameters.
    pub(super) fn after_prologue(&self, entry: u64, end: u64) -> Option<u64> {
        let later = self.between(entry, end).find(|row| row.address > entry || row.ends_prologue);
        later.map(|row| row.address)
    }
}
