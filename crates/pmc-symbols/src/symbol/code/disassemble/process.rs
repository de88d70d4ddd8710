//! Decodes machine code in a process without privileges: pmc, started again under the name [`PROCESS_NAME`].
//!
//! [`DisassemblerProcess`] is pmc's side. It starts the process at the first request, sends small requests
//! together, and starts the process again if it failed. [`serve`] is the side of the process. Both ends of
//! the socket close with their processes, so the process ends when pmc does, even if pmc was killed.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pmc_sys::error::kernel_message;
use pmc_sys::sys::sandbox::{self, SandboxSocket};

use super::decoder::Decoders;
use super::instruction::{CodeRequest, DisassemblyError, Instruction, InstructionSet, Syntax};
use super::messages;

/// The name under which pmc starts itself to decode machine code (`argv[0]`).
pub const PROCESS_NAME: &str = "pmc-disassembler";

/// Maximum number of times to start the process.
const MOST_STARTS: u32 = 8;

/// Maximum size of several requests that are sent together. They fit into a socket's usual buffer. So pmc
/// never waits until the process reads a request while the process waits until pmc reads a reply.
const MOST_PENDING: usize = 32 << 10;

/// Time for a message and its replies. A function of 1 MiB takes less than a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// The variable that names the folders of shared libraries.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The process for the whole program; `None` if the program decodes without it.
static SHARED: Mutex<Option<DisassemblerProcess>> = Mutex::new(None);

fn shared() -> MutexGuard<'static, Option<DisassemblerProcess>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process when it is dropped.
#[derive(Debug)]
#[must_use = "the process ends when this value is dropped"]
pub struct SeparateDecoding(());

impl Drop for SeparateDecoding {
    fn drop(&mut self) {
        // If another thread waits for the process, the process ends when the socket closes.
        if let Ok(mut shared) = SHARED.try_lock()
            && let Some(process) = shared.as_mut()
        {
            process.end();
        }
    }
}

/// Makes this program decode machine code in a separate process, which runs `program` as [`PROCESS_NAME`].
pub fn decode_in(program: PathBuf) -> SeparateDecoding {
    *shared() = Some(DisassemblerProcess::new(program));
    SeparateDecoding(())
}

