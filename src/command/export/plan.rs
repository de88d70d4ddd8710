//! `pmc export` and `pmc flamegraph`: what was typed, turned into what it means, without clap's types.

use std::path::{Path, PathBuf};

use crate::analysis::AnalysisRequest;
use crate::analysis::annotate::AnnotationRequest;
use crate::analysis::annotate::listing::ListingOptions;
use crate::analysis::request::Measure;
use crate::cli::export::ExportSource;
use crate::command::destination::{Destination, is_standard};
use crate::command::plan;
use crate::error::{Error, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::{Filter, Order, Query};
use crate::session::samples::SampleAttribute;
use crate::symbol::Depth;
use crate::symbol::source_text::SourceFolders;
use crate::text::{clean, nearest};
use crate::view::export::{Detail, Format};
use crate::view::report::Layout;

/// Most functions whose code is shown, …
const MOST_CODE: usize = 12;
/// … and the least that each costs, in percent.
const LEAST_CODE: f64 = 1.0;

/// What `pmc export` does.
#[derive(Debug)]
pub(in crate::command) struct Plan {
    pub(super) input: PathBuf,
    /// `-` is standard output.
    pub(super) output: PathBuf,
    pub(super) format: Format,
    /// What the recording is called in what is written.
    pub(super) title: String,
    /// The recording that this one is compared with.
    pub(super) before: Option<PathBuf>,
    pub(super) request: AnalysisRequest,
    /// The question, but for the event: [`Plan::event`].
    pub(super) query: Query,
    /// How deep names go, where that was said.
    pub(super) depth: Option<Depth>,
    /// How tables are shown.
    pub(super) layout: Layout,
    /// Which functions' code is shown.
    pub(super) code: AnnotationRequest,
    /// What is not an error is not said.
    pub(super) is_quiet: bool,
    /// The name of the only event.
    event: Option<String>,
}

impl Plan {
    /// `pmc export`.
    ///
    /// # Errors
    /// When something typed means nothing here.
    pub(in crate::command) fn new(typed: &ExportSource, format: Option<&str>) -> Result<Self> {
        let input = input(typed);
        let format = match (format, &typed.output) {
            (Some(name), _) => Format::named(name)?,
            (None, Some(file)) if !is_standard(file) => Format::of_file(file)?,
            _ => {
                return Err(Error::usage("missing output format")
                    .try_this(format!("-o FILE, with an extension: {}", Format::endings()))
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

    /// `pmc flamegraph`.
    ///
    /// # Errors
    /// When something typed means nothing here.
    pub(in crate::command) fn flame_graph(typed: &ExportSource) -> Result<Self> {
        let output = typed.output.clone().unwrap_or_else(|| "flamegraph.svg".into());
        let format = if is_standard(&output) { Format::Svg } else { Format::of_file(&output)? };
        Self::of(typed, input(typed), output, format)
    }

    fn of(typed: &ExportSource, input: PathBuf, output: PathBuf, format: Format) -> Result<Self> {
        if typed.diff.is_some() && !format.is_differential() {
            return Err(Error::usage("only a flame graph supports --diff")
                .try_this("--diff FILE -o OUT.svg")
                .try_this("pmc diff FILE FILE, for tables"));
        }
        if typed.diff.as_deref().is_some_and(is_standard) && is_standard(&input) {
            return Err(Error::usage("only one recording can come from standard input"));
        }
        if format.is_folder() && is_standard(&output) {
            return Err(
                Error::usage("the gmon format writes a directory, not standard output").try_this("-o DIR")
            );
        }
        to(&output).is_not(&input)?;
        let layout = Layout { branch_limit: plan::BRANCH_IN_JSON, ..Layout::default() };
        let request = AnalysisRequest {
            selection: plan::selection_of_stacks(&typed.filter, &typed.stacks)?,
            usual_keys: true,
            // Tables are those of a report; stacks are of samples.
            measure: if format.is_table() { Measure::BranchesIfRecorded } else { Measure::Period },
            max_stack: typed.stacks.max_stack,
            joins: !typed.filter.no_join,
            stitches: typed.stacks.stitch_lbr,
            stack_changes: plan::stack_changes(&typed.stacks)?,
            raw_names: typed.stacks.no_demangle,
            facets: format.detail() == Detail::Slices,
            apart: apart(format.detail()),
            ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files)?)
        };
        let query = Query {
            totals: true,
            tree: Some(Order::Caller),
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

    /// Where it is written.
    pub(super) fn destination(&self) -> Destination<'_> {
        to(&self.output)
    }

    /// The index of the only event that is wanted, if one was named.
    ///
    /// # Errors
    /// When the recording has none of that name.
    pub(super) fn event(&self, reader: &Reader) -> Result<Option<usize>> {
        let Some(wanted) = self.event.as_deref().map(str::trim) else { return Ok(None) };
        let names: Vec<String> = reader.events().iter().map(|event| event.name()).collect();
        // Modifiers need not be typed.
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

/// What rows are told apart by, besides what the facets of a request are.
fn apart(detail: Detail) -> Vec<SampleAttribute> {
    let all = [
        (Detail::Threads, SampleAttribute::Pid),
        (Detail::Threads, SampleAttribute::Tid),
        (Detail::Times, SampleAttribute::Time(1)),
        (Detail::Payloads, SampleAttribute::Payload),
    ];
    let least = |least: Detail| detail != Detail::Slices && detail >= least;
    all.into_iter().filter(|(from, _)| least(*from)).map(|(_, attribute)| attribute).collect()
}

fn input(typed: &ExportSource) -> PathBuf {
    plan::input(typed.input.as_ref().or(typed.file.as_ref()))
}

fn to(output: &Path) -> Destination<'_> {
    Destination { path: output, option: "-o", keeps: false }
}
