//! System calls between processes that fail, by `strace --inject`: pmc gives up instead of waiting.

use std::path::Path;
use std::process::Stdio;

use crate::kit::burn::busy_shell;
use crate::kit::{self, Ran};

/// Runs pmc with these failing system calls, and kills it after a minute.
fn run_with_faults(folder: &Path, inject: &str, words: &[&str]) -> Ran {
    let calls = inject.split(':').next().unwrap_or_default();
    let [calls, inject] = [format!("trace={calls}"), format!("inject={inject}")];
    let strace = ["timeout", "60", "strace", "-o", "/dev/null", "-e", &calls, "-e", &inject];
    let mut pmc = kit::pmc_started_by(&strace);
    pmc.args(words).current_dir(folder).stdin(Stdio::piped()).output().unwrap().into()
}

fn need_strace() -> bool {
    kit::need_perf_events() && kit::need_program("strace")
}

#[test]
fn failed_request_to_the_disassembler_ends_the_wait() {
    if !need_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "5000", "--", "sh", "-c", busy_shell(100)];
    Ran::from(kit::pmc().current_dir(folder.path()).args(record).output().unwrap()).expect(0);
    for (call, error) in [("sendto", "ENOMEM"), ("sendto", "EAGAIN"), ("recvfrom", "EIO")] {
        let inject = format!("{call}:error={error}:when=1");
        let ran = run_with_faults(folder.path(), &inject, &["annotate", "--stdio", "-i", "perf.data"]);
        assert!(matches!(ran.status, Some(0 | 1)), "{inject}: {ran:?}");
        assert!(ran.stderr.contains("the disassembler's process failed"), "{inject}: {ran:?}");
    }
}

/// A recorder that can never wait ends, and keeps what it has recorded.
#[test]
fn waits_that_always_fail_end() {
    if !need_strace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let busy = busy_shell(100);
    for error in ["ENOMEM", "EINTR"] {
        let commands: [&[&str]; 4] = [
            &["record", "-q", "-e", "cpu-clock", "--", "sh", "-c", busy, "exec sleep 600"],
            &["stat", "-e", "task-clock", "--", "sleep", "600"],
            &["top", "--stdio", "-e", "cpu-clock", "--", "sleep", "600"],
            &["mcp"],
        ];
        for words in commands {
            let ran = run_with_faults(folder.path(), &format!("ppoll:error={error}"), words);
            assert!(matches!(ran.status, Some(1)), "{words:?}: {ran:?}");
            assert!(ran.stderr.contains(error), "{words:?}: {ran:?}");
        }
        kit::run(&["evlist", "-i", folder.path().join("perf.data").to_str().unwrap()]).expect(0);
    }
}
