//! A file's bytes as read-only memory.
//!
//! Only regular files are opened, and without waiting: a path from a recording may lead to a FIFO or a
//! device, whose `open` would block for ever.
//!
//! **Files are mapped, and a file that shrinks is survived.** Any user can shorten his own library while
//! root's pmc reads it, and a rebuild shortens one's own. The kernel then answers a read of the lost pages
//! with SIGBUS, which ends a process that does not handle it. Reading copies with `pread` would avoid the
//! signal, but a browser's debug file has gigabytes of which a report touches megabytes, and the choice
//! "map this one, copy that one" would have to be right about owners, modes, links and namespaces each
//! time. So one rule covers all files: the handler below puts zeros in the place of the lost pages, and the
//! map remembers that it [was cut](FileMap::is_cut), so that the reader can say why names are missing.
//!
//! ```text
//!   file      |........|  cut here
//!   map       |........|????????|      ? read: SIGBUS
//!   after     |........|00000000|      from that page to the end, in one call
//! ```
//! Every map is in one list, which the handler walks without a lock. A SIGBUS at any other address (a ring, a
//! broken memory module) goes to the handler that was there before ours.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use memmap2::Mmap;

use super::page_size;

/// The bytes of a regular file. Empty files are empty slices.
#[derive(Debug, Default)]
pub struct FileMap(Option<GuardedMap>);

#[derive(Debug)]
struct GuardedMap {
    map: Mmap,
    slot: &'static Slot,
}

/// Opens a regular file for reading; never blocks, never becomes anybody's terminal.
///
/// # Errors
/// What `open(2)` says; `EINVAL` when it is not a regular file.
pub fn open_regular(path: &Path, follow_links: bool) -> io::Result<File> {
    let mut flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    if !follow_links {
        flags |= libc::O_NOFOLLOW;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
}

impl FileMap {
    /// Maps the regular file at `path`.
    ///
    /// # Errors
    /// As [`open_regular`], and what `mmap(2)` says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(&open_regular(path, true)?)
    }

    /// Maps an open file.
    ///
    /// # Errors
    /// What `mmap(2)` says.
    pub fn of(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        install_handler();
        // SAFETY: a private read-only mapping. Another process may change the file below us: every parser of
        // these bytes checks each value when it uses it and holds no reference whose validity rests on the
        // content (no `str` made without checking, no enum). Pages that are cut off read as zeros.
        let map = unsafe { Mmap::map(file)? };
        let start = map.as_ptr().addr();
        let end = (start + map.len()).next_multiple_of(page_size());
        Ok(Self(Some(GuardedMap { slot: Slot::take(start..end), map })))
    }

    /// Gives the pages back to the kernel, which reads them again when they are looked at.
    pub fn release(&self) {
        if let Some(GuardedMap { map, .. }) = &self.0 {
            let start = map.as_ptr().cast_mut().cast();
            // SAFETY: the mapping is ours, whole and read-only; pages of a file that were never written to
            // come back with the file's bytes, so references into it stay valid.
            let _ = unsafe { rustix::mm::madvise(start, map.len(), rustix::mm::Advice::LinuxDontNeed) };
        }
    }

    /// Whether a read has met pages that the file no longer has (or that the disk could not read), so that
    /// zeros stood in for them.
    pub fn is_cut(&self) -> bool {
        self.0.as_ref().is_some_and(|map| map.slot.is_cut.load(Ordering::Relaxed))
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map(|map| &*map.map).unwrap_or_default()
    }
}

impl Drop for GuardedMap {
    /// Leaves the list before the memory goes.
    fn drop(&mut self) {
        self.slot.give_back();
    }
}

/// Where one map lies. Slots are never freed, only used again, so the handler can walk them at any moment.
#[derive(Debug)]
struct Slot {
    /// Odd while `start` and `end` change.
    version: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
    next: AtomicPtr<Slot>,
}

static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
/// Slots without a map. Whoever changes a slot or the list holds this lock.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

