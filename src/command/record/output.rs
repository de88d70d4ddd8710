//! The file (or stream, or row of files) of a recording: what goes into it and what was seen going.
//!
//! Receives ring memory and records of our own; counts them ([`Tally`]), hands them to the [`Writer`], and begins another
//! file when told. Leaves reading of rings to the loop, feature sections to [`super::sections`].

use std::path::{Path, PathBuf};

use super::plan::{BuildIds, Plan};
use super::{sections, switch};
use crate::error::{Error, Result};
use crate::perfdata::{self, Event, Features, Options, Tally, Writer};
use crate::record::encode::Encoder;
use crate::record::{HEADER, Layouts, kind, walk};

/// Where records go.
pub(super) struct Output<'a> {
    plan: &'a Plan,
    events: Vec<Event>,
    /// What is known at the start.
    features: Features,
    layouts: Layouts,
    writer: Option<Writer>,
    pub(super) tally: Tally,
    /// Counts of the files before this one.
    pub(super) before: Totals,
    joint: Vec<u8>,
    /// For each ring the id that a stranger's samples in it belong to: see [`Output::take_ring`].
    owners: Vec<Option<u64>>,
    round: Encoder,
    /// Files that are finished, where there are several.
    pub(super) files: Vec<PathBuf>,
}

/// What a recording came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) throttled: u64,
    pub(super) bytes: u64,
}

impl<'a> Output<'a> {
    /// Begins the file. It can be read from now on.
    pub(super) fn create(
        plan: &'a Plan,
        events: Vec<Event>,
        features: Features,
        owners: Vec<Option<u64>>,
    ) -> Result<Self> {
        let layouts = Layouts::new(events.iter().map(|event| (&event.attr, event.ids.as_slice())));
        let mut round = Encoder::new(0);
        round.finished_round();
        let mut output = Self {
            plan,
            events,
            features,
            layouts,
            writer: None,
            tally: Tally::new(plan.build_ids == BuildIds::Hit),
            before: Totals::default(),
            joint: Vec::new(),
            owners,
            round,
            files: Vec::new(),
        };
        output.writer = Some(output.begin()?);
        Ok(output)
    }

