//! A folder with programs and recordings of them that goes away with the test.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{self, oracle};

/// C for programs whose functions have known shares of the time. In `chain` each round waits for the one before it, so that
/// its cost does not hang on where the compiler puts it; `uneven` gives each turn of a program another length, from 50 to
/// 149 hundredths, or the turns could keep step with the samples, which would then find the same function again and again.
pub const CHAIN: &str = r#"
static inline __attribute__((always_inline)) unsigned long chain(unsigned long x, long n) {
    for (long i = 0; i < n; i++)
        __asm__ volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0" : "+r"(x));
    return x;
}
static inline __attribute__((always_inline)) long uneven(void) {
    static unsigned long dice = 88172645463325252ul;
    dice ^= dice << 13; dice ^= dice >> 7; dice ^= dice << 17;
    return 50 + (dice >> 32) % 100;
}
volatile unsigned long sink;
"#;

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
