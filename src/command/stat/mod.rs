//! `pmc stat`: counts events while a command runs, and prints the counts.
//!
//! ```text
//! request ── wanted ──► run (once, -r N times, each --vs command, each pass of --exact) ──► shown ──► output
//! ```
//! A [`StatRequest`] says what to count, and a [`StatLayout`] how to print it. [`events`] selects the events.
//! [`counting`](pmc_recording::recording::counting) performs one measurement, [`collect`] converts readings
//! to tables, and [`sink`] and [`serve`] output the text. This file repeats runs and compares commands.

mod collect;
mod events;
mod log;
mod metrics;
mod parts;
mod print;
mod report;
mod serve;
mod sink;

use std::ffi::OsString;
use std::io::{Write, stderr, stdout};

use self::collect::{ShownEvents, StatMachine, TablePeriod};
use self::events::ResolvedSelection;
use self::print::{StatPrinter, subject};
pub(super) use self::report::run as report;
use pmc_analysis::analysis::{ProgressMeter, ProgressSink as _, counts};
use pmc_analysis::profile::counts::{CpuTime, StatCounts};
use pmc_analysis::profile::gate::{GateCondition, RunFailures, UnusableReason, judge, selects_name};
use pmc_analysis::profile::repeats;
use pmc_analysis::profile::versus::{CommandComparison, CommandMeasurements, MeasureKind, compare};
use pmc_command::gate;
use pmc_command::progress::Bars;
use pmc_command::warning::counters_yielded;
use pmc_events::counter::counter_set::{CounterReading, CounterSet};
use pmc_events::counter::fit;
use pmc_events::counter::refusal::Refusal;
use pmc_events::counter::reservation::Watcher;
use pmc_events::counter::{CounterFlags, Mode, allocate};
use pmc_events::event::{EventGroup, EventSpec};
use pmc_recording::recording::control::Control;
use pmc_recording::recording::counting::{
    CountPlan, CountingSetup, IntervalReadings, MeasurementResult, Observer, measure,
};
use pmc_recording::recording::file::counts::{CountsFile, EventDisplay};
use pmc_recording::recording::output_pipe::OutputPipe;
use pmc_recording::recording::plan::{MeasurementScope, RunSchedule};
use pmc_recording::recording::reservation::reserve;
use pmc_recording::recording::stat_request::{ComparedCommand, Repeat, StatRequest};
use pmc_recording::recording::warning::user_mode_only;
use pmc_recording::recording::{launch, targets};
use pmc_sys::error::{Advice, Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::sys::errno;
use pmc_sys::sys::process::{self, Ended, PausedChild, Streams};
use pmc_sys::sys::signal::{self, Signals};
use pmc_view::stat::StatLayout;

/// Number of tracepoints that take so much time to close (about 0.3 s) that the shell's prompt is noticeably
/// delayed.
const MANY_TRACEPOINTS: usize = 8;

/// With `-r`, maximum number of tracepoints that earlier runs may leave open, so that the next run need not
/// wait until they are closed.
const MOST_LEFT_OPEN: usize = 20_000;

/// Runs the command. `counted` contains events to count while counts are logged, and an observer that
/// receives these counts; they are not shown in the table.
pub(super) fn run(
    request: StatRequest,
    layout: StatLayout,
    counted: Option<(CountPlan, &mut dyn Observer)>,
) -> Result<Exit> {
    run_with(request, layout, None, counted).map(|(exit, _)| exit)
}

/// A comparison of commands, and why it is unusable for a gate; otherwise no reasons.
type JudgedComparison = (CommandComparison, Vec<UnusableReason>);

/// Compares the commands of the request without printing the comparison. Also returns the exit status. The
/// caller evaluates the condition of the request, for which it also measures `others`.
pub(super) fn compare_commands(
    request: StatRequest,
    others: &'static [&'static str],
) -> Result<(JudgedComparison, Exit)> {
    let (exit, compared) = run_with(request, StatLayout::default(), Some(others), None)?;
    compared.map(|comparison| (comparison, exit)).ok_or_else(|| Error::usage("no commands to compare"))
}

