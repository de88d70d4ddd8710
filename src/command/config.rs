//! `pmc config`: shows and changes settings in perf's configuration files.
//!
//! Reads and writes these files, and prints to standard output.

use std::io::Write;

use crate::cli::config::ConfigArgs;
use crate::config::{self, Config, ConfigFiles, SettingAction};
use crate::settings;
use pmc_command::pager::PagedOutput;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_text::text::clean;

/// Runs the command. Without settings, lists all. Succeeds if every requested key is set.
///
/// # Errors
/// Fails if there is no file to write, or if reading or writing fails.
pub(super) fn run(typed: &ConfigArgs) -> Result<Exit> {
    let files = match (typed.system, typed.user) {
        (true, _) => ConfigFiles::System,
        (_, true) => ConfigFiles::User,
        _ => ConfigFiles::Usual,
    };
    let config = Config::load(&files.paths());
    let line = |key: &str, value: &str| format!("{}={}\n", clean(key), clean(value));
    let mut out = String::new();
    let mut exit = Exit::Done;
    if typed.settings.is_empty() {
        config.all().for_each(|(key, value)| out += &line(key, value));
    }
    for setting in &typed.settings {
        match setting {
            SettingAction::Show(key) => match config.get(key) {
                Some(value) => out += &line(key, value),
                None => {
                    say::note(format!("{key} is not set"));
                    exit = Exit::Failure;
                }
            },
            SettingAction::Set(key, value) => {
                let files = files.paths();
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
