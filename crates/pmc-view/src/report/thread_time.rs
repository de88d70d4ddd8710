//! How threads spent their time, for human readers: the first line, and the table of waits.
//!
//! ```text
//! 13.9 s elapsed, 37 threads: 3.21 s running, 1.92 s waiting for a CPU, 6.40 s waiting. …
//!
//!  Waiting 6.40 s     waits  what   where                        woken by
//!   3.10 s    48.4%     120  mutex  Cache::put (cache.cpp:40)    812:writer 92%
//! ```
//! Running time has the same table as any other event. Waits have a table of their own, because they are
//! measured, not sampled: a row has a time, a number of waits and no error.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::name::StyledWords;
use super::{ReportLayout, cell_words};
use pmc_analysis::profile::sampled::idle::IdleGroup;
use pmc_analysis::profile::sampled::waits::ThreadTimeSums;
use pmc_analysis::profile::sampled::{
    CodeKind, Profile, ProfileEvent, RowCell, SampleValue, SortKey, TableRow, ThreadState,
};
use pmc_text::table::{self, ColumnShape, left, right};
use pmc_text::terminal::Paint;
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{clean, cut, width};
use pmc_text::units::{counted, duration, thousands};

/// Returns a sentence about how threads spent their time. Times of other views of the same recording refer to
/// the same sums.
pub(super) fn headline(sums: &ThreadTimeSums) -> String {
    let states = [
        (ThreadState::Running, "running"),
        (ThreadState::Runnable, "waiting for a CPU"),
        (ThreadState::Blocked, "waiting"),
    ];
    let time_in = |(state, words): (ThreadState, &str)| {
        let time = sums.time_in(state);
        (time > 0).then(|| format!("{} {words}", duration(time as f64)))
    };
    let parts: Vec<String> = states.into_iter().filter_map(time_in).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let (elapsed, threads) = (duration(sums.elapsed_ns as f64), counted(sums.threads as u64, "thread"));
    let idle = match sums.idle.0 {
        0 => String::new(),
        idle => format!(". {} folded (--idle)", counted(idle as u64, "idle thread")),
    };
    let coverage = match sums.coverage {
        Some(share) if !(0.95..=1.05).contains(&share) => {
            let why = match sums.running_ns {
                Some(_) => "context-switch records are missing",
                None => "running time is incomplete",
            };
            format!(". This is {:.0}% of the threads' time: {why}", share * 100.0)
        }
        _ => String::new(),
    };
    format!("{elapsed} elapsed, {threads}{parts}{idle}{coverage}")
}

/// The sort keys whose rows this table shows.
const KEYS: [SortKey; 4] = [SortKey::WaitSite, SortKey::WaitFunction, SortKey::WaitLine, SortKey::Waker];

/// Whether an event's rows are waits by site and function, for a human reader.
pub(super) fn has_wait_rows(profile: &Profile, event: &ProfileEvent, layout: &ReportLayout) -> bool {
    let keys = profile.keys_of(event);
    !layout.is_piped
        && layout.columns.is_none()
        && layout.added.is_empty()
        && event.state == Some(ThreadState::Blocked)
        && keys.contains(&SortKey::WaitFunction)
        && keys.iter().all(|key| KEYS.contains(key))
}

/// The waits at one site, in one function.
pub(crate) struct WaitLine<'a> {
    pub(crate) site: &'a str,
    pub(crate) function: &'a str,
    /// The file and line, such as `cache.cpp:40`; empty if unknown.
    pub(crate) line: String,
    pub(crate) value: SampleValue,
    /// The wakers with the time of the waits that they ended.
    pub(crate) wakers: Vec<(String, u64)>,
}

