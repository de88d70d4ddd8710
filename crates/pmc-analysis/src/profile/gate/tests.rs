//! The gate on synthetic runs with known changes, from generators with fixed seeds.

use super::*;
use crate::profile::diff::groups::{GroupRequest, GroupRow, compare_groups};
use crate::profile::diff::{Diff, DiffEvent, DiffFile, DiffRow};
use crate::profile::sampled::{RowCell, SampleValue, StringId};

const USUAL: &str = "worse > 3% and p < 0.01";
const FUNCTIONS: usize = 50;

/// A generator of random numbers (xorshift).
struct RandomSource(u64);

impl RandomSource {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a standard normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Returns a Poisson number, approximated by a rounded normal number. The means are at least 30.
    fn poisson(&mut self, mean: f64) -> u64 {
        (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64
    }
}

/// The noise of a machine: relative standard deviations.
#[derive(Clone, Copy)]
struct Noise {
    /// Of the speed of a run, which affects all functions.
    run: f64,
    /// Of the cost of each function in a run, such as from memory layout.
    function: f64,
    /// Of the speed of a pair of runs.
    drift: f64,
    /// Fraction of the runs that a neighbour slows down by 10 to 50 %.
    bursts: f64,
}

/// Simulates recordings of a program whose costliest function has 20 % of the cost. `slower` is the factor of
/// that function's cost in the new recordings.
fn recordings(runs: usize, samples: f64, slower: f64, noise: Noise, random: &mut RandomSource) -> Diff {
    changed_recordings(runs, samples, |function| if function == 0 { slower } else { 1.0 }, noise, random)
}

/// Simulates recordings. `factor` returns the factor of each function's cost in the new recordings.
fn changed_recordings(
    runs: usize,
    samples: f64,
    factor: impl Fn(usize) -> f64,
    noise: Noise,
    random: &mut RandomSource,
) -> Diff {
    let mut shares: Vec<f64> = (1..FUNCTIONS).map(|rank| 1.0 / rank as f64).collect();
    let rest: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share *= 0.8 / rest);
    shares.insert(0, 0.2);
    let value = |samples: u64| SampleValue {
        samples,
        period: samples * 1000,
        squares: samples as f64 * 1e6,
        ..SampleValue::default()
    };
    let mut rows: Vec<DiffRow> = (0..FUNCTIONS)
        .map(|at| DiffRow {
            cells: [RowCell::Text(StringId(at as u32))].into(),
            values: vec![SampleValue::default(); 2 * runs],
            changes: Vec::new(),
        })
        .collect();
    let mut totals = vec![None; 2 * runs];
    // Both runs of a pair meet about the same load.
    let mut load = |_| if noise.drift > 0.0 { (noise.drift * random.normal()).exp() } else { 1.0 };
    let loads: Vec<f64> = (0..runs).map(&mut load).collect();
    for run in 0..2 * runs {
        let burst = if random.uniform() < noise.bursts { 1.1 + 0.4 * random.uniform() } else { 1.0 };
        let speed = (noise.run * random.normal()).exp() * burst * loads[run % runs];
        let mut sum = 0;
        for (at, share) in shares.iter().enumerate() {
            let change = if run >= runs { factor(at) } else { 1.0 };
            let cost = share * change * speed * (noise.function * random.normal()).exp();
            let count = random.poisson(samples * cost);
            rows[at].values[run] = value(count);
            sum += count;
        }
        totals[run] = Some(value(sum));
    }
    let event = DiffEvent { name: "cpu-clock".to_owned(), totals, lines: rows, ..DiffEvent::default() };
    // The recordings were made alternately.
    let at = |run: usize| ((2 * (run % runs) + run / runs) * 10) as u64;
    let file = |run| DiffFile { sampled_ns: Some((at(run), at(run) + 9)), ..DiffFile::default() };
    Diff { files: (0..2 * runs).map(file).collect(), events: vec![event], ..Diff::default() }
}

