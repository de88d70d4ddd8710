//! `pmc data convert`: opens a recording, symbolizes and sorts its samples, and writes one JSON document.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::data::{DataArgs, DataCommand};
use pmc_analysis::analysis::header;
use pmc_analysis::analysis::request::{MAX_STACK, SampleSelection};
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine, ScriptRequest};
use pmc_analysis::session::Session;
use pmc_command::destination::Destination;
use pmc_command::input::input;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result};
use pmc_view::script::perf_json;

/// What to convert.
#[derive(Debug)]
pub(super) struct DataRequest {
    input: PathBuf,
    /// The output file; `-` is standard output.
    output: PathBuf,
    /// Whether to refuse to overwrite an existing file.
    keeps: bool,
    time_of_day: bool,
    samples: ScriptRequest,
}

impl DataArgs {
    /// # Errors
    /// Fails if no format is requested, or the format is not supported.
    pub(super) fn request(self) -> Result<DataRequest> {
        let DataCommand::Convert(typed) = self.command;
        if typed.to_ctf.is_some() {
            return Err(Error::usage("pmc data convert has no --to-ctf")
                .why("it does not support the Common Trace Format")
                .try_options("--to-json FILE; or perf data convert --to-ctf, which reads the same file"));
        }
        if typed.all {
            return Err(Error::usage("pmc data convert has no --all")
                .why("perf's JSON format contains only samples")
                .try_this("pmc script --json --show-task-events --show-mmap-events"));
        }
        let Some(output) = typed.to_json else {
            return Err(Error::usage("pmc data convert: missing output format").try_options("--to-json FILE"));
        };
        let request = DataRequest {
            input: input(typed.input.as_ref()),
            output,
            keeps: !typed.force,
            time_of_day: typed.tod,
            samples: ScriptRequest {
                selection: SampleSelection { time: typed.time, ..SampleSelection::default() },
                fields: vec!["+ip,+sym,+dso".parse()?],
                trace_fields: true,
                max_blocks: usize::MAX,
                inlines: Some(false),
                ..ScriptRequest::with_callers(MAX_STACK, SymbolOptions::from_environment())
            },
        };
        request.destination().check_is_not(&request.input)?;
        Ok(request)
    }
}

impl DataRequest {
    /// Returns where to write the document.
    fn destination(&self) -> Destination<'_> {
        Destination { path: &self.output, option: AdvisedOption::Named("--to-json"), keeps: self.keeps }
    }
}

/// Returns the offset from the recording's clock to wall-clock time, in nanoseconds.
///
/// # Errors
/// Fails if the recording does not contain this offset.
fn time_of_day(reader: &Reader) -> Result<i64> {
    let clock = reader.features().clock_data.as_ref();
    let shift = clock.map(ClockData::to_wall_ns);
    shift.ok_or_else(|| {
        Error::usage("the recording has no wall-clock reference")
            .why("its recorder did not store one, as perf record without -k")
            .try_this("pmc record, or perf record -k mono")
    })
}

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the document cannot be written.
pub(super) fn run(request: &DataRequest) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open(&request.input)?)?);
    let shift = if request.time_of_day { time_of_day(&session.reader)? } else { 0 };
    let script = NamedRecording::load(session.clone(), &request.samples, &Bars)?;
    let facts = header::for_conversion(&session.reader);
    let written = |error| Error::output(request.output.display(), error);
    request.destination().write(|out| {
        perf_json::begin(out, &facts).map_err(written)?;
        let mut is_first = true;
        script.entries(&mut |line| match line {
            ScriptLine::Sample(entry) => {
                let first = std::mem::take(&mut is_first);
                perf_json::sample(out, entry, script.places(), shift, first).map_err(written)
            }
            _ => Ok(()),
        })?;
        perf_json::end(out).map_err(written)
    })?;
    Ok(script.warn())
}
