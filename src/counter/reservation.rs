//! The reservation of the hardware counters: the protocol of PCP's `perfalloc` and `pmdaperfevent`.
//!
//! Receives a [`Policy`] and a [`LockFile`]; hands on a [`Reservation`] (held until dropped), a [`Watcher`] (for those who
//! give way), or a [`Status`] (for those who only ask), and [`Finding`]s for the user. Decides what each policy does; leaves
//! saying it, and switching events off and on, to the caller.
//!
//! The protocol is one byte of one file. Reservers hold a shared lock on it; the agent asks ten times a second whether
//! anybody does, and switches its counters off meanwhile. Nobody answers, so a reserver waits out one round:
//!
//! ```text
//! pmc    lock ├────── wait 200 ms ──────┤ open counters … close │ unlock
//! agent  ask ──── ask ──── ask ──── ask                     ask ──── ask
//!        free     held: DISABLE                                      free: ENABLE
//! ```
//!
//! # Which kind of lock
//! A POSIX lock, as `perfalloc` takes it: whoever asks is told our pid, where an open-file-description lock would show
//! as -1. Its two traps are dealt with here. It is lost as soon as *any* descriptor of the file is closed in this process: so
//! there is one descriptor a file and process, whatever is made from it ([`OPEN`]). It is not inherited by children: which is
//! what we want, because a daemon that the profiled command leaves behind must not hold the reservation for ever.
//! And it has a virtue: the process's own POSIX lock never answers the process's own question.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::error::Error as UserError;
use crate::host::{Host, pcp};
use crate::sys::lock::{self, Kind, Owner};
use crate::text::clean;

/// How often the agent looks, and how often a [`Watcher`] should be polled.
pub const ROUND: Duration = Duration::from_millis(100);

/// How long a new reserver waits for the agent: two of its rounds, so that a late one is still in time.
pub const SETTLE: Duration = Duration::from_millis(200);

/// What to do about other people's use of the hardware counters (`--reserve`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Reserve where that is possible; carry on where it is not.
    #[default]
    Auto,
    /// Take nothing; say who has reserved.
    Check,
    /// Reserve, or fail before the command starts.
    Require,
    /// Do not count while somebody else has reserved.
    Yield,
    /// Do not look.
    Off,
}

impl Policy {
    /// Every policy with the word that chooses it.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Auto, "auto"),
        (Self::Check, "check"),
        (Self::Require, "require"),
        (Self::Yield, "yield"),
        (Self::Off, "off"),
    ];
}

impl FromStr for Policy {
    type Err = UserError;

