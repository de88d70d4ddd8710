//! Cache files that persist between runs. Invalid files are treated as missing.
//!
//! Takes bytes to store; returns them later as a mapped file, after verifying the checksum and that the
//! current user owns the file. Removes the least recently used files when the cache becomes too large.
//! Callers interpret the bytes.
//!
//! ```text
//!   magic (8 bytes) | crc32 of the body | body
//! ```

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::image::Image;
use pmc_sys::sys::file_map::FileMap;
use pmc_sys::sys::regular_file::open_regular;
use pmc_sys::sys::replacement::Replacement;

/// Offset of the body.
pub(in crate::symbol) const BODY: usize = 12;

/// Maps a file if it is valid and has at most `most` bytes, and updates the time of its last use.
pub(in crate::symbol) fn open(path: &Path, magic: &[u8; 8], most: u64) -> Option<Image> {
    let mut file = open_regular(path, false).ok()?;
    let meta = file.metadata().ok()?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.len() > most {
        return None;
    }
    let mut head = [0; BODY];
    file.read_exact(&mut head).ok()?;
    let checksum = u32::from_le_bytes(*head.last_chunk()?);
    if !head.starts_with(magic) || body_checksum(&mut file).ok()? != checksum {
        return None;
    }
    // The modification time serves as the time of the last use, which protects the file from removal.
    let _ = file.set_modified(SystemTime::now());
    Some(Image::mapped(path, FileMap::new(&file).ok()?))
}

/// Reads the body in chunks, because the pages of a mapped file would stay in memory.
fn body_checksum(file: &mut File) -> std::io::Result<u32> {
    file.seek(std::io::SeekFrom::Start(BODY as u64))?;
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&piece[..count]),
        }
    }
}

/// Writes a temporary file and renames it, so that readers see either the old or the new contents.
pub(in crate::symbol) fn write(path: &Path, magic: &[u8; 8], body: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = Replacement::new(path);
    let mut file = new.create(0o600)?;
    file.write_all(magic)?;
    file.write_all(&crc32fast::hash(body).to_le_bytes())?;
    file.write_all(body)?;
    new.put()
}

/// Lists the files in some folders, with the time of their last use and their size.
pub(in crate::symbol) fn files(folders: impl Iterator<Item = PathBuf>) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let file = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        meta.is_file().then_some((meta.modified().ok()?, meta.len(), entry.path()))
    };
    entries.filter_map(file).collect()
}

/// Removes the least recently used files until the remaining files together have at most `most` bytes.
pub(in crate::symbol) fn prune(mut files: Vec<(SystemTime, u64, PathBuf)>, most: u64) {
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    files.sort_unstable();
    for (_, size, path) in files {
        if total <= most {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: &[u8; 8] = b"pmctest1";

    #[test]
    fn truncated_or_modified_file_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/file");
        assert!(open(&path, MAGIC, 100).is_none());
        write(&path, MAGIC, b"what is kept").unwrap();
        assert_eq!(&open(&path, MAGIC, 100).unwrap()[BODY..], b"what is kept");
        assert!(open(&path, MAGIC, 10).is_none() && open(&path, b"pmctest2", 100).is_none());
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut changed = sound.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert!(open(&path, MAGIC, 100).is_none(), "byte {at}");
            fs::write(&path, &sound[..at]).unwrap();
            assert!(open(&path, MAGIC, 100).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn oldest_entries_are_evicted_first() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("old", 100), ("new", 0)] {
            fs::create_dir_all(folder.path().join("aa")).unwrap();
            fs::write(folder.path().join("aa").join(name), [0; 100]).unwrap();
            let file = File::options().write(true).open(folder.path().join("aa").join(name)).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        prune(files(std::iter::once(folder.path().join("aa"))), 150);
        assert!(!folder.path().join("aa/old").exists() && folder.path().join("aa/new").exists());
    }
}
