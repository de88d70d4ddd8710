//! `pmc config`: perf's settings, shown and changed.
//!
//! Wires the settings' files and standard output.

pub(super) mod plan;

use std::io::Write;

use plan::Step;
pub(super) use plan::{Plan, heed, heed_recording, heed_reporting};

use crate::config::{self, Config};
use crate::error::{Error, Exit, Result, say};
use crate::text::clean;

/// Runs it: done if every key that was asked for is set.
///
/// # Errors
/// No file that could be written, and what the kernel says of it and of writing.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    let config = Config::load(plan.place);
    let line = |key: &str, value: &str| format!("{}={}\n", clean(key), clean(value));
    let mut out = String::new();
    let mut exit = Exit::Done;
    for step in &plan.steps {
        match step {
            Step::List => config.all().for_each(|(key, value)| out += &line(key, value)),
            Step::Show(key) => match config.get(key) {
                Some(value) => out += &line(key, value),
                None => {
                    say::note(format!("{key} is not set"));
                    exit = Exit::Failure;
                }
            },
            Step::Set(key, value) => {
                let files = plan.place.files();
                let file = files.last().ok_or_else(|| {
                    Error::new("there is no file for settings")
                        .why("HOME is not set")
                        .try_this("PERF_CONFIG=FILE")
                })?;
                config::set(file, key, value)?;
                if !plan::HEEDED.contains(&key.as_str()) {
                    say::note(format!("{key} is perf's alone: it changes nothing in pmc"));
                }
            }
        }
    }
    let written = std::io::stdout().write_all(out.as_bytes());
    written.map(|()| exit).map_err(|error| Error::output("the settings", error))
}
