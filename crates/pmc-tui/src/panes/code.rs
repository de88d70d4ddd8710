//! The code pane: source and assembly with their costs, and arrows for jumps.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{detail, found, nothing, put};
use crate::layout::ScreenAreas;
use crate::numbers;
use crate::state::ScreenState;
use crate::theme::ScreenTheme;
use pmc_analysis::profile::annotate::arrows::ArrowPiece;
use pmc_analysis::profile::annotate::{Listing, PercentBasis, RowContent};
use pmc_analysis::profile::sampled::Filter;
use pmc_text::text::{self, DisplayName};
use pmc_view::report::INLINED;

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let width = usize::from(areas.body.width);
    let code = &state.code;
    let Some(function) = &code.function else {
        nothing(buffer, areas.body, "select a function, then press a", theme);
        return;
    };
    let listing = match &code.listing {
        None => {
            return nothing(
                buffer,
                areas.body,
                &match function.symbol.as_str() {
                    "" => "looking for the hottest function …".to_owned(),
                    symbol => format!("looking for the code of {} …", text::cut(symbol, width)),
                },
                theme,
            );
        }
        Some(Err(why)) => return nothing(buffer, areas.body, why, theme),
        Some(Ok(listing)) => listing,
    };
    let event = state.event_index();
    let (of_all, error) = listing.events.get(event).map_or((0.0, 1.0), |event| event.of_all());
    let heading = format!(
        "{} {} {} of all{}: {} ({})",
        text::right("Share", 7),
        numbers::percent(of_all).trim(),
        numbers::error(error).trim(),
        // Costs in the code always refer to the whole recording, so tell the user if filters are active.
        if state.query.filter == Filter::default() { "" } else { ", ignoring filters" },
        DisplayName::new(&listing.symbol).text(),
        listing.dso
    );
    put(
        buffer,
        areas.heading,
        0,
        vec![Span::styled(text::left(&heading, width), theme.heading())],
        Style::new(),
    );
    if code.shown.is_empty() {
        let notes: Vec<String> = listing.notes.iter().map(|note| note.text.clone()).collect();
        nothing(buffer, areas.body, &format!("no code to show\n{}", notes.join("\n")), theme);
        return;
    }
    let chosen = code.shown.get(code.scroll.cursor).map_or(usize::MAX, |at| *at as usize);
    for (line, at) in (0..areas.body.height).zip(code.shown.iter().skip(code.scroll.top)) {
        let at = *at as usize;
        let Some(row) = listing.rows.get(at) else { continue };
        let folded = code.folded(at as u32).map(|rows| listing.sum(rows, event));
        let value = folded.as_ref().map_or_else(|| row.value(event), |(_, value)| value.clone());
        let (share, _) = listing.share(event, &value, PercentBasis::LocalPeriod);
        let is_code = folded.is_some() || row.is_code();
        let number = if value.period == 0 { " ".repeat(7) } else { numbers::percent(share) };
        let style = if is_code { theme.share(share) } else { theme.dim() };
        let mut spans = vec![Span::styled(format!("{number} "), style)];
        let lanes = listing.lanes;
        if lanes > 0 {
            let is_chosen = listing
                .jumps
                .iter()
                .any(|jump| (jump.from == chosen || jump.to == chosen) && jump.at(at).is_some());
            let style = if is_chosen { theme.bold() } else { theme.dim() };
            spans.push(Span::styled(arrows(listing, at), style));
        }
        let used = 8 + if lanes > 0 { lanes + 2 } else { 0 };
        let room = width.saturating_sub(used);
        let (number, words, style) = row_words(state, listing, at, folded.map(|(count, _)| count), theme);
        let room = room.saturating_sub(pmc_text::text::width(&number));
        spans.push(Span::styled(number, theme.dim()));
        let words = vec![(text::shifted(&words, code.shift, room), style)];
        spans.extend(found(words, &state.search, theme));
        put(buffer, areas.body, line, spans, if at == chosen { theme.cursor() } else { Style::new() });
    }
    if let Some(words) = chosen_words(state, listing, chosen) {
        detail(buffer, areas.detail, &words, theme);
    }
}

