//! `pmc sched` compared with perf, on recordings of perf's and of pmc's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kit;
use crate::kit::lab::Lab;
use crate::kit::oracle;

/// Sleepers, a pair that plays ping-pong through pipes, and tasks that compete for the CPU.
const WORK: &str = r#"
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
        int ping[2], pong[2];
        char ball;
        if (pipe(ping) || pipe(pong)) return 1;
        for (int i = 0; i < 3; i++)
            if (!fork()) { burn_ms(100); _exit(0); }
        for (int i = 0; i < 3; i++)
            if (!fork()) { for (int n = 0; n < 20; n++) usleep(2000); _exit(0); }
        if (!fork()) {
            close(ping[1]);
            while (read(ping[0], &ball, 1) == 1) if (write(pong[1], &ball, 1) != 1) break;
            _exit(0);
        }
        if (!fork()) {
            for (int n = 0; n < 200; n++) if (write(ping[1], "x", 1) != 1 || read(pong[0], &ball, 1) != 1) break;
            _exit(0);
        }
        close(ping[1]); close(pong[1]); close(ping[0]); close(pong[0]);
        while (wait(0) > 0);
        return 0;
    }"#;

/// Name of the program.
const NAME: &str = "schedwork";

struct SchedLab {
    lab: Lab,
    program: PathBuf,
    perfs: Vec<PathBuf>,
    /// The recordings of the whole machine contain only one program of this name.
    _exclusive: MutexGuard<'static, ()>,
}

static EXCLUSIVE: Mutex<()> = Mutex::new(());

impl SchedLab {
    fn new() -> Option<Self> {
        let lab = Lab::new()?;
        let program = lab.build(NAME, WORK, &["-O1"]);
        let exclusive = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { lab, program, perfs: oracle::perfs(), _exclusive: exclusive })
    }

    fn program(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// A recording of perf's.
    fn theirs(&self, options: &[&str]) -> PathBuf {
        let file = self.lab.path("theirs.data");
        let words = ["sched", "record", "-q", "-o", file.to_str().unwrap()];
        let recorded = oracle::ask("perf", &[&words[..], options, &["--", self.program()]].concat());
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        file
    }

    /// A recording of pmc's.
    fn ours(&self) -> PathBuf {
        let file = self.lab.path("ours.data");
        kit::run(&["sched", "record", "-q", "-o", file.to_str().unwrap(), "--", self.program()]).expect(0);
        file
    }

    fn perf(&self, perf: &Path, words: &[&str], file: &Path) -> Vec<String> {
        let words = [&["sched"], words, &["-i", file.to_str().unwrap()]].concat();
        oracle::says(perf, &words).lines().map(str::to_owned).collect()
    }
}

fn pmc(words: &[&str], file: &Path) -> Vec<String> {
    let words = [&["sched"], words, &["-i", file.to_str().unwrap()]].concat();
    kit::run(&words).expect(0).stdout.lines().map(str::to_owned).collect()
}

/// The table's rows, without the columns that perf does not have.
fn latency_rows(lines: &[String]) -> Vec<&str> {
    let rows = lines.iter().filter(|line| line.contains("| avg:"));
    rows.map(|row| row.split(" | p50:").next().unwrap()).collect()
}

#[test]
fn latency_equals_perf_on_recordings_of_both() {
    let Some(lab) = SchedLab::new() else { return };
    let [_, newest] = &lab.perfs[..] else { return };
    for file in [lab.theirs(&[]), lab.ours()] {
        for options in [&[][..], &["-p"], &["-s", "max"], &["-p", "-s", "runtime,max"]] {
            let words = [&["latency"], options].concat();
            let (theirs, ours) = (lab.perf(newest, &words, &file), pmc(&words, &file));
            let (mut theirs, mut ours_rows) = (latency_rows(&theirs), latency_rows(&ours));
            // If the recording first sees a task by its run time, perf counts the time from then on as a delay,
            // and ignores the wake-up. That happens to tasks which slept while the kernel enabled the events.
            let name = |row: &str| row.split('|').next().unwrap_or_default().to_owned();
            let early = theirs.iter().filter(|row| !ours_rows.contains(row)).map(|row| name(row));
            let early: Vec<String> = early.collect();
            assert!(early.len() < 4 && early.iter().all(|task| !task.contains(NAME)), "{early:?}");
            theirs.retain(|row| !early.contains(&name(row)));
            ours_rows.retain(|row| !early.contains(&name(row)));
            assert_eq!(ours_rows, theirs, "{options:?}");
            assert!(ours.iter().any(|line| line.contains(NAME)), "{ours:#?}");
        }
        // perf 6.1 ignores `sched_waking` and the state of preempted tasks, so it misses most delays. The times on
        // CPUs are the same.
        let older = lab.perf(&lab.perfs[0], &["latency", "-p"], &file);
        let ours = pmc(&["latency", "-p"], &file);
        let runtimes = |rows: &[&str]| -> HashMap<String, String> {
            let parts = |row: &&str| {
                let mut parts = row.split('|').map(str::to_owned);
                parts.next().zip(parts.next())
            };
            rows.iter().filter_map(parts).collect()
        };
        let (older, ours) = (runtimes(&latency_rows(&older)), runtimes(&latency_rows(&ours)));
        let differs = |(name, runtime): &(&String, &String)| ours.get(*name) != Some(runtime);
        let (other, same): (Vec<_>, Vec<_>) = older.iter().partition(differs);
        assert!(same.len() > 4 && other.len() * 10 < same.len(), "{other:#?}\n{ours:#?}");
        assert!(other.iter().all(|(name, _)| !name.contains(NAME)), "{other:#?}");
    }
}

