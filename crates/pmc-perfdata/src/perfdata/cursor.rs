//! The records of a recording one by one, with their times and samples.
//!
//! A record borrows the cursor's buffer, so it must be dropped before the next one is read. This is slower
//! than [`Reader::scan`] and [`Reader::load`], because the file is read twice and by one thread.

use super::error::PerfdataError;
use super::reader::Reader;
use super::scan::{Buffer, RecordingIndex};
use crate::record::{RawRecord, Records, Sample};
use pmc_text::units::PerfTime;

/// A record with its time and, for samples, its event and fields.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordEntry<'a> {
    /// The time, if the recording has times.
    pub time: Option<PerfTime>,
    /// The record.
    pub record: RawRecord<'a>,
    /// For a sample, the index of its event in [`Reader::events`], and its fields.
    pub sample: Option<(usize, Sample<'a>)>,
}

/// Reads the records of a recording one by one, in file order.
#[derive(Debug)]
pub struct RecordCursor<'r> {
    reader: &'r Reader,
    index: RecordingIndex,
    /// Number of the next chunk in the index.
    next: usize,
    /// The chunk before it, in native byte order, and the offset of the next record in it.
    buffer: Buffer,
    at: usize,
}

impl Reader {
    /// Starts to read all records one by one, in file order, with their times and samples.
    ///
    /// # Errors
    /// Fails if reading the file fails. A truncated end becomes a note in the [`RecordingIndex`].
    pub fn records(&self) -> Result<RecordCursor<'_>, PerfdataError> {
        Ok(RecordCursor::new(self, self.scan(|_| {})?))
    }
}

impl<'r> RecordCursor<'r> {
    fn new(reader: &'r Reader, index: RecordingIndex) -> Self {
        Self { reader, index, next: 0, buffer: Buffer::default(), at: 0 }
    }

    /// Returns the index of all records, with the notes on damage.
    pub fn index(&self) -> &RecordingIndex {
        &self.index
    }

    /// Reads the next record; `None` after the last one.
    ///
    /// # Errors
    /// Fails if reading the file fails.
    pub fn next_record(&mut self) -> Result<Option<RecordEntry<'_>>, PerfdataError> {
        while self.at >= self.buffer.bytes().len() {
            let Some(chunk) = self.index.chunks.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.at = 0;
            self.reader.load(chunk, &mut self.buffer)?;
        }
        let layouts = self.reader.layouts();
        Ok(Records::new(&self.buffer.bytes()[self.at..]).next().map(|record| {
            self.at += record.bytes.len();
            RecordEntry { time: layouts.time(&record), sample: layouts.sample(&record), record }
        }))
    }
}
