//! Settings of the C library's allocator, and what happens if a limit leaves no memory.
//!
//! A limit of the address space (`ulimit -v`) also counts files that are mapped. Other users decide how large
//! their programs are, so pmc maps a file, and builds tables from it, only if there [is room](has_room).
//! Everything else that pmc allocates is small. If even that fails, [`LimitedAllocator`] ends pmc with a
//! message.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

use rustix::process::Resource;

use super::limits::limit;
use super::page_size;

/// Address space to leave for pmc's own work.
const OWN_WORK: u64 = 12 << 20;

/// Returns the limit of the address space in bytes, if there is one.
pub fn address_space_limit() -> Option<u64> {
    limit(Resource::As).ok()?.current
}

/// Whether a block of this size, which other users decide, leaves room for pmc's own work.
pub fn has_room(bytes: u64) -> bool {
    let Some(limit) = address_space_limit() else { return true };
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(page_size() as u64).saturating_add(bytes).saturating_add(OWN_WORK) <= limit
}

/// Lets all threads share one heap if the address space is limited, because each further heap reserves 64 MiB
/// of it. Must be called before other threads are started.
pub fn fit_limit() {
    #[cfg(target_env = "gnu")]
    if address_space_limit().is_some() {
        // SAFETY: mallopt(3) only sets a parameter; it is called before other threads are started.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// The system's allocator. Rust aborts if there is no memory; if this is due to a limit of the address space,
/// this allocator ends the program with status 1 and a message that names the limit. A recording stays
/// readable, because its file is complete up to the last records that were written.
#[derive(Debug)]
pub struct LimitedAllocator;

// SAFETY: passes each call to the system's allocator.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of `alloc`.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of `alloc_zeroed`.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the rules of `realloc`.
        checked(unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the rules of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

fn checked(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        end_if_limited();
    }
    block
}

#[cold]
fn end_if_limited() {
    let Some(limit) = address_space_limit() else { return };
    // No memory can be allocated here.
    let mut buffer = [0; 256];
    let mut rest = &mut buffer[..];
    let _ = writeln!(
        rest,
        "pmc: out of memory\n  why: the address space is limited to {} KiB (ulimit -v)\n  try: a higher limit",
        limit >> 10
    );
    let unused = rest.len();
    let text = &buffer[..buffer.len() - unused];
    // SAFETY: writes from a live buffer, and ends the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::_exit(1)
    }
}

/// Makes the allocator return large blocks (at least 1 MiB) to the kernel as soon as they are freed, and
/// limits the number of heaps. Meant for long-running programs that must stay small. Smaller blocks are
/// reused, because the kernel clears memory before handing it out again. Otherwise, a program that redraws
/// every second would pay for clearing megabytes each time. Has no effect with C libraries other than glibc.
pub fn stay_small() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) only sets parameters; it is called before other threads are started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Returns unused memory between allocated blocks to the kernel.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) does not touch allocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}
