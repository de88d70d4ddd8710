//! What went wrong, in words that help: every error that reaches the user is an [`Error`].
//!
//! Lower layers have their own typed errors and convert into this one where they leave the
//! layer. An [`Error`] says what was being done to what, what the kernel answered, why
//! that usually is, and what to try. It carries the exit status; only `main` exits.
//! [`say`] is the one place that prints it.

pub mod say;
pub mod warning;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::sys::{descriptor, errno};

pub use warning::{RingLimit, Warning};

/// Shorthand for results whose error is meant for the user.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done,
    /// Anything that failed and has no status of its own: 1.
    Failure,
    /// A file that was to be written cannot be made: 1.
    NotCreated,
    /// The command line or an event could not be understood: 2.
    Usage,
    /// The profiled command's own status.
    Command(u8),
    /// The profiled command was ended by this signal: 128 + signal, as the shell says it.
    Signal(i32),
    /// pmc itself was told to end by this signal: it dies by it, so that a shell's loop ends too.
    Interrupted(i32),
    /// The command was found but could not be executed: 126, as the shell says it.
    NotExecutable,
    /// The command was not found: 127, as the shell says it.
    NotFound,
}

impl Exit {
    /// The number that the parent process sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failure | Self::NotCreated => 1,
            Self::Usage => 2,
            Self::Command(status) => status,
            Self::Signal(signal) | Self::Interrupted(signal) => 128u8.wrapping_add(signal as u8),
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// A failure with its explanation, ready to be shown.
///
/// ```text
/// pmc: opening cycles on CPU 3: Permission denied (EACCES)
///   why: kernel.perf_event_paranoid is 2, and this user has no CAP_PERFMON
///   try: sysctl kernel.perf_event_paranoid=0
/// ```
#[derive(Debug)]
pub struct Error {
    /// What was being done, to what; or the whole statement where no system call was involved.
    doing: String,
    /// What the kernel said.
    kernel: Option<io::Error>,
    /// Lines printed as they are under the headline: a caret under a word, a list.
    detail: Option<String>,
    /// Why that usually is.
    why: Option<String>,
    /// What to try, one remedy an entry.
    try_: Vec<String>,
    exit: Exit,
    /// Ends the program without a word: the reader of our output has gone.
    quiet: bool,
}

impl Error {
    /// A failure that is not a system call's.
    pub fn new(statement: impl Into<String>) -> Self {
        Self {
            doing: statement.into(),
            kernel: None,
            detail: None,
            why: None,
            try_: Vec::new(),
            exit: Exit::Failure,
            quiet: false,
        }
    }

    /// Something typed that cannot be understood: exit status 2.
    pub fn usage(statement: impl Into<String>) -> Self {
        Self::new(statement).exit(Exit::Usage)
    }

    /// A system call failed while `doing` something to something.
    pub fn io(doing: impl Into<String>, kernel: impl Into<io::Error>) -> Self {
        Self { kernel: Some(kernel.into()), ..Self::new(doing) }
    }

    /// A file that is to be written cannot be made; `option` names it on the command line, such as `-o`.
    pub fn create(option: &str, path: &Path, kernel: impl Into<io::Error>) -> Self {
        use io::ErrorKind::{AlreadyExists, IsADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
        let kernel = kernel.into();
        let kind = kernel.kind();
        let error = Self::io(format!("creating {}", path.display()), kernel).exit(Exit::NotCreated);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let error = match (kind, folder) {
            (NotFound, Some(folder)) => error
                .why("the directory does not exist, or no files can be created there")
                .try_this(format!("mkdir -p {}", folder.display())),
            (NotFound, None) => error.why("no files can be created in this directory"),
            (PermissionDenied, _) => error.why("no permission to write there"),
            (ReadOnlyFilesystem, _) => error.why("the file system is read-only"),
            (IsADirectory, _) => error.why("a directory with this name exists"),
            (AlreadyExists, _) => error.why("a file with this name exists"),
            _ => error,
        };
        error.try_this(match kind {
            AlreadyExists => format!("{option} FILE, with another name"),
            _ => format!("{option} FILE, where you may write"),
        })
    }

    /// Writing our output failed. A closed pipe is the reader's right: the program then ends quietly and
    /// well.
    pub fn output(what: impl fmt::Display, kernel: io::Error) -> Self {
        if kernel.kind() == io::ErrorKind::BrokenPipe {
            return Self { quiet: true, ..Self::new("").exit(Exit::Done) };
        }
        if kernel.kind() == io::ErrorKind::NotConnected && descriptor::stdout_was_closed() {
            let closed = Self::io(format!("writing {what}"), io::Error::from_raw_os_error(errno::EBADF));
            return closed.why("standard output is closed");
        }
        let full = matches!(kernel.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let error = Self::io(format!("writing {what}"), kernel);
        if full { error.try_this("free some space, or write elsewhere") } else { error }
    }

    /// Adds lines shown as they are below the headline.
    #[must_use]
    pub fn detail(mut self, lines: impl Into<String>) -> Self {
        self.detail = Some(lines.into());
        self
    }

    /// Adds why this usually happens.
    #[must_use]
    pub fn why(mut self, cause: impl Into<String>) -> Self {
        self.why = Some(cause.into());
        self
    }

    /// Adds one thing to try.
    #[must_use]
    pub fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.try_.push(remedy.into());
        self
    }

    /// Sets how the process ends.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// How the process ends because of this.
    pub fn exit_status(&self) -> Exit {
        self.exit
    }

    /// Whether there is nothing to print: the reader of our output has gone.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What the kernel said, if a system call failed.
    pub fn kernel(&self) -> Option<&io::Error> {
        self.kernel.as_ref()
    }

    /// The statement without the explanation.
    pub fn headline(&self) -> String {
        match &self.kernel {
            Some(kernel) => format!("{}: {}", self.doing, kernel_words(kernel)),
            None => self.doing.clone(),
        }
    }

    /// All that is printed, with the advice in these words.
    fn text(&self, words: impl Fn(&str) -> String) -> String {
        let mut text = self.headline();
        for line in self.detail.iter().flat_map(|detail| detail.lines()) {
            text.push_str(&format!("\n  {line}"));
        }
        if let Some(why) = &self.why {
            text.push_str(&format!("\n  why: {why}"));
        }
        for remedy in &self.try_ {
            text.push_str(&format!("\n  try: {}", words(remedy)));
        }
        text
    }
}

/// The kernel's words and the name of the number: `Permission denied (EACCES)`.
pub fn kernel_words(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_owned();
    match error.raw_os_error().and_then(crate::sys::errno_name) {
        Some(name) => format!("{words} ({name})"),
        None => words,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(str::to_owned))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kernel.as_ref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_why_and_what_to_try() {
        let error = Error::io("opening cycles", io::Error::from_raw_os_error(13))
            .why("the paranoid level is 2")
            .try_this("sysctl kernel.perf_event_paranoid=0");
        assert_eq!(
            error.to_string(),
            "opening cycles: Permission denied (EACCES)\n  why: the paranoid level is 2\n  try: sysctl kernel.perf_event_paranoid=0"
        );
        assert_eq!(error.exit_status().code(), 1);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = Error::output("the table", io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(error.is_quiet());
        assert_eq!(error.exit_status(), Exit::Done);
    }

    #[test]
    fn signals_are_passed_on_as_the_shell_does() {
        assert_eq!(Exit::Signal(15).code(), 143);
    }
}
