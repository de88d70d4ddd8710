//! Output of `pmc export` and `pmc flamegraph`, read by independent programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use inferno::collapse::Collapse as _;

use crate::kit;
use crate::kit::lab::{CHAIN, Lab, TWO_THREADS};

/// Two functions call a third. The thread and the program have different names.
const PROGRAM: &str = r#"
#include <pthread.h>
static __attribute__((noinline)) unsigned long leaf(unsigned long x, long n) { return chain(x, n); }
static __attribute__((noinline)) unsigned long twice(unsigned long x) { return leaf(x, 100 * uneven()) + 1; }
static __attribute__((noinline)) unsigned long once(unsigned long x) { return leaf(x, 50 * uneven()) + 2; }
static void *work(void *arg) { for_cpu_ms(200) sink = once(twice(sink)); return arg; }
"#;

/// A recording of the program, with call chains.
fn recorded(lab: &Lab) -> PathBuf {
    let flags = ["-O0", "-g", "-fno-omit-frame-pointer", "-pthread", "-D_GNU_SOURCE"];
    let program = lab.build("walk", &[CHAIN, PROGRAM, TWO_THREADS].concat(), &flags);
    lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program)
}

/// Exports the recording to a file with this name and returns its text.
pub(crate) fn export(lab: &Lab, recording: &Path, name: &str, more: &[&str]) -> String {
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

/// A thread that changes its name while it runs.
const RENAMED: &str = r#"
#include <sys/prctl.h>
static void spin(void) { for_cpu_ms(100) sink = chain(sink, 20000); }
int main(void) { spin(); prctl(PR_SET_NAME, "second"); spin(); prctl(PR_SET_NAME, "third"); spin(); return 0; }
"#;

#[test]
fn renamed_thread_is_one_firefox_thread() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("first", &[CHAIN, RENAMED].concat(), &["-O1"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000"], &program);
    let folded = export(&lab, &file, "a.folded", &[]);
    assert!(["first;", "second;", "third;"].iter().all(|name| folded.contains(name)), "{folded}");
    let profile: serde_json::Value =
        serde_json::from_str(&export(&lab, &file, "a.firefox.json", &[])).unwrap();
    let names = profile["threads"].as_array().unwrap().iter().map(|thread| &thread["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["third"]);
}

#[test]
fn renamed_thread_is_one_thread_of_the_page() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("chromium") {
        return;
    }
    let program = lab.build("first", &[CHAIN, RENAMED].concat(), &["-O1"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock", "-F", "2000"], &program);
    let page = export(&lab, &file, "a.html", &[]);
    let script = "const results = [...$('thread').options].map((option) => option.textContent);";
    let results = in_browser(&lab, &page, script, &[]);
    let [all, thread] = &results.as_array().unwrap()[..] else { panic!("{results}") };
    assert_eq!(all, "All threads");
    let thread = thread.as_str().unwrap();
    assert!(thread.starts_with("third (") && thread.ends_with(", earlier second, first"), "{thread}");
}

#[test]
fn folded_stacks_match_perf_script_and_inferno() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let script = Command::new("perf").args(["script", "-i"]).arg(&file).output().unwrap();
    let mut theirs = Vec::new();
    inferno::collapse::perf::Folder::default().collapse(&script.stdout[..], &mut theirs).unwrap();
    let ours = export(&lab, &file, "a.folded", &["--no-inline"]);
    // In the dynamic loader perf finds other callers: the function after the call, and unmapped addresses.
    let of_program = |lines: &str| {
        let lines = lines.lines().filter(|line| line.contains(";work;"));
        counts(&lines.collect::<Vec<_>>().join("\n"))
    };
    let theirs = String::from_utf8(theirs).unwrap();
    assert_eq!(of_program(&ours), of_program(&theirs));
    assert!(
        ours.contains(";twice;leaf ") && ours.lines().any(|line| line.starts_with("a_worker;")),
        "{ours}"
    );
    let mut sorted: Vec<&str> = ours.lines().collect();
    sorted.dedup_by_key(|line| line.rsplit_once(' ').unwrap().0);
    assert_eq!(sorted.len(), ours.lines().count());
    // The filters work as in `report`.
    let worker = export(&lab, &file, "b.folded", &["--comms", "a worker", "-S", "twice"]);
    assert!(worker.lines().all(|line| line.starts_with("a_worker;") && line.contains(";twice")), "{worker}");
    assert!(!worker.is_empty());
}

#[test]
fn exported_tables_match_report() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let report = |form| kit::run(&["report", form, "--no-cache", file.to_str().unwrap()]).expect(0).stdout;
    assert_eq!(export(&lab, &file, "a.json", &[]), report("--json"));
    assert_eq!(export(&lab, &file, "a.csv", &[]), report("--csv"));
}

/// The result must not depend on the number of threads that read the file or on their order.
#[test]
fn exports_are_deterministic() {
    let Some(lab) = Lab::new() else { return };
    // The children use three seconds of CPU time, however fast the machine is: about 60,000 samples.
    let source = r#"#include <stdlib.h>
#include <sys/times.h>
#include <unistd.h>
int main(void) {
  for (struct tms t = {0}; t.tms_cutime + t.tms_cstime < 3 * sysconf(_SC_CLK_TCK); times(&t))
    if (system("ls -lR /usr/include >/dev/null")) return 1;
  return 0;
}"#;
    let lists = lab.build("lists", source, &["-O0"]);
    // Only this program: the files of other tests change or disappear between two exports.
    let file = lab.record("lists.data", &["-e", "cpu-clock", "-F", "20000", "-g"], &lists);
    // Threads share a recording chunk by chunk.
    assert!(std::fs::metadata(&file).unwrap().len() > 3 << 20);
    for form in ["pprof", "callgrind", "html", "perfetto"] {
        let bytes = || {
            let words =
                ["export", file.to_str().unwrap(), "-o", "-", "--no-cache", "--no-inline", "--format", form];
            let run = kit::pmc().args(words).output().unwrap();
            assert!(run.status.success(), "{form}: {}", String::from_utf8_lossy(&run.stderr));
            run.stdout
        };
        let first = bytes();
        for round in 0..2 {
            assert!(bytes() == first, "{form} is another in round {round}");
        }
    }
}

#[test]
fn flame_graph_contains_functions_and_differences() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let svg = export(&lab, &file, "a.svg", &[]);
    assert!(svg.contains("<svg") && svg.contains("<title>twice (") && svg.ends_with("</svg>"), "{svg}");
    let titles = |svg: &str| -> Vec<String> {
        svg.lines().flat_map(|line| line.split("<title>").skip(1)).map(str::to_owned).collect()
    };
    let same = export(&lab, &file, "b.svg", &["--diff", file.to_str().unwrap(), "-c", "a worker"]);
    let same = titles(&same);
    assert!(
        same.iter().filter(|title| title.contains("; ")).all(|title| title.contains("; 0.00%)")),
        "{same:?}"
    );
    let source = format!("{CHAIN}\nint main(void) {{ for_cpu_ms(200) sink = chain(sink, 5000); }}");
    let fresh = lab.build("fresh", &source, &["-O0", "-fno-omit-frame-pointer"]);
    let fresh = lab.record("fresh.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &fresh);
    let grown = titles(&export(&lab, &fresh, "c.svg", &["--diff", file.to_str().unwrap()]));
    assert!(grown.iter().any(|title| title.contains("%; +")), "{grown:?}");
    let said = kit::run(&["export", "x.data", "--diff", "y.data", "-o", "a.folded"]).expect(2);
    said.says(&["only a flame graph", "try: pmc diff"]);
}

#[test]
fn export_writes_to_the_chosen_destination() {
    let Some(lab) = Lab::new() else { return };
    let file = recorded(&lab);
    let run = |line: &str| -> kit::Ran {
        let line = format!("pmc() {{ \"$PMC\" \"$@\"; }}; {line}");
        let folder = file.parent().unwrap();
        let pmc = kit::pmc().get_program().to_owned();
        Command::new("sh").args(["-c", &line]).current_dir(folder).env("PMC", pmc).output().unwrap().into()
    };
    // A default file name gets the permissions that the umask leaves. An existing file is replaced as a
    // whole and keeps its permissions.
    let mode = |name: &str| std::fs::metadata(lab.path(name)).unwrap().permissions().mode() & 0o777;
    run("umask 027; pmc flamegraph perf.data && pmc export perf.data --format folded").expect(0);
    assert_eq!((mode("flamegraph.svg"), mode("perf.folded")), (0o640, 0o640));
    std::fs::write(lab.path("old.svg"), "old").unwrap();
    std::fs::set_permissions(lab.path("old.svg"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("old.svg", lab.path("link.svg")).unwrap();
    run("pmc export perf.data -o link.svg").expect(0);
    assert!(std::fs::read_to_string(lab.path("old.svg")).unwrap().contains("<svg"));
    assert_eq!(mode("old.svg"), 0o600);
    assert!(lab.path("link.svg").is_symlink());
    // A failed export leaves no temporary file and keeps the old file.
    run("pmc export t.c -o old.svg").expect(1);
    assert!(std::fs::read_to_string(lab.path("old.svg")).unwrap().contains("<svg"));
    let names = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().ends_with(".new")));
    // Pipes as input and output.
    let whole = run("pmc export perf.data -o - --format folded --no-cache").expect(0).stdout;
    let piped = run("cat perf.data | pmc export -o - --format folded --no-cache | cat").expect(0).stdout;
    assert_eq!(whole, piped);
    run("pmc record -q -e cpu-clock -g -o - -- ./walk | pmc export -o live.svg").expect(0);
    assert!(std::fs::read_to_string(lab.path("live.svg")).unwrap().contains("twice"));
    run("pmc export perf.data -o - --format folded | head -c 1").expect(0);
    // Error messages list the valid choices.
    run("pmc export perf.data -o x.sgv").expect(2).says(&["x.sgv", "try: one of", ".svg", ".folded"]);
    run("pmc export perf.data -o x --format sgv").expect(2).says(&["sgv", "try: one of", "svg"]);
    run("pmc export perf.data").expect(2).says(&["missing output format", "--format"]);
    run("pmc export perf.data -o no/such/folder.svg").expect(1).says(&["no/such/folder.svg", "ENOENT"]);
    run("pmc export perf.data -o a.svg -e cycles").expect(2).says(&["no event \"cycles\"", "cpu-clock"]);
    run("cp perf.data perf.json; pmc export perf.json -o perf.json")
        .expect(2)
        .says(&["the recording itself"]);
}

#[test]
fn markup_in_names_is_inert_in_svg() {
    let Some(lab) = Lab::new() else { return };
    let source = format!("{CHAIN}\nint main(void) {{ for_cpu_ms(200) sink = chain(sink, 5000); }}");
    let program = lab.build("<script>alert(", &source, &["-O1"]);
    let file = lab.record("]]><b>&.data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program);
    let svg = export(&lab, &file, "a.svg", &[]);
    assert!(svg.contains("&lt;script&gt;alert("), "{svg}");
    assert!(!svg.contains("<script>alert") && !svg.contains("<b>"), "{svg}");
}

/// Output of another program, which must succeed.
#[track_caller]
pub(crate) fn said(program: &str, words: &[&str]) -> String {
    let ran = kit::Ran::from(Command::new(program).args(words).env("LC_ALL", "C").output().unwrap());
    ran.expect(0).stdout
}

/// A function's self and total percentage of all periods in the report.
fn shares(file: &Path, function: &str) -> (f64, f64) {
    let words = ["report", "--json", "--no-cache", "-s", "sym", file.to_str().unwrap()];
    let document: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    let rows = document["events"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["sym"] == function).unwrap();
    (row["self"]["percent"].as_f64().unwrap(), row["total"]["percent"].as_f64().unwrap())
}

/// The percentage number `which` of a line, counted from 0.
fn percent(line: &str, which: usize) -> f64 {
    let numbers = line.split_whitespace().filter_map(|word| word.trim_matches(['(', ')']).strip_suffix('%'));
    numbers.filter_map(|number| number.parse().ok()).nth(which).unwrap()
}

#[test]
fn pprof_reads_the_export() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("go") {
        return;
    }
    let file = recorded(&lab);
    export(&lab, &file, "a.pb.gz", &[]);
    // The report counts inlined code as its caller's self cost.
    export(&lab, &file, "b.pb.gz", &["--no-inline"]);
    let go = |name: &str, more: &[&str]| {
        let path = lab.path(name);
        let words = [&["tool", "pprof", "-symbolize=none"], more, &[path.to_str().unwrap()]].concat();
        said("go", &words)
    };
    let top = go("b.pb.gz", &["-top", "-nodecount=1000"]);
    let line = top.lines().find(|line| line.ends_with(" twice")).unwrap();
    let (own, total) = shares(&file, "twice");
    assert!(
        (percent(line, 0) - own).abs() < 0.02 && (percent(line, 2) - total).abs() < 0.02,
        "{line} {own} {total}"
    );
    let raw = go("a.pb.gz", &["-raw"]);
    assert!(raw.contains("samples/count cpu-clock/nanoseconds"), "{raw}");
    assert!(raw.contains("walk.c:") && raw.contains("thread:[a worker]"), "{raw}");
    // The program's mapping comes first, with its build-id.
    let mappings = raw.split("Mappings").nth(1).unwrap();
    let id = said("readelf", &["-n", lab.path("walk").to_str().unwrap()]);
    let id = id.split("Build ID: ").nth(1).unwrap().lines().next().unwrap();
    let first = mappings.lines().nth(1).unwrap();
    assert!(first.contains("/walk ") && first.contains(id), "{first} {id}");
}

#[test]
fn callgrind_annotate_reads_the_export() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("callgrind_annotate") {
        return;
    }
    let file = recorded(&lab);
    // The report counts inlined code as its caller's self cost.
    let text = export(&lab, &file, "a.callgrind", &["--no-inline"]);
    let path = lab.path("a.callgrind");
    let annotate =
        |more: &str| said("callgrind_annotate", &["--threshold=100", more, path.to_str().unwrap()]);
    for (option, which) in [("--inclusive=no", 0), ("--inclusive=yes", 1)] {
        let shown = annotate(option);
        for function in ["leaf", "twice", "work"] {
            let (own, total) = shares(&file, function);
            let want = [own, total][which];
            let line = shown.lines().find(|line| line.contains(&format!(":{function} [walk]"))).unwrap();
            let got = if line.contains('%') { percent(line, 0) } else { 0.0 };
            assert!((got - want).abs() < 0.02, "{option} {function}: {got} {want}\n{shown}");
        }
    }
    assert!(text.contains("cmd: ") && text.contains("events: cpu-clock\n"), "{text}");
    // Line costs, and inlined functions as separate functions.
    export(&lab, &file, "b.callgrind", &[]);
    let lines = said("callgrind_annotate", &["--threshold=100", lab.path("b.callgrind").to_str().unwrap()]);
    assert!(lines.contains("walk.c:chain [walk]") && lines.contains("__asm__ volatile"), "{lines}");
}

#[test]
fn gprof_reads_one_file_per_program() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("gprof") {
        return;
    }
    recorded(&lab);
    // gprof's graph has user code only.
    let file = lab.record("user.data", &["-e", "cpu-clock:u", "-F", "2000", "-g"], &lab.path("walk"));
    let folder = lab.path("all.gmon");
    let line = ["export", "--no-inline", "-i", file.to_str().unwrap(), "-o", folder.to_str().unwrap()];
    let listed = kit::run(&line).expect(0).stdout;
    let walk = lab.path("walk").display().to_string();
    let own = |line: &&str| line.starts_with(&format!("{walk} "));
    let gmon = listed.lines().find(own).and_then(|line| line.split(' ').nth(1)).expect(&listed).to_owned();
    let flat = said("gprof", &["-b", "-p", &walk, &gmon]);
    assert!(flat.contains(" seconds."), "{flat}");
    let graph = said("gprof", &["-b", "-q", &walk, &gmon]);
    let column = |text: &str, function: &str, column: usize| -> f64 {
        // In the call graph, a function's primary line begins with its index.
        let own = |words: &Vec<&str>| words.contains(&function) && (column == 0 || words[0].starts_with('['));
        let line = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(own);
        line.and_then(|words| words.get(column)?.parse().ok()).unwrap_or(0.0)
    };
    let whole: f64 = ["leaf", "twice", "once", "work"].iter().map(|name| shares(&file, name).0).sum();
    for function in ["leaf", "twice", "once"] {
        let (own, total) = shares(&file, function);
        let shown = column(&flat, function, 0);
        assert!((shown - own / whole * 100.0).abs() < 1.0, "{function}: {own} of {whole}\n{flat}");
        let shown = column(&graph, function, 1);
        assert!((shown - total / whole * 100.0).abs() < 8.0, "{function}: {total} of {whole}\n{graph}");
    }
    kit::run(&["export", "-i", file.to_str().unwrap(), "--format", "gmon", "-o", "-"])
        .expect(2)
        .says(&["-o DIR"]);
    let none = ["export", "-i", file.to_str().unwrap(), "-o", folder.to_str().unwrap(), "--comm", "nobody"];
    kit::run(&none).expect(1).says(&["no samples to export"]);
}

#[test]
fn speedscope_export_matches_its_schema() {
    let Some(lab) = Lab::new() else { return };
    let has = Command::new("python3").args(["-c", "import jsonschema"]).status();
    let has = has.is_ok_and(|status| status.success());
    if !kit::need("jsonschema", has, "python3 has no jsonschema") {
        return;
    }
    let file = recorded(&lab);
    let text = export(&lab, &file, "a.speedscope.json", &[]);
    let check = "import json, jsonschema, sys\n\
                 jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))";
    let schema = kit::data("export/speedscope/file-format-schema.json");
    let path = lab.path("a.speedscope.json");
    said("python3", &["-c", check, path.to_str().unwrap(), schema.to_str().unwrap()]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let profiles = document["profiles"].as_array().unwrap();
    let names: Vec<&str> = profiles.iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("a worker (")), "{names:?}");
    // Each sample is exported, and its stack ends in the sampled function.
    let frames = document["shared"]["frames"].as_array().unwrap();
    let mut of_leaf = 0;
    for sample in profiles.iter().flat_map(|profile| profile["samples"].as_array().unwrap()) {
        let last = sample.as_array().unwrap().last().unwrap().as_u64().unwrap() as usize;
        of_leaf += usize::from(frames[last]["name"] == "leaf");
    }
    let folded = export(&lab, &file, "a.folded", &[]);
    let periods: u64 =
        counts(&folded).iter().filter(|(path, _)| path.ends_with(";leaf")).map(|(_, n)| n).sum();
    assert_eq!(of_leaf as u64 * 500_000, periods);
}

