//! Processes, with their threads below them.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{detail, found, nothing, put};
use crate::tui::layout::ScreenAreas;
use crate::tui::numbers;
use crate::tui::state::ScreenState;
use crate::tui::theme::ScreenTheme;
use pmc_sys::text;

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let width = usize::from(areas.body.width);
    let Some((profile, event)) = state.event() else {
        nothing(buffer, areas.body, "waiting for the first samples …", theme);
        return;
    };
    if state.threads.lines.is_empty() {
        nothing(buffer, areas.body, "no thread information", theme);
        return;
    }
    let heading = format!(
        "{} {} {} {} Command",
        text::right("Share", 8),
        text::right("Samples", 9),
        text::right("Pid", 8),
        text::right("Tid", 8)
    );
    put(
        buffer,
        areas.heading,
        0,
        vec![Span::styled(text::left(&heading, width), theme.heading())],
        Style::new(),
    );
    let (top, cursor) = (state.threads.scroll.top, state.threads.scroll.cursor);
    for (line, at) in (0..areas.body.height).zip(state.threads.lines.iter().skip(top)) {
        let share = event.share(at.cost);
        // Threads that have ended no longer have a number.
        let number = |id: i32| if id < 0 { "–".to_owned() } else { id.to_string() };
        let tid = at.tid.map(number).unwrap_or_default();
        let pid = if at.tid.is_some() { String::new() } else { number(at.pid) };
        let indent = if at.tid.is_some() { "  " } else { "" };
        let name = text::cut(profile.texts.get(at.comm), width.saturating_sub(40));
        let mut spans = vec![
            Span::styled(format!(" {} ", numbers::percent(share)), theme.share(share)),
            Span::styled(
                format!(
                    "{} {} {} {indent}",
                    text::right(&at.samples.to_string(), 9),
                    text::right(&pid, 8),
                    text::right(&tid, 8)
                ),
                theme.plain(),
            ),
        ];
        let style = if at.tid.is_some() { theme.plain() } else { theme.bold() };
        spans.extend(found(vec![(name, style)], &state.search, theme));
        let is_cursor = top + usize::from(line) == cursor;
        put(buffer, areas.body, line, spans, if is_cursor { theme.cursor() } else { Style::new() });
    }
    let words = format!(
        "{} of {} processes and threads; Enter: only this one",
        cursor + 1,
        state.threads.lines.len()
    );
    detail(buffer, areas.detail, &words, theme);
}
