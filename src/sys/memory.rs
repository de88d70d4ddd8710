//! How the C library deals with memory that was given back to it.

/// Has large blocks (from 1 MiB) returned to the kernel as soon as they are freed, and few separate heaps: for programs that
/// run for long and must stay small. Smaller ones are used again: what the kernel takes back it must clear when it gives it
/// out the next time, and a program that draws once a second would have that done for megabytes each time. Has no effect where the C library is not GNU's.
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

/// Has the pages of our own code that are not in use go: much of it ran at the start only. What runs again is mapped again,
/// out of the page cache.
pub fn give_back_code() {
    let here = give_back_code as *const () as usize;
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let code = maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        // Never written to, not even by the loader.
        (words.next()? == "r-xp" && (start..end).contains(&here)).then_some((start, end))
    });
    if let Some((start, end)) = code {
        let place = std::ptr::without_provenance_mut(start);
        // SAFETY: the mapping is private, of our program's file, and can be read and run but not written: its pages are the
        // file's, and come back as they were, for threads too that are running in them.
        let _ = unsafe { rustix::mm::madvise(place, end - start, rustix::mm::Advice::LinuxDontNeed) };
    }
}
