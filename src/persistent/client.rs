//! Asking a holder: finds its socket, starts one where there is none, and checks whom it speaks to.
//!
//! Receives a run directory and a request; hands on the answer, a refusal as the [`Error`] that it is.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Entry;
use super::directory::RunDirectory;
use super::message::{Answer, LONGEST_ANSWER, LONGEST_REQUEST, Request, receive, send};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::persistent::RUN_DIRECTORY;

/// How long an answer may take: opening tracepoints on every CPU of a large machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a new holder may take to listen.
const START: Duration = Duration::from_secs(10);

/// Where entries may be: this user's run directory, then root's.
pub fn directories(host: &Host) -> Vec<RunDirectory> {
    host.run_directories().into_iter().map(RunDirectory::at).collect()
}

/// An entry that is published, by name or number, and where.
///
/// # Errors
/// There is none: what there is, and what was lost.
pub fn find(word: &str, host: &Host) -> Result<(RunDirectory, Entry)> {
    let all = directories(host);
    if let Some(found) = all.iter().find_map(|at| Some((at.clone(), at.entry(word)?))) {
        return Ok(found);
    }
    let names: Vec<String> =
        all.iter().flat_map(RunDirectory::entries).map(|entry| entry.definition.name).collect();
    let lost = all.iter().flat_map(RunDirectory::lost).find(|lost| lost.entry.definition.name == word);
    let error = Error::new(format!("no persistent event `{word}` is held"));
    let error = match (lost, names.is_empty()) {
        (Some(lost), _) => error.why(format!("it was, and was lost: {}", lost.why)),
        (None, true) => error.why("nothing is"),
        (None, false) => error.why(format!("these are: {}", names.join(", "))),
    };
    Err(error.try_this(format!("pmc persist add {word} -e EVENT")))
}

/// Asks the holder that runs.
///
/// # Errors
/// No holder; its refusal; what the kernel says.
pub fn ask(directory: &RunDirectory, request: &Request) -> Result<(Answer, Vec<OwnedFd>)> {
    match exchange(directory, request, &[]) {
        Ok(Some(answer)) => refused(answer),
        Ok(None) => Err(gone(directory)),
        Err(error) if is_absent(&error) => Err(Error::new("no holder of persistent events runs")
            .why(format!("nobody listens at {}", directory.socket().display()))
            .try_this("pmc persist add NAME -e EVENT starts one")),
        Err(error) => Err(asking(directory, error)),
    }
}

/// Asks the holder, and starts it if none runs. One that ends just then, as its last entry has been removed,
/// is replaced.
///
/// # Errors
/// As [`ask`]; why none could be started.
pub fn ask_or_start(directory: &RunDirectory, request: &Request) -> Result<(Answer, Vec<OwnedFd>)> {
    hand_over(directory, request, &[])
}

/// The same, with descriptors beside the request. They go to nobody but root and this user.
///
/// # Errors
/// As [`ask_or_start`].
pub fn hand_over(
    directory: &RunDirectory,
    request: &Request,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(Answer, Vec<OwnedFd>)> {
    let begun = Instant::now();
    let mut started: Option<Child> = None;
    loop {
        match exchange(directory, request, descriptors) {
            Ok(Some(answer)) => return refused(answer),
            Ok(None) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(asking(directory, error)),
        }
        if begun.elapsed() > START {
            let said = std::fs::read_to_string(directory.log()).unwrap_or_default();
            let error = Error::new("the holder of persistent events does not start");
            return Err(if said.is_empty() { error } else { error.detail(said) });
        }
        let is_running = started.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !is_running {
            started = Some(start(directory)?);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Starts a holder that ends when nothing is held.
fn start(directory: &RunDirectory) -> Result<Child> {
    directory.make()?;
    let log = directory.log();
    let log = File::create(&log).map_err(|error| Error::io(format!("creating {}", log.display()), error))?;
    let program = std::env::current_exe().map_err(|error| Error::io("finding pmc itself", error))?;
    let mut command = Command::new(program);
    command.args(["persist", "hold", "--until-empty"]).env(RUN_DIRECTORY, directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|error| Error::io("starting the holder of persistent events", error))
}

fn exchange(
    directory: &RunDirectory,
    request: &Request,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<Option<(Answer, Vec<OwnedFd>)>> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for direction in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, direction, Some(PATIENCE))?;
    }
    connect(&socket, &SocketAddrUnix::new(directory.socket())?)?;
    // Whoever else listens there could tell us anything; root has named the directory himself.
    let (holder, own) = (socket_peercred(&socket)?.uid, rustix::process::geteuid());
    let may_be_others = own.is_root() && descriptors.is_empty();
    if !holder.is_root() && !may_be_others && holder != own {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there"));
    }
    match send(&socket, request, LONGEST_REQUEST, descriptors) {
        Ok(()) => {}
        // It may have answered before it was asked.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error),
    }
    match receive(&socket, LONGEST_ANSWER) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        answer => answer,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn refused((answer, descriptors): (Answer, Vec<OwnedFd>)) -> Result<(Answer, Vec<OwnedFd>)> {
    match answer {
        Answer::Refused(refused) => Err(refused.into()),
        answer => Ok((answer, descriptors)),
    }
}

fn gone(directory: &RunDirectory) -> Error {
    Error::new(format!("the holder at {} ended before it answered", directory.path().display()))
        .try_this("pmc persist list shows what is held, and what was lost")
}

fn asking(directory: &RunDirectory, error: io::Error) -> Error {
    let error_kind = error.kind();
    let error = Error::io(format!("asking the holder at {}", directory.socket().display()), error);
    match error_kind {
        io::ErrorKind::WouldBlock => error.why("it has not answered for a minute"),
        io::ErrorKind::PermissionDenied => error.why("it is another user's"),
        _ => error,
    }
}

/// The holder has answered in a way that is no answer to the question.
pub fn misunderstood() -> Error {
    Error::new("the holder answered something else than was asked").why("it is another version of pmc's")
}
