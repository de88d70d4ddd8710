//! The flame graph, callers above their callees. Names are truncated to the width of their boxes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::tree::{callers_words, why_none};
use super::{detail, mark, nothing, put};
use crate::layout::ScreenAreas;
use crate::numbers;
use crate::state::ScreenState;
use crate::state::flame::{ALL, matched};
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::{CodeKind, SampleValue, StackDirection, ThreadState};
use pmc_text::text::{self, DisplayName};

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let Some((profile, event, tree)) = state.tree().filter(|(.., tree)| !tree.nodes.is_empty()) else {
        nothing(buffer, areas.body, why_none(state), theme);
        return;
    };
    let width = usize::from(areas.body.width);
    let total = state.flame_total(event, tree);
    let name = |node: u32| match tree.nodes.get(node as usize) {
        Some(node) => profile.texts.get(node.symbol),
        None => "all",
    };
    let query = state.answer.as_ref().map(|answer| &answer.query);
    let order = query.and_then(|query| query.tree).unwrap_or_default();
    let mut heading = match order {
        StackDirection::Caller => "Flame graph, callers above".to_owned(),
        StackDirection::Callee => "Flame graph, sampled functions above their callers".to_owned(),
    };
    if state.search.is_some() {
        let sum = matched(tree, |node| state.search.finds(name(node)));
        let share = numbers::percent(event.share(sum));
        heading += &format!("; {} match {:?}", share.trim(), state.search.text);
    }
    let boxes = state.boxes();
    let last = state.flame.top + usize::from(areas.body.height);
    let below = boxes.last().map_or(0, |deepest| (deepest.depth + 1).saturating_sub(last));
    if below > 0 {
        heading += &format!("; {below} more level{} below ↓", if below == 1 { "" } else { "s" });
    }
    let mut spans = vec![Span::styled(text::left(&heading, width), theme.heading())];
    if event.has_waits() {
        let legend = legend(theme);
        let room = width.saturating_sub(legend.iter().map(|span| text::width(&span.content)).sum());
        if room > text::width(&heading) {
            spans = vec![Span::styled(text::left(&heading, room), theme.heading())];
            spans.extend(legend);
        }
    }
    put(buffer, areas.heading, 0, spans, Style::new());
    let at = state.flame_box(&boxes);
    for b in &boxes {
        let Some(line) = b.depth.checked_sub(state.flame.top) else { continue };
        if line >= usize::from(areas.body.height) {
            continue;
        }
        let name = name(b.node);
        let node = tree.nodes.get(b.node as usize);
        let kind = node.map(|node| CodeKind::from_mode(node.level, profile.texts.get(node.dso)));
        let mut style = match (kind, node) {
            (Some(kind), Some(node)) if event.has_waits() => {
                theme.flame_with_waits(name, kind, node.total.main_state())
            }
            (Some(kind), _) => theme.flame(name, kind),
            (None, _) => theme.bold(),
        };
        if b.node != ALL && state.search.finds(name) {
            style = theme.flame_found();
        }
        if at.is_some_and(|at| at.node == b.node) {
            style = theme.cursor().patch(theme.bold());
        }
        // A border on the left separates neighbouring boxes. The narrowest boxes have no room for anything
        // else.
        let words = if b.width >= 3 {
            let mark = kind.map_or("", |kind| mark(kind, node.is_some_and(|node| node.inlined)));
            let room = b.width - 1;
            let mark = if room > 12 { mark } else { "" };
            let name = match state.stacks.callers_at(b.node).filter(|_| b.node != ALL) {
                Some(callers) => callers_words(profile, tree, callers),
                None => format!("{mark}{}", DisplayName::new(name).fit(room - text::width(mark)).text()),
            };
            format!("▏{}", text::left(&name, room))
        } else {
            format!("▏{}", " ".repeat(b.width - 1))
        };
        let x = areas.body.x + b.x as u16;
        let cell = Rect { x, y: areas.body.y + line as u16, width: b.width as u16, height: 1 };
        put(buffer, cell, 0, vec![Span::styled(words, style)], Style::new());
    }
    let Some(at) = at else { return };
    let (value, cost, own) = match tree.nodes.get(at.node as usize) {
        Some(node) => (&node.total, event.cost(&node.total), event.cost(&node.own)),
        None => (&event.total, total, 0),
    };
    let share = event.share(cost);
    let dso = tree.nodes.get(at.node as usize).map_or("", |node| profile.texts.get(node.dso));
    let words = format!(
        "{} {}, {} itself: {} ({dso})",
        numbers::percent(share).trim(),
        numbers::error(event.error(value)).trim(),
        numbers::percent(event.share(own)).trim(),
        name(at.node),
    );
    let zoomed = state.flame_node(state.flame.zoom).filter(|zoomed| *zoomed != at.node);
    let words = match zoomed {
        Some(zoomed) => {
            let part = cost as f64 / tree.cost(zoomed).max(1) as f64;
            format!("{} of the zoomed part, {words}", numbers::percent(part).trim())
        }
        None => words,
    };
    let words = if at.node == ALL { format!("{}: all", numbers::percent(share).trim()) } else { words };
    let mut shown = SampleValue::default();
    match tree.nodes.get(at.node as usize) {
        Some(node) => shown += &node.total,
        None => tree.roots.iter().for_each(|root| shown += &tree.nodes[*root as usize].total),
    }
    detail(buffer, areas.detail, &format!("{words}{}", waiting(&shown)), theme);
}

/// Describes how much of a value is waiting time.
fn waiting(value: &SampleValue) -> String {
    let [runnable, blocked] = value.off_cpu();
    let part = |(time, state): (u64, &str)| {
        let part = time as f64 / value.period.max(1) as f64;
        (time > 0).then(|| format!("; {} of it {state}", numbers::percent(part).trim()))
    };
    [(blocked, "blocked"), (runnable, "waiting for a CPU")].into_iter().filter_map(part).collect()
}

/// Returns the legend for the colours of thread states; empty if the terminal has no colours.
fn legend(theme: ScreenTheme) -> Vec<Span<'static>> {
    let states = [
        (ThreadState::Running, " running "),
        (ThreadState::Runnable, " waiting for a CPU "),
        (ThreadState::Blocked, " blocked "),
    ];
    let states = states.map(|(state, words)| (theme.state(state), words));
    if states.iter().all(|(style, _)| *style == Style::new()) {
        return Vec::new();
    }
    states.into_iter().flat_map(|(style, words)| [Span::raw(" "), Span::styled(words, style)]).collect()
}
