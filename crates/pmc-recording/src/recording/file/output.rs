//! Writes a recording to a file, a stream or a series of files, and tallies its records.
//!
//! Receives ring memory and synthesized records; tallies them ([`RecordTally`]) and passes them to the
//! [`Writer`]. Starts another file on request. The measurement loop reads the rings, and [`super::features`]
//! builds the feature sections.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::finished_files::FileCommands;
use super::losses::LossReport;
use super::other_roots::OtherRoots;
use super::{features, rotation};
use crate::recording::ended_at_exec::ExecEnds;
use crate::recording::misattributed_samples;
use crate::recording::off_cpu::events::OffCpuSource;
use crate::recording::off_cpu::thinning::{DrainStage, StackThinning};
use crate::recording::off_cpu::wait::StackSampling;
use crate::recording::plan::{BuildIdChoice, FilePlan, MeasurementScope, SamplePlan};
use crate::recording::unwinding::{ChainEndCounts, KeptCopies, UnwindWorker, UnwoundRound};
use pmc_events::counter::rings::{Rings, TracePiece};
use pmc_perfdata::perfdata::feature::MetaInfo;
use pmc_perfdata::perfdata::{self, Features, RecordTally, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::layouts::fallback_event_id;
use pmc_perfdata::record::unwound::StrippedFields;
use pmc_perfdata::record::{Aux, Auxtrace, Layouts, RawRecord, Record, Records, kind, walk};
use pmc_symbols::symbol::BuildId;
use pmc_sys::abi::{aux_flag, sample_type};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::sys::{arch, clock, standard_output};

/// The events of a recording in two forms: as the kernel samples them, and as the file describes them.
pub struct OutputEvents {
    /// The events as the kernel samples them.
    pub(crate) taken: Vec<RecordedEvent>,
    /// The events as the file describes them. Events unwound while recording have call chains instead of
    /// stack copies.
    pub written: Vec<RecordedEvent>,
    /// Fallback events for samples that keep their stack copies; see
    /// [`unwinding`](crate::recording::unwinding).
    fallback_events: Vec<RecordedEvent>,
    lost: Option<StrippedFields>,
    joins: bool,
    /// How off-CPU time is measured, if it is.
    pub off_cpu: Option<OffCpuSource>,
}

impl OutputEvents {
    /// Decides which events are unwound while recording.
    pub fn new(plan: &SamplePlan, taken: Vec<RecordedEvent>) -> Self {
        let options = &plan.options;
        let stripped =
            StrippedFields::new(options.fields & sample_type::ADDR != 0, options.user_regs.is_some());
        let mut fallback_events = Vec::new();
        let mut written = taken.clone();
        let is_system_wide = matches!(plan.scope, MeasurementScope::Cpus(_));
        let off_cpu =
            plan.off_cpu.and_then(|off_cpu| OffCpuSource::new(off_cpu, is_system_wide, &taken, &mut written));
        for event in written.iter_mut().filter(|_| plan.unwinds) {
            let Some(plain) = stripped.attr(&event.attr) else { continue };
            let ids = event.ids.iter().map(|&id| fallback_event_id(id)).collect();
            let name = Some(format!("{} (stack copies)", event.name()));
            fallback_events.push(RecordedEvent {
                attr: std::mem::replace(&mut event.attr, plain),
                ids,
                name,
            });
        }
        let lost = (!fallback_events.is_empty()).then_some(stripped);
        let lost = lost.or(off_cpu.map(|_| stripped));
        Self { taken, written, fallback_events, lost, joins: plan.joins, off_cpu }
    }

    /// Returns the layouts of the records after unwinding.
    pub(crate) fn layouts(&self) -> Layouts {
        layouts(&[self.written.as_slice(), &self.fallback_events].concat())
    }

    /// Starts the thread that unwinds stack copies; `None` if no event has any. `defers`: see
    /// [`UnwindWorker::start`].
    pub(crate) fn start_unwinding(
        &self,
        max_stack: Option<u16>,
        defers: bool,
    ) -> Result<Option<UnwindWorker>> {
        let most = max_stack.unwrap_or(LONGEST).into();
        let start =
            |lost| UnwindWorker::start(layouts(&self.taken), lost, most, self.joins, defers, self.off_cpu);
        self.lost.map(start).transpose()
    }
}

/// The destination of the records.
pub struct RecordOutput<'a> {
    plan: &'a FilePlan,
    events: OutputEvents,
    /// Features that are known at the start of the file.
    features: Features,
    clock: features::RecordingClock,
    /// Layouts of the records in the file.
    layouts: Layouts,
    writer: Option<Writer>,
    pub(crate) tally: RecordTally,
    /// Totals of the previous files of the series.
    pub(crate) before: Totals,
    joint: Vec<u8>,
    /// For each ring, the id of the event to which its misattributed samples belong.
    owners: Vec<Option<u64>>,
    round: Encoder,
    /// Finished files, if the recording is rotated, except those that pmc or another program has removed.
    pub(crate) files: Vec<PathBuf>,
    /// Runs a command for each of them, if requested.
    pub(crate) commands: Option<FileCommands>,
    unwinding: Option<UnwindWorker>,
    /// Limits the number of stacks of switches, if they are sampled.
    thinning: Option<StackThinning>,
    /// Records about losses, at the end of each file.
    pub(super) losses: LossReport,
    /// Misattributed samples that were dropped before unwinding.
    left_out: u64,
    /// Bytes of trace data in all files, and number of truncations.
    traced: u64,
    truncated: u64,
    /// Rings that have reported a truncated trace or lost records since the last call to `cut_traces`.
    cut: Vec<usize>,
    /// Number of samples with stack copies in this file, and in all files.
    kept: (KeptCopies, KeptCopies),
    /// Number of unwound call chains, by how they end.
    ends: ChainEndCounts,
    /// CPU time of this process in nanoseconds: at the start, and since then for reading unwind tables and
    /// for other work.
    started_cpu_ns: u64,
    tables_cpu_ns: u64,
    samples_cpu_ns: u64,
    /// Time of the next build-id write, the current interval, and the number of build-ids at the last write.
    next_note: Instant,
    each_note: Duration,
    noted: usize,
    known_ids: features::KnownIds,
    /// Files to add to the build-id cache.
    pub(crate) identified: FxHashMap<(Vec<u8>, BuildId), features::FileBuildId>,
    other_roots: OtherRoots,
    /// Processes whose events the kernel ended when they executed a program.
    pub(in crate::recording) exec_ends: ExecEnds,
    /// Total count of each event; empty if unknown.
    pub(crate) counted: Vec<u64>,
}

