//! A pipe for a command's output, which lets pmc print the output only once although the command runs many
//! times.
//!
//! The pipe is drained while the command runs. Its contents are written to pmc's own output or discarded.
//! Every run writes to a pipe, because programs may do more or less work when they write to a terminal or to
//! `/dev/null`.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use pmc_sys::sys::process::Streams;
use pmc_sys::sys::wait;

/// Maximum time to wait for other processes that keep the pipe open after the command's end but write
/// nothing.
const PATIENCE: Duration = Duration::from_millis(50);

/// The pipe of one run.
#[derive(Debug)]
pub struct OutputPipe {
    writer: PipeWriter,
    is_shown: bool,
    is_over: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl OutputPipe {
    /// Creates a pipe and starts to drain it. Writes its contents to `shown`, or discards them.
    ///
    /// # Errors
    /// Fails if no descriptor or thread is available.
    pub fn open(shown: Option<Box<dyn Write + Send>>) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let is_shown = shown.is_some();
        let empty = move || empty(reader, shown, &over);
        let reader = std::thread::Builder::new().name("output".to_owned()).spawn(empty)?;
        Ok(Self { writer, is_shown, is_over, reader })
    }

    /// Returns the command's streams: its stdout, and its stderr too if nothing is shown.
    pub fn streams(&self) -> Streams {
        let pipe = self.writer.as_raw_fd();
        if self.is_shown { Streams::OutputTo(pipe) } else { Streams::AllTo(pipe) }
    }

    /// Returns the end of the pipe to write to.
    pub fn writer(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }

    /// Closes the pipe after the command ends. Returns when all of the command's output has been read and
    /// written.
    pub fn close(self) {
        drop(self.writer);
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.reader.join();
    }
}

/// Reads the pipe to its end, but does not wait for a silent process that outlives the command.
fn empty(mut pipe: PipeReader, mut shown: Option<Box<dyn Write + Send>>, is_over: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        match wait::poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(PATIENCE)) {
            Ok(0) if is_over.load(Ordering::Relaxed) => break,
            Ok(0) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        match (pipe.read(&mut bytes), &mut shown) {
            (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => {}
            (Ok(0) | Err(_), _) => break,
            // Ignore write errors: the code that prints the table also detects a closed terminal.
            (Ok(read), Some(out)) => drop(out.write_all(&bytes[..read]).and_then(|()| out.flush())),
            (Ok(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All output is read, and a process that outlives the command does not delay the end.
    #[test]
    fn processes_that_outlive_the_command_are_not_awaited() {
        let pipe = OutputPipe::open(None).unwrap();
        let mut other = pipe.writer.try_clone().unwrap();
        other.write_all(&vec![b'x'; 1 << 20]).unwrap();
        pipe.close();
        assert!(other.write_all(b"more").is_err());
    }
}
