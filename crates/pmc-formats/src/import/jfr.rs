//! Recordings of Java Flight Recorder (JFR): of the JVM itself, and of async-profiler.
//!
//! ```text
//!   event -- time, thread, stack, value            the event's kind is in the table `KINDS`
//!              |       '-- frames, innermost first: method, line, kind (Java, inlined, native, kernel)
//!              '-- thread: names and IDs
//! ```
//!
//! [`jfr_chunk`](super::jfr_chunk) decodes the file. Names of methods are those of async-profiler's collapsed
//! stacks, such as `java/lang/Thread.run`. Allocations and waits for locks have the class of the object as
//! their innermost frame, as in async-profiler's output too. JFR has no names of source files, so a line
//! belongs to its class.

use std::collections::{HashMap, VecDeque};

use super::error::ImportError;
use super::jfr_chunk::{JfrChunk, JfrEvent, JfrUnit, JfrValue, MAGIC};
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, MOST_FRAMES};
use pmc_text::units::thousands;

/// A kind of event that has a stack.
struct JfrKind {
    name: &'static str,
    /// The field with its value. Without one, each event is one sample.
    value: &'static str,
    unit: &'static str,
    /// The field with the class of the object that was allocated or waited for.
    object: &'static str,
}

/// The kinds of events that are imported. The events of the profile have this order.
const KINDS: &[JfrKind] = &[
    kind("jdk.ExecutionSample", "", "", ""),
    kind("jdk.NativeMethodSample", "", "", ""),
    kind("jdk.CPUTimeSample", "samplingPeriod", "nanoseconds", ""),
    kind("profiler.WallClockSample", "samples", "", ""),
    kind("jdk.ObjectAllocationSample", "weight", "bytes", "objectClass"),
    // The size of the buffer represents all allocations in it.
    kind("jdk.ObjectAllocationInNewTLAB", "tlabSize", "bytes", "objectClass"),
    kind("jdk.ObjectAllocationOutsideTLAB", "allocationSize", "bytes", "objectClass"),
    kind("jdk.JavaMonitorEnter", "duration", "nanoseconds", "monitorClass"),
    kind("jdk.ThreadPark", "duration", "nanoseconds", "parkedClass"),
];

const fn kind(name: &'static str, value: &'static str, unit: &'static str, object: &'static str) -> JfrKind {
    JfrKind { name, value, unit, object }
}

pub(super) fn is_format(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

pub(super) fn read(bytes: &[u8], profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let mut import = JfrImport { profile, pid: UNKNOWN_PROCESS, truncated: 0, unresolved: 0 };
    let mut start = 0;
    // The JVM writes some stacks and threads only to an earlier chunk.
    let mut earlier: VecDeque<ConvertedChunk> = VecDeque::new();
    let mut damaged = 0;
    while start < bytes.len() {
        let chunk = match JfrChunk::read(bytes, start) {
            Ok(chunk) => chunk,
            Err(error) if start == 0 => return Err(error),
            Err(error) => {
                import.profile.lose(error)?;
                damaged += 1;
                match next_chunk(bytes, start).filter(|_| damaged < MOST_DAMAGED) {
                    Some(next) => start = next,
                    None => break,
                }
                continue;
            }
        };
        let cache = ChunkCache { frame_kinds: frame_kinds(&chunk)?, ..ChunkCache::default() };
        let mut current = ConvertedChunk { chunk, cache };
        if let Err(error) = import.chunk(&mut current, &mut earlier) {
            import.profile.lose(error)?;
        }
        let chunk = &current.chunk;
        start = chunk.end();
        let rest = &bytes[start..];
        if chunk.is_unfinished && !rest.starts_with(MAGIC) {
            if !rest.is_empty() {
                import.profile.notes.push(format!(
                    "the recording was not stopped: the last {} bytes are incomplete and were not imported",
                    thousands(rest.len() as u64)
                ));
            }
            break;
        }
        earlier.truncate(MOST_EARLIER - 1);
        earlier.push_front(current);
    }
    import.finish()
}

/// Returns the offset of the chunk that follows a damaged one.
fn next_chunk(bytes: &[u8], damaged: usize) -> Option<usize> {
    let rest = bytes.get(damaged + MAGIC.len()..)?;
    let at = rest.windows(MAGIC.len()).position(|part| part == MAGIC)?;
    Some(damaged + MAGIC.len() + at)
}

/// Maximum number of damaged chunks, after which the rest of the file is not read.
const MOST_DAMAGED: usize = 16;
/// Number of chunks before, in which a missing stack or thread is looked up.
const MOST_EARLIER: usize = 16;
/// ID of the process if the file does not contain it.
const UNKNOWN_PROCESS: i32 = 1;

/// The profile while chunks are read. The event of a sample is a row of [`KINDS`].
struct JfrImport {
    profile: ImportedProfile,
    pid: i32,
    /// Number of samples whose stacks the JVM truncated.
    truncated: u64,
    /// Number of samples whose stack or thread is missing in the file.
    unresolved: u64,
}

/// The fields of an event.
struct JfrSample<'a> {
    row: usize,
    time: Option<u64>,
    thread: JfrValue<'a>,
    stack: JfrValue<'a>,
    object: JfrValue<'a>,
    value: i128,
}

