//! `pmc kallsyms`: what can be typed.

use clap::Args;

/// Show where symbols of the running kernel lie.
#[derive(Debug, Args)]
pub struct Kallsyms {
    /// Names of functions and variables, of modules too
    #[arg(value_name = "SYMBOL", value_delimiter = ',', required = true)]
    pub symbols: Vec<String>,
}
