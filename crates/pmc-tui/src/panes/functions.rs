//! The function table: shares with their errors, bars, and the values of the sort keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{found, mark, name, nothing, put};
use crate::layout::ScreenAreas;
use crate::numbers;
use crate::state::ScreenState;
use crate::state::table::{self, FunctionColumn};
use crate::state::table_widths::{TableWidths, ThreadTimeColumns};
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::{
    CodeKind, Profile, ProfileEvent, RowCell, SampleValue, ShareOf, SortKey, TableRow,
};
use pmc_text::text;
use pmc_view::report::cell_words;

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let Some((profile, event)) = state.event() else {
        let words = match &state.status.progress {
            Some(progress) => format!("{} …", progress.what),
            None => "waiting for the first samples …".to_owned(),
        };
        nothing(buffer, areas.body, &words, theme);
        return;
    };
    let widths = TableWidths::new(state, profile, event);
    heading(buffer, areas, state, (profile, event), &widths, theme);
    if state.table.shown.is_empty() {
        let words = if state.filter.is_some() && !event.rows.is_empty() {
            "no row matches the filter (Esc to undo)"
        } else if event.total.samples == 0 {
            "no samples"
        } else {
            "the filters exclude all samples (Esc undoes the last filter)"
        };
        nothing(buffer, areas.body, words, theme);
        return;
    }
    let top = state.table.scroll.top;
    for (line, at) in (0..areas.body.height).zip(state.table.shown.iter().skip(top)) {
        let row = &event.rows[*at as usize];
        let is_cursor = top + usize::from(line) == state.table.scroll.cursor;
        let is_marked =
            !state.table.marks.is_empty() && state.table.marks.contains(&table::identity(profile, row));
        let callers = state.table.callers.filter(|(first, _)| first == at).map(|(_, count)| count);
        let spans = spans(state, (profile, event, row), &widths, is_marked, callers, theme);
        put(buffer, areas.body, line, spans, if is_cursor { theme.cursor() } else { Style::new() });
    }
    detail(buffer, areas, state, profile, event, theme);
}

fn heading(
    buffer: &mut Buffer,
    areas: &ScreenAreas,
    state: &ScreenState,
    (profile, event): (&Profile, &ProfileEvent),
    widths: &TableWidths,
    theme: ScreenTheme,
) {
    let arrow = |column: FunctionColumn, words: &str, width: usize, to_right: bool| {
        let is_sorted = state.table.sort == column
            || (column == FunctionColumn::Own
                && state.table.sort == FunctionColumn::Total
                && !widths.has_totals);
        let falls = matches!(column, FunctionColumn::Own | FunctionColumn::Total) != state.table.reverse;
        let words = match (is_sorted, falls) {
            (true, true) => format!("{words}▾"),
            (true, false) => format!("{words}▴"),
            _ => words.to_owned(),
        };
        if to_right { text::right(&words, width) } else { text::left(&words, width) }
    };
    let mut line = " ".to_owned();
    if widths.has_totals {
        line += &arrow(FunctionColumn::Total, "Total", 7, true);
        line.push(' ');
    }
    line += &arrow(FunctionColumn::Own, if widths.has_totals { "Self" } else { "Share" }, 7, true);
    line.push(' ');
    if widths.has_errors {
        line += &text::right("±", 6);
        line.push(' ');
    }
    if widths.has_other {
        let other = if event.share_of == ShareOf::Period { "Latency" } else { "Overhead" };
        line += &text::right(other, TableWidths::OTHER);
        line.push(' ');
    }
    let headings: &[&str] = match widths.time {
        ThreadTimeColumns::None => &[],
        ThreadTimeColumns::State => &["State"],
        ThreadTimeColumns::Rates => &["Run ms/s", "Blk ms/s"],
    };
    for heading in headings {
        line += &text::left(heading, ThreadTimeColumns::EACH);
        line.push(' ');
    }
    if widths.bar > 0 {
        line += &" ".repeat(widths.bar + 1);
    }
    for (at, (key, width)) in profile.keys_of(event).iter().zip(&widths.keys).enumerate() {
        if *width == 0 {
            continue;
        }
        if *key == SortKey::Symbol {
            // Align with the rows, which start with a mark.
            line += "  ";
            line += &arrow(FunctionColumn::Key(at), profile.heading(*key), width.saturating_sub(2), false);
            line.push(' ');
            continue;
        }
        line += &arrow(FunctionColumn::Key(at), profile.heading(*key), *width, false);
        line.push(' ');
    }
    let line = text::left(line.trim_end(), areas.heading.width.into());
    put(buffer, areas.heading, 0, vec![Span::styled(line, theme.heading())], Style::new());
}

