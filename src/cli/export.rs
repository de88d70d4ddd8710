//! Options of `pmc export` and `pmc flamegraph`, and the requests that they make.

use std::path::PathBuf;

use clap::Args;

use pmc_command::destination::is_standard;
use pmc_command::options::recording_file::RecordingFile;
use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::stack_options::StackOptions;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_formats::export::push::target::PushTarget;
use pmc_formats::export::request::{ExportPush, ExportRequest, RecordingLabel, TimeBucket};
use pmc_formats::export::{ExportFormat, RecordingOrigin};
use pmc_symbols::symbol::Depth;
use pmc_sys::error::{Error, Result};

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
#[command(mut_args(|option| option.hide_short_help(false)))]
pub struct ExportArgs {
    /// Format: html, svg, folded, firefox, perfetto, speedscope, pprof, otlp, callgrind, gmon (a directory,
    /// for gprof), parquet (two tables), json or csv [default: from the file name]
    #[arg(long, visible_alias = "type", value_name = "FORMAT")]
    pub(crate) format: Option<ExportFormat>,

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
    pub(crate) label: Vec<RecordingLabel>,

    /// Add up samples in buckets of this length, or `none` to keep each one (parquet) [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) bucket: Option<TimeBucket>,

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
    pub(crate) push: Option<PushTarget>,

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
#[command(mut_args(|option| option.hide_short_help(false)))]
pub struct FlamegraphArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) source: ExportSource,
}

/// The output and its destination.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportSource {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

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

impl ExportArgs {
    /// Returns what to export.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub(crate) fn request(self) -> Result<ExportRequest> {
        let Self { format: named, source, tables, push: asked } = self;
        let recording = source.recording();
        let format = match (&asked.push, named, &source.output) {
            (Some(target), ..) => target.api.format(),
            (None, Some(format), _) => format,
            (None, None, Some(file)) if !is_standard(file) => ExportFormat::of_file(file)?,
            _ => {
                return Err(Error::usage("missing output format")
                    .try_options(format!("-o FILE, with an extension: {}", ExportFormat::endings()))
                    .try_options("--format NAME"));
            }
        };
        asked.check(named, format)?;
        tables.check(format)?;
        let output = source.output.clone();
        let output = output.unwrap_or_else(|| ExportRequest::usual_output(&recording, format));
        if asked.push.is_some() && is_standard(&output) {
            return Err(Error::usage("--push cannot be combined with -o -")
                .why("with --push, -o names the file that receives what the server refuses"));
        }
        let mut request = source.request(recording, output, format)?;
        request.samples.symbols.files = !tables.no_symbols;
        let labels = tables.label.into_iter().map(|label| (label.key, label.value)).collect();
        Ok(ExportRequest {
            origin: RecordingOrigin {
                service: asked.service.unwrap_or_default(),
                version: asked.service_version.unwrap_or_default(),
                host: asked.host,
                labels,
            },
            bucket: tables.bucket.unwrap_or_default(),
            aggregate: asked.aggregate,
            push: asked.push.map(|target| ExportPush { target, headers: asked.push_headers }),
            ..request
        })
    }
}

impl FlamegraphArgs {
    /// Returns what to draw.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub(crate) fn request(self) -> Result<ExportRequest> {
        let recording = self.source.recording();
        let output = self.source.output.clone().unwrap_or_else(|| "flamegraph.svg".into());
        let format = if is_standard(&output) { ExportFormat::Svg } else { ExportFormat::of_file(&output)? };
        self.source.request(recording, output, format)
    }
}

impl ExportSource {
    fn recording(&self) -> PathBuf {
        self.recording.path()
    }

    fn request(self, recording: PathBuf, output: PathBuf, format: ExportFormat) -> Result<ExportRequest> {
        Ok(ExportRequest {
            before: self.diff,
            event: self.event,
            samples: self.stacks.samples(&self.filter, &self.symbol_files)?,
            only: self.stacks.only(),
            depth: self.stacks.no_inline.then_some(Depth::Names),
            is_quiet: self.quiet,
            ..ExportRequest::new(recording, output, format)
        })
    }
}

impl ParquetTables {
    /// Rejects options of the format parquet with other formats.
    fn check(&self, format: ExportFormat) -> Result<()> {
        let given = [
            (!self.label.is_empty(), "--label"),
            (self.bucket.is_some(), "--bucket"),
            (self.no_symbols, "--no-symbols"),
        ];
        match given.iter().find(|(is_given, _)| *is_given && !format.is_two_files()) {
            Some((_, option)) => Err(Error::usage(format!("{option} requires --format parquet"))),
            None => Ok(()),
        }
    }
}

impl PushOptions {
    /// Rejects a server that does not fit the format. `named` is the format of `--format`.
    fn check(&self, named: Option<ExportFormat>, format: ExportFormat) -> Result<()> {
        if let Some(target) = &self.push {
            target.check_secrets()?;
            match named.filter(|named| *named != format) {
                None => {}
                Some(ExportFormat::Pprof) => {
                    return Err(Error::usage("--push: the URL does not say which server receives pprof")
                        .try_options("--push pyroscope=URL")
                        .try_options("--push parca=URL"));
                }
                Some(_) => {
                    return Err(Error::usage("--push supports only the formats otlp and pprof")
                        .try_options("leave out --format: the server determines the format"));
                }
            }
        }
        if self.aggregate && format != ExportFormat::Otlp {
            return Err(Error::usage("only OTLP supports --aggregate").try_options("--format otlp"));
        }
        let given = [
            (self.service.is_some(), "--service"),
            (self.service_version.is_some(), "--service-version"),
            (self.host.is_some(), "--host"),
        ];
        let has_origin = self.push.is_some() || format == ExportFormat::Otlp || format.is_two_files();
        match given.iter().find(|(is_given, _)| *is_given && !has_origin) {
            Some((_, option)) => {
                Err(Error::usage(format!("{option} requires --push, or the format otlp or parquet")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_determines_the_format() {
        let push = |text: &str, named: Option<ExportFormat>| {
            let target: PushTarget = text.parse()?;
            let format = target.api.format();
            let push = PushOptions { push: Some(target.clone()), ..PushOptions::default() };
            push.check(named, format).map(|()| target)
        };
        assert_eq!(push("http://a:1", None).unwrap().url.text(), "http://a:1/v1development/profiles");
        let target = push("pyroscope=https://a/x", Some(ExportFormat::Pprof)).unwrap();
        assert_eq!(target.url.text(), "https://a/x/push.v1.PusherService/Push");
        assert!(
            push("parca=http://a", None).is_ok() && push("otlp=http://a", Some(ExportFormat::Otlp)).is_ok()
        );
        let refused = |text, named| push(text, named).unwrap_err().headline();
        assert!(refused("http://a", Some(ExportFormat::Pprof)).contains("which server"));
        assert!(refused("http://a", Some(ExportFormat::Svg)).contains("only the formats"));
        assert!(refused("jaeger=http://a", None).contains("begin with http://"));
    }
}
