//! Comparison of two groups of recordings: several runs of a base, and several of a new version.
//!
//! Receives a [`Diff`] of all recordings, with those of the base first. Returns the mean cost of each
//! function in both groups, and the change with its error *between runs*. The comparison of two recordings
//! considers only the error from sampling. `profile::gate` explains the test.

use super::{CostSource, Diff, DiffEvent, DiffFile, part};
use crate::profile::gate::{
    GateLocation, GateSubject, LEAST_RUNS, MeanChange, UnusableReason, corrected, headline_name,
};
use crate::profile::sampled::{RowCell, SampleValue, SortKey, StringId};
use crate::profile::statistics::{MeasurementSummary, SIGNIFICANCE, welch};

/// Minimum number of samples of a function per recording, on average. With fewer samples, costs are far from
/// the normal distribution that the test requires.
const LEAST_SAMPLES: f64 = 10.0;

/// Minimum number of functions from which the slowness of a run is estimated. The median of fewer functions
/// depends on each of them.
const LEAST_FUNCTIONS: usize = 10;

/// Significance level at which the slowness of the groups differs. By chance, this happens in one of 100
/// comparisons. pmc then misses small changes of functions.
const DIFFERENT_SPEED: f64 = 0.01;

/// Maximum fraction of lost samples in a usable recording.
const MOST_LOST: f64 = 0.01;

/// The name by which a gate's condition selects the cost of all functions together.
const TOTAL: &str = "total";

/// Two groups of recordings, compared event by event.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupComparison {
    /// Number of recordings in each group.
    pub runs: [usize; 2],
    /// Whether shares are compared, instead of costs.
    pub by_share: bool,
    /// The events that all recordings contain.
    pub events: Vec<GroupEvent>,
    /// Notes to the reader; untrusted text.
    pub notes: Vec<String>,
}

/// An event in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEvent {
    /// The event's name; untrusted text.
    pub name: String,
    /// The event's name for readers; untrusted text.
    pub title: String,
    /// Whether the costs are nanoseconds.
    pub is_time: bool,
    /// Whether the costs are measured, not sampled.
    pub is_census: bool,
    /// The sort keys of the rows' cells.
    pub keys: Vec<SortKey>,
    /// Mean time that the threads of a recording waited for a CPU, in nanoseconds, in each group. `None` for
    /// recordings without waits.
    pub runnable: Option<[f64; 2]>,
    /// The cost of all functions together.
    pub total: GroupChange,
    /// The functions, or the rows of other sort keys; largest difference first.
    pub rows: Vec<GroupRow>,
}

/// A function in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    /// The values of the sort keys, except the source line if lines were merged.
    pub cells: Box<[RowCell]>,
    /// The line with the most samples in the new recordings, if lines were merged and it is known.
    pub line: Option<(StringId, u64)>,
    /// Its cost.
    pub change: GroupChange,
}

/// A cost in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupChange {
    /// The costs per recording: periods at the same speed of the machine (for the total, plain periods), or
    /// shares (0 to 1).
    pub sides: [MeasurementSummary; 2],
    /// The mean share of the event's total in each group.
    pub shares: [f64; 2],
    /// The change. `None` if it cannot be tested.
    pub change: Option<MeanChange>,
    /// The p-value, corrected for the number of tests.
    pub adjusted: f64,
    /// The meaning of the change.
    pub verdict: GroupVerdict,
}

/// The meaning of a change between groups, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVerdict {
    /// The variation between runs is enough to explain the change.
    Noise,
    /// The cost is higher than in the base.
    More,
    /// The cost is lower than in the base.
    Less,
    /// No recording of the base contains the row.
    New,
    /// Only the base contains the row.
    Gone,
    /// There are too few samples to test.
    Rare,
    /// There are too few recordings to test.
    FewRuns,
}

impl GroupVerdict {
    /// Returns the words for this verdict.
    pub fn words(self) -> &'static str {
        match self {
            Self::Noise => "within noise",
            Self::More => "more",
            Self::Less => "less",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Rare => "too few samples",
            Self::FewRuns => "too few recordings",
        }
    }
}

