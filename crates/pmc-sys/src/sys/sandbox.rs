//! Confines this process to decoding bytes: it can read and write one socket, and allocate memory.
//!
//! For processes that pmc starts to run a C library on untrusted bytes. If such bytes take over the process,
//! they can compute and choose what it answers. They cannot open, start, signal or inspect anything.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::limits::limit;
use super::signal;

/// Limits on the process: address space in bytes, CPU time in seconds, and the size of a core dump.
///
/// The CPU time ends a process that loops after pmc has ended. It suffices for gigabytes of machine code.
const LIMITS: [(Resource, u64); 3] = [(Resource::As, 1 << 30), (Resource::Cpu, 600), (Resource::Core, 0)];

/// The only socket of a confined process: its standard input.
#[derive(Debug, Clone, Copy)]
pub struct SandboxSocket;

impl Read for SandboxSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(rustix::stdio::stdin(), bytes)?)
    }
}

impl Write for SandboxSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(rustix::stdio::stdin(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Closes all descriptors except [`SandboxSocket`], and gives up all capabilities and all system calls that
/// are not needed to compute. Any other system call then kills the process. The process must have only this
/// thread.
///
/// # Errors
/// Returns the kernel's error, with the step that failed.
pub fn enter() -> io::Result<()> {
    let step =
        |what: &'static str| move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
    for (resource, most) in LIMITS {
        lower(resource, most).map_err(step("cannot lower its limits"))?;
    }
    close_others().map_err(step("cannot close its descriptors"))?;
    // Rust's handlers would use system calls that the filter refuses, and hide the cause of a crash.
    signal::restore_default(&[libc::SIGSEGV, libc::SIGBUS]);
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).map_err(|error| step("cannot give up its capabilities")(error.into()))?;
    let failed = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("cannot install its seccomp filter: {error}"))
    };
    let filter = filter().map_err(|error| failed(&error))?;
    // Also sets no_new_privs.
    seccompiler::apply_filter(&filter).map_err(|error| failed(&error))
}

fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let most = limit(resource)?.maximum.map_or(most, |present| present.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Closes all descriptors except standard input. Linux before 5.9 cannot, and the filters of older container
/// runtimes refuse it. Then they stay open, but the filter of this process refuses to use them.
fn close_others() -> io::Result<()> {
    // SAFETY: the process is about to use only standard input. Objects that own other descriptors do not use
    // them again.
    match unsafe { libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
            error => Err(error),
        },
    }
}

/// Returns the filter of system calls.
fn filter() -> Result<BpfProgram, BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let when = |conditions: &[(u8, SeccompCmpOp, i32)]| {
        let condition = |(argument, is, value): &(u8, SeccompCmpOp, i32)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, is.clone(), *value as u64)
        };
        let conditions = conditions.iter().map(condition).collect::<Result<_, _>>()?;
        Ok::<_, BackendError>(vec![SeccompRule::new(conditions)?])
    };
    let is_socket = || when(&[(0, Eq, libc::STDIN_FILENO)]);
    let not_executable = (2, MaskedEq(libc::PROT_EXEC as u64), 0);
    let anonymous = (3, MaskedEq(libc::MAP_ANONYMOUS as u64), libc::MAP_ANONYMOUS);
    let mut allowed = BTreeMap::from([
        (libc::SYS_read, is_socket()?),
        (libc::SYS_write, is_socket()?),
        (libc::SYS_mmap, when(&[not_executable.clone(), anonymous])?),
        (libc::SYS_mprotect, when(&[not_executable])?),
    ]);
    // Memory, locks and random numbers of the allocator; the end of the process.
    let without_conditions = [
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    allowed.extend(without_conditions.map(|call| (call, Vec::new())));
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(allowed, SeccompAction::KillProcess, SeccompAction::Allow, architecture)?.try_into()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// The action that the test program performs in the sandbox.
    const ACTION: &str = "PMC_TEST_IN_SANDBOX";

    /// Not a test, but the program of the tests below. A failed assertion would be a refused write.
    #[test]
    fn program_in_sandbox() {
        let Ok(action) = std::env::var(ACTION) else { return };
        let file = std::fs::File::open("/proc/self/status").unwrap();
        enter().unwrap();
        match action.as_str() {
            "compute" => {
                // One large block: before glibc shrinks the heap of a thread other than the main
                // thread, it opens a file.
                let sum: u64 = (1..=1 << 20).collect::<Vec<u64>>().iter().sum();
                let mut line = String::new();
                io::BufRead::read_line(&mut io::BufReader::new(SandboxSocket), &mut line).unwrap();
                SandboxSocket.write_all(format!("{line}{sum}").as_bytes()).unwrap();
            }
            "open" => drop(std::fs::File::open("/")),
            "read" => drop(rustix::io::read(&file, &mut [0; 1])),
            "write" => drop(rustix::io::write(rustix::stdio::stderr(), b"x")),
            "socket" => drop(std::os::unix::net::UnixStream::pair()),
            // SAFETY: a child would only exit.
            "fork" => unsafe {
                libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
            },
            "kill" => drop(rustix::process::test_kill_process(rustix::process::getpid())),
            "exec" => {
                // SAFETY: the strings end with NUL; the call returns only if it fails.
                unsafe { libc::execv(c"/bin/true".as_ptr(), [std::ptr::null()].as_ptr()) };
            }
            "code" => {
                let rwx = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
                // SAFETY: a new mapping, which is not accessed.
                unsafe {
                    libc::mmap(std::ptr::null_mut(), 1, rwx, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
                };
            }
            // SAFETY: the page belongs to this stack, and does not become executable.
            "executable" => unsafe {
                let page = (&raw const action as usize & !0xfff) as *mut libc::c_void;
                libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
            },
            // SAFETY: a new mapping, which is not accessed.
            "map" => unsafe {
                libc::mmap(std::ptr::null_mut(), 1, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
            },
            "memory" => drop(std::hint::black_box(vec![1_u8; 3 << 30])),
            // SAFETY: meant to crash.
            "crash" => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
            _ => {}
        }
        // Exits without the other threads of the test harness, which are not confined.
        // SAFETY: ends the process.
        unsafe { libc::_exit(44) };
    }

    /// Runs the program with a socket.
    fn run(action: &str, sent: &[u8]) -> (std::process::ExitStatus, String) {
        let (mut socket, other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut program = Command::new(std::env::current_exe().unwrap());
        program
            .args(["--exact", "--nocapture", "sys::sandbox::tests::program_in_sandbox"])
            .env(ACTION, action);
        program.stdin(std::os::fd::OwnedFd::from(other_end)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = program.spawn().unwrap();
        drop(program);
        socket.write_all(sent).unwrap();
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        (child.wait().unwrap(), answer)
    }

    #[test]
    fn confined_process_computes_and_answers() {
        let (status, answer) = run("compute", b"sum\n");
        assert_eq!((status.code(), answer.as_str()), (Some(44), "sum\n549756338176"));
        assert_eq!(run("nothing", b"").0.code(), Some(44));
    }

    #[test]
    fn other_calls_kill_a_confined_process() {
        for action in ["open", "read", "write", "socket", "fork", "kill", "exec", "code", "executable", "map"]
        {
            assert_eq!(run(action, b"").0.signal(), Some(libc::SIGSYS), "{action}");
        }
        assert_eq!(run("crash", b"").0.signal(), Some(libc::SIGSEGV));
        // The allocation fails, and the message about it is another refused call.
        assert_eq!(run("memory", b"").0.signal(), Some(libc::SIGSYS));
    }
}
