//! `pmc report` as text, separated fields, CSV and JSON.
//!
//! Receives a [`Profile`] and a [`Layout`]; decides words, widths and order of columns. Computes no shares of
//! its own beyond asking the profile for them.

mod chains;
mod fields;
mod hierarchy;
mod json;
mod key_widths;
mod language;
mod name;
mod text;
mod tree;
mod under_rows;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::profile::sampled::boilerplate;
use crate::profile::sampled::table::MODES;
use crate::profile::sampled::{Cell, Event, Profile, Row, ShareOf, SortKey, StringTable};
use crate::sort;
use crate::terminal::Paint;
use crate::text::{DisplayName, clean};
pub use key_widths::fit_keys;
pub(super) use name::Words;
pub(super) use tree::chained;

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

impl Form {
    /// It holds rows and nothing else: what is worth knowing about the recording has no place in it.
    pub fn is_bare(&self) -> bool {
        matches!(self, Self::Separated(_) | Self::Csv)
    }
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Its own part, in percent.
    Own,
    /// Its part with what it called, in percent.
    Total,
    /// Its own part of time by the clock on the wall, in percent.
    OwnLatency,
    /// That part with what it called, in percent.
    TotalLatency,
    /// The part of its own that was in a mode of the CPU, in percent: its index in [`MODES`].
    InMode(usize),
    /// Weight of a sample, on average: which of [`Value::weights`].
    Weight(usize),
    /// Number of samples.
    Samples,
    /// Sum of periods.
    Period,
    /// A sort key.
    Key(SortKey),
}

/// Names of [`Column::InMode`], in [`MODES`]' order.
pub const IN_MODES: [&str; MODES.len()] =
    ["overhead_sys", "overhead_us", "overhead_guest_sys", "overhead_guest_us"];

impl Column {
    /// Whether it is a part of time by the clock.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::OwnLatency | Self::TotalLatency)
    }
}

/// How call chains are drawn in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// A tree whose percentages are of the whole.
    #[default]
    Tree,
    /// A tree whose percentages are of the branch above.
    Fractal,
    /// Each chain by itself, a function a line.
    Flat,
    /// Each chain in one line.
    Folded,
}

/// What stands before a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Its share.
    #[default]
    Percent,
    /// Its periods.
    Period,
    /// Its samples.
    Count,
}

/// Where the text has call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainPlace {
    /// All of them in one tree below the table.
    #[default]
    Below,
    /// Those of each row under it, as perf has them.
    UnderRows {
        /// The row names the function that chains begin with: those that have all of them in common leave it
        /// out.
        omits_first: bool,
    },
}

/// How the profile is shown.
#[derive(Debug, Clone)]
pub struct Layout {
    /// In which form.
    pub form: Form,
    /// The columns that were asked for.
    pub columns: Option<Vec<Column>>,
    /// Columns besides the usual ones, behind their numbers.
    pub added: Vec<Column>,
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
    /// At most so many lines of the tree, the largest branches; `None`: all of them.
    pub tree_lines: Option<usize>,
    /// Which events stand side by side.
    pub grouping: Grouping,
    /// Widths of the columns, where they are given.
    pub widths: Vec<usize>,
    /// The tree has the sampled functions at its top.
    pub callee: bool,
    /// How the tree is drawn.
    pub shape: Shape,
    /// What stands before its branches.
    pub unit: Unit,
    /// Where it is drawn.
    pub chains: ChainPlace,
    /// At most so many branches below each other in one place.
    pub branches: Option<usize>,
    /// Rows below rows, by sort key.
    pub hierarchy: bool,
    /// Source files with their folders.
    pub full_paths: bool,
    /// Names of functions with all their template arguments, however wide.
    pub full_names: bool,
    /// Times to the nanosecond.
    pub nanoseconds: bool,
    /// The member of a group that its table is sorted by.
    pub sort_member: usize,
    /// A line of the text has at most so many columns; `None`: as many as it takes.
    pub width: Option<usize>,
    /// The looks of the text.
    pub paint: Paint,
    /// Text is for a program at the other end of a pipe: rows as perf has them, all else in comments.
    pub is_piped: bool,
    /// Rows only: no headlines, headings and remarks.
    pub is_quiet: bool,
    /// Sort keys for which a filter leaves one value. As in perf's text, a line above the table shows the
    /// value, and the table has no such column.
    pub single_values: Vec<(SortKey, String)>,
}