/// Returns the exit status and, with `--vs`, the comparison. If `others` is set, the caller prints and judges
/// the comparison, and measures these names as well.
fn run_with(
    mut request: StatRequest,
    layout: StatLayout,
    others: Option<&'static [&'static str]>,
    counted: Option<(CountPlan, &mut dyn Observer)>,
) -> Result<(Exit, Option<JudgedComparison>)> {
    let host = Host::live();
    let mut wanted = events::resolve_selection(&request, layout.is_data(), &host)?;
    let events = wanted.groups.iter().flat_map(|(group, _)| &group.events);
    targets::include_descendants(&mut request.scope, events)?;
    check_flags(&wanted, &host)?;
    let is_logged = log::apply_log_options(&request, &layout.to, &mut wanted)?;
    let machine = StatMachine::new(&host);
    if layout.takes_stderr() && !request.verbose && others.is_none() {
        say::be_quiet(true);
    }
    // If only software events are counted, no reservation is required.
    let takers = wanted.groups.iter().map(|(group, _)| group).filter(|_| wanted.no_hardware.is_none());
    let mut prepared = reserve(request.reserve, takers, &host)?;
    let groups: Vec<&EventGroup> = wanted.groups.iter().map(|(group, _)| group).collect();
    let passes = match may_share(&groups, &machine) {
        true => fit::passes(&groups, machine.facts()),
        false => vec![(0..groups.len()).collect()],
    };
    let mut printer = StatPrinter::new(layout, subject(&request), wanted.metrics.tree.clone())?;
    request.warnings.drain(..).for_each(|warning| printer.warn(warning));
    wanted.left_out.iter().for_each(|warning| printer.warn(warning.clone()));
    if passes.len() > 1 && !request.repeat.exact {
        let times = passes.len();
        let what = format!(
            "the events need {times} times as many counters as are available: each is counted about 1/{times} \
             of the time and scaled"
        );
        printer.warn(
            Warning::note(what)
                .advise(Advice::options("--exact runs the command again for each part instead")),
        );
    }
    if is_logged {
        let ran = log::run(&request, wanted, &machine, printer, (prepared.watcher.take(), counted));
        return ran.map(|exit| (exit, None));
    }
    let mut session = StatSession {
        signals: launch::signals(&[signal::USR1])?,
        control: request.control.as_ref().map(Control::open).transpose()?,
        printer,
        cgroups: wanted.cgroup_names(),
        passes: if request.repeat.exact { passes } else { vec![(0..groups.len()).collect()] },
        watcher: prepared.watcher.take(),
        is_heard: None,
        request: &request,
        others,
        wanted: &wanted,
        machine: &machine,
    };
    match request.repeat.versus.is_empty() {
        true => session.repeat().map(|exit| (exit, None)),
        false => session.versus().map(|(exit, comparison)| (exit, Some(comparison))),
    }
}

/// Refuses call chains for events that only count, as `pmc_allocate(3)` does.
fn check_flags(wanted: &ResolvedSelection, host: &Host) -> Result<()> {
    let events = || wanted.groups.iter().flat_map(|(group, _)| &group.events);
    let Some(spec) = events().find(|spec| spec.qualifiers.callchain) else { return Ok(()) };
    let flags = CounterFlags { callchain: true, ..CounterFlags::default() };
    let refused = allocate(spec, Mode::TaskCounting, flags, None).err();
    refused.map_or(Ok(()), |refusal| Err(targets::explain(*refusal, host)))
}

/// Whether the events may have to share counters. Two hardware events fit on any PMU; more events may have to
/// share counters, if the machine has their PMU at all.
fn may_share(groups: &[&EventGroup], machine: &StatMachine<'_>) -> bool {
    let hardware = || groups.iter().flat_map(|g| &g.events).filter(|event| event.takes_counter());
    let there = |event: &EventSpec| event.attr().and_then(|attr| machine.facts().pmu_of(attr)).is_some();
    hardware().count() > 2 && hardware().any(there)
}

