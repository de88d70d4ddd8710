//! The threads pane: processes, with their threads below them. If waiting time was measured, it also shows
//! each thread's states over time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::functions::thread_time;
use super::{detail, found, nothing, put};
use crate::layout::ScreenAreas;
use crate::numbers;
use crate::state::ScreenState;
use crate::state::table_widths::ThreadTimeColumns;
use crate::state::threads::{ThreadLine, timeline};
use crate::theme::ScreenTheme;
use pmc_analysis::profile::sampled::{Profile, ProfileEvent, ThreadState};
use pmc_text::text;

/// Width of the names in front of a timeline.
const NAME: usize = 16;

/// The marks of thread states in timelines.
const MARKS: [(ThreadState, char); 3] =
    [(ThreadState::Running, '#'), (ThreadState::Runnable, '+'), (ThreadState::Blocked, '-')];

pub(super) fn draw(buffer: &mut Buffer, areas: &ScreenAreas, state: &ScreenState, theme: ScreenTheme) {
    let width = usize::from(areas.body.width);
    let Some((profile, event)) = state.event() else {
        nothing(buffer, areas.body, "waiting for the first samples …", theme);
        return;
    };
    if state.threads.lines.is_empty() {
        let words = match idle_words(event, state) {
            Some(idle) => idle,
            None => "no thread information".to_owned(),
        };
        nothing(buffer, areas.body, &words, theme);
        return;
    }
    let columns = ThreadTimeColumns::new(event);
    let numbers = match columns {
        ThreadTimeColumns::None => text::right("Samples", 9),
        ThreadTimeColumns::State => String::new(),
        ThreadTimeColumns::Rates => "Run ms/s Blk ms/s".to_owned(),
    };
    let gap = if numbers.is_empty() { "" } else { " " };
    let ids = format!("{} {} ", text::right("Pid", 8), text::right("Tid", 8));
    let heading = format!("{} {numbers}{gap}{ids}Command", text::right("Share", 8));
    // The timeline starts to the right of the longest names.
    let begin = (text::width(&heading) + NAME - "Command".len() + 3).min(width);
    let room = (width - begin) as u16;
    let legend = legend(theme);
    let has_timelines = columns == ThreadTimeColumns::State && room > 0;
    let legend_width: usize = legend.iter().map(|span| text::width(&span.content)).sum();
    let in_heading = has_timelines && usize::from(room) >= legend_width;
    let mut spans =
        vec![Span::styled(text::left(&heading, if in_heading { begin } else { width }), theme.heading())];
    if in_heading {
        spans.extend(legend);
    }
    put(buffer, areas.heading, 0, spans, Style::new());
    let (top, cursor) = (state.threads.scroll.top, state.threads.scroll.cursor);
    let name_width = if has_timelines { NAME } else { width.saturating_sub(text::width(&ids) + 24) };
    for (line, at) in (0..areas.body.height).zip(state.threads.lines.iter().skip(top)) {
        let spans = row(profile, event, at, name_width, state, theme);
        let is_cursor = top + usize::from(line) == cursor;
        put(buffer, areas.body, line, spans, if is_cursor { theme.cursor() } else { Style::new() });
        if has_timelines {
            let area = Rect { x: areas.body.x + begin as u16, width: room, ..areas.body };
            put(buffer, area, line, states(at, room, state, theme), Style::new());
        }
    }
    let all = state.threads.lines.len();
    let mut words = match has_timelines && !in_heading {
        true => {
            let marks = MARKS.map(|(state, mark)| format!("{mark} {}", state.name())).join(", ");
            format!("{} of {all}: {marks}; Enter: only this one", cursor + 1)
        }
        false => format!("{} of {all} processes and threads; Enter: only this one", cursor + 1),
    };
    words.extend(idle_words(event, state).map(|idle| format!("; {idle}")));
    detail(buffer, areas.detail, &words, theme);
}

/// Returns a line's columns.
fn row(
    profile: &Profile,
    event: &ProfileEvent,
    line: &ThreadLine,
    name_width: usize,
    state: &ScreenState,
    theme: ScreenTheme,
) -> Vec<Span<'static>> {
    let share = event.share(line.cost);
    // Threads that have exited no longer have an id.
    let number = |id: i32| if id < 0 { "–".to_owned() } else { id.to_string() };
    let tid = line.tid.map(number).unwrap_or_default();
    let pid = if line.tid.is_some() { String::new() } else { number(line.pid) };
    let indent = if line.tid.is_some() { "  " } else { "" };
    let name = text::cut(profile.texts.get(line.comm), name_width);
    let mut spans = vec![Span::styled(format!(" {} ", numbers::percent(share)), theme.share(share))];
    match ThreadTimeColumns::new(event) {
        ThreadTimeColumns::None => {
            let samples = text::right(&line.value.samples.to_string(), 9) + " ";
            spans.push(Span::styled(samples, theme.plain()));
        }
        ThreadTimeColumns::State => {}
        columns @ ThreadTimeColumns::Rates => {
            spans.extend(thread_time(event, &line.value, columns, theme));
        }
    }
    let ids = format!("{} {} {indent}", text::right(&pid, 8), text::right(&tid, 8));
    spans.push(Span::styled(ids, theme.plain()));
    let style = if line.tid.is_some() { theme.plain() } else { theme.bold() };
    spans.extend(found(vec![(name, style)], &state.search, theme));
    spans
}

/// Returns a thread's timeline, with one mark per column.
fn states(line: &ThreadLine, width: u16, state: &ScreenState, theme: ScreenTheme) -> Vec<Span<'static>> {
    let Some(answer) = &state.answer else { return Vec::new() };
    let runs = line.timeline.and_then(|tid| answer.thread_states.get(&tid));
    let (Some(runs), Some(times)) = (runs, &answer.times) else { return Vec::new() };
    let until = times.from.saturating_add(times.slice.saturating_mul(times.sums.len() as u64));
    let cell = |state: Option<ThreadState>| match MARKS.iter().find(|(of, _)| Some(*of) == state) {
        // The cursor's line must not reverse the colours of the timeline.
        Some((of, mark)) => {
            Span::styled(mark.to_string(), theme.state(*of).remove_modifier(Modifier::REVERSED))
        }
        None => Span::raw(" "),
    };
    timeline(runs, (times.from, until), width).into_iter().map(cell).collect()
}

fn legend(theme: ScreenTheme) -> Vec<Span<'static>> {
    let words = MARKS
        .iter()
        .map(|(state, mark)| Span::styled(format!("{mark} {}", state.name()), theme.state(*state)));
    words.flat_map(|words| [words, Span::raw(" ")]).collect()
}

/// Describes the folded idle threads, if there are any.
fn idle_words(event: &ProfileEvent, state: &ScreenState) -> Option<String> {
    if state.query.idle {
        return Some("I folds idle threads".to_owned()).filter(|_| event.thread_time.is_some());
    }
    let (threads, _) = event.thread_time.as_ref()?.idle;
    let plural = if threads == 1 { "" } else { "s" };
    (threads > 0).then(|| format!("{threads} idle thread{plural} (I to show)"))
}
