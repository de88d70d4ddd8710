//! Packs records into `COMPRESSED` records, as `perf record -z` does.
//!
//! Uses one zstd stream for the whole recording. The stream is flushed after each piece, so that all data up
//! to this point can be unpacked. A piece unpacks to at most [`PIECE`] bytes, the space that readers reserve
//! for one record: perf 6.1 unpacks a record with a single call, and loses all data that exceeds this space.

use std::io;

use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

use crate::perfdata::error::PerfdataError;
use crate::record::{HEADER, kind};

/// Maximum number of bytes to pack at a time.
pub(super) const PIECE: usize = 1 << 18;
/// Maximum size of the packed data in a record: the largest multiple of 8 that fits its size field.
const ROOM: usize = (u16::MAX as usize & !7) - HEADER;

pub(super) enum CompressError {
    Pack(io::Error),
    Write(PerfdataError),
}

pub(super) struct Compressor {
    encoder: Encoder<'static>,
    level: i32,
    record: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compressor {{ level {} }}", self.level)
    }
}

impl Compressor {
    pub(super) fn new(level: i32) -> io::Result<Self> {
        let mut encoder = Encoder::new(level)?;
        encoder.set_parameter(CParameter::ChecksumFlag(false))?;
        Ok(Self { encoder, level, record: vec![0; HEADER + ROOM] })
    }

    pub(super) fn level(&self) -> i32 {
        self.level
    }

    /// Packs the slices. Passes complete records to `write`, one at a time.
    pub(super) fn pack(
        &mut self,
        slices: &[&[u8]],
        mut write: impl FnMut(&[u8]) -> Result<(), PerfdataError>,
    ) -> Result<(), CompressError> {
        for piece in slices.iter().flat_map(|slice| slice.chunks(PIECE)) {
            let mut input = InBuffer::around(piece);
            loop {
                let mut output = OutBuffer::around(&mut self.record[HEADER..]);
                let mut more = input.pos() < piece.len();
                if more {
                    self.encoder.run(&mut input, &mut output).map_err(CompressError::Pack)?;
                    more = input.pos() < piece.len();
                }
                if !more {
                    more = self.encoder.flush(&mut output).map_err(CompressError::Pack)? > 0;
                }
                let len = output.pos();
                if len > 0 {
                    let size = HEADER + len;
                    self.record[..4].copy_from_slice(&kind::COMPRESSED.to_ne_bytes());
                    self.record[4..6].fill(0);
                    self.record[6..HEADER].copy_from_slice(&(size as u16).to_ne_bytes());
                    write(&self.record[..size]).map_err(CompressError::Write)?;
                }
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }
}
