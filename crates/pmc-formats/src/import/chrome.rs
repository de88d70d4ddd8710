//! Profiles of V8: Chrome's traces with CPU profiles, and `.cpuprofile` files (`node --cpu-prof`, DevTools).
//! Also the samples and stack frames that other programs put into the trace event format.
//!
//! ```text
//!   cpuprofile  nodes: id, callFrame, children or parent; samples: ids of nodes; timeDeltas: microseconds
//!   trace       an event "Profile" and events "ProfileChunk", each with more nodes and samples
//!   trace       "stackFrames" by ID, and "samples" that refer to them
//! ```
//!
//! A sample's value is the time until the next one. In a trace without samples, the slices of each thread
//! (events B, E and X, as py-spy and clang's -ftime-trace write them) are its stacks, and the time in which a
//! slice is the innermost one is a sample. Slices may overlap without nesting: the earlier one then calls the
//! later one for as long as both are open, so each keeps its length.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ImportError;
use super::json;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, MOST_FRAMES};

/// Why a file that is cut off may contain no whole sample.
const NEEDS: &str = "a sample needs its time (timeDeltas), which comes after all samples";
const TRACE_NEEDS: &str = "the trace is cut off before its first sample or slice";
/// Name of the event whose values are times.
const TIME: &str = "time";

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CpuProfile {
    nodes: Vec<CpuProfileNode>,
    start_time: f64,
    end_time: f64,
    samples: Vec<u64>,
    time_deltas: Vec<f64>,
    /// The answer to `Profiler.stop` in the protocol of DevTools is `{"result":{"profile":{...}}}`.
    profile: Option<Box<CpuProfile>>,
    result: Option<Box<CpuProfile>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CpuProfileNode {
    id: u64,
    call_frame: CallFrame,
    children: Vec<u64>,
    parent: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    url: String,
    /// Starts at 0.
    line_number: Option<f64>,
}

/// Reads a `.cpuprofile` file.
pub(super) fn read_cpuprofile(
    bytes: &[u8],
    mut profile: ImportedProfile,
) -> Result<ImportedProfile, ImportError> {
    let (mut file, _): (CpuProfile, bool) = json::read(bytes, NEEDS, &mut profile)?;
    while file.nodes.is_empty()
        && let Some(inner) = file.result.take().or(file.profile.take())
    {
        file = *inner;
    }
    let thread = profile.named_thread("")?;
    let event = profile.event(TIME, "microseconds")?;
    let mut nodes = NodeTable::default();
    file.nodes.into_iter().for_each(|node| nodes.add(node, &mut profile));
    let deltas = &file.time_deltas;
    lose_unpaired(0, file.samples.len(), deltas.len(), &mut profile)?;
    // If times are missing, the last one that is there does not last until the end.
    let end = (file.samples.len() == deltas.len()).then_some(file.end_time);
    nodes.add_samples(&file.samples, deltas, file.start_time, end, (event, thread), &mut profile)?;
    Ok(profile)
}

/// Notes the samples without a time, and the times without a sample. `first` is the number of the first
/// sample.
fn lose_unpaired(
    first: usize,
    samples: usize,
    deltas: usize,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    for number in samples.min(deltas)..samples.max(deltas) {
        let what = "each sample must have an entry in timeDeltas";
        profile.lose(ImportError::item("sample", first + number, what))?;
    }
    Ok(())
}

/// The nodes of a profile's call tree by ID.
#[derive(Default)]
struct NodeTable {
    /// The location of each node (none for the root), and its caller's ID.
    nodes: HashMap<u64, (Option<ImportId>, Option<u64>)>,
}

impl NodeTable {
    fn add(&mut self, node: CpuProfileNode, profile: &mut ImportedProfile) {
        let CallFrame { function_name, url, line_number } = &node.call_frame;
        let location = (function_name != "(root)").then(|| {
            let name = if function_name.is_empty() { "(anonymous)" } else { function_name };
            let line = line_number.map_or(0, |line| (line + 1.0).max(0.0) as u32);
            let (name, file) = (profile.text(name), profile.text(url));
            let line = if url.is_empty() { 0 } else { line };
            profile.plain_location(ImportedCall { name, file, line, ..ImportedCall::default() })
        });
        let known = self.nodes.entry(node.id).or_default();
        known.0 = location;
        known.1 = node.parent.or(known.1);
        for child in node.children {
            self.nodes.entry(child).or_default().1 = Some(node.id);
        }
    }

    /// Returns the stack of a sample, which ends in the node `id`.
    fn stack(&self, sample: usize, id: u64, profile: &mut ImportedProfile) -> Result<ImportId, ImportError> {
        let (mut locations, mut next) = (Vec::new(), Some(id));
        while let Some(id) = next {
            let missing =
                || ImportError::item("sample", sample, format!("it refers to the missing node {id}"));
            let (location, parent) = *self.nodes.get(&id).ok_or_else(missing)?;
            locations.extend(location);
            // A loop in a hostile file ends here.
            next = parent.filter(|parent| *parent != id && locations.len() <= MOST_FRAMES);
            if location.is_none() {
                break;
            }
        }
        profile.stack(&locations)
    }

    /// Adds samples. Each delta is the time from the sample before.
    fn add_samples(
        &self,
        samples: &[u64],
        deltas: &[f64],
        start: f64,
        end: Option<f64>,
        (event, thread): (ImportId, ImportId),
        profile: &mut ImportedProfile,
    ) -> Result<(), ImportError> {
        let mut known: HashMap<u64, ImportId> = HashMap::new();
        let mut at = start;
        for (number, (id, delta)) in samples.iter().zip(deltas).enumerate() {
            at += delta;
            let until = deltas.get(number + 1).copied().or_else(|| Some(end? - at)).unwrap_or(0.0);
            let stack = match known.get(id) {
                Some(stack) => *stack,
                None => match self.stack(number, *id, profile) {
                    Ok(stack) => *known.entry(*id).or_insert(stack),
                    Err(error) => {
                        profile.lose(error)?;
                        continue;
                    }
                },
            };
            let (time, value) = (Some(profile.scaled(event, at)), profile.scaled(event, until.max(0.0)));
            profile.add(ImportedSample { event, stack, thread, time, value, ..ImportedSample::default() })?;
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TraceFile {
    trace_events: Vec<TraceEvent>,
    stack_frames: Map<String, Value>,
    samples: Vec<TraceSample>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TraceEvent {
    name: Option<Value>,
    ph: Value,
    pid: Value,
    tid: Value,
    id: Value,
    ts: Value,
    dur: Value,
    args: TraceArguments,
}

impl TraceEvent {
    fn name(&self) -> &str {
        self.name.as_ref().and_then(Value::as_str).unwrap_or_default()
    }
}

/// The arguments of an event, if they belong to a profile or name a thread.
#[derive(Default)]
struct TraceArguments {
    name: Option<String>,
    /// The source position of a slice.
    file: Option<String>,
    line: u32,
    /// What clang worked on in a slice: a file, a function or a template.
    detail: Option<String>,
    /// Whether the event is the sum of other events, as clang writes it for each kind.
    is_sum: bool,
    data: Option<ProfileData>,
}

impl<'de> Deserialize<'de> for TraceArguments {
    /// Arguments have any type, so others are ignored.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
        let data = value.get("data").filter(|data| {
            ["cpuProfile", "timeDeltas", "startTime"].iter().any(|key| data.get(key).is_some())
        });
        let data = data.and_then(|data| ProfileData::deserialize(data).ok());
        let file = value.get("filename").and_then(Value::as_str).map(str::to_owned);
        let line = value.get("line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
        let detail = value.get("detail").and_then(Value::as_str).map(str::to_owned);
        let is_sum = value.get("count").is_some() && value.get("avg ms").is_some();
        Ok(Self { name, file, line: line.unwrap_or(0), detail, is_sum, data })
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ProfileData {
    cpu_profile: CpuProfile,
    time_deltas: Vec<f64>,
    start_time: Option<f64>,
    end_time: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TraceSample {
    tid: Value,
    name: String,
    ts: Value,
    sf: Value,
    weight: Value,
}

/// Reads a trace.
pub(super) fn read_trace(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let of_events = |trace_events| TraceFile { trace_events, ..TraceFile::default() };
    let mut file: TraceFile = match is_list {
        true => match list(bytes) {
            Ok(events) => of_events(events),
            Err(_) => of_events(json::read(bytes, TRACE_NEEDS, &mut profile)?.0),
        },
        false => json::read(bytes, TRACE_NEEDS, &mut profile)?.0,
    };
    let mut names: HashMap<TraceThread, String> = HashMap::new();
    for event in file.trace_events.iter().filter(|event| event.name() == "thread_name") {
        if let Some(name) = &event.args.name {
            names.insert(TraceThread::new(event), name.clone());
        }
    }
    add_frame_samples(&file.stack_frames, &file.samples, &names, &mut profile)?;
    add_profiles(&mut file.trace_events, &names, &mut profile)?;
    let has_samples = !profile.samples.is_empty();
    let mut edges: indexmap::IndexMap<TraceThread, Vec<SliceEdge>> = indexmap::IndexMap::new();
    for (number, event) in file.trace_events.iter().enumerate() {
        let skipped = |what: &str| ImportError::item("event", number, what);
        match event.ph.as_str() {
            Some("B" | "E" | "X") if has_samples => {
                profile.skip("the trace has samples, so its slices are not imported", skipped);
            }
            Some("B" | "E" | "X") if event.args.is_sum && event.name().starts_with("Total ") => {
                profile.skip("this slice is a sum of other slices", skipped);
            }
            Some(kind @ ("B" | "E" | "X")) => match SliceEdge::of_event(kind, number, event) {
                Ok(of_event) => edges.entry(TraceThread::new(event)).or_default().extend(of_event),
                Err(error) => profile.lose(error)?,
            },
            // Metadata, and the events of profiles, which were read before.
            Some("M" | "P") => {}
            _ => profile.skip("only slices of a thread (B, E, X) and samples are imported", skipped),
        }
    }
    add_slices(edges, &names, &mut profile)?;
    if profile.samples.is_empty() && profile.lost().is_none() {
        return Err(ImportError::unsupported(
            "the trace contains neither samples (events \"ProfileChunk\", or \"samples\" with \"stackFrames\") nor slices",
        ));
    }
    Ok(profile)
}

/// Reads a list of events, whose closing bracket is optional.
fn list(bytes: &[u8]) -> serde_json::Result<Vec<TraceEvent>> {
    let text = bytes.trim_ascii();
    if text.ends_with(b"]") {
        return serde_json::from_slice(text);
    }
    let open = text.strip_suffix(b",").unwrap_or(text);
    serde_json::from_slice(&[open, b"]"].concat())
}

/// A thread of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct TraceThread {
    pid: i32,
    tid: i32,
    /// The ID, if it is a text: some programs write names.
    name: String,
}

impl TraceThread {
    fn new(event: &TraceEvent) -> Self {
        Self { pid: id(&event.pid), tid: id(&event.tid), name: text_id(&event.tid).to_owned() }
    }
}

/// Returns an ID that is a text but no number.
fn text_id(value: &Value) -> &str {
    value.as_str().filter(|text| text.parse::<i64>().is_err()).unwrap_or_default()
}

/// Returns a number, which may be a text.
fn number_of(value: &Value) -> Option<f64> {
    let number: Option<f64> = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Returns a time or a duration in nanoseconds from a number of microseconds.
fn nanoseconds(value: &Value) -> Option<u64> {
    number_of(value).map(|number| (number * 1e3).round() as u64)
}

/// Returns an ID. Some programs write the addresses of threads, of which the lower bits are kept.
fn id(value: &Value) -> i32 {
    let number: Option<i64> = value.as_i64().or_else(|| number_of(value).map(|number| number as i64));
    number.map_or(0, |number| (number & i64::from(i32::MAX)) as i32)
}

/// A profile that is spread over several events.
#[derive(Default)]
struct ChunkedProfile {
    thread: TraceThread,
    start: f64,
    end: Option<f64>,
    nodes: NodeTable,
    samples: Vec<u64>,
    deltas: Vec<f64>,
}

/// Adds the samples of profiles, which are moved out of the events.
fn add_profiles(
    events: &mut [TraceEvent],
    names: &HashMap<TraceThread, String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let mut open: indexmap::IndexMap<(i32, String), ChunkedProfile> = indexmap::IndexMap::new();
    for event in events {
        let is_start = matches!(event.name(), "Profile" | "CpuProfile");
        if !is_start && event.name() != "ProfileChunk" {
            continue;
        }
        let thread = TraceThread::new(event);
        let chunk = open.entry((thread.pid, event.id.to_string())).or_default();
        if is_start || chunk.thread == TraceThread::default() {
            chunk.thread = thread;
        }
        let Some(data) = event.args.data.take() else { continue };
        chunk.start = data.start_time.unwrap_or(chunk.start);
        chunk.end = data.end_time.or(chunk.end);
        data.cpu_profile.nodes.into_iter().for_each(|node| chunk.nodes.add(node, profile));
        let mut samples = data.cpu_profile.samples;
        let mut deltas =
            if data.time_deltas.is_empty() { data.cpu_profile.time_deltas } else { data.time_deltas };
        lose_unpaired(chunk.samples.len(), samples.len(), deltas.len(), profile)?;
        samples.truncate(deltas.len());
        deltas.truncate(samples.len());
        chunk.samples.extend(samples);
        chunk.deltas.extend(deltas);
    }
    // A thread can be sampled by several profilers. Their times must not be added up.
    let mut of_thread: HashMap<TraceThread, usize> = HashMap::new();
    for chunk in open.into_values().filter(|chunk| !chunk.samples.is_empty()) {
        let number = of_thread.entry(chunk.thread.clone()).or_default();
        *number += 1;
        let name = if *number == 1 { TIME.to_owned() } else { format!("{TIME} of profile {number}") };
        let event = profile.event(&name, "microseconds")?;
        let thread = add_thread(&chunk.thread, names, profile)?;
        let ChunkedProfile { nodes, samples, deltas, start, end, .. } = &chunk;
        nodes.add_samples(samples, deltas, *start, *end, (event, thread), profile)?;
    }
    Ok(())
}

fn add_thread(
    thread: &TraceThread,
    names: &HashMap<TraceThread, String>,
    profile: &mut ImportedProfile,
) -> Result<ImportId, ImportError> {
    let comm = names.get(thread).unwrap_or(&thread.name);
    match thread.name.is_empty() {
        true => profile.thread(thread.pid, thread.tid, comm),
        false => profile.named_thread(comm),
    }
}

/// The begin or the end of a slice.
struct SliceEdge {
    /// Nanoseconds.
    at: u64,
    /// Orders edges with equal times: ends first, then longer slices. Equal for events in the file's order.
    rank: (bool, u64),
    kind: SliceEdgeKind,
}

enum SliceEdgeKind {
    Begin(SliceKey, SliceCall),
    End(SliceKey),
}

/// What the end of a slice has in common with its begin.
#[derive(PartialEq, Clone)]
enum SliceKey {
    /// Number of an event that contains both.
    Event(usize),
    /// Name and ID of the slice. Ends may lack both.
    Named(String, Value),
}

struct SliceCall {
    name: String,
    detail: String,
    file: String,
    line: u32,
}

impl SliceEdge {
    /// Returns the begin and the end of a slice that an event of this kind describes. `number` is that of the
    /// event.
    fn of_event(kind: &str, number: usize, event: &TraceEvent) -> Result<Vec<Self>, ImportError> {
        let invalid = |what: &str| ImportError::item("event", number, what);
        let at = nanoseconds(&event.ts).ok_or_else(|| invalid("its time (ts) must be a number"))?;
        let call = || SliceCall {
            name: event.name().to_owned(),
            detail: event.args.detail.clone().unwrap_or_default(),
            file: event.args.file.clone().unwrap_or_default(),
            line: event.args.line,
        };
        let named = || SliceKey::Named(event.name().to_owned(), event.id.clone());
        let edge = |at, rank, kind| Self { at, rank, kind };
        Ok(match kind {
            "B" => vec![edge(at, (false, 0), SliceEdgeKind::Begin(named(), call()))],
            "E" => vec![edge(at, (false, 0), SliceEdgeKind::End(named()))],
            _ => {
                let duration = nanoseconds(&event.dur);
                let duration = duration.ok_or_else(|| invalid("its duration (dur) must be a number"))?;
                if duration == 0 {
                    return Ok(Vec::new());
                }
                let key = SliceKey::Event(number);
                let begin = SliceEdgeKind::Begin(key.clone(), call());
                let end = edge(at.saturating_add(duration), (false, 0), SliceEdgeKind::End(key));
                vec![edge(at, (true, u64::MAX - duration), begin), end]
            }
        })
    }
}

/// A slice that has not ended.
struct OpenSlice {
    key: SliceKey,
    /// Locations of the slice and of its detail.
    locations: Vec<ImportId>,
}

impl OpenSlice {
    /// Whether an end with this key ends the slice.
    fn ends_with(&self, end: &SliceKey) -> bool {
        match (&self.key, end) {
            (SliceKey::Named(name, id), SliceKey::Named(end_name, end_id)) => {
                (end_name.is_empty() || name == end_name) && (end_id.is_null() || id == end_id)
            }
            (key, end) => key == end,
        }
    }
}

fn add_slices(
    threads: indexmap::IndexMap<TraceThread, Vec<SliceEdge>>,
    names: &HashMap<TraceThread, String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    for (thread, mut edges) in threads.into_iter().filter(|(_, edges)| !edges.is_empty()) {
        // The sort is stable.
        edges.sort_by_key(|edge| (edge.at, edge.rank));
        let event = profile.event(TIME, "nanoseconds")?;
        let thread = add_thread(&thread, names, profile)?;
        let (mut open, mut last): (Vec<OpenSlice>, u64) = (Vec::new(), 0);
        for edge in edges {
            let value = edge.at - last;
            if value > 0 && !open.is_empty() {
                let locations = open.iter().rev().flat_map(|slice| slice.locations.iter().rev().copied());
                let locations: Vec<ImportId> = locations.collect();
                let (stack, time) = (profile.stack(&locations)?, Some(last));
                profile.add(ImportedSample {
                    event,
                    stack,
                    thread,
                    time,
                    value,
                    ..ImportedSample::default()
                })?;
            }
            last = edge.at;
            match edge.kind {
                SliceEdgeKind::Begin(..) if open.len() == MOST_FRAMES => {
                    return Err(ImportError::file("slices are nested too deeply"));
                }
                SliceEdgeKind::Begin(key, call) => {
                    let locations = slice_locations(&call, profile);
                    open.push(OpenSlice { key, locations });
                }
                // A trace may begin inside of a slice, so an end may have no begin.
                SliceEdgeKind::End(end) => match open.iter().rposition(|slice| slice.ends_with(&end)) {
                    Some(at) => drop(open.remove(at)),
                    None => profile
                        .skip("the trace does not contain the begin of a slice that ends here", |what| {
                            ImportError::Time { ns: last, what: what.to_owned() }
                        }),
                },
            }
        }
        for _ in open {
            profile.skip("the trace does not contain the end of a slice that is open here", |what| {
                ImportError::Time { ns: last, what: what.to_owned() }
            });
        }
    }
    Ok(())
}

/// Returns the locations of a slice, and of what it worked on.
fn slice_locations(call: &SliceCall, profile: &mut ImportedProfile) -> Vec<ImportId> {
    let SliceCall { name, detail, file, line } = call;
    let (name, file) = (profile.text(name), profile.text(file));
    let mut locations =
        vec![profile.plain_location(ImportedCall { name, file, line: *line, ..ImportedCall::default() })];
    if !detail.is_empty() {
        let name = profile.text(detail);
        locations.push(profile.plain_location(ImportedCall { name, ..ImportedCall::default() }));
    }
    locations
}

/// Adds the samples of the trace event format itself.
fn add_frame_samples(
    frames: &Map<String, Value>,
    samples: &[TraceSample],
    names: &HashMap<TraceThread, String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let key = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let of_tid: HashMap<i32, (i32, &str)> =
        names.iter().map(|(thread, name)| (thread.tid, (thread.pid, name.as_str()))).collect();
    'samples: for (number, sample) in samples.iter().enumerate() {
        let event = profile.event(if sample.name.is_empty() { "samples" } else { &sample.name }, "")?;
        let tid = id(&sample.tid);
        let (pid, comm) = of_tid.get(&tid).copied().unwrap_or((tid, ""));
        let thread = profile.thread(pid, tid, comm)?;
        let (mut locations, mut next) = (Vec::new(), key(&sample.sf));
        while let Some(id) = next.filter(|_| locations.len() <= MOST_FRAMES) {
            let Some(frame) = frames.get(&id) else {
                let what = format!("it refers to the missing stack frame {id:?}");
                profile.lose(ImportError::item("sample", number, what))?;
                continue 'samples;
            };
            let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, module) = (profile.text(text("name")), profile.text(text("category")));
            locations.push(profile.plain_location(ImportedCall { name, module, ..ImportedCall::default() }));
            next = frame.get("parent").and_then(key);
        }
        let stack = profile.stack(&locations)?;
        let Some(weight) = number_of(&sample.weight).or(sample.weight.is_null().then_some(1.0)) else {
            profile.lose(ImportError::item("sample", number, "its weight must be a number"))?;
            continue;
        };
        let value = weight.max(0.0).round() as u64;
        let time = nanoseconds(&sample.ts);
        profile.add(ImportedSample { event, stack, thread, time, value, ..ImportedSample::default() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = r#"[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
        {"id":2,"callFrame":{"functionName":"main","url":"a.js","lineNumber":4},"children":[3]},
        {"id":3,"callFrame":{"functionName":"","url":"a.js","lineNumber":9}}]"#;

    #[test]
    fn samples_last_until_the_next_one() {
        let text = format!(
            r#"{{"nodes":{NODES},"startTime":100,"endTime":160,"samples":[3,2],"timeDeltas":[10,20]}}"#
        );
        let profile = read_cpuprofile(text.as_bytes(), ImportedProfile::new()).unwrap();
        let samples: Vec<_> =
            profile.samples.iter().map(|sample| (sample.time.unwrap(), sample.value)).collect();
        assert_eq!(samples, [(110_000, 20_000), (130_000, 30_000)]);
        let call = profile.calls[profile.locations[profile.stacks[0][0] as usize][0] as usize];
        assert_eq!((&**profile.get_text(call.name), call.line), ("(anonymous)", 10));
        assert_eq!(profile.stacks[0].len(), 2);
    }

    #[test]
    fn chunks_of_a_trace_are_joined() {
        let text = format!(
            r#"[{{"name":"thread_name","ph":"M","pid":7,"tid":8,"args":{{"name":"Main"}}}},
            {{"name":"other","ph":"X","pid":7,"tid":8,"args":{{"data":"text"}}}},
            {{"name":"Profile","ph":"P","pid":7,"tid":8,"id":"0x1","args":{{"data":{{"startTime":100}}}}}},
            {{"name":"ProfileChunk","ph":"P","pid":7,"tid":9,"id":"0x1","args":{{"data":{{"cpuProfile":{{"nodes":{NODES},"samples":[3]}},"timeDeltas":[5]}}}}}},
            {{"name":"ProfileChunk","ph":"P","pid":7,"tid":9,"id":"0x1","args":{{"data":{{"cpuProfile":{{"samples":[2]}},"timeDeltas":[7]}}}}}},"#
        );
        let profile = read_trace(text.as_bytes(), ImportedProfile::new()).unwrap();
        assert_eq!(profile.samples.len(), 2);
        let thread = &profile.threads[0];
        assert_eq!((thread.pid, thread.tid, &**profile.get_text(thread.comm)), (7, 8, "Main"));
        assert_eq!(profile.samples[0].value, 7_000);
    }

    #[test]
    fn stack_frames_and_errors() {
        let text = r#"{"traceEvents":[],"stackFrames":{"1":{"name":"main","category":"app"},"2":{"name":"f","parent":1}},
            "samples":[{"tid":1,"ts":2.5,"name":"cycles","sf":2,"weight":3}]}"#;
        let profile = read_trace(text.as_bytes(), ImportedProfile::new()).unwrap();
        assert_eq!((profile.samples[0].value, profile.samples[0].time), (3, Some(2500)));
        assert_eq!(profile.stacks[0].len(), 2);
        let error = |text: &str| read_trace(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        let slices = r#"[{"ph":"X","pid":1,"tid":2,"ts":0,"dur":10,"name":"a"},{"ph":"X","pid":1,"tid":2,"ts":4,"dur":6,"name":"b"},
            {"ph":"B","pid":1,"tid":3,"ts":5,"name":"c","args":{"filename":"c.py","line":7}},{"ph":"E","pid":1,"tid":3,"ts":6}]"#;
        let profile = read_trace(slices.as_bytes(), ImportedProfile::new()).unwrap();
        let rows: Vec<(u64, usize)> = profile
            .samples
            .iter()
            .map(|sample| (sample.value, profile.stacks[sample.stack as usize].len()))
            .collect();
        assert_eq!(rows, [(4_000, 1), (6_000, 2), (1_000, 1)]);
        assert!(error(r#"{"traceEvents":[]}"#).contains("neither samples"));
        let missing = read_trace(text.replace("\"sf\":2", "\"sf\":9").as_bytes(), ImportedProfile::new());
        assert!(missing.unwrap().lost().unwrap().to_string().contains("missing stack frame"));
    }
}
