//! `pmcstat`, FreeBSD's tool that counts and samples.
//!
//! ```text
//!   options ── requests ──┬──► Action: pmc's record, stat record, top, report, export, list
//!                         ├──► counters: a table with one column per counter
//!                         └──► log, text: a log in pmcstat's formats
//! ```

pub mod counters;
mod log;
pub mod options;
mod requests;
mod text;

use std::ffi::OsString;
use std::io::BufWriter;
use std::net::TcpStream;

use self::counters::Columns;
use self::requests::{Output, Plan, Work};
use crate::{Action, words_if_named};
use pmc_sys::error::advice::{AdvisedOption, OptionLetters};
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::{output_file, signal, standard_output};

pub use self::requests::Step;

const NAME: &str = "pmcstat";
/// pmcstat's letters for the options that pmc's advice mentions.
const LETTERS: OptionLetters = &[
    (AdvisedOption::Period, "-n"),
    (AdvisedOption::Input, "-R"),
    (AdvisedOption::Processes, "-t"),
    (AdvisedOption::Recording, "-O"),
    (AdvisedOption::ExportFile, "-F"),
    (AdvisedOption::ExportFolder, "-D"),
];

/// What remains to be done after the options have been parsed.
pub enum Personality {
    /// Nothing.
    Done(Exit),
    /// pmc commands to run, and counters to print during the recording.
    Steps(Vec<Step>, Option<Columns>),
}

/// Runs `pmcstat` if this process was started under that name; returns `None` otherwise.
pub fn if_named() -> Option<Personality> {
    Some(act(words_if_named(NAME)?).unwrap_or_else(|error| Personality::Done(failed(&error))))
}

fn act(words: impl Iterator<Item = OsString>) -> Result<Personality> {
    let host = Host::live();
    let plan = requests::answer(words, &host)?;
    say::spell_options(LETTERS);
    Ok(match plan {
        Plan::Columns(plan) => Personality::Done(counters::run(&plan, &host)?),
        Plan::Steps(steps, columns) => Personality::Steps(steps, columns),
    })
}

fn failed(error: &Error) -> Exit {
    say::error(error);
    status(error.exit_status())
}

/// Runs the steps until one fails, and returns the exit status of the last one. `run` runs a command of pmc,
/// and prints the counters during a recording.
pub fn carry_out(steps: Vec<Step>, run: impl Fn(Action) -> Exit) -> Exit {
    let mut exit = Exit::Done;
    // If several steps have the same output file, it receives the output of all of them.
    let mut begun = Vec::new();
    for Step { work, output, log: _log } in steps {
        let done = send_output(&output, &mut begun).and_then(|()| match work {
            Work::Run(action) => Ok(run(action)),
            Work::Print(log, format) => {
                signal::release();
                match output {
                    Output::Error => log::print(*log, format, &mut BufWriter::new(std::io::stderr()))?,
                    _ => log::print(*log, format, &mut BufWriter::new(std::io::stdout()))?,
                }
                Ok(Exit::Done)
            }
        });
        exit = match done {
            Ok(exit) => status(exit),
            Err(error) => failed(&error),
        };
        if exit != Exit::Done {
            break;
        }
    }
    exit
}

/// Redirects standard output to a file or a network connection.
fn send_output(output: &Output, begun: &mut Vec<String>) -> Result<()> {
    let cannot = |what: &str, error| {
        Error::io(format!("ERROR: Cannot open \"{what}\" for writing"), error).exit(Exit::NotCreated)
    };
    match output {
        Output::Standard | Output::Error => Ok(()),
        Output::File(path) => {
            let again = begun.contains(path);
            let file = output_file::create(path.as_ref(), 0o666, again)
                .and_then(|file| standard_output::replace(file, path));
            begun.push(path.clone());
            file.map_err(|error| cannot(path, error))
        }
        Output::Socket(to) => {
            let stream = TcpStream::connect(to).and_then(|stream| standard_output::replace(stream, to));
            stream.map_err(|error| cannot(to, error))
        }
    }
}

// The exit status for usage errors, from sysexits(3).
const USAGE: u8 = 64;
const NO_TARGETS: u8 = 65;
const UNAVAILABLE: u8 = 69;
const OS_ERROR: u8 = 71;

/// Converts an exit status to pmcstat's: a code of sysexits(3), never the command's own status.
pub fn status(exit: Exit) -> Exit {
    match exit {
        Exit::Usage => Exit::Command(USAGE),
        Exit::Failure | Exit::NotCreated => Exit::Command(OS_ERROR),
        Exit::NotExecutable | Exit::NotFound => Exit::Command(UNAVAILABLE),
        Exit::Command(status @ (USAGE | NO_TARGETS | UNAVAILABLE | OS_ERROR)) => Exit::Command(status),
        Exit::Done | Exit::Command(_) | Exit::Signal(_) | Exit::Interrupted(_) => Exit::Done,
    }
}
