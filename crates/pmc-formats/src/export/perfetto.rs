//! Perfetto's trace format, for <https://ui.perfetto.dev> and trace_processor: a track per thread with its
//! states, and samples with their stacks.
//!
//! ```text
//!   trace ── packets ──┬── track descriptors: process, thread
//!                      ├── slices on a thread's track: running, runnable, blocked: SITE (with the stack)
//!             ├── flows between threads: from a waker to the state that follows the wait
//!                      ├── instants on a thread's track: tracepoints with their fields
//!                      └── samples: event, thread, call stack
//!   interned data: names, stacks, frames and modules, each once per event
//! ```
//!
//! Format: <https://github.com/google/perfetto/blob/main/protos/perfetto/trace/trace_packet.proto>. Each
//! event has a separate packet sequence, because the name of the sampled event is a property of the sequence.

mod schema;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::{ExportContents, function_name};
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::StackRow;
use pmc_analysis::session::thread_time::ThreadState;
use pmc_perfdata::record::WaitPartner;
use pmc_text::text::{clean, hex};
use schema::{
    Callstack, ClockReading, ClockSnapshot, DebugAnnotation, Frame, InternedBytes, InternedData,
    InternedName, PacketDefaults, PerfSample, ProcessDescriptor, SampleDefaults, StackMapping,
    ThreadDescriptor, Timebase, TracePacket, TrackDescriptor, TrackEvent,
};

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let mut packets = PacketWriter { out, buffer: Vec::new() };
    clocks(&mut packets, contents)?;
    let tracks = ThreadTracks::new(contents.stacks);
    tracks.write(&mut packets)?;
    for event in 0..contents.stacks.events.len() {
        if contents.stacks.events[event].kept.samples > 0 {
            EventSequence::new(contents.stacks, &tracks, event).write(&mut packets)?;
        }
    }
    Ok(())
}

/// Writes packets. Each packet is an element of the trace's only field.
struct PacketWriter<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
}

impl PacketWriter<'_> {
    fn add(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        prost::encoding::message::encode(1, packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }
}

/// The clocks in the trace: the recording's clock, which Perfetto treats as the time since boot, and the date
/// and time.
const BOOT_CLOCK: u32 = 6;
const REAL_CLOCK: u32 = 1;

/// Writes the date and time of the recording, if known.
fn clocks(packets: &mut PacketWriter<'_>, contents: &ExportContents<'_>) -> io::Result<()> {
    let (Some((first, _)), Some(started)) = (contents.recording.span, contents.recording.started) else {
        return Ok(());
    };
    let reading = |(clock_id, timestamp)| ClockReading { clock_id, timestamp };
    let clocks = [(BOOT_CLOCK, first), (REAL_CLOCK, started)].map(reading).to_vec();
    packets.add(&TracePacket { clock_snapshot: Some(ClockSnapshot { clocks }), ..TracePacket::default() })
}

/// Key of a thread: its id or, if the id was not recorded, its index in the list of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TrackKey {
    Id(i32),
    Number(u32),
}

/// The threads in the trace. A renamed thread has its last name.
struct ThreadTracks<'a> {
    stacks: &'a StackProfile<'a>,
    /// The number of each track, starting with 1, and the index of its thread.
    tracks: BTreeMap<TrackKey, (u64, usize)>,
}

impl<'a> ThreadTracks<'a> {
    fn new(stacks: &'a StackProfile<'a>) -> Self {
        let mut tracks = BTreeMap::new();
        let mut latest: Vec<(Option<u64>, u32)> = vec![(None, 0); stacks.threads.len()];
        for row in &stacks.rows {
            let known = &mut latest[row.thread as usize];
            *known = (known.0.max(row.time), row.thread);
        }
        latest.sort_unstable();
        for (_, thread) in latest {
            let next = tracks.len() as u64 + 1;
            tracks.entry(Self::key(stacks, thread)).or_insert((next, 0)).1 = thread as usize;
        }
        Self { stacks, tracks }
    }

    fn key(stacks: &StackProfile<'_>, thread: u32) -> TrackKey {
        stacks.threads[thread as usize].tid.map_or(TrackKey::Number(thread), TrackKey::Id)
    }

    /// Returns the track number of a thread.
    fn track(&self, row: &StackRow) -> u64 {
        self.tracks[&Self::key(self.stacks, row.thread)].0
    }

