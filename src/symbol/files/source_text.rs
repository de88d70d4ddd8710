//! The text of source files, by the paths that compilers wrote down.
//!
//! Receives a path out of debug information, which nobody vouches for; hands on its lines. Only regular files
//! are opened, and both their size and the length of a line are bounded. Decides where a file may lie: below
//! `--symfs`, then as written, then wherever the caller has it from.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::sys::file_map::open_regular;

/// More of a file is not read.
const MOST_BYTES: u64 = 16 << 20;
/// A longer line is cut.
const MOST_LINE: usize = 1000;

/// A source file that was found.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// Its lines, without line ends.
    pub lines: Arc<[String]>,
    /// When it was written last.
    pub modified: Option<SystemTime>,
}

/// Reads a source file; `fetch` may know of a copy where none is at its place.
///
/// # Errors
/// What the kernel said of the last place, with that place.
pub fn read(
    path: &str,
    symfs: Option<&Path>,
    fetch: impl FnOnce() -> Option<PathBuf>,
) -> Result<SourceText, (PathBuf, String)> {
    let as_written = PathBuf::from(path);
    let below = symfs.map(|root| root.join(as_written.strip_prefix("/").unwrap_or(&as_written)));
    let mut said = None;
    for place in below.into_iter().chain([as_written]) {
        match read_one(&place) {
            Ok(text) => return Ok(text),
            Err(error) => said = Some((place, crate::error::kernel_words(&error))),
        }
    }
    // It was asked for by the program's build: that it came lately says nothing.
    let fetched = fetch().and_then(|copy| Some(SourceText { modified: None, ..read_one(&copy).ok()? }));
    fetched.ok_or(said.unwrap_or_default())
}

fn read_one(path: &Path) -> std::io::Result<SourceText> {
    let file = open_regular(path, true)?;
    let modified = file.metadata()?.modified().ok();
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let line = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        String::from_utf8_lossy(&line[..line.len().min(MOST_LINE)]).into_owned()
    };
    Ok(SourceText { lines: bytes.split(|byte| *byte == b'\n').map(line).collect(), modified })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_below_the_given_root_and_nothing_odd_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/a.c"), b"one\r\ntwo\n\xff").unwrap();
        let text = read("/src/a.c", Some(folder.path()), || None).unwrap();
        assert_eq!(&text.lines[..], ["one", "two", "\u{fffd}"]);
        assert!(read("/dev/zero", None, || None).unwrap_err().1.contains("EINVAL"));
        assert!(read("/src/a.c", None, || None).unwrap_err().1.contains("ENOENT"));
        let copy = read("/src/a.c", None, || Some(folder.path().join("src/a.c"))).unwrap();
        assert_eq!((&copy.lines[0], copy.modified), (&"one".to_owned(), None));
    }
}
