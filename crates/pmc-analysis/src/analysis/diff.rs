//! Compares recordings, event by event.
//!
//! Reads the files of a [`DiffRequest`] one after the other, with a shared string table, and returns the
//! [`Diff`]. `profile::diff` computes the differences.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::request::AnalysisRequest;
use super::{Analysis, ProgressSink, has_chains, header, recording_quality};
use crate::import;
use crate::profile::diff::{self, Compute, Diff, DiffEvent, streams};
use crate::profile::sampled::trust::{self, TrustDetail};
use crate::profile::sampled::{
    self, Query, RowCell, SortKey, StackDirection, StackProfile, StringId, StringTable,
};
use crate::session::Session;
use pmc_perfdata::perfdata::{Features, Reader, RecordingNote};
use pmc_symbols::symbol::{Depth, MissingDataReason};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, generic, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::text::clean;

/// Minimum fraction of the base recording's total that must be in rows that also exist in the other
/// recording. Below it, pmc looks for the same functions under different program names.
const MATCHED: f64 = 0.5;

/// Which recordings to compare, and how.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// The recordings, starting with the base.
    pub files: Vec<PathBuf>,
    /// Names of the recordings in messages, in the same order. Recordings without a name are shown by path.
    pub labels: Vec<String>,
    /// How to analyse each recording. Callers are kept if `tree` or `streams` is set.
    pub analysis: AnalysisRequest,
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
}

/// The aggregated events of one recording.
#[derive(Debug)]
struct DiffSide {
    file: diff::DiffFile,
    /// Notes on the file.
    notes: Vec<String>,
    /// Errors from reading files that provide symbol names.
    name_failures: Vec<MissingDataReason>,
    /// The notes that report damage.
    damage: Vec<String>,
    events: Vec<sampled::ProfileEvent>,
    /// For each event, the excluded modes; `None` for events that are not kernel clocks.
    clocks: Vec<Option<ExcludedModes>>,
    /// Whether another program wrote the profile, in its own format.
    is_imported: bool,
}

/// Whether a clock excludes user mode, the kernel, and idle time.
type ExcludedModes = [bool; 3];

/// The aggregated recordings, with a shared string table.
#[derive(Debug)]
pub struct DiffSides {
    all: Vec<DiffSide>,
    texts: StringTable,
}

