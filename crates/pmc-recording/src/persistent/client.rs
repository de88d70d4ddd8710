//! Sends requests to a holder: finds its socket, starts a holder if none is running, and checks its identity.
//!
//! Receives a run directory and a request; returns the answer, or a refusal as an [`Error`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::directory::{RunDirectory, is_called};
use super::message::{HolderAnswer, HolderRequest, LONGEST_ANSWER, LONGEST_REQUEST, receive, send};
use super::{LostEntry, PersistentEntry};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::persistent::RUN_DIRECTORY;
use pmc_sys::sys::{output_file, signal, wait as waiting};

/// Maximum time to wait for an answer. It is long because opening tracepoints on every CPU of a large machine
/// takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time to wait for a new holder to start listening.
const START: Duration = Duration::from_secs(10);

/// Returns the run directories to search: this user's, then root's.
pub fn directories(host: &Host) -> Vec<RunDirectory> {
    host.run_directories().into_iter().map(RunDirectory::at).collect()
}

/// Finds a published entry by name or id. Also returns its run directory.
///
/// # Errors
/// Fails if there is no such entry, or if the run directories cannot be read. The error lists the existing
/// and the lost entries.
pub fn find(word: &str, host: &Host) -> Result<(RunDirectory, PersistentEntry)> {
    let mut names = Vec::new();
    for at in directories(host) {
        for entry in at.entries()? {
            if is_called(&entry, word) {
                return Ok((at, entry));
            }
            names.push(entry.definition.name);
        }
    }
    let error = Error::new(format!("no persistent event `{word}`"));
    let error = match (find_lost(word, host)?, names.is_empty()) {
        (Some((_, lost)), _) => error.why(format!("it was lost: {}", lost.why)),
        (None, true) => error.why("no events are held"),
        (None, false) => error.why(format!("the held events are: {}", names.join(", "))),
    };
    Err(error.try_this(format!("pmc persist add {word} -e EVENT")))
}

/// Finds a lost entry by name or id. Also returns its run directory.
///
/// # Errors
/// Fails if the run directories cannot be read.
pub fn find_lost(word: &str, host: &Host) -> Result<Option<(RunDirectory, LostEntry)>> {
    for at in directories(host) {
        if let Some(lost) = at.lost()?.into_iter().find(|lost| is_called(&lost.entry, word)) {
            return Ok(Some((at, lost)));
        }
    }
    Ok(None)
}

/// Sends a request to the running holder.
///
/// # Errors
/// Fails if there is no holder, if it refuses, or if the connection fails.
pub fn ask(directory: &RunDirectory, request: &HolderRequest) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
    ask_for(directory, request, PATIENCE)
}

/// Sends a request to the running holder, and waits for the answer for at most `patience`.
///
/// # Errors
/// Fails in the same cases as [`ask`].
pub(crate) fn ask_for(
    directory: &RunDirectory,
    request: &HolderRequest,
    patience: Duration,
) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
    match exchange(directory, request, &[], patience) {
        Ok(Some(answer)) => refused(answer),
        Ok(None) => Err(gone(directory)),
        Err(error) => Err(not_asked(directory, error)),
    }
}

/// A request in flight. The sender may do other work until the answer arrives.
pub(crate) struct PendingRequest {
    directory: RunDirectory,
    socket: OwnedFd,
}

impl PendingRequest {
    /// Sends the request.
    ///
    /// # Errors
    /// Fails in the same cases as [`ask`].
    pub(crate) fn send(directory: &RunDirectory, request: &HolderRequest) -> Result<Self> {
        let sent = send_request(directory, request, &[], Instant::now() + PATIENCE);
        let socket = sent.map_err(|error| not_asked(directory, error))?;
        Ok(Self { directory: directory.clone(), socket })
    }

    /// Returns the answer if it arrives within `patience` and before a signal that ends pmc. Returns the
    /// answer only once.
    ///
    /// # Errors
    /// Fails in the same cases as [`ask`].
    pub(crate) fn answer(&self, patience: Duration) -> Result<Option<(HolderAnswer, Vec<OwnedFd>)>> {
        match receive_answer(&self.socket, Instant::now() + patience) {
            Ok(Some(answer)) => refused(answer).map(Some),
            Ok(None) => Err(gone(&self.directory)),
            Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(not_asked(&self.directory, error)),
        }
    }
}

fn not_asked(directory: &RunDirectory, error: io::Error) -> Error {
    if is_absent(&error) {
        return Error::new("no holder of persistent events is running")
            .why(format!("no process listens on {}", directory.socket().display()))
            .try_this("pmc persist add NAME -e EVENT starts one");
    }
    asking(directory, error)
}

/// Sends a request to the holder, starting a holder if none is running. Also starts a new holder if the old
/// one is ending because its last entry was removed.
///
/// # Errors
/// Fails in the same cases as [`ask`], and if no holder can be started.
pub fn ask_or_start(
    directory: &RunDirectory,
    request: &HolderRequest,
) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
    hand_over(directory, request, &[])
}

