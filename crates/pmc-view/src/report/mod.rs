//! `pmc report` as text, separated fields, CSV and JSON.
//!
//! Receives a [`Profile`] and a [`ReportLayout`], and chooses the wording, widths and order of columns. All
//! shares come from the profile.

pub mod chain_words;
mod chains;
mod empty;
mod fields;
mod hierarchy;
mod json;
mod key_widths;
mod language;
mod name;
pub mod request;
pub mod row_layout;
mod text;
pub(crate) mod thread_time;
mod tree;
mod under_rows;

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

pub use key_widths::fit_keys;
pub(super) use key_widths::{FittedWidths, NARROWEST_LAST, omitted_columns};
pub(super) use name::StyledWords;
use pmc_analysis::profile::sampled::boilerplate;
use pmc_analysis::profile::sampled::table::MODES;
use pmc_analysis::profile::sampled::trust::TrustDetail;
use pmc_analysis::profile::sampled::{
    Profile, ProfileEvent, RowCell, SampleValue, ShareOf, SortKey, StringTable, TableRow, ThreadState,
};
use pmc_text::terminal::Paint;
use pmc_text::text::{DisplayName, clean};
use pmc_text::units::{PerfTime, thousands};
pub(super) use tree::chained;

/// Output format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for a human reader.
    Text,
    /// Fields separated by this string.
    Separated(String),
    /// CSV as in RFC 4180.
    Csv,
    /// A single JSON document.
    Json,
}

impl ReportFormat {
    /// Whether the format consists only of rows, without room for notes about the recording.
    pub fn is_bare(&self) -> bool {
        matches!(self, Self::Separated(_) | Self::Csv)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportColumn {
    /// Own share, in percent.
    Own,
    /// Share including callees, in percent.
    Total,
    /// Own share of wall-clock time, in percent.
    OwnLatency,
    /// Share of wall-clock time including callees, in percent.
    TotalLatency,
    /// Own share in one CPU mode, in percent; the mode is an index into [`MODES`].
    InMode(usize),
    /// Average weight of a sample; an index into `SampleValue::weights`.
    Weight(usize),
    /// Number of samples.
    Samples,
    /// Sum of periods.
    Period,
    /// Milliseconds per second in a state, including callees if the table shows them.
    Rate(ThreadState),
    /// A sort key.
    Key(SortKey),
}

/// The states of [`ReportColumn::Rate`] columns, with their headings.
const RATES: [(ThreadState, &str); 2] =
    [(ThreadState::Running, "On-CPU ms/s"), (ThreadState::Blocked, "Blocked ms/s")];

/// Names of [`ReportColumn::InMode`] columns, in the order of [`MODES`].
const IN_MODES: [&str; MODES.len()] =
    ["overhead_sys", "overhead_us", "overhead_guest_sys", "overhead_guest_us"];

impl ReportColumn {
    /// Returns the numeric column with this name in `-s` and `-F`.
    pub fn of_number(name: &str) -> Option<Self> {
        Some(match name {
            "overhead" | "self" => Self::Own,
            "overhead_children" => Self::Total,
            "latency" => Self::OwnLatency,
            "latency_children" => Self::TotalLatency,
            "sample" => Self::Samples,
            "period" => Self::Period,
            "weight1" => Self::Weight(0),
            "weight2" => Self::Weight(1),
            "weight3" => Self::Weight(2),
            name => Self::InMode(IN_MODES.iter().position(|word| *word == name)?),
        })
    }

    /// Whether the column is a share of wall-clock time.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::OwnLatency | Self::TotalLatency)
    }
}

/// How call chains are drawn in text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainShape {
    /// A tree with percentages of the total.
    #[default]
    Tree,
    /// A tree with percentages of the parent branch.
    Fractal,
    /// Separate chains, one function per line.
    Flat,
    /// Separate chains, one chain per line.
    Folded,
}

