//! Compares commands that were measured in turn. Determines how they differ, and whether chance explains the
//! differences.
//!
//! Receives the [`StatCounts`] and metrics of each command, with the values of every run. Returns a
//! [`CommandComparison`] with the first command as the base. Uses a significance level of 5 % for the
//! verdicts. `view` prints the table.

use super::counts::{DerivedResult, StatCounts};
use super::gate::{
    ComparisonVerdict, GateReport, GateSubject, LEAST_RUNS, MeanChange, RunFailures, UnusableReason,
    corrected, headline_name,
};
use super::statistics::{MeasurementSummary, SIGNIFICANCE, WelchTest, welch};
use pmc_text::units::seconds;

/// A comparison of commands, with one line per measure.
#[derive(Debug, Clone)]
pub struct CommandComparison {
    /// The commands as typed; the first is the base.
    pub commands: Vec<String>,
    /// Elapsed time first, then the events in order, then the metrics.
    pub lines: Vec<ComparedMeasure>,
    /// The failed runs of each command.
    pub failures: Vec<RunFailures>,
    /// Mean CPU time of a run of each command, in seconds, if it is known.
    pub cpu_seconds: Vec<Option<f64>>,
}

/// The measurements of one command.
#[derive(Debug, Clone)]
pub struct CommandMeasurements {
    /// The command as typed.
    pub command: String,
    /// The counts of all runs.
    pub counts: StatCounts,
    /// The metrics of each run, in run order.
    pub metrics: Vec<Vec<DerivedResult>>,
    /// The failed runs.
    pub failures: RunFailures,
}

/// Kind of a measure; the verdict depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureKind {
    /// A duration.
    Time,
    /// A number of events.
    Count,
    /// A metric.
    Metric,
}

/// One measure for all commands.
#[derive(Debug, Clone)]
pub struct ComparedMeasure {
    /// `elapsed`, or the event's name.
    pub name: String,
    /// Unit of the values; empty for plain counts.
    pub unit: String,
    /// Kind of the measure.
    pub measure: MeasureKind,
    /// Whether the values have a fraction worth printing.
    pub fractional: bool,
    /// The measure's result for each command.
    pub sides: Vec<ComparedSide>,
}

/// The result of one measure for one command, compared with the base.
#[derive(Debug, Clone)]
pub struct ComparedSide {
    /// Summary of the runs; `None` if the measure was not counted.
    pub summary: Option<MeasurementSummary>,
    /// Difference of the mean from the mean of the base, in percent; `None` for the base itself, or if the
    /// base's mean is 0.
    pub difference: Option<f64>,
    /// Result of the test against the base. `None` for the base itself, or if there are fewer than two runs.
    pub test: Option<WelchTest>,
    /// The p-value of the test, corrected for the number of measures; 1 without a test.
    pub adjusted: f64,
    /// The meaning of the difference.
    pub verdict: DifferenceVerdict,
}

/// The meaning of a difference, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceVerdict {
    /// The command is the base, with which all other commands are compared.
    Base,
    /// The command takes less time than the base.
    Faster,
    /// The command takes more time than the base.
    Slower,
    /// The count is lower than the base's count.
    Fewer,
    /// The count is higher than the base's count.
    More,
    /// The metric is lower than the base's metric.
    Lower,
    /// The metric is higher than the base's metric.
    Higher,
    /// The difference may be due to chance.
    NotShown,
    /// This command or the base failed, so that the difference does not compare their work.
    Failed,
    /// The verdict is unknown, because there are too few runs or a count is missing.
    Unknown,
}

impl DifferenceVerdict {
    /// Returns the word for this verdict.
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Fewer => "fewer",
            Self::More => "more",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::NotShown => "no difference shown",
            Self::Failed => "command failed",
            Self::Unknown => "too few runs to tell",
        }
    }
}

