//! Shares of wall-clock time: `record --latency`, its columns, sort key and filter, and perf 7.2's numbers
//! for the same recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::kit::burn::burn_flags;
use crate::kit::{self, oracle};

/// A serial part, then two threads at a time, then only one of them.
const PARTS: &str = r#"
#include <pthread.h>
volatile unsigned long sink;
__attribute__((noinline)) void serial(long ms) { for_cpu_ms(ms) for (long i = loops(20000); i > 0; i--) sink++; }
__attribute__((noinline)) void *parallel(void *ms) {
  for_cpu_ms((long)ms) for (long i = loops(20000); i > 0; i--) sink++;
  return 0;
}
int main(void) {
  serial(200);
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(t + i, 0, parallel, (void *)(100 * (i + 1)));
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return 0;
}
"#;

/// Percentages of each row of `-t TAB`, by its other columns.
fn rows(text: &str, shares: usize) -> BTreeMap<Vec<String>, Vec<f64>> {
    let mut rows: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && line.contains('%')) {
        let words: Vec<&str> = line.split('\t').map(str::trim).collect();
        let numbers = words[..shares].iter().map(|word| word.trim_end_matches('%').parse::<f64>().unwrap());
        let sums = rows.entry(words[shares..].iter().map(|word| (*word).to_owned()).collect()).or_default();
        sums.resize(shares, 0.0);
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    rows
}

fn pmc_says(file: &Path, options: &[&str]) -> kit::Ran {
    let all = [&["report", "--stdio", "-t", "\t", "--no-children", "-i", file.to_str().unwrap()], options];
    kit::run(&all.concat())
}