/// State of a command line, shared by all runs.
struct StatSession<'a> {
    request: &'a StatRequest,
    /// Set if the caller prints and judges the comparison: the names that it measures as well.
    others: Option<&'static [&'static str]>,
    wanted: &'a ResolvedSelection,
    machine: &'a StatMachine<'a>,
    signals: Signals,
    control: Option<Control>,
    /// With `--reserve=yield`, watches for processes that reserve the hardware counters.
    watcher: Option<Watcher>,
    printer: StatPrinter,
    /// The cgroup of each event.
    cgroups: Vec<Option<String>>,
    /// For each pass of `--exact`, the indices of the groups to count.
    passes: Vec<Vec<usize>>,
    /// Whether this run's output is shown. `None` unless repeated runs on a terminal show the command's
    /// output only once.
    is_heard: Option<bool>,
}

/// Result of one run of a command.
struct RunOutcome {
    counts: StatCounts,
    exit: Exit,
    /// Whether to stop, because of a signal or a timeout.
    over: bool,
    /// The counters of the run, which are closed once everything has been printed.
    sets: Vec<CounterSet>,
}

impl StatSession<'_> {
    /// Runs the command as often as requested, and prints the result.
    fn repeat(&mut self) -> Result<Exit> {
        let mut runs = Vec::new();
        let mut exit = Exit::Done;
        let mut open: Vec<CounterSet> = Vec::new();
        let request = self.request;
        let runs_wanted = request.repeat.runs.unwrap_or(1);
        let forever = runs_wanted == 0;
        self.warm_up(&request.command)?;
        let progress = self.progress(runs_wanted);
        for number in 1.. {
            let ran = self.run_passes(&request.command, number)?;
            progress.iter().for_each(|progress| progress.more(1));
            exit = ran.exit;
            // Up to a limit, counters that are slow to close stay open until everything is printed.
            open.extend(ran.sets.into_iter().filter(|set| set.slow_to_close() > 0));
            if open.iter().map(CounterSet::slow_to_close).sum::<usize>() > MOST_LEFT_OPEN {
                open.clear();
            }
            if forever {
                self.finish(ran.counts)?;
            } else {
                runs.push(ran.counts);
            }
            if ran.over || !forever && number >= runs_wanted {
                break;
            }
        }
        drop(progress);
        if !forever {
            self.finish(repeats::join(runs))?;
        }
        // Everything has been printed. The kernel is slow to close tracepoints, so close them in the
        // background.
        if open.iter().map(CounterSet::slow_to_close).sum::<usize>() >= MANY_TRACEPOINTS {
            process::exit_while_child_closes();
        }
        drop(open);
        Ok(exit)
    }

    /// Runs the commands of `--vs` in turn, and compares them.
    fn versus(&mut self) -> Result<(Exit, JudgedComparison)> {
        let Repeat { versus: commands, gate, .. } = &self.request.repeat;
        if let Some(condition) = gate {
            self.check_names(condition)?;
        }
        // To compute a spread, at least three runs are needed. A gate needs more, to find small changes.
        let rounds = match (self.request.repeat.runs, gate) {
            (Some(runs), _) => runs.max(1),
            (None, Some(_)) => 10,
            (None, None) => 3,
        };
        let mut runs: Vec<Vec<StatCounts>> = commands.iter().map(|_| Vec::new()).collect();
        let mut failures = vec![RunFailures::default(); commands.len()];
        let mut exit = Exit::Done;
        commands.iter().try_for_each(|command| self.warm_up(&command.words))?;
        let progress = self.progress(rounds.saturating_mul(commands.len() as u32));
        'rounds: for round in 1..=rounds {
            for ((ComparedCommand { words, .. }, failures), runs) in
                commands.iter().zip(&mut failures).zip(&mut runs)
            {
                let ran = self.run_passes(words, round)?;
                progress.iter().for_each(|progress| progress.more(1));
                let is_interrupted = ran.exit.is_interruption();
                if ran.exit.code() != 0 && failures.failed == 0 && !is_interrupted {
                    let name = words.last().map(|word| word.to_string_lossy()).unwrap_or_default();
                    let what = format!("`{name}` ended with status {}", ran.exit.code());
                    say::warn(
                        Warning::new(what).advise("check that this is the command you want to compare"),
                    );
                }
                if !is_interrupted {
                    failures.count(ran.exit.code());
                }
                exit = if ran.exit.code() == 0 { exit } else { ran.exit };
                // A run that the user interrupted is not comparable with complete runs.
                if !is_interrupted || runs.is_empty() {
                    runs.push(ran.counts);
                }
                if ran.over {
                    break 'rounds;
                }
            }
        }
        drop(progress);
        let mut sides = Vec::new();
        let counted = commands.iter().zip(runs).zip(failures).filter(|((_, runs), _)| !runs.is_empty());
        for ((command, mut runs), failures) in counted {
            runs.iter_mut().for_each(|counts| self.wanted.metrics.derive(counts));
            let metrics = runs.iter().filter_map(|counts| counts.derived.first().cloned()).collect();
            let command = command.text.clone();
            sides.push(CommandMeasurements { command, metrics, counts: repeats::join(runs), failures });
        }
        let mut comparison = compare(&sides);
        if self.printer.layout().metric_only {
            comparison.lines.retain(|line| line.measure != MeasureKind::Count);
        }
        let mut problems = comparison.failed_commands();
        if gate.is_some() {
            problems.extend(comparison.too_few_runs());
        }
        if self.others.is_some() {
            return Ok((exit, (comparison, problems)));
        }
        let report =
            gate.as_ref().map(|condition| judge(condition, &comparison.gate_subjects(), problems.clone()));
        let verdict = comparison.verdict(report);
        self.printer.comparison(&comparison, &verdict)?;
        gate::append_summary(&verdict, self.printer.layout().ci)?;
        if let Some(report) = &verdict.gate {
            exit = if matches!(exit, Exit::Interrupted(_)) { exit } else { gate::exit_of(report) };
        }
        Ok((exit, (comparison, problems)))
    }

    /// Rejects a condition with names that will not be measured, before the commands run.
    fn check_names(&self, condition: &GateCondition) -> Result<()> {
        // The names of the kernel's top-down metrics are known only after counting.
        if self.wanted.metrics.shares.is_some() {
            return Ok(());
        }
        let events = self.wanted.groups.iter().flat_map(|(group, _)| &group.events);
        let known: Vec<&str> = ["elapsed"]
            .into_iter()
            .chain(events.map(|event| event.name.as_str()))
            .chain(self.wanted.metrics.formulas.iter().map(|formula| formula.name.as_str()))
            .chain(self.others.unwrap_or_default().iter().copied())
            .collect();
        let is_known = |name: &str| known.iter().any(|own| selects_name(name, own));
        match condition.names().into_iter().find(|name| !is_known(name)) {
            Some(name) => Err(Error::usage(format!("--fail-if: `{name}` is not measured"))
                .why(format!("this command measures {}", known.join(", ")))
                .try_options(format!("-e {name}, or one of these names"))),
            None => Ok(()),
        }
    }

    /// Runs a command, including `--pre` and `--post`, without counting and with its output hidden.
    fn warm_up(&self, command: &[OsString]) -> Result<()> {
        let Repeat { warm_ups, pre, post, .. } = &self.request.repeat;
        for _ in 0..*warm_ups {
            hook("--pre", pre.as_deref())?;
            let output = OutputPipe::open(None).map_err(|error| Error::io("making a pipe", error))?;
            let held = PausedChild::start_with(command, &[], output.streams());
            let held = held.map_err(|error| Error::io("--warmup: starting the command", error))?;
            let ended = launch::release(held, command)?.wait();
            output.close();
            let ended = ended.map_err(|error| Error::io("--warmup: waiting for the command", error))?.ended;
            if ended == Ended::Killed(signal::INT) {
                let error = Error::new("--warmup: the command was interrupted from the keyboard");
                return Err(error.exit(Exit::Interrupted(signal::INT)));
            }
            hook("--post", post.as_deref())?;
        }
        Ok(())
    }

    /// Returns a progress bar for repeated runs if the commands' output is hidden.
    fn progress(&self, runs: u32) -> Option<Box<dyn ProgressMeter>> {
        let is_seen = runs > 1 && !self.request.repeat.shows_output && self.request.timing.interval.is_none();
        is_seen.then(|| Bars.begin("runs", u64::from(runs)))
    }

    fn finish(&mut self, mut counts: StatCounts) -> Result<()> {
        self.wanted.metrics.derive(&mut counts);
        self.printer.whole(&counts)
    }

    /// Runs the command once, or with `--exact` once per pass.
    fn run_passes(&mut self, command: &[OsString], number: u32) -> Result<RunOutcome> {
        let passes = self.passes.clone();
        let mut tables = Vec::new();
        let mut sets = Vec::new();
        let mut ended = (Exit::Done, false);
        let Repeat { runs, versus, shows_output, .. } = &self.request.repeat;
        if self.request.verbose && runs.is_some() {
            say::note(format!("run {number}"));
        }
        let repeats = runs.is_some_and(|runs| runs != 1) || !versus.is_empty() || passes.len() > 1;
        for (pass, groups) in passes.iter().enumerate() {
            self.is_heard = (!shows_output && repeats).then_some(number == 1 && pass == 0);
            if passes.len() > 1 && number == 1 {
                say::note(format!("pass {} of {}", pass + 1, passes.len()));
            }
            let (counts, run) = self.run_once(command, groups)?;
            let order = self.events_of(groups);
            sets.push(run.set);
            tables.push((order, counts));
            ended = match run.interrupted {
                Some(signal) => (Exit::Interrupted(signal), true),
                None if run.timed_out || run.is_handed_over => (Exit::Done, true),
                None => (run.outcome.map_or(Exit::Done, |o| launch::exit_of(o.ended)), false),
            };
            // Do not repeat a command that the user interrupted.
            ended.1 |= matches!(run.outcome.map(|o| o.ended), Some(Ended::Killed(signal::INT)));
            if ended.1 {
                break;
            }
        }
        let counts = match (tables.len(), tables.pop()) {
            (1, Some((_, counts))) => counts,
            (_, last) => repeats::join_tables(tables.into_iter().chain(last).collect()),
        };
        Ok(RunOutcome { counts, exit: ended.0, over: ended.1, sets })
    }

    /// Returns the indices of the events in these groups.
    fn events_of(&self, groups: &[usize]) -> Vec<usize> {
        let mut first = 0;
        let mut numbers = Vec::new();
        for (index, (group, _)) in self.wanted.groups.iter().enumerate() {
            if groups.contains(&index) {
                numbers.extend(first..first + group.events.len());
            }
            first += group.events.len();
        }
        numbers
    }

    fn run_once(
        &mut self,
        command: &[OsString],
        groups: &[usize],
    ) -> Result<(StatCounts, MeasurementResult)> {
        let request = self.request;
        hook("--pre", request.repeat.pre.as_deref())?;
        let output = match self.is_heard {
            Some(is_shown) => {
                // Standard output is for the command that shows the comparison.
                let shown = is_shown.then(|| match self.others {
                    None => Box::new(stdout()) as Box<dyn Write + Send>,
                    Some(_) => Box::new(stderr()),
                });
                Some(OutputPipe::open(shown).map_err(|error| Error::io("making a pipe", error))?)
            }
            None => None,
        };
        if request.repeat.sync {
            rustix::fs::sync();
        }
        let events = self.events_of(groups);
        let chosen: Vec<_> =
            groups.iter().filter_map(|&index| self.wanted.groups.get(index)).cloned().collect();
        let cgroups: Vec<Option<String>> = events.iter().map(|&event| self.cgroups[event].clone()).collect();
        let setup = CountingSetup {
            host: self.machine.host,
            plan: CountPlan {
                groups: chosen,
                scope: request.scope.clone(),
                inherit: request.inherit,
                levels: request.levels,
                interval_ns: request.timing.interval.map(|time| time.as_nanos() as u64),
                interval_count: request.timing.interval_count,
            },
            run_schedule: RunSchedule {
                command: command.to_vec(),
                delay: request.timing.delay,
                timeout: request.timing.timeout,
                ..RunSchedule::default()
            },
            streams: match &output {
                Some(pipe) => pipe.streams(),
                None if request.recording.as_ref().is_some_and(|path| path.as_os_str() == "-") => {
                    Streams::OutputToError
                }
                None => Streams::Shared,
            },
            signals: &self.signals,
            control: self.control.as_mut(),
            watcher: self.watcher.as_mut(),
        };
        let mut observer = StatObserver {
            request,
            machine: self.machine,
            wanted: self.wanted,
            cgroups: &cgroups,
            printer: &mut self.printer,
            shown: None,
            file: None,
            before: Vec::new(),
            before_ns: 0,
            yielded_before_ns: 0,
        };
        let run = measure(setup, &mut observer)?;
        output.into_iter().for_each(OutputPipe::close);
        let file = observer.file.take();
        let shown =
            observer.shown.take().unwrap_or_else(|| arrange(&run.set, &cgroups, request, self.machine));
        let span = TablePeriod {
            threads: &run.threads,
            timestamp_ns: None,
            elapsed_ns: run.elapsed_ns,
            cpu_time: run.outcome.map(|end| CpuTime { user_ns: end.user_ns, system_ns: end.system_ns }),
            yielded_ns: run.yielded_ns,
            off: run.off,
        };
        if run.yielded_ns > 0 {
            self.printer.warn(counters_yielded(run.yielded_ns, run.elapsed_ns));
        }
        if request.verbose {
            print_unscaled(&run);
        }
        if let Some(mut file) = file {
            // With intervals, the last interval contains the totals.
            if request.timing.interval.is_none() {
                file.round(&run.readings, measured(&shown, &span), run.elapsed_ns, true)?;
            }
            file.finish()?;
        }
        hook("--post", request.repeat.post.as_deref())?;
        Ok((shown.counts(&run.readings, &span, self.machine), run))
    }
}

