//! `pmc diff` of recordings with waits, on recordings that are written here: the same program under different
//! load, waits that changed, and different clocks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use pmc_perfdata::perfdata::feature::EventDesc;
use pmc_perfdata::perfdata::{BLOCKED_EVENT, Features, RUNNABLE_EVENT, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, SampleLayout, Thread, encode};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::{BPF_OUTPUT, CPU_CLOCK, CPU_CYCLES, TASK_CLOCK};
use pmc_sys::abi::{Attr, sample_type};
use serde_json::{Value, json};

use crate::kit;
use crate::kit::schema;

const MS: u64 = 1_000_000;
/// Period of the clock in nanoseconds.
const PERIOD: u64 = MS / 4;
const WHO: Thread = Thread { pid: 42, tid: 42 };
/// Sample in user mode.
const USER: u16 = 2;

/// The modules of the program, which stand for its functions.
const MODULES: [&str; 3] = ["render", "parse", "store"];

/// A recording of a program whose functions are all in modules of their own.
#[derive(Clone)]
struct Recorded {
    /// Type and number of the event that measures running time.
    clock: (u32, u64),
    /// Number of samples in `render`, `parse` and `store`.
    samples: [u64; 3],
    /// The waits in `store`, in nanoseconds. Without any, the recording has no waits at all.
    waits: Vec<u64>,
    /// Time spent waiting for a CPU in `render`, in nanoseconds.
    runnable: u64,
}

/// 160 ms running, and three waits of 10 ms.
fn usual() -> Recorded {
    Recorded {
        clock: (kind::SOFTWARE, CPU_CLOCK),
        samples: [400, 200, 40],
        waits: vec![10 * MS; 3],
        runnable: 5 * MS,
    }
}

fn on_cpu(clock: (u32, u64)) -> Recorded {
    Recorded { clock, waits: Vec::new(), runnable: 0, ..usual() }
}

impl Recorded {
    fn write(&self, path: PathBuf) -> PathBuf {
        let fields = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::PERIOD;
        let event = |(kind, config): (u32, u64), id: u64, name: &str| {
            let mut attr = Attr::new(kind, config);
            attr.set_sample_type(fields | sample_type::IDENTIFIER);
            attr.set_period(PERIOD);
            for flag in [Flag::Mmap, Flag::Mmap2, Flag::Comm] {
                attr.set(flag, true);
            }
            RecordedEvent { attr, ids: vec![id], name: Some(name.to_owned()) }
        };
        let clock = pmc_sys::abi::generic::name_of(self.clock.0, self.clock.1).unwrap();
        let mut events = vec![event(self.clock, 1, clock)];
        if !self.waits.is_empty() {
            events.push(event((kind::SOFTWARE, BPF_OUTPUT), 2, BLOCKED_EVENT));
            events.push(event((kind::SOFTWARE, BPF_OUTPUT), 3, RUNNABLE_EVENT));
        }
        let mut records = encode::Encoder::new(SampleLayout::new(&events[0].attr).trailer_size());
        records.comm(WHO, b"prog");
        let address = |module: usize| 0x10_0000 * (module as u64 + 1);
        for (module, name) in MODULES.iter().enumerate() {
            let name = format!("/nowhere/{name}");
            let (addr, name) = (address(module), name.as_bytes());
            let map = Mmap { thread: WHO, addr, len: 0x1000, pgoff: 0, is_data: false, name };
            let file = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
            records.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
        }
        let who = u64::from(WHO.pid as u32) | (WHO.tid as u64) << 32;
        let mut time = 1000 * MS;
        let mut sample = |id: u64, module: usize, period: u64| {
            time += period;
            records.sample(USER, &[id, address(module) + 0x10, who, time, period]);
        };
        for (module, samples) in self.samples.into_iter().enumerate() {
            (0..samples).for_each(|_| sample(1, module, PERIOD));
        }
        self.waits.iter().for_each(|wait| sample(2, 2, *wait));
        if self.runnable > 0 {
            sample(3, 0, self.runnable);
        }
        let names = events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone()));
        let features = Features { event_desc: Some(EventDesc(names.collect())), ..Features::default() };
        let mut writer = Writer::create(&path, &events, &features, WriteOptions::default()).unwrap();
        writer.append(&[records.bytes()]).unwrap();
        writer.finish(&features).unwrap();
        path
    }
}