fn spans(
    state: &ScreenState,
    (profile, event, row): (&Profile, &ProfileEvent, &TableRow),
    widths: &TableWidths,
    is_marked: bool,
    callers: Option<usize>,
    theme: ScreenTheme,
) -> Vec<Span<'static>> {
    let share = |value| event.share(event.cost(value));
    let (own, total) = (share(&row.own), share(&row.total));
    let mut spans = vec![Span::styled(if is_marked { "*" } else { " " }, theme.marked())];
    if widths.has_totals {
        spans.push(Span::styled(numbers::percent(total) + " ", theme.share(total)));
    }
    spans.push(Span::styled(numbers::percent(own) + " ", theme.share(own)));
    if widths.has_errors {
        let shown = if state.table.sort == FunctionColumn::Own { &row.own } else { &row.total };
        spans.push(Span::styled(numbers::error(event.error(shown)) + " ", theme.dim()));
    }
    if widths.has_other {
        let of = if event.share_of == ShareOf::Period { ShareOf::Latency } else { ShareOf::Period };
        let other = event.share_by(of, of.cost(&row.own));
        let words = text::right(&numbers::percent(other), TableWidths::OTHER) + " ";
        spans.push(Span::styled(words, theme.share(other)));
    }
    let value = if widths.has_totals { &row.total } else { &row.own };
    spans.extend(thread_time(event, value, widths.time, theme));
    if widths.bar > 0 {
        spans.push(Span::styled(numbers::bar(own, total, widths.bar) + " ", theme.bar()));
    }
    let last = widths.keys.len().saturating_sub(1);
    for (at, (cell, width)) in
        row.cells.iter().zip(&widths.keys).enumerate().filter(|(_, (_, width))| **width > 0)
    {
        // The last column contains the long names. If the user has scrolled it, do not shorten them.
        let is_moved = at == last && state.table.shift > 0;
        let mut words = match cell {
            RowCell::Symbol(..) if callers.is_some() => {
                let words = format!("  {} start-up frames (b to show)", callers.unwrap_or_default());
                vec![(text::cut(&words, *width), theme.dim())]
            }
            RowCell::Symbol(letter, id) if !is_moved => {
                let kind = CodeKind::of_row(
                    *letter,
                    &table::named(profile, event, row, SortKey::Dso).unwrap_or_default(),
                );
                let mut words = vec![(text::left(mark(kind, false), 2), theme.function(kind))];
                words.extend(name(profile.texts.get(*id), kind, width.saturating_sub(2), theme));
                words
            }
            _ => {
                let shift = if is_moved { state.table.shift } else { 0 };
                let is_state = profile.keys.get(at) == Some(&SortKey::WaitSite);
                let style = if is_state { theme.state(value.main_state()) } else { theme.plain() };
                vec![(text::shifted(&cell_words(profile, cell), shift, *width), style)]
            }
        };
        if is_marked {
            words.iter_mut().for_each(|(_, of)| *of = theme.marked());
        }
        let used: usize = words.iter().map(|(text, _)| text::width(text)).sum();
        spans.extend(found(words, &state.search, theme));
        spans.push(Span::raw(" ".repeat(width.saturating_sub(used) + 1)));
    }
    spans
}

