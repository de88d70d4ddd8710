//! Opens output files safely, even in directories where other users can create files first. Every output file
//! of pmc is opened here or with a [`Replacement`] (`tests/architecture` checks this).
//!
//! Determines which kind of [file](ExistingFile) exists at the user's path or the default path, and opens
//! files for writing. In a folder that other users can write to, a name can lead anywhere: it may be a link
//! to one of root's files, or a pipe that another user reads or leaves without a reader. pmc uses what it
//! finds only if it is *trusted*: no other user could have put it there. Links are checked and followed one
//! at a time.
//!
//! ```text
//!   found at the path            trusted                          not trusted
//!   link                         followed                         replaced
//!   FIFO                         written, once it has a reader    replaced
//!   device, socket               written                          replaced
//!   regular file                 rewritten or replaced            replaced; with `append`, see `create`
//!   folder of files              used                             a link: refused
//!   link in /proc (/dev/stdout)  written                          written
//! ```
//! Replaced means that a new file (`O_EXCL`) takes its name by `rename(2)`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use super::regular_file::{HeldFolder, is_trusted_owner, unsuitable};
use super::replacement::Replacement;
use super::{descriptor, signal, wait};

/// The file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// No file.
    Nothing,
    /// A file.
    File {
        /// Size in bytes.
        len: u64,
        /// Whether this user owns the file and it has no other name, so that it is safe to write to it.
        is_ours: bool,
    },
    /// A trusted FIFO, or a pipe such as that of `>(command)`, which is opened in place.
    Fifo,
    /// A trusted device or socket, another target of a link in `/proc` such as `/dev/stdout`, or a folder. It
    /// is opened in place.
    Special,
    /// A link, FIFO, device or socket that another user could have put there. It is replaced.
    Others(fs::FileType),
}

/// The result of resolving a path.
#[derive(Debug, Clone)]
pub struct OutputPlace {
    /// The path after our own links have been followed.
    pub path: PathBuf,
    /// The file at the end of the path.
    pub standing: ExistingFile,
}

/// Maximum number of links to follow, as in the kernel.
const MOST_LINKS: usize = 40;
/// Interval at which to check whether a pipe has a reader.
const PAUSE: Duration = Duration::from_millis(20);
/// `f_type` of procfs, whose links lead to open files rather than to names.
const PROC: i64 = 0x9fa0;

/// Resolves a path by following links that no other user could have created.
///
/// # Errors
/// Returns the kernel's errors, except `ENOENT`.
pub fn resolve_links(path: &Path) -> io::Result<OutputPlace> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let at = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let there = match rustix::fs::open(&path, at, Mode::empty()) {
            Ok(there) => File::from(there),
            Err(rustix::io::Errno::NOENT) => {
                return Ok(OutputPlace { path, standing: ExistingFile::Nothing });
            }
            Err(error) => return Err(error.into()),
        };
        let meta = there.metadata()?;
        let kind = meta.file_type();
        let standing = if kind.is_file() {
            ExistingFile::File { len: meta.len(), is_ours: is_ours(&meta) }
        } else if kind.is_dir() {
            ExistingFile::Special
        } else if is_in_proc(&path) {
            let is_pipe = fs::metadata(&path).is_ok_and(|target| target.file_type().is_fifo());
            if is_pipe { ExistingFile::Fifo } else { ExistingFile::Special }
        } else if !is_trusted(&meta, &path) {
            ExistingFile::Others(kind)
        } else if kind.is_fifo() {
            ExistingFile::Fifo
        } else if !kind.is_symlink() {
            ExistingFile::Special
        } else {
            // Reads the link that was checked, even if another one has replaced it in the meantime.
            let target = rustix::fs::readlinkat(&there, c"", Vec::new())?;
            path = folder_of(&path).join(OsString::from_vec(target.into_bytes()));
            continue;
        };
        return Ok(OutputPlace { path, standing });
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Returns the path of a directory without trailing slashes. Other paths stay unchanged, so that the kernel
/// rejects a slash after a file name.
pub fn without_slash(path: &Path) -> &Path {
    if path.is_dir() { path.components().as_path() } else { path }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_ours(meta: &fs::Metadata) -> bool {
    meta.is_file() && meta.uid() == geteuid().as_raw() && meta.nlink() == 1
}

fn is_in_proc(path: &Path) -> bool {
    rustix::fs::statfs(folder_of(path)).is_ok_and(|system| system.f_type == PROC)
}

/// Whether only this user or root could have put the file there: it is theirs and has no other name, which
/// another user could have added, or they alone can write to the folder.
fn is_trusted(meta: &fs::Metadata, path: &Path) -> bool {
    is_trusted_owner(meta.uid()) && meta.nlink() == 1 || is_closed(folder_of(path))
}

/// Whether only this user or root can create files in the folder.
fn is_closed(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|meta| is_trusted_owner(meta.uid()) && meta.mode() & 0o022 == 0)
}

