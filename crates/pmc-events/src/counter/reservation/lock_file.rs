//! The lock file and its holders. All reservers share a lock on one byte of the file.
//!
//! Takes a path; returns a [`LockFile`] that can list its holders and be reserved, a [`CounterReservation`]
//! (held until dropped), and [`ReservationError`]s that name the holders. [`super`] applies the policies.
//!
//! # Which kind of lock
//! pmc uses a POSIX lock, like `perfalloc`. A query of a POSIX lock returns its owner's pid; a query of an
//! open-file-description lock returns -1. POSIX locks have two pitfalls. First, the lock is lost as soon as
//! the process closes *any* descriptor of the file. So this process keeps one descriptor per file and shares
//! it ([`OPEN`]). Second, children do not inherit the lock. This is intended: a daemon left behind by the
//! profiled command must not keep the reservation. POSIX locks also have an advantage: a process never sees
//! its own lock in a query.

use crate::hint::Hint;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pmc_sys::error::{Advice, Error as UserError};
use pmc_sys::host::{Host, pcp_agent};
use pmc_sys::sys::lock::{self, LockKind, LockOwner};
use pmc_sys::sys::regular_file::open_regular;
use pmc_text::text::{clean, shell_word};

/// A process that has reserved the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservationHolder {
    /// A process, and its name if it could still be read. The name comes from the kernel and is not
    /// sanitised.
    Process {
        /// The process ID.
        pid: u32,
        /// `/proc/PID/comm`.
        comm: Option<String>,
    },
    /// An unknown holder: an open-file-description lock of processes that pmc may not examine, or a process
    /// in another pid namespace.
    Unknown,
}

impl ReservationHolder {
    pub(super) fn process(host: &Host, pid: u32) -> Self {
        Self::Process { pid, comm: Some(host.comm(pid)).filter(|comm| !comm.is_empty()) }
    }
}

impl fmt::Display for ReservationHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, comm: Some(comm) } => write!(f, "{} (pid {pid})", clean(comm)),
            Self::Process { pid, comm: None } => write!(f, "pid {pid}"),
            Self::Unknown => f.write_str("an unknown process"),
        }
    }
}

