//! Exports of a recording to the formats of other programs, and to web pages.
//!
//! Receives a [`StackProfile`], the answer of a report and the circumstances of the recording ([`Contents`]).
//! Decides the formats, their names and file extensions, the detail that each needs, and their contents. Does
//! not open files.
//!
//! ```text
//!   rows with stacks ──┬── paths of functions:  folded ── svg;  html, speedscope
//!                      └── locations:           pprof, firefox, callgrind, gmon (a folder)
//!   answer of a report ── json, csv
//! ```

mod callgrind;
mod firefox;
pub mod folded;
pub mod gmon;
mod html;
mod pprof;
mod speedscope;
mod svg;

use std::io::{self, Write};
use std::path::Path;

use super::report;
use crate::error::{Error, Result};
use crate::profile::annotate::Listing;
use crate::profile::header::Recording;
use crate::profile::sampled::code::UNKNOWN;
use crate::profile::sampled::stacks::StackThread;
use crate::profile::sampled::{Call, Profile, StackProfile, StringTable};
use crate::text::clean;

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table below says what each is")]
pub enum Format {
    Html,
    Svg,
    Folded,
    Firefox,
    Speedscope,
    Pprof,
    Callgrind,
    Gmon,
    Json,
    Csv,
}

/// Detail that a format needs in rows, in addition to events, stacks and thread names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// No additional detail.
    Names,
    /// Threads.
    Threads,
    /// Threads and time slices.
    Slices,
    /// Threads and the time of each sample.
    Times,
    /// Threads, the time of each sample, and the fields of tracepoints.
    Payloads,
}

/// Properties of a format.
struct About {
    format: Format,
    /// Name in `--format`.
    name: &'static str,
    /// File extensions, the usual one first.
    endings: &'static [&'static str],
    detail: Detail,
}

/// All formats. If several extensions match a file name, the longest wins.
const FORMATS: &[About] = &[
    About::new(Format::Html, "html", &[".html", ".htm"], Detail::Slices),
    About::new(Format::Svg, "svg", &[".svg"], Detail::Names),
    About::new(Format::Folded, "folded", &[".folded", ".collapsed"], Detail::Names),
    About::new(Format::Firefox, "firefox", &[".firefox.json"], Detail::Payloads),
    About::new(Format::Speedscope, "speedscope", &[".speedscope.json"], Detail::Times),
    About::new(Format::Pprof, "pprof", &[".pb.gz", ".pprof"], Detail::Threads),
    About::new(Format::Callgrind, "callgrind", &[".callgrind"], Detail::Names),
    About::new(Format::Gmon, "gmon", &[".gmon"], Detail::Names),
    About::new(Format::Json, "json", &[".json"], Detail::Names),
    About::new(Format::Csv, "csv", &[".csv"], Detail::Names),
];

impl About {
    const fn new(
        format: Format,
        name: &'static str,
        endings: &'static [&'static str],
        detail: Detail,
    ) -> Self {
        Self { format, name, endings, detail }
    }
}

impl Format {
    fn about(self) -> &'static About {
        FORMATS.iter().find(|about| about.format == self).unwrap_or(&FORMATS[0])
    }

    /// Returns the format with this name.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the known names.
    pub fn named(name: &str) -> Result<Self> {
        let found = FORMATS.iter().find(|about| about.name == name.trim());
        let names = || FORMATS.iter().map(|about| about.name).collect::<Vec<_>>().join(", ");
        found.map(|about| about.format).ok_or_else(|| {
            Error::usage(format!("unknown format {:?}", clean(name))).try_this(format!("one of {}", names()))
        })
    }

    /// Returns the format that matches a file's extension.
    ///
    /// # Errors
    /// Fails if the extension is unknown; the error lists the known extensions.
    pub fn of_file(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().to_lowercase();
        let endings =
            FORMATS.iter().flat_map(|about| about.endings.iter().map(move |ending| (about, ending)));
        let fitting = endings.filter(|(_, ending)| name.ends_with(**ending));
        fitting.max_by_key(|(_, ending)| ending.len()).map(|(about, _)| about.format).ok_or_else(|| {
            Error::usage(format!(
                "cannot guess the format from the file name {:?}",
                clean(&path.to_string_lossy())
            ))
            .try_this(format!("one of {}", Self::endings()))
        })
    }

    /// Returns the usual extensions of all formats, separated by commas.
    pub fn endings() -> String {
        FORMATS.iter().map(|about| about.endings[0]).collect::<Vec<_>>().join(", ")
    }

    /// Returns the usual file extension.
    pub fn ending(self) -> &'static str {
        self.about().endings[0]
    }

    /// Returns the detail that the format needs in rows.
    pub fn detail(self) -> Detail {
        self.about().detail
    }

    /// Whether the export is made from the answer of a report: [`Contents::answer`].
    pub fn is_table(self) -> bool {
        matches!(self, Self::Json | Self::Csv)
    }

    /// Whether the export shows code and how far the data can be trusted. If so, [`Contents::answer`] must
    /// have the quality, and [`Contents::listings`] some functions.
    pub fn is_whole(self) -> bool {
        self == Self::Html
    }

    /// Whether the export is a folder of files, made by [`gmon::files`], instead of one document.
    pub fn is_folder(self) -> bool {
        self == Self::Gmon
    }

    /// Whether the export can show the difference from another recording: [`Contents::before`].
    pub fn is_differential(self) -> bool {
        self == Self::Svg
    }
}

