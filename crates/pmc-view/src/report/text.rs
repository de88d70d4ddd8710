//! The report for human readers: the table, the tree, and the trust line at the end.
//!
//! ```text
//! 326 samples of cpu-clock (65.2 ms)
//!
//!   Children            Self             Command  Shared Object  Symbol
//!    99.1 % ±1.2       0.3 % ±0.8        deep     deep           [.] main
//! ```

use std::io::{self, Write};

use super::key_widths::{FittedWidths, omitted_columns};
use super::name::StyledWords;
use super::under_rows::ChainWriter;
use super::{
    ChainShape, ReportColumn, ReportLayout, cell_words, chains, empty, fields, heading, hierarchy, keys_of,
    language, lines, number, side_by_side, spread, thread_time, tree,
};
use crate::remarks::Remarks;
use pmc_analysis::profile::sampled::trust::{self, TrustDetail, TrustStatement};
use pmc_analysis::profile::sampled::{
    CodeKind, Profile, ProfileEvent, RowCell, SortKey, TableRow, ThreadState, counted_unit, is_clock,
};
use pmc_text::table::{self, ColumnShape};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{clean, cut, width, wrap_remark};
use pmc_text::units::{counted, duration, thousands};

/// Maximum width of each text column except the last, if the line width is unlimited.
const WIDEST: usize = 40;
/// Width to which names are padded in a pipe. Longer names are not truncated; they only shift the rest of
/// their own line.
const PADDED: usize = 80;
/// Maximum number of lines about data quality, unless the full statement is requested.
const TRUST_LINES: usize = 4;

pub(super) fn write(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    if layout.is_piped && !layout.is_quiet {
        fields::lost(out, profile)?;
    }
    tables(out, profile, layout)?;
    if layout.is_quiet {
        return Ok(());
    }
    let mut out = Remarks::new(out, layout.width(), layout.is_piped);
    writeln!(out)?;
    trust(&mut out, profile, layout)
}

/// Writes the headline and table of each event, and its tree. The trees of running and waiting time follow
/// both tables, so that the tables stay together.
pub(super) fn tables(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    let mut first = true;
    let mut with_trees = Vec::new();
    let measures_state = |event: &&ProfileEvent| event.state.is_some() && event.total.samples > 0;
    let has_both =
        profile.shown_events().iter().map(|at| &profile.events[*at]).filter(measures_state).count() > 1;
    let fitted = thread_time::fitted_to_screen(layout);
    for index in profile.shown_events() {
        let events = side_by_side(profile, layout, index);
        let samples: u64 = events.iter().map(|event| event.total.samples).sum();
        let is_dummy = events.iter().all(|event| event.name.starts_with("dummy"));
        // perf opens a dummy event only to record side-band data, so do not show it.
        if events.is_empty() || samples == 0 && (is_dummy || profile.events.len() > 1) {
            continue;
        }
        let is_first = std::mem::take(&mut first);
        if !layout.is_quiet {
            above_table(out, profile, &events, layout, is_first)?;
        } else if !is_first {
            writeln!(out)?;
        }
        let layout = match events[0].state {
            Some(_) if has_both => &fitted[usize::from(!is_first)],
            _ => layout,
        };
        match &events[..] {
            [event] if thread_time::has_wait_rows(profile, event, layout) => {
                thread_time::write_waits(out, profile, event, layout)?;
            }
            _ if layout.hierarchy => hierarchy::write(out, profile, &events, layout)?,
            _ => table(out, profile, &events, layout)?,
        }
        if let (Some(reason), false) = (empty::reason(&events, layout), layout.is_quiet) {
            writeln!(Remarks::new(out, layout.width(), layout.is_piped), "{reason}")?;
        }
        for event in events {
            language::write(out, profile, event, layout)?;
            match event.state {
                Some(_) => with_trees.push(event),
                None => event_tree(out, profile, event, layout)?,
            }
        }
    }
    for event in with_trees {
        event_tree(out, profile, event, layout)?;
    }
    if first && !layout.is_quiet {
        let mut remarks = Remarks::new(out, layout.width(), layout.is_piped);
        let of_threads = profile.events.iter().find_map(|event| Some((event, event.thread_time.as_ref()?)));
        let Some((event, sums)) = of_threads else { return writeln!(remarks, "No samples.") };
        writeln!(remarks, "{}", thread_time::headline(sums))?;
        if let Some(reason) = empty::reason(&[event], layout) {
            writeln!(remarks, "{reason}")?;
        }
    }
    Ok(())
}