fn arrange(
    set: &CounterSet,
    cgroups: &[Option<String>],
    request: &StatRequest,
    machine: &StatMachine<'_>,
) -> ShownEvents {
    let columns = collect::columns(set, cgroups, machine);
    ShownEvents::new(&columns, request.aggregation, request.no_merge, request.scale)
}

/// Returns the values that pmc measured itself, by event.
fn measured(shown: &ShownEvents, span: &TablePeriod<'_>) -> impl Iterator<Item = (usize, u64)> {
    shown.measured(span).filter_map(|(event, _, value)| Some((event, value?)))
}

/// Runs the hook of `--pre` or `--post`. As in perf, pmc exits if the hook fails. The hook is started like
/// the command, so that it does not inherit pmc's blocked signals and Ctrl-C can end it.
fn hook(option: &str, command: Option<&str>) -> Result<()> {
    let Some(command) = command else { return Ok(()) };
    let failed = |error| Error::io(format!("{option}: running `{command}`"), error);
    let outcome = PausedChild::start(&["sh", "-c", command])
        .and_then(PausedChild::release)
        .and_then(|hook| hook.wait());
    match outcome.map_err(failed)?.ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(status) => {
            Err(Error::new(format!("{option}: `{command}` failed with status {status}")))
        }
        Ended::Killed(signal) => {
            let error = Error::new(format!("{option}: `{command}` was terminated by signal {signal}"));
            Err(if signal == signal::INT { error.exit(Exit::Interrupted(signal)) } else { error })
        }
    }
}

