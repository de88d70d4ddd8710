//! The parts around the pane: header, tabs with the active filters, time strip and last line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::put;
use crate::keys::Pane;
use crate::numbers;
use crate::state::threads::state_times;
use crate::state::time_strip;
use crate::state::{Overlay, ScreenState};
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::ThreadState;
use pmc_analysis::profile::sampled::time_sums::TimeSums;
use pmc_analysis::profile::sampled::trust::complete_stacks;
use pmc_text::text;
use pmc_text::units;

/// If the share of stacks that reach their root is below this limit, the tree is misleading.
const FEW: f64 = 0.5;

/// A line of the header or the tabs, filled with styled texts from the left until it is full.
struct HeaderSide {
    spans: Vec<Span<'static>>,
    room: usize,
}

impl HeaderSide {
    fn new(width: u16) -> Self {
        Self { spans: Vec::new(), room: width.into() }
    }

    /// Adds text to the line. The first text is truncated to fit; later texts are omitted if they do not fit.
    fn add(&mut self, words: &str, style: Style) {
        let words =
            if self.spans.is_empty() { text::cut(words, self.room) } else { text::cut(words, usize::MAX) };
        let width = text::width(&words);
        if width <= self.room {
            self.room -= width;
            self.spans.push(Span::styled(words, style));
        }
    }
}

pub(super) fn header(buffer: &mut Buffer, area: Rect, state: &ScreenState, theme: ScreenTheme) {
    let status = &state.status;
    let mut side = HeaderSide::new(area.width);
    side.add(&format!("pmc {}", text::cut(&status.title, usize::from(area.width) / 3)), theme.bold());
    if let Some((_, event)) = state.event() {
        side.add(&format!("  {}", text::cut(&event.name, 24)), theme.bold());
    }
    // In the live view, show the number of samples near the end, because other information is more important.
    let samples = |side: &mut HeaderSide| {
        let Some((_, event)) = state.event() else { return };
        let words = match &event.thread_time {
            Some(sums) if sums.is_live => {
                let [running, runnable, blocked] = event.rates(&event.total).unwrap_or_default();
                format!("  running {running:.0}, runnable {runnable:.0}, blocked {blocked:.0} ms/s")
            }
            Some(sums) => {
                let [running, waiting] = match event.state {
                    Some(_) => [ThreadState::Running, ThreadState::Blocked].map(|state| sums.time_in(state)),
                    None => [event.total.ran(), event.total.waited()],
                };
                let [elapsed, running, waiting] =
                    [sums.elapsed_ns, running, waiting].map(|ns| units::duration(ns as f64));
                format!("  {elapsed} elapsed, {running} running, {waiting} waiting")
            }
            None => format!("  {} samples", units::thousands(event.total.samples)),
        };
        side.add(&words, theme.plain());
    };
    if !status.is_live {
        samples(&mut side);
        let trust = state
            .event()
            .map(|(profile, _)| &profile.trust)
            .filter(|trust| trust.stacks > 0 && !trust.is_imported);
        if let Some(trust) = trust {
            let percent = complete_stacks(trust, 0);
            let style = if percent < FEW * 100.0 { theme.warning() } else { theme.plain() };
            side.add(&format!("  {percent:.0} % of stacks complete"), style);
        }
    }
    if let Some(progress) = &status.progress {
        let words = if progress.total > 0 {
            let part = progress.done.min(progress.total) as f64 / progress.total as f64;
            format!("  [{} {:.0} %]", progress.what, part * 100.0)
        } else {
            format!("  [{}]", progress.what)
        };
        side.add(&words, theme.key());
    } else if state.is_waiting {
        side.add("  […]", theme.key());
    }
    if status.lost > 0 {
        side.add(&format!("  lost {}", units::thousands(status.lost)), theme.warning());
    } else {
        side.add("  lost 0", theme.plain());
    }
    if status.warnings > 0 {
        let warnings = units::counted(status.warnings as u64, "warning");
        side.add(&format!("  {warnings}: pane {}", Pane::Events.number()), theme.warning());
    }
    if status.frozen {
        side.add("  FROZEN", theme.warning());
    }
    let has_waits = state.event().is_some_and(|(_, event)| event.thread_time.is_some());
    if status.is_live && has_waits {
        samples(&mut side);
    }
    if let Some(why) = status.halted {
        side.add(&format!("  {why}"), theme.warning());
    } else if let Some(rate) = status.rate {
        side.add(&format!("  {}/s", units::thousands(rate.max(0.0) as u64)), theme.plain());
    }
    if let Some(split) = status.split {
        let [kernel, user, idle] =
            [split.kernel, split.user, split.idle].map(|share| format!("{:.0}", share * 100.0));
        let words = match area.width < 100 {
            true => format!("  k {kernel} u {user} i {idle} %"),
            false => format!("  kernel {kernel} user {user} idle {idle} %"),
        };
        side.add(&words, theme.plain());
    }
    if let Some(cpu) = status.own_cpu {
        let memory = status.own_memory.map(|bytes| format!(", {}", units::bytes(bytes))).unwrap_or_default();
        side.add(&format!("  own {:.1} %{memory}", cpu * 100.0), theme.dim());
    }
    if status.is_live {
        if !has_waits {
            samples(&mut side);
        }
        side.add(&format!("  {}", status.retention), theme.dim());
    }
    put(buffer, area, 0, side.spans, Style::new());
}

