//! `pmc export` and `pmc flamegraph`: opens a recording, has it added up and named, and hands stacks or the
//! answer of a report to a view.

mod destination;
mod plan;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::progress::Bars;
use crate::analysis::{Analysis, NamedSamples, quality};
use crate::error::{Exit, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::{Profile, Query, StackProfile, StringTable};
use crate::session::Session;
use crate::view::export::{self, Contents, folded};
pub(super) use plan::Plan;

/// Runs it.
///
/// # Errors
/// When a recording cannot be read, or the file not be written.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    let before = plan.before.as_deref().map(|path| before(plan, path)).transpose()?;
    let Loaded { analysis, mut named, query } = Loaded::new(plan, &plan.input)?;
    let answer = if plan.format.is_table() {
        analysis.assess(&mut named, true);
        named.answer(&query).profile
    } else {
        Profile::default()
    };
    named.with_stacks(&query, |stacks| {
        let contents = Contents {
            stacks,
            event: event(&query, stacks),
            answer: &answer,
            layout: &plan.layout,
            title: &plan.title,
            before: before.as_deref(),
        };
        destination::write(&plan.output, |out: &mut dyn Write| export::write(out, plan.format, &contents))
    })?;
    quality::warn(analysis.session());
    Ok(Exit::Done)
}

/// A recording, ready to be asked.
struct Loaded {
    analysis: Analysis,
    named: NamedSamples,
    query: Query,
}

impl Loaded {
    fn new(plan: &Plan, path: &Path) -> Result<Self> {
        let session = Arc::new(Session::open(Reader::open(path)?)?);
        let mut request = plan.request.clone();
        request.settle(&session.reader)?;
        let question = request.question(&plan.query, &session.reader);
        let query = Query { event: plan.event(&session.reader)?, ..question };
        let depth = plan.depth.unwrap_or(request.depth(&session.reader));
        let mut analysis = Analysis::load(session, &request, &Bars)?;
        let named = analysis.name(depth, StringTable::default(), &Bars);
        Ok(Self { analysis, named, query })
    }
}

/// The event that is meant where a format has room for one.
fn event(query: &Query, stacks: &StackProfile<'_>) -> usize {
    query.event.unwrap_or(stacks.first_event())
}

/// The folded stacks of a recording that another one is compared with.
fn before(plan: &Plan, path: &Path) -> Result<Vec<(String, u64)>> {
    let Loaded { named, query, .. } = Loaded::new(plan, path)?;
    Ok(named.with_stacks(&query, |stacks| folded::with_marks(stacks, event(&query, stacks))))
}
