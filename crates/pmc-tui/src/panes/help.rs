//! The help page, generated from the table of keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::put;
use crate::keys;
use crate::state::ScreenState;
use crate::theme::ScreenTheme;
use pmc_text::text;

/// Width of the key column.
const KEYS: usize = 18;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, top: usize, _state: &ScreenState, theme: ScreenTheme) {
    let rows = keys::help();
    let width = usize::from(area.width);
    let body = usize::from(area.height) - 1;
    let top = top.min(rows.len().saturating_sub(body));
    let last = (top + body).min(rows.len());
    let heading =
        format!("Keys and mouse, lines {}-{last} of {} (PgDn for more, q closes)", top + 1, rows.len());
    put(buffer, area, 0, vec![Span::styled(text::left(&heading, width), theme.heading())], Style::new());
    for (line, (keys, words)) in (1..area.height).zip(rows.into_iter().skip(top)) {
        let spans = if keys.is_empty() {
            vec![Span::styled(text::cut(&words, width), theme.bold())]
        } else {
            vec![
                Span::styled(format!("  {} ", text::left(&keys, KEYS)), theme.key()),
                Span::styled(text::cut(&words, width.saturating_sub(KEYS + 3)), theme.plain()),
            ]
        };
        put(buffer, area, line, spans, Style::new());
    }
}
