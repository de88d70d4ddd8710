//! Receives signals through a descriptor. Signals are blocked and then read, so that they never interrupt
//! code at an arbitrary point.
//!
//! Reports the caught signals that have arrived. The command decides how to react.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};

use super::wait;

/// The interrupt key.
pub const INT: i32 = libc::SIGINT;
/// A request to terminate.
pub const TERM: i32 = libc::SIGTERM;
/// The terminal was closed.
pub const HUP: i32 = libc::SIGHUP;
/// A child changed state.
pub const CHLD: i32 = libc::SIGCHLD;
/// The quit key.
pub const QUIT: i32 = libc::SIGQUIT;
/// A user-defined signal.
pub const USR1: i32 = libc::SIGUSR1;
/// The stop key, or a stop request that can be caught.
pub const TSTP: i32 = libc::SIGTSTP;
/// A breakpoint was hit.
pub const TRAP: i32 = libc::SIGTRAP;
/// The terminal was resized.
pub const WINCH: i32 = libc::SIGWINCH;
/// A user-defined signal, on which `record` takes a snapshot.
pub const USR2: i32 = libc::SIGUSR2;

/// The signals that end pmc: the interrupt key, a termination request, and the loss of the terminal.
pub const ENDING: [i32; 3] = [INT, TERM, HUP];
/// [`ENDING`] and the quit key.
pub const ENDING_AND_QUIT: [i32; 4] = [INT, TERM, HUP, QUIT];
/// The signals that a measurement handles even if its parent process ignored them. In scripts, a shell starts
/// background jobs with SIGINT ignored (`pmc stat -a & … kill -INT $!`), but SIGINT must end a measurement.
/// If SIGCHLD stayed ignored, the kernel would discard the command's exit status. SIGHUP is not in the list,
/// because nohup(1) ignores it on purpose.
pub const NEVER_IGNORED: [i32; 3] = [INT, TERM, CHLD];

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaughtSignal {
    /// Number of the signal.
    pub signal: i32,
    /// Whether the kernel sent the signal because a key was pressed. Every foreground process of the terminal
    /// then received it.
    pub from_terminal: bool,
}

/// Caught signals, readable through a descriptor (`signalfd(2)`, Linux 2.6.22).
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals in this thread (and in threads that it starts later), and collects them instead.
    ///
    /// # Errors
    /// Returns the kernel's error from `signalfd`.
    pub fn catch(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: the set is initialized.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        Ok(Self { fd: descriptor_of(&set)? })
    }

    /// Returns the next received signal; `None` if there is none.
    pub fn next(&self) -> Option<CaughtSignal> {
        // SAFETY: plain old data, for which zero is a valid value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is `size` bytes of plain old data.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (got == size as isize).then_some(CaughtSignal {
            signal: info.ssi_signo as i32,
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

/// Returns a descriptor that is readable while one of these signals is pending and blocked. It must only be
/// polled, because reading it would take the signal from the [`Signals`] that catches it.
///
/// # Errors
/// Returns the kernel's error from `signalfd`.
pub fn pending(signals: &[i32]) -> io::Result<OwnedFd> {
    descriptor_of(&set_of(signals))
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initializes the set before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

fn descriptor_of(set: &libc::sigset_t) -> io::Result<OwnedFd> {
    // SAFETY: signalfd returns a new descriptor, which has no other owner.
    unsafe {
        let fd = libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

impl Signals {
    /// Waits for a signal.
    ///
    /// # Errors
    /// Returns the kernel's error from `poll`.
    pub fn wait(&self) -> io::Result<CaughtSignal> {
        loop {
            if let Some(caught) = self.next() {
                return Ok(caught);
            }
            let mut fds = [PollFd::new(self, PollFlags::IN)];
            wait::poll(&mut fds, None)?;
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Stops this process and all others in its group, as the stop key does by default. Returns when the process
/// is continued. Meant for programs that [`Signals::catch`] SIGTSTP. The kernel does not stop a process whose
/// group has no shell to continue it; this function then returns immediately.
pub fn stop() {
    // SAFETY: sigemptyset initializes the set before use; no memory of ours is accessed.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTSTP);
        // Both signals are blocked and stay pending: one for the whole process, which a signalfd may take,
        // and one for this thread. The first one to be delivered stops the process; SIGCONT discards the
        // other.
        libc::kill(0, libc::SIGTSTP);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Restores the default action of signals that the parent process ignored, because an ignored signal cannot
/// be caught. (A shell ignores SIGINT for `command &`.)
pub fn restore_default(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: no handler of ours is replaced; the default action accesses no memory.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ignores signals until [`restore_default`] restores them. Does not affect programs started before.
pub fn ignore(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: no handler of ours is replaced; ignoring accesses no memory.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Unblocks all signals in this thread that [`Signals::catch`] blocked, even if the [`Signals`] no longer
/// exist. Must be called before interruptible work that starts programs, because programs inherit blocked
/// signals.
pub fn release() {
    // SAFETY: sigemptyset initializes the set before use.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Whether one of these blocked signals is pending.
pub(crate) fn is_pending(signals: &[i32]) -> bool {
    // SAFETY: the set is plain old data that sigpending fills.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut set) == 0
            && signals.iter().any(|&signal| libc::sigismember(&raw const set, signal) == 1)
    }
}

/// Whether [`handle_file_size_limit`] replaced the default action of SIGXFSZ.
static FILE_LIMIT_WAS_DEADLY: AtomicBool = AtomicBool::new(false);

/// Makes a write beyond the file size limit (RLIMIT_FSIZE) fail with `EFBIG` instead of killing the process
/// silently. Commands still start with the original action.
pub fn handle_file_size_limit() {
    // SAFETY: no handler of ours is replaced; ignoring accesses no memory.
    let former = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    FILE_LIMIT_WAS_DEADLY.store(former == libc::SIG_DFL, Ordering::Relaxed);
}

/// Resets the signals of a forked child to the state of a new process: no blocked signals, and default
/// actions for SIGPIPE (which Rust ignores) and SIGXFSZ ([`handle_file_size_limit`]).
///
/// # Safety
/// Must be called only between fork and exec; it is async-signal-safe.
pub(super) unsafe fn reset_in_child() {
    // SAFETY: guaranteed by the caller; the set is initialized before use.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if FILE_LIMIT_WAS_DEADLY.load(Ordering::Relaxed) {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
    }
}

/// Kills this process with `signal`, as if the signal had never been caught. Returns only if the signal is
/// not fatal.
pub fn die_by(signal: i32) {
    // SAFETY: accesses no memory of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}
