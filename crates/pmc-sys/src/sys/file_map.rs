//! Maps a file's bytes as read-only memory.
//!
//! **Files are mapped, and pmc survives a file that shrinks.** Any user can truncate their own library while
//! pmc reads it as root, and a rebuild truncates the user's own files. Reading the lost pages then causes a
//! SIGBUS, which kills a process that does not handle it. Copying with `pread` would avoid the signal, but a
//! browser's debug file can be several gigabytes long, of which a report reads only megabytes. Deciding for
//! each file whether to map or to copy it would require a correct check of owners, modes, links and
//! namespaces. Therefore, all files are treated the same: the handler below replaces lost pages with zeros,
//! and the map records that it [was cut](FileMap::is_cut), so that the reader can report why names are
//! missing.
//!
//! ```text
//!   file      |........|  cut here
//!   map       |........|????????|      ? read: SIGBUS
//!   after     |........|00000000|      from that page to the end, in one call
//! ```
//! All maps are in one list, which the handler walks without a lock. A SIGBUS at any other address (a ring
//! buffer, faulty memory) is passed to the previous handler.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use memmap2::Mmap;

use super::regular_file::open_regular;
use super::{memory, page_size};

/// Maximum size of a file that consists mostly of holes, which cost their owner no disk space.
const LARGEST_SPARSE: u64 = 1 << 30;
/// A file is sparse if its size is more than this many times its space on disk. File systems with compression
/// reach lower ratios.
const SPARSE: u64 = 64;

/// The bytes of a regular file. An empty file is an empty slice.
#[derive(Debug, Default)]
pub struct FileMap(Option<GuardedMap>);

#[derive(Debug)]
struct GuardedMap {
    map: Mmap,
    slot: &'static MapSlot,
}

impl FileMap {
    /// Maps the regular file at `path`.
    ///
    /// # Errors
    /// Returns the errors of [`open_regular`] and `mmap(2)`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(&open_regular(path, true)?)
    }

    /// Maps an open file.
    ///
    /// # Errors
    /// Returns the errors of `mmap(2)`; `ENOMEM` also if a limit would leave no room. Fails for a large file
    /// that consists mostly of holes, because reading terabytes of zeros would take hours.
    pub fn new(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        if about.len() == 0 {
            return Ok(Self(None));
        }
        if about.len() > LARGEST_SPARSE.max((about.blocks() * 512).saturating_mul(SPARSE)) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file consists mostly of holes"));
        }
        if !memory::has_room(about.len()) {
            return Err(rustix::io::Errno::NOMEM.into());
        }
        install_handler();
        // SAFETY: a private read-only mapping. Another process may change the file at any time, so every
        // parser checks each value when it uses it, and holds no reference whose validity depends on the
        // content (no unchecked `str`, no enum). Truncated pages read as zeros.
        let map = unsafe { Mmap::map(file)? };
        let start = map.as_ptr().addr();
        let end = (start + map.len()).next_multiple_of(page_size());
        Ok(Self(Some(GuardedMap { slot: MapSlot::take(start..end), map })))
    }

    /// Lets the kernel free the pages. The next access reads them from the file again.
    pub fn release(&self) {
        if let Some(GuardedMap { map, .. }) = &self.0 {
            let start = map.as_ptr().cast_mut().cast();
            // SAFETY: the whole mapping is ours, and read-only. Pages that were never written to are read
            // from the file again, so references into the mapping stay valid.
            let _ = unsafe { rustix::mm::madvise(start, map.len(), rustix::mm::Advice::LinuxDontNeed) };
        }
    }

    /// Whether any page was replaced with zeros because it no longer existed in the file, or could not be
    /// read from disk.
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
    /// Removes the map from the list before its memory is unmapped.
    fn drop(&mut self) {
        self.slot.give_back();
    }
}

/// The address range of one map. Slots are reused but never freed, so that the handler can walk them at any
/// time.
#[derive(Debug)]
struct MapSlot {
    /// Odd while `start` and `end` are being changed.
    version: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
    next: AtomicPtr<MapSlot>,
}

