//! Lists in JSON documents, one item per line, written incrementally.

use std::io::{self, Write};

use serde_json::Value as Json;

use pmc_sys::text::as_json;

/// Converts a share to a percentage with four decimals.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Writes the items of a list, without its brackets.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list(out: &mut dyn Write, items: impl Iterator<Item = Json>) -> io::Result<()> {
    for (number, item) in items.enumerate() {
        write!(out, "{}\n{}", if number == 0 { "" } else { "," }, as_json(&item))?;
    }
    Ok(())
}
