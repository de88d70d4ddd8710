//! Waiting time (`pmc record --off-cpu`, `--wall`): compared with the elapsed and CPU times that the recorded
//! programs measure themselves.
//!
//! The programs print a line per thread: name, thread id, and nanoseconds elapsed and on the CPU. A thread's
//! waits must add up to the difference, on an idle machine as on a busy one.

mod idle;
mod kinds;
mod live;
mod wakers;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Lab;
use crate::kit;
use crate::kit::oracle;

const MODES: &str = include_str!("wall/modes.c");
const LIVES: &str = include_str!("wall/lives.c");
const PING_PONG: &str = include_str!("wall/pingpong.c");
const PYTHON: &str = include_str!("wall/modes.py");
const RUST: &str = include_str!("wall/modes.rust");

impl Lab {
    /// Builds a program with the compiler; returns `None` without one.
    #[track_caller]
    fn build(&self, compiler: &[&str], source: &str) -> Option<PathBuf> {
        if !kit::need_program(compiler[0]) || !kit::need_perf_events() {
            return None;
        }
        let (file, program) = (self.path("source"), self.path("program"));
        std::fs::write(&file, source).expect("a source");
        let mut built = Command::new(compiler[0]);
        built.args(&compiler[1..]).args(["-g", "-o"]).args([&program, &file]);
        let built = built.output().expect("the compiler starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    }

    /// Records a command with these options; returns the recording, and what the command printed.
    #[track_caller]
    fn record(&self, options: &[&str], command: &[&str]) -> (PathBuf, kit::Ran) {
        let file = self.path("perf.data");
        let mut pmc = kit::pmc();
        pmc.arg("record").args(options).arg("-o").arg(&file).arg("--").args(command);
        pmc.env("PYTHONPERFSUPPORT", "1").current_dir(self.0.path());
        let ran = kit::Ran::from(pmc.output().expect("pmc starts")).expect(0);
        (file, ran)
    }
}

const C: &[&str] = &["gcc", "-O1", "-pthread", "-x", "c"];

/// A thread that a program measured: its wait is the time that it did not run.
#[derive(Debug, Clone)]
struct Measured {
    name: String,
    tid: i32,
    elapsed: f64,
    wait: f64,
}

/// Reads the lines of the recorded programs.
#[track_caller]
fn measured(printed: &str) -> Vec<Measured> {
    let read = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, tid, elapsed, cpu] = words[..] else { return None };
        let (elapsed, cpu): (f64, f64) = (elapsed.parse().ok()?, cpu.parse().ok()?);
        Some(Measured { name: name.to_owned(), tid: tid.parse().ok()?, elapsed, wait: elapsed - cpu })
    };
    let measured: Vec<Measured> = printed.lines().filter_map(read).collect();
    assert!(!measured.is_empty(), "{printed}");
    measured
}

/// A sample in the output of `script`.
#[derive(Debug)]
struct Sample {
    tid: i32,
    event: String,
    period: f64,
    functions: Vec<String>,
}

#[track_caller]
fn samples(file: &Path) -> Vec<Sample> {
    let file = file.to_str().expect("UTF-8");
    let text = kit::run(&["script", "-i", file, "-F", "tid,event,period,sym"]).expect(0).stdout;
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&words[..], samples.last_mut()) {
            ([tid, period, event, ..], _) if event.ends_with(':') && tid.parse::<i32>().is_ok() => {
                samples.push(Sample {
                    tid: tid.parse().expect("a number"),
                    event: event.trim_end_matches(':').to_owned(),
                    period: period.parse().expect("a period"),
                    functions: Vec::new(),
                });
            }
            ([_, ..], Some(sample)) => sample.functions.push(line.trim().to_owned()),
            _ => {}
        }
    }
    samples
}

fn is_wait(sample: &Sample) -> bool {
    matches!(sample.event.as_str(), "offcpu-time" | "offcpu-runnable")
}

/// Checks that two times differ by less than a share.
#[track_caller]
fn agree(what: &str, got: f64, want: f64, most: f64) {
    let ms = |time: f64| time / 1e6;
    let error = (got / want - 1.0).abs();
    assert!(error <= most, "{what}: {:.2} ms instead of {:.2} ms", ms(got), ms(want));
}

/// How far a mode's waiting time may be from its program's. A disk answers within microseconds, which are
/// not much longer than a switch.
fn tolerance(mode: &str) -> f64 {
    if ["disk", "fault"].contains(&mode) { 0.1 } else { 0.05 }
}

