//! Separates the commands of a tool from the protocol: collects the end of their output, and kills them when
//! their time is over.
//!
//! ```text
//!   command ── stdout, stderr ──> pipe ──> thread ──> the last bytes
//! ```

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use serde_json::{Value as Json, json};

use pmc_recording::recording::output_pipe::OutputPipe;
use pmc_sys::sys::descriptor;

/// Number of bytes of output to keep.
const KEPT: usize = 600;
/// Maximum number of lines of output to return.
const LINES: usize = 8;

/// The last bytes of an output, and the number of all bytes.
#[derive(Debug, Default)]
struct OutputEnd {
    last: VecDeque<u8>,
    bytes: u64,
}

/// Writes to a shared [`OutputEnd`].
struct OutputEndWriter(Arc<Mutex<OutputEnd>>);

impl Write for OutputEndWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end.bytes += bytes.len() as u64;
        end.last.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let excess = end.last.len().saturating_sub(KEPT);
        end.last.drain(..excess);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Redirects this process's standard output and standard error, which commands inherit.
pub(super) struct OutputCapture {
    pipe: OutputPipe,
    end: Arc<Mutex<OutputEnd>>,
    /// The previous standard output and standard error.
    previous: [File; 2],
}

impl OutputCapture {
    /// Redirects the two streams. Both must be open.
    ///
    /// # Errors
    /// Fails if no descriptor or thread is available.
    pub(super) fn start() -> io::Result<Self> {
        let end = Arc::new(Mutex::new(OutputEnd::default()));
        let pipe = OutputPipe::open(Some(Box::new(OutputEndWriter(end.clone()))))?;
        let previous = [descriptor::duplicate(1)?, descriptor::duplicate(2)?];
        dup2_stdout(pipe.writer())?;
        dup2_stderr(pipe.writer())?;
        Ok(Self { pipe, end, previous })
    }

    /// Restores the streams. Returns the end of the output, including pmc's own messages, or null if there
    /// was none.
    ///
    /// # Errors
    /// Fails if the streams cannot be restored.
    pub(super) fn finish(self) -> io::Result<Json> {
        let [output, errors] = &self.previous;
        dup2_stdout(output)?;
        dup2_stderr(errors)?;
        self.pipe.close();
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<u8> = end.last.iter().copied().collect();
        Ok(match end.bytes {
            0 => Json::Null,
            bytes => json!({"bytes": bytes, "last_lines": last_lines(&last)}),
        })
    }
}

/// Returns the last lines of a text.
fn last_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<String> = text.lines().rev().take(LINES).map(str::to_owned).collect();
    lines.reverse();
    lines
}

/// Kills the children of this process if they still run after a time limit.
pub(super) struct CommandTimeLimit {
    done: Sender<()>,
    thread: JoinHandle<()>,
}

impl CommandTimeLimit {
    /// Starts the clock.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub(super) fn start(limit: Duration) -> io::Result<Self> {
        let (done, is_done) = mpsc::channel();
        let watch = move || {
            let mut wait = limit;
            while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                kill_children();
                wait = Duration::from_millis(200);
            }
        };
        let thread = std::thread::Builder::new().name("time limit".to_owned()).spawn(watch)?;
        Ok(Self { done, thread })
    }

    /// Stops the clock.
    pub(super) fn finish(self) {
        drop(self.done);
        let _ = self.thread.join();
    }
}

/// Kills the children of all threads of this process.
fn kill_children() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw) {
            // A child that has ended in the meantime is a zombie until its thread waits for it.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_output_is_kept() {
        let end = Arc::new(Mutex::new(OutputEnd::default()));
        let mut writer = OutputEndWriter(end.clone());
        for number in 0..10_000u32 {
            writer.write_all(format!("{number:04}").as_bytes()).unwrap();
        }
        writer.write_all(&[b'x'; 1 << 16]).unwrap();
        writer.write_all(b"last").unwrap();
        let end = end.lock().unwrap();
        assert_eq!((end.last.len(), end.bytes), (KEPT, 40_000 + (1 << 16) + 4));
        assert!(end.last.iter().copied().collect::<Vec<u8>>().ends_with(b"xlast"));
    }
}
