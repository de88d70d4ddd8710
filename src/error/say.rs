//! The one mouth: everything pmc says about itself (errors, warnings, notes) leaves here, on stderr, with one
//! prefix.
//!
//! Receives values and finished sentences; decides whether they are printed (`--quiet`) and cleans them of
//! control characters, since a command name, a path or a comm may be part of them. A terminal gets lines of
//! its width, broken between words. Keeps out of what others show on the same terminal: a line that tells how
//! things go is wiped before anything else is said, and what is to be said while a command runs
//! [waits](hold). Nothing here can fail: a stderr that nobody reads must not end a measurement.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Error;
use super::warning::{Loudness, Warning};
use crate::terminal::{self, Stream};
use crate::text;

static QUIET: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Advice in other words.
type Translation = fn(&str) -> String;

/// The words in which advice is given, where they are not our own.
static ADVICE: Mutex<Option<Translation>> = Mutex::new(None);
/// What waits for the end of a command.
static HELD: Mutex<Option<String>> = Mutex::new(None);
/// Whether the cursor stands behind a [`status`] line.
static LINE: AtomicBool = AtomicBool::new(false);

/// Has advice of errors and warnings said in other words from now on: where pmc answers to another name, its
/// options have other letters.
pub fn translate(advice: Translation) {
    if let Ok(mut words) = ADVICE.lock() {
        *words = Some(advice);
    }
}

fn advice(text: &str) -> String {
    let words = ADVICE.lock().map_or(None, |words| *words);
    words.map_or_else(|| text.to_owned(), |words| words(text))
}

/// Silences [`note`] and [`warn`]; errors are still printed.
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints why the program fails.
pub fn error(error: &Error) {
    if !error.is_quiet() {
        print("", &error.text(advice));
    }
}

/// Prints what makes the result less than what was asked for, or other than might be expected.
pub fn warn(warning: &Warning) {
    let text = warning.text(advice);
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

/// Until the answer is dropped a command has the terminal for itself: errors, warnings and notes wait.
/// Elsewhere than on a terminal nothing needs to.
pub fn hold() -> Option<Hold> {
    Stream::Error.is_terminal().then(Hold::begin)
}

/// Whether what is said waits.
pub fn is_held() -> bool {
    HELD.lock().is_ok_and(|held| held.is_some())
}

/// What is said waits while this is there.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    fn begin() -> Self {
        if let Ok(mut held) = HELD.lock() {
            held.get_or_insert_default();
        }
        Self(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let held = HELD.lock().ok().and_then(|mut held| held.take());
        let _ = std::io::stderr().write_all(held.unwrap_or_default().as_bytes());
    }
}

/// Shows how things go, on the terminal's last line, instead of what stands there.
pub fn status(line: &str) {
    let _ = std::io::stderr().write_all(format!("\r\x1b[K{}", text::clean(line)).as_bytes());
    LINE.store(true, Ordering::Relaxed);
}

/// Wipes the [`status`] line, if it is there.
pub fn wipe_status() {
    if LINE.swap(false, Ordering::Relaxed) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// Prints a line without our name in front: for a personality that has its own.
pub fn plainly(line: impl AsRef<str>) {
    let _ = std::io::stderr().write_all(format!("{}\n", text::clean(line.as_ref())).as_bytes());
}

fn print(kind: &str, message: &str) {
    let columns = Stream::Error.is_terminal().then(|| terminal::columns(Stream::Error));
    let out = lines(&format!("pmc: {kind}{message}"), columns);
    if let Ok(mut held) = HELD.lock()
        && let Some(held) = &mut *held
    {
        held.push_str(&out);
        return;
    }
    wipe_status();
    let _ = std::io::stderr().write_all(out.as_bytes());
}

/// A message as it is printed: clean, and on a terminal of so many columns broken between words, but for what
/// a caret points at.
fn lines(message: &str, columns: Option<usize>) -> String {
    let is_caret = |line: &&str| line.contains('^') && line.chars().all(|c| matches!(c, ' ' | '^'));
    let mut out = String::with_capacity(message.len() + 16);
    let mut lines = message.lines().peekable();
    while let Some(line) = lines.next() {
        let stands = is_caret(&line) || lines.peek().is_some_and(is_caret);
        match columns.filter(|columns| !stands && text::width(line) > *columns) {
            Some(columns) => out.push_str(&text::wrap_remark(line, columns).join("\n")),
            None => out.push_str(&text::clean(line)),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_between_words_and_carets_stay() {
        let message =
            "pmc: no event is called `foo`\n  cycles,foo:u,instructions\n         ^^^\n  try: pmc list shows";
        assert_eq!(
            lines(message, Some(20)),
            "pmc: no event is\n     called `foo`\n  cycles,foo:u,instructions\n         ^^^\n  try: pmc list\n       shows\n"
        );
        assert_eq!(lines(message, None), format!("{message}\n"));
    }
}