#[test]
fn firefox_has_threads_categories_and_marks() {
    let Some(lab) = Lab::new() else { return };
    let flags = ["-O0", "-g", "-fno-omit-frame-pointer", "-pthread", "-D_GNU_SOURCE"];
    let program = lab.build("walk", &[CHAIN, PROGRAM, TWO_THREADS].concat(), &flags);
    let options = ["-e", "cpu-clock", "-e", "sched:sched_switch", "-F", "2000", "-g"];
    let file = lab.record("perf.data", &options, &program);
    let text = export(&lab, &file, "a.firefox.json", &[]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let categories = names(&document["meta"]["categories"]);
    assert!(
        ["Program", "Kernel"].iter().all(|name| categories.contains(&(*name).to_owned())),
        "{categories:?}"
    );
    let threads = document["threads"].as_array().unwrap();
    assert!(names(&document["threads"]).contains(&"a worker".to_owned()));
    let sum = |what: &str| -> usize {
        threads.iter().map(|thread| thread[what]["length"].as_u64().unwrap() as usize).sum()
    };
    // If a tracepoint is the first or last record, an empty sample without weight extends the visible range.
    let weights = |thread: &serde_json::Value| thread["samples"]["weight"].as_array().unwrap().clone();
    let empty = threads.iter().flat_map(weights).filter(|weight| *weight == 0).count();
    assert!(empty <= 2, "{empty}");
    let report = kit::run(&["report", "--json", "--no-cache", file.to_str().unwrap()]).expect(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let samples = |event: usize| report["events"][event]["samples"].as_u64().unwrap() as usize;
    assert_eq!((sum("samples") - empty, sum("markers")), (samples(0), samples(1)));
    assert!(text.contains("prev_comm=") && text.contains("\"sched:sched_switch\""));
}

/// The Firefox profiler's published code (<https://www.npmjs.com/package/@firefox-devtools/profiler-cli>
/// 0.10.0) with an open profile. A background process keeps the profile; each command queries it.
struct FirefoxProfiler<'a> {
    lab: &'a Lab,
    program: PathBuf,
}

impl<'a> FirefoxProfiler<'a> {
    fn open(lab: &'a Lab, profile: &str) -> Self {
        let packed = std::fs::File::open(kit::data("export/firefox/profiler-cli.js.xz")).unwrap();
        let program = lab.path("profiler-cli.js");
        let unpacked = std::fs::File::create(&program).unwrap();
        let xz = Command::new("xz").arg("-dc").stdin(packed).stdout(unpacked).status().unwrap();
        assert!(xz.success());
        let profiler = Self { lab, program };
        // `load` stops waiting for the background process after half a second, but that process keeps
        // loading.
        let loaded = profiler.run(&["load", lab.path(profile).to_str().unwrap()]);
        assert!(loaded.status == Some(0) || loaded.stderr.contains("did not become ready"), "{loaded:?}");
        kit::wait_for("Firefox's profiler", || profiler.run(&["thread", "list"]).status == Some(0));
        profiler
    }

    fn run(&self, words: &[&str]) -> kit::Ran {
        let mut node = Command::new("node");
        node.arg(&self.program).args(words).env("PROFILER_CLI_SESSION_DIR", self.lab.path("sessions"));
        node.output().unwrap().into()
    }

    fn ask(&self, words: &[&str]) -> serde_json::Value {
        let ran = self.run(&[words, &["--json"]].concat()).expect(0);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

impl Drop for FirefoxProfiler<'_> {
    fn drop(&mut self) {
        self.run(&["stop", "--all"]);
    }
}

#[test]
fn firefox_profiler_shows_the_recorded_counts() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("node") || !kit::need_program("xz") {
        return;
    }
    let flags = ["-O0", "-g", "-fno-omit-frame-pointer", "-pthread", "-D_GNU_SOURCE"];
    let program = lab.build("walk", &[CHAIN, PROGRAM, TWO_THREADS].concat(), &flags);
    let options = ["-e", "cpu-clock", "-e", "sched:sched_switch", "-F", "2000", "-g"];
    let file = lab.record("perf.data", &options, &program);
    export(&lab, &file, "a.firefox.json", &[]);
    let firefox = FirefoxProfiler::open(&lab, "a.firefox.json");
    let mut theirs: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let threads = firefox.ask(&["thread", "list"]);
    let threads = threads["threads"].as_array().unwrap();
    assert!(threads.iter().any(|thread| thread["name"] == "a worker"), "{threads:?}");
    for thread in threads {
        let handle = thread["threadHandle"].as_str().unwrap();
        let all = ["thread", "functions", "--include-idle", "--limit", "0", "--thread", handle];
        for row in firefox.ask(&all)["functions"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap().trim_end_matches(" (inlined)");
            let [own, total] = ["selfSamples", "totalSamples"].map(|count| row[count].as_u64().unwrap());
            let count = theirs.entry(name.to_owned()).or_default();
            *count = (count.0 + own, count.1 + total);
        }
    }
    // Counts per function from the folded stacks. A sample is half a millisecond.
    let mut ours: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (stack, period) in counts(&export(&lab, &file, "a.folded", &[])) {
        let calls: Vec<&str> = stack.split(';').skip(1).collect();
        ours.entry((*calls.last().unwrap()).to_owned()).or_default().0 += period / 500_000;
        for name in BTreeSet::from_iter(calls) {
            ours.entry(name.to_owned()).or_default().1 += period / 500_000;
        }
    }
    assert!(ours["leaf"].1 > 0 && ours["main"].1 > 0, "{ours:#?}");
    assert_eq!(theirs, ours);
    let words = ["report", "--json", "--no-cache", file.to_str().unwrap()];
    let report: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    let marks = firefox.ask(&["profile", "markers", "--search", "sched:sched_switch", "--limit", "1"]);
    assert_eq!(marks["totalCount"], report["events"][1]["samples"], "{marks}");
    assert!(marks["markers"][0]["label"].as_str().unwrap().contains("prev_comm="), "{marks}");
}

/// Opens a page in a browser without a network, runs a script in it and returns the script's results.
#[track_caller]
pub(crate) fn in_browser(lab: &Lab, page: &str, script: &str, more: &[&str]) -> serde_json::Value {
    let script = format!(
        "<script>(async () => {{ const wait = () => new Promise((done) => setTimeout(done, 20)); \
         while (document.documentElement.dataset.ready !== 'yes') await wait(); {script} \
         document.body.append(Object.assign(document.createElement('pre'), \
         {{ id: 'results', textContent: JSON.stringify(results) }})); }})();</script></body>"
    );
    let page = opened(lab, "driven.html", &page.replace("</body>", &script), more);
    let results = page.split("<pre id=\"results\">").nth(1).unwrap_or_else(|| panic!("{page}"));
    let results = results.split("</pre>").next().unwrap();
    serde_json::from_str(&results.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

/// The DOM of a document in a browser without a network, once loading has finished.
#[track_caller]
fn opened(lab: &Lab, name: &str, document: &str, more: &[&str]) -> String {
    let file = lab.path(name);
    std::fs::write(&file, document).unwrap();
    let profile = format!("--user-data-dir={}", lab.path("browser").display());
    let address = format!("file://{}", file.display());
    let usual = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800"];
    let offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--dump-dom"];
    let time = ["--virtual-time-budget=60000", &profile];
    said("chromium", &[&usual[..], &offline, &time, more, &[&address]].concat())
}

#[test]
fn svg_supports_search_and_zoom_without_network() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("chromium") {
        return;
    }
    let file = recorded(&lab);
    let picture = export(&lab, &file, "a.svg", &[]);
    let script = "<script><![CDATA[ addEventListener('load', () => setTimeout(() => {
        search('^twice ');
        const results = [matchedtxt.textContent];
        const twice = [...frames.children].find((one) => one.querySelector('title').textContent.startsWith('twice '));
        const wide = () => twice.querySelector('rect').getBoundingClientRect().width;
        const whole = wide();
        zoom(twice);
        results.push(`wider: ${wide() > whole * 1.2}`, `back: ${!unzoombtn.classList.contains('hide')}`);
        const shown = (button) => getComputedStyle(button).display !== 'none' && Number(getComputedStyle(button).opacity);
        results.push(`buttons: ${shown(searchbtn)} ${shown(unzoombtn)}`);
        unzoom();
        results.push(`before: ${shown(unzoombtn) > 0}`);
        const top = (name) => [...frames.children].find((one) => one.querySelector('title').textContent.startsWith(name)).getBoundingClientRect().top;
        results.push(`down: ${top('all ') < top('main ') && top('main ') < top('twice ')}`);
        results.push(`requests: ${performance.getEntriesByType('resource').length}`);
        document.documentElement.setAttribute('data-results', results.join(', '));
    }, 100)); ]]></script></svg>";
    let (rest, end) = picture.rsplit_once("</svg>").unwrap();
    let picture = opened(&lab, "driven.svg", &[rest, script, end].concat(), &[]);
    let results = picture.split("data-results=\"").nth(1).unwrap_or_else(|| panic!("{picture}"));
    let results = results.split('"').next().unwrap();
    let (_, total) = shares(&file, "twice");
    assert!((percent(results.split(',').next().unwrap(), 0) - total).abs() < 0.2, "{results} {total}");
    let want = "wider: true, back: true, buttons: 1 1, before: true, down: true, requests: 0";
    assert!(results.ends_with(want), "{results}");
}

