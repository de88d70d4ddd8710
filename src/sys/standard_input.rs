//! Whether somebody sends us something on standard input without being asked.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::{Errno, ioctl_fionread};
use rustix::stdio::stdin;

/// How long nobody needs to be told that we wait.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Whether standard input is a file that is not empty, or a pipe into which something is written: then waits
/// for its first byte, or its end. A terminal, a device or a closed pipe brings nothing; a file of which
/// something was read already is another program's (`while read line; do …; done < list`). `waiting` is
/// called when that takes more than a moment.
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
