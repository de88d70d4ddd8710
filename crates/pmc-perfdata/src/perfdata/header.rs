//! The header of a recording: its form, its byte order, and the locations of its parts.
//!
//! ```text
//!   0  magic "PERFILE2"           8  size of this header: 104 (file form) or 16 (pipe form, which ends here)
//!  16  size of an attr entry     24  attrs (offset, size)     40  data     56  event types (before 3.0)
//!  72  256 bits: which features follow the data
//! ```
//! Source: `tools/perf/util/header.h`.

use super::error::PerfdataError;
use super::magic::{FOREIGN, MAGIC, OLD};
use super::source::ByteSource;
use crate::record::{Cursor, attr};
use pmc_sys::abi::Attr;

/// Size of the header in file form, in bytes.
pub(super) const FILE_HEADER: u64 = 104;
/// Size of the header in pipe form, in bytes.
pub(super) const PIPE_HEADER: u64 = 16;
/// Number of words with feature bits.
pub(super) const FEATURE_WORDS: usize = 4;
/// Offset of the feature bits in the header.
pub(super) const FEATURES_AT: u64 = 72;

/// Layout of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingLayout {
    /// Sections referenced by the header.
    File,
    /// A stream, in which all data is in records.
    Pipe,
    /// A directory of files (`perf record --threads`).
    Directory,
}

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileSection {
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Contents of the header.
#[derive(Debug, Clone)]
pub(super) struct PerfdataHeader {
    pub(super) form: RecordingLayout,
    /// Whether the file was written on a machine with the opposite byte order.
    pub(super) is_byte_swapped: bool,
    pub(super) attr_size: u64,
    pub(super) attrs: FileSection,
    pub(super) data: FileSection,
    pub(super) features: [u64; FEATURE_WORDS],
}

impl PerfdataHeader {
    pub(super) fn read(source: &ByteSource) -> Result<Self, PerfdataError> {
        let mut bytes = [0; FILE_HEADER as usize];
        let got = source.read_at(&mut bytes, 0)?;
        let not = || PerfdataError::NotPerfData { path: source.path().to_owned(), is_empty: got == 0 };
        let magic: [u8; 8] = *bytes.first_chunk().ok_or_else(not)?;
        // The header's size is a small number only if it is read in the file's byte order.
        let size = bytes[8..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        let is_byte_swapped = magic == FOREIGN || magic == OLD && size > u32::MAX.into();
        if got < PIPE_HEADER as usize || !(is_byte_swapped || magic == MAGIC || magic == OLD) {
            return Err(not());
        }
        let word = |at: usize| {
            let word = bytes[at..].first_chunk().map_or(0, |w| u64::from_ne_bytes(*w));
            if is_byte_swapped { word.swap_bytes() } else { word }
        };
        let size = word(8);
        let section = |at| FileSection { offset: word(at), size: word(at + 8) };
        let mut header = Self {
            form: RecordingLayout::Pipe,
            is_byte_swapped,
            attr_size: 0,
            attrs: FileSection::default(),
            data: FileSection { offset: PIPE_HEADER, size: source.len().saturating_sub(PIPE_HEADER) },
            features: [0; FEATURE_WORDS],
        };
        if size == PIPE_HEADER {
            return Ok(header);
        }
        if size < FILE_HEADER || got < FILE_HEADER as usize {
            let what = "the header is truncated or has an invalid size";
            return Err(PerfdataError::Malformed { path: source.path().to_owned(), what, at: 8 });
        }
        header.form = RecordingLayout::File;
        header.attr_size = word(16);
        header.attrs = section(24);
        header.data = section(40);
        for (index, word_of) in header.features.iter_mut().enumerate() {
            *word_of = word(FEATURES_AT as usize + 8 * index);
        }
        // The bits are an array of `long`, so in files from a 32-bit machine with the opposite byte order,
        // the halves of each word are swapped.
        if is_byte_swapped && header.features[0] & (1 << 3) == 0 && header.features[0] & (1 << 35) != 0 {
            header.features = header.features.map(|word| word.rotate_left(32));
        }
        Ok(header)
    }

    /// Returns the numbers of the features in the file, in the order of their sections.
    pub(super) fn feature_numbers(&self) -> impl Iterator<Item = u32> {
        let words = self.features;
        (0..FEATURE_WORDS as u32 * 64).filter(move |n| words[*n as usize / 64] >> (n % 64) & 1 == 1)
    }

    /// Whether there is a feature table at `table`. In a valid table, the first section begins after the last
    /// row. A recorder that was killed may have set the bits without writing a table.
    pub(super) fn has_table(&self, source: &ByteSource, table: u64) -> Result<bool, PerfdataError> {
        let rows = self.feature_numbers().count() as u64;
        let Some(row) = source.section(table, 16)? else { return Ok(false) };
        let first = row.first_chunk().map_or(0, |w| u64::from_ne_bytes(*w));
        let first = if self.is_byte_swapped { first.swap_bytes() } else { first };
        Ok(rows > 0 && first >= table.saturating_add(rows * 16) && first <= source.len())
    }

    /// Returns the attrs of the file form, each with the section of its ids.
    pub(super) fn read_attrs(&self, source: &ByteSource) -> Result<Vec<(Attr, FileSection)>, PerfdataError> {
        let malformed =
            |what| PerfdataError::Malformed { path: source.path().to_owned(), what, at: self.attrs.offset };
        let entry = usize::try_from(self.attr_size).unwrap_or(0);
        if !(attr::SMALLEST + 16..=1 << 16).contains(&entry) {
            return Err(malformed("invalid attr size in the header"));
        }
        let mut bytes = source
            .section(self.attrs.offset, self.attrs.size)?
            .ok_or_else(|| malformed("the attrs lie beyond the end of the file"))?;
        let rows = bytes.chunks_exact_mut(entry);
        Ok(rows
            .map(|row| {
                let (attr, ids) = row.split_at_mut(entry - 16);
                if self.is_byte_swapped {
                    attr::swap(attr);
                    ids.as_chunks_mut::<8>().0.iter_mut().for_each(|w| w.reverse());
                }
                let mut c = Cursor::new(ids);
                let ids = FileSection { offset: c.u64().unwrap_or(0), size: c.u64().unwrap_or(0) };
                (attr::of_size(attr), ids)
            })
            .collect())
    }
}

/// Returns the feature bits and the section table for a table at offset `at`. The sections, given by number
/// and bytes in the order of their numbers, follow the table.
pub(super) fn feature_table(at: u64, sections: &[(u32, Vec<u8>)]) -> (Vec<u8>, Vec<u8>) {
    let (mut bits, mut table) = ([0u64; FEATURE_WORDS], Vec::new());
    let mut at = at + sections.len() as u64 * 16;
    for (number, section) in sections {
        bits[*number as usize / 64] |= 1 << (number % 64);
        table.extend(at.to_ne_bytes());
        table.extend((section.len() as u64).to_ne_bytes());
        at += section.len() as u64;
    }
    (bits.iter().flat_map(|word| word.to_ne_bytes()).collect(), table)
}
