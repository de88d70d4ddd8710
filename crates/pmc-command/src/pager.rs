//! Passes results to a pager if they do not fit on the terminal.
//!
//! Receives the views' output, and the options and settings for paging. Prints directly if the text fits on
//! the terminal, or if the output is not a terminal. As in perf, the pager is `PERF_PAGER` or else `PAGER`.
//! If neither is set, it is the first installed one of `pager` and `less`, with `LESS=FRSX`.

use std::io::{self, BufWriter, ErrorKind, Write, stderr, stdout};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use pmc_sys::error::say;
use pmc_sys::sys::helper_program::helper;
use pmc_sys::sys::signal;
use pmc_text::terminal::Stream;

static ALLOWED: AtomicBool = AtomicBool::new(true);

/// Allows or forbids paging (`--paginate`, `--no-pager`, the setting `pager.COMMAND`).
pub fn allow(yes: bool) {
    ALLOWED.store(yes, Ordering::Relaxed);
}

/// Output for results. When dropped without [`PagedOutput::finish`], it still writes the remaining text.
pub struct PagedOutput(PagedState);

enum PagedState {
    /// Direct output, because there is no terminal or no pager, or the pager did not start.
    Plain(BufWriter<Box<dyn Write>>),
    /// The text still fits on the terminal, which has room for `left` more lines.
    Held {
        text: Vec<u8>,
        left: usize,
    },
    Paged(Pager),
    Finished,
}

impl PagedOutput {
    /// Returns standard output or standard error. Standard output is paged if it is a terminal. Standard
    /// error is never paged, since pagers write to standard output.
    pub fn to(stream: Stream) -> Self {
        match stream {
            Stream::Error => Self(plain(stderr())),
            Stream::Input | Stream::Output => Self::open(),
        }
    }

    /// Returns standard output, paged if it is a terminal.
    pub fn open() -> Self {
        let is_paged = ALLOWED.load(Ordering::Relaxed)
            && Stream::Output.is_screen()
            && said(|name| std::env::var(name).ok()).is_none_or(|command| !command.is_empty());
        // The terminal's last line is reserved for the shell's prompt.
        let lines = Stream::Output.size().map_or(24, |(_, lines)| lines).saturating_sub(1);
        Self(match is_paged {
            true => PagedState::Held { text: Vec::new(), left: lines.into() },
            false => plain(stdout()),
        })
    }

    /// Writes the remaining text, and waits until the pager exits.
    ///
    /// # Errors
    /// Fails if a write fails; if the user closes the pager early, the error is a broken pipe.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.0, PagedState::Finished) {
            PagedState::Plain(mut out) => out.flush(),
            PagedState::Held { text, .. } => stdout().write_all(&text).and_then(|()| stdout().flush()),
            PagedState::Paged(pager) => pager.end(),
            PagedState::Finished => Ok(()),
        }
    }
}

impl Write for PagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            PagedState::Plain(out) => out.write(bytes),
            PagedState::Paged(pager) => match pager.text.write(bytes) {
                // The pager has exited. Its exit status shows whether the user closed it or it never ran.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.end().and(Err(error)),
                written => written,
            },
            PagedState::Held { text, left } => {
                text.extend_from_slice(bytes);
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
                if let Some(still) = left.checked_sub(lines) {
                    *left = still;
                    return Ok(bytes.len());
                }
                let text = std::mem::take(text);
                self.0 = Pager::start().map_or_else(|_| plain(stdout()), PagedState::Paged);
                self.write_all(&text).map(|()| bytes.len())
            }
            PagedState::Finished => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            PagedState::Plain(out) => out.flush(),
            PagedState::Paged(pager) => pager.text.flush(),
            // The text may still become longer than the terminal.
            PagedState::Held { .. } | PagedState::Finished => Ok(()),
        }
    }
}

impl Drop for PagedOutput {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn plain(to: impl Write + 'static) -> PagedState {
    PagedState::Plain(BufWriter::with_capacity(1 << 16, Box::new(to)))
}

/// Keyboard signals that pmc ignores while the pager runs, because they are meant for the pager.
const ITS_OWN: [i32; 2] = [signal::INT, signal::QUIT];

/// A running pager. It owns the terminal and the keyboard, so pmc delays its messages.
struct Pager {
    text: BufWriter<ChildStdin>,
    process: Child,
    _hold: Option<say::MessageHold>,
}

impl Pager {
    /// Starts the configured pager, or else the first installed default pager.
    fn start() -> io::Result<Self> {
        match said(|name| std::env::var(name).ok()) {
            Some(command) => Self::spawn(&command),
            None => Self::spawn("pager").or_else(|_| Self::spawn("less")),
        }
    }

    fn spawn(command: &str) -> io::Result<Self> {
        // Use a shell only for commands with shell syntax. Without a shell, a missing program is detected
        // immediately.
        let is_plain = |c: char| c.is_alphanumeric() || " /-_.,+:=%@".contains(c);
        let mut words = command.split_ascii_whitespace();
        let sets = words.clone().next().is_some_and(|word| word.contains('='));
        let is_words = !sets && command.chars().all(is_plain);
        let mut pager = match words.next() {
            Some(program) if is_words => helper(program),
            _ => helper("sh"),
        };
        match is_words {
            true => pager.args(words),
            false => pager.args(["-c", command]),
        };
        // less shows colours only with -R, so add this option to the user's `LESS`.
        pager.env("LESS", std::env::var("LESS").map_or("FRSX".to_owned(), |own| format!("-R {own}")));
        if ["LESSCHARSET", "LESSCHARDEF"].iter().all(|name| std::env::var_os(name).is_none()) {
            // pmc's output is UTF-8 in all locales.
            pager.env("LESSCHARSET", "utf-8");
        }
        let mut process = pager.stdin(Stdio::piped()).spawn()?;
        let text = process.stdin.take().map(BufWriter::new).ok_or(ErrorKind::BrokenPipe)?;
        signal::ignore(&ITS_OWN);
        Ok(Self { text, process, _hold: say::hold() })
    }

    fn end(self) -> io::Result<()> {
        let Self { mut text, mut process, _hold } = self;
        let written = text.flush();
        drop(text);
        let status = process.wait();
        signal::restore_default(&ITS_OWN);
        match status?.code() {
            // The shell exits with these statuses if it cannot run the program.
            Some(126 | 127) => {
                Err(io::Error::other("the pager did not start; check PAGER, or use --no-pager"))
            }
            _ => written,
        }
    }
}

/// Returns the pager command from the environment variables. An empty string turns paging off.
fn said(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let command = variable("PERF_PAGER").or_else(|| variable("PAGER"))?;
    let command = command.trim();
    Some(if command == "cat" { String::new() } else { command.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pager_is_chosen_like_perf() {
        let of = |set: &[(&str, &str)]| {
            said(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("PAGER", "less -S")]).as_deref(), Some("less -S"));
        assert_eq!(of(&[("PAGER", "less"), ("PERF_PAGER", "more")]).as_deref(), Some("more"));
        for none in ["cat", "", " "] {
            assert_eq!(of(&[("PAGER", none)]).as_deref(), Some(""));
            assert_eq!(of(&[("PAGER", "less"), ("PERF_PAGER", none)]).as_deref(), Some(""));
        }
    }
}
