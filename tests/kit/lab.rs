//! A folder with programs and recordings of them that goes away with the test.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{self, oracle};

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
        let work = [program.to_str().expect("a plain path")];
        let recording = oracle::Recording {
            file: &self.path(name),
            options,
            work: &work,
            folder: self.0.path(),
            is_stream: false,
        };
        recording.make()
    }
}
