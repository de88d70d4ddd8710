//! Other tools' opinions: perf's, objdump's, PCP's. All tests ask them here.
//!
//! An oracle may fall: perf 6.1 aborts while it collects build-ids (build-id.c) as long as a process holds events with build-ids,
//! which the tests' own recordings do for some seconds. A fall (death by a signal that the oracle itself raised) is no answer: the
//! test says so and asks again, a few times. An answer, right or wrong, is never asked for twice.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use pmc::abi::record_header::misc;
use pmc::host::Host;
use pmc::host::holders::{PerfEventProcess, PerfEventProcesses};
use pmc::perfdata::Reader;
use pmc::record::kind;

/// Says which process keeps perf 6.1 from working, if one outside this run of the tests does.
///
/// A process that holds events with build-ids (`pmc start`, a recording by pmc or by a new perf) disturbs the events of others: the
/// kernel marks their MMAP2 records as if these held build-ids, too. perf 6.1 aborts over such records until that process ends. What
/// this run of the tests itself records passes soon, so an oracle that falls over it is asked again.
pub fn disturber() -> Option<String> {
    let foreign = foreign_holders()?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    let mut perf = Command::new("perf");
    // -B keeps it from looking at the build-ids.
    perf.args(["record", "-q", "-B", "-N", "-e", "dummy:u", "-o"]).arg(&file).args(["--", "true"]);
    perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let mut is_marked = false;
    // The mark alone counts: pmc reads such a record as what it is, so its fields show nothing.
    let reader = Reader::open(&file).ok()?;
    reader.scan(|raw| is_marked |= raw.kind == kind::MMAP2 && raw.misc & misc::MMAP_BUILD_ID != 0).ok()?;
    is_marked.then(|| format!("perf aborts while {foreign} holds events with build-ids (a kernel fault)"))
}

/// The processes that have events open and do not belong to this run of the tests; `None` if there are none.
fn foreign_holders() -> Option<String> {
    // cargo sets this for the tests, and all that they start inherit it.
    let ours = format!("CARGO_MANIFEST_DIR={}", std::env::var("CARGO_MANIFEST_DIR").ok()?);
    let is_foreign = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        !environment.is_empty() && environment.split(|byte| *byte == 0).all(|entry| entry != ours.as_bytes())
    };
    let mut holders = PerfEventProcesses::find(&Host::live(), std::process::id()).processes;
    holders.retain(|holder| is_foreign(holder.pid));
    let name = |holder: PerfEventProcess| {
        format!("process {} ({}, {} events)", holder.pid, holder.comm, holder.events)
    };
    let names: Vec<String> = holders.into_iter().map(name).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

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
        tell(&command, output.status, falls);
    }
    panic!("the oracle fell {TRIES} times, which says nothing about pmc: {:?}", make(TRIES));
}

/// Starts an oracle and waits until this is so.
#[track_caller]
pub fn start(mut make: impl FnMut() -> Command, is_ready: impl Fn() -> bool) -> Child {
    for falls in 0..TRIES {
        let mut command = make();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the oracle starts");
        let begun = Instant::now();
        let status = loop {
            if is_ready() {
                return child;
            }
            if let Some(status) = child.try_wait().expect("it is ours") {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{command:?} comes to nothing");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(fell(status), "{command:?} ended by itself: {status}");
        tell(&command, status, falls);
    }
    panic!("the oracle fell {TRIES} times, which says nothing about pmc: {:?}", make());
}

/// Says that an oracle fell, and gives it time. Fails at once if more time would not help.
#[track_caller]
fn tell(command: &Command, status: ExitStatus, falls: u32) {
    // Straight to the descriptor: the test harness captures `eprintln!` of a passing test.
    let try_ = falls + 1;
    let _ =
        writeln!(std::io::stderr().lock(), "the oracle fell: {command:?}: {status}, try {try_} of {TRIES}");
    if let Some(why) = disturber() {
        panic!("{command:?}: {status}: {why}");
    }
    std::thread::sleep(Duration::from_millis(400) * falls);
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

/// The perfs that can be asked: the installed one, and the newest where `tests/newest-perf` has brought it. It reads more
/// strictly.
#[track_caller]
pub fn perfs() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let newest = cache.unwrap_or_default().join("newest-perf/perf");
    let mut all = vec![PathBuf::from("perf")];
    if crate::kit::need("newest-perf", newest.is_file(), "tests/newest-perf has not brought the newest perf")
    {
        all.push(newest);
    }
    all
}

/// What `perf ARGUMENTS -i FILE` prints, whatever its status.
#[track_caller]
pub fn perf_of(file: &Path, arguments: &[&str]) -> String {
    let file = [OsStr::new("-i"), file.as_os_str()];
    let all: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(file).collect();
    says("perf", &all)
}

/// Makes a stream that perf 6.1 reads. It falls over one stream in some sixteen, its own too, and then every time in one of its
/// modes: then another stream is made.
#[track_caller]
pub fn make_stream(file: &Path, mut make: impl FnMut()) {
    for falls in 0..TRIES {
        make();
        let falls_over_it = ["--children", "--no-children", "--no-group"].into_iter().find_map(|mode| {
            let mut report = Command::new("perf");
            report.args(["report", "--stdio", mode, "-i"]).arg(file).stdin(Stdio::null());
            let status = report.output().expect("perf starts").status;
            fell(status).then_some((report, status))
        });
        match falls_over_it {
            Some((report, status)) => tell(&report, status, falls),
            None => return,
        }
    }
    panic!("perf fell over {TRIES} streams, which says nothing about pmc: {}", file.display());
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
    /// Makes it, and returns the file.
    #[track_caller]
    pub fn make(&self) -> PathBuf {
        match self.is_stream {
            true => make_stream(self.file, || self.try_make()),
            false => self.try_make(),
        }
        self.file.to_owned()
    }

    #[track_caller]
    fn try_make(&self) {
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
    }
}
