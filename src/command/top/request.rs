//! Converts the parsed options of `pmc top` into a [`TopRequest`].
//!
//! Checks the rules that clap cannot express. Options shared with `record` ([`sampling_options`]) have the
//! same meaning in both commands.

use std::time::Duration;

use crate::cli::top::TopArgs;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::live::names::NameOptions;
use pmc_analysis::analysis::live::snapshot::{Retention, SnapshotOptions};
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::{Filter, Query, SortKey, StackDirection, sort, waits};
use pmc_analysis::session::SampleQuery;
use pmc_analysis::session::samples::SampleAttribute;
use pmc_command::options::sample_filter::ShareBase;
use pmc_command::options::stack_options::listed;
use pmc_command::sampling_options::{self, TargetOptions, pfm_events};
use pmc_command::values::Limit;
use pmc_events::counter::open;
use pmc_events::counter::request::sampling::{CallGraph, SampleOptions};
use pmc_recording::recording::live::LivePlan;
use pmc_recording::recording::plan::{MeasurementScope, OffCpuPlan, RunSchedule, SamplePlan};
use pmc_recording::recording::ring_size::RingSize;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_symbols::symbol::{Depth, SymbolOptions as Symbols};
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::clock;
use pmc_sys::sys::credentials::Credentials;
use pmc_sys::sys::process::Streams;
use pmc_text::terminal::Stream;
use pmc_text::terminal::theme::Background;
use pmc_view::report::row_layout::RowLayout;
use pmc_view::report::{EventGrouping, ReportLayout};

/// What to sample, and how to show it.
pub(in crate::command) struct TopRequest {
    /// The targets and events to sample.
    pub(super) live: LivePlan,
    pub(super) names: NameOptions,
    pub(super) snapshots: SnapshotOptions,
    /// The rows to show.
    pub(super) query: Query,
    pub(super) layout: ReportLayout,
    pub(super) retention: Retention,
    /// How to list the code of a function.
    pub(super) code: ListingOptions,
    pub(super) timeout: Option<Duration>,
    /// The terminal's background, if specified.
    pub(super) background: Option<Background>,
    pub(super) stdio: bool,
    pub(super) json: bool,
    pub(super) tui: bool,
}

/// Default time between updates.
const DELAY: Duration = Duration::from_secs(2);
/// Minimum time between updates.
const SHORTEST_DELAY: Duration = Duration::from_millis(10);
/// Default maximum of frames in a call chain.
const FRAMES: u16 = 127;
/// Rows per table in text output.
const ROWS: usize = 20;
/// Default sort keys.
const KEYS: [SortKey; 2] = [SortKey::Dso, SortKey::Symbol];
/// Minimum size of a branch in the tree, in percent.
const BRANCH: f64 = 2.0;

