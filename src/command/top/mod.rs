//! `pmc top`: where time goes, now.
//!
//! ```text
//! plan ──► sampler (thread): rings ─► Live ──┐
//!                 '─► names (thread) ─► Named ┴─► picture ─► query's answer ─► stdio: tables │ the screen
//! ```
//! [`plan`] turns what was typed into what it means; [`live`](crate::recording::live) opens and drains; [`names`] finds names; [`picture`]
//! brings both together; [`stdio`] prints, [`watch`] is the screen's engine, with [`past`] for the history of rows, [`code`]
//! for listings, [`export`] and [`recording`] for files. This file chooses between text and the screen.

mod code;
mod export;
mod names;
mod past;
mod picture;
mod plan;
mod recording;
mod stdio;
mod watch;

use std::sync::Arc;

use self::names::Wish;
use self::picture::Painter;
use self::plan::Plan;
use super::screen;
use crate::cli::top::Top;
use crate::error::{Error, Exit, Result, say};
use crate::host::Host;
use crate::recording::live::Sampler;
use crate::recording::open;
use crate::sys::memory;
use crate::sys::signal::{self, Signals};

/// Runs the command.
///
/// # Errors
/// When something typed means nothing, an event cannot be opened, or the output not be written.
pub(super) fn run(typed: &Top) -> Result<Exit> {
    say::be_quiet(typed.quiet);
    memory::stay_small();
    let mut plan = Plan::new(typed, &Host::live())?;
    open::check_frequency(&mut plan.sample, &Host::live())?;
    let wish = Wish { options: plan.symbols.clone(), depth: plan.depth, raw_names: plan.raw_names };
    match screen::is_there() && !plan.stdio {
        true => watch::run(plan, wish),
        false if plan.tui => {
            Err(Error::usage("--tui: standard input and output are not a terminal that can show it")
                .try_this("--stdio"))
        }
        false => tables(plan, wish),
    }
}

fn tables(plan: Plan, wish: Wish) -> Result<Exit> {
    let signals = Signals::catch(&[signal::INT, signal::TERM, signal::HUP])
        .map_err(|error| Error::io("catching signals", error))?;
    let plan = Arc::new(plan);
    let (mut names, known) = names::start(wish)?;
    let sampler = Sampler::start(plan.live(), Box::new(move |live, is_last| names.ask(live, is_last)))?;
    let mut painter = Painter::new(sampler.state.clone(), known.clone(), plan.clone());
    let exit = stdio::run(&plan, &sampler.state, &mut painter, &known, &signals);
    let stopped = sampler.stop();
    exit.and_then(|exit| stopped.map(|()| exit))
}