/// Which events share a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// None.
    Apart,
    /// Those that were recorded as a group.
    Recorded,
    /// All, where no group was recorded.
    All,
}

/// The costliest rows and the tree below them, as text.
impl Default for Layout {
    fn default() -> Self {
        Self {
            form: Form::Text,
            columns: None,
            added: Vec::new(),
            show_samples: false,
            show_period: false,
            rows: 20,
            row_limit: 0.0,
            branch_limit: 0.5,
            tree_lines: None,
            grouping: Grouping::Recorded,
            widths: Vec::new(),
            callee: false,
            shape: Shape::Tree,
            unit: Unit::Percent,
            chains: ChainPlace::Below,
            branches: None,
            hierarchy: false,
            full_paths: false,
            full_names: false,
            nanoseconds: false,
            sort_member: 0,
            width: None,
            paint: Paint::default(),
            is_piped: false,
            is_quiet: false,
            single_values: Vec::new(),
        }
    }
}

impl Layout {
    /// Whether a column asks for periods by the CPU's mode.
    pub fn asks_modes(&self) -> bool {
        let mut typed = self.columns.iter().flatten().chain(&self.added);
        typed.any(|column| matches!(column, Column::InMode(_)))
    }

    /// Columns of a line for a person.
    fn width(&self) -> Option<usize> {
        self.width.filter(|_| self.reads_names())
    }

    /// Whether names are shown as one reads them: to a person.
    fn reads_names(&self) -> bool {
        self.form == Form::Text && !self.full_names && !self.is_piped
    }

    /// The columns, without those that [`Self::elided`] has.
    fn columns(&self, profile: &Profile) -> Vec<Column> {
        let mut columns = self.all_columns(profile);
        let elided = self.elided(profile);
        columns.retain(|column| !elided.iter().any(|(key, _)| *column == Column::Key(*key)));
        columns
    }

    /// Keys with one value in all rows, which a filter named; none where they are all keys that there are.
    fn elided(&self, profile: &Profile) -> Vec<&(SortKey, String)> {
        let columns = self.all_columns(profile);
        let is_same = |key: SortKey| {
            let at = profile.keys.iter().position(|other| *other == key);
            let cells = |at: usize| {
                profile.events.iter().flat_map(|event| &event.rows).map(move |row| &row.cells[at])
            };
            at.is_some_and(|at| cells(at).all(|cell| Some(cell) == cells(at).next()))
        };
        let is_column = |key: SortKey| columns.contains(&Column::Key(key));
        let elided = self.single_values.iter().filter(|(key, _)| is_column(*key) && is_same(*key));
        let elided: Vec<_> = elided.collect();
        let keys = columns.iter().filter(|column| matches!(column, Column::Key(_))).count();
        if elided.len() < keys { elided } else { Vec::new() }
    }

    fn all_columns(&self, profile: &Profile) -> Vec<Column> {
        if let Some(columns) = &self.columns {
            return columns.clone();
        }
        let mut columns = Vec::new();
        let latencies_first = profile.share_of == ShareOf::Latency;
        for (period, latency) in [(Column::Total, Column::TotalLatency), (Column::Own, Column::OwnLatency)] {
            match (profile.has_latency, latencies_first) {
                _ if period == Column::Total && !profile.has_totals => {}
                (true, true) => columns.extend([latency, period]),
                (true, false) => columns.extend([period, latency]),
                _ => columns.push(period),
            }
        }
        if self.show_samples {
            columns.push(Column::Samples);
        }
        if self.show_period {
            columns.push(Column::Period);
        }
        columns.extend(
            self.added.iter().filter(|column| !columns.contains(column)).copied().collect::<Vec<_>>(),
        );
        let keys = profile.keys.iter().copied().map(Column::Key);
        columns.extend(keys.filter(|key| !self.added.contains(key)));
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

/// Writes the text's tables and trees, without what they are worth.
///
/// # Errors
/// Those of `out`.
pub fn write_tables(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    text::tables(out, profile, layout)
}

/// Writes what the data are worth: the trust line and what belongs to it.
///
/// # Errors
/// Those of `out`.
pub fn write_trust(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    text::trust(out, profile, &Layout::default())
}

/// The events with their rows as the JSON document has them, parted by commas.
///
/// # Errors
/// Those of `out`.
pub fn write_events_json(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    json::events(out, profile, layout)
}

/// A row of a table: the same cells in one event, or in each member of a group.
struct Line<'a> {
    cells: &'a [Cell],
    /// By member of the table's events.
    rows: Vec<Option<&'a Row>>,
    /// It stands for so many callers that every program has; 0: for itself.
    callers: usize,
}

/// The events that stand side by side in the table of this one; none where it stands in its leader's.
fn side_by_side<'a>(profile: &'a Profile, layout: &Layout, index: usize) -> Vec<&'a Event> {
    let events = &profile.events;
    let has_groups = events.iter().enumerate().any(|(at, event)| event.leader != at);
    let leader = |at: usize| match layout.grouping {
        Grouping::Apart => at,
        Grouping::All if !has_groups => 0,
        Grouping::Recorded | Grouping::All => events[at].leader,
    };
    (0..events.len()).filter(|&at| leader(at) == index).map(|at| &events[at]).collect()
}