#[test]
fn wall_clock_time_is_divided_among_running_threads() {
    if !(kit::need_program("gcc") && kit::need_perf_events()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("parts.c"), PARTS).unwrap();
    let built = Command::new("gcc")
        .args(burn_flags())
        .args(["-O1", "-pthread", "-o"])
        .args([path("parts"), path("parts.c")])
        .status();
    assert!(built.unwrap().success());
    let record = |name: &str, options: &[&str]| {
        let (file, program) = (path(name), path("parts"));
        let all = ["record", "-q", "-e", "cpu-clock:u", "-F", "2000", "-o", file.to_str().unwrap()];
        kit::run(&[&all, options, &["--", program.to_str().unwrap()]].concat()).expect(0);
        file
    };
    let file = record("latency.data", &["--latency", "-g"]);

    // The column appears by default, and each column adds up to 100 %.
    let usual = pmc_says(&file, &["-s", "sym"]).expect(0);
    assert!(usual.stdout.contains("# Overhead\tLatency\tSymbol"), "{}", usual.stdout);
    let sums = rows(&usual.stdout, 2).into_values().fold([0.0, 0.0], |a, b| [a[0] + b[0], a[1] + b[1]]);
    assert!(sums.iter().all(|sum| (sum - 100.0).abs() < 0.5), "{sums:?}");
    let levels = rows(&pmc_says(&file, &["-s", "parallelism"]).expect(0).stdout, 2);
    let level = |n: &str| levels.get(&vec![n.to_owned()]).cloned().unwrap_or_else(|| vec![0.0, 0.0]);
    assert!(level("1")[1] >= level("1")[0] && level("2")[1] <= level("2")[0], "{levels:?}");
    let serial = |rows: &BTreeMap<Vec<String>, Vec<f64>>| rows[&vec!["[.] serial".to_owned()]].clone();
    let alone = rows(&pmc_says(&file, &["-s", "sym", "--parallelism", "1"]).expect(0).stdout, 2);
    let all = serial(&rows(&usual.stdout, 2));
    assert!(all[1] >= all[0] && serial(&alone) == all, "nothing ran beside it: {all:?} {alone:?}");
    let first = pmc_says(&file, &["-s", "sym", "--latency"]).expect(0);
    assert!(first.stdout.contains("# Latency\tOverhead\tSymbol"), "{}", first.stdout);
    let added = pmc_says(&file, &["-F", "+parallelism", "-s", "sym"]).expect(0);
    assert!(added.stdout.contains("# Overhead\tLatency\tParallelism\tSymbol"), "{}", added.stdout);
    kit::run(&["report", "-i", file.to_str().unwrap(), "--json"]).expect(0).prints(&["\"latency\":"]);

    // For a recording without context switches, the error suggests `--latency`.
    let plain = record("plain.data", &[]);
    assert!(!pmc_says(&plain, &[]).expect(0).stdout.contains("Latency"));
    for wanted in
        [&["--latency"][..], &["-s", "parallelism"], &["-F", "latency,sym"], &["--parallelism", "2"]]
    {
        pmc_says(&plain, wanted).expect(1).says(&["no context switches", "pmc record --latency"]);
    }
    pmc_says(&file, &["--parallelism", "x"]).expect(2).says(&["not a list of thread counts"]);

    // Nested rows have the same columns. The heading is one that perf's own tests search for.
    let nested = |options: &[&str]| {
        kit::run(&[&["report", "--hierarchy", "--stdio", "-i", file.to_str().unwrap()], options].concat())
    };
    let three = nested(&["-s", "latency,parallelism,comm,symbol", "--parallelism", "1,2"]).expect(0);
    three.prints(&["#           Latency  Parallelism / Command / Symbol"]);
    let both = nested(&["--latency", "-s", "parallelism,sym"]).expect(0);
    let words = both.stdout.lines().find(|line| line.contains("Parallelism")).unwrap().split_whitespace();
    assert_eq!(words.take(3).collect::<Vec<_>>(), ["#", "Latency", "Overhead"], "{}", both.stdout);

    // perf 7.2 computes the same shares; older versions do not support them.
    let Some(newest) = oracle::perfs().into_iter().nth(1) else { return };
    for options in [
        &["-F", "overhead,latency,parallelism,sym"][..],
        &["-F", "overhead,latency,sym", "--parallelism", "1"],
        &["-s", "latency,sym", "-F", "overhead"],
    ] {
        let file = file.to_str().unwrap();
        let all = [&["report", "--stdio", "-t", "\t", "--no-children", "-g", "none", "-i", file], options];
        let theirs = oracle::says(&newest, &all.concat());
        let shares =
            options.concat().matches("overhead").count() + options.concat().matches("latency").count();
        let (theirs, ours) =
            (rows(&theirs, shares), rows(&pmc_says(Path::new(file), options).stdout, shares));
        assert!(!theirs.is_empty() && theirs.keys().eq(ours.keys()), "{options:?}\n{theirs:?}\n{ours:?}");
        for (words, numbers) in &theirs {
            let near = numbers.iter().zip(&ours[words]).all(|(a, b)| (a - b).abs() < 0.02);
            assert!(near, "{options:?} {words:?}: {numbers:?}, {:?}", ours[words]);
        }
    }
    // The titles of a hierarchy, except perf's columns with the costs of callees.
    for options in [
        &["--sort", "latency,comm,dso"][..],
        &["--sort", "latency,overhead,comm,sym"],
        &["--no-children", "--latency"],
        &["--no-children", "-F", "overhead,latency,comm,dso"],
    ] {
        let input = ["report", "--stdio", "--hierarchy", "-g", "none", "-i", file.to_str().unwrap()];
        let all = [&input[..], options].concat();
        let titles = |text: &str| -> Option<String> {
            let line = text.lines().find(|line| line.contains("Command"))?;
            Some(line.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let (theirs, ours) = (titles(&oracle::says(&newest, &all)), titles(&kit::run(&all).expect(0).stdout));
        assert!(theirs.is_some() && theirs == ours, "{options:?}: {theirs:?} {ours:?}");
    }
}
