//! Other tools' opinions: perf's, objdump's, PCP's. All tests ask them here.
//!
//! An oracle may fall: perf 6.1 aborts now and then while it collects build-ids on a busy machine (build-id.c), for some seconds
//! every time. A fall, which is death by a signal of its own making, is no answer: it is said and the oracle asked again, a few
//! times. An answer, right or wrong, is never asked for twice.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// How often an oracle is asked that falls every time: for some 25 seconds.
const TRIES: u32 = 12;

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: what a program does to itself.
const OWN_SIGNALS: [i32; 6] = [4, 5, 6, 7, 8, 11];

/// Whether this is the end of a program that fell, or of a shell's line or `strace` whose program fell.
pub fn fell(status: ExitStatus) -> bool {
    let signal = status.signal().or(status.code().map(|code| code - 128));
    signal.is_some_and(|signal| OWN_SIGNALS.contains(&signal))
}

/// Asks until there is an answer; `make` gives the question, by the number of falls before.
#[track_caller]
pub fn ask_anew(mut make: impl FnMut(u32) -> Command) -> Output {
    for falls in 0..TRIES {
        let mut command = make(falls);
        command.env("LC_ALL", "C");
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        if !fell(output.status) {
            return output;
        }
        // Straight to the descriptor: the test harness captures `eprintln!` of a passing test.
        let _ = writeln!(
            std::io::stderr().lock(),
            "the oracle fell: {command:?}: {}, try {} of {TRIES}",
            output.status,
            falls + 1
        );
        std::thread::sleep(Duration::from_millis(400) * falls);
    }
    panic!("the oracle fell {TRIES} times, which says nothing about pmc: {:?}", make(TRIES));
}

/// Asks a question that can be asked again as it is.
#[track_caller]
pub fn ask(program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> Output {
    ask_anew(|_| {
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null());
        command
    })
}

/// As [`ask`]; what it prints, whatever its status.
#[track_caller]
pub fn says(program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> String {
    String::from_utf8_lossy(&ask(program, arguments).stdout).into_owned()
}

/// What `perf ARGUMENTS -i FILE` prints, whatever its status.
#[track_caller]
pub fn perf_of(file: &Path, arguments: &[&str]) -> String {
    let file = [OsStr::new("-i"), file.as_os_str()];
    let all: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(file).collect();
    says("perf", &all)
}

/// A recording to be made by perf.
pub struct Recording<'a> {
    pub file: &'a Path,
    pub options: &'a [&'a str],
    /// What is recorded, and the folder that it runs in.
    pub work: &'a [&'a str],
    pub folder: &'a Path,
    /// Whether perf writes a stream instead of a file.
    pub is_stream: bool,
}

impl Recording<'_> {
    /// Makes it, and gives the file.
    #[track_caller]
    pub fn make(&self) -> PathBuf {
        let Self { file, options, work, folder, is_stream } = *self;
        let run = ask_anew(|falls| {
            let mut perf = Command::new("perf");
            perf.args(["record", "-q", "-N"]).args(options);
            if falls > 6 {
                // It falls over a build-id that is longer than it thinks one can be.
                perf.arg("-B");
            }
            match is_stream {
                true => perf.args(["-o", "-"]).stdout(File::create(file).expect("the file can be made")),
                false => perf.arg("-o").arg(file).stdout(Stdio::null()),
            };
            perf.arg("--").args(work).current_dir(folder).stdin(Stdio::null());
            perf
        });
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "perf record {options:?}: {}: {said}", run.status);
        file.to_owned()
    }
}
