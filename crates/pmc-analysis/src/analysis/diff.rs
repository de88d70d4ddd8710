//! Compares recordings, event by event.
//!
//! Reads the files of a [`DiffRequest`] one after the other, with a shared string table, and returns the
//! [`Diff`]. `profile::diff` computes the differences.

mod matching;
mod measure;
mod side;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ProgressSink;
use super::request::AnalysisRequest;
use crate::profile::diff::groups::GroupRequest;
use crate::profile::diff::{self, Compute, Diff, DiffEvent, streams};
use crate::profile::sampled::{self, NameStyle, Query, RowCell, SortKey, StringId, StringTable};
use crate::session::thread_time::ThreadState;
use matching::MatchNotes;
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::MissingDataReason;
use pmc_sys::error::{Error, Result};
use pmc_text::text::clean;
use side::{DiffSide, SideEvent};

/// Minimum fraction of the base recording's total that must be in rows that also exist in the other
/// recording. Below it, pmc looks for the same functions under different program names.
const MATCHED: f64 = 0.5;

/// Default sort keys for waits: what a thread waits for, and the program's function. Not the line, because
/// lines of two versions of a program differ.
pub const WAIT_KEYS: [SortKey; 2] = [SortKey::WaitSite, SortKey::WaitFunction];

/// Which recordings to compare, and how.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// The recordings, starting with the base.
    pub files: Vec<PathBuf>,
    /// Names of the recordings in messages, in the same order. Recordings without a name are shown by path.
    pub labels: Vec<String>,
    /// How to analyse each recording. Callers are kept if `tree` or `streams` is set. The states of its
    /// selection are the tables to compare; by default, running and blocked.
    pub analysis: AnalysisRequest,
    /// The sort keys for waits, if they differ from those of `analysis`.
    pub wait_keys: Option<Vec<SortKey>>,
    /// The query that selects each recording's rows.
    pub query: Query,
    /// Whether to compare the call trees too.
    pub tree: bool,
    /// Number of hottest call chains to compare per recording, instead of rows.
    pub streams: Option<usize>,
    /// How to compute differences. `None` compares times if all recordings contain times, otherwise shares.
    pub compute: Option<Compute>,
    /// Whether source files with the same name in different folders are the same file. If not, rows keep the
    /// path of their own recording.
    pub matches_files: bool,
    /// Sort column: 0 for the base recording, n for the difference between it and the nth recording after it.
    pub order: usize,
    /// How to compare groups of recordings; `None` compares each recording with the first.
    pub groups: Option<GroupRequest>,
}

/// Compares the tables of two recordings by module and function.
impl Default for DiffRequest {
    fn default() -> Self {
        Self {
            files: vec!["perf.data.old".into(), "perf.data".into()],
            labels: Vec::new(),
            analysis: AnalysisRequest {
                keys: vec![SortKey::Dso, SortKey::Symbol],
                name_style: NameStyle { shared: true, ..NameStyle::default() },
                ..AnalysisRequest::default()
            },
            wait_keys: Some(WAIT_KEYS.to_vec()),
            query: Query::default(),
            tree: false,
            streams: None,
            compute: None,
            matches_files: true,
            order: 1,
            groups: None,
        }
    }
}

impl DiffRequest {
    /// Adds the source line to the sort keys and merges the rows of a function, so that annotations can show
    /// a line of the new version.
    pub fn show_lines(&mut self) {
        if let Some(groups) = self.groups.as_mut().filter(|_| !self.analysis.keys.contains(&SortKey::SrcLine))
        {
            self.analysis.keys.push(SortKey::SrcLine);
            groups.merges_lines = true;
            self.matches_files = false;
        }
    }

    /// Returns the sort keys for an event that covers the threads' time in these states.
    fn keys_of(&self, states: &[ThreadState]) -> &[SortKey] {
        match &self.wait_keys {
            Some(keys) if diff::source(states) == diff::CostSource::Census => keys,
            _ => &self.analysis.keys,
        }
    }
}

/// The aggregated recordings, with a shared string table.
#[derive(Debug)]
pub struct DiffSides {
    all: Vec<DiffSide>,
    texts: StringTable,
}

