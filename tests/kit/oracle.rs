//! Runs other tools (perf, objdump, PCP) as oracles for the tests. All tests run them through this module.
//!
//! An oracle may crash. perf 6.1 aborts while collecting build IDs (build-id.c) if any process holds events
//! with build IDs, which the tests' own recordings do for some seconds. A crash (death by a signal that the
//! oracle itself raised) is not an answer. The test reports the crash and retries a few times. It never
//! retries after an answer, right or wrong.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::kind;
use pmc_sys::abi::record_header::misc;
use pmc_sys::host::Host;
use pmc_sys::host::holders::{PerfEventProcess, PerfEventProcesses};

/// Names the process outside this test run that makes perf 6.1 crash, if there is one.
///
/// A process that holds events with build IDs (`pmc start`, or a recording by pmc or by a new perf) affects
/// other processes' events. The kernel marks their MMAP2 records as if those contained build IDs, too. perf
/// 6.1 aborts on such records until that process ends. This test run's own recordings end soon, so an oracle
/// that crashes because of them is retried.
pub fn build_id_event_holder() -> Option<String> {
    let foreign = foreign_holders()?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    let mut perf = Command::new("perf");
    // -B keeps perf from reading the build IDs.
    perf.args(["record", "-q", "-B", "-N", "-e", "dummy:u", "-o"]).arg(&file).args(["--", "true"]);
    perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    is_marked(&file)
        .then(|| format!("perf aborts while {foreign} holds events with build-ids (a kernel fault)"))
}

/// Whether the kernel marked MMAP2 records of this recording as if they contained build IDs. Checks only the
/// mark: pmc parses a wrongly marked record correctly, so the fields do not show it.
fn is_marked(file: &Path) -> bool {
    let mut is_marked = false;
    let mut look = |kind, flags| is_marked |= kind == kind::MMAP2 && flags & misc::MMAP_BUILD_ID != 0;
    let scanned = Reader::open(file).and_then(|reader| reader.scan(|raw| look(raw.kind, raw.misc)));
    scanned.is_ok() && is_marked
}

