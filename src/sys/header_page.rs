//! The page that the kernel shares beside each perf event: whether the event is on a counter now, and how
//! wide that is.
//!
//! Receives an open event; hands on plain copies of the page's fields. Maps read-only; rings are not its
//! business, but it can map one to find out whether the kernel would allow it.
//!
//! ```text
//! offset  0 version    8 lock (odd: the kernel is writing)    12 index (0: not on a counter)
//!        24 time_enabled   32 time_running   40 capabilities   48 pmc_width (bits)
//! ```
//! Source: `struct perf_event_mmap_page` in `include/uapi/linux/perf_event.h`.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::page_size;
use super::perf::EventFd;

/// The page, mapped as long as this lives.
#[derive(Debug)]
pub struct HeaderPage {
    start: NonNull<c_void>,
    bytes: usize,
}

/// What it said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The event is on a hardware counter of the CPU it was read on.
    pub on_counter: bool,
    /// User space may read the counter itself.
    pub user_readable: bool,
    /// Bits of the counter; 0 where the kernel does not say.
    pub width: u16,
}

/// Times that a reader tries again while the kernel is writing.
const PATIENCE: u32 = 1000;

impl HeaderPage {
    /// Maps the page alone.
    ///
    /// # Errors
    /// The kernel's: events that are inherited on any CPU cannot be mapped (`EINVAL`).
    pub fn map(event: &EventFd) -> io::Result<Self> {
        Self::map_with_ring(event, 0)
    }

    /// Maps the page with a ring of `pages` (a power of two) behind it.
    ///
    /// # Errors
    /// The kernel's: `EPERM` means that it is more locked memory than is allowed.
    pub fn map_with_ring(event: &EventFd, pages: usize) -> io::Result<Self> {
        let bytes = pages
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(page_size()))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // With a ring the kernel wants write access, or it would overwrite what was not read.
        let access = if pages == 0 { ProtFlags::READ } else { ProtFlags::READ | ProtFlags::WRITE };
        // SAFETY: the kernel chooses the place, so nothing that exists is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, event.as_fd(), 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Bytes that are mapped.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Reads the fields so that they belong together.
    pub fn read(&self) -> Header {
        let page = self.start.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the mapping is at least a page, longer than the struct, and lives as long as `self`; the
        // kernel only ever writes this word whole, so an atomic may look at it.
        let lock = unsafe { AtomicU32::from_ptr(&raw mut (*page).lock) };
        let mut header = Header::default();
        for _ in 0..PATIENCE {
            // ORDERING: pairs with the kernel's barriers in perf_event_update_userpage: it makes `lock` odd,
            // writes, makes it even.
            let before = lock.load(Ordering::Acquire);
            // SAFETY: as above; volatile, since the kernel may write meanwhile: then `lock` has changed and
            // the values are dropped.
            header = unsafe {
                let capabilities = (&raw const (*page).__bindgen_anon_1).cast::<u64>().read_volatile();
                Header {
                    on_counter: (&raw const (*page).index).read_volatile() != 0,
                    user_readable: capabilities >> 2 & 1 == 1,
                    width: (&raw const (*page).pmc_width).read_volatile(),
                }
            };
            fence(Ordering::Acquire);
            if before & 1 == 0 && lock.load(Ordering::Relaxed) == before {
                break;
            }
            std::hint::spin_loop();
        }
        header
    }
}

impl Drop for HeaderPage {
    fn drop(&mut self) {
        // SAFETY: this is our mapping, nobody else has its address, and no reference into it outlives a call.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Attr;
    use crate::abi::attr::{Flag, kind};
    use crate::sys::perf::OpenTarget;

    #[test]
    fn fields_lie_where_the_header_has_them() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(perf_event_mmap_page, lock), 8);
        assert_eq!(offset_of!(perf_event_mmap_page, index), 12);
        assert_eq!(offset_of!(perf_event_mmap_page, __bindgen_anon_1), 40);
        assert_eq!(offset_of!(perf_event_mmap_page, pmc_width), 48);
    }

    #[test]
    fn a_software_event_has_a_page_without_counter() {
        let mut attr = Attr::new(kind::SOFTWARE, 1);
        attr.set(Flag::ExcludeKernel, true);
        let Ok(event) = EventFd::open(&attr, OpenTarget::Task(0), None) else { return };
        let page = HeaderPage::map(&event).unwrap();
        assert_eq!(page.bytes(), page_size() as u64);
        let header = page.read();
        assert!(!header.user_readable && header.width == 0, "{header:?}");
    }
}
