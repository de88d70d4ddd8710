//! Exports of recordings with waiting time, and the selection of states.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prost::Message;

use crate::export::{export, in_browser, said};
use crate::kit;
use crate::kit::lab::{CHAIN, Lab};

/// A program that runs in one function and waits in another.
const PROGRAM: &str = r#"
__attribute__((noinline)) void spin(void) { for_cpu_ms(16) sink = chain(sink, 20000); }
__attribute__((noinline)) void nap(void) { struct timespec t = {0, 20000000}; nanosleep(&t, 0); sink++; }
int main(void) { for (int i = 0; i < 20; i++) { spin(); nap(); } return 0; }
"#;

/// A recording of the program, and its sums by state.
fn recorded(lab: &Lab) -> (PathBuf, BTreeMap<String, u64>) {
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = lab.build("naps", &[CHAIN, PROGRAM].concat(), &flags);
    let file = lab.path("wall.data");
    let record = ["record", "-q", "--wall", "--call-graph", "dwarf", "-o", file.to_str().unwrap(), "--"];
    kit::run(&[&record[..], &[program.to_str().unwrap()]].concat()).expect(0);
    let words = ["report", "--json", "--no-cache", "-s", "state", "--state", "all", file.to_str().unwrap()];
    let report: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).unwrap();
    let rows =
        report["events"].as_array().unwrap().iter().flat_map(|event| event["rows"].as_array().unwrap());
    let sum = |row: &serde_json::Value| {
        (row["state"].as_str().unwrap().to_owned(), row["self"]["period"].as_u64().unwrap())
    };
    let sums: BTreeMap<String, u64> = rows.map(sum).collect();
    assert!(sums["running"] > 0 && sums["blocked"] >= 400_000_000, "{sums:?}");
    (file, sums)
}

/// A recording of the built program without waiting time.
fn without_waits(lab: &Lab) -> PathBuf {
    let (file, program) = (lab.path("plain.data"), lab.path("naps"));
    let [path, program] = [&file, &program].map(|path| path.to_str().unwrap());
    kit::run(&["record", "-q", "-e", "cpu-clock", "-g", "-o", path, "--", program]).expect(0);
    file
}

fn waiting(sums: &BTreeMap<String, u64>) -> u64 {
    sums["blocked"] + sums.get("runnable").unwrap_or(&0)
}

#[test]
fn diff_uses_the_exact_running_time() {
    let Some(lab) = Lab::new() else { return };
    let (wall, _) = recorded(&lab);
    let plain = without_waits(&lab);
    let [wall, plain] = [&wall, &plain].map(|path| path.to_str().unwrap());
    let diff = |files: [&str; 2]| {
        let ran = kit::run(&[&["diff", "--json", "--no-cache"][..], &files].concat()).expect(0);
        kit::schema::document("diff", &ran.stdout)
    };
    let times = |document: &serde_json::Value| document["events"][0]["thread_times"].clone();
    let both = times(&diff([wall, wall]));
    let running = both[0]["running_ns"].as_u64().unwrap();
    assert!(running > 0 && both[0] == both[1], "{both}");
    // The head shows it instead of the sum of the samples.
    let text = kit::run(&["diff", "--no-cache", wall, wall]).expect(0);
    let shown = pmc_text::units::duration(running as f64);
    text.prints(&["Event 'running (cpu-clock)'", &format!(" samples, {shown}"), "(+0.0%)"]);
    let mixed = times(&diff([wall, plain]));
    assert!(mixed[0].is_object() && mixed[1].is_null(), "{mixed}");
}

