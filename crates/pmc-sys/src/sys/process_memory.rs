//! Reads the memory of another process.

/// Reads memory, starting at `address`, of the process that contains this thread. Returns the number of bytes
/// stored in `buffer`, which is less than the buffer's size if the memory ends earlier. Returns 0 if the
/// process has ended, has no memory there, or may not be read by this user.
pub fn read(tid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which is borrowed exclusively, and
    // only reads the other process's memory.
    let got = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_can_be_read() {
        let text = b"some text";
        let mut buffer = [0; 9];
        let tid = std::process::id() as i32;
        assert_eq!(read(tid, text.as_ptr() as u64, &mut buffer), 9);
        assert_eq!(&buffer, text);
        assert_eq!(read(tid, 8, &mut buffer), 0, "no memory");
        assert_eq!(read(0, text.as_ptr() as u64, &mut buffer), 0, "no process");
    }
}
