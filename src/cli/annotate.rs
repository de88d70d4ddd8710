//! Options of `pmc annotate`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::symbol_files::SymbolFiles;

/// Show the cost of each instruction and source line of a function.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc annotate                            the hottest function; in a pipe, rows for the hottest few
  pmc annotate compress -M intel          one function, Intel syntax
  pmc annotate compress --source-only     source lines with their costs, no instructions
  pmc annotate --limit 30                 the hottest part of each function
  pmc annotate --json                     everything, as one JSON document
Instructions come from the program's file, /proc/kcore, a vmlinux or a jitdump; objdump is not needed.
docs/annotate.md explains the columns and the fields of --json.")]
pub struct AnnotateArgs {
    /// Function name, with or without parameters (also -s) [default: the hottest functions]
    #[arg(value_name = "SYMBOL", conflicts_with = "symbol")]
    pub(crate) function: Option<String>,

    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// The function
    #[arg(short, long, value_name = "SYMBOL", help_heading = "Functions")]
    pub(crate) symbol: Option<String>,

    /// Only functions of these programs and libraries
    #[arg(
        short,
        long,
        visible_alias = "dso",
        value_name = "NAME,…",
        value_delimiter = ',',
        help_heading = "Functions"
    )]
    pub(crate) dsos: Vec<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) filter: SampleFilter,

    /// Number of functions to show if none is named; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Functions")]
    pub(crate) functions: usize,

    /// Hide functions below this percentage of the event's total
    #[arg(long, value_name = "PERCENT", help_heading = "Rows and columns")]
    pub(crate) percent_limit: Option<f64>,

    /// What percentages refer to: the function (local) or all samples (global), by period or by hits
    #[arg(long, value_name = "OF", default_value = "local-period", value_parser = ["local-period", "local-hits", "global-period", "global-hits", "period-local", "period-global", "hits-local", "hits-global"], help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percent_type: String,

    /// Also show the number of samples (replaces percentages in perf's row format)
    #[arg(short = 'n', long, help_heading = "Rows and columns")]
    pub(crate) show_nr_samples: bool,

    /// Also show the sum of periods (replaces percentages in perf's row format)
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) show_total_period: bool,

    /// Skip functions that cannot be disassembled
    #[arg(long, help_heading = "Functions", hide_short_help = true)]
    pub(crate) skip_missing: bool,

    /// Maximum number of rows per function: the N consecutive rows with the most samples; 0 shows all
    #[arg(
        long,
        visible_alias = "max-rows",
        value_name = "N",
        default_value_t = 0,
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: usize,

    /// x86 assembly syntax: att or intel
    #[arg(short = 'M', long, value_name = "STYLE", default_value = "att", value_parser = ["att", "intel"], help_heading = "Rows and columns")]
    pub(crate) disassembler_style: String,

    /// Show the bytes of each instruction
    #[arg(long, overrides_with = "no_asm_raw", help_heading = "Rows and columns")]
    pub(crate) asm_raw: bool,

    /// Do not show the bytes of each instruction (default)
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) no_asm_raw: bool,

    /// Show source lines between the instructions (default)
    #[arg(long, overrides_with = "no_source", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) source: bool,

    /// Show instructions only
    #[arg(long, conflicts_with = "source_only", help_heading = "Rows and columns")]
    pub(crate) no_source: bool,

    /// Show source lines only
    #[arg(long, help_heading = "Rows and columns")]
    pub(crate) source_only: bool,

    /// Show the file name before each line number
    #[arg(short = 'l', long, help_heading = "Rows and columns")]
    pub(crate) print_line: bool,

    /// Show full paths of source files
    #[arg(short = 'P', long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) full_paths: bool,

    /// Directory that replaces the start of source paths; --prefix-strip sets how many components
    #[arg(long, value_name = "DIR", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) prefix: Option<PathBuf>,

    /// Number of leading components to strip from source paths
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "prefix",
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) prefix_strip: usize,

    /// In perf's row format, show all events side by side, not only those recorded as a group
    #[arg(long, help_heading = "Rows and columns")]
    pub(crate) group: bool,

    /// Demangle symbol names (default)
    #[arg(long, overrides_with = "no_demangle", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) demangle: bool,

    /// Show mangled symbol names
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) no_demangle: bool,

    /// Use the full-screen interface (default on a terminal)
    #[arg(long, conflicts_with_all = ["stdio", "stdio2", "json"], help_heading = "Output", hide_short_help = true)]
    pub(crate) tui: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) screen: ScreenOptions,

    /// Print text even on a terminal (implied by text options such as --limit); in a pipe, print perf's
    /// row format
    #[arg(long, help_heading = "Output")]
    pub(crate) stdio: bool,

    /// Print pmc's own listing, with jump arrows and error margins, even when piped
    #[arg(long, conflicts_with = "stdio", help_heading = "Output", hide_short_help = true)]
    pub(crate) stdio2: bool,

    /// When to colour the output: always, never, or auto (on a terminal)
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = ["always", "never", "auto"], help_heading = "Output", hide_short_help = true)]
    pub(crate) stdio_color: String,

    /// Print one JSON document
    #[arg(short = 'j', long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    /// Copy of the recorded machine's /proc/kcore
    #[arg(long, value_name = "FILE", help_heading = "Names", hide_short_help = true)]
    pub(crate) kcore: Option<PathBuf>,

    /// Print no messages except errors
    #[arg(short, long, help_heading = "Output", hide_short_help = true)]
    pub(crate) quiet: bool,
}
