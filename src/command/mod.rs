//! The commands: each turns what was typed into a plan, runs it, and hands the result to a view.
//!
//! One file (or folder) a command; wires the layers, computes and formats nothing.

mod annotate;
mod control;
mod diff;
mod ending;
mod header;
mod info;
mod launch;
mod list;
mod perfalloc;
mod record;
mod report;
mod reserve;
mod screen;
mod script;
mod stat;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::error::{Exit, Result, say};

/// Parses the command line, runs one command, prints its error, and says how the process ends.
pub fn main() -> Exit {
    if let Some(exit) = perfalloc::main_if_named() {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
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

fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        Command::Stat(typed) => stat::run(*typed),
        Command::Record(typed) => record::run(*typed),
        Command::Info(typed) => info::run(&typed),
        Command::Report(typed) => report::run(&typed),
        Command::Annotate(typed) => annotate::run(&typed),
        Command::Diff(typed) => diff::run(&typed),
        Command::Script(typed) => script::run(&typed),
        Command::Reserve(typed) => reserve::run(typed),
        Command::List(typed) => list::run(&typed),
    }
}