impl DiffSides {
    /// Reads the recordings. `open` opens each file, and may convert it from another format.
    ///
    /// # Errors
    /// Fails if a recording cannot be read.
    pub fn load(
        request: &DiffRequest,
        open: impl Fn(&Path) -> Result<Reader>,
        progress: &dyn ProgressSink,
    ) -> Result<Self> {
        let mut texts = StringTable::default();
        let mut read = |number: usize, spelled_out: &Arc<BTreeSet<Arc<str>>>| {
            let path = &request.files[number];
            let label = request.labels.get(number).cloned();
            let label = label.unwrap_or_else(|| path.display().to_string());
            side::read(open(path)?, label, request, spelled_out, &mut texts, progress)
        };
        let none = Arc::default();
        let all = (0..request.files.len()).map(|number| read(number, &none));
        let mut all: Vec<DiffSide> = all.collect::<Result<_>>()?;
        // A name that several functions have in one recording needs its parameters in all of them.
        let overloaded: BTreeSet<Arc<str>> =
            all.iter().flat_map(|side| side.overloaded.iter().cloned()).collect();
        let overloaded = Arc::new(overloaded);
        for (number, side) in all.iter_mut().enumerate() {
            if overloaded.iter().any(|name| !side.overloaded.contains(name) && side.names.contains(name)) {
                *side = read(number, &overloaded)?;
            }
        }
        Ok(Self { all, texts })
    }

    /// Returns the notes that report damage.
    pub fn damage(&self) -> Vec<String> {
        self.all.iter().flat_map(|side| side.damage.iter().cloned()).collect()
    }

    /// Returns the errors from reading files that provide symbol names.
    pub fn name_failures(&self) -> Vec<MissingDataReason> {
        self.all.iter().flat_map(|side| side.name_failures.iter().cloned()).collect()
    }

    /// Whether samples of any recording could not be read.
    pub fn lose_samples(&self) -> bool {
        self.all.iter().any(|side| side.file.loses_samples)
    }

    /// Compares the recordings with the base.
    ///
    /// # Errors
    /// Fails if the recordings have no event in common.
    pub fn compare(self, request: &DiffRequest) -> Result<Diff> {
        compare(self.all, request, self.texts)
    }
}

fn compare(mut sides: Vec<DiffSide>, request: &DiffRequest, texts: StringTable) -> Result<Diff> {
    let notes = sides.iter_mut().flat_map(|side| std::mem::take(&mut side.notes)).collect();
    let mut matched = MatchNotes { notes, ..MatchNotes::default() };
    let files: Vec<diff::DiffFile> = sides.iter().map(|side| side.file.clone()).collect();
    matching::match_running(&mut sides, &mut matched);
    matching::match_imported(&mut sides, &mut matched);
    let has_event = |side: &DiffSide, name: &str| side.events.iter().any(|event| event.profile.name == name);
    let mut names: Vec<String> = Vec::new();
    for SideEvent { profile, .. } in &sides[0].events {
        if sides[1..].iter().any(|side| has_event(side, &profile.name)) && !names.contains(&profile.name) {
            names.push(profile.name.clone());
        }
    }
    if names.is_empty() {
        return Err(nothing_in_common(&sides));
    }
    let MatchNotes { mut notes, mut scope, has_mixed_units } = matched;
    let is_time = |name: &String| {
        let mut events = sides.iter().flat_map(|side| &side.events);
        sampled::is_clock(name) || events.any(|event| event.profile.name == *name && event.is_census())
    };
    let are_times = !has_mixed_units && names.iter().all(is_time);
    let compute = match request.compute {
        None if are_times => Compute::Time,
        Some(Compute::Time) if has_mixed_units => {
            return Err(Error::usage("-c time: not all recordings measure time")
                .try_options("-c delta-abs, or record all with pmc profile"));
        }
        Some(Compute::Time) if !are_times => {
            return Err(Error::usage(format!("-c time: {} does not measure time", clean(&names.join(", "))))
                .try_options("-c delta-abs, or record both with -e cpu-clock"));
        }
        typed => typed.unwrap_or_default(),
    };
    if let Some(side) = sides.iter().find(|side| !side.events.iter().any(|event| !event.states.is_empty()))
        && sides.iter().any(|side| side.events.iter().any(SideEvent::is_census))
    {
        notes.push(format!(
            "{} has no waits, so only running time is compared (to compare waits, record both with {})",
            side.file.path,
            side::WAITS
        ));
        scope.push("not all recordings have waits, so only running time is compared");
    }
    for side in &sides {
        for event in &side.events {
            let SideEvent { profile, .. } = event;
            if !names.contains(&profile.name) && profile.total.samples > 0 && !event.is_census() {
                notes.push(format!("{}: {} has no counterpart and is omitted", side.file.path, profile.name));
            }
        }
    }
    let has_no_tree = |side: &DiffSide| side.events.iter().all(|event| event.profile.tree.is_none());
    if request.tree && sides.iter().any(has_no_tree) {
        notes.push("no tree: not all recordings have call chains (record with -g)".to_owned());
    }
    let mut events = Vec::new();
    for name in names {
        // Take the first event with the name, since events with the same name cannot be distinguished.
        let mut take = |side: &mut DiffSide| {
            let at = side.events.iter().position(|event| event.profile.name == name)?;
            Some(side.events.remove(at))
        };
        let mut taken: Vec<Option<SideEvent>> = sides.iter_mut().map(&mut take).collect();
        let of_base = taken[0].as_ref();
        let keys = of_base.map(|event| event.keys.clone()).unwrap_or_default();
        let states = taken.iter().flatten().map(|event| event.states).max_by_key(|states| states.len());
        let states = states.unwrap_or_default();
        let thread_times = taken.iter().map(|event| event.as_ref()?.times).collect();
        if request.matches_files {
            same_files(&mut taken, &keys, &texts);
        }
        same_tasks(&mut taken, &keys);
        let (mut rows, mut trees) = (Vec::new(), Vec::new());
        for event in taken {
            let (row, tree) =
                event.map_or((None, None), |of| (Some((of.profile.total, of.profile.rows)), of.profile.tree));
            rows.push(row);
            trees.push(tree);
        }
        let how = (compute, diff::source(states));
        let mut event = diff::compare(&name, &rows, how, request.order, &texts);
        (event.states, event.thread_times) = (states, thread_times);
        if trees.iter().filter(|tree| tree.is_some()).count() > 1 && trees[0].is_some() {
            let by_dso = keys.contains(&SortKey::Dso);
            event.tree = Some(diff::tree::overlay(&trees, &event.totals, how, by_dso));
        }
        match request.streams {
            Some(most) => streams::keep_hottest(&mut event, most),
            None => notes.extend(renamed_programs_hint(&event, &keys, &texts)),
        }
        event.keys = keys;
        events.push(event);
    }
    Ok(Diff {
        texts,
        by_stream: request.streams.is_some(),
        files,
        compute,
        events,
        has_mixed_units,
        notes,
        scope,
    })
}

