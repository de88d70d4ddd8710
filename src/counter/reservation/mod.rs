//! The reservation of the hardware counters: the protocol of PCP's `perfalloc` and `pmdaperfevent`.
//!
//! Receives a [`Policy`] and a [`LockFile`]; hands on a [`Reservation`] (held until dropped), a [`Watcher`]
//! (for those who give way), or a [`Status`] (for those who only ask), and [`Warning`]s for the user. Decides
//! what each policy does; leaves saying it, and switching events off and on, to the caller.
//!
//! The protocol is one byte of one file. Reservers hold a shared lock on it; the agent asks ten times a
//! second whether anybody does, and switches its counters off meanwhile. Nobody answers, so a reserver waits
//! out one round:
//!
//! ```text
//! pmc    lock ├────── wait 200 ms ──────┤ open counters … close │ unlock
//! agent  ask ──── ask ──── ask ──── ask                     ask ──── ask
//!        free     held: DISABLE                                      free: ENABLE
//! ```

mod lock_file;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use self::lock_file::names;
pub use self::lock_file::{Error, Holder, LockFile, Reservation};

use crate::error::{Error as UserError, Warning};
use crate::host::{Host, pcp_agent};
use crate::sys::lock::{Kind, Owner};

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
            UserError::usage(format!("--reserve: `{word}`: expected auto, check, require, yield or off"))
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(policy, _)| policy == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// What [`prepare`] did.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The reservation, to be kept as long as counters are open.
    pub reservation: Option<Reservation>,
    /// (`yield`) What to poll every [`ROUND`] while counting.
    pub watcher: Option<Watcher>,
    /// Who else has reserved.
    pub others: Vec<Holder>,
    /// Agents that have been given time to switch their counters off, by pid.
    pub agents: Vec<u32>,
    /// What to tell the user.
    pub findings: Vec<Warning>,
}

/// Does what the policy asks for; to be called before the first hardware event is opened, since it returns
/// only when the agent has had time to switch its counters off.
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
    Prepared { findings: vec![Warning::Unreserved { why: error.to_string() }], ..Prepared::default() }
}

fn check(path: &Path) -> Prepared {
    match LockFile::open(path).and_then(|file| file.others()) {
        Ok(holders) if holders.is_empty() => Prepared::default(),
        Ok(holders) => Prepared {
            findings: vec![Warning::CountersReserved { holders: names(&holders) }],
            ..Prepared::default()
        },
        Err(Error::Missing(_)) => Prepared::default(),
        Err(other) => unreserved(&other),
    }
}

/// Reserves, also when others have: their reservation may end before we do, and the agent would be back amid
/// our run. Without an agent the lock costs nothing, and one that starts later heeds it: only the wait is
/// saved.
///
/// # Errors
/// [`Error::Refused`] and [`Error::NoLocks`].
pub fn acquire(file: &LockFile) -> Result<Prepared, Error> {
    let others = file.others()?;
    let reservation = file.reserve()?;
    let mut findings = Vec::new();
    if !others.is_empty() {
        findings.push(Warning::CountersShared { holders: names(&others) });
    }
    let agents = settle(file);
    if !agents.is_empty() {
        let pids: Vec<String> = agents.iter().map(u32::to_string).collect();
        findings.push(Warning::AgentsPaused { pids: pids.join(", ") });
    }
    Ok(Prepared { reservation: Some(reservation), watcher: None, others, agents, findings })
}

/// Gives the agents that heed the file time to switch their counters off; their pids. Returns at once where
/// there is none.
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

/// Watches the lock file as the agent does: for those who give way. A reservation of this process never
/// counts.
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

    /// Looks, and says what is the case now. One system call; a holder's name is looked up only when it
    /// changes. What cannot be tested leaves the state as it was, as it does in the agent.
    pub fn poll(&mut self) -> &State {
        if self.file.is_none() {
            self.file = LockFile::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return &self.state };
        match file.in_the_way(Kind::Write) {
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
    pub agents: Vec<pcp_agent::Agent>,
}

/// How things stand; takes nothing.
pub fn status(path: &Path) -> Status {
    let file = LockFile::open(path);
    let agents = pcp_agent::agents(&Host::live(), path, file.as_ref().ok().map(|file| file.id()));
    let exists = !matches!(file, Err(Error::Missing(_)));
    let holders = match file.and_then(|file| file.others()) {
        Err(Error::Missing(_)) => Ok(Vec::new()),
        other => other,
    };
    Status { path: path.to_owned(), exists, holders, agents }
}
