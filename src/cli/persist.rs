//! `pmc persist`: what can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::recording_options::RecordingOptions;

/// Keep events running with nobody looking, for whoever comes later.
#[derive(Debug, Args)]
pub struct Persist {
    /// What to do.
    #[command(subcommand)]
    pub command: PersistCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum PersistCommand {
    /// What leaves the events with the holder.
    #[command(flatten)]
    Holding(Holding),
    /// Record what an entry holds and what comes, until the end; the entry goes
    Attach(Box<Attach>),
}

/// What can be done with what is held.
#[derive(Debug, Subcommand)]
pub enum Holding {
    /// Open an event and keep it: it counts and records from now on, until it is removed
    Add(Add),
    /// List what is held, and what was lost with a holder that has ended
    List(ListHeld),
    /// Show what an entry is, down to the request as the kernel took it
    Show(One),
    /// Show what an entry has counted since it was added
    Read(One),
    /// Write the records that an entry holds now into a file that report, script and perf read
    Snapshot(Snapshot),
    /// Give an entry another name; its number stays
    Rename(Rename),
    /// Keep the events of a running `pmc record` or `pmc stat`, which ends; they go on
    Adopt(Adopt),
    /// Close entries; forget those that were lost
    Rm(Remove),
    /// Run the holder in the foreground, as a service does
    Hold(Hold),
}

/// Open an event and keep it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc persist add execs -e sched:sched_process_exec    who ran what, from now on
  pmc persist add faults -e page-faults -p 4711        a process of one's own needs no privilege
  pmc stat -e persistent/execs/ make                   counted while make ran
  pmc persist snapshot execs -o perf.data              the newest records
A holder is started where none runs. It ends when nothing is held any more.")]
pub struct Add {
    /// What to call it: letters, digits, `_`, `-`, `.`
    pub name: String,

    /// The event, with its modifiers and qualifiers, as for record
    #[arg(short, long, value_name = "EVENT")]
    pub event: String,

    /// Pages of each ring [default: 512 KiB]
    #[arg(long, value_name = "N")]
    pub pages: Option<usize>,

    /// Full rings keep the newest records, and every snapshot has them all (the default)
    #[arg(long, conflicts_with = "normal")]
    pub overwrite: bool,

    /// Full rings keep the oldest records, and a snapshot takes them out
    #[arg(long)]
    pub normal: bool,

    /// On these CPUs [default: all that are on line]
    #[arg(short = 'C', long = "cpu", value_name = "LIST", conflicts_with = "pids")]
    pub cpus: Option<String>,

    /// These running processes, all threads, with the children that they start
    #[arg(short, long = "pid", value_name = "PID|NAME,…", value_delimiter = ',')]
    pub pids: Vec<String>,

    /// Samples carry call chains, by frame pointers
    #[arg(long, value_name = "MODE", value_parser = ["fp"])]
    pub call_graph: Option<String>,

    /// Filter expression for the tracepoint
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,

    /// Print the new entry as a JSON document
    #[arg(long)]
    pub json: bool,

    /// What users other than the holder's and root may have
    #[arg(long, value_name = "WHAT", value_parser = ["nothing", "counts", "records"], default_value = "nothing")]
    pub share: String,
}

/// List what is held.
#[derive(Debug, Args)]
pub struct ListHeld {
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// An entry.
#[derive(Debug, Args)]
pub struct One {
    /// Its name or number
    pub name: String,

    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Write what an entry holds into a file.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// Its name or number
    pub name: String,

    /// The file; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub output: PathBuf,
}

/// Give an entry another name.
#[derive(Debug, Args)]
pub struct Rename {
    /// Its name or number
    pub name: String,

    /// The new name
    pub new: String,
}

/// Keep the events of a running recording.
#[derive(Debug, Args)]
#[command(after_help = "\
The recording ends, its file whole; its events go on in the holder, with their rings, and nothing between is missing.
pmc stat prints what it has counted and ends; its counters go on from there. A command that either started goes on, too.
kill -USR1 PID does the same; the entry is called record-PID or stat-PID then.")]
pub struct Adopt {
    /// What to call them: letters, digits, `_`, `-`, `.`
    pub name: String,

    /// The process id of a `pmc record` or `pmc stat`
    #[arg(long, value_name = "PID")]
    pub from: u32,
}

/// Record what an entry holds and what comes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc persist attach execs -o execs.data                until the processes have ended, or SIGINT
  pmc persist attach execs --switch-output=1m -z -- make
What is sampled, on whom, how often and with which call chains was said when the events were opened.")]
pub struct Attach {
    /// Its name or number
    pub name: String,

    /// What becomes of the records.
    #[command(flatten)]
    pub recording: RecordingOptions,

    /// Ends the recording with its end; without one, the processes' end or a signal does
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Close entries.
#[derive(Debug, Args)]
pub struct Remove {
    /// Their names or numbers
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// Run the holder.
#[derive(Debug, Args)]
pub struct Hold {
    /// Leave the terminal, and end when nothing is held any more: how `add` starts it
    #[arg(long)]
    pub until_empty: bool,
}
