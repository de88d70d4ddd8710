//! `pmc report` and `pmc script` against perf: recordings that the installed perf made, read by both.

mod kit;

use inferno::collapse::Collapse as _;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Recursion and inlined code: a call tree of some depth.
const DEEP: &str = r#"
#include <stdlib.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void other(int n) { for (int i = 0; i < n; i++) sink ^= i * 3; }
__attribute__((noinline)) void down(int d, int n) { if (d == 0) { leaf(n); return; } down(d - 1, n); sink++; }
static inline __attribute__((always_inline)) void inlined(int n) { for (int i = 0; i < n; i++) sink += i * 5; }
__attribute__((noinline)) void middle(int n) { down(n % 7, 2000); other(1500); inlined(700); sink++; }
int main(void) { for (int i = 0; i < 40000; i++) middle(i); return 0; }
"#;

/// Threads with a name of their own, then processes.
const MANY: &str = r#"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
void *work(void *n) { prctl(PR_SET_NAME, "worker"); spin((long)n); return 0; }
int main(void) {
  pthread_t t[3];
  for (long i = 0; i < 3; i++) pthread_create(t + i, 0, work, (void *)(20000000 * (i + 1)));
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  for (int i = 0; i < 5; i++) if (fork() == 0) { spin(10000000); _exit(0); }
  while (wait(0) > 0);
  return 0;
}
"#;

/// Code that no file has, and a perf map that names it.
const JIT: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
int main(void) {
  unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(p, code, sizeof code);
  memcpy(p + 256, code, sizeof code);
  char name[64];
  sprintf(name, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(name, "w");
  fprintf(f, "%lx 40 first\n%lx 40 the second one\n", (long)p, (long)p + 256);
  fclose(f);
  for (int i = 0; i < 400; i++) { ((void (*)(int))p)(300000); ((void (*)(int))(p + 256))(150000); }
  return 0;
}
"#;

/// A folder with programs and recordings that goes away with the test.
struct Lab(tempfile::TempDir);

impl Lab {
    /// `None` where perf or gcc is missing, or perf may not record.
    fn new() -> Option<Self> {
        let met = kit::need_program("perf") && kit::need_program("gcc") && kit::need_root();
        met.then(|| Self(tempfile::tempdir().expect("a temporary folder")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, name: &str, source: &str) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).expect("the source is written");
        let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"];
        let gcc = Command::new("gcc").args(flags).arg(&program).arg(&file).status().expect("gcc starts");
        assert!(gcc.success());
        program
    }

    /// Records with perf; in pipe form when `pipe`.
    fn record(&self, name: &str, options: &[&str], program: &[&str], pipe: bool) -> PathBuf {
        let file = self.path(name);
        // perf 6.1 now and then aborts while it collects build-ids on a busy machine; that is no finding about pmc.
        const ABORT: i32 = 6;
        for _ in 0..4 {
            let mut perf = Command::new("perf");
            perf.args(["record", "-q", "-N"]).args(options).arg("-o");
            if pipe {
                perf.arg("-")
            } else {
                perf.arg(&file)
            };
            let out = if pipe { std::fs::File::create(&file).expect("a file").into() } else { Stdio::null() };
            perf.arg("--").args(program).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
            let status = perf.status().expect("perf starts");
            if status.success() {
                return file;
            }
            assert_eq!(status.signal(), Some(ABORT), "perf record {options:?}: {status}");
        }
        panic!("perf record {options:?} aborted every time");
    }
}

/// Shares by (comm, dso, symbol): total, own.
type Shares = BTreeMap<(String, String, String), (f64, f64)>;

/// perf's table, event by event; unresolved addresses of a module are one row, as pmc has them.
fn perf_report(file: &Path, children: bool) -> BTreeMap<String, Shares> {
    let fields = if children { "overhead_children,overhead,comm,dso,sym" } else { "overhead,comm,dso,sym" };
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-group", "--no-inline", "-g", "none", "-t", "\t", "-F", fields]);
    perf.arg(if children { "--children" } else { "--no-children" });
    let run = perf.args(["--percent-limit", "0", "-i"]).arg(file).stdin(Stdio::null()).output();
    let text = String::from_utf8_lossy(&run.expect("perf starts").stdout).into_owned();
    let mut events: BTreeMap<String, Shares> = BTreeMap::new();
    let mut event = String::new();
    for line in text.lines() {
        if let Some((_, names)) = line.split_once(" of event").filter(|_| line.starts_with("# Samples")) {
            // `of events 'a, b'` heads the leader's table.
            event = names.split('\'').nth(1).unwrap_or("").split(',').next().unwrap_or("").to_owned();
            events.entry(event.clone()).or_default();
        } else if !line.starts_with('#') && !line.is_empty() {
            let words: Vec<&str> = line.split('\t').map(str::trim).collect();
            let percent = |word: &str| word.trim_end_matches('%').parse::<f64>().unwrap_or(0.0);
            let (total, rest) = if children { (percent(words[0]), &words[1..]) } else { (0.0, &words[..]) };
            let symbol = match rest[3].split_once("] ") {
                Some((level, address))
                    if address.trim_start_matches("0x").len() == 16
                        && address.trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    format!("{level}] [unknown]")
                }
                _ => rest[3].to_owned(),
            };
            let key = (rest[1].to_owned(), rest[2].to_owned(), unversioned(&symbol));
            let row = events.entry(event.clone()).or_default().entry(key).or_default();
            *row = (row.0 + total, row.1 + percent(rest[0]));
        }
    }
    events
}

