//! `pmc annotate`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::sample_filter::SampleFilter;
use super::screen_options::ScreenOptions;
use super::symbol_files::SymbolFiles;

/// Show what each instruction and source line of a function cost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc annotate                            the code of the costliest function; to a pipe, of the costliest few in rows
  pmc annotate compress -M intel          one function, Intel's syntax
  pmc annotate compress --source-only     source lines with their cost, no instructions
  pmc annotate --max-rows 30              the hottest part of each function
  pmc annotate --json                     everything, as one document
The instructions come from the program's file, /proc/kcore, a vmlinux or a jitdump; objdump is not needed.
What the columns and the fields of --json mean: docs/annotate.md.")]
pub struct Annotate {
    /// The function (also as -s): its name, with or without parameters [default: the costliest few]
    #[arg(value_name = "SYMBOL", conflicts_with = "symbol")]
    pub function: Option<String>,

    /// The recording; `-` is standard input [default: what comes on it, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// The function
    #[arg(short, long, value_name = "SYMBOL")]
    pub symbol: Option<String>,

    /// Only functions of these programs and libraries
    #[arg(short, long, visible_alias = "dso", value_name = "NAME,…", value_delimiter = ',')]
    pub dsos: Vec<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub filter: SampleFilter,

    /// How many functions, where none is named; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub functions: usize,

    /// Leave out functions below this percentage of the event
    #[arg(long, value_name = "PERCENT")]
    pub percent_limit: Option<f64>,

    /// What percentages are parts of: the function or all samples, by period or by number
    #[arg(long, value_name = "OF", default_value = "local-period", value_parser = ["local-period", "local-hits", "global-period", "global-hits", "period-local", "period-global", "hits-local", "hits-global"])]
    pub percent_type: String,

    /// Show the number of samples too (in rows: instead of percentages)
    #[arg(short = 'n', long)]
    pub show_nr_samples: bool,

    /// Show the sum of periods too (in rows: instead of percentages)
    #[arg(long)]
    pub show_total_period: bool,

    /// Leave out functions whose instructions are not to be had
    #[arg(long)]
    pub skip_missing: bool,

    /// Rows of each function, around its hottest; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_rows: usize,

    /// How x86 instructions are written: att or intel
    #[arg(short = 'M', long, value_name = "STYLE", default_value = "att", value_parser = ["att", "intel"])]
    pub disassembler_style: String,

    /// Show the bytes of instructions
    #[arg(long, overrides_with = "no_asm_raw")]
    pub asm_raw: bool,

    /// Do not show the bytes of instructions (default)
    #[arg(long)]
    pub no_asm_raw: bool,

    /// Show source lines between the instructions (default)
    #[arg(long, overrides_with = "no_source")]
    pub source: bool,

    /// Only instructions
    #[arg(long, conflicts_with = "source_only")]
    pub no_source: bool,

    /// Only source lines
    #[arg(long)]
    pub source_only: bool,

    /// Write the file's name before each line's number
    #[arg(short = 'l', long)]
    pub print_line: bool,

    /// Do not shorten paths of source files
    #[arg(short = 'P', long)]
    pub full_paths: bool,

    /// A folder that stands for the first folders of sources' paths; --prefix-strip says for how many
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,

    /// Leave out so many folders from the beginning of sources' paths
    #[arg(long, value_name = "N", default_value_t = 0, requires = "prefix")]
    pub prefix_strip: usize,

    /// In rows, show all events side by side, not only those of a recorded group
    #[arg(long)]
    pub group: bool,

    /// Names as people write them (default)
    #[arg(long, overrides_with = "no_demangle")]
    pub demangle: bool,

    /// Names as the compiler wrote them
    #[arg(long)]
    pub no_demangle: bool,

    /// Take the whole screen (the default on a terminal)
    #[arg(long, conflicts_with_all = ["stdio", "stdio2", "json"])]
    pub tui: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub screen: ScreenOptions,

    /// Print text on a terminal too (so does any option that only text can follow, such as --max-rows); to a
    /// pipe rows in perf's form, which awk takes
    #[arg(long)]
    pub stdio: bool,

    /// Print pmc's own listing to a pipe too, with arrows and the error of each percentage
    #[arg(long, conflicts_with = "stdio")]
    pub stdio2: bool,

    /// Whether text has colours: always, never, or auto, on a terminal
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = ["always", "never", "auto"])]
    pub stdio_color: String,

    /// Print one JSON document
    #[arg(short = 'j', long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub symbol_files: SymbolFiles,

    /// A copy of the recorded machine's /proc/kcore
    #[arg(long, value_name = "FILE")]
    pub kcore: Option<PathBuf>,

    /// Do not say what is not an error
    #[arg(short, long)]
    pub quiet: bool,
}
