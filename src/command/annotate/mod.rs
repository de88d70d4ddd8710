//! `pmc annotate`: opens a recording, finds the functions that samples hit, and hands their listings to a view.

use std::io::{BufWriter, Write, stdout};

use clap::{Args, FromArgMatches};

use super::progress::Progress;
use super::report::browse::{self, Opening};
use super::report::open;
use super::report::plan::filtered;
use super::{plan, screen};
use crate::analysis::annotate::functions::choose;
use crate::analysis::annotate::listing::How;
use crate::analysis::annotate::{functions, listing};
use crate::analysis::is_from_here;
use crate::analysis::symbols::Symbols;
use crate::cli::annotate::Annotate;
use crate::cli::report::Report;
use crate::error::{Error, Exit, Result, say};
use crate::profile::annotate::{Basis, Listing};
use crate::session::{SampleQuery, Session, resolver, samples};
use crate::symbol::Progress as Done;
use crate::symbol::disassemble::Syntax;
use crate::terminal::Stream;
use crate::view;
use crate::view::annotate::{Facts, Layout};

/// How many functions are shown where nobody says so: clap's default.
const FUNCTIONS: usize = 3;

/// Runs it.
///
/// # Errors
/// When the recording cannot be read, no function of that name has samples, or the output cannot be written.
pub(super) fn run(typed: &Annotate) -> Result<Exit> {
    say::be_quiet(typed.quiet);
    let input = typed.input.clone().unwrap_or_else(|| "perf.data".into());
    let reader = open(&input)?;
    if browses(typed) && screen::is_there() {
        let opening =
            Opening { name: name(typed).map(ToOwned::to_owned), dsos: typed.dsos.clone(), how: how(typed) };
        return browse::code(&as_report(typed)?, reader, opening);
    }
    let options = plan::symbol_options(&typed.symbol_files, is_from_here(&reader));
    let session = Session::open(reader)?;
    let wanted = wanted(typed, &session)?;
    let mut symbols = Symbols::new(&session.history, options)?;
    let mut found = {
        let bar = Progress::new("reading samples", session.index.count(crate::record::kind::SAMPLE));
        samples::collect(&session, &wanted, None, &|more| bar.more(more))?
    };
    let resolved = resolver::resolve(&session.history, &mut found, 1);
    let all = {
        let bar = Progress::new("finding names", 0);
        let progress = |p: Done| bar.at(p.done as u64, p.total as u64);
        functions::functions(
            session.history.modules(),
            &mut symbols,
            &resolved,
            found.totals.len(),
            &progress,
        )
    };
    let events = listing::events(session.reader.events(), &found.totals);
    let how = how(typed);
    let limit = typed.percent_limit.unwrap_or(0.0);
    let chosen = choose(name(typed), &typed.dsos, &all)?;
    let mut listings = Vec::new();
    let mut left_out = 0;
    for function in chosen {
        let share = |(event, own): (usize, &samples::Value)| {
            let total = found.totals[event].period;
            if total == 0 { 0.0 } else { own.period as f64 / total as f64 * 100.0 }
        };
        if function.own.iter().enumerate().map(share).fold(0.0, f64::max) < limit {
            continue;
        }
        if is_full(typed, &listings) {
            left_out += 1;
            continue;
        }
        listings.push(listing::listing(&mut symbols, function, &events, &how));
    }
    let facts = Facts {
        samples: found.totals.iter().map(|total| total.samples).sum(),
        lost: session.facts.lost_samples.max(session.facts.lost_records),
        functions: all.len(),
        left_out,
        notes: session.notes().map(ToString::to_string).collect(),
    };
    write(typed, &listings, &facts)
}

/// Nothing was typed that asks for text: a terminal shows the screen.
fn browses(typed: &Annotate) -> bool {
    let of_text = typed.stdio || typed.json || typed.source_only || typed.print_line || typed.full_paths;
    let of_columns = typed.show_nr_samples || typed.asm_raw || typed.percent_type != "local-period";
    let of_length = typed.max_rows > 0 || typed.percent_limit.is_some() || typed.functions != FUNCTIONS;
    !(of_text || of_columns || of_length)
}

/// What `pmc report` would have been told, to look at the same samples.
fn as_report(typed: &Annotate) -> Result<Report> {
    let usual = Report::augment_args(clap::Command::new("report").no_binary_name(true));
    let usual = usual
        .try_get_matches_from(std::iter::empty::<&str>())
        .and_then(|matches| Report::from_arg_matches(&matches))
        .map_err(|error| Error::usage(error.to_string()))?;
    Ok(Report {
        input: typed.input.clone(),
        filter: typed.filter.clone(),
        symbol_files: typed.symbol_files.clone(),
        quiet: typed.quiet,
        ..usual
    })
}

fn how(typed: &Annotate) -> How {
    How {
        syntax: if typed.disassembler_style == "intel" { Syntax::Intel } else { Syntax::Att },
        with_source: !typed.no_source,
        symfs: typed.symbol_files.symfs.clone(),
        kcore: typed.kcore.clone(),
    }
}

/// Whether no more functions are wanted.
fn is_full(typed: &Annotate, listings: &[Listing]) -> bool {
    name(typed).is_none() && typed.functions > 0 && listings.len() >= typed.functions
}

fn name(typed: &Annotate) -> Option<&str> {
    typed.function.as_deref().or(typed.symbol.as_deref())
}

fn write(typed: &Annotate, listings: &[Listing], facts: &Facts) -> Result<Exit> {
    let colour = Stream::Output.has_colour();
    let layout = Layout {
        json: typed.json,
        basis: match typed.percent_type.as_str() {
            "local-hits" | "hits-local" => Basis::LocalHits,
            "global-period" | "period-global" => Basis::GlobalPeriod,
            "global-hits" | "hits-global" => Basis::GlobalHits,
            _ => Basis::LocalPeriod,
        },
        source: !typed.no_source,
        instructions: !typed.source_only,
        show_samples: typed.show_nr_samples,
        file_names: typed.print_line,
        full_paths: typed.full_paths,
        raw_bytes: typed.asm_raw,
        rows: if typed.max_rows == 0 { usize::MAX } else { typed.max_rows },
        colour,
    };
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    view::annotate::write(&mut out, listings, facts, &layout)
        .and_then(|()| out.flush())
        .map_err(|error| Error::output("the listing", error))?;
    Ok(Exit::Done)
}

fn wanted(typed: &Annotate, session: &Session) -> Result<SampleQuery> {
    Ok(SampleQuery { ignore_comms: true, ignore_stacks: true, ..filtered(&typed.filter, session)? })
}
