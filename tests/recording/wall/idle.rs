//! Idle threads: reports fold waits for work, and show every wait for a lock.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::{C, Lab, measured};
use crate::kit;

const IDLE: &str = include_str!("idle.c");
const LOCK: &str = include_str!("idle.py");

/// Nanoseconds by thread name, wait site and function.
type Sums = HashMap<(String, String, String), u64>;

/// Returns the sums of a report with these options.
#[track_caller]
fn sums(file: &Path, options: &[&str]) -> Sums {
    let file = file.to_str().expect("UTF-8");
    let words =
        ["report", "--json", "-g", "none", "--no-children", "-s", "comm,wait_site,wait_func", "-i", file];
    let report = kit::run(&[&words[..], options].concat()).expect(0);
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let events = report["events"].as_array().expect("events");
    let rows = events.iter().flat_map(|event| event["rows"].as_array().expect("rows"));
    let mut sums = Sums::new();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let period = row["self"]["period"].as_u64().expect("a period");
        *sums.entry((text("comm"), text("wait_site"), text("wait_func"))).or_default() += period;
    }
    sums
}

/// Returns the time that threads of this name wait at a site: in the report, and with idle threads.
#[track_caller]
fn shown_and_all(file: &Path, comm: &str, site: &str) -> (u64, u64) {
    let [shown, all] = [&[][..], &["--idle"]].map(|options| {
        let sums = sums(file, options);
        let here = sums.iter().filter(|((name, at, _), _)| name == comm && at == site);
        here.map(|(_, period)| period).sum()
    });
    (shown, all)
}

/// Checks that a report shows the waits at this site in full.
#[track_caller]
fn check_shown(file: &Path, printed: &str, comm: &str, site: &str) {
    let (shown, all) = shown_and_all(file, comm, site);
    let threads = measured(printed);
    assert_eq!(threads.len(), 3, "{printed}");
    // How much of the measured time is a wait for the lock, and not for a CPU, depends on the machine.
    assert!(shown == all && all > 0, "{site}: {shown} of {all}, measured {threads:?}");
}

/// Builds the program; returns `None` if this machine cannot run the tests.
#[track_caller]
fn program(lab: &Lab) -> Option<String> {
    let program = lab.build(C, IDLE)?;
    kit::need_kernel_mode().then(|| program.to_str().expect("UTF-8").to_owned())
}

#[test]
fn waits_for_locks_are_shown_in_full() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    for lock in ["mutex", "semaphore"] {
        let (file, ran) = lab.record(&["--wall", "-m", "8M"], &[&program, lock]);
        check_shown(&file, &ran.stdout, "waiter", lock);
        // The row names the program's function, and the main thread only waits for measured threads.
        let sums = sums(&file, &[]);
        let of_waiters = sums.iter().filter(|((name, at, _), _)| name == "waiter" && at == lock);
        let longest = of_waiters.max_by_key(|(_, period)| **period).expect("a wait");
        assert_eq!(longest.0.2, "lock", "{sums:?}");
        assert!(!sums.keys().any(|(_, at, _)| at == "thread"), "{sums:?}");
        // With its holder.
        if kit::need_root() && kit::need_tracefs("syscalls/sys_enter_futex") {
            let output = lab.path("lock.data");
            let words =
                ["lock", "user", "--json", "-q", "-o", output.to_str().expect("UTF-8"), "--", &program, lock];
            // The program prints first.
            let printed = kit::run(&words).expect(0).stdout;
            let document = kit::schema::document("lock-user", printed.trim_start_matches(|c| c != '{'));
            // The longest wait comes first. Threads may also wait for standard output.
            let found = &document["locks"][0];
            let holder = &found["holders"][0];
            assert_eq!((&found["kind"], &holder["comm"]), (&lock.into(), &"holder".into()), "{document:#}");
            assert!(holder["percent"].as_f64().is_some_and(|percent| percent > 90.0), "{document:#}");
        }
    }
}

#[test]
fn waits_for_python_locks_are_shown_in_full() {
    if !kit::need_program("python3") || !kit::need_kernel_mode() {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("idle.py"), LOCK).expect("a script");
    let (file, ran) = lab.record(&["--wall", "-m", "8M"], &["python3", "idle.py"]);
    check_shown(&file, &ran.stdout, "python3", "mutex");
}

#[test]
fn pools_and_parents_are_folded() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    let (file, _) = lab.record(&["--wall", "-m", "8M"], &[&program, "condition", "pool"]);
    let (shown, all) = shown_and_all(&file, "worker", "condition");
    // On a busy machine, some stacks are cut, because pmc has not read the unwind tables yet.
    assert!(shown * 2 < all, "{shown} of {all}");
    let (file, _) = lab.record(&["--wall", "-m", "8M"], &["sh", "-c", "sleep 0.1; true"]);
    let (shown, all) = shown_and_all(&file, "sh", "child");
    assert!(shown == 0 && all > 0, "{shown} of {all}");
    let (shown, all) = shown_and_all(&file, "sleep", "sleep");
    assert!(shown == all && all > 0, "{shown} of {all}");
}

#[test]
fn services_of_runtimes_are_folded() {
    if !kit::need_program("java") || !kit::need_kernel_mode() {
        return;
    }
    let lab = Lab::new();
    let (file, _) = lab.record(&["--wall", "-m", "8M"], &["java", "-version"]);
    // Without symbols or unwind tables of the JVM, the wait is only known to be on a futex.
    let waits = ["condition", "futex"].map(|site| shown_and_all(&file, "VM Thread", site));
    let [shown, all] = [waits.map(|wait| wait.0), waits.map(|wait| wait.1)];
    assert!(shown == [0, 0] && all.iter().sum::<u64>() > 0, "{shown:?} of {all:?}");
}

#[test]
fn semaphores_are_locks_unless_other_threads_post_them() {
    let lab = Lab::new();
    let Some(program) = program(&lab) else { return };
    if !kit::need_root() || !kit::need_tracefs("sched/sched_waking") {
        return;
    }
    let waits = |options: &[&str], command: &[&str], comm: &str| {
        let (file, _) = lab.record(options, &[&[&program[..]], command].concat());
        shown_and_all(&file, comm, "semaphore")
    };
    // Without wakers, the pool may be a lock.
    let pool = ["semaphore", "pool"];
    let (shown, all) = waits(&["--wall", "-m", "8M"], &pool, "worker");
    assert!(shown == all && all > 0, "{shown} of {all}");
    let with_wakers = ["--wall", "--wakers", "-m", "8M"];
    let (shown, all) = waits(&with_wakers, &pool, "worker");
    assert!(shown * 2 < all, "{shown} of {all}");
    let (shown, all) = waits(&with_wakers, &["semaphore"], "waiter");
    assert!(shown == all && all > 0, "{shown} of {all}");
}
