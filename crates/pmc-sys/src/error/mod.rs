//! The crate's error type: every error that reaches the user is an [`Error`].
//!
//! Lower layers have their own error types, and convert them to this type at the layer's boundary. An
//! [`Error`] holds the failed operation, the kernel's error, the usual cause, remedies and the exit status.
//! Only [`say`] prints it. Only `main` exits, except after a panic.

pub mod advice;
pub mod say;
mod warning;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::sys::{descriptor, errno, signal};
use pmc_text::text::shell_word;

pub use advice::{Advice, AdvisedOption, Hint};
pub use warning::Warning;

/// Shorthand for results whose error is meant for the user.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success: 0.
    Done,
    /// Any failure without a more specific status: 1.
    Failure,
    /// An output file cannot be created: 1.
    NotCreated,
    /// The command line or an event is invalid: 2.
    Usage,
    /// The exit status of the profiled command.
    Command(u8),
    /// The profiled command was killed by this signal: 128 + signal, as in the shell.
    Signal(i32),
    /// pmc received this signal, and kills itself with it so that a shell loop ends too.
    Interrupted(i32),
    /// The command was found but could not be executed: 126, as in the shell.
    NotExecutable,
    /// The command was not found: 127, as in the shell.
    NotFound,
}

impl Exit {
    /// Whether the user interrupted pmc or the profiled command.
    pub fn is_interruption(self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Signal(signal::INT))
    }

    /// Returns the status that the parent process sees.
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

/// A failure with its explanation, ready to print.
///
/// ```text
/// pmc: opening cycles on CPU 3: Permission denied (EACCES)
///   why: kernel.perf_event_paranoid is 2, and this user has no CAP_PERFMON
///   try: sysctl kernel.perf_event_paranoid=0
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    /// The operation and its object, or the whole message if no system call failed.
    doing: String,
    /// The error of the system call.
    kernel: Option<Arc<io::Error>>,
    /// Lines printed verbatim under the headline, such as a caret under a word or a list.
    detail: Option<String>,
    /// The usual cause.
    why: Option<String>,
    /// The remedies, one per element.
    try_: Vec<Advice>,
    exit: Exit,
    /// Whether to suppress the message, because the reader of pmc's output has exited.
    quiet: bool,
}

impl Error {
    /// Creates an error that was not caused by a failed system call.
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

    /// Creates an error for invalid input (exit status 2).
    pub fn usage(statement: impl Into<String>) -> Self {
        Self::new(statement).exit(Exit::Usage)
    }

    /// Creates an error for a failed system call; `doing` describes the operation and its object.
    pub fn io(doing: impl Into<String>, kernel: impl Into<io::Error>) -> Self {
        Self { kernel: Some(Arc::new(kernel.into())), ..Self::new(doing) }
    }

