//! `pmc diff` on recordings with known differences and on equal recordings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use crate::kit;

use crate::kit::lab;

use std::path::{Path, PathBuf};

use lab::Lab;
use serde_json::Value;

/// Three functions, or four with `FOURTH`. The macros set the rounds of each, and so its share of `MS`, the CPU
/// time in milliseconds.
const SHARES: &str = r#"
__attribute__((noinline)) void first(long n) { sink += chain(sink, FIRST * n / 100); }
__attribute__((noinline)) void second(long n) { sink += chain(sink, SECOND * n / 100); sink++; }
__attribute__((noinline)) void third(long n) { sink += chain(sink, THIRD * n / 100); sink--; }
#ifdef FOURTH
__attribute__((noinline)) void fourth(long n) { sink += chain(sink, FOURTH * n / 100); sink ^= 1; }
#endif
__attribute__((noinline)) void work(long n) {
    first(n); sink++; second(n); sink++; third(n); sink++;
#ifdef FOURTH
    fourth(n); sink++;
#endif
}
int main(void) { for_cpu_ms(MS) for (int i = 0; i < 10; i++) { work(uneven()); sink++; } return 0; }
"#;

/// Without optimization every function has a frame pointer, even a leaf.
const FLAGS: [&str; 2] = ["-O0", "-g"];
/// User code only: the kernel's share of the work changes from run to run.
const RECORD: [&str; 5] = ["-e", "cpu-clock:u", "-F", "3989", "-g"];

fn program(lab: &Lab, name: &str, rounds: &[&str]) -> PathBuf {
    std::fs::create_dir_all(lab.path(name)).unwrap();
    lab.build(&format!("{name}/prog"), &[lab::CHAIN, SHARES].concat(), &[&FLAGS[..], rounds].concat())
}

/// Long enough that a short slowdown of the machine does not matter.
const OLD: [&str; 4] = ["-DFIRST=5003", "-DSECOND=3001", "-DTHIRD=2003", "-DMS=1000"];
const NEW: [&str; 5] = ["-DFIRST=3001", "-DSECOND=3001", "-DTHIRD=2003", "-DFOURTH=2003", "-DMS=1500"];

fn diff(files: &[&Path], options: &[&str]) -> kit::Ran {
    let mut args = vec!["diff", "--no-cache"];
    args.extend(options);
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    kit::run(&args)
}

fn json(files: &[&Path], options: &[&str]) -> Value {
    let ran = diff(files, &[&["--json"], options].concat()).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["events"][0]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["sym"] == name).unwrap_or_else(|| panic!("no row for {name}: {rows:?}"))
}

/// Rows that `diff` reports as different.
fn claimed(document: &Value) -> Vec<&Value> {
    let rows = document["events"][0]["rows"].as_array().unwrap();
    let is_claim = |row: &&Value| {
        let verdict = row["changes"][0]["verdict"].as_str().expect("a verdict");
        !["within noise", "too few samples"].contains(&verdict)
    };
    rows.iter().filter(is_claim).collect()
}