    fn from_str(word: &str) -> Result<Self, UserError> {
        Self::ALL.iter().find(|(_, name)| *name == word).map(|(policy, _)| *policy).ok_or_else(|| {
            UserError::usage(format!("--reserve: `{word}` is none of auto, check, require, yield, off"))
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(policy, _)| policy == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// A process that has reserved the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A process and its name (as the kernel has it, not cleaned), if it could still be read.
    Process {
        /// Its process id.
        pid: u32,
        /// `/proc/PID/comm`.
        comm: Option<String>,
    },
    /// Nobody can be named: an open-file-description lock of processes that we may not look at, or a process of
    /// another pid namespace.
    Unknown,
}

impl Holder {
    fn process(host: &Host, pid: u32) -> Self {
        Self::Process { pid, comm: Some(host.comm(pid)).filter(|comm| !comm.is_empty()) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, comm: Some(comm) } => write!(f, "{} (pid {pid})", clean(comm)),
            Self::Process { pid, comm: None } => write!(f, "pid {pid}"),
            Self::Unknown => f.write_str("a process that the kernel does not name"),
        }
    }
}

/// Several holders in one line: `a (pid 1), b (pid 2) and 3 more`.
fn names(holders: &[Holder]) -> String {
    const MOST: usize = 4;
    let shown: Vec<String> = holders.iter().take(MOST).map(Holder::to_string).collect();
    match holders.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Why a reservation could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lock file does not exist: PCP's agent has never run here.
    #[error("there is no lock file {}", .0.display())]
    Missing(PathBuf),
    /// The lock file cannot be opened or examined.
    #[error("opening the lock file {}: {source}", path.display())]
    Unusable {
        /// The lock file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody holds the byte with a write lock.
    #[error("the reservation was refused: {} holds {} alone", names(holders), path.display())]
    Refused {
        /// The lock file.
        path: PathBuf,
        /// Who stands in the way.
        holders: Vec<Holder>,
    },
}

impl From<Error> for UserError {
    fn from(error: Error) -> Self {
        match error {
            Error::Missing(path) => {
                UserError::new(format!("reserving the hardware counters: {} does not exist", path.display()))
                    .why("PCP's agent pmdaperfevent creates it when it first starts; it never ran here, so nobody would heed the reservation")
                    .try_this("count without it: leave --reserve=require away")
                    .try_this("as root, create the file for an agent that comes later: pmc reserve --create")
            }
            Error::Unusable { path, source } => {
                let denied = source.kind() == io::ErrorKind::PermissionDenied;
                let error = UserError::io(format!("opening the lock file {}", path.display()), source);
                if denied {
                    error
                        .why("a reserver must be able to read it; PCP's agent creates it readable for all")
                        .try_this(format!("as root: chmod a+r '{}', and a+x on its directories", path.display()))
                } else {
                    error
                }
            }
            Error::Refused { path, holders } => {
                UserError::new(format!("reserving the hardware counters: {} has them alone", names(&holders)))
                    .why(format!("it holds a write lock on the first byte of {}; reservations share, a write lock does not", path.display()))
                    .try_this("wait until that process has ended, or end it")
            }
        }
    }
}

/// One descriptor for each lock file in this process, however many users it has: closing a second one would drop the lock.
static OPEN: Mutex<Vec<(pcp::FileId, Weak<Opened>)>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Opened {
    file: File,
    id: pcp::FileId,
    /// How many [`Reservation`]s of this process share the lock.
    reservations: Mutex<usize>,
}

/// The lock file, open for reading and closed when a command is executed.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
    opened: Arc<Opened>,
}

impl LockFile {
    /// Where PCP's programs look for it in this environment.
    pub fn default_path(host: &Host) -> PathBuf {
        pcp::lock_path(host, |name| std::env::var_os(name))
    }

    /// Opens a lock file.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::Unusable`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing(path.to_owned()),
            _ => Error::Unusable { path: path.to_owned(), source },
        };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, opened)| opened.strong_count() > 0);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            // Opening a FIFO would hang, a device may do anything.
            return Err(failed(io::Error::other("this is not a regular file")));
        }
        let known = pcp::FileId::from(&metadata);
        let shared = open.iter().find(|(id, _)| *id == known).and_then(|(_, opened)| opened.upgrade());
        let opened = match shared {
            Some(opened) => opened,
            None => {
                let file = File::open(path).map_err(failed)?;
                let id = pcp::FileId::from(&file.metadata().map_err(failed)?);
                let opened = Arc::new(Opened { file, id, reservations: Mutex::new(0) });
                open.push((id, Arc::downgrade(&opened)));
                opened
            }
        };
        Ok(Self { path: path.to_owned(), opened })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who else has reserved: everybody who can be found, at least one entry when anybody has.
    ///
    /// # Errors
    /// [`Error::Unusable`] when the kernel cannot test locks on this file.
    pub fn others(&self) -> Result<Vec<Holder>, Error> {
        match self.in_the_way(Kind::Write)? {
            None => Ok(Vec::new()),
            Some(first) => Ok(self.all_holders(first)),
        }
    }

    /// Takes the shared lock.
    ///
    /// # Errors
    /// [`Error::Refused`] when somebody has a write lock; [`Error::Unusable`] for everything else.
    pub fn reserve(&self) -> Result<Reservation, Error> {
        let mut reservations = self.opened.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        match lock::take(&self.opened.file, Kind::Read) {
            Ok(()) => {
                *reservations += 1;
                Ok(Reservation { opened: Arc::clone(&self.opened) })
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied) =>
            {
                // The holder may have left since; then nobody can be named.
                let holders = match self.in_the_way(Kind::Read)? {
                    Some(Owner::Process(pid)) => vec![Holder::process(&Host::live(), pid)],
                    Some(Owner::Unknown) => self.all_holders(Owner::Unknown),
                    None => vec![Holder::Unknown],
                };
                Err(Error::Refused { path: self.path.clone(), holders })
            }
            Err(source) => Err(self.unusable(source)),
        }
    }

    /// The agents that would heed a reservation: those that have this file open, or whose descriptors we may not see.
    pub fn heeding_agents(&self) -> Vec<pcp::Agent> {
        let mut agents = pcp::agents(&Host::live(), &self.path, Some(self.opened.id));
        agents.retain(|agent| agent.watches != Some(false));
        agents
    }

    fn in_the_way(&self, kind: Kind) -> Result<Option<Owner>, Error> {
        lock::in_the_way(&self.opened.file, kind).map_err(|source| self.unusable(source))
    }

    fn unusable(&self, source: io::Error) -> Error {
        Error::Unusable { path: self.path.clone(), source }
    }

    /// `F_GETLK` names one; `/proc/locks` and `/proc/PID/fdinfo` know the rest.
    fn all_holders(&self, first: Owner) -> Vec<Holder> {
        let host = Host::live();
        let mut pids = Vec::new();
        let mut description = first == Owner::Unknown;
        if let Owner::Process(pid) = first {
            pids.push(pid);
        }
        for lock in pcp::locks(&host, self.opened.id) {
            match lock {
                pcp::Lock::Posix(pid) => pids.push(pid),
                pcp::Lock::Description => description = true,
            }
        }
        if description {
            pids.extend(pcp::description_holders(&host, &self.path, self.opened.id));
        }
        pids.retain(|&pid| pid != std::process::id());
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return vec![Holder::Unknown];
        }
        pids.into_iter().map(|pid| Holder::process(&host, pid)).collect()
    }
}

