//! Lists in JSON documents, one item a line, written item by item.

use std::io::{self, Write};

use serde_json::Value as Json;

use crate::text::as_json;

/// Writes the items of a list, without its brackets.
///
/// # Errors
/// Those of `out`.
pub(super) fn list(out: &mut dyn Write, items: impl Iterator<Item = Json>) -> io::Result<()> {
    for (number, item) in items.enumerate() {
        write!(out, "{}\n{}", if number == 0 { "" } else { "," }, as_json(&item))?;
    }
    Ok(())
}
