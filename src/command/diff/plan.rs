//! Converts the parsed options of `pmc diff` into a plan without clap's types.

use crate::cli::diff::DiffArgs;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::diff::{DiffRequest, WAIT_KEYS};
use pmc_analysis::analysis::request::SampleSelection;
use pmc_analysis::profile::diff::groups::GroupRequest;
use pmc_analysis::profile::diff::{Compute, streams};
use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::{Filter, NameStyle, Query, SortKey};
use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::plan::{self, listed, sort_key};
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::{self, Stream};
use pmc_view::diff::{DiffLayout, ReportFormat};
use pmc_view::gate::CiFormat;

/// Default number of rows in text output.
const ROWS: usize = 20;
/// Default number of call chains to compare per recording.
const STREAMS: usize = 10;

/// Settings of `pmc diff`.
#[derive(Debug)]
pub(in crate::command) struct DiffPlan {
    pub(super) request: DiffRequest,
    /// Whether both recordings were named on the command line.
    pub(super) names_both: bool,
    /// How to compare groups of recordings; `None` compares each recording with the first.
    pub(super) groups: Option<GroupPlan>,
    /// The CI system for which to print the answer of `--fail-if`.
    pub(super) ci: Option<CiFormat>,
    pub(super) layout: DiffLayout,
}

/// Settings for comparing groups of recordings (`--vs`, `--fail-if`).
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) request: GroupRequest,
    /// The condition under which the comparison fails.
    pub(super) gate: Option<GateCondition>,
}

impl DiffPlan {
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(typed: &DiffArgs) -> Result<Self> {
        let mut groups = groups(typed)?;
        let files = match typed.files.as_slice() {
            base if !typed.vs.is_empty() => [base, &typed.vs].concat(),
            [] => vec!["perf.data.old".into(), "perf.data".into()],
            [one] => vec!["perf.data.old".into(), one.clone()],
            all => all.to_vec(),
        };
        if files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            return Err(Error::usage("only one recording can come from standard input"));
        }
        if typed.order >= files.len() {
            return Err(Error::usage(format!("-o {}: only {} recordings given", typed.order, files.len()))
                .try_this("0 sorts by the baseline, 1 by the first recording after it"));
        }
        let mut keys: Vec<SortKey> = Vec::new();
        for name in &typed.sort {
            let key = sort_key(name)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            keys = match typed.stream {
                true => vec![SortKey::Symbol, SortKey::SrcLine],
                false => vec![SortKey::Dso, SortKey::Symbol],
            };
        }
        if let Some(key) = keys.iter().find(|key| typed.stream && !streams::KEYS.contains(key)) {
            let known: Vec<&str> = streams::KEYS.iter().map(|key| key.name()).collect();
            return Err(Error::usage(format!("--stream: call chains have no {}", key.name()))
                .try_this(format!("-s {}", known.join(","))));
        }
        let ci = typed.format.as_deref().and_then(CiFormat::named);
        // Annotations show the line of a function.
        if let Some(groups) = groups.as_mut().filter(|_| ci.is_some() && !keys.contains(&SortKey::SrcLine)) {
            keys.push(SortKey::SrcLine);
            groups.request.merges_lines = true;
        }
        let form = match &typed.field_separator {
            Some(separator) => ReportFormat::Separated(separator.clone()),
            None if typed.csv => ReportFormat::Csv,
            None if typed.json => ReportFormat::Json,
            None => ReportFormat::Text,
        };
        let is_read = Stream::Output.is_terminal();
        let layout = DiffLayout {
            rows: match typed.stream {
                true => usize::MAX,
                false => plan::rows(typed.limit, form == ReportFormat::Text, ROWS),
            },
            form,
            limit: typed.percent_limit.unwrap_or(0.0) / 100.0,
            period: typed.period,
            formula: typed.formula,
            baseline_only: typed.baseline_only,
            tree_lines: (is_read && typed.percent_limit.is_none()).then_some(plan::TREE_LINES),
            width: is_read.then(|| terminal::columns(Stream::Output)),
            paint: terminal::paint(Stream::Output, None, plan::background(None)?),
        };
        let filter = SampleFilter {
            comms: typed.comms.clone(),
            pid: typed.pid.clone(),
            tid: typed.tid.clone(),
            cpu: typed.cpu.clone(),
            time: typed.time.clone(),
            idle: typed.idle,
            ..SampleFilter::default()
        };
        let selection = SampleSelection { states: plan::states(&typed.state)?, ..plan::selection(&filter)? };
        let wait_keys = (typed.sort.is_empty() && !typed.stream).then(|| WAIT_KEYS.to_vec());
        let only = RowSelection {
            dsos: listed(&typed.dsos),
            symbols: listed(&typed.symbols),
            ..RowSelection::default()
        };
        Ok(Self {
            request: DiffRequest {
                files,
                labels: Vec::new(),
                analysis: AnalysisRequest {
                    selection,
                    keys,
                    idle: typed.idle,
                    name_style: NameStyle { raw: typed.no_demangle, shared: true, ..NameStyle::default() },
                    ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files)?)
                },
                wait_keys,
                query: Query {
                    relative: typed.percentage == "relative",
                    filter: Filter { only, ..Filter::default() },
                    ..Query::default()
                },
                tree: typed.tree,
                streams: typed.stream.then(|| plan::rows(typed.limit, true, STREAMS)),
                compute: match (&typed.compute, &layout.form) {
                    // Groups have their own comparison.
                    _ if groups.is_some() => Some(Compute::default()),
                    (Some(how), _) => Some(compute(how)?),
                    // Programs that read the output expect shares, so the default differs only for text
                    // output.
                    (None, ReportFormat::Text) if !typed.stream => None,
                    (None, _) => Some(Compute::default()),
                },
                // Annotations refer to the files of the new version.
                matches_files: !groups.as_ref().is_some_and(|groups| groups.request.merges_lines),
                order: typed.order,
            },
            names_both: typed.files.len() > 1 || groups.is_some(),
            groups,
            ci,
            layout,
        })
    }
}

