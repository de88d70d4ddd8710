//! The output of `pmc latency`, the time between two events, as text and JSON.
//!
//! ```text
//!   sums by range with bars ── quantiles ── slowest, with stacks ── heat map ── counts of events
//! ```

mod heat;
mod json;
mod text;

pub use json::{write_json, write_slice_json};
pub use text::{write, write_slice};

use pmc_analysis::profile::latency::LatencyCounts;
use pmc_text::text::clean;
use pmc_text::units::thousands;

/// Options for the text output.
#[derive(Debug, Clone, Copy, Default)]
pub struct LatencyLayout {
    /// Number of columns of the terminal.
    pub width: usize,
}

/// The quantiles to show.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Formats the start or end of a range, which is 1, 2 or 5 times a power of ten.
fn bound(ns: u64) -> String {
    match ns {
        u64::MAX => "∞".to_owned(),
        ns if ns >= 1_000_000_000 => format!("{} s", thousands(ns / 1_000_000_000)),
        ns if ns >= 1_000_000 => format!("{} ms", ns / 1_000_000),
        ns if ns >= 1000 => format!("{} µs", ns / 1000),
        ns => format!("{ns} ns"),
    }
}

/// Joins names for a sentence.
fn names(all: &[String]) -> String {
    all.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ")
}

/// Describes the events that do not belong to any interval, and other losses.
fn counts(counts: &LatencyCounts) -> String {
    let pairing = &counts.pairing;
    let mut words = vec![
        format!("{} begin", thousands(counts.begins)),
        format!("{} end", thousands(counts.ends)),
        format!("{} paired", thousands(pairing.paired)),
        format!("{} ends without a begin", thousands(pairing.ends_only)),
        format!("{} begins replaced", thousands(pairing.replaced)),
        format!("{} nested", thousands(counts.nested)),
        format!("{} unfinished", thousands(counts.in_progress)),
        format!("{} lost", thousands(counts.lost)),
    ];
    let rare = [
        (pairing.with_loss, "intervals with a loss"),
        (pairing.backwards, "ends before their begins"),
        (pairing.expired, "begin events dropped"),
        (counts.keyless, "without a key"),
        (counts.stackless, "without a stack"),
    ];
    let rare = rare.iter().filter(|(count, _)| *count > 0);
    words.extend(rare.map(|(count, what)| format!("{} {what}", thousands(*count))));
    words.join(", ")
}