#[test]
fn html_supports_search_and_zoom_without_network() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("chromium") {
        return;
    }
    let file = recorded(&lab);
    let page = export(&lab, &file, "a.html", &[]);
    // The page refers to no other location, and its policy forbids loading anything.
    assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("url("));
    assert!(page.contains("default-src 'none'"));
    let script = "
        const place = (name) => drawn.find((place) => data.names[place.block.fn] === name);
        const all = drawn.length;
        $('search').value = '^twice$';
        $('search').dispatchEvent(new Event('input'));
        const matched = $('matched').textContent;
        const box = $('graph').getBoundingClientRect(), twice = place('twice');
        const at = { clientX: box.left + twice.x + twice.width / 2, clientY: box.top + twice.depth * ROW + 9 };
        $('graph').dispatchEvent(new MouseEvent('mousemove', at));
        const tip = $('tip').textContent;
        $('graph').dispatchEvent(new MouseEvent('click', at));
        const zoomed = $('crumbs').textContent, wide = place('twice').width / box.width, link = location.hash;
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
        $('inverted').click();
        const first = drawn.filter((place) => place.depth === 1).map((place) => data.names[place.block.fn])[0];
        $('inverted').click();
        const worker = [...$('thread').options].find((option) => option.textContent.includes('a worker'));
        $('thread').value = worker.value;
        $('thread').dispatchEvent(new Event('change'));
        const part = sums.all;
        show('functions');
        const rows = [...document.querySelectorAll('#functions tbody tr')].map((row) => row.textContent);
        show('tree');
        const lines = () => [...document.querySelectorAll('#tree tbody tr')].map((row) => row.children[3].textContent);
        const tree = lines();
        document.querySelector('#tree tbody tr').click();
        const closed = lines();
        // A long name is short where there is little room, and whole in its title.
        $('search').value = '';
        $('search').dispatchEvent(new Event('input'));
        const long = 'std::vector<int, std::allocator<int> >::push_back(int const&)', first_fn = table[0].fn;
        [data.names[first_fn], data.brief[first_fn]] = [long, 'std::vector<…>::push_back'];
        show('functions');
        const named = [...document.querySelectorAll('#functions td.name')].find((cell) => cell.title === long).textContent;
        const middle = [shortened('abcdefghijklmnop', 9), shortened('abc', 9)];
        $('listing').style.maxHeight = '80px';
        show('code');
        const code = $('listing').textContent, hottest = document.querySelector('#listing .hottest');
        const { top, bottom } = $('listing').getBoundingClientRect();
        const isVisible = hottest.getBoundingClientRect().top >= top && hottest.getBoundingClientRect().bottom <= bottom;
        const shares = [...document.querySelectorAll('#listing tr.s')].map((row) => parseFloat(row.children[0].textContent) || 0);
        const isHottest = parseFloat(hottest.children[0].textContent) === Math.max(...shares);
        const wraps = [...document.querySelectorAll('#listed strong')].map((name) => getComputedStyle(name).whiteSpace);
        show('recording');
        const results = { all, matched, tip, zoomed, wide, link, first, part, rows, code, tree, closed, named, middle, wraps, isVisible, isHottest,
            facts: $('recording').textContent, about: $('about').textContent, span: $('span').textContent,
            requests: performance.getEntriesByType('resource').length };
    ";
    let results = in_browser(&lab, &page, script, &[]);
    let text = |name: &str| results[name].as_str().unwrap().to_owned();
    let (_, total) = shares(&file, "twice");
    assert!((percent(&text("matched"), 0) - total).abs() < 0.1, "{results} {total}");
    assert!(text("tip").contains("twice") && text("tip").contains("walk · program"), "{results}");
    assert!(text("zoomed").contains("twice: ") && results["wide"].as_f64().unwrap() > 0.99, "{results}");
    assert!(text("link").contains("search=") && text("link").contains("zoom="), "{results}");
    assert_eq!(text("first"), "chain", "{results}");
    // The worker's first samples may have the name with which it began.
    let report = ["report", "--json", "--no-cache", "-s", "tid,comm", file.to_str().unwrap()];
    let report: serde_json::Value = serde_json::from_str(&kit::run(&report).expect(0).stdout).unwrap();
    let rows = report["events"][0]["rows"].as_array().unwrap();
    let worker = rows.iter().find(|row| row["comm"] == "a worker").unwrap();
    let of_worker = rows.iter().filter(|row| row["tid"] == worker["tid"]);
    let samples: u64 = of_worker.map(|row| row["self"]["samples"].as_u64().unwrap()).sum();
    assert_eq!(results["part"], samples, "{results}");
    assert!(results["rows"].as_array().unwrap()[0].as_str().unwrap().ends_with("twicewalk"), "{results}");
    let [tree, closed] = ["tree", "closed"].map(|name| results[name].as_array().unwrap());
    assert!(tree.len() > closed.len() && closed[0].as_str().unwrap().starts_with('▸'), "{results}");
    assert!(tree.iter().any(|line| line.as_str().unwrap().ends_with("twice")), "{results}");
    assert_eq!(text("named"), "std::vector<…>::push_back");
    assert_eq!(results["middle"], serde_json::json!(["abcd…mnop", "abc"]));
    assert!(results["wraps"].as_array().unwrap().iter().all(|of| of == "nowrap"), "{results}");
    assert!(text("code").contains("leaf") && text("code").contains("imul"), "{results}");
    assert!(text("facts").contains("Trust: ") && text("facts").contains("hostname"), "{results}");
    assert!(results["isVisible"] == true && results["isHottest"] == true, "{results}");
    let about = text("about");
    assert!(about.starts_with("Recorded on ") && about.contains(" samples of cpu-clock, "), "{results}");
    assert!(about.contains(" of CPU time.") && about.contains("record "), "{results}");
    assert_eq!(results["requests"], 0);
}

