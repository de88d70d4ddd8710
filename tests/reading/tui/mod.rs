//! The screen: its state and its drawing without a terminal, and the real binary in tmux.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod drawn;
mod driven;
mod fixture;
mod keyed;
mod page;
mod waits;