fn pmc_json(file: &Path, options: &[&str]) -> Value {
    let mut args = vec!["report", "--json", "--no-cache", "-i", file.to_str().expect("a plain path")];
    args.extend(options);
    let ran = kit::run(&args).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

fn shares(event: &Value) -> Shares {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or("").to_owned();
    let rows = event["rows"].as_array().expect("rows");
    let share = |row: &Value, name: &str| row[name]["percent"].as_f64().unwrap_or(0.0);
    let key = |row: &Value| {
        let symbol = format!("[{}] {}", text(row, "level"), text(row, "sym"));
        (text(row, "comm"), text(row, "dso"), unversioned(&symbol))
    };
    rows.iter().map(|row| (key(row), (share(row, "total"), share(row, "self")))).collect()
}

/// Compares both tables of a recording. Names in code that others build (demangled differently) are left to the symbol tests.
#[track_caller]
fn agree(file: &Path, comms: &[&str]) {
    let ours_whole = pmc_json(file, &["--no-inline", "--no-children", "-g", "none"]);
    let of_event = |document: &Value, name: &str| {
        let events = document["events"].as_array().expect("events");
        events
            .iter()
            .find(|event| event["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no event {name}"))
    };
    let mut compared = 0;
    for (name, theirs) in perf_report(file, false) {
        let ours = shares(&of_event(&ours_whole, &name));
        for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            if !comms.is_empty() && !comms.contains(&key.0.as_str()) {
                continue;
            }
            let (a, b) = (theirs.get(key).map_or(0.0, |r| r.1), ours.get(key).map_or(0.0, |r| r.1));
            assert!((a - b).abs() <= 0.1, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "{}: nothing to compare", file.display());
}

/// The same for the shares with children, of perf's top 20.
#[track_caller]
fn children_agree(file: &Path) {
    let ours_whole = pmc_json(file, &["--no-inline"]);
    for (name, theirs) in perf_report(file, true) {
        let event = ours_whole["events"].as_array().expect("events").iter().find(|e| e["name"] == *name);
        let ours = shares(event.expect("the event is there"));
        let mut top: Vec<_> = theirs.iter().collect();
        top.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        for (key, (a, _)) in top.into_iter().take(20) {
            // perf looks a return address up as it is, and so finds the function behind a call that never returns.
            if key.1.starts_with("ld-linux") || key.2.ends_with("[unknown]") {
                continue;
            }
            let b = ours.get(key).map_or(0.0, |row| row.0);
            assert!((a - b).abs() <= 0.5, "{}: {name} {key:?}: perf {a}, pmc {b}", file.display());
        }
    }
}

/// perf says samples and occurrences as `# Samples: 1K`, so the exact sums come from its script.
fn perf_sums(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut perf = Command::new("perf");
    let run = perf.args(["script", "-G", "-F", "event,period", "-i"]).arg(file).stdin(Stdio::null()).output();
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in String::from_utf8_lossy(&run.expect("perf starts").stdout).lines() {
        let mut words = line.split_whitespace();
        let (Some(period), Some(event)) = (words.next(), words.next()) else { continue };
        let sum = sums.entry(event.trim_end_matches(':').to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + period.parse::<u64>().expect("a period"));
    }
    sums
}

#[track_caller]
fn totals_agree(file: &Path) {
    let document = pmc_json(file, &["--no-inline"]);
    let theirs = perf_sums(file);
    assert!(!theirs.is_empty());
    for event in document["events"].as_array().expect("events") {
        let name = event["name"].as_str().expect("a name");
        let ours = (event["samples"].as_u64().expect("a count"), event["period"].as_u64().expect("a sum"));
        assert_eq!(ours, theirs.get(name).copied().unwrap_or_default(), "{}: {name}", file.display());
    }
    let samples: u64 = theirs.values().map(|(samples, _)| samples).sum();
    assert_eq!(document["trust"]["samples"].as_u64(), Some(samples));
}

fn script(program: &str, file: &Path, options: &[&str]) -> String {
    let binary = if program == "pmc" { env!("CARGO_BIN_EXE_pmc") } else { program };
    let run =
        Command::new(binary).arg("script").args(options).arg("-i").arg(file).stdin(Stdio::null()).output();
    String::from_utf8(run.expect("it starts").stdout).expect("text")
}

/// The line without the version behind a symbol: of two versions at one address either name is right.
fn unversioned(line: &str) -> String {
    match line.split_once('@') {
        Some((name, rest)) => format!("{name}{}", rest.trim_start_matches(|c: char| c != '+' && c != ' ')),
        None => line.to_owned(),
    }
}

/// Our line, without the name of a stub where perf found none: its `@plt` says only that it is one.
fn as_nameless_as<'a>(theirs: &str, ours: &'a str) -> std::borrow::Cow<'a, str> {
    match ours.split_once("@plt+") {
        Some((before, after)) if theirs.contains(" @plt+") => {
            let kept = before.rsplit_once(' ').map_or("", |(kept, _)| kept);
            format!("{kept} @plt+{after}").into()
        }
        _ => ours.into(),
    }
}

