//! Writes lists in JSON documents incrementally.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use pmc_sys::text::write_json;

/// Converts a share to a percentage with four decimals.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Writes a list, one item per line.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list(out: &mut dyn Write, items: impl IntoIterator<Item = impl Serialize>) -> io::Result<()> {
    list_with(out, items, |out, item| write_json(out, &item))
}

/// Writes a list, one item per line. `write` is called to write each item.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list_with<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "[")?;
    for (number, item) in items.into_iter().enumerate() {
        writeln!(out, "{}", if number == 0 { "" } else { "," })?;
        write(out, item)?;
    }
    write!(out, "]")
}

/// A list whose items are computed as they are written.
pub(super) struct Streamed<I>(pub(super) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Streamed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}
