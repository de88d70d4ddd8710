//! Exports of a recording to the formats of other programs, and to web pages.
//!
//! Receives a [`StackProfile`], the result of a report and information about the recording
//! ([`ExportContents`]). Defines the name, file extensions, contents and required detail of each format. Does
//! not open files.
//!
//! ```text
//!   rows with stacks ──┬── paths of functions:  folded ── svg;  html, speedscope
//!                      ├── locations:           pprof, otlp, firefox, perfetto, callgrind, gmon (a folder)
//!                      └── with time buckets:   parquet (two tables)
//!   result of a report ── json, csv
//!   pprof, otlp ── push:  requests to a server
//! ```

pub(crate) mod callgrind;
mod firefox;
pub mod folded;
pub mod gmon;
mod html;
mod mapped;
pub mod otlp;
pub mod parquet;
mod perfetto;
mod pprof;
pub mod push;
pub mod request;
mod speedscope;
mod svg;

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use pmc_analysis::profile::annotate::Listing;
use pmc_analysis::profile::header::RecordingHeader;
use pmc_analysis::profile::sampled::code::UNKNOWN;
use pmc_analysis::profile::sampled::stacks::{StackEvent, StackThread};
use pmc_analysis::profile::sampled::{LocationCall, Profile, StackProfile, StringTable, name_and_unit};
use pmc_sys::error::{Error, Result};
use pmc_text::text::clean;
use pmc_view::report;

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table below describes each one")]
pub enum ExportFormat {
    Html,
    Svg,
    Folded,
    Firefox,
    Perfetto,
    Speedscope,
    Pprof,
    Otlp,
    Callgrind,
    Gmon,
    Parquet,
    Json,
    Csv,
}

/// The details that a format requires in rows, in addition to events, stacks and thread names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowDetail {
    /// No additional detail.
    Names,
    /// Threads.
    Threads,
    /// Threads and time slices.
    Slices,
    /// Threads, and the time of each sample.
    Times,
    /// Thread names and time buckets, or threads, CPUs and the time of each sample.
    Buckets,
    /// Threads, the time of each sample, and the fields of tracepoints.
    Payloads,
}

struct FormatProperties {
    format: ExportFormat,
    /// Name for `--format`.
    name: &'static str,
    /// File extensions, starting with the usual extension.
    endings: &'static [&'static str],
    detail: RowDetail,
}

/// All formats. If several extensions match a file name, the longest one wins.
const FORMATS: &[FormatProperties] = &[
    FormatProperties::new(ExportFormat::Html, "html", &[".html", ".htm"], RowDetail::Slices),
    FormatProperties::new(ExportFormat::Svg, "svg", &[".svg"], RowDetail::Names),
    FormatProperties::new(ExportFormat::Folded, "folded", &[".folded", ".collapsed"], RowDetail::Names),
    FormatProperties::new(ExportFormat::Firefox, "firefox", &[".firefox.json"], RowDetail::Payloads),
    FormatProperties::new(
        ExportFormat::Perfetto,
        "perfetto",
        &[".pftrace", ".perfetto-trace"],
        RowDetail::Payloads,
    ),
    FormatProperties::new(ExportFormat::Speedscope, "speedscope", &[".speedscope.json"], RowDetail::Times),
    FormatProperties::new(ExportFormat::Pprof, "pprof", &[".pb.gz", ".pprof"], RowDetail::Threads),
    FormatProperties::new(ExportFormat::Otlp, "otlp", &[".otlp"], RowDetail::Times),
    FormatProperties::new(ExportFormat::Callgrind, "callgrind", &[".callgrind"], RowDetail::Names),
    FormatProperties::new(ExportFormat::Gmon, "gmon", &[".gmon"], RowDetail::Names),
    FormatProperties::new(ExportFormat::Parquet, "parquet", &[".parquet"], RowDetail::Buckets),
    FormatProperties::new(ExportFormat::Json, "json", &[".json"], RowDetail::Names),
    FormatProperties::new(ExportFormat::Csv, "csv", &[".csv"], RowDetail::Names),
];

impl FormatProperties {
    const fn new(
        format: ExportFormat,
        name: &'static str,
        endings: &'static [&'static str],
        detail: RowDetail,
    ) -> Self {
        Self { format, name, endings, detail }
    }
}

