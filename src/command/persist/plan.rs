//! What was typed for `pmc persist`, and what it means.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::persist::PersistCommand;
use crate::cli::start::{Start, Stop};
use crate::command::sampling_options::processes;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::persistent::directory::check_name;
use crate::persistent::{Definition, RingMode, Share};

/// What `pmc persist` does.
#[derive(Debug)]
pub(in crate::command) enum Plan {
    Add(Definition),
    List { json: bool },
    Show { entry: String, json: bool },
    Read { entry: String, json: bool },
    Snapshot { entry: String, output: PathBuf },
    Rename { entry: String, name: String },
    Adopt { name: String, pid: u32 },
    Attach(Attach),
    Remove(Vec<String>),
    Hold { until_empty: bool },
    Start { events: Vec<String>, profile: Option<String> },
    Stop { output: PathBuf, json: bool },
}

/// Another recording of what is held.
#[derive(Debug)]
pub(in crate::command) struct Attach {
    pub(super) entry: String,
    pub(super) output: PathBuf,
    pub(super) command: Vec<OsString>,
}

impl Plan {
    /// Of `pmc start`.
    pub(in crate::command) fn start(typed: Start) -> Self {
        Self::Start { events: typed.events, profile: typed.profile }
    }

    /// Of `pmc stop`.
    pub(in crate::command) fn stop(typed: Stop) -> Self {
        Self::Stop { output: typed.output, json: typed.json }
    }

    /// What was typed, as what it means.
    ///
    /// # Errors
    /// A name that no entry can have; no such process.
    pub(in crate::command) fn new(typed: PersistCommand, host: &Host) -> Result<Self> {
        Ok(match typed {
            PersistCommand::Add(typed) => {
                check_name(&typed.name)?;
                if let Some(0) = typed.pages {
                    return Err(Error::usage("--pages 0: a ring has a page at least"));
                }
                let pids = typed.pids.iter().map(|word| processes(word, host)).collect::<Result<Vec<_>>>()?;
                Self::Add(Definition {
                    name: typed.name,
                    event: typed.event,
                    pages: typed.pages,
                    mode: if typed.normal { RingMode::Normal } else { RingMode::Overwrite },
                    cpus: typed.cpus,
                    pids: pids.concat(),
                    call_graph: typed.call_graph.is_some(),
                    share: match typed.share.as_str() {
                        "records" => Share::Records,
                        "counts" => Share::Counts,
                        _ => Share::Nothing,
                    },
                })
            }
            PersistCommand::List(typed) => Self::List { json: typed.json },
            PersistCommand::Show(typed) => Self::Show { entry: typed.name, json: typed.json },
            PersistCommand::Read(typed) => Self::Read { entry: typed.name, json: typed.json },
            PersistCommand::Snapshot(typed) => Self::Snapshot { entry: typed.name, output: typed.output },
            PersistCommand::Rename(typed) => {
                check_name(&typed.new)?;
                Self::Rename { entry: typed.name, name: typed.new }
            }
            PersistCommand::Adopt(typed) => Self::Adopt { name: typed.name, pid: typed.from },
            PersistCommand::Attach(typed) => {
                Self::Attach(Attach { entry: typed.name, output: typed.output, command: typed.command })
            }
            PersistCommand::Rm(typed) => Self::Remove(typed.names),
            PersistCommand::Hold(typed) => Self::Hold { until_empty: typed.until_empty },
        })
    }
}