/// How to compare groups of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupRequest {
    /// Number of recordings of the base, which come first.
    pub base: usize,
    /// Whether to compare shares instead of costs.
    pub by_share: bool,
    /// Whether to add up rows that differ only in their source line, which is the last sort key.
    pub merges_lines: bool,
}

/// Compares the base's recordings with the others.
///
/// On a busy machine, whole runs are slower than others, and all their functions with them. Such noise can
/// exceed the change of one function many times. So each function's cost is divided by the *slowness* of its
/// run: the weighted median, over all functions, of the cost relative to the function's mean (the method of
/// Anders and Huber, *Differential expression analysis for sequence count data*, Genome Biology 11, 2010).
/// A change of a few functions does not affect a median. If the slowness of the groups differs, most
/// functions may have changed, so pmc does not adjust the costs. It never adjusts the total.
///
/// The variance of a function's cost is at least its variance from sampling: a run with the share `s` of
/// samples whose squared periods sum to `q` has the variance `s (1 − s) q` (binomial). Runs that are equal by
/// chance would otherwise make any difference significant. Waits are measured, not sampled (a census), so
/// only the runs tell how much they vary, even if there are few of them. Their costs are not divided by the
/// slowness.
pub fn compare_groups(diff: &Diff, request: GroupRequest) -> GroupComparison {
    // Costs with different units cannot be compared.
    let GroupRequest { base, by_share, merges_lines } = request;
    let by_share = by_share || diff.has_mixed_units;
    let in_pairs = are_pairs(&diff.files, base);
    let is_complete = |event: &&DiffEvent| event.totals.iter().all(Option::is_some);
    let mut events: Vec<GroupEvent> = diff
        .events
        .iter()
        .filter(is_complete)
        .map(|event| {
            let totals: Vec<SampleValue> = event.totals.iter().flatten().cloned().collect();
            let rows = match merges_lines {
                true => merge_lines(event, base),
                false => {
                    event.lines.iter().map(|row| (row.cells.clone(), row.values.clone(), None)).collect()
                }
            };
            let source = event.source();
            let how = ComparedRuns { base, by_share, in_pairs, source };
            let slowness = match by_share || source == CostSource::Census {
                true => vec![1.0; totals.len()],
                false => slowness(&rows, totals.len(), base),
            };
            let rows = rows.into_iter().map(|(cells, values, line)| GroupRow {
                cells,
                line,
                change: change(&totals, &values, &slowness, how),
            });
            let exact = (0..totals.len()).map(|run| event.exact_running(run));
            let exact: Option<Vec<u64>> = exact.collect();
            let all = match exact {
                Some(exact) => {
                    let of = |(total, period): (&SampleValue, u64)| SampleValue { period, ..total.clone() };
                    totals.iter().zip(exact).map(of).collect()
                }
                None => totals.clone(),
            };
            let total = change(&all, &all, &vec![1.0; totals.len()], how);
            let keys = event.keys[..event.keys.len() - usize::from(merges_lines)].to_vec();
            let runnable = runnable(event, base);
            GroupEvent {
                name: event.name.clone(),
                title: event.title(),
                is_time: event.is_time(),
                is_census: source == CostSource::Census,
                keys,
                runnable,
                total,
                rows: rows.collect(),
            }
        })
        .collect();
    set_verdicts(&mut events);
    for event in &mut events {
        let difference = |row: &GroupRow| (row.change.sides[1].mean - row.change.sides[0].mean).abs();
        event.rows.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    }
    let omitted = diff.events.iter().filter(|event| !is_complete(event));
    let omitted = omitted.map(|event| format!("not all recordings contain {}; it is omitted", event.name));
    let notes = omitted.chain(order_note(&diff.files, base)).collect();
    GroupComparison { runs: [base, diff.files.len() - base], by_share, events, notes }
}

