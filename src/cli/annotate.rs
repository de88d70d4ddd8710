//! Options of `pmc annotate`, and the request that they make.

use std::path::PathBuf;

use clap::Args;

use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::profile::annotate::PercentBasis;
use pmc_analysis::profile::sampled::NameStyle;
use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::screen_options::{ColourChoice, ScreenOptions};
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::{Limit, SYNTAXES, one_of};
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::error::Result;
use pmc_text::terminal::Stream;
use pmc_view::annotate::{AnnotateLayout, AnnotateRequest, ListingFormat};

/// The words of `--percent-type`.
const PERCENT_TYPES: &[(&str, PercentBasis)] = &[
    ("local-period", PercentBasis::LocalPeriod),
    ("local-hits", PercentBasis::LocalHits),
    ("global-period", PercentBasis::GlobalPeriod),
    ("global-hits", PercentBasis::GlobalHits),
    ("period-local", PercentBasis::LocalPeriod),
    ("period-global", PercentBasis::GlobalPeriod),
    ("hits-local", PercentBasis::LocalHits),
    ("hits-global", PercentBasis::GlobalHits),
];

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
#[command(mut_args(|option| if option.get_id() == "tid" { option.hide_short_help(true) } else { option }))]
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
    #[arg(long, value_name = "OF", default_value = "local-period", value_parser = one_of(PERCENT_TYPES), help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percent_type: PercentBasis,

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
        default_value = "0",
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: Limit,

    /// x86 assembly syntax: att or intel
    #[arg(short = 'M', long, value_name = "STYLE", default_value = "att", value_parser = one_of(SYNTAXES), help_heading = "Rows and columns")]
    pub(crate) disassembler_style: Syntax,

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

    /// --no-source, unless --source or --source-only is typed: the setting annotate.hide_src_code
    #[arg(long, hide = true)]
    pub(crate) default_no_source: bool,

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
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = one_of(ColourChoice::WORDS), help_heading = "Output", hide_short_help = true)]
    pub(crate) stdio_color: ColourChoice,

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

/// Default number of functions shown.
const FUNCTIONS: usize = 3;

impl AnnotateArgs {
    /// Returns which code to show.
    ///
    /// # Errors
    /// Fails if an environment variable is invalid, or no debuginfod server is configured.
    pub(crate) fn request(self) -> Result<AnnotateRequest> {
        let of_text =
            self.stdio || self.stdio2 || self.json || self.source_only || self.print_line || self.full_paths;
        let of_columns = self.show_nr_samples || self.show_total_period || self.asm_raw;
        let of_columns = of_columns || self.percent_type != PercentBasis::LocalPeriod;
        let of_columns = of_columns || self.stdio_color != ColourChoice::Auto;
        let of_length =
            self.limit != Limit::ALL || self.percent_limit.is_some() || self.functions != FUNCTIONS;
        let function = self.function.or(self.symbol);
        let with_source = !self.no_source && (self.source || self.source_only || !self.default_no_source);
        Ok(AnnotateRequest {
            input: self.input,
            browses: self.tui || !(of_text || of_columns || of_length),
            background: self.screen.background()?,
            samples: AnalysisRequest {
                selection: self.filter.selection(),
                callers: false,
                joins: !self.filter.no_join,
                idle: self.filter.idle,
                name_style: NameStyle { raw: self.no_demangle, ..NameStyle::default() },
                ..AnalysisRequest::new(self.symbol_files.symbol_options()?)
            },
            code: AnnotationRequest {
                most: if function.is_some() { 0 } else { self.functions },
                function,
                dsos: self.dsos,
                limit: self.percent_limit.unwrap_or(0.0),
                skip_missing: self.skip_missing,
                options: ListingOptions {
                    syntax: self.disassembler_style,
                    with_source,
                    folders: SourceFolders {
                        symfs: self.symbol_files.symfs,
                        prefix: self.prefix,
                        strip: self.prefix_strip,
                    },
                    raw_names: self.no_demangle,
                    kcore: self.kcore,
                },
            },
            layout: AnnotateLayout {
                form: match (self.json, self.stdio2) {
                    (true, _) => ListingFormat::Json,
                    (_, false) if !Stream::Output.is_terminal() => ListingFormat::Rows,
                    _ => ListingFormat::Text,
                },
                basis: self.percent_type,
                source: with_source,
                instructions: !self.source_only,
                show_samples: self.show_nr_samples,
                show_period: self.show_total_period,
                group: self.group,
                file_names: self.print_line,
                full_paths: self.full_paths,
                raw_bytes: self.asm_raw,
                rows: self.limit.get(),
                colour: self.stdio_color.forced().unwrap_or_else(|| Stream::Output.has_colour()),
            },
        })
    }
}
