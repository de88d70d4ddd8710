//! Converts the parsed options of `pmc report` into a plan without clap's types.

use std::path::PathBuf;

use crate::cli::report::ReportArgs;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::request::{CostMeasure, LatencyMode, TraceField, WaitRows};
use pmc_analysis::profile::sampled::chains::ChainRequest;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::trust::TrustDetail;
use pmc_analysis::profile::sampled::{Filter, NameStyle, Query, ShareOf, SortKey, StackDirection};
use pmc_command::plan::{self, duration};
use pmc_command::recording_screen::ScreenPlan;
use pmc_command::row_options::{RowLayout, rows};
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::Depth;
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::theme::Background;
use pmc_text::terminal::{self, Paint, Stream};
use pmc_text::units::MS;
use pmc_view::report::{
    ChainPosition, ChainShape, ChainUnit, EventGrouping, ReportColumn, ReportFormat, ReportLayout,
};

/// Settings of `pmc report`.
#[derive(Debug)]
pub(in crate::command) struct ReportPlan {
    pub(super) input: PathBuf,
    /// The output stream for text.
    pub(super) stream: Stream,
    pub(super) header: HeaderChoice,
    /// The list to show instead of a profile.
    pub(super) listing: Option<ListKind>,
    /// Whether to also show each thread's final counts.
    pub(super) thread_counts: bool,
    /// Whether to open the full-screen interface if the output is a terminal, because no option requires text
    /// output.
    pub(super) browses: bool,
    /// The terminal's background, if specified.
    pub(super) background: Option<Background>,
    pub(super) request: AnalysisRequest,
    pub(super) query: Query,
    pub(super) depth: Option<Depth>,
    pub(super) layout: ReportLayout,
}

/// Whether to show the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderChoice {
    No,
    First,
    Only,
}

/// A list to show instead of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    /// The number of records of each type.
    Records,
    /// A hex dump of the records, then the number of records.
    Dump,
    /// Tasks, with or without their mappings.
    Tasks { maps: bool },
}

