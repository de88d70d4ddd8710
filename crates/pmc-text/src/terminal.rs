//! Terminal capabilities: whether a stream is a terminal, and what the terminal can display. All such
//! decisions are made here.
//!
//! The decisions depend on the standard streams and on the environment (`NO_COLOR`, `TERM`, `COLORTERM`,
//! `COLORFGBG`). This module does not draw.

mod paint;
pub mod theme;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

pub use paint::Paint;
use theme::{Background, Theme};

/// How many colours the terminal can display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// No colours: the stream is not a terminal, the terminal is dumb, or colours are disabled.
    None,
    /// The 16 colours of every terminal.
    Sixteen,
    /// xterm's 256 colours.
    Many,
    /// Any RGB colour.
    All,
}

/// A standard stream of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard input.
    Input,
    /// Standard output, for results.
    Output,
    /// Standard error, for pmc's messages.
    Error,
}

impl Stream {
    /// Whether the stream is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Input => std::io::stdin().is_terminal(),
            Self::Output => std::io::stdout().is_terminal(),
            Self::Error => std::io::stderr().is_terminal(),
        }
    }

    /// Whether the stream is a terminal that can move the cursor, as required to clear lines and draw full
    /// screens.
    pub fn is_screen(self) -> bool {
        self.is_terminal() && !is_dumb(std::env::var_os("TERM").as_deref())
    }

    /// Whether to use colours: on a terminal that is not dumb, unless `NO_COLOR` is set.
    pub fn has_colour(self) -> bool {
        self.is_screen() && !forbids_colour(std::env::var_os("NO_COLOR").as_deref())
    }

    /// Returns how many colours to use.
    pub fn colours(self) -> Colours {
        let variable = |name| std::env::var(name).unwrap_or_default();
        match self.has_colour() {
            true => colours(&variable("TERM"), &variable("COLORTERM")),
            false => Colours::None,
        }
    }

    /// Returns the terminal's size in columns and lines; `None` if the stream is not a terminal or the size
    /// is unknown.
    pub fn size(self) -> Option<(u16, u16)> {
        match self {
            Self::Input => size(std::io::stdin()),
            Self::Output => size(std::io::stdout()),
            Self::Error => size(std::io::stderr()),
        }
    }
}

/// Returns the size, in columns and lines, of the terminal that an open file refers to.
pub fn size(file: impl AsFd) -> Option<(u16, u16)> {
    let size = tcgetwinsize(file).ok()?;
    Some((size.ws_col, size.ws_row)).filter(|&(columns, lines)| columns > 0 && lines > 0)
}

/// Returns the styles for text on a stream. `wanted` is the user's choice; without one, colours are used if
/// the stream supports them. `said` is the background that the user specified, because the terminal itself is
/// not queried.
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

/// Returns the line width for text on a stream, in columns: `COLUMNS` if set, else the terminal's width,
/// else 100.
pub fn columns(stream: Stream) -> usize {
    line_width(std::env::var("COLUMNS").ok().as_deref(), stream.size())
}

fn line_width(said: Option<&str>, size: Option<(u16, u16)>) -> usize {
    /// Default width if there is no terminal.
    const USUAL: usize = 100;
    /// Minimum width for a table.
    const LEAST: usize = 40;
    let said = said.and_then(|said| said.trim().parse().ok()).filter(|said| *said > 0);
    said.unwrap_or(size.map_or(USUAL, |(columns, _)| columns.into())).max(LEAST)
}

/// Returns how many colours the terminal supports, according to its name and `COLORTERM`.
fn colours(term: &str, colorterm: &str) -> Colours {
    /// Terminals with RGB colours that may not be able to announce them, because ssh does not forward
    /// `COLORTERM`.
    const KNOWN: &[&str] = &["direct", "kitty", "alacritty", "foot", "ghostty", "wezterm", "iterm2"];
    if matches!(colorterm, "truecolor" | "24bit") || KNOWN.iter().any(|known| term.contains(known)) {
        Colours::All
    } else if term.contains("256color") {
        Colours::Many
    } else {
        Colours::Sixteen
    }
}

/// Returns the background according to `COLORFGBG`, a variable introduced by rxvt. It lists numbers of the 16
/// colours: the text colour first, and the background last.
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

/// Whether the terminal cannot move the cursor. cron and the shells inside editors do not set `TERM`.
fn is_dumb(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether the user disabled colours, as defined by <https://no-color.org>: the variable is set, and not
/// empty.
fn forbids_colour(no_color: Option<&OsStr>) -> bool {
    no_color.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_without_name_is_dumb() {
        for (term, dumb) in [(None, true), (Some(""), true), (Some("dumb"), true), (Some("xterm"), false)] {
            assert_eq!(is_dumb(term.map(OsStr::new)), dumb, "{term:?}");
        }
    }

    #[test]
    fn empty_no_color_is_ignored() {
        for (value, forbids) in [(None, false), (Some(""), false), (Some("1"), true), (Some("0"), true)] {
            assert_eq!(forbids_colour(value.map(OsStr::new)), forbids, "{value:?}");
        }
    }

    #[test]
    fn width_override_is_respected() {
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
    fn terminal_name_determines_colour_depth() {
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
    fn background_is_the_last_number() {
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
    fn non_terminals_get_no_colour() {
        // The tests may or may not run on a terminal; the assertion holds in both cases.
        for stream in [Stream::Input, Stream::Output, Stream::Error] {
            assert!(stream.is_terminal() || !(stream.has_colour() || stream.is_screen()));
        }
    }
}
