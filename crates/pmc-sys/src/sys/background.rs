//! Leaving the terminal: fork, new session, no standard streams.
//!
//! Returns the side of the fork; the command decides what each side does.

use std::io;
use std::os::fd::AsRawFd;

/// Which side of a fork this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundSide {
    /// The original process.
    Parent,
    /// The new process.
    Child,
}

/// Forks. The child is a full copy and continues like its parent. The process must have only one thread:
/// locks of other threads would stay locked in the child.
///
/// # Errors
/// `EAGAIN` at the limit of processes, `ENOMEM`.
pub fn fork() -> io::Result<BackgroundSide> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1, "one thread");
    // SAFETY: with one thread the child's copy of memory is consistent, so it may go on in ordinary code.
    match unsafe { libc::fork() } {
        pid if pid < 0 => Err(io::Error::last_os_error()),
        0 => Ok(BackgroundSide::Child),
        _ => Ok(BackgroundSide::Parent),
    }
}

/// Leaves the terminal's session. Also leaves the current directory, so that it can be unmounted.
///
/// # Errors
/// When `setsid` or `chdir` fails.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    std::env::set_current_dir("/")
}

/// Redirects standard input, output and error to `/dev/null`, so that no reader waits for our end.
///
/// # Errors
/// The kernel's, if `/dev/null` cannot be opened or duplicated.
pub fn close_standard_streams() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..=2 {
        // SAFETY: both are descriptors; nothing of Rust owns the three standard ones.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes the kernel send SIGHUP to this process when its parent `parent` ends. Returns `false` if the parent
/// has already ended.
///
/// # Errors
/// The kernel's answer to `prctl`.
pub fn hang_up_with(parent: u32) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::HUP))?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    Ok(now == parent)
}