impl TopArgs {
    /// Converts the options. Warns about options without effect.
    ///
    /// # Errors
    /// Fails if options contradict each other, or a target does not exist.
    pub(in crate::command) fn request(&self, host: &Host) -> Result<TopRequest> {
        let typed = self;
        let RowLayout { mut keys, trace_fields, columns, added, ranks, are_usual, .. } =
            RowLayout::new(&typed.sort, &typed.fields)?;
        if !trace_fields.is_empty() {
            return Err(Error::usage("pmc top cannot sort by tracepoint fields")
                .try_this("pmc record, then pmc report with the same -s"));
        }
        if are_usual {
            keys.retain(|key| !KEYS.contains(key));
            keys.splice(..0, KEYS);
        }
        if let Some((key, record)) = keys.iter().find_map(|key| Some((key, needed_recording(*key)?))) {
            return Err(Error::usage(format!("{:?} cannot be a sort key in a live view", key.name()))
                .try_this(format!("{record}, then pmc report -s {}", key.name())));
        }
        let mut attributes = sort::attributes(&keys, 1);
        let sample = sampling(typed, &attributes, host)?;
        let has_chains = sample.options.call_graph.is_some();
        let has_waits = sample.off_cpu.is_some();
        // With waiting time, call chains are always sampled, so show a tree only if `-g` requests one.
        let wants_tree = has_chains && (!has_waits || typed.stacks || typed.call_graph.is_some());
        let lines = keys.iter().any(|key| key.needs_lines());
        let layout = ReportLayout {
            show_samples: typed.show_nr_samples,
            show_period: typed.show_total_period,
            rows: Limit::rows(typed.entries, !typed.json, ROWS),
            row_limit: typed.percent_limit.unwrap_or(0.0),
            branch_limit: typed.percent_limit.unwrap_or(BRANCH),
            // Shorten names on terminals only.
            full_names: !Stream::Output.is_terminal(),
            columns,
            added,
            hierarchy: typed.hierarchy,
            widths: typed.column_widths.clone(),
            grouping: if typed.group { EventGrouping::All } else { EventGrouping::Recorded },
            sort_member: typed.group_sort_idx.unwrap_or(0),
            ..ReportLayout::default()
        };
        if has_waits {
            sort::add_attributes(&mut attributes, waits::ATTRIBUTES);
        }
        let has = |key| keys.contains(&key);
        let comms = listed(&typed.comms);
        Ok(TopRequest {
            live: LivePlan {
                sample,
                query: SampleQuery {
                    ignore_comms: !has(SortKey::Comm) && comms.is_none(),
                    ignore_stacks: !has_chains,
                    attributes: attributes.clone(),
                    ..SampleQuery::default()
                },
                max_stack: typed.max_stack.unwrap_or(FRAMES).into(),
                // A personality may ask for less.
                delay: typed.delay.unwrap_or(DELAY).max(SHORTEST_DELAY),
                realtime: typed.realtime,
                // Keep the command's output out of the tables.
                streams: Streams::OutputToError,
            },
            names: NameOptions {
                options: Symbols {
                    kallsyms: typed.kallsyms.clone(),
                    vmlinux: typed.vmlinux.clone(),
                    live: true,
                    alone: !lines,
                    ..Symbols::from_environment()
                },
                depth: if lines { Depth::Inlines } else { Depth::Names },
                raw_names: typed.no_demangle,
            },
            snapshots: SnapshotOptions {
                attributes,
                with_sockets: has(SortKey::Socket),
                with_idle: typed.idle,
                ignore_callees: typed.ignore_callees.clone(),
            },
            query: Query {
                ranks,
                relative: typed.percentage == ShareBase::Filtered,
                idle: typed.idle,
                totals: has_chains && !typed.no_children,
                by_mode: layout.needs_cpu_modes(),
                innermost: Stream::Output.is_terminal(),
                tree: wants_tree.then_some(StackDirection::Caller),
                limit: layout.branch_limit / 100.0,
                filter: Filter {
                    comms: comms.map(|names| names.into_iter().collect()),
                    hide_user: typed.hide_user_symbols,
                    hide_kernel: typed.hide_kernel_symbols,
                    only: RowSelection {
                        dsos: listed(&typed.dsos),
                        symbols: listed(&typed.symbols),
                        more_than: typed.count_filter,
                        ..RowSelection::default()
                    },
                    ..Filter::default()
                },
                keys,
                ..Query::default()
            },
            layout,
            retention: match (typed.zero, typed.accumulate) {
                (true, _) => Retention::None,
                (_, true) => Retention::Lasts,
                // Waits are measured completely, so a table does not need waits from earlier intervals.
                _ if has_waits => Retention::None,
                _ => Retention::Decays,
            },
            code: ListingOptions {
                syntax: typed.disassembler_style,
                with_source: true,
                folders: SourceFolders {
                    prefix: typed.prefix.clone(),
                    strip: typed.prefix_strip,
                    ..SourceFolders::default()
                },
                raw_names: typed.no_demangle,
                ..ListingOptions::default()
            },
            timeout: typed.timeout,
            background: typed.screen.background()?,
            // Options that require text output.
            stdio: typed.stdio
                || typed.json
                || typed.hierarchy
                || typed.group
                || !typed.fields.is_empty()
                || !typed.column_widths.is_empty(),
            json: typed.json,
            tui: typed.tui,
        })
    }
}

impl TopRequest {
    /// Distinguishes rows by process and thread, so that the user can filter by them later.
    pub(super) fn distinguish_threads(&mut self) {
        self.live.query.ignore_comms = false;
        let threads = [SampleAttribute::Pid, SampleAttribute::Tid];
        sort::add_attributes(&mut self.snapshots.attributes, threads);
        self.live.query.attributes.clone_from(&self.snapshots.attributes);
    }
}

