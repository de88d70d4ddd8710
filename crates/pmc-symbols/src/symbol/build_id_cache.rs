//! perf's build-id cache, which preserves recorded files when programs are replaced.
//!
//! Takes the name and build-id of a module; stores its file where perf looks for it, lists the stored
//! files, and removes them. An entry is valid if its file has the entry's build-id; an invalid entry is
//! replaced the next time the right file is stored. [`locate`](super::files::locate) reads the cache.
//!
//! ```text
//!   CACHE/.build-id/ab/cdef…  ->  ../../usr/lib/libc.so.6/abcdef…
//!   CACHE/usr/lib/libc.so.6/abcdef…/elf, debug    the file, and its separate debug file
//!   CACHE/[kernel.kallsyms]/abcdef…/kallsyms      the kernel's list of functions
//!   CACHE/[vdso]/abcdef…/vdso
//! ```
//! A file is hard-linked if only the current user and root can write to it, and if the cache is on the same
//! file system. All other files are copied, including their holes, because their owners could change the
//! cached content. Reinstalling a program creates a new file, so the link preserves the old one. Overwriting
//! a program in place also changes the linked file, whose build-id then no longer matches.

use crate::hint::Hint;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{SeekFrom, seek};

use super::build_id::BuildId;
use super::files::image::Image;
use super::files::{elf, locate};
use super::module::SymbolModule;
use super::options::{self, RunningKernel, SymbolOptions};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::deleted_file;
use pmc_sys::sys::file_map::FileMap;
use pmc_sys::sys::regular_file::{is_trusted_owner, open_regular, process_root};
use pmc_sys::sys::replacement::Replacement;

/// Name of the kernel's entry.
pub const KERNEL: &str = "[kernel.kallsyms]";
const VDSO: &str = "[vdso]";

/// Maximum number of bytes to read from a list of markers.
const MOST_OF_MARKERS: u64 = 1 << 20;

/// A build-id cache in this folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildIdCache(PathBuf);

/// A cached file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheEntry {
    /// The build-id.
    pub id: BuildId,
    /// The file's original path, or a name in brackets.
    pub name: PathBuf,
    /// Folder of the entry, relative to the cache.
    folder: PathBuf,
}

impl BuildIdCache {
    /// Returns the cache to which pmc writes; `None` if its location is unknown.
    pub fn usual() -> Option<Self> {
        options::build_id_folder().map(Self)
    }

    /// Path of the cache.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Stores the file of a module, and returns whether it was new. Skips files that are missing or that now
    /// have a different build-id. A cache at `/dev/null` stores nothing.
    ///
    /// # Errors
    /// Fails if the kernel refuses to create the cache's folders or files.
    pub fn keep(&self, module: &SymbolModule, options: &SymbolOptions) -> Result<bool> {
        let is_off = self.0 == Path::new("/dev/null");
        let wanted = module.build_id.filter(|id| !is_off && !self.holds(*id));
        let Some(id) = wanted else { return Ok(false) };
        let name = module.path.to_string_lossy();
        if name == KERNEL {
            let Some(list) = running_kallsyms(id) else { return Ok(false) };
            let folder = self.entry_folder(Path::new(KERNEL), id)?;
            self.put(&folder.join("kallsyms"), |to| copy_into(&list[..], to, 0o644))?;
            return self.link(id, Path::new(KERNEL)).map(|()| true);
        }
        if name == VDSO {
            let Some(image) = locate::locate(module, options).binary else { return Ok(false) };
            let folder = self.entry_folder(Path::new(VDSO), id)?;
            self.put(&folder.join("vdso"), |to| copy_into(&image[..], to, 0o600))?;
            return self.link(id, Path::new(VDSO)).map(|()| true);
        }
        let Some((path, file, is_ours)) = open_of_build(module, id) else { return Ok(false) };
        let name = if is_ours { &path } else { locate::strip_deleted(&module.path) };
        self.keep_open(name, id, &file, is_ours.then_some(&path), |found| {
            locate::complete(module, options, found)
        })
    }

    /// Stores a copy of an open file with this build-id, and returns whether it was new. `name` is its path
    /// as seen by the process that mapped it.
    ///
    /// # Errors
    /// Fails in the same cases as [`BuildIdCache::keep`].
    pub fn keep_copy(&self, name: &Path, id: BuildId, file: &File) -> Result<bool> {
        if self.0 == Path::new("/dev/null") || self.holds(id) {
            return Ok(false);
        }
        self.keep_open(name, id, file, None, |_| ())
    }

