//! Options of `pmc kallsyms`.

use clap::Args;

/// Show the addresses of symbols in the running kernel.
#[derive(Debug, Args)]
pub struct KallsymsArgs {
    /// Names of functions and variables, including those in modules
    #[arg(value_name = "SYMBOL", value_delimiter = ',', required = true)]
    pub(crate) symbols: Vec<String>,
}
