//! perf's settings as options of pmc: each is words in front of the typed options, which override them.
//!
//! ```text
//!   [stat] big-num = false      pmc stat -a      is      pmc stat --no-big-num -a
//! ```
//! A setting that changes only the meaning or the default of other options is a hidden option `--default-…`,
//! see [`pmc_command::options::settings`].

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::{Command, spelling};
use crate::config::Config;
use pmc_events::counter::request::sampling::CallGraph;
use pmc_symbols::symbol::options;
use pmc_sys::error::Result;

/// A setting that pmc supports.
struct Setting {
    key: &'static str,
    /// The commands to which it applies. `sched record` is `record`.
    commands: &'static [&'static str],
    /// The option that sets the same.
    option: SettingOption,
}

/// The option that sets the same as a setting, by the kind of the setting's value.
enum SettingOption {
    /// This option, if the setting is on.
    IfOn(&'static str),
    /// This option, if the setting is off.
    IfOff(&'static str),
    /// The option with the value, which must be one of these words.
    OneOf(&'static str, &'static [&'static str]),
    /// The option with the value if it is one of these words. perf knows others.
    Known(&'static str, &'static [&'static str]),
    /// The option with a percentage.
    Percentage(&'static str),
    /// The option with a number.
    Number(&'static str),
    /// The option with a call-chain method.
    CallGraph(&'static str),
    /// The option with stack copies of this size.
    StackSize(&'static str),
    /// The option with any text. Its own parser checks it.
    Text(&'static str),
}

use SettingOption::{IfOff, IfOn, Known, Number, OneOf, Percentage, StackSize, Text};

const RECORDINGS: &[&str] = &["record", "profile", "compare", "mcp"];
const REPORTS: &[&str] = &["report", "profile"];
const COUNTS: &[&str] = &["stat", "stat-record", "stat-report"];

/// The settings, except `buildid.dir` and `pager.COMMAND`, which apply to all commands. A later setting
/// overrides an earlier one with the same option.
const SETTINGS: &[Setting] = &[
    row("annotate.disassembler_style", &["annotate"], Known("--disassembler-style", &["att", "intel"])),
    row("annotate.hide_src_code", &["annotate"], IfOn("--default-no-source")),
    row("annotate.show_nr_samples", &["annotate"], IfOn("--show-nr-samples")),
    row("call-graph.dump-size", RECORDINGS, StackSize("--default-dwarf")),
    row("call-graph.order", REPORTS, OneOf("--default-chains", &["caller", "callee"])),
    row("call-graph.print-type", REPORTS, OneOf("--default-chains", &["graph", "fractal", "flat", "folded"])),
    row("call-graph.record-mode", &["record", "top"], SettingOption::CallGraph("--default-call-graph")),
    row("call-graph.threshold", REPORTS, Percentage("--default-threshold")),
    row("diff.compute", &["diff"], Text("--compute")),
    row("diff.order", &["diff"], Number("--order")),
    row("hist.percentage", &["diff"], OneOf("--percentage", &["absolute", "relative"])),
    row("hist.percentage", REPORTS, OneOf("--default-percentage", &["absolute", "relative"])),
    row("record.build-id", RECORDINGS, OneOf("--default-build-ids", &["cache", "no-cache", "skip", "mmap"])),
    row("record.call-graph", &["record"], SettingOption::CallGraph("--default-call-graph")),
    row("report.children", REPORTS, IfOff("--default-no-children")),
    row("report.percent-limit", REPORTS, Percentage("--default-percent-limit")),
    row("report.sort_order", REPORTS, Text("--default-sort")),
    row("stat.big-num", COUNTS, IfOff("--no-big-num")),
    row("top.call-graph", &["top"], SettingOption::CallGraph("--default-call-graph")),
    row("top.children", &["top"], IfOff("--no-children")),
];

const fn row(key: &'static str, commands: &'static [&'static str], option: SettingOption) -> Setting {
    Setting { key, commands, option }
}

/// The setting for the build-id cache directory.
const BUILD_ID_FOLDER: &str = "buildid.dir";
/// The section of the settings that switch the pager on or off for a command.
const PAGER: &str = "pager.";

/// Whether pmc supports this key.
pub(crate) fn is_supported(key: &str) -> bool {
    key == BUILD_ID_FOLDER
        || SETTINGS.iter().any(|setting| setting.key == key)
        || key.strip_prefix(PAGER).is_some_and(|command| Command::NAMES.contains(&command))
}

/// Puts the settings' options in front of the typed ones. `words` begin with the program's name.
///
/// # Errors
/// Fails if a setting has an invalid value. The words are unchanged then.
pub(crate) fn put_in_front(words: &mut Vec<OsString>, config: &Config, parser: &clap::Command) -> Result<()> {
    let Some(name) = spelling::command_name(words, parser) else { return Ok(()) };
    let command = words[name].to_string_lossy().into_owned();
    // A broken setting must not block `config`.
    if command == "config" {
        return Ok(());
    }
    let mut global = Vec::new();
    if config.is(&format!("{PAGER}{command}"))? == Some(false) {
        global.push("--no-pager".into());
    }
    global.extend(build_id_folder(config).map(|folder| option("--buildid-dir", folder)));
    let own = SETTINGS.iter().filter(|setting| setting.commands.contains(&command.as_str()));
    let own: Vec<Option<OsString>> = own.map(|setting| setting.word(config)).collect::<Result<_>>()?;
    words.splice(name + 1..name + 1, own.into_iter().flatten());
    words.splice(1..1, global);
    Ok(())
}

/// Returns the build-id cache directory from the settings, unless the environment names one.
pub(crate) fn build_id_folder(config: &Config) -> Option<PathBuf> {
    let folder = config.get(BUILD_ID_FOLDER).filter(|_| !options::names_build_id_folder())?;
    let home = folder.strip_prefix("~/").and_then(|rest| Some((std::env::home_dir()?, rest)));
    Some(home.map_or_else(|| folder.into(), |(home, rest)| home.join(rest)))
}

impl Setting {
    /// Returns the option that sets the same, if the setting is set.
    fn word(&self, config: &Config) -> Result<Option<OsString>> {
        let key = self.key;
        let is_percentage = |text: &str| {
            text.trim_end_matches('%').parse().is_ok_and(|limit: f64| (0.0..=100.0).contains(&limit))
        };
        let is_call_graph = |mode: &str| mode.parse::<CallGraph>().is_ok();
        let valued = |name: &str, expected: &str, is_valid: &dyn Fn(&str) -> bool| {
            let value = config.read(key, expected, |value| is_valid(value).then(|| value.to_owned()))?;
            Ok(value.map(|value| option(name, value)))
        };
        match self.option {
            IfOn(name) => Ok((config.is(key)? == Some(true)).then(|| name.into())),
            IfOff(name) => Ok((config.is(key)? == Some(false)).then(|| name.into())),
            OneOf(name, words) => valued(name, &words.join(", "), &|value| words.contains(&value)),
            Known(name, words) => {
                let value = config.get(key).filter(|value| words.contains(value));
                Ok(value.map(|value| option(name, value)))
            }
            Percentage(name) => config.read(key, "a percentage", |value| {
                is_percentage(value).then(|| option(name, value.trim_end_matches('%')))
            }),
            Number(name) => valued(name, "a number", &|value| value.parse::<u32>().is_ok()),
            SettingOption::CallGraph(name) => valued(name, "auto, dwarf, fp or lbr", &is_call_graph),
            StackSize(name) => {
                let mode = |size: &str| Some(format!("dwarf,{size}")).filter(|mode| is_call_graph(mode));
                Ok(config.read(key, "a number of bytes", mode)?.map(|mode| option(name, mode)))
            }
            Text(name) => {
                let words = |text: &str| text.split(',').map(str::trim).collect::<Vec<_>>().join(",");
                Ok(config.get(key).map(|text| option(name, words(text))))
            }
        }
    }
}

/// Returns an option with its value as one word.
fn option(name: &str, value: impl Into<OsString>) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(value.into());
    word
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Returns the words of a command line with these settings in front.
    fn with(settings: &str, line: &str) -> Result<String> {
        let mut config = Config::default();
        config.add(settings, Path::new("file"));
        let mut words = ["pmc"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        put_in_front(&mut words, &config, &Cli::command())?;
        let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn settings_are_words_behind_the_name_of_the_command() {
        let settings = "[stat]\nbig-num = off\n[record]\ncall-graph = dwarf\nbuild-id = skip\n\
            [report]\nsort_order = comm, dso\nchildren\n[pager]\nlist = off\n";
        for (typed, whole) in [
            ("stat -a", "stat --no-big-num -a"),
            ("-p stat", "-p stat --no-big-num"),
            ("record -g", "record --default-build-ids=skip --default-call-graph=dwarf -g"),
            ("sched record", "sched record --default-build-ids=skip --default-call-graph=dwarf"),
            ("report x", "report --default-sort=comm,dso x"),
            ("list", "--no-pager list"),
            ("config stat.big-num", "config stat.big-num"),
            ("--help", "--help"),
        ] {
            assert_eq!(with(settings, typed).unwrap(), whole);
        }
    }

    #[test]
    fn invalid_values_name_the_key_and_the_file() {
        for (section, setting, command) in [
            ("report", "percent-limit = 101", "report"),
            ("call-graph", "record-mode = x", "record"),
            ("call-graph", "order = x", "profile"),
            ("diff", "order = x", "diff"),
            ("top", "children = x", "top"),
        ] {
            let error = with(&format!("[{section}]\n{setting}\n"), command).unwrap_err().to_string();
            let set = setting.replace(" = ", "=");
            assert!(error.contains(&format!("{section}.{set}: expected ")), "{error}");
            assert!(error.contains("it is set in file"), "{error}");
        }
        assert_eq!(with("[annotate]\ndisassembler_style = x\n", "annotate").unwrap(), "annotate");
    }
}
