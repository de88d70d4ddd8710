//! A flame graph as an SVG image that supports zoom and search in a browser; inferno draws it.
//!
//! ```text
//!   folded stacks ─────────────────┐
//!   second folded stacks ────── difference ── inferno::flamegraph ── SVG
//! ```
//!
//! The image has the direction and the colours of the HTML page. It takes the colours from the page's style.

use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, TextTruncateDirection};
use inferno::{differential, flamegraph};

use super::ExportContents;
use super::folded::{self, FoldedMarks, MARKS};
use pmc_analysis::profile::sampled::counted_unit;
use pmc_text::text::clean;
use pmc_text::units::counted;
use pmc_view::page::STYLE;

/// Height of the area below the graph, in pixels.
const BOTTOM: u32 = 34;

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
    let samples = counted(event.kept.samples, "sample");
    let mut options = options();
    options.title = format!("{}: {samples} of {name}", clean(contents.title));
    // The legend is in the line below the title.
    let below = if contents.before.is_some() { "red: more than before, blue: less" } else { " " };
    options.subtitle = Some(below.to_owned());
    options.count_name =
        if event.is_clock() { "ns".to_owned() } else { clean(counted_unit(&event.name)).into_owned() };
    let text = |lines: &[(String, u64)]| -> String {
        lines.iter().map(|(path, period)| format!("{path} {period}\n")).collect()
    };
    let now = text(&lines);
    let mut image = Vec::new();
    let colours = BoxColours::new(is_wall);
    match contents.before {
        None => {
            let mut palette = colours.palette(&lines);
            options.palette_map = Some(&mut palette);
            flamegraph::from_lines(&mut options, now.lines(), &mut image)?;
        }
        Some(before) => {
            let mut both = Vec::new();
            // Compare shares, not absolute durations.
            let how = differential::Options { normalize: true, ..Default::default() };
            differential::from_readers(how, text(before).as_bytes(), now.as_bytes(), &mut both)?;
            let mut both: Vec<&str> = std::str::from_utf8(&both).unwrap_or_default().lines().collect();
            both.sort_unstable();
            flamegraph::from_lines(&mut options, both, &mut image)?;
        }
    }
    let legend = contents.before.is_none().then(|| colours.legend(&now));
    finish(&image, legend.as_deref().unwrap_or_default(), out)
}

/// Returns the height of an image in pixels.
fn height(image: &[u8]) -> u32 {
    let text = String::from_utf8_lossy(&image[..image.len().min(2000)]);
    let height = text.split_once(" height=\"").and_then(|(_, rest)| rest.split('"').next());
    height.and_then(|number| number.parse().ok()).unwrap_or(600)
}

/// Returns the options that all flame graphs share.
fn options() -> flamegraph::Options<'static> {
    let mut options = flamegraph::Options::default();
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.direction = Direction::Inverted;
    options.text_truncate_direction = TextTruncateDirection::Right;
    options
}

/// The names of the page's colours, by the index of a mark, and what they mean.
const COLOURS: [(&str, &str); MARKS.len()] = [
    ("program", "program"),
    ("library", "libraries"),
    ("kernel", "kernel"),
    ("generated", "generated code"),
    ("unknown", "unknown"),
    ("runnable", "waiting for a CPU"),
    ("blocked", "blocked"),
];

/// Hue in degrees, saturation and lightness in percent.
type Hsl = [f64; 3];

/// The colours of boxes: those of the HTML page on a light background.
struct BoxColours([Hsl; COLOURS.len()]);

impl BoxColours {
    /// With waits, the kernel has another colour, because waits are blue.
    fn new(has_waits: bool) -> Self {
        let of_waits = |name| has_waits.then(|| page_colour(":root[data-waits] {", name)).flatten();
        Self(COLOURS.map(|(name, _)| {
            of_waits(name).or_else(|| page_colour(":root {", name)).unwrap_or([0.0, 0.0, 80.0])
        }))
    }

    /// Returns the colour of each name with a mark. As in the page, the hues of functions differ a little.
    fn palette(&self, lines: &[(String, u64)]) -> PaletteMap {
        let mut palette = PaletteMap::default();
        for name in lines.iter().flat_map(|(path, _)| path.split(';')) {
            let mark = MARKS.iter().position(|mark| name.ends_with(mark));
            let colour = match mark {
                Some(mark) => {
                    let plain = &name[..name.len() - MARKS[mark].len()];
                    let units = plain.encode_utf16();
                    let sum = units.fold(7u32, |sum, unit| sum.wrapping_mul(31).wrapping_add(unit.into()));
                    let [hue, saturation, lightness] = self.0[mark];
                    rgb([hue + f64::from((sum >> 4) % 17) - 8.0, saturation, lightness])
                }
                None => ALL,
            };
            palette.insert(name, colour);
        }
        palette.insert("", ALL);
        palette
    }

    /// Returns the legend for the marks that occur in folded stacks.
    fn legend(&self, lines: &str) -> String {
        let mut legend = String::from("<g id=\"legend\">");
        let mut x = 10;
        for ((mark, colour), (_, words)) in MARKS.iter().zip(self.0).zip(COLOURS) {
            if !lines.contains(mark) {
                continue;
            }
            let Color { r, g, b } = rgb(colour);
            let text = x + 16;
            legend.push_str(&format!(
                "<rect x=\"{x}\" y=\"38\" width=\"12\" height=\"12\" fill=\"rgb({r},{g},{b})\"/>\
                 <text x=\"{text}\" y=\"48\">{words}</text>"
            ));
            // The font has a width of 0.6 em.
            x = text + 20 + words.len() * 7;
        }
        legend + "</g>"
    }
}

