//! What to export. A command line, a personality or another command makes an [`ExportRequest`]. It passes on
//! which samples to load ([`AnalysisRequest`]), how to select from them ([`Query`]), and whose code to
//! include ([`AnnotationRequest`]).

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::push::target::PushTarget;
use super::{ExportFormat, RecordingOrigin, RowDetail};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::{Filter, Query, StackDirection};
use pmc_analysis::session::samples::{SampleAttribute, TimeBuckets};
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_symbols::symbol::Depth;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_text::text::{clean, nearest};
use pmc_text::units::{S, parse_duration};
use pmc_view::report::{BRANCH_IN_JSON, ReportLayout};

/// Maximum number of functions whose code is included.
const MOST_CODE: usize = 12;
/// Minimum cost of a function for its code to be included, in percent.
const LEAST_CODE: f64 = 1.0;

/// What to export.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub input: PathBuf,
    /// The output file; `-` is standard output.
    pub output: PathBuf,
    pub format: ExportFormat,
    /// The recording to compare with.
    pub before: Option<PathBuf>,
    /// The name of the only event to export; `None` for all, or for the first if the format has only one.
    pub event: Option<String>,
    /// Which samples to load, and how to name them. [`Self::analysis`] adds what the format requires.
    pub samples: AnalysisRequest,
    /// The functions and modules to include.
    pub only: RowSelection,
    /// Level of detail for names; `None` for the default.
    pub depth: Option<Depth>,
    /// What the user says about the origin of the samples.
    pub origin: RecordingOrigin,
    /// How to add up samples in the format parquet.
    pub bucket: TimeBucket,
    /// Whether to export sums instead of the time of each sample, in the format OTLP.
    pub aggregate: bool,
    /// The server to send the export to. In this case, `output` receives what the server refuses.
    pub push: Option<ExportPush>,
    /// Whether to print errors only.
    pub is_quiet: bool,
}

/// A server, and what to send with each request.
#[derive(Debug, Clone)]
pub struct ExportPush {
    pub target: PushTarget,
    /// File with more headers.
    pub headers: Option<PathBuf>,
}

impl ExportRequest {
    /// Creates a request for all samples.
    pub fn new(input: PathBuf, output: PathBuf, format: ExportFormat) -> Self {
        Self {
            input,
            output,
            format,
            before: None,
            event: None,
            samples: AnalysisRequest::default(),
            only: RowSelection::default(),
            depth: None,
            origin: RecordingOrigin::default(),
            bucket: TimeBucket::default(),
            aggregate: false,
            push: None,
            is_quiet: false,
        }
    }

    /// Returns the usual file for an export of a recording: with the same name, in the current directory.
    pub fn usual_output(input: &Path, format: ExportFormat) -> PathBuf {
        match input.as_os_str() == "-" {
            true => PathBuf::from(format!("pmc{}", format.ending())),
            false => {
                PathBuf::from(input.file_name().unwrap_or_default()).with_extension(&format.ending()[1..])
            }
        }
    }

    /// Returns which samples to load.
    pub fn analysis(&self, reader: &Reader) -> AnalysisRequest {
        let detail = self.detail();
        AnalysisRequest {
            usual_keys: true,
            // Tables count what `pmc report` counts, which may be branches. Stacks always count samples.
            measure: match self.format.is_table() {
                true => CostMeasure::BranchesIfRecorded,
                false => CostMeasure::Period,
            },
            facets: detail == RowDetail::Slices,
            apart: match detail {
                RowDetail::Buckets => self.bucket_attributes(reader),
                detail => attributes(detail),
            },
            ..self.samples.clone()
        }
    }

    /// Returns the query, except for the event.
    pub fn query(&self) -> Query {
        Query {
            totals: true,
            tree: Some(StackDirection::Caller),
            limit: BRANCH_IN_JSON / 100.0,
            filter: Filter { only: self.only.clone(), ..Filter::default() },
            ..Query::default()
        }
    }

    /// Returns the layout of tables.
    pub fn layout(&self) -> ReportLayout {
        ReportLayout { branch_limit: BRANCH_IN_JSON, ..ReportLayout::default() }
    }

    /// Returns whose code to include.
    pub fn code(&self) -> AnnotationRequest {
        AnnotationRequest {
            dsos: self.only.dsos.clone().unwrap_or_default(),
            most: MOST_CODE,
            limit: LEAST_CODE,
            options: ListingOptions {
                with_source: true,
                folders: SourceFolders {
                    symfs: self.samples.symbols.symfs.clone(),
                    ..SourceFolders::default()
                },
                raw_names: self.samples.name_style.raw,
                ..ListingOptions::default()
            },
            ..AnnotationRequest::default()
        }
    }

    /// Returns the level of detail for names; `None` if it depends on the recording.
    pub fn depth(&self) -> Option<Depth> {
        self.depth.or(self.format.is_two_files().then_some(Depth::Inlines))
    }

