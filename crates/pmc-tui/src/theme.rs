//! Converts pmc's terminal theme to ratatui styles.

use ratatui::style::{Color, Modifier, Style};

use pmc_analysis::profile::sampled::{CodeKind, ThreadState};
use pmc_text::terminal::Colours;
use pmc_text::terminal::theme::{self, Background, Colour, HueFamily, TextRole, TextStyle};

/// Styles for the elements of the screen.
#[derive(Debug, Clone, Copy)]
pub struct ScreenTheme(theme::Theme);

/// Minimum share at which a cost is highlighted, as in perf.
const COSTLY: f64 = 0.05;

impl ScreenTheme {
    /// Returns the theme for a terminal with these colours on this background.
    pub fn new(colours: Colours, background: Background) -> Self {
        Self(theme::Theme::new(colours, background))
    }

    fn style(self, role: TextRole) -> Style {
        style(self.0.style(role))
    }

    /// Ordinary text.
    pub fn plain(self) -> Style {
        self.style(TextRole::Plain)
    }

    /// Less important text.
    pub fn dim(self) -> Style {
        self.style(TextRole::Quiet)
    }

    /// More important text.
    pub fn bold(self) -> Style {
        self.style(TextRole::Strong)
    }

    /// Column headings.
    pub fn heading(self) -> Style {
        self.style(TextRole::Heading)
    }

    /// The cursor's line. This style overrides all other colours in the line.
    pub fn cursor(self) -> Style {
        let over = self.style(TextRole::Cursor).fg(Color::Reset).bg(Color::Reset);
        over.remove_modifier(Modifier::DIM)
    }

    /// A match of the search.
    pub fn found(self) -> Style {
        self.style(TextRole::Found)
    }

    /// A marked row.
    pub fn marked(self) -> Style {
        self.style(TextRole::Marked)
    }

    /// A warning about errors or lost data.
    pub fn warning(self) -> Style {
        self.style(TextRole::Warning)
    }

    /// Keys in hints and on the help page.
    pub fn key(self) -> Style {
        self.style(TextRole::Key)
    }

    /// A share, from 0 to 1. Shares that round to zero are dimmed.
    pub fn share(self, share: f64) -> Style {
        self.style(match share {
            COSTLY.. => TextRole::Costly,
            0.0..0.000_05 => TextRole::Quiet,
            _ => TextRole::Plain,
        })
    }

    /// A function's name, coloured by kind of code.
    pub fn function(self, kind: CodeKind) -> Style {
        self.style(match kind {
            CodeKind::Kernel => TextRole::Kernel,
            CodeKind::Generated => TextRole::Generated,
            CodeKind::Program | CodeKind::Library | CodeKind::Unknown => TextRole::Plain,
        })
    }

    /// The bar that shows a share.
    pub fn bar(self) -> Style {
        self.style(TextRole::Bar)
    }

    /// Source lines between instructions.
    pub fn source(self) -> Style {
        self.style(TextRole::Source)
    }

    /// A box of the flame graph.
    pub fn flame(self, name: &str, kind: CodeKind) -> Style {
        let family = match kind {
            CodeKind::Program => HueFamily::Program,
            CodeKind::Library => HueFamily::Library,
            CodeKind::Kernel => HueFamily::Kernel,
            CodeKind::Generated => HueFamily::Generated,
            CodeKind::Unknown => HueFamily::Unknown,
        };
        style(self.0.flame(name, family))
    }

    /// A box of a flame graph with waiting time.
    pub fn flame_with_waits(self, name: &str, kind: CodeKind, state: ThreadState) -> Style {
        let family = match (state, kind) {
            (ThreadState::Runnable, _) => HueFamily::Runnable,
            (ThreadState::Blocked, _) => HueFamily::Blocked,
            (ThreadState::Running, CodeKind::Kernel) => HueFamily::KernelAmongWaits,
            (ThreadState::Running, _) => return self.flame(name, kind),
        };
        style(self.0.flame(name, family))
    }

    /// A thread state, in the colours of flame graphs.
    pub fn state(self, state: ThreadState) -> Style {
        self.flame_with_waits("", CodeKind::Program, state)
    }

    /// A box of the flame graph that matches the search.
    pub fn flame_found(self) -> Style {
        style(self.0.flame_found())
    }
}

fn style(look: TextStyle) -> Style {
    let colour = |colour| match colour {
        Colour::Indexed(number) => Color::Indexed(number),
        Colour::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    };
    let weights = [
        (look.bold, Modifier::BOLD),
        (look.dim, Modifier::DIM),
        (look.underlined, Modifier::UNDERLINED),
        (look.reversed, Modifier::REVERSED),
    ];
    let weights = weights.into_iter().filter(|(has, _)| *has);
    Style {
        fg: look.text.map(colour),
        bg: look.ground.map(colour),
        add_modifier: weights.map(|(_, weight)| weight).collect(),
        ..Style::new()
    }
}