/// Number shown in front of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainUnit {
    /// The chain's share.
    #[default]
    Percent,
    /// The chain's sum of periods.
    Period,
    /// The chain's number of samples.
    Count,
}

/// Position of call chains in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainPosition {
    /// All chains in one tree below the table.
    #[default]
    Below,
    /// Each row's chains below the row, as in perf.
    UnderRows {
        /// Whether to omit the first function if all chains of a row start with it. The row already names
        /// that function.
        omits_first: bool,
    },
}

/// Options for displaying a profile.
#[derive(Debug, Clone)]
pub struct ReportLayout {
    /// The output format.
    pub form: ReportFormat,
    /// The requested columns; `None` for the default.
    pub columns: Option<Vec<ReportColumn>>,
    /// Columns to add to the default columns, after the numeric ones.
    pub added: Vec<ReportColumn>,
    /// Whether to show a column with the number of samples.
    pub show_samples: bool,
    /// Whether to show a column with the sum of periods.
    pub show_period: bool,
    /// Maximum number of rows.
    pub rows: usize,
    /// Number of lines in which the tables of running and waiting time must fit together; `None` if the
    /// number of rows was specified, or for a program.
    pub height: Option<usize>,
    /// Minimum percentage of the rows to show.
    pub row_limit: f64,
    /// Minimum percentage of the tree branches to show.
    pub branch_limit: f64,
    /// Maximum number of lines of the tree, largest branches first; `None` for no limit.
    pub tree_lines: Option<usize>,
    /// Which events to show side by side.
    pub grouping: EventGrouping,
    /// Explicit column widths. If a width is 0 or missing, pmc chooses it.
    pub widths: Vec<usize>,
    /// Whether the sampled functions are the roots of the tree.
    pub callee: bool,
    /// How to draw the tree.
    pub shape: ChainShape,
    /// Number shown in front of the tree's branches.
    pub unit: ChainUnit,
    /// Position of the call chains.
    pub chains: ChainPosition,
    /// Maximum number of branches with the same parent.
    pub branches: Option<usize>,
    /// Whether to nest rows by sort key.
    pub hierarchy: bool,
    /// Whether to show source files with their directories.
    pub full_paths: bool,
    /// Whether to show function names with all template arguments, regardless of their width.
    pub full_names: bool,
    /// Whether to show times in nanoseconds.
    pub nanoseconds: bool,
    /// Index of the group member by which a group's table is sorted.
    pub sort_member: usize,
    /// Maximum line width of the text in columns; `None` for no limit.
    pub width: Option<usize>,
    /// Text styles.
    pub paint: Paint,
    /// Whether the text is written to a pipe and read by a program. If so, rows are in perf's format, and all
    /// other lines are comments.
    pub is_piped: bool,
    /// How much to say about data quality.
    pub trust: TrustDetail,
    /// Whether to write only rows, without headlines, headings and remarks.
    pub is_quiet: bool,
    /// Sort keys that a filter restricts to one value. As in perf, a line above the table shows the value,
    /// and the table omits the column.
    pub single_values: Vec<(SortKey, String)>,
    /// The options that select samples, as typed. An empty table names them.
    pub filters: Vec<String>,
}

/// Which events share a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventGrouping {
    /// Every event has a separate table.
    Apart,
    /// Events that were recorded as a group share a table.
    Recorded,
    /// Like [`Self::Recorded`], but if no group was recorded, all events share a table.
    All,
}

/// By default, text with the most expensive rows and the tree below them.
impl Default for ReportLayout {
    fn default() -> Self {
        Self {
            form: ReportFormat::Text,
            columns: None,
            added: Vec::new(),
            show_samples: false,
            show_period: false,
            rows: 20,
            height: None,
            row_limit: 0.0,
            branch_limit: 0.5,
            tree_lines: None,
            grouping: EventGrouping::Recorded,
            widths: Vec::new(),
            callee: false,
            shape: ChainShape::Tree,
            unit: ChainUnit::Percent,
            chains: ChainPosition::Below,
            branches: None,
            hierarchy: false,
            full_paths: false,
            full_names: false,
            nanoseconds: false,
            sort_member: 0,
            width: None,
            paint: Paint::default(),
            is_piped: false,
            trust: TrustDetail::Brief,
            is_quiet: false,
            single_values: Vec::new(),
            filters: Vec::new(),
        }
    }
}

