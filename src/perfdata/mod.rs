//! Recordings: files, directories and streams in perf's format, read and written.
//!
//! Receives a path or a stream; hands on events, feature sections and records ([`Reader`]), or takes events
//! and ring memory and makes a file that perf reads ([`Writer`]). Decides how a file is laid out and what to
//! do with one that is torn, compressed, wrapped or foreign. What the records mean is left to `session`.
//!
//! ```text
//! file form                               pipe form
//! | header | ids | attrs |                | header (16 bytes) |
//! | data: records …      |                | HEADER_ATTR … HEADER_FEATURE … records … |
//! | table of features    |
//! | features …           |
//! ```

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

pub use error::{Error, Note};
pub use event::RecordedEvent;
pub use feature::{Feature, Features};
pub use header::Form;
pub use reader::Reader;
pub use scan::{Buffer, Chunk, Index};
pub use tally::RecordTally;
pub use writer::{Options, Writer};
