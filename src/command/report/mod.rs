//! `pmc report`: opens a recording, aggregates and symbolizes its samples, and passes the profile to a
//! view.

mod plan;

use std::io::Write;
use std::sync::Arc;

pub(super) use plan::ReportPlan;
use plan::{HeaderChoice, ListKind};
use pmc_analysis::analysis::script::{self, DumpOrder, ScriptLine};
use pmc_analysis::analysis::{Analysis, counts, header, recording_quality, tasks};
use pmc_analysis::profile::sampled::{Profile, StringTable};
use pmc_analysis::session::{MappingDetail, Session};
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::{recording_screen, screen};
use pmc_formats::import;
use pmc_symbols::symbol::MissingDataReason;
use pmc_sys::error::{Error, Exit, Result};

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the output cannot be written.
pub(super) fn run(mut plan: ReportPlan) -> Result<Exit> {
    let reader = import::open(&plan.input)?;
    if plan.browses && screen::is_there() {
        return recording_screen::run(plan.screen(), reader);
    }
    let mut exit = Exit::Done;
    let mut out = PagedOutput::to(plan.stream);
    let written = |error| Error::output("the report", error);
    if plan.header != HeaderChoice::No {
        pmc_view::header::write(&mut out, &header::of(&reader)).map_err(written)?;
    }
    if plan.header != HeaderChoice::Only {
        let detail = match plan.listing {
            Some(ListKind::Tasks { maps: true }) => MappingDetail::Access,
            _ => MappingDetail::Names,
        };
        let session = Arc::new(Session::open_with(reader, detail)?);
        if plan.thread_counts && counts::holds_counts(&session) {
            pmc_view::listings::counts(&mut out, &tasks::counts(&session)).map_err(written)?;
            exit = recording_quality::warn(&session);
        } else if let Some(listing) = plan.listing {
            list(&mut out, &session, listing)?;
            exit = recording_quality::warn(&session);
        } else {
            let (profile, failures) = profile(&mut plan, session.clone())?;
            pmc_view::report::write(&mut out, &profile, &plan.layout).map_err(written)?;
            // Text for a reader shows most failures next to the missing names. But kernel names may be
            // complete even without the file that the user specified, so report its failure here.
            let is_shown = |failure: &MissingDataReason| {
                plan.layout.shows_missing_names() && !matches!(failure, MissingDataReason::GivenVmlinux(_))
            };
            recording_quality::warn_of_names(failures.into_iter().filter(|failure| !is_shown(failure)));
            exit = match plan.layout.form.is_bare() {
                true => recording_quality::warn(&session),
                false => recording_quality::warn_of_damage(&session),
            };
            if plan.thread_counts {
                pmc_view::listings::counts(&mut out, &tasks::counts(&session)).map_err(written)?;
            }
        }
    }
    out.finish().map_err(written)?;
    Ok(exit)
}

fn list(out: &mut dyn Write, session: &Session, listing: ListKind) -> Result<()> {
    let written = |error| Error::output("the list", error);
    if listing == ListKind::Dump {
        script::dump(session, DumpOrder::Time, &mut |line| match line {
            ScriptLine::Dumped(record) => pmc_view::script::dump_record(out, record).map_err(written),
            ScriptLine::Torn { offset, file, words } => {
                pmc_view::script::dump_torn(out, offset, file, words).map_err(written)
            }
            ScriptLine::Sample(_) | ScriptLine::Record(..) => Ok(()),
        })?;
    }
    match listing {
        ListKind::Records | ListKind::Dump => {
            pmc_view::listings::stats(out, &tasks::record_counts(session), session.index.unknown)
        }
        ListKind::Tasks { maps } => pmc_view::listings::tasks(out, &tasks::tasks(session, maps)),
    }
    .map_err(written)
}

/// Returns the profile, and the errors that occurred while reading symbol files.
fn profile(plan: &mut ReportPlan, session: Arc<Session>) -> Result<(Profile, Vec<MissingDataReason>)> {
    plan.request.resolve(&session.reader)?;
    let query = plan.request.question(&plan.query, &session.reader);
    let depth = plan.depth(&session.reader);
    let mut analysis = Analysis::load(session, &plan.request, &Bars)?;
    let mut named = analysis.name(depth, StringTable::default(), &Bars);
    analysis.assess(&mut named, true);
    Ok((analysis.answer(named, &query).profile, analysis.name_failures()))
}
