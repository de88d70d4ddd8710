//! `pmc diff OLD… --vs NEW…`: groups of recordings, the gate of `--fail-if`, and the CI examples in `docs/ci`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::PathBuf;

use serde_json::Value;

use crate::kit::{self, lab, lab::Lab};

/// 200 turns of `CHANGED` and of 200 microseconds of CPU time.
const SOURCE: &str = r#"
__attribute__((noinline)) void changed(long n) { for_cpu_us(CHANGED * n / 100) sink += chain(sink, 2000); }
__attribute__((noinline)) void unchanged(long n) { for_cpu_us(2 * n) sink += chain(sink, 2000); sink++; }
int main(void) { for (int i = 0; i < 200; i++) { long n = uneven(); changed(n); unchanged(n); } return 0; }
"#;

/// Other load on the machine cannot hide the factor of `changed`, which is 4.
pub(super) const SLOWER: &str = "worse > 50% and p < 0.01";

/// Builds two versions of a program.
pub(super) fn programs(lab: &Lab) -> [PathBuf; 2] {
    ["old", "new"].map(|version| {
        std::fs::create_dir_all(lab.path(version)).unwrap();
        let changed = if version == "old" { "-DCHANGED=100" } else { "-DCHANGED=400" };
        lab.build(&format!("{version}/prog"), &[lab::CHAIN, SOURCE].concat(), &["-O1", "-g", changed])
    })
}

/// Records both versions of a program `runs` times, alternately.
fn recordings(lab: &Lab, runs: usize) -> [Vec<PathBuf>; 2] {
    let programs = programs(lab);
    let mut files = [Vec::new(), Vec::new()];
    for run in 0..runs {
        for (program, files) in programs.iter().zip(&mut files) {
            let file = program.with_file_name(format!("{run}.data"));
            let args = ["record", "-q", "-e", "cpu-clock:u", "-F", "9973", "-o"];
            let record = kit::pmc().args(args).args([&file, program]).output().unwrap();
            kit::Ran::from(record).expect(0);
            files.push(file);
        }
    }
    files
}

fn diff(old: &[PathBuf], new: &[PathBuf], options: &[&str]) -> kit::Ran {
    let mut command = kit::pmc();
    command.arg("diff").args(options).arg("--no-cache").args(old).arg("--vs").args(new);
    command.output().unwrap().into()
}

#[test]
fn slower_function_is_found_between_groups() {
    let Some(lab) = Lab::new() else { return };
    let [old, new] = recordings(&lab, 4);
    let ran = diff(&old, &new, &["--fail-if", SLOWER]).expect(1);
    ran.prints(&[
        " The new version is slower: changed in prog +",
        "base  4 recordings, ",
        "[.] changed",
        " more ",
        " regression: ",
        "\n   changed in prog  +",
    ]);
    let document: Value =
        serde_json::from_str(&diff(&old, &new, &["--fail-if", SLOWER, "--json"]).expect(1).stdout).unwrap();
    let row = |name: &str| {
        let rows = document["events"][0]["rows"].as_array().unwrap();
        rows.iter().find(|row| row["sym"] == name).unwrap_or_else(|| panic!("{rows:?}"))
    };
    let change = &row("changed")["group_change"];
    assert_eq!(change["verdict"], "more");
    assert!((150.0..600.0).contains(&change["change_percent"].as_f64().unwrap()), "{change}");
    assert!(change["p_adjusted"].as_f64().unwrap() < 0.01);
    assert_eq!(document["gate"]["verdict"], "regression");
    let fails: Vec<&Value> = document["gate"]["measures"].as_array().unwrap().iter().collect();
    assert!(fails.iter().any(|row| row["name"] == "changed in prog" && row["fails"] == true), "{fails:?}");
    // The groups in the other order: nothing became worse.
    diff(&new, &old, &["--fail-if", SLOWER]).expect(0).prints(&[" pass: ", " less ", "[.] changed"]);
    diff(&new, &old, &["--fail-if", "better > 20% and p < 0.01"]).expect(1);
    // Shares: half of the share of `unchanged` is gone, without any change of its cost.
    let shares = diff(&old, &new, &["-c", "delta", "--json"]).expect(0).stdout;
    let shares: Value = serde_json::from_str(&shares).unwrap();
    assert_eq!(shares["compute"], "share");
    let rows = shares["events"][0]["rows"].as_array().unwrap();
    let unchanged = rows.iter().find(|row| row["sym"] == "unchanged").unwrap();
    assert!(unchanged["group_change"]["change_percent"].as_f64().unwrap() < -25.0, "{unchanged}");

    let github = kit::pmc()
        .args(["diff", "--no-cache", "--fail-if", SLOWER, "--format", "github"])
        .args(&old)
        .arg("--vs")
        .args(&new)
        .env("GITHUB_WORKSPACE", lab.path("new"))
        .env("GITHUB_STEP_SUMMARY", lab.path("summary.md"))
        .output()
        .unwrap();
    let github = kit::Ran::from(github).expect(1).prints(&["\n::error file=prog.c,line="]);
    assert!(github.stdout.contains(",title=pmc%3A regression::changed in prog: +"), "{}", github.stdout);
    let page = std::fs::read_to_string(lab.path("summary.md")).unwrap();
    assert!(page.contains("| **fails** | changed in prog | +"), "{page}");
    let junit = diff(&old, &new, &["--fail-if", SLOWER, "--format", "junit"]).expect(1).stdout;
    assert!(junit.starts_with("<?xml") && junit.contains("name=\"changed in prog\" file=\""), "{junit}");
}