    /// Returns the title of the export.
    pub fn title(&self) -> String {
        let name = self.input.file_name().filter(|name| *name != "-");
        name.map_or_else(|| "recording".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Whether the export has the time of each sample.
    pub fn has_times(&self) -> bool {
        self.detail() >= RowDetail::Times
    }

    /// Returns what the names of the tables `samples` and `stacks` start with. In a directory, they start
    /// with the name of the recording.
    pub fn start_of_tables(&self) -> PathBuf {
        let path = self.output.as_os_str().to_string_lossy();
        let title = self.title();
        match self.output.is_dir() || path.ends_with('/') {
            true => self.output.join(title.strip_suffix(".data").unwrap_or(&title)),
            false => PathBuf::from(path.strip_suffix(".parquet").unwrap_or(&path)),
        }
    }

    /// Returns the index of the selected event, or `None` if no event is selected.
    ///
    /// # Errors
    /// Fails if the recording has no event with this name.
    pub fn event(&self, reader: &Reader) -> Result<Option<usize>> {
        let Some(wanted) = self.event.as_deref().map(str::trim) else { return Ok(None) };
        let names: Vec<String> = reader.events().iter().map(|event| event.name()).collect();
        // An event name also matches without its modifiers.
        let plain = |name: &str| name.rsplit_once(':').map(|(plain, _)| plain == wanted).unwrap_or(false);
        let found = names.iter().position(|name| name == wanted);
        match found.or_else(|| names.iter().position(|name| plain(name))) {
            Some(index) => Ok(Some(index)),
            None => {
                let near = nearest(wanted, names.iter().map(String::as_str), 3);
                let which = if near.is_empty() { names.join(", ") } else { near.join(" or ") };
                Err(Error::usage(format!("the recording has no event {:?}", clean(wanted)))
                    .try_options(format!("-e {}", clean(&which))))
            }
        }
    }

    fn detail(&self) -> RowDetail {
        match (self.format.detail(), &self.push) {
            (RowDetail::Times, _) if self.aggregate => RowDetail::Threads,
            // A pprof file for a server has no threads.
            (RowDetail::Threads, Some(_)) => RowDetail::Names,
            (detail, _) => detail,
        }
    }

    /// Returns the attributes by which the rows of tables are distinguished.
    fn bucket_attributes(&self, reader: &Reader) -> Vec<SampleAttribute> {
        let ahead = reader.features().clock_data.as_ref().map_or(0, ClockData::to_wall_ns);
        let has_cgroups = reader.layouts().have(sample_type::CGROUP);
        let mut attributes = match self.bucket {
            TimeBucket::Length(length) => vec![SampleAttribute::Bucket(TimeBuckets::aligned(length, ahead))],
            TimeBucket::EachSample => vec![
                SampleAttribute::Pid,
                SampleAttribute::Tid,
                SampleAttribute::Cpu,
                SampleAttribute::Bucket(TimeBuckets::aligned(1, 0)),
            ],
        };
        attributes.extend(has_cgroups.then_some(SampleAttribute::Cgroup));
        attributes
    }
}

/// Returns the attributes by which rows are distinguished in formats other than parquet.
fn attributes(detail: RowDetail) -> Vec<SampleAttribute> {
    let all = [
        (RowDetail::Threads, SampleAttribute::Pid),
        (RowDetail::Threads, SampleAttribute::Tid),
        (RowDetail::Times, SampleAttribute::Time(1)),
        (RowDetail::Times, SampleAttribute::WaitPartner),
        (RowDetail::Payloads, SampleAttribute::Payload),
    ];
    let own = [RowDetail::Slices, RowDetail::Buckets];
    let least = |least: RowDetail| !own.contains(&detail) && detail >= least;
    all.into_iter().filter(|(from, _)| least(*from)).map(|(_, attribute)| attribute).collect()
}

/// How to add up samples in the tables of the format parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBucket {
    /// Add up the samples in buckets of this length, in nanoseconds.
    Length(u64),
    /// Keep each sample.
    EachSample,
}

impl Default for TimeBucket {
    fn default() -> Self {
        Self::Length(60 * S)
    }
}

impl FromStr for TimeBucket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self::EachSample);
        }
        let length = parse_duration(text, None).filter(|length| *length >= S);
        length.map(|length| Self::Length(length / 1000 * 1000)).ok_or_else(|| {
            Error::usage("expected a time of at least one second, or none")
                .try_options("--bucket 60s (s, m, h)")
        })
    }
}

/// A label of a recording: `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingLabel {
    pub key: String,
    pub value: String,
}

impl FromStr for RecordingLabel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(Error::usage(format!("{:?}: expected KEY=VALUE", clean(text)))),
        }
    }
}
