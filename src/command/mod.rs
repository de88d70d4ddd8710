//! The commands: each turns what was typed into a plan, runs it, and hands the result to a view.
//!
//! One file (or folder) a command; wires the layers, computes and formats nothing.

mod annotate;
mod buildid_list;
mod diff;
mod evlist;
mod export;
mod info;
mod list;
mod perfalloc;
mod plan;
mod progress;
mod reasons;
mod record;
mod recording_screen;
mod report;
mod reserve;
mod sampling_options;
mod screen;
mod script;
mod stat;
mod top;
mod usage;
mod version;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::cli::perf_only::PERF_ONLY;
use crate::cli::{Cli, Command};
use crate::error::{Exit, Result, say};
use crate::host::Host;

/// Parses the command line, runs one command, prints its error, and says how the process ends.
pub fn main() -> Exit {
    if let Some(exit) = perfalloc::main_if_named() {
        return exit;
    }
    let cli = match parse() {
        Ok(cli) => cli,
        // Help, and the version, are no errors; the list of commands stands for want of one.
        Err(answer) if !answer.use_stderr() || answer.kind() == ErrorKind::MissingSubcommand => {
            let _ = answer.print();
            return if answer.use_stderr() { Exit::Usage } else { Exit::Done };
        }
        Err(complaint) => {
            say::error(&usage::error(&complaint, PERF_ONLY));
            return Exit::Usage;
        }
    };
    match run(cli) {
        Ok(exit) => exit,
        Err(error) => {
            say::error(&error);
            error.exit_status()
        }
    }
}

/// The command line, with what a value alone does not tell: where it stood among others.
fn parse() -> std::result::Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Command::Record(record), Some(matches)) = (&mut cli.command, matches.subcommand_matches("record"))
    {
        let places = |of| matches.indices_of(of).into_iter().flatten().collect::<Vec<usize>>();
        let events = places("events");
        let before = |place: usize| events.iter().filter(|event| **event < place).count();
        record.filter_places = places("filter").into_iter().map(before).collect();
    }
    Ok(cli)
}

fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Stat(typed) => {
            say::be_quiet(typed.quiet);
            stat::run(stat::Plan::new(*typed, &Host::live())?)
        }
        Command::Record(typed) => {
            say::be_quiet(typed.quiet);
            record::run(record::Plan::new(*typed, &Host::live())?)
        }
        Command::Info(typed) => info::run(&typed),
        Command::Report(typed) => report::run(report::Plan::new(&typed)?),
        Command::Top(typed) => {
            say::be_quiet(typed.quiet);
            top::run(top::Plan::new(&typed, &Host::live())?)
        }
        Command::Annotate(typed) => annotate::run(annotate::Plan::new(&typed)?),
        Command::Diff(typed) => diff::run(&diff::Plan::new(&typed)?),
        Command::Script(typed) => script::run(&script::Plan::new(&typed)?),
        Command::Export(typed) => export::run(&export::Plan::new(&typed.source, typed.format.as_deref())?),
        Command::Flamegraph(typed) => export::run(&export::Plan::flame_graph(&typed.source)?),
        Command::Evlist(typed) => evlist::run(&evlist::Plan::new(&typed)),
        Command::BuildidList(typed) => buildid_list::run(&buildid_list::Plan::new(&typed)),
        Command::Version(typed) => version::run(typed.build_options),
        Command::Reserve(typed) => reserve::run(typed),
        Command::List(typed) => list::run(&typed),
    }
}