impl DiffSides {
    /// Reads the recordings.
    ///
    /// # Errors
    /// Fails if a recording cannot be read.
    pub fn load(request: &DiffRequest, progress: &dyn ProgressSink) -> Result<Self> {
        let mut texts = StringTable::default();
        let read = |(number, path): (usize, &PathBuf)| {
            let label = request.labels.get(number).cloned();
            read(path, label.unwrap_or_else(|| path.display().to_string()), request, &mut texts, progress)
        };
        let all = request.files.iter().enumerate().map(read).collect::<Result<_>>()?;
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

fn read(
    path: &Path,
    label: String,
    request: &DiffRequest,
    texts: &mut StringTable,
    progress: &dyn ProgressSink,
) -> Result<DiffSide> {
    let session = Arc::new(Session::open(import::open(path)?)?);
    let has_tree = request.tree && has_chains(&session.reader);
    let by_stream = request.streams.is_some();
    if by_stream && !session.reader.layouts().have(sample_type::CALLCHAIN | sample_type::BRANCH_STACK) {
        return Err(Error::new(format!("{label} has no call chains"))
            .why("--stream compares call chains")
            .try_this("record both with -g"));
    }
    let asked = AnalysisRequest {
        callers: has_tree || by_stream,
        branch_history: by_stream,
        ..request.analysis.clone()
    };
    let mut analysis = Analysis::load(session.clone(), &asked, progress)?;
    let is_deep = has_tree || by_stream || asked.needs_deep_names();
    let depth = if is_deep { Depth::Inlines } else { Depth::Names };
    let mut named = analysis.name(depth, std::mem::take(texts), progress);
    analysis.assess(&mut named, false);
    let quality = named.quality();
    let query = Query {
        keys: asked.keys.clone(),
        // A branch that is too small to show in one recording may be large in another, so no branch is
        // omitted here.
        tree: has_tree.then_some(StackDirection::Caller),
        ..request.query.clone()
    };
    let events = if by_stream {
        let events = named.with_stacks(&query, |stacks| of_streams(stacks, &query));
        *texts = std::mem::take(&mut named.texts);
        events
    } else {
        let profile = analysis.answer(named, &query).profile;
        *texts = profile.texts;
        profile.events
    };
    let named = |note: &RecordingNote| format!("{label}: {note}");
    let notes = session.notes();
    Ok(DiffSide {
        name_failures: analysis.name_failures(),
        notes: recording_quality::notes(&session).iter().map(|note| format!("{label}: {note}")).collect(),
        damage: notes.iter().filter(|note| note.is_damage()).map(named).collect(),
        file: diff::DiffFile {
            path: label,
            samples: analysis.sample_count(),
            lost: recording_quality::lost(&session),
            trust: trust::statement(&quality.trust, &[], TrustDetail::Brief).summary,
            machine: machine(session.reader.features()),
            loses_samples: notes.iter().any(RecordingNote::loses_samples),
            sampled_ns: sampled_ns(&session.reader),
        },
        events,
        clocks: session.reader.events().iter().map(|event| excluded_by_clock(&event.attr)).collect(),
        is_imported: session.reader.is_converted(),
    })
}

/// Returns the times of the first and last sample. `None` for an imported profile, whose clock may have
/// started with the program.
fn sampled_ns(reader: &Reader) -> Option<(u64, u64)> {
    let time = reader.features().sample_time.as_ref().filter(|_| !header::is_imported(reader))?;
    Some((time.first, time.last))
}

/// Returns the properties of the recorded machine on which its speed depends.
fn machine(features: &Features) -> Vec<(&'static str, String)> {
    let properties = [
        ("CPU", features.cpu_desc.clone()),
        ("number of CPUs", features.nr_cpus.as_ref().map(|cpus| cpus.online.to_string())),
        ("host name", features.hostname.clone()),
        ("kernel", features.os_release.clone()),
    ];
    properties.into_iter().filter_map(|(property, value)| Some((property, value?))).collect()
}

/// Returns the events with whole call chains as rows.
fn of_streams(stacks: &StackProfile<'_>, query: &Query) -> Vec<sampled::ProfileEvent> {
    let rows = streams::rows(stacks, &query.keys);
    let of = stacks.events.iter().zip(rows).map(|(event, rows)| sampled::ProfileEvent {
        name: event.name.clone(),
        total: if query.relative { &event.kept } else { &event.total }.clone(),
        rows,
        ..sampled::ProfileEvent::default()
    });
    of.collect()
}

fn compare(mut sides: Vec<DiffSide>, request: &DiffRequest, texts: StringTable) -> Result<Diff> {
    let mut notes: Vec<String> = sides.iter_mut().flat_map(|side| std::mem::take(&mut side.notes)).collect();
    let files: Vec<diff::DiffFile> = sides.iter().map(|side| side.file.clone()).collect();
    match_clocks(&mut sides, &mut notes);
    let has_mixed_units = match_imported(&mut sides, &mut notes);
    let in_others =
        |name: &str| sides[1..].iter().any(|side| side.events.iter().any(|event| event.name == name));
    let mut names: Vec<String> = Vec::new();
    for event in sides[0].events.iter().filter(|event| in_others(&event.name)) {
        if !names.contains(&event.name) {
            names.push(event.name.clone());
        }
    }
    if names.is_empty() {
        let list = |side: &DiffSide| {
            let names: Vec<_> = side.events.iter().map(|event| clean(&event.name)).collect();
            names.join(", ")
        };
        let all: Vec<String> =
            sides.iter().map(|side| format!("{}: {}", clean(&side.file.path), list(side))).collect();
        return Err(Error::new("the recordings have no event in common")
            .detail(all.join("\n"))
            .why("events are matched by name")
            .try_this("record both with the same -e"));
    }
    let are_times = !has_mixed_units && names.iter().all(|name| sampled::is_clock(name));
    let compute = match request.compute {
        None if are_times => Compute::Time,
        Some(Compute::Time) if !are_times => {
            return Err(Error::usage(format!("-c time: {} does not measure time", clean(&names.join(", "))))
                .try_this("-c delta-abs, or record both with -e cpu-clock"));
        }
        typed => typed.unwrap_or_default(),
    };
    for side in &sides {
        for event in
            side.events.iter().filter(|event| !names.contains(&event.name) && event.total.samples > 0)
        {
            notes.push(format!("{}: {} has no counterpart and is omitted", side.file.path, event.name));
        }
    }
    if request.tree && sides.iter().any(|side| side.events.iter().all(|event| event.tree.is_none())) {
        notes.push("no tree: not all recordings have call chains (record with -g)".to_owned());
    }
    let mut events = Vec::new();
    for name in names {
        // Take the first event with the name, since events with the same name cannot be distinguished.
        let mut take = |side: &mut DiffSide| {
            let at = side.events.iter().position(|event| event.name == name)?;
            Some(side.events.remove(at))
        };
        let mut taken: Vec<Option<sampled::ProfileEvent>> = sides.iter_mut().map(&mut take).collect();
        if request.matches_files {
            same_files(&mut taken, &request.analysis.keys, &texts);
        }
        same_tasks(&mut taken, &request.analysis.keys);
        let (mut rows, mut trees) = (Vec::new(), Vec::new());
        for event in taken {
            let (row, tree) = event.map_or((None, None), |of| (Some((of.total, of.rows)), of.tree));
            rows.push(row);
            trees.push(tree);
        }
        let mut event = diff::compare(&name, &rows, compute, request.order, &texts);
        if trees.iter().filter(|tree| tree.is_some()).count() > 1 && trees[0].is_some() {
            event.tree = Some(diff::tree::overlay(&trees, &event.totals, compute));
        }
        match request.streams {
            Some(most) => streams::keep_hottest(&mut event, most),
            None => notes.extend(suspicion(&event, &request.analysis.keys, &texts)),
        }
        events.push(event);
    }
    Ok(Diff {
        texts,
        keys: request.analysis.keys.clone(),
        by_stream: request.streams.is_some(),
        files,
        compute,
        events,
        notes,
    })
}

/// Returns the modes that a kernel clock excludes; `None` for other events. For clocks, the kernel ignores
/// `precise_ip` and the bits for hypervisor and guest (`perf_swevent_hrtimer`).
fn excluded_by_clock(attr: &Attr) -> Option<ExcludedModes> {
    let excluded = [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeIdle];
    generic::is_clock(attr).then(|| excluded.map(|flag| attr.get(flag)))
}

/// Gives a recording's clock event the name of the base's clock event for the same modes. `cpu-clock` and
/// `task-clock` both sample nanoseconds of CPU time, so recordings with either can be compared.
fn match_clocks(sides: &mut [DiffSide], notes: &mut Vec<String>) {
    let Some((base, others)) = sides.split_first_mut() else { return };
    let has = |events: &[sampled::ProfileEvent], name: &str| events.iter().any(|event| event.name == name);
    for side in others {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (at, event) in base.events.iter().enumerate() {
            // If several events of the base have the same name, only the first is compared.
            let first = base.events[..at].iter().position(|other| other.name == event.name).unwrap_or(at);
            let modes = base.clocks[first];
            if modes.is_none() || base.clocks[at] != modes || has(&side.events, &event.name) {
                continue;
            }
            let is_twin = |other: &usize| {
                side.clocks[*other] == modes
                    && !has(&base.events, &side.events[*other].name)
                    && pairs.iter().all(|(_, paired)| paired != other)
            };
            if let Some(twin) = (0..side.events.len()).find(is_twin) {
                let (of_base, of_side) = (&event.name, &side.events[twin].name);
                let path = &side.file.path;
                let note = format!("{path}: {of_side} is compared with {of_base}; both are CPU time");
                // Events with the same name have the same note.
                if !notes.contains(&note) {
                    notes.push(note);
                }
                pairs.push((at, twin));
            }
        }
        for (at, twin) in pairs {
            side.events[twin].name.clone_from(&base.events[at].name);
        }
    }
}

/// Gives the only event of a recording the name of the base's only event, if one of them was imported: other
/// programs have other names for events, or none. Returns whether only one of two such events is a time.
fn match_imported(sides: &mut [DiffSide], notes: &mut Vec<String>) -> bool {
    let Some((base, others)) = sides.split_first_mut() else { return false };
    let only = |side: &DiffSide| {
        let mut sampled = (0..side.events.len()).filter(|at| side.events[*at].total.samples > 0);
        sampled.next().filter(|_| sampled.next().is_none())
    };
    let mut has_mixed_units = false;
    for side in others.iter_mut().filter(|side| side.is_imported || base.is_imported) {
        let (Some(of_base), Some(of_side)) = (only(base), only(side)) else { continue };
        let name = &base.events[of_base].name;
        let event = &mut side.events[of_side];
        if event.name != *name {
            has_mixed_units |= sampled::is_clock(&event.name) != sampled::is_clock(name);
            let path = &side.file.path;
            notes.push(format!("{path}: {} is compared with {name}, the only event of the base", event.name));
            event.name.clone_from(name);
        }
    }
    has_mixed_units
}

/// Replaces the path of a source file with the base's path of the file with the same name, so that programs
/// built in different folders can be compared by line. Skips file names that occur more than once in either
/// recording.
fn same_files(events: &mut [Option<sampled::ProfileEvent>], keys: &[SortKey], texts: &StringTable) {
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
fn same_tasks(events: &mut [Option<sampled::ProfileEvent>], keys: &[SortKey]) {
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
    event: &'a mut sampled::ProfileEvent,
    keys: &'a [SortKey],
) -> impl Iterator<Item = (SortKey, &'a mut RowCell)> {
    event.rows.iter_mut().flat_map(|row| keys.iter().copied().cycle().zip(row.cells.iter_mut()))
}

/// Calls `look` for each source file in an event's rows.
fn files(event: &mut sampled::ProfileEvent, keys: &[SortKey], mut look: impl FnMut(&mut StringId)) {
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
fn suspicion(event: &DiffEvent, keys: &[SortKey], texts: &StringTable) -> Option<String> {
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
    use super::*;
    use crate::session::samples::SampleValue;

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
            Some(sampled::ProfileEvent {
                rows: files.iter().map(row).collect(),
                ..sampled::ProfileEvent::default()
            })
        };
        let mut events = [
            event(&["a/only.c", "a/mod.rs", "a/two.c", "b/two.c"]),
            event(&["z/only.c", "a/mod.rs", "z/mod.rs", "z/two.c"]),
            event(&["z/mod.rs"]),
        ];
        same_files(&mut events, &[SortKey::SrcFile], &texts);
        let files = |number: usize| -> Vec<&str> {
            let rows = &events[number].as_ref().unwrap().rows;
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
    fn side(events: Vec<(&str, Attr, RowCell)>) -> DiffSide {
        let event = |(name, _, cell): &(&str, Attr, RowCell)| {
            let own = SampleValue { samples: 9, period: 9, ..SampleValue::default() };
            let row = sampled::TableRow { cells: [*cell].into(), own: own.clone(), ..Default::default() };
            let name = (*name).to_owned();
            sampled::ProfileEvent { name, total: own, rows: vec![row], ..Default::default() }
        };
        DiffSide {
            file: diff::DiffFile { path: "file".to_owned(), ..diff::DiffFile::default() },
            notes: Vec::new(),
            name_failures: Vec::new(),
            damage: Vec::new(),
            events: events.iter().map(event).collect(),
            clocks: events.iter().map(|(_, attr, _)| excluded_by_clock(attr)).collect(),
            is_imported: false,
        }
    }

    fn compared(sides: Vec<DiffSide>, keys: &[SortKey], texts: StringTable) -> Result<Diff> {
        let analysis = AnalysisRequest {
            keys: keys.to_vec(),
            ..AnalysisRequest::new(pmc_symbols::symbol::SymbolOptions::from_environment())
        };
        let request = DiffRequest {
            files: Vec::new(),
            labels: Vec::new(),
            analysis,
            query: Query::default(),
            tree: false,
            streams: None,
            compute: None,
            matches_files: true,
            order: 1,
        };
        compare(sides, &request, texts)
    }

    #[test]
    fn renamed_thread_is_one_row() {
        let mut texts = StringTable::default();
        let (old, new) = (texts.add("old"), texts.add("new"));
        for key in [SortKey::Thread, SortKey::Process] {
            let cells = [RowCell::Task(812, old), RowCell::Task(812, new), RowCell::Number(812)];
            let sides = cells.map(|cell| side(vec![("cycles", Attr::new(0, 0), cell)]));
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
            let sides = [base, new].map(|of| side(of.iter().map(|(name, not)| clock(name, not)).collect()));
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
