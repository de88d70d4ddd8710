//! Each system call of each command fails once with each error.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cases::{Scene, Verdict};
use crate::injection::Fault;

/// The errors, with their numbers on all architectures that pmc supports, and the signal that ends pmc there.
const ERRORS: [(&str, i32); 9] = [
    ("SIGKILL", 0),
    ("EINTR", 4),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EIO", 5),
    ("ENOSPC", 28),
    ("EMFILE", 24),
    ("EPERM", 1),
    ("EBUSY", 16),
];

/// Number of occurrences of each call that fail.
const OCCURRENCES: u32 = 20;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Settings: `PMC_TEST_FAULTS` is the number of runs, or `all`; `PMC_TEST_FAULTS_OF` restricts the commands,
/// and `PMC_TEST_FAULTS_CALLS` the system calls (lists with commas); `PMC_TEST_FAULTS_LOG` receives a line for
/// each run.
#[test]
fn failing_system_calls_are_survived() {
    const LANES: usize = 2;
    let Some(scene) = Scene::new() else { return };
    let [only, calls] = ["PMC_TEST_FAULTS_OF", "PMC_TEST_FAULTS_CALLS"].map(setting);
    let is_listed = |list: &Option<String>, name: &str| {
        list.as_ref().is_none_or(|list| list.split(',').any(|listed| listed == name))
    };
    let cases = scene.cases(|name| is_listed(&only, name));
    let mut runs = Vec::new();
    for case in &cases {
        for (call, made) in case.calls.iter().filter(|(call, _)| is_listed(&calls, call)) {
            for nth in 1..=(*made).min(OCCURRENCES) {
                runs.extend(
                    ERRORS.map(|error| (case, Fault { call: call.clone(), nth, in_child: false, error })),
                );
            }
        }
    }
    // The same shuffled order each time.
    let mut dice = 0x2026_1126_u64;
    for last in (1..runs.len()).rev() {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        runs.swap(last, (dice >> 33) as usize % (last + 1));
    }
    let all = runs.len();
    match setting("PMC_TEST_FAULTS").as_deref() {
        Some("all") => {}
        count => runs.truncate(count.and_then(|count| count.parse().ok()).unwrap_or(24)),
    }
    let log = setting("PMC_TEST_FAULTS_LOG").map(|path| std::fs::File::create(path).expect("a log"));
    let (next, log, found) = (AtomicUsize::new(0), Mutex::new(log), Mutex::new(Vec::new()));
    let tally = [(); 5].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((case, fault)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (verdict, run) = scene.try_fault(case, fault);
                    let (kind, what) = match &verdict {
                        Verdict::Unhit => (0, "unhit"),
                        Verdict::Whole => (1, "whole"),
                        Verdict::Reported => (2, "reported"),
                        Verdict::Runtime => (3, "runtime"),
                        Verdict::Fault(what) => (4, what.as_str()),
                    };
                    tally[kind].fetch_add(1, Ordering::Relaxed);
                    let line = format!(
                        "{}\t{fault}\t{what:?}\t{:?}\t{:?}",
                        case.name,
                        run.status.code(),
                        run.stderr
                    );
                    if kind == 4 {
                        found.lock().unwrap().push(line.clone());
                    }
                    if let Some(log) = log.lock().unwrap().as_mut() {
                        writeln!(log, "{line}").expect("the log can be written");
                    }
                }
            });
        }
    });
    let [unhit, whole, reported, runtime, faults] = tally.map(AtomicUsize::into_inner);
    println!(
        "{} of {all} faults: {unhit} not reached, {whole} survived with complete results, {reported} reported, \
         {runtime} ended by the runtime, {faults} failures",
        runs.len()
    );
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} failures:\n{}", found.len(), found.join("\n"));
}

#[test]
fn command_that_cannot_be_prepared_is_reported() {
    let Some(scene) = Scene::new() else { return };
    let mut hits = 0;
    for case in scene.cases(|name| ["stat-table", "record-pipe", "top"].contains(&name)) {
        for call in ["read", "dup2", "dup3", "execve"] {
            let fault = Fault { call: call.to_owned(), nth: 1, in_child: true, error: ("EIO", 5) };
            let (verdict, run) = scene.try_fault(&case, &fault);
            if !run.was_hit {
                continue;
            }
            hits += 1;
            assert!(matches!(verdict, Verdict::Reported), "{} {fault}: {verdict:?} {run:?}", case.name);
            // A child that gives up very early has ended before pmc measures it.
            let said = ["EIO", "ended before pmc"].iter().any(|words| run.stderr.contains(words));
            assert!(said, "{} {fault}: {run:?}", case.name);
        }
    }
    // Each command reads the gate and is executed; `record-pipe` also replaces its output.
    assert!(hits >= 7, "{hits}");
}

#[test]
fn disassembler_that_cannot_give_up_its_privileges_is_reported() {
    let Some(scene) = Scene::new() else { return };
    for case in scene.cases(|name| ["annotate", "script-code"].contains(&name)) {
        for call in ["seccomp", "capset", "close_range"] {
            let fault = Fault { call: call.to_owned(), nth: 1, in_child: true, error: ("EIO", 5) };
            let (verdict, run) = scene.try_fault(&case, &fault);
            // pmc tries again, so only the first code lacks its instructions. In the kernel it may have none
            // in any case.
            let is_said = matches!(verdict, Verdict::Reported | Verdict::Whole);
            assert!(is_said, "{} {fault}: {verdict:?} {run:?}", case.name);
            let said = "instructions are missing: the disassembler cannot be set up: cannot ";
            assert!(run.stderr.contains(said), "{} {fault}: {run:?}", case.name);
        }
    }
}
