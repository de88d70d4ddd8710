//! What a personality asks of pmc's commands.

use std::ffi::OsString;
use std::time::Duration;

use pmc_analysis::profile::sampled::SortKey;
use pmc_command::record::RecordDisplay;
use pmc_formats::export::request::ExportRequest;
use pmc_recording::recording::plan::RecordRequest;
use pmc_recording::recording::stat_request::StatRequest;
use pmc_view::report::request::ReportRequest;
use pmc_view::stat::StatLayout;

/// A command of pmc to run, with its request.
pub enum Action {
    /// List events. `long` adds their details.
    List {
        /// The kinds and patterns to list; empty for all events.
        words: Vec<String>,
        long: bool,
    },
    /// List the hardware counters, and which processes use them.
    ListCounters,
    Record(Box<RecordRequest>, RecordDisplay),
    Stat(Box<StatRequest>, StatLayout),
    Report(Box<ReportRequest>),
    Export(Box<ExportRequest>),
    Top(LiveView),
}

impl Action {
    /// Whether pmc prints errors only.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Record(_, display) => display.quiet,
            Self::Stat(_, layout) => layout.quiet,
            Self::Export(request) => request.is_quiet,
            Self::List { .. } | Self::ListCounters | Self::Report(_) | Self::Top(_) => false,
        }
    }
}

/// What to show live.
#[derive(Debug, Default)]
pub struct LiveView {
    pub events: Vec<String>,
    /// The processes; if empty, the command or all CPUs.
    pub pids: Vec<u32>,
    pub all_cpus: bool,
    pub command: Vec<OsString>,
    /// Time between updates; `None` for the default.
    pub delay: Option<Duration>,
    /// Maximum duration.
    pub timeout: Option<Duration>,
    /// The sort keys; empty for the default.
    pub keys: Vec<SortKey>,
    /// Minimum size of rows, in percent.
    pub percent_limit: Option<f64>,
    /// Whether rows keep their samples instead of decaying.
    pub accumulate: bool,
    pub hide_user_symbols: bool,
    pub show_samples: bool,
}