    /// Stores an open file. `ours` is its path in our mount namespace, for hard links. `complete` searches
    /// for its debug file.
    fn keep_open(
        &self,
        name: &Path,
        id: BuildId,
        file: &File,
        ours: Option<&PathBuf>,
        complete: impl FnOnce(&mut locate::ModuleFiles),
    ) -> Result<bool> {
        if name.components().any(|part| part == Component::ParentDir) {
            return Ok(false);
        }
        if file.metadata().is_ok_and(|meta| meta.blocks() > MOST_COPIED / 512 && !is_lasting(&meta)) {
            return Ok(false);
        }
        let folder = self.entry_folder(name, id)?;
        self.put(&folder.join("elf"), |to| link_or_copy(ours, file, to))?;
        let binary =
            FileMap::new(file).ok().map(|map| Image::mapped(ours.map_or(name, PathBuf::as_path), map));
        let mut found = locate::ModuleFiles { binary, ..Default::default() };
        complete(&mut found);
        if let Some(debug) = found.debug.map(|image| image.path).filter(|path| !path.starts_with(&self.0)) {
            let is_ours = process_root(&debug).is_none();
            let real = fs::canonicalize(&debug).unwrap_or(debug);
            // The debug file is not worth copying, because an analysis on this machine finds the original.
            if is_ours && fs::metadata(&real).is_ok_and(|meta| is_lasting(&meta)) {
                let _ = self.put(&folder.join("debug"), |to| fs::hard_link(&real, to));
            }
        }
        self.link(id, name).map(|()| true)
    }

    /// Whether the cache has a valid file for this build-id.
    pub fn holds(&self, id: BuildId) -> bool {
        let place = self.0.join(".build-id").join(id.path());
        let whole = |name: &str| Image::open(&place.join(name)).is_ok_and(|image| is_of_build(&image, id));
        whole("elf") || whole("vdso") || place.join("kallsyms").metadata().is_ok_and(|list| list.len() > 0)
    }

    /// Lists all entries by build-id, including damaged ones.
    ///
    /// # Errors
    /// Fails if the folder exists but cannot be read.
    pub fn entries(&self) -> Result<Vec<CacheEntry>> {
        let top = self.0.join(".build-id");
        let folders = match fs::read_dir(&top) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folders => folders.map_err(|error| Error::io(format!("reading {}", top.display()), error))?,
        };
        let links = folders.flatten().flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
        let mut entries: Vec<CacheEntry> =
            links.flatten().filter_map(|link| self.entry(&link.path())).collect();
        entries.sort_unstable();
        Ok(entries)
    }

    /// Resolves a link, if it points into the cache.
    fn entry(&self, link: &Path) -> Option<CacheEntry> {
        let hex = format!("{}{}", link.parent()?.file_name()?.to_str()?, link.file_name()?.to_str()?);
        let target = fs::read_link(link).ok()?;
        let folder = target.strip_prefix("../..").ok()?;
        let is_inside = folder.components().all(|part| matches!(part, Component::Normal(_)));
        let name = folder.parent().filter(|_| is_inside)?;
        let in_brackets = name.to_str().is_some_and(|name| name.starts_with('['));
        let name = if in_brackets { name.to_owned() } else { Path::new("/").join(name) };
        Some(CacheEntry { id: BuildId::parse(&hex)?, name, folder: folder.to_owned() })
    }

    /// Returns the markers in all cached files, as listed by `perf buildid-cache --add`: for each file, its
    /// sorted `PROVIDER:NAME`s. Skips unreadable lists.
    pub fn markers(&self) -> Vec<(PathBuf, Vec<String>)> {
        let entries = self.entries().unwrap_or_default();
        let of_file = |entry: &CacheEntry| {
            let mut text = String::new();
            let list = open_regular(&self.0.join(&entry.folder).join("probes"), false).ok()?;
            list.take(MOST_OF_MARKERS).read_to_string(&mut text).ok()?;
            let mut names: Vec<String> = text
                .lines()
                // A marker is a line such as `%sdt_libc:setjmp=setjmp`. The lines after it contain its
                // locations.
                .filter_map(|line| line.strip_prefix("%sdt_")?.split_once('='))
                .map(|(name, _)| name.to_owned())
                .collect();
            names.sort_unstable();
            names.dedup();
            (!names.is_empty()).then(|| (entry.name.clone(), names))
        };
        entries.iter().filter_map(of_file).collect()
    }

    /// Returns the entry for a build-id, even if it is damaged.
    pub fn named(&self, id: BuildId) -> Option<CacheEntry> {
        self.entry(&self.0.join(".build-id").join(id.path()))
    }

    /// Returns the entry's two paths relative to the cache, for packing.
    pub fn places(entry: &CacheEntry) -> [PathBuf; 2] {
        [Path::new(".build-id").join(entry.id.path()), entry.folder.clone()]
    }

    /// Removes an entry, and folders that are empty afterwards.
    ///
    /// # Errors
    /// Fails if the kernel refuses to remove a file or folder.
    pub fn remove(&self, entry: &CacheEntry) -> Result<()> {
        let [link, folder] = Self::places(entry).map(|place| self.0.join(place));
        fs::remove_file(&link).map_err(|error| Error::io(format!("removing {}", link.display()), error))?;
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(format!("removing {}", folder.display()), error));
            }
            _ => {}
        }
        for place in [link, folder] {
            let above = place.ancestors().skip(1).take_while(|above| *above != self.0);
            above.take_while(|above| fs::remove_dir(above).is_ok()).for_each(drop);
        }
        Ok(())
    }

    /// Returns the folder of an entry. Creates it if it does not exist.
    fn entry_folder(&self, name: &Path, id: BuildId) -> Result<PathBuf> {
        let folder = locate::below(&self.0, name).join(id.to_string());
        let make = |folder: &Path, mode| fs::DirBuilder::new().recursive(true).mode(mode).create(folder);
        // Hard links have the modes of their files, so the folder itself must keep other users away from
        // private files.
        make(&self.0, 0o700)
            .and_then(|()| make(&folder, 0o755))
            .map_err(|error| self.failed(&folder, error))?;
        Ok(folder)
    }

    /// Creates a file under a temporary name and renames it, so that readers never see a partial file.
    fn put(&self, place: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
        let new = Replacement::new(place);
        let made = make(new.path()).and_then(|()| new.put());
        made.map_err(|error| self.failed(place, error))
    }

    fn link(&self, id: BuildId, name: &Path) -> Result<()> {
        let link = self.0.join(".build-id").join(id.path());
        let target = locate::below(Path::new("../.."), name).join(id.to_string());
        let above = link.parent().unwrap_or(&self.0);
        fs::create_dir_all(above).map_err(|error| self.failed(above, error))?;
        self.put(&link, |to| std::os::unix::fs::symlink(&target, to))
    }

    fn failed(&self, place: &Path, error: io::Error) -> Error {
        Error::io(format!("copying {} to the build-id cache", place.display()), error)
            .try_this(Hint::OtherCache)
    }
}

