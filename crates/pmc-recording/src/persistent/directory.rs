//! The run directory of a holder.
//!
//! ```text
//! type                 persistent: a word instead of the kernel's number
//! format/persistent    attr5:23
//! events/NAME          persistent,config=ID
//! held/ID              the event: an Entry as JSON
//! lost                 events of earlier holders: a Lost as JSON, one per line
//! next-id              the id of the next entry
//! socket, lock, log    the holder's socket; its lock; its messages since its start
//! ```
//! Files are written under a temporary name and then renamed, so that readers never see an incomplete file.
//! All users may read the published files, but only the holder's user may write them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use super::{LostEntry, PersistentEntry};
use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::host::persistent::{has_holder, is_missing_or_hidden};
use pmc_sys::host::pmu::PERSISTENT;
use pmc_sys::sys::regular_file::open_regular;
use pmc_sys::sys::{lock, output_file};
use pmc_text::text::shell_word;

/// Maximum size of a published file in bytes. A larger file is invalid.
const LONGEST: u64 = 1 << 20;
/// Maximum length of a name.
const LONGEST_NAME: usize = 64;
/// The reason to show for lost entries whose holder is no longer running.
const KILLED: &str = "its holder was killed";
/// Suffixes of the files that describe events in sysfs. Entry names must not end with them.
const DESCRIPTIONS: [&str; 4] = [".scale", ".unit", ".snapshot", ".per-pkg"];

/// A run directory of any user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

/// Validates an entry name. It must be a valid word in an event and a valid file name, and not a number,
/// because numbers are ids.
///
/// # Errors
/// Returns the reason why the name is invalid.
pub fn check_name(name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let wrong = match name {
        "" => "it is empty",
        _ if name.len() > LONGEST_NAME => "it has more than 64 characters",
        _ if !name.chars().all(is_word) => {
            "it contains characters other than letters, digits, `_`, `-` and `.`"
        }
        _ if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
            "it does not start with a letter"
        }
        _ if name == PERSISTENT => "this is the name of the PMU's only term",
        _ if DESCRIPTIONS.iter().any(|end| name.ends_with(end)) => {
            "sysfs uses this extension for event descriptions"
        }
        _ => return Ok(()),
    };
    Err(Error::usage(format!("`{name}` is not a valid name for a persistent event")).why(wrong))
}

impl RunDirectory {
    /// Returns the run directory with this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the user whose holder publishes in this directory.
    pub fn owner(&self) -> Option<u32> {
        fs::metadata(&self.path).ok().map(|about| about.uid())
    }

    /// Returns the path of the holder's socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// Returns the path of the holder's log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Returns the entries that a holder keeps open, sorted by id. Returns no entries if the holder has
    /// ended, even if its files still exist.
    ///
    /// # Errors
    /// Fails if the files cannot be read.
    pub fn entries(&self) -> Result<Vec<PersistentEntry>> {
        if self.has_holder()? { self.published() } else { Ok(Vec::new()) }
    }

    fn has_holder(&self) -> Result<bool> {
        has_holder(&self.path).map_err(|error| doing("opening", &self.path.join("lock"), error))
    }

