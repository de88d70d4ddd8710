//! Drawing: each pane turns the state into characters and styles. Nothing is decided here but how things
//! look.
//!
//! Receives the [`State`]; writes into the frame. All foreign text passes [`fit`](super::fit) first.

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
use super::state::{Over, State};
use super::theme::Theme;
use crate::text;

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
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
    if let Some(Over::Help(scroll)) = &state.over {
        let page = Rect { height: areas.body.height + 2, ..areas.heading };
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

/// A line of text with styles, and one style for all of it on top.
fn put(buffer: &mut Buffer, area: Rect, line: u16, spans: Vec<Span<'static>>, over: Style) {
    if line < area.height {
        let area = Rect { y: area.y + line, height: 1, ..area };
        Line::from(spans).render(area, buffer);
        buffer.set_style(area, over);
    }
}

/// Words in a style, with what the search finds in them in another.
fn found(text: String, style: Style, search: &Search, theme: Theme) -> Vec<Span<'static>> {
    let places = search.places(&text);
    let mut spans = Vec::new();
    let mut at = 0;
    for (from, to) in places {
        spans.push(Span::styled(text[at..from].to_owned(), style));
        spans.push(Span::styled(text[from..to].to_owned(), style.patch(theme.found())));
        at = to;
    }
    spans.push(Span::styled(text[at..].to_owned(), style));
    spans
}

/// What stands in a pane that has nothing to show (yet).
fn nothing(buffer: &mut Buffer, area: Rect, words: &str, theme: Theme) {
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