/// Joins the rows that differ only in the waker. Returns the lines, longest time first.
pub(crate) fn wait_lines<'a>(profile: &'a Profile, event: &'a ProfileEvent) -> Vec<WaitLine<'a>> {
    let keys = profile.keys_of(event);
    let cell =
        |row: &'a TableRow, key| keys.iter().position(|other| *other == key).and_then(|at| row.cells.get(at));
    let text = |cell: Option<&RowCell>| match cell {
        Some(RowCell::Text(id) | RowCell::Symbol(_, id)) => profile.texts.get(*id),
        _ => "",
    };
    let mut lines: Vec<WaitLine<'a>> = Vec::new();
    let mut known: FxHashMap<(&str, &str, String), usize> = FxHashMap::default();
    for row in &event.rows {
        let site = text(cell(row, SortKey::WaitSite));
        let function = text(cell(row, SortKey::WaitFunction));
        let line = cell(row, SortKey::WaitLine).map(|cell| cell_words(profile, cell)).unwrap_or_default();
        let at = *known.entry((site, function, line.clone())).or_insert_with(|| {
            lines.push(WaitLine { site, function, line, value: SampleValue::default(), wakers: Vec::new() });
            lines.len() - 1
        });
        lines[at].value += &row.own;
        let waker = cell(row, SortKey::Waker).map(|cell| cell_words(profile, cell)).unwrap_or_default();
        if !waker.is_empty() {
            lines[at].wakers.push((waker, event.cost(&row.own)));
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(event.cost(&line.value)));
    lines
}

/// Returns the waker that ended most of the time, with its share, in at most `columns` columns. Threads with
/// the same name count as one waker: the threads of a pool do the same work, and each has a small share.
fn main_waker(line: &WaitLine<'_>, event: &ProfileEvent, columns: usize) -> String {
    /// Minimum width of a name next to which the number of threads is shown.
    const NAME: usize = 8;
    // A thread is `TID:NAME`; other wakers, such as a timer, have only a name.
    let name_of = |waker: &str| waker.split_once(':').map_or(waker, |(_, name)| name).to_owned();
    let mut groups: FxHashMap<String, (u64, Vec<&str>)> = FxHashMap::default();
    for (waker, time) in &line.wakers {
        let (sum, members) = groups.entry(name_of(waker)).or_default();
        *sum += time;
        members.push(waker);
    }
    let largest = groups.into_iter().max_by(|(a, (x, _)), (b, (y, _))| x.cmp(y).then_with(|| b.cmp(a)));
    let Some((name, (time, members))) = largest else { return String::new() };
    let share = format!(" {:.0}%", time as f64 / event.cost(&line.value).max(1) as f64 * 100.0);
    let (waker, mut others) = match &members[..] {
        [one] => ((*one).to_owned(), String::new()),
        all => (name, format!(", {} threads", all.len())),
    };
    if columns.saturating_sub(width(&others) + width(&share)) < NAME.min(width(&waker)) {
        others.clear();
    }
    let share = others + &share;
    cut(&waker, columns.saturating_sub(width(&share))) + &share
}

impl WaitLine<'_> {
    /// Returns the function with its line, such as `Cache::put (cache.cpp:40)`, in at most `columns` columns.
    fn place(&self, columns: usize) -> StyledWords {
        /// Minimum width of a name next to which its line is shown.
        const NAME: usize = 12;
        let mut line = if self.line.is_empty() { String::new() } else { format!(" ({})", self.line) };
        if columns.saturating_sub(width(&line)) < NAME.min(width(self.function)) {
            line.clear();
        }
        let room = columns.saturating_sub(width(&line));
        let mut words = StyledWords::of_function(self.function, (CodeKind::Program, false), "", room);
        words.push(&StyledWords::new(TextRole::Quiet, line));
        words
    }
}

/// Returns the layouts of the first and the second table, whose rows fit on one screen together.
pub(super) fn fitted_to_screen(layout: &ReportLayout) -> [ReportLayout; 2] {
    /// Lines other than rows: the first line, titles, headings, omitted rows, idle threads, data quality.
    const OTHERS: usize = 17;
    /// Minimum number of rows in both tables.
    const LEAST: usize = 8;
    let all = layout.height.map_or(usize::MAX, |height| height.saturating_sub(OTHERS).max(LEAST));
    let second = all / 5 * 2;
    [all - second, second].map(|rows| ReportLayout { rows: layout.rows.min(rows), ..layout.clone() })
}

