//! `pmc latency`: the time between two events, live and from recordings of pmc and perf; perf's samples are
//! the oracle for each duration.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::kit::lab::Lab;
use crate::kit::{self, oracle};
use pmc_perfdata::perfdata::feature::EventDesc;
use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::encode::Encoder;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::{Attr, sample_type};

/// Sleeps 30 times for 1 ms, 20 times for 5 ms and 10 times for 20 ms, without other such calls. Then calls
/// itself 3 deep, and asks for its parent 200,000 times if there is an argument.
const PROGRAM: &str = "
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) static void nap(long ms) { struct timespec t = {0, ms * 1000000}; clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0); }
volatile int sink;
__attribute__((noinline)) void nested(int depth) { if (depth > 1) nested(depth - 1); sink++; }
__attribute__((noinline)) void sleepy(void) { for (int i = 0; i < 10; i++) nap(20); sink++; }
__attribute__((noinline)) void ask(void) { syscall(SYS_getppid); sink++; }
int main(int argc, char **argv) {
    for (int i = 0; i < 30; i++) nap(1);
    for (int i = 0; i < 20; i++) nap(5);
    sleepy();
    nested(3);
    if (argc > 1) for (int i = 0; i < 200000; i++) ask();
    return 0;
}";
const FLAGS: [&str; 3] = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];

const ENTER: &str = "syscalls:sys_enter_clock_nanosleep";
const EXIT: &str = "syscalls:sys_exit_clock_nanosleep";

/// A folder with the program, if this machine can run these tests.
fn ready() -> Option<(Lab, String)> {
    let met = kit::need_perf_events() && kit::need_tracefs("syscalls");
    let lab = Lab::new().filter(|_| met)?;
    let program = lab.build("naps", PROGRAM, &FLAGS).to_str()?.to_owned();
    Some((lab, program))
}

/// Runs `pmc latency` with these words, and returns its last JSON document.
#[track_caller]
fn json(words: &[&str]) -> Value {
    let ran = kit::run(&[&["latency", "--json"], words].concat()).expect(0);
    kit::schema::document("latency", ran.stdout.lines().last().expect("a document"))
}

fn number(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} in {document}"))
}

/// Number of intervals of at least this many nanoseconds, which must be the start of a range.
fn at_least(document: &Value, ns: u64) -> u64 {
    let ranges = document["ranges"].as_array().expect("ranges");
    let long = ranges.iter().filter(|range| number(range, "/from_ns") >= ns);
    long.map(|range| number(range, "/count")).sum()
}

/// Checks the intervals of the program's naps. A nap is never shorter than requested.
#[track_caller]
fn has_naps(document: &Value) {
    for (path, want) in [
        ("/durations/count", 60),
        ("/counts/begins", 60),
        ("/counts/ends", 60),
        ("/counts/paired", 60),
        ("/counts/ends_without_begin", 0),
        ("/counts/begins_replaced", 0),
        ("/counts/unfinished", 0),
        ("/counts/lost", 0),
    ] {
        assert_eq!(number(document, path), want, "{path} in {document}");
    }
    assert!(number(document, "/durations/min_ns") >= 1_000_000);
    assert!(at_least(document, 5_000_000) >= 30 && at_least(document, 20_000_000) >= 10, "{document}");
    assert_eq!(document["slowest"].as_array().map(Vec::len), Some(5));
    assert!(number(document, "/slowest/0/duration_ns") == number(document, "/durations/max_ns"));
}

