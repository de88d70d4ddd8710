//! The Firefox Profiler's formats: the processed one (samply, pmc, the profiler's own downloads) and the one
//! that Firefox and `perf script gecko` write.
//!
//! ```text
//!   processed   threads[]: samples {stack: [], time: [] or timeDeltas: [], weight: []}; the tables are
//!               columns, in the thread or in `shared`
//!   gecko       threads[]: samples {schema: {stack: 0, time: 1}, data: [[stack, time], ...]}; frames are
//!               texts
//!   sample -> stackTable (frame, prefix) -> frameTable (func, line) -> funcTable (name, resource) -> lib
//! ```

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ImportError;
use super::json;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, MOST_FRAMES};
use super::text::{file_and_line, split_module};
use pmc_text::text::split_parenthesis;

/// Why a file that is cut off may contain no whole sample.
const NEEDS: &str = "a thread is read only if it is whole, because the names of its functions are at its end, and some programs \
                     write the names of all threads at the end of the file";
/// Maximum number of nested lists of processes.
const MOST_PROCESS_LEVELS: usize = 8;

/// A value of a type that other parts of the format may give to it.
fn lenient<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    })
}

/// A value that may be null.
fn nullable<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FirefoxFile {
    meta: FirefoxMeta,
    #[serde(deserialize_with = "nullable")]
    libs: Vec<FirefoxLib>,
    #[serde(deserialize_with = "nullable")]
    threads: Vec<FirefoxThread>,
    shared: FirefoxTables,
    #[serde(deserialize_with = "nullable")]
    processes: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FirefoxMeta {
    #[serde(deserialize_with = "nullable")]
    categories: Vec<FirefoxCategory>,
    #[serde(rename = "preprocessedProfileVersion")]
    processed_version: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FirefoxCategory {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    subcategories: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FirefoxLib {
    #[serde(deserialize_with = "nullable")]
    name: String,
    path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct FirefoxThread {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "lenient")]
    pid: String,
    #[serde(deserialize_with = "lenient")]
    tid: String,
    #[serde(deserialize_with = "nullable")]
    samples: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    string_table: Vec<Value>,
    #[serde(flatten)]
    tables: FirefoxTables,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct FirefoxTables {
    #[serde(deserialize_with = "nullable")]
    string_array: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    stack_table: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    frame_table: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    func_table: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    resource_table: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    sources: Map<String, Value>,
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let (file, _): (FirefoxFile, bool) = json::read(bytes, NEEDS, &mut profile)?;
    read_file(&file, &mut profile, 0)?;
    Ok(profile)
}

fn read_file(file: &FirefoxFile, profile: &mut ImportedProfile, level: usize) -> Result<(), ImportError> {
    for (number, thread) in file.threads.iter().enumerate() {
        let read = match file.meta.processed_version {
            Some(_) => processed(file, (number, thread), profile),
            None => gecko((number, thread), profile),
        };
        if let Err(error) = read {
            let what = match error {
                ImportError::File(what) => what,
                error => return Err(error),
            };
            profile.lose(ImportError::item("thread", number, what))?;
        }
    }
    for process in &file.processes {
        if level == MOST_PROCESS_LEVELS {
            return Err(ImportError::file("processes are nested too deeply"));
        }
        // Each further process is a complete profile.
        let process = FirefoxFile::deserialize(process)?;
        read_file(&process, profile, level + 1)?;
    }
    Ok(())
}

/// Notes that a sample of a thread could not be read.
fn lose_sample(
    thread: usize,
    sample: usize,
    error: ImportError,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    match error {
        ImportError::File(what) => {
            profile.lose(ImportError::item("thread", thread, format!("sample {sample}: {what}")))
        }
        error => Err(error),
    }
}

/// A column of a table of the processed format.
fn column<'a>(table: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    table.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn index(column: &[Value], row: usize) -> Option<usize> {
    usize::try_from(column.get(row)?.as_u64()?).ok()
}

fn number(column: &[Value], row: usize) -> Option<f64> {
    column.get(row)?.as_f64()
}

/// Locations and stacks of a thread, from its rows of frames and prefixes.
struct StackRows {
    /// The call of each frame, and whether it was inlined into its caller.
    frames: Vec<(ImportId, bool)>,
    /// The frame and the calling stack of each stack.
    stacks: Vec<(usize, Option<usize>)>,
    /// The stacks that were converted.
    known: Vec<Option<ImportId>>,
}

impl StackRows {
    fn new(frames: Vec<(ImportId, bool)>, stacks: Vec<(usize, Option<usize>)>) -> Self {
        let known = vec![None; stacks.len()];
        Self { frames, stacks, known }
    }

    fn stack(&mut self, number: usize, profile: &mut ImportedProfile) -> Result<ImportId, ImportError> {
        let invalid =
            || ImportError::file(format!("there is no stack {number}, or it refers to a missing frame"));
        if let Some(known) = self.known.get(number).ok_or_else(invalid)? {
            return Ok(*known);
        }
        let (mut locations, mut calls) = (Vec::new(), Vec::new());
        let mut next = Some(number);
        while let Some((frame, prefix)) =
            next.map(|at| self.stacks.get(at).copied().ok_or_else(invalid)).transpose()?
        {
            let (call, is_inlined) = *self.frames.get(frame).ok_or_else(invalid)?;
            calls.push(call);
            if !is_inlined {
                locations.push(profile.location(&calls));
                calls.clear();
            }
            // A caller precedes its callees, so a hostile table cannot contain a loop.
            next = prefix.filter(|prefix| Some(*prefix) < next && locations.len() <= MOST_FRAMES);
            if calls.len() > MOST_FRAMES {
                break;
            }
        }
        if !calls.is_empty() {
            locations.push(profile.location(&calls));
        }
        let stack = profile.stack(&locations)?;
        self.known[number] = Some(stack);
        Ok(stack)
    }
}

fn processed(
    file: &FirefoxFile,
    (number_of_thread, thread): (usize, &FirefoxThread),
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    // Since version 56, tables move from the threads to `shared`.
    let pick = |own: fn(&FirefoxTables) -> &Map<String, Value>| {
        if own(&thread.tables).is_empty() { own(&file.shared) } else { own(&thread.tables) }
    };
    let strings = match thread.tables.string_array.is_empty() {
        true => &file.shared.string_array,
        false => &thread.tables.string_array,
    };
    let frames = frames_of(
        file,
        strings,
        [
            pick(|tables| &tables.frame_table),
            pick(|tables| &tables.func_table),
            pick(|tables| &tables.resource_table),
            pick(|tables| &tables.sources),
        ],
        profile,
    )?;
    let stack_table = pick(|tables| &tables.stack_table);
    let (of_frame, prefixes) = (column(stack_table, "frame"), column(stack_table, "prefix"));
    let row = |at: usize| {
        let frame = index(of_frame, at);
        Ok((frame.ok_or_else(|| ImportError::file("a stack has no frame"))?, index(prefixes, at)))
    };
    let rows: Result<Vec<_>, ImportError> = (0..of_frame.len()).map(row).collect();
    let mut rows = StackRows::new(frames, rows?);
    let samples = &thread.samples;
    let (stacks, weights) = (column(samples, "stack"), column(samples, "weight"));
    let (times, deltas) = (column(samples, "time"), column(samples, "timeDeltas"));
    let (name, unit) = match samples.get("weightType").and_then(Value::as_str) {
        Some("tracing-ms") => ("time", "milliseconds"),
        Some("bytes") => ("bytes", "bytes"),
        _ => ("samples", ""),
    };
    let mut comm = thread.name.as_str();
    let mut event_name = name;
    // pmc names threads of further events, and of bytes, after the event, whose name may end with a unit.
    if let (start, Some(end)) = split_module(comm)
        && (name == "samples" && !end.contains(' ') || end.ends_with(')'))
    {
        (comm, event_name) = (start, end);
    }
    let event = profile.event(event_name, unit)?;
    let thread = add_thread(thread, comm, profile)?;
    let mut clock = 0.0;
    for at in 0..stacks.len() {
        clock += number(deltas, at).unwrap_or(0.0);
        let time = number(times, at).or((at < deltas.len()).then_some(clock));
        let weight = number(weights, at).unwrap_or(1.0);
        let Some(stack) = index(stacks, at).filter(|_| weight != 0.0) else { continue };
        if weight < 0.0 {
            let error = ImportError::file("its weight is negative, as in the difference of two profiles");
            lose_sample(number_of_thread, at, error, profile)?;
            continue;
        }
        let stack = match rows.stack(stack, profile) {
            Ok(stack) => stack,
            Err(error) => {
                lose_sample(number_of_thread, at, error, profile)?;
                continue;
            }
        };
        let value = profile.scaled(event, weight);
        let samples = if unit.is_empty() { value } else { 1 };
        let time = time.map(nanoseconds);
        profile.add(ImportedSample {
            event,
            stack,
            thread,
            time,
            samples,
            value,
            ..ImportedSample::default()
        })?;
    }
    Ok(())
}

/// Converts milliseconds to nanoseconds. Rounds, because times are sums of decimal fractions.
fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}

fn add_thread(
    thread: &FirefoxThread,
    comm: &str,
    profile: &mut ImportedProfile,
) -> Result<ImportId, ImportError> {
    // IDs may have a suffix: 123.1 is the second process 123.
    let id = |text: &str| text.split('.').next().unwrap_or_default().parse::<i32>().ok();
    match (id(&thread.pid), id(&thread.tid)) {
        (Some(pid), Some(tid)) => profile.thread(pid, tid, comm),
        (Some(pid), None) => profile.thread(pid, pid, comm),
        _ => profile.named_thread(comm),
    }
}

/// Returns the call of each frame, and whether it was inlined into its caller.
fn frames_of(
    file: &FirefoxFile,
    strings: &[String],
    [frames, funcs, resources, sources]: [&Map<String, Value>; 4],
    profile: &mut ImportedProfile,
) -> Result<Vec<(ImportId, bool)>, ImportError> {
    let of_func = column(frames, "func");
    let (lines, depths) = (column(frames, "line"), column(frames, "inlineDepth"));
    let (categories, subcategories) = (column(frames, "category"), column(frames, "subcategory"));
    let addresses = column(frames, "address");
    let text = |at: Option<usize>| at.and_then(|at| strings.get(at)).map_or("", String::as_str);
    let mut list = Vec::with_capacity(of_func.len());
    for at in 0..of_func.len() {
        let func = index(of_func, at).ok_or_else(|| ImportError::file("a frame has no function"))?;
        let name = text(index(column(funcs, "name"), func));
        let source =
            index(column(funcs, "source"), func).and_then(|at| index(column(sources, "filename"), at));
        let path = text(index(column(funcs, "fileName"), func).or(source));
        let resource = index(column(funcs, "resource"), func);
        let lib =
            resource.and_then(|at| index(column(resources, "lib"), at)).and_then(|at| file.libs.get(at));
        let mut module = lib.map_or("", |lib| lib.path.as_deref().unwrap_or(&lib.name));
        let category = index(categories, at).and_then(|at| file.meta.categories.get(at));
        // pmc names the module in the subcategory.
        let kinds = ["Program", "Library", "Kernel", "Generated code", "Unknown"];
        let subcategory = category.filter(|category| module.is_empty() && kinds.contains(&&*category.name));
        if let Some(category) = subcategory {
            let sub = index(subcategories, at).and_then(|at| category.subcategories.get(at));
            module = sub.map_or("", String::as_str);
            module = if module == "Other" || module == "unknown" { "" } else { module };
        }
        let is_kernel =
            category.is_some_and(|category| category.name == "Kernel") || module.starts_with("[kernel");
        let plain = name.strip_suffix(" (inlined)");
        // samply names code without symbols by its address.
        let is_nameless = name.starts_with('[') && name.ends_with(']')
            || name
                .strip_prefix("0x")
                .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let address = number(addresses, at).filter(|address| *address > 0.0).unwrap_or(0.0);
        let call = ImportedCall {
            name: if is_nameless { 0 } else { profile.text(plain.unwrap_or(name)) },
            module: profile.text(module),
            file: profile.text(path),
            line: number(lines, at).unwrap_or(0.0) as u32,
            address: if is_nameless { address as u64 } else { 0 },
            is_kernel,
        };
        let is_inlined = plain.is_some() || number(depths, at).unwrap_or(0.0) > 0.0;
        list.push((profile.call(call), is_inlined));
    }
    Ok(list)
}

/// A table of the gecko format: the position of each field, and the rows.
struct GeckoTable<'a> {
    schema: Option<&'a Map<String, Value>>,
    rows: &'a [Value],
}

