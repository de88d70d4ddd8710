//! Reads source files by their paths in debug information.
//!
//! Takes an untrusted path from debug information; returns the file's lines. Opens only regular files, and
//! limits their size and the length of lines. When run as root, pmc shows only files that all users can read
//! or that the program's owner owns. Otherwise, a program could make root print `/etc/shadow` by listing it
//! as a source file. Symbolic links do not bypass this rule, because the open file is checked. pmc searches
//! for a file below `--prefix`, below `--symfs`, at the path as written, and finally asks the caller for a
//! copy.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::symbol::missing_data::MissingDataReason;
use pmc_sys::sys::descriptor;
use pmc_sys::sys::regular_file::open_regular;

/// Maximum number of bytes to read from a file.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum length of a line. Longer lines are truncated.
const MOST_LINE: usize = 1000;

/// Additional places to search for source files.
#[derive(Debug, Clone, Default)]
pub struct SourceFolders {
    /// A folder that replaces `/` of the recorded machine.
    pub symfs: Option<PathBuf>,
    /// A folder that replaces the first components of absolute paths.
    pub prefix: Option<PathBuf>,
    /// Number of components that `prefix` replaces.
    pub strip: usize,
}

/// The lines of a source file, or those of its excerpts in an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLines {
    /// By first line, without overlaps.
    excerpts: Arc<[SourceExcerpt]>,
    count: u32,
}

/// Consecutive lines of a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceExcerpt {
    /// Number of the first line, starting at 1.
    pub(crate) first: u32,
    /// The lines, without newlines.
    pub(crate) lines: Vec<String>,
}

impl SourceLines {
    /// Creates the text of a file from all its lines.
    pub fn whole(lines: Vec<String>) -> Self {
        let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        Self::excerpts(vec![SourceExcerpt { first: 1, lines }], count)
    }

    /// Creates the text of a file with `count` lines from excerpts.
    pub(crate) fn excerpts(excerpts: Vec<SourceExcerpt>, count: u32) -> Self {
        Self { excerpts: excerpts.into(), count }
    }

    /// Number of lines in the file.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns a line; `None` after the end of the file. Lines outside of the excerpts are empty.
    pub fn get(&self, line: u32) -> Option<&str> {
        let at = self.excerpts.partition_point(|excerpt| excerpt.first <= line).checked_sub(1);
        let text = at.and_then(|at| {
            let excerpt = &self.excerpts[at];
            excerpt.lines.get((line - excerpt.first) as usize)
        });
        text.map(String::as_str).or_else(|| (1..=self.count).contains(&line).then_some(""))
    }
}

/// The text of a source file.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// The lines, without newlines.
    pub lines: SourceLines,
    /// The modification time.
    pub modified: Option<SystemTime>,
}

/// Reads a source file of a program that is owned by `owner`. If the file is not found elsewhere, `fetch` may
/// supply a copy.
///
/// # Errors
/// Returns the last path that was tried, or one where a file exists that cannot be read.
pub fn read(
    path: &str,
    folders: &SourceFolders,
    owner: Option<u32>,
    fetch: impl FnOnce() -> Option<PathBuf>,
) -> Result<SourceText, MissingDataReason> {
    let as_written = PathBuf::from(path);
    let from_root = as_written.strip_prefix("/").ok();
    let prefixed = folders.prefix.as_ref().zip(from_root);
    let prefixed =
        prefixed.map(|(folder, path)| folder.join(path.iter().skip(folders.strip).collect::<PathBuf>()));
    let below = folders.symfs.as_ref().map(|root| root.join(from_root.unwrap_or(&as_written)));
    let mut missing = MissingDataReason::Unknown;
    for place in prefixed.into_iter().chain(below).chain([as_written.clone()]) {
        match read_one(&place, |file| is_for_all(file, owner)) {
            Ok(text) => return Ok(text),
            Err(_) if missing.is_failure() => {}
            Err(error) => missing = MissingDataReason::of_error(&place, &error),
        }
    }
    // A downloaded file matches the build, so its modification time does not matter.
    let fetched =
        fetch().and_then(|copy| Some(SourceText { modified: None, ..read_one(&copy, |_| true).ok()? }));
    fetched.ok_or(missing)
}