/// A stack of a chunk.
#[derive(Clone)]
struct JfrStack {
    locations: Vec<ImportId>,
    is_truncated: bool,
}

/// Texts: the names of a method, of its class, and of the class's module.
#[derive(Clone, Copy, Default)]
struct JfrMethod {
    name: ImportId,
    class: ImportId,
    module: ImportId,
}

/// A kind of frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Java,
    /// Java code that was inlined into its caller.
    Inlined,
    /// Code that is no Java: the class of the method is its library.
    Native,
    Kernel,
}

/// Constants of a chunk that were already converted, by their keys.
#[derive(Default)]
struct ChunkCache {
    frame_kinds: HashMap<i64, FrameKind>,
    threads: HashMap<i64, Option<ImportId>>,
    stacks: HashMap<i64, JfrStack>,
    methods: HashMap<i64, JfrMethod>,
    /// Locations of classes of objects.
    objects: HashMap<i64, ImportId>,
}

/// A chunk, and its constants that were already converted.
struct ConvertedChunk<'a> {
    chunk: JfrChunk<'a>,
    cache: ChunkCache,
}

impl JfrImport {
    fn chunk(
        &mut self,
        current: &mut ConvertedChunk<'_>,
        earlier: &mut VecDeque<ConvertedChunk<'_>>,
    ) -> Result<(), ImportError> {
        let ConvertedChunk { chunk, cache } = current;
        for event in chunk.events() {
            let event = event?;
            if event.class.name == "jdk.JVMInformation" {
                self.process(chunk, &event)?;
            }
        }
        for event in chunk.events() {
            let event = event?;
            if let Some(row) = KINDS.iter().position(|kind| kind.name == event.class.name) {
                let sample = sample(chunk, &event, row)?;
                let mut stack = self.stack(chunk, cache, &sample.stack)?;
                let mut thread = self.thread(chunk, cache, &sample.thread)?;
                for ConvertedChunk { chunk, cache } in earlier.iter_mut() {
                    if stack.is_none() {
                        stack = self.stack(chunk, cache, &sample.stack)?;
                    }
                    if thread.is_none() {
                        thread = self.thread(chunk, cache, &sample.thread)?;
                    }
                }
                let object = self.object(chunk, cache, &sample.object)?;
                self.add(&event, &sample, stack, thread, object)?;
            }
        }
        Ok(())
    }

    fn process(&mut self, chunk: &JfrChunk<'_>, event: &JfrEvent<'_>) -> Result<(), ImportError> {
        chunk.event_fields(event, |field, value| {
            if let (JfrValue::Number(pid), "pid") = (value, &*field.name)
                && let Ok(pid @ 1..) = i32::try_from(pid)
            {
                self.pid = pid;
            }
        })
    }

