//! Converts the parsed options of `pmc persist` into a plan.

use std::path::PathBuf;

use crate::cli::persist::HoldingCommand;
use crate::cli::start::{StartArgs, StopArgs};
use pmc_command::sampling_options::processes;
use pmc_recording::persistent::directory::check_name;
use pmc_recording::persistent::{EntryDefinition, RingMode, SharingLevel};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

/// Actions of `pmc persist`.
#[derive(Debug)]
pub(in crate::command) enum PersistPlan {
    Add { definition: EntryDefinition, json: bool },
    List { json: bool },
    Show { entry: String, json: bool },
    Read { entry: String, json: bool },
    Snapshot { entry: String, output: PathBuf },
    Rename { entry: String, name: String },
    Adopt { name: String, pid: u32 },
    Remove(Vec<String>),
    Hold { until_empty: bool },
    Start { events: Vec<String>, profile: Option<String> },
    Stop { output: PathBuf, json: bool },
}

impl PersistPlan {
    /// Converts the options of `pmc start`.
    pub(in crate::command) fn start(typed: StartArgs) -> Self {
        Self::Start { events: typed.events, profile: typed.profile }
    }

    /// Converts the options of `pmc stop`.
    pub(in crate::command) fn stop(typed: StopArgs) -> Self {
        Self::Stop { output: typed.output, json: typed.json }
    }

    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if an entry name is invalid, or a process does not exist.
    pub(in crate::command) fn new(typed: HoldingCommand, host: &Host) -> Result<Self> {
        Ok(match typed {
            HoldingCommand::Add(typed) => {
                check_name(&typed.name)?;
                if let Some(0) = typed.pages {
                    return Err(Error::usage("--pages must be at least 1"));
                }
                let pids = processes(&typed.pids, host)?;
                let definition = EntryDefinition {
                    name: typed.name,
                    event: typed.event,
                    pages: typed.pages,
                    mode: if typed.normal { RingMode::Normal } else { RingMode::Overwrite },
                    cpus: typed.cpus,
                    pids,
                    call_graph: typed.call_graph.is_some(),
                    filter: typed.filter,
                    counts_only: false,
                    share: match typed.share.as_str() {
                        "records" => SharingLevel::Records,
                        "counts" => SharingLevel::Counts,
                        _ => SharingLevel::Nothing,
                    },
                };
                Self::Add { definition, json: typed.json }
            }
            HoldingCommand::List(typed) => Self::List { json: typed.json },
            HoldingCommand::Show(typed) => Self::Show { entry: typed.name, json: typed.json },
            HoldingCommand::Read(typed) => Self::Read { entry: typed.name, json: typed.json },
            HoldingCommand::Snapshot(typed) => Self::Snapshot { entry: typed.name, output: typed.output },
            HoldingCommand::Rename(typed) => {
                check_name(&typed.new)?;
                Self::Rename { entry: typed.name, name: typed.new }
            }
            HoldingCommand::Adopt(typed) => Self::Adopt { name: typed.name, pid: typed.from },
            HoldingCommand::Rm(typed) => Self::Remove(typed.names),
            HoldingCommand::Hold(typed) => Self::Hold { until_empty: typed.until_empty },
        })
    }
}
