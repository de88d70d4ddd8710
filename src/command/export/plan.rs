//! Converts the parsed options of `pmc export` and `pmc flamegraph` into a plan without clap's types.

use std::path::{Path, PathBuf};

use super::push::PushPlan;
use crate::cli::export::{ExportArgs, ExportSource, ParquetTables, PushOptions};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::profile::sampled::{Filter, NameStyle, Query, StackDirection};
use pmc_analysis::session::samples::{SampleAttribute, TimeBuckets};
use pmc_command::destination::{Destination, is_standard};
use pmc_command::plan;
use pmc_formats::export::{ExportFormat, RecordingOrigin, RowDetail};
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_symbols::symbol::Depth;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_text::text::{clean, nearest};
use pmc_text::units::{S, parse_duration};
use pmc_view::report::ReportLayout;

/// Maximum number of functions whose code is included.
const MOST_CODE: usize = 12;
/// Minimum cost of a function for its code to be included, in percent.
const LEAST_CODE: f64 = 1.0;

/// Default length of a time bucket.
const BUCKET: &str = "60s";

/// Settings of `pmc export`.
#[derive(Debug)]
pub(in crate::command) struct ExportPlan {
    pub(super) input: PathBuf,
    /// The output file; `-` is standard output.
    pub(super) output: PathBuf,
    pub(super) format: ExportFormat,
    /// The recording's title in the output.
    pub(super) title: String,
    /// The recording to compare with.
    pub(super) before: Option<PathBuf>,
    pub(super) request: AnalysisRequest,
    /// The query, except for the event; see [`ExportPlan::event`].
    pub(super) query: Query,
    /// Level of detail for names, if specified.
    pub(super) depth: Option<Depth>,
    /// Layout of tables.
    pub(super) layout: ReportLayout,
    /// The functions whose code is included.
    pub(super) code: AnnotationRequest,
    /// What the user says about the origin of the samples.
    pub(super) origin: RecordingOrigin,
    /// Length of the time buckets in nanoseconds; `None` to keep each sample.
    pub(super) bucket: Option<u64>,
    /// Whether to print errors only.
    pub(super) is_quiet: bool,
    /// The server to push to, if any. In this case, `output` receives what the server refuses.
    pub(super) push: Option<PushPlan>,
    /// Whether to export the time of each sample.
    pub(super) with_times: bool,
    /// The name of the selected event.
    event: Option<String>,
}

