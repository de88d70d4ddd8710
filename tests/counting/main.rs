//! Counting: from event text to a table of counts, and what the machine reports about its counters.

#[path = "../kit/mod.rs"]
mod kit;

mod completions;
mod config;
mod event;
mod fields;
mod generated;
mod info;
mod libpfm;
mod list;
mod netbsd;
mod parity;
mod persist;
mod pmcstat;
mod reserve;
mod stat;
mod syscall;
mod usage;
mod vendor;
mod vendor_metrics;
mod view_stat;
