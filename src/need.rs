//! Requirements of tests: for the unit tests, and included as a file by the integration tests.
#![allow(unreachable_pub, reason = "the kit hands it on")]

use std::io::Write;

/// Whether the requirement is met. If not, prints a message, and panics if `PMC_TEST_REQUIRE` names the
/// requirement.
#[track_caller]
pub fn need(name: &str, met: bool, why: &str) -> bool {
    if met {
        return true;
    }
    let required = std::env::var("PMC_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|r| r.trim() == name), "{name} is required here, but {why}");
    // Writes directly to the descriptor: the test harness captures `eprintln!` of a passing test.
    let _ = writeln!(std::io::stderr().lock(), "skipped: {why}");
    false
}
