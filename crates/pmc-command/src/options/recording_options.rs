//! Options shared by `record` and `persist attach`: when to stop, how to unwind, and what to write. They also
//! work for events that are already open.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// How to handle records, no matter which process opened the events.
#[derive(Debug, Args)]
pub struct RecordingOptions {
    /// Output file; `-` writes a stream to stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data", help_heading = "Output")]
    pub output: PathBuf,

    /// Stop recording after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", help_heading = "Duration")]
    pub timeout: Option<String>,

    /// With dwarf and auto: live unwinds stacks while recording; deferred writes stack copies, as perf does,
    /// and unwinds them when the file is read
    #[arg(long, value_name = "WHEN", default_value = "live", value_parser = ["live", "deferred"], help_heading = "Call stacks", hide_short_help = true)]
    pub unwind: String,

    /// Do not complete truncated stacks from earlier samples of the thread (with --unwind live)
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub no_join: bool,

    /// Real-time priority (SCHED_FIFO) of the recorder
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(1..=99), help_heading = "Rings", hide_short_help = true)]
    pub realtime: Option<i32>,

    /// Keep the newest records in memory; write a file on SIGUSR2, on the --control command snapshot, and at
    /// the end; SIZE limits the trace data
    #[arg(short = 'S', long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Duration", hide_short_help = true)]
    pub snapshot: Option<String>,

    /// Start a new file on SIGUSR2 (signal), at this size (100M), or after this time (30s, 5m)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "signal", help_heading = "Output")]
    pub switch_output: Option<String>,

    /// Start a new file when one of these events occurs; the events themselves are not recorded
    #[arg(long, value_name = "EVENTS", help_heading = "Output", hide_short_help = true)]
    pub switch_output_event: Option<String>,

    /// With --switch-output: keep only the newest N files
    #[arg(long, value_name = "N", help_heading = "Output", hide_short_help = true)]
    pub switch_max_files: Option<usize>,

    /// With --switch-output: run this shell command for each finished file, which is "$1"
    #[arg(long, value_name = "CMD", help_heading = "Output", hide_short_help = true)]
    pub switch_exec: Option<String>,

    /// Stop recording when the file reaches this size, such as 100M
    #[arg(long, value_name = "SIZE", help_heading = "Output", hide_short_help = true)]
    pub max_size: Option<String>,

    /// Compress the file with zstd at this level, 1 to 22
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(i32).range(0..=22), help_heading = "Output")]
    pub compression_level: Option<i32>,

    /// Synthesize records for running tasks: task, mmap (includes task), cgroup, all, or no
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "all",
          value_parser = ["no", "all", "task", "mmap", "cgroup"], help_heading = "Other records", hide_short_help = true)]
    pub synth: Vec<String>,

    /// Do not collect build-ids
    #[arg(short = 'B', long, help_heading = "Output", hide_short_help = true)]
    pub no_buildid: bool,

    /// Do not copy the sampled files to the build-id cache (see pmc buildid-cache)
    #[arg(short = 'N', long, help_heading = "Output", hide_short_help = true)]
    pub no_buildid_cache: bool,

    /// Record the build-ids of all mapped files, not only of files with samples
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub buildid_all: bool,

    /// Read commands (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO:
    /// fd:CTL[,ACK] or fifo:CTL[,ACK]
    #[arg(long, value_name = "fd:…|fifo:…", help_heading = "Duration", hide_short_help = true)]
    pub control: Option<String>,

    /// Append the date and time to the file name
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub timestamp_filename: bool,

    /// Print details about the opened events
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,

    /// Print a JSON summary to stdout when done
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub json: bool,

    /// Print only errors and losses
    #[arg(short = 'q', long, help_heading = "Output")]
    pub quiet: bool,
}
