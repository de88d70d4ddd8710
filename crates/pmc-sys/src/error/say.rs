//! The only writer of pmc's errors, warnings and notes to stderr, all with the same prefix.
//!
//! Decides whether to print a message (`--quiet`). Removes control characters, because command names, paths
//! and comms in messages may contain them. On a terminal, lines are wrapped between words. Other output on
//! the terminal is not disturbed: the status line is erased before a message is printed, and messages are
//! [held back](hold) while a command runs. None of these functions can fail, because a closed stderr must not
//! end a measurement.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use super::Error;
use super::advice::{Advice, OptionLetters};
use super::warning::{Severity, Warning};
use pmc_text::terminal::{self, Stream};
use pmc_text::text;

static QUIET: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The option letters of the personality in use; unset for pmc itself.
static LETTERS: OnceLock<OptionLetters> = OnceLock::new();
/// Messages held back until the command ends.
static HELD: Mutex<Option<String>> = Mutex::new(None);
/// Whether the cursor is on a [`status`] line.
static LINE: AtomicBool = AtomicBool::new(false);

/// Sets the option letters of a personality for all later advice. Only the first call has an effect.
pub fn spell_options(letters: OptionLetters) {
    let _ = LETTERS.set(letters);
}

fn spelled(advice: &Advice) -> String {
    LETTERS.get().map_or_else(|| advice.to_string(), |letters| advice.spelled(letters))
}

/// Silences [`note`] and [`warn`]; errors and losses are still printed.
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints an error, unless the error is marked as quiet.
pub fn error(error: &Error) {
    if !error.is_quiet() {
        print("", &error.text(spelled));
    }
}

/// Prints a warning: the result is incomplete or differs from the request.
pub fn warn(warning: Warning) {
    let text = warning.text(spelled);
    match warning.severity {
        Severity::Loss => print("warning: ", &text),
        Severity::Warning if QUIET.load(Ordering::Relaxed) => {}
        Severity::Warning => print("warning: ", &text),
        Severity::Note => note(text),
        Severity::Once => {
            let Ok(mut said) = SAID.lock() else { return };
            if !said.contains(&text) {
                note(&text);
                said.push(text);
            }
        }
    }
}

/// Prints a note, such as the output file's name or the progress of a run.
pub fn note(text: impl AsRef<str>) {
    if !QUIET.load(Ordering::Relaxed) {
        print("", text.as_ref());
    }
}

/// Leaves the terminal to a command until the returned value is dropped; errors, warnings and notes are held
/// back. Returns `None` if stderr is not a terminal.
pub fn hold() -> Option<MessageHold> {
    Stream::Error.is_terminal().then(MessageHold::begin)
}

/// Whether messages are held back.
pub fn is_held() -> bool {
    HELD.lock().is_ok_and(|held| held.is_some())
}

/// Holds messages back until the value is dropped.
#[derive(Debug)]
pub struct MessageHold(());

impl MessageHold {
    fn begin() -> Self {
        if let Ok(mut held) = HELD.lock() {
            held.get_or_insert_default();
        }
        Self(())
    }
}

impl Drop for MessageHold {
    fn drop(&mut self) {
        let held = HELD.lock().ok().and_then(|mut held| held.take());
        let _ = std::io::stderr().write_all(held.unwrap_or_default().as_bytes());
    }
}

/// Shows a status line on the terminal's current line, replacing its previous text.
pub fn status(line: &str) {
    let _ = std::io::stderr().write_all(format!("\r\x1b[K{}", text::clean(line)).as_bytes());
    LINE.store(true, Ordering::Relaxed);
}

/// Erases the [`status`] line, if there is one.
pub fn wipe_status() {
    if LINE.swap(false, Ordering::Relaxed) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// Prints a line without pmc's prefix, for a personality that prints its own prefix.
pub fn line(line: impl AsRef<str>) {
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

/// Returns the message as printed: without control characters, and wrapped between words to `columns`.
/// Does not wrap a line with carets, or the line above it.
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
    fn messages_wrap_between_words_and_keep_carets() {
        let message =
            "pmc: no event is called `foo`\n  cycles,foo:u,instructions\n         ^^^\n  try: pmc list shows";
        assert_eq!(
            lines(message, Some(20)),
            "pmc: no event is\n     called `foo`\n  cycles,foo:u,instructions\n         ^^^\n  try: pmc list\n       shows\n"
        );
        assert_eq!(lines(message, None), format!("{message}\n"));
    }
}
