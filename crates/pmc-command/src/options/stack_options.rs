//! Options shared by `report` and `export`: which functions and callers to include, and how to print names.

use clap::Args;

use super::sample_filter::SampleFilter;
use super::symbol_files::SymbolFiles;
use pmc_analysis::analysis::request::{
    AnalysisRequest, MAX_STACK, NamePattern, SampleSelection, StackChanges,
};
use pmc_analysis::profile::sampled::NameStyle;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::session::thread_time::StateWord;
use pmc_sys::error::Result;

/// Which parts of stacks to count. Without these options, whole stacks count.
#[derive(Debug, Clone, Args)]
pub struct StackOptions {
    /// Maximum number of frames in a call chain; outer frames beyond this are dropped
    #[arg(
        long,
        value_name = "FRAMES",
        default_value_t = MAX_STACK,
        help_heading = "Call stacks",
        hide_short_help = true
    )]
    pub max_stack: usize,

    /// Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub stitch_lbr: bool,

    /// Include only these programs and libraries
    #[arg(short = 'd', long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub dsos: Vec<String>,

    /// Include only these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub symbols: Vec<String>,

    /// Include only functions whose names contain this
    #[arg(long, value_name = "PART", help_heading = "Filters", hide_short_help = true)]
    pub symbol_filter: Option<String>,

    /// Include only functions with known names
    #[arg(short = 'U', long, help_heading = "Filters", hide_short_help = true)]
    pub hide_unresolved: bool,

    /// Include only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting
    /// (both)
    #[arg(
        long,
        value_name = "STATE,…",
        value_delimiter = ',',
        help_heading = "Filters",
        hide_short_help = true
    )]
    pub state: Vec<StateWord>,

    /// Also sort by the innermost caller that matches this pattern
    #[arg(short = 'p', long, value_name = "REGEX", help_heading = "Call stacks", hide_short_help = true)]
    pub parent: Option<NamePattern>,

    /// Include only samples with a caller that matches --parent
    #[arg(short = 'x', long, help_heading = "Filters", hide_short_help = true)]
    pub exclude_other: bool,

    /// Attribute the cost of callees to these functions
    #[arg(long, value_name = "REGEX", help_heading = "Call stacks", hide_short_help = true)]
    pub ignore_callees: Option<NamePattern>,

    /// Include only samples on the CPUs of this socket
    #[arg(long, value_name = "NUMBER", help_heading = "Filters", hide_short_help = true)]
    pub socket_filter: Option<u32>,

    /// Show inlined functions and source lines (default)
    #[arg(long, overrides_with = "no_inline", help_heading = "Names", hide_short_help = true)]
    pub inline: bool,

    /// Do not look for inlined functions
    #[arg(long, help_heading = "Names")]
    pub no_inline: bool,

    /// Demangle symbol names (default)
    #[arg(long, overrides_with = "no_demangle", help_heading = "Names", hide_short_help = true)]
    pub demangle: bool,

    /// Show mangled symbol names
    #[arg(long, help_heading = "Names", hide_short_help = true)]
    pub no_demangle: bool,
}

impl StackOptions {
    /// Returns the samples to analyse, and how to complete and name their stacks.
    ///
    /// # Errors
    /// Fails if debuginfod is requested, but no server is configured.
    pub fn samples(&self, filter: &SampleFilter, files: &SymbolFiles) -> Result<AnalysisRequest> {
        Ok(AnalysisRequest {
            selection: self.selection(filter),
            max_stack: self.max_stack,
            joins: !filter.no_join,
            idle: filter.idle,
            stitches: self.stitch_lbr,
            stack_changes: self.changes(),
            name_style: NameStyle { raw: self.no_demangle, ..NameStyle::default() },
            ..AnalysisRequest::new(files.symbol_options()?)
        })
    }

    /// Returns the samples that these options and `filter` select.
    pub fn selection(&self, filter: &SampleFilter) -> SampleSelection {
        SampleSelection {
            socket: self.socket_filter,
            states: StateWord::states(&self.state),
            ..filter.selection()
        }
    }

    /// Returns the changes to stacks that depend on function names.
    pub fn changes(&self) -> StackChanges {
        let usual = || self.exclude_other.then(NamePattern::kernel_entries);
        StackChanges {
            ignore_callees: self.ignore_callees.clone(),
            parent: self.parent.clone().or_else(usual),
            parents_only: self.exclude_other,
        }
    }

    /// Returns the modules and functions to include.
    pub fn only(&self) -> RowSelection {
        RowSelection {
            dsos: listed(&self.dsos),
            symbols: listed(&self.symbols),
            part: self.symbol_filter.clone(),
            named: self.hide_unresolved,
            ..RowSelection::default()
        }
    }
}

/// Returns the selected names, or `None`, which selects all names, if the list is empty.
pub fn listed(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}