/// Returns the command that records the values of a key that a live view does not have.
fn needed_recording(key: SortKey) -> Option<&'static str> {
    match key {
        SortKey::Trace | SortKey::Time | SortKey::Parent => Some("pmc record"),
        SortKey::Parallelism => Some("pmc record --latency"),
        SortKey::Waker | SortKey::RanInstead => Some("pmc record --wall --wakers"),
        key => key.is_of_branch().then_some("pmc record -b"),
    }
}

/// `attributes` are those of the sort keys.
fn sampling(typed: &TopArgs, attributes: &[SampleAttribute], host: &Host) -> Result<SamplePlan> {
    let has_waits = typed.off_cpu || typed.wall;
    if has_waits && !typed.cgroups.is_empty() {
        let option = if typed.wall { "--wall" } else { "--off-cpu" };
        return Err(Error::usage(format!("{option} cannot be combined with -G"))
            .why("the kernel also reports context switches of other cgroups"));
    }
    let targets = TargetOptions {
        all_cpus: typed.targets.all_cpus || typed.command.is_empty(),
        ..typed.targets.clone()
    };
    sampling_options::overridden(&typed.targets).into_iter().for_each(say::warn);
    let mut scope = sampling_options::scope(&targets, host)?;
    let is_default = !typed.targets.has_cpus() && typed.cgroups.is_empty();
    let is_default = is_default && !sampling_options::are_held(&typed.events);
    if let MeasurementScope::Cpus(cpus) = &scope
        && is_default
        && !open::may_sample(cpus.iter().next().unwrap_or(0))
    {
        let user = Credentials::own().uid;
        say::warn(
            Warning::note_once("sampling only your own processes: system-wide sampling requires privileges")
                .advise("see kernel.perf_event_paranoid; CAP_PERFMON also allows it"),
        );
        scope = MeasurementScope::User(user.to_string());
    }
    if !typed.cgroups.is_empty() && !matches!(scope, MeasurementScope::Cpus(_)) {
        return Err(
            Error::usage("cgroups can only be sampled on whole CPUs").try_options("omit -p, -t and -u")
        );
    }
    // `top` does not unwind stack copies.
    let usual = typed.default_call_graph.filter(|mode| !matches!(mode, CallGraph::Dwarf(_)));
    let call_graph = typed.call_graph.or(typed.stacks.then_some(usual.unwrap_or(CallGraph::Fp)));
    if call_graph.is_some_and(CallGraph::copies) {
        return Err(Error::usage("--call-graph dwarf and auto are not supported by top")
            .try_this("pmc top -g (frame pointers), or pmc record --call-graph dwarf and pmc report"));
    }
    if call_graph == Some(CallGraph::FpDeferred) {
        return Err(Error::usage("--call-graph fp,defer is not supported by top")
            .try_this("pmc top -g, or pmc record --call-graph fp,defer and pmc report"));
    }
    // Record callers too, because the function that waits is usually in libc or the kernel.
    let call_graph = call_graph.or(has_waits.then_some(CallGraph::Fp));
    let options = SampleOptions {
        rate: typed.freq.or(typed.count).unwrap_or_default(),
        call_graph,
        fields: attributes.iter().fold(0, |all, attribute| all | attribute.sample_type()),
        // pmc can read this clock as well, so it knows up to which time the records are complete.
        clock: clock::number("monotonic"),
        // Do not request build IDs, since the mapped files are present, and the request would also affect
        // other recorders.
        build_ids: false,
        cgroups: attributes.contains(&SampleAttribute::Cgroup),
        inherit: !typed.no_inherit && !matches!(scope, MeasurementScope::Threads(_)),
        ..SampleOptions::default()
    };
    let mut plan = SamplePlan {
        events: match typed.wall {
            true => vec!["cpu-clock".to_owned()],
            false => typed.events.iter().cloned().chain(pfm_events(&typed.pfm_events)).collect(),
        },
        // A filter applies to the last event, as in perf top.
        filters: typed
            .filter
            .iter()
            .map(|filter| (typed.events.len().saturating_sub(1), filter.clone()))
            .collect(),
        cgroups: typed.cgroups.clone(),
        // Stack copies of waits need more room, so use the default size for them.
        ring: typed.mmap_pages.or((!has_waits).then_some(RingSize::LIVE)),
        reserve: typed.reserve,
        verbose: typed.verbose > 0,
        run_schedule: RunSchedule { command: typed.command.clone(), ..RunSchedule::default() },
        ..SamplePlan::on(scope, options)
    };
    if has_waits {
        plan.measure_waits(OffCpuPlan::default());
    }
    Ok(plan)
}
