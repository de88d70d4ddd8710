//! Records as typed values, decoded from bytes without I/O or copies.
//!
//! Receives the native-endian bytes that the kernel wrote to a ring, or that perf wrote to a file (`swap`
//! converts the opposite byte order). Returns [`Record`]s and [`Sample`]s that borrow from them, and rejects
//! malformed records. `perfdata` reads and writes the files; `session` derives processes and mappings from
//! the records.
//!
//! ```text
//!          0      4     6     8
//! record   | type | misc| size| body … (| sample_id: thread, time, event |)
//!          '---------- size bytes, header included ------------------------'
//! ```
//! Most callers iterate over [`Records`], check `kind` first, and parse only what they need: samples with
//! [`Layouts::sample`], the others with [`RawRecord::parse`].

mod addresses;
pub mod attr;
pub mod bytes;
pub mod decode;
pub mod encode;
mod kernel;
pub mod kind;
pub mod layouts;
mod mapping_by_id;
mod missing_stack;
pub mod sample;
pub mod sample_layout;
pub mod swap;
pub mod tracepoint;
pub mod unwound;
mod user;
mod wait_partner;
mod walk;

pub use addresses::{replace_addresses, replace_words};
pub use bytes::{Cursor, RecordWords};
pub use kernel::*;
pub use kind::Record;
pub use layouts::Layouts;
pub use mapping_by_id::write_by_build_id;
pub use missing_stack::MissingStack;
use pmc_sys::abi::CpuMode;
pub use sample::{ChainEntry, Sample, SampleParts};
pub use sample_layout::{SampleId, SampleLayout};
pub use user::*;
pub use wait_partner::WaitPartner;
pub use walk::walk;

/// Size of a record's header in bytes.
pub const HEADER: usize = 8;

/// Returns the size of a record in bytes from its header's fields. In records that only simpleperf defines,
/// the `misc` field holds the upper half of the size.
#[inline]
pub fn size(kind: u32, misc: u16, low: u16) -> usize {
    match kind {
        kind::FIRST_SIMPLEPERF..=kind::LAST_SIMPLEPERF => usize::from(misc) << 16 | usize::from(low),
        _ => low.into(),
    }
}

/// A record with a decoded header and an undecoded body.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// The record type; see [`kind`].
    pub kind: u32,
    /// Flags; see [`misc`](pmc_sys::abi::record_header::misc).
    pub misc: u16,
    /// The whole record, including the header.
    pub bytes: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Returns the first record in these bytes; `None` if they do not contain a complete one.
    #[inline]
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let [a, b, c, d, e, f, g, h] = *header;
        let (kind, misc) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
        let size = size(kind, misc, u16::from_ne_bytes([g, h]));
        if size < HEADER {
            return None;
        }
        Some(Self { kind, misc, bytes: bytes.get(..size)? })
    }

    /// The bytes after the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        // `first` has checked the length.
        &self.bytes[HEADER..]
    }

    /// The CPU mode.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::from_misc(self.misc)
    }

    /// Decodes the fields; `None` if the record is too short for them.
    pub fn parse(&self) -> Option<Record<'a>> {
        Record::parse(*self)
    }
}

/// An iterator over consecutive records. Stops before the first incomplete one; see [`Records::rest`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    left: &'a [u8],
}

impl<'a> Records<'a> {
    /// Starts at the first byte, where a record must begin.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Returns the remaining bytes: empty at the end, or beginning with a record that is truncated or has a
    /// size below 8.
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'a>> {
        let record = RawRecord::first(self.left)?;
        self.left = &self.left[record.bytes.len()..];
        Some(record)
    }
}
