//! How and where `pmc stat` prints its results: the format, its options, and the destinations.
//!
//! A plain value with defaults, which the command line and the personalities fill in.

use std::path::PathBuf;

use crate::gate::CiFormat;
use pmc_text::terminal::Stream;

/// How and where to print the results of `pmc stat`. The default is perf's table on stderr.
#[derive(Debug, Clone)]
pub struct StatLayout {
    /// The format of the results.
    pub format: StatFormat,
    /// Where to write the results.
    pub to: StatDestination,
    /// Whether to append to a file instead of replacing it.
    pub append: bool,
    /// Whether numbers have thousands separators.
    pub big_num: bool,
    /// Whether to show only metrics.
    pub metric_only: bool,
    /// Whether to clear the screen before each interval.
    pub interval_clear: bool,
    /// Whether to print totals after intervals.
    pub summary: bool,
    /// Whether the CSV lines of these totals begin with `summary`.
    pub csv_summary: bool,
    /// Whether to omit the counts of the whole run.
    pub quiet: bool,
    /// Whether to show a table with the time of each run.
    pub table: bool,
    /// The CI system for which to print the answer of `--fail-if`.
    pub ci: Option<CiFormat>,
    /// OpenMetrics file to update; `-` makes OpenMetrics the format of the results.
    pub openmetrics: Option<PathBuf>,
    /// Address at which to serve OpenMetrics over HTTP.
    pub listen: Option<String>,
}

impl Default for StatLayout {
    fn default() -> Self {
        Self {
            format: StatFormat::Text,
            to: StatDestination::Stderr,
            append: false,
            big_num: true,
            metric_only: false,
            interval_clear: false,
            summary: false,
            csv_summary: true,
            quiet: false,
            table: false,
            ci: None,
            openmetrics: None,
            listen: None,
        }
    }
}

/// Format of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatFormat {
    /// A table for people.
    Text,
    /// CSV with this separator.
    Csv(String),
    /// perf's JSON: one object per line.
    JsonLines,
    /// One JSON document.
    Document,
}

/// Where to write the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatDestination {
    /// Standard error, as in perf.
    Stderr,
    /// This file; `-`: standard output.
    File(PathBuf),
    /// This open descriptor.
    Descriptor(i32),
}

impl StatLayout {
    /// Whether the results are printed in OpenMetrics format.
    pub fn is_openmetrics(&self) -> bool {
        self.openmetrics.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Whether the results are machine-readable. If so, they also contain all warnings.
    pub fn is_data(&self) -> bool {
        self.format != StatFormat::Text || self.is_openmetrics() || self.ci == Some(CiFormat::JUnit)
    }

    /// Whether data is written to stderr and stderr is not a terminal. If so, pmc's messages would be mixed
    /// with the data.
    pub fn takes_stderr(&self) -> bool {
        let to_stderr = matches!(self.to, StatDestination::Stderr | StatDestination::Descriptor(2));
        self.is_data() && to_stderr && !Stream::Error.is_terminal()
    }
}
