//! A pipe in the place of a command's output, so that a command that runs many times is heard once.
//!
//! The pipe is emptied while the command runs, into our own output or into nothing. Its kind is the
//! same for every run: programs that write to `/dev/null`, or to a terminal, may do less work, or more.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sys::process::Streams;

/// How long a command that has ended may leave the pipe to others who write nothing.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The pipe of one run.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    writer: PipeWriter,
    is_shown: bool,
    is_over: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl OutputPipe {
    /// Begins to empty a new pipe, into `shown` or into nothing.
    ///
    /// # Errors
    /// When there is no descriptor left, or no thread.
    pub(crate) fn open(shown: Option<Box<dyn Write + Send>>) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let is_shown = shown.is_some();
        let empty = move || empty(reader, shown, &over);
        let reader = std::thread::Builder::new().name("output".to_owned()).spawn(empty)?;
        Ok(Self { writer, is_shown, is_over, reader })
    }

    /// What the command gets: for its standard output, and where nothing is shown for its standard error.
    pub(crate) fn streams(&self) -> Streams {
        let pipe = self.writer.as_raw_fd();
        if self.is_shown { Streams::OutputTo(pipe) } else { Streams::AllTo(pipe) }
    }

    /// The command has ended: returns when all it wrote is out.
    pub(crate) fn close(self) {
        drop(self.writer);
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.reader.join();
    }
}

/// Reads to the end; a process that outlives the command and says nothing is not waited for.
fn empty(mut pipe: PipeReader, mut shown: Option<Box<dyn Write + Send>>, is_over: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&PATIENCE)) {
            Ok(0) if is_over.load(Ordering::Relaxed) => break,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        match (pipe.read(&mut bytes), &mut shown) {
            (Ok(0) | Err(_), _) => break,
            // A terminal that is gone is found out by whoever prints the table.
            (Ok(read), Some(out)) => drop(out.write_all(&bytes[..read]).and_then(|()| out.flush())),
            (Ok(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a killed or careless command leaves behind holds nobody up, and everything is read.
    #[test]
    fn whoever_outlives_the_command_is_not_waited_for() {
        let pipe = OutputPipe::open(None).unwrap();
        let mut other = pipe.writer.try_clone().unwrap();
        other.write_all(&vec![b'x'; 1 << 20]).unwrap();
        pipe.close();
        assert!(other.write_all(b"more").is_err());
    }
}
