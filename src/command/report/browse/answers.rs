//! The thread that answers: always the newest question, from the newest stage.
//!
//! Receives jobs; of several questions that wait, and of several stages, only the last counts. Hands answers to the board.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::Board;
use super::stage::Stage;
use crate::analysis::names::Names;
use crate::error::{Error, Result};
use crate::profile::sampled::{Answer, Order, Profile, Query, query};
use crate::tui::{ExportForm, Spot};
use crate::view;
use crate::view::report::{Form, Layout};

/// What is to be done.
pub(super) enum Job {
    /// More is known.
    Stage(Arc<Stage>),
    /// Answer this from now on.
    Answer(Box<Query>),
    /// A function over time.
    History(Spot),
    /// Write what the last query shows.
    Export(ExportForm, PathBuf),
}

/// Works until nobody asks any more.
pub(super) fn run(jobs: &Receiver<Job>, board: &Board, layout: &Layout) {
    let mut stage: Option<Arc<Stage>> = None;
    let mut query: Option<Query> = None;
    let mut answer: Option<Arc<Answer>> = None;
    while let Ok(job) = jobs.recv() {
        let mut is_new = false;
        let mut history = None;
        let mut exports = Vec::new();
        for job in std::iter::once(job).chain(jobs.try_iter()) {
            match job {
                Job::Stage(more) => (stage, is_new) = (Some(more), true),
                Job::Answer(asked) => (query, is_new) = (Some(*asked), true),
                Job::History(spot) => history = Some(spot),
                Job::Export(form, path) => exports.push((form, path)),
            }
        }
        let (Some(stage), Some(query)) = (&stage, &query) else { continue };
        let names = names(stage);
        if is_new {
            let new = Arc::new(answered(stage, &names, query));
            answer = Some(new.clone());
            board.put(|poll| poll.answer = Some(new));
        }
        if let Some(spot) = history
            && let Some(times) = answer.as_ref().and_then(|answer| answer.times.as_ref())
        {
            let sums = stage.with(&names, |input| {
                query::history(input, query, &spot.dso, &spot.symbol, times, &stage.texts)
            });
            board.put(|poll| poll.history = Some((spot, sums)));
        }
        for (form, path) in exports {
            let said = match export(stage, &names, query, layout, form, &path) {
                Ok(()) => format!("{} is written", path.display()),
                Err(error) => error.headline(),
            };
            board.put(|poll| poll.said = Some(said));
        }
    }
}

fn names(stage: &Stage) -> Names<'_> {
    Names::new(&stage.ground.session).with_payloads(&stage.ground.samples.payloads)
}

fn answered(stage: &Stage, names: &Names<'_>, query: &Query) -> Answer {
    let answer =
        stage.with(names, |input| query::answer(input, &stage.ground.sources, query, stage.texts.clone()));
    Answer {
        profile: Profile { modules: stage.modules.clone(), trust: stage.trust.clone(), ..answer.profile },
        ..answer
    }
}

/// Writes the view to a new file that only its owner can read.
fn export(
    stage: &Stage,
    names: &Names<'_>,
    query: &Query,
    layout: &Layout,
    form: ExportForm,
    path: &Path,
) -> Result<()> {
    if form == ExportForm::PerfData {
        return Err(Error::new("this is a recording already: copy its file, or write .folded or .json"));
    }
    let doing = || format!("writing {}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut out = BufWriter::new(file.map_err(|error| Error::io(doing(), error))?);
    // Everything: what is too small for the screen is not too small for a file.
    let has_tree = query.totals || query.tree.is_some();
    let tree = match form {
        ExportForm::Folded => has_tree.then_some(Order::Caller),
        _ => query.tree,
    };
    let whole = answered(stage, names, &Query { limit: 0.0, tree, ..query.clone() });
    let written = match form {
        ExportForm::Folded => view::folded::write(&mut out, &whole.profile, query.event.unwrap_or(0)),
        _ => {
            let layout = Layout { form: Form::Json, rows: usize::MAX, ..layout.clone() };
            view::report::write(&mut out, &whole.profile, &layout)
        }
    };
    written.and_then(|()| out.flush()).map_err(|error| Error::io(doing(), error))
}
