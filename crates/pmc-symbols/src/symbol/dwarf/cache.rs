//! A cache of lines and inlined functions by build-id, which persists between runs.
//!
//! Takes the results of [`lines`](super::lines); writes one file per build-id below
//! `$XDG_CACHE_HOME/pmc/symbols`. An invalid file, or a file that belongs to another user, is treated as
//! missing ([`cache_file`]), and all numbers in a file are checked. Cache errors never make a report fail.
//!
//! ```text
//!   fingerprint of the debug file | strings | addresses with frames
//!   all numbers LEB128; string 0 is "not known"
//! ```

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lines::LineFrame;
use crate::symbol::build_id::BuildId;
use crate::symbol::files::cache_file::{self, BODY};

const MAGIC: &[u8; 8] = b"pmcsym01";
/// Maximum size of a file. Larger files are not written.
const MOST_FILE: u64 = 32 << 20;
/// Maximum size of all files together. The least recently used files are removed first.
const MOST_ALL: u64 = 256 << 20;
/// Maximum number of frames at an address. A file with a longer list is invalid.
const MOST_FRAMES: u64 = 1000;

/// The cached data for one build-id.
#[derive(Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    /// Size and modification time of the debug file.
    fingerprint: String,
    /// Loaded on first use.
    entries: Option<FxHashMap<u64, Vec<LineFrame>>>,
}

impl Cache {
    /// Opens the cache for a debug file. On first use, its entries are read if they are valid and come from
    /// the same debug file.
    pub(crate) fn open(folder: &Path, build_id: BuildId, source: &Path) -> Self {
        let path = folder.join("symbols").join(build_id.path());
        let meta = fs::metadata(source).ok();
        let stamp = meta.map(|m| (m.len(), m.mtime(), m.mtime_nsec())).unwrap_or_default();
        // The path is not part of the fingerprint, since the same file can be reached through the root
        // folders of many processes.
        let fingerprint = format!("{}:{}:{}", stamp.0, stamp.1, stamp.2);
        Self { path, fingerprint, entries: None }
    }

    fn entries(&mut self) -> &mut FxHashMap<u64, Vec<LineFrame>> {
        self.entries.get_or_insert_with(|| {
            let kept = cache_file::open(&self.path, MAGIC, MOST_FILE + BODY as u64);
            kept.and_then(|image| decode(&image[BODY..], &self.fingerprint)).unwrap_or_default()
        })
    }

    /// Returns the frames at an address in the file. An empty list means that the address is known to have no
    /// frames.
    pub(crate) fn get(&mut self, address: u64) -> Option<Vec<LineFrame>> {
        self.entries().get(&address).cloned()
    }

    /// Adds entries, and rewrites the file atomically.
    pub(crate) fn add<'a>(&mut self, entries: impl Iterator<Item = (u64, &'a Vec<LineFrame>)>) {
        self.entries().extend(entries.map(|(address, frames)| (address, frames.clone())));
        let body = encode(self.entries.get_or_insert_default(), &self.fingerprint);
        if body.len() as u64 <= MOST_FILE
            && cache_file::write(&self.path, MAGIC, &body).is_ok()
            && let Some(all) = self.path.parent().and_then(Path::parent)
        {
            let folders = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
            cache_file::prune(cache_file::files(folders), MOST_ALL);
        }
    }
}

fn encode(entries: &FxHashMap<u64, Vec<LineFrame>>, fingerprint: &str) -> Vec<u8> {
    let mut numbers: FxHashMap<&str, u64> = FxHashMap::default();
    let mut strings: Vec<&str> = Vec::new();
    let mut body = Vec::new();
    put(&mut body, entries.len() as u64);
    let mut order: Vec<_> = entries.iter().collect();
    order.sort_by_key(|(address, _)| **address);
    for (address, frames) in order {
        put(&mut body, *address);
        put(&mut body, frames.len() as u64);
        for frame in frames {
            for text in [&frame.name, &frame.file] {
                let number = text.as_deref().map_or(0, |text| {
                    *numbers.entry(text).or_insert_with(|| {
                        strings.push(text);
                        strings.len() as u64
                    })
                });
                put(&mut body, number);
            }
            put(&mut body, frame.line.into());
            put(&mut body, frame.column.into());
        }
    }
    let mut out = Vec::new();
    put_text(&mut out, fingerprint);
    put(&mut out, strings.len() as u64);
    strings.iter().for_each(|text| put_text(&mut out, text));
    out.append(&mut body);
    out
}

fn decode(body: &[u8], fingerprint: &str) -> Option<FxHashMap<u64, Vec<LineFrame>>> {
    let mut left = body;
    if take_text(&mut left)? != fingerprint {
        return None;
    }
    // Each counted item takes at least one byte, so a count cannot exceed the remaining bytes.
    let count = |left: &mut &[u8]| take(left).filter(|count| *count <= left.len() as u64);
    let strings = count(&mut left)?;
    let strings: Option<Vec<Arc<str>>> = (0..strings).map(|_| take_text(&mut left).map(Arc::from)).collect();
    let strings = strings?;
    let text = |number: u64| match number {
        0 => Some(None),
        n => strings.get(usize::try_from(n - 1).ok()?).cloned().map(Some),
    };
    let addresses = count(&mut left)?;
    let mut entries = FxHashMap::default();
    for _ in 0..addresses {
        let address = take(&mut left)?;
        let frames = count(&mut left).filter(|count| *count <= MOST_FRAMES)?;
        let frames: Option<Vec<LineFrame>> = (0..frames)
            .map(|_| {
                let (name, file) = (text(take(&mut left)?)?, text(take(&mut left)?)?);
                let (line, column) = (take(&mut left)?.try_into().ok()?, take(&mut left)?.try_into().ok()?);
                Some(LineFrame { name, file, line, column })
            })
            .collect();
        entries.insert(address, frames?);
    }
    left.is_empty().then_some(entries)
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn take(left: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = left.split_first()?;
        *left = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_text<'a>(left: &mut &'a [u8]) -> Option<&'a str> {
    let len = usize::try_from(take(left)?).ok()?;
    let (text, rest) = left.split_at_checked(len)?;
    *left = rest;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(name: &str, line: u32) -> LineFrame {
        LineFrame { name: Some(name.into()), file: (line > 0).then(|| "a.c".into()), line, column: 0 }
    }

    #[test]
    fn entries_round_trip_and_other_debug_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("debug");
        fs::write(&source, "one").unwrap();
        let id = BuildId::parse("aabbccdd").unwrap();
        let frames = [vec![frame("inner", 7), frame("outer", 0)], Vec::new()];
        Cache::open(folder.path(), id, &source).add([0x10, u64::MAX].into_iter().zip(&frames));
        let mut again = Cache::open(folder.path(), id, &source);
        assert_eq!(again.get(0x10).as_ref(), Some(&frames[0]));
        assert_eq!(again.get(u64::MAX).as_ref(), Some(&frames[1]));
        assert_eq!(again.get(0x11), None);
        fs::write(&source, "other").unwrap();
        assert_eq!(Cache::open(folder.path(), id, &source).get(0x10), None);
    }

    proptest! {
        #[test]
        fn hostile_entries_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut sound = Vec::new();
            put_text(&mut sound, "x");
            sound.extend(&body);
            let _ = decode(&sound, "x");
        }
    }
}