/// Returns the processes outside this test run that have events open, or `None` if there are none.
fn foreign_holders() -> Option<String> {
    // cargo sets this variable for the tests, and all their child processes inherit it.
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

/// Maximum number of tries for an oracle that crashes every time: about 25 seconds in total.
const TRIES: u32 = 12;

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE and SIGSEGV: signals that a program raises itself.
const OWN_SIGNALS: [i32; 6] = [4, 5, 6, 7, 8, 11];

/// Whether this is the exit status of a crashed program, or of a shell or `strace` whose program crashed.
pub fn crashed(status: ExitStatus) -> bool {
    let signal = status.signal().or(status.code().map(|code| code - 128));
    signal.is_some_and(|signal| OWN_SIGNALS.contains(&signal))
}

/// Runs an oracle until it answers. `make` builds the command from the number of crashes so far.
#[track_caller]
pub fn ask_until_answered(mut make: impl FnMut(u32) -> Command) -> Output {
    for crashes in 0..TRIES {
        let mut command = make(crashes);
        command.env("LC_ALL", "C");
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        if !crashed(output.status) {
            return output;
        }
        report_crash(&command, output.status, crashes);
    }
    panic!("the oracle crashed {TRIES} times, so there is nothing to compare: {:?}", make(TRIES));
}

/// Starts an oracle and waits until `is_ready` returns true.
#[track_caller]
pub fn start(mut make: impl FnMut() -> Command, is_ready: impl Fn() -> bool) -> Child {
    for crashes in 0..TRIES {
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
            assert!(begun.elapsed() < Duration::from_secs(120), "{command:?} does not become ready");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(crashed(status), "{command:?} exited before it was ready: {status}");
        report_crash(&command, status, crashes);
    }
    panic!("the oracle crashed {TRIES} times, so there is nothing to compare: {:?}", make());
}

/// Reports that an oracle crashed and waits before the next try. Fails immediately if a retry cannot help.
#[track_caller]
fn report_crash(command: &Command, status: ExitStatus, crashes: u32) {
    // Write to stderr directly: the test harness captures `eprintln!` of a passing test.
    let try_ = crashes + 1;
    let _ = writeln!(
        std::io::stderr().lock(),
        "the oracle crashed: {command:?}: {status}, try {try_} of {TRIES}"
    );
    if let Some(why) = build_id_event_holder() {
        panic!("{command:?}: {status}: {why}");
    }
    std::thread::sleep(Duration::from_millis(400) * crashes);
}

/// Runs a command that can be repeated unchanged.
#[track_caller]
pub fn ask(program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> Output {
    ask_until_answered(|_| {
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null());
        command
    })
}

/// Like [`ask`]; returns the command's stdout, whatever its exit status.
#[track_caller]
pub fn says(program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> String {
    String::from_utf8_lossy(&ask(program, arguments).stdout).into_owned()
}

/// Returns the available perf programs: the installed one and, if `tests/newest-perf` has fetched it, the
/// newest one, which checks files more strictly.
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

/// Returns the output of `perf ARGUMENTS -i FILE`, whatever its exit status.
#[track_caller]
pub fn perf_of(file: &Path, arguments: &[&str]) -> String {
    let file = [OsStr::new("-i"), file.as_os_str()];
    let all: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(file).collect();
    says("perf", &all)
}

/// Makes a stream that perf 6.1 can read. perf crashes on about one stream in sixteen, including its own, and
/// then every time in one of its modes. In that case this function makes another stream.
#[track_caller]
pub fn make_stream(file: &Path, mut make: impl FnMut()) {
    for crashes in 0..TRIES {
        make();
        let crash = ["--children", "--no-children", "--no-group"].into_iter().find_map(|mode| {
            let mut report = Command::new("perf");
            report.args(["report", "--stdio", mode, "-i"]).arg(file).stdin(Stdio::null());
            let status = report.output().expect("perf starts").status;
            crashed(status).then_some((report, status))
        });
        match crash {
            Some((report, status)) => report_crash(&report, status, crashes),
            None => return,
        }
    }
    panic!("perf crashed on {TRIES} streams, so there is nothing to compare: {}", file.display());
}

/// A recording that perf makes.
pub struct Recording<'a> {
    pub file: &'a Path,
    pub options: &'a [&'a str],
    /// Command to record.
    pub work: &'a [&'a str],
    pub folder: &'a Path,
    /// Whether perf writes a stream instead of a file.
    pub is_stream: bool,
}

impl Recording<'_> {
    /// Makes the recording and returns its file.
    #[track_caller]
    pub fn make(&self) -> PathBuf {
        match self.is_stream {
            true => make_stream(self.file, || self.try_make()),
            false => self.make_file(),
        }
        self.file.to_owned()
    }

    /// Makes a file while another process holds an event with build IDs, which spoils it.
    #[track_caller]
    pub fn make_spoiled(&self) {
        self.try_make();
        assert!(is_marked(self.file), "not spoiled: {}", self.file.display());
    }

    /// Makes a file that perf 6.1 can read. While a recording of this test run asks for build IDs, perf's own
    /// recordings are spoiled; see [`build_id_event_holder`]. perf notices only when it reads them, and
    /// survives some.
    #[track_caller]
    fn make_file(&self) {
        for _ in 0..TRIES {
            self.try_make();
            if self.options.contains(&"--buildid-mmap") || !is_marked(self.file) {
                return;
            }
            let file = self.file.display();
            let _ =
                writeln!(std::io::stderr().lock(), "an event with build-ids spoiled perf's recording {file}");
            std::thread::sleep(Duration::from_millis(500));
        }
        let holders = foreign_holders().unwrap_or_else(|| "a process of this test run".to_owned());
        panic!(
            "{} tries: {holders} holds events with build-ids, which spoil perf's recording (a kernel fault): {}",
            TRIES,
            self.file.display()
        );
    }

    #[track_caller]
    fn try_make(&self) {
        let Self { file, options, work, folder, is_stream } = *self;
        let run = ask_until_answered(|crashes| {
            let mut perf = Command::new("perf");
            perf.args(["record", "-q", "-N"]).args(options);
            if crashes > 6 {
                // perf crashes on a build ID that is longer than it expects.
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
