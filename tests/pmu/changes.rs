//! Measurements during which the machine changes: a CPU goes offline and returns, or the clock is set.

use super::*;

/// A shell that runs 40 million instructions three times, with a command after the first and the second time.
macro_rules! interrupted {
    ($first:literal, $second:literal) => {
        concat!("sh -c 'work 20000000; ", $first, "; work 20000000; ", $second, "; work 20000000'")
    };
}
macro_rules! offline {
    () => {
        interrupted!(
            "echo 0 >/sys/devices/system/cpu/cpu1/online",
            "echo 1 >/sys/devices/system/cpu/cpu1/online"
        )
    };
}
macro_rules! clock_steps {
    () => {
        interrupted!("date -s @1000000000", "date -s @2000000000")
    };
}

/// Commands for a machine with two CPUs.
pub(super) const BATCH: &[(&str, &str)] = &[
    ("offline_counts", concat!("$T stat -a -A -e instructions:u ", offline!())),
    (
        "offline_json",
        concat!("$T stat --json=2 -o off.json -a -e instructions:u ", offline!(), "; cat off.json"),
    ),
    ("offline_other", concat!("$T stat -x, -C 0 -e instructions:u ", offline!())),
    ("offline_samples", concat!("$T record -a -e instructions:u -c 1000000 -o off.data ", offline!())),
    ("offline_script", "$T script -i off.data -F cpu"),
    ("clock_counts", concat!("$T stat -x, -I 20 -e instructions:u ", clock_steps!())),
    ("clock_samples", concat!("$T record -e instructions:u -c 1000000 -o clock.data ", clock_steps!())),
    ("clock_script", "$T script -i clock.data -F time"),
];

#[test]
fn offline_cpu_is_reported() {
    let (Some(counts), Some(samples)) = (guest("offline_counts"), guest("offline_samples")) else { return };
    for run in [&counts, &samples] {
        assert_eq!(run.status, Some(0), "{run:?}");
        assert!(
            run.stderr.contains("CPU 1 went offline") && run.stderr.contains("(measure again"),
            "{run:?}"
        );
        assert!(!run.stderr.contains("CPU 0 went offline"), "{run:?}");
    }
    let Some(json) = guest("offline_json") else { return };
    let json: serde_json::Value = serde_json::from_str(&json.expect(0).stdout).expect("a document");
    assert!(json["warnings"].to_string().contains("CPU 1 went offline"), "{json:#}");
    // CPU 0 continues.
    let Some(script) = guest("offline_script") else { return };
    let script = script.expect(0);
    assert!(script.stdout.lines().filter(|line| line.contains("[000]")).count() > 40, "{script:?}");
    let Some(other) = guest("offline_other") else { return };
    assert!(!other.expect(0).stderr.contains("offline"));
}

#[test]
fn clock_steps_do_not_change_times() {
    let Some(counts) = guest("clock_counts") else { return };
    let counts = counts.expect(0);
    let fields: Vec<Vec<&str>> = counts.stderr.lines().map(|line| line.split(',').collect()).collect();
    let times: Vec<f64> = fields.iter().map(|row| row[0].trim().parse().expect("seconds")).collect();
    assert!(times.is_sorted() && times.len() > 5 && times.iter().all(|time| *time < 60.0), "{times:?}");
    near(fields.iter().map(|row| row[1].parse::<f64>().unwrap_or(0.0)).sum(), 120e6, 0.1);

    let (Some(samples), Some(script)) = (guest("clock_samples"), guest("clock_script")) else { return };
    let _ = samples.expect(0);
    let text = script.expect(0).stdout;
    let times: Vec<f64> =
        text.lines().map(|line| line.trim().trim_end_matches(':').parse().expect("seconds")).collect();
    assert!(times.is_sorted() && times.len() >= 120, "{} of {times:?}", times.len());
    assert!(times[times.len() - 1] - times[0] < 60.0, "{times:?}");
}
