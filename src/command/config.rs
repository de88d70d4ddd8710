//! `pmc config`: shows and changes settings in perf's configuration files.
//!
//! Reads and writes these files, and prints to standard output.

use std::io::Write;

use crate::cli::config::ConfigArgs;
use crate::config::{self, Config, ConfigFiles};
use crate::settings;
use pmc_command::pager::PagedOutput;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_text::text::clean;

/// An action on a key.
enum ConfigStep {
    List,
    Show(String),
    Set(String, String),
}

/// Settings of `pmc config`.
pub(super) struct ConfigPlan {
    files: ConfigFiles,
    steps: Vec<ConfigStep>,
}

impl ConfigPlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if a key has no section, or no value after its equals sign.
    pub(super) fn new(typed: &ConfigArgs) -> Result<Self> {
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

/// Runs the command. Succeeds if every requested key is set.
///
/// # Errors
/// Fails if there is no file to write, or if reading or writing fails.
pub(super) fn run(plan: &ConfigPlan) -> Result<Exit> {
    let config = Config::load(&plan.files.paths());
    let line = |key: &str, value: &str| format!("{}={}\n", clean(key), clean(value));
    let mut out = String::new();
    let mut exit = Exit::Done;
    for step in &plan.steps {
        match step {
            ConfigStep::List => config.all().for_each(|(key, value)| out += &line(key, value)),
            ConfigStep::Show(key) => match config.get(key) {
                Some(value) => out += &line(key, value),
                None => {
                    say::note(format!("{key} is not set"));
                    exit = Exit::Failure;
                }
            },
            ConfigStep::Set(key, value) => {
                let files = plan.files.paths();
                let file = files.last().ok_or_else(|| {
                    Error::new("no configuration file").why("HOME is not set").try_this("PERF_CONFIG=FILE")
                })?;
                config::set(file, key, value)?;
                if !settings::is_supported(key) {
                    say::note(format!("only perf uses {key}; pmc ignores it"));
                }
            }
        }
    }
    let mut page = PagedOutput::open();
    let written = page.write_all(out.as_bytes()).and_then(|()| page.finish());
    written.map(|()| exit).map_err(|error| Error::output("the settings", error))
}
