//! Tests that would disturb others: of profilers that disturb perf, and with other system settings. This is a
//! separate test program because cargo runs each one alone: while the holder in this test runs, no other test
//! could run perf.

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

/// The system's setting of what users may measure. Restored when dropped.
struct ParanoidLevel(String);

impl ParanoidLevel {
    const FILE: &str = "/proc/sys/kernel/perf_event_paranoid";

    fn save() -> Self {
        Self(std::fs::read_to_string(Self::FILE).expect("a level"))
    }
}

impl Drop for ParanoidLevel {
    fn drop(&mut self) {
        std::fs::write(Self::FILE, &self.0).expect("root may");
    }
}

/// Waiting times are exact at each level. Stacks need permission to measure the kernel. This test changes a
/// setting of the system.
#[test]
fn users_measure_waits_at_each_level() {
    if !kit::need_perf_events() || !kit::need_root() || !kit::need_program("setpriv") {
        return;
    }
    let level = ParanoidLevel::save();
    let is_writable = std::fs::write(ParanoidLevel::FILE, &level.0).is_ok();
    if !kit::need("sysctl", is_writable, "kernel.perf_event_paranoid cannot be changed") {
        return;
    }
    for (level, has_stacks) in [("2", false), ("1", true), ("-1", true)] {
        std::fs::write(ParanoidLevel::FILE, level).expect("root may");
        let file = tempfile::Builder::new().tempfile().expect("a file");
        std::os::unix::fs::chown(file.path(), Some(65534), Some(65534)).expect("root may");
        let name = file.path().to_str().expect("UTF-8");
        let ran = kit::run_as_nobody(&["record", "--wall", "-o", name, "--", "sleep", "0.5"]).expect(0);
        let note = "only waits in known library functions have a reason";
        assert_eq!(ran.stderr.contains(note), !has_stacks, "{level}: {}", ran.stderr);
        let words = [
            "report",
            "--json",
            "-s",
            "state,wait_site",
            "-g",
            "none",
            "--no-children",
            "--idle",
            "-i",
            name,
        ];
        let json: serde_json::Value = serde_json::from_str(&kit::run(&words).expect(0).stdout).expect("JSON");
        let rows = json["events"][0]["rows"].as_array().expect("rows");
        // The longest wait is the sleep. The kernel starts its timer shortly before the thread leaves the
        // CPU.
        let longest = &rows[0];
        assert_eq!(longest["state"], "blocked", "{json}");
        // Without kernel stacks, pmc tries to read the thread's memory during the wait.
        let site = longest["wait_site"].as_str().expect("a site");
        assert!(site == "sleep" || !has_stacks && site == "unknown", "{json}");
        assert!(longest["self"]["period"].as_u64() >= Some(490_000_000), "{level}: {json}");
    }
    drop(level);
}
