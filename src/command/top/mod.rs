//! `pmc top`: where time goes, now.
//!
//! ```text
//! plan ──► sampler (thread): rings ─► Live ──┐
//!                 '─► names (thread) ─► Named ┴─► picture ─► query's answer ─► stdio: tables │ the screen
//! ```
//! [`plan`] turns what was typed into what it means; [`sampler`] opens and drains; [`names`] finds names; [`picture`]
//! brings both together; [`stdio`] prints. This file chooses between text and the screen.

mod names;
mod picture;
mod plan;
mod sampler;
mod stdio;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;

use self::names::Wish;
use self::picture::Painter;
use self::plan::Plan;
use self::sampler::Sampler;
use crate::cli::top::Top;
use crate::error::{Error, Exit, Result, say};
use crate::host::Host;
use crate::sys::signal::{self, Signals};

/// Runs the command.
///
/// # Errors
/// When something typed means nothing, an event cannot be opened, or the output not be written.
pub(super) fn run(typed: &Top) -> Result<Exit> {
    say::be_quiet(typed.quiet);
    let mut plan = Plan::new(typed, &Host::live())?;
    super::record::check_frequency(&mut plan.record, &Host::live())?;
    if plan.tui && !has_screen() {
        return Err(Error::usage("--tui: standard input and output are not a terminal that can show it")
            .try_this("--stdio"));
    }
    let signals = Signals::catch(&[signal::INT, signal::TERM, signal::HUP])
        .map_err(|error| Error::io("catching signals", error))?;
    let wish =
        Wish { options: plan.symbols.clone(), depth: plan.depth, raw_names: plan.raw_names };
    let plan = Arc::new(plan);
    let (names, known) = names::start(wish)?;
    let sampler = Sampler::start(plan.clone(), names)?;
    let mut painter = Painter::new(sampler.shared.clone(), known.clone(), plan.clone());
    let exit = stdio::run(&plan, &sampler.shared, &mut painter, &known, &signals);
    let stopped = sampler.stop();
    exit.and_then(|exit| stopped.map(|()| exit))
}

/// Whether there is a terminal that can show more than lines.
fn has_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    stdin().is_terminal() && stdout().is_terminal() && !is_dumb
}
