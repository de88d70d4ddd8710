//! pprof's protocol buffer, gzipped, for `go tool pprof` and other readers.
//!
//! ```text
//!   sample ── locations, innermost first ── lines, the inlined functions first ── functions
//!      │            └── mapping: the module's file, build-id, addresses in its first process
//!      '── values: samples and periods per event, and for thread time its running and waiting parts;
//!          labels: thread, pid, tid
//! ```
//!
//! The messages are in [`pprof_messages`](crate::pprof_messages).

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use super::{ExportContents, function_name, mapped, metric_name};
use crate::pprof_messages::{
    PprofFunction, PprofLabel, PprofLine, PprofLocation, PprofMapping, PprofProfile, PprofSample,
    PprofValueType,
};
use pmc_analysis::profile::sampled::{StackProfile, StringId, name_and_unit};
use pmc_text::text::{clean, hex};

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let profile = PprofBuilder::new(contents, None).build();
    compress(out, &profile.encode_to_vec())
}

fn compress(out: &mut dyn Write, profile: &[u8]) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::fast());
    out.write_all(profile)?;
    out.finish().map(drop)
}

/// A profile of one event, for a server.
pub(super) struct PushedPprof {
    /// The file.
    pub(super) bytes: Vec<u8>,
    /// Size before compression.
    pub(super) size: usize,
    /// Number of samples.
    pub(super) samples: usize,
}

/// Returns a file with one event in the form that servers accept. Its types have names without special
/// characters. Its samples have no labels, because Pyroscope creates a series for each set of labels.
pub(super) fn pushed(contents: &ExportContents<'_>, event: usize) -> PushedPprof {
    let profile = PprofBuilder::new(contents, Some(event)).build();
    let (message, mut bytes) = (profile.encode_to_vec(), Vec::new());
    compress(&mut bytes, &message).expect("memory can be written");
    PushedPprof { bytes, size: message.len(), samples: profile.sample.len() }
}

/// The profile under construction, and the ids assigned so far.
struct PprofBuilder<'a> {
    contents: &'a ExportContents<'a>,
    /// The event to push to a server; `None` for a file with all events.
    pushed: Option<usize>,
    stacks: &'a StackProfile<'a>,
    profile: PprofProfile,
    strings: FxHashMap<String, i64>,
    functions: FxHashMap<(StringId, StringId, Option<StringId>), u64>,
    locations: FxHashMap<u32, u64>,
    /// Mappings by module.
    mappings: FxHashMap<u32, u64>,
}

impl<'a> PprofBuilder<'a> {
    fn new(contents: &'a ExportContents<'a>, pushed: Option<usize>) -> Self {
        let mut builder = Self {
            contents,
            pushed,
            stacks: contents.stacks,
            profile: PprofProfile::default(),
            strings: FxHashMap::default(),
            functions: FxHashMap::default(),
            locations: FxHashMap::default(),
            mappings: FxHashMap::default(),
        };
        builder.string("");
        builder
    }