/// Writes the lines above the table of events.
fn above_table(
    out: &mut dyn Write,
    profile: &Profile,
    events: &[&ProfileEvent],
    layout: &ReportLayout,
    is_first: bool,
) -> io::Result<()> {
    let mut remarks = Remarks::new(out, layout.width(), layout.is_piped);
    let sums =
        events.iter().filter(|event| event.state.is_some()).find_map(|event| event.thread_time.as_ref());
    match (is_first, layout.is_piped) {
        (true, true) => fields::single_values(remarks.out, profile, layout)?,
        (true, false) => {}
        (false, _) => writeln!(remarks)?,
    }
    if let Some(sums) = sums.filter(|_| is_first) {
        writeln!(remarks, "{}", thread_time::headline(sums))?;
        writeln!(remarks)?;
    }
    if layout.is_piped {
        fields::headline(remarks.out, events)?;
        for sums in
            events.iter().filter(|event| event.state.is_none()).filter_map(|event| event.thread_time.as_ref())
        {
            writeln!(remarks, "{}", thread_time::headline(sums))?;
        }
        return writeln!(remarks);
    }
    let (titled, others): (Vec<&ProfileEvent>, Vec<_>) =
        events.iter().partition(|event| thread_time::has_wait_rows(profile, event, layout));
    for event in others {
        headline(&mut remarks, event)?;
    }
    // The table of waits has its own title, and two tables must fit on a screen.
    if titled.is_empty() && sums.is_none() { writeln!(remarks) } else { Ok(()) }
}

fn event_tree(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    layout: &ReportLayout,
) -> io::Result<()> {
    let Some(tree) = &event.tree else { return Ok(()) };
    let mut remarks = Remarks::new(out, layout.width(), layout.is_piped);
    writeln!(remarks)?;
    match layout.shape {
        ChainShape::Tree | ChainShape::Fractal => tree::write(&mut remarks, profile, event, tree, layout),
        ChainShape::Flat | ChainShape::Folded => chains::write(out, profile, event, tree, layout),
    }
}

fn headline(out: &mut dyn Write, event: &ProfileEvent) -> io::Result<()> {
    if let (Some(sums), None) = (&event.thread_time, event.state) {
        return writeln!(out, "{}", thread_time::headline(sums));
    }
    if let Some(state) = event.state {
        let title = match state {
            ThreadState::Running => "Running",
            ThreadState::Runnable => "Waiting for a CPU",
            ThreadState::Blocked => "Waiting",
        };
        write!(
            out,
            "{title} {}, {}",
            duration(event.total.period as f64),
            counted(event.total.samples, if state.is_off_cpu() { "wait" } else { "sample" })
        )?;
        return excluded(out, event);
    }
    let name = clean(&event.name);
    let amount = if is_clock(&name) {
        duration(event.total.period as f64)
    } else {
        format!("about {} {}", thousands(event.total.period), counted_unit(&name))
    };
    write!(out, "{} samples of {name} ({amount})", thousands(event.total.samples))?;
    excluded(out, event)
}

/// Ends a headline with the number of samples that filters excluded.
fn excluded(out: &mut dyn Write, event: &ProfileEvent) -> io::Result<()> {
    if event.filtered.samples > 0 {
        write!(out, ", {} excluded by filters", thousands(event.filtered.samples))?;
    }
    writeln!(out)
}

fn is_number(column: ReportColumn) -> bool {
    !matches!(column, ReportColumn::Key(_))
}

