//! `pmc stat --log-exit` and `--log-cswitch`, which log the counts of each thread.
//!
//! Passes the request and its events to the recorder ([`PreparedRecording`]), to whose ring buffers the
//! kernel writes records with the counts of threads. Prints the totals at the end. [`report`](super::report)
//! shows the log.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::collect::{self, EventColumn, ShownEvents, StatMachine, TablePeriod};
use super::events::ResolvedSelection;
use super::print::StatPrinter;
use pmc_analysis::analysis::counts;
use pmc_analysis::profile::counts::{Aggregation, CpuTime};
use pmc_command::warning::records_lost;
use pmc_events::counter::counter_set;
use pmc_events::counter::request::given_up::Fallback;
use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::reservation::Watcher;
use pmc_events::counter::rings::{Rings, by_thread};
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::{EventGroup, EventSpec};
use pmc_perfdata::perfdata::feature::RawSection;
use pmc_recording::recording::control::Control;
use pmc_recording::recording::counting::{CountPlan, Observer};
use pmc_recording::recording::file::features;
use pmc_recording::recording::file::output::{OutputEvents, RecordOutput};
use pmc_recording::recording::file::recorder::PreparedRecording;
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, RunSchedule, SamplePlan, Synthesis};
use pmc_recording::recording::sources::RecordSources;
use pmc_recording::recording::stat_request::StatRequest;
use pmc_recording::recording::{launch, time_slices};
use pmc_sys::abi::attr::Flag;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::sys::process::Streams;
use pmc_text::text::shell_word;
use pmc_text::units;
use pmc_view::stat::StatDestination;

/// Applies the options to the events. Returns whether any event is logged.
///
/// # Errors
/// Fails if the log conflicts with another option.
pub(super) fn apply_log_options(
    request: &StatRequest,
    to: &StatDestination,
    wanted: &mut ResolvedSelection,
) -> Result<bool> {
    let events = || wanted.groups.iter().flat_map(|(group, _)| &group.events);
    let StatRequest { log_exit, log_cswitch, .. } = *request;
    let is_logged = log_exit || log_cswitch || events().any(|event| event.qualifiers.logs());
    if !is_logged {
        return Ok(false);
    }
    if let Some(option) = conflicting_option(request) {
        return Err(Error::usage(format!("counts are not logged with {option}"))
            .why("a log covers only one run")
            .try_options("pmc stat --log-exit -- COMMAND, or -p PID"));
    }
    if let (None, StatDestination::File(file)) = (&request.recording, to)
        && file.as_os_str() != "-"
    {
        return Err(Error::usage(
            "counts cannot be logged with -o, which sets the output file for the table",
        )
        .why("the log would overwrite perf.data")
        .try_options(format!("pmc stat record -o {} …, whose -o names the log", shell_word(file))));
    }
    let no_hardware = wanted.no_hardware.is_some();
    wanted.groups.retain(|(group, _)| !(no_hardware && group.events.iter().any(EventSpec::takes_counter)));
    for event in wanted.groups.iter_mut().flat_map(|(group, _)| &mut group.events) {
        event.qualifiers.log_exit |= log_exit;
        event.qualifiers.log_cswitch |= log_cswitch;
    }
    Ok(true)
}

/// Returns the option that requests something with which counts cannot be logged, if there is one.
fn conflicting_option(request: &StatRequest) -> Option<&'static str> {
    let StatRequest { repeat, timing, selection, aggregation, scope, .. } = request;
    let is_of_cpus = matches!(scope, MeasurementScope::Cpus(_) | MeasurementScope::AllThreads);
    let options = [
        (repeat.runs.is_some(), "-r"),
        (repeat.exact, "--exact"),
        (!repeat.versus.is_empty(), "--vs"),
        (timing.interval.is_some(), "-I"),
        (selection.null, "-n"),
        (*aggregation == Aggregation::Children, "--children"),
        (*aggregation == Aggregation::Levels, "--user-kernel"),
        (is_of_cpus, "-a, -C and --per-thread"),
    ];
    options.into_iter().find_map(|(is_requested, option)| is_requested.then_some(option))
}