impl CommandComparison {
    /// Returns the measures of a gate, for each command except the base. `worse` refers to elapsed time.
    pub fn gate_subjects(&self) -> Vec<GateSubject> {
        let mut subjects = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let base = line.sides.first().and_then(|side| side.summary.as_ref());
            for (number, side) in line.sides.iter().enumerate().skip(1) {
                let change = match (base, &side.summary) {
                    (Some(base), Some(_)) if base.mean == 0.0 => Err("the base's mean is 0".to_owned()),
                    (Some(base), Some(new)) => {
                        MeanChange::between(base, new).ok_or_else(|| "too few runs".to_owned())
                    }
                    _ => Err("not counted".to_owned()),
                };
                subjects.push(GateSubject {
                    name: match self.commands.len() {
                        2 => line.name.clone(),
                        _ => format!("{} of command {}", line.name, number + 1),
                    },
                    selectors: vec![line.name.clone()],
                    side: number,
                    is_cost: at == 0,
                    is_optional: false,
                    headline: (line.measure == MeasureKind::Time)
                        .then(|| headline_name(&line.name).unwrap_or_else(|| line.name.clone())),
                    share: None,
                    location: None,
                    change,
                    p: side.adjusted,
                });
            }
        }
        subjects
    }

    /// Returns the verdict on all commands, which are called `A`, `B` and so on.
    pub fn verdict(&self, gate: Option<GateReport>) -> ComparisonVerdict {
        let names: Vec<String> = (0..self.commands.len()).map(command_letter).collect();
        ComparisonVerdict::new(&names, &self.failures, &self.gate_subjects(), gate)
    }

    /// Returns the commands that failed.
    pub fn failed_commands(&self) -> Vec<UnusableReason> {
        let failed = self.commands.iter().zip(&self.failures).filter(|(_, failures)| failures.failed > 0);
        let reason = |(command, failures): (&String, &RunFailures)| UnusableReason::CommandFailed {
            command: command.clone(),
            failures: *failures,
        };
        failed.map(reason).collect()
    }

    /// Returns the commands that ran too few times for a gate.
    pub fn too_few_runs(&self) -> Vec<UnusableReason> {
        let runs = |command: usize| {
            let side = self.lines.first().and_then(|line| line.sides.get(command));
            side.and_then(|side| side.summary.as_ref()).map_or(0, |summary| summary.count)
        };
        let few = self.commands.iter().enumerate().filter(|(at, _)| runs(*at) < LEAST_RUNS);
        few.map(|(at, command)| UnusableReason::TooFewRuns { command: command.clone(), runs: runs(at) })
            .collect()
    }
}

