//! `pmc reserve`: reserves the counters while a command runs, or until a signal arrives.
//!
//! ```text
//! signals ─► (-d: fork) ─► lock ─► agent's time ─┬─► COMMAND ─► its status
//!                                                └─► (-d: notify starter)   ─► INT, HUP, TERM ─► 0
//! ```
//! The command is a child process, and pmc keeps running. Other processes therefore see pmc's pid as the
//! lock's owner, and the lock is released when the command exits, even if the command leaves a daemon behind.
//! If pmc replaced itself with the command, it would need an open-file-description lock, which does not show
//! a pid, and which a leftover daemon would keep.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use pmc_events::counter::reservation::{LockFile, PreparedReservation, acquire};
use pmc_recording::recording::launch;
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::background::{self, BackgroundSide};
use pmc_sys::sys::signal::{self, Signals};
use pmc_text::text::{as_json, shell_word};

/// How to reserve the counters.
#[derive(Debug, Clone, Default)]
pub struct ReserveRequest {
    /// The lock file; `None` is that of PCP.
    pub file: Option<PathBuf>,
    /// Whether to create the file if it is missing.
    pub create: bool,
    /// Whether to go to the background once the lock is held.
    pub background: bool,
    /// Whether to print a JSON object once the lock is held.
    pub json: bool,
    /// Command to run meanwhile; if empty, the counters stay reserved until a signal arrives.
    pub command: Vec<OsString>,
}

/// Runs the command.
pub fn run(request: ReserveRequest) -> Result<Exit> {
    let is_chosen = request.file.is_some();
    let path = request.file.unwrap_or_else(|| LockFile::default_path(&Host::live()));
    if request.create {
        create(&path, is_chosen)?;
    }
    if !request.command.is_empty() {
        if request.background {
            say::warn(Warning::new("-d has no effect with a command: it runs in the foreground"));
        }
        let signals = launch::signals(&[signal::QUIT, signal::USR1, signal::USR2])?;
        let _prepared = reserve(&path, request.json)?;
        return reserve_while(&request.command, &signals);
    }
    signal::restore_default(&signal::NEVER_IGNORED);
    let catching = |error| Error::io("catching signals", error);
    let signals = Signals::catch(&signal::ENDING).map_err(catching)?;
    let starter = match request.background {
        false => None,
        true => match leave()? {
            ForkSide::Starter(exit) => return Ok(exit),
            ForkSide::Background(starter) => Some(starter),
        },
    };
    let _prepared = reserve(&path, request.json)?;
    match starter {
        None if request.json => {}
        None => say::note("the hardware counters are reserved; Ctrl-C releases them"),
        Some(mut starter) => {
            let failed = |error| Error::io("moving to the background", error);
            background::leave_session().map_err(failed)?;
            background::close_standard_streams().map_err(failed)?;
            // The write fails only if the starter has died, which is harmless.
            let _ = starter.write_all(b"!");
        }
    }
    signals.wait().map_err(|error| Error::io("waiting for a signal", error))?;
    Ok(Exit::Done)
}

/// Version of the JSON format; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Acquires the reservation and reports it, as text or JSON. The reservation lasts until the returned value
/// is dropped.
fn reserve(path: &Path, json: bool) -> Result<PreparedReservation> {
    let prepared = LockFile::open(path).and_then(|file| acquire(&file));
    let mut prepared =
        prepared.map_err(|error| error.explain("omit pmc reserve to count without a reservation"))?;
    if json {
        let others: Vec<_> = prepared.others.iter().map(ToString::to_string).collect();
        let object = json!({
            "version": VERSION, "lock_file": path.display().to_string(), "pid": std::process::id(),
            "shared_with": others, "agents": prepared.agents,
        });
        writeln!(io::stdout(), "{}", as_json(&object))
            .map_err(|error| Error::output("the reservation", error))?;
    } else {
        prepared.warnings.drain(..).for_each(say::warn);
    }
    Ok(prepared)
}

/// Runs the command until it exits.
fn reserve_while(command: &[OsString], signals: &Signals) -> Result<Exit> {
    // If pmc received a terminating signal while it waited for the agent, it does not start the command.
    while let Some(caught) = signals.next() {
        if signal::ENDING.contains(&caught.signal) {
            return Ok(Exit::Interrupted(caught.signal));
        }
    }
    let running = launch::release(launch::hold(command)?, command)?;
    let failed = |error| Error::io(format!("waiting for `{}`", launch::name(command)), error);
    loop {
        if let Some(outcome) = running.try_wait().map_err(failed)? {
            return Ok(launch::exit_of(outcome.ended));
        }
        let caught = signals.wait().map_err(failed)?;
        // The terminal sends keyboard signals to the command as well, so do not forward them.
        if caught.signal != signal::CHLD && !caught.from_terminal {
            running.kill(caught.signal);
        }
    }
}

/// The side of the fork on which this process runs.
enum ForkSide {
    /// The process that the user started, with its exit status.
    Starter(Exit),
    /// The background process, which writes a byte to the pipe to report success to the starter.
    Background(PipeWriter),
}

/// Forks before the lock is taken, since a child does not inherit a POSIX lock. The starter waits for the
/// outcome.
fn leave() -> Result<ForkSide> {
    let failed = |error| Error::io("moving to the background", error);
    let (mut outcome, report) = io::pipe().map_err(failed)?;
    match background::fork().map_err(failed)? {
        BackgroundSide::Child => Ok(ForkSide::Background(report)),
        BackgroundSide::Parent => {
            drop(report);
            // End of file without a byte means that the child has failed and has printed the reason.
            let mut byte = [0];
            let reserved = outcome.read(&mut byte).map_err(failed)? == 1;
            Ok(ForkSide::Starter(if reserved { Exit::Done } else { Exit::Failure }))
        }
    }
}

/// Creates an empty, world-readable lock file, unless it exists. In PCP's folder, also creates the agent's
/// folder `perfevent`. Does not create any folder above it, since the path may be mistyped.
fn create(path: &Path, is_chosen: bool) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error: io::Error| {
        let kind = error.kind();
        let error = Error::io(format!("cannot create the lock file {}", path.display()), error);
        let missing = if is_chosen { folder } else { folder.parent().unwrap_or(folder) };
        match kind {
            io::ErrorKind::NotFound if is_chosen => error
                .why(format!("the directory {} does not exist", missing.display()))
                .try_this("check the -f path, or create the directory"),
            io::ErrorKind::NotFound => error
                .why(format!("{} does not exist: PCP is not installed, or stores its files elsewhere", missing.display()))
                .try_this("check PCP_PMDAS_DIR and /etc/pcp.conf")
                .try_this(format!("mkdir -p {}, if an agent will use it later", shell_word(missing))),
            kind => error
                .why(match kind {
                    io::ErrorKind::ReadOnlyFilesystem => "its file system is mounted read-only",
                    _ => "its directory belongs to root, as installed by PCP",
                })
                .try_this("run it once as root, or use another file with -f (also set PCP_PMDAS_DIR for PCP's agent)"),
        }
    };
    if !is_chosen && !folder.exists() {
        std::fs::create_dir(folder).map_err(failed)?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}
