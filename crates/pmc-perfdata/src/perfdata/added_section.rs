//! Copies a recording and adds a feature section. All records stay as they are, even compressed ones.
//!
//! ```text
//!   | header | ids | attrs | records | table          | sections         |
//!   | header | ids | attrs | records | table, one row | sections, and    |
//!         bit set                      more             the added one
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::error::PerfdataError;
use super::feature::FeatureNumber;
use super::header::{FEATURES_AT, PerfdataHeader, RecordingLayout, feature_table};
use super::source::ByteSource;

/// Number of bytes to copy at a time.
const PIECE: usize = 1 << 20;

/// Copies the recording at `from` to an empty file, with `section` as its section `feature`. Replaces an
/// existing section with this number.
///
/// # Errors
/// Fails if the recording is not a complete file in this machine's byte order, or if reading or writing
/// fails.
pub fn copy_with_section(
    from: &Path,
    (to, to_path): (&mut File, &Path),
    feature: FeatureNumber,
    section: &[u8],
) -> Result<(), PerfdataError> {
    let source = ByteSource::open(from, |_| None)?;
    let header = PerfdataHeader::read(&source)?;
    let malformed = |what, at| Err(PerfdataError::Malformed { path: source.path().to_owned(), what, at });
    if header.form != RecordingLayout::File || header.is_byte_swapped {
        return malformed("it is not a file in this machine's byte order", 0);
    }
    let end = header.data.offset.saturating_add(header.data.size);
    if end > source.len() || header.attrs.offset.saturating_add(header.attrs.size) > end {
        return malformed("the records are not the last part before the feature sections", 40);
    }
    let mut sections: Vec<(u32, Vec<u8>)> = vec![(feature as u32, section.to_vec())];
    for (row, number) in header.feature_numbers().enumerate() {
        let row = source.section(end.saturating_add(row as u64 * 16), 16)?.unwrap_or_default();
        let word = |at: usize| row.get(at..at + 8)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
        let bytes = match word(0).zip(word(8)) {
            Some((offset, size)) => source.section(offset, size)?,
            None => None,
        };
        let Some(bytes) = bytes else { return malformed("a feature section is truncated", end) };
        if number != feature as u32 {
            sections.push((number, bytes));
        }
    }
    sections.sort_by_key(|(number, _)| *number);
    let (bits, table) = feature_table(end, &sections);
    let mut out = BufWriter::with_capacity(PIECE, to);
    let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(PerfdataError::io("writing", to_path));
    let mut start = vec![0; FEATURES_AT as usize];
    source.read_at(&mut start, 0)?;
    start.extend(bits);
    write(&start)?;
    let mut position = start.len() as u64;
    let mut buffer = vec![0; PIECE];
    while position < end {
        let want = usize::try_from(end - position).unwrap_or(PIECE).min(PIECE);
        let got = source.read_at(&mut buffer[..want], position)?;
        if got == 0 {
            return malformed("the file was truncated while pmc read it", position);
        }
        write(&buffer[..got])?;
        position += got as u64;
    }
    write(&table)?;
    sections.iter().try_for_each(|(_, bytes)| write(bytes))?;
    out.flush().map_err(PerfdataError::io("writing", to_path))
}
