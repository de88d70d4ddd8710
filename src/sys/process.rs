//! Starting a command behind a gate, and learning how it ended.
//!
//! The command is forked first and held; counters are attached to its pid; then the gate opens and it
//! executes. So nothing of the command runs uncounted, and a command that cannot be started is told apart
//! from one that fails.
//!
//! ```text
//!   pmc                                  child
//!   fork ------------------------------> reset signals
//!   open counters on the child's pid     read(gate)          ... blocks
//!   release(): write(gate) ------------> execvp
//!   read(verdict) <--- end of file ----- (descriptor closed by exec: started)
//!                 <--- errno ----------- (exec failed: exit 127 or 126)
//!   wait() <---------------------------- exit status, rusage
//! ```

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use super::{descriptor, signal};

/// Whether there is a process or thread of this number, be it a zombie. Far cheaper than asking `/proc`.
pub fn exists(task: i32) -> bool {
    // Numbers below 1 mean groups and everybody.
    let pid = if task > 0 { rustix::process::Pid::from_raw(task) } else { None };
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// A forked child that has not yet executed its command. Dropped without release, it ends without a trace.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    gate: Option<OwnedFd>,
    verdict: OwnedFd,
}

/// What a command's standard input, output and error are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// What ours are.
    Shared,
    /// Output goes to standard error, since ours is a stream of its own.
    OutputToError,
    /// Output goes into this descriptor, which stays open until the command runs.
    OutputTo(RawFd),
    /// Errors, too.
    AllTo(RawFd),
    /// Whatever would be a terminal is `/dev/null`, since ours shows something else.
    OffTerminal,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    pid: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
}

/// What `wait4(2)` says of a command that ended: its own and its waited-for children's use.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Nanoseconds in user mode (microsecond steps).
    pub user_ns: u64,
    /// Nanoseconds in the kernel (microsecond steps).
    pub system_ns: u64,
}

/// As C wants them.
fn strings(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    let all = texts.map(CString::new).collect::<Result<_, _>>();
    all.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Their addresses, and a null pointer. Valid as long as they live.
fn terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Our environment with these variables besides.
fn variables(more: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    let ours = std::env::vars_os().filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let variable = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    strings(ours.chain(more.iter().cloned()).map(variable))
}

impl Held {
    /// Forks a child that waits for [`Held::release`] and then executes `argv[0]` (looked for on the PATH).
    ///
    /// # Errors
    /// `EINVAL` for an argument with a NUL in it, otherwise what `pipe2` and `fork` say.
    pub fn start<S: AsRef<OsStr>>(argv: &[S]) -> io::Result<Self> {
        Self::start_with(argv, &[], Streams::Shared)
    }

    /// As [`Held::start`]; the command has these variables besides ours, and these standard streams.
    ///
    /// # Errors
    /// As [`Held::start`].
    pub fn start_with<S: AsRef<OsStr>>(
        argv: &[S],
        environment: &[(OsString, OsString)],
        streams: Streams,
    ) -> io::Result<Self> {
        let words = strings(argv.iter().map(|word| word.as_ref().as_bytes().to_vec()))?;
        let pointers = terminated(&words);
        let variables = if environment.is_empty() { None } else { Some(variables(environment)?) };
        let variables = variables.as_deref().map(terminated);
        let nothing = match streams {
            Streams::OffTerminal => Some(File::options().read(true).write(true).open("/dev/null")?),
            _ => None,
        };
        let (gate_out, gate_in) = pipe()?;
        let (verdict_out, verdict_in) = pipe()?;
        // SAFETY: between fork and exec the child only calls async-signal-safe functions on memory that was
        // prepared before; it never returns from the block.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: as above. `pointers` and `variables` end in NULL and point into strings that are alive.
            unsafe {
                // The parent's end must not keep our own gate open.
                libc::close(gate_in.as_raw_fd());
                signal::reset_in_child();
                let mut byte = 0u8;
                let got = loop {
                    let got = libc::read(gate_out.as_raw_fd(), (&raw mut byte).cast(), 1);
                    if got >= 0 || *libc::__errno_location() != libc::EINTR {
                        break got;
                    }
                };
                if got != 1 {
                    libc::_exit(0); // The gate closed without a word: pmc gave up.
                }
                if descriptor::stdout_was_closed() {
                    // What stands in for it is ours.
                    libc::close(1);
                }
                match streams {
                    Streams::Shared | Streams::OffTerminal => {}
                    Streams::OutputToError => drop(libc::dup2(2, 1)),
                    Streams::OutputTo(fd) => drop(libc::dup2(fd, 1)),
                    Streams::AllTo(fd) => drop((libc::dup2(fd, 1), libc::dup2(fd, 2))),
                }
                if let Some(nothing) = &nothing {
                    for standard in 0..=2 {
                        if libc::isatty(standard) == 1 {
                            libc::dup2(nothing.as_raw_fd(), standard);
                        }
                    }
                }
                // Ours, untouched, unless it was asked for otherwise.
                match &variables {
                    None => libc::execvp(pointers[0], pointers.as_ptr()),
                    Some(variables) => libc::execvpe(pointers[0], pointers.as_ptr(), variables.as_ptr()),
                };
                let errno = *libc::__errno_location();
                libc::write(verdict_in.as_raw_fd(), (&raw const errno).cast(), size_of::<i32>());
                libc::_exit(127);
            }
        }
        Ok(Self { pid: pid as u32, gate: Some(gate_in), verdict: verdict_out })
    }

    /// The pid that the command will have.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the command execute; returns when it has.
    ///
    /// # Errors
    /// Why it could not be executed, as `execvp(3)` says it; the child is then gone.
    pub fn release(mut self) -> io::Result<Running> {
        let gate = self.gate.take().ok_or(io::ErrorKind::InvalidInput)?;
        let opened = loop {
            // SAFETY: one byte of a static; the descriptor is ours.
            let wrote = unsafe { libc::write(gate.as_raw_fd(), b"!".as_ptr().cast(), 1) };
            match io::Error::last_os_error() {
                _ if wrote == 1 => break Ok(()),
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => break Err(error),
            }
        };
        drop(gate);
        if let Err(error) = opened {
            // The closed gate ends the child before it executes anything.
            let _ = Running { pid: self.pid }.wait();
            return Err(error);
        }
        let mut errno = 0i32;
        let got = loop {
            // SAFETY: four bytes into an i32; any bytes are valid.
            let got =
                unsafe { libc::read(self.verdict.as_raw_fd(), (&raw mut errno).cast(), size_of::<i32>()) };
            if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break got;
            }
        };
        let running = Running { pid: self.pid };
        if got == size_of::<i32>() as isize {
            let _ = running.wait();
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(running)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            // The gate has just closed: the child ends; take it off the process table.
            let _ = Running { pid: self.pid }.wait();
        }
    }
}

