//! `pmc top`: a live profile.
//!
//! ```text
//! request ──► sampler (thread): rings ─► Live ─► names (thread), snapshot, answer ─► stdio: tables │ the
//! screen
//! ```
//! [`request`] interprets the options. [`pmc_recording::recording::live`] opens the events and drains the
//! ring buffers, and [`pmc_analysis::analysis::live`] resolves names and answers queries. [`stdio`] prints
//! text, [`watch`] is the screen's engine, and [`export`] writes files. This file chooses between text and
//! the screen.

mod export;
mod request;
mod stdio;
mod watch;

pub(super) use self::request::TopRequest;
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
pub(super) fn run(mut request: TopRequest) -> Result<Exit> {
    memory::stay_small();
    open::check_frequency(&mut request.live.sample, &Host::live())?;
    match screen::is_there() && !request.stdio {
        true => watch::run(request),
        false if request.tui => Err(Error::usage("--tui requires a terminal").try_options("--stdio")),
        false => tables(&request),
    }
}

fn tables(request: &TopRequest) -> Result<Exit> {
    let signals = Signals::catch(&signal::ENDING).map_err(|error| Error::io("catching signals", error))?;
    let (mut requests, names) = names::start(request.names.clone())?;
    let sampler =
        Sampler::start(request.live.clone(), Box::new(move |live, is_last| requests.ask(live, is_last)))?;
    credentials::keep_for_reading();
    let mut maker = SnapshotMaker::new(sampler.state.clone(), names.clone(), request.snapshots.clone());
    let exit = stdio::run(request, &sampler.state, &mut maker, &names, &signals);
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
