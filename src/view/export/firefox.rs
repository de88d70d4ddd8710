//! The Firefox Profiler's processed format: threads with samples over time, by category; tracepoints as
//! markers.
//!
//! ```text
//!   process ── thread ──┬── samples: time, stack, CPU time
//!      (pid)    (tid)   '── markers: a tracepoint's fields, with its stack
//!   frame: function, in a category (program, library, kernel, …) with its module as subcategory
//! ```
//!
//! The format supports one kind of sample. Each further sampled event therefore gets its own threads, which
//! are named after it.

use std::io::{self, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo,
    MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTiming, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle, ThreadHandle, Timestamp,
};
use rustc_hash::FxHashMap;

use super::{ExportContents, function_name};
use pmc_analysis::profile::sampled::CodeKind;
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::StackRow;
use pmc_sys::text::{as_json, clean};

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let profile = FirefoxBuilder::new(contents).build(contents);
    write!(out, "{}", as_json(&profile))
}

/// A marker with the fields of a tracepoint.
struct TracepointMarker {
    name: StringHandle,
    words: StringHandle,
}

impl StaticSchemaMarker for TracepointMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Tracepoint";
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART.union(MarkerLocations::MARKER_TABLE);
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.words}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.words}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "words",
        label: "Fields",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.words
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

struct FirefoxBuilder<'a> {
    stacks: &'a StackProfile<'a>,
    profile: Profile,
    /// Timestamp that becomes time 0 in the profile.
    first: u64,
    categories: FxHashMap<CodeKind, CategoryHandle>,
    subcategories: FxHashMap<(CategoryHandle, String), CategoryPairHandle>,
    /// Frames by call number.
    frames: FxHashMap<usize, FrameInfo>,
    processes: FxHashMap<i32, ProcessHandle>,
    /// Threads by event and thread key.
    threads: FxHashMap<(u32, ThreadKey), NamedThread>,
}

/// Key of a thread: its id or, if the id was not recorded, its index in the list of threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ThreadKey {
    Id(i32),
    Number(u32),
}

/// A thread in the profile and the number of its latest name. Renaming a thread does not create a new one.
#[derive(Clone, Copy)]
struct NamedThread {
    handle: ThreadHandle,
    number: u32,
}

impl<'a> FirefoxBuilder<'a> {
    fn new(contents: &ExportContents<'a>) -> Self {
        let stacks = contents.stacks;
        let started = contents.recording.started.unwrap_or(0) as f64 / 1e6;
        let asked = contents.recording.about.events.get(contents.event);
        let is_clock = stacks.events.get(contents.event).is_some_and(|event| event.is_clock());
        let interval = match asked {
            Some(event) if event.is_freq && event.period > 0 => {
                SamplingInterval::from_hz(event.period as f32)
            }
            Some(event) if is_clock && event.period > 0 => SamplingInterval::from_nanos(event.period),
            _ => SamplingInterval::from_millis(1),
        };
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(started);
        let mut profile = Profile::new(&clean(contents.title), reference, interval);
        profile.set_os_name("Linux");
        profile.set_symbolicated(true);
        let first = stacks.rows.iter().filter_map(|row| row.time).min().unwrap_or(0);
        Self {
            stacks,
            profile,
            first,
            categories: FxHashMap::default(),
            subcategories: FxHashMap::default(),
            frames: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
        }
    }

    fn build(mut self, contents: &ExportContents<'_>) -> Profile {
        let mut rows: Vec<&StackRow> = self.stacks.rows.iter().collect();
        rows.sort_by_key(|row| row.time);
        // Tracepoints are markers in the threads of the sampled event. If only tracepoints were recorded,
        // they are also written as samples.
        let is_mark = |row: &StackRow| row.payload.is_some();
        let samples = rows.iter().find(|row| !is_mark(row)).map(|row| row.event);
        let base = samples.unwrap_or(contents.event as u32);
        let mut elapsed: FxHashMap<ThreadHandle, u64> = FxHashMap::default();
        let last = rows.len().saturating_sub(1);
        for (index, row) in rows.into_iter().enumerate() {
            let thread = self.thread(if is_mark(row) { base } else { row.event }, row.thread, base);
            let frames: Vec<FrameInfo> = self.frames(row.stack);
            let stack = self.profile.intern_stack_frames(thread, frames.into_iter());
            let event = &self.stacks.events[row.event as usize];
            let cpu = if event.is_clock() { row.value.period } else { 0 };
            // If times were not recorded, place the samples one directly after another.
            let so_far = elapsed.entry(thread).or_default();
            let at = row.time.map_or(*so_far, |time| time - self.first);
            *so_far += cpu.max(1_000_000);
            let at = Timestamp::from_nanos_since_reference(at);
            if is_mark(row) {
                // A row may combine several equal samples with the same timestamp.
                (0..row.value.samples).for_each(|_| self.mark(thread, at, row, stack));
                // The profiler shows only the time from the first to the last sample, and hides markers
                // outside this range.
                if samples.is_some() && (index == 0 || index == last) {
                    self.profile.add_sample(thread, at, None, CpuDelta::ZERO, 0);
                }
            }
            if !is_mark(row) || samples.is_none() {
                let weight = i32::try_from(row.value.samples).unwrap_or(i32::MAX);
                self.profile.add_sample(thread, at, stack, CpuDelta::from_nanos(cpu), weight);
            }
        }
        self.profile
    }