/// Returns the cells of the thread-time columns.
pub(super) fn thread_time(
    event: &ProfileEvent,
    value: &SampleValue,
    columns: ThreadTimeColumns,
    theme: ScreenTheme,
) -> Vec<Span<'static>> {
    match (columns, event.rates(value)) {
        (ThreadTimeColumns::State, _) => {
            let state = value.main_state();
            let words = text::left(state.name(), ThreadTimeColumns::EACH);
            vec![Span::styled(words, theme.state(state)), Span::raw(" ")]
        }
        (ThreadTimeColumns::Rates, Some([running, _, blocked])) => {
            let cell = |ms: f64| {
                let words = text::right(&format!("{ms:.1}"), ThreadTimeColumns::EACH) + " ";
                Span::styled(words, if ms < 0.05 { theme.dim() } else { theme.plain() })
            };
            vec![cell(running), cell(blocked)]
        }
        _ => Vec::new(),
    }
}

/// Returns a row's text, with the function name in full.
fn in_full(profile: &Profile, event: &ProfileEvent, row: &TableRow) -> String {
    let module = table::named(profile, event, row, SortKey::Dso).unwrap_or_default();
    let words = row.cells.iter().map(|cell| match *cell {
        RowCell::Symbol(letter, id) => {
            let mark = mark(CodeKind::of_row(letter, &module), false);
            format!("{mark}{}", text::clean(profile.texts.get(id)))
        }
        _ => cell_words(profile, cell),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Draws the details: the full text of the cursor's row, its history, and the sum of the marked rows.
fn detail(
    buffer: &mut Buffer,
    areas: &ScreenAreas,
    state: &ScreenState,
    profile: &Profile,
    event: &ProfileEvent,
    theme: ScreenTheme,
) {
    let Some(row) = state.table.row(event) else { return };
    let width = usize::from(areas.detail.width);
    let mut left = format!("{} of {}: ", state.table.scroll.cursor + 1, state.table.shown.len());
    let cursor = state.table.shown.get(state.table.scroll.cursor);
    let callers = state.table.callers.filter(|(first, _)| Some(first) == cursor);
    if let Some((_, count)) = callers {
        left += &format!("{count} start-up frames hidden (b to show)");
    } else if state.table.marks.is_empty() {
        let own = row.own.samples;
        left += &format!("{own} sample{}, {}", if own == 1 { "" } else { "s" }, in_full(profile, event, row));
    } else {
        let is_marked = |row: &&TableRow| state.table.marks.contains(&table::identity(profile, row));
        let marked: Vec<&TableRow> = event.rows.iter().filter(is_marked).collect();
        let own = TableRow::own_sum(marked.iter().copied());
        let (share, error) = (event.share(event.cost(&own)), event.error(&own));
        let (share, error) = (numbers::percent(share), numbers::error(error));
        left += &format!("{} marked, {} {} themselves", marked.len(), share.trim(), error.trim());
    }
    let function = table::function(profile, event, row);
    let history = state.history.as_ref().filter(|(of, _)| Some(of) == function.as_ref());
    // If space is short, omit the history and show only the row's text.
    let sparks = history.filter(|_| width >= 90).map(|(_, sums)| {
        let room = (width / 3).min(40);
        let columns = crate::state::time_strip::columns(sums, room.min(sums.len().max(1)) as u16);
        numbers::sparks(&columns)
    });
    let sparks = sparks.unwrap_or_default();
    let room = width.saturating_sub(if sparks.is_empty() { 0 } else { text::width(&sparks) + 1 });
    super::detail(buffer, Rect { width: room as u16, ..areas.detail }, &left, theme);
    let beside = Rect { x: areas.detail.x + room as u16 + 1, width: (width - room) as u16, ..areas.detail };
    put(buffer, beside.intersection(areas.detail), 0, vec![Span::styled(sparks, theme.bar())], Style::new());
}
