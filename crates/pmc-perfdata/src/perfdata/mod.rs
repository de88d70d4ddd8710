//! Reads and writes recordings: files, directories and streams in perf's format.
//!
//! A [`Reader`] receives a path or a stream, and returns events, feature sections and records. A [`Writer`]
//! receives events and ring buffer memory, and writes a file that perf can read. Decides the layout of files,
//! and how to handle truncated, compressed or foreign ones. `session` interprets the records.
//!
//! ```text
//! file form                               pipe form
//! | header | ids | attrs |                | header (16 bytes) |
//! | data: records …      |                | HEADER_ATTR … HEADER_FEATURE … records … |
//! | table of features    |
//! | features …           |
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