#[test]
fn state_selects_running_or_waiting_time() {
    let Some(lab) = Lab::new() else { return };
    let (file, sums) = recorded(&lab);
    let folded = |states: &str| export(&lab, &file, "a.folded", &["--state", states]);
    let sum = |lines: &str| -> u64 {
        lines.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    for state in ["running", "blocked"] {
        assert_eq!(sum(&folded(state)), sums[state], "{state}");
    }
    assert_eq!(sum(&folded("waiting")), waiting(&sums));
    assert_eq!(sum(&folded("running,waiting")), sums["running"] + waiting(&sums));
    let (blocked, running) = (folded("blocked"), folded("running"));
    assert!(blocked.contains(";nap;") && running.contains(";spin") && !blocked.contains(";spin"));
    let bad = ["export", file.to_str().unwrap(), "-o", "-", "--format", "folded", "--state", "asleep"];
    kit::run(&bad).expect(2).says(&["\"asleep\"", "running, runnable, blocked, waiting"]);
    let plain = without_waits(&lab);
    kit::run(&["report", "--stdio", "--state", "blocked", plain.to_str().unwrap()])
        .expect(1)
        .says(&["no waiting time", "pmc record --wall"]);
}

#[test]
fn flame_graph_colours_waiting_time() {
    let Some(lab) = Lab::new() else { return };
    let (file, sums) = recorded(&lab);
    let svg = export(&lab, &file, "a.svg", &["--state", "all"]);
    // The red, green and blue of a function's box.
    let colour = |svg: &str, name: &str| -> [u8; 3] {
        let of_box = svg.split("<title>").find(|of| of.starts_with(&format!("{name} (")));
        let of_box = of_box.unwrap_or_else(|| panic!("{name}: {svg}"));
        let rgb = of_box.split("rgb(").nth(1).unwrap().split(')').next().unwrap();
        let parts: Vec<u8> = rgb.split(',').map(|part| part.trim().parse().unwrap()).collect();
        parts.try_into().unwrap()
    };
    let is_blue = |[red, _, blue]: [u8; 3]| blue > red.saturating_add(50);
    assert!(is_blue(colour(&svg, "nap")) && !is_blue(colour(&svg, "spin")), "{svg}");
    assert!(svg.contains("id=\"legend\"") && svg.contains("waiting for a CPU") && !svg.contains("_[w]"));
    // Otherwise, the picture shows the state with more time.
    let first = export(&lab, &file, "d.svg", &[]);
    let is_of = |svg: &str, state: &str| svg.contains(&format!(" of {state}"));
    assert!(is_of(&first, if sums["blocked"] > sums["running"] { "waiting" } else { "running" }), "{first}");
    let running = export(&lab, &file, "b.svg", &["--state", "running"]);
    assert!(!is_blue(colour(&running, "spin")), "{running}");
    // Colours of a difference mean the difference.
    // Pictures of differences show running time.
    let diff = export(&lab, &file, "c.svg", &["--diff", file.to_str().unwrap()]);
    assert!(!diff.contains("id=\"legend\"") && !is_blue(colour(&diff, "spin")), "{diff}");
    assert!(is_of(&diff, "running"), "{diff}");
}

#[test]
fn html_switches_between_running_and_waiting() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("chromium") {
        return;
    }
    let (file, sums) = recorded(&lab);
    let page = export(&lab, &file, "a.html", &[]);
    let script = "
        const choose = (state) => { $('state').value = state; $('state').dispatchEvent(new Event('change')); return sums.whole; };
        const first = chosen.state, all = ['', 'running', 'waiting', 'runnable'].map(choose), link = location.hash;
        choose('');
        const colourAt = (name) => drawn.filter((place) => data.names[place.block.fn] === name)
            .map(({ block }) => COLOURS[colourOf(block.fn, block.total, block.waits)][0])[0];
        const colours = ['nap', 'spin'].map(colourAt);
        $('inverted').click();
        const inverted = root.children().reduce((sum, block) => sum + block.waits[0] + block.waits[1], 0);
        const results = { first, all, link, colours, inverted, legend: $('legend').textContent };
    ";
    let results = in_browser(&lab, &page, script, &[]);
    let (running, waiting) = (sums["running"], waiting(&sums));
    let (runnable, blocked) = (sums["runnable"], sums["blocked"]);
    assert_eq!(results["all"], serde_json::json!([running + waiting, running, blocked, runnable]));
    assert_eq!(results["first"], if blocked > running { "waiting" } else { "running" });
    assert_eq!(results["colours"][0], "blocked", "{results}");
    // On a busy machine, it mostly waits for a CPU.
    assert!(["program", "runnable"].contains(&results["colours"][1].as_str().unwrap()), "{results}");
    assert_eq!(results["inverted"], waiting, "{results}");
    assert!(results["link"].as_str().unwrap().contains("state=runnable"), "{results}");
    assert!(results["legend"].as_str().unwrap().contains("waiting for a CPU"), "{results}");
    // Without waits, the page has no such choice.
    let plain = without_waits(&lab);
    let page = export(&lab, &plain, "b.html", &[]);
    let script = "const results = { hidden: $('state').hidden, legend: $('legend').textContent };";
    let results = in_browser(&lab, &page, script, &[]);
    assert_eq!(results["hidden"], true);
    assert!(!results["legend"].as_str().unwrap().contains("blocked"), "{results}");
}

