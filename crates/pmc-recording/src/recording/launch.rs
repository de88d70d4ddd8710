//! Starts the command to be measured, or explains why there is nothing to measure.
//!
//! All commands that take a COMMAND or a target use this module. It converts the kernel's errors to the exit
//! statuses of a shell.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::plan::{MeasurementScope, RunSchedule};
use super::runtime;
use pmc_events::counter::target::TargetError;
use pmc_events::event::EventTarget;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::sys::errno;
use pmc_sys::sys::process::{Ended, PausedChild, RunningCommand, Streams};
use pmc_sys::sys::signal::{self, Signals};
use pmc_text::text::shell_word;

/// Returns the measured programs. Events may refer to a function or symbol in one of them.
pub fn subject(scope: &MeasurementScope, command: &[OsString]) -> EventTarget {
    let (tasks, starts_it) = match scope {
        MeasurementScope::Processes(tasks)
        | MeasurementScope::Families(tasks)
        | MeasurementScope::Threads(tasks) => (tasks.clone(), false),
        MeasurementScope::User(_) => (Vec::new(), false),
        MeasurementScope::Command | MeasurementScope::AllThreads | MeasurementScope::Cpus(_) => {
            (Vec::new(), true)
        }
    };
    EventTarget {
        command: command.to_vec(),
        find_program: starts_it.then_some(runtime::executed),
        tasks,
        cpus: matches!(scope, MeasurementScope::AllThreads | MeasurementScope::Cpus(_)),
        library_path: std::env::var("LD_LIBRARY_PATH").unwrap_or_default(),
    }
}

/// Catches the signals that end a measurement, SIGCHLD for the command's end, and the signals in `more`. Also
/// resets [`signal::NEVER_IGNORED`] signals, so that the command does not inherit them as ignored.
///
/// # Errors
/// Fails if the kernel refuses the signal descriptor.
pub fn signals(more: &[i32]) -> Result<Signals> {
    signal::restore_default(&signal::NEVER_IGNORED);
    Signals::catch(&[&signal::ENDING[..], &[signal::CHLD], more].concat())
        .map_err(|error| Error::io("catching signals", error))
}

/// Forks the command and stops it before its exec.
///
/// # Errors
/// Fails if the process cannot be forked.
pub fn hold(command: &[OsString]) -> Result<PausedChild> {
    start(command, &[], Streams::Shared)
}

/// Like [`hold`], but for a measurement's command, if there is one.
///
/// # Errors
/// Fails in the same cases as [`hold`].
pub fn hold_for(run_schedule: &RunSchedule, streams: Streams) -> Result<Option<PausedChild>> {
    let RunSchedule { command, environment, .. } = run_schedule;
    (!command.is_empty()).then(|| start(command, environment, streams)).transpose()
}

fn start(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    streams: Streams,
) -> Result<PausedChild> {
    PausedChild::start_with(command, environment, streams).map_err(|error| {
        let agains = error.raw_os_error() == Some(errno::EAGAIN);
        let error = Error::io(format!("starting `{}`", name(command)), error);
        if agains { error.why("the process limit is reached (ulimit -u)") } else { error }
    })
}

/// Lets the command run.
///
/// # Errors
/// Errors have the exit status of a shell: 127 if the command does not exist, 126 if it cannot be
/// executed.
pub fn release(held: PausedChild, command: &[OsString]) -> Result<RunningCommand> {
    held.release().map_err(|error| {
        let name = name(command);
        let missing = matches!(error.raw_os_error(), Some(errno::ENOENT));
        let denied = error.kind() == io::ErrorKind::PermissionDenied;
        let format = error.raw_os_error() == Some(errno::ENOEXEC);
        let error = Error::io(format!("running `{name}`"), error);
        match (missing, denied, format) {
            (true, ..) if name.contains(' ') && command.len() == 1 => {
                error.exit(Exit::NotFound).try_this(format!("sh -c '{name}'"))
            }
            (true, ..) if name.contains('/') => {
                error.exit(Exit::NotFound).why("the file does not exist, or its interpreter is missing")
            }
            (true, ..) => {
                error.exit(Exit::NotFound).why("no directory in PATH contains a command with this name")
            }
            (_, true, _) => error
                .exit(Exit::NotExecutable)
                .why("the file is not executable by this user, or is a directory")
                .try_this(format!("chmod +x {}", shell_word(Path::new(&name)))),
            (_, _, true) => error
                .exit(Exit::NotExecutable)
                .why("the file is neither a program for this machine nor a script with a #! line"),
            _ => error.exit(Exit::NotExecutable),
        }
    })
}

/// Returns pmc's exit status for a command that ended in this way.
pub fn exit_of(ended: Ended) -> Exit {
    match ended {
        Ended::Exited(status) => Exit::Command(status),
        Ended::Killed(signal) => Exit::Signal(signal),
    }
}

/// Returns the name that the command's first thread will have: the file name of the program.
pub(crate) fn comm(command: &[OsString]) -> String {
    let file = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    file.to_string_lossy().into_owned()
}

/// Returns the command's name as typed.
pub fn name(command: &[OsString]) -> String {
    command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the error that explains why there is nothing to measure.
pub fn no_target(error: TargetError) -> Error {
    let text = error.to_string();
    match error {
        TargetError::NoProcess(_) | TargetError::NoThread(_) => Error::new(text)
            .why("the process has ended, or belongs to another PID namespace")
            .try_this("ps -e, or pgrep NAME"),
        TargetError::IdleUser(_) => Error::new(text),
        TargetError::NoUser(_) => Error::new(text).try_this("getent passwd"),
        TargetError::UnknownCpus => Error::new(text).try_this("mount -t sysfs sysfs /sys"),
        // Scripts for perf 7.2 look for the second sentence.
        TargetError::NoCpu { .. } => Error::new(format!("{text}. No supported events found."))
            .try_options("specify online CPUs with -C, or measure all with -a"),
        TargetError::NoHierarchy => Error::new(text)
            .try_this("mount -t cgroup2 none /sys/fs/cgroup, or a v1 hierarchy with -o perf_event"),
        TargetError::Cgroup { source, path, .. } => {
            let missing = source.kind() == io::ErrorKind::NotFound;
            let error = Error::io(text, source);
            match (missing, path.parent()) {
                (true, Some(parent)) => error
                    .why("use paths below the mount point of the hierarchy")
                    .try_this(format!("ls {}", shell_word(parent))),
                _ => error.why("the cgroup directory must be readable"),
            }
        }
    }
}