pub(super) fn tabs(buffer: &mut Buffer, area: Rect, state: &ScreenState, theme: ScreenTheme) {
    let mut side = HeaderSide::new(area.width);
    // Omit names that do not fit.
    for pane in Pane::ALL {
        let style = if pane == state.pane { theme.cursor() } else { theme.plain() };
        side.add(&pane.tab(), style);
    }
    let filters = filters(state);
    if !filters.is_empty() && side.room > 8 {
        let words = text::cut(&format!("  only {filters}"), side.room);
        side.add(&words, theme.key());
    }
    put(buffer, area, 0, side.spans, Style::new());
}

/// Describes the active filters.
fn filters(state: &ScreenState) -> String {
    let filter = &state.query.filter;
    let mut words = Vec::new();
    if state.filter.is_some() {
        words.push(format!("/{}/", state.filter.text));
    }
    let list = |what: &str, list: Vec<String>| format!("{what} {}", list.join(","));
    if let Some(set) = &filter.pids {
        words.push(list("pid", set.iter().map(ToString::to_string).collect()));
    }
    if let Some(set) = &filter.tids {
        words.push(list("tid", set.iter().map(ToString::to_string).collect()));
    }
    if let Some(set) = &filter.cpus {
        words.push(list("cpu", set.iter().map(ToString::to_string).collect()));
    }
    if let Some(set) = &filter.comms {
        words.push(list("thread", set.iter().cloned().collect()));
    }
    if let Some(dso) = &filter.dso {
        words.push(format!("in {dso}"));
    }
    if let Some(symbol) = &filter.symbol {
        words.push(format!("under {symbol}"));
    }
    if let Some(states) = filter.states {
        words.push(if states == [ThreadState::Running] { "running" } else { "waiting" }.to_owned());
    }
    if filter.hide_kernel {
        words.push("user space".to_owned());
    }
    if filter.hide_user {
        words.push("kernel".to_owned());
    }
    if let Some((from, to)) = filter.time {
        words.push(span(state, from, to));
    }
    words.join(", ")
}

/// Formats a time span as times since the start of the recording.
fn span(state: &ScreenState, from: u64, to: u64) -> String {
    let begin = state.answer.as_ref().and_then(|a| a.times.as_ref()).map_or(0, |times| times.from);
    let [from, to] = [from, to.saturating_add(1)].map(|at| units::seconds(at.saturating_sub(begin)));
    format!("{from:.3}-{to:.3} s")
}

/// For each column of the strip, the time that all threads spent in each state. `None` without waiting time.
fn thread_time(state: &ScreenState, times: &TimeSums, width: u16) -> Option<Vec<[u64; 3]>> {
    let threads = &state.answer.as_ref()?.thread_states;
    let has_waits = state.event().is_some_and(|(_, event)| event.thread_time.is_some());
    if threads.is_empty() || !has_waits {
        return None;
    }
    let until = times.from.saturating_add(times.slice.saturating_mul(times.sums.len() as u64));
    let mut sums = vec![[0u64; 3]; usize::from(width)];
    for runs in threads.values() {
        for (sum, times) in sums.iter_mut().zip(state_times(runs, (times.from, until), width)) {
            sum.iter_mut().zip(times).for_each(|(sum, time)| *sum = sum.saturating_add(time));
        }
    }
    Some(sums)
}