/// Writes a folder with the recordings, by name.
fn written(recorded: &[(&str, Recorded)]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, of): &(&str, Recorded)| of.write(folder.path().join(name));
    let files = recorded.iter().map(write).collect();
    (folder, files)
}

fn diff(files: &[PathBuf], options: &[&str]) -> kit::Ran {
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    kit::run(&[&["diff", "--no-cache"], options, &files].concat())
}

fn document(files: &[PathBuf], options: &[&str]) -> Value {
    schema::document("diff", &diff(files, &[&["--json"], options].concat()).expect(0).stdout)
}

/// Returns the verdict on a module in an event.
fn verdict<'a>(document: &'a Value, event: usize, module: &str) -> &'a Value {
    let rows = document["events"][event]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["dso"] == module).unwrap_or_else(|| panic!("{module}: {rows:?}"));
    &row["changes"][0]["verdict"]
}

/// Returns the names of the events.
fn names(document: &Value) -> Vec<&str> {
    document["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect()
}

#[test]
fn load_is_not_a_change_of_running_time() {
    // The same work, once with the machine to itself, and once with 900 ms of waiting for a CPU.
    let busy = Recorded { runnable: 900 * MS, samples: [404, 197, 41], ..usual() };
    let (_folder, files) = written(&[("quiet", usual()), ("busy", busy)]);
    let text = diff(&files, &[]).expect(0).prints(&[
        "Event 'running (cpu-clock)'",
        "640 samples, 160 ms; 5.00 ms waiting for a CPU",
        "642 samples, 160 ms  (+0.3%); 900 ms waiting for a CPU",
        " 0 rows differ by more than sampling noise, 3 are within noise.",
    ]);
    assert!(!text.stdout.contains("more\n") && !text.stdout.contains("900 ms  "), "{}", text.stdout);
    for how in ["time", "delta-abs", "ratio", "wdiff:1,1"] {
        let document = document(&files, &["-c", how]);
        assert_eq!(names(&document), ["cpu-clock", "waiting"]);
        assert_eq!(document["events"][0]["states"], json!(["running"]));
        assert_eq!(document["events"][0]["thread_times"][1]["runnable_ns"], 900 * MS);
        for module in MODULES {
            assert_eq!(*verdict(&document, 0, module), "within noise", "{how} {module}");
        }
    }
    // Runs under different load, as groups.
    let runs: Vec<(String, Recorded)> = (0..8u64)
        .map(|run| {
            let load = if run < 4 { 10 } else { 800 };
            let samples = [400 + run * 3 % 5, 200 + run * 7 % 4, 40];
            (run.to_string(), Recorded { runnable: (load + run) * MS, samples, ..usual() })
        })
        .collect();
    let runs: Vec<(&str, Recorded)> = runs.iter().map(|(name, of)| (name.as_str(), of.clone())).collect();
    let (_folder, files) = written(&runs);
    let groups = ["--vs"].into_iter().chain(files[4..].iter().map(|file| file.to_str().unwrap()));
    let gate = [&["--fail-if", "worse > 1% and p < 0.05"][..], &groups.collect::<Vec<_>>()].concat();
    let old: Vec<&str> = files[..4].iter().map(|file| file.to_str().unwrap()).collect();
    kit::run(&[&["diff", "--no-cache"][..], &old, &gate].concat()).expect(0).prints(&[
        "running (cpu-clock)",
        "11.5 ms waiting for a CPU",
        "806 ms waiting for a CPU",
        "pass",
    ]);
}

#[test]
fn waits_of_two_recordings_are_shown_without_a_verdict() {
    let longer = Recorded { waits: vec![30 * MS; 3], ..usual() };
    let (_folder, files) = written(&[("old", usual()), ("new", longer)]);
    let text = diff(&files, &[]).expect(0).stdout;
    let (_, waits) = text.split_once("# Event 'waiting'").unwrap();
    assert!(waits.contains("3 waits, 30.0 ms  ") && waits.contains("3 waits, 90.0 ms  (+200.0%)"), "{text}");
    let row = waits.lines().find(|line| line.contains("store")).unwrap();
    assert!(row.contains("30.0 ms  90.0 ms  +60.0 ms  "), "{row}");
    assert!(!row.contains('±') && !row.contains("noise"), "{row}");
    assert!(waits.contains("(--vs)"), "{text}");
    let document = document(&files, &["-c", "time"]);
    let change = &document["events"][1]["rows"][0]["changes"][0];
    assert_eq!(change["verdict"], "not judged");
    assert_eq!(change["computed"], json!({"value": 60e6, "low": null, "high": null}));
    assert!(["error", "low", "high", "p", "p_adjusted"].iter().all(|field| change[field].is_null()));
    let csv = diff(&files, &["--csv"]).expect(0).stdout;
    let mut fields = csv.lines().map(|line| line.split(',').count());
    let columns = fields.next().unwrap();
    assert!(fields.all(|count| count == columns) && csv.contains("Waits for"), "{csv}");
    assert!(csv.contains("waiting,100.00%,100.00%,+0.00,,,,not judged,"), "{csv}");
}

#[test]
fn waits_of_groups_are_judged_by_the_runs() {
    // There are only three waits a run, but each is measured.
    let run = |run: usize| {
        let wait = if run < 4 { 10 } else { 30 };
        Recorded { waits: vec![wait * MS + run as u64 * MS / 10; 3], ..usual() }
    };
    let (folder, files) = written(&[
        ("0", run(0)),
        ("1", run(1)),
        ("2", run(2)),
        ("3", run(3)),
        ("4", run(4)),
        ("5", run(5)),
        ("6", run(6)),
        ("7", run(7)),
    ]);
    let path = |number: usize| files[number].to_str().unwrap();
    let vs = ["--vs", path(4), path(5), path(6), path(7)];
    let old = [path(0), path(1), path(2), path(3)];
    let ran = kit::run(&[&["diff", "--no-cache", "--json"][..], &old, &vs].concat()).expect(0);
    let document = schema::document("diff-vs", &ran.stdout);
    assert_eq!(names(&document), ["cpu-clock", "waiting"]);
    let verdicts = |event: usize| {
        let rows = document["events"][event]["rows"].as_array().unwrap().iter();
        rows.map(|row| row["group_change"]["verdict"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((verdicts(0), verdicts(1)), (vec!["within noise"; 3], vec!["more"]));
    drop(folder);
}

#[test]
fn state_selects_what_is_compared() {
    let longer = Recorded { runnable: 900 * MS, ..usual() };
    let plain = on_cpu((kind::SOFTWARE, CPU_CLOCK));
    let (_folder, files) = written(&[("old", usual()), ("new", longer), ("plain", plain)]);
    let (pair, mixed) = (&files[..2], [files[0].clone(), files[2].clone()]);
    for (state, events, states) in [
        ("running", &["cpu-clock"][..], &["running"][..]),
        ("blocked", &["waiting"], &["blocked"]),
        ("runnable", &["waiting for a CPU"], &["runnable"]),
        ("waiting", &["waiting, also for a CPU"], &["runnable", "blocked"]),
    ] {
        let document = document(pair, &["--state", state]);
        assert_eq!((names(&document), &document["events"][0]["states"]), (events.to_vec(), &json!(states)));
    }
    assert_eq!(names(&document(pair, &["--state", "running,blocked"])), ["cpu-clock", "waiting"]);
    diff(pair, &["--state", "runnable"]).expect(0).prints(&["5.00 ms  900 ms  +895 ms  "]);
    diff(pair, &["--state", "sleepy"]).expect(2).says(&["not a thread state"]);
    diff(&mixed, &["--state", "running"]).expect(0);
    diff(&mixed, &["--state", "blocked"]).expect(1).says(&["plain has no waits", "pmc record --wall"]);
}

#[test]
fn different_clocks_compare_running_time() {
    let (cycles, task) = ((kind::HARDWARE, CPU_CYCLES), (kind::SOFTWARE, TASK_CLOCK));
    let (_folder, files) = written(&[
        ("wall", usual()),
        ("cpu", on_cpu((kind::SOFTWARE, CPU_CLOCK))),
        ("task", on_cpu(task)),
        ("cycles", on_cpu(cycles)),
        ("faults", on_cpu((kind::SOFTWARE, 2))),
    ]);
    let [wall, cpu, task, cycles, faults] = [0, 1, 2, 3, 4].map(|at: usize| files[at].clone());
    let no_waits = "has no waits, so only running time is compared";
    for (base, new, event, said) in [
        (&wall, &cpu, "cpu-clock", &[no_waits][..]),
        (&cpu, &wall, "cpu-clock", &[no_waits]),
        (&wall, &task, "cpu-clock", &["task-clock is compared with cpu-clock; both are CPU time", no_waits]),
        (&cpu, &task, "cpu-clock", &["task-clock is compared with cpu-clock; both are CPU time"]),
        (&wall, &cycles, "cpu-clock", &["so only shares are comparable", no_waits]),
        (&cycles, &wall, "cycles", &["so only shares are comparable", no_waits]),
    ] {
        let pair = [base.clone(), new.clone()];
        let text = diff(&pair, &[]).expect(0).prints(said);
        assert!(said.contains(&no_waits) || !text.stdout.contains(no_waits), "{}", text.stdout);
        let document = document(&pair, &[]);
        assert_eq!(names(&document), [event]);
        assert!(MODULES.iter().all(|module| *verdict(&document, 0, module) == "within noise"));
        assert_eq!(document["notes"].as_array().unwrap().len(), said.len(), "{document}");
    }
    // Cycles and nanoseconds have no common unit.
    let mixed = [wall.clone(), cycles.clone()];
    diff(&mixed, &["-c", "time"]).expect(2).says(&["not all recordings measure time", "-c delta-abs"]);
    let vs = [wall.to_str().unwrap(), "--vs", cycles.to_str().unwrap(), "--json"];
    let groups = kit::run(&[&["diff", "--no-cache"][..], &vs].concat()).expect(0).stdout;
    assert_eq!(schema::document("diff-vs", &groups)["compute"], "share");
    diff(&[wall.clone(), faults], &[]).expect(1).says(&["no event in common", "both with pmc profile"]);
    // The tool of `pmc mcp` names no events or files in its sentences.
    let scope = |before: &Path, after: &Path| {
        let answer = ask_server(before, after);
        assert_eq!(answer["isError"], false, "{answer}");
        answer["structuredContent"]["scope"].as_array().unwrap().len()
    };
    assert_eq!((scope(&wall, &cpu), scope(&wall, &task), scope(&wall, &cycles)), (1, 2, 2));
}

/// Calls the tool `diff` of `pmc mcp`.
fn ask_server(before: &Path, after: &Path) -> Value {
    let mut command = kit::pmc();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let params = json!({"name": "diff", "arguments": {"before": before, "after": after}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    writeln!(server.stdin.take().unwrap(), "{call}").unwrap();
    let answer = server.wait_with_output().unwrap().stdout;
    serde_json::from_slice::<Value>(&answer).unwrap()["result"].take()
}
