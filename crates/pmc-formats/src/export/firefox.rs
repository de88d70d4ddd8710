//! The Firefox Profiler's processed format: threads with samples over time, by category; tracepoints as
//! markers.
//!
//! ```text
//!   process ── thread ──┬── samples: time, stack, CPU time
//!      (pid)    (tid)   '── markers: a tracepoint's fields, with its stack
//!   frame: function, in a category (program, library, kernel, …) with its module as subcategory
//!   wait:  a marker from its begin to its end, and a sample at its begin; the innermost frame is in the
//!          category "Waiting", with what the thread waits for as subcategory
//! ```
//!
//! If waits were recorded, the weight of a sample is its time in milliseconds. The weights of an event that
//! counts bytes are bytes. Otherwise, they are numbers of samples. The format supports only one kind of
//! sample, so each further sampled event gets its own threads, which are named after the event. So are
//! threads with bytes.

use std::io::{self, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo,
    MarkerFieldFlags, MarkerFieldFormat, MarkerHandle, MarkerLocations, MarkerTiming, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle, ThreadHandle, Timestamp, WeightType,
};
use rustc_hash::FxHashMap;

use super::{ExportContents, function_name};
use pmc_analysis::profile::sampled::CodeKind;
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::{StackEvent, StackRow};
use pmc_analysis::profile::sampled::wait_site::WaitSite;
use pmc_text::text::{as_json, clean};
use pmc_text::units::MS;

/// The unit of events whose values are weights.
const BYTES: &str = "bytes";

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let profile = FirefoxBuilder::new(contents).build(contents);
    write!(out, "{}", as_json(&profile))
}

/// A marker with the fields of a tracepoint.
struct TracepointMarker {
    name: StringHandle,
    words: StringHandle,
}

