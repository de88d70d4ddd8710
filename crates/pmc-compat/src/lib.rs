//! The command lines of other tools, for people and scripts that know them.
//!
//! Under the name of such a tool, pmc accepts the tool's options. Most of them are translated into requests
//! that pmc's own commands carry out.
//!
//! - [`pmcstat`], [`pmccontrol`]: FreeBSD.
//! - [`tprof`], [`netbsd`]: NetBSD.
//! - [`perfalloc`]: Performance Co-Pilot; [`reserve`] is the same without its pitfalls.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

mod action;
mod getopt;
pub mod netbsd;
pub mod perfalloc;
pub mod pmccontrol;
pub mod pmcstat;
pub mod reserve;
pub mod tprof;

pub use action::{Action, LiveView};
use std::env::ArgsOs;
use std::ffi::OsStr;
use std::path::Path;

/// Returns the command-line words after the program's name, if this process was started under `name`.
pub fn words_if_named(name: &str) -> Option<ArgsOs> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    (Path::new(&program).file_name() == Some(OsStr::new(name))).then_some(words)
}
