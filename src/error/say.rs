//! The one mouth: everything pmc says about itself (errors, warnings, notes) leaves here, on stderr, with one prefix.
//!
//! Receives finished sentences; decides whether they are printed (`--quiet`) and cleans them of
//! control characters, since a command name, a path or a comm may be part of them. Nothing here can
//! fail: a stderr that nobody reads must not end a measurement.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Error;
use crate::text;

static QUIET: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Silences [`note`] and [`warning`]; errors are still printed.
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints why the program fails.
pub fn error(error: &Error) {
    if !error.is_quiet() {
        print("", &error.to_string());
    }
}

/// Prints something that makes the result less than what was asked for, and what to do about it.
pub fn warning(text: impl AsRef<str>) {
    if !QUIET.load(Ordering::Relaxed) {
        print("warning: ", text.as_ref());
    }
}

/// Prints something good to know.
pub fn note(text: impl AsRef<str>) {
    if !QUIET.load(Ordering::Relaxed) {
        print("", text.as_ref());
    }
}

/// As [`note`], but the same text is printed once in the life of the process.
pub fn note_once(text: impl AsRef<str>) {
    let text = text.as_ref();
    let Ok(mut said) = SAID.lock() else { return };
    if !said.iter().any(|t| t == text) {
        said.push(text.to_owned());
        drop(said);
        note(text);
    }
}

/// Prints a line without our name in front: for a personality that has its own.
pub fn plainly(line: impl AsRef<str>) {
    let _ = std::io::stderr().write_all(format!("{}\n", text::clean(line.as_ref())).as_bytes());
}

fn print(kind: &str, message: &str) {
    let mut out = String::with_capacity(message.len() + 16);
    for (number, line) in message.lines().enumerate() {
        if number == 0 {
            out.push_str("pmc: ");
            out.push_str(kind);
        }
        out.push_str(&text::clean(line));
        out.push('\n');
    }
    let _ = std::io::stderr().write_all(out.as_bytes());
}
