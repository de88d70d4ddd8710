//! One recording's part: read, added up and named with the words that all recordings share.

use std::path::Path;

use super::plan::Plan;
use crate::abi::sample_type;
use crate::analysis::names::Names;
use crate::analysis::symbols::Symbols;
use crate::analysis::unwinding::Unwinding;
use crate::analysis::{is_from_here, sources};
use crate::cli::diff::Diff;
use crate::cli::sample_filter::SampleFilter;
use crate::command::progress::Progress;
use crate::command::report::open;
use crate::command::report::plan::filtered;
use crate::error::Result;
use crate::profile::diff::File;
use crate::profile::sampled::table::Input;
use crate::profile::sampled::{Event, Filter, Order, Query, SortKey, StringTable, query, sort};
use crate::session::{SampleQuery, Session, resolver, samples};
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

/// Reads a recording.
pub(super) fn read(path: &Path, typed: &Diff, plan: &Plan, texts: &mut StringTable) -> Result<Side> {
    let reader = open(path)?;
    let options = crate::command::plan::symbol_options(&typed.symbol_files, is_from_here(&reader));
    let session = Session::open(reader)?;
    let has_chains = session.reader.layouts().iter().any(|l| l.sample_type() & sample_type::CALLCHAIN != 0);
    let has_tree = typed.tree && has_chains;
    let wanted = wanted(typed, plan, has_tree, &session)?;
    let mut symbols = Symbols::new(&session.history, options)?;
    let mut found = {
        let bar = Progress::new("reading samples", session.index.count(crate::record::kind::SAMPLE));
        let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
        let unwinding = Unwinding::new(&session.history, &symbols, machine, DEEPEST);
        samples::collect(&session, &wanted, Some(&unwinding), &|more| bar.more(more))?
    };
    let resolved = resolver::resolve(&session.history, &mut found, DEEPEST);
    let lines = plan.keys.iter().any(|key| key.needs_lines());
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
        attributes: &found.attributes,
        attribute_kinds: &wanted.attributes,
        code: &code,
        words: &names,
    };
    let query = Query {
        keys: plan.keys.clone(),
        // A branch that is too small in one recording may be large in the other: none is left out here.
        tree: has_tree.then_some(Order::Caller),
        relative: typed.percentage == "relative",
        filter: Filter { only: plan.only.clone(), ..Filter::default() },
        ..Query::default()
    };
    let words = std::mem::take(texts);
    let profile = query::answer(&input, &sources(&session, &found), &query, words).profile;
    *texts = profile.texts;
    Ok(Side {
        file: File {
            path: path.display().to_string(),
            samples: found.totals.iter().map(|total| total.samples).sum(),
            lost: session.facts.lost_samples.max(session.facts.lost_records),
        },
        notes: session.notes().map(|note| format!("{}: {note}", path.display())).collect(),
        events: profile.events,
    })
}

fn wanted(typed: &Diff, plan: &Plan, has_tree: bool, session: &Session) -> Result<SampleQuery> {
    let filter = SampleFilter {
        comms: typed.comms.clone(),
        pid: typed.pid.clone(),
        tid: typed.tid.clone(),
        cpu: typed.cpu.clone(),
        time: typed.time.clone(),
    };
    Ok(SampleQuery {
        attributes: sort::attributes(&plan.keys, SLICE),
        ignore_comms: !plan.keys.contains(&SortKey::Comm),
        ignore_stacks: !has_tree,
        ..filtered(&filter, session)?
    })
}
