//! `pmc top`: a live profile.
//!
//! ```text
//! plan ──► sampler (thread): rings ─► Live ─► names (thread), snapshot, answer ─► stdio: tables │ the screen
//! ```
//! [`plan`] interprets the options. [`pmc_recording::recording::live`] opens the events and drains the ring
//! buffers, and [`pmc_analysis::analysis::live`] resolves names and answers queries. [`stdio`] prints text,
//! [`watch`] is the screen's engine, and [`export`] writes files. This file chooses between text and the
//! screen.

mod export;
mod plan;
mod stdio;
mod watch;

pub(super) use self::plan::TopPlan;
use pmc_analysis::analysis::live::names;
use pmc_analysis::analysis::live::snapshot::SnapshotMaker;
use pmc_command::screen;
use pmc_recording::recording::live::Sampler;
use pmc_recording::recording::{launch, open};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::sys::credentials;
use pmc_sys::sys::memory;
use pmc_sys::sys::process::Ended;
use pmc_sys::sys::signal::{self, Signals};

/// Runs the command.
///
/// # Errors
/// Fails if an option is invalid, an event cannot be opened, or the output cannot be written.
pub(super) fn run(mut plan: TopPlan) -> Result<Exit> {
    memory::stay_small();
    open::check_frequency(&mut plan.live.sample, &Host::live())?;
    match screen::is_there() && !plan.stdio {
        true => watch::run(plan),
        false if plan.tui => Err(Error::usage("--tui requires a terminal").try_this("--stdio")),
        false => tables(&plan),
    }
}

fn tables(plan: &TopPlan) -> Result<Exit> {
    let signals = Signals::catch(&signal::ENDING).map_err(|error| Error::io("catching signals", error))?;
    let (mut requests, names) = names::start(plan.names.clone())?;
    let sampler =
        Sampler::start(plan.live.clone(), Box::new(move |live, is_last| requests.ask(live, is_last)))?;
    credentials::keep_for_reading();
    let mut maker = SnapshotMaker::new(sampler.state.clone(), names.clone(), plan.snapshots.clone());
    let exit = stdio::run(plan, &sampler.state, &mut maker, &names, &signals);
    let stopped = sampler.stop();
    exit.and_then(|exit| stopped.map(|ended| exit_of(exit, ended)))
}

/// Returns the exit status. This is the command's status if the command ended before pmc was stopped.
fn exit_of(exit: Exit, ended: Option<Ended>) -> Exit {
    match (exit, ended) {
        (Exit::Done, Some(ended)) => launch::exit_of(ended),
        (exit, _) => exit,
    }
}