/// Returns the error for recordings without a common event, with the events of each.
fn nothing_in_common(sides: &[DiffSide]) -> Error {
    let list = |side: &DiffSide| {
        let names: Vec<_> = side.events.iter().map(|event| clean(&event.profile.name)).collect();
        format!("{}: {}", clean(&side.file.path), names.join(", "))
    };
    let all: Vec<String> = sides.iter().map(list).collect();
    let error = Error::new("the recordings have no event in common").detail(all.join("\n"));
    let measures = |side: &DiffSide| side.events.iter().any(|event| event.measure.is_some());
    match sides.iter().all(measures) {
        true => error
            .why("their clocks count different modes: one includes the kernel or user code, the other does not")
            .try_options("record both with the same modifiers, such as -e cpu-clock:u"),
        false => error
            .why("events are matched by name")
            .try_options("record both with the same -e, or both with pmc profile"),
    }
}

/// Replaces the path of a source file with the base's path of the file with the same name, so that programs
/// built in different folders can be compared by line. Skips file names that occur more than once in either
/// recording.
fn same_files(events: &mut [Option<SideEvent>], keys: &[SortKey], texts: &StringTable) {
    let Some((Some(base), others)) = events.split_first_mut() else { return };
    let name = |file: StringId| texts.get(file).rsplit('/').next().unwrap_or_default();
    let mut of_base: FxHashMap<&str, FxHashSet<StringId>> = FxHashMap::default();
    files(base, keys, |file| {
        of_base.entry(name(*file)).or_default().insert(*file);
    });
    for event in others.iter_mut().flatten() {
        let mut own: FxHashMap<&str, FxHashSet<StringId>> = FxHashMap::default();
        files(event, keys, |file| {
            own.entry(name(*file)).or_default().insert(*file);
        });
        files(event, keys, |file| {
            let only = |of: &FxHashMap<&str, FxHashSet<StringId>>| {
                of.get(name(*file)).filter(|files| files.len() == 1)?.iter().next().copied()
            };
            if let (Some(base), Some(_)) = (only(&of_base), only(&own)) {
                *file = base;
            }
        });
    }
}

