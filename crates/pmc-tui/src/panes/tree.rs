//! The call tree pane.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

use super::{detail, found, mark, name, nothing, put};
use crate::layout::ScreenAreas;
use crate::numbers;
use crate::state::ScreenState;
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::boilerplate::StartupCallers;
use pmc_analysis::profile::sampled::{CallTree, CodeKind, Profile, StackDirection};
use pmc_text::text::{self, DisplayName};

/// Returns the message that is shown instead of a missing tree.
pub(super) fn why_none(state: &ScreenState) -> &'static str {
    let Some((profile, _)) = state.event() else { return "waiting for the first samples …" };
    if state.is_waiting {
        "adding up …"
    } else if profile.has_totals {
        "the filters exclude all samples (Esc undoes the last filter)"
    } else {
        state.how_to_get_chains()
    }
}

/// Describes the start-up functions that are combined into one line.
pub(super) fn callers_words(profile: &Profile, tree: &CallTree, callers: StartupCallers) -> String {
    let name = |number: u32| DisplayName::new(profile.texts.get(tree.nodes[number as usize].symbol)).function;
    format!("{} start-up frames (b): {} … {}", callers.count, name(callers.first), name(callers.last))
}

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let Some((profile, event, tree)) = state.tree().filter(|(.., tree)| !tree.nodes.is_empty()) else {
        nothing(buffer, areas.body, why_none(state), theme);
        return;
    };
    let width = usize::from(areas.body.width);
    let bar = if width >= 90 { 10 } else { 0 };
    let query = state.answer.as_ref().map(|answer| &answer.query);
    let order = query.and_then(|query| query.tree).unwrap_or_default();
    let words = match (order, query.and_then(|query| query.root.as_deref())) {
        (StackDirection::Caller, None) => "Call tree, callers first (i: sampled functions first)".to_owned(),
        (StackDirection::Callee, None) => "Call tree, sampled functions first (i: callers first)".to_owned(),
        (StackDirection::Caller, Some(root)) => format!("Callees of {}", DisplayName::new(root).text()),
        (StackDirection::Callee, Some(root)) => format!("Callers of {}", DisplayName::new(root).text()),
    };
    let mut heading = format!("{} {} ", text::right("Total", 8), text::right("Self", 7));
    if bar > 0 {
        heading += &" ".repeat(bar + 1);
    }
    heading += &words;
    put(
        buffer,
        areas.heading,
        0,
        vec![Span::styled(text::left(&heading, width), theme.heading())],
        Style::new(),
    );
    let room = width - 17 - if bar > 0 { bar + 1 } else { 0 };
    let lines = &state.stacks.lines;
    let (top, cursor) = (state.stacks.scroll.top, state.stacks.scroll.cursor);
    // Scroll deep branches to the left, so that names near the cursor are visible.
    let indent = lines.get(cursor).map_or(0, |line| usize::from(line.indent));
    let shift = indent.saturating_sub(room / 3);
    for (line, at) in (0..areas.body.height).zip(lines.iter().skip(top)) {
        let Some(node) = tree.nodes.get(at.node as usize) else { continue };
        let share = |value| event.share(event.cost(value));
        let (own, total) = (share(&node.own), share(&node.total));
        let mut spans = vec![
            Span::styled(format!(" {} ", numbers::percent(total)), theme.share(total)),
            Span::styled(numbers::percent(own) + " ", theme.share(own)),
        ];
        if bar > 0 {
            spans.push(Span::styled(numbers::bar(own, total, bar) + " ", theme.bar()));
        }
        let sign = match (node.children.is_empty(), state.stacks.is_open(at.node)) {
            (true, _) => "  ",
            (_, true) => "▾ ",
            _ => "▸ ",
        };
        let indent = usize::from(at.indent).saturating_sub(shift).min(room / 2);
        spans.push(Span::styled(format!("{}{sign}", " ".repeat(indent)), theme.dim()));
        let used = indent + 2;
        if let Some(callers) = at.callers {
            let words = callers_words(profile, tree, callers);
            spans.push(Span::styled(text::cut(&words, room.saturating_sub(used)), theme.dim()));
            let is_cursor = top + usize::from(line) == cursor;
            put(buffer, areas.body, line, spans, if is_cursor { theme.cursor() } else { Style::new() });
            continue;
        }
        let dso = profile.texts.get(node.dso);
        let kind = CodeKind::from_mode(node.level, dso);
        let mark = mark(kind, node.inlined);
        let used = used + text::width(mark);
        spans.push(Span::styled(mark, theme.function(kind)));
        let words = name(profile.texts.get(node.symbol), kind, room.saturating_sub(used), theme);
        let used = used + words.iter().map(|(text, _)| text::width(text)).sum::<usize>();
        spans.extend(found(words, &state.search, theme));
        spans.push(Span::styled(text::cut(&format!("  {dso}"), room.saturating_sub(used)), theme.dim()));
        let is_cursor = top + usize::from(line) == cursor;
        put(buffer, areas.body, line, spans, if is_cursor { theme.cursor() } else { Style::new() });
    }
    let Some(node) = state.stacks.node().and_then(|node| tree.nodes.get(node as usize)) else { return };
    let share = event.share(event.cost(&node.total));
    let words = format!(
        "{} of {}: {} samples, {} {}, {} ({})",
        cursor + 1,
        lines.len(),
        node.total.samples,
        numbers::percent(share).trim(),
        numbers::error(event.error(&node.total)).trim(),
        profile.texts.get(node.symbol),
        profile.texts.get(node.dso),
    );
    detail(buffer, areas.detail, &words, theme);
}