impl ReportPlan {
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(typed: &ReportArgs) -> Result<Self> {
        let RowLayout { mut keys, trace_fields, columns, mut added, ranks, are_usual } =
            rows(&typed.sort, &typed.fields)?;
        if typed.show_cpu_utilization {
            added.splice(0..0, [ReportColumn::InMode(0), ReportColumn::InMode(1)]);
        }
        if typed.stacks.parent.is_some() && !keys.contains(&SortKey::Parent) {
            keys.push(SortKey::Parent);
        }
        let CallGraphOptions { order, limit, shape, unit, lines } = call_graph(typed)?;
        let children = !typed.no_children;
        let form = match &typed.field_separator {
            Some(separator) => ReportFormat::Separated(separator.clone()),
            None if typed.csv => ReportFormat::Csv,
            None if typed.json => ReportFormat::Json,
            None => ReportFormat::Text,
        };
        let parseable = !matches!(form, ReportFormat::Text);
        let usual = ReportLayout::default();
        let colour = plan::colour(&typed.stdio_color);
        let stream = if typed.to_stderr { Stream::Error } else { Stream::Output };
        let is_piped = !stream.is_terminal() && !typed.is_page && colour != Some(true);
        let under_rows = shows_chains_under_rows(typed, &form, is_piped);
        // perf's default order, except that trees have the caller at the root.
        let order = match order {
            ChainOrder::Typed(order) => Some(order),
            ChainOrder::Usual if under_rows && !children => Some(StackDirection::Callee),
            ChainOrder::Usual => Some(StackDirection::Caller),
            ChainOrder::NoChains => None,
        };
        let has_perfs_form = matches!(form, ReportFormat::Separated(_)) || !parseable && is_piped;
        let background = plan::background(typed.screen.theme.as_deref())?;
        let layout = ReportLayout {
            form,
            columns,
            added,
            show_samples: typed.show_nr_samples,
            show_period: typed.show_total_period,
            rows: plan::rows(typed.limit, !parseable && !is_piped, usual.rows),
            height: (typed.limit.is_none() && !parseable && !is_piped)
                .then(|| stream.size().map_or(usize::MAX, |(_, lines)| lines.into())),
            row_limit: typed.percent_limit.unwrap_or(0.0),
            branch_limit: typed.percent_limit.or(limit).unwrap_or(if typed.json {
                plan::BRANCH_IN_JSON
            } else {
                usual.branch_limit
            }),
            grouping: match (typed.group, typed.no_group) {
                (_, true) => EventGrouping::Apart,
                (true, _) => EventGrouping::All,
                _ => EventGrouping::Recorded,
            },
            widths: typed.column_widths.clone(),
            callee: order == Some(StackDirection::Callee),
            shape,
            unit,
            chains: match under_rows {
                true => ChainPosition::UnderRows { omits_first: names_functions_first(typed) },
                false => ChainPosition::Below,
            },
            branches: lines,
            hierarchy: typed.hierarchy,
            full_paths: typed.full_source_path,
            full_names: typed.full_names,
            nanoseconds: typed.ns,
            sort_member: typed.group_sort_idx.unwrap_or(0),
            width: (!is_piped).then(|| terminal::columns(stream)),
            paint: if is_piped { Paint::default() } else { terminal::paint(stream, colour, background) },
            tree_lines: (!is_piped && typed.percent_limit.or(limit).is_none()).then_some(plan::TREE_LINES),
            is_piped,
            trust: if typed.verbose > 0 { TrustDetail::Full } else { TrustDetail::Brief },
            is_quiet: typed.quiet,
            single_values: if has_perfs_form { single_values(typed) } else { Vec::new() },
            filters: filters(typed),
        };
        let has_stacks = order.is_some() || children;
        let request = request(typed, &layout, (keys, trace_fields, are_usual), has_stacks)?;
        let (input, part) = match positional(typed) {
            PositionalMeaning::Input(input) => (input, typed.stacks.symbol_filter.clone()),
            PositionalMeaning::Symbol(part) => (typed.input.as_ref(), Some(part)),
        };
        let query = Query {
            totals: children,
            by_mode: layout.asks_modes(),
            innermost: !parseable && !is_piped,
            share_of: if typed.latency { ShareOf::Latency } else { ShareOf::Period },
            ranks,
            tree: order.filter(|_| !under_rows),
            chains: order.filter(|_| under_rows).map(|order| ChainRequest {
                order,
                collapse: typed.collapse_recursion,
                limit: layout.branch_limit / 100.0,
                relative: shape == ChainShape::Fractal,
                row_limit: layout.row_limit / 100.0,
            }),
            collapse: typed.collapse_recursion,
            limit: layout.branch_limit / 100.0,
            // Show them only on terminals, because rows in a pipe must match perf's.
            language_functions: !parseable && !is_piped && !typed.quiet && request.callers,
            // As in perf, percentages then exclude samples without names.
            states_apart: true,
            relative: typed.percentage == "relative" || typed.stacks.hide_unresolved,
            filter: Filter { only: RowSelection { part, ..plan::only(&typed.stacks) }, ..Filter::default() },
            ..Query::default()
        };
        Ok(Self {
            input: plan::input(input),
            stream,
            header: match (typed.header_only, typed.header) {
                (true, _) => HeaderChoice::Only,
                (_, true) => HeaderChoice::First,
                _ => HeaderChoice::No,
            },
            listing: listing(typed),
            thread_counts: typed.threads && !parseable,
            background,
            browses: browses(typed, parseable),
            request,
            query,
            depth: typed.stacks.no_inline.then_some(Depth::Names),
            layout,
        })
    }

    /// Returns the level of detail at which names are resolved.
    pub(super) fn depth(&self, reader: &Reader) -> Depth {
        self.depth.unwrap_or(self.request.depth(reader))
    }

    /// Converts the plan to one for the full-screen interface.
    pub(super) fn screen(self) -> ScreenPlan {
        let Self { input, background, request, query, depth, layout, .. } = self;
        // Exports do not depend on the terminal's width, and the screen always shows call chains as a tree.
        let tree = query.tree.or(query.chains.map(|chains| chains.order));
        let query = Query { tree, chains: None, ..query };
        let chains = ChainPosition::Below;
        let layout =
            ReportLayout { chains, width: None, paint: Paint::default(), tree_lines: None, ..layout };
        let plan = ScreenPlan::new(&input, request);
        ScreenPlan { depth: depth.unwrap_or(plan.depth), background, query, layout, ..plan }
    }
}