#[test]
fn presets_can_be_measured_together() {
    let Some((lab, program)) = ready() else { return };
    let presets = ["syscall:clock_nanosleep", "syscall:exit_group", "--"];
    let ran = kit::run(&[&["latency", "--json"], &presets[..], &[&program]].concat()).expect(0);
    let documents: Vec<Value> =
        ran.stdout.lines().map(|line| kit::schema::document("latency", line)).collect();
    let [naps, exits] = &documents[..] else { panic!("{documents:?}") };
    has_naps(naps);
    // A call that does not return has no end.
    assert_eq!((number(exits, "/counts/begins"), number(exits, "/counts/ends")), (1, 0));
    assert_eq!(exits["begin"][0], "syscalls:sys_enter_exit_group");
    let text = kit::run(&[&["latency"], &presets[..], &[&program]].concat()).expect(0).stdout;
    assert_eq!(text.matches("\n\nTime from syscalls:sys_enter_exit_group").count(), 1, "{text}");
    // A filter belongs to the preset before it.
    let filtered =
        ["latency", "--json", "syscall:clock_nanosleep", "--filter", "common_pid == 1", presets[1], "--"];
    let ran = kit::run(&[&filtered[..], &[&program]].concat()).expect(0);
    let begins = |line| number(&kit::schema::document("latency", line), "/counts/begins");
    assert_eq!(ran.stdout.lines().map(begins).collect::<Vec<_>>(), [0, 1]);
    // The same from a recording.
    let file = lab.path("both.data");
    let file = file.to_str().expect("a name");
    let events = format!("{ENTER},{EXIT},syscalls:sys_enter_exit_group,syscalls:sys_exit_exit_group");
    kit::run(&["record", "-q", "-c", "1", "-e", &events, "-o", file, "--", &program]).expect(0);
    let ran = kit::run(&["latency", "--json", presets[0], presets[1], "-i", file]).expect(0);
    let documents: Vec<Value> =
        ran.stdout.lines().map(|line| kit::schema::document("latency", line)).collect();
    has_naps(&documents[0]);
    assert_eq!((documents.len(), number(&documents[1], "/counts/begins")), (2, 1));
    let mixed = kit::run(&["latency", "syscall:clock_nanosleep", "runq", "--", &program]).expect(0);
    assert!(mixed.stderr.contains("measuring syscall:clock_nanosleep on all CPUs too"), "{}", mixed.stderr);
}

#[test]
fn system_calls_are_measured_exactly() {
    let Some((_lab, program)) = ready() else { return };
    has_naps(&json(&["syscall:clock_nanosleep", "--", &program]));
    has_naps(&json(&[ENTER, EXIT, "-k", "tid", "--", &program]));
    let document = json(&["syscall:clock_nanosleep", "--heatmap", "-I", "50", "--", &program]);
    has_naps(&document);
    let slices = document["heat_map"]["slices"].as_array().expect("slices");
    let in_slice = |slice: &Value| {
        slice.as_array().expect("ranges").iter().map(|range| number(range, "/count")).sum::<u64>()
    };
    assert_eq!(slices.iter().map(in_slice).sum::<u64>(), 60);
    let text = kit::run(&["latency", "syscall:clock_nanosleep", "--heatmap", "--", &program]).expect(0);
    text.prints(&[
        "60 intervals",
        "p99.9",
        "within 1.6%",
        "Slowest",
        "Over time",
        "60 begin, 60 end, 60 paired",
    ]);
}

#[test]
fn intervals_are_printed_while_measuring() {
    let Some((_lab, program)) = ready() else { return };
    let words = ["latency", "--json", "-I", "20", "syscall:clock_nanosleep", "--", &program];
    let ran = kit::run(&words).expect(0);
    let documents: Vec<Value> =
        ran.stdout.lines().map(|line| kit::schema::document("latency", line)).collect();
    let (total, slices) = documents.split_last().expect("documents");
    has_naps(total);
    let sum: u64 = slices.iter().map(|slice| number(slice, "/durations/count")).sum();
    assert!(sum == 60 && slices.len() > 1, "{sum} in {} slices", slices.len());
    let text = kit::run(&["latency", "-I", "20", "syscall:clock_nanosleep", "--", &program]).expect(0);
    let lines: Vec<&str> = text.stdout.lines().take_while(|line| !line.starts_with("Time from")).collect();
    assert!(lines[0].starts_with('#') && lines[0].contains("p99.9") && lines.len() > 2, "{lines:?}");
}

