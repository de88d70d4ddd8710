//! Time to parse event text into requests. pmc's start must stay well under a millisecond.

use std::path::Path;

use pmc_events::event;
use pmc_sys::host::Host;

fn main() {
    divan::main();
}

fn tree(name: &str) -> Host {
    Host::rooted(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sysfs").join(name))
}

/// From text that needs no files to text that needs all memory controllers of a server.
const TEXTS: [(&str, &str); 8] = [
    ("virtual", "task-clock"),
    ("virtual", "cycles,instructions"),
    ("intel-hybrid", "cycles,instructions"),
    ("intel-server", "cpu/mem-loads,ldlat=30/P"),
    ("intel-server", "imc/cas_count_read/,imc/cas_count_write/"),
    ("virtual", "sched:sched_switch"),
    ("virtual", "syscalls:sys_enter_*"),
    ("intel-server", "cycels"),
];

#[divan::bench(args = TEXTS)]
fn parse((machine, text): (&str, &str)) -> bool {
    event::parse(divan::black_box(text), &tree(machine)).is_ok()
}

/// Hostile text: the time must be linear in its length.
#[divan::bench(args = [1_000, 10_000, 100_000])]
fn braces(length: usize) -> bool {
    event::parse(&divan::black_box("{".repeat(length)), &tree("virtual")).is_ok()
}

/// Many events in one text.
#[divan::bench(args = [10, 100, 1_000])]
fn many(count: usize) -> bool {
    event::parse(&divan::black_box(vec!["cycles:u"; count].join(",")), &tree("virtual")).is_ok()
}
