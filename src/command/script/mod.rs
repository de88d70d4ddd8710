//! `pmc script`: names all addresses first, then goes through the records in the order of time and has each printed.

mod fields;
mod places;
mod printing;

use std::io::{BufWriter, Write, stdout};

use super::progress::Progress;
use super::report::{open, plan, theirs};
use crate::abi::sample_type;
use crate::analysis::is_from_here;
use crate::analysis::symbols::Symbols;
use crate::analysis::unwinding::Unwinding;
use crate::cli::script::Script;
use crate::error::{Error, Exit, Result};
use crate::perfdata::Event;
use crate::profile::script::{Field, Places};
use crate::record::kind;
use crate::session::addresses::{self, Kinds};
use crate::session::samples::SampleQuery;
use crate::session::{Session, order};
use crate::symbol::Depth;
use crate::view::script::{Clock, Layout};
use crate::view::{self};
use printing::Printing;

/// Runs it.
///
/// # Errors
/// When something typed means nothing, the recording cannot be read, or the output not be written.
pub(super) fn run(typed: &Script) -> Result<Exit> {
    theirs::of_script(&typed.theirs)?;
    let path = typed.input.clone().or(typed.file.clone()).unwrap_or_else(|| "perf.data".into());
    let reader = open(&path)?;
    // The writer of samples gathers lines itself.
    let mut out = stdout().lock();
    let written = |error| Error::output("the samples", error);
    if typed.header_only || typed.header && !typed.json {
        let mut header = BufWriter::new(&mut out);
        view::header::write(&mut header, &super::header::of(&reader)).map_err(written)?;
        header.flush().map_err(written)?;
    }
    if typed.header_only {
        return Ok(Exit::Done);
    }
    let options = super::plan::symbol_options(&typed.symbol_files, is_from_here(&reader));
    let session = Session::open(reader)?;
    let layout = layout(typed, &session)?;
    let wanted = wanted(typed, &session)?;
    let mut symbols = Symbols::new(&session.history, options)?;
    let machine = session.reader.features().arch.clone().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let has = |list: &[Field]| layout.fields.iter().any(|fields| fields.has_any(list));
    let has_bit = |bit: u64| session.reader.layouts().iter().any(|l| l.sample_type() & bit != 0);
    let has_copies = has_bit(sample_type::STACK_USER);
    let lines = has(&[Field::SrcLine, Field::SrcCode]);
    let inlines = !typed.no_inline && (typed.inline || has_copies || lines);
    let kinds = Kinds {
        chains: has(&[Field::Ip, Field::Sym, Field::SrcCode])
            || !typed.symbols.is_empty()
            || !typed.dsos.is_empty()
            || typed.json,
        branches: has(&[Field::BrStack, Field::BrStackSym, Field::BrStackOff])
            || typed.json && has_bit(sample_type::BRANCH_STACK),
        data: has(&[Field::Addr]) && has(&[Field::Sym, Field::Dso])
            || typed.json && has_bit(sample_type::ADDR),
        in_calls: inlines && !has_copies,
    };
    let found = if kinds.chains || kinds.branches || kinds.data {
        let bar = Progress::new("reading samples", session.index.count(kind::SAMPLE));
        let unwinding = Unwinding::new(&session.history, &symbols, &machine, typed.max_stack).like_perf();
        addresses::collect(&session, &wanted, kinds, Some(&unwinding), &|more| bar.more(more))?
    } else {
        addresses::Addresses::default()
    };
    let places = {
        let bar = Progress::new("finding names", 0);
        let depth = if inlines { Depth::Inlines } else { Depth::Names };
        let wish = places::Wish { depth, raw_names: typed.no_demangle };
        let progress = |p: crate::symbol::Progress| bar.at(p.done as u64, p.total as u64);
        places::name(&session.history, &found, &mut symbols, wish, &progress)
    };
    let unwinding = Unwinding::new(&session.history, &symbols, &machine, typed.max_stack).like_perf();
    let shown = shown_kinds(typed);
    let mut printing = Printing::new(typed, &session, &wanted, (&found, &places), &symbols, &layout, kinds)
        .unwinding(has_copies.then_some(&unwinding as _));
    let wants = |kind| kind == kind::SAMPLE || shown.contains(&kind);
    order::records(&session, wants, |raw, position| {
        if raw.kind == kind::SAMPLE {
            printing.sample(raw, position, &mut out)
        } else {
            printing.record(raw, position, &mut out)
        }
    })?;
    printing.finish(&mut out)?;
    out.flush().map_err(written)?;
    Ok(Exit::Done)
}

