//! Parquet tables for the queries of a fleet: `samples`, and the `stacks` to which they refer.
//!
//! Receives a [`StackProfile`] whose rows have times. Writes the sums of samples by time bucket, and each
//! stack once. A stack's id is a hash of its content, so recordings of many hosts share their stacks.
//!
//! ```text
//!   location in a file      build-id (else path) + file offset ─┐
//!   kernel, generated code  module + name                      ─┴─ XXH64, root first -> stack_id
//!   rows -> time, event, thread, stack_id -> sums
//! ```
//!
//! Names of functions in files and inlined frames are not part of the id, because they depend on the debug
//! information that the exporting machine has. File offsets are known without the file; addresses assigned by
//! the linker are not.

pub mod late_symbols;
pub mod tables;

use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::ByteArray;
use rustc_hash::{FxHashMap, FxHashSet};
use twox_hash::XxHash64;

use super::{ExportContents, RecordingOrigin, function_name};
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::code::shared_name;
use pmc_analysis::profile::sampled::stacks::StackRow;
use pmc_analysis::session::ModuleKind;
use pmc_analysis::session::thread_time::ThreadState;
use pmc_text::text::{clean, hex};
use tables::{
    CLOCK_KEY, SCHEMA, SCHEMA_KEY, SampleColumns, SamplesWriter, StackColumns, StackFrameColumns,
    StacksWriter, TextPool,
};

/// Label of waits, with the state of the thread as its value.
const STATE_LABEL: &str = "state";

/// An export to the two tables.
pub struct ParquetExport<'a> {
    stacks: &'a StackProfile<'a>,
    origin: &'a RecordingOrigin,
    host: &'a str,
    /// Nanoseconds to add to the recording's clock for nanoseconds since 1970.
    to_wall_ns: i64,
    clock: &'static str,
    /// Ids by stack number.
    ids: FxHashMap<u32, i64>,
}

/// The properties by which rows of `samples` are distinguished, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowIdentity<'a> {
    time: u64,
    event: u32,
    stack_id: i64,
    thread: u32,
    cpu: Option<u32>,
    cgroup: Option<&'a str>,
    state: ThreadState,
}

impl<'a> ParquetExport<'a> {
    /// Prepares an export; `None` if the time of the recording is unknown.
    pub fn new(contents: &ExportContents<'a>) -> Option<Self> {
        let recording = contents.recording;
        let (first, _) = recording.span?;
        Some(Self {
            stacks: contents.stacks,
            origin: &recording.origin,
            host: contents.host(),
            to_wall_ns: recording.started?.wrapping_sub(first) as i64,
            clock: if recording.is_dated {
                "recorded"
            } else {
                "estimated from the file's modification time"
            },
            ids: FxHashMap::default(),
        })
    }

    fn metadata(&self) -> [(&'static str, &'static str); 2] {
        [(SCHEMA_KEY, SCHEMA), (CLOCK_KEY, self.clock)]
    }

    /// Writes each stack of the rows once.
    pub fn write_stacks(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = StacksWriter::new(out, &self.metadata())?;
        let (mut texts, mut written) = (TextPool::default(), FxHashSet::default());
        for row in &self.stacks.rows {
            if self.ids.contains_key(&row.stack) {
                continue;
            }
            let id = stack_id(self.stacks, row.stack);
            self.ids.insert(row.stack, id);
            if written.insert(id) {
                let (frames, symbolized) = frames(self.stacks, row.stack, &mut texts);
                writer.push(StackColumns { id, frames, symbolized })?;
            }
        }
        writer.finish()
    }