/// Returns the samples to load, and the properties by which rows are distinguished.
fn request(
    typed: &ReportArgs,
    layout: &ReportLayout,
    (keys, trace_fields, usual_keys): (Vec<SortKey>, Vec<TraceField>, bool),
    has_stacks: bool,
) -> Result<AnalysisRequest> {
    let stack_changes = plan::stack_changes(&typed.stacks)?;
    let mut selection = plan::selection_of_stacks(&typed.filter, &typed.stacks)?;
    selection.parallelism = match typed.parallelism.as_deref() {
        Some(list) => Some(plan::parallelism(list)?.iter().collect()),
        None => None,
    };
    let wants_latency = typed.latency
        || selection.parallelism.is_some()
        || keys.contains(&SortKey::Parallelism)
        || layout.columns.iter().flatten().chain(&layout.added).any(|column| column.is_latency());
    Ok(AnalysisRequest {
        selection,
        usual_keys,
        slice: duration("--time-quantum", &typed.time_quantum, MS, 1)?,
        measure: match (
            typed.branch_stack || keys.iter().any(|key| key.is_of_branch()),
            typed.mem_mode,
            typed.no_branch_stack,
        ) {
            (true, ..) => CostMeasure::Branches,
            (_, true, _) => CostMeasure::Weight,
            (_, _, true) => CostMeasure::Period,
            _ => CostMeasure::BranchesIfRecorded,
        },
        latency: if wants_latency { LatencyMode::Wanted } else { LatencyMode::IfRecorded },
        // The page that `pmc profile` prints does not show callers, but it shows how many stacks are
        // complete.
        callers: has_stacks || stack_changes.changes_any() || typed.is_page,
        max_stack: typed.stacks.max_stack,
        joins: !typed.filter.no_join,
        idle: typed.filter.idle,
        // perf's rows, for programs that read perf's columns and for chains below rows.
        wait_rows: match &layout.form {
            ReportFormat::Json => WaitRows::Functions,
            ReportFormat::Text if !layout.is_piped && layout.chains == ChainPosition::Below => {
                WaitRows::Functions
            }
            _ => WaitRows::KernelFunctions,
        },
        stitches: typed.stacks.stitch_lbr,
        stack_changes,
        name_style: NameStyle { raw: typed.stacks.no_demangle, ..NameStyle::default() },
        raw_traces: typed.raw_trace,
        keys,
        trace_fields,
        ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files)?)
    })
}

/// Whether to print call chains under their rows, as in perf, instead of in one tree.
fn shows_chains_under_rows(typed: &ReportArgs, form: &ReportFormat, is_piped: bool) -> bool {
    let is_asked_for = typed.call_graph.is_some() || typed.inverted;
    let is_fitting = match form {
        ReportFormat::Text => is_piped || is_asked_for,
        ReportFormat::Separated(_) => is_asked_for,
        ReportFormat::Csv | ReportFormat::Json => false,
    };
    is_fitting && !typed.tree && !typed.hierarchy && !typed.is_page
}

/// Returns the list that replaces the profile, if one is requested.
fn listing(typed: &ReportArgs) -> Option<ListKind> {
    match (typed.dump_raw_trace, typed.stats, typed.tasks || typed.mmaps) {
        (true, ..) => Some(ListKind::Dump),
        (_, true, _) => Some(ListKind::Records),
        (.., true) => Some(ListKind::Tasks { maps: typed.mmaps }),
        _ => None,
    }
}

/// Whether to open the full-screen interface, because no option requests text output.
fn browses(typed: &ReportArgs, parseable: bool) -> bool {
    let is_for_text =
        listing(typed).is_some() || typed.header || typed.header_only || typed.threads || typed.hierarchy;
    let has_groups = typed.group || typed.no_group;
    let has_layout = typed.limit.is_some() || !typed.fields.is_empty() || !typed.column_widths.is_empty();
    !(typed.stdio || parseable || is_for_text || has_groups || has_layout)
}

/// The meaning of the positional argument.
enum PositionalMeaning<'a> {
    /// The recording; `None` for the default file.
    Input(Option<&'a PathBuf>),
    /// Part of a function name, as in perf.
    Symbol(String),
}

/// Interprets the positional argument. As in perf, it is part of a function name unless it can be a
/// recording.
fn positional(typed: &ReportArgs) -> PositionalMeaning<'_> {
    let Some(word) = &typed.file else { return PositionalMeaning::Input(typed.input.as_ref()) };
    let is_file = word.as_os_str() == "-" || word.components().count() > 1 || word.exists();
    match (&typed.input, word.to_str()) {
        (Some(_), Some(part)) => PositionalMeaning::Symbol(part.to_owned()),
        (None, Some(part)) if !is_file && !part.ends_with(".data") => {
            PositionalMeaning::Symbol(part.to_owned())
        }
        _ => PositionalMeaning::Input(Some(word)),
    }
}

