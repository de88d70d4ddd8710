//! Waits for descriptors (`ppoll`), for at most a stated number of failures.
//!
//! A signal may interrupt a wait, and the kernel may lack memory for it. Both pass, so the wait is repeated,
//! with a pause. If waiting never works, the caller would otherwise use a whole CPU for ever.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

/// Number of failed waits in a row after which a thread gives up.
pub const MOST_FAILED_WAITS: u32 = 500;
/// Pause after each of them, except the first.
const PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// Number of failed waits of this thread since its last successful one.
    static FAILED: Cell<u32> = const { Cell::new(0) };
}

/// Waits until a descriptor is ready, or until the time is over; `None`: without a limit. Returns the number
/// of descriptors that are ready, or 0 when the time is over.
///
/// # Errors
/// Returns the kernel's error. Returns an error that may pass (`EINTR`, `EAGAIN`, `ENOMEM`) only if it was
/// the result of [`MOST_FAILED_WAITS`] waits of this thread in a row, which takes about five seconds.
pub fn poll(fds: &mut [PollFd<'_>], time: Option<Duration>) -> Result<usize, Errno> {
    let until = time.and_then(|time| Instant::now().checked_add(time));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(fds, timeout.as_ref()) {
            Err(error) => failed(error)?,
            Ok(ready) => {
                FAILED.set(0);
                return Ok(ready);
            }
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(0);
        }
    }
}

/// Counts a failed wait, and pauses.
///
/// # Errors
/// Returns the error if it does not pass, or after [`MOST_FAILED_WAITS`] failed waits in a row.
pub fn failed(error: Errno) -> Result<(), Errno> {
    if count(error)? > 1 {
        sleep(PAUSE);
    }
    Ok(())
}

/// Counts a failed wait. Returns the number of failed waits in a row.
fn count(error: Errno) -> Result<u32, Errno> {
    let failed = FAILED.get() + 1;
    if !matches!(error, Errno::INTR | Errno::AGAIN | Errno::NOMEM) || failed > MOST_FAILED_WAITS {
        return Err(error);
    }
    FAILED.set(failed);
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_end() {
        for failed in 1..=MOST_FAILED_WAITS {
            assert_eq!(count(Errno::NOMEM), Ok(failed));
        }
        assert_eq!((count(Errno::INTR), failed(Errno::NOMEM)), (Err(Errno::INTR), Err(Errno::NOMEM)));
        // A wait that works allows as many failures again.
        assert_eq!(poll(&mut [], Some(Duration::ZERO)), Ok(0));
        assert_eq!((failed(Errno::INTR), failed(Errno::BADF)), (Ok(()), Err(Errno::BADF)));
    }
}
