//! Reading recordings: text and screen output of `pmc report`, `script`, `annotate` and `diff`, symbols and
//! stacks.

#[path = "../kit/mod.rs"]
mod kit;

mod annotate;
mod anonymous;
mod archive;
mod ci_examples;
mod compare;
mod contents;
mod diff;
mod diff_waits;
mod export;
mod fleet;
mod groups;
mod imports;
mod imports_dialects;
mod imports_jfr;
mod imports_tools;
mod languages;
mod memory;
mod otlp;
mod push;
mod records;
mod report;
mod round_trips;
mod sched;
mod schemas;
mod symbol;
mod tui;
mod unwind;
mod wall_export;
