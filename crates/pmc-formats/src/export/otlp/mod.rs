//! OTLP's profiles signal (OpenTelemetry), as one file or as the requests of a push.
//!
//! ```text
//!   resource: service, host ── scope: pmc ── one profile per event, and one for the waiting time of threads
//!     sample:  stack, thread ── times of the samples, or the sum of their periods
//!     dictionary:  stack ── locations, innermost first ── lines, the inlined functions first ── functions
//!                               └── mapping: file, addresses, build-id
//! ```
//!
//! Entry 0 of each table of the dictionary is the zero value, which means "none". Programs that receive
//! profiles disagree on samples with both times and values. All of them accept times without values, where
//! each time is one sample: pmc writes this form if the rows contain times, and otherwise sums of periods.
//! Only waits, which differ in duration, have both.
//!
//! Format: <https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development/profiles.proto`.

mod messages;

use std::hash::Hash;
use std::io::{self, Write};

use prost::Message;
use rustc_hash::FxHashMap;

use super::mapped::{self, ModuleRange};
use super::{ExportContents, function_name, metric_name};
#[cfg(test)]
pub(super) use messages::OtlpPartialSuccess;
use messages::{
    OtlpAnyValue, OtlpAttribute, OtlpDictionary, OtlpFunction, OtlpKeyValue, OtlpLine, OtlpLink,
    OtlpLocation, OtlpMapping, OtlpProfile, OtlpProfiles, OtlpResource, OtlpResourceProfiles, OtlpSample,
    OtlpScope, OtlpScopeProfiles, OtlpStack, OtlpValueType, PROTO_VERSION,
};
pub(super) use messages::{OtlpReply, OtlpStatus};
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::StackRow;
use pmc_analysis::session::ModuleKind;
use pmc_text::text::{clean, hex};

/// Maximum size of a request in bytes. Receivers of gRPC accept 4 MiB by default.
const LARGEST_REQUEST: usize = 3 << 20;
/// Maximum number of samples in a request, which is the limit of Grafana Pyroscope.
const MOST_SAMPLES: usize = 16_000;
/// Maximum size of a message: no reader of protocol buffers accepts more.
const LARGEST_MESSAGE: usize = i32::MAX as usize;

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let export = OtlpExport::new(contents)?;
    let message = export.message(&export.rows);
    if message.encoded_len() > LARGEST_MESSAGE {
        return Err(too_large());
    }
    out.write_all(&message.encode_to_vec())
}

fn too_large() -> io::Error {
    let why = "the OTLP message exceeds 2 GiB (--aggregate or a shorter --time makes it smaller)";
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Returns the requests of a push, in order of time if the rows contain times. A request exceeds the limits
/// only if a single row does.
///
/// # Errors
/// Fails if there are too many samples.
pub(super) fn requests(contents: &ExportContents<'_>) -> io::Result<Vec<Vec<u8>>> {
    let export = OtlpExport::new(contents)?;
    let mut requests = Vec::new();
    let mut rest = vec![&export.rows[..]];
    while let Some(rows) = rest.pop() {
        let message = export.message(rows);
        let samples: usize = message.profiles().map(|profile| profile.samples.len()).sum();
        if rows.len() > 1 && (samples > MOST_SAMPLES || message.encoded_len() > LARGEST_REQUEST) {
            let (first, second) = rows.split_at(rows.len() / 2);
            rest.extend([second, first]);
        } else if samples > 0 {
            requests.push(message.encode_to_vec());
        }
    }
    Ok(requests)
}

impl OtlpProfiles {
    fn profiles(&self) -> impl Iterator<Item = &OtlpProfile> {
        let scopes = self.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        scopes.flat_map(|scope| &scope.profiles)
    }
}

/// The rows to export, and what all requests have in common.
struct OtlpExport<'a> {
    contents: &'a ExportContents<'a>,
    rows: Vec<&'a StackRow>,
    mapped: FxHashMap<u32, ModuleRange>,
    /// The mean period of each event's samples, without waits.
    periods: Vec<i64>,
    /// Whether samples have times, and running time has no values.
    has_times: bool,
}