/// Time and CPU of a line of a history.
fn place(line: &str) -> Option<&str> {
    line.find(']').map(|end| &line[..end])
}

/// Compares the lines of a history. Differs where perf knows less: it forgets the names and numbers of exited
/// threads, and does not notice that a switch is missing.
fn assert_same_history(theirs: &[String], ours: &[String], what: &str) {
    let is_nameless =
        |line: &str| line.contains("[-1") || line.contains(" :") || !line.contains(&format!("{NAME}["));
    let is_unknown = |line: &str| line.contains("[times unknown");
    let mut by_place: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in ours {
        by_place.entry(place(line).unwrap_or_default()).or_default().push(line);
    }
    let (mut same, mut other) = (0, Vec::new());
    for line in theirs.iter().skip(3) {
        let here = place(line).and_then(|place| by_place.get(place)).map_or(&[][..], |lines| lines);
        if here.contains(&line.as_str()) {
            same += 1;
        } else if !here.iter().any(|ours| is_unknown(ours)) {
            assert!(is_nameless(line), "{what}: {line}\n{here:#?}");
            other.push(line);
        }
    }
    assert!(same > 500 && other.len() * 8 < same, "{what}: {same} lines are the same, not {other:#?}");
    // perf and pmc have the same number of lines.
    assert_eq!(theirs.len(), ours.len(), "{what}");
    assert_eq!(theirs[..3], ours[..3], "{what}");
}

#[test]
fn timehist_equals_perf_on_recordings_of_both() {
    let Some(lab) = SchedLab::new() else { return };
    let [_, newest] = &lab.perfs[..] else { return };
    for file in [lab.theirs(&[]), lab.ours()] {
        for options in [
            &[][..],
            &["-w"],
            &["-w", "-n", "--state"],
            &["-V", "-M", "-w"],
            &["-P", "--state", "--show-prio"],
        ] {
            let words = [&["timehist"], options].concat();
            let (theirs, ours) = (lab.perf(newest, &words, &file), pmc(&words, &file));
            assert_same_history(&theirs, &ours, &format!("{options:?}"));
        }
        for options in [&["map"][..], &["map", "--compact"]] {
            // If a thread renames another one, perf explains the short name of the first. At the end, it counts
            // lost events.
            let columns = |lines: Vec<String>| -> Vec<String> {
                let rows = lines.iter().filter(|line| !line.trim_start().starts_with("INFO:"));
                rows.map(|line| line.split("secs").next().unwrap().to_owned()).collect()
            };
            assert_eq!(columns(pmc(options, &file)), columns(lab.perf(newest, options, &file)));
        }
    }
}

#[test]
fn timehist_has_the_call_chains_of_perf() {
    let Some(lab) = SchedLab::new() else { return };
    let [_, newest] = &lab.perfs[..] else { return };
    let file = lab.theirs(&["-g"]);
    let rows = |lines: Vec<String>| -> Vec<String> {
        // A sleeper has only functions of the kernel among the first five.
        lines.into_iter().filter(|line| line.contains("hrtimer_nanosleep")).collect()
    };
    let ours = rows(pmc(&["timehist"], &file));
    // If the recording lacks the switch to a task, pmc knows no times, and perf takes those of another switch.
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let unknown: Vec<_> = ours
        .iter()
        .map(|line| words(line))
        .filter(|row| row[3..6].iter().all(|time| time == "0.000"))
        .collect();
    let mut theirs = rows(lab.perf(newest, &["timehist"], &file));
    theirs.retain(|line| !unknown.iter().any(|row| words(line)[..3] == row[..3]));
    let same = theirs.iter().filter(|line| ours.contains(line)).count();
    assert!(same > 30 && same * 10 > theirs.len() * 9, "{theirs:#?}\n{ours:#?}");
    assert!(pmc(&["timehist", "-G"], &file).iter().all(|line| !line.contains("hrtimer_nanosleep")));
}