/// A marker for the time that a thread waited.
struct WaitMarker {
    /// What the thread waited for.
    name: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for WaitMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Wait";
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART.union(MarkerLocations::MARKER_TABLE);
    const FIELDS: &'static [StaticSchemaMarkerField] = &[];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.name
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// A marker for the time that a thread waited, with what woke the thread or ran instead of it.
struct WaitPartnerMarker {
    wait: WaitMarker,
    partner: StringHandle,
}

impl StaticSchemaMarker for WaitPartnerMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Wait with waker";
    const LOCATIONS: MarkerLocations = WaitMarker::LOCATIONS;
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.waker}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "waker",
        label: "Woken by (runnable: what ran instead)",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.wait.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.wait.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.partner
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
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
    /// The category for waits, if they were recorded.
    waiting: Option<CategoryHandle>,
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
        let first = stacks.rows.iter().filter_map(StackRow::begin).min().unwrap_or(0);
        let has_waits = stacks.events.iter().any(StackEvent::has_waits);
        let waiting = has_waits.then(|| profile.add_category("Waiting", CategoryColor::Blue));
        Self {
            stacks,
            profile,
            first,
            categories: FxHashMap::default(),
            subcategories: FxHashMap::default(),
            frames: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            waiting,
        }
    }

    fn build(mut self, contents: &ExportContents<'_>) -> Profile {
        let mut rows: Vec<&StackRow> = self.stacks.rows.iter().collect();
        rows.sort_by_key(|row| row.begin());
        // Tracepoints are markers in the threads of the sampled event. If only tracepoints were recorded,
        // they are also written as samples.
        let is_mark = |row: &StackRow| row.payload.is_some();
        let samples = rows.iter().find(|row| !is_mark(row)).map(|row| row.event);
        let base = samples.unwrap_or(contents.event as u32);
        let mut elapsed: FxHashMap<ThreadHandle, u64> = FxHashMap::default();
        // Nanoseconds of each thread that are not included in a weight yet, because weights are whole
        // milliseconds.
        let mut rests: FxHashMap<ThreadHandle, u64> = FxHashMap::default();
        let last = rows.len().saturating_sub(1);
        for (index, row) in rows.into_iter().enumerate() {
            let thread = self.thread(if is_mark(row) { base } else { row.event }, row.thread, base);
            let mut frames: Vec<FrameInfo> = self.frames(row.stack);
            let wait = row.wait.and_then(|site| Some((site, self.waiting(site)?)));
            if let (Some((_, category_pair)), Some(own)) = (wait, frames.last_mut()) {
                own.category_pair = category_pair;
            }
            let stack = self.profile.intern_stack_frames(thread, frames.into_iter());
            let event = &self.stacks.events[row.event as usize];
            let cpu = if event.is_clock() && row.wait.is_none() { row.value.period } else { 0 };
            // If times were not recorded, place the samples one directly after the other.
            let so_far = elapsed.entry(thread).or_default();
            let at = row.begin().map_or(*so_far, |time| time - self.first);
            *so_far += cpu.max(1_000_000);
            let at = Timestamp::from_nanos_since_reference(at);
            if is_mark(row) {
                // A row may combine several equal samples with the same timestamp.
                (0..row.value.samples).for_each(|_| self.mark(thread, at, row, stack));
                // The profiler shows only the time from the first to the last sample, and hides markers
                // outside it.
                if samples.is_some() && (index == 0 || index == last) {
                    self.profile.add_sample(thread, at, None, CpuDelta::ZERO, 0);
                }
            }
            if let (Some((site, _)), Some(end)) = (wait, row.time) {
                let end = Timestamp::from_nanos_since_reference(end - self.first);
                let marker = self.wait(thread, MarkerTiming::Interval(at, end), site, row);
                marker.inspect(|marker| self.profile.set_marker_stack(thread, *marker, stack));
            }
            if !is_mark(row) || samples.is_none() {
                let weight = match event.unit() {
                    _ if event.has_waits() => {
                        self.profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
                        let rest = rests.entry(thread).or_default();
                        let time = rest.saturating_add(row.value.period);
                        *rest = time % MS;
                        time / MS
                    }
                    BYTES => {
                        self.profile.set_thread_samples_weight_type(thread, WeightType::Bytes);
                        row.value.period
                    }
                    _ => row.value.samples,
                };
                // The library's weights have 32 bits.
                let mut rest = weight;
                loop {
                    let part = i32::try_from(rest).unwrap_or(i32::MAX);
                    self.profile.add_sample(thread, at, stack, CpuDelta::from_nanos(cpu), part);
                    rest -= part as u64;
                    if rest == 0 {
                        break;
                    }
                }
            }
        }
        self.profile
    }

    /// Returns the category for waits at `site`.
    fn waiting(&mut self, site: WaitSite) -> Option<CategoryPairHandle> {
        let category = self.waiting?;
        let key = (category, site.name().to_owned());
        let profile = &mut self.profile;
        Some(*self.subcategories.entry(key).or_insert_with(|| profile.add_subcategory(category, site.name())))
    }

    /// Adds a marker for a wait.
    fn wait(
        &mut self,
        thread: ThreadHandle,
        timing: MarkerTiming,
        site: WaitSite,
        row: &StackRow,
    ) -> Option<MarkerHandle> {
        let wait = WaitMarker { name: self.profile.intern_string(site.name()), category: self.waiting? };
        Some(match self.stacks.partner(row) {
            None => self.profile.add_marker(thread, timing, wait),
            Some(name) => {
                let partner = self.profile.intern_string(&clean(&name));
                self.profile.add_marker(thread, timing, WaitPartnerMarker { wait, partner })
            }
        })
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
        let of_event = &self.stacks.events[event as usize];
        let is_named_after_event = event != base || of_event.unit() == BYTES;
        // The library names a main thread after its process.
        let is_main = pid == tid && !is_named_after_event;
        let handle = known.map_or_else(
            || self.profile.add_thread(process, tid as u32, start, is_main),
            |known| known.handle,
        );
        let name = match is_named_after_event {
            false => clean(&thread.comm).into_owned(),
            true => format!("{} ({})", clean(&thread.comm), clean(&of_event.name)),
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
        let kind = CodeKind::from_mode(call.level, self.stacks.texts.get(call.dso));
        let has_waits = self.waiting.is_some();
        let profile = &mut self.profile;
        let category = *self.categories.entry(kind).or_insert_with(|| {
            let (name, color) = match kind {
                CodeKind::Program => ("Program", CategoryColor::Yellow),
                // Waiting is blue.
                CodeKind::Library if has_waits => ("Library", CategoryColor::Magenta),
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
