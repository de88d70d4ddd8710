//! Converts the options of `pmc config` into a plan, and applies settings to the other commands.
//!
//! A setting provides the value of an option that is not on the command line. [`apply`] fills in the settings
//! before a command makes its plan, so the plan cannot distinguish settings from options on the command line.

use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::cli::report::ReportArgs;
use crate::cli::stat::StatDisplayArgs;
use crate::cli::{Cli, Command, config as cli};
use crate::config::{Config, ConfigFiles};
use pmc_command::options::sample_filter::{PERCENTAGES, ShareBase};
use pmc_command::record::args::RecordArgs;
use pmc_command::values::SYNTAXES;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK};
use pmc_recording::recording::plan::{BuildIdChoice, RecordRequest};
use pmc_symbols::symbol::options;
use pmc_sys::error::{Error, Result};
use pmc_view::report::chain_words::ChainWord;

/// An action on a key.
pub(in crate::command) enum ConfigStep {
    List,
    Show(String),
    Set(String, String),
}

/// Settings of `pmc config`.
pub(in crate::command) struct ConfigPlan {
    pub(super) files: ConfigFiles,
    pub(super) steps: Vec<ConfigStep>,
}

impl ConfigPlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if a key has no section, or no value after its equals sign.
    pub(in crate::command) fn new(typed: &cli::ConfigArgs) -> Result<Self> {
        let step = |text: &String| {
            let (key, value) =
                text.split_once('=').map_or((text.as_str(), None), |(key, value)| (key, Some(value)));
            let is_name = |name: &str| {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                !name.is_empty() && name.chars().all(plain)
            };
            let sound = key.rsplit_once('.').is_some_and(|(section, name)| is_name(section) && is_name(name));
            match value {
                _ if !sound => Err(Error::usage(format!("{text:?} is not a setting: expected SECTION.NAME"))
                    .try_this("such as report.children=false")),
                Some("") => Err(Error::usage(format!("{key}: missing value after ="))
                    .try_this(format!("pmc config {key}=VALUE"))),
                Some(value) => Ok(ConfigStep::Set(key.to_ascii_lowercase(), value.to_owned())),
                None => Ok(ConfigStep::Show(key.to_ascii_lowercase())),
            }
        };
        let mut steps: Vec<ConfigStep> = typed.keys.iter().map(step).collect::<Result<_>>()?;
        if steps.is_empty() {
            steps.push(ConfigStep::List);
        }
        let files = match (typed.system, typed.user) {
            (true, _) => ConfigFiles::System,
            (_, true) => ConfigFiles::User,
            _ => ConfigFiles::Usual,
        };
        Ok(Self { files, steps })
    }
}

/// The keys that pmc supports.
pub(super) const SUPPORTED: &[&str] = &[
    "annotate.disassembler_style",
    "annotate.hide_src_code",
    "annotate.show_nr_samples",
    "buildid.dir",
    "call-graph.dump-size",
    "call-graph.order",
    "call-graph.print-type",
    "call-graph.record-mode",
    "call-graph.threshold",
    "diff.compute",
    "diff.order",
    "hist.percentage",
    "record.build-id",
    "record.call-graph",
    "report.children",
    "report.percent-limit",
    "report.sort_order",
    "stat.big-num",
    "top.call-graph",
    "top.children",
];

/// Whether pmc supports this key.
pub(super) fn is_supported(key: &str) -> bool {
    let pages =
        |section: &str| section.strip_prefix("pager.").is_some_and(|name| Command::NAMES.contains(&name));
    SUPPORTED.contains(&key) || pages(key)
}

/// Whether to use a pager for text. The command-line option takes precedence over the setting
/// `pager.COMMAND`.
///
/// # Errors
/// Fails if the value is neither on nor off.
pub(in crate::command) fn pages(config: &Config, cli: &Cli) -> Result<bool> {
    let key = format!("pager.{}", cli.command.name());
    Ok(!cli.no_pager && (cli.paginate || config.is(&key)?.unwrap_or(true)))
}

