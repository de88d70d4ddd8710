//! The one mouth: everything pmc says about itself (errors, warnings, notes) leaves here, on stderr, with one
//! prefix.
//!
//! Receives values and finished sentences; decides whether they are printed (`--quiet`) and cleans them of
//! control characters, since a command name, a path or a comm may be part of them. Nothing here can
//! fail: a stderr that nobody reads must not end a measurement.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Error;
use super::warning::{Loudness, Warning};
use crate::text;

static QUIET: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Silences [`note`] and [`warn`]; errors are still printed.
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints why the program fails.
pub fn error(error: &Error) {
    if !error.is_quiet() {
        print("", &error.to_string());
    }
}

/// Prints what makes the result less than what was asked for, or other than might be expected.
pub fn warn(warning: &Warning) {
    let text = warning.to_string();
    match warning.loudness() {
        Loudness::Warning if QUIET.load(Ordering::Relaxed) => {}
        Loudness::Warning => print("warning: ", &text),
        Loudness::Note => note(text),
        Loudness::Once => {
            let Ok(mut said) = SAID.lock() else { return };
            if !said.contains(&text) {
                note(&text);
                said.push(text);
            }
        }
    }
}

/// Prints how things stand: where a file went, how far a run has come.
pub fn note(text: impl AsRef<str>) {
    if !QUIET.load(Ordering::Relaxed) {
        print("", text.as_ref());
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
