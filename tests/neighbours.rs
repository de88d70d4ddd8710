//! Tests how other profilers on this machine disturb the tests. This is a separate test program because cargo
//! runs each one alone: while the holder in this test runs, no other test could run perf.

mod kit;

use std::process::Stdio;

use kit::oracle;

/// A holder of events with build IDs makes perf 6.1 abort. The tests must name that process, and must not
/// blame their own recordings.
#[test]
fn process_holding_build_id_events_is_named() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let record = |is_ours: bool| {
        let mut pmc = kit::pmc();
        pmc.args(["record", "-q", "-a", "-e", "dummy", "-o"])
            .arg(folder.path().join("held"))
            .args(["--", "cat"]);
        if !is_ours {
            pmc.env_remove("CARGO_MANIFEST_DIR");
        }
        pmc.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("pmc starts")
    };
    for is_ours in [true, false] {
        let mut holder = record(is_ours);
        kit::wait_for_counters(holder.id(), 1);
        let named = oracle::build_id_event_holder();
        drop(holder.stdin.take());
        holder.wait().expect("pmc ends");
        let expected = format!("process {} (pmc, ", holder.id());
        assert_eq!(named.as_ref().is_some_and(|why| why.contains(&expected)), !is_ours, "{named:?}");
    }
    assert_eq!(oracle::build_id_event_holder(), None);
}
