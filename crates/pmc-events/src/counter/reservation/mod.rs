//! Reserves the hardware counters, using the protocol of PCP's `perfalloc` and `pmdaperfevent`.
//!
//! Takes a [`Policy`] and a [`LockFile`]. Returns a [`CounterReservation`] (held until dropped), a
//! [`Watcher`] (for yielding to other users), or a [`ReservationStatus`] (for display), with
//! [`Warning`]s. The caller prints the warnings and switches events off and on.
//!
//! The protocol uses one byte of one file. Reservers hold a shared lock on it. The agent tests the lock ten
//! times per second and switches its counters off while the lock is held. The agent does not reply, so a
//! reserver simply waits:
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
pub use self::lock_file::{CounterReservation, LockFile, ReservationError, ReservationHolder};

use crate::hint::Hint;
use pmc_sys::error::{Error as UserError, Warning};
use pmc_sys::host::{Host, pcp_agent};
use pmc_sys::sys::lock::{LockKind, LockOwner};

/// How long a new reserver waits for the agent: two polling rounds, in case the agent is late.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);

/// How to deal with other users of the hardware counters (`--reserve`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Reserve if possible, and continue without a reservation otherwise.
    #[default]
    Auto,
    /// Do not reserve; report the holders.
    Check,
    /// Reserve, or fail before the command starts.
    Require,
    /// Do not count while another process has reserved the counters.
    Yield,
    /// Ignore reservations.
    Off,
}

impl Policy {
    /// Every policy by its name.
    pub const NAMED: [(&str, Self); 5] = [
        ("auto", Self::Auto),
        ("check", Self::Check),
        ("require", Self::Require),
        ("yield", Self::Yield),
        ("off", Self::Off),
    ];
}

impl FromStr for Policy {
    type Err = UserError;