/// Contents of an export.
pub struct Contents<'a> {
    /// The stacks.
    pub stacks: &'a StackProfile<'a>,
    /// The event to export in formats that support only one.
    pub event: usize,
    /// Tables and trees, for [`Format::is_table`]; the quality of the data, for [`Format::is_whole`].
    pub answer: &'a Profile,
    /// Layout of these tables and trees.
    pub layout: &'a report::Layout,
    /// The title: a file name.
    pub title: &'a str,
    /// The circumstances of the recording.
    pub recording: &'a Circumstances,
    /// The code of the most expensive functions.
    pub listings: &'a [Listing],
    /// Folded stacks of another recording, to show the difference from it: each path with its periods.
    pub before: Option<&'a [(String, u64)]>,
}

/// The circumstances of a recording.
#[derive(Debug, Default)]
pub struct Circumstances {
    /// Metadata of the recording.
    pub about: Recording,
    /// First and last time of its samples, in nanoseconds of its clock.
    pub span: Option<(u64, u64)>,
    /// Time of the first sample, in nanoseconds since 1970.
    pub started: Option<u64>,
}

impl Contents<'_> {
    /// Returns the recorded command line; empty if unknown.
    fn command(&self) -> &str {
        let facts = &self.recording.about.facts;
        facts.iter().find(|(label, _)| label == "cmdline").map_or("", |(_, words)| words)
    }
}

/// Writes the export in this format.
///
/// # Errors
/// Fails if writing to `out` fails, or if the format is a folder.
pub fn write(out: &mut dyn Write, format: Format, contents: &Contents<'_>) -> io::Result<()> {
    let table = |form| report::Layout { form, rows: usize::MAX, ..contents.layout.clone() };
    match format {
        Format::Html => html::write(out, contents),
        Format::Svg => svg::write(out, contents),
        Format::Folded => folded::write(out, contents.stacks, contents.event),
        Format::Firefox => firefox::write(out, contents),
        Format::Speedscope => speedscope::write(out, contents),
        Format::Pprof => pprof::write(out, contents),
        Format::Callgrind => callgrind::write(out, contents),
        Format::Gmon => {
            Err(io::Error::other("for gprof, which requires a directory: pmc export --format gmon -o DIR"))
        }
        Format::Json => report::write(out, contents.answer, &table(report::Form::Json)),
        Format::Csv => report::write(out, contents.answer, &table(report::Form::Csv)),
    }
}

/// Returns a function's name, safe to print on a terminal. A function without a name gets its module's name
/// in brackets.
fn function_name(call: &Call, texts: &StringTable) -> String {
    let name = clean(texts.get(call.symbol));
    if call.named || name != UNKNOWN {
        return name.into_owned();
    }
    let module = clean(texts.get(call.dso));
    if module.starts_with('[') { module.into_owned() } else { format!("[{module}]") }
}

/// Returns a thread's name with its number, safe to print on a terminal.
fn thread_name(thread: &StackThread) -> String {
    match thread.tid {
        Some(tid) => format!("{} ({tid})", clean(&thread.comm)),
        None => clean(&thread.comm).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ending_names_the_format() {
        for about in FORMATS {
            for ending in about.endings {
                assert_eq!(
                    Format::of_file(&Path::new("a.b").with_extension(&ending[1..])).unwrap(),
                    about.format
                );
            }
            assert_eq!(Format::named(about.name).unwrap(), about.format);
        }
        let error = Format::of_file(Path::new("x.sgv")).unwrap_err().to_string();
        assert!(error.contains("x.sgv") && FORMATS.iter().all(|about| error.contains(about.endings[0])));
        assert!(Format::of_file(Path::new("/tmp/x.svg/plain")).is_err());
        assert!(Format::named("sgv").unwrap_err().to_string().contains("svg"));
    }
}