/// The lines of a table, above the limit: in the leader's order, then what only others have. With their
/// number before `rows` cut it. To a person the callers that every program has are one.
fn lines<'a>(profile: &Profile, events: &[&'a Event], layout: &Layout) -> (Vec<Line<'a>>, usize) {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let mut known: FxHashMap<&[Cell], usize> = FxHashMap::default();
    for (member, event) in events.iter().enumerate() {
        for row in &event.rows {
            let next = lines.len();
            let at = *known.entry(&row.cells).or_insert(next);
            if at == next {
                lines.push(Line { cells: &row.cells, rows: vec![None; events.len()], callers: 0 });
            }
            lines[at].rows[member] = Some(row);
        }
    }
    let share =
        |(event, row): (&&Event, &Option<&Row>)| row.map_or(0.0, |row| event.share(event.cost(&row.total)));
    lines.retain(|line| {
        events.iter().zip(&line.rows).map(share).fold(0.0, f64::max) * 100.0 >= layout.row_limit
    });
    if layout.sort_member > 0 && layout.sort_member < events.len() {
        let event = events[layout.sort_member];
        let cost = |line: &Line<'_>| line.rows[layout.sort_member].map_or(0, |row| event.cost(&row.total));
        sort::by_key(&mut lines, |line| std::cmp::Reverse(cost(line)));
    }
    if layout.reads_names() {
        let own = |line: &Line<'_>| line.rows.iter().flatten().map(|row| row.own.samples).sum();
        let callers = boilerplate::caller_rows(profile, lines.iter().map(|line| (line.cells, own(line))));
        if let [first, others @ ..] = &callers[..] {
            lines[*first].callers = callers.len();
            others.iter().rev().for_each(|at| drop(lines.remove(*at)));
        }
    }
    let all = lines.len();
    lines.truncate(layout.rows);
    (lines, all)
}

/// A field of each member, or one of the line.
fn fields(
    profile: &Profile,
    layout: &Layout,
    events: &[&Event],
    line: &Line<'_>,
    columns: &[Column],
    number: impl Fn(&Event, &Row, Column) -> String,
) -> Vec<String> {
    let nothing = Row::default();
    let mut fields = Vec::new();
    for column in columns {
        match column {
            Column::Key(key) => {
                let at = profile.keys.iter().position(|other| other == key);
                let value = at.and_then(|at| line.cells.get(at));
                fields.push(value.map(|value| cell(profile, layout, value)).unwrap_or_default());
            }
            _ => fields.extend(
                events
                    .iter()
                    .zip(&line.rows)
                    .map(|(event, row)| number(event, row.unwrap_or(&nothing), *column)),
            ),
        }
    }
    fields
}

/// The columns with those of numbers once for each event.
fn spread(columns: &[Column], events: usize) -> Vec<Column> {
    let times = |column: &Column| if matches!(column, Column::Key(_)) { 1 } else { events };
    columns.iter().flat_map(|column| std::iter::repeat_n(*column, times(column))).collect()
}

/// The names of events that share a table.
fn names(events: &[&Event]) -> String {
    let names: Vec<_> = events.iter().map(|event| clean(&event.name)).collect();
    names.join(", ")
}

/// A cell's words, harmless for a terminal.
fn cell(profile: &Profile, layout: &Layout, cell: &Cell) -> String {
    let spelling = Spelling {
        full_paths: layout.full_paths,
        nanoseconds: layout.nanoseconds,
        reads: layout.reads_names(),
    };
    words(&profile.texts, cell, spelling)
}