/// Returns the position of a sort key in a row's cells.
fn key_at(keys: &[SortKey], key: SortKey) -> usize {
    keys.iter().position(|other| *other == key).unwrap_or(usize::MAX)
}

/// Returns a function's name shortened to `columns`.
fn symbol(profile: &Profile, keys: &[SortKey], cells: &[RowCell], columns: usize) -> StyledWords {
    match cells.get(key_at(keys, SortKey::Symbol)) {
        Some(RowCell::Symbol(letter, id)) => {
            let module = match cells.get(key_at(keys, SortKey::Dso)) {
                Some(RowCell::Text(id)) => profile.texts.get(*id),
                _ => "",
            };
            let kind = CodeKind::of_row(*letter, module);
            StyledWords::of_function(profile.texts.get(*id), (kind, false), "  ", columns)
        }
        other => {
            StyledWords::new(TextRole::Plain, other.map(|cell| cell_words(profile, cell)).unwrap_or_default())
        }
    }
}

/// Returns the minimum width that perf gives a numeric column.
fn perf_column_width(column: ReportColumn) -> usize {
    match column {
        ReportColumn::Key(_) => 0,
        ReportColumn::Samples | ReportColumn::Period => 12,
        _ => 8,
    }
}

/// Returns the widths of the columns. A width of 0 omits a column whose cells are all equal, to make room for
/// names.
fn widths(columns: &[ReportColumn], lines: &[Vec<String>], layout: &ReportLayout) -> Vec<usize> {
    let given = |at: usize| layout.widths.get(at).copied().filter(|given| *given > 0);
    let mut widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let widest = lines.iter().map(|line| width(&line[at])).max().unwrap_or(0);
            let is_unlimited = layout.is_piped || layout.width().is_some() || is_number(columns[at]);
            let most = match (layout.is_piped, is_unlimited) {
                (true, _) if !is_number(columns[at]) => PADDED,
                (_, true) => usize::MAX,
                (_, false) => WIDEST,
            };
            let least = if layout.is_piped { perf_column_width(columns[at]) } else { 0 };
            given(at).unwrap_or(widest.min(most).max(least))
        })
        .collect();
    let Some(most) = layout.width() else { return widths };
    let is_elastic = |at: &usize| !is_number(columns[*at]) && given(*at).is_none();
    let elastic: Vec<usize> = (0..columns.len()).filter(is_elastic).collect();
    let fixed: usize = (0..columns.len()).filter(|at| !is_elastic(at)).map(|at| widths[at] + 2).sum();
    let keys: Vec<SortKey> = elastic
        .iter()
        .filter_map(|at| match columns[*at] {
            ReportColumn::Key(key) => Some(key),
            _ => None,
        })
        .collect();
    let wished: Vec<usize> = elastic.iter().map(|at| widths[*at]).collect();
    let fitted = FittedWidths::new(&wished, &keys, (most, fixed), |at| {
        let is_asked_for = layout.columns.is_some();
        let is_equal = |a: &&Vec<String>, b: &&Vec<String>| a[elastic[at]] == b[elastic[at]];
        !is_asked_for && lines.iter().skip(1).is_sorted_by(is_equal)
    });
    elastic.iter().zip(fitted.widths).for_each(|(at, fitted)| widths[*at] = fitted);
    widths
}