/// Maximum number of lines of a call tree on a terminal. Longer trees are hard to read.
pub const TREE_LINES: usize = 40;
/// Minimum size of a call tree branch in a JSON document, in percent.
pub const BRANCH_IN_JSON: f64 = 0.05;

impl ReportLayout {
    /// Whether a requested column needs periods by CPU mode.
    pub fn needs_cpu_modes(&self) -> bool {
        let mut typed = self.columns.iter().flatten().chain(&self.added);
        typed.any(|column| matches!(column, ReportColumn::InMode(_)))
    }

    /// Returns the maximum line width for a human reader.
    fn width(&self) -> Option<usize> {
        self.width.filter(|_| self.reads_names())
    }

    /// Whether to format numbers for a program.
    fn is_for_program(&self) -> bool {
        self.is_piped || self.form != ReportFormat::Text
    }

    /// Whether the output explains in words, next to the rows, why names are missing.
    pub fn shows_missing_names(&self) -> bool {
        !self.is_for_program()
    }

    /// Whether to shorten function names for a human reader.
    fn reads_names(&self) -> bool {
        self.form == ReportFormat::Text && !self.full_names && !self.is_piped
    }

    /// Returns the columns of a table whose rows have these sort keys, except those in [`Self::elided`].
    fn columns(&self, profile: &Profile, keys: &[SortKey]) -> Vec<ReportColumn> {
        let mut columns = self.all_columns(profile, keys);
        let elided = self.elided(profile);
        columns.retain(|column| !elided.iter().any(|(key, _)| *column == ReportColumn::Key(*key)));
        columns
    }

    /// Returns the sort keys that a filter restricts to one value; empty if that would omit all keys.
    fn elided(&self, profile: &Profile) -> Vec<&(SortKey, String)> {
        let columns = self.all_columns(profile, &profile.keys);
        let is_same = |key: SortKey| {
            let cells = || {
                profile.events.iter().flat_map(move |event| {
                    let at = profile.keys_of(event).iter().position(|other| *other == key);
                    event.rows.iter().map(move |row| at.map(|at| &row.cells[at]))
                })
            };
            profile.keys.contains(&key) && cells().all(|cell| Some(cell) == cells().next())
        };
        let is_column = |key: SortKey| columns.contains(&ReportColumn::Key(key));
        let elided = self.single_values.iter().filter(|(key, _)| is_column(*key) && is_same(*key));
        let elided: Vec<_> = elided.collect();
        let keys = columns.iter().filter(|column| matches!(column, ReportColumn::Key(_))).count();
        if elided.len() < keys { elided } else { Vec::new() }
    }

    fn all_columns(&self, profile: &Profile, keys: &[SortKey]) -> Vec<ReportColumn> {
        if let Some(columns) = &self.columns {
            return columns.clone();
        }
        let mut columns = Vec::new();
        let latencies_first = profile.share_of == ShareOf::Latency;
        for (period, latency) in
            [(ReportColumn::Total, ReportColumn::TotalLatency), (ReportColumn::Own, ReportColumn::OwnLatency)]
        {
            match (profile.has_latency, latencies_first) {
                _ if period == ReportColumn::Total && !profile.has_totals => {}
                (true, true) => columns.extend([latency, period]),
                (true, false) => columns.extend([period, latency]),
                _ => columns.push(period),
            }
        }
        if profile.events.iter().any(|event| event.rates(&event.total).is_some()) {
            columns.extend(RATES.iter().map(|(state, _)| ReportColumn::Rate(*state)));
        }
        if self.show_samples {
            columns.push(ReportColumn::Samples);
        }
        if self.show_period {
            columns.push(ReportColumn::Period);
        }
        columns.extend(
            self.added.iter().filter(|column| !columns.contains(column)).copied().collect::<Vec<_>>(),
        );
        let keys = keys.iter().copied().map(ReportColumn::Key);
        columns.extend(keys.filter(|key| !self.added.contains(key)));
        columns
    }
}