#[test]
fn firefox_has_waits_as_markers_and_samples() {
    let Some(lab) = Lab::new() else { return };
    let (file, sums) = recorded(&lab);
    let text = export(&lab, &file, "a.firefox.json", &[]);
    assert_eq!(text, export(&lab, &file, "b.firefox.json", &[]));
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    let categories = profile["meta"]["categories"].as_array().unwrap();
    let waits = categories.iter().find(|category| category["name"] == "Waiting").unwrap();
    assert_eq!(waits["color"], "blue");
    assert!(waits["subcategories"].as_array().unwrap().iter().any(|site| site == "sleep"), "{waits}");
    let thread = &profile["threads"][0];
    let list = |table: &str, column: &str| -> Vec<f64> {
        thread[table][column].as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(0.0)).collect()
    };
    let waited: f64 = list("markers", "endTime")
        .iter()
        .zip(list("markers", "startTime"))
        .map(|(end, start)| end - start)
        .sum();
    assert!((waited - waiting(&sums) as f64 / 1e6).abs() < 0.1, "{waited} {sums:?}");
    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
    let weight: f64 = list("samples", "weight").iter().sum();
    let all = (sums["running"] + waiting(&sums)) as f64 / 1e6;
    assert!(all - weight >= 0.0 && all - weight < 1.0, "{weight} {all}");
}

#[test]
fn pprof_has_running_and_waiting_time() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("go") {
        return;
    }
    let (file, sums) = recorded(&lab);
    export(&lab, &file, "a.pb.gz", &[]);
    let path = lab.path("a.pb.gz");
    let raw = said("go", &["tool", "pprof", "-symbolize=none", "-raw", path.to_str().unwrap()]);
    let types = raw.lines().find(|line| line.contains("wall-clock/nanoseconds")).unwrap();
    assert!(types.ends_with("running/nanoseconds waiting/nanoseconds"), "{types}");
    let mut found = [0u64; 4];
    for line in raw.lines().filter(|line| line.contains(": ")) {
        let numbers: Vec<u64> =
            line.split(':').next().unwrap().split_whitespace().flat_map(str::parse).collect();
        if let Ok(values) = <[u64; 4]>::try_from(numbers) {
            found.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    let (running, waiting) = (sums["running"], waiting(&sums));
    assert_eq!(found[1..], [running + waiting, running, waiting], "{raw}");
}

/// Fields of Perfetto's trace, by their published numbers.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, tag = "8")]
    timestamp: u64,
    #[prost(message, optional, tag = "11")]
    track_event: Option<Event>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<Interned>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<Descriptor>,
    #[prost(message, optional, tag = "66")]
    perf_sample: Option<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "9")]
    r#type: i32,
    #[prost(uint64, tag = "10")]
    name_iid: u64,
    #[prost(uint64, tag = "11")]
    track_uuid: u64,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<Text>,
    #[prost(message, repeated, tag = "5")]
    function_names: Vec<Text>,
    #[prost(message, repeated, tag = "6")]
    frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    callstacks: Vec<Stack>,
    #[prost(message, repeated, tag = "29")]
    debug_annotation_string_values: Vec<Text>,
}

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(string, tag = "2")]
    text: String,
}

#[derive(Clone, PartialEq, Message)]
struct Frame {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(uint64, tag = "2")]
    function_name_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Stack {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(uint64, repeated, tag = "2")]
    frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(message, optional, tag = "4")]
    thread: Option<Thread>,
}

#[derive(Clone, PartialEq, Message)]
struct Thread {
    #[prost(string, tag = "5")]
    thread_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint32, tag = "3")]
    tid: u32,
    #[prost(uint64, tag = "4")]
    callstack_iid: u64,
    #[prost(uint64, tag = "6")]
    timebase_count: u64,
}

fn trace(lab: &Lab, file: &Path, name: &str) -> Trace {
    export(lab, file, name, &[]);
    Trace::decode(&*std::fs::read(lab.path(name)).unwrap()).unwrap()
}

#[test]
fn perfetto_has_states_and_samples_of_threads() {
    let Some(lab) = Lab::new() else { return };
    let (file, sums) = recorded(&lab);
    let Trace { packet } = trace(&lab, &file, "a.pftrace");
    let interned = || packet.iter().filter_map(|packet| packet.interned_data.as_ref());
    let texts = |of: fn(&Interned) -> &Vec<Text>| -> BTreeMap<u64, &str> {
        interned().flat_map(of).map(|text| (text.iid, &*text.text)).collect()
    };
    let (names, functions) = (texts(|data| &data.event_names), texts(|data| &data.function_names));
    let threads: Vec<&Descriptor> =
        packet.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let thread =
        threads.iter().find(|track| track.thread.as_ref().is_some_and(|of| of.thread_name == "naps"));
    // The slices of a thread follow each other.
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut open, mut last) = (None, 0);
    for (at, event) in
        packet.iter().filter_map(|packet| Some((packet.timestamp, packet.track_event.as_ref()?)))
    {
        assert_eq!(event.track_uuid, thread.unwrap().uuid);
        assert!(at >= last, "{at} {last}");
        last = at;
        match (event.r#type, open.take()) {
            (1, None) => open = Some((at, names[&event.name_iid])),
            (2, Some((begin, name))) => *times.entry(name).or_default() += at - begin,
            wrong => panic!("{wrong:?}"),
        }
    }
    assert_eq!(times["blocked: sleep"], sums["blocked"], "{times:?} {sums:?}");
    assert!(times["running"] > 0, "{times:?}");
    let stacks = texts(|data| &data.debug_annotation_string_values);
    assert!(stacks.values().any(|stack| stack.contains("main;nap;")), "{stacks:?}");
    // All running time is in samples, most of it in `spin`.
    let frames: BTreeMap<u64, &str> = interned()
        .flat_map(|data| &data.frames)
        .map(|frame| (frame.iid, functions[&frame.function_name_id]))
        .collect();
    let callstacks: BTreeMap<u64, &Vec<u64>> =
        interned().flat_map(|data| &data.callstacks).map(|stack| (stack.iid, &stack.frame_ids)).collect();
    let samples: Vec<&Sample> = packet.iter().filter_map(|packet| packet.perf_sample.as_ref()).collect();
    assert_eq!(samples.iter().map(|sample| sample.timebase_count).sum::<u64>(), sums["running"]);
    let spins = samples
        .iter()
        .filter(|sample| callstacks[&sample.callstack_iid].iter().any(|id| frames[id] == "spin"));
    assert!(spins.count() * 2 > samples.len() && samples.iter().all(|sample| sample.tid > 0));
}