/// Opens a file for writing at its start (with `append`, at its end). Meant for output that is never complete
/// and so cannot be moved into place at the end. Replaces a file owned by another user. With `append`, writes
/// to it if it has no other name, which could be one of root's files.
///
/// # Errors
/// Returns the kernel's errors; `EINTR` as for [`OutputPlace::open_special`]; an error without an errno for a
/// file to which nothing may be appended.
pub fn create(path: &Path, mode: u32, append: bool) -> io::Result<File> {
    let place = resolve_links(path)?;
    let path = &place.path;
    let mut open = OpenOptions::new();
    open.write(true).append(append);
    match place.standing {
        ExistingFile::Nothing => open.create_new(true).mode(mode).open(path),
        ExistingFile::Fifo | ExistingFile::Special => {
            let file = place.open_special()?;
            descriptor::set_blocking(&file)?;
            Ok(file)
        }
        ExistingFile::File { is_ours: ours, .. } if append || ours => {
            let file = open.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
            let meta = file.metadata()?;
            match (append, is_ours(&meta)) {
                (false, false) => return replace(path, mode),
                (false, true) => file.set_len(0)?,
                (true, true) => {}
                (true, false) if meta.is_file() && (meta.nlink() == 1 || is_closed(folder_of(path))) => {}
                (true, false) => return Err(unsuitable("the file has other names (hard links)")),
            }
            Ok(file)
        }
        ExistingFile::File { .. } | ExistingFile::Others(_) => replace(path, mode),
    }
}

/// Creates a folder for output files, and those above it, unless it exists. `path` names the last one.
///
/// # Errors
/// Returns the kernel's errors; an error without an errno if the folder is a link that is not trusted.
pub fn create_folder(path: &Path, mode: u32) -> io::Result<HeldFolder> {
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    match resolve_links(path.components().as_path())? {
        OutputPlace { path, standing: ExistingFile::Special } => HeldFolder::open_itself(&path),
        OutputPlace { standing: ExistingFile::Others(kind), .. } if kind.is_symlink() => {
            Err(unsuitable("a symbolic link created by another user"))
        }
        _ => Err(rustix::io::Errno::NOTDIR.into()),
    }
}

/// Replaces the file with an empty one.
fn replace(path: &Path, mode: u32) -> io::Result<File> {
    let new = Replacement::new(path);
    let file = new.create(mode)?;
    new.put()?;
    Ok(file)
}

/// Opens an existing file of this user without truncating it.
///
/// # Errors
/// Returns the kernel's errors; `EEXIST` if the file no longer belongs to this user.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if is_ours(&file.metadata()?) { Ok(file) } else { Err(rustix::io::Errno::EXIST.into()) }
}

