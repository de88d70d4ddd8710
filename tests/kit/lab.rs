//! A folder with programs and recordings of them that goes away with the test.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kit;

/// The folder.
pub struct Lab(tempfile::TempDir);

impl Lab {
    /// `None` where perf or gcc is missing, or perf may not record.
    pub fn new() -> Option<Self> {
        let met = kit::need_program("perf") && kit::need_program("gcc") && kit::need_root();
        met.then(|| Self(tempfile::tempdir().expect("a temporary folder")))
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles C.
    #[track_caller]
    pub fn build(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).expect("the source is written");
        let gcc = Command::new("gcc").args(flags).arg("-o").arg(&program).arg(&file).status();
        assert!(gcc.expect("gcc starts").success());
        program
    }

    /// Records a program with perf.
    #[track_caller]
    pub fn record(&self, name: &str, options: &[&str], program: &Path) -> PathBuf {
        let file = self.path(name);
        // perf 6.1 now and then aborts on a busy machine, for some seconds every time; that is no finding about pmc.
        const ABORT: i32 = 6;
        for attempt in 0..12 {
            std::thread::sleep(std::time::Duration::from_millis(200 * attempt));
            let mut perf = Command::new("perf");
            perf.args(["record", "-q", "-N"]).args(options).arg("-o").arg(&file).arg("--").arg(program);
            perf.current_dir(self.0.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let status = perf.status().expect("perf starts");
            if status.success() {
                return file;
            }
            assert_eq!(status.signal(), Some(ABORT), "perf record {options:?}: {status}");
        }
        panic!("perf record {options:?} aborted every time");
    }
}
