//! Converts the parsed options of `pmc export` and `pmc flamegraph` into a plan without clap's types.

use std::path::{Path, PathBuf};

use crate::cli::export::ExportSource;
use crate::command::destination::{Destination, is_standard};
use crate::command::plan;
use crate::view::export::{ExportFormat, RowDetail};
use crate::view::report::ReportLayout;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::profile::sampled::{Filter, Query, StackDirection};
use pmc_analysis::session::samples::SampleAttribute;
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::Depth;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::text::{clean, nearest};

/// Maximum number of functions whose code is included.
const MOST_CODE: usize = 12;
/// Minimum cost of a function for its code to be included, in percent.
const LEAST_CODE: f64 = 1.0;

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
    /// Whether to print errors only.
    pub(super) is_quiet: bool,
    /// The name of the selected event.
    event: Option<String>,
}

impl ExportPlan {
    /// Converts the options of `pmc export`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(typed: &ExportSource, format: Option<&str>) -> Result<Self> {
        let input = input(typed);
        let format = match (format, &typed.output) {
            (Some(name), _) => ExportFormat::named(name)?,
            (None, Some(file)) if !is_standard(file) => ExportFormat::of_file(file)?,
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
        Self::of(typed, input, output, format)
    }

    /// Converts the options of `pmc flamegraph`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn flame_graph(typed: &ExportSource) -> Result<Self> {
        let output = typed.output.clone().unwrap_or_else(|| "flamegraph.svg".into());
        let format = if is_standard(&output) { ExportFormat::Svg } else { ExportFormat::of_file(&output)? };
        Self::of(typed, input(typed), output, format)
    }

    fn of(typed: &ExportSource, input: PathBuf, output: PathBuf, format: ExportFormat) -> Result<Self> {
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
        to(&output, format).is_not(&input)?;
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
            raw_names: typed.stacks.no_demangle,
            facets: format.detail() == RowDetail::Slices,
            apart: apart(format.detail()),
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
            depth: typed.stacks.no_inline.then_some(Depth::Names),
            event: typed.event.clone(),
            is_quiet: typed.quiet,
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

/// Returns the additional attributes by which rows are distinguished.
fn apart(detail: RowDetail) -> Vec<SampleAttribute> {
    let all = [
        (RowDetail::Threads, SampleAttribute::Pid),
        (RowDetail::Threads, SampleAttribute::Tid),
        (RowDetail::Times, SampleAttribute::Time(1)),
        (RowDetail::Times, SampleAttribute::WaitPartner),
        (RowDetail::Payloads, SampleAttribute::Payload),
    ];
    let least = |least: RowDetail| detail != RowDetail::Slices && detail >= least;
    all.into_iter().filter(|(from, _)| least(*from)).map(|(_, attribute)| attribute).collect()
}

fn input(typed: &ExportSource) -> PathBuf {
    plan::input(typed.input.as_ref().or(typed.file.as_ref()))
}

fn to(output: &Path, format: ExportFormat) -> Destination<'_> {
    let option = if format.is_folder() { AdvisedOption::ExportFolder } else { AdvisedOption::ExportFile };
    Destination { path: output, option, keeps: false }
}