    fn add(
        &mut self,
        event: &JfrEvent<'_>,
        sample: &JfrSample<'_>,
        stack: Option<JfrStack>,
        thread: Option<ImportId>,
        object: Option<ImportId>,
    ) -> Result<(), ImportError> {
        let kind = &KINDS[sample.row];
        let value = u64::try_from(sample.value).map_err(|_| {
            ImportError::byte(event.at(), format!("{} of {} is negative", kind.value, kind.name))
        })?;
        let is_count = kind.unit.is_empty();
        if is_count && value == 0 {
            return Ok(());
        }
        self.unresolved += u64::from(stack.is_none() || thread.is_none());
        let mut stack = stack.unwrap_or_else(|| JfrStack { locations: Vec::new(), is_truncated: false });
        self.truncated += u64::from(stack.is_truncated);
        stack.locations.splice(0..0, object);
        let thread = match thread {
            Some(thread) => thread,
            None => self.profile.named_thread("")?,
        };
        let stack = self.profile.stack(&stack.locations)?;
        self.profile.add(ImportedSample {
            event: sample.row as ImportId,
            stack,
            thread,
            time: sample.time,
            cpu: None,
            samples: if is_count { value } else { 1 },
            value,
        })
    }

    /// Returns the thread, or `None` if it is missing in the file.
    fn thread(
        &mut self,
        chunk: &JfrChunk<'_>,
        cache: &mut ChunkCache,
        value: &JfrValue<'_>,
    ) -> Result<Option<ImportId>, ImportError> {
        let JfrValue::Reference { key, .. } = *value else { return Ok(None) };
        if let Some(known) = cache.threads.get(&key) {
            return Ok(*known);
        }
        let name = chunk.text(value, &["javaName"])?;
        let name = match name.filter(|name| !name.is_empty()) {
            Some(name) => Some(name),
            None => chunk.text(value, &["osName"])?,
        };
        let tid = chunk.number(value, &["osThreadId"])?;
        let comm = name.as_deref().unwrap_or_default();
        let thread = match tid.map(i32::try_from) {
            None => None,
            // Virtual threads have no ID of the system.
            Some(Ok(tid @ 1..)) => Some(self.profile.thread(self.pid, tid, comm)?),
            Some(_) => Some(self.profile.named_thread(comm)?),
        };
        cache.threads.insert(key, thread);
        Ok(thread)
    }

    /// Returns the stack, or `None` if it is missing in the file.
    fn stack(
        &mut self,
        chunk: &JfrChunk<'_>,
        cache: &mut ChunkCache,
        value: &JfrValue<'_>,
    ) -> Result<Option<JfrStack>, ImportError> {
        let JfrValue::Reference { key, .. } = *value else { return Ok(None) };
        if let Some(known) = cache.stacks.get(&key) {
            return Ok(Some(known.clone()));
        }
        let list = chunk.get(value, &["frames"])?;
        if list == JfrValue::Null {
            return Ok(None);
        }
        let mut locations = Vec::new();
        // Inlined functions, up to the function that contains them.
        let mut calls: Vec<ImportId> = Vec::new();
        // One frame more than is kept tells the profile that it cut the stack.
        for frame in chunk.elements(&list, MOST_FRAMES + 1)? {
            let (call, kind) = self.frame(chunk, cache, &frame)?;
            calls.push(self.profile.call(call));
            if kind != FrameKind::Inlined {
                locations.push(self.profile.location(&calls));
                calls.clear();
            }
        }
        if !calls.is_empty() {
            locations.push(self.profile.location(&calls));
        }
        let is_truncated = chunk.number(value, &["truncated"])? == Some(1);
        let stack = JfrStack { locations, is_truncated };
        cache.stacks.insert(key, stack.clone());
        Ok(Some(stack))
    }