fn layout(typed: &Script, session: &Session) -> Result<Layout> {
    let features = session.reader.features();
    let has_chains = session.reader.layouts().iter().any(|l| l.sample_type() & sample_type::CALLCHAIN != 0);
    Ok(Layout {
        fields: fields::of(typed, session.reader.events())?,
        events: session.reader.events().iter().map(Event::name).collect(),
        nanoseconds: typed.ns,
        clock: match (typed.reltime, typed.deltatime) {
            (true, _) => Clock::SinceFirst,
            (_, true) => Clock::SinceLast,
            _ => Clock::Absolute,
        },
        wall: features
            .clock_data
            .as_ref()
            .map(|clock| clock.wall_clock_ns.wrapping_sub(clock.clockid_time_ns) as i64),
        has_chains: has_chains && !typed.hide_call_graph,
        is_aarch64: features.arch.as_deref() == Some("aarch64"),
        full_paths: typed.full_source_path,
        stop_at: typed.stop_bt.clone(),
        json: typed.json,
    })
}

/// The kinds of records besides samples.
fn shown_kinds(typed: &Script) -> Vec<u32> {
    let choices: [(bool, &[u32]); 9] = [
        (typed.show_task_events, &[kind::COMM, kind::FORK, kind::EXIT]),
        (typed.show_mmap_events, &[kind::MMAP, kind::MMAP2]),
        (typed.show_switch_events, &[kind::SWITCH, kind::SWITCH_CPU_WIDE]),
        (typed.show_lost_events, &[kind::LOST, kind::LOST_SAMPLES]),
        (typed.show_namespace_events, &[kind::NAMESPACES]),
        (typed.show_cgroup_events, &[kind::CGROUP]),
        (typed.show_bpf_events, &[kind::KSYMBOL, kind::BPF_EVENT]),
        (typed.show_text_poke_events, &[kind::TEXT_POKE]),
        (typed.show_round_events, &[kind::FINISHED_ROUND]),
    ];
    choices.iter().filter(|(is_shown, _)| *is_shown).flat_map(|(_, kinds)| *kinds).copied().collect()
}

fn wanted(typed: &Script, session: &Session) -> Result<SampleQuery> {
    Ok(SampleQuery { ignore_stacks: typed.hide_call_graph, ..plan::filtered(&typed.filter, session)? })
}

/// Numbers of the addresses at which one of these functions, in one of these modules, stands; `None`: all.
fn leaves(typed: &Script, places: &Places) -> Option<Vec<bool>> {
    if typed.symbols.is_empty() && typed.dsos.is_empty() {
        return None;
    }
    let has = |list: &[String], name: Option<&str>| {
        list.is_empty() || name.is_some_and(|name| list.iter().any(|wanted| wanted == name))
    };
    let is_wanted = |number| {
        let Some(place) = places.at(number).last() else { return false };
        let dso = place.dso.as_deref();
        let short = dso.map(|path| path.rsplit('/').next().unwrap_or(path));
        has(&typed.symbols, place.symbol.as_deref()) && (has(&typed.dsos, dso) || has(&typed.dsos, short))
    };
    Some((0..places.len() as u32).map(is_wanted).collect())
}
