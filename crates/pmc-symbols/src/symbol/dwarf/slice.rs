//! The bytes of a DWARF section, for gimli and addr2line, with a limit for the length of strings.
//!
//! Finding the end of a string takes time in proportion to its length, and all entries of a hostile file may
//! refer to the same string. gimli searches for the ends of strings only with [`Reader::find`].

use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::{Deref, DerefMut};

use gimli::{EndianSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// Maximum length of a string. Longer ones are treated as malformed. Compilers write them only as names of
/// very deep templates.
const LONGEST_STRING: usize = 64 << 10;

/// Bytes of a DWARF section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::symbol) struct DwarfSlice<'a>(EndianSlice<'a, RunTimeEndian>);

impl<'a> DwarfSlice<'a> {
    pub(in crate::symbol) fn new(bytes: &'a [u8], endian: RunTimeEndian) -> Self {
        Self(EndianSlice::new(bytes, endian))
    }
}

impl<'a> Deref for DwarfSlice<'a> {
    type Target = EndianSlice<'a, RunTimeEndian>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for DwarfSlice<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Reader for DwarfSlice<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn find(&self, byte: u8) -> Result<usize> {
        let start = &self.slice()[..self.slice().len().min(LONGEST_STRING)];
        let found = match byte {
            // Faster than a search for any byte.
            0 => CStr::from_bytes_until_nul(start).ok().map(CStr::count_bytes),
            byte => start.iter().position(|other| *other == byte),
        };
        found.ok_or_else(|| Error::UnexpectedEof(self.offset_id()))
    }

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.0.endian()
    }

    #[inline]
    fn len(&self) -> usize {
        Reader::len(&self.0)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        Reader::is_empty(&self.0)
    }

    #[inline]
    fn empty(&mut self) {
        self.0.empty();
    }

    #[inline]
    fn truncate(&mut self, length: usize) -> Result<()> {
        self.0.truncate(length)
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        Reader::offset_from(&self.0, &base.0)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        self.0.offset_id()
    }

    #[inline]
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.0.lookup_offset_id(id)
    }

    #[inline]
    fn skip(&mut self, length: usize) -> Result<()> {
        self.0.skip(length)
    }

    #[inline]
    fn split(&mut self, length: usize) -> Result<Self> {
        self.0.split(length).map(Self)
    }

    #[inline]
    fn read_slice(&mut self, bytes: &mut [u8]) -> Result<()> {
        Reader::read_slice(&mut self.0, bytes)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.0.read_u8()
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.0.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        Reader::to_string(&self.0)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Reader::to_string_lossy(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_a_limited_length() {
        let read = |length: usize| {
            let bytes = [&b"x".repeat(length)[..], &[0, 1]].concat();
            let mut slice = DwarfSlice::new(&bytes, RunTimeEndian::Little);
            let text = slice.read_null_terminated_slice().map(|text| text.slice().len());
            (text.ok(), slice.slice().len())
        };
        assert_eq!(read(LONGEST_STRING - 1), (Some(LONGEST_STRING - 1), 1));
        assert_eq!(read(LONGEST_STRING).0, None);
    }
}
