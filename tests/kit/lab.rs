//! A temporary folder with test programs and their recordings; it is deleted when the test ends.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::burn::burn_flags;
use crate::kit::{self, oracle};

/// C source for programs whose functions take known shares of the time.
///
/// In `chain` each iteration depends on the one before it, so the cost does not depend on code alignment.
/// `uneven` returns a different length for each turn of a program, from 50 to 149 percent. Without it the
/// turns could run in step with the samples, which would then always hit the same function. Programs repeat
/// their turns for a stated CPU time (`burn.h`).
pub const CHAIN: &str = r#"
static inline __attribute__((always_inline)) unsigned long chain(unsigned long x, long n) {
    n = loops(n);
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

/// Runs the function `work` of a program in its first thread and in one named `a worker`.
pub const TWO_THREADS: &str = r#"int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_setname_np(thread, "a worker");
    work(0);
    return pthread_join(thread, 0);
}
"#;

/// C source: `generated` makes two functions with these names in anonymous memory, 256 bytes apart, and a perf
/// map that names them. Each takes a number of iterations. x86-64 only.
pub const GENERATED: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
static unsigned char *generated(const char *first, const char *second) {
    unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code);
    memcpy(p + 256, code, sizeof code);
    char name[64];
    sprintf(name, "/tmp/perf-%d.map", getpid());
    FILE *f = fopen(name, "w");
    fprintf(f, "%lx 40 %s\n%lx 40 %s\n", (long)p, first, (long)p + 256, second);
    fclose(f);
    return p;
}
"#;

/// Compiles a C program, which may use `burn.h`, in a folder.
#[track_caller]
pub fn build(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).expect("the source is written");
    let gcc = Command::new("gcc").args(burn_flags()).args(flags).arg("-o").arg(&program).arg(&file).status();
    assert!(gcc.expect("gcc starts").success());
    program
}

/// Temporary folder of a test.
#[derive(Debug)]
pub struct Lab(tempfile::TempDir);

impl Lab {
    /// Creates the folder. Returns `None` if perf or gcc is missing, or if perf may not record.
    pub fn new() -> Option<Self> {
        let met = kit::need_program("perf") && kit::need_program("gcc") && kit::need_root();
        met.then(|| Self(tempfile::tempdir().expect("a temporary folder")))
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a C program, which may use `burn.h`.
    #[track_caller]
    pub fn build(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        build(self.0.path(), name, source, flags)
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
