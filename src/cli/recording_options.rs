//! When a recording ends, what is unwound, and where records go: the options that `record` and `persist
//! attach` share, as they hold of events that are open already.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// What becomes of records, whoever opened the events.
#[derive(Debug, Args)]
pub struct RecordingOptions {
    /// Write to this file; `-`: to standard output, as a stream
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub output: PathBuf,

    /// End recording after this time: milliseconds, or with a unit (10s, 2m)
    #[arg(long, visible_alias = "duration", value_name = "TIME")]
    pub timeout: Option<String>,

    /// With dwarf and auto: live makes call chains of the copies at once; deferred writes the copies, as perf
    /// does, to be unwound when the file is read
    #[arg(long, value_name = "WHEN", default_value = "live", value_parser = ["live", "deferred"])]
    pub unwind: String,

    /// With live, leave stacks cut where their copy ends: join them with nothing seen before of the same
    /// thread
    #[arg(long)]
    pub no_join: bool,

    /// Record with this real-time priority (SCHED_FIFO)
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(1..=99))]
    pub realtime: Option<i32>,

    /// Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end; of a
    /// trace, so many bytes
    #[arg(short = 'S', long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub snapshot: Option<String>,

    /// Start another file: at SIGUSR2 (signal), when it is so large (100M), or after a time (30s, 5m)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "signal")]
    pub switch_output: Option<String>,

    /// Start another file when one of these events happens, which are not recorded themselves
    #[arg(long, value_name = "EVENTS")]
    pub switch_output_event: Option<String>,

    /// With --switch-output: keep only the newest N files
    #[arg(long, value_name = "N")]
    pub switch_max_files: Option<usize>,

    /// End the recording when the file is so large, such as 100M
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,

    /// Compress (zstd, level 1 to 22)
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(i32).range(0..=22))]
    pub compression_level: Option<i32>,

    /// What is told of those who run already: task, mmap (and task), cgroup, all, no
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "all",
          value_parser = ["no", "all", "task", "mmap", "cgroup"])]
    pub synth: Vec<String>,

    /// Do not look for the build-ids of files
    #[arg(short = 'B', long)]
    pub no_buildid: bool,

    /// Do not keep the files that samples lie in (see pmc buildid-cache)
    #[arg(short = 'N', long)]
    pub no_buildid_cache: bool,

    /// Build-ids of all mapped files, not only of those with samples
    #[arg(long)]
    pub buildid_all: bool,

    /// Take orders (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO:
    /// fd:CTL[,ACK] or fifo:CTL[,ACK]
    #[arg(long, value_name = "fd:…|fifo:…")]
    pub control: Option<String>,

    /// Put date and time behind the file's name
    #[arg(long)]
    pub timestamp_filename: bool,

    /// Say more: what was opened, and how
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,

    /// In the end print on standard output what the recording came to, as a JSON object
    #[arg(long)]
    pub json: bool,

    /// Say nothing but errors
    #[arg(short = 'q', long)]
    pub quiet: bool,
}
