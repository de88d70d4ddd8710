//! What `pmc export` and `pmc flamegraph` write, read by programs that we did not write.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use inferno::collapse::Collapse as _;

use crate::kit;
use crate::kit::lab::{CHAIN, Lab};

/// Two functions call a third; the thread and the program have names of their own.
const PROGRAM: &str = r#"
#include <pthread.h>
static __attribute__((noinline)) unsigned long leaf(unsigned long x, long n) { return chain(x, n); }
static __attribute__((noinline)) unsigned long twice(unsigned long x) { return leaf(x, 100 * uneven()) + 1; }
static __attribute__((noinline)) unsigned long once(unsigned long x) { return leaf(x, 50 * uneven()) + 2; }
static void *work(void *arg) { for (int i = 0; i < 3000; i++) sink = once(twice(i)); return arg; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_setname_np(thread, "a worker");
    work(0);
    return pthread_join(thread, 0);
}
"#;

/// A recording of the program, with callers.
fn recorded(lab: &Lab) -> PathBuf {
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"];
    let program = lab.build("two words", &[CHAIN, PROGRAM].concat(), &flags);
    lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program)
}

/// Exports to a file of this name.
fn export(lab: &Lab, recording: &Path, name: &str, more: &[&str]) -> String {
    let out = lab.path(name);
    let words = ["export", recording.to_str().unwrap(), "-o", out.to_str().unwrap(), "--no-cache"];
    kit::run(&[&words, more].concat()).expect(0).says(&[name, "is written"]);
    String::from_utf8(std::fs::read(out).unwrap()).unwrap_or_default()
}

fn counts(lines: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in lines.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *counts.entry(stack.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    counts
}

#[test]
fn folded_stacks_are_those_of_perf_script_and_inferno() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let script = Command::new("perf").args(["script", "-i"]).arg(&file).output().unwrap();
    let mut theirs = Vec::new();
    inferno::collapse::perf::Folder::default().collapse(&script.stdout[..], &mut theirs).unwrap();
    let ours = export(&lab, &file, "a.folded", &["--no-inline"]);
    assert_eq!(counts(&ours), counts(std::str::from_utf8(&theirs).unwrap()));
    assert!(
        ours.contains(";twice;leaf ") && ours.lines().any(|line| line.starts_with("a_worker;")),
        "{ours}"
    );
    let mut sorted: Vec<&str> = ours.lines().collect();
    sorted.dedup_by_key(|line| line.rsplit_once(' ').unwrap().0);
    assert_eq!(sorted.len(), ours.lines().count());
    // The filters are those of report.
    let worker = export(&lab, &file, "b.folded", &["--comms", "a worker", "-S", "twice"]);
    assert!(worker.lines().all(|line| line.starts_with("a_worker;") && line.contains(";twice")), "{worker}");
    assert!(!worker.is_empty());
}

#[test]
fn tables_are_those_of_report() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let report = |form| kit::run(&["report", form, "--no-cache", file.to_str().unwrap()]).expect(0).stdout;
    assert_eq!(export(&lab, &file, "a.json", &[]), report("--json"));
    assert_eq!(export(&lab, &file, "a.csv", &[]), report("--csv"));
}

#[test]
fn a_flame_graph_holds_functions_and_differences() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let svg = export(&lab, &file, "a.svg", &[]);
    assert!(svg.contains("<svg") && svg.contains("<title>twice (") && svg.ends_with("</svg>\n"), "{svg}");
    let other = export(&lab, &file, "b.svg", &["--diff", file.to_str().unwrap(), "-c", "a worker"]);
    assert!(other.contains("; +0.00%)") && !other.contains("; +1"), "{other}");
    let said = kit::run(&["export", "x.data", "--diff", "y.data", "-o", "a.folded"]).expect(2);
    said.says(&["only a flame graph", "try: pmc diff"]);
}

#[test]
fn where_it_goes() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let run = |line: &str| -> kit::Ran {
        let line = format!("pmc() {{ \"$PMC\" \"$@\"; }}; {line}");
        let folder = file.parent().unwrap();
        let pmc = kit::pmc().get_program().to_owned();
        Command::new("sh").args(["-c", &line]).current_dir(folder).env("PMC", pmc).output().unwrap().into()
    };
    // A name of its own, and the file that was there is replaced whole, by one that is its owner's alone.
    run("pmc flamegraph perf.data && pmc export perf.data --format folded").expect(0);
    assert!(lab.path("flamegraph.svg").exists() && lab.path("perf.folded").exists());
    std::fs::write(lab.path("old.svg"), "old").unwrap();
    std::os::unix::fs::symlink("old.svg", lab.path("link.svg")).unwrap();
    run("pmc export perf.data -o link.svg").expect(0);
    assert!(std::fs::read_to_string(lab.path("old.svg")).unwrap().contains("<svg"));
    assert_eq!(std::fs::metadata(lab.path("old.svg")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(lab.path("link.svg").is_symlink());
    // Nothing is left of what failed, and what was there stays.
    run("pmc export t.c -o old.svg").expect(1);
    assert!(std::fs::read_to_string(lab.path("old.svg")).unwrap().contains("<svg"));
    let names = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().ends_with(".new")));
    // A pipe in, a pipe out.
    let whole = run("pmc export perf.data -o - --format folded --no-cache").expect(0).stdout;
    let piped = run("cat perf.data | pmc export -o - --format folded --no-cache | cat").expect(0).stdout;
    assert_eq!(whole, piped);
    run("pmc record -q -e cpu-clock -g -o - -- './two words' | pmc export -o live.svg").expect(0);
    assert!(std::fs::read_to_string(lab.path("live.svg")).unwrap().contains("twice"));
    run("pmc export perf.data -o - --format folded | head -c 1").expect(0);
    // Refusals say what there is.
    run("pmc export perf.data -o x.sgv").expect(2).says(&["x.sgv", "try: one of", ".svg", ".folded"]);
    run("pmc export perf.data -o x --format sgv").expect(2).says(&["sgv", "try: one of", "svg"]);
    run("pmc export perf.data").expect(2).says(&["which format?", "--format"]);
    run("pmc export perf.data -o no/such/folder.svg").expect(1).says(&["no/such/folder.svg", "ENOENT"]);
    run("pmc export perf.data -o a.svg -e cycles").expect(2).says(&["no event \"cycles\"", "cpu-clock"]);
    run("cp perf.data perf.json; pmc export perf.json -o perf.json")
        .expect(2)
        .says(&["the recording itself"]);
}

#[test]
fn names_full_of_markup_do_nothing_in_a_picture() {
    let Some(lab) = Lab::new() else { return };
    let source =
        format!("{CHAIN}\nint main(void) {{ for (int i = 0; i < 3000; i++) sink = chain(i, 5000); }}");
    let program = lab.build("<script>alert(1)<", &source, &["-O1"]);
    let file = lab.record("]]><b>&.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program);
    let svg = export(&lab, &file, "a.svg", &[]);
    assert!(svg.contains("&lt;script&gt;alert(1)"), "{svg}");
    assert!(!svg.contains("<script>alert") && !svg.contains("<b>"), "{svg}");
}
