//! How the C library deals with memory that was given back to it.

/// Has large blocks (from 1 MiB) returned to the kernel as soon as they are freed, and few separate heaps:
/// for programs that run for long and must stay small. Smaller ones are used again: what the kernel takes
/// back it must clear when it gives it out the next time, and a program that draws once a second would have
/// that done for megabytes each time. Has no effect where the C library is not GNU's.
pub fn stay_small() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) only sets parameters; it is called before other threads are started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Returns what lies free between what is used, which the kernel does not see as free otherwise.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) touches nothing that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}
