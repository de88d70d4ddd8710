//! Pieces of JSON documents: values whose foreign text is harmless, and lists with an item a line, written as
//! they come.

use std::io::{self, Write};

use serde_json::Value as Json;

use crate::text::clean_json;

/// A value.
pub(super) fn text(value: &Json) -> String {
    clean_json(&value.to_string()).into_owned()
}

/// What stands between a list's brackets.
///
/// # Errors
/// Those of `out`.
pub(super) fn list(out: &mut dyn Write, items: impl Iterator<Item = Json>) -> io::Result<()> {
    for (number, item) in items.enumerate() {
        write!(out, "{}\n{}", if number == 0 { "" } else { "," }, text(&item))?;
    }
    Ok(())
}
