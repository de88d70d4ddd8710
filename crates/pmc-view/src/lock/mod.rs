//! Waits for locks, as text, comma-separated values and JSON.

mod contention;
mod user;

pub use contention::{ContentionLayout, write as contention};
pub use user::{UserLockLayout, write as user};

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use pmc_analysis::interval::PairingCounts;

/// Returns the counts of matched and unmatched events, for JSON.
fn event_counts(counts: &PairingCounts) -> Json {
    json!({
        "paired": counts.paired, "without_end": counts.replaced + counts.expired,
        "without_begin": counts.ends_only, "backwards": counts.backwards, "with_loss": counts.with_loss,
    })
}

/// Writes which events are not included in the results.
fn losses(out: &mut dyn Write, counts: &PairingCounts, what: &str) -> io::Result<()> {
    let PairingCounts { paired: _, replaced, ends_only, backwards, expired, with_loss } = *counts;
    let all = [
        (with_loss, "overlap lost records, so their times may be too long"),
        (replaced, "have no end"),
        (ends_only, "have no begin"),
        (backwards, "end before they begin"),
        (expired, "were dropped, because too many never ended"),
    ];
    for (count, words) in all.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "# {count} {what} {words}")?;
    }
    Ok(())
}