#[test]
fn filters_select_in_the_kernel_and_in_recordings() {
    let Some((lab, program)) = ready() else { return };
    let filter = format!("id == {}", if cfg!(target_arch = "aarch64") { 115 } else { 230 });
    let [enter, exit] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];
    let pair = [enter, "--filter", &filter, exit, "--filter", &filter];
    has_naps(&json(&[&pair[..], &["--", &program]].concat()));
    let file = lab.path("all.data").to_str().unwrap().to_owned();
    kit::run(&["record", "-q", "-e", enter, "-e", exit, "-o", &file, "--", &program]).expect(0);
    has_naps(&json(&[&pair[..], &["-i", &file]].concat()));
    // Without the end's filter, ends of other calls have no begin.
    let document = json(&[enter, "--filter", &filter, exit, "-i", &file]);
    assert!(number(&document, "/counts/ends_without_begin") > 0);
    assert_eq!(number(&document, "/counts/paired"), 60);
}

/// The durations between the naps' events, from the lines of perf script.
fn durations_by_perf(file: &Path) -> Vec<u64> {
    let lines = oracle::perf_of(file, &["script", "--ns", "-F", "tid,time,event"]);
    let (mut begun, mut durations) = (HashMap::new(), Vec::new());
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [tid, time, event] = words[..] else { continue };
        let time: u64 = time.trim_end_matches(':').replace('.', "").parse().expect("a time");
        match event.trim_end_matches(':') {
            ENTER => {
                begun.insert(tid.to_owned(), time);
            }
            EXIT => durations.extend(begun.remove(tid).map(|begin| time - begin)),
            _ => {}
        }
    }
    durations.sort_unstable();
    durations
}

#[test]
fn recordings_of_pmc_and_perf_have_the_durations_that_perf_sees() {
    let Some((lab, program)) = ready() else { return };
    let ours = lab.path("ours.data");
    let options = ["-q", "-e", ENTER, "-e", EXIT];
    let file = ours.to_str().unwrap();
    kit::run(&[&["record"], &options[..], &["-o", file, "--", &program]].concat()).expect(0);
    let theirs = lab.record("theirs.data", &options[1..], Path::new(&program));
    for file in [ours, theirs] {
        let want = durations_by_perf(&file);
        let document = json(&["syscall:clock_nanosleep", "-i", file.to_str().unwrap()]);
        has_naps(&document);
        assert_eq!(want.len(), 60);
        assert_eq!(number(&document, "/durations/sum_ns"), want.iter().sum::<u64>());
        let ends = [number(&document, "/durations/min_ns"), number(&document, "/durations/max_ns")];
        assert_eq!(ends, [want[0], want[59]]);
        let median = number(&document, "/durations/p50_ns") as f64 / want[29] as f64;
        assert!((median - 1.0).abs() <= 0.016, "{median}");
        let part = json(&["syscall:clock_nanosleep", "-i", file.to_str().unwrap(), "--time", "0%-50%"]);
        assert!((1..60).contains(&number(&part, "/durations/count")));
        let none = json(&["syscall:clock_nanosleep", "-i", file.to_str().unwrap(), "-p", "1"]);
        assert_eq!(number(&none, "/counts/begins"), 0);
    }
}

#[test]
fn recursive_functions_nest() {
    let Some((_lab, program)) = ready() else { return };
    let pmu = Path::new("/sys/bus/event_source/devices/uprobe").exists();
    if !kit::need("uprobe-pmu", pmu, "no uprobe PMU") {
        return;
    }
    let document = json(&[&format!("func:{program}:nested"), "-g", "--", &program]);
    assert_eq!((number(&document, "/counts/paired"), number(&document, "/counts/nested")), (3, 2));
    // The outermost call is the slowest and contains the others.
    let depth = |at: usize| {
        let stack = document["slowest"][at]["stack"].as_array().expect("a stack");
        stack.iter().filter(|function| function.as_str() == Some("nested")).count()
    };
    // At a function's first instruction, frame pointers may miss its caller.
    assert!(depth(0) == 1 && depth(2) > depth(0), "{document}");
    let [begin, end] = ["", "%return"].map(|side| format!("uprobe:{program}:nested{side}"));
    let document = json(&[&begin, &end, "--", &program]);
    let counts = ["paired", "begins_replaced", "ends_without_begin"];
    let counts = counts.map(|name| number(&document, &format!("/counts/{name}")));
    assert_eq!(counts, [1, 2, 2], "without --nest");
    assert_eq!(number(&json(&[&begin, &end, "--nest", "--", &program]), "/counts/paired"), 3);
    // The time between two calls.
    assert_eq!(number(&json(&[&begin, &begin, "--", &program]), "/counts/paired"), 2);
}

