//! The holder: keeps events and their rings open for whoever asks, with no controlling process.
//!
//! ```text
//!   accept ─► request, in time ─► may this user? ─► entries: add, read, copy, rename, remove ─► answer
//!                                                     │
//!                                                     └► run directory: published, withdrawn, lost
//! ```
//! Receives a run directory; hands on nothing but the answers. [`serve`] is the loop, and decides who may ask
//! for what and how long anybody may take; [`entry`] opens one event and copies its rings; [`cpus`] hears of
//! CPUs, [`directory_watch`] of a run directory that was removed. The kernel writes the rings by itself: a
//! holder that nobody asks sleeps.

mod cpus;
mod directory_watch;
mod entry;
mod serve;

pub(crate) use serve::hold;
