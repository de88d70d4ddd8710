//! Reads and writes recordings: files, directories and streams in perf's format.
//!
//! A [`Reader`] receives a path or a stream, and returns events, feature sections and records. A [`Writer`]
//! receives events and ring buffer memory, and writes a file that perf can read. Decides the layout of files,
//! and how to handle truncated, compressed or byte-swapped ones. `session` interprets the records.
//!
//! ```text
//! file form                               pipe form
//! | header | ids | attrs |                | header (16 bytes) |
//! | data: records …      |                | HEADER_ATTR … HEADER_FEATURE … records … |
//! | table of features    |
//! | features …           |
//! ```
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pmc_perfdata::perfdata::{PerfdataError, Reader};
//!
//! let reader = Reader::from_bytes(std::fs::read("../../tests/data/perfdata/fp.data")?)?;
//! let mut records = reader.records()?;
//! let mut samples = 0;
//! while let Some(entry) = records.next_record()? {
//!     samples += u64::from(entry.sample.is_some());
//! }
//! assert!(samples > 0 && records.index().notes.is_empty());
//!
//! let error = Reader::from_bytes(*b"a text").unwrap_err();
//! assert!(matches!(error, PerfdataError::NotPerfData { is_empty: false, .. }));
//! # Ok(())
//! # }
//! ```

mod added_section;
mod cursor;
mod error;
mod event;
mod expand;
pub mod feature;
mod header;
mod magic;
mod reader;
mod scan;
mod source;
pub mod tally;
mod writer;

pub use added_section::copy_with_section;
pub use cursor::{RecordCursor, RecordEntry};
pub use error::{Hint, PerfdataError, RecordingNote};
pub use event::{BLOCKED_EVENT, RUNNABLE_EVENT, RecordedEvent};
pub use feature::{FeatureNumber, Features};
pub use header::RecordingLayout;
pub use reader::{OpenedInput, Reader};
pub use scan::{Buffer, Chunk, RecordingIndex};
pub use tally::RecordTally;
pub use writer::{ReplacedFile, WriteOptions, Writer};