#[track_caller]
fn scripts_agree(file: &Path, options: &[&str]) {
    let (theirs, ours) = (script("perf", file, options), script("pmc", file, options));
    assert!(!theirs.is_empty(), "{}: perf script {options:?} prints nothing", file.display());
    for (number, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        let b = as_nameless_as(a, b);
        assert_eq!(unversioned(a), unversioned(&b), "{} {options:?}: line {}", file.display(), number + 1);
    }
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{} {options:?}", file.display());
}

#[test]
fn recordings_of_perf_give_perfs_numbers_and_lines() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let (deep, many) = (deep.to_str().expect("plain"), many.to_str().expect("plain"));
    let kinds: &[(&str, &[&str], &str, bool)] = &[
        ("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], deep, false),
        ("flat", &["-e", "task-clock", "-F", "2000"], many, false),
        ("events", &["-e", "cpu-clock,task-clock,page-faults,context-switches", "-g"], many, false),
        ("group", &["-e", "{cpu-clock,task-clock}", "-g"], many, false),
        ("counts", &["-e", "{cpu-clock,page-faults}:S", "-F", "2000"], many, false),
        ("packed", &["-e", "cpu-clock", "-F", "2000", "-g", "-z"], many, false),
        ("stream", &["-e", "cpu-clock", "-F", "2000", "-g"], many, true),
        ("thread", &["-e", "cpu-clock", "-F", "2000", "--per-thread"], deep, false),
        ("timed", &["-e", "cpu-clock", "-F", "2000", "-T", "-d", "--sample-cpu"], many, false),
    ];
    for (name, options, program, pipe) in kinds {
        let file = lab.record(name, options, &[program], *pipe);
        agree(&file, &[]);
        totals_agree(&file);
        scripts_agree(&file, &[]);
        if options.contains(&"-g") {
            scripts_agree(&file, &["-G"]);
            // perf does not see in a stream that there are chains before it makes its tables.
            if !pipe {
                children_agree(&file);
            }
        }
    }
    let file = lab.path("fp");
    scripts_agree(&file, &["--ns"]);
    scripts_agree(&file, &["-F", "comm,pid,tid,time,event,ip,sym"]);
    scripts_agree(&lab.path("timed"), &["-F", "comm,tid,cpu,time,period"]);
}

#[test]
fn copied_stacks_are_unwound() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let options = ["-e", "cpu-clock", "-F", "1000", "--call-graph", "dwarf,8192"];
    let file = lab.record("dwarf", &options, &[deep.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file);
    totals_agree(&file);
    let document = pmc_json(&file, &[]);
    let trust = &document["trust"];
    let (stacks, rooted) = (trust["stacks"].as_f64().unwrap(), trust["rooted"].as_f64().unwrap());
    assert!(rooted / stacks > 0.95, "{trust}");
    // Inlined code has a row of its own, whose cost is its callers'.
    let inlined =
        document["events"][0]["rows"].as_array().unwrap().iter().find(|row| row["sym"] == "inlined");
    assert!(inlined.expect("a row for it")["total"]["percent"].as_f64().unwrap() > 1.0);
}

#[test]
fn the_whole_machine_and_tracepoints() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let many = many.to_str().expect("plain");
    let file = lab.record("all", &["-e", "cpu-clock", "-F", "1000", "-a", "-g"], &[many], false);
    // Whatever else runs here is demangled in its own way by each.
    agree(&file, &["many", "worker", "swapper"]);
    totals_agree(&file);
    let work = ["sh", "-c", "for i in 1 2 3 4 5; do ls / >/dev/null; done"];
    let events = "sched:sched_switch,sched:sched_process_exec,sched:sched_process_fork";
    let file = lab.record("traces", &["-e", events, "-a"], &work, false);
    agree(&file, &[]);
    totals_agree(&file);
    scripts_agree(&file, &[]);
}