    fn frame(
        &mut self,
        chunk: &JfrChunk<'_>,
        cache: &mut ChunkCache,
        frame: &JfrValue<'_>,
    ) -> Result<(ImportedCall, FrameKind), ImportError> {
        let kind = match chunk.get(frame, &["type"])? {
            JfrValue::Reference { key, .. } => cache.frame_kinds.get(&key).copied(),
            _ => None,
        };
        let kind = kind.unwrap_or(FrameKind::Java);
        let JfrMethod { name, class, module } = self.method(chunk, cache, &chunk.get(frame, &["method"])?)?;
        let line = chunk.number(frame, &["lineNumber"])?;
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let call = match kind {
            FrameKind::Java | FrameKind::Inlined => {
                let [class_name, method_name] = [class, name].map(|text| &**self.profile.get_text(text));
                let dot = if class_name.is_empty() || method_name.is_empty() { "" } else { "." };
                let name = format!("{class_name}{dot}{method_name}");
                let name = self.profile.text(&name);
                let file = if line > 0 { class } else { 0 };
                ImportedCall { name, module, file, line, ..ImportedCall::default() }
            }
            FrameKind::Native => ImportedCall { name, module: class, ..ImportedCall::default() },
            FrameKind::Kernel => ImportedCall { name, is_kernel: true, ..ImportedCall::default() },
        };
        Ok((call, kind))
    }

    fn method(
        &mut self,
        chunk: &JfrChunk<'_>,
        cache: &mut ChunkCache,
        value: &JfrValue<'_>,
    ) -> Result<JfrMethod, ImportError> {
        let JfrValue::Reference { key, .. } = *value else { return Ok(JfrMethod::default()) };
        if let Some(known) = cache.methods.get(&key) {
            return Ok(*known);
        }
        let mut text = |path: &[&str]| -> Result<ImportId, ImportError> {
            Ok(self.profile.text(&chunk.text(value, path)?.unwrap_or_default()))
        };
        let method = JfrMethod {
            name: text(&["name"])?,
            class: text(&["type", "name"])?,
            module: text(&["type", "package", "module", "name"])?,
        };
        cache.methods.insert(key, method);
        Ok(method)
    }

    /// Returns a location that represents the class of an object.
    fn object(
        &mut self,
        chunk: &JfrChunk<'_>,
        cache: &mut ChunkCache,
        value: &JfrValue<'_>,
    ) -> Result<Option<ImportId>, ImportError> {
        let JfrValue::Reference { key, .. } = *value else { return Ok(None) };
        if let Some(known) = cache.objects.get(&key) {
            return Ok(Some(*known));
        }
        let Some(name) = chunk.text(value, &["name"])? else { return Ok(None) };
        let name = self.profile.text(&class_name(&name));
        let location = self.profile.plain_location(ImportedCall { name, ..ImportedCall::default() });
        cache.objects.insert(key, location);
        Ok(Some(location))
    }

    /// Replaces rows of [`KINDS`] by the events that occur.
    fn finish(self) -> Result<ImportedProfile, ImportError> {
        let mut profile = self.profile;
        profile.has_dates = true;
        let mut events = Vec::new();
        for (row, kind) in (0..).zip(KINDS) {
            let occurs = profile.samples.iter().any(|sample| sample.event == row);
            events.push(if occurs { profile.event(kind.name, kind.unit)? } else { 0 });
        }
        for sample in &mut profile.samples {
            sample.event = events[sample.event as usize];
        }
        if profile.samples.is_empty() && profile.lost().is_none() {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            return Err(ImportError::unsupported(format!(
                "it contains none of the events {}",
                names.join(", ")
            )));
        }
        if self.truncated > 0 {
            profile.notes.push(format!(
                "the JVM cut off the callers of {} stacks (-XX:FlightRecorderOptions=stackdepth=N keeps more)",
                thousands(self.truncated)
            ));
        }
        if self.unresolved > 0 {
            profile.notes.push(format!("{} events have no stack or no thread", thousands(self.unresolved)));
        }
        Ok(profile)
    }
}