/// Names each thread and process after the last recording that contains a name for it. perf compares only
/// ids. With this change, a thread that was renamed between two recordings has a single row, as in perf.
fn same_tasks(events: &mut [Option<SideEvent>], keys: &[SortKey]) {
    let mut newest: FxHashMap<i64, StringId> = FxHashMap::default();
    for event in events.iter_mut().flatten() {
        for (_, cell) in cells(event, keys) {
            if let RowCell::Task(id, name) = *cell {
                newest.insert(id, name);
            }
        }
    }
    for event in events.iter_mut().flatten() {
        for (key, cell) in cells(event, keys) {
            if let (SortKey::Thread | SortKey::Process, RowCell::Task(id, _) | RowCell::Number(id)) =
                (key, &*cell)
                && let Some(name) = newest.get(id)
            {
                *cell = RowCell::Task(*id, *name);
            }
        }
    }
}

/// Iterates over the cells of an event's rows, with their sort keys.
fn cells<'a>(
    event: &'a mut SideEvent,
    keys: &'a [SortKey],
) -> impl Iterator<Item = (SortKey, &'a mut RowCell)> {
    event.profile.rows.iter_mut().flat_map(|row| keys.iter().copied().cycle().zip(row.cells.iter_mut()))
}

/// Calls `look` for each source file in an event's rows.
fn files(event: &mut SideEvent, keys: &[SortKey], mut look: impl FnMut(&mut StringId)) {
    for (key, cell) in cells(event, keys) {
        match (key, cell) {
            (SortKey::SrcLine, RowCell::Line(file, _)) | (SortKey::SrcFile, RowCell::Text(file)) => {
                look(file)
            }
            _ => {}
        }
    }
}

