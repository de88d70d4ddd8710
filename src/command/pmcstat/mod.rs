//! The `pmcstat` personality: pmc called by that name takes FreeBSD's options, by [`plan`]. What samples,
//! reads recordings or lists is one of pmc's own commands in other words; counters in [`columns`] are its
//! own.

mod columns;
mod plan;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::net::TcpStream;
use std::path::Path;

pub(super) use self::columns::beside;
pub(super) use self::plan::Columns;
use self::plan::{Answer, Output};
use crate::error::{Error, Exit, Result, say};
use crate::host::Host;

const NAME: &str = "pmcstat";

/// What is left to do.
pub(super) enum Personality {
    /// Nothing.
    Done(Exit),
    /// The command that these words are, with counters beside it if it records; its exit is [`status`].
    Words(Vec<OsString>, Option<Columns>),
}

/// Behaves as `pmcstat` if that is the name by which this process was started; `None` otherwise.
pub(super) fn if_named() -> Option<Personality> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    if Path::new(&program).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    Some(act(words).unwrap_or_else(|error| {
        say::error(&error);
        Personality::Done(status(error.exit_status()))
    }))
}

fn act(words: impl Iterator<Item = OsString>) -> Result<Personality> {
    let host = Host::live();
    Ok(match plan::answer(words, &host)? {
        Answer::Columns(plan) => Personality::Done(columns::run(&plan, &host)?),
        Answer::Command(words, output, columns) => {
            send_output(&output)?;
            Personality::Words(words, columns)
        }
    })
}

/// Puts a file or a connection in the place of standard output.
fn send_output(output: &Output) -> Result<()> {
    let cannot = |what: &str, error| {
        Error::io(format!("ERROR: Cannot open \"{what}\" for writing"), error)
            .exit(Exit::Command(CANNOT_CREATE))
    };
    match output {
        Output::Standard => Ok(()),
        Output::File(path) => {
            let file = File::create(path).map_err(|error| cannot(path, error))?;
            rustix::stdio::dup2_stdout(&file).map_err(|error| cannot(path, error.into()))
        }
        Output::Socket(to) => {
            let stream = TcpStream::connect(to).map_err(|error| cannot(to, error))?;
            rustix::stdio::dup2_stdout(&stream).map_err(|error| cannot(to, error.into()))
        }
    }
}

// sysexits(3)
const USAGE: u8 = 64;
const NO_TARGETS: u8 = 65;
const UNAVAILABLE: u8 = 69;
const OS_ERROR: u8 = 71;
const CANNOT_CREATE: u8 = 73;

/// How pmcstat ends where pmc ends so: by sysexits(3), and without the command's own status.
pub(super) fn status(exit: Exit) -> Exit {
    match exit {
        Exit::Usage => Exit::Command(USAGE),
        Exit::Failure => Exit::Command(OS_ERROR),
        Exit::NotExecutable | Exit::NotFound => Exit::Command(UNAVAILABLE),
        Exit::Command(status @ (USAGE | NO_TARGETS | UNAVAILABLE | OS_ERROR | CANNOT_CREATE)) => {
            Exit::Command(status)
        }
        Exit::Done | Exit::Command(_) | Exit::Signal(_) | Exit::Interrupted(_) => Exit::Done,
    }
}