/// Decodes each code in the process for the whole program; `None` if the program decodes without it.
pub(super) fn answers(codes: &[CodeRequest<'_>]) -> Option<Vec<DecodedCode>> {
    shared().as_mut().map(|process| process.decode(codes))
}

/// The result for one code.
type DecodedCode = Result<Vec<Instruction>, DisassemblyError>;

/// A process that decodes machine code without privileges.
#[derive(Debug)]
pub struct DisassemblerProcess {
    program: PathBuf,
    starts: u32,
    running: Option<RunningDisassembler>,
    last_error: String,
}

impl DisassemblerProcess {
    /// Prepares to start a program, which must call [`serve`] if its name is [`PROCESS_NAME`].
    pub fn new(program: PathBuf) -> Self {
        Self { program, starts: 0, running: None, last_error: String::new() }
    }

    /// Disassembles all of `bytes`, whose address is `start`.
    ///
    /// # Errors
    /// Fails if the process cannot be started, or if it fails.
    pub fn disassemble(
        &mut self,
        machine: InstructionSet,
        syntax: Syntax,
        bytes: &[u8],
        start: u64,
    ) -> Result<Vec<Instruction>, DisassemblyError> {
        self.decode(&[CodeRequest { machine, syntax, start, bytes, is_first_only: false }]).remove(0)
    }

    fn decode(&mut self, codes: &[CodeRequest<'_>]) -> Vec<DecodedCode> {
        let mut all: Vec<DecodedCode> = Vec::with_capacity(codes.len());
        while let Some(rest) = codes.get(all.len()..).filter(|rest| !rest.is_empty()) {
            let decoded = self.ask(rest);
            all.extend(decoded.unwrap_or_else(|error| vec![Err(error)]));
            if let Some(Err(error)) = all.last() {
                // An error that contains the last one would become longer with each code.
                if !matches!(error, DisassemblyError::GaveUp(_)) {
                    self.last_error = error.to_string();
                }
                self.running = None;
            }
        }
        all
    }

    /// Returns the results for the first codes. Only the last one may be an error.
    fn ask(&mut self, codes: &[CodeRequest<'_>]) -> Result<Vec<DecodedCode>, DisassemblyError> {
        // The process may have been killed since its last reply. That is not the fault of this code.
        if let Some(ended) = self.running.as_mut().and_then(RunningDisassembler::ended) {
            self.last_error = format!("it ended with {ended}");
            self.running = None;
        }
        let running = match &mut self.running {
            Some(running) => running,
            None if self.starts == MOST_STARTS => {
                return Err(DisassemblyError::GaveUp(self.last_error.clone()));
            }
            none => {
                self.starts += 1;
                let start = RunningDisassembler::start(&self.program);
                none.insert(start.map_err(|error| {
                    let what = format!("starting {}: {}", self.program.display(), kernel_message(&error));
                    DisassemblyError::SetUp(what)
                })?)
            }
        };
        Ok(running.ask(codes))
    }

    /// Ends the process, and does not start it again.
    fn end(&mut self) {
        self.running = None;
        self.starts = MOST_STARTS;
    }
}

/// The running process. It is killed when this value is dropped.
#[derive(Debug)]
struct RunningDisassembler {
    child: Child,
    stream: BufReader<TimedStream>,
}

/// The socket, until [`PATIENCE`] ends.
#[derive(Debug)]
struct TimedStream {
    socket: UnixStream,
    until: Instant,
}

impl TimedStream {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for TimedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(bytes)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RunningDisassembler {
    fn start(program: &PathBuf) -> io::Result<Self> {
        let (socket, other_end) = UnixStream::pair()?;
        let mut command = Command::new(program);
        // Signals from the terminal only reach pmc, since the process is in another group. Variables such as
        // LD_PRELOAD could load code that the filter does not allow.
        command.arg0(PROCESS_NAME).process_group(0).env_clear();
        command.envs(std::env::var_os(LIBRARIES).map(|folders| (LIBRARIES, folders)));
        command.stdin(OwnedFd::from(other_end)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Self { child, stream: BufReader::new(TimedStream { socket, until: Instant::now() }) })
    }

    /// Returns how the process ended, if it has.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns the results for the first codes. Only the last one may be an error.
    fn ask(&mut self, codes: &[CodeRequest<'_>]) -> Vec<DecodedCode> {
        let (mut message, mut count) = (Vec::new(), 0);
        for code in codes {
            if count > 0 && message.len() + messages::size(code) > MOST_PENDING {
                break;
            }
            messages::add_request(&mut message, code);
            count += 1;
        }
        let stream = self.stream.get_mut();
        stream.until = Instant::now() + PATIENCE;
        let sent = stream.write_all(&message);
        // If the message did not arrive whole, the process waits for the rest, and nothing answers. Only a
        // process that no longer reads may have said why.
        let is_lost = sent.as_ref().is_err_and(|error| !is_closed(error.kind()));
        let mut all: Vec<DecodedCode> = Vec::with_capacity(count);
        for code in &codes[..count] {
            // A process that cannot give up its privileges says so without reading the request.
            let reply = match is_lost {
                true => Err(io::ErrorKind::Other.into()),
                false => messages::read_reply(&mut self.stream, code),
            };
            all.push(match reply {
                Ok(reply) => reply.map_err(DisassemblyError::SetUp),
                Err(error) => Err(DisassemblyError::Failed {
                    start: code.start,
                    size: code.bytes.len(),
                    how: self.failure(sent.as_ref().err().unwrap_or(&error)),
                }),
            });
            if all.last().is_some_and(Result::is_err) {
                break;
            }
        }
        all
    }

    /// Ends the process, even if it does not read, or if it cannot be killed.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _ = rustix::net::shutdown(&self.stream.get_ref().socket, rustix::net::Shutdown::Both);
        let _ = self.child.kill();
        self.child.wait()
    }

    /// Ends the process, and returns the way in which it failed.
    fn failure(&mut self, error: &io::Error) -> String {
        let ended = self.end();
        match error.kind() {
            io::ErrorKind::InvalidData => "its answer is invalid".to_owned(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it did not answer in time".to_owned(),
            kind if kind == io::ErrorKind::UnexpectedEof || is_closed(kind) => {
                ended.map_or_else(|_| "it ended".to_owned(), |status| format!("it ended with {status}"))
            }
            _ => kernel_message(error),
        }
    }
}

/// Whether a write failed because the process has closed its end.
fn is_closed(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Drop for RunningDisassembler {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Answers requests on standard input, a socket, until pmc closes it. Gives up all privileges first.
pub fn serve() {
    // Process lists would show `exe`.
    let _ = rustix::thread::set_name(c"pmc-disassemble");
    // If pmc no longer reads, an error has no reader either.
    let _ = match sandbox::enter() {
        Ok(()) => answer(SandboxSocket, &mut BufWriter::new(SandboxSocket)),
        Err(error) => messages::write_end(&mut SandboxSocket, Some(&error.to_string())),
    };
}

fn answer(requests: impl Read, replies: &mut impl Write) -> io::Result<()> {
    let mut requests = BufReader::new(requests);
    let mut bytes = Vec::new();
    let mut decoders = Decoders::default();
    while let Some(code) = messages::read_request(&mut requests, &mut bytes)? {
        let mut written = Ok(());
        let decoded = decoders.decode(&code, &mut |instruction| {
            written = messages::write_instruction(replies, &instruction);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
        messages::write_end(replies, decoded.err().map(|error| error.to_string()).as_deref())?;
        if requests.buffer().is_empty() {
            replies.flush()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: CodeRequest<'static> = CodeRequest {
        machine: InstructionSet::X86_64,
        syntax: Syntax::Att,
        start: 0x1000,
        bytes: &[0x90, 0xc3],
        is_first_only: false,
    };

    #[test]
    fn programs_that_cannot_answer_are_reported() {
        let mut missing = DisassemblerProcess::new("/nonexistent".into());
        let mut ends = DisassemblerProcess::new("/bin/true".into());
        for _ in 0..MOST_STARTS {
            let error = missing.decode(&[CODE]).remove(0).unwrap_err().to_string();
            assert!(error.contains("starting /nonexistent: No such file or directory (ENOENT)"), "{error}");
            let error = ends.decode(&[CODE]).remove(0).unwrap_err().to_string();
            assert!(error.contains("the 2 bytes of code at 0x1000: it ended with exit status: 0"), "{error}");
        }
        for (mut process, last) in [(missing, "No such file"), (ends, "exit status: 0")] {
            let all = process.decode(&[CODE, CODE]);
            assert_eq!(all.len(), 2);
            let error = all[1].as_ref().unwrap_err().to_string();
            assert!(error.contains("too often") && error.contains(last), "{error}");
            assert!(all.iter().chain(&process.decode(&[CODE; 1000])).all(|one| *one == all[0]));
        }
    }

    /// A process that fails at one code still decodes the others.
    #[test]
    fn requests_after_a_failure_are_sent_again() {
        let mut ends = DisassemblerProcess::new("/bin/true".into());
        let all = ends.decode(&[CODE; 20]);
        let failed = all.iter().filter(|one| matches!(one, Err(DisassemblyError::Failed { .. }))).count();
        assert_eq!((all.len(), failed), (20, MOST_STARTS as usize));
    }

    #[test]
    fn answers_fit_the_requests() {
        let first = CodeRequest { is_first_only: true, ..CODE };
        let arm = CodeRequest { machine: InstructionSet::Aarch64, bytes: &[0x1f, 0x20, 0x03, 0xd5], ..CODE };
        let mut requests = Vec::new();
        let codes =
            [CODE, first, arm, CodeRequest { bytes: &[], ..CODE }, CodeRequest { bytes: &[6], ..first }];
        codes.iter().for_each(|code| messages::add_request(&mut requests, code));
        let mut replies = Vec::new();
        answer(&requests[..], &mut replies).unwrap();
        let mut replies = &replies[..];
        let counts = codes.map(|code| messages::read_reply(&mut replies, &code).unwrap().unwrap().len());
        assert_eq!((counts, replies), ([2, 1, 1, 0, 0], &[][..]));
    }
}