#[test]
fn time_by_stack_is_exported() {
    let Some((lab, program)) = ready() else { return };
    let [svg, folded] = ["naps.svg", "naps.folded"].map(|name| lab.path(name).to_str().unwrap().to_owned());
    let document =
        json(&["syscall:clock_nanosleep", "--flamegraph", &svg, "--folded", &folded, "--", &program]);
    has_naps(&document);
    let lines = std::fs::read_to_string(&folded).unwrap();
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().expect("a weight");
    assert_eq!(lines.lines().map(weight).sum::<u64>(), number(&document, "/durations/sum_ns"));
    let sleepy: u64 = lines.lines().filter(|line| line.contains(";sleepy;")).map(weight).sum();
    assert!(sleepy >= 200_000_000, "{lines}");
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.contains("sleepy") && svg.contains(" ns"), "{}", &svg[..2000]);
    let stdout = kit::run(&["latency", ENTER, EXIT, "--folded", "-", "--", &program]).expect(0).stdout;
    assert!(stdout.lines().all(|line| line.starts_with("naps;")), "{stdout}");
}

#[test]
fn stacks_need_no_frame_pointers() {
    let Some((lab, _)) = ready() else { return };
    let flags = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = lab.build("bare", PROGRAM, &flags).to_str().unwrap().to_owned();
    for options in [&["-g"][..], &["--call-graph", "dwarf,4096"]] {
        let folded = lab.path("bare.folded").to_str().unwrap().to_owned();
        let words = [&["syscall:clock_nanosleep", "--folded", &folded], options, &["--", &program]].concat();
        let document = json(&words);
        has_naps(&document);
        assert_eq!(number(&document, "/counts/without_stack"), 0);
        // The program's last 10 naps are its longest.
        let stacks = document["slowest"].as_array().unwrap().iter().map(|slow| slow["stack"].to_string());
        let is_whole = |stack: &String| stack.contains("nap\",\"sleepy\",\"main\"");
        assert!(stacks.clone().any(|stack| is_whole(&stack)), "{:?}", stacks.collect::<Vec<_>>());
        let lines = std::fs::read_to_string(&folded).unwrap();
        assert!(lines.lines().all(|line| line.contains(";main;") && line.contains(";nap;")), "{lines}");
    }
}

#[test]
fn copied_stacks_of_recordings_are_unwound() {
    let Some((lab, program)) = ready() else { return };
    let file = lab.path("copies.data");
    let file = file.to_str().unwrap();
    for unwind in ["live", "deferred"] {
        let options = ["--call-graph", "dwarf", "--unwind", unwind, "-e", ENTER, "-e", EXIT];
        kit::run(&[&["record", "-q"], &options[..], &["-o", file, "--", &program]].concat()).expect(0);
        let folded = kit::run(&["latency", ENTER, EXIT, "-i", file, "--folded", "-"]).expect(0).stdout;
        let sleepy = folded.lines().filter(|line| line.contains(";main;sleepy;")).count();
        assert!(sleepy > 0, "{unwind}: {folded}");
    }
}

#[test]
fn lost_records_are_counted() {
    let Some((_lab, program)) = ready() else { return };
    // A ring of one page, and more events than fit between two drains.
    let pair = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];
    let document = json(&[&["-m", "4K"], &pair[..], &["--", &program, "calls"]].concat());
    let count = |name: &str| number(&document, &format!("/counts/{name}"));
    let all = count("begins") + count("ends") + count("lost");
    assert!(count("lost") > 0 && all >= 2 * 200_060, "{document}");
    // The table is not printed, so only the warning reports the losses.
    let quiet =
        [&["latency", "-q", "--folded", "-", "-m", "4K"], &pair[..], &["--", &program, "calls"]].concat();
    kit::run(&quiet).expect(0).says(&[
        "pmc: warning: ",
        " records were lost because",
        "intervals are missing",
    ]);
}

