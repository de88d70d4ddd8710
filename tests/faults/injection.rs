//! Runs pmc with one failing system call, by `inject.c`.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::kit::{self, lab::Lab};

/// A system call that fails: its name, the occurrence, and the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) call: String,
    /// Counts from 1. Calls before pmc's first `poll` (the dynamic loader) do not count.
    pub(crate) nth: u32,
    /// Whether only the calls of the child count that becomes the command.
    pub(crate) in_child: bool,
    pub(crate) error: (&'static str, i32),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.call, self.nth, self.error.0)
    }
}

/// Result of one run.
#[derive(Debug)]
pub(crate) struct FaultRun {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) was_hit: bool,
    pub(crate) hung: bool,
    /// Names of the processes that ran on when pmc had ended.
    pub(crate) left: Vec<String>,
    /// Names of the processes that did not end either, and were killed.
    pub(crate) endless: Vec<String>,
    /// Name of each system call that pmc made, and the number of calls after its start.
    pub(crate) calls: BTreeMap<String, u32>,
}

impl FaultRun {
    /// Whether pmc crashed.
    pub(crate) fn crashed(&self) -> bool {
        self.stderr.contains("panicked")
            || self.stderr.contains("fatal runtime error")
            || self.status.code() == Some(101)
            || matches!(self.status.signal(), Some(4 | 6 | 7 | 8 | 11))
    }
}

/// The compiled injector.
#[derive(Debug)]
pub(crate) struct Injector(PathBuf);

impl Injector {
    /// Compiles the injector. Returns `None` if a requirement is missing.
    pub(crate) fn new(lab: &Lab) -> Option<Self> {
        let source = include_str!("inject.c");
        let injector = Self(lab.build("inject", source, &["-O1", "-pthread"]));
        let run = injector.run(lab.path("try").as_path(), None, &mut Command::new("true"));
        kit::need("seccomp", run.is_some(), "seccomp user notification is not permitted").then_some(injector)
    }

    /// Runs a command, which calls pmc, with a fault. Returns `None` if the injector failed.
    pub(crate) fn run(&self, log: &Path, fault: Option<&Fault>, command: &mut Command) -> Option<FaultRun> {
        let output = self.command(log, fault, command)?.output().expect("the injector starts");
        Self::result(log, output.stdout, &output.stderr)
    }

    /// Returns the injector's command, which runs a command that calls pmc.
    pub(crate) fn command(&self, log: &Path, fault: Option<&Fault>, command: &Command) -> Option<Command> {
        let (call, error, nth) = fault.map_or(("count".to_owned(), 0, 0), |fault| {
            (format!("{}{}", if fault.in_child { '-' } else { '+' }, fault.call), fault.error.1, fault.nth)
        });
        let program = std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(command.get_program()))
            .find(|path| path.is_file())?;
        let mut run = Command::new(&self.0);
        run.args([kit::binary(), &call, &error.to_string(), &nth.to_string()]);
        run.arg(patience().to_string()).arg(log).arg("--").arg(program).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => run.env(name, value),
                None => run.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            run.current_dir(folder);
        }
        run.stdin(std::process::Stdio::null());
        Some(run)
    }

    /// Returns the result of an injector that has ended, with pmc's output.
    pub(crate) fn result(log: &Path, stdout: Vec<u8>, stderr: &[u8]) -> Option<FaultRun> {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let mut result = FaultRun {
            status: ExitStatus::from_raw(text.lines().find_map(|l| l.strip_prefix("status "))?.parse().ok()?),
            stdout,
            stderr: String::from_utf8_lossy(stderr).into_owned(),
            was_hit: false,
            hung: false,
            left: Vec::new(),
            endless: Vec::new(),
            calls: BTreeMap::new(),
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["hit", ..] => result.was_hit = true,
                ["hung"] => result.hung = true,
                ["left", name] => result.left.push(name.to_owned()),
                ["endless", name] => result.endless.push(name.to_owned()),
                ["calls", name, _, after] => {
                    result.calls.insert(name.to_owned(), after.parse().expect("a number"));
                }
                _ => {}
            }
        }
        Some(result)
    }
}

/// Seconds until a run counts as hung: `PMC_TEST_FAULTS_HANG`, which the long form sets.
fn patience() -> u64 {
    let set = std::env::var("PMC_TEST_FAULTS_HANG").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(kit::PATIENCE.as_secs())
}
