//! Leaving the terminal: fork, new session, no standard streams.
//!
//! Receives nothing; hands on which side of the fork we are on. What each side does is the command's
//! decision.

use std::io;
use std::os::fd::AsRawFd;

/// Which side of a fork this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The process that there was before.
    Parent,
    /// The new one.
    Child,
}

/// Forks. The child is a full copy that goes on like its parent, so the process must have one thread only:
/// another's locks would stay locked in the child.
///
/// # Errors
/// `EAGAIN` at the limit of processes, `ENOMEM`.
pub fn fork() -> io::Result<Side> {
    debug_assert_eq!(std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count), 1, "one thread");
    // SAFETY: with one thread the child's copy of memory is consistent, so it may go on in ordinary code.
    match unsafe { libc::fork() } {
        pid if pid < 0 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        _ => Ok(Side::Parent),
    }
}

/// Leaves the session of the terminal and the current directory, which could not be unmounted otherwise.
///
/// # Errors
/// What the kernel said.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    std::env::set_current_dir("/")
}

/// Puts standard input, output and error on `/dev/null`, so that nobody waits for the end of ours.
///
/// # Errors
/// What the kernel said: `/dev/null` cannot be opened, or not put in a stream's place.
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

/// Has the kernel send SIGHUP to this process when its parent `parent` ends; `false` when it has ended
/// already.
///
/// # Errors
/// What the kernel said to `prctl`.
pub fn hang_up_with(parent: u32) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::HUP))?;
    let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    Ok(now == parent)
}
