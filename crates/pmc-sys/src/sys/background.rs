//! Detaches from the terminal: fork, new session, no standard streams.
//!
//! [`fork`] tells each process which side of the fork it is. The command decides what each side does.

use std::io;
use std::os::fd::AsRawFd;

/// The side of a fork on which this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundSide {
    /// The original process.
    Parent,
    /// The new process.
    Child,
}

/// Forks. The child is a full copy of this process, and this function returns in both. The process must have
/// only one thread, because locks held by other threads would stay locked in the child.
///
/// # Errors
/// Returns `EAGAIN` if the limit on processes is reached, or `ENOMEM`.
pub fn fork() -> io::Result<BackgroundSide> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1, "one thread");
    // SAFETY: with one thread, the child's copy of memory is consistent, so the child may run any code.
    match unsafe { libc::fork() } {
        pid if pid < 0 => Err(io::Error::last_os_error()),
        0 => Ok(BackgroundSide::Child),
        _ => Ok(BackgroundSide::Parent),
    }
}

/// Leaves the terminal's session. Also leaves the current directory, so that its file system can be
/// unmounted.
///
/// # Errors
/// Fails if `setsid` or `chdir` fails.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    std::env::set_current_dir("/")
}

/// Redirects standard input, output and error to `/dev/null`, so that no program waits for this process to
/// close them.
///
/// # Errors
/// Returns the kernel's error, if `/dev/null` cannot be opened or duplicated.
pub fn close_standard_streams() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..=2 {
        // SAFETY: both are descriptors; no Rust object owns the three standard ones.
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
/// Returns the kernel's error from `prctl`.
pub fn signal_at_end_of(parent: u32) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::HUP))?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    Ok(now == parent)
}
