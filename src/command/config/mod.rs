//! `pmc config`: shows and changes settings in perf's configuration files.
//!
//! Reads and writes these files, and prints to standard output.

pub(super) mod plan;

use std::io::Write;

use plan::ConfigStep;
pub(super) use plan::{ConfigPlan, apply, apply_recording, apply_reporting, apply_to_request, pages};

use crate::config::{self, Config};
use pmc_command::pager::PagedOutput;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_text::text::clean;

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
                if !plan::is_supported(key) {
                    say::note(format!("only perf uses {key}; pmc ignores it"));
                }
            }
        }
    }
    let mut page = PagedOutput::open();
    let written = page.write_all(out.as_bytes()).and_then(|()| page.finish());
    written.map(|()| exit).map_err(|error| Error::output("the settings", error))
}
