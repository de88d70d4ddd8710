//! One recording's part: read, added up and named with the words that all recordings share.

use std::path::Path;

use rustc_hash::FxHashSet;

use super::plan::Plan;
use crate::cli::diff::Diff;
use crate::command::report::plan::{comms, cpus, times};
use crate::command::report::progress::Progress;
use crate::command::report::symbols::{self, Symbols};
use crate::command::report::unwinding::Unwinding;
use crate::command::report::words::Names;
use crate::command::report::{is_from_here, open};
use crate::error::Result;
use crate::profile::diff::File;
use crate::profile::sampled::table::{Input, Row, tables};
use crate::profile::sampled::{Order, SortKey, Texts, Tree, Value, tree};
use crate::record::layout::bits;
use crate::session::{Session, Wanted, location, samples};
use crate::symbol::Depth;

/// Length of a slice for the sort key `time`, in nanoseconds.
const SLICE: u64 = 100_000_000;
/// Longest call chain.
const DEEPEST: usize = 127;

/// A recording, added up.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) file: File,
    /// What is worth knowing about the file.
    pub(super) notes: Vec<String>,
    pub(super) events: Vec<Event>,
}

/// One event of a recording.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    /// All that shares are parts of.
    pub(super) total: Value,
    pub(super) rows: Vec<Row>,
    pub(super) tree: Option<Tree>,
}

/// Reads a recording.
pub(super) fn read(path: &Path, typed: &Diff, plan: &Plan, texts: &mut Texts) -> Result<Side> {
    let reader = open(path)?;
    let options = symbols::options(&typed.symbol_files, is_from_here(&reader));
    let session = Session::open(reader)?;
    let has_chains = session.reader.layouts().iter().any(|l| l.sample_type() & bits::CALLCHAIN != 0);
    let has_tree = typed.tree && has_chains;
    let wanted = wanted(typed, plan, has_tree, &session)?;
    let mut symbols = Symbols::new(&session.history, options)?;
    let mut found = {
        let bar = Progress::new("reading samples", session.index.count(crate::record::kind::SAMPLE));
        let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
        let unwinding = Unwinding::new(&session.history, &symbols, machine, DEEPEST);
        samples::collect(&session, &wanted, Some(&unwinding), &|more| bar.more(more))?
    };
    let resolved = location::resolve(&session.history, &mut found, DEEPEST);
    let lines = plan.keys.iter().any(|key| matches!(key, SortKey::SrcLine | SortKey::SrcFile));
    let depth = if has_tree || lines { Depth::Inlines } else { Depth::Names };
    let code = {
        let bar = Progress::new("finding names", 0);
        let progress = |p: crate::symbol::Progress| bar.at(p.done as u64, p.total as u64);
        symbols.name(&session.history, &resolved.locations, depth, typed.no_demangle, texts, &progress)
    };
    let names = Names::new(&session).with_payloads(&found.payloads);
    let input = Input {
        rows: &resolved.rows,
        resolved: &resolved,
        extras: &found.extras,
        extra_kinds: &wanted.extras,
        code: &code,
        words: &names,
    };
    let count = session.reader.events().len();
    let tables = tables(&input, &plan.keys, false, &plan.only, count, texts);
    let mut trees: Vec<Option<Tree>> = if has_tree {
        // A branch that is too small in one recording may be large in the other: none is left out here.
        let growth = tree::Growth { order: Order::Caller, ..tree::Growth::default() };
        let totals: Vec<u64> = found.totals.iter().map(|total| total.period).collect();
        tree::trees(&input, growth, &totals).into_iter().map(Some).collect()
    } else {
        Vec::new()
    };
    trees.resize_with(count, || None);
    let relative = typed.percentage == "relative";
    let parts = session.reader.events().iter().zip(tables).zip(trees).enumerate();
    let events = parts.map(|(index, ((event, (rows, left_out)), tree))| {
        let mut filtered = found.filtered[index];
        filtered += left_out;
        let total = found.totals[index];
        Event { name: event.name(), total: if relative { less(total, filtered) } else { total }, rows, tree }
    });
    Ok(Side {
        file: File {
            path: path.display().to_string(),
            samples: found.totals.iter().map(|total| total.samples).sum(),
            lost: session.facts.lost_samples.max(session.facts.lost_records),
        },
        notes: session.notes().map(|note| format!("{}: {note}", path.display())).collect(),
        events: events.collect(),
    })
}

fn less(all: Value, part: Value) -> Value {
    Value {
        samples: all.samples.saturating_sub(part.samples),
        period: all.period.saturating_sub(part.period),
        squares: (all.squares - part.squares).max(0.0),
        weight: all.weight.saturating_sub(part.weight),
    }
}

fn wanted(typed: &Diff, plan: &Plan, has_tree: bool, session: &Session) -> Result<Wanted> {
    let mut extras = Vec::new();
    for extra in plan.keys.iter().filter_map(|key| key.extra(SLICE)) {
        if !extras.contains(&extra) {
            extras.push(extra);
        }
    }
    let set = |list: &[i32]| (!list.is_empty()).then(|| list.iter().copied().collect::<FxHashSet<i32>>());
    Ok(Wanted {
        extras,
        ignore_comms: !plan.keys.contains(&SortKey::Comm),
        ignore_stacks: !has_tree,
        times: typed.time.as_deref().map(|text| times(text, session)).transpose()?.into_iter().collect(),
        cpus: cpus(typed.cpu.as_deref())?,
        pids: set(&typed.pid),
        tids: set(&typed.tid),
        comms: comms(&typed.comms, session),
        ..Wanted::default()
    })
}