/// Returns the name of a command in tables: `A` to `Z`, then `A1` and so on.
pub fn command_letter(at: usize) -> String {
    let letter = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// Compares commands that were measured with the same events. Ignores all rows except the first.
pub fn compare(commands: &[CommandMeasurements]) -> CommandComparison {
    let Some(base) = commands.first() else {
        return CommandComparison {
            commands: Vec::new(),
            lines: Vec::new(),
            failures: Vec::new(),
            cpu_seconds: Vec::new(),
        };
    };
    let elapsed = |counts: &StatCounts| match counts.runs.as_slice() {
        [] => vec![counts.elapsed_seconds()],
        runs => runs.iter().map(|run| seconds(run.elapsed_ns)).collect(),
    };
    let values = |counts: &StatCounts, event: usize| {
        let value = counts.value(0, event);
        let scale = counts.events.get(event).map_or(1.0, |e| e.scale);
        match value.runs() {
            [] => value.number().map(|n| n * scale).into_iter().collect(),
            runs => runs.iter().map(|n| n * scale).collect::<Vec<f64>>(),
        }
    };
    let line =
        |name: &str, unit: &str, measure, fractional, values: &dyn Fn(&CommandMeasurements) -> Vec<f64>| {
            let sides = sides(commands.iter().map(values));
            ComparedMeasure { name: name.to_owned(), unit: unit.to_owned(), measure, fractional, sides }
        };
    let mut lines = vec![line("elapsed", "s", MeasureKind::Time, true, &|command| elapsed(&command.counts))];
    for (at, event) in base.counts.events.iter().enumerate() {
        let measure = match event.role {
            Some(role) if role.is_time() => MeasureKind::Time,
            _ => MeasureKind::Count,
        };
        let values = |command: &CommandMeasurements| values(&command.counts, at);
        lines.push(line(&event.name, &event.unit, measure, event.scale.fract() != 0.0, &values));
    }
    for (at, metric) in base.metrics.first().into_iter().flatten().enumerate() {
        let value = |run: &Vec<DerivedResult>| run.get(at)?.value.as_ref().ok().copied();
        let values = |command: &CommandMeasurements| command.metrics.iter().filter_map(value).collect();
        lines.push(line(&metric.name, &metric.unit, MeasureKind::Metric, true, &values));
    }
    let failures: Vec<RunFailures> = commands.iter().map(|command| command.failures).collect();
    for side in 1..commands.len() {
        let has_failed = failures[0].failed > 0 || failures[side].failed > 0;
        set_verdicts(&mut lines, side, has_failed);
    }
    let cpu_seconds = |command: &CommandMeasurements| {
        let time = command.counts.cpu_time.as_ref()?;
        Some(seconds(time.user_ns + time.system_ns))
    };
    let cpu_seconds = commands.iter().map(cpu_seconds).collect();
    let names = commands.iter().map(|command| command.command.clone()).collect();
    CommandComparison { commands: names, lines, failures, cpu_seconds }
}

/// Summarizes the values of each command's runs and compares them with the values of the first command.
fn sides(values: impl Iterator<Item = Vec<f64>>) -> Vec<ComparedSide> {
    let summaries: Vec<Option<MeasurementSummary>> =
        values.map(|v| MeasurementSummary::from_values(&v)).collect();
    let base = summaries.first().cloned().flatten();
    let side = |(at, summary): (usize, Option<MeasurementSummary>)| {
        let (difference, test) = match (&summary, &base) {
            (Some(s), Some(b)) if at > 0 => {
                ((b.mean != 0.0).then(|| 100.0 * (s.mean - b.mean) / b.mean.abs()), welch(s, b))
            }
            _ => (None, None),
        };
        let verdict = if at == 0 { DifferenceVerdict::Base } else { DifferenceVerdict::Unknown };
        ComparedSide { summary, difference, test, adjusted: 1.0, verdict }
    };
    summaries.into_iter().enumerate().map(side).collect()
}

/// Sets the corrected p-values and the verdicts of one command. Times and other measures are two families of
/// tests, so that many events do not hide a change of the time.
fn set_verdicts(lines: &mut [ComparedMeasure], side: usize, has_failed: bool) {
    let mut tested: [Vec<(MeasureKind, &mut ComparedSide)>; 2] = Default::default();
    for line in lines {
        let measure = line.measure;
        if line.sides[side].test.is_some() {
            tested[usize::from(measure != MeasureKind::Time)].push((measure, &mut line.sides[side]));
        }
    }
    let raw = [0, 1].map(|family| {
        let tests = tested[family].iter().filter_map(|(_, side)| side.test);
        tests.map(|test| test.p).collect::<Vec<f64>>()
    });
    let adjusted = corrected(&raw[0], &raw[1]).into_iter().flatten();
    for ((measure, side), adjusted) in tested.into_iter().flatten().zip(adjusted) {
        let is_less = side.test.is_some_and(|test| test.t < 0.0);
        side.adjusted = adjusted;
        side.verdict = match (is_less, measure) {
            _ if has_failed => DifferenceVerdict::Failed,
            _ if adjusted >= SIGNIFICANCE => DifferenceVerdict::NotShown,
            (true, MeasureKind::Time) => DifferenceVerdict::Faster,
            (false, MeasureKind::Time) => DifferenceVerdict::Slower,
            (true, MeasureKind::Count) => DifferenceVerdict::Fewer,
            (false, MeasureKind::Count) => DifferenceVerdict::More,
            (true, MeasureKind::Metric) => DifferenceVerdict::Lower,
            (false, MeasureKind::Metric) => DifferenceVerdict::Higher,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::counts::RunTime;

    fn timed(times_ms: &[u64]) -> CommandMeasurements {
        let runs = times_ms.iter().map(|ms| RunTime { elapsed_ns: ms * 1_000_000, cpu_time: None }).collect();
        CommandMeasurements {
            command: "work".to_owned(),
            counts: StatCounts { runs, ..Default::default() },
            metrics: vec![],
            failures: RunFailures { runs: times_ms.len(), ..RunFailures::default() },
        }
    }

    #[test]
    fn clear_difference_is_labeled() {
        let (a, b, c) = (timed(&[100, 101, 99, 100]), timed(&[50, 51, 49, 50]), timed(&[100, 99, 101, 101]));
        let got = compare(&[a, b, c]);
        let words: Vec<_> = got.lines[0].sides.iter().map(|s| s.verdict.word()).collect();
        assert_eq!(words, ["base", "faster", "no difference shown"]);
        assert!((got.lines[0].sides[1].difference.unwrap() + 50.0).abs() < 1e-9);
    }

    #[test]
    fn failed_command_is_neither_faster_nor_slower() {
        for failing in 0..2 {
            let mut sides = [timed(&[100, 101, 99, 100]), timed(&[50, 51, 49, 50])];
            for status in [0, 4, 0, 5] {
                sides[failing].failures.count(status);
            }
            let got = compare(&sides);
            assert_eq!(got.lines[0].sides[1].verdict, DifferenceVerdict::Failed);
            let wanted = RunFailures { failed: 2, runs: 8, status: 4 };
            assert_eq!(got.failures[failing], wanted);
            let [UnusableReason::CommandFailed { failures, .. }] = got.failed_commands()[..] else {
                panic!("{got:?}")
            };
            assert_eq!(failures, wanted);
        }
    }

    #[test]
    fn many_measures_need_more_evidence() {
        let with_metrics = |times: &[u64], shift: f64| {
            let mut side = timed(times);
            let metric = |run: usize| DerivedResult {
                name: "m".to_owned(),
                unit: String::new(),
                help: String::new(),
                cgroup: None,
                value: Ok(run as f64 + shift),
                crossed: None,
                inexact: false,
                error: None,
                branch: None,
            };
            side.metrics = (0..times.len()).map(|run| (0..20).map(|_| metric(run)).collect()).collect();
            side
        };
        let times = [100, 104, 96, 102, 98];
        let got = compare(&[with_metrics(&times, 0.0), with_metrics(&times, 2.9)]);
        let side = &got.lines[1].sides[1];
        // The raw p is below 5 %, but it is one of 20 equal ones.
        assert!(side.test.unwrap().p < SIGNIFICANCE && side.adjusted > 0.5, "{side:?}");
        assert_eq!(side.verdict, DifferenceVerdict::NotShown);
    }

    #[test]
    fn single_run_is_never_significant() {
        let (a, b) = (timed(&[100]), timed(&[50]));
        assert_eq!(compare(&[a, b]).lines[0].sides[1].verdict, DifferenceVerdict::Unknown);
    }
}