    fn from_str(word: &str) -> Result<Self, UserError> {
        Self::NAMED.iter().find(|(name, _)| *name == word).map(|(_, policy)| *policy).ok_or_else(|| {
            UserError::usage(format!("unknown policy `{word}`: expected auto, check, require, yield or off"))
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMED.iter().find(|(_, policy)| policy == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// Result of [`prepare`].
#[derive(Debug, Default)]
pub struct PreparedReservation {
    /// The reservation, to be held while counters are open.
    pub reservation: Option<CounterReservation>,
    /// The watcher to poll regularly while counting (`yield`).
    pub watcher: Option<Watcher>,
    /// Other processes that have reserved the counters.
    pub others: Vec<ReservationHolder>,
    /// Pids of the agents that were given time to switch their counters off.
    pub agents: Vec<u32>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// Applies the policy. Call it before opening the first hardware event: it returns after the agent has had
/// time to switch its counters off.
///
/// # Errors
/// With [`Policy::Require`], fails if the reservation is missing or refused.
pub fn prepare(policy: Policy, path: &Path) -> Result<PreparedReservation, ReservationError> {
    match policy {
        Policy::Off => Ok(PreparedReservation::default()),
        Policy::Yield => {
            Ok(PreparedReservation { watcher: Some(Watcher::new(path)), ..PreparedReservation::default() })
        }
        Policy::Check => Ok(check(path)),
        Policy::Require => acquire(&LockFile::open(path)?),
        Policy::Auto => {
            Ok(LockFile::open(path).and_then(|file| acquire(&file)).unwrap_or_else(|error| match error {
                ReservationError::Missing(_) => PreparedReservation::default(),
                other => unreserved(&other),
            }))
        }
    }
}

fn unreserved(error: &ReservationError) -> PreparedReservation {
    PreparedReservation {
        warnings: vec![Warning::new(format!("measuring without reserving the hardware counters: {error}"))],
        ..PreparedReservation::default()
    }
}

fn check(path: &Path) -> PreparedReservation {
    match LockFile::open(path).and_then(|file| file.others()) {
        Ok(holders) if holders.is_empty() => PreparedReservation::default(),
        Ok(holders) => PreparedReservation {
            warnings: vec![
                Warning::new(format!(
                    "the hardware counters are reserved by {}; counting anyway",
                    names(&holders)
                ))
                .advise(Hint::YieldReservation),
            ],
            ..PreparedReservation::default()
        },
        Err(ReservationError::Missing(_)) => PreparedReservation::default(),
        Err(other) => unreserved(&other),
    }
}

/// Reserves the counters, even if other processes have reserved them. Otherwise, the agent would resume
/// during the measurement if the other reservations end first. Without an agent, pmc does not wait, but it
/// still takes the lock, since an agent that starts later honours it.
///
/// # Errors
/// Returns [`ReservationError::Refused`] or [`ReservationError::NoLocks`].
pub fn acquire(file: &LockFile) -> Result<PreparedReservation, ReservationError> {
    let others = file.others()?;
    let reservation = file.reserve()?;
    let mut warnings = Vec::new();
    if !others.is_empty() {
        warnings.push(Warning::new(format!(
            "pmc reserved the hardware counters, but so did {}: events may be multiplexed",
            names(&others)
        )));
    }
    let agents = wait_for_agents(file);
    if !agents.is_empty() {
        let pids: Vec<String> = agents.iter().map(u32::to_string).collect();
        warnings.push(Warning::note(format!(
            "reserved the hardware counters; PCP's agent pmdaperfevent (pid {}) pauses its own counters",
            pids.join(", ")
        )));
    }
    Ok(PreparedReservation { reservation: Some(reservation), watcher: None, others, agents, warnings })
}

/// Waits for the agents that honour the file to switch their counters off, and returns their pids. Returns
/// immediately if there are no agents.
pub(crate) fn wait_for_agents(file: &LockFile) -> Vec<u32> {
    let agents: Vec<u32> = file.honouring_agents().iter().map(|agent| agent.pid).collect();
    if !agents.is_empty() {
        std::thread::sleep(SETTLE);
    }
    agents
}

/// Whether another process has reserved the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservationState {
    /// No other process has reserved the counters.
    Free,
    /// Another process has reserved the counters.
    Reserved(ReservationHolder),
}

/// Watches the lock file in the same way as the agent, to yield to other users. Ignores reservations of this
/// process.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    file: Option<LockFile>,
    state: ReservationState,
}

impl Watcher {
    /// Watches the file at this path, which need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: LockFile::open(path).ok(), state: ReservationState::Free }
    }

    /// Tests the lock and returns the current state. Makes only one system call unless the holder changes;
    /// only then does pmc look up the new holder's name. If the test fails, the state stays the same, as in
    /// the agent.
    pub fn poll(&mut self) -> &ReservationState {
        if self.file.is_none() {
            self.file = LockFile::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return &self.state };
        match file.conflicting_owner(LockKind::Write) {
            Err(_) => {}
            Ok(None) => self.state = ReservationState::Free,
            Ok(Some(owner)) => {
                let known = match (&self.state, owner) {
                    (
                        ReservationState::Reserved(ReservationHolder::Process { pid, .. }),
                        LockOwner::Process(now),
                    ) => *pid == now,
                    (ReservationState::Reserved(_), LockOwner::Unknown) => true,
                    _ => false,
                };
                if !known {
                    let holder = match owner {
                        LockOwner::Process(pid) => ReservationHolder::process(&Host::live(), pid),
                        LockOwner::Unknown => file.all_holders(owner).swap_remove(0),
                    };
                    self.state = ReservationState::Reserved(holder);
                }
            }
        }
        &self.state
    }
}

/// The reservation as shown by `pmc info`.
#[derive(Debug)]
pub struct ReservationStatus {
    /// Path of the lock file, whether it exists or not.
    pub path: PathBuf,
    /// Whether the lock file exists.
    pub exists: bool,
    /// The holders, or why they are unknown.
    pub holders: Result<Vec<ReservationHolder>, ReservationError>,
    /// The running agents.
    pub agents: Vec<pcp_agent::Agent>,
}

/// Returns the current state without reserving.
pub fn status(path: &Path) -> ReservationStatus {
    let file = LockFile::open(path);
    let agents = pcp_agent::agents(&Host::live(), path, file.as_ref().ok().map(|file| file.id()));
    let exists = !matches!(file, Err(ReservationError::Missing(_)));
    let holders = match file.and_then(|file| file.others()) {
        Err(ReservationError::Missing(_)) => Ok(Vec::new()),
        other => other,
    };
    ReservationStatus { path: path.to_owned(), exists, holders, agents }
}
