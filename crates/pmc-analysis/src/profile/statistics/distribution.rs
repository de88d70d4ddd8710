//! Student's t distribution, computed from the regularized incomplete beta function.
//!
//! `I_x(a, b)` uses the continued fraction of Abramowitz and Stegun 26.5.8 (Lentz's method). ln Γ uses the
//! Lanczos approximation (g = 7, 9 terms). Both have a relative error of about 1e-13. The quantile is found
//! by bisection on the distribution. The results agree with printed tables in all digits (the tests below
//! check them to 1e-6).

/// Returns the natural logarithm of the gamma function of a positive argument.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series =
        TERMS.iter().enumerate().skip(1).fold(TERMS[0], |sum, (at, term)| sum + term / (x + at as f64));
    let t = x + G + 0.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// Returns the regularized incomplete beta function `I_x(a, b)`, for `a, b > 0` and `x` in 0..=1.
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges quickly only for `x` below the mean. Above it, use the symmetry of the
    // function.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    front * continued_fraction(x, a, b)
}

/// `1 / (1 + d1/(1 + d2/(1 + …)))` with the coefficients of A&S 26.5.8.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const STEPS: u32 = 500;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..=STEPS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Returns the probability that a t variable with `df` degrees of freedom is further from 0 than `t`, on
/// either side.
pub(crate) fn t_two_sided(t: f64, df: f64) -> f64 {
    incomplete_beta(df / (df + t * t), df / 2.0, 0.5)
}

/// Returns the value below which a t variable lies with probability `p` (0.5 ≤ p < 1). For example, 12.706
/// for p = 0.975 and one degree of freedom.
pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    let tail = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided(high, df) > tail && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if t_two_sided(middle, df) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        for (df, want) in [
            (1.0, 12.706_205),
            (2.0, 4.302_653),
            (4.0, 2.776_445),
            (9.0, 2.262_157),
            (30.0, 2.042_272),
            (120.0, 1.979_930),
        ] {
            let got = t_quantile(0.975, df);
            assert!((got - want).abs() < 1e-6, "df {df}: {got}");
        }
        assert!((t_quantile(0.975, 1e7) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn beta_matches_closed_forms() {
        // I_x(1, 1) = x; I_x(2, 2) = x² (3 − 2x); I_½(a, a) = ½.
        assert!((incomplete_beta(0.3, 1.0, 1.0) - 0.3).abs() < 1e-13);
        assert!((incomplete_beta(0.3, 2.0, 2.0) - 0.09 * 2.4).abs() < 1e-13);
        assert!((incomplete_beta(0.5, 7.3, 7.3) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        // P(|t| > 1) = 1/2 for the Cauchy distribution.
        assert!((t_two_sided(1.0, 1.0) - 0.5).abs() < 1e-13);
    }
}
