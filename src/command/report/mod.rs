//! `pmc report`: opens a recording, has it added up and named, and hands the profile to a view.

pub(in crate::command) mod browse;
mod listings;
pub(in crate::command) mod plan;
pub(in crate::command) mod progress;
pub(in crate::command) mod symbols;
pub(in crate::command) mod theirs;
pub(in crate::command) mod unwinding;
pub(in crate::command) mod words;

use std::io::{BufWriter, Write, stdout};

use super::screen;
use crate::abi::sample_type;
use crate::cli::report::Report;
use crate::error::{Error, Exit, Result, say};
use crate::perfdata::Reader;
use crate::profile::sampled::{self, Code, ModuleTrust, Profile, Texts, callers, query, table, trust};
use crate::session::samples::{self, Samples};
use crate::session::{Resolved, Session, Wanted, location};
use crate::symbol::Depth;
use crate::view;
use plan::{Header, Plan};
use progress::Progress;
use symbols::Symbols;
use unwinding::Unwinding;
use words::Names;

/// Modules whose remedy is worked out.
const REMEDIES: usize = 5;
/// One in so many of all frames must lack its name for that: asking the package manager takes longer than many a report.
const REMEDY_FROM: u64 = 200;

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

/// Whether the recording was made on this machine, so that its processes may still be there.
pub(in crate::command) fn is_from_here(reader: &Reader) -> bool {
    let here = rustix::system::uname();
    let same = |recorded: &Option<String>, here: &std::ffi::CStr| {
        recorded.as_ref().is_none_or(|name| name.as_bytes() == here.to_bytes())
    };
    let features = reader.features();
    same(&features.hostname, here.nodename()) && same(&features.os_release, here.release())
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
    let mut resolved = location::resolve(&session.history, &mut samples, plan.max_stack);
    let lines = plan.keys.iter().any(|key| key.needs_lines());
    let depth = plan.depth.unwrap_or(if has_chains || lines { Depth::Inlines } else { Depth::Names });
    let mut texts = Texts::default();
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
        extras: &samples.extras,
        extra_kinds: &wanted.extras,
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
    wanted: &Wanted,
    resolved: &mut Resolved,
    samples: &mut Samples,
    code: &Code,
    texts: &Texts,
) {
    if let Some(pattern) = &plan.ignore_callees {
        callers::ignore_callees(resolved, code, texts, &|name| pattern.finds(name));
    }
    if let Some(pattern) = &plan.parent {
        let kinds = &wanted.extras;
        callers::mark_parents(resolved, &mut samples.extras, kinds, code, texts, &|name| pattern.finds(name));
        if plan.exclude_other {
            for (event, value) in callers::without_others(resolved, &samples.extras, kinds) {
                samples.filtered[event] += value;
            }
        }
    }
}

/// The events of a recording with their sums.
pub(in crate::command) fn sources(session: &Session, samples: &Samples) -> Vec<query::Source> {
    let groups = session.reader.features().groups.as_deref().unwrap_or_default();
    let leader = |index: usize| {
        let inside = |group: &&crate::perfdata::feature::GroupDesc| {
            let first = group.leader as usize;
            (first..first.saturating_add(group.members as usize)).contains(&index)
        };
        groups.iter().find(inside).map_or(index, |group| group.leader as usize)
    };
    let events = session.reader.events().iter().enumerate();
    events
        .map(|(index, event)| query::Source {
            name: event.name(),
            leader: leader(index),
            total: samples.totals[index],
            filtered: samples.filtered[index],
        })
        .collect()
}

fn modules(session: &Session, symbols: &Symbols, quality: &trust::Quality) -> Vec<ModuleTrust> {
    let mut list: Vec<ModuleTrust> = quality
        .modules
        .iter()
        .map(|(&module, &(frames, unnamed))| {
            let Some(module) = module else {
                let missing = vec!["nothing was mapped at these addresses".to_owned()];
                let name = sampled::code::UNKNOWN.to_owned();
                return ModuleTrust {
                    path: name.clone(),
                    name,
                    frames,
                    unnamed,
                    missing,
                    ..ModuleTrust::default()
                };
            };
            let of = &session.history.modules()[module as usize];
            let trust = symbols.id(module).map(|id| symbols.symbolizer.trust(id)).unwrap_or_default();
            let shown =
                |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
            ModuleTrust {
                path: of.path.to_string_lossy().into_owned(),
                name: of.short_name(),
                build_id: of
                    .build_id
                    .as_ref()
                    .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
                binary: shown(&trust.binary),
                debug: shown(&trust.debug),
                symbols: trust.symbols,
                lines: trust.lines,
                frames,
                unnamed,
                missing: trust.missing.iter().map(ToString::to_string).collect(),
                remedy: None,
            }
        })
        .collect();
    list.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.path.cmp(&b.path)));
    list
}

/// Works out what would help the modules with most nameless frames: that may ask the package manager.
fn add_remedies(modules: &mut [ModuleTrust], session: &Session, symbols: &Symbols) {
    let frames: u64 = modules.iter().map(|module| module.frames).sum();
    let matters = |module: &&mut ModuleTrust| module.unnamed > 0 && module.unnamed >= frames / REMEDY_FROM;
    let mut worst: Vec<&mut ModuleTrust> = modules.iter_mut().filter(matters).collect();
    worst.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    for module in worst.into_iter().take(REMEDIES) {
        let all = session.history.modules().iter().enumerate();
        let mut same = all.filter(|(_, of)| of.path.to_string_lossy() == module.path);
        let id = same.find_map(|(number, _)| symbols.id(number as u32));
        let missing = id.map(|id| symbols.symbolizer.trust(id).missing).unwrap_or_default();
        module.remedy = missing.first().and_then(crate::symbol::Missing::remedy);
    }
}

fn trust_of(
    session: &Session,
    samples: &Samples,
    quality: &trust::Quality,
    ends: trust::Ends,
    has_stacks: bool,
) -> sampled::Trust {
    let name = |module: u32| session.history.modules()[module as usize].short_name();
    let mut broken: Vec<(String, u64)> = quality
        .broken
        .iter()
        .filter(|_| has_stacks)
        .map(|(module, samples)| (module.map_or_else(|| sampled::code::UNKNOWN.to_owned(), name), *samples))
        .collect();
    broken.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let sum = |pick: fn(&(u64, u64)) -> u64| quality.modules.values().map(pick).sum();
    let typed = session.reader.features().cmdline.as_deref().unwrap_or_default();
    sampled::Trust {
        unwound_live: typed.iter().any(|word| word.contains("dwarf")) && ends.copied == 0,
        samples: samples.totals.iter().map(|total| total.samples).sum(),
        // The same losses told in two ways: by records, and by the counters themselves.
        lost_samples: session
            .facts
            .lost_samples
            .max(session.facts.lost_by_events.saturating_add(samples.lost)),
        lost_records: session.facts.lost_records,
        throttled: session.facts.throttled,
        unknown: samples.unknown,
        stacks: if has_stacks { quality.stacks } else { 0 },
        rooted: quality.rooted,
        broken,
        ends,
        frames: sum(|counts| counts.0),
        unnamed: sum(|counts| counts.1),
        notes: session.notes().map(ToString::to_string).collect(),
    }
}
