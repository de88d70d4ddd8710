//! Programs that burn CPU time, and the samples that they are sure to get.
//!
//! A test program works for a stated CPU time by its own clock, not for a number of iterations: CPUs differ in
//! speed. A test computes each threshold of samples from that time, by [`least_samples`] or [`share_error`].
//! `PMC_TEST_LOOP_SPEED` scales the loops that are left, between two looks at the clock: `4` imitates a CPU that
//! is four times as fast, with a quarter of the iterations. All tests pass with any speed.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

/// Path of the C header with `for_cpu_ms(ms)`, `for_cpu_us(us)`, `burn_ms(ms)` and `loops(n)`. It requires the
/// macro `LOOP_PERCENT`, as [`burn_flags`] defines it.
pub const BURN_H: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kit/burn.h");

/// Returns flags of gcc and g++ that include [`BURN_H`].
pub fn burn_flags() -> [String; 3] {
    [format!("-DLOOP_PERCENT={}", loops(100)), "-include".to_owned(), BURN_H.to_owned()]
}

/// Chance that a test with a threshold of this module fails by accident.
const ACCIDENT: f64 = 1e-6;

/// Scales a number of iterations by `PMC_TEST_LOOP_SPEED`.
pub fn loops(n: u64) -> u64 {
    let speed = std::env::var("PMC_TEST_LOOP_SPEED").ok();
    let speed: f64 = speed.map_or(1.0, |speed| speed.parse().expect("PMC_TEST_LOOP_SPEED is a number"));
    ((n as f64 / speed) as u64).max(1)
}

/// Returns a shell script that works until the shell and its ended children have used at least this much more
/// CPU time, in milliseconds. It contains no single quotes.
pub fn busy_shell(ms: u64) -> &'static str {
    busy_shell_with(ms, ":")
}

/// [`busy_shell`] that also runs a command in each of its turns.
pub fn busy_shell_with(ms: u64, command: &str) -> &'static str {
    let count = format!("i=0; while [ $i -lt {} ]; do i=$((i+1)); done", loops(2000));
    shell_until("self", ms, &format!("{command}; {count}"))
}

/// Returns a shell script that waits until a process and its ended children have used at least this much more
/// CPU time.
pub fn waiting_shell(pid: u32, ms: u64) -> &'static str {
    shell_until(&pid.to_string(), ms, "sleep 0.02")
}

/// Returns a shell script that runs `turn` until a process has used this much more CPU time.
fn shell_until(process: &str, ms: u64, turn: &str) -> &'static str {
    // User and system time, own and of ended children, are the fields 14 to 17. Each is rounded down to a tick
    // of 10 ms.
    let ticks = ms.div_ceil(10) + 4;
    let script = format!(
        "used() {{ read -r stat </proc/{process}/stat; set -- ${{stat##*) }}; \
         used=$((${{12}}+${{13}}+${{14}}+${{15}})); }}; \
         used; end=$((used+{ticks})); while [ $used -lt $end ]; do {turn}; used; done"
    );
    script.leak()
}

/// Returns the number of samples that a program gets at least in this CPU time, in milliseconds, at this rate
/// per second, except with a chance below 1 in a million.
///
/// `ms / 1000 * rate` samples are due. A virtual machine counts the time that its host takes away as CPU time,
/// without samples, and the kernel skips the samples of a late timer. As long as half of the due samples are
/// taken, at places that are as bad as random ones, their number is at least that of a Poisson distribution
/// with the mean `m = ms / 1000 * rate / 2`. The result is the largest `k` with
/// `P(X < k) = Σ(i < k) exp(-m) m^i / i! < 1e-6`.
pub fn least_samples(ms: u64, rate: u64) -> usize {
    let mean = (ms * rate) as f64 / 1000.0 / 2.0;
    let (mut log_term, mut below, mut k) = (-mean, 0.0, 0);
    loop {
        below += f64::exp(log_term);
        if below >= ACCIDENT {
            return k;
        }
        k += 1;
        log_term += (mean / k as f64).ln();
    }
}

/// Returns the largest difference between a function's share of the time and its share of this many samples,
/// from 0 to 1, except with a chance below 1 in a million.
///
/// This is Hoeffding's bound for independent samples: `P(|share - p| >= d) <= 2 exp(-2 n d²)`.
pub fn share_error(samples: usize) -> f64 {
    ((2.0 / ACCIDENT).ln() / (2.0 * samples as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_samples_fail_by_accident_once_in_a_million() {
        let of_mean = |mean: u64| least_samples(2 * mean, 1000);
        // P(X = 0) = exp(-m) is below 1e-6 from m = 13.8 on. The others are sums in exact fractions.
        let known = [(1, 0), (13, 0), (14, 1), (20, 3), (50, 20), (100, 56), (1000, 853)];
        for (mean, least) in known {
            assert_eq!(of_mean(mean), least, "mean {mean}");
        }
        // 2 exp(-2 * 10,000 * d²) = 1e-6.
        assert!((share_error(10_000) - 0.02693).abs() < 1e-5, "{}", share_error(10_000));
    }
}
