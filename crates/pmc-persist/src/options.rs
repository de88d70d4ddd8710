//! Options of `pmc persist`, `pmc start` and `pmc stop`, and the [`PersistRequest`]s that they make.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use crate::run::PersistRequest;
use pmc_command::options::recording_options::{RecordingOptions, SnapshotSize};
use pmc_command::record::RecordDisplay;
use pmc_command::sampling_options::{ProcessSelector, processes};
use pmc_command::values::{Typed, one_of};
use pmc_events::counter::request::sampling::CallGraph;
use pmc_events::counter::reservation::Policy;
use pmc_recording::persistent::directory::check_name;
use pmc_recording::persistent::{EntryDefinition, RingMode, SharingLevel};
use pmc_recording::recording::plan::RecordRequest;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::{CpuList, Host};

/// Keep events running without a recorder, to read them later.
#[derive(Debug, Args)]
pub struct PersistArgs {
    /// The action to perform.
    #[command(subcommand)]
    pub command: PersistCommand,
}

/// Actions of `pmc persist`.
#[derive(Debug, Subcommand)]
pub enum PersistCommand {
    /// Actions after which the holder keeps the events.
    #[command(flatten)]
    Holding(HoldingCommand),
    /// Take over an entry: record its held records and all later ones, until the recording ends
    Attach(Box<AttachArgs>),
}

/// Actions on the holder's entries.
#[derive(Debug, Subcommand)]
pub enum HoldingCommand {
    /// Open an event and keep it running until it is removed
    Add(AddArgs),
    /// List the held events, and those lost when a holder ended
    List(ListHeldArgs),
    /// Show the details of an entry, including its perf_event_attr
    Show(EntryArgs),
    /// Show the counts of an entry since it was added
    Read(EntryArgs),
    /// Write the current records of an entry to a file for report, script and perf
    Snapshot(SnapshotArgs),
    /// Rename an entry; its id does not change
    Rename(RenameArgs),
    /// Take over the events of a running `pmc record` or `pmc stat`, which then exits
    Adopt(AdoptArgs),
    /// Close entries, or remove lost ones from the list
    Rm(RemoveArgs),
    /// Run the holder in the foreground, as a service
    Hold(HoldArgs),
}

/// Open an event and keep it running.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc persist add execs -e sched:sched_process_exec    log program executions from now on
  pmc persist add faults -e page-faults -p 4711        your own process, without privileges
  pmc stat -e persistent/execs/ make                   count while make runs
  pmc persist snapshot execs -o perf.data              the newest records
pmc starts a holder if none runs. The holder ends when it has no entries.")]
pub struct AddArgs {
    /// Name of the entry: letters, digits, `_`, `-`, `.`
    #[arg(value_parser = entry_name)]
    pub name: String,

    /// Event with modifiers and qualifiers, as for record
    #[arg(short, long, value_name = "EVENT")]
    pub event: String,

    /// Pages per ring buffer [default: 512 KiB]
    #[arg(long, value_name = "N")]
    pub pages: Option<usize>,

    /// Keep the newest records when a ring buffer is full; every snapshot contains all of them (default)
    #[arg(long, conflicts_with = "normal")]
    pub overwrite: bool,

    /// Keep the oldest records when a ring buffer is full; a snapshot removes them
    #[arg(long)]
    pub normal: bool,

    /// Measure on these CPUs [default: all online CPUs]
    #[arg(short = 'C', long = "cpu", value_name = "LIST", conflicts_with = "pids")]
    pub cpus: Option<Typed<CpuList>>,

    /// Measure these running processes, with all threads and new children
    #[arg(short, long = "pid", value_name = "PID|NAME,…", value_delimiter = ',')]
    pub pids: Vec<ProcessSelector>,

    /// Sample call chains by frame pointers
    #[arg(long, value_name = "MODE", value_parser = one_of(&[("fp", CallGraph::Fp)]))]
    pub call_graph: Option<CallGraph>,

    /// Filter expression for the tracepoint
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,

    /// Print the new entry as a JSON document
    #[arg(long)]
    pub json: bool,

    /// What other users may read
    #[arg(long, value_name = "WHAT", value_parser = sharing_level(), default_value = "nothing")]
    pub share: SharingLevel,
}

/// List the entries.
#[derive(Debug, Args)]
pub struct ListHeldArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// An entry.
#[derive(Debug, Args)]
pub struct EntryArgs {
    /// Name or id of the entry
    pub name: String,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Write the records of an entry to a file.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Name or id of the entry
    pub name: String,

    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub output: PathBuf,
}

/// Rename an entry.
#[derive(Debug, Args)]
pub struct RenameArgs {
    /// Name or id of the entry
    pub name: String,

    /// The new name
    #[arg(value_parser = entry_name)]
    pub new: String,
}

/// Keep the events of a running recording after its recorder exits.
#[derive(Debug, Args)]
#[command(after_help = "\
The recorder ends and completes its file. The holder continues its events and ring buffers without a gap.
pmc stat prints its counts and ends; its counters continue. A command that either started also continues.
kill -USR1 PID does the same and names the entry record-PID or stat-PID.")]
pub struct AdoptArgs {
    /// Name of the new entry: letters, digits, `_`, `-`, `.`
    #[arg(value_parser = entry_name)]
    pub name: String,