    fn write(&self, packets: &mut PacketWriter<'_>) -> io::Result<()> {
        let mut processes = BTreeMap::new();
        for (_, thread) in self.tracks.values() {
            let thread = &self.stacks.threads[*thread];
            processes.insert(thread.pid.unwrap_or(0), thread);
        }
        let base = self.tracks.len() as u64 + 1;
        for (number, (pid, thread)) in (base..).zip(&processes) {
            let name = thread.process.as_ref().unwrap_or(&thread.comm);
            let process = ProcessDescriptor { pid: *pid, process_name: clean(name).into_owned() };
            let track = TrackDescriptor { uuid: number, process: Some(process), ..<_>::default() };
            packets.add(&TracePacket { track_descriptor: Some(track), ..TracePacket::default() })?;
        }
        for (number, thread) in self.tracks.values() {
            let thread = &self.stacks.threads[*thread];
            let (pid, tid) = (thread.pid.unwrap_or(0), thread.tid.unwrap_or(0));
            let thread_name = clean(&thread.comm).into_owned();
            let thread = Some(ThreadDescriptor { pid, tid, thread_name });
            let track = TrackDescriptor { uuid: *number, thread, ..<_>::default() };
            packets.add(&TracePacket { track_descriptor: Some(track), ..TracePacket::default() })?;
        }
        Ok(())
    }
}

/// A sequence of packets with the samples of an event.
struct EventSequence<'a> {
    stacks: &'a StackProfile<'a>,
    tracks: &'a ThreadTracks<'a>,
    event: usize,
    strings: InternedNumbers<String>,
    /// Texts of stacks, by stack.
    stack_texts: InternedNumbers<u32>,
    callstacks: InternedNumbers<u32>,
    frames: InternedNumbers<(usize, u32)>,
    mappings: InternedNumbers<Option<u32>>,
    /// The definitions to include in the next packet.
    pending: InternedData,
    is_first: bool,
    /// Number of the last flow from a waker to the thread that it woke. Only one event has waits.
    last_flow: u64,
}

/// Assigns numbers to distinct values, starting with 1.
struct InternedNumbers<T>(FxHashMap<T, u64>);

impl<T: Hash + Eq> InternedNumbers<T> {
    /// Returns a value's number, and whether the value is new.
    fn number(&mut self, value: T) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(value).or_insert(next);
        (number, number == next)
    }
}

/// `sequence_flags`: the packet starts a sequence, and the packet refers to interned data.
const STARTS: u32 = 1;
const CONTINUES: u32 = 2;

/// Values for the field `type` of a track event.
const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;

impl<'a> EventSequence<'a> {
    fn new(stacks: &'a StackProfile<'a>, tracks: &'a ThreadTracks<'a>, event: usize) -> Self {
        Self {
            stacks,
            tracks,
            event,
            strings: InternedNumbers(FxHashMap::default()),
            stack_texts: InternedNumbers(FxHashMap::default()),
            callstacks: InternedNumbers(FxHashMap::default()),
            frames: InternedNumbers(FxHashMap::default()),
            mappings: InternedNumbers(FxHashMap::default()),
            pending: InternedData::default(),
            is_first: true,
            last_flow: 0,
        }
    }

