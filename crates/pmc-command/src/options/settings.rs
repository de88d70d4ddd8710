//! Hidden options for perf's settings that have no option of their own. They change the defaults or the
//! meaning of other options; the program puts them in front of the typed ones.

use clap::Args;

use super::sample_filter::{PERCENTAGES, ShareBase};
use crate::values::one_of;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK};
use pmc_recording::recording::plan::{BuildIdChoice, RecordRequest};
use pmc_sys::error::Result;
use pmc_view::report::chain_words::{ChainOptions, ChainWord};
use pmc_view::report::request::ReportRequest;
use pmc_view::report::row_layout::{RowLayout, RowWord};

/// Defaults of a recording: the sections `record` and `call-graph`.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordingSettings {
    /// Method that --call-graph dwarf selects, with the stack size of call-graph.dump-size
    #[arg(long, hide = true, value_name = "MODE")]
    pub default_dwarf: Option<CallGraph>,

    /// What to write about the sampled files: record.build-id
    #[arg(long, hide = true, value_name = "HOW", value_parser = one_of(BUILD_ID_SETTINGS))]
    pub default_build_ids: Option<BuildIdSetting>,
}

/// A value of the setting `record.build-id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildIdSetting {
    /// Collect build-ids, and copy the sampled files to the cache.
    Cache,
    /// Collect build-ids only.
    NoCache,
    /// Do not collect build-ids.
    Skip,
}

/// The words of the setting `record.build-id`. Mappings carry build-ids anyway.
const BUILD_ID_SETTINGS: &[(&str, BuildIdSetting)] = &[
    ("cache", BuildIdSetting::Cache),
    ("no-cache", BuildIdSetting::NoCache),
    ("mmap", BuildIdSetting::NoCache),
    ("skip", BuildIdSetting::Skip),
];

impl RecordingSettings {
    /// Changes what the request leaves at its default.
    pub fn apply(&self, request: &mut RecordRequest) {
        let call_graph = &mut request.sample.options.call_graph;
        if *call_graph == Some(CallGraph::Dwarf(DEFAULT_STACK)) {
            *call_graph = self.default_dwarf.or(*call_graph);
        }
        match self.default_build_ids {
            Some(BuildIdSetting::NoCache) => request.file.keeps_files = false,
            Some(BuildIdSetting::Skip) => request.file.build_ids = BuildIdChoice::None,
            Some(BuildIdSetting::Cache) | None => {}
        }
    }
}

/// Defaults of a report: the sections `report`, `call-graph` and `hist`.
#[derive(Debug, Clone, Default, Args)]
pub struct ReportSettings {
    /// Sort keys, unless keys or columns are typed
    #[arg(long, hide = true, value_name = "KEY,…", value_delimiter = ',')]
    pub default_sort: Vec<RowWord>,

    /// Words of -g in front of the typed ones
    #[arg(long, hide = true, value_name = "HOW,…", value_delimiter = ',')]
    pub default_chains: Vec<ChainWord>,

    /// --percent-limit, unless typed
    #[arg(long, hide = true, value_name = "PERCENT")]
    pub default_percent_limit: Option<f64>,

    /// --no-children, unless --children is typed
    #[arg(long, hide = true)]
    pub default_no_children: bool,

    /// --percentage, unless typed
    #[arg(long, hide = true, value_name = "OF", value_parser = one_of(PERCENTAGES))]
    pub default_percentage: Option<ShareBase>,
}

impl ReportSettings {
    /// Returns the request of a report without typed options.
    ///
    /// # Errors
    /// Fails if the sort keys contradict each other.
    pub fn request(&self) -> Result<ReportRequest> {
        Ok(ReportRequest {
            rows: RowLayout::new(&self.default_sort, &[])?,
            chains: self.chains(None, false),
            children: !self.default_no_children,
            relative: self.default_percentage == Some(ShareBase::Filtered),
            percent_limit: self.default_percent_limit,
            ..ReportRequest::default()
        })
    }

    /// Combines the settings with the typed words of `-g`, if there are any, and with `-G`.
    pub fn chains(&self, typed: Option<&[ChainWord]>, inverted: bool) -> ChainOptions {
        let is_number = |word: &&ChainWord| matches!(word, ChainWord::Number(_));
        // A second number has another meaning.
        let has_number = typed.unwrap_or_default().iter().any(|word| is_number(&word));
        let set = self.default_chains.iter().filter(|word| !has_number || !is_number(word));
        let words: Vec<ChainWord> = set.chain(typed.unwrap_or_default()).copied().collect();
        ChainOptions::new(Some(&words[..]).filter(|words| typed.is_some() || !words.is_empty()), inverted)
    }
}