#[test]
fn summary_accounts_for_each_time_on_a_cpu() {
    let Some(lab) = SchedLab::new() else { return };
    let file = lab.ours();
    let lines = pmc(&["timehist", "-S", "--blame", "--json"], &file);
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| kit::schema::document("sched-timehist", line)).collect();
    let cut = pmc(&["timehist", "-S", "--blame", "--json", "--limit", "2"], &file);
    assert_eq!(cut[..2], lines[..2]);
    let [omitted, summary] = [&cut[2], &cut[3]].map(|line| kit::schema::document("sched-timehist", line));
    assert_eq!(omitted["omitted"]["lines"], lines.len() - 3);
    let tasks = summary["tasks"].as_array().unwrap().len();
    assert_eq!(
        summary["omitted"]["tasks"],
        objects.last().unwrap()["tasks"].as_array().unwrap().len() - tasks
    );
    assert_eq!((cut.len(), tasks), (4, 2));
    let (summary, rows) = objects.split_last().unwrap();
    let rows: Vec<_> = rows.iter().filter(|row| row["kind"] == "run").collect();
    let mut counts: HashMap<i64, (u64, u64)> = HashMap::new();
    for row in &rows {
        let sums = counts.entry(row["task"]["tid"].as_i64().unwrap()).or_default();
        sums.0 += 1;
        // `null` if the recording lacks the event that gave the task its CPU.
        sums.1 += row["run_ns"].as_u64().unwrap_or(0);
        // The tasks that ran during a delay ran for at most as long.
        let ran = &row["ran"];
        let named: u64 =
            ran["tasks"].as_array().unwrap().iter().map(|task| task["ns"].as_u64().unwrap()).sum();
        assert!(named + ran["others_ns"].as_u64().unwrap() <= row["delay_ns"].as_u64().unwrap_or(0), "{row}");
    }
    let tasks = summary["tasks"].as_array().unwrap();
    let ours: Vec<_> = tasks.iter().filter(|task| task["task"]["comm"] == NAME).collect();
    assert!(ours.len() >= 9 && ours.iter().all(|task| task["ended"] == true), "{ours:#?}");
    for task in ours {
        let sums = (task["count"].as_u64().unwrap(), task["run_ns"].as_u64().unwrap());
        assert_eq!(counts.get(&task["task"]["tid"].as_i64().unwrap()), Some(&sums), "{task}");
    }
    assert!(pmc(&["timehist", "-s"], &file).iter().any(|line| line == "Terminated tasks:"));
}

#[test]
fn the_longest_delay_names_the_task_that_ran_meanwhile() {
    let Some(lab) = SchedLab::new() else { return };
    let file = lab.lab.path("one-cpu.data");
    // On one CPU, a hog of the program waits only while another task runs there.
    let words = ["sched", "record", "-q", "-o", file.to_str().unwrap(), "--", "taskset", "-c", "0"];
    kit::run(&[&words[..], &[lab.program()]].concat()).expect(0);
    let document = pmc(&["latency", "-p", "--json"], &file).join("\n");
    let document = kit::schema::document("sched-latency", &document);
    let cut = pmc(&["latency", "-p", "--json", "--limit", "1"], &file).join("\n");
    let cut = kit::schema::document("sched-latency", &cut);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(cut["rows"].as_array().unwrap()[..], rows[..1]);
    assert_eq!(cut["omitted"]["rows"], rows.len() - 1);
    let rows = document["rows"].as_array().unwrap();
    let mut hogs: Vec<_> = rows.iter().filter(|row| row["comm"] == NAME).collect();
    hogs.sort_by_key(|row| std::cmp::Reverse(row["runtime_ns"].as_u64()));
    assert!(hogs.len() >= 9, "{rows:#?}");
    hogs.truncate(3);
    for row in hogs {
        let longest = &row["max"];
        let length = longest["end_ns"].as_u64().unwrap() - longest["begin_ns"].as_u64().unwrap();
        assert_eq!(row["max_ns"].as_u64(), Some(length));
        assert!(row["p50_ns"].as_u64() <= row["p99_ns"].as_u64() && row["p99_ns"].as_u64() <= Some(length));
        assert_eq!(longest["cpu"], 0);
        let ran = longest["ran"]["tasks"].as_array().unwrap();
        assert!(!ran.is_empty() && ran.iter().all(|task| task["tid"] != row["tid"]), "{row:#}");
    }
}

