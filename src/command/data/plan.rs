//! Converts the parsed options of `pmc data convert` into a plan.

use std::path::PathBuf;

use crate::cli::data::{DataArgs, DataCommand};
use pmc_analysis::analysis::request::{MAX_STACK, SampleSelection};
use pmc_analysis::analysis::script::ScriptRequest;
use pmc_command::destination::Destination;
use pmc_command::input::input;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{AdvisedOption, Error, Result};

/// Settings of `pmc data convert`.
#[derive(Debug)]
pub(in crate::command) struct DataPlan {
    pub(super) input: PathBuf,
    /// The output file; `-` is standard output.
    pub(super) output: PathBuf,
    /// Whether to refuse to overwrite an existing file.
    keeps: bool,
    pub(super) time_of_day: bool,
    pub(super) request: ScriptRequest,
}

impl DataPlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if no format is requested, or the format is not supported.
    pub(in crate::command) fn new(typed: &DataArgs) -> Result<Self> {
        let DataCommand::Convert(typed) = &typed.command;
        if typed.to_ctf.is_some() {
            return Err(Error::usage("pmc data convert has no --to-ctf")
                .why("it does not support the Common Trace Format")
                .try_this("--to-json FILE; or perf data convert --to-ctf, which reads the same file"));
        }
        if typed.all {
            return Err(Error::usage("pmc data convert has no --all")
                .why("perf's JSON format contains only samples")
                .try_this("pmc script --json --show-task-events --show-mmap-events"));
        }
        let Some(output) = &typed.to_json else {
            return Err(Error::usage("pmc data convert: missing output format").try_this("--to-json FILE"));
        };
        let plan = Self {
            input: input(typed.input.as_ref()),
            output: output.clone(),
            keeps: !typed.force,
            time_of_day: typed.tod,
            request: ScriptRequest {
                selection: SampleSelection { time: typed.time, ..SampleSelection::default() },
                fields: vec!["+ip,+sym,+dso".parse()?],
                trace_fields: true,
                max_blocks: usize::MAX,
                inlines: Some(false),
                ..ScriptRequest::with_callers(MAX_STACK, SymbolOptions::from_environment())
            },
        };
        plan.destination().is_not(&plan.input)?;
        Ok(plan)
    }

    /// Returns where to write the document.
    pub(super) fn destination(&self) -> Destination<'_> {
        Destination { path: &self.output, option: AdvisedOption::Named("--to-json"), keeps: self.keeps }
    }
}

/// Returns the offset from the recording's clock to wall-clock time, in nanoseconds.
///
/// # Errors
/// Fails if the recording does not contain this offset.
pub(super) fn time_of_day(reader: &Reader) -> Result<i64> {
    let clock = reader.features().clock_data.as_ref();
    let shift = clock.map(ClockData::to_wall_ns);
    shift.ok_or_else(|| {
        Error::usage("the recording has no wall-clock reference")
            .why("its recorder did not store one, as perf record without -k")
            .try_this("pmc record, or perf record -k mono")
    })
}
