//! pmc: counts, samples and explains the activity of a Linux machine.
//!
//! This library is the program; the binary calls [`command::main`] and exits with its status. The engines
//! are the libraries in `crates`. `docs/architecture.md` shows the floors, follows data through the modules,
//! and lists where each kind of addition goes. `tests/architecture` checks which modules may import which.
//!
//! - [`command`] wires one command each, with [`cli`] (its options), [`view`] (text and documents), [`tui`]
//!   (the full-screen view) and [`config`] (perf's settings).
//! - [`pmc_recording`] measures, and [`pmc_analysis`] answers questions about recordings and live data.
//! - [`pmc_events`] turns text into running counters.
//! - [`pmc_perfdata`] reads and writes recordings, and [`pmc_symbols`] names addresses.
//! - [`pmc_sys`] is the ground: the kernel, text and numbers.

pub mod cli;
pub mod command;
pub mod config;
#[cfg(test)]
#[path = "../tests/kit/unit.rs"]
mod kit;
mod settings;