    /// Returns the published entries, sorted by id. Skips invalid files, and those removed in the meantime.
    fn published(&self) -> Result<Vec<PersistentEntry>> {
        let folder = self.path.join("held");
        let files = match fs::read_dir(&folder) {
            Ok(files) => files.collect::<io::Result<Vec<_>>>(),
            Err(error) if is_missing_or_hidden(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let mut all: Vec<PersistentEntry> = Vec::new();
        for file in files.map_err(|error| doing("reading", &folder, error))? {
            let text = read(&file.path())?;
            all.extend(text.and_then(|text| serde_json::from_str(&text).ok()));
        }
        all.sort_by_key(|entry| entry.id);
        Ok(all)
    }

    /// Returns the entry with this name or id.
    ///
    /// # Errors
    /// Fails if the files cannot be read.
    pub fn entry(&self, word: &str) -> Result<Option<PersistentEntry>> {
        Ok(self.entries()?.into_iter().find(|entry| is_called(entry, word)))
    }

    /// Returns the lost entries of earlier holders: the entries in the file `lost`, and the ones that a
    /// killed holder has left behind.
    ///
    /// # Errors
    /// Fails if the files cannot be read.
    pub fn lost(&self) -> Result<Vec<LostEntry>> {
        let text = read(&self.path.join("lost"))?.unwrap_or_default();
        let mut lost: Vec<LostEntry> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !self.has_holder()? {
            add_lost(&mut lost, self.published()?, clock_gettime(ClockId::Realtime).tv_sec, KILLED);
        }
        Ok(lost)
    }

    /// Creates the directory if needed, writable by this user only.
    ///
    /// # Errors
    /// Fails if the directory cannot be created, or if other users may write to it.
    pub fn make(&self) -> Result<()> {
        let path = &self.path;
        let make = DirBuilder::new().recursive(true).mode(0o755).create(path);
        make.map_err(|error| Error::create(AdvisedOption::Named("PMC_PERSISTENT_DIR=… for"), path, error))?;
        let about = fs::metadata(path).map_err(|error| doing("looking at", path, error))?;
        let own = rustix::process::geteuid().as_raw();
        if about.uid() != own || about.mode() & 0o022 != 0 {
            return Err(Error::new(format!("other users can write to {}", path.display()))
                .why("other users could impersonate the holder")
                .try_this(format!("chmod go-w {}, or set PMC_PERSISTENT_DIR", shell_word(path))));
        }
        Ok(())
    }
}

/// Adds lost entries that are not in the list yet. Only a holder whose run directory was removed can have an
/// entry with the id of another one.
fn add_lost(lost: &mut Vec<LostEntry>, entries: Vec<PersistentEntry>, found: i64, why: &str) {
    for entry in entries {
        if lost.iter().all(|known| known.entry != entry) {
            lost.push(LostEntry { entry, found, why: why.to_owned() });
        }
    }
}

/// Whether a word is this entry's name or id.
pub fn is_called(entry: &PersistentEntry, word: &str) -> bool {
    entry.definition.name == word || word.parse() == Ok(entry.id)
}

/// A run directory in which this process publishes until it ends.
#[derive(Debug)]
pub struct Publisher {
    directory: RunDirectory,
    next_id: u64,
    /// Locked as long as this process exists.
    lock: File,
}

impl Publisher {
    /// Claims the directory; `None` if another holder has claimed it. Removes all entries that earlier
    /// holders left behind, and reports them as lost.
    ///
    /// # Errors
    /// Returns the errors of [`RunDirectory::make`] and of the kernel.
    pub fn claim(directory: RunDirectory, now: i64) -> Result<Option<Self>> {
        directory.make()?;
        let Some(lock) = take_lock(&directory)? else { return Ok(None) };
        let mut publisher = Self { next_id: 1, directory, lock };
        publisher.take_over(&[], now)?;
        // An old file that stays would show an entry that is not held.
        for folder in FOLDERS.map(|folder| publisher.directory.path.join(folder)) {
            gone(fs::remove_dir_all(&folder)).map_err(|error| doing("removing", &folder, error))?;
        }
        publisher.lay_out()?;
        Ok(Some(publisher))
    }

    /// Reports the entries of a previous holder as lost, except `own` entries, and continues its ids.
    fn take_over(&mut self, own: &[&PersistentEntry], now: i64) -> Result<()> {
        let mut left = self.directory.published()?;
        let after = left.iter().map(|entry| entry.id + 1).max().unwrap_or(1);
        let kept = read(&self.directory.path.join("next-id"))?.and_then(|text| text.trim().parse().ok());
        self.next_id = self.next_id.max(after).max(kept.unwrap_or(1));
        left.retain(|entry| !own.contains(&entry));
        self.lose(&left, now, KILLED)
    }

    /// Creates missing directories. Does not change existing directories, because clients may be reading
    /// them.
    fn lay_out(&self) -> Result<()> {
        for folder in FOLDERS {
            let folder = self.directory.path.join(folder);
            let make = DirBuilder::new().recursive(true).mode(0o755).create(&folder);
            make.map_err(|error| doing("making", &folder, error))?;
        }
        self.write("format/persistent", "attr5:23\n")?;
        self.write("type", "persistent\n")
    }

    /// Whether all files exist that clients need to find the holder and these entries.
    pub fn is_complete<'a>(&self, entries: impl Iterator<Item = &'a PersistentEntry>) -> bool {
        let path = |name: &str| self.directory.path.join(name);
        let mut published = entries.flat_map(files_of);
        self.has_lock()
            && ["socket", "type", "format/persistent"].into_iter().all(|name| path(name).exists())
            && published.all(|name| path(&name).exists())
    }

    /// Publishes everything again after the run directory or parts of it have been removed. The parent of the
    /// run directory must still exist.
    ///
    /// # Errors
    /// Fails in the same cases as [`claim`](Self::claim), and if another holder claims the directory in the
    /// meantime.
    pub fn restore(&mut self, entries: &[&PersistentEntry], now: i64) -> Result<()> {
        let path = self.directory.path.clone();
        if !path.parent().is_some_and(Path::is_dir) {
            return Err(Error::new(format!("{} was removed, together with its directory", path.display())));
        }
        self.directory.make()?;
        if !self.has_lock() {
            let taken = || Error::new(format!("another holder has {}", path.display()));
            let lock = take_lock(&self.directory)?.ok_or_else(taken)?;
            // A holder that was here in the meantime and was killed has left its entries. If they cannot be
            // reported now, the next attempt must do it, so the lock is released again.
            self.take_over(entries, now)?;
            self.lock = lock;
        }
        self.lay_out()?;
        self.write("next-id", &format!("{}\n", self.next_id))?;
        entries.iter().try_for_each(|entry| self.publish(entry))
    }

    /// Whether the file that this process has locked is still at its path.
    pub fn has_lock(&self) -> bool {
        let same =
            |(one, other): (fs::Metadata, fs::Metadata)| (one.dev(), one.ino()) == (other.dev(), other.ino());
        let found = fs::metadata(self.directory.path.join("lock"));
        found.and_then(|found| Ok((found, self.lock.metadata()?))).is_ok_and(same)
    }

    /// Returns the directories that clients read.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        std::iter::once(self.directory.path.clone())
            .chain(FOLDERS.iter().map(|folder| self.directory.path.join(folder)))
    }