/// Writes the table of waits.
pub(super) fn write_waits(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    layout: &ReportLayout,
) -> io::Result<()> {
    let mut lines = wait_lines(profile, event);
    lines.retain(|line| event.share(event.cost(&line.value)) * 100.0 >= layout.row_limit);
    let all = lines.len();
    let left_out: u64 = lines.iter().skip(layout.rows).map(|line| event.cost(&line.value)).sum();
    lines.truncate(layout.rows);
    let title = format!("Waiting {}", duration(event.cost(&event.total) as f64));
    let has_wakers = lines.iter().any(|line| !line.wakers.is_empty());
    let mut rows = vec![[String::new(), String::new(), "waits".into(), "what".into(), "where".into(), {
        if has_wakers { "woken by".into() } else { String::new() }
    }]];
    rows.extend(lines.iter().map(|line| {
        let cost = event.cost(&line.value);
        [
            duration(cost as f64),
            format!("{:.1}%", event.share(cost) * 100.0),
            thousands(line.value.samples),
            clean(line.site).into_owned(),
            line.place(usize::MAX).painted(Paint::default()),
            main_waker(line, event, usize::MAX),
        ]
    }));
    let mut shapes = table::fitted(
        &[right(2, 0), right(2, 0), right(2, 0), left(2, 0), left(2, 0), left(2, 0)],
        rows.iter().map(|row| &row[..]),
    );
    // The title covers the first two columns.
    let titled = shapes[0].gap + shapes[0].least + shapes[1].gap + shapes[1].least;
    shapes[1].gap += (1 + width(&title)).saturating_sub(titled);
    fit(&mut shapes, layout.width());
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = match number {
            0 => row.iter().map(|heading| layout.paint.words(TextRole::Heading, heading)).collect(),
            _ => {
                let mut cells = row.clone();
                cells[4] = lines[number - 1].place(shapes[4].least).painted(layout.paint);
                cells[5] = main_waker(&lines[number - 1], event, shapes[5].least);
                cells.to_vec()
            }
        };
        let mut text = table::line(&shapes, cells);
        if number == 0 && !layout.is_quiet {
            let covered = table::width(&shapes[..2]);
            let title = layout.paint.words(TextRole::Heading, &format!("{title:<0$}", covered));
            text = format!("{title}{}", &text[covered.min(text.len())..]);
        } else if number == 0 {
            continue;
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    if lines.len() < all && !layout.is_quiet {
        let more = thousands((all - lines.len()) as u64);
        let share = event.share(left_out) * 100.0;
        writeln!(out, "  … and {more} more rows, {share:.1}% in total (--limit 0 shows all)")?;
    }
    match &event.thread_time {
        Some(sums) if !layout.is_quiet => write_idle(out, sums, layout),
        _ => Ok(()),
    }
}

/// Writes the groups of idle threads whose waits are folded.
fn write_idle(out: &mut dyn Write, sums: &ThreadTimeSums, layout: &ReportLayout) -> io::Result<()> {
    /// Height of a screen on which there is room for several groups.
    const TALL: usize = 30;
    let most = if layout.height.is_some_and(|height| height < TALL) { 1 } else { 3 };
    let (threads, waited) = sums.idle;
    if threads == 0 {
        return Ok(());
    }
    let title = format!("Idle {}, {}", duration(waited as f64), counted(threads as u64, "thread"));
    writeln!(out, "\n {} (--idle shows them)", layout.paint.words(TextRole::Heading, &title))?;
    let row = |group: &IdleGroup| {
        let names: Vec<_> = group.names.iter().map(|name| clean(name)).collect();
        vec![
            duration(group.waited_ns as f64),
            format!("{}×", thousands(group.threads as u64)),
            group.site.name().to_owned(),
            group.reason.name().to_owned(),
            names.join(", "),
        ]
    };
    let rows: Vec<Vec<String>> = sums.idle_groups.iter().take(most).map(row).collect();
    let shapes = table::fitted(
        &[right(2, 0), right(2, 0), left(2, 0), left(2, 0), left(2, 0)],
        rows.iter().map(Vec::as_slice),
    );
    let room = layout.width().map(|most| most.saturating_sub(table::width(&shapes[..4]) + 2));
    for mut row in rows {
        if let Some(room) = room {
            row[4] = cut(&row[4], room.max(NARROWEST));
        }
        writeln!(out, "{}", table::line(&shapes[..5], row).trim_end())?;
    }
    match sums.idle_groups.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "  … and {}", counted(more as u64, "more group")),
    }
}

/// Minimum width of a shortened column.
const NARROWEST: usize = 16;