#[test]
fn known_changes_are_reported_with_size() {
    let Some(lab) = Lab::new() else { return };
    let (old, new) = (program(&lab, "old", &OLD), program(&lab, "new", &NEW));
    let (old, new) = (lab.record("old.data", &RECORD, &old), lab.record("new.data", &RECORD, &new));
    let document = json(&[&old, &new], &[]);
    assert_eq!((&document["version"], &document["compute"]), (&1.into(), &"delta-abs".into()));
    assert_eq!(document["files"][1]["path"], new.to_str().unwrap());
    // Shares of 5003 : 3001 : 2003 (sum 10007) became 3001 : 3001 : 2003 : 2003 (sum 10008).
    for (name, verdict, delta) in [("first", "less", -20.0), ("fourth", "new", 20.0)] {
        let change = &row(&document, name)["changes"][0];
        assert_eq!(change["verdict"], verdict, "{change}");
        let (got, error) = (change["delta"].as_f64().unwrap(), change["error"].as_f64().unwrap());
        assert!((got - delta).abs() < 2.5 * error + 1.5, "{name}: {got} ±{error}");
        let (low, high) = (change["low"].as_f64().unwrap(), change["high"].as_f64().unwrap());
        assert!(low < got && got < high && (low > 0.0) == (delta > 0.0), "{change}");
        assert!(
            change["p_adjusted"].as_f64().unwrap() < 1e-4
                && change["p"].as_f64() <= change["p_adjusted"].as_f64()
        );
    }
    // The totals differ and are normalized, so functions with an unchanged share show no change.
    for name in ["second", "third"] {
        let delta = row(&document, name)["changes"][0]["delta"].as_f64().unwrap();
        let error = row(&document, name)["changes"][0]["error"].as_f64().unwrap();
        assert!(delta.abs() < 2.5 * error + 1.5, "{name}: {delta} ±{error}");
    }
    assert_eq!(
        row(&document, "first")["costs"][1]["percent"].as_f64().map(|p| (20.0..40.0).contains(&p)),
        Some(true)
    );
    assert!(row(&document, "fourth")["costs"][0]["samples"] == 0);

    let text = diff(&[&old, &new], &[]).expect(0);
    let text = text.prints(&[
        "Base",
        "Time",
        " ms ±",
        "[.] first",
        "new",
        "±",
        "rows differ by more than sampling noise",
        "Times are compared",
        "Trust: ",
    ]);
    assert!(!text.stdout.contains('\u{1b}'));
    let shares = diff(&[&old, &new], &["-c", "delta"]).expect(0);
    shares.prints(&["Delta", "recording's total", "less", "Trust: "]);
    let base_only = diff(&[&old, &new], &["-b"]).expect(0);
    assert!(!base_only.stdout.contains("[.] fourth") && base_only.stdout.contains("[.] first"));
    let only = diff(&[&old, &new], &["-S", "first", "-p", "-F", "-c", "delta-abs"])
        .expect(0)
        .prints(&["Base period", "* 100 /"]);
    assert!(!only.stdout.contains("[.] second"));
    let csv = diff(&[&old, &new], &["--csv", "-s", "sym"]).expect(0);
    assert!(
        csv.stdout.starts_with("Event,Baseline,New,Delta,Low,High,p,Verdict,Symbol\ncpu-clock:u,"),
        "{}",
        csv.stdout
    );
    let fields = diff(&[&old, &new], &["-t", ";", "--percent-limit", "10"]).expect(0);
    assert!(fields.stdout.lines().skip(1).all(|line| line.split(';').count() == 10), "{}", fields.stdout);

    // The cost of `first` went from 5003 · 1000 to 3001 · 1500; the other functions cost half as much again.
    let ratio = json(&[&old, &new], &["-c", "ratio"]);
    let computed = |name: &str| row(&ratio, name)["changes"][0]["computed"]["value"].as_f64().unwrap();
    // The logarithm of a quotient of counts has the variance Σ 1/n. It deviates by five standard deviations
    // once in 1.7 million times.
    let variance = |name: &str| {
        let samples = |file: usize| row(&ratio, name)["costs"][file]["samples"].as_f64().unwrap();
        1.0 / samples(0) + 1.0 / samples(1)
    };
    for (other, expected) in [("first", 5003.0 / 3001.0), ("third", 1.0)] {
        let quotient = computed("second") / computed(other);
        let deviation = (variance("second") + variance(other)).sqrt();
        let is_near = (quotient / expected).ln().abs() < 5.0 * deviation;
        assert!(is_near && deviation < 0.1, "second to {other}: {quotient} for {expected} ±{deviation}");
    }
    let cost = |name: &str, file: usize| row(&ratio, name)["costs"][file]["period"].as_f64().unwrap();
    let (before, now) = (cost("second", 0), cost("second", 1));
    assert!((computed("second") - now / before).abs() < 1e-6, "{before} {now}");
    let weighted = json(&[&old, &new], &["-c", "wdiff:3,2"]);
    let value = row(&weighted, "second")["changes"][0]["computed"]["value"].as_f64().unwrap();
    assert!((value - (2.0 * now - 3.0 * before)).abs() < 1e-6 * before, "{value}: {before} {now}");

    // In the tree, `work` lost nothing but `first` below it did. (A sample in a function's first
    // instruction, before its frame is set up, misses the caller, so `first` also has a small node below
    // `main`.)
    let tree = json(&[&old, &new], &["--tree"]);
    let nodes = tree["events"][0]["tree"].as_array().unwrap();
    let caller = |node: &Value| node["parent"].as_u64().map(|at| &nodes[at as usize]["symbol"]);
    let verdict = |caller_name: &str, name: &str| {
        let mut of_name = nodes.iter().filter(|node| node["symbol"] == name);
        let node = of_name.find(|node| caller(node).is_some_and(|symbol| symbol == caller_name));
        node.unwrap_or_else(|| panic!("{name} in {nodes:?}"))["changes"][0]["verdict"].clone()
    };
    assert_eq!(verdict("main", "work"), "within noise");
    assert_eq!(verdict("work", "first"), "less");
    assert_eq!(verdict("work", "fourth"), "new");
    assert!(
        nodes
            .iter()
            .enumerate()
            .all(|(at, node)| node["parent"].as_u64().is_none_or(|parent| (parent as usize) < at))
    );
    let shares = ["--tree", "-c", "delta-abs"];
    diff(&[&old, &new], &shares).expect(0).prints(&["Call tree", "work  (within noise)", "fourth"]);

    let lines = json(&[&old, &new], &["-s", "srcline"]);
    let rows = lines["events"][0]["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["srcline"].as_str().is_some_and(|line| line.contains("prog.c:"))),
        "{rows:?}"
    );

    // Several recordings, each compared with the first.
    let three = json(&[&old, &new, &old], &["-o", "2"]);
    let first = row(&three, "first");
    assert_eq!(first["changes"][0]["verdict"], "less");
    assert_eq!(
        (&first["changes"][1]["verdict"], &first["changes"][1]["delta"]),
        (&"within noise".into(), &0.0.into())
    );
    diff(&[&old, &new, &old], &[]).expect(0).prints(&["[1] time", "[2] time", "[1]: ", "[2]: 0 rows differ"]);
}

