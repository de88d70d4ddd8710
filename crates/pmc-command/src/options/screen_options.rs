//! Appearance options shared by all commands with a full-screen interface.

use clap::Args;

/// Colours.
#[derive(Debug, Clone, Default, Args)]
pub struct ScreenOptions {
    /// Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]
    #[arg(long, value_name = "THEME", value_parser = ["auto", "dark", "light"], help_heading = "Output")]
    pub theme: Option<String>,
}