impl GroupComparison {
    /// Returns the measures of a gate: the total and the functions of each event. `name` and `text` return
    /// the name of a row, and a text of the string table.
    pub fn gate_subjects(
        &self,
        name: impl Fn(&GroupRow) -> String,
        text: impl Fn(StringId) -> String,
    ) -> Vec<GateSubject> {
        let mut subjects = Vec::new();
        let several = self.events.len() > 1;
        for event in &self.events {
            let with_event = |name: String| if several { format!("{name} ({})", event.name) } else { name };
            let change = |of: &GroupChange| of.change.ok_or_else(|| of.verdict.words().to_owned());
            // The shares of all functions always add up to the same total.
            if !self.by_share {
                subjects.push(GateSubject {
                    name: with_event(TOTAL.to_owned()),
                    selectors: vec![event.name.clone(), TOTAL.to_owned()],
                    side: 1,
                    is_cost: true,
                    is_optional: false,
                    headline: Some(
                        headline_name(&event.name).unwrap_or_else(|| format!("{TOTAL} {}", event.name)),
                    ),
                    share: None,
                    location: None,
                    change: change(&event.total),
                    p: event.total.adjusted,
                });
            }
            subjects.extend(event.rows.iter().map(|row| GateSubject {
                name: with_event(name(row)),
                selectors: vec![event.name.clone()],
                side: 1,
                is_cost: true,
                is_optional: false,
                headline: None,
                share: Some(row.change.shares[0]),
                location: row.line.map(|(file, line)| GateLocation { file: text(file), line }),
                change: change(&row.change),
                p: row.change.adjusted,
            }));
        }
        subjects
    }
}

/// Returns why the recordings are unusable for a gate: there are too few, or they are damaged, or they are
/// from different machines.
pub fn problems(files: &[DiffFile], base: usize) -> Vec<UnusableReason> {
    let mut reasons = Vec::new();
    let recordings = [base, files.len() - base];
    if recordings.iter().any(|count| *count < LEAST_RUNS) {
        reasons.push(UnusableReason::TooFewRecordings { recordings });
    }
    for file in files {
        let most = (file.samples as f64 * MOST_LOST) as u64;
        let lost = (file.lost > most).then_some(file.lost);
        if file.loses_samples || lost.is_some() {
            reasons.push(UnusableReason::LostSamples { path: file.path.clone(), lost });
        }
        let first = files.first().map(|first| &first.machine[..]).unwrap_or_default();
        // One property is enough to tell machines apart.
        let other = file.machine.iter().find_map(|(property, here)| {
            let (_, first) = first.iter().find(|(of_first, value)| of_first == property && value != here)?;
            Some((*property, [here.clone(), first.clone()]))
        });
        reasons.extend(other.map(|(property, values)| UnusableReason::OtherMachine {
            path: file.path.clone(),
            property,
            values,
        }));
    }
    reasons
}

/// Returns the times of the first and last sample of each recording, if all are known.
fn sampled_times(files: &[DiffFile]) -> Option<Vec<(u64, u64)>> {
    files.iter().map(|file| file.sampled_ns).collect()
}

/// Whether recordings of the same number in both groups are a pair, according to their clocks: they were made
/// one after the other, with no other recording between them.
fn are_pairs(files: &[DiffFile], base: usize) -> bool {
    let Some(times) = sampled_times(files).filter(|times| times.len() == 2 * base) else { return false };
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|run| times[*run]);
    let is_apart = order.windows(2).all(|next| times[next[0]].1 <= times[next[1]].0);
    is_apart && order.chunks(2).all(|pair| pair[0].abs_diff(pair[1]) == base)
}

/// Returns a warning if the recordings of the groups were not made alternately, according to their clocks.
fn order_note(files: &[DiffFile], base: usize) -> Option<String> {
    let times = sampled_times(files)?;
    let (old, new) = times.split_at(base);
    let span =
        |of: &[(u64, u64)]| Some((of.iter().map(|time| time.0).min()?, of.iter().map(|time| time.1).max()?));
    let ((old_first, old_last), (new_first, new_last)) = (span(old)?, span(new)?);
    if files.len() < 4 {
        return None;
    }
    if new_last < old_first {
        return Some("the base was recorded after the new version, so the sides may be swapped".to_owned());
    }
    (old_last < new_first).then(|| {
        "all base recordings were made before the others; a machine that became slower in the meantime looks like a \
         slower program, so record alternately"
            .to_owned()
    })
}

/// Returns the mean time that the threads waited for a CPU, in each group.
fn runnable(event: &DiffEvent, base: usize) -> Option<[f64; 2]> {
    let times: Option<Vec<u64>> =
        event.thread_times.iter().map(|times| times.map(|times| times.runnable)).collect();
    let times = times.filter(|times| times.len() > base && base > 0)?;
    let (old, new) = times.split_at(base);
    Some([old, new].map(|times| times.iter().sum::<u64>() as f64 / times.len() as f64))
}