/// The same in the usual spelling.
pub fn cell_words(profile: &Profile, cell: &Cell) -> String {
    words(&profile.texts, cell, Spelling::default())
}

/// How the cells of a row are spelt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spelling {
    /// Source files with their folders.
    full_paths: bool,
    /// Times to the nanosecond instead of the microsecond.
    nanoseconds: bool,
    /// Names of functions as one reads them.
    reads: bool,
}

impl Spelling {
    /// As one reads them, or as they are.
    pub(super) fn read(reads: bool) -> Self {
        Self { reads, ..Self::default() }
    }
}

/// Stands before the names of the kernel's functions; [`INLINED`] before inlined ones, [`GENERATED`] before
/// generated code.
pub const KERNEL: &str = "◆ ";
/// See [`KERNEL`].
pub const INLINED: &str = "↳ ";
/// See [`KERNEL`].
pub const GENERATED: &str = "~ ";

/// The same, for whoever has cells and words without a profile.
pub(super) fn words(texts: &StringTable, cell: &Cell, spelling: Spelling) -> String {
    let text = |id| clean(texts.get(id)).into_owned();
    match *cell {
        Cell::Text(id) => text(id),
        Cell::Symbol(letter, id) if spelling.reads => {
            let mark = if matches!(letter, 'k' | 'g' | 'H') { KERNEL } else { "  " };
            format!("{mark}{}", DisplayName::new(texts.get(id)).text())
        }
        Cell::Symbol(letter, id) => format!("[{letter}] {}", text(id)),
        Cell::Offset(letter, id, into) => {
            format!("{}+{into:#x}", words(texts, &Cell::Symbol(letter, id), spelling))
        }
        Cell::Line(id, line) => {
            let path = text(id);
            let last = path.rsplit('/').next().unwrap_or(&path);
            format!("{}:{line}", if spelling.full_paths { &path } else { last })
        }
        Cell::InFunction(id, into) if spelling.reads => {
            format!("{}+{into}", DisplayName::new(texts.get(id)).text())
        }
        Cell::InFunction(id, into) => format!("{}+{into}", text(id)),
        Cell::InModule(id, address) => format!("{}[{address:x}]", text(id)),
        Cell::Task(pid, name) => format!("{pid}:{}", text(name)),
        Cell::Number(number) => number.to_string(),
        Cell::Address(address) => format!("{address:#x}"),
        Cell::Time(ns) if spelling.nanoseconds => format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        Cell::Time(ns) => format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000),
        Cell::Unknown => "[unknown]".to_owned(),
    }
}

fn heading(column: Column, profile: &Profile) -> &str {
    match column {
        Column::Own if profile.has_totals => "Self",
        Column::Own => "Overhead",
        Column::Total => "Children",
        Column::OwnLatency => "Latency",
        Column::TotalLatency => "Children Latency",
        Column::InMode(mode) => ["sys", "usr", "guest sys", "guest usr"][mode],
        Column::Weight(which) => ["Weight1", "Weight2", "Weight3"][which],
        Column::Samples => "Samples",
        Column::Period => "Period",
        Column::Key(key) => profile.heading(key),
    }
}

/// What of a row a column shows a share of, and the cost.
fn share_of(column: Column, row: &Row) -> Option<(ShareOf, u64)> {
    Some(match column {
        Column::Own => (ShareOf::Period, row.own.period),
        Column::Total => (ShareOf::Period, row.total.period),
        Column::InMode(mode) => (ShareOf::Period, row.in_mode(mode)),
        Column::OwnLatency => (ShareOf::Latency, row.own.latency()),
        Column::TotalLatency => (ShareOf::Latency, row.total.latency()),
        _ => return None,
    })
}

fn average_weight(row: &Row, which: usize) -> String {
    format!("{:.1}", row.own.weights()[which] as f64 / row.own.samples.max(1) as f64)
}

/// With its error for a person, with perf's two decimals for a program.
fn percent(event: &Event, (of, cost): (ShareOf, u64), layout: &Layout) -> String {
    let share = event.share_by(of, cost);
    if layout.is_piped || layout.form != Form::Text {
        return format!("{:.2}%", share * 100.0);
    }
    format!("{:.1}% ±{:.1}", share * 100.0, event.error_by(of, share) * 100.0)
}