/// Time until build-ids are first written.
const FIRST_NOTE: Duration = Duration::from_secs(1);

/// The totals of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Number of samples written.
    pub samples: u64,
    /// Number of records of context switches written.
    pub switches: u64,
    /// Number of samples that could not be written. The other counts do not include these samples.
    pub unwritten: u64,
    /// Number of records that the kernel lost.
    pub lost: u64,
    /// Number of times that the kernel throttled an event.
    pub throttled: u64,
    /// Bytes of trace data.
    pub traced: u64,
    /// Number of times that the trace area was full.
    pub truncated: u64,
    /// Size of the recording in bytes.
    pub bytes: u64,
    /// CPU time from the start to the last sample, in nanoseconds. Excludes one-time work: opening events,
    /// reading unwind tables, and copying files to the build-id cache.
    pub cpu_ns: u64,
}

/// Default maximum length of a call chain: the kernel's default for `kernel.perf_event_max_stack`.
const LONGEST: u16 = 127;

/// Counts truncated traces and collects their rings. Also collects rings that lost records, because a lost
/// record may have reported a truncation.
fn note_cut(record: &RawRecord<'_>, ring: usize, truncated: &mut u64, cut: &mut Vec<usize>) {
    let is_cut = |aux: Aux| aux.flags & aux_flag::TRUNCATED != 0 && aux.flags & aux_flag::OVERWRITE == 0;
    match record.kind {
        kind::AUX => {
            let is_cut = matches!(record.parse(), Some(Record::Aux(aux)) if is_cut(aux));
            *truncated += u64::from(is_cut);
            cut.extend(is_cut.then_some(ring));
        }
        kind::LOST => cut.push(ring),
        _ => {}
    }
}