#[test]
fn identical_programs_show_no_difference() {
    let Some(lab) = Lab::new() else { return };
    let program = program(&lab, "same", &OLD);
    let base = lab.record("0.data", &RECORD, &program);
    let same = json(&[&base, &base], &[]);
    assert!(claimed(&same).is_empty());
    assert!(!same["events"][0]["rows"].as_array().unwrap().is_empty());
    // One pair in twenty may differ by chance, and other load disturbs the machine. Five pairs in a row do
    // not differ by chance.
    let again = |number: usize| {
        let file = lab.record(&format!("{number}.data"), &RECORD, &program);
        let document = json(&[&base, &file], &[]);
        claimed(&document).is_empty()
    };
    assert!((1..6).any(again), "the same program differs from itself every time");
    diff(&[&base, &base], &["--tree"]).expect(0).prints(&[
        "0 rows differ",
        "within noise",
        "more than noise\n#   none",
    ]);
}

#[test]
fn renamed_programs_are_compared_by_function() {
    let Some(lab) = Lab::new() else { return };
    let old = program(&lab, "old", &OLD);
    let new = lab.path("renamed");
    std::fs::copy(&old, &new).unwrap();
    let (old, new) = (lab.record("old.data", &RECORD, &old), lab.record("new.data", &RECORD, &new));
    let apart = diff(&[&old, &new], &[]).expect(0).prints(&["-s sym compares them by function name"]);
    assert!(apart.stdout.contains("gone") && apart.stdout.contains("new"));
    let by_name = json(&[&old, &new], &["-s", "sym"]);
    assert!(
        row(&by_name, "first")["costs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|cost| cost["samples"].as_u64() > Some(100))
    );
    assert!(by_name["notes"].as_array().unwrap().is_empty());
}

#[test]
fn incomparable_recordings_are_explained() {
    let Some(lab) = Lab::new() else { return };
    let program = program(&lab, "prog", &["-DFIRST=500", "-DSECOND=300", "-DTHIRD=200", "-DMS=100"]);
    let clock = lab.record("clock.data", &["-e", "cpu-clock"], &program);
    let task = lab.record("task.data", &["-e", "task-clock"], &program);
    let both = lab.record("both.data", &["-e", "cpu-clock,task-clock"], &program);
    let faults = lab.record("faults.data", &["-e", "page-faults"], &program);
    diff(&[&clock, &faults], &[]).expect(1).says(&[
        "the recordings have no event in common",
        "cpu-clock",
        "page-faults",
        "matched by name",
    ]);
    // Both clocks measure CPU time if they sample the same modes.
    let compared = diff(&[&clock, &task], &["-s", "dso"]).expect(0);
    let compared = compared.prints(&["task-clock is compared with cpu-clock; both are CPU time", "prog"]);
    // In a pipe only rows come without `#`, as from perf.
    let rows: Vec<&str> = compared.stdout.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(
        rows.len() >= 2
            && rows.iter().all(|row| ["noise", "ore", "too few"].iter().any(|verdict| row.contains(verdict))),
        "{rows:?}"
    );
    assert!(compared.stdout.starts_with("# Event 'cpu-clock"), "{}", compared.stdout);
    let user = lab.record("user.data", &["-e", "task-clock:u"], &program);
    diff(&[&clock, &user], &[]).expect(1).says(&["no event in common"]);
    diff(&[&clock, &both], &[]).expect(0).prints(&["task-clock has no counterpart"]);
    diff(&[&clock, &clock], &["--tree"]).expect(0).prints(&["no tree: not all recordings have call chains"]);
    diff(&[&clock, &lab.path("missing")], &[]).expect(1).says(&["ENOENT"]);
    for bad in [
        &["-c", "better"][..],
        &["-c", "wdiff"],
        &["-c", "cycles"],
        &["-o", "2"],
        &["-s", "symbl"],
        &["--percentage", "some"],
    ] {
        let said = diff(&[&clock, &clock], bad).expect(2).stderr;
        assert!(!said.is_empty(), "{bad:?}");
    }
    // Without file names, `diff` reads `perf.data.old` and `perf.data` in the current folder.
    let alone = |folder: &Path| -> kit::Ran {
        kit::pmc().args(["diff", "--no-cache"]).current_dir(folder).output().unwrap().into()
    };
    let folder = lab.path("prog");
    alone(&folder).expect(1).says(&["perf.data.old", "pmc diff OLD NEW"]);
    std::fs::copy(&clock, folder.join("perf.data.old")).unwrap();
    std::fs::copy(&clock, folder.join("perf.data")).unwrap();
    alone(&folder).expect(0).prints(&["perf.data.old", "0 rows differ"]);
}

/// Generated code. One of the names contains an address that differs from run to run.
#[cfg(target_arch = "x86_64")]
const SHOP: &str = r#"
int main(void) {
    char lambda[64];
    sprintf(lambda, "Shop$$Lambda/0x%016lx.apply", (long)getpid() << 20);
    unsigned char *p = generated("Shop.price", lambda);
    for_cpu_ms(300) { ((void (*)(int))p)(loops(300000)); ((void (*)(int))(p + 256))(loops(150000)); }
    return 0;
}
"#;

#[cfg(target_arch = "x86_64")]
#[test]
fn generated_code_is_the_same_in_all_processes() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("generated", &[lab::GENERATED, SHOP].concat(), &FLAGS);
    let files = ["a.data", "b.data"].map(|file| lab.record(file, &RECORD, &program));
    let document = json(&[&files[0], &files[1]], &[]);
    for name in ["Shop.price", "Shop$$Lambda/0x….apply"] {
        let row = row(&document, name);
        assert_eq!(row["dso"], "[JIT]", "{row}");
        assert!(row["costs"].as_array().unwrap().iter().all(|cost| cost["samples"] != 0), "{row}");
    }
    assert_eq!(claimed(&document), [] as [&Value; 0]);
    // A single recording names the process.
    let report = kit::run(&["report", "--stdio", "-i", files[0].to_str().unwrap()]).expect(0);
    report.prints(&["[JIT] tid"]);
}
