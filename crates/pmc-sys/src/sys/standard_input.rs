//! Detects whether there is data on standard input.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::ioctl_fionread;
use rustix::stdio::stdin;

use super::wait;

/// Time to wait for data before telling the user that pmc is waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether standard input is a nonempty file, or a pipe with data. For a pipe, waits for the first byte or
/// the end, and calls `waiting` if neither arrives within two seconds. Returns `false` for a terminal, a
/// device, or a pipe that ends without data. Also returns `false` for a partly read file, because it belongs
/// to another program (`while read line; do …; done < list`).
pub fn has_input(waiting: impl FnOnce()) -> bool {
    let Ok(stat) = fstat(stdin()) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size > 0 && seek(stdin(), SeekFrom::Current(0)) == Ok(0),
        FileType::Fifo => {
            let input = stdin();
            let mut waits = [PollFd::new(&input, PollFlags::IN)];
            if wait::poll(&mut waits, Some(PATIENCE)) == Ok(0) {
                waiting();
            }
            let _ = wait::poll(&mut waits, None);
            ioctl_fionread(input).is_ok_and(|bytes| bytes > 0)
        }
        _ => false,
    }
}