/// Returns a row's line number or address, its text, and the style of the text. `folded` is the number of
/// instructions that a folded function hides.
fn row_words(
    state: &ScreenState,
    listing: &Listing,
    at: usize,
    folded: Option<usize>,
    theme: ScreenTheme,
) -> (String, String, Style) {
    match &listing.rows[at].kind {
        RowContent::Function { name, depth } => {
            let sign = match folded {
                Some(_) => "▸ ",
                None if state.code.is_open(at as u32) => "▾ ",
                None => "",
            };
            let mark = if *depth > 0 { INLINED } else { "" };
            let mut words = format!("{}{sign}{mark}", " ".repeat((*depth).min(20)));
            words += &DisplayName::new(name).text();
            words += &folded.map_or(":".to_owned(), |count| {
                format!(": {count} instruction{}", if count == 1 { "" } else { "s" })
            });
            (String::new(), words, theme.bold())
        }
        RowContent::Source { file, line, depth, .. } => {
            let text = listing.text(*file, *line).map(|text| text.replace('\t', "    "));
            let text = text.unwrap_or_else(|| {
                let path = listing.files.get(*file).map_or("", |file| &file.path);
                format!("({} does not exist)", path.rsplit('/').next().unwrap_or(path))
            });
            (text::right(&line.to_string(), 5 + (*depth).min(10)) + " ", text, theme.source())
        }
        RowContent::Instruction(i) => {
            let name = i.target.as_ref().or(i.refers.as_ref()).and_then(|target| target.name.as_ref());
            let name = name.map(|(name, offset)| match offset {
                0 => format!("  <{name}>"),
                _ => format!("  <{name}+{offset:#x}>"),
            });
            let name = name.unwrap_or_default();
            let words = format!("{} {}{name}", text::left(&i.mnemonic, 7), i.operands);
            (format!("{:>8x}  ", i.address), words, theme.plain())
        }
        RowContent::Address(address) => (format!("{address:>8x}  "), "?".to_owned(), theme.plain()),
    }
}

/// Describes the row with the cursor.
fn chosen_words(state: &ScreenState, listing: &Listing, chosen: usize) -> Option<String> {
    let (code, event, row) = (&state.code, state.event_index(), listing.rows.get(chosen)?);
    let folded = code.folded(chosen as u32).map(|rows| listing.sum(rows, event));
    let value = folded.map_or_else(|| row.value(event), |(_, value)| value);
    let (share, error) = listing.share(event, &value, PercentBasis::LocalPeriod);
    let mut words = format!("line {} of {}", code.scroll.cursor + 1, code.shown.len());
    if value.samples > 0 {
        let (share, error) = (numbers::percent(share), numbers::error(error));
        words += &format!(": {} samples, {} {} of the function", value.samples, share.trim(), error.trim());
    }
    let others = listing.events.iter().enumerate().filter(|(at, _)| *at != event);
    for (at, other) in others {
        let (share, _) = listing.share(at, &row.value(at), PercentBasis::LocalPeriod);
        words += &format!("; {} of {}", numbers::percent(share).trim(), other.name);
    }
    if let Some(note) = listing.notes.first() {
        words += &format!("; {}", note.text);
    }
    Some(words)
}

/// Returns a row's arrows: one character per lane, outermost first, then the arrowhead next to the code.
fn arrows(listing: &Listing, row: usize) -> String {
    let mut out = String::new();
    // A horizontal line leads from an arrow's end to the code, across all lanes to its right.
    let mut leads = false;
    let mut is_target = false;
    for lane in (0..listing.lanes).rev() {
        let (mut passes, mut top, mut bottom) = (false, false, false);
        for jump in listing.jumps.iter().filter(|jump| jump.lane == lane) {
            match jump.at(row) {
                Some(ArrowPiece::Pass) => passes = true,
                Some(ArrowPiece::Top) => top = true,
                Some(ArrowPiece::Bottom) => bottom = true,
                Some(ArrowPiece::Both) => (top, bottom) = (true, true),
                None => continue,
            }
            is_target |= jump.to == row;
        }
        let ends = top || bottom;
        out.push(match (passes || (top && bottom), top, bottom) {
            (true, ..) if ends => '├',
            (true, ..) if leads => '┼',
            (true, ..) => '│',
            (_, true, _) => '╭',
            (_, _, true) => '╰',
            _ if leads => '─',
            _ => ' ',
        });
        leads |= ends;
    }
    out.push_str(match (leads, is_target) {
        (true, true) => "▸ ",
        (true, false) => "─ ",
        _ => "  ",
    });
    out
}
