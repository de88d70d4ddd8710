//! Detects unsolicited data on standard input.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::{Errno, ioctl_fionread};
use rustix::stdio::stdin;

/// Time to wait for data before telling the user about it.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Whether standard input is a nonempty file, or a pipe with data. For a pipe, waits for its first byte or
/// its end. A terminal, a device or a closed pipe has no data. A partly read file belongs to another
/// program (`while read line; do …; done < list`). Calls `waiting` if there is no data within two seconds.
pub fn brings_something(waiting: impl FnOnce()) -> bool {
    let Ok(stat) = fstat(stdin()) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size > 0 && seek(stdin(), SeekFrom::Current(0)) == Ok(0),
        FileType::Fifo => {
            let input = stdin();
            let mut waits = [PollFd::new(&input, PollFlags::IN)];
            if poll(&mut waits, Some(&PATIENCE)).is_ok_and(|ready| ready == 0) {
                waiting();
            }
            while poll(&mut waits, None).is_err_and(|error| error == Errno::INTR) {}
            ioctl_fionread(input).is_ok_and(|bytes| bytes > 0)
        }
        _ => false,
    }
}