impl FromStr for ExportFormat {
    type Err = Error;

    /// Returns the format with this name. For an unknown name, the error lists the known ones.
    fn from_str(name: &str) -> Result<Self> {
        let found = FORMATS.iter().find(|about| about.name == name.trim());
        let names = || FORMATS.iter().map(|about| about.name).collect::<Vec<_>>().join(", ");
        found.map(|about| about.format).ok_or_else(|| {
            Error::usage(format!("unknown format {:?}", clean(name))).try_this(format!("one of {}", names()))
        })
    }
}

impl ExportFormat {
    fn about(self) -> &'static FormatProperties {
        FORMATS.iter().find(|about| about.format == self).unwrap_or(&FORMATS[0])
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

    /// Returns the level of detail that the format requires in its rows.
    pub fn detail(self) -> RowDetail {
        self.about().detail
    }

    /// Whether the export is made from the result of a report: [`ExportContents::answer`].
    pub fn is_table(self) -> bool {
        matches!(self, Self::Json | Self::Csv)
    }

    /// Whether the export shows code and data quality. If so, [`ExportContents::answer`] must include the
    /// data quality, and [`ExportContents::listings`] must include the functions to show.
    pub fn has_code(self) -> bool {
        self == Self::Html
    }

    /// Whether the export is a folder of files, made by [`gmon::files`], instead of one document.
    pub fn is_folder(self) -> bool {
        self == Self::Gmon
    }

    /// Whether the export consists of two tables in two files, made by [`parquet::ParquetExport`].
    pub fn is_two_files(self) -> bool {
        self == Self::Parquet
    }

    /// Whether the export can show the difference from another recording: [`ExportContents::before`].
    pub fn is_differential(self) -> bool {
        self == Self::Svg
    }
}

pub struct ExportContents<'a> {
    pub stacks: &'a StackProfile<'a>,
    /// The event to export in formats that support only one event.
    pub event: usize,
    /// Tables and trees, for [`ExportFormat::is_table`]; data quality, for [`ExportFormat::has_code`].
    pub answer: &'a Profile,
    /// Layout of the tables and trees in `answer`.
    pub layout: &'a report::ReportLayout,
    /// The title of the export: a file name.
    pub title: &'a str,
    /// Metadata and times of the recording.
    pub recording: &'a RecordingMetadata,
    /// The code of the most expensive functions.
    pub listings: &'a [Listing],
    /// Folded stacks of the recording to compare with: each path with its sum of periods.
    pub before: Option<&'a [(String, u64)]>,
}

/// Metadata and times of a recording.
#[derive(Debug, Default)]
pub struct RecordingMetadata {
    /// Metadata of the recording.
    pub about: RecordingHeader,
    /// Times of the first and last sample, in nanoseconds on the recording's clock.
    pub span: Option<(u64, u64)>,
    /// Time of the first sample, in nanoseconds since 1970.
    pub started: Option<u64>,
    /// Whether `started` is from a recorded clock, not from the file's modification time.
    pub is_dated: bool,
    /// What the user says about the origin.
    pub origin: RecordingOrigin,
}

/// What the user says about a recording's origin.
#[derive(Debug, Clone, Default)]
pub struct RecordingOrigin {
    /// Name of the service; may be empty.
    pub service: String,
    /// Version of the service; may be empty.
    pub version: String,
    /// Host name; `None` for the recorded name.
    pub host: Option<String>,
    /// Further labels.
    pub labels: Vec<(String, String)>,
}

impl RecordingMetadata {
    /// Converts a time of the recording's clock to nanoseconds since 1970.
    pub fn since_1970(&self, time: u64) -> Option<u64> {
        let (started, (first, _)) = (self.started?, self.span?);
        Some(started.wrapping_add(time.wrapping_sub(first)))
    }
}