/// Draws the running time. A column in which no thread runs has a line in the colour of the longer state.
fn running_strip(sums: &[[u64; 3]], theme: ScreenTheme) -> Vec<Span<'static>> {
    let running: Vec<u64> = sums.iter().map(|[running, ..]| *running).collect();
    let cell = |(spark, [running, runnable, blocked]): (char, &[u64; 3])| match (running, runnable, blocked) {
        (0, 0, 0) => Span::raw(" "),
        (0, runnable, blocked) => {
            let state = if runnable > blocked { ThreadState::Runnable } else { ThreadState::Blocked };
            Span::styled("-", theme.state(state))
        }
        _ => Span::styled(spark.to_string(), theme.dim()),
    };
    numbers::sparks(&running).chars().zip(sums).map(cell).collect()
}

pub(super) fn strip(buffer: &mut Buffer, area: Rect, state: &ScreenState, theme: ScreenTheme) {
    let Some(times) = state.answer.as_ref().and_then(|answer| answer.times.as_ref()) else { return };
    match thread_time(state, times, area.width) {
        Some(columns) => {
            let spans = running_strip(&columns, theme);
            put(buffer, area, 0, spans, Style::new());
        }
        None => {
            let line = numbers::sparks(&time_strip::columns(&times.sums, area.width));
            put(buffer, area, 0, vec![Span::styled(line, theme.dim())], Style::new());
        }
    }
    let mut mark = |(from, to): (u16, u16), style: Style| {
        let part = Rect { x: area.x + from, width: to.saturating_sub(from) + 1, ..area };
        buffer.set_style(part.intersection(area), style);
    };
    if let Some(Overlay::Strip(choice)) = &state.over {
        mark(choice.span(), theme.cursor());
    } else if let Some((from, to)) = state.query.filter.time {
        let column = |at: u64| {
            let slice = at.saturating_sub(times.from) / times.slice.max(1);
            (slice * u64::from(area.width) / (times.sums.len().max(1) as u64)).min(u64::from(area.width) - 1)
                as u16
        };
        let last = column(to.saturating_add(1)).saturating_sub(1);
        mark((column(from), last.max(column(from))), Style::new().add_modifier(Modifier::REVERSED));
    }
}

/// Draws the last line. Returns the column for the terminal's cursor if the user is typing.
pub(super) fn footer(
    buffer: &mut Buffer,
    area: Rect,
    state: &ScreenState,
    theme: ScreenTheme,
) -> Option<u16> {
    let width = usize::from(area.width);
    match &state.over {
        Some(Overlay::Prompt(prompt)) => {
            let question = prompt.question();
            let room = width.saturating_sub(question.len() + 1);
            let typed = text::width(&text::clean(&prompt.text));
            // Keep the end of the typed text visible.
            let shown = text::shifted(&prompt.text, typed.saturating_sub(room), room);
            let column = question.len() + text::width(&shown);
            let spans = vec![Span::styled(question, theme.key()), Span::raw(shown)];
            put(buffer, area, 0, spans, Style::new());
            return Some(column.min(width - 1) as u16);
        }
        Some(Overlay::Strip(choice)) => {
            let words = match state.strip_span(choice) {
                Some((from, to)) => format!("{}: ", span(state, from, to)),
                None => String::new(),
            };
            let keys = "←→ move  Space other end  Enter only this  Esc leave";
            let line = text::cut(&format!("{words}{keys}"), width);
            put(buffer, area, 0, vec![Span::styled(line, theme.key())], Style::new());
        }
        _ if state.said.is_some() => {
            let said = state.said.as_deref().unwrap_or_default();
            put(buffer, area, 0, vec![Span::styled(text::cut(said, width), theme.bold())], Style::new());
        }
        _ => hints(buffer, area, state, theme),
    }
    None
}

fn hints(buffer: &mut Buffer, area: Rect, state: &ScreenState, theme: ScreenTheme) {
    let mut spans = Vec::new();
    for (_, key, words) in state.hints() {
        spans.push(Span::styled(key, theme.key()));
        spans.push(Span::raw(format!(" {words}  ")));
    }
    put(buffer, area, 0, spans, Style::new());
}
