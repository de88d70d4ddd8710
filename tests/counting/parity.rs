//! What pmc asks of the kernel is what perf asks: the `perf_event_attr` of both, seen by strace, row by row.
//!
//! The rows are in `tests/counting/parity/*.rows`, the comparison in `tests/counting/parity/attr-parity`, which tells each field that differs.

use crate::kit;

use std::path::Path;
use std::process::{Command, Stdio};

/// Compares every row of this file.
#[track_caller]
fn agree(rows: &str, least: usize) {
    let programs = ["perf", "strace", "python3"].map(kit::need_program);
    if programs.contains(&false) || !kit::need_root() || !kit::need_perf_events() || !need_tracefs() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counting/parity");
    let ran = Command::new(folder.join("attr-parity"))
        .args(["--pmc", crate::kit::binary()])
        .arg(folder.join(rows))
        .stdin(Stdio::null())
        .output()
        .expect("attr-parity starts");
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
    // "N of M rows agree": an empty file would agree too.
    let count: usize = told
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number of rows in the last line");
    assert!(count >= least, "only {count} rows");
}

fn need_tracefs() -> bool {
    let there = Path::new("/sys/kernel/tracing/events/sched").exists();
    kit::need("tracefs", there, "tracefs is not mounted at /sys/kernel/tracing")
}

#[test]
fn stat_asks_as_perf_does() {
    agree("stat.rows", 60);
}

#[test]
fn record_asks_as_perf_does() {
    agree("record.rows", 50);
}