    fn mark(&mut self, thread: ThreadHandle, at: Timestamp, row: &StackRow, stack: Option<StackHandle>) {
        let words = row.payload.map(|payload| self.stacks.payload(payload)).unwrap_or_default();
        let name = self.profile.intern_string(&clean(&self.stacks.events[row.event as usize].name));
        let words = self.profile.intern_string(clean(&words).trim());
        let marker =
            self.profile.add_marker(thread, MarkerTiming::Instant(at), TracepointMarker { name, words });
        self.profile.set_marker_stack(thread, marker, stack);
    }

    fn thread(&mut self, event: u32, number: u32, base: u32) -> ThreadHandle {
        let thread = &self.stacks.threads[number as usize];
        let key = (event, thread.tid.map_or(ThreadKey::Number(number), ThreadKey::Id));
        let known = self.threads.get(&key).copied();
        if let Some(known) = known.filter(|known| known.number == number) {
            return known.handle;
        }
        let start = Timestamp::from_nanos_since_reference(0);
        let (pid, tid) = (thread.pid.unwrap_or(0), thread.tid.unwrap_or(0));
        let name = thread.process.as_ref().unwrap_or(&thread.comm);
        let process = match self.processes.get(&pid) {
            Some(process) => *process,
            None => {
                let process = self.profile.add_process(&clean(name), pid as u32, start);
                self.processes.insert(pid, process);
                process
            }
        };
        let is_main = pid == tid && event == base;
        let handle = known.map_or_else(
            || self.profile.add_thread(process, tid as u32, start, is_main),
            |known| known.handle,
        );
        let name = match event == base {
            true => clean(&thread.comm).into_owned(),
            false => format!("{} ({})", clean(&thread.comm), clean(&self.stacks.events[event as usize].name)),
        };
        self.profile.set_thread_name(handle, &name);
        self.threads.insert(key, NamedThread { handle, number });
        handle
    }

    /// Returns the frames of a stack, outermost first.
    fn frames(&mut self, stack: u32) -> Vec<FrameInfo> {
        let stacks = self.stacks;
        let calls = stacks.stack(stack).rev().flat_map(|location| stacks.code().range(location).rev());
        calls.map(|call| self.frame(call)).collect()
    }

    fn frame(&mut self, number: usize) -> FrameInfo {
        if let Some(frame) = self.frames.get(&number) {
            return frame.clone();
        }
        let call = &self.stacks.code().calls()[number];
        let kind = CodeKind::of(call.level, self.stacks.texts.get(call.dso));
        let profile = &mut self.profile;
        let category = *self.categories.entry(kind).or_insert_with(|| {
            let (name, color) = match kind {
                CodeKind::Program => ("Program", CategoryColor::Yellow),
                CodeKind::Library => ("Library", CategoryColor::Blue),
                CodeKind::Kernel => ("Kernel", CategoryColor::Orange),
                CodeKind::Generated => ("Generated code", CategoryColor::Green),
                CodeKind::Unknown => ("Unknown", CategoryColor::Gray),
            };
            profile.add_category(name, color)
        });
        let module = clean(self.stacks.texts.get(call.dso)).into_owned();
        let category_pair = match self.subcategories.get(&(category, module.clone())) {
            Some(pair) => *pair,
            None => {
                let pair = profile.add_subcategory(category, &module);
                self.subcategories.insert((category, module), pair);
                pair
            }
        };
        let mut name = function_name(call, self.stacks.texts);
        if call.inlined {
            name.push_str(" (inlined)");
        }
        let frame = Frame::Label(profile.intern_string(&name));
        let frame = FrameInfo { frame, category_pair, flags: FrameFlags::empty() };
        self.frames.insert(number, frame.clone());
        frame
    }
}