    fn write(mut self, packets: &mut PacketWriter<'_>) -> io::Result<()> {
        let mut by_thread: BTreeMap<u64, Vec<&StackRow>> = BTreeMap::new();
        for row in self.stacks.rows.iter().filter(|row| row.event as usize == self.event) {
            by_thread.entry(self.tracks.track(row)).or_default().push(row);
        }
        for (track, mut rows) in by_thread {
            rows.sort_by_key(|row| (row.begin(), row.time, row.stack));
            if self.stacks.events[self.event].has_waits() {
                self.states(packets, track, &rows)?;
            }
            // If times were not recorded, place the samples one directly after the other.
            let mut so_far = 0;
            for row in rows.into_iter().filter(|row| row.wait.is_none()) {
                let at = row.time.unwrap_or(so_far);
                so_far = at.saturating_add(row.value.period);
                match row.payload {
                    Some(payload) => self.instant(packets, track, at, payload)?,
                    None => self.sample(packets, at, row)?,
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, packets: &mut PacketWriter<'_>, packet: TracePacket) -> io::Result<()> {
        let defaults = self.is_first.then(|| {
            let name = clean(&self.stacks.events[self.event].name).into_owned();
            let timebase = Some(Timebase { period: 1, name });
            PacketDefaults { perf_sample_defaults: Some(SampleDefaults { timebase }) }
        });
        let starts = if std::mem::take(&mut self.is_first) { STARTS } else { 0 };
        let interned = std::mem::take(&mut self.pending);
        packets.add(&TracePacket {
            trusted_packet_sequence_id: self.event as u32 + 1,
            sequence_flags: CONTINUES | starts,
            interned_data: (interned != InternedData::default()).then_some(interned),
            trace_packet_defaults: defaults,
            ..packet
        })
    }

    /// Writes a thread's states as non-overlapping slices.
    ///
    /// A running thread is sampled once per period, so a slice is extended up to the next wait if that is
    /// less than a period away.
    fn states(&mut self, packets: &mut PacketWriter<'_>, track: u64, rows: &[&StackRow]) -> io::Result<()> {
        let mut slices: Vec<StateSlice<'_>> = Vec::new();
        for row in rows.iter().copied() {
            let Some(end) = row.time else { continue };
            let period = sampling_period(row);
            let begin = end.saturating_sub(if row.wait.is_some() { row.value.period } else { period });
            let earlier = slices.last().map_or(0, |slice| slice.end);
            if end <= earlier {
                continue;
            }
            let mut begin = begin.max(earlier);
            if let Some(last) = slices.last_mut() {
                match (last.row.wait.is_some(), row.wait.is_some()) {
                    (false, false) if begin - last.end <= period => {
                        last.end = end;
                        continue;
                    }
                    // The thread was running between its last sample and the wait, or between a wait and its
                    // next sample.
                    (false, true) if begin - last.end <= sampling_period(last.row) => last.end = begin,
                    (true, false) if begin - last.end <= period => begin = last.end,
                    _ => {}
                }
            }
            slices.push(StateSlice { begin, end, row });
        }
        let mut flow = None;
        for StateSlice { begin, end, row } in slices {
            let name = match (row.state(), row.wait) {
                (ThreadState::Blocked, Some(site)) => format!("blocked: {}", site.name()),
                (state, _) => state.name().to_owned(),
            };
            let mut debug_annotations: Vec<_> =
                row.wait.map(|_| self.stack_text(row.stack)).into_iter().collect();
            let partner = if row.state() == ThreadState::Blocked { "waker" } else { "ran_instead" };
            debug_annotations.extend(self.stacks.partner(row).map(|name| annotation(partner, &name)));
            let categories = vec!["state".to_owned()];
            let name_iid = self.event_name(name);
            let event = TrackEvent {
                r#type: BEGIN,
                track_uuid: track,
                name_iid,
                categories,
                debug_annotations,
                terminating_flow_ids: flow.take().into_iter().collect(),
                ..TrackEvent::default()
            };
            self.event(packets, begin, event)?;
            let event = TrackEvent { r#type: END, track_uuid: track, ..TrackEvent::default() };
            self.event(packets, end, event)?;
            // The flow ends at the thread's next state.
            flow = self.wake_up(packets, end, row)?;
        }
        Ok(())
    }

    /// Writes an instant on the track of the thread that ended a wait. Returns the flow that begins there, if
    /// the trace contains that thread.
    fn wake_up(
        &mut self,
        packets: &mut PacketWriter<'_>,
        at: u64,
        row: &StackRow,
    ) -> io::Result<Option<u64>> {
        let WaitPartner::Thread(tid) = row.partner else { return Ok(None) };
        let Some((waker, _)) = self.tracks.tracks.get(&TrackKey::Id(tid)) else { return Ok(None) };
        if row.state() != ThreadState::Blocked {
            return Ok(None);
        }
        self.last_flow += 1;
        let woken = &self.stacks.threads[row.thread as usize];
        let name_iid = self.event_name(format!("wakes {}", clean(&woken.comm)));
        let event = TrackEvent {
            r#type: INSTANT,
            track_uuid: *waker,
            name_iid,
            categories: vec!["waker".to_owned()],
            flow_ids: vec![self.last_flow],
            ..TrackEvent::default()
        };
        self.event(packets, at, event)?;
        Ok(Some(self.last_flow))
    }

    /// Writes a tracepoint's sample with its fields.
    fn instant(
        &mut self,
        packets: &mut PacketWriter<'_>,
        track: u64,
        at: u64,
        payload: u64,
    ) -> io::Result<()> {
        let name = clean(&self.stacks.events[self.event].name).into_owned();
        let fields = annotation("fields", self.stacks.payload(payload).trim());
        let name_iid = self.event_name(name);
        let event = TrackEvent {
            r#type: INSTANT,
            track_uuid: track,
            name_iid,
            categories: vec!["tracepoint".to_owned()],
            debug_annotations: vec![fields],
            ..TrackEvent::default()
        };
        self.event(packets, at, event)
    }

    fn event(&mut self, packets: &mut PacketWriter<'_>, at: u64, event: TrackEvent) -> io::Result<()> {
        self.add(packets, TracePacket { timestamp: at, track_event: Some(event), ..TracePacket::default() })
    }

    fn sample(&mut self, packets: &mut PacketWriter<'_>, at: u64, row: &StackRow) -> io::Result<()> {
        let thread = &self.stacks.threads[row.thread as usize];
        let callstack_iid = self.callstack(row.stack);
        for timebase_count in equal_parts(row.value.period, row.value.samples.max(1)) {
            let sample = PerfSample {
                pid: thread.pid.unwrap_or(0) as u32,
                tid: thread.tid.unwrap_or(0) as u32,
                callstack_iid,
                timebase_count,
            };
            self.add(packets, TracePacket { timestamp: at, perf_sample: Some(sample), ..<_>::default() })?;
        }
        Ok(())
    }

    fn event_name(&mut self, name: String) -> u64 {
        let (iid, is_new) = self.strings.number(name.clone());
        if is_new {
            self.pending.event_names.push(InternedName { iid, name });
        }
        iid
    }

    /// Returns the annotation with a wait's stack, outermost function first.
    fn stack_text(&mut self, stack: u32) -> DebugAnnotation {
        let (iid, is_new) = self.stack_texts.number(stack);
        if is_new {
            let calls = self.calls(stack).into_iter();
            let names: Vec<String> = calls
                .map(|(call, _)| function_name(&self.stacks.code().calls()[call], self.stacks.texts))
                .collect();
            let str = names.join(";").into_bytes();
            self.pending.debug_annotation_string_values.push(InternedBytes { iid, str });
        }
        DebugAnnotation { name: "stack".to_owned(), string_value_iid: iid, ..DebugAnnotation::default() }
    }

    /// Returns the calls of a stack with their locations, outermost first.
    fn calls(&self, stack: u32) -> Vec<(usize, u32)> {
        let stacks = self.stacks;
        let locations = stacks.stack(stack).rev();
        locations
            .flat_map(|location| stacks.code().range(location).rev().map(move |call| (call, location)))
            .collect()
    }

    fn callstack(&mut self, stack: u32) -> u64 {
        let (iid, is_new) = self.callstacks.number(stack);
        if is_new {
            let frame_ids = self.calls(stack).into_iter().map(|call| self.frame(call)).collect();
            self.pending.callstacks.push(Callstack { iid, frame_ids });
        }
        iid
    }

    fn frame(&mut self, (call, location): (usize, u32)) -> u64 {
        let (iid, is_new) = self.frames.number((call, location));
        if is_new {
            let stacks = self.stacks;
            let about = &stacks.code().calls()[call];
            let place = stacks.location(location);
            // Each call is in exactly one frame, so use the frame's number for the name too.
            let str = function_name(about, stacks.texts).into_bytes();
            self.pending.function_names.push(InternedBytes { iid, str });
            let mapping_id = self.mapping(place.module());
            self.pending.frames.push(Frame {
                iid,
                function_name_id: iid,
                mapping_id,
                rel_pc: place.offset,
                line_number: about.line,
            });
        }
        iid
    }

    fn mapping(&mut self, number: Option<u32>) -> u64 {
        let (iid, is_new) = self.mappings.number(number);
        if is_new {
            let module = number.map(|number| &self.stacks.modules[number as usize]);
            let path = module.map_or_else(|| "[unknown]".into(), |module| module.path.to_string_lossy());
            let id = module.and_then(|module| module.build_id.as_deref());
            let str = clean(&path).into_owned().into_bytes();
            self.pending.mapping_paths.push(InternedBytes { iid, str });
            let str = id.map(|id| hex(id, "")).unwrap_or_default().into_bytes();
            self.pending.build_ids.push(InternedBytes { iid, str });
            self.pending.mappings.push(StackMapping { iid, build_id: iid, path_string_ids: vec![iid] });
        }
        iid
    }
}

/// Returns an annotation whose value is text from the recording.
fn annotation(name: &str, text: &str) -> DebugAnnotation {
    let string_value = clean(text).into_owned();
    DebugAnnotation { name: name.to_owned(), string_value, ..DebugAnnotation::default() }
}

/// Divides a sum into parts that differ by at most 1.
fn equal_parts(sum: u64, parts: u64) -> impl Iterator<Item = u64> {
    (0..parts).map(move |part| sum / parts + u64::from(part < sum % parts))
}

/// Returns the period of each sample in a row. A row may combine several equal samples with the same time.
fn sampling_period(row: &StackRow) -> u64 {
    row.value.period / row.value.samples.max(1)
}

/// A slice of a thread's time, spent in one state.
struct StateSlice<'a> {
    begin: u64,
    end: u64,
    /// The wait, or the first sample of running time.
    row: &'a StackRow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_row_have_its_whole_period() {
        assert_eq!(equal_parts(11, 4).collect::<Vec<_>>(), [3, 3, 3, 2]);
        for (sum, parts) in [(0, 3), (5, 1), (2, 5), (1_000_001, 7)] {
            assert_eq!(equal_parts(sum, parts).sum::<u64>(), sum);
        }
    }
}