    /// Creates an error for an output file that cannot be created; `option` selects the file on the
    /// command line, such as `-o`.
    pub fn create(option: AdvisedOption, path: &Path, kernel: impl Into<io::Error>) -> Self {
        use io::ErrorKind::{
            AlreadyExists, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
            ReadOnlyFilesystem,
        };
        let kernel = kernel.into();
        let kind = kernel.kind();
        let error = Self::io(format!("creating {}", path.display()), kernel).exit(Exit::NotCreated);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let error = match (kind, folder) {
            (NotFound | NotADirectory, _) if path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
                let file = path.components().as_path().display();
                return error
                    .why("the name ends with a slash, but there is no such directory")
                    .try_option(option, format!("{{option}} {file}"));
            }
            (NotFound, Some(folder)) => error
                .why("the directory does not exist, or no files can be created there")
                .try_this(format!("mkdir -p {}", shell_word(folder))),
            (NotFound, None) => error.why("pmc cannot create files in this directory"),
            (PermissionDenied, _) => error.why("no permission to write there"),
            (ReadOnlyFilesystem, _) => error.why("the file system is read-only"),
            (IsADirectory, _) => error.why("a directory with this name exists"),
            (AlreadyExists, _) => error.why("a file with this name exists"),
            _ => error,
        };
        let advice = match kind {
            AlreadyExists | InvalidInput => "{option} FILE, with another name",
            _ => "{option} FILE, in a writable directory",
        };
        error.try_option(option, advice)
    }

    /// Creates an error for a failed write of pmc's output. On a broken pipe, pmc exits silently with status
    /// 0.
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
        if full { error.try_this("free some space, or write to another file system") } else { error }
    }

    /// Adds lines printed verbatim below the headline.
    #[must_use]
    pub fn detail(mut self, lines: impl Into<String>) -> Self {
        self.detail = Some(lines.into());
        self
    }

    /// Adds the usual cause.
    #[must_use]
    pub fn why(mut self, cause: impl Into<String>) -> Self {
        self.why = Some(cause.into());
        self
    }

    /// Adds a remedy. Its text names no option of pmc, except in command lines that begin with `pmc`.
    #[must_use]
    pub fn try_this(mut self, remedy: impl Into<Advice>) -> Self {
        self.try_.push(remedy.into());
        self
    }

    /// Adds a remedy that names options of pmc, which a personality does not have.
    #[must_use]
    pub fn try_options(self, remedy: impl Into<String>) -> Self {
        self.try_this(Advice::options(remedy))
    }

    /// Adds a remedy in which `{option}` is replaced by this option.
    #[must_use]
    pub fn try_option(self, option: AdvisedOption, remedy: impl Into<String>) -> Self {
        self.try_this(Advice::about(option, remedy))
    }

    /// Names the option that has this value, unless the message contains the value as a word.
    #[must_use]
    pub fn of_option(mut self, option: &str, value: &str) -> Self {
        let is_word_end =
            |next: Option<char>| !next.is_some_and(|next| next.is_alphanumeric() || next == '.');
        let names_value = !value.is_empty()
            && self.doing.match_indices(value).any(|(at, _)| {
                let (before, after) = (&self.doing[..at], &self.doing[at + value.len()..]);
                is_word_end(before.chars().next_back()) && is_word_end(after.chars().next())
            });
        if !names_value {
            self.doing = format!("{option}{value}: {}", self.doing);
        }
        self
    }

    /// Sets the exit status.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Returns the exit status.
    pub fn exit_status(&self) -> Exit {
        self.exit
    }

    /// Whether to suppress the message, because the reader of pmc's output has exited.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns the message without the explanation.
    pub fn headline(&self) -> String {
        match &self.kernel {
            Some(kernel) => format!("{}: {}", self.doing, kernel_message(kernel)),
            None => self.doing.clone(),
        }
    }

    /// Returns the usual cause.
    pub fn cause(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Returns the suggested remedies.
    pub fn remedies(&self) -> Vec<String> {
        self.try_.iter().map(Advice::to_string).collect()
    }

    /// Returns the full text to print; `spelled` converts the advice to text.
    fn text(&self, spelled: impl Fn(&Advice) -> String) -> String {
        let mut text = self.headline();
        for line in self.detail.iter().flat_map(|detail| detail.lines()) {
            text.push_str(&format!("\n  {line}"));
        }
        if let Some(why) = &self.why {
            text.push_str(&format!("\n  why: {why}"));
        }
        for remedy in &self.try_ {
            text.push_str(&format!("\n  try: {}", spelled(remedy)));
        }
        text
    }
}

/// Returns the name of an error number, such as `ENOENT`, and its message.
pub fn errno_words(number: i32) -> (String, String) {
    // Error numbers that tell the kernel to restart a system call. Programs never see them.
    let restart = match number {
        512 => "ERESTARTSYS",
        513 => "ERESTARTNOINTR",
        514 => "ERESTARTNOHAND",
        516 => "ERESTART_RESTARTBLOCK",
        _ => "",
    };
    if !restart.is_empty() {
        return (restart.to_owned(), "interrupted by a signal".to_owned());
    }
    let message = message(&io::Error::from_raw_os_error(number));
    (crate::sys::errno_name(number).map_or_else(|| format!("error {number}"), str::to_owned), message)
}

/// Returns the system's message without the error number: `Permission denied`.
pub fn message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Returns the system's message with the name of the error number: `Permission denied (EACCES)`.
pub fn kernel_message(error: &io::Error) -> String {
    let words = message(error);
    match error.raw_os_error().and_then(crate::sys::errno_name) {
        Some(name) => format!("{words} ({name})"),
        None => words,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Advice::to_string))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kernel.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_unless_the_message_contains_its_value() {
        let named = |what: &str, value| Error::usage(what).of_option("-p ", value).headline();
        assert_eq!(named("`0` is not a process id", "0"), "`0` is not a process id");
        assert_eq!(named("must be at least 1.00 ms", "0"), "-p 0: must be at least 1.00 ms");
        assert_eq!(named("not a valid size", ""), "-p : not a valid size");
    }

    #[test]
    fn error_prints_cause_and_remedy() {
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
    fn closed_pipe_is_not_a_failure() {
        let error = Error::output("the table", io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(error.is_quiet());
        assert_eq!(error.exit_status(), Exit::Done);
    }

    #[test]
    fn signal_exit_status_matches_the_shell() {
        assert_eq!(Exit::Signal(15).code(), 143);
    }
}
