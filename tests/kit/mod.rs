//! Helpers for the integration tests. They run the real binary and report when something a test needs is
//! missing.
//!
//! A test whose requirement is missing prints `skipped: why` and returns. It fails instead if the environment
//! variable `PMC_TEST_REQUIRE` names the requirement (comma-separated, as `.ci/run` sets it).
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of the kit")]

pub mod burn;
pub mod lab;
pub mod oracle;
pub mod schema;
pub mod terminal;
mod unit;

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pmc_sys::host::Host;
use pmc_tui::keys::BoundKey;
use rustix::process::{Pid, Signal, kill_process};

pub use unit::{need, test_data as data};

/// Returns the binary under test: cargo's, or the one in `PMC_TEST_BINARY` (a release or static build).
pub fn binary() -> &'static str {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        std::env::var("PMC_TEST_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_pmc").to_owned())
    })
}

/// Returns a command for the binary under test, without arguments and isolated from the user's configuration.
pub fn pmc() -> Command {
    let mut command = Command::new(binary());
    command.env_remove("PMC_CONFIG").env_remove("DEBUGINFOD_URLS");
    command.env("PERF_CONFIG", "/dev/null").env("PERF_BUILDID_DIR", "/dev/null");
    command.env("LC_ALL", "C").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Returns the command of [`pmc`], started by another program, such as `timeout 60`.
pub fn pmc_started_by(words: &[&str]) -> Command {
    let pmc = pmc();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(pmc.get_program()).stdin(Stdio::null());
    for (name, value) in pmc.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Requires libpfm4, which pmc loads if it is installed.
pub fn need_libpfm() -> bool {
    let listed = Command::new("ldconfig").arg("-p").output();
    let found = listed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("libpfm.so.4"));
    need("libpfm4", found, "libpfm4 is not installed")
}

/// The recorded CPUs in `tests/data/cpus`.
pub const CPUS: [&str; 8] =
    ["skylake-x", "sapphire-rapids", "alder-lake", "lunar-lake", "zen3", "zen4", "zen5", "neoverse-n1"];

/// Returns a command for the binary under test on a recorded CPU: it reads that CPU's `/sys` and `/proc`.
pub fn pmc_on(cpu: &str) -> Command {
    let mut command = pmc();
    let saved = data("cpus").join(cpu);
    command.env("SYSFS_PATH", saved.join("sys")).env("PROCFS_PATH", saved.join("proc"));
    command.env_remove("PERF_CPUID").env_remove("PMC_CPUID").env("XDG_DATA_HOME", "/nonexistent");
    command
}

/// Returns tmux's name for a key.
pub fn in_tmux(key: BoundKey) -> String {
    match key {
        BoundKey::Char(' ') => "Space".to_owned(),
        BoundKey::Char(';') => "\\;".to_owned(),
        BoundKey::Char(c) => c.to_string(),
        BoundKey::Ctrl(c) => format!("C-{c}"),
        BoundKey::Named(_, name) => match name {
            "↑" => "Up",
            "↓" => "Down",
            "←" => "Left",
            "→" => "Right",
            "PgUp" => "PPage",
            "PgDn" => "NPage",
            "Esc" => "Escape",
            "Backspace" => "BSpace",
            "Shift-Tab" => "BTab",
            other => other,
        }
        .to_owned(),
    }
}

/// Exit status and output of a finished run.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Exit status; `None` if a signal ended the run.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Checks the exit status; on a mismatch, shows all output.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that stderr contains each of these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in stderr:\n{}", self.stderr);
        }
        self
    }

    /// Checks that stdout contains each of these words.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stdout.contains(word), "no {word:?} in stdout:\n{}", self.stdout);
        }
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `pmc` with these arguments.
#[track_caller]
pub fn run(args: &[&str]) -> Ran {
    pmc().args(args).output().expect("the binary starts").into()
}

/// Maximum time to wait for something that must happen. No test asserts a duration; this only stops a hung
/// test.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until a condition holds.
#[track_caller]
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for_some(what, || is_so().then_some(()));
}

/// Waits until `find` returns a value, and returns that value.
#[track_caller]
pub fn wait_for_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the children of a process, in the order in which it started them.
pub fn children(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| child.parse().expect("a process ID")).collect()
}

/// Whether a process has this name. A process that executes a program gets the program's name.
pub fn has_name(pid: u32, name: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .is_ok_and(|comm| comm.strip_suffix('\n') == Some(name))
}