fn layouts(events: &[RecordedEvent]) -> Layouts {
    Layouts::new(events.iter().map(|event| (&event.attr, event.ids.as_slice())))
}

impl<'a> RecordOutput<'a> {
    /// Creates the file and writes its header. The file is readable from then on. `clock` is the number of
    /// the clock that the user selected. Call this on the thread that also writes the records.
    ///
    /// # Errors
    /// Fails if the file cannot be created or its header cannot be written.
    pub fn create(
        plan: &'a FilePlan,
        max_stack: Option<u16>,
        events: OutputEvents,
        features: Features,
        owners: Vec<Option<u64>>,
        clock: Option<i32>,
    ) -> Result<Self> {
        let thinning = events.off_cpu.filter(|source| source.has_stacks).map(|_| StackThinning::new());
        let unwinding = events.start_unwinding(max_stack, true)?;
        let mut round = Encoder::new(0);
        round.finished_round();
        let mut output = Self {
            plan,
            layouts: events.layouts(),
            clock: features::RecordingClock::open(clock, &events.written),
            events,
            features,
            writer: None,
            tally: RecordTally::new(plan.build_ids == BuildIdChoice::Hit),
            before: Totals::default(),
            joint: Vec::new(),
            owners,
            round,
            files: Vec::new(),
            commands: plan.switch_exec.as_deref().map(FileCommands::start).transpose()?,
            unwinding,
            thinning,
            losses: LossReport::default(),
            left_out: 0,
            traced: 0,
            truncated: 0,
            cut: Vec::new(),
            kept: Default::default(),
            ends: ChainEndCounts::default(),
            started_cpu_ns: 0,
            tables_cpu_ns: 0,
            samples_cpu_ns: 0,
            next_note: Instant::now() + FIRST_NOTE,
            each_note: FIRST_NOTE,
            noted: 0,
            known_ids: features::KnownIds::default(),
            identified: FxHashMap::default(),
            other_roots: OtherRoots::new(plan.keeps_files),
            exec_ends: ExecEnds::default(),
            counted: Vec::new(),
        };
        output.writer = Some(output.begin(true)?);
        Ok(output)
    }

    /// Moves the file into place when the recording starts, and renames an existing file to `.old`.
    pub(crate) fn replace_target(&mut self) -> Result<(), perfdata::PerfdataError> {
        self.started_cpu_ns = clock::process_cpu_ns();
        self.writer.as_mut().map_or(Ok(()), Writer::replace_target)
    }

    fn begin(&mut self, hold: bool) -> Result<Writer> {
        self.clock.describe(&mut self.features);
        let options = WriteOptions {
            replaced: Some(|path, was| say::note(format!("replaced {}, which was {was}", path.display()))),
            compress: self.plan.compress,
            spare: self.events.fallback_events.clone(),
            hold,
            whole: false,
            stream: Some(standard_output::name()),
        };
        let path = &self.plan.path;
        Ok(Writer::create(path, &self.events.written, &self.features, options)?)
    }

    /// Returns the size of the `sample_id` at the end of each record, in bytes.
    pub(crate) fn trailer(&self) -> usize {
        self.layouts.iter().next().map_or(0, |layout| layout.trailer_size())
    }