/// Opens a module's file with this build-id, in our own mount namespace or in that of its process, or a
/// deleted file that its process still maps. The flag is true if the path is in our own.
fn open_of_build(module: &SymbolModule, id: BuildId) -> Option<(PathBuf, File, bool)> {
    let path = locate::strip_deleted(&module.path);
    let ours = fs::canonicalize(path).ok().map(|path| (path, true));
    let below = path.strip_prefix("/").ok()?;
    let theirs =
        module.pid.map(|pid| (Path::new("/proc").join(pid.to_string()).join("root").join(below), false));
    let is_it = |path: &Path, file: &File| {
        FileMap::new(file).is_ok_and(|map| is_of_build(&Image::mapped(path, map), id))
    };
    let there = ours.into_iter().chain(theirs).find_map(|(path, is_ours)| {
        let file = open_regular(&path, true).ok()?;
        is_it(&path, &file).then_some((path, file, is_ours))
    });
    there.or_else(|| {
        let file = deleted_file::open(path, i32::try_from(module.pid?).ok()?)?;
        is_it(path, &file).then(|| (path.to_owned(), file, false))
    })
}

/// Whether a file has this build-id. Compressed kernel modules are accepted, because their build-id cannot be
/// read.
fn is_of_build(image: &Image, id: BuildId) -> bool {
    match image.elf() {
        Ok(file) => elf::build_id(&file).is_some_and(|there| there.same(&id)),
        Err(_) => is_packed(image),
    }
}