/// Colour of the boxes for the whole recording and for threads.
const ALL: Color = Color { r: 226, g: 222, b: 216 };

/// Reads a colour from a rule of the page's style.
fn page_colour(rule: &str, name: &str) -> Option<Hsl> {
    let (_, rest) = STYLE.split_once(rule)?;
    let (properties, _) = rest.split_once('}')?;
    let (_, value) = properties.split_once(&format!("--{name}: "))?;
    let (value, _) = value.split_once(';')?;
    let mut numbers = value.split(' ').map_while(|number| number.trim_end_matches('%').parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

fn rgb([hue, saturation, lightness]: Hsl) -> Color {
    let (saturation, lightness) = (saturation / 100.0, lightness / 100.0);
    let spread = saturation * lightness.min(1.0 - lightness);
    let part = |offset: f64| {
        let at = (offset + hue.rem_euclid(360.0) / 30.0) % 12.0;
        let value = lightness - spread * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    Color { r: part(0.0), g: part(8.0), b: part(4.0) }
}

/// Writes the image without the signs of marks, with a legend, and with buttons that are visible. inferno
/// draws Search almost in white, and Reset Zoom only when a function is shown in detail.
fn finish(image: &[u8], legend: &str, out: &mut dyn Write) -> io::Result<()> {
    let below = height(image).saturating_sub(BOTTOM / 2).saturating_sub(48);
    let image = String::from_utf8_lossy(image).replace(folded::is_sign, "");
    let Some((image, end)) = image.rsplit_once("</svg>") else { return out.write_all(image.as_bytes()) };
    write!(
        out,
        "{image}<style type=\"text/css\">\
         #search, #unzoom {{ opacity:1; fill:#b4451b; text-decoration:underline; }}\
         #unzoom.hide {{ display:inline; opacity:0.4; cursor:default; }}\
         #details {{ transform:translateY({below}px); }}\
         </style>{legend}</svg>{end}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &[(String, u64)], colours: &BoxColours) -> String {
        let text: String = lines.iter().map(|(path, period)| format!("{path} {period}\n")).collect();
        let mut palette = colours.palette(lines);
        let mut options = options();
        options.palette_map = Some(&mut palette);
        let (mut image, mut out) = (Vec::new(), Vec::new());
        flamegraph::from_lines(&mut options, text.lines(), &mut image).expect("an image");
        finish(&image, &colours.legend(&text), &mut out).expect("a string");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn marks_leave_names_unchanged() {
        let lines = [("main;odd  (name", 5, 7), ("main;other", 6, 3)]
            .map(|(path, mark, period)| (format!("{path}{}", MARKS[mark]), period));
        let image = drawn(&lines, &BoxColours::new(true));
        for title in ["<title>odd  (name (7 samples", "<title>other (3 samples"] {
            assert!(image.contains(title), "{title}: {image}");
        }
        assert!(!image.contains("_[w]") && !image.contains(folded::is_sign), "{image}");
        assert!(image.contains("waiting for a CPU") && !image.contains("libraries"), "{image}");
    }

    #[test]
    fn colours_are_those_of_the_page() {
        let rules = [(":root {", &COLOURS[..]), (":root[data-waits] {", &COLOURS[2..3])];
        for (rule, colours) in rules {
            for (name, _) in colours {
                assert!(page_colour(rule, name).is_some(), "{rule} {name}");
            }
        }
        // Values from a browser.
        for (hsl, want) in [
            ([18.0, 84.0, 68.0], (242, 146, 105)),
            ([180.0, 100.0, 50.0], (0, 255, 255)),
            ([222.0, 85.0, 76.0], (142, 173, 246)),
        ] {
            let Color { r, g, b } = rgb(hsl);
            assert_eq!((r, g, b), want, "{hsl:?}");
        }
        assert_ne!(rgb(BoxColours::new(true).0[2]), rgb(BoxColours::new(false).0[2]));
    }

    #[test]
    fn long_names_are_truncated_at_the_end() {
        let name = "outermost_caller_with_a_name_that_is_far_too_long_for_its_box";
        let lines = [(format!("main;{name}{}", MARKS[0]), 1), (format!("main;rest{}", MARKS[1]), 9)];
        let image = drawn(&lines, &BoxColours::new(false));
        assert!(image.contains(">outermost_ca") && !image.contains(&format!(">{name}<")), "{image}");
        assert!(image.contains("var truncate_text_right = true") && image.contains("var inverted = true"));
    }

    #[test]
    fn buttons_are_visible() {
        let image = drawn(&[(format!("main{}", MARKS[0]), 1)], &BoxColours::new(false));
        // Of two rules for the same element, the last one wins.
        let faint = image.find("#search { text-anchor:end; opacity:0.1;").expect("inferno's rule");
        let visible = image.find("#search, #unzoom { opacity:1;").expect("the rule of pmc");
        assert!(faint < visible && image.contains("#unzoom.hide { display:inline;"), "{image}");
    }
}