/// Waits until a process executes the program with this name.
#[track_caller]
pub fn wait_for_program(pid: u32, name: &str) {
    wait_for(name, || has_name(pid, name));
}

/// A process that is killed together with its children when the guard is dropped, even if the test panics. A
/// killed profiler cannot stop its commands, and a command left running would keep the tests' output open.
#[derive(Debug)]
pub struct ProcessGuard(pub Child);

impl ProcessGuard {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        // The ID of a process that has ended may already belong to another one.
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        let children = children(self.id());
        let _ = self.0.kill();
        let _ = self.0.wait();
        for child in children {
            let _ = kill_process(Pid::from_raw(child as i32).expect("a process ID"), Signal::KILL);
        }
    }
}

/// Waits until a child process ends. Kills it on timeout.
#[track_caller]
pub fn wait_for_end(what: &str, child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it does not end: {what}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sleeps before a check that holds for any delay: that nothing has happened, or that the exact time does not
/// matter. To wait for an event, use [`wait_for`].
pub fn let_pass(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until everything written into a pipe has been read.
#[track_caller]
pub fn wait_until_read(queue: impl AsFd) {
    wait_for("its reader", || rustix::io::ioctl_fionread(&queue).expect("a pipe") == 0);
}

/// Waits until a process has a child, and returns the first child.
#[track_caller]
pub fn wait_for_child(pid: u32) -> u32 {
    wait_for_some("a child", || children(pid).first().copied())
}

/// Waits until a terminal shows the expected text in two captures in a row. A capture taken while a program
/// draws can mix two screens.
#[track_caller]
pub fn wait_for_screen(what: &str, capture: impl Fn() -> String, is_it: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    let mut last = String::new();
    loop {
        let screen = capture();
        if screen == last && is_it(&screen) {
            return screen;
        }
        assert!(begun.elapsed() < PATIENCE, "no {what:?} on the screen:\n{screen}");
        last = screen;
        std::thread::sleep(Duration::from_millis(40));
    }
}

/// Waits until a process has at least this many counters open.
#[track_caller]
pub fn wait_for_counters(pid: u32, counters: usize) {
    wait_for("its counters", || {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let targets = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|target| target.to_string_lossy().contains("perf_event")).count() >= counters
    });
}

/// Returns the CPU time of a process in kernel ticks, or `None` once the process is gone.
pub fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
}

/// Waits until a process has used this many more ticks (10 ms each), even on a busy machine.
#[track_caller]
pub fn wait_for_ticks(pid: u32, more: u64) {
    let before = ticks(pid).unwrap_or(0);
    wait_for("its work", || ticks(pid).is_none_or(|now| now >= before + more));
}

/// Waits until a process catches, ignores or blocks a signal.
#[track_caller]
pub fn wait_for_handler(pid: u32, signal: i32) {
    wait_for("its handler", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let masks = status.lines().filter_map(|line| {
            let mask = ["SigCgt:", "SigIgn:", "SigBlk:"].iter().find_map(|name| line.strip_prefix(name))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
        masks.fold(0, |all, mask| all | mask) & 1 << (signal - 1) != 0
    });
}

/// Whether the first thread of a process sleeps or has ended. A thread that waits for a CPU does not count as
/// sleeping.
pub fn sleeps(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
}

/// Waits until a process sleeps and uses no more CPU time, so that it has finished all earlier requests.
#[track_caller]
pub fn wait_until_idle(pid: u32) {
    let mut same = (None, 0);
    wait_for("it sleeps", || {
        let now = ticks(pid);
        same = if sleeps(pid) && same.0 == now { (now, same.1 + 1) } else { (now, 0) };
        std::thread::sleep(Duration::from_millis(15));
        same.1 >= 10
    });
}

/// Returns the largest resident set of a process in KiB, from the text of its `/proc/PID/status`.
pub fn peak_kib(status: &str) -> u64 {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Returns the path of a program found on the PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| p.is_file())
}

/// Copies a program to be executed. A separate process writes the copy. If this process wrote it, children
/// that other tests start meanwhile would briefly inherit the descriptor, and the kernel does not execute a
/// file that is open for writing (ETXTBSY).
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").args([from.as_ref(), to.as_ref()]).status();
    assert!(copied.expect("cp starts").success(), "{} is copied", from.as_ref().display());
}

