//! The `pmcstat` personality: under that name, pmc accepts FreeBSD's options ([`plan`]). pmc's own commands
//! sample, read recordings and list events; `pmc-compat` has pmcstat's own formats and its counter table.

mod plan;

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::net::TcpStream;

pub(super) use self::plan::PmcstatAction;
use self::plan::{PmcstatOutput, PmcstatPlan, PmcstatStep};
use pmc_compat::pmcstat::counters::{self, Columns};
use pmc_compat::pmcstat::{LETTERS, NAME, status};
use pmc_compat::words_if_named;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::{output_file, standard_output};

/// What remains to be done after the options have been parsed.
pub(super) enum Personality {
    /// Nothing.
    Done(Exit),
    /// pmc commands to run, and counters to print during the recording.
    Steps(Vec<PmcstatStep>, Option<Columns>),
}

/// Runs `pmcstat` if this process was started under that name; returns `None` otherwise.
pub(super) fn if_named() -> Option<Personality> {
    Some(act(words_if_named(NAME)?).unwrap_or_else(|error| Personality::Done(failed(&error))))
}

fn act(words: impl Iterator<Item = OsString>) -> Result<Personality> {
    let host = Host::live();
    let plan = plan::answer(words, &host)?;
    say::spell_options(LETTERS);
    Ok(match plan {
        PmcstatPlan::Columns(plan) => Personality::Done(counters::run(&plan, &host)?),
        PmcstatPlan::Steps(steps, columns) => Personality::Steps(steps, columns),
    })
}

fn failed(error: &Error) -> Exit {
    say::error(error);
    status(error.exit_status())
}

/// Runs the steps until one fails, and returns the exit status of the last one. `run` performs one step.
pub(super) fn carry_out(
    steps: Vec<PmcstatStep>,
    run: impl Fn(PmcstatAction, &mut dyn Write) -> Result<Exit>,
) -> Exit {
    let mut exit = Exit::Done;
    // If several steps have the same output file, it receives the output of all of them.
    let mut begun = Vec::new();
    for PmcstatStep { action, output, log: _log } in steps {
        let done = send_output(&output, &mut begun).and_then(|()| match output {
            PmcstatOutput::Error => run(action, &mut BufWriter::new(std::io::stderr())),
            _ => run(action, &mut BufWriter::new(std::io::stdout())),
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
fn send_output(output: &PmcstatOutput, begun: &mut Vec<String>) -> Result<()> {
    let cannot = |what: &str, error| {
        Error::io(format!("ERROR: Cannot open \"{what}\" for writing"), error).exit(Exit::NotCreated)
    };
    match output {
        PmcstatOutput::Standard | PmcstatOutput::Error => Ok(()),
        PmcstatOutput::File(path) => {
            let again = begun.contains(path);
            let file = output_file::create(path.as_ref(), 0o666, again)
                .and_then(|file| standard_output::replace(file, path));
            begun.push(path.clone());
            file.map_err(|error| cannot(path, error))
        }
        PmcstatOutput::Socket(to) => {
            let stream = TcpStream::connect(to).and_then(|stream| standard_output::replace(stream, to));
            stream.map_err(|error| cannot(to, error))
        }
    }
}