/// Like [`ask_or_start`], but also sends descriptors, though only to a holder that belongs to root or to this
/// user.
///
/// # Errors
/// Fails in the same cases as [`ask_or_start`].
pub(crate) fn hand_over(
    directory: &RunDirectory,
    request: &HolderRequest,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
    let begun = Instant::now();
    let mut started: Option<Child> = None;
    loop {
        let is_absent = match exchange(directory, request, descriptors, PATIENCE) {
            Ok(Some(answer)) => return refused(answer),
            Ok(None) => false,
            Err(error) if is_absent(&error) => true,
            Err(error) => return Err(asking(directory, error)),
        };
        if begun.elapsed() > START {
            let said = std::fs::read_to_string(directory.log()).unwrap_or_default();
            let error = Error::new("the holder of persistent events did not start");
            return Err(if said.is_empty() { error } else { error.detail(said) });
        }
        let is_running = started.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        // A holder that closes the connection without an answer is ending, or could not send it.
        if is_absent && !is_running {
            started = Some(start(directory)?);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Starts a holder that ends when it has no more entries.
fn start(directory: &RunDirectory) -> Result<Child> {
    directory.make()?;
    let log = directory.log();
    let log = output_file::create(&log, 0o644, false)
        .map_err(|error| Error::io(format!("creating {}", log.display()), error))?;
    let program = std::env::current_exe().map_err(|error| Error::io("finding pmc itself", error))?;
    let mut command = Command::new(program);
    command.args(["persist", "hold", "--until-empty"]).env(RUN_DIRECTORY, directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|error| Error::io("starting the holder of persistent events", error))
}

fn exchange(
    directory: &RunDirectory,
    request: &HolderRequest,
    descriptors: &[BorrowedFd<'_>],
    patience: Duration,
) -> io::Result<Option<(HolderAnswer, Vec<OwnedFd>)>> {
    let until = Instant::now() + patience;
    receive_answer(&send_request(directory, request, descriptors, until)?, until)
}

fn send_request(
    directory: &RunDirectory,
    request: &HolderRequest,
    descriptors: &[BorrowedFd<'_>],
    until: Instant,
) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let address = SocketAddrUnix::new(directory.socket())?;
    // If a holder does not accept connections, its backlog fills up, and there is no descriptor that could be
    // polled.
    while let Err(error) = connect(&socket, &address) {
        if error != rustix::io::Errno::AGAIN {
            return Err(error.into());
        }
        let soon = Instant::now() + Duration::from_millis(10);
        match wait(None, soon) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && soon < until => {}
            waited => return waited.and(Err(io::ErrorKind::TimedOut.into())).map(|()| socket),
        }
    }
    // Do not trust a listener that belongs to another user, since it could send any answer. Only root may
    // connect to it, because root has specified the directory, but without sending descriptors.
    let (holder, own) = (socket_peercred(&socket)?.uid, rustix::process::geteuid());
    let may_be_others = own.is_root() && descriptors.is_empty();
    if !holder.is_root() && !may_be_others && holder != own {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "another user's process is listening on this socket",
        ));
    }
    match send(&socket, request, LONGEST_REQUEST, descriptors) {
        // The holder may have sent an answer and closed the connection before it received the request.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(socket),
        sent => sent.map(|()| socket),
    }
}

fn receive_answer(socket: &OwnedFd, until: Instant) -> io::Result<Option<(HolderAnswer, Vec<OwnedFd>)>> {
    wait(Some(socket), until)?;
    match receive(socket, LONGEST_ANSWER, true) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        answer => answer,
    }
}

/// Waits until the socket is readable. Since a stopped holder never answers, a signal that pmc catches ends
/// the wait too, and stays pending for the loop that handles it.
///
/// # Errors
/// Returns `TimedOut`, or `Interrupted` if such a signal ends the wait.
fn wait(socket: Option<&OwnedFd>, until: Instant) -> io::Result<()> {
    let signals = signal::pending(&signal::ENDING)?;
    let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
    fds.extend(socket.map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)));
    match waiting::poll(&mut fds, Some(until.saturating_duration_since(Instant::now())))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        // If an answer and a signal have both arrived, the answer takes precedence.
        _ if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) => Ok(()),
        _ => Err(io::ErrorKind::Interrupted.into()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn refused((answer, descriptors): (HolderAnswer, Vec<OwnedFd>)) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
    match answer {
        HolderAnswer::Refused(refused) => Err(refused.into()),
        answer => Ok((answer, descriptors)),
    }
}

fn gone(directory: &RunDirectory) -> Error {
    Error::new(format!("the holder at {} exited before responding", directory.path().display()))
        .why("it has ended, or the kernel refused to send its answer")
        .try_this("pmc persist list shows held and lost entries")
}

fn asking(directory: &RunDirectory, error: io::Error) -> Error {
    let error_kind = error.kind();
    let stopped = "the holder process is stopped or busy; see pmc persist list";
    match error_kind {
        io::ErrorKind::TimedOut => {
            return Error::new(format!("the holder at {} is not responding", directory.path().display()))
                .why(stopped);
        }
        io::ErrorKind::Interrupted => {
            return Error::new(format!(
                "interrupted before the holder at {} responded",
                directory.path().display()
            ))
            .why(stopped);
        }
        _ => {}
    }
    let error = Error::io(format!("asking the holder at {}", directory.socket().display()), error);
    match error_kind {
        io::ErrorKind::PermissionDenied => error.why("it belongs to another user"),
        _ => error,
    }
}

/// Returns the error for an answer that does not match the request.
pub fn misunderstood() -> Error {
    Error::new("unexpected answer from the holder")
        .why("the holder may be running a different version of pmc")
}