/// Applies the settings to options that are not on the command line. If a command line was parsed, `matches`
/// shows which options it contains.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub(in crate::command) fn apply(config: &Config, cli: &mut Cli, matches: Option<&ArgMatches>) -> Result<()> {
    let typed = |id: &str| {
        let of = matches.and_then(ArgMatches::subcommand);
        of.is_some_and(|(_, of)| of.value_source(id) == Some(ValueSource::CommandLine))
    };
    match &mut cli.command {
        Command::Record(record) => apply_recording(config, record)?,
        Command::Report(report) => apply_reporting(config, report, typed("percentage"))?,
        Command::Top(top) => {
            top.no_children |= config.is("top.children")? == Some(false) && !top.children;
            if top.stacks && top.call_graph.is_none() {
                // `top` does not unwind stack copies.
                let mode = stacks(config, "top.call-graph").filter(|mode| !mode.starts_with("dwarf"));
                top.call_graph = mode.as_deref().map(call_graph).transpose()?;
            }
        }
        Command::Annotate(annotate) => {
            let style = config.get("annotate.disassembler_style");
            let known = SYNTAXES.iter().find(|(word, _)| Some(*word) == style);
            if let Some((_, style)) = known.filter(|_| !typed("disassembler_style")) {
                annotate.disassembler_style = *style;
            }
            let hides = config.is("annotate.hide_src_code")? == Some(true);
            annotate.no_source |= hides && !annotate.source && !annotate.source_only;
            annotate.show_nr_samples |= config.is("annotate.show_nr_samples")? == Some(true);
        }
        Command::Diff(diff) => {
            if let Some(how) = config.get("diff.compute").filter(|_| !typed("compute")) {
                diff.compute = Some(how.parse()?);
            }
            let order = config.read("diff.order", "a number", |text| text.parse().ok())?;
            if let Some(order) = order.filter(|_| !typed("order")) {
                diff.order = order;
            }
            if let Some(of) = percentage(config)?.filter(|_| !typed("percentage")) {
                diff.percentage = of;
            }
        }
        Command::Stat(stat) => apply_counts(config, &mut stat.shown)?,
        Command::StatRecord(stat) => apply_counts(config, &mut stat.shown)?,
        Command::StatReport(stat) => apply_counts(config, &mut stat.shown)?,
        _ => {}
    }
    let chosen = cli.buildid_dir.take();
    let folder = chosen.or_else(|| set_folder(config).filter(|_| !options::names_build_id_folder()));
    if let Some(folder) = folder {
        options::choose_build_id_folder(std::path::absolute(&folder).unwrap_or(folder));
    }
    Ok(())
}

/// Like [`apply`], for the options of `pmc record`.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub(in crate::command) fn apply_recording(config: &Config, record: &mut RecordArgs) -> Result<()> {
    if record.stacks && record.call_graph.is_none() {
        record.call_graph = stacks(config, "record.call-graph").as_deref().map(call_graph).transpose()?;
    }
    set_stack_copy(config, &mut record.call_graph)?;
    match word(config, BUILD_IDS.0, BUILD_IDS.1)? {
        Some("no-cache") => record.recording.no_buildid_cache = true,
        Some("skip") => record.recording.no_buildid = true,
        Some("mmap") => record.buildid_mmap = true,
        _ => {}
    }
    Ok(())
}

/// Like [`apply_recording`], for a recording that is part of another command.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub(in crate::command) fn apply_to_request(config: &Config, request: &mut RecordRequest) -> Result<()> {
    set_stack_copy(config, &mut request.sample.options.call_graph)?;
    match word(config, BUILD_IDS.0, BUILD_IDS.1)? {
        Some("no-cache" | "mmap") => request.file.keeps_files = false,
        Some("skip") => request.file.build_ids = BuildIdChoice::None,
        _ => {}
    }
    Ok(())
}

/// The setting about build IDs, and its values.
const BUILD_IDS: (&str, &[&str]) = ("record.build-id", &["cache", "no-cache", "skip", "mmap"]);