/// Whether the file may be shown to the program's owner. For users other than root, the kernel has already
/// checked this.
fn is_for_all(file: &File, owner: Option<u32>) -> bool {
    let Ok(meta) = file.metadata() else { return false };
    if !rustix::process::geteuid().is_root() || owner == Some(meta.uid()) {
        return true;
    }
    // The actual path, after symbolic links were followed.
    let real = std::fs::read_link(descriptor::path_of(file));
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|folder| folder.mode() & 0o001 != 0);
    meta.mode() & 0o004 != 0 && real.is_ok_and(|real| real.ancestors().skip(1).all(is_open))
}

fn read_one(path: &Path, may_show: impl FnOnce(&File) -> bool) -> std::io::Result<SourceText> {
    let file = open_regular(path, true)?;
    if !may_show(&file) {
        return Err(rustix::io::Errno::PERM.into());
    }
    let modified = file.metadata()?.modified().ok();
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let line = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        String::from_utf8_lossy(&line[..line.len().min(MOST_LINE)]).into_owned()
    };
    let lines = bytes.split(|byte| *byte == b'\n').map(line).collect();
    Ok(SourceText { lines: SourceLines::whole(lines), modified })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn root_does_not_show_source_the_program_owner_cannot_read() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let (secret, link) = (folder.path().join("shadow"), folder.path().join("a.c"));
        std::fs::write(&secret, "root:x").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&secret, &link).unwrap();
        let shows = |owner| {
            let read = |path: &Path| read(path.to_str().unwrap(), &SourceFolders::default(), owner, || None);
            let [direct, linked] = [&secret, &link].map(|path| read(path).is_ok());
            assert_eq!(direct, linked);
            direct
        };
        assert_eq!((shows(None), shows(Some(65534)), shows(Some(0))), (false, false, true));
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(shows(Some(65534)));
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!shows(Some(65534)), "the folder hides it");
        chown(&secret, Some(65534), None).unwrap();
        assert!(shows(Some(65534)));
    }

    #[test]
    fn source_is_found_below_the_root_and_only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/a.c"), b"one\r\ntwo\n\xff").unwrap();
        let below = SourceFolders { symfs: Some(folder.path().into()), ..SourceFolders::default() };
        let nowhere = SourceFolders::default();
        let text = read("/src/a.c", &below, None, || None).unwrap();
        let lines = [0, 1, 2, 3, 4].map(|line| text.lines.get(line));
        assert_eq!(lines, [None, Some("one"), Some("two"), Some("\u{fffd}"), None]);
        let refused = read("/dev/zero", &nowhere, None, || None).unwrap_err();
        assert!(refused.is_failure() && refused.to_string().contains("not a regular file"));
        let absent = read("/src/a.c", &nowhere, None, || None).unwrap_err();
        assert!(!absent.is_failure() && absent.to_string().contains("ENOENT"));
        // The file that exists is reported, not the last path.
        let unreadable = SourceFolders { symfs: Some("/dev".into()), ..SourceFolders::default() };
        let reason = read("/zero", &unreadable, None, || None).unwrap_err();
        assert_eq!(reason.to_string(), "/dev/zero: not a regular file");
        let copy = read("/src/a.c", &nowhere, None, || Some(folder.path().join("src/a.c"))).unwrap();
        assert_eq!((copy.lines.get(1), copy.modified), (Some("one"), None));
    }

    #[test]
    fn excerpts_have_the_line_numbers_of_the_file() {
        let excerpt = |first, line: &str| SourceExcerpt { first, lines: vec![line.to_owned()] };
        let lines = SourceLines::excerpts(vec![excerpt(3, "three"), excerpt(7, "seven")], 8);
        let found = [0, 1, 3, 4, 7, 8, 9].map(|line| lines.get(line));
        assert_eq!(found, [None, Some(""), Some("three"), Some(""), Some("seven"), Some(""), None]);
    }
}