fn table(
    out: &mut dyn Write,
    profile: &Profile,
    events: &[&ProfileEvent],
    layout: &ReportLayout,
) -> io::Result<()> {
    let keys = keys_of(profile, events);
    let typed = layout.columns(profile, keys);
    let columns = spread(&typed, events.len());
    let (shown, all) = lines(profile, events, layout);
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|c| heading(*c, profile).to_owned()).collect()];
    lines.extend(shown.iter().map(|line| {
        super::fields(profile, layout, events, line, &typed, |event, row, column| {
            number(event, row, column, layout)
        })
    }));
    let widths = widths(&columns, &lines, layout);
    if let [headings, first, ..] = &lines[..]
        && !layout.is_quiet
    {
        let columns = headings.iter().zip(first).zip(&widths);
        let omitted = columns.filter(|((_, value), width)| **width == 0 && !value.is_empty());
        let omitted = omitted.map(|((heading, value), _)| (heading.as_str(), value.as_str()));
        omitted_columns(omitted).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    let last = columns.len() - 1;
    let rule = layout.is_piped.then(|| widths.iter().map(|width| ".".repeat(*width)).collect());
    if let Some(rule) = rule {
        lines.insert(1, rule);
    }
    let chains = events.first().and_then(|event| ChainWriter::new(profile, event, layout));
    let indices: Vec<usize> = (0..columns.len()).filter(|at| widths[*at] > 0).collect();
    // The first column follows `#` or a blank. As in perf, the last column is padded only if it contains
    // numbers, which are then followed by a blank.
    let end = if is_number(columns[last]) { " " } else { "" };
    let shape = |(number, at): (usize, &usize)| ColumnShape {
        gap: if number == 0 { 1 } else { 2 },
        least: if *at == last && end.is_empty() { 0 } else { widths[*at] },
        to_right: is_number(columns[*at]),
    };
    let shapes: Vec<_> = indices.iter().enumerate().map(shape).collect();
    let headings = if layout.is_piped { 2 } else { 0 };
    let first_row = headings.max(1);
    let skipped = if layout.is_quiet { first_row } else { 0 };
    for (number, line) in lines.iter().enumerate().skip(skipped) {
        let cells = indices.iter().map(|&at| {
            let field = &line[at];
            let given = layout.widths.get(at).is_some_and(|given| *given > 0);
            let words = match columns[at] {
                _ if number == 0 && !layout.is_piped => {
                    StyledWords::new(TextRole::Heading, cut(field, widths[at]))
                }
                ReportColumn::Key(SortKey::Symbol) if layout.width().is_some() => {
                    match shown[number - 1].callers {
                        0 => symbol(profile, keys, shown[number - 1].cells, widths[at]),
                        callers => StyledWords::new(TextRole::Quiet, format!("  {callers} callers")),
                    }
                }
                _ if (at == last || layout.is_piped) && !given && layout.width().is_none() => {
                    StyledWords::new(TextRole::Plain, field)
                }
                _ => StyledWords::new(TextRole::Plain, cut(field, widths[at])),
            };
            words.painted(layout.paint)
        });
        let start = if number < headings { '#' } else { ' ' };
        let text = format!("{start}{}{end}", table::line(&shapes, cells));
        writeln!(out, "{}", if layout.width().is_some() { text.trim_end() } else { &text })?;
        if layout.is_piped && !layout.is_quiet && number + 1 == first_row {
            writeln!(out, "#")?;
        }
        if let (Some(chains), Some(row)) = (&chains, number.checked_sub(first_row)) {
            shown[row].rows[0].map_or(Ok(()), |row| chains.write(out, row))?;
        }
    }
    if shown.len() < all && !layout.is_quiet {
        let left: f64 = match events {
            [event] => {
                let own = |row: &TableRow| event.cost(&row.own);
                let all = event.rows.iter().map(own).fold(0, u64::saturating_add);
                event.share(
                    all - shown.iter().flat_map(|line| line.rows[0]).map(own).fold(0, u64::saturating_add),
                )
            }
            _ => 0.0,
        };
        let own = if left > 0.0 { format!(", {:.1}% self in total", left * 100.0) } else { String::new() };
        let more = counted((all - shown.len()) as u64, "more row");
        let start = if layout.is_piped { '#' } else { ' ' };
        writeln!(out, "{start} … and {more}{own} (--limit 0 shows all)")?;
    }
    Ok(())
}