/// Whether these bytes are compressed with gzip, xz or zstd, as kernel modules of distributions often are.
fn is_packed(bytes: &[u8]) -> bool {
    [&b"\x1f\x8b"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"].iter().any(|magic| bytes.starts_with(magic))
}

/// Maximum number of bytes to copy, so that a user's file cannot fill the disk when root copies it.
const MOST_COPIED: u64 = 4 << 30;

/// Hard-links the file if possible, and copies it otherwise.
fn link_or_copy(path: Option<&PathBuf>, file: &File, to: &Path) -> io::Result<()> {
    let meta = file.metadata()?;
    match path.filter(|_| is_lasting(&meta)).map(|path| fs::hard_link(path, to)) {
        Some(Ok(())) => Ok(()),
        _ => copy_file(file, to, meta.mode() & 0o777),
    }
}

/// Whether the cache may hard-link a file. Only the current user and root may be able to write to it. It must
/// not be set-user-ID or set-group-ID, because the link would keep the old file usable after a security
/// update.
fn is_lasting(meta: &fs::Metadata) -> bool {
    const SET_ID: u32 = 0o6000;
    is_trusted_owner(meta.uid()) && meta.mode() & (SET_ID | 0o022) == 0
}

/// Copies a file, including its holes.
fn copy_file(from: &File, to: &Path, mode: u32) -> io::Result<()> {
    let mut to = File::options().write(true).create_new(true).mode(mode).open(to)?;
    let len = from.metadata()?.len();
    to.set_len(len)?;
    let (mut from, mut end, mut copied) = (from, 0, 0);
    while end < len {
        let start = match seek(from, SeekFrom::Data(end)) {
            // There is no more data, only a hole.
            Err(rustix::io::Errno::NXIO) => break,
            // The file system does not support holes.
            Err(rustix::io::Errno::INVAL) => seek(from, SeekFrom::Start(end))?,
            start => start?,
        };
        end = seek(from, SeekFrom::Hole(start)).unwrap_or(len);
        seek(from, SeekFrom::Start(start))?;
        seek(&to, SeekFrom::Start(start))?;
        let piece = io::copy(&mut Read::by_ref(&mut from).take(end - start), &mut to)?;
        copied += piece;
        if piece < end - start {
            // The file was truncated in the meantime.
            break;
        }
        if copied > MOST_COPIED {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(())
}

fn copy_into(mut from: impl Read, to: &Path, mode: u32) -> io::Result<()> {
    let mut to = File::options().write(true).create_new(true).mode(mode).open(to)?;
    io::copy(&mut from, &mut to).map(drop)
}

/// Reads the running kernel's symbol list, if the kernel has this build-id and the list shows addresses.
fn running_kallsyms(id: BuildId) -> Option<Vec<u8>> {
    RunningKernel::live().build_id().filter(|running| running.same(&id))?;
    let list = fs::read("/proc/kallsyms").ok()?;
    let is_hidden = |line: &[u8]| line.starts_with(b"0000000000000000") || line.is_empty();
    let shows = !list.split(|byte| *byte == b'\n').all(is_hidden);
    shows.then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_cache_are_not_entries() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BuildIdCache(folder.path().join("cache"));
        assert_eq!(cache.entries().unwrap(), []);
        let (ids, victim) = (folder.path().join("cache/.build-id/ab"), folder.path().join("victim"));
        fs::create_dir_all(&ids).unwrap();
        fs::create_dir(&victim).unwrap();
        let ways =
            ["../../../victim", "../../x/../../victim/", victim.to_str().unwrap(), "../..", "../../one"];
        for (number, way) in ways.iter().enumerate() {
            std::os::unix::fs::symlink(way, ids.join(format!("{number:02}"))).unwrap();
        }
        std::os::unix::fs::symlink("../../a/b/abff", ids.join("ff")).unwrap();
        std::os::unix::fs::symlink("../../a/b/abff", ids.join("no hex")).unwrap();
        let entries = cache.entries().unwrap();
        let names: Vec<&Path> = entries.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, [Path::new("/"), Path::new("/a/b")]);
        entries.iter().try_for_each(|entry| cache.remove(entry)).unwrap();
        assert!(victim.exists() && cache.entries().unwrap().is_empty());
    }

    #[test]
    fn only_files_with_matching_build_id_are_cached() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BuildIdCache(folder.path().join("cache"));
        let own = std::env::current_exe().unwrap();
        let id = {
            let image = Image::open(&own).unwrap();
            elf::build_id(&image.elf().unwrap())
        };
        let Some(id) = id else { return };
        let options = SymbolOptions {
            debug_dirs: Vec::new(),
            build_id_caches: Vec::new(),
            ..SymbolOptions::from_environment()
        };
        let module = |id| SymbolModule { build_id: id, ..SymbolModule::file(&own) };
        for other in [None, BuildId::new(&[1; 20])] {
            assert!(!cache.keep(&module(other), &options).unwrap() && !cache.0.exists());
        }
        assert!(cache.keep(&module(Some(id)), &options).unwrap());
        assert!(!cache.keep(&module(Some(id)), &options).unwrap() && cache.holds(id));
        let entry = cache.named(id).unwrap();
        assert_eq!(entry.name, fs::canonicalize(&own).unwrap());
        cache.remove(&entry).unwrap();
        assert!(!cache.holds(id) && fs::read_dir(&cache.0).unwrap().next().is_none());
    }
}