/// The shared lock, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Reservation {
    opened: Arc<Opened>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reservations = self.opened.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        *reservations -= 1;
        if *reservations == 0 {
            // It cannot fail on an open file, and if it did the descriptor's end would do the same.
            let _ = lock::release(&self.opened.file);
        }
    }
}

/// What was found, each a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Others have reserved too, so they compete with us for the counters.
    Competing(Vec<Holder>),
    /// (`check`) Others have reserved; nothing was taken.
    ReservedBy(Vec<Holder>),
    /// The reservation was taken, and these agents were given their time.
    AgentsPaused(Vec<u32>),
    /// The reservation could not be had, in these words; counting goes on without it.
    Unreserved(String),
}

impl Finding {
    /// Whether the result may be less than what was asked for (a warning), or this is just good to know (a note).
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::AgentsPaused(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Competing(holders) => write!(
                f,
                "the hardware counters are also reserved by {}: both count, so events may have to share the counters",
                names(holders)
            ),
            Self::ReservedBy(holders) => write!(
                f,
                "the hardware counters are reserved by {}; counting all the same (--reserve=yield gives way)",
                names(holders)
            ),
            Self::AgentsPaused(pids) => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "reserved the hardware counters; PCP's agent pmdaperfevent (pid {}) pauses its own meanwhile",
                    pids.join(", ")
                )
            }
            Self::Unreserved(why) => write!(f, "the hardware counters are not reserved: {why}"),
        }
    }
}

/// What [`prepare`] did.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The reservation, to be kept as long as counters are open.
    pub reservation: Option<Reservation>,
    /// (`yield`) What to poll every [`ROUND`] while counting.
    pub watcher: Option<Watcher>,
    /// What to tell the user.
    pub findings: Vec<Finding>,
}

/// Does what the policy asks for; to be called before the first hardware event is opened, since it returns only
/// when the agent has had time to switch its counters off.
///
/// # Errors
/// Under [`Policy::Require`] only: the reservation is missing or refused.
pub fn prepare(policy: Policy, path: &Path) -> Result<Prepared, Error> {
    match policy {
        Policy::Off => Ok(Prepared::default()),
        Policy::Yield => Ok(Prepared { watcher: Some(Watcher::new(path)), ..Prepared::default() }),
        Policy::Check => Ok(check(path)),
        Policy::Require => acquire(&LockFile::open(path)?),
        Policy::Auto => {
            Ok(LockFile::open(path).and_then(|file| acquire(&file)).unwrap_or_else(|error| match error {
                Error::Missing(_) => Prepared::default(),
                other => unreserved(&other),
            }))
        }
    }
}