impl ExportPlan {
    /// Converts the options of `pmc export`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(args: &ExportArgs) -> Result<Self> {
        let (typed, asked) = (&args.source, &args.push);
        let input = input(typed);
        let named = args.format.as_deref().map(ExportFormat::named).transpose()?;
        let push = asked.push.as_deref().map(|push| PushPlan::new(push, asked.push_headers.clone(), named));
        let push = push.transpose()?;
        let format = match (&push, named, &typed.output) {
            (Some(push), _, _) => push.api.format(),
            (None, Some(format), _) => format,
            (None, None, Some(file)) if !is_standard(file) => ExportFormat::of_file(file)?,
            _ => {
                return Err(Error::usage("missing output format")
                    .try_this(format!("-o FILE, with an extension: {}", ExportFormat::endings()))
                    .try_this("--format NAME"));
            }
        };
        let output = typed.output.clone().unwrap_or_else(|| match is_standard(&input) {
            true => PathBuf::from(format!("pmc{}", format.ending())),
            false => {
                PathBuf::from(input.file_name().unwrap_or_default()).with_extension(&format.ending()[1..])
            }
        });
        if push.is_some() && is_standard(&output) {
            return Err(Error::usage("--push cannot be combined with -o -")
                .why("with --push, -o names the file that receives what the server refuses"));
        }
        if asked.aggregate && format != ExportFormat::Otlp {
            return Err(Error::usage("only OTLP supports --aggregate").try_this("--format otlp"));
        }
        let given = [
            (asked.service.is_some(), "--service"),
            (asked.service_version.is_some(), "--service-version"),
            (asked.host.is_some(), "--host"),
        ];
        let has_origin = push.is_some() || format == ExportFormat::Otlp || format.is_pair();
        if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given && !has_origin) {
            return Err(Error::usage(format!("{option} requires --push, or the format otlp or parquet")));
        }
        let mut plan = Self { push, ..Self::of(typed, input, output, format, asked)? };
        plan.origin = RecordingOrigin {
            service: asked.service.clone().unwrap_or_default(),
            version: asked.service_version.clone().unwrap_or_default(),
            host: asked.host.clone(),
            labels: Vec::new(),
        };
        plan.set_tables(&args.tables)?;
        Ok(plan)
    }

    /// Applies the options of the format parquet.
    fn set_tables(&mut self, typed: &ParquetTables) -> Result<()> {
        let ParquetTables { label, bucket, no_symbols } = typed;
        let given =
            [(!label.is_empty(), "--label"), (bucket.is_some(), "--bucket"), (*no_symbols, "--no-symbols")];
        if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given && !self.format.is_pair()) {
            return Err(Error::usage(format!("{option} requires --format parquet")));
        }
        let labels: Result<Vec<(String, String)>> = label.iter().map(|text| parse_label(text)).collect();
        self.origin.labels = labels?;
        self.bucket = parse_bucket(bucket.as_deref().unwrap_or(BUCKET))?;
        self.request.symbols.files = !no_symbols;
        Ok(())
    }

    /// Converts the options of `pmc flamegraph`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn flame_graph(typed: &ExportSource) -> Result<Self> {
        let output = typed.output.clone().unwrap_or_else(|| "flamegraph.svg".into());
        let format = if is_standard(&output) { ExportFormat::Svg } else { ExportFormat::of_file(&output)? };
        Self::of(typed, input(typed), output, format, &PushOptions::default())
    }

    fn of(
        typed: &ExportSource,
        input: PathBuf,
        output: PathBuf,
        format: ExportFormat,
        asked: &PushOptions,
    ) -> Result<Self> {
        if typed.diff.is_some() && !format.is_differential() {
            return Err(Error::usage("only a flame graph supports --diff")
                .try_this("--diff FILE -o OUT.svg")
                .try_this("pmc diff FILE FILE, for tables"));
        }
        if typed.diff.as_deref().is_some_and(is_standard) && is_standard(&input) {
            return Err(Error::usage("only one recording can come from standard input"));
        }
        if format.is_folder() && is_standard(&output) {
            return Err(Error::usage("the gmon format writes to a directory, not to standard output")
                .try_option(AdvisedOption::ExportFolder, "{option} DIR"));
        }
        if format.is_pair() && is_standard(&output) {
            return Err(Error::usage("the parquet format writes two files, not to standard output")
                .try_option(
                    AdvisedOption::ExportFile,
                    "{option} OUT, for OUT.samples.parquet and OUT.stacks.parquet",
                ));
        }
        to(&output, format).is_not(&input)?;
        // A pprof file for a server has no threads: `export::pprof`.
        let detail = match (format.detail(), &asked.push) {
            (RowDetail::Times, _) if asked.aggregate => RowDetail::Threads,
            (RowDetail::Threads, Some(_)) => RowDetail::Names,
            (detail, _) => detail,
        };
        let layout = ReportLayout { branch_limit: plan::BRANCH_IN_JSON, ..ReportLayout::default() };
        let request = AnalysisRequest {
            selection: plan::selection_of_stacks(&typed.filter, &typed.stacks)?,
            usual_keys: true,
            // Tables count what `pmc report` counts, which may be branches. Stacks always count samples.
            measure: if format.is_table() { CostMeasure::BranchesIfRecorded } else { CostMeasure::Period },
            max_stack: typed.stacks.max_stack,
            joins: !typed.filter.no_join,
            idle: typed.filter.idle,
            stitches: typed.stacks.stitch_lbr,
            stack_changes: plan::stack_changes(&typed.stacks)?,
            name_style: NameStyle { raw: typed.stacks.no_demangle, ..NameStyle::default() },
            facets: detail == RowDetail::Slices,
            apart: apart(detail),
            ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files)?)
        };
        let query = Query {
            totals: true,
            tree: Some(StackDirection::Caller),
            limit: layout.branch_limit / 100.0,
            filter: Filter { only: plan::only(&typed.stacks), ..Filter::default() },
            ..Query::default()
        };
        let name = input.file_name().filter(|_| !is_standard(&input));
        Ok(Self {
            title: name.map_or_else(|| "recording".to_owned(), |name| name.to_string_lossy().into_owned()),
            before: typed.diff.clone(),
            depth: match typed.stacks.no_inline {
                true => Some(Depth::Names),
                false => format.is_pair().then_some(Depth::Inlines),
            },
            origin: RecordingOrigin::default(),
            bucket: None,
            event: typed.event.clone(),
            is_quiet: typed.quiet,
            push: None,
            with_times: detail >= RowDetail::Times,
            code: AnnotationRequest {
                dsos: typed.stacks.dsos.clone(),
                most: MOST_CODE,
                limit: LEAST_CODE,
                options: ListingOptions {
                    with_source: true,
                    folders: SourceFolders {
                        symfs: typed.symbol_files.symfs.clone(),
                        ..SourceFolders::default()
                    },
                    raw_names: typed.stacks.no_demangle,
                    ..ListingOptions::default()
                },
                ..AnnotationRequest::default()
            },
            input,
            output,
            format,
            request,
            query,
            layout,
        })
    }

    /// Returns where to write the output.
    pub(super) fn destination(&self) -> Destination<'_> {
        to(&self.output, self.format)
    }

    /// Returns the paths of the tables `samples` and `stacks`. In a directory, they start with the name of
    /// the recording.
    pub(super) fn tables(&self) -> [PathBuf; 2] {
        let path = self.output.as_os_str().to_string_lossy();
        let start = match self.output.is_dir() || path.ends_with('/') {
            true => self.output.join(self.title.strip_suffix(".data").unwrap_or(&self.title)),
            false => PathBuf::from(path.strip_suffix(".parquet").unwrap_or(&path)),
        };
        ["samples", "stacks"].map(|table| plan::with_suffix(&start, &format!(".{table}.parquet")))
    }

    /// Returns the additional attributes by which rows of this recording are distinguished.
    pub(super) fn apart(&self, reader: &Reader) -> Vec<SampleAttribute> {
        if self.format.detail() != RowDetail::Buckets {
            return self.request.apart.clone();
        }
        let each = [
            SampleAttribute::Pid,
            SampleAttribute::Tid,
            SampleAttribute::Cpu,
            SampleAttribute::Bucket(TimeBuckets::aligned(1, 0)),
        ];
        let ahead = reader.features().clock_data.as_ref().map_or(0, ClockData::to_wall_ns);
        let has_cgroups = reader.layouts().have(sample_type::CGROUP);
        let mut apart = match self.bucket {
            Some(length) => vec![SampleAttribute::Bucket(TimeBuckets::aligned(length, ahead))],
            None => each.to_vec(),
        };
        apart.extend(has_cgroups.then_some(SampleAttribute::Cgroup));
        apart
    }

    /// Returns the index of the selected event, or `None` if no event is selected.
    ///
    /// # Errors
    /// Fails if the recording has no event with this name.
    pub(super) fn event(&self, reader: &Reader) -> Result<Option<usize>> {
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
                    .try_this(format!("-e {}", clean(&which))))
            }
        }
    }
}

/// Parses `--label`.
fn parse_label(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Error::usage(format!("--label {:?}: expected KEY=VALUE", clean(text)))),
    }
}

/// Parses `--bucket`.
fn parse_bucket(text: &str) -> Result<Option<u64>> {
    if text == "none" {
        return Ok(None);
    }
    let length = parse_duration(text, None).filter(|length| *length >= S).map(|length| length / 1000 * 1000);
    length.map(Some).ok_or_else(|| {
        Error::usage(format!("--bucket {:?}: expected a time of at least one second, or none", clean(text)))
            .try_this("--bucket 60s (s, m, h)")
    })
}

/// Returns the additional attributes by which rows are distinguished.
fn apart(detail: RowDetail) -> Vec<SampleAttribute> {
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

fn input(typed: &ExportSource) -> PathBuf {
    plan::input(typed.input.as_ref().or(typed.file.as_ref()))
}

fn to(output: &Path, format: ExportFormat) -> Destination<'_> {
    let option = if format.is_folder() { AdvisedOption::ExportFolder } else { AdvisedOption::ExportFile };
    Destination { path: output, option, keeps: false }
}