#[test]
fn markup_in_names_is_inert_in_html() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("chromium") {
        return;
    }
    // The thread and the module have the program's name. The page's title is the recording's name.
    let name = "<img src=x onerror='document.title=1'>";
    let source = format!("{CHAIN}\nint main(void) {{ for_cpu_ms(200) sink = chain(sink, 5000); }}");
    let program = lab.build(name, &source, &["-O0", "-fno-omit-frame-pointer"]);
    let file = lab.record("<b>&\"' .data", &["-e", "cpu-clock", "-F", "2000", "-g"], &program);
    let page = export(&lab, &file, "a.html", &[]);
    assert!(page.contains("<title>&lt;b&gt;&amp;&quot;' .data – pmc</title>"));
    let script = "
        for (const view of ['functions', 'code', 'recording', 'flame']) show(view);
        await wait();
        const results = { modules: data.modules, images: document.images.length, title: document.title,
            bold: document.querySelectorAll('b').length, threads: $('thread').textContent };
    ";
    let results = in_browser(&lab, &page, script, &[]);
    assert!(results["modules"].as_array().unwrap().iter().any(|module| *module == name), "{results}");
    assert_eq!((&results["images"], &results["bold"]), (&0.into(), &0.into()), "{results}");
    assert_eq!(results["title"], "<b>&\"' .data – pmc");
    assert!(results["threads"].as_str().unwrap().contains("<img src=x"), "{results}");
}