    fn begin(&self) -> Result<Writer> {
        let options = Options { compress: self.plan.compress };
        let path = &self.plan.output;
        Writer::create(path, &self.events, &self.features, options).map_err(|error| match error {
            perfdata::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(path).display();
                Error::io(format!("making {}", path.display()), source)
                    .why("the folder does not exist")
                    .try_this(format!("mkdir -p {folder}"))
            }
            other => other.into(),
        })
    }

    /// Bytes of the `sample_id` behind each record.
    pub(super) fn trailer(&self) -> usize {
        self.layouts.iter().next().map_or(0, |layout| layout.trailer_size())
    }

    /// Takes whole records, in one slice or in two with a record across both.
    pub(super) fn take(&mut self, slices: &[&[u8]]) -> Result<(), perfdata::Error> {
        let Self { tally, layouts, joint, writer, .. } = self;
        walk(slices, joint, |record| tally.note(record, layouts));
        writer.as_mut().map_or(Ok(()), |writer| writer.append(slices))
    }

    /// Takes what a ring holds.
    ///
    /// Linux (6.2 to at least 6.18) hands one sample of a software event from one listener to the next and keeps the id of
    /// the first: where two recorders listen to page faults on the same CPU, the samples of one bear an id of the other's. perf
    /// refuses such a file. Which event they belong to is known where the ring has but one of that kind; elsewhere
    /// they are left out and counted as lost.
    pub(super) fn take_ring(&mut self, ring: usize, slices: &[&[u8]]) -> Result<(), perfdata::Error> {
        let before = self.tally.strangers;
        let Self { tally, layouts, joint, writer, .. } = self;
        walk(slices, joint, |record| tally.note(record, layouts));
        let Some(writer) = writer else { return Ok(()) };
        let strangers = tally.strangers - before;
        if strangers == 0 {
            return writer.append(slices);
        }
        let owner = self.owners.get(ring).copied().flatten();
        let mut mended = Vec::with_capacity(slices.iter().map(|slice| slice.len()).sum());
        walk(slices, joint, |record| {
            let is_stranger = record.kind == kind::SAMPLE && layouts.sample(record).is_none();
            match owner {
                Some(id) if is_stranger && record.bytes.len() >= HEADER + 8 => {
                    mended.extend_from_slice(&record.bytes[..HEADER]);
                    // Every sample begins with its event's id where there are several events.
                    mended.extend_from_slice(&id.to_ne_bytes());
                    mended.extend_from_slice(&record.bytes[HEADER + 8..]);
                }
                _ if is_stranger => {}
                _ => mended.extend_from_slice(record.bytes),
            }
        });
        if owner.is_none() {
            tally.samples -= strangers;
            tally.lost += strangers;
        }
        writer.append(&[&mended])
    }

    /// All rings were read once.
    pub(super) fn end_round(&mut self) -> Result<(), perfdata::Error> {
        let Self { writer, round, .. } = self;
        writer.as_mut().map_or(Ok(()), |writer| writer.append(&[round.bytes()]))
    }

    /// Nothing to write for now.
    pub(super) fn tick(&mut self) -> Result<(), perfdata::Error> {
        self.writer.as_mut().map_or(Ok(()), Writer::tick)
    }

    /// Takes records out of a backward ring: newest first, the last perhaps torn.
    pub(super) fn take_snapshot(&mut self, ring: usize, slices: &[&[u8]]) -> Result<(), perfdata::Error> {
        let bytes = slices.concat();
        let mut records = crate::record::Records::new(&bytes);
        records.by_ref().for_each(drop);
        // What is behind the last whole record was written over.
        let whole = bytes.len() - records.rest().len();
        self.take_ring(ring, &[&bytes[..whole]])
    }

    /// Bytes of this file so far.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::bytes)
    }

    /// Everything so far, of this file and those before.
    pub(super) fn totals(&self) -> Totals {
        Totals {
            samples: self.before.samples + self.tally.samples,
            lost: self.before.lost + self.tally.lost,
            throttled: self.before.throttled + self.tally.throttled,
            bytes: self.before.bytes + self.bytes(),
        }
    }

    /// Ends this file and begins the next.
    pub(super) fn switch(&mut self) -> Result<()> {
        self.finish_file()?;
        self.tally = Tally::new(self.plan.build_ids == BuildIds::Hit);
        self.writer = Some(self.begin()?);
        Ok(())
    }

    /// Ends the recording.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.finish_file()
    }

    fn finish_file(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let mut features = self.features.clone();
        sections::at_the_end(&mut features, &self.tally, self.plan.build_ids);
        let mut totals = self.totals();
        totals.bytes = self.before.bytes + writer.finish(&features)?;
        self.before = totals;
        self.tally = Tally::new(false);
        if self.plan.switch.is_some() || self.plan.snapshots {
            self.rename()?;
        }
        Ok(())
    }

    /// Each file of a row gets its time as its name; the oldest go when there are too many.
    fn rename(&mut self) -> Result<()> {
        let base: &Path = &self.plan.output;
        let mut name = switch::name(base);
        let mut again = 0;
        while name.exists() {
            again += 1;
            name = format!("{}.{again}", switch::name(base).display()).into();
        }
        std::fs::rename(base, &name).map_err(|error| {
            Error::io(format!("renaming {} to {}", base.display(), name.display()), error)
        })?;
        self.files.push(name);
        if let Some(most) = self.plan.most_files {
            while self.files.len() > most.max(1) {
                let oldest = self.files.remove(0);
                std::fs::remove_file(&oldest)
                    .map_err(|error| Error::io(format!("removing {}", oldest.display()), error))?;
            }
        }
        Ok(())
    }
}