/// Requires a program of this name, which is also the name of the requirement.
#[track_caller]
pub fn need_program(program: &str) -> bool {
    if !need(program, on_path(program).is_some(), &format!("{program} is not installed")) {
        return false;
    }
    let holder = if program == "perf" { oracle::build_id_event_holder() } else { None };
    need(program, holder.is_none(), &holder.unwrap_or_default())
}

/// Requires root.
#[track_caller]
pub fn need_root() -> bool {
    need("root", rustix::process::geteuid().is_root(), "this user is not root")
}

/// Requires permission to create mount namespaces.
#[track_caller]
pub fn need_mount_namespaces() -> bool {
    let works = || Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    need_root()
        && need_program("unshare")
        && need("mount_namespaces", works(), "mount namespaces cannot be created on this machine")
}

/// Runs pmc as user nobody, who may measure only user mode, with a run directory owned by that user. Returns
/// `None` if that is not possible.
#[track_caller]
pub fn as_nobody(args: &[&str]) -> Option<Ran> {
    if !need_perf_events() || !need_root() || !need_program("setpriv") {
        return None;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("a level");
    let level: i32 = paranoid.trim().parse().expect("a number");
    if !need("paranoid", level >= 2, "kernel.perf_event_paranoid is below 2") {
        return None;
    }
    Some(run_as_nobody(args))
}

/// Runs pmc as user 65534, with a run directory owned by that user. Requires root and `setpriv`.
#[track_caller]
pub fn run_as_nobody(args: &[&str]) -> Ran {
    // User nobody may not be able to reach the build directory.
    let dir =
        tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().expect("a folder");
    let (pmc, run) = (dir.path().join("pmc"), dir.path().join("run"));
    copy_program(binary(), &pmc);
    std::fs::create_dir(&run).expect("ours");
    std::os::unix::fs::chown(&run, Some(65534), Some(65534)).expect("root may");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&pmc).args(args);
    command.env("LC_ALL", "C").env("PMC_PERSISTENT_DIR", &run).current_dir(&run).stdin(Stdio::null());
    command.output().expect("setpriv starts").into()
}

/// Requires a working `perf_event_open(2)` for our own process.
#[track_caller]
pub fn need_perf_events() -> bool {
    let open = Path::new("/proc/sys/kernel/perf_event_paranoid").exists()
        && run(&["stat", "-x,", "-e", "task-clock:u", "--", "true"]).status == Some(0);
    need("perf_events", open, "the kernel does not let this user open a software event")
}

/// Requires permission to count kernel mode. For an ordinary user pmc counts user mode only and names events
/// with `:u`.
#[track_caller]
pub fn need_kernel_mode() -> bool {
    if !need_perf_events() {
        return false;
    }
    let counts = !run(&["stat", "-x,", "-e", "task-clock", "--", "true"]).stderr.contains("task-clock:u");
    need("kernel-mode", counts, "this user may count user mode only (kernel.perf_event_paranoid)")
}

/// Returns the `events` folder of tracefs as pmc finds it. If tracefs is not mounted, root mounts it for this
/// process only.
pub fn tracefs() -> Option<PathBuf> {
    Host::live().tracefs().ok()
}

/// Requires the tracepoints of a subsystem in tracefs.
#[track_caller]
pub fn need_tracefs(system: &str) -> bool {
    let is_there = tracefs().is_some_and(|events| events.join(system).exists());
    need("tracefs", is_there, &format!("there is no tracefs, or no permission to read its events/{system}"))
}

/// Compares a table with the one that a page of the documentation has below the line `<!-- SOURCE writes this
/// table -->`. With `PMC_BLESS=1`, writes it there instead.
#[track_caller]
pub fn table_of_page(page: &str, source: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let document = std::fs::read_to_string(&path).expect("the page");
    let start = format!("<!-- {source} writes this table -->\n");
    let (before, rest) = document.split_once(&start).expect("the start of the table");
    let (former, after) = rest.split_once("\n\n").expect("the end of the table");
    if std::env::var_os("PMC_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{start}{table}\n{after}")).expect("the page is written");
    } else {
        assert!(format!("{former}\n") == table, "{page}: PMC_BLESS=1 rewrites the table to\n{table}");
    }
}

/// Compares text with `tests/data/golden/NAME`. With `PMC_BLESS=1`, writes that file instead.
#[track_caller]
pub fn golden(name: &str, got: &str) {
    let path = data("golden").join(name);
    if std::env::var_os("PMC_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, got).expect("the golden file can be written");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{} differs (PMC_BLESS=1 rewrites it)\n--- want\n{want}\n--- got\n{got}",
        path.display()
    );
}
