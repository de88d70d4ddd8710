//! A flame graph as an SVG image that supports zoom and search in a browser; inferno draws it.
//!
//! ```text
//!   folded stacks ─────────────────┐
//!   second folded stacks ────── difference ── inferno::flamegraph ── SVG
//! ```

use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, MultiPalette, Palette};
use inferno::{differential, flamegraph};

use super::{ExportContents, folded};
use pmc_sys::text::clean;
use pmc_sys::units::thousands;

/// Writes the export. Widths are periods, as in a report.
pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let Some(event) = contents.stacks.events.get(contents.event) else { return Ok(()) };
    let mut lines = folded::with_marks(contents.stacks, contents.event);
    if lines.is_empty() {
        // inferno returns an error if there are no stacks.
        lines.push(("no samples".to_owned(), 1));
    }
    let name = clean(&event.name);
    let samples = thousands(event.kept.samples);
    let mut options = flamegraph::Options::default();
    options.title = format!("{}: {name}", clean(contents.title));
    options.subtitle = Some(match contents.before {
        None => format!("{samples} samples; width: share of {name}"),
        Some(_) => format!("{samples} samples; red: more than before, blue: less"),
    });
    options.count_name = if event.is_clock() { "ns".to_owned() } else { "occurrences".to_owned() };
    // This palette colours kernel code, inlined functions and generated code by the marks after their names.
    options.colors = Palette::Multi(MultiPalette::Java);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.hash = true;
    let text = |lines: &[(String, u64)]| -> String {
        lines.iter().map(|(path, period)| format!("{path} {period}\n")).collect()
    };
    let now = text(&lines);
    match contents.before {
        None => flamegraph::from_lines(&mut options, now.lines(), out),
        Some(before) => {
            let mut both = Vec::new();
            // Compare shares, not absolute durations.
            let how = differential::Options { normalize: true, ..Default::default() };
            differential::from_readers(how, text(before).as_bytes(), now.as_bytes(), &mut both)?;
            let mut both: Vec<&str> = std::str::from_utf8(&both).unwrap_or_default().lines().collect();
            both.sort_unstable();
            flamegraph::from_lines(&mut options, both, out)
        }
    }
}
