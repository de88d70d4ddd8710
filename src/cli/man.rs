//! Options of `pmc man`, which packages use. The list of commands does not show it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

/// Write the manual: man pages, or Markdown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc man record | man -l -                        read a page
  pmc man --output /usr/local/share/man/man1       install all pages
  pmc man --markdown lock                          for programs and agents")]
pub struct ManArgs {
    /// Command whose page to write [default: the page of pmc itself]
    #[arg(value_name = "COMMAND", value_parser = PossibleValuesParser::new(super::Command::NAMES))]
    #[arg(hide_possible_values = true)]
    pub(crate) command: Option<String>,

    /// Write all pages into this directory
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) output: Option<PathBuf>,

    /// Write Markdown instead of man pages
    #[arg(long)]
    pub(crate) markdown: bool,
}
