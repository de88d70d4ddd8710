//! The terminal: whether a stream leads to one, and what it can show. Decided here, once, for everybody.
//!
//! Receives the surroundings (`NO_COLOR`, `TERM`, `COLORTERM`, `COLORFGBG`, what standard streams are);
//! leaves to others what they draw.

mod paint;
pub mod theme;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

pub use paint::Paint;
use theme::{Background, Theme};

/// How many colours can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// None: no terminal, a dumb one, or nobody wants them.
    None,
    /// The 16 that every terminal has.
    Sixteen,
    /// xterm's 256.
    Many,
    /// Any red, green and blue.
    All,
}

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

    /// How many colours belong there.
    pub fn colours(self) -> Colours {
        let variable = |name| std::env::var(name).unwrap_or_default();
        match self.has_colour() {
            true => colours(&variable("TERM"), &variable("COLORTERM")),
            false => Colours::None,
        }
    }

    /// Columns and lines of the terminal; `None` where there is none, or where it does not know.
    pub fn size(self) -> Option<(u16, u16)> {
        match self {
            Self::Input => size(std::io::stdin()),
            Self::Output => size(std::io::stdout()),
            Self::Error => size(std::io::stderr()),
        }
    }
}

/// The same of a file that is open.
pub fn size(file: impl AsFd) -> Option<(u16, u16)> {
    let size = tcgetwinsize(file).ok()?;
    Some((size.ws_col, size.ws_row)).filter(|&(columns, lines)| columns > 0 && lines > 0)
}

/// Looks for text on that stream: `wanted` by option, else where colours belong. `background`: where somebody
/// said what it is; the terminal is not asked.
pub fn paint(stream: Stream, wanted: Option<bool>, said: Option<Background>) -> Paint {
    let variable = |name| std::env::var(name).unwrap_or_default();
    match wanted.unwrap_or_else(|| stream.has_colour()) {
        true => {
            let colours = colours(&variable("TERM"), &variable("COLORTERM"));
            Paint::new(Theme::new(colours, said.unwrap_or_else(background)))
        }
        false => Paint::default(),
    }
}

/// Columns of a line that a person reads on that stream: what `COLUMNS` says, else the terminal; 100 where
/// there is none.
pub fn columns(stream: Stream) -> usize {
    line_width(std::env::var("COLUMNS").ok().as_deref(), stream.size())
}

fn line_width(said: Option<&str>, size: Option<(u16, u16)>) -> usize {
    /// Where no terminal says how wide it is.
    const USUAL: usize = 100;
    /// Fewer hold no table.
    const LEAST: usize = 40;
    let said = said.and_then(|said| said.trim().parse().ok()).filter(|said| *said > 0);
    said.unwrap_or(size.map_or(USUAL, |(columns, _)| columns.into())).max(LEAST)
}

/// What the terminal's name and `COLORTERM` promise.
fn colours(term: &str, colorterm: &str) -> Colours {
    /// Terminals that have all colours and are not always able to say so: over ssh `COLORTERM` gets lost.
    const KNOWN: &[&str] = &["direct", "kitty", "alacritty", "foot", "ghostty", "wezterm", "iterm2"];
    if matches!(colorterm, "truecolor" | "24bit") || KNOWN.iter().any(|known| term.contains(known)) {
        Colours::All
    } else if term.contains("256color") {
        Colours::Many
    } else {
        Colours::Sixteen
    }
}

/// What `COLORFGBG` says of the background: numbers of the 16 colours, text first, the background last, as
/// rxvt set it first.
pub fn background() -> Background {
    std::env::var("COLORFGBG").map_or(Background::Unknown, |value| background_of(&value))
}

fn background_of(colorfgbg: &str) -> Background {
    match colorfgbg.rsplit_once(';').map(|(_, last)| last.parse()) {
        Some(Ok(0..=6 | 8)) => Background::Dark,
        Some(Ok(7 | 9..=15)) => Background::Light,
        _ => Background::Unknown,
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
    fn lines_are_as_wide_as_somebody_says() {
        for (said, size, width) in [
            (None, None, 100),
            (None, Some((80, 24)), 80),
            (Some("120"), Some((80, 24)), 120),
            (Some("wide"), Some((132, 24)), 132),
            (Some("0"), None, 100),
            (None, Some((3, 3)), 40),
        ] {
            assert_eq!(line_width(said, size), width, "{said:?} {size:?}");
        }
    }

    #[test]
    fn names_of_terminals_promise_colours() {
        for (term, colorterm, promised) in [
            ("xterm", "", Colours::Sixteen),
            ("linux", "no", Colours::Sixteen),
            ("screen-256color", "", Colours::Many),
            ("xterm-256color", "truecolor", Colours::All),
            ("tmux", "24bit", Colours::All),
            ("xterm-kitty", "", Colours::All),
            ("xterm-direct", "", Colours::All),
        ] {
            assert_eq!(colours(term, colorterm), promised, "{term} {colorterm}");
        }
    }

    #[test]
    fn the_last_number_is_the_background() {
        for (value, background) in [
            ("15;0", Background::Dark),
            ("0;default;15", Background::Light),
            ("12;8", Background::Dark),
            ("0;7", Background::Light),
            ("15;default", Background::Unknown),
            ("0", Background::Unknown),
            ("0;99", Background::Unknown),
        ] {
            assert_eq!(background_of(value), background, "{value}");
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
