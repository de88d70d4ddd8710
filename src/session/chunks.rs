//! The walk over all samples of a recording: chunks in any order, on several threads; or, where copied
//! stacks are unwound, on one in the order of time.
//!
//! Receives what each thread has of its own and what it does with a sample; hands on what the threads have at
//! the end. Decides only who reads which chunk.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::order::{self, Unwinding};
use super::{Session, Timestamp};
use crate::perfdata::{self, Buffer, Chunk};
use crate::record::{RawRecord, kind};

/// Shows every sample, with its place in the file and what `unwinding` makes of its stack (nothing without
/// it), to `look` on at most `workers` threads, each with something that `new` made. One worker sees them in
/// the file's order; there is one, and by time, where stacks are unwound. `progress` is told how many samples
/// more are done.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn walk<T: Send>(
    session: &Session,
    unwinding: Option<Unwinding<'_>>,
    workers: usize,
    new: impl Fn() -> T + Sync,
    look: impl Fn(&mut T, &RawRecord<'_>, Timestamp, &[u64]) + Sync,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<T>, perfdata::Error> {
    if unwinding.is_some() {
        let mut own = new();
        let is_sample = |kind| kind == kind::SAMPLE;
        order::records_unwound(session, true, unwinding, is_sample, |raw, place, unwound| {
            look(&mut own, raw, place.position, unwound);
            progress(1);
            Ok::<(), perfdata::Error>(())
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