/// Checks the sum of each thread's waits. Returns the number of waits by mode.
#[track_caller]
fn check_sums(file: &Path, threads: &[Measured]) -> HashMap<String, f64> {
    check_sums_of(file, threads, &HashMap::new())
}

/// Checks the sum of each thread's waits, of which a recording may contain only the sum: `known` has the number
/// of waits of another recording.
#[track_caller]
fn check_sums_of(file: &Path, threads: &[Measured], known: &HashMap<String, f64>) -> HashMap<String, f64> {
    // The switch itself counts as CPU time in the program, and partly as waiting in the recording. On a busy
    // machine it takes this long, in nanoseconds, which matters for thousands of short waits for a disk.
    const SWITCH: f64 = 20_000.0;
    let mut sums: HashMap<i32, (f64, f64)> = HashMap::new();
    for sample in samples(file).iter().filter(|sample| is_wait(sample)) {
        let (sum, waits) = sums.entry(sample.tid).or_default();
        (*sum, *waits) = (*sum + sample.period, *waits + 1.0);
    }
    let mut counts = HashMap::new();
    for Measured { name, tid, wait, .. } in threads {
        let (sum, waits) = sums.get(tid).copied().unwrap_or_default();
        let waits = known.get(name).copied().unwrap_or(0.0).max(waits);
        counts.insert(name.clone(), waits);
        let switches = if ["disk", "fault"].contains(&name.as_str()) { waits * SWITCH / wait } else { 0.0 };
        agree(name, sum, *wait, tolerance(name) + switches);
    }
    counts
}

/// Checks that each thread's function `f_NAME` is in the stacks of its waits. New threads wait for a CPU
/// before they have a stack.
#[track_caller]
fn check_functions(file: &Path, threads: &[Measured]) {
    let all = samples(file);
    for Measured { name, tid, .. } in threads {
        let waits = all.iter().filter(|sample| sample.tid == *tid && is_wait(sample)).skip(1);
        let (mut total, mut named) = (0.0, 0.0);
        for sample in waits {
            let is_named = sample.functions.iter().any(|function| function.contains(&format!("f_{name}")));
            total += sample.period;
            named += if is_named { sample.period } else { 0.0 };
        }
        assert!(named >= 0.95 * total, "f_{name}: {named} of {total}");
    }
}

/// Returns the rows of running, waiting and runnable time by these sort keys, including idle threads.
#[track_caller]
fn rows_of_all_states(file: &str, keys: &str) -> Vec<serde_json::Value> {
    let words = ["report", "--json", "-i", file, "-s", keys, "-g", "none", "--no-children", "--idle"];
    let words = [&words[..], &["--state", "all"]].concat();
    let json: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).expect("JSON");
    let events = json["events"].as_array().expect("events");
    let known = ["running", "waiting", "runnable"];
    assert!(events.iter().all(|event| known.contains(&event["name"].as_str().expect("a name"))), "{json}");
    events.iter().flat_map(|event| event["rows"].as_array().expect("rows").clone()).collect()
}

/// Checks that each thread waits mostly at its site, apart from waits for a CPU.
#[track_caller]
fn check_sites(file: &Path, threads: &[Measured], sites: &[(&str, &str)]) {
    let file = file.to_str().expect("UTF-8");
    let rows = &rows_of_all_states(file, "tid,wait_site");
    for Measured { name, tid, .. } in threads {
        let site = sites.iter().find(|(mode, _)| mode == name).expect("a known mode").1;
        let (mut here, mut all) = (0, 0);
        for row in rows.iter().filter(|row| row["tid"] == *tid) {
            let (at, period) = (row["wait_site"].as_str().expect("a site"), row["self"]["period"].as_u64());
            let period = period.expect("a period");
            here += if at == site { period } else { 0 };
            all += if at == "running" || at == "CPU" && site != "CPU" { 0 } else { period };
        }
        assert!(here * 100 >= all * 95 && here > 0, "{name}: {here} of {all} at {site}: {rows:#?}");
    }
}

