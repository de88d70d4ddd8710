//! Starts commands paused before exec, and reports how they ended.
//!
//! The child is forked first, and waits at a gate (a pipe) while counters are attached to its pid. Then pmc
//! opens the gate, and the child executes the command. This way, no part of the command runs uncounted, and
//! pmc can distinguish a command that cannot be started from one that fails.
//!
//! ```text
//!   pmc                                  child
//!   fork ------------------------------> reset signals
//!   open counters on the child's pid     read(gate)          ... blocks
//!   release(): write(gate) ------------> execvp
//!   read(verdict) <--- end of file ----- (descriptor closed by exec: started)
//!                 <--- errno ----------- (exec, or a call before it, failed: exit 127 or 126)
//!   wait() <---------------------------- exit status, rusage
//! ```

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use super::{descriptor, signal};

/// Whether a process or thread with this id exists, even as a zombie. This is far cheaper than reading
/// `/proc`.
pub fn exists(task: i32) -> bool {
    // Ids below 1 would select process groups or all processes.
    let pid = if task > 0 { rustix::process::Pid::from_raw(task) } else { None };
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// A forked child that has not yet executed its command. If dropped before its release, the child exits
/// without executing the command.
#[derive(Debug)]
pub struct PausedChild {
    pid: u32,
    gate: Option<OwnedFd>,
    verdict: OwnedFd,
}

/// Standard input, output and error of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// The same streams as pmc's.
    Shared,
    /// Redirects output to standard error, because pmc's standard output carries a stream.
    OutputToError,
    /// Redirects output to this descriptor, which must stay open until the command runs.
    OutputTo(RawFd),
    /// Redirects output and errors to this descriptor.
    AllTo(RawFd),
    /// Replaces every stream that is a terminal with `/dev/null`, because pmc draws on the terminal.
    OffTerminal,
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    pid: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exited(u8),
    /// This signal killed it.
    Killed(i32),
}

/// Result of `wait4(2)` for a command that has ended, including the resource usage of the children that it
/// waited for.
#[derive(Debug, Clone, Copy)]
pub struct CommandOutcome {
    /// How the command ended.
    pub ended: Ended,
    /// CPU time in user mode in nanoseconds (microsecond resolution).
    pub user_ns: u64,
    /// CPU time in the kernel in nanoseconds (microsecond resolution).
    pub system_ns: u64,
}

/// Converts the texts to C strings.
fn strings(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    let all = texts.map(CString::new).collect::<Result<_, _>>();
    all.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Returns the addresses of the strings, followed by a null pointer. Valid as long as the strings live.
fn terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Returns pmc's environment with these additional variables.
fn variables(more: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    let ours = std::env::vars_os().filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let variable = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    strings(ours.chain(more.iter().cloned()).map(variable))
}

impl PausedChild {
    /// Forks a child that waits for [`PausedChild::release`] and then executes `argv[0]`, which is searched
    /// for in PATH.
    ///
    /// # Errors
    /// Returns `EINVAL` for an argument that contains a NUL, otherwise the errors of `pipe2` and `fork`.
    pub fn start<S: AsRef<OsStr>>(argv: &[S]) -> io::Result<Self> {
        Self::start_with(argv, &[], Streams::Shared)
    }

    /// Like [`PausedChild::start`], with these additional environment variables and these standard streams.
    ///
    /// # Errors
    /// Returns the errors of [`PausedChild::start`].
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
        // SAFETY: between fork and exec, the child only calls async-signal-safe functions on memory that was
        // prepared before the fork; it never returns from the block.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: as above. `pointers` and `variables` end with NULL and point to strings that are
            // alive.
            unsafe {
                // If the child kept the write end open, it would never see the gate close.
                libc::close(gate_in.as_raw_fd());
                signal::reset_in_child();
                let mut byte = 0u8;
                let got = loop {
                    let got = libc::read(gate_out.as_raw_fd(), (&raw mut byte).cast(), 1);
                    if got >= 0 || *libc::__errno_location() != libc::EINTR {
                        break got;
                    }
                };
                match got {
                    1 => {}
                    0 => libc::_exit(0), // The gate closed without a release: pmc gave up.
                    _ => give_up(&verdict_in),
                }
                if descriptor::stdout_was_closed() {
                    // The replacement is only for pmc, so it is closed again for the command.
                    libc::close(1);
                }
                // If a stream cannot be replaced, the command's output would end up in pmc's.
                let replace = |standard: RawFd, with: RawFd| {
                    if libc::dup2(with, standard) < 0 {
                        give_up(&verdict_in);
                    }
                };
                match streams {
                    Streams::Shared | Streams::OffTerminal => {}
                    Streams::OutputToError => replace(1, 2),
                    Streams::OutputTo(fd) => replace(1, fd),
                    Streams::AllTo(fd) => {
                        replace(1, fd);
                        replace(2, fd);
                    }
                }
                if let Some(nothing) = &nothing {
                    for standard in 0..=2 {
                        if libc::isatty(standard) == 1 {
                            replace(standard, nothing.as_raw_fd());
                        }
                    }
                }
                // Passes pmc's environment on unchanged unless variables were added.
                match &variables {
                    None => libc::execvp(pointers[0], pointers.as_ptr()),
                    Some(variables) => libc::execvpe(pointers[0], pointers.as_ptr(), variables.as_ptr()),
                };
                give_up(&verdict_in);
            }
        }
        Ok(Self { pid: pid as u32, gate: Some(gate_in), verdict: verdict_out })
    }

    /// Returns the child's pid, which the command keeps.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child execute the command. Returns after the exec.
    ///
    /// # Errors
    /// Returns the error of `execvp(3)`, or of the calls before it, if the command cannot be executed; the
    /// child has then ended.
    pub fn release(mut self) -> io::Result<RunningCommand> {
        let gate = self.gate.take().ok_or(io::ErrorKind::InvalidInput)?;
        let opened = loop {
            // SAFETY: writes one byte of a static; the descriptor is ours.
            let wrote = unsafe { libc::write(gate.as_raw_fd(), b"!".as_ptr().cast(), 1) };
            match io::Error::last_os_error() {
                _ if wrote == 1 => break Ok(()),
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => break Err(error),
            }
        };
        drop(gate);
        let mut errno = 0i32;
        let got = loop {
            // SAFETY: reads at most four bytes into an i32; any bytes are valid.
            let got =
                unsafe { libc::read(self.verdict.as_raw_fd(), (&raw mut errno).cast(), size_of::<i32>()) };
            if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break got;
            }
        };
        let running = RunningCommand { pid: self.pid };
        let started = match got == size_of::<i32>() as isize {
            true => Err(io::Error::from_raw_os_error(errno)),
            // A closed gate ends the child before it executes the command.
            false => opened,
        };
        if started.is_err() {
            let _ = running.wait();
        }
        started.map(|()| running)
    }
}