    /// Returns the directory in which this process publishes.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Returns the id of a new entry. An id is never used twice, even by later holders.
    ///
    /// # Errors
    /// Fails if the next id cannot be saved. No id is returned in this case.
    pub fn take_id(&mut self) -> Result<u64> {
        let id = self.next_id;
        self.write("next-id", &format!("{}\n", id + 1))?;
        self.next_id = id + 1;
        Ok(id)
    }

    /// Publishes an entry. Removes its name from the lost entries.
    ///
    /// # Errors
    /// Returns the kernel's error. In this case, no part of the entry is published.
    pub fn publish(&self, entry: &PersistentEntry) -> Result<()> {
        let text = serde_json::to_string(entry).map_err(|error| Error::new(error.to_string()))?;
        let name = &entry.definition.name;
        let mut files = vec![(format!("held/{}", entry.id), text + "\n")];
        if let Some((scale, unit)) = &entry.unit {
            files.push((format!("events/{name}.scale"), format!("{scale}\n")));
            files.push((format!("events/{name}.unit"), format!("{unit}\n")));
        }
        files.push((format!("events/{name}"), format!("persistent,config={}\n", entry.id)));
        let written = files.iter().try_for_each(|(file, text)| self.write(file, text));
        if written.is_err() {
            let _ = self.withdraw(entry);
        }
        written?;
        // If this fails, the entry is held, but its name also stays in the list of lost entries.
        let _ = self.forget(name);
        Ok(())
    }