/// Checks that each installed perf reads the same sums of both events.
#[track_caller]
fn check_perf(file: &Path) {
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for sample in samples(file) {
        *ours.entry(sample.event).or_default() += sample.period as u64;
    }
    assert!(ours.contains_key("offcpu-time") && ours.contains_key("offcpu-runnable"), "{ours:?}");
    for perf in oracle::perfs() {
        let name = file.to_str().expect("UTF-8");
        let script = oracle::says(&perf, &["script", "-F", "event,period", "-i", name]);
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        for line in script.lines() {
            if let [period, event] = line.split_whitespace().collect::<Vec<_>>()[..] {
                let event = event.trim_end_matches(':').to_owned();
                *theirs.entry(event).or_default() += period.parse::<u64>().expect("a period");
            }
        }
        assert_eq!(theirs, ours, "{}", perf.display());
        // `report` gives each event's sum in its head.
        let report = oracle::says(&perf, &["report", "--stdio", "-g", "none", "-s", "comm", "-i", name]);
        let mut event = "";
        for line in report.lines() {
            if let Some((_, name)) = line.split_once("of event '") {
                event = name.trim_end_matches('\'');
            } else if let Some(sum) = line.strip_prefix("# Event count (approx.): ") {
                assert_eq!(sum.parse::<u64>().ok(), ours.get(event).copied(), "{event}: {report}");
            }
        }
        assert_eq!(event, "offcpu-runnable", "{report}");
    }
}

/// Each mode of waiting, and where it waits.
const SITES: [(&str, &str); 11] = [
    ("sleep", "sleep"),
    ("mutex", "mutex"),
    ("condition", "condition"),
    ("pipe", "pipe"),
    ("poll", "poll"),
    ("epoll", "epoll"),
    ("futex", "futex"),
    ("disk", "disk"),
    ("fault", "page fault"),
    ("cpu", "CPU"),
    ("yield", "CPU"),
];

#[test]
fn eleven_ways_to_wait_are_measured_and_named() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, MODES) else { return };
    if !kit::need_kernel_mode() {
        return;
    }
    let program = program.to_str().expect("UTF-8");
    let (file, ran) = lab.record(&["--wall", "-m", "8M"], &[program, "file"]);
    let threads = measured(&ran.stdout);
    assert_eq!(threads.len(), SITES.len());
    let waits = check_sums(&file, &threads);
    check_functions(&file, &threads);
    check_sites(&file, &threads, &SITES);
    if oracle_is_there() {
        check_perf(&file);
    }
    // Waits below the threshold are only summed up.
    let (file, ran) = lab.record(&["--off-cpu", "--off-cpu-thresh", "1h"], &[program, "file"]);
    check_sums_of(&file, &measured(&ran.stdout), &waits);
    let has_stack = |wait: &Sample| wait.functions != ["[unknown]"];
    let all = samples(&file);
    assert!(!all.iter().any(|sample| is_wait(sample) && has_stack(sample)), "{all:#?}");
    // In reports, each thread has a row of them.
    let report = kit::run(&["report", "--stdio", "-g", "none", "-i", file.to_str().expect("UTF-8")]);
    let report = report.expect(0).stdout;
    let is_sum = |line: &str| line.contains(" short ") && line.contains("[short waits]");
    assert!(report.lines().any(is_sum), "{report}");
}

/// Number of times that threads have left a CPU.
#[track_caller]
fn switches_of(file: &Path) -> usize {
    let file = file.to_str().expect("UTF-8");
    let text =
        kit::run(&["script", "--show-switch-events", "-F", "tid,time,event", "-i", file]).expect(0).stdout;
    text.lines().filter(|line| line.contains("PERF_RECORD_SWITCH OUT")).count()
}

