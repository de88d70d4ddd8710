//! Statistics for repeated runs: summary, outliers, and a test of whether two sets of runs differ.
//!
//! Receives plain numbers and returns [`MeasurementSummary`] and [`WelchTest`]. Does not decide any wording.
//! The distributions behind the intervals are in [`distribution`].

pub(crate) mod distribution;
pub mod proportions;

use distribution::{t_quantile, t_two_sided};

/// Significance level: a difference is reported only if the probability that it occurs by chance is below
/// this level.
pub const SIGNIFICANCE: f64 = 0.05;

/// Summary of repeated measurements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasurementSummary {
    /// Number of measurements.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median; the mean of the two middle values for an even number of values.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sample standard deviation (divisor n − 1); 0 for a single value.
    pub stdev: f64,
    /// The 95 % confidence interval of the mean (Student's t). Limited to 0 and above if no value is
    /// negative. `None` for a single value.
    pub interval: Option<(f64, f64)>,
    /// Indices of outliers, in ascending order.
    pub outliers: Vec<usize>,
}

impl MeasurementSummary {
    /// Summarizes `values`. Returns `None` if `values` is empty or contains a value that is not finite.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = match count {
            1 => 0.0,
            n => values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64,
        };
        let stdev = variance.sqrt();
        let interval = (count > 1).then(|| {
            let half = t_quantile(0.975, (count - 1) as f64) * stdev / (count as f64).sqrt();
            // If no value is negative, neither is the mean.
            let least = if sorted[0] < 0.0 { f64::NEG_INFINITY } else { 0.0 };
            ((mean - half).max(least), mean + half)
        });
        Some(Self {
            count,
            mean,
            median: median_of_sorted(&sorted),
            min: sorted[0],
            max: sorted[count - 1],
            stdev,
            interval,
            outliers: outliers(values),
        })
    }

    /// Converts the summary to another unit by multiplying all values by `factor`.
    #[must_use]
    pub fn in_unit(&self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            median: self.median * factor,
            min: self.min * factor,
            max: self.max * factor,
            stdev: self.stdev * factor,
            interval: self.interval.map(|(low, high)| (low * factor, high * factor)),
            ..self.clone()
        }
    }

    /// Raises the standard deviation to `least` if it is lower.
    #[must_use]
    pub(crate) fn with_least_stdev(self, least: f64) -> Self {
        Self { stdev: self.stdev.max(least), ..self }
    }

    /// Returns the standard error of the mean (perf's `+-`).
    pub fn error_of_mean(&self) -> f64 {
        self.stdev / (self.count as f64).sqrt()
    }

    /// Returns the standard error in percent of the mean, as perf prints it (`( +-  1.23% )`); 0 if the mean
    /// is 0.
    pub fn error_percent(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.error_of_mean() / self.mean.abs() }
    }
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

/// Returns the indices of values whose modified z-score `0.6745 × |x − median| ÷ MAD` exceeds 3.5. The method
/// is from Iglewicz and Hoaglin, *How to Detect and Handle Outliers*, 1993. Returns no outliers for fewer
/// than four values, or if more than half of the values are equal.
pub(crate) fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 4 {
        return Vec::new();
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = median_of_sorted(&sorted);
    let mut distances: Vec<f64> = values.iter().map(|v| (v - median).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let mad = median_of_sorted(&distances);
    if mad == 0.0 {
        return Vec::new();
    }
    (0..values.len()).filter(|&at| 0.6745 * (values[at] - median).abs() / mad > 3.5).collect()
}

/// Welch's test of whether two sets of measurements have the same mean. It does not assume equal variances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WelchTest {
    /// The test statistic: `(mean a − mean b) ÷ standard error`.
    pub t: f64,
    /// Degrees of freedom according to Welch and Satterthwaite.
    pub df: f64,
    /// Standard error of the difference of the means.
    pub error: f64,
    /// Two-sided probability of a difference at least this large if the means are equal.
    pub p: f64,
}

/// Performs Welch's t-test. Returns `None` if a side has fewer than two values. If neither side has any
/// spread, p is 1 for equal means and 0 otherwise.
pub(crate) fn welch(a: &MeasurementSummary, b: &MeasurementSummary) -> Option<WelchTest> {
    if a.count < 2 || b.count < 2 {
        return None;
    }
    let (va, vb) = (a.error_of_mean().powi(2), b.error_of_mean().powi(2));
    let difference = a.mean - b.mean;
    if va + vb == 0.0 {
        let equal = difference == 0.0;
        let t = if equal { 0.0 } else { f64::INFINITY.copysign(difference) };
        let (df, p) = ((a.count + b.count - 2) as f64, if equal { 1.0 } else { 0.0 });
        return Some(WelchTest { t, df, error: 0.0, p });
    }
    let error = (va + vb).sqrt();
    let t = difference / error;
    let df = (va + vb).powi(2) / (va * va / (a.count - 1) as f64 + vb * vb / (b.count - 1) as f64);
    Some(WelchTest { t, df, error, p: t_two_sided(t, df) })
}