/// Ends the child before it executes the command, and sends pmc the number of the last error.
fn give_up(verdict: &OwnedFd) -> ! {
    // SAFETY: reads a live local. All calls are async-signal-safe.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(verdict.as_raw_fd(), (&raw const errno).cast(), size_of::<i32>());
        libc::_exit(127)
    }
}

impl Drop for PausedChild {
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            // Dropping the gate has ended the child, which is reaped here.
            let _ = RunningCommand { pid: self.pid }.wait();
        }
    }
}

impl RunningCommand {
    /// Returns the command's pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the command to end.
    ///
    /// # Errors
    /// Returns the kernel's error from `wait4`.
    pub fn wait(&self) -> io::Result<CommandOutcome> {
        loop {
            match self.wait4(0) {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the outcome if the command has ended; `None` while it is running.
    ///
    /// # Errors
    /// Returns the errors of [`RunningCommand::wait`].
    pub fn try_wait(&self) -> io::Result<Option<CommandOutcome>> {
        self.wait4(libc::WNOHANG)
    }

    /// Whether the command has not begun to exit: its memory still exists. The link to its program is gone
    /// afterwards, and unreadable (EACCES) if the program has more privileges than pmc.
    pub fn executes(&self) -> bool {
        let program = std::fs::read_link(format!("/proc/{}/exe", self.pid));
        !program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Sends a signal to the command.
    pub fn kill(&self, signal: i32) {
        // SAFETY: accesses no memory; the pid belongs to our child, which has not been reaped.
        unsafe { libc::kill(self.pid as i32, signal) };
    }

    fn wait4(&self, options: i32) -> io::Result<Option<CommandOutcome>> {
        let mut status = 0;
        // SAFETY: rusage is plain old data, for which zero is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live locals of the right types.
        let pid = unsafe { libc::wait4(self.pid as i32, &raw mut status, options, &raw mut usage) };
        match pid {
            0 => Ok(None),
            p if p < 0 => Err(io::Error::last_os_error()),
            _ => Ok(Some(CommandOutcome {
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

/// Sets the real-time priority of the calling thread (`SCHED_FIFO`, 1 to 99). Children and new threads do not
/// inherit it.
///
/// # Errors
/// Returns the kernel's error; `EPERM` without `CAP_SYS_NICE` or a limit (`RLIMIT_RTPRIO`) that allows it.
pub fn run_in_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: the structure is plain old data, for which zero is a valid value.
    let mut how: libc::sched_param = unsafe { std::mem::zeroed() };
    how.sched_priority = priority;
    // SAFETY: a live local of the right type; 0 means the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const how) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Forks a child that closes all open descriptors, so that pmc itself can exit without delay: closing the
/// last descriptor of a tracepoint takes about 35 ms. The child closes the standard streams first, and exits
/// after closing all other descriptors. Returns whether the child was created.
pub fn exit_while_child_closes() -> bool {
    // SAFETY: the child calls only async-signal-safe functions, and never returns.
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
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned both, and they have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_command_starts_on_release() {
        let held = PausedChild::start(&["sh", "-c", "exit 7"]).unwrap();
        let running = held.release().unwrap();
        assert_eq!(running.wait().unwrap().ended, Ended::Exited(7));
    }

    #[test]
    fn missing_command_reports_its_errno() {
        let held = PausedChild::start(&["/nowhere/at/all"]).unwrap();
        assert_eq!(held.release().unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn dropping_a_held_command_leaves_no_child() {
        let held = PausedChild::start(&["sleep", "1000"]).unwrap();
        let pid = held.pid();
        drop(held);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn existence_check_sees_processes_and_threads() {
        let own = std::process::id() as i32;
        let tid = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            assert!(exists(tid));
            tid
        });
        assert!(exists(own) && exists(1));
        let held = PausedChild::start(&["sleep", "1000"]).unwrap();
        let child = held.pid() as i32;
        assert!(exists(child));
        drop(held);
        assert!(!exists(child) && !exists(0) && !exists(-1) && tid.join().unwrap() > 0);
    }
}