    /// Removes an entry's files.
    ///
    /// # Errors
    /// Returns the kernel's error. Some of the files may have been removed.
    pub fn withdraw(&self, entry: &PersistentEntry) -> Result<()> {
        files_of(entry).iter().map(|file| self.directory.path.join(file)).try_for_each(|path| {
            gone(fs::remove_file(&path)).map_err(|error| doing("removing", &path, error))
        })
    }

    /// Publishes an entry under another name.
    ///
    /// # Errors
    /// Returns the kernel's error. In this case, the entry keeps its name.
    pub fn rename(&self, before: &PersistentEntry, after: &PersistentEntry) -> Result<()> {
        if let Err(error) = self.publish(after) {
            return Err(self.publish(before).err().unwrap_or(error));
        }
        let is_event = |file: &String| file.starts_with("events/");
        for file in files_of(before).iter().filter(|file| is_event(file)) {
            let _ = fs::remove_file(self.directory.path.join(file));
        }
        Ok(())
    }

    /// Reports these entries as lost.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn lose(&self, entries: &[PersistentEntry], now: i64, why: &str) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut lost = self.directory.lost()?;
        add_lost(&mut lost, entries.to_vec(), now, why);
        // In this order, an entry is published or lost at any time, even if this process is killed.
        self.write_lost(&lost)?;
        entries.iter().try_for_each(|entry| self.withdraw(entry))
    }

    /// Removes the lost entries with this name or id. Returns whether there were any.
    ///
    /// # Errors
    /// Fails if the file `lost` cannot be read or written.
    pub fn forget(&self, name: &str) -> Result<bool> {
        let lost = self.directory.lost()?;
        let rest: Vec<LostEntry> =
            lost.iter().filter(|lost| !is_called(&lost.entry, name)).cloned().collect();
        let found = rest.len() < lost.len();
        if found {
            self.write_lost(&rest)?;
        }
        Ok(found)
    }

    fn write_lost(&self, lost: &[LostEntry]) -> Result<()> {
        /// Maximum number of lost entries to keep. Without a limit, repeated kills could fill the disk.
        const MAX_LOST_ENTRIES: usize = 100;
        let lines = lost[lost.len().saturating_sub(MAX_LOST_ENTRIES)..]
            .iter()
            .filter_map(|lost| serde_json::to_string(lost).ok());
        self.write("lost", &lines.map(|line| line + "\n").collect::<String>())
    }

    /// Writes a file atomically.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.path.join(name);
        let temporary = self.directory.path.join(".new");
        let write = || -> io::Result<()> {
            // A killed holder may have left this file, which its owner may not write to.
            gone(fs::remove_file(&temporary))?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::Permissions::from_mode(0o444))?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            doing("writing", &path, error).try_this(match is_full {
                true => "free some space in its file system, or set PMC_PERSISTENT_DIR",
                false => "set PMC_PERSISTENT_DIR to another folder",
            })
        })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if !self.has_lock() {
            return;
        }
        for name in ["type", "format/persistent"] {
            let _ = fs::remove_file(self.directory.path.join(name));
        }
    }
}

/// The result of a removal, for which a missing file is no error.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// The subdirectories of a run directory.
const FOLDERS: [&str; 3] = ["events", "held", "format"];

/// Returns the files that publish an entry.
fn files_of(entry: &PersistentEntry) -> Vec<String> {
    let name = &entry.definition.name;
    let mut files = vec![format!("events/{name}"), format!("held/{}", entry.id)];
    if entry.unit.is_some() {
        files.extend([".scale", ".unit"].map(|what| format!("events/{name}{what}")));
    }
    files
}

