//! `pmc report`: opens a recording, has it added up and named, and hands the profile to a view.

pub(in crate::command) mod browse;
mod listings;
pub(in crate::command) mod plan;
pub(in crate::command) mod theirs;

use std::io::{BufWriter, Write, stdout};

use super::progress::Progress;
use super::screen;
use crate::abi::sample_type;
use crate::analysis::names::Names;
use crate::analysis::quality::{add_remedies, modules, trust_of};
use crate::analysis::symbols::Symbols;
use crate::analysis::unwinding::Unwinding;
use crate::analysis::{is_from_here, sources};
use crate::cli::report::Report;
use crate::error::{Error, Exit, Result, say};
use crate::perfdata::Reader;
use crate::profile::sampled::{Code, Profile, StringTable, callers, query, table, trust};
use crate::session::samples::{self, Samples};
use crate::session::{Resolved, SampleQuery, Session, resolver};
use crate::symbol::Depth;
use crate::view;
use plan::{Header, Plan};

/// Runs it.
///
/// # Errors
/// When something typed means nothing, the recording cannot be read, or the output not be written.
pub(super) fn run(typed: &Report) -> Result<Exit> {
    say::be_quiet(typed.quiet);
    let mut plan = Plan::new(typed)?;
    let reader = open(&plan.input)?;
    if plan.browses && screen::is_there() {
        plan.symbols.live = is_from_here(&reader);
        plan.settle(reader.events())?;
        return browse::run(typed, plan, reader, None);
    }
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    let written = |error| Error::output("the report", error);
    if plan.header != Header::No {
        view::header::write(&mut out, &super::header::of(&reader)).map_err(written)?;
    }
    if plan.header == Header::Only {
        out.flush().map_err(written)?;
        return Ok(Exit::Done);
    }
    plan.symbols.live = is_from_here(&reader);
    let session = Session::open(reader)?;
    if typed.stats || typed.tasks || typed.mmaps {
        listings::write(&mut out, typed, &session).map_err(written)?;
        out.flush().map_err(written)?;
        return Ok(Exit::Done);
    }
    plan.settle(session.reader.events())?;
    let profile = profile(typed, &plan, &session)?;
    view::report::write(&mut out, &profile, &plan.layout).map_err(written)?;
    if typed.threads && matches!(plan.layout.form, view::report::Form::Text) {
        view::listings::counts(&mut out, &listings::counts(&session)).map_err(written)?;
    }
    out.flush().map_err(written)?;
    Ok(Exit::Done)
}

/// Opens a recording.
pub(in crate::command) fn open(path: &std::path::Path) -> Result<Reader> {
    Ok(Reader::open(path)?)
}

fn profile(typed: &Report, plan: &Plan, session: &Session) -> Result<Profile> {
    let has_chains = plan.takes_chains()
        && session.reader.layouts().iter().any(|l| l.sample_type() & sample_type::CALLCHAIN != 0);
    let wanted = plan.wanted(typed, session)?;
    let mut symbols = Symbols::new(&session.history, plan.symbols.clone())?;
    let (mut samples, ends) = {
        let bar = Progress::new("reading samples", session.index.count(crate::record::kind::SAMPLE));
        let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
        let unwinding = Unwinding::new(&session.history, &symbols, machine, plan.max_stack);
        let samples = samples::collect(session, &wanted, Some(&unwinding), &|more| bar.more(more))?;
        (samples, unwinding.ends())
    };
    let mut resolved = resolver::resolve(&session.history, &mut samples, plan.max_stack);
    let lines = plan.keys.iter().any(|key| key.needs_lines());
    let depth = plan.depth.unwrap_or(if has_chains || lines { Depth::Inlines } else { Depth::Names });
    let mut texts = StringTable::default();
    let code = {
        let bar = Progress::new("finding names", 0);
        let progress = |p: crate::symbol::Progress| bar.at(p.done as u64, p.total as u64);
        symbols.name(&session.history, &resolved.locations, depth, typed.no_demangle, &mut texts, &progress)
    };
    change_stacks(plan, &wanted, &mut resolved, &mut samples, &code, &texts);
    let mut names = Names::new(session).with_payloads(&samples.payloads).with_symbols(&symbols);
    names.raw_traces = typed.raw_trace;
    let input = table::Input {
        rows: &resolved.rows,
        resolved: &resolved,
        attributes: &samples.attributes,
        attribute_kinds: &wanted.attributes,
        code: &code,
        words: &names,
    };
    let quality = trust::quality(&input, &texts);
    let query = plan.query(has_chains);
    let profile = query::answer(&input, &sources(session, &samples), &query, texts).profile;
    let mut modules = modules(session, &symbols, &quality);
    add_remedies(&mut modules, session, &symbols);
    Ok(Profile {
        modules,
        trust: trust_of(session, &samples, &quality, ends, has_chains && !wanted.ignore_stacks),
        ..profile
    })
}

/// `--ignore-callees` and `--parent`.
fn change_stacks(
    plan: &Plan,
    wanted: &SampleQuery,
    resolved: &mut Resolved,
    samples: &mut Samples,
    code: &Code,
    texts: &StringTable,
) {
    if let Some(pattern) = &plan.ignore_callees {
        callers::ignore_callees(resolved, code, texts, &|name| pattern.finds(name));
    }
    if let Some(pattern) = &plan.parent {
        let kinds = &wanted.attributes;
        callers::mark_parents(resolved, &mut samples.attributes, kinds, code, texts, &|name| {
            pattern.finds(name)
        });
        if plan.exclude_other {
            for (event, value) in callers::without_others(resolved, &samples.attributes, kinds) {
                samples.filtered[event] += value;
            }
        }
    }
}
