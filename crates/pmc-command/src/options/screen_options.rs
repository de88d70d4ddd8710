//! Appearance options: the theme of full screens, and the colours of text.

use clap::Args;

use crate::values::one_of;
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::theme::Background;

/// Colours of commands with a full-screen interface.
#[derive(Debug, Clone, Default, Args)]
pub struct ScreenOptions {
    /// Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]
    #[arg(long, value_name = "THEME", value_parser = one_of(THEMES), help_heading = "Output")]
    pub theme: Option<ThemeChoice>,
}

/// The terminal's background, if the user specifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThemeChoice(Option<Background>);

const THEMES: &[(&str, ThemeChoice)] = &[
    ("auto", ThemeChoice(None)),
    ("dark", ThemeChoice(Some(Background::Dark))),
    ("light", ThemeChoice(Some(Background::Light))),
];

impl ScreenOptions {
    /// Returns the background selected by `--theme`, or else by `PMC_THEME`. If the result is `None`, ask the
    /// terminal.
    ///
    /// # Errors
    /// Fails if the variable has an invalid value.
    pub fn background(&self) -> Result<Option<Background>> {
        if let Some(ThemeChoice(background)) = self.theme {
            return Ok(background);
        }
        let variable = std::env::var("PMC_THEME").unwrap_or_default();
        match THEMES.iter().find(|(word, _)| *word == variable) {
            Some((_, ThemeChoice(background))) => Ok(*background),
            None if variable.is_empty() => Ok(None),
            None => Err(Error::usage(format!("PMC_THEME is {variable:?}, which is not a known theme"))
                .try_this("dark, light or auto")),
        }
    }
}

/// When to colour text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourChoice {
    /// Always.
    Always,
    /// Never.
    Never,
    /// On a terminal.
    #[default]
    Auto,
}

impl ColourChoice {
    /// The words of `--stdio-color`.
    pub const WORDS: &[(&str, Self)] =
        &[("always", Self::Always), ("never", Self::Never), ("auto", Self::Auto)];

    /// Returns whether to use colours; `None` if this depends on the terminal.
    pub fn forced(self) -> Option<bool> {
        match self {
            Self::Always => Some(true),
            Self::Never => Some(false),
            Self::Auto => None,
        }
    }
}