#[test]
fn code_of_a_jit_has_the_names_of_its_map() {
    let Some(lab) = Lab::new() else { return };
    let jit = lab.build("jit", JIT);
    let file = lab.record("jit.data", &["-e", "cpu-clock", "-g"], &[jit.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file);
    scripts_agree(&file, &[]);
    let rows = shares(&pmc_json(&file, &[])["events"][0]);
    assert!(rows.keys().any(|(_, dso, symbol)| symbol == "[.] the second one" && dso.starts_with("[JIT]")));
}

#[test]
fn stackcollapse_reads_our_lines() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("fp", &["-e", "cpu-clock", "-g"], &[deep.to_str().expect("plain")], false);
    let lines = script("pmc", &file, &[]);
    let mut folded = Vec::new();
    inferno::collapse::perf::Folder::default()
        .collapse(lines.as_bytes(), &mut folded)
        .expect("the lines are read");
    let folded = String::from_utf8_lossy(&folded);
    assert!(folded.lines().any(|line| line.contains("main;middle;") && line.contains("leaf")), "{folded}");
}

#[test]
fn tables_trees_and_filters() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let fp = lab.record("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], &[deep.to_str().unwrap()], false);
    let fp = fp.to_str().unwrap();
    let text = kit::run(&["report", "--stdio", fp]).expect(0);
    let text = text.prints(&[
        "Children",
        "Self",
        "[.] leaf",
        "Call tree, caller first",
        "Trust: ",
        "none lost",
        "±",
    ]);
    let first = text.stdout.lines().take(20).collect::<Vec<_>>().join("\n");
    assert!(first.contains("[.] down") && first.contains("[.] other"), "{first}");
    assert!(!text.stdout.contains('\u{1b}'));
    // The tree holds every sample once: own costs add up to the whole.
    let document = pmc_json(Path::new(fp), &["--percent-limit", "0"]);
    let event = &document["events"][0];
    let (mut own, mut names) = (0, BTreeSet::new());
    for node in event["tree"]["nodes"].as_array().unwrap() {
        own += node["self"]["period"].as_u64().unwrap();
        names.insert(node["symbol"].as_str().unwrap());
    }
    assert_eq!(Some(own), event["period"].as_u64());
    assert!(names.contains("inlined") && names.contains("leaf"));
    let callee = pmc_json(Path::new(fp), &["-g", "callee"]);
    let top = &callee["events"][0]["tree"]["nodes"][0];
    assert!(["leaf", "other", "inlined"].contains(&top["symbol"].as_str().unwrap()), "{top}");
    assert_eq!(callee["events"][0]["tree"]["order"], "callee");
    let joined = kit::run(&["report", "--collapse-recursion", "--no-inline", fp]).expect(0);
    let tree = joined.stdout.split("Call tree").nth(1).unwrap();
    assert!(!tree.contains("down › down"), "{tree}");

    let flat = lab.record("flat", &["-e", "task-clock", "-F", "4000"], &[many.to_str().unwrap()], false);
    let whole = pmc_json(&flat, &[]);
    let period = whole["events"][0]["period"].as_u64().unwrap();
    let only = pmc_json(&flat, &["--comms", "worker"]);
    let only = &only["events"][0];
    let filtered = only["filtered"]["period"].as_u64().unwrap();
    assert!(filtered > 0 && filtered < period && only["period"].as_u64() == Some(period), "{only}");
    let rows: u64 =
        only["rows"].as_array().unwrap().iter().map(|row| row["self"]["period"].as_u64().unwrap()).sum();
    assert_eq!(rows + filtered, period);
    let by_tid = pmc_json(&flat, &["-s", "pid,tid"]);
    let tids: BTreeSet<_> =
        by_tid["events"][0]["rows"].as_array().unwrap().iter().map(|r| r["tid"].as_i64()).collect();
    assert!(tids.len() >= 8, "three threads, five processes: {tids:?}");
    let csv =
        kit::run(&["report", "--csv", "-F", "overhead,sample,sym", "-i", flat.to_str().unwrap()]).expect(0);
    assert!(csv.stdout.starts_with("Event,Overhead,Samples,Symbol\ntask-clock,"), "{}", csv.stdout);
}

#[test]
fn what_cannot_be_done_is_explained() {
    kit::run(&["report", "-i", "/does/not/exist"]).expect(1).says(&["/does/not/exist", "ENOENT"]);
    kit::run(&["report", "-s", "symbl"]).expect(2).says(&["symbl", "did you mean", "symbol"]);
    kit::run(&["report", "-g", "upwards"]).expect(2).says(&["caller, callee or none"]);
    kit::run(&["script", "-i", "/dev/null"]).expect(1);
}
