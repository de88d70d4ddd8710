//! `pmc report` as text, separated fields, CSV and JSON.
//!
//! Receives a [`Profile`] and a [`Layout`]; decides words, widths and order of columns. Computes no shares of its own beyond
//! asking the profile for them.

mod fields;
mod json;
mod text;
mod tree;

use std::io::{self, Write};

use crate::profile::sampled::{Cell, Profile, SortKey};
use crate::text::clean;

/// In which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// For a person.
    Text,
    /// Fields with this between them.
    Separated(String),
    /// Fields as RFC 4180 has them.
    Csv,
    /// One document.
    Json,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Its own part, in percent.
    Own,
    /// Its part with what it called, in percent.
    Total,
    /// Number of samples.
    Samples,
    /// Sum of periods.
    Period,
    /// A sort key.
    Key(SortKey),
}

/// How the profile is shown.
#[derive(Debug, Clone)]
pub struct Layout {
    /// In which form.
    pub form: Form,
    /// The columns that were asked for.
    pub columns: Option<Vec<Column>>,
    /// Number of samples as a column.
    pub show_samples: bool,
    /// Periods as a column.
    pub show_period: bool,
    /// At most so many rows.
    pub rows: usize,
    /// Rows below this percentage are left out.
    pub row_limit: f64,
    /// Branches of the tree below this percentage are left out.
    pub branch_limit: f64,
    /// Members of a group side by side.
    pub group: bool,
    /// Widths of the columns, where they are given.
    pub widths: Vec<usize>,
    /// The tree has the sampled functions at its top.
    pub callee: bool,
}

impl Layout {
    fn columns(&self, profile: &Profile) -> Vec<Column> {
        if let Some(columns) = &self.columns {
            return columns.clone();
        }
        let mut columns = Vec::new();
        if profile.has_totals {
            columns.push(Column::Total);
        }
        columns.push(Column::Own);
        if self.show_samples {
            columns.push(Column::Samples);
        }
        if self.show_period {
            columns.push(Column::Period);
        }
        columns.extend(profile.keys.iter().copied().map(Column::Key));
        columns
    }
}

/// Writes all of it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    match &layout.form {
        Form::Text => text::write(out, profile, layout),
        Form::Separated(separator) => fields::separated(out, profile, layout, separator),
        Form::Csv => fields::csv(out, profile, layout),
        Form::Json => json::write(out, profile, layout),
    }
}

/// A cell's words, harmless for a terminal.
fn cell(profile: &Profile, cell: &Cell) -> String {
    let text = |id| clean(profile.texts.get(id)).into_owned();
    match *cell {
        Cell::Text(id) => text(id),
        Cell::Symbol(letter, id) => format!("[{letter}] {}", text(id)),
        Cell::Line(id, line) => {
            let path = text(id);
            let name = path.rsplit('/').next().unwrap_or(&path);
            format!("{name}:{line}")
        }
        Cell::Number(number) => number.to_string(),
        Cell::Address(address) => format!("{address:#x}"),
        Cell::Time(ns) => format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000),
        Cell::Unknown => "[unknown]".to_owned(),
    }
}

fn heading(column: Column, profile: &Profile) -> &'static str {
    match column {
        Column::Own if profile.has_totals => "Self",
        Column::Own => "Overhead",
        Column::Total => "Children",
        Column::Samples => "Samples",
        Column::Period => "Period",
        Column::Key(key) => key.heading(),
    }
}