impl<'a> OtlpExport<'a> {
    fn new(contents: &'a ExportContents<'a>) -> io::Result<Self> {
        let mut rows: Vec<&StackRow> = contents.stacks.rows.iter().collect();
        rows.sort_by_key(|row| row.time);
        let has_times = contents.recording.started.is_some() && rows.iter().all(|row| row.time.is_some());
        let samples = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.value.samples));
        if has_times && samples > (LARGEST_MESSAGE / size_of::<u64>()) as u64 {
            return Err(too_large());
        }
        let mapped = mapped::modules(contents.stacks).into_iter().map(|one| (one.module, one)).collect();
        let mut sums = vec![(0u64, 0u64); contents.stacks.events.len()];
        for row in rows.iter().filter(|row| row.wait.is_none()) {
            if let Some((samples, period)) = sums.get_mut(row.event as usize) {
                *samples = samples.saturating_add(row.value.samples);
                *period = period.saturating_add(row.value.period);
            }
        }
        let mean = |(samples, period): (u64, u64)| (period / samples.max(1)).max(1) as i64;
        Ok(Self { contents, rows, mapped, periods: sums.into_iter().map(mean).collect(), has_times })
    }

    /// Returns a message with these rows and with the part of the dictionary that they use.
    fn message(&self, rows: &[&StackRow]) -> OtlpProfiles {
        let mut builder = OtlpBuilder::new(self);
        // One profile per event, and one for its waits.
        let mut profiles: Vec<Option<OtlpProfileBuilder>> = Vec::new();
        profiles.resize_with(2 * self.contents.stacks.events.len(), || None);
        for row in rows {
            let place = 2 * row.event as usize + usize::from(row.wait.is_some());
            let Some(profile) = profiles.get_mut(place) else { continue };
            profile.get_or_insert_with(|| builder.profile(row)).add(&mut builder, row);
        }
        let profiles = profiles.into_iter().flatten().map(|profile| profile.done(self)).collect();
        let scope = OtlpScope {
            name: "pmc".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attributes: vec![key_value("opentelemetry.proto.version", PROTO_VERSION)],
        };
        OtlpProfiles {
            resource_profiles: vec![OtlpResourceProfiles {
                resource: Some(OtlpResource { attributes: self.resource() }),
                scope_profiles: vec![OtlpScopeProfiles { scope: Some(scope), profiles }],
            }],
            dictionary: Some(builder.dictionary),
        }
    }

    /// Returns the attributes of the resource, under the names of OpenTelemetry's semantic conventions.
    fn resource(&self) -> Vec<OtlpKeyValue> {
        let contents = self.contents;
        let architecture = match contents.fact("arch") {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let service = contents.service();
        let all = [
            ("service.name", service.as_str()),
            ("service.version", contents.recording.origin.version.as_str()),
            ("host.name", contents.host()),
            ("host.arch", architecture),
            ("os.type", "linux"),
            ("os.version", contents.fact("os release")),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| key_value(key, value))
            .collect()
    }

    /// Converts a time of the recording's clock to nanoseconds since 1970; 0 if unknown.
    fn since_1970(&self, time: u64) -> u64 {
        self.contents.recording.since_1970(time).unwrap_or(0)
    }
}

fn key_value(key: &str, value: &str) -> OtlpKeyValue {
    OtlpKeyValue { key: key.to_owned(), value: Some(text_value(value)) }
}

fn text_value(value: &str) -> OtlpAnyValue {
    OtlpAnyValue { string_value: Some(clean(value).into_owned()), int_value: None }
}

/// A profile under construction.
struct OtlpProfileBuilder {
    profile: OtlpProfile,
    /// Samples by stack and thread.
    samples: FxHashMap<(u32, u32), usize>,
}

impl OtlpProfileBuilder {
    fn add(&mut self, builder: &mut OtlpBuilder<'_>, row: &StackRow) {
        let samples = &mut self.profile.samples;
        let number = *self.samples.entry((row.stack, row.thread)).or_insert_with(|| {
            samples.push(builder.sample(row));
            samples.len() - 1
        });
        let sample = &mut samples[number];
        let period = i64::try_from(row.value.period).unwrap_or(i64::MAX);
        if !builder.export.has_times {
            match sample.values.first_mut() {
                Some(sum) => *sum = sum.saturating_add(period),
                None => sample.values.push(period),
            }
            return;
        }
        let time = builder.export.since_1970(row.begin().unwrap_or(0));
        if row.wait.is_some() {
            sample.values.push(period);
            sample.timestamps_unix_nano.push(time);
        } else {
            let count = usize::try_from(row.value.samples).unwrap_or(usize::MAX);
            sample.timestamps_unix_nano.extend(std::iter::repeat_n(time, count));
        }
    }