#[test]
fn frequent_waits_are_exact_and_named_although_few_stacks_are_sampled() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, PING_PONG) else { return };
    if !kit::need_root() || !kit::need_kernel_mode() {
        return;
    }
    // On a busy machine, the recorder may read the rings too late.
    let record = |_| lab.record(&["--wall", "-m", "64M", "-r", "1"], &[program.to_str().expect("UTF-8")]);
    let mut recordings = (0..5).map(record);
    let whole = recordings.find(|(_, ran)| ran.stderr.contains("none lost"));
    let (file, ran) = whole.expect("a recording without losses");
    let switches = switches_of(&file);
    let all = samples(&file);
    let threads = measured(&ran.stdout);
    assert!(threads.len() == 2 && switches >= 100_000, "{switches} switches of {threads:?}");
    for Measured { name, tid, elapsed, wait } in &threads {
        let waits = || all.iter().filter(|sample| sample.tid == *tid && is_wait(sample));
        // The kernel counts the time of a switch as CPU time, including what perf events do in it: 0.4 µs on an
        // idle machine, and up to 1 µs if other programs use the caches. `check_perf` compares exactly.
        let rows: f64 = waits().map(|wait| wait.period).sum();
        let most = 0.01 * elapsed + 1_500.0 * switches as f64 / 2.0;
        assert!((rows - wait).abs() <= most, "{name}: {rows} ns instead of {wait}, of {elapsed} ns");
        let function = format!("f_{name}");
        let (mut blocked, mut named) = (0.0, 0.0);
        for wait in waits().filter(|wait| wait.event == "offcpu-time") {
            blocked += wait.period;
            let is_named = wait.functions.iter().any(|name| name.contains(&function));
            named += if is_named { wait.period } else { 0.0 };
        }
        assert!(named >= 0.9 * blocked, "{function}: {named} of {blocked}");
        // On a slow machine, threads may switch too rarely for the limit.
        if switches as f64 / elapsed * 1e9 > 50_000.0 {
            assert!(ran.stderr.contains("more than 20,000 context switches per second"), "{}", ran.stderr);
            assert!(waits().count() < switches / 4, "{} of {switches}", waits().count());
        }
    }
    if oracle_is_there() {
        check_perf(&file);
    }
}

fn oracle_is_there() -> bool {
    kit::need_program("perf") && kit::need_root()
}

#[test]
fn lost_stacks_do_not_change_the_sums() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, MODES) else { return };
    let program = program.to_str().expect("UTF-8");
    if !kit::need_root() || !kit::need_kernel_mode() {
        return;
    }
    // A ring of one page has no room for a stack. Its reader must not wait for a CPU, and the modes that
    // switch thousands of times per second are left out: they would lose small records, too.
    let (file, ran) = lab.record(&["--off-cpu", "-m", "1", "-r", "1"], &[program, "file", "calm"]);
    check_sums(&file, &measured(&ran.stdout));
    ran.says(&["records lost"]);
}

#[test]
fn waits_of_rust_threads_are_measured_and_named() {
    // rustc needs a linker.
    if !kit::need_program("cc") {
        return;
    }
    let lab = Lab::new();
    let Some(program) = lab.build(&["rustc", "--edition", "2021", "-O", "--crate-name", "modes"], RUST)
    else {
        return;
    };
    if !kit::need_kernel_mode() {
        return;
    }
    let (file, ran) = lab.record(&["--wall", "-m", "8M"], &[program.to_str().expect("UTF-8")]);
    let threads = measured(&ran.stdout);
    check_sums(&file, &threads);
    check_functions(&file, &threads);
    check_sites(&file, &threads, &[("sleep", "sleep"), ("mutex", "mutex"), ("socket", "socket")]);
}

#[test]
fn waits_of_python_threads_are_measured() {
    if !kit::need_program("python3") || !kit::need_kernel_mode() {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("modes.py"), PYTHON).expect("a script");
    let (file, ran) = lab.record(&["--wall", "-m", "8M"], &["python3", "modes.py"]);
    let threads = measured(&ran.stdout);
    check_sums(&file, &threads);
    check_sites(&file, &threads, &[("sleep", "sleep"), ("lock", "mutex"), ("pipe", "pipe")]);
    // Older versions have no names of functions.
    let asks = "import sys; sys.exit(sys.version_info < (3, 12))";
    if Command::new("python3").args(["-c", asks]).status().expect("python3 starts").success() {
        check_functions(&file, &threads);
    }
}

#[test]
fn running_and_waiting_time_of_each_thread_add_up_to_its_life() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, MODES) else { return };
    let (file, ran) = lab.record(&["--wall", "-m", "8M"], &[program.to_str().expect("UTF-8"), "file"]);
    let mut sums: HashMap<i32, f64> = HashMap::new();
    for sample in samples(&file) {
        *sums.entry(sample.tid).or_default() += sample.period;
    }
    for Measured { name, tid, elapsed, .. } in measured(&ran.stdout) {
        agree(&name, sums.get(&tid).copied().unwrap_or(0.0), elapsed, tolerance(&name));
    }
    // The report finds the same with all sort keys.
    let headline = |keys: &str| {
        let report = kit::run(&["report", "--stdio", "-s", keys, "-i", file.to_str().expect("UTF-8")]);
        let line = report.stdout.lines().find(|line| line.contains(" elapsed, ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{}", report.stdout))
    };
    let by_site = headline("tid,wait_site");
    assert!(by_site.contains(" elapsed, 12 threads: "), "{by_site}");
    assert!(!by_site.contains("of the threads' time"), "{by_site}");
    assert_eq!(headline("sym"), by_site);
}