/// Locks a run directory; `None` while another holder has the lock.
fn take_lock(directory: &RunDirectory) -> Result<Option<File>> {
    let path = directory.path.join("lock");
    let file = output_file::create(&path, 0o644, true).map_err(|error| doing("opening", &path, error))?;
    Ok(lock::take_for_description(&file, lock::LockKind::Write).is_ok().then_some(file))
}

fn doing(what: &str, path: &Path, error: io::Error) -> Error {
    Error::io(format!("{what} {}", path.display()), error)
}

/// Reads a published file; `None` if it does not exist or is invalid.
fn read(path: &Path) -> Result<Option<String>> {
    let mut text = Vec::new();
    let read = open_regular(path, false).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    match read {
        Ok(_) => Ok(String::from_utf8(text).ok()),
        Err(error) if is_missing_or_hidden(&error) => Ok(None),
        Err(error) => Err(doing("reading", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EntryDefinition, RingMode, SharingLevel};
    use super::*;

    fn entry(id: u64, name: &str) -> PersistentEntry {
        let definition = EntryDefinition {
            name: name.to_owned(),
            event: "page-faults".to_owned(),
            pages: None,
            mode: RingMode::Overwrite,
            cpus: None,
            pids: Vec::new(),
            call_graph: false,
            filter: None,
            counts_only: false,
            share: SharingLevel::Nothing,
        };
        let attr = vec!["0x1".to_owned()];
        let (ended, unit) = (None, None);
        PersistentEntry {
            id,
            definition,
            since: 7,
            ring_bytes: 4096,
            rings: 1,
            user_only: false,
            ended,
            unit,
            attr,
        }
    }

    #[test]
    fn entry_names_must_be_words_not_numbers() {
        for name in ["faults", "a.b-c_d", "_x1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "1", "7up", "-x", ".x", "a/b", "a,b", "a b", "persistent", "x.scale", "ü", "../x"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name(&"x".repeat(65)).is_err());
    }

    #[test]
    fn ids_are_never_reused_and_leftover_entries_are_lost() {
        let folder = tempfile::tempdir().unwrap();
        let claim = || Publisher::claim(RunDirectory::at(folder.path().join("run")), 1).unwrap();
        let mut first = claim().expect("nobody has it");
        assert!(claim().is_none(), "one holder at a time");
        for name in ["a", "b"] {
            let id = first.take_id().unwrap();
            first.publish(&entry(id, name)).unwrap();
        }
        let at = RunDirectory::at(folder.path().join("run"));
        assert_eq!(read(&at.path.join("events/b")).unwrap().as_deref(), Some("persistent,config=2\n"));
        first.withdraw(&entry(2, "b")).unwrap();
        drop(first);
        let mut second = claim().expect("the first has ended");
        let lost: Vec<(u64, String)> =
            at.lost().unwrap().into_iter().map(|lost| (lost.entry.id, lost.entry.definition.name)).collect();
        assert_eq!(lost, [(1, "a".to_owned())]);
        assert!(at.entries().unwrap().is_empty());
        assert_eq!(second.take_id().unwrap(), 3);
        // Publishing a name again removes it from the lost entries.
        second.publish(&entry(3, "a")).unwrap();
        assert!(at.lost().unwrap().is_empty());
        second.rename(&entry(3, "a"), &entry(3, "c")).unwrap();
        assert_eq!(
            ["c", "3", "a"].map(|word| at.entry(word).unwrap()),
            [Some(entry(3, "c")), Some(entry(3, "c")), None]
        );
        assert!(!at.path.join("events/a").exists());
    }

    #[test]
    fn holder_killed_while_it_writes_leaves_nothing_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let at = RunDirectory::at(folder.path().join("run"));
        let claim = || Publisher::claim(at.clone(), 1).unwrap().expect("it is free");
        let first = claim();
        first.publish(&entry(1, "a")).unwrap();
        // Killed after it has reported the entry as lost, and before it has removed the entry's files.
        first.lose(&[entry(1, "a")], 1, "a reason").unwrap();
        first.write("held/1", &serde_json::to_string(&entry(1, "a")).unwrap()).unwrap();
        drop(first);
        let lost =
            || at.lost().unwrap().into_iter().map(|lost| (lost.entry.id, lost.why)).collect::<Vec<_>>();
        assert_eq!(lost(), [(1, "a reason".to_owned())]);
        // Killed after it has created the temporary file. The hard link shows if the file is written to.
        let left = folder.path().join("left");
        fs::write(&left, "left").unwrap();
        fs::hard_link(&left, at.path.join(".new")).unwrap();
        let second = claim();
        assert_eq!(lost(), [(1, "a reason".to_owned())]);
        assert_eq!(fs::read_to_string(&left).unwrap(), "left");
        assert!(at.entries().unwrap().is_empty() && !at.path.join(".new").exists());
        // A file that cannot be removed is an error.
        fs::create_dir(at.path.join("held/2")).unwrap();
        assert!(second.withdraw(&entry(2, "b")).unwrap_err().to_string().contains("held/2"));
    }

    fn claimed(at: &RunDirectory, now: i64) -> Publisher {
        Publisher::claim(at.clone(), now).unwrap().expect("the directory is free")
    }

    #[test]
    fn restore_keeps_files_that_clients_may_be_reading() {
        let folder = tempfile::tempdir().unwrap();
        let at = RunDirectory::at(folder.path().join("run"));
        let mut publisher = claimed(&at, 1);
        let held = entry(1, "a");
        publisher.publish(&held).unwrap();
        let inode = || fs::metadata(at.path.join("held")).unwrap().ino();
        // While the file is open, its inode number is not reused.
        let _open = File::open(at.path.join("held")).unwrap();
        let before = inode();
        for removed in ["lock", "held/1", "type"] {
            fs::remove_file(at.path.join(removed)).unwrap();
            publisher.restore(&[&held], 1).unwrap();
            assert_eq!(inode(), before, "{removed}");
            assert_eq!(at.entries().unwrap(), std::slice::from_ref(&held), "{removed}");
            assert!(at.lost().unwrap().is_empty(), "{removed}");
        }
    }

    #[test]
    fn entries_of_another_holder_are_lost_when_the_first_one_returns() {
        let folder = tempfile::tempdir().unwrap();
        let at = RunDirectory::at(folder.path().join("run"));
        let mut first = claimed(&at, 1);
        let held = entry(1, "a");
        first.publish(&held).unwrap();
        fs::remove_dir_all(&at.path).unwrap();
        let mut second = claimed(&at, 2);
        for name in ["b", "c"] {
            second.publish(&entry(second.next_id, name)).unwrap();
            second.take_id().unwrap();
        }
        let error = first.restore(&[&held], 3).unwrap_err();
        assert!(error.to_string().contains("another holder"), "{error}");
        let names = |entries: Vec<PersistentEntry>| {
            entries.into_iter().map(|entry| entry.definition.name).collect::<Vec<_>>()
        };
        assert_eq!(names(at.entries().unwrap()), ["b", "c"]);
        // The second holder is killed.
        drop(second);
        first.restore(&[&held], 3).unwrap();
        assert_eq!(at.entries().unwrap(), [held]);
        let lost = at.lost().unwrap();
        assert!(lost.iter().all(|lost| lost.why == KILLED));
        assert_eq!(names(lost.into_iter().map(|lost| lost.entry).collect()), ["b", "c"]);
        assert_eq!(first.take_id().unwrap(), 3);
        let events: Vec<_> = fs::read_dir(at.path.join("events")).unwrap().collect();
        assert_eq!(events.len(), 1, "{events:?}");
        // The first holder is killed, too. Its entry has the id of a lost one.
        drop(first);
        assert_eq!(names(at.lost().unwrap().into_iter().map(|lost| lost.entry).collect()), ["b", "c", "a"]);
    }
}
