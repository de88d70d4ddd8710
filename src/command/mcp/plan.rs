//! Converts the parsed options of `pmc mcp` into a plan without clap's types, and the arguments of the tools
//! that run commands into options of `pmc record` and `pmc stat`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value as Json;

use crate::cli::mcp::McpArgs;
use pmc_analysis::profile::machine::MachineReport;
use pmc_command::options::symbol_files::SymbolLookup;
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, OffCpuPlan, RecordRequest};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Exit, Result};

/// Settings of `pmc mcp`.
#[derive(Debug)]
pub(in crate::command) struct McpPlan {
    /// Whether the tools may run commands and write recordings.
    pub(super) allows_record: bool,
    pub(super) max_seconds: u64,
    /// Maximum size of a recording in bytes.
    pub(super) max_size: u64,
    /// Where to look for symbols; never on the network.
    pub(super) symbols: SymbolOptions,
}

impl McpPlan {
    /// # Errors
    /// Fails if the size is invalid.
    pub(in crate::command) fn new(typed: &McpArgs) -> Result<Self> {
        let files = SymbolLookup { no_debuginfod: true, ..SymbolLookup::default() };
        Ok(Self {
            allows_record: typed.allow_record,
            max_seconds: typed.max_seconds,
            max_size: typed.max_size,
            symbols: files.symbol_options()?,
        })
    }
}

/// The other commands that the tools use.
pub(in crate::command) struct McpSteps<'a> {
    /// Examines the machine.
    pub(in crate::command) machine: &'a dyn Fn() -> MachineReport,
    /// Makes a recording. Returns its summary and the exit status.
    pub(in crate::command) record: &'a (dyn Fn(RecordRequest) -> Result<(Json, Exit)> + Sync),
}

/// Arguments of the tool `record`.
#[derive(Debug)]
pub(super) struct RecordTask {
    /// The command to run; empty if `pid` is set.
    pub(super) command: Vec<OsString>,
    pub(super) pid: Option<u32>,
    pub(super) output: PathBuf,
    pub(super) seconds: f64,
    pub(super) max_size: u64,
    pub(super) event: Option<String>,
    pub(super) frequency: Option<u64>,
    pub(super) stacks: Option<CallGraph>,
    pub(super) wall: bool,
}

impl RecordTask {
    /// Converts the task to a request.
    pub(super) fn request(self) -> RecordRequest {
        let mut request = RecordRequest::default();
        let sample = &mut request.sample;
        sample.events.extend(self.event);
        sample.scope = match self.pid {
            Some(pid) => MeasurementScope::Processes(vec![pid]),
            None => MeasurementScope::Command,
        };
        sample.options.rate = self.frequency.map_or(Rate::Default, Rate::Frequency);
        sample.options.call_graph = self.stacks;
        if self.wall {
            sample.events.push("cpu-clock".to_owned());
            sample.measure_waits(OffCpuPlan::default());
        }
        sample.run_schedule.command = self.command;
        sample.run_schedule.timeout = Some(Duration::from_secs_f64(self.seconds));
        request.file = FilePlan { path: self.output, max_size: Some(self.max_size), ..request.file };
        request
    }
}