#[test]
fn perfetto_has_tracepoints_as_instants() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("naps", &[CHAIN, PROGRAM].concat(), &["-O1"]);
    let file = lab.record("events.data", &["-e", "cpu-clock", "-e", "sched:sched_switch", "-g"], &program);
    let Trace { packet } = trace(&lab, &file, "b.pftrace");
    let report = ["report", "--json", "--no-cache", file.to_str().unwrap()];
    let report: serde_json::Value = serde_json::from_str(&kit::run(&report).expect(0).stdout).unwrap();
    let samples = |event: usize| report["events"][event]["samples"].as_u64().unwrap() as usize;
    let instants =
        packet.iter().filter(|packet| packet.track_event.as_ref().is_some_and(|of| of.r#type == 3));
    let taken = packet.iter().filter(|packet| packet.perf_sample.is_some());
    assert_eq!((taken.count(), instants.count()), (samples(0), samples(1)));
}

/// A program whose main thread wakes another one: `woken` waits for a byte in a pipe, 100 times.
const WAKER: &str = r#"
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static int ends[4];
static void *reads(void *x) {
    char c;
    prctl(PR_SET_NAME, "woken");
    while (read(ends[0], &c, 1) == 1 && write(ends[3], &c, 1) == 1) sink++;
    close(ends[3]);
    return x;
}
int main(void) {
    pthread_t other;
    char c = 1;
    pipe(ends), pipe(ends + 2);
    pthread_create(&other, 0, reads, 0);
    for (int i = 0; i < 100; i++) { write(ends[1], &c, 1); read(ends[2], &c, 1); }
    close(ends[1]);
    return pthread_join(other, 0);
}
"#;

#[test]
fn wakers_are_flows_and_in_markers() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("waker", &[CHAIN, WAKER].concat(), &["-O1", "-pthread"]);
    if !kit::need_root() || !kit::need_kernel_mode() || !kit::need_tracefs("sched/sched_waking") {
        return;
    }
    let file = lab.path("wakers.data");
    let [path, program] = [&file, &program].map(|path| path.to_str().unwrap());
    kit::run(&["record", "-q", "--wall", "--wakers", "-m", "8M", "-o", path, "--", program]).expect(0);
    let Trace { packet } = trace(&lab, &file, "a.pftrace");
    let tracks: BTreeMap<u64, &str> = packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .filter_map(|track| Some((track.uuid, &*track.thread.as_ref()?.thread_name)))
        .collect();
    let events = || packet.iter().filter_map(|packet| Some((packet.timestamp, packet.track_event.as_ref()?)));
    let begins: BTreeMap<u64, (u64, &Event)> =
        events().filter_map(|(at, event)| Some((*event.flow_ids.first()?, (at, event)))).collect();
    let mut found: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (at, event) in events() {
        for flow in &event.terminating_flow_ids {
            let (begin, waker) = begins[flow];
            assert!((waker.r#type, event.r#type) == (3, 1) && begin <= at, "{waker:?} {event:?}");
            *found.entry((tracks[&waker.track_uuid], tracks[&event.track_uuid])).or_default() += 1;
        }
    }
    // The two wake each other, unless the other CPU is faster.
    assert!(found.values().sum::<u64>() > 50, "{found:?}");
    assert!(found.keys().all(|(waker, woken)| waker != woken), "{found:?}");
    let profile = export(&lab, &file, "a.firefox.json", &[]);
    let profile: serde_json::Value = serde_json::from_str(&profile).unwrap();
    assert!([":woken\"", ":waker\""].iter().any(|end| profile.to_string().contains(end)), "{profile}");
}