#[test]
fn presets_measure_the_whole_machine() {
    let Some((_lab, program)) = ready() else { return };
    if !kit::need_program("taskset") {
        return;
    }
    for (preset, key) in [("runq", "pid = next_pid"), ("softirq", "vec"), ("irq", "irq"), ("block", "dev")] {
        let system = if preset == "runq" { "sched" } else { preset.trim_start_matches("soft") };
        if !kit::need_tracefs(system) {
            continue;
        }
        // On CPU 0, because some virtual machines record no wake-ups from interrupts of other, idle CPUs.
        let document = json(&[preset, "--", "taskset", "-c", "0", &program]);
        assert!(document["key"].as_array().expect("a key").iter().any(|part| part == key), "{document}");
        let count = |name: &str| number(&document, &format!("/counts/{name}"));
        let ends = count("paired") + count("ends_without_begin") + count("ends_before_begin");
        assert_eq!(count("ends"), ends, "{preset}");
        // Each nap ends with a wake-up.
        assert!(preset != "runq" || count("paired") >= 60, "{document}");
    }
}

/// `pmc kwork` and `pmc kmem` name these commands.
#[test]
fn work_queues_and_allocations_are_measured() {
    let Some((_lab, program)) = ready() else { return };
    let queue = ["workqueue:workqueue_execute_start", "workqueue:workqueue_execute_end", "-k", "work"];
    let memory = ["kmem:kmalloc", "kmem:kfree", "-k", "ptr"];
    for (system, words) in [("workqueue", queue), ("kmem", memory)] {
        if kit::need_tracefs(system) {
            let document = json(&[&words[..], &["-a", "--", &program]].concat());
            assert_eq!(number(&document, "/counts/without_key"), 0, "{document}");
        }
    }
}

#[test]
fn events_other_than_tracepoints_are_measured_on_all_cpus() {
    if !kit::need_root() || !kit::need_perf_events() {
        return;
    }
    let document = json(&["page-faults:u", "page-faults:u", "-a", "--timeout", "200ms"]);
    assert!(document["counts"]["begins"].is_u64(), "{document}");
}

#[test]
fn nth_tracepoint_is_sampled_and_stands_for_n() {
    let Some((lab, program)) = ready() else { return };
    let calls = lab.path("calls.data");
    let file = calls.to_str().unwrap();
    let event = "raw_syscalls:sys_enter";
    let probe = format!("uprobe:{program}:ask");
    // A clock in the same recording has other fields.
    for events in [&[event][..], &[event, "cpu-clock/freq=100/"], &[&probe]] {
        let events = events.iter().flat_map(|event| ["-e", event]).collect::<Vec<_>>();
        let words = [&["record", "-q", "-c", "1000"], &events[..], &["-o", file, "--", &program, "calls"]];
        kit::run(&words.concat()).expect(0);
        let report = kit::run(&["report", "-i", file, "--json"]).expect(0);
        let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
        let samples = number(&report, "/events/0/samples");
        // Each CPU counts separately, so its last occurrences may be too few for a sample.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        assert!(
            (200 - cpus..=202).contains(&samples),
            "{samples} samples of about 200,200 calls: {events:?}"
        );
        assert_eq!(number(&report, "/events/0/period"), samples * 1000);
        for perf in oracle::perfs() {
            let text = oracle::says(&perf, &["report", "--stdio", "-i", file]);
            assert!(text.contains(&format!("Event count (approx.): {}", samples * 1000)), "{text}");
        }
    }
    kit::run(&["record", "-q", "-c", "1000", "-e", event, "-o", file, "--", &program]).expect(0);
    let refused = kit::run(&["latency", event, "raw_syscalls:sys_exit", "-i", file]).expect(1);
    refused.says(&["has no event raw_syscalls:sys_exit"]);
    kit::run(&["latency", event, event, "-i", file]).expect(1).says(&["not every occurrence is recorded"]);
}