/// A row's cells and values, and its hottest line.
type MergedRow = (Box<[RowCell]>, Vec<SampleValue>, Option<(StringId, u64)>);

/// Adds up rows that differ only in their source line, which is their last cell.
fn merge_lines(event: &DiffEvent, base: usize) -> Vec<MergedRow> {
    let mut at: rustc_hash::FxHashMap<Box<[RowCell]>, usize> = rustc_hash::FxHashMap::default();
    let mut merged: Vec<MergedRow> = Vec::new();
    let mut hottest: Vec<u64> = Vec::new();
    for row in &event.lines {
        let mut cells = row.cells.to_vec();
        let line = match cells.pop() {
            Some(RowCell::Line(file, line)) => Some((file, u64::from(line))),
            _ => None,
        };
        let cells: Box<[RowCell]> = cells.into();
        let index = *at.entry(cells.clone()).or_insert_with(|| {
            merged.push((cells, vec![SampleValue::default(); row.values.len()], None));
            hottest.push(0);
            merged.len() - 1
        });
        let (_, values, of_line) = &mut merged[index];
        values.iter_mut().zip(&row.values).for_each(|(sum, value)| *sum += value);
        let samples: u64 = row.values[base..].iter().map(|value| value.samples).sum();
        if line.is_some() && samples > hottest[index] {
            (*of_line, hottest[index]) = (line, samples);
        }
    }
    merged
}

/// Returns the slowness of each run relative to the average run. Returns 1 for all runs if there are too few
/// functions to tell, or if the slowness of the groups differs.
fn slowness(rows: &[MergedRow], runs: usize, base: usize) -> Vec<f64> {
    let samples = |values: &[SampleValue]| values.iter().map(|value| value.samples).sum::<u64>() as f64;
    let all = rows.iter().map(|(_, values, _)| (values, samples(values)));
    let functions: Vec<_> = all.filter(|(_, samples)| *samples >= LEAST_SAMPLES * runs as f64).collect();
    let equal = vec![1.0; runs];
    if functions.len() < LEAST_FUNCTIONS {
        return equal;
    }
    let of_run = |run: usize| {
        let ratio = |(values, samples): &(&Vec<SampleValue>, f64)| {
            let mean = values.iter().map(|value| value.period as f64).sum::<f64>() / runs as f64;
            // The weight is the inverse of the ratio's standard deviation.
            (values[run].period as f64 / mean, samples.sqrt())
        };
        weighted_median(functions.iter().map(ratio).collect())
    };
    let slowness: Vec<f64> = (0..runs).map(of_run).collect();
    let (old, new) = slowness.split_at(base);
    let test = MeasurementSummary::from_values(old).zip(MeasurementSummary::from_values(new));
    let test = test.and_then(|(old, new)| welch(&new, &old));
    let is_usable = slowness.iter().all(|slowness| *slowness > 0.0);
    if is_usable && test.is_some_and(|test| test.p >= DIFFERENT_SPEED) { slowness } else { equal }
}

/// Returns the value below which half of the weight is, given pairs of value and weight.
fn weighted_median(mut pairs: Vec<(f64, f64)>) -> f64 {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = pairs.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let at = pairs.iter().position(|(_, weight)| {
        left -= weight;
        left <= 0.0
    });
    at.map_or(1.0, |at| pairs[at].0)
}

/// How the runs of an event are compared.
#[derive(Clone, Copy)]
struct ComparedRuns {
    /// Number of runs of the base, which come first.
    base: usize,
    by_share: bool,
    /// Whether runs of the same number in both groups are a pair.
    in_pairs: bool,
    source: CostSource,
}

