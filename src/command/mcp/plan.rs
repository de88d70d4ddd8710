//! Converts the parsed options of `pmc mcp` into a plan without clap's types, and the arguments of the tools
//! that run commands into options of `pmc record` and `pmc stat`.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::cli::defaults;
use crate::cli::mcp::McpArgs;
use crate::cli::record::RecordArgs;
use pmc_analysis::profile::machine::MachineReport;
use pmc_command::options::symbol_files::SymbolLookup;
use pmc_command::sampling_options::size;
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
            max_size: size("--max-size", &typed.max_size)?,
            symbols: files.symbol_options()?,
        })
    }
}

/// The other commands that the tools use.
pub(in crate::command) struct McpSteps<'a> {
    /// Examines the machine.
    pub(in crate::command) machine: &'a dyn Fn() -> MachineReport,
    /// Makes a recording. Returns its summary and the exit status.
    pub(in crate::command) record: &'a (dyn Fn(RecordArgs) -> Result<(Json, Exit)> + Sync),
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
    /// `auto`, `fp`, `dwarf` or `none`.
    pub(super) stacks: String,
    pub(super) wall: bool,
}

impl RecordTask {
    /// Converts the task to options of `pmc record`.
    pub(super) fn options(self) -> RecordArgs {
        let mut options: RecordArgs = defaults();
        options.command = self.command;
        options.pids = self.pid.iter().map(u32::to_string).collect();
        options.events = self.event.into_iter().collect();
        options.freq = self.frequency.map(|frequency| frequency.to_string());
        options.call_graph = Some(self.stacks).filter(|stacks| stacks != "none");
        options.wall = self.wall;
        options.recording.output = self.output;
        options.recording.timeout = Some(milliseconds(self.seconds));
        options.recording.max_size = Some(format!("{}B", self.max_size));
        options.recording.quiet = true;
        options
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{}ms", (seconds * 1000.0).ceil().max(1.0))
}
