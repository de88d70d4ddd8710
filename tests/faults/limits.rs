//! Low limits and closed streams: pmc fails with a message, and keeps what it has written.

use crate::cases::{Scene, Verdict};
use crate::kit;

/// Runs these commands in a shell with this script, and checks the results.
fn check(scene: &Scene, names: &[&str], scripts: &[&str], may_be_silent: bool) {
    let mut found = Vec::new();
    for case in scene.cases(|name| names.contains(&name)) {
        for script in scripts {
            let (verdict, run) = scene.try_in_shell(&case, script);
            match verdict {
                Verdict::Fault(what) if !(may_be_silent && what.contains("without a message")) => {
                    found.push(format!(
                        "{} with {script}: {what}: {:?} {}",
                        case.name, run.status, run.stderr
                    ));
                }
                _ => {}
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

const WRITING: [&str; 8] =
    ["record", "record-zstd", "record-dwarf", "stat-record", "inject", "export-html", "convert", "profile"];

#[test]
fn output_that_does_not_fit_is_reported() {
    let Some(scene) = Scene::new() else { return };
    if !kit::need_program("prlimit") {
        return;
    }
    let sizes = [1, 104, 300, 1000, 2048, 4096, 5000, 8192, 12000, 20000, 65536];
    let scripts = sizes.map(|size| format!("exec prlimit --fsize={size} \"$@\""));
    check(&scene, &WRITING, &scripts.each_ref().map(String::as_str), false);
}

#[test]
fn low_limits_are_reported() {
    let Some(scene) = Scene::new() else { return };
    if !kit::need_program("prlimit") {
        return;
    }
    let scripts = [
        "exec prlimit --nofile=16:16 \"$@\"",
        "exec prlimit --nofile=8:8 \"$@\"",
        "exec prlimit --memlock=0:0 \"$@\"",
        "exec prlimit --as=400000000 \"$@\"",
        "exec prlimit --as=800000000 \"$@\"",
        "exec prlimit --data=20000000 \"$@\"",
        "exec prlimit --stack=200000 \"$@\"",
    ];
    let names = ["stat", "record", "record-wall", "record-dwarf", "top", "report", "script-json", "annotate"];
    check(&scene, &names, &scripts, false);
}

#[test]
fn closed_streams_do_no_harm() {
    let Some(scene) = Scene::new() else { return };
    let scripts = [
        "exec \"$@\" <&-",
        "exec \"$@\" 2>&-",
        "exec \"$@\" 2>/dev/full",
        "exec \"$@\" <&- >&- 2>&-",
        "exec \"$@\" >&-",
        "exec \"$@\" >/dev/full",
    ];
    let names =
        ["stat-table", "record", "record-pipe", "record-wall", "profile", "report", "export-html", "inject"];
    check(&scene, &names, &scripts, true);
}
