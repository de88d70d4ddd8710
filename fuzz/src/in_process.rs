//! Runs command lines of pmc within this process, which takes a thousandth of the time of a new one. `cargo
//! test` includes this module too.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, Once};

use pmc_sys::error::Exit;
use rustix::fs::{MemfdFlags, memfd_create};

/// Standard output and error of this process while a command line runs.
static SAVED: Mutex<Option<[OwnedFd; 2]>> = Mutex::new(None);

/// A file in memory, with a path by which pmc may open it as often as it likes.
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// Creates a file with these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let file = memfd_create("pmc-fuzz", MemfdFlags::CLOEXEC).expect("memory for a file");
        let mut file = File::from(file);
        file.write_all(bytes).and_then(|()| file.rewind()).expect("memory for a file");
        Self(file)
    }

    /// Returns a path that opens the file.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// Returns the contents.
    pub fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.rewind().and_then(|()| self.0.read_to_end(&mut bytes)).expect("a file in memory");
        bytes
    }
}

/// Result of a command line.
#[derive(Debug)]
pub struct CommandResult {
    /// The exit status.
    pub exit: Exit,
    /// The text on standard output.
    pub out: Vec<u8>,
    /// The text on standard error.
    pub err: String,
}

/// Runs `pmc WORDS`. Standard output and error are those of the whole process: not for two threads at once.
pub fn run(words: impl IntoIterator<Item = impl Into<OsString>>) -> CommandResult {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            former(panic);
        }));
    });
    let (mut out, mut err) = (MemoryFile::new(b""), MemoryFile::new(b""));
    let copy = |fd: &dyn Fn() -> rustix::io::Result<OwnedFd>| fd().expect("a free descriptor");
    let saved = [copy(&|| rustix::io::dup(std::io::stdout())), copy(&|| rustix::io::dup(std::io::stderr()))];
    *SAVED.lock().expect("no panic with it") = Some(saved);
    rustix::stdio::dup2_stdout(&out.0).expect("standard output");
    rustix::stdio::dup2_stderr(&err.0).expect("standard error");
    let words = std::iter::once("pmc".into()).chain(words.into_iter().map(Into::into));
    let exit = pmc::command::carry_out(words.collect());
    let flushed = std::io::stdout().flush();
    restore();
    flushed.expect("memory for the output");
    CommandResult { exit, out: out.bytes(), err: String::from_utf8_lossy(&err.bytes()).into_owned() }
}

/// Gives this process its own output back, if a command line runs.
pub fn restore() {
    if let Ok(mut saved) = SAVED.lock()
        && let Some([out, err]) = saved.take()
    {
        let _ = (rustix::stdio::dup2_stdout(out), rustix::stdio::dup2_stderr(err));
    }
}
