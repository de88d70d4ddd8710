//! perf's settings: `pmc config`, and their effect on other commands.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::Path;
use std::process::Command;

use crate::kit::{self, Ran};

/// Runs pmc with this home folder, and no other settings.
fn pmc(home: &Path, words: &[&str]) -> Ran {
    let mut command = kit::pmc();
    command.env_remove("PERF_CONFIG").env("HOME", home).current_dir(home).args(words);
    command.output().unwrap().into()
}

#[test]
fn settings_are_stored_where_perf_stores_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = home.join(".perfconfig");
    pmc(home, &["config", "--user", "-l"]).expect(0);
    pmc(home, &["config", "report.children"]).expect(1).says(&["is not set"]);
    pmc(home, &["config", "report.children=false", "Call-Graph.order=callee"]).expect(0);
    pmc(home, &["config", "colors.top=red, default"]).expect(0).says(&["colors.top", "only perf uses"]);
    let list = "report.children=false\ncall-graph.order=callee\ncolors.top=red, default\n";
    assert_eq!(pmc(home, &["config", "--user", "-l"]).expect(0).stdout, list);
    assert_eq!(pmc(home, &["config", "report.children"]).expect(0).stdout, "report.children=false\n");
    if kit::need_program("perf") {
        let said = Command::new("perf").args(["config", "--user", "-l"]).env("HOME", home).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), list);
    }
    for wrong in ["foo", "foo=1", "a.b=", ".=1", "a b.c=1", "a.=1"] {
        pmc(home, &["config", wrong]).expect(2).says(&["try:"]);
    }
    std::fs::write(&file, "[report]\nno setting\npercent-limit = much\n").unwrap();
    pmc(home, &["list", "sw"]).expect(0).says(&[".perfconfig, line 2"]);
    pmc(home, &["report", "-i", "x"]).expect(2).says(&[
        "report.percent-limit=much",
        "percentage",
        ".perfconfig",
    ]);
    let mut without = kit::pmc();
    let ran: Ran = without.env("HOME", home).args(["list", "sw"]).output().unwrap().into();
    assert!(!ran.expect(0).stderr.contains("line 2"));
}

#[test]
fn settings_apply_to_every_command() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let set = |key: &str| drop(pmc(home, &["config", key]).expect(0));
    // Counts, however they were obtained.
    set("stat.big-num=false");
    let file = home.join("counts.data");
    let file = file.to_str().unwrap();
    let counted = pmc(home, &["stat", "record", "-o", file, "-e", "duration_time", "--", "true"]).expect(0);
    let shown = pmc(home, &["stat", "report", file]).expect(0);
    for text in [&counted.stderr, &shown.stderr] {
        let line = text.lines().find(|line| line.contains("duration_time")).unwrap();
        assert!(!line.split("duration_time").next().unwrap().contains(','), "{line}");
    }
    // An empty or relative PERF_BUILDID_DIR is ignored, so the settings' folder applies.
    if !kit::need_root() {
        return;
    }
    set("buildid.dir=~/kept");
    let record = ["record", "-e", "page-faults", "-c", "1", "-o", file, "--", "true"];
    let profile = ["profile", "-e", "page-faults", "-o", file, "--stdio", "--", "true"];
    for (words, folder) in [(&record[..], ""), (&record, "relative"), (&profile, "")] {
        let mut command = kit::pmc();
        command.env_remove("PERF_CONFIG").env("HOME", home).env("PERF_BUILDID_DIR", folder);
        Ran::from(command.current_dir(home).args(words).output().unwrap()).expect(0);
        let kept = home.join("kept");
        assert!(kept.join(".build-id").is_dir(), "PERF_BUILDID_DIR={folder:?} {words:?}");
        std::fs::remove_dir_all(kept).unwrap();
    }
    // `profile` is a recording, too.
    set("record.build-id=skip");
    pmc(home, &profile).expect(0);
    assert!(!home.join("kept").exists());
    set("report.percent-limit=much");
    pmc(home, &profile).expect(2).says(&["report.percent-limit=much"]);
}

#[test]
fn settings_act_like_typed_options() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let fp = kit::data("perfdata/fp.data");
    let report = |words: &[&str]| {
        let words = [&["report", "-i", fp.to_str().unwrap(), "--stdio", "--no-cache"], words].concat();
        pmc(home, &words).expect(0).stdout
    };
    let set = |key: &str| drop(pmc(home, &["config", key]).expect(0));
    let typed = report(&["-s", "dso", "--percent-limit", "7", "-g", "callee,flat", "--no-children"]);
    assert_ne!(typed, report(&[]));
    set("report.sort_order=dso");
    set("report.percent-limit=7");
    set("report.children=false");
    set("call-graph.order=callee");
    set("call-graph.print-type=flat");
    assert_eq!(report(&[]), typed);
    // A command-line option overrides the setting.
    assert_ne!(report(&["--children"]), typed);
    assert_ne!(report(&["-s", "sym"]), typed);
    let refused = pmc(home, &["config", "call-graph.print-type=round"]).expect(0);
    assert_eq!(refused.stderr, "");
    pmc(home, &["report", "-i", "x"]).expect(2).says(&["call-graph.print-type=round", "fractal"]);
    pmc(home, &["config", "diff.compute=odd"]).expect(0);
    pmc(home, &["diff", "a", "b"]).expect(2).says(&["odd"]);
    pmc(home, &["config", "record.build-id=sometimes"]).expect(0);
    pmc(home, &["record", "--", "true"]).expect(2).says(&["record.build-id=sometimes", "no-cache"]);
}
