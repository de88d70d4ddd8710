//! The header page of a perf event, which the kernel shares with user space. It shows whether the event is on
//! a counter, and the width of the counter.
//!
//! Maps the page of an open event read-only, and returns copies of its fields. Does not read ring buffers,
//! but can map one to check whether the kernel allows it.
//!
//! ```text
//! offset  0 version    8 lock (odd: the kernel is writing)    12 index (0: not on a counter)
//!        24 time_enabled   32 time_running   40 capabilities   48 pmc_width (bits)
//!        50 time_shift   52 time_mult   64 time_zero   80 time_cycles   88 time_mask
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

/// The mapped page.
#[derive(Debug)]
pub struct HeaderPage {
    start: NonNull<c_void>,
    bytes: usize,
}

/// A snapshot of the page's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderFields {
    /// Whether the event was on a hardware counter of the CPU that read the page.
    pub(crate) on_counter: bool,
    /// Whether user space may read the counter directly.
    pub(crate) user_readable: bool,
    /// Width of the counter in bits; 0 if unknown.
    pub width: u16,
}

/// Conversion from the CPU's clock to the kernel's; see [`HeaderPage::clock_conversion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's names; see perf_event_mmap_page in perf_event_open(2)")]
pub struct ClockConversion {
    pub shift: u16,
    pub mult: u32,
    pub zero: u64,
    pub cycles: u64,
    pub mask: u64,
    pub has_zero: bool,
    pub is_short: bool,
}

/// Maximum number of retries while the kernel is writing.
const PATIENCE: u32 = 1000;

impl HeaderPage {
    /// Maps only the page.
    ///
    /// # Errors
    /// Returns the kernel's error; `EINVAL` for inherited events that are not bound to a CPU.
    pub fn map(event: &EventFd) -> io::Result<Self> {
        Self::map_with_ring(event, 0)
    }

    /// Maps the page and a ring buffer of `pages` (a power of two) after it.
    ///
    /// # Errors
    /// Returns the kernel's error; `EPERM` if the mapping exceeds the limit on locked memory.
    pub fn map_with_ring(event: &EventFd, pages: usize) -> io::Result<Self> {
        let bytes = pages
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(page_size()))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // A ring buffer must be mapped writable, or else the kernel would overwrite unread data.
        let access = if pages == 0 { ProtFlags::READ } else { ProtFlags::READ | ProtFlags::WRITE };
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, event.as_fd(), 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Reads the state of the event's counter.
    pub fn read(&self) -> HeaderFields {
        self.together(|page| {
            // SAFETY: `together` passes a mapped page.
            let (capabilities, index, width) = unsafe {
                (
                    capabilities(page),
                    (&raw const (*page).index).read_volatile(),
                    (&raw const (*page).pmc_width).read_volatile(),
                )
            };
            HeaderFields { on_counter: index != 0, user_readable: capabilities >> 2 & 1 == 1, width }
        })
    }

    /// Returns the conversion from the CPU's clock to the kernel's: `time = zero + (clock * mult >> shift)`,
    /// where `clock` is a counter with the bits of `mask` that had the value `cycles`. `None` if the kernel
    /// does not provide it.
    pub fn clock_conversion(&self) -> Option<ClockConversion> {
        let conversion = self.together(|page| {
            // SAFETY: as in `read`.
            unsafe {
                let capabilities = capabilities(page);
                ClockConversion {
                    shift: (&raw const (*page).time_shift).read_volatile(),
                    mult: (&raw const (*page).time_mult).read_volatile(),
                    zero: (&raw const (*page).time_zero).read_volatile(),
                    cycles: (&raw const (*page).time_cycles).read_volatile(),
                    mask: (&raw const (*page).time_mask).read_volatile(),
                    has_zero: capabilities >> 4 & 1 == 1,
                    is_short: capabilities >> 5 & 1 == 1,
                }
            }
        });
        Some(conversion).filter(|conversion| conversion.has_zero)
    }

    /// Reads a consistent set of fields.
    fn together<T: Default>(&self, fields: impl Fn(*const perf_event_mmap_page) -> T) -> T {
        let page = self.start.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the mapping is at least one page, longer than the struct, and lives as long as `self`. The
        // kernel writes this word in a single access, so it can be read as an atomic.
        let lock = unsafe { AtomicU32::from_ptr(&raw mut (*page).lock) };
        let mut read = T::default();
        for _ in 0..PATIENCE {
            // ORDERING: pairs with the kernel's barriers in perf_event_update_userpage, which makes `lock`
            // odd, writes the fields, and makes `lock` even.
            let before = lock.load(Ordering::Acquire);
            // All reads are volatile, because the kernel may write at the same time. If it does, `lock` has
            // changed and the values are discarded.
            read = fields(page);
            fence(Ordering::Acquire);
            if before & 1 == 0 && lock.load(Ordering::Relaxed) == before {
                break;
            }
            std::hint::spin_loop();
        }
        read
    }
}

/// Reads the capability bits.
///
/// # Safety
/// The page must be mapped.
unsafe fn capabilities(page: *const perf_event_mmap_page) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { (&raw const (*page).__bindgen_anon_1).cast::<u64>().read_volatile() }
}

impl Drop for HeaderPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, its address is not shared, and no reference into it outlives a call.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Attr;
    use crate::abi::attr::{Flag, kind};
    use crate::kit::need;
    use crate::sys::perf::OpenTarget;

    #[test]
    fn layout_matches_the_kernel_header() {
        use std::mem::offset_of;
        assert_eq!(offset_of!(perf_event_mmap_page, lock), 8);
        assert_eq!(offset_of!(perf_event_mmap_page, index), 12);
        assert_eq!(offset_of!(perf_event_mmap_page, __bindgen_anon_1), 40);
        assert_eq!(offset_of!(perf_event_mmap_page, pmc_width), 48);
    }

    #[test]
    fn software_event_page_has_no_counter() {
        let mut attr = Attr::new(kind::SOFTWARE, 1);
        attr.set(Flag::ExcludeKernel, true);
        let event = EventFd::open(&attr, OpenTarget::Task(0), None);
        if !need("perf_events", event.is_ok(), "this user may not open events of own processes") {
            return;
        }
        let page = HeaderPage::map(&event.unwrap()).unwrap();
        let header = page.read();
        assert!(!header.user_readable && header.width == 0, "{header:?}");
    }
}
