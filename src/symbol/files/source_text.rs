//! The text of source files, by the paths that compilers wrote down.
//!
//! Receives a path out of debug information, which nobody vouches for; hands on its lines. Only regular files
//! are opened, and both their size and the length of a line are bounded. Decides where a file may lie: below
//! `--prefix`, below `--symfs`, then as written.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::sys::file_map::open_regular;

/// More of a file is not read.
const MOST_BYTES: u64 = 16 << 20;
/// A longer line is cut.
const MOST_LINE: usize = 1000;

/// Where source files may lie besides where the compiler found them.
#[derive(Debug, Clone, Default)]
pub struct SourceFolders {
    /// A folder that stands for `/` of the recorded machine.
    pub symfs: Option<PathBuf>,
    /// A folder that stands for the first folders of absolute paths …
    pub prefix: Option<PathBuf>,
    /// … for so many of them.
    pub strip: usize,
}

/// A source file that was found.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// Its lines, without line ends.
    pub lines: Arc<[String]>,
    /// When it was written last.
    pub modified: Option<SystemTime>,
}

/// Reads a source file.
///
/// # Errors
/// What the kernel said of the last place, with that place.
pub fn read(path: &str, folders: &SourceFolders) -> Result<SourceText, (PathBuf, String)> {
    let as_written = PathBuf::from(path);
    let from_root = as_written.strip_prefix("/").ok();
    let prefixed = folders.prefix.as_ref().zip(from_root);
    let prefixed =
        prefixed.map(|(folder, path)| folder.join(path.iter().skip(folders.strip).collect::<PathBuf>()));
    let below = folders.symfs.as_ref().map(|root| root.join(from_root.unwrap_or(&as_written)));
    let mut said = None;
    for place in prefixed.into_iter().chain(below).chain([as_written.clone()]) {
        match read_one(&place) {
            Ok(text) => return Ok(text),
            Err(error) => said = Some((place, crate::error::kernel_words(&error))),
        }
    }
    Err(said.unwrap_or_default())
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
        let below = SourceFolders { symfs: Some(folder.path().into()), ..SourceFolders::default() };
        let text = read("/src/a.c", &below).unwrap();
        assert_eq!(&text.lines[..], ["one", "two", "\u{fffd}"]);
        assert!(read("/dev/zero", &SourceFolders::default()).unwrap_err().1.contains("EINVAL"));
        assert!(read("/src/a.c", &SourceFolders::default()).unwrap_err().1.contains("ENOENT"));
    }
}