/// Returns the options that select samples, as typed.
fn filters(typed: &ReportArgs) -> Vec<String> {
    let numbers = |all: &[i32]| all.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let (filter, stacks) = (&typed.filter, &typed.stacks);
    let part = match positional(typed) {
        PositionalMeaning::Input(_) => stacks.symbol_filter.clone(),
        PositionalMeaning::Symbol(part) => Some(part),
    };
    let options = [
        ("--comms", filter.comms.join(",")),
        ("--pid", numbers(&filter.pid)),
        ("--tid", numbers(&filter.tid)),
        ("--cpu", filter.cpu.clone().unwrap_or_default()),
        ("--time", filter.time.clone().unwrap_or_default()),
        ("--dsos", stacks.dsos.join(",")),
        ("--symbols", stacks.symbols.join(",")),
        ("--symbol-filter", part.unwrap_or_default()),
        ("--state", stacks.state.join(",")),
        ("--parallelism", typed.parallelism.clone().unwrap_or_default()),
    ];
    let given = options.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(option, value)| format!("{option} {value}")).collect()
}

/// Returns the sort keys that a filter restricts to a single value.
fn single_values(typed: &ReportArgs) -> Vec<(SortKey, String)> {
    let filters = [
        (SortKey::Comm, &typed.filter.comms),
        (SortKey::Dso, &typed.stacks.dsos),
        (SortKey::Symbol, &typed.stacks.symbols),
    ];
    filters
        .into_iter()
        .filter_map(|(key, values)| match values.as_slice() {
            [value] => Some((key, value.clone())),
            _ => None,
        })
        .collect()
}

/// Whether rows start with function names. As in perf, this is the case if the first key of `-s` begins with
/// `sym`.
fn names_functions_first(typed: &ReportArgs) -> bool {
    typed.fields.is_empty() && typed.sort.first().is_some_and(|key| key.starts_with("sym"))
}

/// Order of the call chains.
enum ChainOrder {
    Typed(StackDirection),
    Usual,
    NoChains,
}

/// Options of `-g` and `-G`.
struct CallGraphOptions {
    order: ChainOrder,
    /// Minimum size of a branch, in percent.
    limit: Option<f64>,
    shape: ChainShape,
    unit: ChainUnit,
    /// Maximum number of lines in the tree.
    lines: Option<usize>,
}

fn call_graph(typed: &ReportArgs) -> Result<CallGraphOptions> {
    let mut graph = CallGraphOptions {
        order: ChainOrder::Usual,
        limit: None,
        shape: ChainShape::Tree,
        unit: ChainUnit::Percent,
        lines: None,
    };
    for word in typed.call_graph.iter().flatten().map(|word| word.trim()) {
        match word {
            "caller" => graph.order = ChainOrder::Typed(StackDirection::Caller),
            "callee" => graph.order = ChainOrder::Typed(StackDirection::Callee),
            "none" => graph.order = ChainOrder::NoChains,
            "graph" => graph.shape = ChainShape::Tree,
            "fractal" => graph.shape = ChainShape::Fractal,
            "flat" => graph.shape = ChainShape::Flat,
            "folded" => graph.shape = ChainShape::Folded,
            "percent" => graph.unit = ChainUnit::Percent,
            "period" => graph.unit = ChainUnit::Period,
            "count" => graph.unit = ChainUnit::Count,
            "" | "function" => {}
            "address" => {
                return Err(Error::usage("the call tree supports functions only, not addresses")
                    .try_this("-s sym,srcline splits functions by line"));
            }
            "branch" => {
                return Err(Error::usage("pmc does not combine branches with call chains").try_this("-b"));
            }
            _ => match (word.parse::<f64>(), graph.limit) {
                (Ok(percent), None) => graph.limit = Some(percent),
                (Ok(lines), Some(_)) => {
                    graph.lines = Some(lines.max(0.0) as usize).filter(|lines| *lines > 0)
                }
                (Err(_), _) => {
                    return Err(Error::usage(format!("-g: unknown word {word:?}")).try_this(
                        "use caller, callee or none; graph, fractal, flat or folded; percent, period or \
                         count; and a percentage such as 0.5",
                    ));
                }
            },
        }
    }
    if typed.inverted {
        graph.order = ChainOrder::Typed(StackDirection::Caller);
    }
    Ok(graph)
}
