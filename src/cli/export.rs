//! Options of `pmc export` and `pmc flamegraph`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::stack_options::StackOptions;
use pmc_command::options::symbol_files::SymbolFiles;

/// Export a recording for other tools: as flame graph, HTML, Firefox Profiler profile, pprof and more.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  pmc export -o perf.html                      a page for any browser: flame graph, functions, code
  pmc export -o perf.pb.gz                     for go tool pprof; also .firefox.json, .callgrind
  pmc export -c make --time 10%-20% -o a.svg   part of the recording
  pmc export --diff old.data -o diff.svg       increases in red, decreases in blue
  pmc record -o - -g -- make | pmc export -o make.svg
  pmc export -i app.folded -o app.html         a profile of another program: docs/import.md
  pmc export -o web7.parquet --service web     web7.samples.parquet and web7.stacks.parquet, for SQL
  pmc export --push http://localhost:4318 --service shop
                                               to an OpenTelemetry collector
docs/export.md describes the formats, docs/fleet.md the tables of parquet, docs/push.md servers.")]
pub struct ExportArgs {
    /// Format: html, svg, folded, firefox, perfetto, speedscope, pprof, otlp, callgrind, gmon (a directory,
    /// for gprof), parquet (two tables), json or csv [default: from the file name]
    #[arg(long, visible_alias = "type", value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) source: ExportSource,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) tables: ParquetTables,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) push: PushOptions,
}

/// Options of the format parquet.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ParquetTables {
    /// Label for the column `labels` (parquet); may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,

    /// Add up samples in buckets of this length, or `none` to keep each one (parquet) [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) bucket: Option<String>,

    /// Do not look up functions of programs and libraries; see pmc symbolize (parquet)
    #[arg(long)]
    pub(crate) no_symbols: bool,
}

/// The origin of the samples, and the server that receives an export.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PushOptions {
    /// Send the export to a server instead of a file: otlp=URL (default), pyroscope=URL or parca=URL. If the
    /// server refuses it, pmc keeps it in OUT
    #[arg(long, value_name = "[API=]URL")]
    pub(crate) push: Option<String>,

    /// File with HTTP headers for the server, such as `Authorization: Bearer TOKEN`
    /// [default: the environment variable PMC_PUSH_HEADERS]
    #[arg(long, value_name = "FILE", requires = "push")]
    pub(crate) push_headers: Option<PathBuf>,

    /// Name of the recorded service (otlp, parquet, --push)
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,

    /// Version of the service (otlp, parquet, --push)
    #[arg(long, value_name = "TEXT")]
    pub(crate) service_version: Option<String>,

    /// Name of the recorded host (otlp, parquet, --push) [default: the recorded name]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,

    /// Export sums of periods instead of the time of each sample (otlp)
    #[arg(long)]
    pub(crate) aggregate: bool,
}

/// Draw a flame graph of a recording: pmc export with SVG as the default format.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  pmc flamegraph                          perf.data as flamegraph.svg
  pmc flamegraph -c make -o make.svg      one program
  pmc flamegraph --diff old.data          increases in red, decreases in blue")]
pub struct FlamegraphArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) source: ExportSource,
}

/// The output and its destination.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportSource {
    /// Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub(crate) file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// File to write (gmon: directory, parquet: start of two names); its extension selects the format;
    /// `-` is stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Export only this event [default: all if the format supports several, else the first]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) event: Option<String>,

    /// Show the difference from this recording (svg)
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) filter: SampleFilter,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) stacks: StackOptions,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    /// Print no messages except errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
