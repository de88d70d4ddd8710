//! Iterates over all samples in a recording. Without stack unwinding, several threads process the chunks in
//! any order. With stack unwinding, one thread processes the samples in time order.
//!
//! The caller supplies a state for each thread and the function to apply to each sample, and receives the
//! final states. This module only decides which thread reads which chunk.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::Session;
use super::history::Timestamp;
use super::order::{self, SampleUnwinding};
use super::thread_time::ThreadTime;
use pmc_perfdata::perfdata::{self, Buffer, Chunk};
use pmc_perfdata::record::{RawRecord, kind};

/// Calls `look` for every sample, on at most `workers` threads. `new` creates the state of each thread.
/// `look` also receives the sample's position in the file and its unwound chain (empty without `unwinding`).
/// A single worker sees the samples in file order. With `unwinding`, there is only one worker, which sees
/// them in time order. Calls `progress` with the number of newly processed samples.
///
/// # Errors
/// Fails if the file cannot be read.
pub(super) fn walk<T: Send>(
    session: &Session,
    unwinding: Option<SampleUnwinding<'_>>,
    workers: usize,
    new: impl Fn() -> T + Sync,
    look: impl Fn(&mut T, &RawRecord<'_>, Timestamp, &[u64]) + Sync,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<T>, perfdata::PerfdataError> {
    if unwinding.is_some() {
        let mut own = new();
        let is_sample = |kind| kind == kind::SAMPLE;
        order::records_unwound(session, true, unwinding, is_sample, |raw, place, unwound| {
            look(&mut own, raw, place.position, unwound);
            progress(1);
            Ok::<(), perfdata::PerfdataError>(())
        })?;
        return Ok(vec![own]);
    }
    let mut start = 0;
    let chunks: Vec<(Timestamp, &Chunk)> = session
        .index
        .chunks
        .iter()
        .map(|chunk| {
            let here = start;
            start += chunk.bytes();
            (here, chunk)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let work = |_| {
        let mut own = new();
        let mut buffer = Buffer::default();
        while let Some((position, chunk)) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if chunk.samples == 0 {
                continue;
            }
            let mut at = *position;
            for raw in session.reader.load(chunk, &mut buffer)? {
                if raw.kind == kind::SAMPLE {
                    look(&mut own, &raw, at, &[]);
                }
                at += raw.bytes.len() as u64;
            }
            progress(chunk.samples.into());
        }
        Ok(own)
    };
    (0..workers.min(chunks.len()).max(1)).into_par_iter().map(work).collect()
}

impl Session {
    /// Returns the times of the first and last samples, from the header or else from the first and last
    /// chunks.
    pub fn sample_span(&self) -> Option<(u64, u64)> {
        if !self.has_time {
            return None;
        }
        let recorded = self.reader.features().sample_time.as_ref().filter(|span| span.first < span.last);
        let thread_time = ThreadTime::from_events(self.reader.events());
        // Waits begin before their samples, so the span in the header may start too late.
        if let Some(span) = recorded.filter(|_| thread_time.is_none()) {
            return Some((span.first, span.last));
        }
        let chunks = || self.index.chunks.iter().filter(|chunk| chunk.samples > 0);
        let mut buffer = Buffer::default();
        let mut span: Option<(u64, u64)> = None;
        for chunk in chunks().take(1).chain(chunks().next_back()) {
            for raw in self.reader.load(chunk, &mut buffer).ok()? {
                let Some((event, sample)) = self.reader.layouts().sample(&raw) else { continue };
                if let Some(time) = sample.time().map(|time| time.0) {
                    let state = thread_time.as_ref().and_then(|of| of.state(event));
                    let begin = state.map_or(time, |state| state.since(time, sample.period().unwrap_or(0)));
                    let (first, last) = span.unwrap_or((begin, time));
                    span = Some((first.min(begin), last.max(time)));
                }
            }
        }
        span
    }
}