#[test]
fn moving_and_short_lived_threads_are_measured() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, LIVES) else { return };
    let (file, ran) = lab.record(&["--off-cpu"], &[program.to_str().expect("UTF-8")]);
    let threads = measured(&ran.stdout);
    let mut waits: HashMap<i32, f64> = HashMap::new();
    for sample in samples(&file).iter().filter(|sample| is_wait(sample)) {
        *waits.entry(sample.tid).or_default() += sample.period;
    }
    for (name, lives) in [("moved", 1), ("thread", 30), ("process", 30)] {
        let group: Vec<&Measured> = threads.iter().filter(|thread| thread.name == name).collect();
        assert_eq!(group.len(), lives, "{name}");
        let got: f64 = group.iter().filter_map(|thread| waits.get(&thread.tid)).sum();
        agree(name, got, group.iter().map(|thread| thread.wait).sum(), 0.05);
    }
}

#[test]
fn threads_that_wait_before_and_after_the_recording_are_measured() {
    if !kit::need_program("sh") || !kit::need_perf_events() {
        return;
    }
    let lab = Lab::new();
    // `read` ends when the test closes the pipe.
    let mut waiting = Command::new("cat");
    let waiting = kit::ProcessGuard::start(waiting.stdin(Stdio::piped()).stdout(Stdio::null()));
    kit::wait_until_idle(waiting.id());
    let (file, pid) = (lab.path("perf.data"), waiting.id().to_string());
    let mut pmc = kit::pmc();
    pmc.args(["record", "--wall", "--json", "--duration", "1s", "-p", &pid, "-o"]).arg(&file);
    let ran = kit::Ran::from(pmc.output().expect("pmc starts")).expect(0);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let all = samples(&file);
    assert!(all.len() == 1 && all[0].event == "offcpu-time" && all[0].tid.to_string() == pid, "{all:?}");
    agree("blocked", all[0].period, told["elapsed_ns"].as_f64().expect("a time"), 0.05);
}

/// Threads that sleep 10 ms again and again.
const SLEEPERS: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *sleeps(void *none) { for (;;) usleep(10000); return none; }
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 60; i++) pthread_create(&thread, 0, sleeps, 0);
    pause();
}
"#;

#[test]
fn waits_of_attached_threads_are_known_from_the_start() {
    let lab = Lab::new();
    let Some(program) = lab.build(C, SLEEPERS) else { return };
    if !kit::need_root() || !kit::need_kernel_mode() {
        return;
    }
    let sleepers = kit::ProcessGuard::start(&mut Command::new(program));
    let threads = || std::fs::read_dir(format!("/proc/{}/task", sleepers.id())).map_or(0, Iterator::count);
    kit::wait_for("its threads", || threads() == 61);
    let pid = sleepers.id().to_string();
    let file = lab.path("perf.data");
    let mut pmc = kit::pmc();
    pmc.args(["record", "--wall", "--duration", "0.2s", "-p", &pid, "-o"]).arg(&file);
    kit::Ran::from(pmc.output().expect("pmc starts")).expect(0);
    let all = samples(&file);
    let blocked = || all.iter().filter(|sample| sample.event == "offcpu-time");
    let threads: std::collections::BTreeSet<i32> = blocked().map(|sample| sample.tid).collect();
    assert_eq!(threads.len(), 61);
    let total: f64 = blocked().map(|sample| sample.period).sum();
    let unknown = blocked().filter(|sample| sample.functions.is_empty());
    let unknown: f64 = unknown.map(|sample| sample.period).sum();
    assert!(unknown <= 0.01 * total, "{unknown} of {total}");
}

#[test]
fn user_mode_context_switches_are_known_to_be_silent() {
    let lab = Lab::new();
    let ran = kit::pmc()
        .args(["record", "-e", "context-switches:u", "-o"])
        .arg(lab.path("perf.data"))
        .args(["--", "sleep", "0.1"])
        .output()
        .expect("pmc starts");
    if kit::need_perf_events() {
        kit::Ran::from(ran).expect(0).says(&["context-switches:u never occurs", "record --off-cpu"]);
    }
}
