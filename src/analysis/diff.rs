//! Recordings compared event by event.
//!
//! Receives the files' names and a [`DiffRequest`]; reads them one after the other, with words in common, and
//! hands on the [`Comparison`]. What a difference is worth is left to `profile::diff`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Analysis, AnalysisRequest, ProgressSink, has_chains, quality};
use crate::error::{Error, Result};
use crate::perfdata::Reader;
use crate::profile::diff::{self, Comparison, Compute, Event};
use crate::profile::sampled::{self, Cell, Order, Query, SortKey, StringTable};
use crate::session::Session;
use crate::symbol::Depth;
use crate::text::clean;

/// Below this part of the base in rows that another recording has too, names of programs are suspected to
/// differ.
const MATCHED: f64 = 0.5;

/// What is compared, and how.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// The recordings, the base first.
    pub files: Vec<PathBuf>,
    /// What each is asked. Callers are kept where a tree is wanted.
    pub analysis: AnalysisRequest,
    /// What is asked of its rows.
    pub query: Query,
    /// The call trees too.
    pub tree: bool,
    /// What a difference is.
    pub compute: Compute,
    /// What rows are sorted by: the base (0), or the difference of the first, second … recording after it.
    pub order: usize,
}

/// A recording, added up.
#[derive(Debug)]
struct DiffSide {
    file: diff::File,
    /// What is worth knowing about the file.
    notes: Vec<String>,
    events: Vec<sampled::Event>,
}

/// Recordings, added up, with words in common.
#[derive(Debug)]
pub struct DiffSides {
    all: Vec<DiffSide>,
    texts: StringTable,
}

impl DiffSides {
    /// Reads the recordings.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn load(request: &DiffRequest, progress: &dyn ProgressSink) -> Result<Self> {
        let mut texts = StringTable::default();
        let read = |path: &PathBuf| read(path, request, &mut texts, progress);
        let all = request.files.iter().map(read).collect::<Result<_>>()?;
        Ok(Self { all, texts })
    }

    /// Compares them with the base.
    ///
    /// # Errors
    /// When no event of the base is in another recording.
    pub fn compare(self, request: &DiffRequest) -> Result<Comparison> {
        compare(self.all, request, self.texts)
    }
}

fn read(
    path: &Path,
    request: &DiffRequest,
    texts: &mut StringTable,
    progress: &dyn ProgressSink,
) -> Result<DiffSide> {
    let session = Arc::new(Session::open(Reader::open(path)?)?);
    let has_tree = request.tree && has_chains(&session.reader);
    let asked = AnalysisRequest { callers: has_tree, ..request.analysis.clone() };
    let mut analysis = Analysis::load(session.clone(), &asked, progress)?;
    let is_deep = has_tree || asked.needs_deep_names();
    let depth = if is_deep { Depth::Inlines } else { Depth::Names };
    let named = analysis.name(depth, std::mem::take(texts), progress);
    let query = Query {
        keys: asked.keys.clone(),
        // A branch that is too small in one recording may be large in the other: none is left out here.
        tree: has_tree.then_some(Order::Caller),
        ..request.query.clone()
    };
    let profile = analysis.answer(named, &query).profile;
    *texts = profile.texts;
    let path = path.display().to_string();
    Ok(DiffSide {
        notes: quality::notes(&session).iter().map(|note| format!("{path}: {note}")).collect(),
        file: diff::File { path, samples: analysis.sample_count(), lost: quality::lost(&session) },
        events: profile.events,
    })
}

fn compare(mut sides: Vec<DiffSide>, request: &DiffRequest, texts: StringTable) -> Result<Comparison> {
    let mut notes: Vec<String> = sides.iter_mut().flat_map(|side| std::mem::take(&mut side.notes)).collect();
    let files: Vec<diff::File> = sides.iter().map(|side| side.file.clone()).collect();
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
        return Err(Error::new("no event of the base is in another recording")
            .detail(all.join("\n"))
            .why("events are matched by name")
            .try_this("record both with the same -e"));
    }
    for side in &sides {
        for event in
            side.events.iter().filter(|event| !names.contains(&event.name) && event.total.samples > 0)
        {
            notes.push(format!("{}: {} has no counterpart and is left out", side.file.path, event.name));
        }
    }
    if request.tree && sides.iter().any(|side| side.events.iter().all(|event| event.tree.is_none())) {
        notes.push("no tree: not all recordings have call chains (record with -g)".to_owned());
    }
    let mut events = Vec::new();
    for name in names {
        // The first of that name: a recording with two of one name cannot say which is which.
        let mut take = |side: &mut DiffSide| {
            let at = side.events.iter().position(|event| event.name == name)?;
            Some(side.events.remove(at))
        };
        let taken: Vec<Option<sampled::Event>> = sides.iter_mut().map(&mut take).collect();
        let (mut rows, mut trees) = (Vec::new(), Vec::new());
        for event in taken {
            let (row, tree) = event.map_or((None, None), |of| (Some((of.total, of.rows)), of.tree));
            rows.push(row);
            trees.push(tree);
        }
        let mut event = diff::compare(&name, &rows, request.compute, request.order, &texts);
        if trees.iter().filter(|tree| tree.is_some()).count() > 1 && trees[0].is_some() {
            event.tree = Some(diff::tree::overlay(&trees, &event.totals, request.compute));
        }
        notes.extend(suspicion(&event, &request.analysis.keys, &texts));
        events.push(event);
    }
    Ok(Comparison {
        texts,
        keys: request.analysis.keys.clone(),
        files,
        compute: request.compute,
        events,
        notes,
    })
}

/// What stands to reason when hardly anything matches: the same functions in programs of other names.
fn suspicion(event: &Event, keys: &[SortKey], texts: &StringTable) -> Option<String> {
    let dso = keys.iter().position(|key| *key == SortKey::Dso)?;
    let symbol = keys.iter().position(|key| *key == SortKey::Symbol)?;
    let total = event.totals[0].as_ref()?.period as f64;
    let matched = |line: &&diff::Line| line.values[1..].iter().any(|value| value.samples > 0);
    let sum: f64 = event.lines.iter().filter(matched).map(|line| line.values[0].period as f64).sum();
    if total == 0.0 || sum / total >= MATCHED {
        return None;
    }
    let elsewhere = |line: &diff::Line| {
        event.lines.iter().any(|other| {
            other.cells[symbol] == line.cells[symbol]
                && other.cells[dso] != line.cells[dso]
                && other.values[1..].iter().any(|value| value.samples > 0)
        })
    };
    let costly = event.lines.iter().filter(|line| line.values[0].period as f64 > total / 100.0);
    let Some(Cell::Symbol(_, name)) =
        costly.filter(|line| !matched(line)).find(|line| elsewhere(line)).map(|line| line.cells[symbol])
    else {
        return None;
    };
    Some(format!(
        "the same functions are in programs of different names ({} is one): -s sym compares them by name",
        texts.get(name)
    ))
}