/// Sets the size of stack copies, unless another size than the default was chosen.
fn set_stack_copy(config: &Config, chosen: &mut Option<CallGraph>) -> Result<()> {
    if *chosen == Some(CallGraph::Dwarf(DEFAULT_STACK))
        && let Some(size) = config.get("call-graph.dump-size")
    {
        *chosen = Some(call_graph(&format!("dwarf,{size}"))?);
    }
    Ok(())
}

fn call_graph(mode: &str) -> Result<CallGraph> {
    mode.parse().map_err(|error: Error| error.of_option("--call-graph ", mode))
}

/// Like [`apply`], for the options of `pmc report`.
///
/// # Errors
/// Fails if a setting has an invalid value.
pub(in crate::command) fn apply_reporting(
    config: &Config,
    report: &mut ReportArgs,
    percentage_typed: bool,
) -> Result<()> {
    report.percent_limit = report.percent_limit.or(percent(config, "report.percent-limit")?);
    report.no_children |= config.is("report.children")? == Some(false) && !report.children;
    if let Some(keys) = config.get("report.sort_order").filter(|_| report.sort.is_empty())
        && report.fields.is_empty()
    {
        report.sort = keys.split(',').map(str::parse).collect::<Result<_>>()?;
    }
    let words = report.call_graph.take().unwrap_or_default();
    let limit = percent(config, "call-graph.threshold")?.map(ChainWord::Number);
    let limit = limit.filter(|_| !words.iter().any(|word| matches!(word, ChainWord::Number(_))));
    let chain_word = |key, words: &[&str]| -> Result<Option<ChainWord>> {
        word(config, key, words)?.map(str::parse).transpose()
    };
    let order = chain_word("call-graph.order", &["caller", "callee"])?;
    let shape = chain_word("call-graph.print-type", &["graph", "fractal", "flat", "folded"])?;
    let set = [order, shape, limit].into_iter().flatten();
    report.call_graph = Some(set.chain(words).collect::<Vec<_>>()).filter(|words| !words.is_empty());
    if let Some(of) = percentage(config)?.filter(|_| !percentage_typed) {
        report.percentage = of;
    }
    Ok(())
}

fn apply_counts(config: &Config, shown: &mut StatDisplayArgs) -> Result<()> {
    shown.no_big_num |= config.is("stat.big-num")? == Some(false) && !shown.big_num;
    Ok(())
}

/// Reads a setting whose value must be one of `words`.
fn word<'a>(config: &Config, key: &str, words: &'a [&'a str]) -> Result<Option<&'a str>> {
    config.read(key, &words.join(", "), |value| words.iter().find(|word| **word == value).copied())
}

fn percent(config: &Config, key: &str) -> Result<Option<f64>> {
    let number = |text: &str| text.trim_end_matches('%').parse::<f64>().ok();
    config.read(key, "a percentage", |text| number(text).filter(|limit| (0.0..=100.0).contains(limit)))
}

fn percentage(config: &Config) -> Result<Option<ShareBase>> {
    let named = |text: &str| PERCENTAGES.iter().find(|(word, _)| *word == text).map(|(_, base)| *base);
    config.read("hist.percentage", "absolute, relative", named)
}

/// Returns the call-chain method for `-g`. `own` is the command's key for this setting, which takes
/// precedence over the general one.
fn stacks(config: &Config, own: &str) -> Option<String> {
    let mode = config.get(own).or_else(|| config.get("call-graph.record-mode"))?.to_owned();
    match config.get("call-graph.dump-size") {
        Some(size) if mode == "dwarf" => Some(format!("dwarf,{size}")),
        _ => Some(mode),
    }
}

/// Returns the build-id cache directory from the settings.
fn set_folder(config: &Config) -> Option<PathBuf> {
    let folder = config.get("buildid.dir")?;
    let home = folder.strip_prefix("~/").and_then(|rest| Some((std::env::home_dir()?, rest)));
    Some(home.map_or_else(|| folder.into(), |(home, rest)| home.join(rest)))
}
