//! NetBSD's view of the counters: their number and width, separate parts of a count, detached counting,
//! `tprof`.

use super::*;

pub(super) const BATCH: &[(&str, &str)] = &[
    ("table_of_counters", "$T info --counters"),
    (
        "children_apart",
        "$T stat -x, --children -e instructions:u sh -c 'work 10000000 & work 10000000; wait'",
    ),
    ("levels_apart", "$T stat -x, --user-kernel -e instructions work 10000000 10000"),
    ("old_pmc", "$T -c ins-retired work 10000000 10000"),
    ("old_pmc_refused", "$T -c branches work 1000"),
    (
        "detached",
        "export PMC_PERSISTENT_DIR=/tmp/held; $T start instructions:uk instructions:u && work 10000000; $T stop",
    ),
    (
        "tprof",
        "ln -s /host/pmc /tmp/tprof; /tmp/tprof monitor -e instructions:u,=1000000 -o /tmp/t.out work 100000000; /tmp/tprof analyze -CLPs /tmp/t.out",
    ),
];

/// The count of each row of `-x,`, with the row's first field.
fn parts(name: &str) -> Option<Vec<(String, f64)>> {
    let run = guest(name)?.expect(0);
    let row = |line: &str| {
        let mut fields = line.split(',');
        Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
    };
    Some(run.stderr.lines().filter_map(row).collect())
}

#[test]
fn counters_have_class_and_number() {
    let Some(run) = guest("table_of_counters") else { return };
    let run = run.expect(0);
    let row = |class: &str| {
        let line = run.stdout.lines().find(|line| line.starts_with("armv8_pmuv3") && line.contains(class));
        line.unwrap_or_else(|| panic!("{}", run.stdout))
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("general")[2], "6");
    assert_eq!(row("fixed")[2], "1");
    // arm64 reports the width only to users who may read counters in user mode.
    assert_eq!(row("general")[3], "?");
}

#[test]
fn self_and_children_counts_are_separate() {
    let Some(parts) = parts("children_apart") else { return };
    let [(own, of_shell), (children, of_work), (sum, all)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!([&**own, children, sum], ["self", "children", "sum"]);
    near(*of_work, 2.0 * LOOP, 0.15);
    assert!(of_shell * 5.0 < *of_work && (of_shell + of_work - all).abs() < 1.0, "{parts:?}");
}

#[test]
fn user_and_kernel_share_one_line() {
    let (Some(parts), Some(old)) = (parts("levels_apart"), guest("old_pmc")) else { return };
    let Some(refused) = guest("old_pmc_refused") else { return };
    refused.expect(4).says(&["branches"]);
    let [(user, in_user), (kernel, in_kernel)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!([&**user, kernel], ["user", "kernel"]);
    near(*in_user, LOOP, 0.02);
    // Ten thousand system calls.
    assert!(*in_kernel > 1e6, "{parts:?}");
    let old = old.expect(0);
    let words: Vec<&str> = old.stdout.split_whitespace().collect();
    let ["ins-retired:", "user", user, "kernel", kernel] = words[..] else { panic!("{}", old.stdout) };
    near(user.parse().expect("a count"), *in_user, 0.02);
    assert!(kernel.parse::<f64>().is_ok_and(|kernel| kernel > 1e6), "{}", old.stdout);
}

#[test]
fn unattached_counters_keep_counting() {
    let Some(run) = guest("detached") else { return };
    let run = run.expect(0);
    let total = |name: &str| {
        let line = run.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        let number =
            line.and_then(|line| line.split_whitespace().last()).map(|number| number.replace(',', ""));
        number.and_then(|number| number.parse::<f64>().ok()).unwrap_or_else(|| panic!("{}", run.stdout))
    };
    let [both, user] = [total("instructions:uk"), total("instructions:u")];
    assert!(user > LOOP && both > user, "{}", run.stdout);
}

#[test]
fn tprof_samples_every_n_events() {
    let Some(run) = guest("tprof") else { return };
    // 200 million instructions, plus other processes.
    run.expect(0).says(&["samples"]).prints(&["work"]);
}