fn gate_of(diff: &Diff, runs: usize, by_share: bool, condition: &str) -> GateReport {
    let request = GroupRequest { base: runs, by_share, merges_lines: false };
    judge(&condition.parse().unwrap(), &subjects_of(diff, request), vec![])
}

fn subjects_of(diff: &Diff, request: GroupRequest) -> Vec<GateSubject> {
    let name = |row: &GroupRow| match row.cells[0] {
        RowCell::Text(id) => format!("f{}", id.0),
        _ => String::new(),
    };
    compare_groups(diff, request).gate_subjects(name, |_| String::new())
}

#[test]
fn equal_programs_raise_few_alarms() {
    let mut random = RandomSource(88_172_645_463_325_252);
    let noisy = Noise { run: 0.01, function: 0.005, drift: 0.0, bursts: 0.0 };
    let very_noisy = Noise { run: 0.01, function: 0.02, drift: 0.0, bursts: 0.1 };
    // On the noisy machine, most comparisons must pass: a gate that is never usable raises no alarms either.
    for (runs, samples, noise, least_passed) in [(10, 40_000.0, noisy, 450), (5, 5_000.0, very_noisy, 0)] {
        let verdicts: Vec<GateVerdict> = (0..500)
            .map(|_| {
                let diff = recordings(runs, samples, 1.0, noise, &mut random);
                gate_of(&diff, runs, false, USUAL).verdict
            })
            .collect();
        let count = |of: GateVerdict| verdicts.iter().filter(|verdict| **verdict == of).count();
        let (alarms, passed) = (count(GateVerdict::Regression), count(GateVerdict::Pass));
        assert!(alarms <= 5, "{alarms} of 500 with {runs} runs");
        assert!(passed >= least_passed, "{passed} of 500 passed");
    }
}

#[test]
fn slower_function_is_found() {
    let mut random = RandomSource(0x9e37_79b9_7f4a_7c15);
    // On a busy machine, the runs vary almost as much as the function changes, but all functions with them.
    for run in [0.005, 0.04] {
        let noise = Noise { run, function: 0.002, drift: 0.0, bursts: 0.0 };
        let found = (0..100).filter(|_| {
            let diff = recordings(10, 40_000.0, 1.05, noise, &mut random);
            let report = gate_of(&diff, 10, false, USUAL);
            let failing: Vec<&GateRow> = report.rows.iter().filter(|row| row.fails).collect();
            report.verdict == GateVerdict::Regression && failing.iter().all(|row| row.name == "f0")
        });
        let found = found.count();
        assert!(found >= 95, "{found} of 100 with noise of {run}");
    }
}

#[test]
fn improvement_of_most_functions_is_no_regression_of_the_others() {
    let mut random = RandomSource(5);
    let noise = Noise { run: 0.01, function: 0.002, drift: 0.0, bursts: 0.0 };
    let most = |function: usize| if function.is_multiple_of(4) { 1.0 } else { 0.7 };
    let costliest = |function: usize| if function == 0 { 0.1 } else { 1.0 };
    for _ in 0..20 {
        let faster = changed_recordings(10, 40_000.0, most, noise, &mut random);
        let report = gate_of(&faster, 10, false, USUAL);
        assert_eq!(report.verdict, GateVerdict::Pass, "{report:?}");
        let faster = changed_recordings(10, 40_000.0, costliest, noise, &mut random);
        assert_eq!(gate_of(&faster, 10, false, USUAL).verdict, GateVerdict::Pass);
    }
}

