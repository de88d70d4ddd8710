//! `pmc mcp`: answers questions of AI agents about recordings, over the Model Context Protocol.
//!
//! Connects the parts. [`protocol`] reads requests and writes answers, [`tools`] describes the tools and
//! checks their arguments, [`recordings`] and [`runs`] carry them out, and [`agent`] formats and limits the
//! answers.
//!
//! ```text
//!   stdin ── protocol ── tools ─┬─ recordings ──> analysis ─┬─ view::agent ── protocol ── stdout
//!                               └─ runs ──> record, stat ───┘
//! ```

mod capture;
mod protocol;
mod recordings;
mod runs;
mod tools;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use rustix::event::{PollFd, PollFlags};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use serde_json::{Map, Value as Json, json};

use super::info;
use crate::cli::mcp::McpArgs;
use pmc_command::options::settings::RecordingSettings;
use pmc_recording::recording::launch;
use pmc_symbols::symbol::SymbolOptions;
use pmc_symbols::worker_threads::STACK;
use pmc_sys::error::{Error, Exit, Result, kernel_message};
use pmc_sys::sys::signal::{self, Signals};
use pmc_sys::sys::{descriptor, wait};
use pmc_view::agent::{self, AgentAnswer, AnswerLimit};
use protocol::{ToolHost, ToolResult};
use runs::RunContext;
use tools::{PageArguments, ToolCall};

/// What the server permits, and where it looks for symbols.
#[derive(Debug)]
pub(super) struct McpRequest {
    /// Whether the tools may run commands and write recordings.
    allows_record: bool,
    /// Maximum duration of a recording or comparison in seconds.
    max_seconds: u64,
    /// Maximum size of a recording in bytes.
    max_size: u64,
    /// Where to look for symbols; never on the network.
    symbols: SymbolOptions,
    /// perf's settings for recordings.
    settings: RecordingSettings,
}

impl Default for McpRequest {
    fn default() -> Self {
        let environment = SymbolOptions::from_environment();
        Self {
            allows_record: false,
            max_seconds: 60,
            max_size: 100 << 20,
            symbols: SymbolOptions { debuginfod: None, debuginfod_cache: None, ..environment },
            settings: RecordingSettings::default(),
        }
    }
}

impl McpArgs {
    /// Returns what the server permits.
    pub(super) fn request(self) -> McpRequest {
        let Self { allow_record: allows_record, max_seconds, max_size, settings } = self;
        McpRequest { allows_record, max_seconds, max_size, settings, ..McpRequest::default() }
    }
}

/// Runs the server until its standard input ends.
///
/// # Errors
/// Fails if reading requests or writing answers fails.
pub(super) fn run(request: &McpRequest) -> Result<Exit> {
    let failed = |error| Error::io("connecting to the client", error);
    // Block the signals before any thread starts. A thread with unblocked signals would take SIGCHLD from the
    // measurement that waits for it.
    let signals = launch::signals(&[signal::USR1, signal::USR2])?;
    let (input, mut output) = take_streams().map_err(failed)?;
    let mut input = BufReader::new(ClientInput { file: input, signals, interrupted: None });
    let served = serve(request, &mut input, &mut output);
    input.get_ref().interrupted.map_or(served, |signal| Ok(Exit::Interrupted(signal)))
}

/// Answers the messages in `input` until it ends, or a signal interrupts a tool.
///
/// # Errors
/// Fails if reading requests or writing answers fails.
pub(super) fn serve(request: &McpRequest, input: &mut impl BufRead, output: &mut impl Write) -> Result<Exit> {
    let mut server = McpServer { request, interrupted: None };
    let served = protocol::serve(input, output, &mut server);
    match server.interrupted {
        Some(signal) => Ok(Exit::Interrupted(signal)),
        None => served.map(|()| Exit::Done).map_err(|error| Error::output("an answer to the client", error)),
    }
}

/// The client's requests. Reading fails when a signal asks the server to end.
struct ClientInput {
    file: File,
    signals: Signals,
    /// The signal.
    interrupted: Option<i32>,
}

impl Read for ClientInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            while let Some(caught) = self.signals.next() {
                if signal::ENDING.contains(&caught.signal) {
                    self.interrupted = Some(caught.signal);
                    return Err(io::Error::other("interrupted by a signal"));
                }
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            // A reader would repeat after EINTR.
            wait::poll(&mut fds, None).map_err(|error| io::Error::other(kernel_message(&error.into())))?;
            if !fds[0].revents().is_empty() {
                return self.file.read(buffer);
            }
        }
    }
}

