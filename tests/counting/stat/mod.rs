//! `pmc stat` as a user meets it: the real binary, the real kernel, real signals, and `perf stat` next to it
//! if installed.
//!
//! Counts are compared to independent sources: a thread's clock, the pages that `dd` must touch, the times of
//! `wait4(2)`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::kit::burn::busy_shell;
use crate::kit::{self, wait_for, wait_for_counters};

mod counted;
mod ends;
mod forms;
mod gate;
mod logged;
mod openmetrics;
mod pcp;
mod places;
mod played;
mod probes;
mod recorded;
mod refusals;
mod times;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

/// A document of `--json=2`.
struct Document(Value);

/// Counts with these arguments and returns the document.
#[track_caller]
fn count(args: &[&str]) -> Document {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("counts");
    let mut all = vec!["stat", "--json=2", "-o", file.to_str().unwrap()];
    all.extend(args);
    kit::run(&all).expect(0);
    Document::read(&file)
}

impl Document {
    #[track_caller]
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        Self(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}")))
    }

    /// Returns an event's value, summed over the rows; `None` if it was not counted anywhere.
    #[track_caller]
    fn value(&self, name: &str) -> Option<f64> {
        let events = self.0["events"].as_array().unwrap();
        let index = events.iter().position(|event| event["name"] == name);
        let index = index.unwrap_or_else(|| panic!("no {name} in {}", self.0));
        let values = self.rows().iter().filter_map(|row| row["values"][index]["value"].as_f64());
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// Like [`Document::value`], for an event that must have been counted.
    #[track_caller]
    fn number(&self, name: &str) -> f64 {
        self.value(name).unwrap_or_else(|| panic!("{name} was not counted: {}", self.0))
    }

    fn rows(&self) -> &Vec<Value> {
        self.0["total"]["rows"].as_array().unwrap()
    }

    /// Returns a time of the whole run in seconds.
    #[track_caller]
    fn seconds(&self, field: &str) -> f64 {
        self.0["total"][field].as_f64().unwrap_or_else(|| panic!("no {field} in {}", self.0))
    }
}

/// Starts pmc with its output captured.
fn start(args: &[&str]) -> Child {
    kit::pmc().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the stderr of `perf stat`.
fn perf(args: &[&str]) -> String {
    let output = kit::oracle::ask("perf", &[&["stat"], args].concat());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the stderr of `pmc stat`.
#[track_caller]
fn pmc(args: &[&str]) -> String {
    let mut all = vec!["stat"];
    all.extend(args);
    kit::run(&all).expect(0).stderr
}

/// Returns a CSV's events by name, with their fields.
fn fields(csv: &str, separator: &str, name_at: usize) -> HashMap<String, Vec<String>> {
    csv.lines()
        .map(|line| line.split(separator).map(str::to_owned).collect::<Vec<_>>())
        .filter(|fields| fields.len() > name_at)
        .map(|fields| (fields[name_at].clone(), fields))
        .collect()
}

/// Keeps a CPU busy in the shell for 0.2 s.
static BUSY: LazyLock<&str> = LazyLock::new(|| busy_shell(200));
