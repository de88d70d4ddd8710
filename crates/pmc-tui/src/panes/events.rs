//! The events pane: events and data quality.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{detail, nothing, put};
use crate::layout::ScreenAreas;
use crate::state::ScreenState;
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::trust::{TrustDetail, TrustStatement, losses, statement};
use pmc_analysis::profile::sampled::{Profile, ProfileQuality};
use pmc_text::text;
use pmc_text::units::thousands;

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let width = usize::from(areas.body.width);
    let Some((profile, _)) = state.event() else {
        nothing(buffer, areas.body, "waiting for the first samples …", theme);
        return;
    };
    let heading = format!("  {} {} Event", text::right("Samples", 14), text::right("Periods", 24));
    put(
        buffer,
        areas.heading,
        0,
        vec![Span::styled(text::left(&heading, width), theme.heading())],
        Style::new(),
    );
    let top = state.events.top;
    let mut line = 0;
    for (at, event) in profile.events.iter().enumerate().skip(top).take(areas.body.height.into()) {
        let words = format!(
            "{} {} {} {}",
            if at == state.event_index() { "▸" } else { " " },
            text::right(&thousands(event.total.samples), 14),
            text::right(&thousands(event.total.period), 24),
            event.name
        );
        let is_cursor = at == state.events.cursor;
        let style = if is_cursor { theme.cursor() } else { Style::new() };
        put(buffer, areas.body, line, vec![Span::raw(text::left(&words, width))], style);
        line += 1;
    }
    line += 1;
    for (words, style) in quality(profile, state, theme) {
        // Limit the length of long notes.
        for part in text::wrap("", "  ", &words, width).into_iter().take(13) {
            put(buffer, areas.body, line, vec![Span::styled(part, style)], Style::new());
            line = line.saturating_add(1);
        }
    }
    let words = "Enter: select this event";
    detail(buffer, areas.detail, words, theme);
}

/// Returns the lines about data quality. For a recording, these are the lines that `report` prints.
fn quality(profile: &Profile, state: &ScreenState, theme: ScreenTheme) -> Vec<(String, Style)> {
    let mut lines = vec![("Data quality".to_owned(), theme.bold())];
    let style = |lost: u64| if lost == 0 { theme.plain() } else { theme.warning() };
    let status = &state.status;
    if status.is_live || profile.trust == ProfileQuality::default() {
        let samples = profile.events.iter().map(|event| event.total.samples).sum();
        let words = format!("{} samples, {}", thousands(samples), losses(samples, status.lost, false));
        lines.push((words, style(status.lost)));
        lines.extend(status.notes.iter().enumerate().map(|(at, note)| {
            (note.clone(), if at < status.warnings { theme.warning() } else { theme.plain() })
        }));
        return lines;
    }
    let trust = &profile.trust;
    let TrustStatement { summary, remarks } = statement(trust, &profile.modules, TrustDetail::Full);
    lines.push((summary, style(trust.lost_samples.max(trust.lost_records).max(trust.throttled))));
    lines.extend(remarks.iter().map(|remark| (remark.to_string(), theme.plain())));
    lines
}