/// Prints every event's unscaled value, and how long it was enabled and running (`-v`).
fn print_unscaled(run: &MeasurementResult) {
    let names: Vec<&str> = run.set.specs().map(|spec| spec.name.as_str()).collect();
    for reading in &run.readings {
        let Some(count) = reading.count else { continue };
        let place = match (reading.slot.tid, reading.slot.cpu) {
            (_, Some(cpu)) => format!(" on CPU {cpu}"),
            (Some(tid), None) => format!(" in thread {tid}"),
            _ => String::new(),
        };
        say::note(format!(
            "{}{place}: {} {} {}",
            names.get(reading.event).copied().unwrap_or_default(),
            count.value,
            count.enabled_ns,
            count.running_ns
        ));
    }
}

/// Observes one run: checks the opened events, and prints intervals.
struct StatObserver<'a> {
    request: &'a StatRequest,
    machine: &'a StatMachine<'a>,
    wanted: &'a ResolvedSelection,
    cgroups: &'a [Option<String>],
    printer: &'a mut StatPrinter,
    shown: Option<ShownEvents>,
    /// The file that also receives the counts.
    file: Option<CountsFile>,
    /// The totals at the end of the previous interval.
    before: Vec<CounterReading>,
    before_ns: u64,
    /// Nanoseconds for which the counters had been yielded by the end of the previous interval.
    yielded_before_ns: u64,
}