static SLOTS: AtomicPtr<MapSlot> = AtomicPtr::new(ptr::null_mut());
/// Slots without a map. This lock must be held while a slot or the list is changed.
static FREE: Mutex<Vec<&'static MapSlot>> = Mutex::new(Vec::new());

impl MapSlot {
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

    /// Must be called with the lock held.
    fn set(&self, range: Range<usize>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // ORDERING: a sequence lock. A reader that sees a new bound also sees an odd or newer version.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// Returns the bounds, or `None` while they are changing, in which case the slot does not belong to the
    /// map being read.
    fn range(&self) -> Option<Range<usize>> {
        let version = self.version.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        // ORDERING: the bounds are read before the version is read again.
        fence(Ordering::Acquire);
        (version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version).then_some(range)
    }
}

/// The previous SIGBUS handler.
static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        page_size();
        // SAFETY: both structures are plain old data, for which zero is a valid value, and outlive the
        // calls. The handler uses only async-signal-safe functions.
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

/// Replaces lost pages of a map with zeros. When the handler returns, the read is repeated.
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`; `errno` is this thread's own.
    let (code, address, errno) =
        unsafe { ((*info).si_code, (*info).si_addr().addr(), *libc::__errno_location()) };
    let is_filled = code == libc::BUS_ADRERR && fill(address);
    // SAFETY: as above. The previous action was set once, before this handler was installed.
    unsafe {
        *libc::__errno_location() = errno;
        if !is_filled && let Some(former) = FORMER.get() {
            // The read is repeated, and then the previous handler receives the signal.
            libc::sigaction(libc::SIGBUS, former, ptr::null_mut());
        }
    }
}

/// Replaces the page at `address` and all later pages of its map with zeros. Returns whether a map contains
/// the address.
fn fill(address: usize) -> bool {
    // ORDERING: pairs with the store in `MapSlot::take`.
    let mut next = SLOTS.load(Ordering::Acquire);
    // SAFETY: slots are leaked, so each pointer in the list stays valid.
    while let Some(slot) = unsafe { next.as_ref() } {
        if let Some(range) = slot.range().filter(|range| range.contains(&address)) {
            let from = address - address % page_size();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            // SAFETY: the pages belong to one of our maps, which is alive because it is being read. They stay
            // mapped and readable. The bytes after the cut change, but any byte of the file may change at any
            // time. All pages after a lost page are lost too. The plain call is async-signal-safe.
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
    fn truncated_pages_read_as_zeros() {
        let page = page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 10 * page + 1]).unwrap();
        let other = FileMap::new(&file).unwrap();
        drop(other);
        let map = FileMap::new(&file).unwrap();
        file.set_len(page as u64 * 2 + 5).unwrap();
        assert_eq!((map[page], map.is_cut()), (7, false));
        let back_to_front = (0..=10).rev().map(|number| map[number * page]);
        assert_eq!(back_to_front.collect::<Vec<u8>>(), [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7]);
        assert!(map.is_cut());
        file.set_len(0).unwrap();
        map.release();
        assert!(map.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn huge_file_of_holes_is_rejected() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LARGEST_SPARSE).unwrap();
        assert_eq!(FileMap::new(&file).unwrap().len() as u64, LARGEST_SPARSE);
        file.set_len(LARGEST_SPARSE + 1).unwrap();
        let error = FileMap::new(&file).unwrap_err();
        assert_eq!(error.to_string(), "the file consists mostly of holes");
    }

    /// Runs readers in several threads while other threads map and unmap files and the file shrinks and
    /// grows.
    #[test]
    fn threads_survive_a_file_that_shrinks_and_grows() {
        let page = page_size();
        let file = tempfile::tempfile().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = || {
                for _ in 0..200 {
                    file.set_len(40 * page as u64).unwrap();
                    let map = FileMap::new(&file).unwrap();
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
