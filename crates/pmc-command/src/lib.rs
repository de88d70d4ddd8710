//! What the commands share: groups of options and the values they become, inputs and outputs, the pager,
//! progress, warnings, and the wiring of full-screen views.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

pub mod advice;
pub mod destination;
pub mod gate;
pub mod input;
pub mod options;
pub mod pager;
pub mod progress;
pub mod reasons;
pub mod record;
pub mod recording_screen;
pub mod sampling_options;
pub mod screen;
pub mod temporary;
pub mod values;
pub mod warning;