/// Formats several holders on one line: `a (pid 1), b (pid 2) and 3 more`.
pub(super) fn names(holders: &[ReservationHolder]) -> String {
    const MAX_NAMED: usize = 4;
    let shown: Vec<String> = holders.iter().take(MAX_NAMED).map(ReservationHolder::to_string).collect();
    match holders.len().saturating_sub(MAX_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Reasons why reserving failed.
#[derive(Debug, thiserror::Error)]
pub enum ReservationError {
    /// The lock file does not exist: PCP's agent has never run here.
    #[error("the lock file {} does not exist", .0.display())]
    Missing(PathBuf),
    /// The lock file exists but cannot be opened or examined.
    #[error("opening the lock file {}: {source}", path.display())]
    Unusable {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file system does not support locks on this file.
    #[error("locking the lock file {}: {source}", path.display())]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another process holds a write lock on the byte.
    #[error("the reservation was refused: {} holds {} exclusively", names(holders), path.display())]
    Refused {
        /// The lock file.
        path: PathBuf,
        /// The processes that hold the lock.
        holders: Vec<ReservationHolder>,
    },
}

impl ReservationError {
    /// Converts the error to a message for the user. `without` explains how to run without the reservation.
    pub fn explain(self, without: impl Into<Advice>) -> UserError {
        match self {
            ReservationError::Missing(path) => {
                UserError::new(format!("reserving the hardware counters: {} does not exist", path.display()))
                    .why(
                        "PCP's agent pmdaperfevent creates the file when it first starts, but has never run here, so no agent would honour the reservation",
                    )
                    .try_this(without)
                    .try_this(Hint::CreateLockFile)
            }
            ReservationError::Unusable { path, source } => {
                let denied = source.kind() == io::ErrorKind::PermissionDenied;
                let error = UserError::io(format!("opening the lock file {}", path.display()), source);
                if denied {
                    error
                        .why("the reserving process must be able to read it; PCP's agent makes it world-readable")
                        .try_this(format!(
                            "as root: chmod a+r {}, and a+x on its parent directories",
                            shell_word(&path)
                        ))
                } else {
                    error
                }
            }
            ReservationError::NoLocks { path, source } => UserError::io(
                format!("locking the lock file {}", path.display()),
                source,
            )
            .why("its file system does not support record locks (for example, NFS without lockd)")
            .try_this(
                "use a lock file on a local file system; for PCP's agent, also set PCP_PMDAS_DIR in /etc/pcp.conf",
            )
            .try_this(without),
            ReservationError::Refused { path, holders } => UserError::new(format!(
                "reserving the hardware counters: {} holds them exclusively",
                names(&holders)
            ))
            .why(format!(
                "it holds a write lock on the first byte of {}; reservations use shared \
                                  locks",
                path.display()
            ))
            .try_this("wait for that process to end, or end it"),
        }
    }
}

/// The only descriptor of each lock file in this process, shared by all callers. Closing a second descriptor
/// would drop the lock.
static OPEN: Mutex<Vec<(pcp_agent::FileIdentity, Weak<OpenedLockFile>)>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct OpenedLockFile {
    file: File,
    id: pcp_agent::FileIdentity,
    /// Number of [`CounterReservation`]s of this process that share the lock.
    reservations: Mutex<usize>,
}

/// The lock file, open for reading and closed on exec.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
    opened: Arc<OpenedLockFile>,
}

impl LockFile {
    /// Returns the path at which PCP's programs look for the file, given this environment.
    pub fn default_path(host: &Host) -> PathBuf {
        pcp_agent::lock_path(host, |name| std::env::var_os(name))
    }

    /// Opens a lock file.
    ///
    /// # Errors
    /// Returns [`ReservationError::Missing`] or [`ReservationError::Unusable`].
    pub fn open(path: &Path) -> Result<Self, ReservationError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ReservationError::Missing(path.to_owned()),
            _ => ReservationError::Unusable { path: path.to_owned(), source },
        };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, opened)| opened.strong_count() > 0);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            // Opening a FIFO would block, and opening a device may have side effects.
            return Err(failed(io::Error::other("this is not a regular file")));
        }
        let known = pcp_agent::FileIdentity::from(&metadata);
        let shared = open.iter().find(|(id, _)| *id == known).and_then(|(_, opened)| opened.upgrade());
        let opened = match shared {
            Some(opened) => opened,
            None => {
                let file = open_regular(path, true).map_err(failed)?;
                let id = pcp_agent::FileIdentity::from(&file.metadata().map_err(failed)?);
                let opened = Arc::new(OpenedLockFile { file, id, reservations: Mutex::new(0) });
                open.push((id, Arc::downgrade(&opened)));
                opened
            }
        };
        Ok(Self { path: path.to_owned(), opened })
    }

    /// Returns the other processes that have reserved the counters, as far as pmc can find them. If another
    /// process has reserved them, the list is never empty.
    ///
    /// # Errors
    /// Returns [`ReservationError::NoLocks`] if the kernel cannot test locks on this file.
    pub fn others(&self) -> Result<Vec<ReservationHolder>, ReservationError> {
        match self.conflicting_owner(LockKind::Write)? {
            None => Ok(Vec::new()),
            Some(first) => Ok(self.all_holders(first)),
        }
    }

    /// Acquires the shared lock.
    ///
    /// # Errors
    /// Returns [`ReservationError::Refused`] if another process has a write lock, and
    /// [`ReservationError::NoLocks`] for any other error.
    pub fn reserve(&self) -> Result<CounterReservation, ReservationError> {
        let mut reservations = self.opened.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        match lock::take(&self.opened.file, LockKind::Read) {
            Ok(()) => {
                *reservations += 1;
                Ok(CounterReservation { opened: Arc::clone(&self.opened) })
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied) =>
            {
                // The holder may have exited since the attempt; its name is then unknown.
                let holders = match self.conflicting_owner(LockKind::Read)? {
                    Some(LockOwner::Process(pid)) => vec![ReservationHolder::process(&Host::live(), pid)],
                    Some(LockOwner::Unknown) => self.all_holders(LockOwner::Unknown),
                    None => vec![ReservationHolder::Unknown],
                };
                Err(ReservationError::Refused { path: self.path.clone(), holders })
            }
            Err(source) => Err(self.no_locks(source)),
        }
    }

    /// Returns the agents that honour a reservation: agents that have this file open, and agents whose
    /// descriptors pmc may not examine.
    pub fn honouring_agents(&self) -> Vec<pcp_agent::Agent> {
        let mut agents = pcp_agent::agents(&Host::live(), &self.path, Some(self.opened.id));
        agents.retain(|agent| agent.watches != Some(false));
        agents
    }

    /// Returns the owner of a lock that conflicts with this kind of lock; this process never conflicts with
    /// itself.
    pub(super) fn conflicting_owner(&self, kind: LockKind) -> Result<Option<LockOwner>, ReservationError> {
        lock::conflicting_owner(&self.opened.file, kind).map_err(|source| self.no_locks(source))
    }

    /// Returns the file's identity.
    pub(super) fn id(&self) -> pcp_agent::FileIdentity {
        self.opened.id
    }

    fn no_locks(&self, source: io::Error) -> ReservationError {
        ReservationError::NoLocks { path: self.path.clone(), source }
    }

    /// Finds all holders: `F_GETLK` returns one of them, and `/proc/locks` and `/proc/PID/fdinfo` list the
    /// others.
    pub(super) fn all_holders(&self, first: LockOwner) -> Vec<ReservationHolder> {
        let host = Host::live();
        let mut pids = Vec::new();
        let mut description = first == LockOwner::Unknown;
        if let LockOwner::Process(pid) = first {
            pids.push(pid);
        }
        for lock in pcp_agent::locks(&host, self.opened.id) {
            match lock {
                pcp_agent::Lock::Posix(pid) => pids.push(pid),
                pcp_agent::Lock::Description => description = true,
            }
        }
        if description {
            pids.extend(pcp_agent::description_holders(&host, &self.path, self.opened.id));
        }
        pids.retain(|&pid| pid != std::process::id());
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return vec![ReservationHolder::Unknown];
        }
        pids.into_iter().map(|pid| ReservationHolder::process(&host, pid)).collect()
    }
}

/// The shared lock, held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct CounterReservation {
    opened: Arc<OpenedLockFile>,
}

impl Drop for CounterReservation {
    fn drop(&mut self) {
        let mut reservations = self.opened.reservations.lock().unwrap_or_else(PoisonError::into_inner);
        *reservations -= 1;
        if *reservations == 0 {
            // This cannot fail on an open file. Even if it failed, closing the descriptor would release the
            // lock.
            let _ = lock::release(&self.opened.file);
        }
    }
}