    /// Adds the time range of the samples.
    fn done(mut self, export: &OtlpExport<'_>) -> OtlpProfile {
        let times = || self.profile.samples.iter().flat_map(|sample| &sample.timestamps_unix_nano).copied();
        let recorded = export.contents.recording.span;
        let (first, last) = match (times().min(), times().max(), recorded) {
            (Some(first), Some(last), _) => (first, last.saturating_add(1)),
            (_, _, Some((first, last))) => (export.since_1970(first), export.since_1970(last)),
            _ => (0, 0),
        };
        self.profile.time_unix_nano = first;
        self.profile.duration_nano = last.saturating_sub(first);
        self.profile
    }
}

/// A table of the dictionary: each entry once, in order of first use. Entry 0 is the zero value.
struct OtlpTable<K>(FxHashMap<K, i32>);

impl<K: Hash + Eq> OtlpTable<K> {
    /// Returns the entry with this key. If it is new, `add` creates it in the table of the message.
    fn entry<T>(&mut self, key: K, table: &mut Vec<T>, value: impl FnOnce() -> T) -> i32 {
        *self.0.entry(key).or_insert_with(|| {
            table.push(value());
            table.len() as i32 - 1
        })
    }
}

impl<K> Default for OtlpTable<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

/// The dictionary under construction.
struct OtlpBuilder<'a> {
    export: &'a OtlpExport<'a>,
    stacks: &'a StackProfile<'a>,
    dictionary: OtlpDictionary,
    strings: OtlpTable<String>,
    attributes: OtlpTable<OtlpAttribute>,
    functions: OtlpTable<OtlpFunction>,
    /// Mappings by module.
    mappings: FxHashMap<u32, i32>,
    /// Locations by location of the profile.
    locations: FxHashMap<u32, i32>,
    /// Stacks by stack of the profile.
    of_stack: FxHashMap<u32, i32>,
}

impl<'a> OtlpBuilder<'a> {
    fn new(export: &'a OtlpExport<'a>) -> Self {
        let dictionary = OtlpDictionary {
            mapping_table: vec![OtlpMapping::default()],
            location_table: vec![OtlpLocation::default()],
            function_table: vec![OtlpFunction::default()],
            link_table: vec![OtlpLink::default()],
            string_table: vec![String::new()],
            attribute_table: vec![OtlpAttribute::default()],
            stack_table: vec![OtlpStack::default()],
        };
        let mut strings = OtlpTable::default();
        strings.0.insert(String::new(), 0);
        Self {
            export,
            stacks: export.contents.stacks,
            dictionary,
            strings,
            attributes: OtlpTable::default(),
            functions: OtlpTable::default(),
            mappings: FxHashMap::default(),
            locations: FxHashMap::default(),
            of_stack: FxHashMap::default(),
        }
    }

