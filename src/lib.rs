//! pmc: counts, samples and explains the activity of a Linux machine.
//!
//! The library is the whole program; the binary calls [`command::main`] and exits with its status.
//! `docs/architecture.md` shows the floors, follows data through the modules, and lists where each kind of
//! addition goes. `tests/architecture` checks which modules may import which.
//!
//! - [`command`] wires one command each, with [`cli`] (its options), [`view`] (text and documents) and
//!   [`tui`] (the full-screen view).
//! - Two engines: [`recording`] measures, and [`analysis`] answers questions about recordings and live data.
//!   `holder` keeps events open for other processes. [`profile`] aggregates, without I/O.
//! - The measuring wing turns text into running counters: [`host`], [`event`], [`counter`] and
//!   [`persistent`].
//! - The reading wing turns bytes into named samples: [`perfdata`], [`session`], [`unwind`] and [`symbol`].
//!   The wings never import each other.
//! - The ground: [`sys`] (the kernel; all `unsafe`), [`record`] and [`abi`] (the kernel's records and
//!   numbers), [`error`], [`config`], [`terminal`], [`text`], [`units`], [`address`] and `sort`.

pub mod abi;
pub mod address;
pub mod analysis;
pub mod cli;
pub mod command;
pub mod config;
pub mod counter;
pub mod error;
pub mod event;
pub(crate) mod holder;
pub mod host;
#[cfg(test)]
mod need;
pub mod perfdata;
pub mod persistent;
pub mod profile;
pub mod record;
pub mod recording;
pub mod session;
pub(crate) mod sort;
pub mod symbol;
pub mod sys;
pub mod terminal;
pub mod text;
pub mod tui;
pub mod units;
pub mod unwind;
pub mod view;
