//! Counts events of this program while it computes, with the event text of perf.
//!
//! `cargo run -p pmc-events --example count -- page-faults,task-clock:u`

use std::io::Write;
use std::process::ExitCode;

use pmc_events::counter::counter_set::{CountOptions, CounterSet};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::target::TargetSlot;
use pmc_events::event;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

fn main() -> ExitCode {
    let text =
        std::env::args().nth(1).unwrap_or_else(|| "task-clock,page-faults,context-switches".to_owned());
    match count(&text, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if standard error is closed.
            let _ = writeln!(std::io::stderr(), "count: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count(text: &str, out: &mut impl Write) -> Result<()> {
    let host = Host::live();
    let facts = MachineFacts::own(&host);
    let groups = event::parse(text, &host)?;
    let groups = groups.into_iter().map(|group| (group, None)).collect();
    let mut counters = CounterSet::new(groups, CountOptions::default());
    counters.open(TargetSlot::OURSELVES);
    let failed = |error| Error::io("counting", error);
    counters.enable().map_err(failed)?;
    let pages: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 1 << 16]).collect();
    std::hint::black_box(pages);
    let mut counts = vec![None; counters.specs().len()];
    counters.read(|reading| counts[reading.event] = reading.count).map_err(failed)?;
    let rows = counters.specs().zip(counters.refusals()).zip(counts);
    for ((spec, refusal), count) in rows {
        // A count is scaled if the event shared its counter with others.
        match (count.and_then(|count| count.scaled()), refusal) {
            (Some(value), _) => writeln!(out, "{value:>15.0}  {}", spec.name),
            (None, Some(refusal)) => {
                writeln!(out, "{:>15}  {}: {}", "-", spec.name, refusal.explain(&facts).cause)
            }
            (None, None) => writeln!(out, "{:>15}  {}: not counted", "-", spec.name),
        }
        .map_err(failed)?;
    }
    Ok(())
}
