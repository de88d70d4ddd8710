//! Rows of a report: the words of `-s` and `-F`, and the sort keys, columns and order that they select.

use std::str::FromStr;

use super::ReportColumn;
use pmc_analysis::analysis::request::{TraceField, USUAL_KEYS};
use pmc_analysis::profile::sampled::SortKey;
use pmc_analysis::profile::sampled::table::RowRank;
use pmc_sys::error::{Error, Result};

/// A word of `-s` or `-F`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWord {
    /// Whether a `+` adds it to the default instead of replacing the default.
    pub adds: bool,
    pub column: RowColumn,
}

/// What a word selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowColumn {
    Known(ReportColumn),
    /// A name that is not a sort key may be a field of a recorded tracepoint.
    TraceField {
        name: String,
        field: TraceField,
    },
}

impl From<SortKey> for RowWord {
    fn from(key: SortKey) -> Self {
        Self { adds: false, column: RowColumn::Known(ReportColumn::Key(key)) }
    }
}

impl FromStr for RowWord {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let name = text.trim_start_matches('+');
        let key = || match name.parse() {
            Ok(key) => Ok(RowColumn::Known(ReportColumn::Key(key))),
            Err(error) => match TraceField::named(name) {
                Some(field) => Ok(RowColumn::TraceField { name: name.to_owned(), field }),
                None => Err(error),
            },
        };
        let column = ReportColumn::of_number(name).map_or_else(key, |column| Ok(RowColumn::Known(column)))?;
        Ok(Self { adds: text.starts_with('+'), column })
    }
}

/// Sort keys, columns, and order of rows.
#[derive(Debug, Clone)]
pub struct RowLayout {
    pub keys: Vec<SortKey>,
    /// Sort keys that are tracepoint fields.
    pub trace_fields: Vec<TraceField>,
    /// The columns; `None` for the default columns.
    pub columns: Option<Vec<ReportColumn>>,
    /// Columns in addition to the default ones.
    pub added: Vec<ReportColumn>,
    /// Sort order of rows, which takes precedence over the default order.
    pub ranks: Vec<RowRank>,
    /// Whether the default sort keys precede these keys.
    pub are_usual: bool,
    /// Whether rows start with function names, as in perf if the first key of `-s` begins with `sym`.
    pub start_with_functions: bool,
}

impl Default for RowLayout {
    /// Returns the layout without `-s` and `-F`.
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            trace_fields: Vec::new(),
            columns: None,
            added: Vec::new(),
            ranks: Vec::new(),
            are_usual: true,
            start_with_functions: false,
        }
    }
}

impl RowLayout {
    /// Interprets `-s` and `-F`. With `-F` only, rows are sorted by its columns, in the order in which they
    /// are listed. With both options, rows are sorted by the words of `-s`, which also become columns. With
    /// `-s` only, its words become columns if one of them is a numeric column. A `+` adds to the default
    /// columns and sort keys instead of replacing them.
    ///
    /// # Errors
    /// Fails if `-F` asks for all fields of a tracepoint, or if there are too many fields.
    pub fn new(sort: &[RowWord], fields: &[RowWord]) -> Result<Self> {
        let is_of_functions = |word: &RowWord| match word.column {
            RowColumn::Known(ReportColumn::Key(key)) => !word.adds && key.name().starts_with("sym"),
            _ => false,
        };
        let start_with_functions = fields.is_empty() && sort.first().is_some_and(is_of_functions);
        let adds = |words: &[RowWord]| words.iter().any(|word| word.adds);
        let mut trace_fields = Vec::new();
        let mut columns = |words: &[RowWord], is_output| {
            words.iter().map(|word| column(word, is_output, &mut trace_fields)).collect::<Result<Vec<_>>>()
        };
        let (adds_fields, adds_keys) = (adds(fields), adds(sort));
        let (sort, fields) = (columns(sort, false)?, columns(fields, true)?);
        let are_all = !adds_fields && !fields.is_empty();
        let is_number = |column: &ReportColumn| !matches!(column, ReportColumn::Key(_));
        let has_numbers = !adds_keys && sort.iter().any(is_number);
        let mut keys: Vec<SortKey> = Vec::new();
        for column in sort.iter().chain(&fields) {
            if let ReportColumn::Key(key) = column
                && !keys.contains(key)
            {
                keys.push(*key);
            }
        }
        // The default keys depend on the recording.
        let are_usual = adds_keys || sort.is_empty() && !are_all;
        if keys.is_empty() && !are_usual {
            keys = USUAL_KEYS.to_vec();
        }
        let ranked = if sort.is_empty() && are_all { &fields } else { &sort };
        let ranks = ranked.iter().filter(|_| are_all || has_numbers).map(|column| match column {
            ReportColumn::Own | ReportColumn::Period => RowRank::Own,
            ReportColumn::Total => RowRank::Total,
            ReportColumn::OwnLatency => RowRank::OwnLatency,
            ReportColumn::TotalLatency => RowRank::TotalLatency,
            ReportColumn::Samples => RowRank::Samples,
            ReportColumn::InMode(mode) => RowRank::InMode(*mode),
            ReportColumn::Weight(_) | ReportColumn::Rate(_) => RowRank::Own,
            ReportColumn::Key(key) => RowRank::Key(*key),
        });
        let ranks = ranks.collect();
        let (columns, added) = match (are_all, has_numbers) {
            (true, _) => (Some([fields, sort].concat()), Vec::new()),
            (_, true) => (Some(sort), fields),
            _ if adds_keys => (None, [fields, sort.into_iter().filter(is_number).collect()].concat()),
            _ => (None, fields),
        };
        Ok(Self {
            keys,
            trace_fields,
            columns: columns.map(once),
            added: once(added),
            ranks,
            are_usual,
            start_with_functions,
        })
    }
}

/// Keeps the first occurrence of each column.
fn once(mut columns: Vec<ReportColumn>) -> Vec<ReportColumn> {
    let mut seen = Vec::new();
    columns.retain(|column| {
        let is_new = !seen.contains(column);
        seen.push(*column);
        is_new
    });
    columns
}

/// Returns the column of a word. Collects the tracepoint fields.
fn column(word: &RowWord, is_output: bool, trace_fields: &mut Vec<TraceField>) -> Result<ReportColumn> {
    let (name, field) = match &word.column {
        RowColumn::Known(column) => return Ok(*column),
        RowColumn::TraceField { name, field } => (name, field),
    };
    if is_output && field.field == "*" {
        return Err(Error::usage(format!("-F {name}: list tracepoint fields individually"))
            .try_options(format!("-s {name}")));
    }
    let known = trace_fields.iter().position(|other| other == field);
    let number = known.unwrap_or(trace_fields.len());
    if known.is_none() {
        trace_fields.push(field.clone());
    }
    let few = || Error::usage("too many tracepoint fields as sort keys");
    Ok(ReportColumn::Key(SortKey::TraceField(u8::try_from(number).map_err(|_| few())?)))
}
