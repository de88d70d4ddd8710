//! The holder: keeps events and their rings open for its clients, without a controlling process.
//!
//! ```text
//!   accept ─► request, in time ─► may this user? ─► entries: add, read, copy, rename, remove ─► answer
//!                                                     │
//!                                                     └► run directory: published, withdrawn, lost
//! ```
//! Receives a run directory, and only communicates through its answers. [`serve`] contains the loop. It
//! decides about access and time limits. [`entry`] opens an event and copies its rings. [`cpus`] watches for
//! CPUs, and [`directory_watch`] for removals of the run directory. The kernel writes the rings, so a holder
//! without requests sleeps.

mod cpus;
mod directory_watch;
mod entry;
mod serve;

pub(crate) use serve::hold;
