//! Opens files whose paths other users choose: paths from recordings, processes, debug information and
//! folders that anyone can write to.
//!
//! ```text
//!   PATH ── open(O_PATH) ──► fstat: regular? ── open(/proc/self/fd/N) ──► file
//!     '── /proc/PID/root/… : openat2(RESOLVE_IN_ROOT)
//! ```
//! `O_PATH` finds a file without opening it. Opening a device can have side effects even if nothing is read
//! (a watchdog starts to count down), and opening a FIFO wakes up its writer. The second step opens the file
//! that was checked, even if the path now leads elsewhere.
//!
//! Links in another process's root directory are resolved below that directory, as that process would.
//! Otherwise, an absolute link in a container would lead to a file of the host.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::descriptor;

/// How often to repeat a resolution that a concurrent rename made uncertain.
const ATTEMPTS: usize = 16;

/// Opens a regular file for reading. Never blocks, and never opens anything but a regular file.
///
/// # Errors
/// Returns the errors of `open(2)`. `ELOOP` for a link if `follow_links` is not set; an error without an
/// errno if the file is not regular.
pub fn open_regular(path: &Path, follow_links: bool) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let flags = if follow_links { flags } else { flags | OFlags::NOFOLLOW };
    let found = match process_root(path) {
        Some((root, inside)) => open_inside(&root, &inside, flags)?,
        None => open(path, flags, Mode::empty())?,
    };
    match FileType::from_raw_mode(fstat(&found)?.st_mode) {
        FileType::RegularFile => reopen(&found, path, OFlags::NONBLOCK),
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(unsuitable("not a regular file")),
    }
}

/// Opens a file that the user named, or a default such as `perf.data` in a folder of another user. Waits for
/// the writer of a FIFO, as programs do for their input, but only if other users cannot keep it waiting.
///
/// # Errors
/// Returns the errors of `open(2)`; an error without an errno for a device, and for another user's FIFO.
pub fn open_input(path: &Path) -> io::Result<File> {
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let about = fstat(&found)?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::CharacterDevice | FileType::BlockDevice => {
            Err(unsuitable("a device, not a perf.data file"))
        }
        FileType::Fifo if !is_trusted_owner(about.st_uid) => Err(unsuitable("a FIFO of another user")),
        _ => reopen(&found, path, OFlags::empty()),
    }
}

/// An open folder. Its [`path`](Self::path) leads to the same folder even if the original path is changed in
/// the meantime.
#[derive(Debug)]
pub struct HeldFolder(OwnedFd);

impl HeldFolder {
    /// Opens the folder.
    ///
    /// # Errors
    /// Returns the errors of `open(2)`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OFlags::empty())
    }

    /// Opens the folder, and fails if the path is a link.
    pub(super) fn open_itself(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OFlags::NOFOLLOW)
    }

    fn open_with(path: &Path, flags: OFlags) -> io::Result<Self> {
        let flags = flags | OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?))
    }

    /// Returns a path to the folder that is valid in this process.
    pub fn path(&self) -> PathBuf {
        descriptor::path_of(&self.0)
    }
}