impl Running {
    /// Waits until the command has ended.
    ///
    /// # Errors
    /// What the kernel said to `waitid`.
    pub fn wait(&self) -> io::Result<Outcome> {
        loop {
            match self.wait4(0) {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The outcome if the command has ended; `None` while it runs.
    ///
    /// # Errors
    /// As [`Running::wait`].
    pub fn try_wait(&self) -> io::Result<Option<Outcome>> {
        self.wait4(libc::WNOHANG)
    }

    /// Sends a signal to the command.
    pub fn kill(&self, signal: i32) {
        // SAFETY: no memory is involved; the pid is our unreaped child's.
        unsafe { libc::kill(self.pid as i32, signal) };
    }

    fn wait4(&self, options: i32) -> io::Result<Option<Outcome>> {
        let mut status = 0;
        // SAFETY: rusage is plain old data, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live locals of the right types.
        let pid = unsafe { libc::wait4(self.pid as i32, &raw mut status, options, &raw mut usage) };
        match pid {
            0 => Ok(None),
            p if p < 0 => Err(io::Error::last_os_error()),
            _ => Ok(Some(Outcome {
                ended: if libc::WIFSIGNALED(status) {
                    Ended::Killed(libc::WTERMSIG(status))
                } else {
                    Ended::Exited(libc::WEXITSTATUS(status) as u8)
                },
                user_ns: nanoseconds(usage.ru_utime),
                system_ns: nanoseconds(usage.ru_stime),
            })),
        }
    }
}

/// Lets the calling thread run before all others, at this real-time priority (`SCHED_FIFO`, 1 to 99);
/// children and new threads are as before.
///
/// # Errors
/// The kernel's: `EPERM` without `CAP_SYS_NICE` or a limit (`RLIMIT_RTPRIO`) that allows it.
pub fn run_in_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: the structure is plain old data, for which zero is a value.
    let mut how: libc::sched_param = unsafe { std::mem::zeroed() };
    how.sched_priority = priority;
    // SAFETY: a live local of the right type; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const how) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves the closing of every open descriptor to a child, so that our own end need not wait for it: the last
/// one to close a tracepoint waits some 35 ms for the kernel. The child holds nothing that anybody reads
/// from, and ends when all is closed. Returns whether there is such a child.
pub fn close_behind() -> bool {
    // SAFETY: the child calls async-signal-safe functions only, and never returns.
    unsafe {
        match libc::fork() {
            0 => {
                libc::setsid();
                for standard in 0..=2 {
                    libc::close(standard);
                }
                libc::_exit(0);
            }
            pid => pid > 0,
        }
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0i32; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us both, and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_command_starts_when_released() {
        let held = Held::start(&["sh", "-c", "exit 7"]).unwrap();
        let running = held.release().unwrap();
        assert_eq!(running.wait().unwrap().ended, Ended::Exited(7));
    }

    #[test]
    fn a_command_that_does_not_exist_is_told_by_its_errno() {
        let held = Held::start(&["/nowhere/at/all"]).unwrap();
        assert_eq!(held.release().unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn giving_up_leaves_no_child() {
        let held = Held::start(&["sleep", "1000"]).unwrap();
        let pid = held.pid();
        drop(held);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn processes_and_threads_exist_until_they_are_gone() {
        let own = std::process::id() as i32;
        let tid = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            assert!(exists(tid));
            tid
        });
        assert!(exists(own) && exists(1));
        let held = Held::start(&["sleep", "1000"]).unwrap();
        let child = held.pid() as i32;
        assert!(exists(child));
        drop(held);
        assert!(!exists(child) && !exists(0) && !exists(-1) && tid.join().unwrap() > 0);
    }
}