    /// Begins the profile of a row's event: of its waits if the row is a wait, else of all other rows.
    ///
    /// The types are those by which Pyroscope recognizes CPU time and waiting time. It computes CPU time from
    /// the number of samples and the period.
    fn profile(&mut self, row: &StackRow) -> OtlpProfileBuilder {
        let event = &self.stacks.events[row.event as usize];
        let nanoseconds = "nanoseconds";
        let unit = clean(event.unit());
        let metric = if event.has_waits() { "cpu".to_owned() } else { metric_name(event) };
        let (name, of_name) = match (row.wait.is_some(), self.export.has_times) {
            (true, _) => ("off_cpu", nanoseconds),
            (false, true) => ("samples", "count"),
            (false, false) => (metric.as_str(), &*unit),
        };
        let sample_type = Some(self.value_type(name, of_name));
        let period = row.wait.is_none().then(|| self.export.periods[row.event as usize]);
        let period_type = period.map(|_| self.value_type(&metric, &unit));
        let profile = OtlpProfile {
            sample_type,
            period_type,
            period: period.unwrap_or(0),
            attribute_indices: vec![self.attribute("pmc.event", text_value(&event.name))],
            ..OtlpProfile::default()
        };
        OtlpProfileBuilder { profile, samples: FxHashMap::default() }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> OtlpValueType {
        OtlpValueType { type_strindex: self.string(name), unit_strindex: self.string(unit) }
    }

    fn string(&mut self, text: &str) -> i32 {
        match self.strings.0.get(text) {
            Some(number) => *number,
            None => {
                let table = &mut self.dictionary.string_table;
                self.strings.entry(text.to_owned(), table, || text.to_owned())
            }
        }
    }

    fn attribute(&mut self, key: &str, value: OtlpAnyValue) -> i32 {
        let attribute = OtlpAttribute { key_strindex: self.string(key), value: Some(value) };
        self.attributes.entry(attribute.clone(), &mut self.dictionary.attribute_table, || attribute)
    }

    /// Returns the sample of a row's stack and thread, still without values and times.
    fn sample(&mut self, row: &StackRow) -> OtlpSample {
        let thread = &self.stacks.threads[row.thread as usize];
        let number = |id: i32| OtlpAnyValue { string_value: None, int_value: Some(id.into()) };
        let attributes = [
            ("thread.name", Some(text_value(&thread.comm))),
            ("thread.id", thread.tid.map(number)),
            ("process.executable.name", thread.process.as_deref().map(text_value)),
            ("process.pid", thread.pid.map(number)),
        ];
        let known = attributes.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let attribute_indices = known.map(|(key, value)| self.attribute(key, value)).collect();
        OtlpSample { stack_index: self.stack(row.stack), attribute_indices, ..OtlpSample::default() }
    }

    fn stack(&mut self, number: u32) -> i32 {
        if let Some(known) = self.of_stack.get(&number) {
            return *known;
        }
        let location_indices: Vec<i32> =
            self.stacks.stack(number).map(|location| self.location(location)).collect();
        // A stack without frames is the zero value.
        let index = match location_indices.is_empty() {
            true => 0,
            false => self.dictionary.stack_table.len() as i32,
        };
        if index > 0 {
            self.dictionary.stack_table.push(OtlpStack { location_indices });
        }
        self.of_stack.insert(number, index);
        index
    }

    fn location(&mut self, number: u32) -> i32 {
        if let Some(known) = self.locations.get(&number) {
            return *known;
        }
        let code = self.stacks.code();
        let lines = code.calls()[code.range(number)].iter().map(|call| {
            let file = call.file.map(|file| clean(self.stacks.texts.get(file)));
            let function = OtlpFunction {
                name_strindex: self.string(&function_name(call, self.stacks.texts)),
                filename_strindex: self.string(file.as_deref().unwrap_or_default()),
            };
            let function_index =
                self.functions.entry(function, &mut self.dictionary.function_table, || function);
            OtlpLine { function_index, line: call.line.into() }
        });
        let lines = lines.collect();
        let module = self.stacks.location(number).module();
        let kind = module.map(|module| &self.stacks.modules[module as usize].kind);
        let frame_type = match kind {
            Some(ModuleKind::Kernel(_) | ModuleKind::KernelModule(_) | ModuleKind::Bpf) => Some("kernel"),
            Some(ModuleKind::File | ModuleKind::Vdso) => Some("native"),
            Some(ModuleKind::Anonymous(_) | ModuleKind::Opaque) | None => None,
        };
        let frame_type = frame_type.map(|kind| self.attribute("profile.frame.type", text_value(kind)));
        let location = OtlpLocation {
            mapping_index: module.map_or(0, |module| self.mapping(module)),
            address: mapped::address(self.stacks, number),
            lines,
            attribute_indices: frame_type.into_iter().collect(),
        };
        self.dictionary.location_table.push(location);
        let index = self.dictionary.location_table.len() as i32 - 1;
        self.locations.insert(number, index);
        index
    }

    fn mapping(&mut self, module: u32) -> i32 {
        if let Some(known) = self.mappings.get(&module) {
            return *known;
        }
        let Some(mapped) = self.export.mapped.get(&module) else { return 0 };
        let described = &self.stacks.modules[module as usize];
        let build_id = described.build_id.as_deref().map(|id| text_value(&hex(id, "")));
        let build_id = build_id.map(|id| self.attribute("process.executable.build_id.gnu", id));
        let mapping = OtlpMapping {
            memory_start: mapped.start,
            memory_limit: mapped.limit,
            file_offset: mapped.file_offset,
            filename_strindex: self.string(&clean(&described.path.to_string_lossy())),
            attribute_indices: build_id.into_iter().collect(),
        };
        self.dictionary.mapping_table.push(mapping);
        let index = self.dictionary.mapping_table.len() as i32 - 1;
        self.mappings.insert(module, index);
        index
    }
}
