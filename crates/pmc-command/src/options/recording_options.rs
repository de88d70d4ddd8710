//! Options shared by `record` and `persist attach`: when to stop, how to unwind, and what to write. They also
//! work for events that are already open.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::values::{self, one_of};
use pmc_recording::recording::control::ControlChannel;
use pmc_recording::recording::file::finished_files::names_file;
use pmc_recording::recording::plan::{BuildIdChoice, FilePlan, RecordRequest, Rotation, Synthesis};
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::error::{Error, Result};
use pmc_text::text::clean;

/// What `pmc record` prints about a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordDisplay {
    /// Whether to omit the status line.
    pub quiet: bool,
    /// Whether to print perf's lines about the files if stderr is not a terminal, for scripts that search for
    /// these lines.
    pub perf_summary: bool,
    /// Whether to print a JSON summary.
    pub json: bool,
}

/// How to handle records, no matter which process opened the events.
#[derive(Debug, Args)]
pub struct RecordingOptions {
    /// Output file; `-` writes a stream to stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data", help_heading = "Output")]
    pub output: PathBuf,

    /// Stop recording after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", value_parser = values::timeout, help_heading = "Duration")]
    pub timeout: Option<Duration>,

    /// With dwarf and auto: live unwinds stacks while recording; deferred writes stack copies, as perf does,
    /// and unwinds them when the file is read
    #[arg(long, value_name = "WHEN", default_value = "live", value_parser = one_of(&UnwindTime::NAMED), help_heading = "Call stacks", hide_short_help = true)]
    pub unwind: UnwindTime,

    /// Do not complete truncated stacks from earlier samples of the thread (with --unwind live)
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub no_join: bool,

    /// Real-time priority (SCHED_FIFO) of the recorder
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(1..=99), help_heading = "Rings", hide_short_help = true)]
    pub realtime: Option<i32>,

    /// Keep the newest records in memory; write a file on SIGUSR2, on the --control command snapshot, and at
    /// the end; SIZE limits the trace data
    #[arg(short = 'S', long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Duration", hide_short_help = true)]
    pub snapshot: Option<SnapshotSize>,

    /// Start a new file on SIGUSR2 (signal), at this size (100M), or after this time (30s, 5m)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "signal", help_heading = "Output")]
    pub switch_output: Option<Rotation>,

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
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Output", hide_short_help = true)]
    pub max_size: Option<u64>,

    /// Compress the file with zstd at this level, 1 to 22
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(i32).range(0..=22), help_heading = "Output")]
    pub compression_level: Option<i32>,

    /// Synthesize records for running tasks: task, mmap (includes task), cgroup, all, or no
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "all",
          value_parser = one_of(&Synthesis::NAMED), help_heading = "Other records", hide_short_help = true)]
    pub synth: Vec<Synthesis>,

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
    pub control: Option<ControlChannel>,

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

/// When stack copies are unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwindTime {
    /// While recording.
    Live,
    /// When the file is read.
    Deferred,
}

impl UnwindTime {
    const NAMED: [(&str, Self); 2] = [("live", Self::Live), ("deferred", Self::Deferred)];
}

/// Maximum size in bytes of the trace data in a snapshot; `None` for the default.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotSize(pub Option<u64>);

impl FromStr for SnapshotSize {
    type Err = Error;

    /// Parses a size after perf's flag `e` (also take a snapshot at the end), which is always on.
    fn from_str(text: &str) -> Result<Self> {
        let size = text.trim_start_matches('e');
        if size.is_empty() { Ok(Self(None)) } else { values::size(size).map(|bytes| Self(Some(bytes))) }
    }
}

impl RecordingOptions {
    /// What to print about the recording.
    pub fn display(&self) -> RecordDisplay {
        RecordDisplay { quiet: self.quiet, perf_summary: !self.quiet, json: self.json }
    }

    /// Adds these options to a request. `carries_ids` is true if mmap records contain build IDs.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub fn add_to(self, request: &mut RecordRequest, carries_ids: bool) -> Result<()> {
        let sample = &mut request.sample;
        sample.synthesis = self.synth.iter().fold(Synthesis::NONE, |all, kinds| all | *kinds);
        // Samples in an overwritable ring buffer may be older than the known mappings of their processes.
        sample.unwinds = self.unwind == UnwindTime::Live && !sample.options.backward;
        sample.joins = !self.no_join;
        sample.verbose = self.verbose > 0;
        sample.run_schedule.timeout = self.timeout;
        let snapshot_area = self.snapshot.and_then(|size| size.0).map(RingSize::of_bytes);
        sample.aux_area = sample.aux_area.or(snapshot_area);
        request.realtime = self.realtime;
        request.control = self.control.clone();
        request.file = self.file(carries_ids)?;
        Ok(())
    }

    /// Returns the destination.
    fn file(self, carries_ids: bool) -> Result<FilePlan> {
        let is_stream = self.output.as_os_str() == "-";
        let at_event = self.switch_output_event.is_some().then_some(Rotation::Signal);
        let rotation = self.switch_output.or(at_event);
        if self.switch_max_files.is_some() && rotation.is_none() {
            return Err(Error::usage("--switch-max-files requires --switch-output")
                .try_options("--switch-output=100M, or =30s, or --switch-output-event EVENT"));
        }
        if let Some(command) = &self.switch_exec {
            if rotation.is_none() {
                return Err(Error::usage("--switch-exec requires --switch-output")
                    .try_options("--switch-output=60s --switch-exec CMD"));
            }
            if !names_file(command) {
                return Err(Error::usage(format!(
                    "--switch-exec: the command {:?} does not use the file",
                    clean(command)
                ))
                .why("sh runs it with the name of the finished file as \"$1\"")
                .try_options("--switch-exec 'CMD \"$1\"', in single quotes"));
            }
        }
        if is_stream && rotation.is_some() {
            return Err(Error::usage("--switch-output requires files, but `-o -` is a stream"));
        }
        if is_stream && self.json {
            return Err(Error::usage("--json and -o - both use standard output").try_options("-o FILE"));
        }
        Ok(FilePlan {
            is_stamped: self.timestamp_filename && !is_stream,
            compress: self.compression_level.filter(|&level| level > 0),
            rotation,
            rotates_at: self.switch_output_event,
            most_files: self.switch_max_files,
            switch_exec: self.switch_exec,
            max_size: self.max_size,
            snapshots: self.snapshot.is_some(),
            build_ids: match (self.no_buildid, self.buildid_all) {
                (true, _) => BuildIdChoice::None,
                (_, true) => BuildIdChoice::All,
                _ => BuildIdChoice::Hit,
            },
            keeps_files: !(self.no_buildid_cache || carries_ids || is_stream),
            ..FilePlan::at(self.output)
        })
    }
}
