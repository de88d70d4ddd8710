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
//! slice is the innermost one is a sample.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, MOST_FRAMES};

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
    let file: CpuProfile = serde_json::from_slice(bytes)?;
    let thread = profile.named_thread("")?;
    let event = profile.event(TIME, "microseconds")?;
    let mut nodes = NodeTable::default();
    file.nodes.into_iter().for_each(|node| nodes.add(node, &mut profile));
    let deltas = &file.time_deltas;
    if file.samples.len() != deltas.len() {
        return Err(ImportError::file("its numbers of samples and timeDeltas differ"));
    }
    nodes.add_samples(
        &file.samples,
        deltas,
        file.start_time,
        Some(file.end_time),
        (event, thread),
        &mut profile,
    )?;
    Ok(profile)
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

    fn stack(&self, id: u64, profile: &mut ImportedProfile) -> Result<ImportId, ImportError> {
        let (mut locations, mut next) = (Vec::new(), Some(id));
        while let Some(id) = next {
            let missing = || ImportError::file(format!("a sample refers to the missing node {id}"));
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
                None => *known.entry(*id).or_insert(self.stack(*id, profile)?),
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

/// The arguments of an event, if they belong to a profile or name a thread.
#[derive(Default)]
struct TraceArguments {
    name: Option<String>,
    /// The source position of a slice.
    file: Option<String>,
    line: u32,
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
        Ok(Self { name, file, line: line.unwrap_or(0), data })
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
    ts: Option<f64>,
    sf: Value,
    weight: Option<f64>,
}

/// Reads a trace.
pub(super) fn read_trace(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let mut file = match is_list {
        true => TraceFile { trace_events: list(bytes)?, ..TraceFile::default() },
        false => serde_json::from_slice(bytes)?,
    };
    let mut names: HashMap<(i32, i32), String> = HashMap::new();
    for event in file.trace_events.iter().filter(|event| is_named(event, "thread_name")) {
        if let Some(name) = &event.args.name {
            names.insert((id(&event.pid), id(&event.tid)), name.clone());
        }
    }
    add_frame_samples(&file.stack_frames, &file.samples, &names, &mut profile)?;
    add_profiles(&mut file.trace_events, &names, &mut profile)?;
    if profile.samples.is_empty() {
        add_slices(slices(&file.trace_events), &names, &mut profile)?;
    }
    if profile.samples.is_empty() {
        return Err(ImportError::unsupported(
            "the trace contains neither samples (events \"ProfileChunk\", or \"samples\" with \"stackFrames\") nor slices",
        ));
    }
    Ok(profile)
}

/// Reads a list of events, whose closing bracket is optional.
fn list(bytes: &[u8]) -> Result<Vec<TraceEvent>, ImportError> {
    let text = bytes.trim_ascii();
    if text.ends_with(b"]") {
        return Ok(serde_json::from_slice(text)?);
    }
    let open = text.strip_suffix(b",").unwrap_or(text);
    Ok(serde_json::from_slice(&[open, b"]"].concat())?)
}

fn is_named(event: &TraceEvent, name: &str) -> bool {
    event.name.as_ref().and_then(Value::as_str) == Some(name)
}

/// Returns an ID. Some programs write the addresses of threads, of which the lower bits are kept.
fn id(value: &Value) -> i32 {
    let number: Option<i64> = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    number.map_or(0, |number| (number & i64::from(i32::MAX)) as i32)
}

/// A profile that is spread over several events.
#[derive(Default)]
struct ChunkedProfile {
    thread: (i32, i32),
    start: f64,
    end: Option<f64>,
    nodes: NodeTable,
    samples: Vec<u64>,
    deltas: Vec<f64>,
}

/// Adds the samples of profiles, which are moved out of the events.
fn add_profiles(
    events: &mut [TraceEvent],
    names: &HashMap<(i32, i32), String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let mut open: indexmap::IndexMap<(i32, String), ChunkedProfile> = indexmap::IndexMap::new();
    for event in events {
        let is_start = is_named(event, "Profile") || is_named(event, "CpuProfile");
        if !is_start && !is_named(event, "ProfileChunk") {
            continue;
        }
        let pid = id(&event.pid);
        let chunk = open.entry((pid, event.id.to_string())).or_default();
        if is_start || chunk.thread == (0, 0) {
            chunk.thread = (pid, id(&event.tid));
        }
        let Some(data) = event.args.data.take() else { continue };
        chunk.start = data.start_time.unwrap_or(chunk.start);
        chunk.end = data.end_time.or(chunk.end);
        data.cpu_profile.nodes.into_iter().for_each(|node| chunk.nodes.add(node, profile));
        let deltas =
            if data.time_deltas.is_empty() { data.cpu_profile.time_deltas } else { data.time_deltas };
        if data.cpu_profile.samples.len() != deltas.len() {
            return Err(ImportError::file("a ProfileChunk's numbers of samples and timeDeltas differ"));
        }
        chunk.samples.extend(data.cpu_profile.samples);
        chunk.deltas.extend(deltas);
    }
    for chunk in open.into_values().filter(|chunk| !chunk.samples.is_empty()) {
        let event = profile.event(TIME, "microseconds")?;
        let thread = add_thread(chunk.thread, names, profile)?;
        let ChunkedProfile { nodes, samples, deltas, start, end, .. } = &chunk;
        nodes.add_samples(samples, deltas, *start, *end, (event, thread), profile)?;
    }
    Ok(())
}

fn add_thread(
    (pid, tid): (i32, i32),
    names: &HashMap<(i32, i32), String>,
    profile: &mut ImportedProfile,
) -> Result<ImportId, ImportError> {
    profile.thread(pid, tid, names.get(&(pid, tid)).map_or("", String::as_str))
}

/// The begin (with its call) or the end of a slice.
struct SliceEdge {
    /// Nanoseconds.
    at: u64,
    /// Orders edges with equal times: ends first, then longer slices. Equal for events in the file's order.
    rank: (bool, u64),
    call: Option<SliceCall>,
}

struct SliceCall {
    name: String,
    file: String,
    line: u32,
}

/// Returns the edges of all slices by process and thread, in the order of their times.
fn slices(events: &[TraceEvent]) -> indexmap::IndexMap<(i32, i32), Vec<SliceEdge>> {
    let mut threads: indexmap::IndexMap<(i32, i32), Vec<SliceEdge>> = indexmap::IndexMap::new();
    let nanoseconds = |value: &Value| value.as_f64().map(|time| (time * 1e3).round() as u64);
    for event in events {
        let (Some(kind), Some(at)) = (event.ph.as_str(), nanoseconds(&event.ts)) else { continue };
        let call = || {
            let name = event.name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            let file = event.args.file.clone().unwrap_or_default();
            Some(SliceCall { name, file, line: event.args.line })
        };
        let edges = threads.entry((id(&event.pid), id(&event.tid))).or_default();
        match kind {
            "B" => edges.push(SliceEdge { at, rank: (false, 0), call: call() }),
            "E" => edges.push(SliceEdge { at, rank: (false, 0), call: None }),
            "X" => {
                let Some(duration) = nanoseconds(&event.dur).filter(|duration| *duration > 0) else {
                    continue;
                };
                edges.push(SliceEdge { at, rank: (true, u64::MAX - duration), call: call() });
                edges.push(SliceEdge { at: at.saturating_add(duration), rank: (false, 0), call: None });
            }
            _ => {}
        }
    }
    // The sort is stable.
    threads.values_mut().for_each(|edges| edges.sort_by_key(|edge| (edge.at, edge.rank)));
    threads
}

fn add_slices(
    threads: indexmap::IndexMap<(i32, i32), Vec<SliceEdge>>,
    names: &HashMap<(i32, i32), String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    for (thread, edges) in threads.into_iter().filter(|(_, edges)| !edges.is_empty()) {
        let event = profile.event(TIME, "nanoseconds")?;
        let thread = add_thread(thread, names, profile)?;
        let (mut open, mut last): (Vec<ImportId>, u64) = (Vec::new(), 0);
        for edge in edges {
            let value = edge.at - last;
            if value > 0 && !open.is_empty() {
                let locations: Vec<ImportId> = open.iter().rev().copied().collect();
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
            match edge.call {
                Some(_) if open.len() == MOST_FRAMES => {
                    return Err(ImportError::file("slices are nested too deeply"));
                }
                Some(SliceCall { name, file, line }) => {
                    let (name, file) = (profile.text(&name), profile.text(&file));
                    open.push(profile.plain_location(ImportedCall {
                        name,
                        file,
                        line,
                        ..ImportedCall::default()
                    }));
                }
                // A trace may begin inside of a slice.
                None => drop(open.pop()),
            }
        }
    }
    Ok(())
}

/// Adds the samples of the trace event format itself.
fn add_frame_samples(
    frames: &Map<String, Value>,
    samples: &[TraceSample],
    names: &HashMap<(i32, i32), String>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let key = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let of_tid: HashMap<i32, (i32, &str)> =
        names.iter().map(|((pid, tid), name)| (*tid, (*pid, name.as_str()))).collect();
    for (number, sample) in samples.iter().enumerate() {
        let event = profile.event(if sample.name.is_empty() { "samples" } else { &sample.name }, "")?;
        let tid = id(&sample.tid);
        let (pid, comm) = of_tid.get(&tid).copied().unwrap_or((tid, ""));
        let thread = profile.thread(pid, tid, comm)?;
        let (mut locations, mut next) = (Vec::new(), key(&sample.sf));
        while let Some(id) = next.filter(|_| locations.len() <= MOST_FRAMES) {
            let missing =
                || ImportError::file(format!("sample {number} refers to the missing stack frame {id:?}"));
            let frame = frames.get(&id).ok_or_else(missing)?;
            let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, module) = (profile.text(text("name")), profile.text(text("category")));
            locations.push(profile.plain_location(ImportedCall { name, module, ..ImportedCall::default() }));
            next = frame.get("parent").and_then(key);
        }
        let stack = profile.stack(&locations)?;
        let value = sample.weight.unwrap_or(1.0).max(0.0).round() as u64;
        let time = sample.ts.map(|ts| (ts * 1e3).round() as u64);
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
        assert!(error(&text.replace("\"sf\":2", "\"sf\":9")).contains("missing stack frame"));
    }
}
