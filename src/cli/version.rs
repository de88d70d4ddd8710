//! `pmc version`: what can be typed.

use clap::Args;

/// Show the version.
#[derive(Debug, Args)]
pub struct Version {
    /// Show what this build can do, too
    #[arg(short = 'v', long)]
    pub build_options: bool,
}