    /// Writes synthesized records that describe the state before the recording.
    pub(crate) fn write_synthesized(&mut self, records: &[u8]) -> Result<(), perfdata::PerfdataError> {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.send_synthesized(records);
        }
        let mut by_id = Vec::new();
        Records::new(records).for_each(|record| self.other_roots.note_existing(&record, &mut by_id));
        self.take(&[records, &by_id])
    }

    /// Begins the measurement, after the events have been switched on. If off-CPU time is measured, the
    /// window begins later, at the time that the receiver returns.
    pub(crate) fn begin_window(&mut self) -> Option<Receiver<u64>> {
        self.events.off_cpu?;
        self.unwinding.as_mut().map(UnwindWorker::begin_window)
    }

    /// Writes whole records from one or two slices. A record may span both slices.
    pub(crate) fn take(&mut self, slices: &[&[u8]]) -> Result<(), perfdata::PerfdataError> {
        let Self { tally, layouts, joint, writer, .. } = self;
        walk(slices, joint, |record| tally.note(record, layouts));
        writer.as_mut().map_or(Ok(()), |writer| writer.append(slices))
    }

    /// Writes the contents of a ring.
    pub(crate) fn take_ring(&mut self, ring: usize, slices: &[&[u8]]) -> Result<(), perfdata::PerfdataError> {
        let owner = self.owners.get(ring).copied().flatten();
        if let Some(unwinding) = &mut self.unwinding {
            let Self { thinning, left_out, truncated, cut, other_roots, exec_ends, layouts, .. } = self;
            *left_out += unwinding.take_ring(slices, owner, |record, out| {
                note_cut(record, ring, truncated, cut);
                if let Some(thinning) = thinning {
                    thinning.note(record);
                }
                other_roots.note(record, out);
                exec_ends.note(record, layouts);
            });
            return Ok(());
        }
        let before = self.tally.strangers;
        let mut by_id = Vec::new();
        let Self { tally, layouts, joint, truncated, cut, other_roots, exec_ends, .. } = self;
        walk(slices, joint, |record| {
            note_cut(record, ring, truncated, cut);
            tally.note(record, layouts);
            other_roots.note(record, &mut by_id);
            exec_ends.note(record, layouts);
        });
        let strangers = tally.strangers - before;
        if strangers == 0 {
            self.writer.as_mut().map_or(Ok(()), |writer| writer.append(slices))?;
        } else {
            self.write_corrected(owner, slices)?;
        }
        if by_id.is_empty() { Ok(()) } else { self.take(&[&by_id]) }
    }

    /// Writes the contents of a ring, and assigns misattributed samples to their owner.
    fn write_corrected(
        &mut self,
        owner: Option<u64>,
        slices: &[&[u8]],
    ) -> Result<(), perfdata::PerfdataError> {
        let Self { tally, layouts, joint, writer, .. } = self;
        let Some(writer) = writer else { return Ok(()) };
        let mut mended = Vec::with_capacity(slices.iter().map(|slice| slice.len()).sum());
        walk(slices, joint, |record| {
            if !misattributed_samples::is_misattributed(record, layouts) {
                mended.extend_from_slice(record.bytes);
            } else if !misattributed_samples::write_with_own_id(record, owner, &mut mended) {
                tally.samples -= 1;
                tally.lost += 1;
            }
        });
        writer.append(&[&mended])
    }

    /// Returns the rings whose traces have possibly been truncated since the last call.
    pub(crate) fn cut_traces(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.cut)
    }

    /// Writes a piece of a trace from one or two slices.
    pub(crate) fn take_trace(
        &mut self,
        piece: TracePiece,
        slices: &[&[u8]],
    ) -> Result<(), perfdata::PerfdataError> {
        let len: u64 = slices.iter().map(|slice| slice.len() as u64).sum();
        let padding = [0; 8];
        let padding = &padding[..(len.next_multiple_of(8) - len) as usize];
        let any = |number: Option<u32>| number.unwrap_or(u32::MAX);
        let mut record = Encoder::new(0);
        record.auxtrace(&Auxtrace {
            size: len + padding.len() as u64,
            offset: piece.offset,
            // The time of this read on the clock that Intel PT uses. PT's packets contain only the low bits
            // of that clock.
            reference: arch::clock_reading(),
            idx: piece.ring as u32,
            // Decoders attribute the CPU's trace to this thread until a record names another thread.
            tid: any(piece.slot.tid),
            cpu: any(piece.slot.cpu),
        });
        let pieces = [slices, &[padding]].concat();
        if let Some(writer) = &mut self.writer {
            writer.append_trace(record.bytes(), &pieces)?;
            self.traced += len;
        }
        Ok(())
    }

    /// Returns the time of the next sampling change, at which to call [`thin_stacks`](Self::thin_stacks).
    pub(crate) fn next_thinning(&self) -> Option<u64> {
        self.thinning.as_ref()?.due()
    }

    /// Switches the sampling of stacks off and on if there are many context switches.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(in crate::recording) fn thin_stacks(&mut self, rings: &Rings, stage: DrainStage) -> Result<()> {
        let changed = self.thinning.as_mut().map(|thinning| thinning.apply(rings, stage)).transpose()?;
        let changed = changed.flatten();
        self.samples_stacks(changed);
        Ok(())
    }

    /// Samples all stacks from now on.
    pub(crate) fn end_thinning(&mut self, rings: &Rings) -> Result<()> {
        let changed = self.thinning.take().map(|thinning| thinning.end(rings)).transpose()?;
        self.samples_stacks(changed);
        Ok(())
    }

    /// Called when the context-switch events have been switched on or off for other reasons.
    pub(crate) fn restart_thinning(&mut self, is_on: bool) {
        let changed = self.thinning.as_mut().map(|thinning| thinning.restart(is_on));
        self.samples_stacks(changed);
    }

    fn samples_stacks(&mut self, changed: Option<(u64, StackSampling)>) {
        if let (Some(unwinding), Some((time, sampling))) = (&mut self.unwinding, changed) {
            unwinding.samples_stacks(time, sampling);
        }
    }

    /// Begins the second pass over the rings. Returns whether this recording needs a second pass.
    pub(crate) fn begin_second_pass(&mut self) -> bool {
        self.unwinding.as_mut().map(UnwindWorker::second_pass).is_some()
    }

    /// Returns the descriptor that becomes readable when stacks have been unwound.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.unwinding.as_ref().map(UnwindWorker::as_fd)
    }

    /// Writes the records of finished unwinding rounds.
    fn collect(&mut self) -> Result<()> {
        while let Some(unwinding) = &mut self.unwinding {
            match unwinding.next()? {
                Some(done) => self.take_done(done)?,
                None => break,
            }
        }
        Ok(())
    }

    fn take_done(&mut self, done: UnwoundRound) -> Result<()> {
        self.kept.0 += done.kept;
        self.kept.1 += done.kept;
        self.ends += done.ends;
        self.tables_cpu_ns = done.tables_cpu_ns;
        if let (true, Some(writer)) = (done.kept.samples > 0, &mut self.writer) {
            writer.show_spare()?;
        }
        if !done.records.is_empty() {
            self.take(&[&done.records])?;
            self.write_round()?;
        }
        Ok(())
    }

    /// Waits until the worker has unwound all pending rounds, and writes their records. With `is_last`, also
    /// writes the records that were held back, and stops the worker.
    pub(crate) fn finish_unwinding(&mut self, is_last: bool) -> Result<()> {
        let Some(unwinding) = &mut self.unwinding else { return Ok(()) };
        if is_last {
            let all = unwinding.last()?;
            self.unwinding = None;
            return all.into_iter().try_for_each(|done| self.take_done(done));
        }
        unwinding.end_round();
        while let Some(done) = self.unwinding.as_mut().map(UnwindWorker::wait).transpose()?.flatten() {
            self.take_done(done)?;
        }
        Ok(())
    }

    /// Returns the number of unwound call chains, by how they end.
    pub(crate) fn ends(&self) -> ChainEndCounts {
        self.ends
    }

    /// Returns the number of samples that keep their stack copies.
    pub(crate) fn kept(&self) -> KeptCopies {
        self.kept.1
    }

    /// Ends a round after all rings have been read.
    pub(crate) fn end_round(&mut self) -> Result<()> {
        self.other_roots.end_round();
        self.exec_ends.end_round();
        match &mut self.unwinding {
            Some(unwinding) => drop(unwinding.end_round()),
            None => self.write_round()?,
        }
        Ok(())
    }

    fn write_round(&mut self) -> Result<(), perfdata::PerfdataError> {
        let Self { writer, round, .. } = self;
        writer.as_mut().map_or(Ok(()), |writer| writer.append(&[round.bytes()]))
    }

    /// Called each time all rings have been read.
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.collect()?;
        self.note_build_ids()?;
        self.writer.as_mut().map_or(Ok(()), Writer::tick)?;
        Ok(())
    }

    /// Writes the build-ids known so far as records, so a killed recorder does not lose them. Writes them
    /// after one second, then after two more, four more, and so on. This keeps the cost low in long
    /// recordings.
    fn note_build_ids(&mut self) -> Result<(), perfdata::PerfdataError> {
        let now = Instant::now();
        if now < self.next_note {
            return Ok(());
        }
        self.each_note *= 2;
        self.next_note = now + self.each_note;
        let files = features::identified(&self.tally, self.plan.build_ids, &mut self.known_ids);
        let rows = features::build_ids(&files);
        if rows.len() <= self.noted {
            return Ok(());
        }
        self.noted = rows.len();
        let mut records = Vec::new();
        rows.iter().for_each(|row| row.write_record(kind::HEADER_BUILD_ID, &mut records));
        self.writer.as_mut().map_or(Ok(()), |writer| writer.append(&[&records]))
    }

    /// Writes the records of a backward ring, which contains the newest record first. The last record may be
    /// incomplete.
    pub(crate) fn take_snapshot(
        &mut self,
        ring: usize,
        slices: &[&[u8]],
    ) -> Result<(), perfdata::PerfdataError> {
        let bytes = slices.concat();
        let mut records = pmc_perfdata::record::Records::new(&bytes);
        records.by_ref().for_each(drop);
        // The bytes after the last whole record were partly overwritten.
        let whole = bytes.len() - records.rest().len();
        self.take_ring(ring, &[&bytes[..whole]])
    }

    /// Returns the size of this file so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::bytes)
    }

    /// Returns the totals so far, for this file and all previous files.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            samples: self.before.samples + self.tally.samples,
            switches: self.before.switches + self.tally.switches,
            unwritten: self.before.unwritten,
            lost: self.before.lost + self.tally.lost + self.left_out,
            throttled: self.before.throttled + self.tally.throttled,
            traced: self.traced,
            truncated: self.truncated,
            bytes: self.before.bytes + self.bytes(),
            cpu_ns: self.samples_cpu_ns,
        }
    }

    /// Ends this file and begins the next.
    pub(crate) fn switch(&mut self) -> Result<()> {
        self.finish_unwinding(false)?;
        self.finish_file()?;
        self.kept.0 = KeptCopies::default();
        // Keep the counts that the kernel reported for ended threads, because they are needed at the end of
        // the whole recording.
        let reads = std::mem::take(&mut self.tally.reads);
        self.tally = RecordTally::new(self.plan.build_ids == BuildIdChoice::Hit);
        self.tally.reads = reads;
        self.writer = Some(self.begin(false)?);
        (self.next_note, self.each_note, self.noted) = (Instant::now() + FIRST_NOTE, FIRST_NOTE, 0);
        Ok(())
    }

    /// Ends the recording.
    pub(crate) fn finish(&mut self) -> Result<()> {
        // End the file even if writing has failed.
        let settled = self.finish_unwinding(true);
        let cpu_ns = clock::process_cpu_ns().saturating_sub(self.started_cpu_ns);
        self.samples_cpu_ns = cpu_ns.saturating_sub(self.tables_cpu_ns);
        self.other_roots.finish();
        settled.and(self.finish_file())
    }

    /// Writes a `LOST` record for losses that the kernel could not report, because the ring had no room for a
    /// record until the end.
    pub(super) fn write_lost(&mut self) -> Result<(), perfdata::PerfdataError> {
        let Some((id, lost)) = self.losses.unwritten(self.totals().lost) else { return Ok(()) };
        let mut record = Encoder::new(self.trailer());
        record.lost(id, lost);
        self.take(&[record.bytes()])
    }

    /// Writes `LOST_SAMPLES` records. The tally already contains their losses.
    fn write_lost_samples(&mut self) -> Result<(), perfdata::PerfdataError> {
        let has_id = |event: &RecordedEvent| event.attr.sample_type() & sample_type::IDENTIFIER != 0;
        let has_id = self.events.written.first().is_some_and(has_id);
        let mut records = Encoder::new(self.trailer());
        let lost = self.totals().lost;
        self.losses.write_samples(lost, self.tally.lost_samples, has_id, &mut records);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.append(&[records.bytes()]))
    }

    fn finish_file(&mut self) -> Result<()> {
        let written = self.write_lost_samples();
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let mut features = self.features.clone();
        if let (true, Some(list)) = (self.kept.0.samples > 0, &mut features.event_desc) {
            list.0.extend(
                self.events
                    .fallback_events
                    .iter()
                    .map(|event| (event.attr.clone(), event.name(), event.ids.clone())),
            );
        }
        let identified = features::identified(&self.tally, self.plan.build_ids, &mut self.known_ids);
        features::at_the_end(&mut features, &self.tally, &identified);
        if !self.counted.is_empty() {
            features.meta_info = Some(MetaInfo::of_counts(&self.counted));
        }
        if self.ends.walked > 0 {
            features.meta_info.get_or_insert_default().add_stacks(self.ends.walked, self.ends.cut);
        }
        if self.other_roots.owners().len() > 0 {
            features.meta_info.get_or_insert_default().add_owners(self.other_roots.owners());
        }
        if self.plan.keeps_files {
            // The last process that mapped a file is the most likely one to still exist.
            self.identified.extend(identified.into_iter().map(|of| ((of.file.name.clone(), of.id), of)));
        }
        let (records, is_cut) = (writer.bytes(), writer.is_cut());
        let finished = writer.finish(&features);
        let mut totals = self.totals();
        totals.bytes = self.before.bytes + *finished.as_ref().unwrap_or(&records);
        if is_cut {
            let missing = self
                .tally
                .samples
                .saturating_sub(perfdata::Reader::count_samples(&self.plan.path).unwrap_or(0));
            totals.samples -= missing;
            totals.unwritten += missing;
        }
        self.before = Totals { lost: totals.lost - self.left_out, ..totals };
        self.tally = RecordTally::new(false);
        written?;
        finished?;
        if self.plan.rotation.is_some() || self.plan.snapshots || self.plan.is_stamped {
            self.rename()?;
        }
        Ok(())
    }

    /// Appends the time to the finished file's name, and removes the oldest files beyond the limit.
    fn rename(&mut self) -> Result<()> {
        let base: &Path = &self.plan.path;
        let mut name = rotation::name(base);
        let mut again = 0;
        while name.exists() {
            again += 1;
            name = format!("{}.{again}", rotation::name(base).display()).into();
        }
        std::fs::rename(base, &name).map_err(|error| {
            Error::io(format!("renaming {} to {}", base.display(), name.display()), error)
        })?;
        if let Some(commands) = &self.commands {
            commands.add(name.clone());
        }
        self.files.push(name);
        let is_limited = self.plan.most_files.is_some();
        if is_limited || self.commands.is_some() && self.files.len().is_power_of_two() {
            // The command for each file, or another program, may have removed it. Without a limit, checking
            // at each power of two keeps both the list and the work small.
            self.files.retain(|file| file.exists());
        }
        while self.plan.most_files.is_some_and(|most| self.files.len() > most.max(1)) {
            let oldest = self.files.remove(0);
            match std::fs::remove_file(&oldest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(format!("removing {}", oldest.display()), error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