#[test]
fn refusals_name_the_reason() {
    let Some((lab, program)) = ready() else { return };
    let end = &["--", &program][..];
    let refused = |words: &[&str], status: i32, says: &[&str]| {
        kit::run(&[&["latency"], words].concat()).expect(status).says(says);
    };
    refused(
        &[&["sched:sched_switch"], end].concat(),
        2,
        &["the end event is missing", "runq", "func:PATH:NAME"],
    );
    refused(&[&["runq", "-p", "1"], &[][..]].concat(), 2, &["cannot be measured for individual processes"]);
    refused(&[&["runq", "-k", "pid"], end].concat(), 2, &["has its own key"]);
    refused(&[&[ENTER, EXIT, "-k", "rqtp2"], end].concat(), 2, &["no such field", "rqtp"]);
    refused(&[&[ENTER, EXIT, "-k", "=x"], end].concat(), 2, &["a name is missing"]);
    refused(&[&["cpu-clock", EXIT, "-k", "ret"], end].concat(), 2, &["cpu-clock has no fields"]);
    refused(&[&[ENTER, "--filter", "none == 1", EXIT], end].concat(), 1, &["--filter 'none == 1'"]);
    refused(&[&["--filter", "a == 1", ENTER, EXIT], end].concat(), 2, &["must follow the event"]);
    if !Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        refused(
            &[&["fault"], end].concat(),
            1,
            &["page_fault_user marks only the start of a fault", "kprobes"],
        );
    }
    let lbr = ["syscall:read", "--call-graph", "lbr"];
    refused(&[&lbr[..], end].concat(), 2, &["not supported by a live", "pmc record --call-graph lbr -e"]);
    let file = lab.path("none.data");
    let file = file.to_str().unwrap();
    kit::run(&["record", "-q", "-e", "cpu-clock", "-e", ENTER, "-o", file, "--", &program]).expect(0);
    refused(&["syscall:clock_nanosleep", "-i", file], 1, &["has no event", EXIT, "it contains cpu-clock"]);
    refused(&[ENTER, EXIT, "-i", file], 1, &["has no event", "if that is the event", "pmc record -e", EXIT]);
    refused(&[ENTER, "cpu-clock", "-i", file], 1, &["cpu-clock: not every occurrence is recorded"]);
}

/// Fields of the samples of a synthetic recording, in this order.
const FIELDS: u64 =
    sample_type::IDENTIFIER | sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::CPU;

/// The events that a ring contributes to a round: id, thread, CPU, time.
type RingPart<'a> = &'a [(u64, u64, u64, u64)];

/// Writes a recording of `a:begin` (id 1) and `a:end` (id 2). Id 0 is a record of 7 lost ones.
fn write_events(path: &Path, rounds: &[&[RingPart<'_>]]) {
    let event = |id: u64, name: &str| {
        let mut attr = Attr::new(kind::SOFTWARE, 9);
        attr.set_sample_type(FIELDS);
        attr.set_period(1);
        attr.set(Flag::SampleIdAll, true);
        RecordedEvent { attr, ids: vec![id], name: Some(name.to_owned()) }
    };
    let events = [event(1, "a:begin"), event(2, "a:end")];
    let names = events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone()));
    let features = Features { event_desc: Some(EventDesc(names.collect())), ..Features::default() };
    let mut writer = Writer::create(path, &events, &features, WriteOptions::default()).expect("it begins");
    for round in rounds {
        let mut out = Encoder::new(32);
        let mut bytes = Vec::new();
        for (id, thread, cpu, time) in round.iter().flat_map(|ring| ring.iter()) {
            let threads = thread | thread << 32;
            if *id == 0 {
                // A record of lost ones, with its thread, time, CPU and id at the end.
                let words = [2u64 | 56 << 48, 1, 7, threads, *time, *cpu, 1];
                bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            } else {
                let mut one = Encoder::new(32);
                one.sample(2, &[*id, 0x1000, threads, *time, *cpu]);
                bytes.extend_from_slice(one.bytes());
            }
        }
        out.finished_round();
        writer.append(&[&bytes, out.bytes()]).expect("it is written");
    }
    writer.finish(&features).expect("it ends");
}

