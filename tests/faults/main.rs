//! pmc survives failing system calls, low limits and killed processes, and leaves nothing behind.

#[path = "../kit/mod.rs"]
mod kit;

mod cases;
mod holder;
mod injection;
mod limits;
mod matrix;