/// Writes the whole report.
pub fn write(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    match &layout.form {
        ReportFormat::Text => text::write(out, profile, layout),
        ReportFormat::Separated(separator) => fields::separated(out, profile, layout, separator),
        ReportFormat::Csv => fields::csv(out, profile, layout),
        ReportFormat::Json => json::write(out, profile, layout),
    }
}

/// Writes the tables and trees of the text, without the data quality.
pub fn write_tables(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    text::tables(out, profile, layout)
}

/// Writes everything that is known about data quality: the trust line and all remarks.
pub fn write_trust(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    text::trust(out, profile, &ReportLayout { trust: TrustDetail::Full, ..ReportLayout::default() })
}

/// Writes the list of events with their rows, in the format of the JSON document.
pub fn write_events_json(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    json::events(out, profile, layout)
}

/// A line of a table. It combines the rows that have the same cells, one per event.
struct ReportLine<'a> {
    cells: &'a [RowCell],
    /// The row for each event in the table; `None` if the event has no such row.
    rows: Vec<Option<&'a TableRow>>,
    /// Number of start-up functions that the line summarizes, such as `_start`; 0 for an ordinary row.
    callers: usize,
}

/// Returns the events that share a table with the event at `index`, which must lead their group. Returns
/// nothing if the event is shown in its leader's table.
fn side_by_side<'a>(profile: &'a Profile, layout: &ReportLayout, index: usize) -> Vec<&'a ProfileEvent> {
    let events = &profile.events;
    let has_groups = events.iter().enumerate().any(|(at, event)| event.leader != at);
    let leader = |at: usize| match layout.grouping {
        EventGrouping::Apart => at,
        EventGrouping::All if !has_groups => 0,
        EventGrouping::Recorded | EventGrouping::All => events[at].leader,
    };
    (0..events.len()).filter(|&at| leader(at) == index).map(|at| &events[at]).collect()
}