/// Whether the owner of a file is root or the current user. Any other owner could decide where pmc reads and
/// writes.
pub fn is_trusted_owner(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// Whether the folder, or the nearest existing folder above it, belongs to root or to the current user. If it
/// is a link, both the link and its target must. `HOME` may be another user's (`sudo -E`). pmc writes nothing
/// there, because that user could redirect the files with links.
pub fn is_ours(folder: &Path) -> bool {
    let nearest = folder.ancestors().find_map(|part| Some((part, part.symlink_metadata().ok()?.uid())));
    nearest.is_some_and(|(part, owner)| {
        is_trusted_owner(owner) && part.metadata().is_ok_and(|target| is_trusted_owner(target.uid()))
    })
}

/// Creates the error for a file that pmc does not open because of its kind or owner.
pub(super) fn unsuitable(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn reopen(found: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    match open(descriptor::path_of(found), flags, Mode::empty()) {
        // Without /proc, only the path remains.
        Err(Errno::NOENT) => Ok(open(path, flags, Mode::empty())?.into()),
        opened => Ok(opened?.into()),
    }
}

/// Splits `/proc/PID/root/PATH` into the root directory and the path in it; `None` for other paths.
pub fn process_root(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = path.strip_prefix("/proc").ok()?.components();
    let Some(Component::Normal(process)) = parts.next() else { return None };
    let is_root = parts.next() == Some(Component::Normal("root".as_ref()));
    is_root.then(|| (Path::new("/proc").join(process).join("root"), parts.as_path().to_owned()))
}

/// Returns the path as the process sees it: `/usr/lib/a` for `/proc/12/root/usr/lib/a`. Returns other paths
/// unchanged.
pub fn path_in_process(path: &Path) -> Cow<'_, Path> {
    match process_root(path) {
        Some((_, inside)) => Path::new("/").join(inside).into(),
        None => path.into(),
    }
}

fn open_inside(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let root = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for _ in 1..ATTEMPTS {
        match openat2(&root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Linux before 5.6, or a container whose seccomp filter does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_without_links(root, path),
            opened => return Ok(opened?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// Opens a path below a directory, and fails at each link and at `..`.
fn open_without_links(mut folder: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(Errno::LOOP.into()) };
        folder = openat(&folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::channel;

    use rustix::fs::{CWD, mknodat};
    use rustix::process::chroot;
    use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};

    use super::*;

    fn text(path: &Path, follow_links: bool) -> Result<String, io::ErrorKind> {
        let mut text = String::new();
        let read = |mut file: File| file.read_to_string(&mut text);
        open_regular(path, follow_links).and_then(read).map_err(|error| error.kind())?;
        Ok(text)
    }

    /// `open` fails with ENXIO for a socket, so another error shows that pmc did not try to open it.
    #[test]
    fn special_files_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("socket", at("link")).unwrap();
        for path in [at("socket"), at("link"), "/dev/null".into(), folder.path().into()] {
            let error = open_regular(&path, true).unwrap_err();
            assert_eq!((error.raw_os_error(), error.to_string().as_str()), (None, "not a regular file"));
        }
        assert_eq!(open_regular(&at("link"), false).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(open_regular(&at("none"), true).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn links_and_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        assert_eq!(text(&at("link"), true).as_deref(), Ok("text"));
        assert_eq!(text(&at("file"), false).as_deref(), Ok("text"));
        // Our own root directory is the same for all paths.
        let ours = Path::new("/proc/self/root").join(at("link").strip_prefix("/").unwrap());
        assert_eq!(text(&ours, true).as_deref(), Ok("text"));
    }

    #[test]
    fn links_below_a_root_stay_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("root/etc")).unwrap();
        std::fs::write(at("secret"), "ours").unwrap();
        std::fs::write(at("root/etc/secret"), "theirs").unwrap();
        symlink("/etc/secret", at("root/absolute")).unwrap();
        symlink("../../../../../etc/secret", at("root/etc/up")).unwrap();
        symlink(at("secret"), at("root/out")).unwrap();
        symlink("/proc/self/exe", at("root/magic")).unwrap();
        let root = at("root");
        for (path, expected) in
            [("absolute", Some("theirs")), ("etc/up", Some("theirs")), ("out", None), ("../secret", None)]
        {
            let opened = open_inside(&root, Path::new(path), OFlags::RDONLY).ok();
            let read = opened.map(|file| io::read_to_string(File::from(file)).unwrap());
            assert_eq!(read.as_deref(), expected, "{path}");
        }
        let walk = |path: &str| {
            let root = open(&root, OFlags::PATH, Mode::empty()).unwrap();
            let found = open_without_links(root, Path::new(path)).ok()?;
            Some(FileType::from_raw_mode(fstat(found).unwrap().st_mode))
        };
        assert_eq!(walk("etc/secret"), Some(FileType::RegularFile));
        assert_eq!((walk("absolute"), walk("../secret")), (Some(FileType::Symlink), None));
    }

    /// A thread changes its root directory, as a process in a container does.
    #[test]
    fn links_of_another_root_do_not_lead_to_our_files() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("root")).unwrap();
        std::fs::write(at("root/own"), "theirs").unwrap();
        std::fs::write(at("secret"), "ours").unwrap();
        symlink(at("secret"), at("root/out")).unwrap();
        symlink("/own", at("root/in")).unwrap();
        let (ready, started) = channel();
        let (end, ended) = channel::<()>();
        let root = at("root");
        let thread = std::thread::spawn(move || {
            // SAFETY: a new thread has no references to its file system state.
            unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
            chroot(&root).unwrap();
            ready.send(gettid()).unwrap();
            let _ = ended.recv();
        });
        let theirs = Path::new("/proc").join(started.recv().unwrap().to_string()).join("root");
        assert_eq!(text(&theirs.join("in"), true).as_deref(), Ok("theirs"));
        assert_eq!(text(&theirs.join("out"), true), Err(io::ErrorKind::NotFound));
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn inputs_are_files_and_our_own_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let fails = |path: &Path| open_input(path).unwrap_err().to_string();
        assert_eq!(fails(Path::new("/dev/null")), "a device, not a perf.data file");
        if geteuid().is_root() {
            std::os::unix::fs::chown(&fifo, Some(65534), None).unwrap();
            assert_eq!(fails(&fifo), "a FIFO of another user");
            std::os::unix::fs::chown(&fifo, Some(0), None).unwrap();
        }
        let writer = fifo.clone();
        let thread = std::thread::spawn(move || std::fs::write(writer, "text"));
        assert_eq!(io::read_to_string(open_input(&fifo).unwrap()).unwrap(), "text");
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn held_folder_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("one")).unwrap();
        let held = HeldFolder::open(&at("one")).unwrap();
        std::fs::rename(at("one"), at("other")).unwrap();
        symlink("/", at("one")).unwrap();
        std::fs::write(held.path().join("file"), "text").unwrap();
        assert!(at("other/file").is_file());
    }

    #[test]
    fn paths_in_process_roots_are_recognized() {
        let split = |path: &str| process_root(Path::new(path));
        assert_eq!(split("/proc/12/root/usr/lib"), Some(("/proc/12/root".into(), "usr/lib".into())));
        assert_eq!(split("/proc/self/root"), Some(("/proc/self/root".into(), "".into())));
        assert_eq!((split("/proc/12/exe"), split("/usr/proc/1/root/a"), split("/proc")), (None, None, None));
        let inside = |path| path_in_process(Path::new(path)).into_owned();
        assert_eq!(inside("/proc/12/root/usr/lib"), Path::new("/usr/lib"));
        assert_eq!(inside("/proc/12/exe"), Path::new("/proc/12/exe"));
    }
}
