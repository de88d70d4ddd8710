//! `pmc compare`: counts two commands, profiles them, and compares both.
//!
//! ```text
//!   stat --vs A --vs B ──> counts ──────────────────────────┬──> text, JSON, page
//!   record A, record B, record A, … ──> diff A… --vs B… ────┘
//! ```
//! The counted runs are not profiled, because sampling would slow them down. If the user interrupts the runs,
//! the answer is about the complete ones.

mod request;

use std::time::{Duration, Instant};

use self::request::{CompareOutput, CompareRequest, PROFILED};
use super::{diff, stat};
use crate::cli::compare::CompareArgs;
use pmc_analysis::analysis::ProgressSink as _;
use pmc_analysis::profile::diff::Diff;
use pmc_analysis::profile::diff::groups::GroupComparison;
use pmc_analysis::profile::gate::{
    ComparisonVerdict, GateGoal, GateSubject, LEAST_PAIRS, RunFailures, UnusableReason, judge,
};
use pmc_analysis::profile::versus::command_letter;
use pmc_command::destination::Destination;
use pmc_command::gate;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::record;
use pmc_command::temporary::TemporaryRecording;
use pmc_events::counter::request::sampling::Rate;
use pmc_recording::recording::launch;
use pmc_recording::recording::record::check_events;
use pmc_sys::error::{Advice, AdvisedOption, Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::limits;
use pmc_sys::sys::signal::{self, Signals};
use pmc_text::units;
use pmc_view::compare::CompareAnswer;
use pmc_view::diff::{ReportFormat, groups};
use pmc_view::gate::CiFormat;

/// The measure of elapsed time.
const ELAPSED: &str = "elapsed";

/// Number of runs of each command whose recordings, which stay open, fit into the usual limit of 1024 files.
/// Only for more runs, the limit is raised, because the commands inherit it.
const MANY_RUNS: u64 = 200;

/// The profiles of both commands, and why they are unusable for a gate.
type ComparedProfiles = (Diff, GroupComparison, Vec<UnusableReason>);

/// Runs the command.
///
/// # Errors
/// Fails if options cannot be combined, a measurement fails, or the answer cannot be written.
pub(super) fn run(typed: CompareArgs) -> Result<Exit> {
    let (request, output) = typed.request()?;
    // Report invalid events before the commands run.
    let first = request.commands[0].words.clone();
    check_events(&request.record(first, "perf.data".into(), request.rate(None, None, None)))?;
    let (began, goal) = (Instant::now(), request.goal());
    // Block the signals before any thread starts. A thread with unblocked signals would take SIGCHLD from the
    // measurement that waits for it.
    let signals = launch::signals(&[signal::USR1, signal::USR2])?;
    let ((mut counts, mut problems), mut exit) = stat::compare_commands(request.stat(), PROFILED)?;
    let most = Host::live().number("/proc/sys/kernel/perf_event_max_sample_rate");
    let shortest = counts.cpu_seconds.iter().flatten().copied().reduce(f64::min);
    let mut runs = ProfiledRuns { rate: request.rate(goal, shortest, most), ..ProfiledRuns::default() };
    let mut more = if exit.is_interruption() { 0 } else { request.runs() as usize };
    let (mut profiled, mut profiles) = (Ok(()), None);
    while more > 0 {
        profiled = runs.profile(&request, &signals, more);
        let compares = Instant::now();
        profiles = runs.compare(&request)?;
        let is_complete = profiled.is_ok() && runs.exit.is_none() && exit == Exit::Done;
        let goal = goal.filter(|_| is_complete && !runs.is_out_of_time);
        more = match (goal, &profiles) {
            (Some(goal), Some((diff, compared, _))) => {
                let subjects = groups::gate_subjects(diff, compared);
                runs.runs_to_add(request.budget, goal, &subjects, (began, compares.elapsed()))
            }
            _ => 0,
        };
    }
    problems.extend(profiles.iter().flat_map(|(.., found)| found.clone()));
    drop(signals);
    signal::release();
    if let Some(failed) = runs.exit {
        exit = failed;
    }
    // A run that fails while it is profiled counts like any other.
    counts.failures.iter_mut().zip(runs.failures).for_each(|(all, profiled)| *all = all.and(profiled));
    problems.retain(|problem| !matches!(problem, UnusableReason::CommandFailed { .. }));
    problems.extend(counts.failed_commands());
    let mut subjects = counts.gate_subjects();
    if let Some(condition) = request.gate.as_ref().filter(|_| profiles.is_some()) {
        // The elapsed time contains that of other programs on the same CPUs, and the profiles measure the CPU
        // time more precisely.
        let is_named = condition.names().contains(&ELAPSED);
        subjects.iter_mut().filter(|of| of.name == ELAPSED).for_each(|of| of.is_optional = !is_named);
    }
    subjects.extend(profiles.iter().flat_map(|(diff, of, _)| groups::gate_subjects(diff, of)));
    // The counts are valid even if profiling failed.
    let report = match (&request.gate, &profiled) {
        (Some(condition), Ok(())) if !exit.is_interruption() => Some(judge(condition, &subjects, problems)),
        _ => None,
    };
    let names = [0, 1].map(command_letter);
    let verdict = ComparisonVerdict::new(&names, &counts.failures, &subjects, report);
    let answer = CompareAnswer {
        counts: &counts,
        profiles: profiles.as_ref().map(|(diff, compared, _)| (diff, compared)),
        verdict: &verdict,
        style: &output.style,
        layout: &output.layout,
    };
    show(&output, &answer)?;
    profiled?;
    gate::append_summary(&verdict, output.ci)?;
    Ok(verdict.gate.as_ref().map_or(exit, gate::exit_of))
}

/// Writes the page and the answer.
fn show(output: &CompareOutput, answer: &CompareAnswer<'_>) -> Result<()> {
    if let Some(path) = &output.page {
        let to = Destination { path, option: AdvisedOption::ExportFile, keeps: false };
        to.write(|out| answer.page(out).map_err(|error| Error::output(path.display(), error)))?;
        if !to.is_file() {
            return Ok(());
        }
        say::note(format!("{} is written", path.display()));
    }
    let failed = |error| Error::output("the comparison", error);
    let mut out = PagedOutput::open();
    match &answer.verdict.gate {
        Some(report) if output.ci == Some(CiFormat::JUnit) => {
            pmc_view::gate::junit(&mut out, answer.verdict, report)
        }
        _ if output.layout.form == ReportFormat::Json => answer.json(&mut out),
        _ => answer.text(&mut out),
    }
    .map_err(failed)?;
    gate::write_annotations(&mut out, answer.verdict, output.ci).and_then(|()| out.finish()).map_err(failed)
}

/// The complete recordings of both commands.
#[derive(Default)]
struct ProfiledRuns {
    sides: [Vec<TemporaryRecording>; 2],
    /// The status of the last run that failed, if any did.
    exit: Option<Exit>,
    /// The failed runs of both commands.
    failures: [RunFailures; 2],
    rate: Rate,
    /// The time that the recordings took.
    spent: Duration,
    /// Whether there is no time for all runs that the goal needs.
    is_out_of_time: bool,
}

impl ProfiledRuns {
    /// Records each command `count` times, alternately.
    fn profile(&mut self, request: &CompareRequest, signals: &Signals, count: usize) -> Result<()> {
        let (began, progress) = (Instant::now(), Bars.begin("profiled runs", count as u64 * 2));
        let all = (self.sides[0].len() + count) as u64;
        if all > MANY_RUNS {
            // If this fails, so does the creation of a file, with the kernel's reason.
            let _ = limits::raise_open_files(4 * all + 256);
        }
        for _ in 0..count {
            for (side, command) in request.commands.iter().enumerate() {
                if let Some(caught) = interruption(signals) {
                    self.exit = Some(Exit::Interrupted(caught));
                    return Ok(());
                }
                let file = TemporaryRecording::new()
                    .map_err(|error| Error::io("creating a temporary recording", error))?;
                let recording = request.record(command.words.clone(), file.path(), self.rate);
                // A recorder gives up capabilities of its thread, which the next recording needs again.
                let ran = std::thread::scope(|scope| scope.spawn(|| record::run_unseen(recording)).join());
                let exit = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                if exit.code() != 0 {
                    self.exit = Some(exit);
                }
                if exit.is_interruption() {
                    return Ok(());
                }
                self.failures[side].count(exit.code());
                self.sides[side].push(file);
                progress.more(1);
            }
        }
        self.spent += began.elapsed();
        Ok(())
    }

    /// Returns how many more runs of each command the goal needs, according to the noise of the runs so far,
    /// but not more than there is time for. `reading` is the time that it took to read these runs.
    fn runs_to_add(
        &mut self,
        budget: Duration,
        goal: GateGoal,
        subjects: &[GateSubject],
        (began, reading): (Instant, Duration),
    ) -> usize {
        let made = self.sides[0].len();
        let wanted = goal.runs(subjects, made).saturating_sub(made);
        // Each pair is recorded and read. The runs so far are read once more.
        let pair = (self.spent + reading).as_secs_f64() / made as f64;
        let left = budget.saturating_sub(began.elapsed() + reading).as_secs_f64();
        let most = (left / pair) as usize;
        // Only pairs show how much of the noise the runs of a pair have in common.
        let for_pairs = LEAST_PAIRS.saturating_sub(made);
        if for_pairs > 0 && wanted.min(most) > for_pairs {
            return for_pairs;
        }
        let time = |runs: usize| units::duration(runs as f64 * pair * 1e9);
        let limit = (goal.limit * 10.0).round() / 10.0;
        self.is_out_of_time = wanted > most;
        if self.is_out_of_time {
            let all = began.elapsed().as_secs_f64() + wanted as f64 * pair * 1.1;
            let budget = format!("{:.0}s", (all / 10.0).ceil() * 10.0);
            let what = format!(
                "to show a change of {limit}%, each command would have to be profiled {wanted} more times, which \
                 takes about {}; there is time for {most}",
                time(wanted)
            );
            say::warn(Warning::new(what).advise(Advice::options(format!(
                "--budget {budget}, a quieter machine, or a larger limit in the condition"
            ))));
        } else if wanted > 0 {
            say::note(format!(
                "to show a change of {limit}%, each command is profiled {wanted} more times, which takes about {}",
                time(wanted)
            ));
        }
        wanted.min(most)
    }

    /// Compares the recordings, if both commands were recorded.
    fn compare(&self, request: &CompareRequest) -> Result<Option<ComparedProfiles>> {
        if self.sides.iter().any(Vec::is_empty) {
            return Ok(None);
        }
        let label = |side: &str, files: &[TemporaryRecording]| -> Vec<String> {
            (1..=files.len()).map(|run| format!("profiled run {run} of {side}")).collect()
        };
        let labels = [label("A", &self.sides[0]), label("B", &self.sides[1])].concat();
        let paths = [0, 1].map(|side| self.sides[side].iter().map(TemporaryRecording::path).collect());
        let request = request.diff(paths, labels);
        request.groups.map(|groups| diff::compare(&request, groups)).transpose()
    }
}

/// Returns the signal that asks pmc to end, if one arrived between two runs.
fn interruption(signals: &Signals) -> Option<i32> {
    let all = std::iter::from_fn(|| signals.next());
    all.map(|caught| caught.signal).find(|signal| signal::ENDING.contains(signal))
}
