//! The tables of events and metrics, packed into the program.
//!
//! A test (`PMC_BLESS=1 cargo test --test counting generated`) builds `table.bin` from `tables/`. Each file
//! is a separate zstd frame, so that only the files for this CPU are unpacked. Since tables of the same kind
//! (Intel core events, Intel uncore events, …) are similar, most of them are compressed with another table as
//! the dictionary, which must be unpacked first. This takes only a third of the space.
//!
//! ```text
//! intel/skylakex.uncore.tsv 249874 143 2\n      name, bytes of the text, bytes of its frame, and the number
//! …                                             of its dictionary, an earlier file
//! \n
//! frame of the first file, of the second, …
//! ```
//!
//! The text in a frame is the TSV file itself.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use super::arm;
use super::row::{VendorRow, row, rows, rows_at};
use pmc_sys::sys::regular_file::open_regular;

/// The tables in this program.
pub static PACKED: &[u8] = include_bytes!("table.bin");

/// A file of a packed table.
#[derive(Debug, Clone, Copy)]
pub struct PackedFile<'a> {
    /// The file's name.
    pub name: &'a str,
    length: usize,
    bytes: &'a [u8],
    base: Option<usize>,
}

/// The files of a packed table. Stops early if the table is truncated.
pub fn frames(packed: &[u8]) -> impl Iterator<Item = PackedFile<'_>> {
    let end = packed.windows(2).position(|pair| pair == b"\n\n").unwrap_or(0);
    let (index, mut rest) = packed.split_at((end + 2).min(packed.len()));
    std::str::from_utf8(index).unwrap_or_default().lines().map_while(move |line| {
        let mut words = line.split(' ');
        let name = words.next()?;
        let mut number = || words.next()?.parse::<usize>().ok();
        let (length, frame, base) = (number()?, number()?, number());
        let (bytes, others) = rest.split_at_checked(frame)?;
        rest = others;
        Some(PackedFile { name, length, bytes, base })
    })
}

/// Returns the text of a file in the packed table.
pub fn unpack(packed: &[u8], name: &str) -> Option<String> {
    let frames: Vec<PackedFile<'_>> = frames(packed).collect();
    let number = frames.iter().position(|frame| frame.name == name)?;
    String::from_utf8(unpacked(&frames, number)?).ok()
}

/// Unpacks a frame, after unpacking the frames on which it depends.
fn unpacked(frames: &[PackedFile<'_>], number: usize) -> Option<Vec<u8>> {
    let (before, others) = frames.split_at_checked(number)?;
    let frame = others.first()?;
    let base = frame.base.map_or(Some(Vec::new()), |base| unpacked(before, base))?;
    zstd::bulk::Decompressor::with_dictionary(&base).ok()?.decompress(frame.bytes, frame.length).ok()
}

/// A file of the table, unpacked on first use.
#[derive(Debug)]
pub(super) struct VendorTable {
    file: String,
    /// The Arm core whose events are selected from the common table.
    core: Option<String>,
    /// The directory of imported tables that contains the file.
    folder: Option<PathBuf>,
    text: OnceLock<String>,
}

impl VendorTable {
    pub(super) fn parse(file: &str) -> Self {
        Self { file: file.to_owned(), core: None, folder: None, text: OnceLock::new() }
    }

    /// A file that was imported into this directory.
    pub(super) fn imported(folder: &Path, file: &str) -> Self {
        Self { folder: Some(folder.to_owned()), ..Self::parse(file) }
    }

    /// Whether the file was imported.
    pub(super) fn is_imported(&self) -> bool {
        self.folder.is_some()
    }

    /// The events of an Arm core.
    pub(super) fn of_arm(core: &str) -> Self {
        Self { core: Some(core.to_owned()), ..Self::parse("arm/events.tsv") }
    }

    /// Whether the file contains metrics rather than events.
    pub(super) fn holds_metrics(&self) -> bool {
        self.file.ends_with("metrics.tsv")
    }

    /// The file's lines without the heading.
    pub(super) fn rows(&self) -> impl Iterator<Item = VendorRow<'_>> {
        rows(self.text())
    }

    /// The rows with their offsets.
    pub(super) fn rows_at(&self) -> impl Iterator<Item = (usize, VendorRow<'_>)> {
        rows_at(self.text())
    }

    /// The row at this offset.
    pub(super) fn row_at(&self, at: usize) -> Option<VendorRow<'_>> {
        row(self.text().get(at..)?)
    }

    fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let text = match &self.folder {
                Some(folder) => imported(folder, &self.file),
                None => unpack(PACKED, &self.file),
            };
            let text = text.unwrap_or_default();
            match &self.core {
                None => text,
                Some(core) => {
                    arm::events_of(core, &text, &unpack(PACKED, "arm/cores.tsv").unwrap_or_default())
                }
            }
        })
    }
}

/// The text of a file in the directory of imported tables; `None` if it cannot be read or its path leads
/// outside the directory.
pub(super) fn imported(folder: &Path, file: &str) -> Option<String> {
    let is_inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    let file = is_inside.then(|| open_regular(&folder.join(file), true).ok())??;
    std::io::read_to_string(file).ok()
}