/// Narrows the columns of functions and wakers to fit a line.
fn fit(shapes: &mut [ColumnShape], most: Option<usize>) {
    let Some(most) = most else { return };
    let excess = |shapes: &[ColumnShape]| table::width(shapes).saturating_sub(most);
    // The function matters most, so the waker gives way first.
    for at in [5, 4] {
        let narrowest = NARROWEST.min(shapes[at].least);
        shapes[at].least = shapes[at].least.saturating_sub(excess(shapes)).max(narrowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::sampled::idle::IdleReason;
    use pmc_analysis::profile::sampled::wait_site::WaitSite;
    use pmc_text::units::MS;

    fn value(samples: u64, period: u64) -> SampleValue {
        SampleValue { samples, period, ..SampleValue::default() }
    }

    fn sums() -> ThreadTimeSums {
        let sites = vec![
            (WaitSite::Mutex, value(3, 900 * MS)),
            (WaitSite::Sleep, value(1, 69 * MS)),
            (WaitSite::Running, value(25, 25 * MS)),
            (WaitSite::Cpu, value(2, 7 * MS)),
        ];
        ThreadTimeSums { elapsed_ns: 2000 * MS, threads: 1, sites, ..ThreadTimeSums::default() }
    }

    #[test]
    fn exact_running_time_replaces_that_of_the_samples() {
        let incomplete =
            ThreadTimeSums { coverage: Some(0.5), running_ns: Some(31 * MS), idle: (1, MS), ..sums() };
        assert_eq!(
            headline(&incomplete),
            "2.00 s elapsed, 1 thread: 31.0 ms running, 7.00 ms waiting for a CPU, 969 ms waiting. 1 idle \
             thread folded (--idle). This is 50% of the threads' time: context-switch records are missing"
        );
        let states = "25.0 ms running, 7.00 ms waiting for a CPU, 969 ms waiting";
        assert_eq!(headline(&sums()), format!("2.00 s elapsed, 1 thread: {states}"));
    }

    /// Writes the waits of a profile in which a thread and two threads of a pool woke the waiters of a mutex.
    fn written(width: usize, rows: usize, idle: bool) -> String {
        let mut profile = Profile::default();
        let mut text = |text: &str| RowCell::Text(profile.texts.add(text));
        let [mutex, sleep, main, none] = ["mutex", "sleep", "7:main", ""].map(&mut text);
        let workers = ["8:worker", "9:worker"].map(&mut text);
        let file = profile.texts.add("/src/cache.cpp");
        let [put, nap] = ["shop::Cache<std::string, int>::put(int)", "nap"]
            .map(|name| RowCell::Symbol('.', profile.texts.add(name)));
        let row = |cells: [RowCell; 4], samples, period| TableRow {
            cells: cells.into(),
            own: value(samples, period).waiting(ThreadState::Blocked),
            ..TableRow::default()
        };
        let line = |line| RowCell::Line(file, line);
        let group = IdleGroup {
            reason: IdleReason::Pool,
            site: WaitSite::Condition,
            function: None,
            names: vec!["worker-1".to_owned(), "worker-2\u{1b}".to_owned()],
            threads: 2,
            waited_ns: 1500 * MS,
        };
        let thread_time = match idle {
            true => ThreadTimeSums { idle: (2, 1500 * MS), idle_groups: vec![group], ..sums() },
            false => sums(),
        };
        profile.events.push(ProfileEvent {
            total: value(10, 1000 * MS).waiting(ThreadState::Blocked),
            rows: vec![
                row([mutex, put, line(40), main], 2, 300 * MS),
                row([sleep, nap, none, none], 5, 250 * MS),
                row([mutex, put, line(40), workers[0]], 2, 250 * MS),
                row([mutex, put, line(40), workers[1]], 1, 200 * MS),
            ],
            state: Some(ThreadState::Blocked),
            keys: Some(KEYS.to_vec()),
            thread_time: Some(thread_time),
            ..ProfileEvent::default()
        });
        let layout = ReportLayout { width: Some(width), rows, ..ReportLayout::default() };
        let mut out = Vec::new();
        assert!(has_wait_rows(&profile, &profile.events[0], &layout));
        write_waits(&mut out, &profile, &profile.events[0], &layout).expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn waits_are_joined_by_function_and_name_the_main_waker() {
        let words = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(
            words(&written(120, 20, false)),
            [
                "Waiting 1.00 s waits what where woken by",
                "750 ms 75.0% 5 mutex shop::Cache<…>::put(int) (cache.cpp:40) worker, 2 threads 60%",
                "250 ms 25.0% 5 sleep nap"
            ]
        );
        let cut = written(120, 1, true);
        assert!(cut.contains("… and 1 more rows, 25.0% in total"), "{cut}");
        assert!(cut.contains("Idle 1.50 s, 2 threads (--idle shows them)"), "{cut}");
        let group = words(&cut).into_iter().find(|line| line.contains("worker-1")).expect("a group");
        assert!(group.starts_with("1.50 s 2× condition thread pool worker-1, worker-2"), "{group}");
        assert!(!cut.contains('\u{1b}'), "{cut:?}");
    }

    #[test]
    fn waits_fit_a_narrow_terminal() {
        for columns in [60, 80] {
            let text = written(columns, 20, true);
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
            assert!(text.contains("put"), "{text}");
        }
    }

    #[test]
    fn both_tables_fit_on_one_screen() {
        let rows = |height| {
            let layout = ReportLayout { height, ..ReportLayout::default() };
            fitted_to_screen(&layout).map(|layout| layout.rows)
        };
        assert_eq!((rows(Some(24)), rows(Some(40)), rows(None)), ([6, 2], [15, 8], [20, 20]));
    }
}
