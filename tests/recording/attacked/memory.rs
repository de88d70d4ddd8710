//! Recording all processes with a limited address space: neighbours' large programs must not end pmc.

use std::os::unix::process::ExitStatusExt;

use crate::kit;
use crate::kit::burn::busy_shell;

/// From a limit under which pmc cannot start to one that suffices, in MiB.
const LIMITS: [u64; 8] = [40, 60, 80, 90, 100, 105, 110, 200];
const ABORTED: i32 = 6;

#[test]
fn memory_limit_is_named_and_the_file_stays() {
    if !kit::need_root() || !kit::need_perf_events() || !kit::need_program("prlimit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for limit in LIMITS {
        let file = folder.path().join(format!("{limit}.data"));
        let path = file.to_str().unwrap();
        let prlimit = ["timeout", "60", "prlimit", &format!("--as={}", limit << 20)];
        let mut pmc = kit::pmc_started_by(&prlimit);
        pmc.args(["record", "-q", "-a", "--call-graph", "dwarf", "-F", "999", "-o", path]);
        let ran = pmc.args(["--", "sh", "-c", busy_shell(200)]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.signal() != Some(ABORTED) && ran.status.code() != Some(128 + ABORTED), "{said}");
        assert!(!said.contains("memory allocation of") && !said.contains("panicked"), "{limit}: {said}");
        if file.exists() {
            kit::run(&["script", "-F", "comm,time", "-i", path]).expect(0);
        }
        if said.contains("out of memory") {
            assert!(said.contains(&format!("limited to {} KiB (ulimit -v)", limit << 10)), "{said}");
            assert_eq!(ran.status.code(), Some(1), "{said}");
        }
        assert!(ran.status.success() || limit < 200, "{limit}: {said}");
    }
}