impl Slot {
    fn take(range: Range<usize>) -> &'static Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = free.pop() {
            slot.is_cut.store(false, Ordering::Relaxed);
            slot.set(range);
            return slot;
        }
        let slot = Box::leak(Box::new(Self {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(range.start),
            end: AtomicUsize::new(range.end),
            is_cut: AtomicBool::new(false),
            next: AtomicPtr::new(SLOTS.load(Ordering::Relaxed)),
        }));
        // ORDERING: the handler sees the slot's fields once it sees the slot.
        SLOTS.store(slot, Ordering::Release);
        slot
    }

    fn give_back(&'static self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        self.set(0..0);
        free.push(self);
    }

    /// To be called with the lock held.
    fn set(&self, range: Range<usize>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // ORDERING: a sequence lock. Who sees a new bound sees an odd or newer version, too.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// The bounds, unless they are changing: then they are another map's than the one that is being read.
    fn range(&self) -> Option<Range<usize>> {
        let version = self.version.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        // ORDERING: the bounds are read before the version is read again.
        fence(Ordering::Acquire);
        (version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version).then_some(range)
    }
}

/// What handled SIGBUS before.
static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        page_size();
        // SAFETY: both structures are plain old data for which zero is a value, and live through the calls.
        // The handler needs only what is async-signal-safe.
        unsafe {
            let mut former: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut former);
            let _ = FORMER.set(former);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

/// Puts zeros where a map has lost its pages. Returning repeats the read.
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid `info`; `errno` is this thread's own.
    let (code, address, errno) =
        unsafe { ((*info).si_code, (*info).si_addr().addr(), *libc::__errno_location()) };
    let is_filled = code == libc::BUS_ADRERR && fill(address);
    // SAFETY: as above. The former action is set once, before this handler is installed.
    unsafe {
        *libc::__errno_location() = errno;
        if !is_filled && let Some(former) = FORMER.get() {
            // The read repeats, and what handled SIGBUS before handles it.
            libc::sigaction(libc::SIGBUS, former, ptr::null_mut());
        }
    }
}

/// Replaces the page at `address` and those behind it in its map; whether it lies in one.
fn fill(address: usize) -> bool {
    // ORDERING: pairs with the store in `Slot::take`.
    let mut next = SLOTS.load(Ordering::Acquire);
    // SAFETY: slots are leaked, so each pointer in the list stays valid.
    while let Some(slot) = unsafe { next.as_ref() } {
        if let Some(range) = slot.range().filter(|range| range.contains(&address)) {
            let from = address - address % page_size();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            // SAFETY: the pages belong to a map of ours that somebody is reading, hence alive. They stay
            // mapped and readable; the bytes behind the cut change as any byte of the file may. Every page
            // behind a lost page is lost, too. The plain call is async-signal-safe.
            let at = unsafe {
                libc::syscall(libc::SYS_mmap, from, range.end - from, libc::PROT_READ, flags, -1, 0)
            };
            slot.is_cut.store(true, Ordering::Relaxed);
            return at == from as libc::c_long;
        }
        next = slot.next.load(Ordering::Relaxed);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn pages_that_a_file_has_lost_read_as_zeros() {
        let page = page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 10 * page + 1]).unwrap();
        let other = FileMap::of(&file).unwrap();
        drop(other);
        let map = FileMap::of(&file).unwrap();
        file.set_len(page as u64 * 2 + 5).unwrap();
        assert_eq!((map[page], map.is_cut()), (7, false));
        let back_to_front = (0..=10).rev().map(|number| map[number * page]);
        assert_eq!(back_to_front.collect::<Vec<u8>>(), [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7]);
        assert!(map.is_cut());
        file.set_len(0).unwrap();
        map.release();
        assert!(map.iter().all(|byte| *byte == 0));
    }

    /// Readers in several threads, while others map and unmap and the file shrinks and grows.
    #[test]
    fn threads_survive_a_file_that_shrinks_and_grows() {
        let page = page_size();
        let file = tempfile::tempfile().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = || {
                for _ in 0..200 {
                    file.set_len(40 * page as u64).unwrap();
                    let map = FileMap::of(&file).unwrap();
                    assert!(map.iter().step_by(page / 2).all(|byte| *byte == 0));
                }
            };
            let readers: Vec<_> = (0..3).map(|_| scope.spawn(reader)).collect();
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    file.set_len(1).unwrap();
                }
            });
            for reader in readers {
                reader.join().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