    /// Writes the rows, in order of time. Call [`ParquetExport::write_stacks`] first, which computes the ids.
    pub fn write_samples(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = SamplesWriter::new(out, &self.metadata())?;
        let stacks = self.stacks;
        let mut rows: Vec<(RowIdentity<'_>, &StackRow)> =
            stacks.rows.iter().map(|row| (self.identity(row), row)).collect();
        rows.sort_unstable_by_key(|(identity, _)| *identity);
        let mut texts = TextPool::default();
        let fixed = [&self.origin.service, &self.origin.version].map(|text| texts.get(&clean(text)));
        let host = texts.get(&clean(self.host));
        let mut label = |(key, value): (&str, &str)| (texts.get(&clean(key)), texts.get(&clean(value)));
        let labels: Vec<(ByteArray, ByteArray)> =
            self.origin.labels.iter().map(|(key, value)| label((key, value))).collect();
        let [running, runnable, blocked] =
            [None, Some("runnable"), Some("blocked")].map(|state| -> Arc<[_]> {
                let state = state.map(|state| label((STATE_LABEL, state)));
                labels.iter().cloned().chain(state).collect()
            });
        for same in rows.chunk_by(|a, b| a.0 == b.0) {
            let (identity, row) = same[0];
            let event = &stacks.events[row.event as usize];
            let thread = &stacks.threads[row.thread as usize];
            let mut samples: u64 = same.iter().map(|(_, row)| row.value.samples).sum();
            let sum = same.iter().fold(0u64, |sum, (_, row)| sum.saturating_add(row.value.period));
            let mut columns = SampleColumns {
                time: (identity.time as i64).wrapping_add(self.to_wall_ns).div_euclid(1000),
                duration_us: stacks.bucket.map_or(0, |length| (length / 1000) as i64),
                event: texts.get(&clean(&event.name)),
                unit: texts.get(&clean(event.unit())),
                service: fixed[0].clone(),
                version: fixed[1].clone(),
                host: host.clone(),
                comm: texts.get(&clean(&thread.comm)),
                container: identity.cgroup.map(|path| texts.get(&clean(path))),
                pid: thread.pid,
                tid: thread.tid,
                cpu: identity.cpu.and_then(|cpu| cpu.try_into().ok()),
                stack_id: identity.stack_id,
                samples: 0,
                value: i64::try_from(sum).unwrap_or(i64::MAX),
                labels: match identity.state {
                    ThreadState::Running => running.clone(),
                    ThreadState::Runnable => runnable.clone(),
                    ThreadState::Blocked => blocked.clone(),
                },
            };
            // More samples than the column can hold take several rows.
            loop {
                columns.samples = i32::try_from(samples).unwrap_or(i32::MAX);
                samples -= columns.samples as u64;
                writer.push(columns.clone())?;
                if samples == 0 {
                    break;
                }
                columns.value = 0;
            }
        }
        writer.finish()
    }

    fn identity(&self, row: &'a StackRow) -> RowIdentity<'a> {
        RowIdentity {
            time: row.time.unwrap_or(0),
            event: row.event,
            stack_id: self.ids.get(&row.stack).copied().unwrap_or(0),
            thread: row.thread,
            cpu: row.cpu,
            cgroup: row.cgroup.map(|number| &*self.stacks.cgroups[number as usize]),
            state: row.state(),
        }
    }
}

/// Returns the hash of a stack's content.
fn stack_id(stacks: &StackProfile<'_>, stack: u32) -> i64 {
    let mut content = Vec::new();
    let add = |content: &mut Vec<u8>, part: &[u8]| {
        content.extend((part.len() as u32).to_le_bytes());
        content.extend(part);
    };
    for number in stacks.stack(stack).rev() {
        let module = stacks.location(number).module().map(|module| &stacks.modules[module as usize]);
        match module.filter(|module| module.kind == ModuleKind::File) {
            Some(file) => {
                let path = || file.path.as_os_str().as_encoded_bytes();
                add(&mut content, file.build_id.as_deref().unwrap_or_else(path));
                content.extend(stacks.location(number).offset.to_le_bytes());
            }
            None => {
                let own = &stacks.code().calls()[stacks.code().range(number)];
                let name = own.last().map(|call| function_name(call, stacks.texts)).unwrap_or_default();
                add(&mut content, module_name(stacks, number).as_bytes());
                add(&mut content, name.as_bytes());
            }
        }
    }
    XxHash64::oneshot(0, &content) as i64
}

/// Returns a stack's frames from the root on, and whether all functions in files have names.
fn frames(stacks: &StackProfile<'_>, stack: u32, texts: &mut TextPool) -> (Vec<StackFrameColumns>, bool) {
    let mut symbolized = true;
    let mut frames = Vec::new();
    for number in stacks.stack(stack).rev() {
        let location = stacks.location(number);
        let module = location.module().map(|module| &stacks.modules[module as usize]);
        let file = module.filter(|module| module.kind == ModuleKind::File);
        let name = texts.get(&module_name(stacks, number));
        let build_id = module.and_then(|module| module.build_id.as_deref());
        let build_id = texts.get(&build_id.map(|id| hex(id, "")).unwrap_or_default());
        for call in stacks.code().calls()[stacks.code().range(number)].iter().rev() {
            symbolized &= file.is_none() || call.named;
            frames.push(StackFrameColumns {
                function: texts.get(&function_name(call, stacks.texts)),
                module: name.clone(),
                build_id: build_id.clone(),
                file: texts.get(&clean(call.file.map_or("", |file| stacks.texts.get(file)))),
                address: if file.is_some() { location.offset as i64 } else { 0 },
                line: call.line.into(),
                inlined: call.inlined,
            });
        }
    }
    (frames, symbolized)
}

/// Returns the name of a location's module: the path of a file, or a name in brackets that is the same in all
/// processes.
fn module_name(stacks: &StackProfile<'_>, location: u32) -> String {
    let module = stacks.location(location).module().map(|module| &stacks.modules[module as usize]);
    let name = match module {
        None => "[not mapped]".to_owned(),
        Some(module) => match module.kind {
            ModuleKind::File => module.path.to_string_lossy().into_owned(),
            _ => shared_name(module),
        },
    };
    clean(&name).into_owned()
}
