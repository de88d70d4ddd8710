//! Options `-s` and `-F`, shared by `report` and `top`.
//!
//! Receives the arguments of both options. Returns the sort keys, the columns, and the order of rows.

use super::plan::{self, sort_key};
use pmc_analysis::analysis::request::{TraceField, USUAL_KEYS};
use pmc_analysis::profile::sampled::SortKey;
use pmc_analysis::profile::sampled::table::RowRank;
use pmc_sys::error::{Error, Result};
use pmc_view::report::ReportColumn;

/// Sort keys, columns, and order of rows.
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
}

/// Interprets `-s` and `-F`. With `-F` only, rows are sorted by its columns, in the order in which they are
/// listed. With both options, rows are sorted by the words of `-s`, which also become columns. With `-s`
/// only, its words become columns if one of them is a numeric column. A `+` adds to the default columns and
/// sort keys instead of replacing them.
pub fn rows(sort: &[String], fields: &[String]) -> Result<RowLayout> {
    let adds = |list: &[String]| list.iter().any(|name| name.trim().starts_with('+'));
    let mut trace_fields = Vec::new();
    let mut columns = |list: &[String], is_output| {
        list.iter().map(|name| column(name, is_output, &mut trace_fields)).collect::<Result<Vec<_>>>()
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
    Ok(RowLayout { keys, trace_fields, columns: columns.map(once), added: once(added), ranks, are_usual })
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

/// Parses a word of `-s` or `-F`. A word that is not a sort key may be a field of a recorded tracepoint.
fn column(name: &str, is_output: bool, trace_fields: &mut Vec<TraceField>) -> Result<ReportColumn> {
    let name = name.trim().trim_start_matches('+');
    if let Some(column) = ReportColumn::of_number(name) {
        return Ok(column);
    }
    match sort_key(name) {
        Ok(key) => Ok(ReportColumn::Key(key)),
        Err(error) if !plan::may_be_trace_field(name) => Err(error),
        Err(_) => {
            let field = TraceField::new(name);
            if is_output && field.field == "*" {
                return Err(Error::usage(format!("-F {name}: list tracepoint fields individually"))
                    .try_this(format!("-s {name}")));
            }
            let known = trace_fields.iter().position(|other| *other == field);
            let number = known.unwrap_or(trace_fields.len());
            if known.is_none() {
                trace_fields.push(field);
            }
            let few = || Error::usage("too many tracepoint fields as sort keys");
            Ok(ReportColumn::Key(SortKey::TraceField(u8::try_from(number).map_err(|_| few())?)))
        }
    }
}
