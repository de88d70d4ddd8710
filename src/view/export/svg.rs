//! A flame graph as an SVG image that supports zoom and search in a browser; inferno draws it.
//!
//! ```text
//!   folded stacks ─────────────────┐
//!   second folded stacks ────── difference ── inferno::flamegraph ── SVG
//! ```

use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, Color, MultiPalette, Palette, PaletteMap};
use inferno::{differential, flamegraph};

use super::ExportContents;
use super::folded::{self, FoldedMarks};
use pmc_sys::text::clean;
use pmc_sys::units::thousands;

/// Writes the export. Widths are periods, as in a report.
pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let Some(event) = contents.stacks.events.get(contents.event) else { return Ok(()) };
    let is_wall = event.has_waits() && contents.before.is_none();
    let marks = if is_wall { FoldedMarks::States } else { FoldedMarks::Code };
    let mut lines = folded::with_marks(contents.stacks, contents.event, marks);
    if lines.is_empty() {
        // inferno fails if there are no stacks.
        lines.push(("no samples".to_owned(), 1));
    }
    let name = clean(&event.name);
    let samples = thousands(event.kept.samples);
    let mut options = options();
    options.title = format!("{}: {name}", clean(contents.title));
    options.subtitle = Some(match contents.before {
        None => format!("{samples} samples; width: share of {name}"),
        Some(_) => format!("{samples} samples; red: more than before, blue: less"),
    });
    options.count_name = if event.is_clock() { "ns".to_owned() } else { "occurrences".to_owned() };
    let text = |lines: &[(String, u64)]| -> String {
        lines.iter().map(|(path, period)| format!("{path} {period}\n")).collect()
    };
    let now = text(&lines);
    match contents.before {
        None if is_wall => {
            let mut colours = waiting_colours(&lines);
            options.palette_map = Some(&mut colours);
            with_legend(&with_states(&mut options, &now)?, out)
        }
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

/// Draws the difference between two groups of runs. Each line is a path with its old and its new cost, sorted
/// by path. Widths are new costs; colours show the difference of the last function in each path.
///
/// # Errors
/// Fails if writing to `out` fails, or no line has a new cost.
pub(crate) fn difference(
    out: &mut dyn Write,
    title: &str,
    unit: &str,
    lines: &[(String, u64, u64)],
) -> io::Result<()> {
    let mut options = options();
    // Unchanged functions are white.
    options.bgcolors = Some(BackgroundColor::Flat((215, 215, 215).into()));
    title.clone_into(&mut options.title);
    unit.clone_into(&mut options.count_name);
    let lines: Vec<String> = lines.iter().map(|(path, old, new)| format!("{path} {old} {new}")).collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}

/// Returns the height of an image in pixels.
pub(crate) fn height(image: &[u8]) -> u32 {
    let text = String::from_utf8_lossy(&image[..image.len().min(2000)]);
    let height = text.split_once(" height=\"").and_then(|(_, rest)| rest.split('"').next());
    height.and_then(|number| number.parse().ok()).unwrap_or(600)
}

/// Returns the options that all flame graphs share.
fn options() -> flamegraph::Options<'static> {
    let mut options = flamegraph::Options::default();
    // This palette colours kernel code, inlined functions and generated code by the marks after their names.
    options.colors = Palette::Multi(MultiPalette::Java);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.hash = true;
    options
}

/// Draws stacks whose function names have marks for thread states.
fn with_states(options: &mut flamegraph::Options<'_>, lines: &str) -> io::Result<String> {
    let mut image = Vec::new();
    flamegraph::from_lines(options, lines.lines(), &mut image)?;
    Ok(String::from_utf8_lossy(&image).replace(folded::RUNNABLE_SIGN, ""))
}

/// Colours of boxes in which threads were mostly blocked or mostly waited for a CPU. The palette for code
/// does not use these hues, and black text is legible on all their shades.
const BLOCKED: Color = Color { r: 120, g: 160, b: 240 };
const RUNNABLE: Color = Color { r: 205, g: 140, b: 225 };
/// Colour of running code in the legend: the palette's colour for programs.
const RUNNING: Color = Color { r: 230, g: 110, b: 90 };

/// Returns the colour of each function name that has a mark for waiting.
fn waiting_colours(lines: &[(String, u64)]) -> PaletteMap {
    let mut colours = PaletteMap::default();
    // The box for the whole recording.
    colours.insert("", Color { r: 210, g: 210, b: 210 });
    for name in lines.iter().flat_map(|(path, _)| path.split(';')) {
        // Test for the mark of threads that wait for a CPU first, because it ends with the other mark.
        let base = match () {
            () if name.ends_with(folded::RUNNABLE) => RUNNABLE,
            () if name.ends_with(folded::BLOCKED) => BLOCKED,
            () => continue,
        };
        if colours.get(name).is_none() {
            let sum = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let lighter = (sum >> 4) as u8 % 30;
            let [r, g] = [base.r, base.g].map(|part| part.saturating_add(lighter));
            colours.insert(name, Color { r, g, ..base });
        }
    }
    colours
}

/// Writes the image. The empty line above the graph contains a legend for thread states.
fn with_legend(image: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some((image, end)) = image.rsplit_once("</svg>") else { return out.write_all(image.as_bytes()) };
    out.write_all(image.as_bytes())?;
    write!(out, "<g id=\"legend\" font-size=\"12\">")?;
    let states = [("running", RUNNING, 0), ("waiting for a CPU", RUNNABLE, 90), ("blocked", BLOCKED, 250)];
    for (words, Color { r, g, b }, x) in states {
        let (square, text) = (130 + x, 146 + x);
        write!(
            out,
            "<rect x=\"{square}\" y=\"14\" width=\"12\" height=\"12\" fill=\"rgb({r},{g},{b})\"/>\
             <text x=\"{text}\" y=\"24\">{words}</text>"
        )?;
    }
    write!(out, "</g></svg>{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_states_leave_names_unchanged() {
        let lines = format!("main;odd  (name{} 7\nmain;other{} 3\n", folded::RUNNABLE, folded::BLOCKED);
        let image = with_states(&mut flamegraph::Options::default(), &lines).expect("an image");
        for title in ["<title>odd  (name (7 samples", "<title>other (3 samples"] {
            assert!(image.contains(title), "{title}: {image}");
        }
        assert!(!image.contains("_[w]") && !image.contains(folded::RUNNABLE_SIGN), "{image}");
    }
}