#[test]
fn improvement_passes_and_swapped_sides_do_not() {
    let mut random = RandomSource(7);
    let noise = Noise { run: 0.005, function: 0.002, drift: 0.0, bursts: 0.0 };
    let faster = recordings(10, 200_000.0, 0.8, noise, &mut random);
    assert_eq!(gate_of(&faster, 10, false, USUAL).verdict, GateVerdict::Pass);
    let slower = recordings(10, 200_000.0, 1.25, noise, &mut random);
    assert_eq!(gate_of(&slower, 10, false, USUAL).verdict, GateVerdict::Regression);
    assert_eq!(gate_of(&slower, 10, false, "better > 3% and p < 0.01").verdict, GateVerdict::Pass);
    assert_eq!(gate_of(&slower, 10, false, "total > 3% and p < 0.01").rows.len(), 1);
}

#[test]
fn noise_that_hides_the_limit_is_unusable() {
    let mut random = RandomSource(99);
    let noise = Noise { run: 0.1, function: 0.0, drift: 0.0, bursts: 0.0 };
    let diff = recordings(5, 40_000.0, 1.0, noise, &mut random);
    let report = gate_of(&diff, 5, false, USUAL);
    assert_eq!(report.verdict, GateVerdict::Unusable, "{report:?}");
    // The shares of the functions do not depend on the speed of the machine, but 3 % of a share is little.
    assert_eq!(gate_of(&diff, 5, true, "worse > 20% and p < 0.01").verdict, GateVerdict::Pass);
    let report = gate_of(&diff, 5, true, USUAL);
    let [UnusableReason::FewFunctionsTested { share }] = report.reasons[..] else { panic!("{report:?}") };
    assert!(share < 0.5);
    let total = gate_of(&diff, 5, false, "total > 3% and p < 0.01");
    let [UnusableReason::TooNoisy { limit, shown: Some(shown), .. }] = total.reasons[..] else {
        panic!("{total:?}")
    };
    assert!((limit - 3.0).abs() < 1e-6 && shown > 5.0, "{limit} {shown}");
    // The change that is reported as the smallest is found; a smaller one is not.
    let change = total.rows[0].change;
    assert!((change.probability_of(shown) - 0.01).abs() < 1e-4, "{change:?}");
}

#[test]
fn few_recordings_are_not_tested() {
    let mut random = RandomSource(3);
    let noise = Noise { run: 0.0, function: 0.0, drift: 0.0, bursts: 0.0 };
    let diff = recordings(2, 40_000.0, 2.0, noise, &mut random);
    let report = gate_of(&diff, 2, false, USUAL);
    assert_eq!((report.verdict, report.rows.len()), (GateVerdict::Unusable, 0), "{report:?}");
}

fn measured(name: &str, percent: f64, error: f64, is_cost: bool) -> GateSubject {
    GateSubject {
        name: name.to_owned(),
        selectors: vec![name.to_owned()],
        side: 1,
        is_cost,
        is_optional: false,
        headline: None,
        share: None,
        location: None,
        change: Ok(MeanChange { percent, error, df: 18.0 }),
        p: 1.0,
    }
}

fn judged(condition: &str, subjects: &[GateSubject]) -> GateReport {
    judge(&condition.parse().unwrap(), subjects, Vec::new())
}

#[test]
fn p_is_corrected_for_the_selected_measures() {
    // t = 2.88 with 18 degrees of freedom: p = 0.00995.
    let subjects = [measured("elapsed", 2.88, 1.0, true), measured("cycles", 0.0, 1.0, false)];
    assert_eq!(judged("worse > 2% and p < 0.01", &subjects).verdict, GateVerdict::Regression);
    let both = judged("worse > 2% and p < 0.01 or cycles > 9% and p < 0.01", &subjects);
    assert_eq!(both.verdict, GateVerdict::Unusable, "two tests need twice the evidence: {both:?}");
    let reasons = judged("branches > 2%", &subjects).reasons;
    assert_eq!(
        reasons,
        [UnusableReason::NothingSelected { names: vec!["cycles".to_owned(), "elapsed".to_owned()] }]
    );
}

