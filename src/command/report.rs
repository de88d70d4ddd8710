//! `pmc report`: opens a recording, aggregates and symbolizes its samples, and passes the profile to a
//! view.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use pmc_analysis::analysis::script::{self, DumpOrder, ScriptLine};
use pmc_analysis::analysis::{Analysis, counts, header, recording_quality, tasks};
use pmc_analysis::profile::sampled::{Profile, Query, StringTable};
use pmc_analysis::session::{MappingDetail, Session};
use pmc_command::input::input;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::recording_screen::{self, ScreenPlan};
use pmc_command::screen;
use pmc_formats::import;
use pmc_symbols::symbol::MissingDataReason;
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::terminal::Paint;
use pmc_view::report::request::{HeaderChoice, ListKind, ReportRequest};
use pmc_view::report::{ChainPosition, ReportLayout};

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the output cannot be written.
pub(super) fn run(request: &ReportRequest) -> Result<Exit> {
    let input = input(request.input.as_ref());
    let reader = import::open(&input)?;
    if request.browses && screen::is_there() {
        return recording_screen::run(screen_of(request, &input), reader);
    }
    let mut exit = Exit::Done;
    let mut out = PagedOutput::to(request.stream);
    let written = |error| Error::output("the report", error);
    if request.header != HeaderChoice::No {
        pmc_view::header::write(&mut out, &header::read(&reader)).map_err(written)?;
    }
    if request.header != HeaderChoice::Only {
        let detail = match request.listing {
            Some(ListKind::Tasks { maps: true }) => MappingDetail::Access,
            _ => MappingDetail::Names,
        };
        let session = Arc::new(Session::open_with(reader, detail)?);
        if request.thread_counts && counts::holds_counts(&session) {
            pmc_view::listings::counts(&mut out, &tasks::counts(&session)).map_err(written)?;
            exit = recording_quality::warn(&session);
        } else if let Some(listing) = request.listing {
            list(&mut out, &session, listing)?;
            exit = recording_quality::warn(&session);
        } else {
            let layout = request.layout();
            let (profile, failures) = profile(request, session.clone())?;
            pmc_view::report::write(&mut out, &profile, &layout).map_err(written)?;
            // Text for a reader shows most failures next to the missing names. But kernel names may be
            // complete even without the file that the user specified, so report its failure here.
            let is_shown = |failure: &MissingDataReason| {
                layout.shows_missing_names() && !matches!(failure, MissingDataReason::GivenVmlinux(_))
            };
            recording_quality::warn_of_names(failures.into_iter().filter(|failure| !is_shown(failure)));
            exit = match layout.form.is_bare() {
                true => recording_quality::warn(&session),
                false => recording_quality::warn_of_damage(&session),
            };
            if request.thread_counts {
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

/// Returns the request for the full-screen interface.
fn screen_of(request: &ReportRequest, input: &Path) -> ScreenPlan {
    let query = request.query();
    // Exports do not depend on the terminal's width, and the screen always shows call chains as a tree.
    let tree = query.tree.or(query.chains.map(|chains| chains.order));
    let layout = ReportLayout {
        chains: ChainPosition::Below,
        width: None,
        paint: Paint::default(),
        tree_lines: None,
        ..request.layout()
    };
    let plan = ScreenPlan::new(input, request.analysis());
    ScreenPlan {
        depth: request.depth.unwrap_or(plan.depth),
        background: request.background,
        query: Query { tree, chains: None, ..query },
        layout,
        ..plan
    }
}

/// Returns the profile, and the errors that occurred while reading symbol files.
fn profile(request: &ReportRequest, session: Arc<Session>) -> Result<(Profile, Vec<MissingDataReason>)> {
    let mut samples = request.analysis();
    samples.resolve(&session.reader)?;
    let query = samples.full_query(&request.query(), &session.reader);
    let depth = request.depth.unwrap_or(samples.depth(&session.reader));
    let mut analysis = Analysis::load(session, &samples, &Bars)?;
    let mut named = analysis.name(depth, StringTable::default(), &Bars);
    analysis.assess(&mut named, true);
    Ok((analysis.answer(named, &query).profile, analysis.name_failures()))
}
