//! What a test needs: for the unit tests, and as a file for the kit of the integration tests.
#![allow(unreachable_pub, reason = "the kit hands it on")]

use std::io::Write;

/// Whether the need is met. If not, says so, and fails when `PMC_TEST_REQUIRE` names it.
#[track_caller]
pub fn need(name: &str, met: bool, why: &str) -> bool {
    if met {
        return true;
    }
    let required = std::env::var("PMC_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|r| r.trim() == name), "{name} is required here, but {why}");
    // Straight to the descriptor: the test harness captures `eprintln!` of a passing test.
    let _ = writeln!(std::io::stderr().lock(), "skipped: {why}");
    false
}
