//! Options of `pmc version`.

use clap::Args;

/// Show the version.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Also show the features of this build
    #[arg(short = 'v', long)]
    pub(crate) build_options: bool,
}