impl<'a> ExportContents<'a> {
    /// Returns metadata of the recording by perf's label, such as `hostname`; empty if unknown. Untrusted.
    fn fact(&self, label: &str) -> &'a str {
        let facts = &self.recording.about.facts;
        facts.iter().find(|(of, _)| of == label).map_or("", |(_, words)| words)
    }

    /// Returns the recorded command line; empty if unknown.
    fn command(&self) -> &str {
        self.fact("cmdline")
    }

    /// Returns the host name that the user gave, or else the recorded name; empty if unknown. Untrusted.
    fn host(&self) -> &'a str {
        self.recording.origin.host.as_deref().unwrap_or(self.fact("hostname"))
    }

    /// Returns the name of the service, or else OpenTelemetry's name for an unknown one, with the name of the
    /// process if the rows have only one.
    fn service(&self) -> String {
        let named = &self.recording.origin.service;
        if !named.is_empty() {
            return clean(named).into_owned();
        }
        let mut names = self.stacks.threads.iter().map(|one| one.process.as_deref().unwrap_or(&one.comm));
        match names.next() {
            Some(name) if names.all(|other| other == name) => format!("unknown_service:{}", clean(name)),
            _ => "unknown_service".to_owned(),
        }
    }
}

/// Writes the export in this format.
///
/// # Errors
/// Fails if writing to `out` fails, or if the format is a folder.
pub fn write(out: &mut dyn Write, format: ExportFormat, contents: &ExportContents<'_>) -> io::Result<()> {
    let table = |form| report::ReportLayout { form, rows: usize::MAX, ..contents.layout.clone() };
    match format {
        ExportFormat::Html => html::write(out, contents),
        ExportFormat::Svg => svg::write(out, contents),
        ExportFormat::Folded => folded::write(out, contents.stacks, contents.event),
        ExportFormat::Firefox => firefox::write(out, contents),
        ExportFormat::Perfetto => perfetto::write(out, contents),
        ExportFormat::Speedscope => speedscope::write(out, contents),
        ExportFormat::Pprof => pprof::write(out, contents),
        ExportFormat::Otlp => otlp::write(out, contents),
        ExportFormat::Callgrind => callgrind::write(out, contents),
        ExportFormat::Gmon => {
            Err(io::Error::other("for gprof, which requires a directory: pmc export --format gmon -o DIR"))
        }
        ExportFormat::Parquet => {
            Err(io::Error::other("two tables, which require files: pmc export --format parquet -o OUT"))
        }
        ExportFormat::Json => report::write(out, contents.answer, &table(report::ReportFormat::Json)),
        ExportFormat::Csv => report::write(out, contents.answer, &table(report::ReportFormat::Csv)),
    }
}

/// Returns a function's name, safe to print on a terminal. A function without a name gets its module's name
/// in brackets.
fn function_name(call: &LocationCall, texts: &StringTable) -> String {
    let name = clean(texts.get(call.symbol));
    if call.named || name != UNKNOWN {
        return name.into_owned();
    }
    let module = clean(texts.get(call.dso));
    if module.starts_with('[') { module.into_owned() } else { format!("[{module}]") }
}

/// Returns a name for an event's values that servers accept: letters, digits and `_`. Time on a CPU is `cpu`.
fn metric_name(event: &StackEvent) -> String {
    const LONGEST: usize = 100;
    let (name, _) = name_and_unit(&event.name);
    if name.split(':').next().is_some_and(|plain| matches!(plain, "cpu-clock" | "task-clock")) {
        return "cpu".to_owned();
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let mut plain: String = name.chars().take(LONGEST).map(|c| if is_letter(c) { c } else { '_' }).collect();
    if !plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        plain.insert(0, '_');
    }
    plain
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
    fn format_is_chosen_by_the_longest_extension() {
        for about in FORMATS {
            for ending in about.endings {
                assert_eq!(
                    ExportFormat::of_file(&Path::new("a.b").with_extension(&ending[1..])).unwrap(),
                    about.format
                );
            }
            assert_eq!(about.name.parse::<ExportFormat>().unwrap(), about.format);
        }
        let error = ExportFormat::of_file(Path::new("x.sgv")).unwrap_err().to_string();
        assert!(error.contains("x.sgv") && FORMATS.iter().all(|about| error.contains(about.endings[0])));
        assert!(ExportFormat::of_file(Path::new("/tmp/x.svg/plain")).is_err());
        assert!("sgv".parse::<ExportFormat>().unwrap_err().to_string().contains("svg"));
    }
}
