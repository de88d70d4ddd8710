//! Drawing: each pane converts the state into characters and styles.
//!
//! The panes read the [`ScreenState`] and draw into the frame. All untrusted text passes through
//! `DisplayName::fit` first.

pub mod code;
pub mod events;
pub mod flame;
pub mod frame;
pub mod functions;
pub mod help;
pub mod threads;
mod too_small;
pub mod tree;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::keys::Pane;
use super::state::search::Search;
use super::state::{Overlay, ScreenState};
use super::theme::ScreenTheme;
use pmc_analysis::profile::sampled::CodeKind;
use pmc_text::text::{self, DisplayName};
use pmc_view::report::{GENERATED, INLINED, KERNEL};

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, state: &ScreenState, theme: ScreenTheme) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let Some(areas) = state.areas().filter(|_| (area.width, area.height) == state.size) else {
        too_small::draw(buffer, area);
        return;
    };
    frame::header(buffer, areas.header, state, theme);
    frame::tabs(buffer, areas.tabs, state, theme);
    if let Some(strip) = areas.strip {
        frame::strip(buffer, strip, state, theme);
    }
    if let Some(Overlay::Help(scroll)) = &state.over {
        let page = Rect { height: 1 + areas.body.height + areas.detail.height, ..areas.heading };
        help::draw(buffer, page, scroll.top, state, theme);
    } else {
        match state.pane {
            Pane::Functions => functions::draw(buffer, &areas, state, theme),
            Pane::Tree => tree::draw(buffer, &areas, state, theme),
            Pane::Flame => flame::draw(buffer, &areas, state, theme),
            Pane::Code => code::draw(buffer, &areas, state, theme),
            Pane::Threads => threads::draw(buffer, &areas, state, theme),
            Pane::Events => events::draw(buffer, &areas, state, theme),
        }
    }
    if let Some(column) = frame::footer(buffer, areas.footer, state, theme) {
        frame.set_cursor_position((column, areas.footer.y));
    }
}

/// Draws a line of styled text, and then applies the style `over` to the whole line.
fn put(buffer: &mut Buffer, area: Rect, line: u16, spans: Vec<Span<'static>>, over: Style) {
    if line < area.height {
        let area = Rect { y: area.y + line, height: 1, ..area };
        Line::from(spans).render(area, buffer);
        buffer.set_style(area, over);
    }
}

/// Returns the parts as styled spans, with search matches highlighted.
fn found(parts: Vec<(String, Style)>, search: &Search, theme: ScreenTheme) -> Vec<Span<'static>> {
    let whole: String = parts.iter().map(|(text, _)| text.as_str()).collect();
    let places = search.places(&whole);
    let mut spans = Vec::new();
    let mut begin = 0;
    for (text, style) in &parts {
        let (mut at, end) = (begin, begin + text.len());
        for (from, to) in &places {
            let (from, to) = ((*from).max(at), (*to).min(end));
            if from < to {
                spans.push(Span::styled(whole[at..from].to_owned(), *style));
                spans.push(Span::styled(whole[from..to].to_owned(), style.patch(theme.found())));
                at = to;
            }
        }
        spans.push(Span::styled(whole[at..end].to_owned(), *style));
        begin = end;
    }
    spans
}

/// Returns a function's name, shortened to `columns`. The name itself is bright; its scope and arguments are
/// dim.
fn name(symbol: &str, kind: CodeKind, columns: usize, theme: ScreenTheme) -> Vec<(String, Style)> {
    let name = DisplayName::new(symbol).fit(columns);
    vec![(name.scope, theme.dim()), (name.function, theme.function(kind)), (name.details, theme.dim())]
}

/// Returns the mark in front of a function's name, which tells kinds of functions apart without colours;
/// empty for ordinary functions.
fn mark(kind: CodeKind, is_inlined: bool) -> &'static str {
    match kind {
        _ if is_inlined => INLINED,
        CodeKind::Kernel => KERNEL,
        CodeKind::Generated => GENERATED,
        CodeKind::Program | CodeKind::Library | CodeKind::Unknown => "",
    }
}

/// Draws the full text of the chosen line, as far as it fits into the detail lines. Breaks the text between
/// words if the whole text fits.
fn detail(buffer: &mut Buffer, area: Rect, words: &str, theme: ScreenTheme) {
    let width = usize::from(area.width);
    let whole = text::wrap("", "", words, width);
    let fits = whole.len() <= area.height.into() && whole.iter().all(|line| text::width(line) <= width);
    for line in 0..area.height {
        if fits {
            let part = whole.get(usize::from(line)).cloned().unwrap_or_default();
            put(buffer, area, line, vec![Span::styled(part, theme.dim())], Style::new());
            continue;
        }
        let skip = width * usize::from(line);
        let is_last = line + 1 == area.height;
        // Fill every line except the last completely, without regard to words.
        let part: String = match is_last {
            true => text::shifted(words, skip, width),
            false => text::shifted(words, skip, width + 1).trim_end_matches('…').to_owned(),
        };
        put(buffer, area, line, vec![Span::styled(part, theme.dim())], Style::new());
    }
}

/// Draws a message in an empty pane.
fn nothing(buffer: &mut Buffer, area: Rect, words: &str, theme: ScreenTheme) {
    for (line, words) in (0..area.height).zip(words.lines()) {
        put(
            buffer,
            area,
            line,
            vec![Span::styled(text::cut(words, area.width.into()), theme.dim())],
            Style::new(),
        );
    }
}