    /// Process id of a `pmc record` or `pmc stat`
    #[arg(long, value_name = "PID")]
    pub from: u32,
}

/// Record the held and all later records of an entry.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc persist attach execs -o execs.data                until the processes end, or SIGINT
  pmc persist attach execs --switch-output=1m -z -- make
pmc persist add or pmc record chose the events, targets, sample rate and call chains when it opened the events.")]
pub struct AttachArgs {
    /// Name or id of the entry
    pub name: String,

    /// How to handle the records.
    #[command(flatten)]
    pub recording: RecordingOptions,

    /// Command to run while recording; without one, recording stops when the processes exit or on a signal
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl AttachArgs {
    /// Converts the options into a recording of the entry's events, and what to print about it.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub fn request(self) -> Result<(RecordRequest, RecordDisplay)> {
        let Self { name, recording, command } = self;
        if let Some(SnapshotSize(Some(size))) = recording.snapshot {
            return Err(Error::usage(format!("-S={size}: a size requires a trace, and a holder has none"))
                .try_options("-S"));
        }
        let display = RecordDisplay { perf_summary: false, ..recording.display() };
        let mut request = RecordRequest { attach_to: Some(name), ..RecordRequest::default() };
        request.sample.reserve = Policy::Off;
        request.sample.run_schedule.command = command;
        recording.add_to(&mut request, false)?;
        Ok((request, display))
    }
}

/// Close entries.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Names or ids of the entries
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// Run the holder.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// Detach from the terminal, and end when no entry is left (used by `add`)
    #[arg(long)]
    pub until_empty: bool,
}

/// Count on all CPUs in the background until `pmc stop`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc start page-faults:u page-faults:k         one counter for user mode, one for the kernel
  pmc stop                                      print a row per counter and a column per CPU, and stop
  pmc start --profile=cpu-clock:k               sample the kernel into ring buffers
  pmc stop -o kernel.data                       write the samples to a file, for pmc report
pmc persist lists these events as counter0, counter1, …, profile.")]
pub struct StartArgs {
    /// Events to count, each with its privilege levels: NAME:u, NAME:k, NAME:uk
    #[arg(value_name = "EVENT", required_unless_present = "profile")]
    pub events: Vec<String>,

    /// Also sample this event and keep the newest samples [default: cycles, or cpu-clock without hardware
    /// counters]
    #[arg(long, value_name = "EVENT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub profile: Option<String>,
}

/// Show the counts since `pmc start`, and stop counting.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Output file for the samples of --profile
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub output: PathBuf,

    /// Print one JSON document
    #[arg(short = 'j', long)]
    pub json: bool,
}

/// Parses the name of a new entry.
fn entry_name(text: &str) -> Result<String> {
    check_name(text).map(|()| text.to_owned())
}

fn sharing_level() -> impl TypedValueParser<Value = SharingLevel> {
    let name = |level: SharingLevel| level.name();
    PossibleValuesParser::new(SharingLevel::ALL.map(name)).map(|word| {
        SharingLevel::ALL.into_iter().find(|level| level.name() == word).unwrap_or(SharingLevel::Nothing)
    })
}

impl HoldingCommand {
    /// Converts the options.
    ///
    /// # Errors
    /// Fails if a process does not exist.
    pub fn request(self, host: &Host) -> Result<PersistRequest> {
        Ok(match self {
            Self::Add(args) => args.request(host)?,
            Self::List(args) => PersistRequest::List { json: args.json },
            Self::Show(args) => PersistRequest::Show { entry: args.name, json: args.json },
            Self::Read(args) => PersistRequest::Read { entry: args.name, json: args.json },
            Self::Snapshot(args) => PersistRequest::Snapshot { entry: args.name, output: args.output },
            Self::Rename(args) => PersistRequest::Rename { entry: args.name, name: args.new },
            Self::Adopt(args) => PersistRequest::Adopt { name: args.name, pid: args.from },
            Self::Rm(args) => PersistRequest::Remove(args.names),
            Self::Hold(args) => PersistRequest::Hold { until_empty: args.until_empty },
        })
    }
}

impl AddArgs {
    fn request(self, host: &Host) -> Result<PersistRequest> {
        if let Some(0) = self.pages {
            return Err(Error::usage("--pages must be at least 1"));
        }
        let definition = EntryDefinition {
            name: self.name,
            event: self.event,
            pages: self.pages,
            mode: if self.normal { RingMode::Normal } else { RingMode::Overwrite },
            cpus: self.cpus.map(|cpus| cpus.text),
            pids: processes(&self.pids, host)?,
            call_graph: self.call_graph.is_some(),
            filter: self.filter,
            counts_only: false,
            share: self.share,
        };
        Ok(PersistRequest::Add { definition, json: self.json })
    }
}

impl From<StartArgs> for PersistRequest {
    fn from(args: StartArgs) -> Self {
        Self::Start { events: args.events, profile: args.profile }
    }
}

impl From<StopArgs> for PersistRequest {
    fn from(args: StopArgs) -> Self {
        Self::Stop { output: args.output, json: args.json }
    }
}