fn change(
    totals: &[SampleValue],
    values: &[SampleValue],
    slowness: &[f64],
    how: ComparedRuns,
) -> GroupChange {
    let ComparedRuns { base, by_share, in_pairs, source } = how;
    let share = |run: usize| part(&totals[run], &values[run]).share;
    let cost = |run: usize| match by_share {
        true => share(run),
        false => values[run].period as f64 / slowness[run],
    };
    // The variance from sampling, in the unit of the cost.
    let sampling = |run: usize| {
        let variance = share(run) * (1.0 - share(run)) * totals[run].squares;
        let unit = if by_share { totals[run].period as f64 } else { slowness[run] };
        if unit > 0.0 { variance / (unit * unit) } else { 0.0 }
    };
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let [old, new] = [0..base, base..totals.len()].map(|range| {
        let of = |number: &dyn Fn(usize) -> f64| range.clone().map(number).collect::<Vec<f64>>();
        let (costs, shares, least) = (of(&cost), of(&share), mean(&of(&sampling)).sqrt());
        let samples: u64 = values[range.clone()].iter().map(|value| value.samples).sum();
        let summary = MeasurementSummary::from_values(&costs).unwrap_or_default();
        (summary.with_least_stdev(least), mean(&shares), samples, costs, least)
    });
    let per_run = (old.2 + new.2) as f64 / totals.len() as f64;
    let verdict = match (old.2, new.2) {
        _ if base.min(totals.len() - base) < LEAST_RUNS => GroupVerdict::FewRuns,
        _ if source == CostSource::Sampled && per_run < LEAST_SAMPLES => GroupVerdict::Rare,
        // A wait that some of the new runs do not have is not a property of the program.
        (0, _) if source == CostSource::Census && values[base..].iter().any(|value| value.samples == 0) => {
            GroupVerdict::Noise
        }
        (0, _) => GroupVerdict::New,
        (_, 0) => GroupVerdict::Gone,
        _ => GroupVerdict::Noise,
    };
    let change = match verdict {
        GroupVerdict::Noise | GroupVerdict::Gone => {
            let paired = in_pairs.then(|| MeanChange::paired(&old.3, &new.3, old.4.hypot(new.4))).flatten();
            paired.or_else(|| MeanChange::between(&old.0, &new.0))
        }
        _ => None,
    };
    GroupChange { sides: [old.0, new.0], shares: [old.1, new.1], change, adjusted: 1.0, verdict }
}

/// Sets the corrected p-values and the verdicts.
fn set_verdicts(events: &mut [GroupEvent]) {
    let (mut totals, mut rows) = (Vec::new(), Vec::new());
    for event in events {
        totals.push(&mut event.total);
        rows.extend(event.rows.iter_mut().map(|row| &mut row.change));
    }
    let raw = [&totals, &rows].map(|family| {
        let changes = family.iter().filter_map(|of| of.change);
        changes.map(|change| change.probability_of(change.percent)).collect::<Vec<f64>>()
    });
    let adjusted = corrected(&raw[0], &raw[1]).into_iter().flatten();
    let tested = totals.into_iter().chain(rows).filter(|of| of.change.is_some());
    for (of, adjusted) in tested.zip(adjusted) {
        of.adjusted = adjusted;
        if adjusted < SIGNIFICANCE && of.verdict == GroupVerdict::Noise {
            let is_more = of.sides[1].mean > of.sides[0].mean;
            of.verdict = if is_more { GroupVerdict::More } else { GroupVerdict::Less };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_recordings_are_pairs() {
        let files = |times: &[u64]| -> Vec<DiffFile> {
            let file = |at: &u64| DiffFile { sampled_ns: Some((*at, *at + 10)), ..DiffFile::default() };
            times.iter().map(file).collect()
        };
        // Alternately, also if the sides take turns in being first, and in any order of names.
        assert!(are_pairs(&files(&[0, 20, 40, 10, 30, 50]), 3));
        assert!(are_pairs(&files(&[0, 30, 40, 10, 20, 50]), 3));
        assert!(are_pairs(&files(&[40, 0, 20, 50, 10, 30]), 3));
        assert!(!are_pairs(&files(&[0, 10, 20, 30, 40, 50]), 3), "first one side, then the other");
        assert!(!are_pairs(&files(&[0, 20, 40, 30, 10, 50]), 3), "names that do not match the order");
        assert!(!are_pairs(&files(&[0, 20, 40, 5, 30, 50]), 3), "at the same time");
        assert!(!are_pairs(&files(&[0, 20, 10]), 2), "different numbers");
        let unknown = [DiffFile::default(), DiffFile::default()];
        assert!(!are_pairs(&unknown, 1));
    }
}