impl<'a> GeckoTable<'a> {
    fn new(table: &'a Map<String, Value>) -> Self {
        Self { schema: table.get("schema").and_then(Value::as_object), rows: column(table, "data") }
    }

    fn field(&self, row: &'a Value, name: &str) -> Option<&'a Value> {
        let at = usize::try_from(self.schema?.get(name)?.as_u64()?).ok()?;
        row.as_array()?.get(at)
    }

    fn index(&self, row: &'a Value, name: &str) -> Option<usize> {
        usize::try_from(self.field(row, name)?.as_u64()?).ok()
    }
}

fn gecko(
    (number, thread): (usize, &FirefoxThread),
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let tables = &thread.tables;
    let (frames, stacks) = (GeckoTable::new(&tables.frame_table), GeckoTable::new(&tables.stack_table));
    let samples = GeckoTable::new(&thread.samples);
    if samples.schema.is_none() && !thread.samples.is_empty() {
        return Err(ImportError::file(
            "it has neither a version of the processed format nor a schema of samples",
        ));
    }
    let mut list = Vec::with_capacity(frames.rows.len());
    for row in frames.rows {
        let text = frames.index(row, "location").and_then(|at| thread.string_table.get(at)?.as_str());
        let call = gecko_call(text.unwrap_or_default(), profile);
        list.push((profile.call(call), false));
    }
    let row = |row: &Value| {
        let frame = stacks.index(row, "frame").ok_or_else(|| ImportError::file("a stack has no frame"))?;
        Ok((frame, stacks.index(row, "prefix")))
    };
    let rows: Result<Vec<_>, ImportError> = stacks.rows.iter().map(row).collect();
    let mut rows = StackRows::new(list, rows?);
    let event = profile.event("samples", "")?;
    let id = add_thread(thread, &thread.name, profile)?;
    for (at, sample) in samples.rows.iter().enumerate() {
        let Some(stack) = samples.index(sample, "stack") else { continue };
        let stack = match rows.stack(stack, profile) {
            Ok(stack) => stack,
            Err(error) => {
                lose_sample(number, at, error, profile)?;
                continue;
            }
        };
        let time = samples.field(sample, "time").and_then(Value::as_f64).map(nanoseconds);
        profile.add(ImportedSample {
            event,
            stack,
            thread: id,
            time,
            value: 1,
            ..ImportedSample::default()
        })?;
    }
    Ok(())
}

/// Parses `function (in module)`, and `function (file.js:12:3)` of scripts.
fn gecko_call(text: &str, profile: &mut ImportedProfile) -> ImportedCall {
    let Some((name, inside)) = split_parenthesis(text) else {
        return ImportedCall { name: profile.text(text), ..ImportedCall::default() };
    };
    let name = if name == "[unknown]" { 0 } else { profile.text(name) };
    if let Some(module) = inside.strip_prefix("in ") {
        let is_kernel = module.starts_with("[kernel");
        return ImportedCall { name, module: profile.text(module), is_kernel, ..ImportedCall::default() };
    }
    // The last number may be a column.
    let position = file_and_line(inside).map(|(file, last)| file_and_line(file).unwrap_or((file, last)));
    match position {
        Some((file, line)) => {
            ImportedCall { name, file: profile.text(file), line, ..ImportedCall::default() }
        }
        None => ImportedCall { name: profile.text(text), ..ImportedCall::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processed_tables_may_be_shared() {
        let tables = r#""stringArray":["main","work (inlined)","a.c"],
            "stackTable":{"frame":[0,1],"prefix":[null,0]},
            "frameTable":{"func":[0,1],"line":[3,null],"inlineDepth":[0,0]},
            "funcTable":{"name":[0,1],"resource":[0,0],"fileName":[2,null]},
            "resourceTable":{"lib":[0],"name":[0]}"#;
        let samples = r#""samples":{"stack":[1,null,0],"timeDeltas":[5,1,1.5],"weight":[2,0,1],"weightType":"samples"}"#;
        let head = r#"{"meta":{"preprocessedProfileVersion":55},"libs":[{"name":"app","path":"/bin/app"}],"#;
        let own = format!(r#"{head}"threads":[{{"name":"io","pid":"12.1","tid":13,{samples},{tables}}}]}}"#);
        let shared = format!(
            r#"{head}"shared":{{{tables}}},"threads":[{{"name":"io","pid":12,"tid":"13",{samples}}}]}}"#
        );
        for text in [own, shared] {
            let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
            let samples: Vec<_> =
                profile.samples.iter().map(|sample| (sample.time.unwrap(), sample.samples)).collect();
            assert_eq!(samples, [(5_000_000, 2), (7_500_000, 1)]);
            assert_eq!((profile.threads[0].pid, profile.threads[0].tid), (12, 13));
            let inlined = &profile.locations[profile.stacks[0][0] as usize];
            assert_eq!(inlined.len(), 2);
            assert_eq!(&**profile.get_text(profile.calls[inlined[1] as usize].module), "/bin/app");
        }
    }

    #[test]
    fn gecko_tables_have_a_schema() {
        let text = r#"{"meta":{"version":24},"threads":[],"processes":[{"meta":{},"threads":[{"name":"perf","pid":7,"tid":7,
            "samples":{"schema":{"stack":0,"time":1},"data":[[1,2.5],[null,3]]},
            "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1]]},
            "frameTable":{"schema":{"location":0},"data":[[0],[1]]},
            "stringTable":["main (in app)","f (http://x/a.js:12:3)"]}]}]}"#;
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        assert_eq!(profile.samples.len(), 1);
        let call = profile.calls[profile.locations[profile.stacks[0][0] as usize][0] as usize];
        assert_eq!((&**profile.get_text(call.file), call.line), ("http://x/a.js", 12));
    }

    #[test]
    fn invalid_references_are_errors() {
        let text = r#"{"meta":{"preprocessedProfileVersion":55},"threads":[{"name":"x","pid":1,"tid":1,
            "samples":{"stack":[4]},"stackTable":{"frame":[],"prefix":[]}}]}"#;
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let lost = profile.lost().unwrap().to_string();
        assert!(lost.contains("thread 0: sample 0: there is no stack 4"), "{lost}");
    }
}
