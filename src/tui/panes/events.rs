//! Events, and how far what they say can be trusted.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{detail, nothing, put};
use crate::profile::sampled::Profile;
use crate::text;
use crate::tui::layout::Areas;
use crate::tui::numbers;
use crate::tui::state::State;
use crate::tui::theme::Theme;
use crate::units::thousands;

pub(super) fn draw(buffer: &mut Buffer, areas: &Areas, state: &State, theme: Theme) {
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
        // A page of words helps nobody.
        for part in text::wrap("", "  ", &words, width).into_iter().take(13) {
            put(buffer, areas.body, line, vec![Span::styled(part, style)], Style::new());
            line = line.saturating_add(1);
        }
    }
    let words = "Enter: look at this event";
    detail(buffer, areas.detail, words, theme);
}

/// What is known about the quality, the worst first.
fn quality(profile: &Profile, state: &State, theme: Theme) -> Vec<(String, Style)> {
    let trust = &profile.trust;
    let mut lines = vec![("How far this can be trusted".to_owned(), theme.bold())];
    let part = |part: u64, of: u64| numbers::percent(part as f64 / of.max(1) as f64).trim().to_owned();
    if trust.lost_samples > 0 || trust.lost_records > 0 {
        let words = format!(
            "lost: {} samples, {} records",
            thousands(trust.lost_samples),
            thousands(trust.lost_records)
        );
        lines.push((words, theme.warning()));
    }
    if trust.throttled > 0 {
        lines.push((
            format!("throttled {} times: samples came too fast", thousands(trust.throttled)),
            theme.warning(),
        ));
    }
    if trust.stacks > 0 {
        let words = format!(
            "{} of {} stacks reach their root",
            part(trust.rooted, trust.stacks),
            thousands(trust.stacks)
        );
        lines.push((words, theme.plain()));
    }
    if trust.cut_off > 0 {
        let words = format!(
            "{} led to addresses where nothing was mapped; these are cut off",
            part(trust.cut_off, trust.stacks)
        );
        lines.push((words, theme.plain()));
    }
    if trust.frames > 0 {
        lines
            .push((format!("{} of frames have no symbol", part(trust.unnamed, trust.frames)), theme.plain()));
    }
    if trust.frames == 0 && profile.modules.is_empty() && lines.len() == 1 {
        // Nobody counted frames: a live view.
        let lost = state.status.lost;
        let words = if lost == 0 {
            "nothing was lost".to_owned()
        } else {
            format!("lost: {} samples", thousands(lost))
        };
        lines.push((words, if lost == 0 { theme.plain() } else { theme.warning() }));
    }
    lines.extend(state.status.notes.iter().chain(&trust.notes).map(|note| (note.clone(), theme.plain())));
    for module in profile.modules.iter().filter(|module| module.unnamed > 0).take(8) {
        let missing = module.missing.first().map(|why| format!(": {why}")).unwrap_or_default();
        let remedy = module.remedy.as_ref().map(|remedy| format!("; try {remedy}")).unwrap_or_default();
        let words = format!(
            "{} has {} frames without symbols{missing}{remedy}",
            module.name,
            thousands(module.unnamed)
        );
        lines.push((words, theme.plain()));
    }
    lines
}
