//! Which functions and callers count, and how functions are named: the options that `report` and `export`
//! share.

use clap::Args;

/// What of the stacks counts; what nothing is said about counts whole.
#[derive(Debug, Clone, Args)]
pub struct StackOptions {
    /// Longest call chain; what lies further out is left out
    #[arg(long, value_name = "FRAMES", default_value_t = 127)]
    pub max_stack: usize,

    /// Complete calls that the processor kept (record --call-graph lbr) with those of the thread's samples
    /// before
    #[arg(long)]
    pub stitch_lbr: bool,

    /// Only these programs and libraries
    #[arg(short = 'd', long, value_name = "NAME,…", value_delimiter = ',')]
    pub dsos: Vec<String>,

    /// Only these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    pub symbols: Vec<String>,

    /// Only functions with this in their names
    #[arg(long, value_name = "PART")]
    pub symbol_filter: Option<String>,

    /// Only functions whose names were found
    #[arg(short = 'U', long)]
    pub hide_unresolved: bool,

    /// Sort by the innermost function that this pattern finds, too
    #[arg(short = 'p', long, value_name = "REGEX")]
    pub parent: Option<String>,

    /// Only samples with such a parent
    #[arg(short = 'x', long)]
    pub exclude_other: bool,

    /// What these functions called counts as their own
    #[arg(long, value_name = "REGEX")]
    pub ignore_callees: Option<String>,

    /// Only samples of this socket's CPUs
    #[arg(long, value_name = "NUMBER")]
    pub socket_filter: Option<u32>,

    /// Find inlined functions and lines (default)
    #[arg(long, overrides_with = "no_inline")]
    pub inline: bool,

    /// Names from symbol tables only
    #[arg(long)]
    pub no_inline: bool,

    /// Names as people write them (default)
    #[arg(long, overrides_with = "no_demangle")]
    pub demangle: bool,

    /// Names as the compiler wrote them
    #[arg(long)]
    pub no_demangle: bool,
}