/// Reads the fields of an event that all kinds have.
fn sample<'a>(chunk: &JfrChunk<'a>, event: &JfrEvent<'_>, row: usize) -> Result<JfrSample<'a>, ImportError> {
    let kind = &KINDS[row];
    let (thread, stack, object) = (JfrValue::Null, JfrValue::Null, JfrValue::Null);
    let mut sample = JfrSample { row, time: None, thread, stack, object, value: 1 };
    chunk.event_fields(event, |field, value| match (&*field.name, value) {
        ("startTime", JfrValue::Number(ticks)) => sample.time = Some(chunk.time(ticks)),
        ("sampledThread" | "eventThread", value) => sample.thread = value,
        ("stackTrace", value) => sample.stack = value,
        (name, JfrValue::Number(number)) if name == kind.value => {
            let unit = if kind.unit == "nanoseconds" { field.unit } else { JfrUnit::Unknown };
            sample.value = chunk.span(number, unit);
        }
        (name, value) if name == kind.object => sample.object = value,
        _ => {}
    })?;
    Ok(sample)
}

/// Returns the kinds of frames by the keys of their constants.
fn frame_kinds(chunk: &JfrChunk<'_>) -> Result<HashMap<i64, FrameKind>, ImportError> {
    let mut names = Vec::new();
    for (key, value) in chunk.constants("jdk.types.FrameType") {
        names.push((key, chunk.text(&value, &["description"])?.unwrap_or_default()));
    }
    // The JVM calls Java methods without bytecode native; async-profiler, all code that is no Java.
    let is_async_profiler = names.iter().any(|(_, name)| name == "Kernel");
    let kind = |name: &str| match name {
        "Inlined" => FrameKind::Inlined,
        "Native" if is_async_profiler => FrameKind::Native,
        "C++" => FrameKind::Native,
        "Kernel" => FrameKind::Kernel,
        _ => FrameKind::Java,
    };
    Ok(names.iter().map(|(key, name)| (*key, kind(name))).collect())
}

/// Returns the name of a class as Java source code spells it: `byte[]` for `[B`.
fn class_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = match element {
        "B" if dimensions > 0 => "byte",
        "C" if dimensions > 0 => "char",
        "S" if dimensions > 0 => "short",
        "I" if dimensions > 0 => "int",
        "J" if dimensions > 0 => "long",
        "Z" if dimensions > 0 => "boolean",
        "F" if dimensions > 0 => "float",
        "D" if dimensions > 0 => "double",
        _ if dimensions > 0 => element.strip_prefix('L').map_or(element, |name| name.trim_end_matches(';')),
        _ => element,
    };
    format!("{}{}", element.replace('/', "."), "[]".repeat(dimensions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_spelled_as_in_source_code() {
        for (name, spelled) in [
            ("java/lang/String", "java.lang.String"),
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("[Lapp/Main$Node;", "app.Main$Node[]"),
            ("B", "B"),
        ] {
            assert_eq!(class_name(name), spelled);
        }
    }

    #[test]
    fn damaged_files_do_not_panic() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fuzz/corpus/imported_profile/async-profiler-form.jfr"
        );
        let whole = std::fs::read(path).unwrap();
        let imported = |bytes: &[u8]| read(bytes, ImportedProfile::new());
        assert_eq!(imported(&whole).unwrap().samples.len(), 8);
        let second = whole.windows(4).rposition(|bytes| bytes == MAGIC).unwrap();
        for end in (1..whole.len()).step_by(11).filter(|end| *end != second) {
            match imported(&whole[..end]) {
                Ok(profile) => {
                    assert!(end > second && !profile.samples.is_empty());
                    let lost = profile.lost().unwrap().to_string();
                    assert!(
                        lost.starts_with(&format!("byte {second}: ")) || end < second + 68,
                        "{end}: {lost}"
                    );
                }
                Err(error) => {
                    assert!(end < second && matches!(error, ImportError::Byte { .. }), "{end}: {error}");
                }
            }
        }
        for at in (0..whole.len()).step_by(3) {
            for byte in [0, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = imported(&changed);
            }
        }
    }
}