#[test]
fn problem_outweighs_a_regression() {
    let subjects = [measured("elapsed", 50.0, 1.0, true)];
    let condition: GateCondition = USUAL.parse().unwrap();
    let few = UnusableReason::TooFewRuns { command: "A".to_owned(), runs: 2 };
    assert_eq!(judge(&condition, &subjects, vec![few]).verdict, GateVerdict::Unusable);
    assert_eq!(judge(&condition, &subjects, vec![]).verdict, GateVerdict::Regression);
}

#[test]
fn condition_without_p_or_limit_is_never_too_noisy() {
    let noisy = [measured("elapsed", 0.5, 30.0, true)];
    assert_eq!(judged("worse > 3%", &noisy).verdict, GateVerdict::Pass);
    assert_eq!(judged("worse > 0% and p < 0.01", &noisy).verdict, GateVerdict::Pass);
    assert_eq!(judged("worse > 3% and p < 0.01", &noisy).verdict, GateVerdict::Unusable);
    let constant = [measured("elapsed", 0.5, 0.0, true)];
    assert_eq!(judged("worse > 3% and p < 0.01", &constant).verdict, GateVerdict::Pass);
    assert_eq!(judged("worse > 0.4% and p < 0.01", &constant).verdict, GateVerdict::Regression);
}

/// What `pmc compare` does: pilot runs, then as many as the condition needs, but at most `most`. Returns the
/// answer and the number of runs. `samples` is the number of samples per run.
fn planned(
    samples: f64,
    most: usize,
    factor: impl Fn(usize) -> f64 + Copy,
    noise: Noise,
    random: &mut RandomSource,
) -> (GateReport, usize) {
    const PILOT: usize = 10;
    let condition: GateCondition = USUAL.parse().unwrap();
    let goal = GateGoal::from_condition(&condition, &["total".to_owned()]).unwrap();
    let request = |base| GroupRequest { base, by_share: false, merges_lines: false };
    let pilot = changed_recordings(PILOT, samples, factor, noise, random);
    let runs = goal.runs(&subjects_of(&pilot, request(PILOT)), PILOT).min(most);
    let diff = changed_recordings(runs, samples, factor, noise, random);
    (judge(&condition, &subjects_of(&diff, request(runs)), vec![]), runs)
}

/// 0.2 s of CPU time at 25,000 samples a second.
const SHORT_RUN: f64 = 5000.0;

#[test]
fn planned_runs_raise_few_alarms_and_are_usable() {
    let mut random = RandomSource(0x1234_5678_9abc);
    let quiet = Noise { run: 0.02, function: 0.005, drift: 0.05, bursts: 0.0 };
    // On a busy machine, a tenth of the runs is 10 to 50 % slower.
    let busy = Noise { run: 0.02, function: 0.005, drift: 0.05, bursts: 0.1 };
    for (noise, most_unusable) in [(quiet, 4), (busy, 12)] {
        let answers: Vec<GateVerdict> =
            (0..30).map(|_| planned(SHORT_RUN, 150, |_| 1.0, noise, &mut random).0.verdict).collect();
        let count = |of: GateVerdict| answers.iter().filter(|answer| **answer == of).count();
        let (alarms, unusable) = (count(GateVerdict::Regression), count(GateVerdict::Unusable));
        // At a probability of 1 %, more than 2 of 30 are an accident of one in 300.
        assert!(alarms <= 2 && unusable <= most_unusable, "{alarms} alarms, {unusable} unusable");
    }
}

