//! What unit tests share with the integration tests: requirements, and the folder of test data. Each crate
//! whose unit tests need it includes this file.
#![allow(dead_code, unreachable_pub, reason = "each crate uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};

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

/// Path of a file or folder below `tests/data` of the repository.
pub fn test_data(name: &str) -> PathBuf {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("tests/data").is_dir()).expect("a checkout");
    root.join("tests/data").join(name)
}
