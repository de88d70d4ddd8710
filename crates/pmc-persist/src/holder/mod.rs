//! The holder: keeps events and their rings open for its clients, without a controlling process.
//!
//! ```text
//!   accept ─► request, in time ─► may this user? ─► entries: add, read, copy, rename, remove ─► answer
//!                                                     │
//!                                                     └► run directory: published, withdrawn, lost
//! ```
//! Receives a run directory, and communicates only by answering requests. [`serve`] contains the loop, and
//! enforces access rights and time limits. [`entry`] opens an event and copies its rings. [`cpus`] detects
//! CPUs that go online or offline, and [`directory_watch`] detects when the run directory is removed. Since
//! the kernel writes to the rings, a holder sleeps while there are no requests.

mod directory_watch;
mod entry;
mod serve;

pub use serve::hold;