    fn build(mut self) -> PprofProfile {
        let (contents, stacks) = (self.contents, self.stacks);
        let is_used =
            |at: &usize| stacks.events[*at].kept.samples > 0 && self.pushed.is_none_or(|one| one == *at);
        let used: Vec<usize> = (0..stacks.events.len()).filter(is_used).collect();
        // Index of the first value of each event.
        let mut firsts = Vec::new();
        for at in &used {
            firsts.push(self.profile.sample_type.len());
            let event = &stacks.events[*at];
            let name = match self.pushed {
                Some(_) => metric_name(event),
                None => clean(name_and_unit(&event.name).0).into_owned(),
            };
            let samples = if used.len() == 1 { "samples".to_owned() } else { format!("{name} samples") };
            let samples = PprofValueType { kind: self.string(&samples), unit: self.string("count") };
            let unit = self.string(&clean(event.unit()));
            let period = PprofValueType { kind: self.string(&name), unit };
            if self.profile.sample_type.is_empty() {
                self.profile.default_sample_type = period.kind;
                self.profile.period_type = Some(period.clone());
                self.profile.period = (event.kept.period / event.kept.samples) as i64;
            }
            self.profile.sample_type.extend([samples, period]);
            if event.has_waits() {
                let parts =
                    ["running", "waiting"].map(|part| PprofValueType { kind: self.string(part), unit });
                self.profile.sample_type.extend(parts);
            }
        }
        self.mappings();
        let keys = ["thread", "process", "pid", "tid"].map(|key| self.string(key));
        // Samples by stack, for a server.
        let mut of_stack: FxHashMap<u32, usize> = FxHashMap::default();
        for row in &stacks.rows {
            let Some(event) = used.iter().position(|at| *at == row.event as usize) else { continue };
            let mut value = vec![0; self.profile.sample_type.len()];
            let first = firsts[event];
            value[first] = row.value.samples as i64;
            value[first + 1] = row.value.period as i64;
            if stacks.events[used[event]].has_waits() {
                value[first + 2 + usize::from(row.wait.is_some())] = row.value.period as i64;
            }
            if let Some(known) = of_stack.get(&row.stack) {
                let sums = self.profile.sample[*known].value.iter_mut();
                sums.zip(value).for_each(|(sum, more)| *sum = sum.saturating_add(more));
                continue;
            }
            let location_id = stacks.stack(row.stack).map(|location| self.location(location)).collect();
            let mut label = Vec::new();
            if self.pushed.is_some() {
                of_stack.insert(row.stack, self.profile.sample.len());
            } else {
                let thread = &stacks.threads[row.thread as usize];
                let words = [Some(&thread.comm), thread.process.as_ref()];
                let numbers = [thread.pid, thread.tid];
                for (key, word) in keys.iter().zip(words) {
                    let str = word.map(|word| self.string(&clean(word)));
                    label.extend(str.map(|str| PprofLabel { key: *key, str, num: 0 }));
                }
                for (key, number) in keys[2..].iter().zip(numbers) {
                    label.extend(number.map(|number| PprofLabel { key: *key, str: 0, num: number.into() }));
                }
            }
            self.profile.sample.push(PprofSample { location_id, value, label });
        }
        let comment = format!("pmc {}: {}", env!("CARGO_PKG_VERSION"), clean(contents.command()));
        self.profile.comment = vec![self.string(&comment)];
        if let Some((first, last)) = contents.recording.span {
            self.profile.duration_nanos = last.saturating_sub(first) as i64;
        }
        self.profile.time_nanos = contents.recording.started.unwrap_or(0) as i64;
        self.profile
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.strings.len() as i64;
        self.strings.insert(text.to_owned(), number);
        self.profile.string_table.push(text.as_bytes().to_vec());
        number
    }

    /// Adds the modules in the stacks.
    fn mappings(&mut self) {
        for mapped in mapped::modules(self.stacks) {
            let module = &self.stacks.modules[mapped.module as usize];
            let id = self.profile.mapping.len() as u64 + 1;
            let build_id = module.build_id.as_deref().map(|id| hex(id, "")).unwrap_or_default();
            let mapping = PprofMapping {
                id,
                memory_start: mapped.start,
                memory_limit: mapped.limit,
                file_offset: mapped.file_offset,
                filename: self.string(&clean(&module.path.to_string_lossy())),
                build_id: self.string(&build_id),
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            };
            self.profile.mapping.push(mapping);
            self.mappings.insert(mapped.module, id);
        }
    }

    fn location(&mut self, number: u32) -> u64 {
        if let Some(id) = self.locations.get(&number) {
            return *id;
        }
        let code = self.stacks.code();
        let line = code.calls()[code.range(number)].iter().map(|call| {
            let identity = (call.dso, call.symbol, call.file);
            let function_id = match self.functions.get(&identity) {
                Some(id) => *id,
                None => {
                    let name = self.string(&function_name(call, self.stacks.texts));
                    let file = call.file.map(|file| clean(self.stacks.texts.get(file)).into_owned());
                    let filename = self.string(file.as_deref().unwrap_or_default());
                    let id = self.profile.function.len() as u64 + 1;
                    self.profile.function.push(PprofFunction { id, name, system_name: name, filename });
                    self.functions.insert(identity, id);
                    id
                }
            };
            PprofLine { function_id, line: call.line.into() }
        });
        let line = line.collect();
        let id = self.profile.location.len() as u64 + 1;
        let module = self.stacks.location(number).module();
        let mapping_id = module.and_then(|module| self.mappings.get(&module)).copied().unwrap_or(0);
        self.profile.location.push(PprofLocation {
            id,
            mapping_id,
            address: mapped::address(self.stacks, number),
            line,
        });
        self.locations.insert(number, id);
        id
    }
}