impl Observer for StatObserver<'_> {
    fn warn(&mut self, warning: Warning) {
        self.printer.warn(warning);
    }

    /// Cancels the run if no event can be counted, for lack of permissions or resources.
    fn opened(&mut self, set: &CounterSet, threads: &[ThreadInfo]) -> Result<()> {
        let hopeless = |errno: i32| matches!(errno, errno::EMFILE | errno::ENFILE | errno::ENOMEM);
        let denied = |errno: i32| matches!(errno, errno::EACCES | errno::EPERM | errno::ENOSYS);
        let fatal = set.refusals().flatten().find(|r| r.errno.is_some_and(hopeless)).or_else(|| {
            let nothing = set.is_empty() && set.specs().len() > 0;
            let explained = |r: &Refusal| r.explain(self.machine.facts()).errno;
            set.refusals().flatten().find(|r| nothing && explained(r).is_some_and(denied))
        });
        if let Some(refusal) = fatal {
            let doing = format!("opening {}{}", refusal.event, refusal.on_cpu());
            return Err(refusal.clone().isolate().explain(self.machine.facts()).into_error(doing));
        }
        if let Some(error) = self.wanted.no_hardware.as_ref().filter(|_| !self.printer.layout().is_data()) {
            let why = error.explain(self.machine.facts()).cause;
            self.printer.warn(Warning::note(format!("no cycles, instructions, branches: {why}")));
        }
        if set.user_only().any(|only| only) {
            self.printer.warn(user_mode_only("counting"));
        }
        if set.broken_groups() > 0 && self.request.verbose {
            say::note(format!(
                "{} groups do not fit on the counters; their events are counted individually",
                set.broken_groups()
            ));
        }
        let shown = arrange(set, self.cgroups, self.request, self.machine);
        if let Some(path) = &self.request.recording {
            let (request, host) = (self.request, self.machine.host);
            let columns = collect::columns(set, self.cgroups, self.machine);
            let described: Vec<_> = columns
                .iter()
                .map(|event| {
                    let (scale, unit) = event.quantity();
                    EventDisplay { name: event.name(), scale, unit: unit.to_owned() }
                })
                .collect();
            let cpus = match &request.scope {
                MeasurementScope::Cpus(cpus) => cpus.iter().collect(),
                _ => Vec::new(),
            };
            let interval_ms = request.timing.interval.map_or(0, |time| time.as_millis() as u64);
            let config = counts::config(request.aggregation, interval_ms, request.scale);
            self.file = Some(CountsFile::create(path, host, set, &described, threads, &cpus, &config)?);
        }
        self.shown = Some(shown);
        Ok(())
    }

    fn interval(&mut self, interval: &IntervalReadings<'_>) -> Result<()> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let elapsed_ns = interval.at_ns - self.before_ns;
        let span = |timestamp_ns, elapsed_ns, yielded_ns| TablePeriod {
            threads: interval.threads,
            timestamp_ns,
            elapsed_ns,
            cpu_time: None,
            yielded_ns,
            off: interval.off,
        };
        if let Some(file) = &mut self.file {
            let so_far = span(None, interval.at_ns, interval.yielded_ns);
            file.round(interval.readings, measured(shown, &so_far), interval.at_ns, false)?;
        }
        let readings = collect::since(interval.readings, &self.before);
        let yielded_ns = interval.yielded_ns.saturating_sub(self.yielded_before_ns);
        let this = span(Some(interval.at_ns), elapsed_ns, yielded_ns);
        let mut counts = shown.counts(&readings, &this, self.machine);
        self.wanted.metrics.derive(&mut counts);
        self.before.clear();
        self.before.extend_from_slice(interval.readings);
        (self.before_ns, self.yielded_before_ns) = (interval.at_ns, interval.yielded_ns);
        if self.printer.wants_totals() {
            let totals = shown.counts(
                interval.readings,
                &span(None, interval.at_ns, interval.yielded_ns),
                self.machine,
            );
            self.printer.totals(&totals)?;
        }
        self.printer.interval(&counts)
    }
}
