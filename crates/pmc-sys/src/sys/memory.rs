//! Settings of the C library's allocator.

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