#[test]
fn unusable_recordings_exit_with_status_2() {
    let Some(lab) = Lab::new() else { return };
    let [old, new] = recordings(&lab, 3);
    let few = diff(&old[..1], &new[..1], &["--fail-if", SLOWER]).expect(2);
    few.prints(&["[.] changed", " unusable: ", "too few recordings: 1 old, 1 new; the minimum is 3 of each"]);
    // A recording that cannot be read is no regression.
    diff(&old[..1], &["/no-such-file".into()], &["--fail-if", SLOWER]).expect(2).says(&["/no-such-file"]);
    // Without --vs, two recordings are one old and one new.
    let two = kit::pmc().args(["diff", "--no-cache", "--fail-if", SLOWER]).args([&old[0], &new[0]]).output();
    kit::Ran::from(two.unwrap()).expect(2).prints(&["too few recordings: 1 old, 1 new"]);

    // The same recording with another host name.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let mut bytes = std::fs::read(&new[2]).unwrap();
    let at = bytes.windows(host.len()).rposition(|window| window == host.as_bytes()).unwrap();
    bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
    std::fs::write(&new[2], bytes).unwrap();
    let other = diff(&old, &new, &["--fail-if", SLOWER]).expect(2);
    let elsewhere = format!("{} is from another machine: its host name is ", new[2].display());
    other.prints(&["[.] changed", &elsewhere, "record both versions in the same job"]);

    // A damaged recording: its samples are missing, so it may not pass.
    let bytes = std::fs::read(&new[1]).unwrap();
    std::fs::write(&new[1], &bytes[..bytes.len() / 2]).unwrap();
    let damaged = diff(&old, &new[..2], &["--fail-if", SLOWER]).expect(2);
    damaged.prints(&[" unusable: "]);
}

#[test]
fn ambiguous_groups_are_rejected() {
    for (args, words) in [
        (
            &["a", "b", "c", "--fail-if", "worse > 3%"][..],
            "--fail-if with more than two recordings requires --vs",
        ),
        (&["--vs", "a"], "--vs requires recordings of the base"),
        (&["a", "b", "--vs", "b"], "b is listed twice"),
        (&["a", "--vs", "b", "-c", "wdiff:1,2"], "wdiff cannot compare groups"),
        (&["a", "--vs", "b", "--fail-if", "worse > 3"], "^ expected `%`"),
        (&["a", "--vs", "b", "--format", "junit"], "--fail-if"),
        (&["a", "--vs", "b", "--tree"], "--tree"),
    ] {
        kit::run(&[&["diff"], args].concat()).expect(2).says(&[words]);
    }
}
