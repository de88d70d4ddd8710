//! Options of `pmc complete`, which the scripts in `completions` use. The list of commands does not show it.

use std::ffi::OsString;

use clap::Args;

/// Print the words that may continue a command line, for shells.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// Words after `pmc`, the last of which ends at the cursor
    #[arg(value_name = "WORD", last = true)]
    pub(crate) words: Vec<OsString>,
}
