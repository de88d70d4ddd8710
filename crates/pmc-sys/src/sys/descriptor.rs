//! Inherited descriptors: those given by number on the command line, and the standard streams, which may be
//! closed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::fcntl_dupfd_cloexec;

/// `O_NONBLOCK`, for `OpenOptionsExt::custom_flags`.
pub const NONBLOCK: i32 = libc::O_NONBLOCK;

/// Returns a path that leads to what the descriptor refers to, even if it has no name. Valid in this process.
pub fn path_of(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}

/// Duplicates an open descriptor, given by its number.
///
/// # Errors
/// Returns `EBADF` if it is not open.
pub fn duplicate(number: i32) -> io::Result<File> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: borrowed for this call only, which fails with EBADF if the number is not open.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(File::from(fcntl_dupfd_cloexec(theirs, 3)?))
}

/// Returns the number of sockets that the service manager passed, starting at descriptor 3
/// (sd_listen_fds(3)): `LISTEN_FDS`, if `LISTEN_PID` is this process.
pub fn handed_over() -> u32 {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let is_ours = number("LISTEN_PID") == Some(std::process::id());
    number("LISTEN_FDS").filter(|_| is_ours).unwrap_or(0)
}

/// Makes reads return immediately if there is no data.
///
/// # Errors
/// Returns the kernel's error from `fcntl`.
pub fn set_nonblocking(file: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

/// Makes reads and writes block, as they do by default.
///
/// # Errors
/// Returns the kernel's error from `fcntl`.
pub(crate) fn set_blocking(file: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// Whether standard output was closed when the process started. In this case, Rust's runtime opens
/// `/dev/null` in its place, where output would vanish without an error.
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// Replaces a closed standard output with a descriptor on which every write fails with `ENOTCONN`, an error
/// that never occurs for files. (Rust's runtime would treat `EBADF` as success.)
pub fn refuse_closed_stdout() {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let refusing = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    if stdout_was_closed()
        && let Ok(socket) = refusing()
    {
        // If this fails, output is lost as before.
        let _ = rustix::stdio::dup2_stdout(socket);
    }
}

static STDOUT_CLOSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "C" fn note_whether_stdout_is_closed() {
    // SAFETY: a query that accesses no memory.
    let closed = unsafe { libc::fcntl(1, libc::F_GETFD) } < 0;
    STDOUT_CLOSED.store(closed, std::sync::atomic::Ordering::Relaxed);
}

/// The loader runs this before `main`, and so before Rust's runtime reopens closed descriptors.
// SAFETY: the section holds pointers to functions that need no arguments; this one accesses only its own
// static.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_whether_stdout_is_closed;