/// Returns the sort keys of events that share a table.
fn keys_of<'a>(profile: &'a Profile, events: &[&'a ProfileEvent]) -> &'a [SortKey] {
    events.first().map_or(&profile.keys, |event| profile.keys_of(event))
}

/// Returns up to `layout.rows` lines whose share reaches the limit, and the total number of such lines. The
/// group leader's lines come first. For a human reader, start-up functions are combined into one line.
fn lines<'a>(
    profile: &Profile,
    events: &[&'a ProfileEvent],
    layout: &ReportLayout,
) -> (Vec<ReportLine<'a>>, usize) {
    let mut lines: Vec<ReportLine<'a>> = Vec::new();
    let mut known: FxHashMap<&[RowCell], usize> = FxHashMap::default();
    for (member, event) in events.iter().enumerate() {
        for row in &event.rows {
            let next = lines.len();
            let at = *known.entry(&row.cells).or_insert(next);
            if at == next {
                lines.push(ReportLine { cells: &row.cells, rows: vec![None; events.len()], callers: 0 });
            }
            lines[at].rows[member] = Some(row);
        }
    }
    let share = |(event, row): (&&ProfileEvent, &Option<&TableRow>)| {
        row.map_or(0.0, |row| event.share(event.cost(&row.total)))
    };
    lines.retain(|line| {
        events.iter().zip(&line.rows).map(share).fold(0.0, f64::max) * 100.0 >= layout.row_limit
    });
    if layout.sort_member > 0 && layout.sort_member < events.len() {
        let event = events[layout.sort_member];
        let cost =
            |line: &ReportLine<'_>| line.rows[layout.sort_member].map_or(0, |row| event.cost(&row.total));
        lines.sort_by_key(|line| std::cmp::Reverse(cost(line)));
    }
    if layout.reads_names() {
        let own = |line: &ReportLine<'_>| line.rows.iter().flatten().map(|row| row.own.samples).sum();
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

/// Returns the fields of a line. A numeric column has one field for each event of the group.
fn fields(
    profile: &Profile,
    layout: &ReportLayout,
    events: &[&ProfileEvent],
    line: &ReportLine<'_>,
    columns: &[ReportColumn],
    number: impl Fn(&ProfileEvent, &TableRow, ReportColumn) -> String,
) -> Vec<String> {
    let nothing = TableRow::default();
    let keys = keys_of(profile, events);
    let mut fields = Vec::new();
    for column in columns {
        match column {
            ReportColumn::Key(key) => {
                let at = keys.iter().position(|other| other == key);
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

/// Returns the columns, with each numeric column repeated for each event.
fn spread(columns: &[ReportColumn], events: usize) -> Vec<ReportColumn> {
    let times = |column: &ReportColumn| if matches!(column, ReportColumn::Key(_)) { 1 } else { events };
    columns.iter().flat_map(|column| std::iter::repeat_n(*column, times(column))).collect()
}

/// Returns the names of events that share a table.
fn names(events: &[&ProfileEvent]) -> String {
    let names: Vec<_> = events.iter().map(|event| clean(&event.name)).collect();
    names.join(", ")
}

/// Returns a cell's text, safe to print on a terminal.
fn cell(profile: &Profile, layout: &ReportLayout, cell: &RowCell) -> String {
    let spelling = CellFormat {
        full_paths: layout.full_paths,
        nanoseconds: layout.nanoseconds,
        reads: layout.reads_names(),
    };
    words(&profile.texts, cell, spelling)
}

/// Returns a cell's text in the default format, safe to print on a terminal.
pub fn cell_words(profile: &Profile, cell: &RowCell) -> String {
    words(&profile.texts, cell, CellFormat::default())
}

/// How to format the cells of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellFormat {
    /// Whether to show source files with their directories.
    full_paths: bool,
    /// Whether to show times in nanoseconds instead of microseconds.
    nanoseconds: bool,
    /// Whether to shorten function names for a human reader.
    reads: bool,
}

impl CellFormat {
    /// Returns the default format, but shortens function names if `reads` is true.
    pub(super) fn read(reads: bool) -> Self {
        Self { reads, ..Self::default() }
    }
}

/// Mark before the names of kernel functions.
pub const KERNEL: &str = "◆ ";
/// Mark before the names of inlined functions.
pub const INLINED: &str = "↳ ";
/// Mark before the names of generated functions.
pub const GENERATED: &str = "~ ";

/// Returns a cell's text, safe to print on a terminal. Does not need a profile.
pub(super) fn words(texts: &StringTable, cell: &RowCell, spelling: CellFormat) -> String {
    let text = |id| clean(texts.get(id)).into_owned();
    match *cell {
        RowCell::Text(id) => text(id),
        RowCell::Symbol(letter, id) if spelling.reads => {
            let mark = if matches!(letter, 'k' | 'g' | 'H') { KERNEL } else { "  " };
            format!("{mark}{}", DisplayName::new(texts.get(id)).text())
        }
        RowCell::Symbol(letter, id) => format!("[{letter}] {}", text(id)),
        RowCell::Offset(letter, id, into) => {
            format!("{}+{into:#x}", words(texts, &RowCell::Symbol(letter, id), spelling))
        }
        RowCell::Line(id, line) => {
            let path = text(id);
            let last = path.rsplit('/').next().unwrap_or(&path);
            format!("{}:{line}", if spelling.full_paths { &path } else { last })
        }
        RowCell::InFunction(id, into) if spelling.reads => {
            format!("{}+{into}", DisplayName::new(texts.get(id)).text())
        }
        RowCell::InFunction(id, into) => format!("{}+{into}", text(id)),
        RowCell::InModule(id, address) => format!("{}[{address:x}]", text(id)),
        RowCell::Task(pid, name) => format!("{pid}:{}", text(name)),
        RowCell::Number(number) => number.to_string(),
        RowCell::Address(address) => format!("{address:#x}"),
        RowCell::Time(ns) => format!("{:.1$}", PerfTime(ns), if spelling.nanoseconds { 9 } else { 6 }),
        RowCell::Unknown => "[unknown]".to_owned(),
    }
}

fn heading(column: ReportColumn, profile: &Profile) -> &str {
    match column {
        ReportColumn::Own if profile.has_totals => "Self",
        ReportColumn::Own => "Overhead",
        ReportColumn::Total => "Children",
        ReportColumn::OwnLatency => "Latency",
        ReportColumn::TotalLatency => "Children Latency",
        ReportColumn::InMode(mode) => ["sys", "usr", "guest sys", "guest usr"][mode],
        ReportColumn::Weight(which) => ["Weight1", "Weight2", "Weight3"][which],
        ReportColumn::Samples => "Samples",
        ReportColumn::Period => "Period",
        ReportColumn::Rate(state) => RATES.iter().find(|(at, _)| *at == state).map_or("", |(_, words)| words),
        ReportColumn::Key(key) => profile.heading(key),
    }
}

/// Returns the value whose share a column shows, and which total the share refers to.
fn share_of(column: ReportColumn, row: &TableRow) -> Option<(ShareOf, Cow<'_, SampleValue>)> {
    Some(match column {
        ReportColumn::Own => (ShareOf::Period, Cow::Borrowed(&row.own)),
        ReportColumn::Total => (ShareOf::Period, Cow::Borrowed(&row.total)),
        ReportColumn::InMode(mode) => {
            let period = row.in_mode(mode);
            (ShareOf::Period, Cow::Owned(SampleValue { period, ..SampleValue::default() }))
        }
        ReportColumn::OwnLatency => (ShareOf::Latency, Cow::Borrowed(&row.own)),
        ReportColumn::TotalLatency => (ShareOf::Latency, Cow::Borrowed(&row.total)),
        ReportColumn::Samples
        | ReportColumn::Period
        | ReportColumn::Rate(_)
        | ReportColumn::Weight(_)
        | ReportColumn::Key(_) => return None,
    })
}

/// Formats a number in a row: with thousands separators for a human reader, or as digits only for a program.
fn number(event: &ProfileEvent, row: &TableRow, column: ReportColumn, layout: &ReportLayout) -> String {
    if let Some((of, value)) = share_of(column, row) {
        return percent(event, of, &value, layout);
    }
    let digits = |number: u64| match layout.is_for_program() {
        true => number.to_string(),
        false => thousands(number),
    };
    match column {
        ReportColumn::Weight(which) => average_weight(row, which),
        ReportColumn::Samples => digits(row.own.samples),
        ReportColumn::Rate(state) => {
            let value = if row.total.period > 0 { &row.total } else { &row.own };
            event.rates(value).map(|rates| format!("{:.1}", rates[state as usize])).unwrap_or_default()
        }
        _ => digits(row.own.period),
    }
}

fn average_weight(row: &TableRow, which: usize) -> String {
    format!("{:.1}", row.own.weights()[which] as f64 / row.own.samples.max(1) as f64)
}

/// Formats a percentage: with its error for a human reader, or with perf's two decimals for a program.
/// Waits have no error, since they are measured completely.
fn percent(event: &ProfileEvent, of: ShareOf, value: &SampleValue, layout: &ReportLayout) -> String {
    let share = event.share_by(of, of.cost(value));
    if layout.is_for_program() {
        return format!("{:.2}%", share * 100.0);
    }
    match event.error_by(of, value) {
        0.0 => format!("{:.1}%     ", share * 100.0),
        error => format!("{:.1}% ±{:.1}", share * 100.0, error * 100.0),
    }
}
