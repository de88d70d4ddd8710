//! The formats of other programs.
//!
//! - [`import`]: opens recordings, and profiles of other programs, which it converts to recordings.
//! - [`export`]: writes the samples of a recording for other programs, as a page, or as a picture.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

pub mod export;
pub mod import;
mod pprof_messages;
