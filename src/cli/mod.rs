//! What can be typed: the clap parser, one file a command, no logic.
//!
//! Commands turn what was typed into what it means; nothing below knows that clap exists.

pub mod annotate;
pub mod info;
pub mod list;
pub mod perfalloc;
pub mod record;
pub mod report;
pub mod reserve;
pub mod script;
pub mod stat;
pub mod top;

use clap::{Parser, Subcommand};

/// A profiler for Linux: counts, samples and explains.
#[derive(Debug, Parser)]
#[command(name = "pmc", version, about, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count events
    Stat(Box<stat::Stat>),
    /// Sample where time goes, into a file
    Record(Box<record::Record>),
    /// Show what this machine can measure, who holds its counters, and what this user may do
    Info(info::Info),
    /// Show where the time went in a recording
    Report(Box<report::Report>),
    /// Show where time goes, now
    Top(Box<top::Top>),
    /// Show what each instruction and source line of a function cost
    Annotate(Box<annotate::Annotate>),
    /// Print the samples of a recording one by one
    Script(Box<script::Script>),
    /// Reserve the hardware counters
    Reserve(reserve::Reserve),
    /// List the events that can be counted here, each tried
    List(list::List),
}
