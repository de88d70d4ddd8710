//! Colours and styles: the terminal's own foreground and background and its 16 colours, so that light and
//! dark terminals both stay legible; with `NO_COLOR` weight, underline and reversal only.

use ratatui::style::{Color, Modifier, Style};

/// What stands out how.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    has_colour: bool,
}

/// Backgrounds of user code in the flame graph: black is legible on each of them.
const WARM: [Color; 6] =
    [Color::Red, Color::Yellow, Color::LightRed, Color::LightYellow, Color::Magenta, Color::LightMagenta];
/// Those of the kernel.
const COOL: [Color; 4] = [Color::Cyan, Color::LightCyan, Color::LightBlue, Color::Green];

impl Theme {
    /// With colours or without.
    pub fn new(has_colour: bool) -> Self {
        Self { has_colour }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Nothing special.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// Less important.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// More important.
    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Headings of columns.
    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// The line of the cursor.
    pub fn cursor(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What the search found.
    pub fn found(self) -> Style {
        self.coloured(Color::Magenta).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// A marked row.
    pub fn marked(self) -> Style {
        self.coloured(Color::Blue).add_modifier(Modifier::BOLD)
    }

    /// Something is wrong or lost.
    pub fn warning(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Keys in hints and on the help page.
    pub fn key(self) -> Style {
        self.coloured(Color::Blue).add_modifier(Modifier::BOLD)
    }

    /// A share, 0 to 1: perf's limits.
    pub fn share(self, share: f64) -> Style {
        if share >= 0.05 {
            self.coloured(Color::Red).add_modifier(Modifier::BOLD)
        } else if share >= 0.005 {
            self.coloured(Color::Green)
        } else {
            Style::new()
        }
    }

    /// A bar of a share.
    pub fn bar(self) -> Style {
        self.coloured(Color::Red)
    }

    /// Source lines between instructions.
    pub fn source(self) -> Style {
        self.coloured(Color::Blue)
    }

    /// A box of the flame graph: the same name has the same colour in every run. Without colours neighbours
    /// are told apart by their borders.
    pub fn flame(self, name: &str, is_kernel: bool) -> Style {
        if !self.has_colour {
            return Style::new();
        }
        let list: &[Color] = if is_kernel { &COOL } else { &WARM };
        Style::new().fg(Color::Black).bg(list[shade(name) as usize % list.len()])
    }

    /// A box of the flame graph that the search found.
    pub fn flame_found(self) -> Style {
        if self.has_colour {
            Style::new().fg(Color::White).bg(Color::Blue).add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        }
    }
}

/// A number for a name, the same in every run: what its colour is chosen by.
fn shade(name: &str) -> u32 {
    // FNV-1a, 32 bits.
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
