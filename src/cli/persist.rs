//! Options of `pmc persist`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use pmc_command::options::recording_options::{RecordingOptions, SnapshotSize};
use pmc_command::record::RecordDisplay;
use pmc_command::sampling_options::ProcessSelector;
use pmc_events::counter::reservation::Policy;
use pmc_recording::recording::plan::RecordRequest;
use pmc_sys::error::{Error, Result};

/// Keep events running without a recorder, to read them later.
#[derive(Debug, Args)]
pub struct PersistArgs {
    /// The action to perform.
    #[command(subcommand)]
    pub(crate) command: PersistCommand,
}

/// Actions of `pmc persist`.
#[derive(Debug, Subcommand)]
pub(crate) enum PersistCommand {
    /// Actions after which the holder keeps the events.
    #[command(flatten)]
    Holding(HoldingCommand),
    /// Take over an entry: record its held records and all later ones, until the recording ends
    Attach(Box<AttachArgs>),
}

/// Actions on the holder's entries.
#[derive(Debug, Subcommand)]
pub(crate) enum HoldingCommand {
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
pub(crate) struct AddArgs {
    /// Name of the entry: letters, digits, `_`, `-`, `.`
    pub(crate) name: String,

    /// Event with modifiers and qualifiers, as for record
    #[arg(short, long, value_name = "EVENT")]
    pub(crate) event: String,

    /// Pages per ring buffer [default: 512 KiB]
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<usize>,

    /// Keep the newest records when a ring buffer is full; every snapshot contains all of them (default)
    #[arg(long, conflicts_with = "normal")]
    pub(crate) overwrite: bool,

    /// Keep the oldest records when a ring buffer is full; a snapshot removes them
    #[arg(long)]
    pub(crate) normal: bool,

    /// Measure on these CPUs [default: all online CPUs]
    #[arg(short = 'C', long = "cpu", value_name = "LIST", conflicts_with = "pids")]
    pub(crate) cpus: Option<String>,

    /// Measure these running processes, with all threads and new children
    #[arg(short, long = "pid", value_name = "PID|NAME,…", value_delimiter = ',')]
    pub(crate) pids: Vec<ProcessSelector>,

    /// Sample call chains by frame pointers
    #[arg(long, value_name = "MODE", value_parser = ["fp"])]
    pub(crate) call_graph: Option<String>,

    /// Filter expression for the tracepoint
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Print the new entry as a JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// What other users may read
    #[arg(long, value_name = "WHAT", value_parser = ["nothing", "counts", "records"], default_value = "nothing")]
    pub(crate) share: String,
}

/// List the entries.
#[derive(Debug, Args)]
pub(crate) struct ListHeldArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// An entry.
#[derive(Debug, Args)]
pub(crate) struct EntryArgs {
    /// Name or id of the entry
    pub(crate) name: String,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the records of an entry to a file.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Name or id of the entry
    pub(crate) name: String,

    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) output: PathBuf,
}

/// Rename an entry.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// Name or id of the entry
    pub(crate) name: String,

    /// The new name
    pub(crate) new: String,
}

/// Keep the events of a running recording after its recorder exits.
#[derive(Debug, Args)]
#[command(after_help = "\
The recorder ends and completes its file. The holder continues its events and ring buffers without a gap.
pmc stat prints its counts and ends; its counters continue. A command that either started also continues.
kill -USR1 PID does the same and names the entry record-PID or stat-PID.")]
pub(crate) struct AdoptArgs {
    /// Name of the new entry: letters, digits, `_`, `-`, `.`
    pub(crate) name: String,

    /// Process id of a `pmc record` or `pmc stat`
    #[arg(long, value_name = "PID")]
    pub(crate) from: u32,
}

/// Record the held and all later records of an entry.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc persist attach execs -o execs.data                until the processes end, or SIGINT
  pmc persist attach execs --switch-output=1m -z -- make
pmc persist add or pmc record chose the events, targets, sample rate and call chains when it opened the events.")]
pub(crate) struct AttachArgs {
    /// Name or id of the entry
    pub(crate) name: String,

    /// How to handle the records.
    #[command(flatten)]
    pub(crate) recording: RecordingOptions,

    /// Command to run while recording; without one, recording stops when the processes exit or on a signal
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl AttachArgs {
    /// Converts the options into a recording of the entry's events, and what to print about it.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub(crate) fn request(self) -> Result<(RecordRequest, RecordDisplay)> {
        let Self { name, recording, command } = self;
        if let Some(SnapshotSize(Some(size))) = recording.snapshot {
            return Err(Error::usage(format!("-S={size}: a size requires a trace, and a holder has none"))
                .try_this("-S"));
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
pub(crate) struct RemoveArgs {
    /// Names or ids of the entries
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
}

/// Run the holder.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// Detach from the terminal, and end when no entry is left (used by `add`)
    #[arg(long)]
    pub(crate) until_empty: bool,
}
