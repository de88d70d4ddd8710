//! `--switch-exec`: runs a command for each finished file of a series.
//!
//! Receives the paths of the files. A separate thread runs the command for one file at a time, so that a slow
//! command delays neither the recording nor starts more and more processes. Files are never removed.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use pmc_sys::error::{Advice, Error, Result, Warning, say};
use pmc_sys::sys::credentials;

/// Minimum number of waiting files to warn about.
const MANY: usize = 8;

/// The commands for finished files.
#[derive(Debug)]
pub struct FileCommands {
    files: Sender<PathBuf>,
    /// Number of files whose command has not ended.
    waiting: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl FileCommands {
    /// Starts the thread. It has the priority of the calling thread, which is still the normal one.
    pub(crate) fn start(command: &str) -> Result<Self> {
        let (files, received) = channel::<PathBuf>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (command, counter) = (command.to_owned(), waiting.clone());
        let work = move || {
            // The commands inherit only these capabilities.
            credentials::keep_for_reading();
            for file in received {
                run(&command, &file);
                counter.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let thread = thread::Builder::new().name("switch-exec".into()).spawn(work);
        let starting = |error| Error::io("starting a thread for --switch-exec", error);
        Ok(Self { files, waiting, thread: thread.map_err(starting)? })
    }

    /// Adds a finished file. Does not wait.
    pub(crate) fn add(&self, file: PathBuf) {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        // Warn again only when the number has doubled.
        if waiting >= MANY && waiting.is_power_of_two() {
            let what = format!(
                "{waiting} finished files wait for --switch-exec: its command takes longer than recording a file"
            );
            say::warn(
                Warning::new(what)
                    .advise(Advice::options("use a faster command, or a longer --switch-output")),
            );
        }
        let _ = self.files.send(file);
    }

    /// Waits until the commands for all files have ended.
    pub fn finish(self) {
        let Self { files, waiting, thread } = self;
        drop(files);
        let waiting = waiting.load(Ordering::Relaxed);
        if waiting > 0 {
            let (files, them) = if waiting == 1 { ("file", "it") } else { ("files", "them") };
            say::note(format!(
                "waiting for --switch-exec: {waiting} {files} left; Ctrl-C leaves {them} unprocessed"
            ));
        }
        let _ = thread.join();
    }
}

/// Runs the command for a file, and waits for its end.
fn run(command: &str, file: &Path) {
    let name = file.display();
    if !file.exists() {
        let what = format!("{name}: removed before the command of --switch-exec could run");
        return say::warn(Warning::new(what).advise(Advice::options("use a larger --switch-max-files")));
    }
    let ended = shell(command, file).status();
    let why = match ended {
        Ok(status) if status.success() => return,
        Ok(status) => reason(status),
        Err(error) => format!("cannot run sh: {error}"),
    };
    let what = format!("{name}: the command of --switch-exec failed, and the file is kept: {why}");
    say::warn(Warning::new(what).advise("run the command for this file again"));
}

/// Prepares the command, with the file as `$1`. All descriptors of pmc are close-on-exec. The command gets a
/// separate process group, so that the Ctrl-C that ends the recording does not reach it.
fn shell(command: &str, file: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).arg("sh").arg(file).stdin(Stdio::null()).process_group(0);
    shell
}

fn reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with status {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it did not end normally".to_owned(),
    }
}

/// Whether a command uses the file's name.
pub fn names_file(command: &str) -> bool {
    ["$1", "${1", "$@", "$*"].iter().any(|word| command.contains(word))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn command_gets_the_file_as_a_parameter() -> io::Result<()> {
        let output = shell("printf %s \"$1\"; echo; cat", Path::new("a 'b' $c")).output()?;
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a 'b' $c\n");
        assert_eq!(reason(shell("exit 3", Path::new("f")).status()?), "it ended with status 3");
        assert_eq!(reason(shell("kill -9 $$", Path::new("f")).status()?), "it was killed by signal 9");
        assert!(names_file("gzip \"$1\"") && names_file("x ${1}") && !names_file("gzip"));
        Ok(())
    }
}
