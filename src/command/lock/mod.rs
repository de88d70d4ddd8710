//! `pmc lock`: records waits for locks, and shows them.
//!
//! ```text
//! plan ── record (if something is recorded) ──► recording ── analysis::lock ──► pmc_view::lock
//!           └─ lock_owners: reads the locks meanwhile ──────────┘
//! ```

mod plan;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

pub(super) use plan::LockPlan;
use plan::{ContentionPlan, LockAnswer, UserLockPlan};
use pmc_analysis::session::Session;
use pmc_command::destination::Destination;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::record::{self, RecordDisplay};
use pmc_formats::import;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result};
use pmc_sys::sys::signal;
use pmc_tools::lock::user::owner_reader::LockOwnerReader;
use pmc_tools::lock::{contention, user};

/// Runs the command.
///
/// # Errors
/// Fails if recording fails, if the recording cannot be read or has no lock events, or if the output cannot
/// be written.
pub(super) fn run(plan: LockPlan) -> Result<Exit> {
    let quiet = plan.quiet;
    let record = |request, perf_summary: bool| {
        let perf_summary = perf_summary && !quiet;
        record::run(request, RecordDisplay { quiet, perf_summary, json: false }, None)
    };
    match (plan.answer, plan.record) {
        (LockAnswer::Nothing, None) => Ok(Exit::Done),
        (LockAnswer::Nothing, Some(request)) => record(request, true),
        (LockAnswer::Contention(plan), request) => {
            let recorded = request.map(|request| record(request, false)).transpose()?;
            contention(&plan).map(|shown| worse(recorded, shown))
        }
        (LockAnswer::User(mut plan), request) => {
            let reader = plan.watched.take().and_then(LockOwnerReader::start);
            let recorded = request.map(|request| record(request, false));
            plan.request.readings = reader.map(LockOwnerReader::finish).unwrap_or_default();
            let recorded = recorded.transpose()?;
            user(&plan).map(|shown| worse(recorded, shown))
        }
    }
}

fn open(path: &Path) -> Result<Arc<Session>> {
    Ok(Arc::new(Session::open(import::open_recording(path, "waits for locks")?)?))
}

/// Returns the recorded command's exit status if it failed, otherwise the report's.
fn worse(recorded: Option<Exit>, shown: Exit) -> Exit {
    recorded.filter(|exit| *exit != Exit::Done).unwrap_or(shown)
}

fn contention(plan: &ContentionPlan) -> Result<Exit> {
    signal::release();
    let (result, exit) = contention::engine::contention(open(&plan.input)?, &plan.request, &Bars)?;
    let written = |error| Error::output("the table", error);
    let write = |out: &mut dyn Write| contention::text::write(out, &result, &plan.layout).map_err(written);
    match &plan.output {
        Some(path) => {
            Destination { path, option: AdvisedOption::Named("--output"), keeps: false }.write(write)?
        }
        None => {
            let mut out = PagedOutput::to(plan.stream);
            write(&mut out)?;
            out.finish().map_err(written)?;
        }
    }
    Ok(exit)
}

fn user(plan: &UserLockPlan) -> Result<Exit> {
    signal::release();
    let (result, exit) = user::engine::user_locks(open(&plan.input)?, &plan.request, &Bars)?;
    let written = |error| Error::output("the locks", error);
    let mut out = PagedOutput::to(plan.stream);
    user::text::write(&mut out, &result, &plan.layout).and_then(|()| out.finish()).map_err(written)?;
    Ok(exit)
}