fn unreserved(error: &Error) -> Prepared {
    Prepared { findings: vec![Finding::Unreserved(error.to_string())], ..Prepared::default() }
}

fn check(path: &Path) -> Prepared {
    match LockFile::open(path).and_then(|file| file.others()) {
        Ok(holders) if holders.is_empty() => Prepared::default(),
        Ok(holders) => Prepared { findings: vec![Finding::ReservedBy(holders)], ..Prepared::default() },
        Err(Error::Missing(_)) => Prepared::default(),
        Err(other) => unreserved(&other),
    }
}

/// Reserves, also when others have: their reservation may end before we do, and the agent would be back amid our run.
/// Without an agent the lock costs nothing, and one that starts later heeds it: only the wait is saved.
///
/// # Errors
/// [`Error::Refused`] and [`Error::Unusable`].
pub fn acquire(file: &LockFile) -> Result<Prepared, Error> {
    let others = file.others()?;
    let reservation = file.reserve()?;
    let mut findings = Vec::new();
    if !others.is_empty() {
        findings.push(Finding::Competing(others));
    }
    let agents = settle(file);
    if !agents.is_empty() {
        findings.push(Finding::AgentsPaused(agents));
    }
    Ok(Prepared { reservation: Some(reservation), watcher: None, findings })
}

/// Gives the agents that heed the file time to switch their counters off; their pids. Returns at once where there is none.
pub fn settle(file: &LockFile) -> Vec<u32> {
    let agents: Vec<u32> = file.heeding_agents().iter().map(|agent| agent.pid).collect();
    if !agents.is_empty() {
        std::thread::sleep(SETTLE);
    }
    agents
}

/// Whether we should count now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nobody else has reserved.
    Free,
    /// Somebody else has.
    Reserved(Holder),
}

/// Watches the lock file as the agent does: for those who give way. A reservation of this process never counts.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    file: Option<LockFile>,
    state: State,
}

impl Watcher {
    /// Watches the file at this path; it need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: LockFile::open(path).ok(), state: State::Free }
    }

    /// Looks, and says what is the case now. One system call; a holder's name is looked up only when it changes. What cannot
    /// be tested leaves the state as it was, as it does in the agent.
    pub fn poll(&mut self) -> &State {
        if self.file.is_none() {
            self.file = LockFile::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return &self.state };
        match lock::in_the_way(&file.opened.file, Kind::Write) {
            Err(_) => {}
            Ok(None) => self.state = State::Free,
            Ok(Some(owner)) => {
                let known = match (&self.state, owner) {
                    (State::Reserved(Holder::Process { pid, .. }), Owner::Process(now)) => *pid == now,
                    (State::Reserved(_), Owner::Unknown) => true,
                    _ => false,
                };
                if !known {
                    let holder = match owner {
                        Owner::Process(pid) => Holder::process(&Host::live(), pid),
                        Owner::Unknown => file.all_holders(owner).swap_remove(0),
                    };
                    self.state = State::Reserved(holder);
                }
            }
        }
        &self.state
    }

    /// What the last [`Watcher::poll`] found.
    pub fn state(&self) -> &State {
        &self.state
    }
}

/// The reservation as `pmc info` shows it.
#[derive(Debug)]
pub struct Status {
    /// Where the lock file is or would be.
    pub path: PathBuf,
    /// Whether it exists.
    pub exists: bool,
    /// Who has reserved; or why that cannot be told.
    pub holders: Result<Vec<Holder>, Error>,
    /// The agents that run.
    pub agents: Vec<pcp::Agent>,
}

/// How things stand; takes nothing.
pub fn status(path: &Path) -> Status {
    let file = LockFile::open(path);
    let agents = pcp::agents(&Host::live(), path, file.as_ref().ok().map(|file| file.opened.id));
    let exists = !matches!(file, Err(Error::Missing(_)));
    let holders = match file.and_then(|file| file.others()) {
        Err(Error::Missing(_)) => Ok(Vec::new()),
        other => other,
    };
    Status { path: path.to_owned(), exists, holders, agents }
}