#[test]
fn planned_runs_find_small_functions() {
    let mut random = RandomSource(0x0dd_ba11);
    let noise = Noise { run: 0.02, function: 0.005, drift: 0.05, bursts: 0.0 };
    // The shares of the functions are 0.2, then 0.8 / 4.48 / rank: about a tenth for the second, a fiftieth
    // for the ninth.
    for (function, slower) in [(2, 1.05), (9, 1.10)] {
        let factor = |at: usize| if at == function { slower } else { 1.0 };
        let name = format!("f{function}");
        // At 0.2 s a run, 150 pairs take 60 s.
        let is_found = |_: &i32| {
            let (report, _) = planned(SHORT_RUN, 150, factor, noise, &mut random);
            report.rows.iter().any(|row| row.fails && row.name == name)
        };
        let found = (0..40).filter(is_found).count();
        // At a probability of 95 %, fewer than 34 of 40 are an accident of one in 1000.
        assert!(found >= 34, "{found} of 40 found {name}");
    }
}

#[test]
fn runs_follow_from_the_noise_and_the_limit_but_not_from_the_change() {
    let goal = |condition: &str| {
        GateGoal::from_condition(&condition.parse().unwrap(), &["total".to_owned(), "cpu-clock".to_owned()])
    };
    let usual = goal(USUAL).unwrap();
    assert!((usual.limit - 3.0).abs() < 1e-6 && (usual.level - 0.01).abs() < 1e-9, "{usual:?}");
    assert!(
        (usual.change_to_find(0.02) - 10.0).abs() < 1e-4 && (usual.change_to_find(0.1) - 5.0).abs() < 1e-4
    );
    assert_eq!(goal("elapsed > 3% and p < 0.01"), None);
    assert_eq!(goal("worse > 0% and p < 0.01"), None);
    assert_eq!(goal("total > 2%").unwrap().level, 0.05);
    // A third of the change takes nine times as many samples.
    let finer = goal("worse > 1% and p < 0.01").unwrap();
    assert!((finer.samples() / usual.samples() - 9.0).abs() < 1e-3);
    assert!((200_000.0..400_000.0).contains(&usual.samples()), "{}", usual.samples());
    let total = |percent: f64, error: f64| [measured("total", percent, error, true)];
    let runs = |percent, error| usual.runs(&total(percent, error), 10);
    assert_eq!(runs(0.0, 0.1), 10);
    assert_eq!(runs(0.0, 3.0), runs(40.0, 3.0));
    // Twice the noise needs four times as many runs, apart from the degrees of freedom.
    let ratio = runs(0.0, 6.0) as f64 / runs(0.0, 3.0) as f64;
    assert!((3.5..4.2).contains(&ratio), "{ratio}");
    assert_eq!(runs(0.0, 1e6), MOST_RUNS);
    assert_eq!(usual.runs(&[], 10), 10);
}

#[test]
fn pairs_cancel_the_load_and_ignore_disturbed_runs() {
    let mut random = RandomSource(4711);
    let load: Vec<f64> = (0..40).map(|_| 100.0 * (0.2 * random.normal()).exp()).collect();
    let mut near = |shift: f64| load.iter().map(|load| load * shift + random.normal()).collect::<Vec<f64>>();
    let (base, mut new) = (near(1.0), near(1.1));
    let summary = |of: &[f64]| MeasurementSummary::from_values(of).unwrap();
    let apart = MeanChange::between(&summary(&base), &summary(&new)).unwrap();
    let paired = MeanChange::paired(&base, &new, 0.0).unwrap();
    assert!(
        (paired.percent - 10.0).abs() < 3.0 * paired.error && paired.error < apart.error / 4.0,
        "{paired:?}"
    );
    // Three runs in which something else took ten times as long.
    new[..3].iter_mut().for_each(|cost| *cost *= 10.0);
    let disturbed = MeanChange::paired(&base, &new, 0.0).unwrap();
    assert!((disturbed.percent - paired.percent).abs() < 1.0, "{disturbed:?}");
    // Runs that are equal by chance do not make a change certain.
    let equal = MeanChange::paired(&[100.0; 25], &[101.0; 25], 10.0).unwrap();
    assert!((equal.error - 2.0).abs() < 1e-9, "{equal:?}");
    assert_eq!(MeanChange::paired(&base[..19], &new[..19], 0.0), None);
}
