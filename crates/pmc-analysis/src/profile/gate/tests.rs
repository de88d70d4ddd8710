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
            values: Vec::new(),
            changes: Vec::new(),
        })
        .collect();
    let mut totals = Vec::new();
    for run in 0..2 * runs {
        let burst = if random.uniform() < noise.bursts { 1.1 + 0.4 * random.uniform() } else { 1.0 };
        let speed = (noise.run * random.normal()).exp() * burst;
        let mut sum = 0;
        for (at, share) in shares.iter().enumerate() {
            let change = if run >= runs { factor(at) } else { 1.0 };
            let cost = share * change * speed * (noise.function * random.normal()).exp();
            let count = random.poisson(samples * cost);
            rows[at].values.push(value(count));
            sum += count;
        }
        totals.push(Some(value(sum)));
    }
    let event = DiffEvent { name: "cpu-clock".to_owned(), totals, lines: rows, ..DiffEvent::default() };
    Diff { files: vec![DiffFile::default(); 2 * runs], events: vec![event], ..Diff::default() }
}

fn gate_of(diff: &Diff, runs: usize, by_share: bool, condition: &str) -> GateReport {
    let groups = compare_groups(diff, GroupRequest { base: runs, by_share, merges_lines: false });
    let name = |row: &GroupRow| match row.cells[0] {
        RowCell::Text(id) => format!("f{}", id.0),
        _ => String::new(),
    };
    judge(&GateCondition::parse(condition).unwrap(), &groups.gate_subjects(name, |_| String::new()), vec![])
}

#[test]
fn equal_programs_raise_few_alarms() {
    let mut random = RandomSource(88_172_645_463_325_252);
    let noisy = Noise { run: 0.01, function: 0.005, bursts: 0.0 };
    let very_noisy = Noise { run: 0.01, function: 0.02, bursts: 0.1 };
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
        let noise = Noise { run, function: 0.002, bursts: 0.0 };
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
    let noise = Noise { run: 0.01, function: 0.002, bursts: 0.0 };
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
    let noise = Noise { run: 0.005, function: 0.002, bursts: 0.0 };
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
    let noise = Noise { run: 0.1, function: 0.0, bursts: 0.0 };
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
    let noise = Noise { run: 0.0, function: 0.0, bursts: 0.0 };
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
        headline: None,
        share: None,
        location: None,
        change: Ok(MeanChange { percent, error, df: 18.0 }),
        p: 1.0,
    }
}

fn judged(condition: &str, subjects: &[GateSubject]) -> GateReport {
    judge(&GateCondition::parse(condition).unwrap(), subjects, Vec::new())
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
    let condition = GateCondition::parse(USUAL).unwrap();
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
