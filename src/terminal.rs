//! The terminal: whether a stream leads to one, and what it can show. Decided here, once, for everybody.
//!
//! Receives the surroundings (`NO_COLOR`, `TERM`, what standard streams are); leaves to others what they
//! draw.

use std::ffi::OsStr;
use std::io::IsTerminal;

use rustix::termios::tcgetwinsize;

/// A standard stream of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What is typed.
    Input,
    /// Results.
    Output,
    /// What pmc says about itself.
    Error,
}

impl Stream {
    /// Whether a person sits at the other end.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Input => std::io::stdin().is_terminal(),
            Self::Output => std::io::stdout().is_terminal(),
            Self::Error => std::io::stderr().is_terminal(),
        }
    }

    /// Whether it is a terminal whose cursor can be moved: one that a line can be wiped from, or a screen
    /// drawn on.
    pub fn is_screen(self) -> bool {
        self.is_terminal() && !is_dumb(std::env::var_os("TERM").as_deref())
    }

    /// Whether colours belong there: a terminal that is not dumb, and nobody has set `NO_COLOR`.
    pub fn has_colour(self) -> bool {
        self.is_screen() && !forbids_colour(std::env::var_os("NO_COLOR").as_deref())
    }

    /// Columns and lines of the terminal; `None` where there is none, or where it does not know.
    pub fn size(self) -> Option<(u16, u16)> {
        let size = match self {
            Self::Input => tcgetwinsize(std::io::stdin()),
            Self::Output => tcgetwinsize(std::io::stdout()),
            Self::Error => tcgetwinsize(std::io::stderr()),
        };
        size.ok().map(|size| (size.ws_col, size.ws_row)).filter(|&(columns, lines)| columns > 0 && lines > 0)
    }
}

/// No `TERM` at all is what cron and editors' shells have: nobody there moves a cursor.
fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term.is_empty() || term == "dumb")
}

/// As <https://no-color.org> has it: set, and not empty.
fn forbids_colour(no_color: Option<&OsStr>) -> bool {
    no_color.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_name_is_dumb() {
        for (term, dumb) in [(None, true), (Some(""), true), (Some("dumb"), true), (Some("xterm"), false)] {
            assert_eq!(is_dumb(term.map(OsStr::new)), dumb, "{term:?}");
        }
    }

    #[test]
    fn an_empty_wish_for_no_colour_is_none() {
        for (value, forbids) in [(None, false), (Some(""), false), (Some("1"), true), (Some("0"), true)] {
            assert_eq!(forbids_colour(value.map(OsStr::new)), forbids, "{value:?}");
        }
    }

    #[test]
    fn what_is_no_terminal_has_no_colour() {
        // The harness may run on a terminal; the implication holds anywhere.
        for stream in [Stream::Input, Stream::Output, Stream::Error] {
            assert!(stream.is_terminal() || !(stream.has_colour() || stream.is_screen()));
        }
    }
}