impl OutputPlace {
    /// Opens a FIFO for writing as soon as it has a reader, or another special file. Writes do not block;
    /// see [`wait_for_room`].
    ///
    /// # Errors
    /// Returns the kernel's errors; `EINTR` if a signal that ends pmc is pending; `EEXIST` if another user
    /// has replaced the file in the meantime.
    pub fn open_special(&self) -> io::Result<File> {
        let is_in_proc = is_in_proc(&self.path);
        let no_links = if is_in_proc { 0 } else { libc::O_NOFOLLOW };
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | no_links;
        // A pipe that is open already gets no other reader.
        let waits = self.standing == ExistingFile::Fifo && !is_in_proc;
        loop {
            match OpenOptions::new().write(true).custom_flags(flags).open(&self.path) {
                Err(error) if waits && error.raw_os_error() == Some(libc::ENXIO) => {
                    if signal::is_pending(&signal::ENDING_AND_QUIT) {
                        return Err(rustix::io::Errno::INTR.into());
                    }
                    sleep(PAUSE);
                }
                Ok(file) if !is_in_proc && !is_trusted(&file.metadata()?, &self.path) => {
                    return Err(rustix::io::Errno::EXIST.into());
                }
                opened => return opened,
            }
        }
    }

    /// Returns the path for a [`Replacement`], for outputs that must be regular files.
    ///
    /// # Errors
    /// Returns an error without an errno for this user's own FIFO or device, which is neither written nor
    /// replaced.
    pub fn file_path(self) -> io::Result<PathBuf> {
        match self.standing {
            ExistingFile::Fifo | ExistingFile::Special => Err(unsuitable("not a regular file")),
            ExistingFile::Nothing | ExistingFile::File { .. } | ExistingFile::Others(_) => Ok(self.path),
        }
    }
}

/// Waits until a nonblocking pipe accepts more data. A reader that has stopped reading cannot keep pmc from
/// exiting.
///
/// # Errors
/// Returns `EINTR` if a signal that ends pmc is pending and there was no room for two seconds.
pub fn wait_for_room(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags};
    const STEP: Duration = Duration::from_millis(100);
    let mut steps = 0;
    loop {
        match wait::poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(STEP)) {
            Ok(0) if steps >= 20 => return Err(rustix::io::Errno::INTR.into()),
            Ok(0) => steps += u32::from(signal::is_pending(&signal::ENDING_AND_QUIT)),
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn own_links_are_followed_and_files_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "former").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("link", at("second")).unwrap();
        create(&at("second"), 0o600, false).unwrap().write_all(b"new").unwrap();
        create(&at("second"), 0o600, true).unwrap().write_all(b"er").unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"newer");
        symlink("circle", at("circle")).unwrap();
        assert!(create(&at("circle"), 0o600, false).is_err());
        symlink("none", at("dangling")).unwrap();
        create(&at("dangling"), 0o600, false).unwrap();
        assert_eq!(fs::metadata(at("none")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(resolve_links(Path::new("/dev/null")).unwrap().standing, ExistingFile::Special);
        create(Path::new("/dev/null"), 0o600, false).unwrap();
    }

    #[test]
    fn files_of_other_users_are_replaced() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (victim, link, hard) =
            (folder.path().join("v"), folder.path().join("l"), folder.path().join("h"));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(&victim, "root's").unwrap();
        symlink(&victim, &link).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
        fs::hard_link(&victim, &hard).unwrap();
        for name in [&link, &hard] {
            create(name, 0o600, false).unwrap().write_all(b"ours").unwrap();
            assert_eq!(
                (fs::read(&victim).unwrap(), fs::read(name).unwrap()),
                (b"root's".into(), b"ours".into())
            );
            assert!(fs::symlink_metadata(name).unwrap().is_file());
        }
        lchown(&link, Some(65534), Some(65534)).unwrap();
        create(&link, 0o600, false).unwrap();
        assert_eq!(fs::metadata(&link).unwrap().uid(), 0, "a file of another user is not written into");
    }
}