#[test]
fn ordinary_user_records_the_switches_of_own_tasks() {
    let Some(lab) = SchedLab::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let program = folder.path().join(NAME);
    kit::copy_program(&lab.program, &program);
    let file = folder.path().join("own.data");
    let words = ["sched", "record", "-o", file.to_str().unwrap(), "--", program.to_str().unwrap()];
    let Some(ran) = kit::as_nobody(&words) else { return };
    let ran = ran.expect(0).says(&["without wake-ups or other tasks", "perf_event_paranoid"]);
    // The recording has no samples, but what `timehist` reads: each sleep of the tasks is a switch.
    let summary = ran.stderr.lines().find(|line| line.contains("none lost")).expect("a summary");
    assert!(summary.contains(" context switches, none lost") && !summary.contains("samples"), "{summary}");
    let lines = pmc(&["latency", "-p"], &file);
    assert_eq!(latency_rows(&lines).iter().filter(|row| row.contains(NAME)).count(), 9, "{lines:#?}");
    let said = lines.join("\n");
    assert!(said.contains("Avg wait") && said.contains("the recording has no wake-ups"), "{said}");
    let runs = pmc(&["timehist", "--json"], &file);
    let runs = runs.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let waits: u64 = runs.filter_map(|run| run["wait_ns"].as_u64()).sum();
    // Three tasks sleep for at least 40 ms each.
    assert!(waits > 120_000_000, "{waits}");
    // The idle times of CPUs are unknown.
    assert!(!pmc(&["timehist", "-s"], &file).iter().any(|line| line.contains("idle")));
    let all = ["sched", "record", "-a", "-o", file.to_str().unwrap(), "--", "true"];
    kit::as_nobody(&all).unwrap().expect(1).says(&["cannot record scheduler events on whole CPUs", "try: "]);
}

#[test]
fn recording_without_scheduler_events_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("spin", "int main(void) { burn_ms(100); }", &[]);
    let file = lab.record("perf.data", &["-e", "cpu-clock"], &program);
    for command in ["latency", "timehist", "map"] {
        let words = ["sched", command, "-i", file.to_str().unwrap()];
        kit::run(&words).expect(1).says(&["has no scheduler events", "try: pmc sched record -- COMMAND"]);
    }
    let path = file.to_str().unwrap();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    kit::wait_until_idle(sleeper.id());
    let pid = sleeper.id().to_string();
    let record =
        ["record", "-q", "--switch-events", "-e", "cpu-clock:u", "-p", &pid, "--timeout", "50ms", "-o", path];
    kit::run(&record).expect(0);
    sleeper.kill().expect("it is killed");
    sleeper.wait().expect("it ends");
    for what in ["latency", "timehist"] {
        let ran = kit::run(&["sched", what, "-i", path]).expect(1);
        ran.says(&[
            "has no context switches",
            "no recorded thread switched on or off a CPU",
            "pmc record --off-cpu",
        ]);
    }
}

#[test]
fn damaged_recordings_give_a_result_or_an_error() {
    let Some(lab) = SchedLab::new() else { return };
    let whole = std::fs::read(lab.ours()).unwrap();
    let file = lab.lab.path("damaged.data");
    // A fixed sequence of numbers (Knuth's MMIX), so that a failure can be repeated.
    let mut state = 1u64;
    let mut number = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..24 {
        let mut bytes = whole.clone();
        for _ in 0..1 << (round % 12) {
            // The header keeps its magic number and sizes.
            let at = 200 + number(bytes.len() - 200);
            bytes[at] = number(256) as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(whole.len() - number(whole.len() / 2));
        }
        std::fs::write(&file, bytes).unwrap();
        for way in [
            &["latency", "-p"][..],
            &["timehist", "-w", "-M", "-V", "-S", "--blame", "--state"],
            &["timehist", "--json", "-I", "-S"],
            &["map", "--compact"],
        ] {
            let words = [&["sched"], way, &["-i", file.to_str().unwrap()]].concat();
            let ran = kit::run(&words);
            assert!(matches!(ran.status, Some(0 | 1)), "round {round}, {way:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn single_tasks_are_recorded_by_their_switches() {
    let Some(lab) = SchedLab::new() else { return };
    let file = lab.lab.path("task.data");
    let mut naps = Command::new("sh");
    let naps = kit::ProcessGuard::start(naps.args(["-c", "while :; do sleep 0.01; done"]));
    let pid = naps.id().to_string();
    let words = ["sched", "record", "-p", &pid, "-o", file.to_str().unwrap(), "--timeout", "500ms"];
    kit::run(&words).expect(0).says(&["without wake-ups or other tasks", "without -p"]);
    let document = pmc(&["latency", "--json"], &file).join("\n");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert!(document["kind"] == "wait" && rows.iter().any(|row| row["comm"] == "sh"), "{document:#}");
}
