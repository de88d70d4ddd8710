//! Record locks on the first byte of a file: `fcntl(2)` `F_SETLK`, `F_OFD_SETLK` and `F_GETLK`.
//!
//! Takes a lock on an open file, or finds out who holds it. Never blocks. `counter` defines the meaning of
//! the lock.
//!
//! A lock belongs to a process or to an open file description. The kernel keeps both kinds of lock in one
//! list. They differ as follows:
//!
//! ```text
//! kind    owner                  F_GETLK says      released by
//! POSIX   the process            its pid           unlock; close of ANY descriptor of that file; death
//! OFD     the open description   -1 (unknown)      unlock; close of the last copy of that descriptor
//! ```
//! A forked child does not inherit a POSIX lock. After `execve(2)`, the process keeps the lock until it
//! closes any descriptor of the file. An OFD lock follows the descriptor. Source: `fcntl_locking(2)`.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The holder of a conflicting lock, from `F_GETLK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOwner {
    /// A process, by its id in our pid namespace.
    Process(u32),
    /// Unknown: an OFD lock, or a process in another pid namespace.
    Unknown,
}

/// The two types of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Shared (`F_RDLCK`).
    Read,
    /// Exclusive (`F_WRLCK`); requires a file opened for writing.
    Write,
}

/// Takes a POSIX lock on byte 0, owned by this process.
///
/// # Errors
/// Returns `EAGAIN` or `EACCES` if another process holds a conflicting lock; `EBADF` for a write lock on a
/// file opened for reading.
pub fn take(file: &File, kind: LockKind) -> io::Result<()> {
    set(file, libc::F_SETLK, raw(kind))
}

/// Takes an OFD lock on byte 0, owned by the open file description.
///
/// # Errors
/// Fails in the same cases as [`take`], and if this process itself holds a POSIX lock.
pub fn take_for_description(file: &File, kind: LockKind) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, raw(kind))
}

/// Releases this process's POSIX lock on byte 0, if it holds one.
///
/// # Errors
/// Returns the kernel's error from `fcntl`.
pub fn release(file: &File) -> io::Result<()> {
    set(file, libc::F_SETLK, libc::F_UNLCK)
}

/// Returns the holder of a lock that conflicts with a POSIX lock of this kind on byte 0, without taking a
/// lock. For both kinds, a file opened for reading is sufficient. POSIX locks of this process never conflict.
///
/// # Errors
/// Returns the kernel's error, such as `ENOLCK` on a network file system without a lock service.
pub fn conflicting_owner(file: &File, kind: LockKind) -> io::Result<Option<LockOwner>> {
    let mut request = first_byte(raw(kind));
    call(file, libc::F_GETLK, &mut request)?;
    if c_int::from(request.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    Ok(Some(match u32::try_from(request.l_pid) {
        Ok(0) | Err(_) => LockOwner::Unknown,
        Ok(pid) => LockOwner::Process(pid),
    }))
}

fn raw(kind: LockKind) -> c_int {
    match kind {
        LockKind::Read => libc::F_RDLCK,
        LockKind::Write => libc::F_WRLCK,
    }
}

fn first_byte(l_type: c_int) -> libc::flock {
    // SAFETY: `struct flock` consists of integers, for which zero is a valid value; `F_OFD_SETLK` requires
    // `l_pid` 0.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = l_type as _;
    request.l_whence = libc::SEEK_SET as _;
    request.l_start = 0;
    request.l_len = 1;
    request
}

fn set(file: &File, command: c_int, l_type: c_int) -> io::Result<()> {
    call(file, command, &mut first_byte(l_type))
}

fn call(file: &File, command: c_int, request: &mut libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open as long as `file` lives; `request` is the struct that these
        // commands read and write.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *request) } >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_posix_locks_never_conflict_but_ofd_locks_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ours = file.as_file();
        take(ours, LockKind::Write).unwrap();
        assert_eq!(conflicting_owner(ours, LockKind::Write).unwrap(), None);
        release(ours).unwrap();

        let other = File::open(file.path()).unwrap();
        take_for_description(&other, LockKind::Read).unwrap();
        assert_eq!(conflicting_owner(ours, LockKind::Write).unwrap(), Some(LockOwner::Unknown));
        assert_eq!(conflicting_owner(ours, LockKind::Read).unwrap(), None, "read locks share");
        assert_eq!(take(ours, LockKind::Write).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn write_lock_requires_a_writable_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let readable = File::open(file.path()).unwrap();
        assert_eq!(take(&readable, LockKind::Write).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(conflicting_owner(&readable, LockKind::Write).unwrap(), None);
    }
}
