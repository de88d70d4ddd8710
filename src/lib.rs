//! pmc: counts, samples and explains the activity of a Linux machine.
//!
//! This library is the program; the binary calls [`command::main`] and exits with its status. The engines
//! are the libraries in `crates`. `docs/architecture.md` shows the crates, follows data through the modules,
//! and lists where additions go.
//!
//! - [`command`] wires one command each, with [`cli`] (its options) and [`config`] (perf's settings).
//!   [`pmc_command`] is what commands share, [`pmc_tools`] and [`pmc_persist`] are whole tools, and
//!   [`pmc_compat`] translates the command lines of other tools.
//! - [`pmc_view`] formats text and documents, [`pmc_tui`] is the full-screen view, and [`pmc_formats`] knows
//!   the formats of other programs.
//! - [`pmc_recording`] measures, and [`pmc_analysis`] answers questions about recordings and live data.
//! - [`pmc_events`] turns text into running counters.
//! - [`pmc_perfdata`] reads and writes recordings, and [`pmc_symbols`] names addresses.
//! - [`pmc_sys`] is the kernel, and [`pmc_text`] text and numbers.

pub mod cli;
pub mod command;
pub mod config;
#[cfg(test)]
#[path = "../tests/kit/unit.rs"]
mod kit;
mod settings;