/// Reads a recording in a thread, which gives up the capabilities that the server needs to record.
fn read(answer: impl FnOnce() -> Result<AgentAnswer> + Send) -> Result<AgentAnswer> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("reader".into()).stack_size(STACK);
        let thread =
            thread.spawn_scoped(scope, answer).map_err(|error| Error::io("starting a thread", error))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the streams of the protocol. Their descriptors 0 and 1 then lead to `/dev/null`, so that commands
/// and pmc's own code can neither read requests nor write between answers.
fn take_streams() -> io::Result<(File, File)> {
    let (input, output) = (descriptor::duplicate(0)?, descriptor::duplicate(1)?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok((input, output))
}

/// The tools, and the state of the session.
struct McpServer<'a> {
    request: &'a McpRequest,
    /// The signal that interrupted a tool, after which the server ends.
    interrupted: Option<i32>,
}

impl ToolHost for McpServer<'_> {
    fn tools(&self) -> Json {
        tools::descriptions()
    }

    fn call(&mut self, name: &str, arguments: &Map<String, Json>) -> Option<ToolResult> {
        let row = tools::named(name)?;
        let ran = tools::read(row, arguments).and_then(|(call, page)| {
            if row.acts && !self.request.allows_record {
                return Err(not_allowed());
            }
            let PageArguments { offset, limit: rows, limit_bytes: bytes } = page;
            let limit = AnswerLimit { bytes, offset, rows };
            self.answer(call, limit).map(|answer| agent::limited(&answer, name, arguments, limit))
        });
        Some(match ran {
            Ok(document) => ToolResult { is_error: document.get("failure").is_some(), document },
            Err(error) => ToolResult { document: described(&error), is_error: true },
        })
    }

    fn is_over(&self) -> bool {
        self.interrupted.is_some()
    }
}

impl McpServer<'_> {
    fn answer(&mut self, call: ToolCall, limit: AnswerLimit) -> Result<AgentAnswer> {
        let symbols = &self.request.symbols;
        let running = RunContext { server: self.request, limit };
        let (answer, exit) = match call {
            ToolCall::Hot(arguments) => return read(|| recordings::hot(&arguments, symbols, limit)),
            ToolCall::Tree(arguments) => return read(|| recordings::tree(&arguments, symbols, limit)),
            ToolCall::Source(arguments) => return read(|| recordings::source(&arguments, symbols, limit)),
            ToolCall::Waits(arguments) => return read(|| recordings::waits(&arguments, symbols, limit)),
            ToolCall::Locks(arguments) => return read(|| recordings::locks(&arguments, symbols, limit)),
            ToolCall::Diff(arguments) => return read(|| recordings::diff(&arguments, symbols, limit)),
            ToolCall::Timeline(arguments) => {
                return read(|| recordings::timeline(&arguments, symbols, limit));
            }
            ToolCall::Doctor => {
                let McpRequest { allows_record, max_seconds, max_size, .. } = self.request;
                let server =
                    json!({"allow_record": allows_record, "max_seconds": max_seconds, "max_bytes": max_size});
                return Ok(agent::doctor(&info::machine_report(), server, limit));
            }
            ToolCall::Record(arguments) => running.record(arguments)?,
            ToolCall::StatCompare(arguments) => running.compare(arguments)?,
        };
        if let Exit::Interrupted(signal) = exit {
            self.interrupted = Some(signal);
        }
        Ok(answer)
    }
}

/// Returns the error for a tool that needs `--allow-record`.
fn not_allowed() -> Error {
    Error::new("this server may not record")
        .why("recording runs commands and writes files, which the user must allow")
        .try_this("ask the user to start the server with: pmc mcp --allow-record")
}

/// Returns the document for an error, with bounded and clean texts.
fn described(error: &Error) -> Json {
    /// Maximum length of each text in bytes.
    const LONGEST: usize = 300;
    let mut document = json!({"error": error.headline()});
    if let Some(cause) = error.cause() {
        document["why"] = cause.into();
    }
    let remedies = error.remedies();
    if !remedies.is_empty() {
        document["try"] = remedies.into();
    }
    agent::cleaned(&document, LONGEST, &mut false)
}
