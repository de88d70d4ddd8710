//! Reading: what `pmc report`, `script`, `annotate` and `diff` say of a recording, as text and on the screen;
//! names and stacks.

#[path = "../kit/mod.rs"]
mod kit;

mod annotate;
mod contents;
mod diff;
mod export;
mod languages;
mod memory;
mod records;
mod report;
mod symbol;
mod tui;
mod unwind;