/// Adjusts the probabilities of many tests with Holm's method (*A simple sequentially rejective multiple test
/// procedure*, Scandinavian Journal of Statistics 6, 1979). The probability that any test without a real
/// difference falls below a level is at most that level, even if other tests have real differences.
pub(crate) fn holm(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*a].total_cmp(&all[*b]));
    let mut out = vec![1.0; all.len()];
    let mut most = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        most = most.max(all[at] * (all.len() - rank) as f64).min(1.0);
        out[at] = most;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} is not {want}");
    }

    #[test]
    fn summary_matches_textbook_formulas() {
        let s = MeasurementSummary::from_values(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        near(s.mean, 5.0, 1e-12);
        near(s.median, 4.5, 1e-12);
        near(s.stdev, (32.0f64 / 7.0).sqrt(), 1e-12);
        // t(0.975, 7) = 2.364624 in every printed table.
        near(s.interval.unwrap().1 - 5.0, 2.364_624 * (32.0f64 / 7.0 / 8.0).sqrt(), 1e-5);
        assert_eq!((s.min, s.max, s.count), (2.0, 9.0, 8));
    }

    #[test]
    fn intervals_of_nonnegative_values_stop_at_zero() {
        let low = |values: &[f64]| MeasurementSummary::from_values(values).unwrap().interval.unwrap().0;
        assert_eq!(low(&[0.0, 0.0, 0.0, 12.0]), 0.0);
        assert!(low(&[-1.0, 0.0, 0.0, 12.0]) < 0.0);
        assert!(low(&[10.0, 11.0, 12.0]) > 0.0);
    }

    #[test]
    fn one_value_has_no_interval_and_no_values_no_summary() {
        let one = MeasurementSummary::from_values(&[3.0]).unwrap();
        assert_eq!((one.interval, one.error_percent()), (None, 0.0));
        assert_eq!(MeasurementSummary::from_values(&[]), None);
        assert_eq!(MeasurementSummary::from_values(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn plus_minus_percent_matches_perf() {
        // `perf stat -r 4 --table` printed "0.0212058 +- 0.0000929 ... ( +-  0.44% )" for these four times.
        let s =
            MeasurementSummary::from_values(&[0.021_464_5, 0.021_217_0, 0.021_079_1, 0.021_062_6]).unwrap();
        near(s.error_of_mean(), 0.000_092_9, 1e-7);
        near(s.error_percent(), 0.44, 0.005);
    }

    #[test]
    fn outliers_are_detected_by_the_median() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.05, 30.0, 9.95]), [4]);
        assert!(outliers(&[10.0, 10.1, 9.9, 10.05, 9.95]).is_empty());
        assert!(outliers(&[1.0, 1.0, 100.0]).is_empty());
    }

    #[test]
    fn welch_test_matches_published_examples() {
        // Data and p-values are from the task "Welch's t-test" on Rosetta Code, where several independent
        // programs computed them.
        let p = |a: &[f64], b: &[f64]| {
            welch(&MeasurementSummary::from_values(a).unwrap(), &MeasurementSummary::from_values(b).unwrap())
                .unwrap()
        };
        near(
            p(&[30.02, 29.99, 30.11, 29.97, 30.01, 29.99], &[29.89, 29.93, 29.72, 29.98, 30.02, 29.98]).p,
            0.090_773_324_285_671,
            1e-12,
        );
        let w = p(
            &[19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0],
            &[
                28.2, 26.6, 20.1, 23.3, 25.2, 22.1, 17.7, 27.6, 20.6, 13.7, 23.2, 17.5, 20.6, 18.0, 23.9,
                21.6, 24.3, 20.4, 24.0, 13.2,
            ],
        );
        near(w.p, 0.035_972_271_029_796_8, 1e-12);
        near(p(&[3.0, 4.0, 1.0, 2.1], &[490.2, 340.0, 433.9]).p, 0.010_751_561_149_784_5, 1e-12);
    }

    #[test]
    fn holm_adjusts_step_by_step() {
        // 4 · 0.005, 3 · 0.01, 2 · 0.03; the last is raised to the one before it.
        let out = holm(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(out.iter().zip(wanted).all(|(got, want)| (got - want).abs() < 1e-12), "{out:?}");
        assert_eq!(holm(&[0.6, 0.7]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn equal_samples_do_not_differ() {
        let a = MeasurementSummary::from_values(&[5.0, 5.0, 5.0]).unwrap();
        let b = MeasurementSummary::from_values(&[6.0, 6.0]).unwrap();
        assert_eq!(welch(&a, &a).unwrap().p, 1.0);
        assert_eq!(welch(&a, &b).unwrap().p, 0.0);
        assert_eq!(welch(&a, &MeasurementSummary::from_values(&[1.0]).unwrap()), None);
    }
}
