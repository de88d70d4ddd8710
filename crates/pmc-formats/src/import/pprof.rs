//! pprof's protocol buffer: Go, gperftools, jemalloc and tcmalloc (heap), Pyroscope, Parca and others.
//!
//! ```text
//!   sample -- locations, innermost first -- lines, the inlined functions first -- functions
//!      |            '-- mapping: the module's file
//!      '-- a value per sample type; labels: thread, pid, tid, ...
//! ```
//!
//! Each sample type becomes an event, the default one first, so that pictures show it. A type that counts
//! samples is no event: it gives the numbers of samples of the types after it.
//!
//! Format: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::collections::{BTreeMap, HashMap};

use prost::Message;

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use crate::pprof_messages::{PprofMapping, PprofProfile, PprofSample};

/// Why a file that is cut off may contain no whole sample.
const NEEDS: &str = "the names of functions are the last part of most files";
/// Maximum number of values of a sample.
const MOST_TYPES: usize = 64;
/// Maximum number of labels to name in a note.
const MOST_LABELS: usize = 8;
/// Labels that describe the thread.
const THREAD_LABELS: &[&str] =
    &["pid", "process_id", "tid", "thread_id", "thread", "comm", "thread_comm", "thread_name"];

/// Whether the file consists of fields of the message. The last field may be cut off.
pub(super) fn is_format(head: &[u8]) -> bool {
    let (mut rest, mut has_other, mut has_type) = (head, false, false);
    while let Some((tag, after)) = varint(rest) {
        let (field, kind) = (tag >> 3, tag & 7);
        let Some((value, after)) = varint(after) else { break };
        match (field, kind) {
            (1..=6 | 11 | 13, 2) => {
                let size = usize::try_from(value).unwrap_or(usize::MAX);
                has_type |= field == 1 && matches!(after.first(), Some(0x08 | 0x10));
                let Some(next) = after.get(size..) else { break };
                rest = next;
            }
            (7..=10 | 12..=14, 0) => rest = after,
            (15, 2) => rest = after.get(usize::try_from(value).unwrap_or(usize::MAX)..).unwrap_or_default(),
            _ => return false,
        }
        has_other |= field != 1;
    }
    // Other messages, such as Perfetto's traces, consist of field 1 only.
    has_other && has_type && !head.starts_with(b"\n\n")
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// Returns the end of the fields that are whole.
fn end_of_whole_fields(bytes: &[u8]) -> usize {
    let after_field = |bytes| {
        let (tag, after) = varint(bytes)?;
        let (value, after) = varint(after)?;
        match tag & 7 {
            0 => Some(after),
            2 => after.get(usize::try_from(value).ok()?..),
            _ => None,
        }
    };
    let mut rest = bytes;
    while let Some(next) = after_field(rest) {
        rest = next;
    }
    bytes.len() - rest.len()
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let file = match PprofProfile::decode(bytes) {
        Ok(file) => file,
        Err(error) => {
            let end = end_of_whole_fields(bytes);
            let whole = PprofProfile::decode(&bytes[..end]);
            let file = whole.map_err(|_| ImportError::file(error.to_string()))?;
            let what = format!("the file is damaged or cut off in or after this field ({error})");
            profile.cut(ImportError::byte(end, what), NEEDS)?;
            file
        }
    };
    if !file.sample_type.iter().all(|kind| has_text(&file, kind.kind) && has_text(&file, kind.unit)) {
        let error = ImportError::byte(bytes.len(), "the file ends before the names of its sample types");
        profile.cut(error, NEEDS)?;
        return Ok(profile);
    }
    let types = value_types(&file, &mut profile)?;
    let locations = locations(&file, &mut profile);
    if is_difference(&file) {
        return Err(ImportError::unsupported(
            "most values are negative, as in the difference of two profiles: import both, and compare them \
             with pmc diff",
        ));
    }
    let mut labels: BTreeMap<String, u64> = BTreeMap::new();
    for (number, sample) in file.sample.iter().enumerate() {
        if let Err(error) = add_sample(&file, (number, sample), &types, &locations, &mut profile) {
            profile.lose(error)?;
        }
        for label in sample.label.iter().map(|label| text(&file, label.key)) {
            if !THREAD_LABELS.contains(&&*label) {
                *labels.entry(label).or_default() += 1;
            }
        }
    }
    if !labels.is_empty() {
        let counted = labels.iter().map(|(label, samples)| format!("{label} ({samples} samples)"));
        let listed: Vec<String> = counted.take(MOST_LABELS).collect();
        let more = labels.len() - listed.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        profile.notes.push(format!("labels were not imported: {}{more}", listed.join(", ")));
    }
    Ok(profile)
}

/// Whether most values that are not 0 are negative, or the file says so: `pprof -diff_base` marks the samples
/// of the base.
fn is_difference(file: &PprofProfile) -> bool {
    let is_base = |sample: &PprofSample| {
        sample.label.iter().any(|label| label.str != 0 && text(file, label.key) == "pprof::base")
    };
    let values = || file.sample.iter().flat_map(|sample| sample.value.iter());
    let negative = values().filter(|value| **value < 0).count();
    let positive = values().filter(|value| **value > 0).count();
    file.sample.iter().any(is_base) || negative > positive
}

/// Adds the values of a sample.
fn add_sample(
    file: &PprofProfile,
    (number, sample): (usize, &PprofSample),
    types: &[PprofValue],
    locations: &HashMap<u64, Option<ImportId>>,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let invalid = |what: &str| ImportError::item("sample", number, what);
    if sample.value.len() != file.sample_type.len() {
        return Err(invalid("its number of values differs from the number of sample types"));
    }
    if !sample.label.iter().all(|label| has_text(file, label.key) && has_text(file, label.str)) {
        return Err(invalid("a label refers to a missing text"));
    }
    let mut stack = Vec::with_capacity(sample.location_id.len());
    for id in &sample.location_id {
        let location = locations.get(id).ok_or_else(|| invalid("it refers to a missing location"))?;
        stack.push(location.ok_or_else(|| invalid("it refers to a missing function or name"))?);
    }
    let stack = profile.stack(&stack)?;
    let thread = thread(file, sample, profile)?;
    for value in types {
        let own = sample.value[value.at];
        let samples = value.samples_at.map(|at| sample.value[at]);
        let (Ok(own), Ok(samples)) = (u64::try_from(own), samples.map(u64::try_from).transpose()) else {
            profile.lose(invalid("a value is negative, as in the difference of two profiles"))?;
            continue;
        };
        if own == 0 && samples.unwrap_or(0) == 0 {
            continue;
        }
        let value_of = profile.scaled(value.event, own as f64);
        let value_of = if profile.events[value.event as usize].scale == 1.0 { own } else { value_of };
        let samples = samples.unwrap_or(if value.is_count { own } else { 1 });
        let event = value.event;
        profile.add(ImportedSample {
            event,
            stack,
            thread,
            value: value_of,
            samples,
            ..ImportedSample::default()
        })?;
    }
    Ok(())
}

/// An event, and the values of a sample that belong to it.
struct PprofValue {
    event: ImportId,
    at: usize,
    /// The value that counts the samples.
    samples_at: Option<usize>,
    /// Whether the value itself counts samples.
    is_count: bool,
}

fn value_types(file: &PprofProfile, profile: &mut ImportedProfile) -> Result<Vec<PprofValue>, ImportError> {
    if file.sample_type.is_empty() || file.sample_type.len() > MOST_TYPES {
        return Err(ImportError::file(format!("it must have 1 to {MOST_TYPES} sample types")));
    }
    let named: Vec<(String, String)> =
        file.sample_type.iter().map(|kind| (text(file, kind.kind), text(file, kind.unit))).collect();
    let is_count = |(name, unit): &(String, String)| {
        (name == "samples" || name.ends_with(" samples") || name == "sample")
            && matches!(&**unit, "count" | "")
    };
    let mut types = Vec::new();
    let mut samples_at = None;
    for (at, kind) in named.iter().enumerate() {
        let next = named.get(at + 1);
        if is_count(kind) && next.is_some_and(|next| !is_count(next)) {
            samples_at = Some(at);
            continue;
        }
        // pmc's own exports split waiting time into these parts.
        if matches!(&*kind.0, "running" | "waiting") && at >= 2 && samples_at.is_some() {
            continue;
        }
        types.push(PprofValue { event: 0, at, samples_at, is_count: is_count(kind) });
    }
    // Without a default type, it is the last one.
    let default = named.iter().rposition(|(name, _)| *name == text(file, file.default_sample_type));
    let default = default.unwrap_or(named.len() - 1);
    types.sort_by_key(|value| value.at != default);
    for value in &mut types {
        let (name, unit) = &named[value.at];
        value.event = profile.event(name, unit)?;
    }
    Ok(types)
}

/// Whether a text is in the file. The end of a file that was cut off has none.
fn has_text(file: &PprofProfile, number: i64) -> bool {
    number == 0 || usize::try_from(number).is_ok_and(|number| number < file.string_table.len())
}

fn text(file: &PprofProfile, number: i64) -> String {
    let bytes = usize::try_from(number).ok().and_then(|number| file.string_table.get(number));
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// Returns the locations by their IDs: `None` if a function or a name is missing.
fn locations(file: &PprofProfile, profile: &mut ImportedProfile) -> HashMap<u64, Option<ImportId>> {
    let functions: HashMap<u64, (ImportId, ImportId)> = file
        .function
        .iter()
        .filter(|function| {
            let texts = [function.name, function.system_name, function.filename];
            texts.iter().all(|number| has_text(file, *number))
        })
        .map(|function| {
            let name = match text(file, function.name) {
                name if name.is_empty() => text(file, function.system_name),
                name => name,
            };
            (function.id, (profile.text(&name), profile.text(&text(file, function.filename))))
        })
        .collect();
    let mappings: HashMap<u64, &PprofMapping> =
        file.mapping.iter().map(|mapping| (mapping.id, mapping)).collect();
    let mut locations = HashMap::new();
    for location in &file.location {
        let mapping = mappings.get(&location.mapping_id);
        let is_whole = mapping.is_none_or(|mapping| has_text(file, mapping.filename))
            && location.line.iter().all(|line| functions.contains_key(&line.function_id));
        if !is_whole {
            locations.insert(location.id, None);
            continue;
        }
        let path = mapping.map(|mapping| text(file, mapping.filename)).unwrap_or_default();
        let is_kernel = path.starts_with("[kernel") || path.ends_with(".ko");
        let module = profile.text(&path);
        let mut calls = Vec::new();
        for line in &location.line {
            let (name, file) = functions[&line.function_id];
            let line = u32::try_from(line.line).unwrap_or(0);
            calls.push(
                profile.call(named_call(
                    profile,
                    ImportedCall { name, module, file, line, address: 0, is_kernel },
                )),
            );
        }
        if calls.is_empty() {
            let offset = mapping.map_or(0, |mapping| mapping.file_offset.wrapping_sub(mapping.memory_start));
            let address = location.address.wrapping_add(offset);
            calls.push(profile.call(ImportedCall { module, address, is_kernel, ..ImportedCall::default() }));
        }
        locations.insert(location.id, Some(profile.location(&calls)));
    }
    locations
}

/// pmc and others write the module's name in brackets for code without a name.
fn named_call(profile: &ImportedProfile, call: ImportedCall) -> ImportedCall {
    let name = profile.get_text(call.name);
    let is_nameless = name.starts_with('[') && name.ends_with(']');
    if is_nameless { ImportedCall { name: 0, ..call } } else { call }
}

/// Returns the thread that the labels describe.
fn thread(
    file: &PprofProfile,
    sample: &PprofSample,
    profile: &mut ImportedProfile,
) -> Result<ImportId, ImportError> {
    let (mut pid, mut tid, mut comm) = (None, None, String::new());
    for label in &sample.label {
        let number = || i32::try_from(label.num).ok().filter(|number| *number > 0);
        match &*text(file, label.key) {
            "pid" | "process_id" => pid = number(),
            "tid" | "thread_id" => tid = number(),
            "thread" | "comm" | "thread_comm" | "thread_name" if label.str != 0 => {
                comm = text(file, label.str)
            }
            _ => {}
        }
    }
    match (pid.or(tid), tid.or(pid)) {
        (Some(pid), Some(tid)) => profile.thread(pid, tid, &comm),
        _ => profile.named_thread(&comm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof_messages::{PprofFunction, PprofLabel, PprofLine, PprofLocation, PprofValueType};

    fn file() -> PprofProfile {
        let strings = [
            "",
            "samples",
            "count",
            "cpu",
            "nanoseconds",
            "main.work",
            "a.go",
            "/bin/app",
            "tid",
            "thread",
            "io",
        ];
        PprofProfile {
            sample_type: vec![PprofValueType { kind: 1, unit: 2 }, PprofValueType { kind: 3, unit: 4 }],
            sample: vec![PprofSample {
                location_id: vec![7, 8],
                value: vec![3, 30_000_000],
                label: vec![PprofLabel { key: 8, num: 12, str: 0 }, PprofLabel { key: 9, num: 0, str: 10 }],
            }],
            mapping: vec![PprofMapping { id: 1, filename: 7, ..PprofMapping::default() }],
            location: vec![
                PprofLocation {
                    id: 7,
                    mapping_id: 1,
                    line: vec![PprofLine { function_id: 1, line: 5 }; 2],
                    address: 0,
                },
                PprofLocation { id: 8, mapping_id: 1, address: 0x40, line: vec![] },
            ],
            function: vec![PprofFunction { id: 1, name: 5, system_name: 5, filename: 6 }],
            string_table: strings.map(|text| text.as_bytes().to_vec()).into(),
            ..PprofProfile::default()
        }
    }

    #[test]
    fn counts_of_samples_belong_to_the_next_type() {
        let bytes = file().encode_to_vec();
        assert!(is_format(&bytes));
        let profile = read(&bytes, ImportedProfile::new()).unwrap();
        assert_eq!(profile.events.len(), 1);
        assert_eq!(profile.events[0].name, "cpu (nanoseconds)");
        assert_eq!((profile.samples[0].samples, profile.samples[0].value), (3, 30_000_000));
        let thread = &profile.threads[0];
        assert_eq!((thread.pid, thread.tid, &**profile.get_text(thread.comm)), (12, 12, "io"));
        let inlined = &profile.locations[profile.stacks[0][0] as usize];
        assert_eq!(inlined.len(), 2);
        let nameless = profile.calls[profile.locations[profile.stacks[0][1] as usize][0] as usize];
        assert_eq!((nameless.name, nameless.address), (0, 0x40));
    }

    #[test]
    fn invalid_references_are_errors() {
        let error = |change: &dyn Fn(&mut PprofProfile)| {
            let mut file = file();
            change(&mut file);
            read(&file.encode_to_vec(), ImportedProfile::new()).unwrap().lost().unwrap().to_string()
        };
        assert!(error(&|file| file.sample[0].location_id[0] = 99).contains("missing location"));
        assert!(error(&|file| file.function.clear()).contains("missing function"));
        assert!(error(&|file| file.sample[0].value[0] = -1).contains("negative"));
        assert!(error(&|file| file.sample[0].value.clear()).contains("number of values"));
        assert!(read(b"\x0a\xff", ImportedProfile::new()).is_err());
        assert!(!is_format(b"\nhello world\n") && !is_format(b"a;b 1\n"));
    }
}
