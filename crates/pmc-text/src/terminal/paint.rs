//! Styled text for printed lines: surrounds words with the theme's escape sequences, if colours are enabled.

use std::fmt::Write;

use super::theme::{Colour, TextRole, TextStyle, Theme};

/// Text styles; the default leaves text unstyled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paint(Option<Theme>);

impl Paint {
    /// Creates the styles of a theme.
    pub(crate) fn new(theme: Theme) -> Self {
        Self(Some(theme))
    }

    /// Returns the words in the style of the role. `words` must not contain control characters. Leading and
    /// trailing blanks are not styled, so that the space between columns is never underlined.
    pub fn words(self, role: TextRole, words: &str) -> String {
        let style = self.0.map(|theme| theme.style(role)).unwrap_or_default();
        let inner = words.trim();
        if style == TextStyle::default() || inner.is_empty() {
            return words.to_owned();
        }
        let begin = words.len() - words.trim_start().len();
        let (before, after) = (&words[..begin], &words[begin + inner.len()..]);
        format!("{before}\x1b[{}m{inner}\x1b[0m{after}", parameters(style))
    }
}

/// Returns the SGR parameters of a style (ECMA-48).
fn parameters(style: TextStyle) -> String {
    let mut words: Vec<String> =
        [(style.bold, 1), (style.dim, 2), (style.underlined, 4), (style.reversed, 7)]
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, number)| number.to_string())
            .collect();
    for (ground, colour) in [(30, style.text), (40, style.ground)] {
        let mut word = String::new();
        let _ = match colour {
            None => continue,
            Some(Colour::Indexed(number @ 0..8)) => write!(word, "{}", ground + u16::from(number)),
            Some(Colour::Indexed(number @ 8..16)) => write!(word, "{}", ground + 52 + u16::from(number)),
            Some(Colour::Indexed(number)) => write!(word, "{};5;{number}", ground + 8),
            Some(Colour::Rgb(red, green, blue)) => write!(word, "{};2;{red};{green};{blue}", ground + 8),
        };
        words.push(word);
    }
    words.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Colours;
    use crate::terminal::theme::Background;

    #[test]
    fn text_uses_theme_styles() {
        let paint = |colours| Paint::new(Theme::new(colours, Background::Dark));
        assert_eq!(Paint::default().words(TextRole::Heading, " Self"), " Self");
        assert_eq!(paint(Colours::All).words(TextRole::Plain, "main"), "main");
        assert_eq!(paint(Colours::All).words(TextRole::Heading, " Self "), " \x1b[1;4mSelf\x1b[0m ");
        assert_eq!(paint(Colours::All).words(TextRole::Kernel, "f"), "\x1b[38;2;86;182;224mf\x1b[0m");
        assert_eq!(paint(Colours::Many).words(TextRole::Kernel, "f"), "\x1b[38;5;74mf\x1b[0m");
        assert_eq!(paint(Colours::Sixteen).words(TextRole::Kernel, "f"), "\x1b[96mf\x1b[0m");
        assert_eq!(paint(Colours::Sixteen).words(TextRole::Bar, "f"), "\x1b[33mf\x1b[0m");
        assert_eq!(paint(Colours::Sixteen).words(TextRole::Quiet, "  "), "  ");
    }
}
