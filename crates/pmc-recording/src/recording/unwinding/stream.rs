//! Unwinds the stack copies of a stream: the worker's records go to the merge instead of a file.
//!
//! The worker returns a round later than it was read, so records are complete only up to the horizon of the
//! last round that it has returned.

use std::collections::VecDeque;

use super::{UnwindWorker, UnwoundRound};
use crate::recording::sources::RecordSources;
use pmc_analysis::session::live::RecordMerge;
use pmc_perfdata::record::Layouts;
use pmc_sys::error::Result;

/// Unwinds stacks between the rings of a stream and its [`RecordMerge`].
pub(crate) struct StreamUnwinder {
    worker: UnwindWorker,
    /// For each ring, the id of the event to which its misattributed samples belong.
    owners: Vec<Option<u64>>,
    /// The horizons of the rounds that the worker has not returned.
    horizons: VecDeque<u64>,
    /// The horizon of the last round that it has returned.
    horizon: u64,
}

impl StreamUnwinder {
    pub(crate) fn new(worker: UnwindWorker, owners: Vec<Option<u64>>) -> Self {
        Self { worker, owners, horizons: VecDeque::new(), horizon: 0 }
    }

    /// Passes synthesized records to the worker.
    pub(crate) fn send_synthesized(&mut self, records: &[u8]) {
        self.worker.send_synthesized(records);
    }

    /// Reads the rings once, without ending the round. Returns whether there were records.
    pub(crate) fn read(&mut self, sources: &mut RecordSources) -> Result<bool> {
        self.worker.take_rings(sources, &self.owners)
    }

    /// Reads the rings, and adds the finished rounds to the merge. All records before `horizon` have then
    /// been read. Returns whether there were records, and up to which time `merge` is complete.
    pub(crate) fn take(
        &mut self,
        sources: &mut RecordSources,
        horizon: u64,
        merge: &mut RecordMerge,
        layouts: &Layouts,
    ) -> Result<(bool, u64)> {
        let had_records = self.read(sources)?;
        if had_records {
            self.worker.second_pass();
            self.read(sources)?;
        }
        if self.worker.end_round() {
            self.horizons.push_back(horizon);
        }
        while let Some(done) = self.worker.next()? {
            self.horizon = self.horizons.pop_front().unwrap_or(horizon);
            add(merge, &done, layouts);
        }
        Ok((had_records, if self.horizons.is_empty() { horizon } else { self.horizon }))
    }

    /// Adds all remaining records to the merge.
    pub(crate) fn finish(&mut self, merge: &mut RecordMerge, layouts: &Layouts) -> Result<()> {
        self.worker.last()?.iter().for_each(|done| add(merge, done, layouts));
        Ok(())
    }
}

fn add(merge: &mut RecordMerge, done: &UnwoundRound, layouts: &Layouts) {
    merge.take(&[&done.records], layouts, None);
}