/// Returns how to compare groups, if groups were requested.
fn groups(typed: &DiffArgs) -> Result<Option<GroupPlan>> {
    if typed.vs.is_empty() && typed.fail_if.is_none() {
        return Ok(None);
    }
    if !typed.vs.is_empty() && typed.files.is_empty() {
        return Err(Error::usage("--vs requires recordings of the base").try_this("pmc diff OLD… --vs NEW…"));
    }
    if typed.vs.is_empty() && typed.files.len() > 2 {
        return Err(Error::usage("--fail-if with more than two recordings requires --vs")
            .try_this("pmc diff OLD… --vs NEW…"));
    }
    // A recording that is listed twice looks like two runs without noise between them.
    let mut all: Vec<_> = typed.files.iter().chain(&typed.vs).collect();
    all.sort();
    if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::usage(format!("{} is listed twice", pair[0].display()))
            .why("each recording counts as one run"));
    }
    let by_share = match typed.compute.as_deref().map(compute).transpose()? {
        None | Some(Compute::Time | Compute::Ratio) => false,
        Some(Compute::Delta | Compute::DeltaAbs) => true,
        Some(Compute::Weighted(..)) => {
            return Err(Error::usage("-c wdiff cannot compare groups of recordings").try_this("-c delta"));
        }
    };
    let gate = typed.fail_if.as_deref().map(GateCondition::parse).transpose()?;
    let base = if typed.vs.is_empty() { 1 } else { typed.files.len() };
    Ok(Some(GroupPlan { request: GroupRequest { base, by_share, merges_lines: false }, gate }))
}

fn compute(text: &str) -> Result<Compute> {
    let bad = |text: &str| {
        Error::usage(format!("-c: unknown comparison {text:?}"))
            .try_this("delta, delta-abs, time, ratio, or wdiff:W1,W2")
    };
    match text.split_once(':') {
        Some(("wdiff", weights)) => {
            let (first, second) = weights.split_once(',').ok_or_else(|| bad(text))?;
            let weight = |word: &str| {
                let number: f64 = word.trim().parse().map_err(|_| bad(text))?;
                if number.is_finite() { Ok(number) } else { Err(bad(text)) }
            };
            Ok(Compute::Weighted(weight(first)?, weight(second)?))
        }
        None => match text {
            "delta" => Ok(Compute::Delta),
            "delta-abs" => Ok(Compute::DeltaAbs),
            "time" => Ok(Compute::Time),
            "ratio" => Ok(Compute::Ratio),
            "wdiff" => Err(Error::usage("wdiff requires two weights").try_this("-c wdiff:1,2")),
            "cycles" => Err(Error::usage("-c cycles is not supported")
                .try_this("--stream compares branch streams and their cycles")),
            _ => Err(bad(text)),
        },
        _ => Err(bad(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computations_parse_like_perf() {
        assert_eq!(compute("wdiff:1,-2.5").unwrap(), Compute::Weighted(1.0, -2.5));
        assert_eq!(compute("ratio").unwrap(), Compute::Ratio);
        for bad in ["", "wdiff", "wdiff:1", "wdiff:a,b", "wdiff:nan,1", "cycles", "ratio:1", "deltas"] {
            assert!(compute(bad).is_err(), "{bad}");
        }
    }
}