/// Counts events, and logs the counts of threads.
pub(super) fn run(
    request: &StatRequest,
    wanted: ResolvedSelection,
    machine: &StatMachine<'_>,
    mut printer: StatPrinter,
    (mut watcher, counted): (Option<Watcher>, Option<(CountPlan, &mut dyn Observer)>),
) -> Result<Exit> {
    let has_table = counted.is_none();
    let host = machine.host;
    let path = request.recording.clone().unwrap_or_else(|| PathBuf::from("perf.data"));
    let (groups, tools) = split_tool_events(wanted.groups.into_iter().map(|(group, _)| group));
    let groups = time_slices::lead(groups);
    if groups.is_empty() {
        return Err(Error::usage("no event supports logging").try_options("-e page-faults"));
    }
    let sample = sample_plan(request);
    let file =
        FilePlan { stat_config: counts::config(request.aggregation, 0, request.scale), ..FilePlan::at(path) };
    let signals = launch::signals(&[])?;
    let mut control = request.control.as_ref().map(Control::open).transpose()?;
    let streams = if file.is_stream() { Streams::OutputToError } else { Streams::Shared };
    let held = launch::hold_for(&sample.run_schedule, streams)?;
    let groups = groups.into_iter().map(|group| (group, None)).collect();
    let (sources, threads) = RecordSources::open(&sample, host, groups, held.as_ref())?;
    let events = OutputEvents::new(&sample, sources.events());
    let features = features::at_the_start(host, &sources.groups(), &events.written);
    let features = pmc_perfdata::perfdata::Features { stat: Some(RawSection::default()), ..features };
    let columns = columns(sources.rings(), tools);
    let shown = ShownEvents::new(&columns, request.aggregation, request.no_merge, request.scale);
    let output = RecordOutput::create(&file, None, events, features, sources.owners(), sample.options.clock)?;
    let run = PreparedRecording {
        attached: None,
        host,
        plan: &sample,
        file: &file,
        sources,
        triggers: None,
        threads: threads.clone(),
        output,
        held,
        signals: &signals,
        control: control.as_mut(),
        watcher: watcher.as_mut(),
        status: &mut (),
        // Rebuild the option, because the observer's lifetime is longer than this struct's.
        counted: match counted {
            Some((counted, observer)) => Some((counted, observer)),
            None => None,
        },
    }
    .run()?;
    drop(signals);
    let readings = by_thread(&run.readings).into_iter().map(|((event, tid), count)| {
        let slot = TargetSlot { tid, cpu: None };
        counter_set::CounterReading { event, slot, count: Some(count) }
    });
    let span = TablePeriod {
        threads: &threads,
        timestamp_ns: None,
        elapsed_ns: run.elapsed_ns,
        cpu_time: run.outcome.map(|end| CpuTime { user_ns: end.user_ns, system_ns: end.system_ns }),
        yielded_ns: run.yielded_ns,
        off: !run.was_ever_on,
    };
    let mut counts = shown.counts(&readings.collect::<Vec<_>>(), &span, machine);
    wanted.metrics.derive(&mut counts);
    if has_table {
        printer.whole(&counts)?;
    }
    if run.totals.lost > 0 {
        say::warn(records_lost(run.totals.lost));
    }
    if let Some(error) = run.failed {
        return Err(error);
    }
    if !file.is_stream() {
        say::note(written(&file.path, run.totals.bytes, &columns));
    }
    Ok(match (run.interrupted, run.outcome) {
        (Some(signal), _) => Exit::Interrupted(signal),
        (None, Some(outcome)) if !run.timed_out => launch::exit_of(outcome.ended),
        _ => Exit::Done,
    })
}

/// Returns the plan for a recording with the counts of threads but without samples.
fn sample_plan(request: &StatRequest) -> SamplePlan {
    SamplePlan {
        synthesis: Synthesis { tasks: true, mappings: false, cgroups: false },
        reserve: request.reserve,
        strict: true,
        run_schedule: RunSchedule {
            command: request.command.clone(),
            delay: request.timing.delay,
            timeout: request.timing.timeout,
            ..RunSchedule::default()
        },
        verbose: request.verbose,
        ..SamplePlan::on(
            request.scope.clone(),
            SampleOptions {
                no_samples: true,
                running_time: true,
                inherit: request.inherit,
                levels: request.levels,
                ..SampleOptions::default()
            },
        )
    }
}

/// Separates the events that the kernel counts from those that pmc measures itself.
fn split_tool_events(groups: impl Iterator<Item = EventGroup>) -> (Vec<EventGroup>, Vec<EventSpec>) {
    let mut tools = Vec::new();
    let mut kernel = Vec::new();
    for mut group in groups {
        let (own, others) = group.events.into_iter().partition(|event| event.attr().is_some());
        group.events = own;
        tools.extend::<Vec<EventSpec>>(others);
        kernel.extend((!group.events.is_empty()).then_some(group));
    }
    (kernel, tools)
}

/// Returns the events of the ring buffers in order, followed by those that pmc measures itself.
fn columns(rings: &Rings, tools: Vec<EventSpec>) -> Vec<EventColumn<'static>> {
    let column = |spec: EventSpec, group, user_only, sees_kernel| EventColumn {
        spec: Cow::Owned(spec),
        group,
        cgroup: None,
        refused: None,
        user_only,
        sees_kernel,
    };
    let group_of = |event| rings.groups().iter().position(|group| group.contains(&event)).unwrap_or(event);
    let given_up = rings.given_up().map(|(_, given_up)| given_up.has(Fallback::UserOnly));
    let events = rings.events().zip(given_up).take(rings.sampled_events()).enumerate();
    let mut columns: Vec<_> = events
        .map(|(event, ((spec, attr, _), user_only))| {
            column(spec.clone(), group_of(event), user_only, !attr.get(Flag::ExcludeKernel))
        })
        .collect();
    let first = columns.len();
    columns.extend(tools.into_iter().zip(first..).map(|(tool, group)| column(tool, group, false, true)));
    columns
}

fn written(path: &Path, bytes: u64, columns: &[collect::EventColumn<'_>]) -> String {
    let slices = columns.iter().any(|column| column.spec.qualifiers.leads_slices);
    let option = if slices { "--log-cswitch (or --log-exit)" } else { "--log-exit" };
    let (shown, bytes, word) = (path.display(), units::bytes(bytes), shell_word(path));
    format!("{shown}: {bytes} of per-thread counts; show them with pmc stat report {option} -i {word}")
}