/// Returns a hint if few rows match because the same functions belong to programs with different names.
fn renamed_programs_hint(event: &DiffEvent, keys: &[SortKey], texts: &StringTable) -> Option<String> {
    let dso = keys.iter().position(|key| *key == SortKey::Dso)?;
    let symbol = keys.iter().position(|key| *key == SortKey::Symbol)?;
    let total = event.totals[0].as_ref()?.period as f64;
    let matched = |line: &&diff::DiffRow| line.values[1..].iter().any(|value| value.samples > 0);
    let sum: f64 = event.lines.iter().filter(matched).map(|line| line.values[0].period as f64).sum();
    if total == 0.0 || sum / total >= MATCHED {
        return None;
    }
    let elsewhere = |line: &diff::DiffRow| {
        event.lines.iter().any(|other| {
            other.cells[symbol] == line.cells[symbol]
                && other.cells[dso] != line.cells[dso]
                && other.values[1..].iter().any(|value| value.samples > 0)
        })
    };
    let costly = event.lines.iter().filter(|line| line.values[0].period as f64 > total / 100.0);
    let Some(RowCell::Symbol(_, name)) =
        costly.filter(|line| !matched(line)).find(|line| elsewhere(line)).map(|line| line.cells[symbol])
    else {
        return None;
    };
    Some(format!(
        "the same functions occur in programs with different names (such as {}): -s sym compares them by function name",
        texts.get(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::measure::RunningMeasure;
    use super::*;
    use crate::session::samples::SampleValue;
    use pmc_sys::abi::Attr;
    use pmc_sys::abi::attr::Flag;

    #[test]
    fn duplicate_name_in_either_recording_is_not_matched() {
        let mut texts = StringTable::default();
        let mut event = |files: &[&str]| {
            let row = |file: &&str| sampled::TableRow {
                cells: [RowCell::Text(texts.add(file))].into(),
                own: SampleValue::default(),
                total: SampleValue::default(),
                ..sampled::TableRow::default()
            };
            let rows = files.iter().map(row).collect();
            let profile = sampled::ProfileEvent { rows, ..sampled::ProfileEvent::default() };
            Some(SideEvent { profile, ..SideEvent::default() })
        };
        let mut events = [
            event(&["a/only.c", "a/mod.rs", "a/two.c", "b/two.c"]),
            event(&["z/only.c", "a/mod.rs", "z/mod.rs", "z/two.c"]),
            event(&["z/mod.rs"]),
        ];
        same_files(&mut events, &[SortKey::SrcFile], &texts);
        let files = |number: usize| -> Vec<&str> {
            let rows = &events[number].as_ref().unwrap().profile.rows;
            let file = |row: &sampled::TableRow| match row.cells[0] {
                RowCell::Text(file) => texts.get(file),
                _ => "",
            };
            rows.iter().map(file).collect()
        };
        assert_eq!(files(1), ["a/only.c", "a/mod.rs", "z/mod.rs", "z/two.c"]);
        assert_eq!(files(2), ["a/mod.rs"]);
    }

    /// Returns a recording with one row per event.
    fn side(events: Vec<(&str, Attr, RowCell)>, keys: &[SortKey]) -> DiffSide {
        let event = |(name, attr, cell): &(&str, Attr, RowCell)| {
            let own = SampleValue { samples: 9, period: 9, ..SampleValue::default() };
            let row = sampled::TableRow { cells: [*cell].into(), own: own.clone(), ..Default::default() };
            let name = (*name).to_owned();
            let profile = sampled::ProfileEvent { name, total: own, rows: vec![row], ..Default::default() };
            let measure = RunningMeasure::from_attr(attr);
            SideEvent { profile, measure, keys: keys.to_vec(), ..SideEvent::default() }
        };
        DiffSide {
            file: diff::DiffFile { path: "file".to_owned(), ..diff::DiffFile::default() },
            notes: Vec::new(),
            name_failures: Vec::new(),
            damage: Vec::new(),
            events: events.iter().map(event).collect(),
            names: FxHashSet::default(),
            overloaded: BTreeSet::new(),
            is_imported: false,
        }
    }

    fn compared(sides: Vec<DiffSide>, keys: &[SortKey], texts: StringTable) -> Result<Diff> {
        let analysis = AnalysisRequest { keys: keys.to_vec(), ..AnalysisRequest::default() };
        let request = DiffRequest { files: Vec::new(), analysis, wait_keys: None, ..DiffRequest::default() };
        compare(sides, &request, texts)
    }

    #[test]
    fn renamed_thread_is_one_row() {
        let mut texts = StringTable::default();
        let (old, new) = (texts.add("old"), texts.add("new"));
        for key in [SortKey::Thread, SortKey::Process] {
            let cells = [RowCell::Task(812, old), RowCell::Task(812, new), RowCell::Number(812)];
            let sides = cells.map(|cell| side(vec![("cycles", Attr::new(0, 0), cell)], &[key]));
            let diff = compared(sides.into(), &[key], texts.clone()).unwrap();
            let [line] = &diff.events[0].lines[..] else { panic!("{:?}", diff.events[0].lines) };
            assert_eq!(*line.cells, [RowCell::Task(812, new)]);
            assert!(line.values.iter().all(|value| value.samples == 9), "{line:?}");
        }
    }

    #[test]
    fn clocks_are_matched_by_their_attributes() {
        let clock = |name: &'static str, excluded: &[Flag]| {
            let mut attr = Attr::new(1, u64::from(name.starts_with("task-clock")));
            excluded.iter().for_each(|flag| attr.set(*flag, true));
            (name, attr, RowCell::Number(1))
        };
        let names = |base: &[(&'static str, &[Flag])], new: &[(&'static str, &[Flag])]| -> Vec<String> {
            let clocks =
                |of: &[(&'static str, &[Flag])]| of.iter().map(|(name, not)| clock(name, not)).collect();
            let sides = [base, new].map(|of| side(clocks(of), &[SortKey::Cpu]));
            let diff = compared(sides.into(), &[SortKey::Cpu], StringTable::default());
            let events = diff.map(|diff| diff.events).unwrap_or_default();
            assert!(events.iter().all(|event| event.totals[1].is_some()));
            events.into_iter().map(|event| event.name).collect()
        };
        let user: &[Flag] = &[Flag::ExcludeKernel, Flag::ExcludeHv];
        let kernel: &[Flag] = &[Flag::ExcludeUser, Flag::ExcludeHv];
        let both = names(
            &[("cpu-clock:u", user), ("cpu-clock:k", kernel)],
            &[("task-clock:k", kernel), ("task-clock:u", user)],
        );
        assert_eq!(both, ["cpu-clock:u", "cpu-clock:k"]);
        let twice =
            names(&[("cpu-clock", &[]), ("cpu-clock", &[])], &[("task-clock", &[]), ("task-clock", &[])]);
        assert_eq!(twice, ["cpu-clock"]);
        assert_eq!(names(&[("cpu-clock:P", &[Flag::ExcludeGuest])], &[("task-clock", &[])]), ["cpu-clock:P"]);
        assert_eq!(
            names(&[("cpu-clock/period=9/u", user)], &[("task-clock:u", user)]),
            ["cpu-clock/period=9/u"]
        );
        assert!(names(&[("cpu-clock/period=9/u", user)], &[("task-clock", &[])]).is_empty());
        assert!(names(&[("cpu-clock:u", user)], &[("task-clock:k", kernel)]).is_empty());
        // A user-mode clock in the base is not compared with a kernel-mode clock, even if both have the same
        // name.
        assert!(names(&[("clock", user), ("clock", kernel)], &[("task-clock:k", kernel)]).is_empty());
    }
}