/// Writes the data quality, by default in at most [`TRUST_LINES`] lines.
pub(super) fn trust(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    let TrustStatement { summary, remarks } =
        trust::statement(&profile.trust, &profile.modules, layout.trust);
    let columns = layout.width().unwrap_or(usize::MAX);
    let wrapped = |line: String| wrap_remark(&line, columns);
    let summary = wrapped(format!("Trust: {summary}."));
    let mut remarks: Vec<Vec<String>> =
        remarks.iter().map(|remark| wrapped(format!("       {remark}."))).collect();
    let most = if layout.trust == TrustDetail::Full { usize::MAX } else { TRUST_LINES };
    let height = summary.len() + remarks.iter().map(Vec::len).sum::<usize>();
    if profile.trust.samples > 0 && !layout.is_piped && height < most {
        remarks.insert(0, vec!["       ± is the sampling error at 95% confidence.".to_owned()]);
    }
    let lines = fitted(summary, remarks, most, columns);
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Returns the summary and those remarks that fit into `most` lines, and how to see the others. The most
/// important remark is cut if it does not fit.
fn fitted(summary: Vec<String>, remarks: Vec<Vec<String>>, most: usize, columns: usize) -> Vec<String> {
    let last = summary.len() - 1;
    let mut lines = summary;
    let mut omitted = 0;
    for remark in remarks {
        match most.saturating_sub(lines.len()) {
            room if omitted == 0 && remark.len() <= room => lines.extend(remark),
            room if omitted == 0 && lines.len() == last + 1 && room > 0 => {
                lines.extend(remark.into_iter().take(room));
                let end = lines.len() - 1;
                lines[end] = cut(&format!("{} …", lines[end]), columns);
                omitted += 1;
            }
            _ => omitted += 1,
        }
    }
    if omitted > 0 {
        let note = format!(" (-v: {omitted} more)");
        let has_room = |line: &String| width(line).saturating_add(note.len()) <= columns;
        let end = lines.len() - 1;
        let at = [end, last].into_iter().find(|at| has_room(&lines[*at])).unwrap_or(end);
        lines[at] = cut(&lines[at], columns.saturating_sub(note.len())) + &note;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::sampled::{ProfileQuality, RowCell, SampleValue, SortKey};

    /// Writes a report with a name that contains a separator and is too wide for the table for human readers.
    fn written(is_piped: bool) -> String {
        let mut profile = Profile { keys: vec![SortKey::Dso, SortKey::Symbol], ..Profile::default() };
        let dso = profile.texts.add(&"d".repeat(WIDEST + 9));
        let symbol = profile.texts.add("main");
        let value = |samples: u64| SampleValue {
            samples,
            period: samples,
            squares: samples as f64,
            ..SampleValue::default()
        };
        let row = TableRow {
            cells: [RowCell::Text(dso), RowCell::Symbol('.', symbol)].into(),
            own: value(1234),
            total: value(1234),
            ..TableRow::default()
        };
        let event = ProfileEvent {
            name: "cpu-clock".to_owned(),
            total: value(4936),
            rows: vec![row],
            ..ProfileEvent::default()
        };
        profile.events.push(event);
        profile.trust = ProfileQuality { samples: 4936, ..ProfileQuality::default() };
        let layout = ReportLayout { is_piped, show_samples: true, ..ReportLayout::default() };
        let mut out = Vec::new();
        write(&mut out, &profile, &layout).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pipes_get_rows_and_comments() {
        let text = written(true);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let wide = "d".repeat(WIDEST + 9);
        let words: Vec<&str> = rows[0].split_whitespace().collect();
        assert_eq!((rows.len(), &words[..]), (1, &["25.00%", "1234", &wide, "[.]", "main"][..]), "{text}");
        let comments = ["# Samples: 4936 of event 'cpu-clock'\n", "# Overhead", "\n# ....", "\n#\n# Trust: "];
        assert!(comments.iter().all(|comment| text.contains(comment)) && !text.contains('±'), "{text}");
    }

    #[test]
    fn long_name_does_not_widen_other_lines_in_a_pipe() {
        let mut profile = Profile { keys: vec![SortKey::Symbol, SortKey::Dso], ..Profile::default() };
        let value = |samples: u64| SampleValue { samples, period: samples, ..SampleValue::default() };
        let mut event =
            ProfileEvent { name: "cpu-clock".to_owned(), total: value(20), ..ProfileEvent::default() };
        let long = "T".repeat(1000);
        for name in ["short", long.as_str()] {
            let cells =
                vec![RowCell::Symbol('.', profile.texts.add(name)), RowCell::Text(profile.texts.add("prog"))];
            event.rows.push(TableRow {
                cells: cells.into(),
                own: value(10),
                total: value(10),
                ..TableRow::default()
            });
        }
        profile.events.push(event);
        let mut out = Vec::new();
        table(
            &mut out,
            &profile,
            &[&profile.events[0]],
            &ReportLayout { is_piped: true, ..ReportLayout::default() },
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        let (wide, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(&long));
        assert!(wide.len() == 1 && wide[0].ends_with(&format!("[.] {long}  prog")), "{text}");
        assert!(others.len() == 4 && others.iter().all(|line| line.len() < 120), "{text}");
    }

    #[test]
    fn terminal_gets_errors_and_no_comments() {
        let text = written(false);
        assert!(text.contains("25.0% ±1.2") && text.contains("1,234") && text.contains('…'), "{text}");
        assert!(text.starts_with("4,936 samples of cpu-clock") && !text.contains('#'), "{text}");
    }

    #[test]
    fn startup_frames_are_one_row() {
        let mut profile = Profile { keys: vec![SortKey::Symbol], has_totals: true, ..Profile::default() };
        let value = |samples: u64| SampleValue { samples, period: samples, ..SampleValue::default() };
        let mut event =
            ProfileEvent { name: "cpu-clock".to_owned(), total: value(100), ..ProfileEvent::default() };
        for (name, own) in [("_start", 0), ("work", 60), ("main", 40), ("start_thread", 0), ("clone3", 0)] {
            let cells = vec![RowCell::Symbol('.', profile.texts.add(name))];
            event.rows.push(TableRow {
                cells: cells.into(),
                own: value(own),
                total: value(100),
                ..TableRow::default()
            });
        }
        profile.events.push(event);
        let write = |layout: ReportLayout| {
            let mut out = Vec::new();
            table(&mut out, &profile, &[&profile.events[0]], &layout).unwrap();
            String::from_utf8(out).unwrap()
        };
        let person = ReportLayout { width: Some(80), rows: 2, ..ReportLayout::default() };
        let text = write(ReportLayout { ..person });
        assert!(
            text.contains("  3 callers\n") && !text.contains("_start") && text.contains("work"),
            "{text}"
        );
        assert!(text.contains("… and 1 more row, 40.0% self in total"), "{text}");
        for whole in [
            ReportLayout { full_names: true, ..ReportLayout::default() },
            ReportLayout { is_piped: true, ..ReportLayout::default() },
        ] {
            let text = write(whole);
            assert!(
                text.contains("_start") && text.contains("clone3") && !text.contains("callers"),
                "{text}"
            );
        }
    }

    #[test]
    fn lines_fit_the_terminal() {
        let mut profile =
            Profile { keys: vec![SortKey::Comm, SortKey::Dso, SortKey::Symbol], ..Profile::default() };
        let names = [
            "std::_Rb_tree<std::string, int>::_M_emplace_hint_unique<std::piecewise_construct_t const&>(int)",
            "shop::warehouse::shelves::Basket<shop::warehouse::Article>::price_of_all_of_them(int) const",
            "数据库::查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询查询",
        ];
        let comm = profile.texts.add("a program");
        let value = |samples: u64| SampleValue {
            samples,
            period: samples,
            squares: samples as f64,
            ..SampleValue::default()
        };
        let mut event =
            ProfileEvent { name: "cycles".repeat(9), total: value(900), ..ProfileEvent::default() };
        let mut tree = pmc_analysis::profile::sampled::CallTree { roots: vec![0], ..Default::default() };
        for at in 0..60 {
            let (dso, symbol) = (profile.texts.add(&"d".repeat(20 + at)), profile.texts.add(names[at % 3]));
            let cells = vec![RowCell::Text(comm), RowCell::Text(dso), RowCell::Symbol('.', symbol)];
            event.rows.push(TableRow {
                cells: cells.into(),
                own: value(9),
                total: value(900),
                ..TableRow::default()
            });
            tree.nodes.push(pmc_analysis::profile::sampled::tree::CallNode {
                symbol,
                dso,
                level: pmc_sys::abi::CpuMode::User,
                inlined: at % 2 == 0,
                own: value((at / 5 % 2) as u64 * 9),
                total: value(900 - 9 * (at / 10) as u64),
                children: if at < 59 { vec![at as u32 + 1] } else { Vec::new() },
            });
        }
        event.tree = Some(tree);
        profile.events.push(event);
        profile.trust =
            ProfileQuality { samples: 900, notes: vec!["a remark ".repeat(30)], ..Default::default() };
        for (columns, hierarchy, shape) in
            [(80, false, ChainShape::Tree), (60, false, ChainShape::Flat), (80, true, ChainShape::Tree)]
        {
            let layout =
                ReportLayout { width: Some(columns), rows: 60, hierarchy, shape, ..ReportLayout::default() };
            let mut out = Vec::new();
            write(&mut out, &profile, &layout).unwrap();
            let text = String::from_utf8(out).unwrap();
            let wide: Vec<&str> = text.lines().filter(|line| width(line) > columns).collect();
            assert!(wide.is_empty(), "{columns}: {wide:#?}");
            assert!(hierarchy || text.contains("Same in all rows: Command = a program"), "{text}");
            assert!(
                text.contains("_M_emplace_hint_unique") && text.contains("price_of_all_of_them"),
                "{text}"
            );
        }
        // With `full_names`, names are not shortened.
        let layout = ReportLayout { width: Some(80), full_names: true, ..ReportLayout::default() };
        let mut out = Vec::new();
        write(&mut out, &profile, &layout).unwrap();
        assert!(String::from_utf8(out).unwrap().contains(names[0]));
    }

    #[test]
    fn data_quality_takes_four_lines_unless_all_of_it_is_requested() {
        let words = |count: usize| vec!["a remark"; count].join(" ");
        let written = |notes: Vec<String>, width, trust| {
            let trusted = ProfileQuality { samples: 900, notes, ..ProfileQuality::default() };
            let profile = Profile { trust: trusted, ..Profile::default() };
            let layout = ReportLayout { width, trust, ..ReportLayout::default() };
            let mut out = Vec::new();
            let mut remarks = Remarks::new(&mut out, layout.width(), false);
            super::trust(&mut remarks, &profile, &layout).unwrap();
            String::from_utf8(out).unwrap()
        };
        for width in [Some(80), Some(120), None] {
            let brief = written(vec![words(12), words(6), words(5), words(4)], width, TrustDetail::Brief);
            assert!(brief.lines().count() <= TRUST_LINES, "{width:?}: {brief}");
            let omitted: usize = 4 - brief.lines().filter(|line| line.contains("remark.")).count();
            let count = format!(" (-v: {omitted} more)");
            assert!(brief.starts_with("Trust: 900 samples, none lost"), "{brief}");
            assert!(omitted == 0 || brief.contains(&count), "{width:?}: {count} {brief}");
            let full = written(vec![words(12), words(6), words(5), words(4)], width, TrustDetail::Full);
            assert!(full.lines().count() > TRUST_LINES && !full.contains("-v"), "{full}");
        }
        // The most important remark is cut, if it is too long.
        let long = written(vec![words(60), words(1)], Some(80), TrustDetail::Brief);
        assert!(long.lines().count() == TRUST_LINES && long.contains(" (-v: 2 more)"), "{long}");
        assert!(long.lines().all(|line| width(line) <= 80), "{long}");
        let short = written(vec![words(1)], Some(80), TrustDetail::Brief);
        assert!(short.lines().count() == 3 && short.contains("± is"), "{short}");
    }
}