#[test]
fn events_are_paired_in_time_order_over_all_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order.data");
    // Thread 5 begins on CPU 1 and ends on CPU 0, whose ring comes first in the file. The last events of a
    // round are in the next one.
    write_events(
        &file,
        &[
            &[&[(2, 5, 0, 300), (2, 6, 0, 900)], &[(1, 5, 1, 100), (1, 6, 1, 400), (1, 5, 1, 850)]],
            &[&[(2, 5, 0, 1000), (2, 9, 0, 1100)], &[(1, 7, 1, 800), (2, 7, 1, 1300), (1, 8, 1, 1400)]],
        ],
    );
    let document = json(&["a:begin", "a:end", "-i", file.to_str().unwrap()]);
    let count = |name: &str| number(&document, &format!("/counts/{name}"));
    assert_eq!((count("paired"), count("ends_without_begin"), count("unfinished")), (4, 1, 1), "{document}");
    let slowest = document["slowest"].as_array().unwrap().iter();
    let slowest: Vec<_> = slowest
        .map(|slow| (number(slow, "/tid"), number(slow, "/duration_ns"), number(slow, "/end_cpu")))
        .collect();
    assert_eq!(slowest, [(6, 500, 0), (7, 500, 1), (5, 200, 0), (5, 150, 0)]);
    assert_eq!(number(&document, "/oldest_unfinished_ns"), 0);
    // By CPU: an end on another CPU than its begin has no partner.
    let by_cpu = json(&["a:begin", "a:end", "-k", "cpu", "-i", file.to_str().unwrap()]);
    assert_eq!(by_cpu["counts"]["begins_replaced"], 3, "{by_cpu}");
}

#[test]
fn losses_mark_intervals_and_shift_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loss.data");
    // The end of thread 5's first interval is lost.
    let ring = [(1, 6, 0, 50), (2, 6, 0, 90), (1, 5, 0, 100), (0, 5, 0, 200), (1, 5, 0, 300), (2, 5, 0, 400)];
    write_events(&file, &[&[&ring, &[(1, 7, 1, 150), (2, 7, 1, 500)]]]);
    let ran = kit::run(&["latency", "--json", "a:begin", "a:end", "-i", file.to_str().unwrap()]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let count = |name: &str| number(&document, &format!("/counts/{name}"));
    let counts = [count("paired"), count("begins_replaced"), count("lost"), count("intervals_with_loss")];
    assert_eq!(counts, [3, 1, 7, 1], "{document}");
    let marked = document["slowest"].as_array().unwrap().iter().filter(|slow| slow["loss"] == true);
    assert_eq!(marked.map(|slow| number(slow, "/tid")).collect::<Vec<_>>(), [7]);
    let text = kit::run(&["latency", "a:begin", "a:end", "-i", file.to_str().unwrap()]);
    text.prints(&["1 begins replaced", "7 lost", "(loss)", "may appear too long"]);
}

#[test]
fn damaged_recordings_do_not_panic() {
    let Some((lab, program)) = ready() else { return };
    let whole = lab.path("whole.data");
    let sched = "sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch";
    let options = ["record", "-q", "-a", "-g", "-e", sched, "-o", whole.to_str().unwrap(), "--", &program];
    kit::run(&options).expect(0);
    let whole = std::fs::read(whole).expect("it is there");
    let file = lab.path("damaged.data");
    let path = file.to_str().unwrap();
    let by_text = ["sched:sched_switch", "sched:sched_switch", "-k", "next_comm=prev_comm", "--nest"];
    let mut dice = 88172645463325252u64;
    let mut throw = |sides: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % sides as u64) as usize
    };
    for round in 0..40 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(throw(whole.len())),
            1 => (0..20).for_each(|_| bytes[104 + throw(whole.len() - 104)] = throw(256) as u8),
            _ => {
                let (from, to) = (throw(whole.len() / 8) * 8, throw(whole.len() / 8) * 8);
                let size = 4000.min(whole.len() - from.max(to));
                bytes.copy_within(from..from + size, to);
            }
        }
        std::fs::write(&file, &bytes).expect("it is written");
        for way in [&["runq", "-g", "--heatmap"][..], &by_text] {
            let ran = kit::run(&[&["latency", "-i", path], way].concat());
            assert!(matches!(ran.status, Some(0..=2)), "{round}: {way:?}: {}", ran.stderr);
        }
    }
}
