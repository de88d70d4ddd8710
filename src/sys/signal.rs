//! Signals as a descriptor: blocked, then read, so that nothing happens between two statements.
//!
//! Receives the signals to catch; hands on which one came. What to do about it is the command's decision.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};

/// The interrupt key.
pub const INT: i32 = libc::SIGINT;
/// The polite request to end.
pub const TERM: i32 = libc::SIGTERM;
/// The terminal has gone.
pub const HUP: i32 = libc::SIGHUP;
/// A child changed its state.
pub const CHLD: i32 = libc::SIGCHLD;
/// The quit key.
pub const QUIT: i32 = libc::SIGQUIT;
/// A user's signal.
pub const USR1: i32 = libc::SIGUSR1;
/// The stop key, or a request to stop that can be caught.
pub const TSTP: i32 = libc::SIGTSTP;
/// A breakpoint was met.
pub const TRAP: i32 = libc::SIGTRAP;
/// The terminal has another size.
pub const WINCH: i32 = libc::SIGWINCH;
/// A user's signal: `record` takes a snapshot at it.
pub const USR2: i32 = libc::SIGUSR2;

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    /// Its number.
    pub signal: i32,
    /// The kernel sent it for a key: every process in the foreground of the terminal got it too.
    pub from_terminal: bool,
}

/// Caught signals, readable through a descriptor (`signalfd(2)`, Linux 2.6.22).
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals in this thread (and those it starts later) and collects them instead.
    ///
    /// # Errors
    /// What the kernel said to the mask or to `signalfd`.
    pub fn catch(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        Ok(Self { fd: descriptor_of(&set)? })
    }

    /// The next signal that came; `None` when there is none.
    pub fn next(&self) -> Option<Caught> {
        // SAFETY: plain old data, for which zero is a value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is `size` bytes of plain old data.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (got == size as isize).then_some(Caught {
            signal: info.ssi_signo as i32,
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

/// Returns a descriptor that is readable while one of these signals is pending and blocked. Only poll it:
/// reading would take the signal from the [`Signals`] that catches it.
///
/// # Errors
/// The kernel's answer to `signalfd`.
pub fn pending(signals: &[i32]) -> io::Result<OwnedFd> {
    descriptor_of(&set_of(signals))
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before use.
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
    // SAFETY: signalfd gives a descriptor that is ours.
    unsafe {
        let fd = libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

impl Signals {
    /// Sleeps until one comes.
    ///
    /// # Errors
    /// What the kernel said to the read.
    pub fn wait(&self) -> io::Result<Caught> {
        loop {
            if let Some(caught) = self.next() {
                return Ok(caught);
            }
            let mut fds = [PollFd::new(self, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Stops this process and all others of its group, as the stop key does for programs that leave it to the
/// kernel; returns when somebody continues it. For programs that [`Signals::catch`] SIGTSTP. Where nobody
/// could continue it (the group has no shell), the kernel does not stop it, and this returns at once.
pub fn stop() {
    // SAFETY: the set is initialised by sigemptyset before use; no memory of ours is involved.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTSTP);
        // Both of ours wait, being blocked: one for any thread (a signalfd may take it), one for this thread.
        // The first to be delivered stops the process; SIGCONT throws the other away.
        libc::kill(0, libc::SIGTSTP);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Takes back that the starting process had these signals ignored (a shell ignores SIGINT for `command &`):
/// an ignored signal is never caught.
pub fn heed(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: no handler of ours is replaced; the default action needs no memory.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ignores signals until they are [heeded](heed) again. Programs that were started before are not concerned.
pub fn ignore(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: no handler of ours is replaced; ignoring needs no memory.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Lets through again what [`Signals::catch`] keeps from this thread, also when they are there no longer:
/// before work that may be interrupted, and starts programs, which are born with what is kept from us.
pub fn release() {
    // SAFETY: the set is initialised by sigemptyset before use.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Whether one of these signals waits to be delivered, being blocked.
pub fn is_pending(signals: &[i32]) -> bool {
    // SAFETY: the set is plain old data that sigpending fills.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut set) == 0
            && signals.iter().any(|&signal| libc::sigismember(&raw const set, signal) == 1)
    }
}

/// Whether [`survive_file_limit`] took the default action of SIGXFSZ away.
static FILE_LIMIT_WAS_DEADLY: AtomicBool = AtomicBool::new(false);

/// Has a write beyond the limit of file sizes (RLIMIT_FSIZE) fail with `EFBIG`, instead of ending the process
/// without a word. Held commands start with what was there before.
pub fn survive_file_limit() {
    // SAFETY: no handler of ours is replaced; ignoring needs no memory.
    let former = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    FILE_LIMIT_WAS_DEADLY.store(former == libc::SIG_DFL, Ordering::Relaxed);
}

/// Gives a forked child the signals that a fresh process has: none blocked, SIGPIPE deadly again (Rust
/// ignores it), and SIGXFSZ ([`survive_file_limit`]).
///
/// # Safety
/// To be called between fork and exec only; it is async-signal-safe.
pub(super) unsafe fn reset_in_child() {
    // SAFETY: the caller's promise; the set is initialised before use.
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

/// Ends this process by `signal`, as if it had never been caught; returns only if the signal is not deadly.
pub fn die_by(signal: i32) {
    // SAFETY: no memory of ours is involved.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}
