//! What works with which privileges, and what pmc says otherwise. Each row of the table in
//! docs/reliability.md is a test here, and the table is generated from the rows. This is a separate test
//! program because some rows change a setting of the system (`kernel.perf_event_paranoid`), and cargo runs
//! one test program at a time.

mod kit;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

const USER: u32 = 65534;
const LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";

/// A result of a command: works, works with a message, or fails with a status and a message.
#[derive(Clone, Copy)]
enum Cell {
    Works,
    Partly(&'static str),
    Fails(i32, &'static str),
}
use Cell::{Fails, Partly, Works};
use kit::burn::busy_shell;

impl Cell {
    fn text(self) -> String {
        match self {
            Works => "yes".to_owned(),
            Partly(says) => format!("yes: \"{says}\""),
            Fails(status, says) => format!("exit {status}: \"{says}\""),
        }
    }
}

/// What the commands print and write is not the subject here, only whether they work.
/// `BUSY` is a shell script that works for 50 ms.
const COMMANDS: [(&str, &[&str]); 8] = [
    ("stat", &["stat", "-e", "task-clock", "--", "true"]),
    ("stat -a", &["stat", "-a", "-e", "cpu-clock", "--", "true"]),
    ("stat, tracepoint", &["stat", "-e", "sched:sched_switch", "--", "true"]),
    ("record", &["record", "-N", "-e", "cpu-clock", "--", "sh", "-c", "BUSY"]),
    ("top", &["top", "--stdio", "-e", "cpu-clock", "--", "sh", "-c", "BUSY"]),
    ("profile", &["profile", "--", "sh", "-c", "BUSY"]),
    ("persist add", &["persist", "add", "own", "-e", "page-faults"]),
    ("export", &["export", "-i", "given.data", "--format", "folded", "-o", "-"]),
];

struct Situation {
    /// Name of its test.
    name: &'static str,
    what: &'static str,
    /// The value of `kernel.perf_event_paranoid`.
    level: &'static str,
    is_root: bool,
    /// The words before the command.
    by: &'static [&'static str],
    cells: [Cell; 8],
}

const AS_USER: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const USER_MODE: &str = "user mode only (:u): no permission to measure the kernel";
const NO_TRACEFS: &str = "no permission to read /sys/kernel/tracing/events";
const WHOLE_CPU: &str =
    "counting a whole CPU requires 0 or lower, or privileges, and uid 65534 has no CAP_PERFMON";
/// Levels 2 and higher are the same in the mainline kernel.
const STRICT: [Cell; 8] = [
    Partly(USER_MODE),
    Fails(1, WHOLE_CPU),
    Fails(2, NO_TRACEFS),
    Partly(USER_MODE),
    Partly(USER_MODE),
    Partly("only waits in known library functions have a reason: no permission to record kernel stacks"),
    Fails(1, WHOLE_CPU),
    Works,
];
const ONLY_OWN: [Cell; 8] =
    [Works, Fails(1, WHOLE_CPU), Fails(2, NO_TRACEFS), Works, Works, Works, Fails(1, WHOLE_CPU), Works];
const ALL_BUT_TRACEFS: [Cell; 8] = [Works, Works, Fails(2, NO_TRACEFS), Works, Works, Works, Works, Works];
const SANDBOX: &str = "root is privileged only in a user namespace, whose capabilities do not apply here";
const SECCOMP: Cell = Fails(1, "a seccomp filter, as used by container runtimes, refuses perf_event_open");
/// Denies perf_event_open with EPERM, as container runtimes do.
const FILTER: &str = r#"
import ctypes, os, platform, struct, sys
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
step = lambda code, true, false, value: struct.pack("HBBI", code, true, false, value)
program = step(0x20, 0, 0, 0) + step(0x15, 0, 1, number) + step(0x06, 0, 0, 0x50001) + step(0x06, 0, 0, 0x7fff0000)
held = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", 4, ctypes.addressof(held)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"#;
/// A mount namespace without tracefs, and no permission to mount it.
const COVERED: &str = "for folder in /sys/kernel/tracing /sys/kernel/debug; do mount -t tmpfs none $folder || exit 99; \
                       done; exec setpriv --bounding-set=-sys_admin \"$@\"";

const fn user(name: &'static str, what: &'static str, level: &'static str, cells: [Cell; 8]) -> Situation {
    Situation { name, what, level, is_root: false, by: AS_USER, cells }
}

const SITUATIONS: [Situation; 11] = [
    Situation { name: "root", what: "root", level: "2", is_root: true, by: &[], cells: [Works; 8] },
    user("user_at_minus_1", "user, paranoid -1", "-1", ALL_BUT_TRACEFS),
    user("user_at_0", "user, paranoid 0", "0", ALL_BUT_TRACEFS),
    user("user_at_1", "user, paranoid 1", "1", ONLY_OWN),
    user("user_at_2", "user, paranoid 2", "2", STRICT),
    user("user_at_3", "user, paranoid 3", "3", STRICT),
    user("user_at_4", "user, paranoid 4", "4", STRICT),
    Situation {
        name: "user_with_perfmon",
        what: "user with CAP_PERFMON, paranoid 2",
        level: "2",
        is_root: false,
        by: &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=+perfmon",
            "--ambient-caps=+perfmon",
        ],
        cells: ALL_BUT_TRACEFS,
    },
    Situation {
        name: "root_of_user_namespace",
        what: "root of a user namespace, paranoid 2",
        level: "2",
        is_root: false,
        by: &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Ur"],
        cells: [
            STRICT[0],
            Fails(1, SANDBOX),
            STRICT[2],
            STRICT[3],
            STRICT[4],
            STRICT[5],
            Fails(1, SANDBOX),
            Works,
        ],
    },
    Situation {
        name: "container_without_tracefs",
        what: "root in a container without tracefs and CAP_SYS_ADMIN",
        level: "2",
        is_root: true,
        by: &["unshare", "-m", "sh", "-c", COVERED, "sh"],
        cells: [Works, Works, Fails(2, "tracefs is not mounted"), Works, Works, Works, Works, Works],
    },
    Situation {
        name: "seccomp_denies_perf_event_open",
        what: "root, but a seccomp filter denies perf_event_open",
        level: "2",
        is_root: true,
        by: &["python3", "-c", FILTER],
        cells: [SECCOMP, SECCOMP, SECCOMP, SECCOMP, SECCOMP, SECCOMP, SECCOMP, Works],
    },
];

/// Restores the system's level when dropped.
struct ParanoidLevel(String);

impl Drop for ParanoidLevel {
    fn drop(&mut self) {
        fs::write(LEVEL, &self.0).expect("root may");
    }
}

/// One row at a time, because the level applies to the whole system.
static ROW: Mutex<()> = Mutex::new(());

fn check(name: &str) {
    let situation = SITUATIONS.iter().find(|row| row.name == name).expect("a row with this name");
    let programs = ["setpriv", "unshare", "python3"];
    if !kit::need_perf_events() || !kit::need_root() || !programs.iter().all(|name| kit::need_program(name)) {
        return;
    }
    if !kit::need_tracefs("sched") {
        return;
    }
    let _alone = ROW.lock().unwrap_or_else(PoisonError::into_inner);
    let former = ParanoidLevel(fs::read_to_string(LEVEL).expect("a level"));
    let is_set = former.0.trim() == situation.level || fs::write(LEVEL, situation.level).is_ok();
    if !kit::need("sysctl", is_set, "kernel.perf_event_paranoid cannot be changed") {
        return;
    }
    let folder =
        tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    kit::copy_program(kit::binary(), at("pmc"));
    let run = |by: &[&str], words: &[&str]| -> kit::Ran {
        let pmc = at("pmc");
        let mut line: Vec<&str> = by.to_vec();
        line.push(pmc.to_str().expect("UTF-8"));
        line.extend(words.iter().map(|word| if *word == "BUSY" { busy_shell(50) } else { word }));
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).current_dir(at("work")).stdin(Stdio::null());
        command.env("HOME", "/nonexistent").env("LC_ALL", "C").env("PMC_PERSISTENT_DIR", at("work"));
        command.output().expect("it starts").into()
    };
    fs::create_dir(at("work")).expect("a folder");
    run(&[], &["record", "-q", "-N", "-e", "cpu-clock", "-o", "given.data", "--", "sh", "-c", "BUSY"])
        .expect(0);
    fs::set_permissions(at("work/given.data"), PermissionsExt::from_mode(0o644)).expect("root may");
    if !situation.is_root {
        chown(at("work"), Some(USER), Some(USER)).expect("root may");
    }
    for ((title, words), cell) in COMMANDS.iter().zip(situation.cells) {
        let (status, says) = match cell {
            Works => (0, ""),
            Partly(says) => (0, says),
            Fails(status, says) => (status, says),
        };
        // Elsewhere, pmc names another folder, or says that tracefs is not mounted.
        let is_there = Path::new("/sys/kernel/tracing/events").exists();
        if says == NO_TRACEFS
            && !kit::need("tracefs", is_there, "tracefs is not mounted in /sys/kernel/tracing")
        {
            continue;
        }
        let ran = run(situation.by, words);
        assert_eq!(ran.status, Some(status), "{name}, {title}: {ran:?}");
        assert!(ran.stderr.contains(says), "{name}, {title}: {ran:?}");
        if status != 0 {
            // Each refusal has a reason and a remedy.
            assert!(
                ran.stderr.contains("  why: ") && ran.stderr.contains("  try: "),
                "{name}, {title}: {ran:?}"
            );
        }
        if matches!(cell, Works) {
            assert!(!ran.stderr.contains("no permission"), "{name}, {title}: {ran:?}");
        }
        if words[0] == "persist" && status == 0 {
            run(situation.by, &["persist", "rm", "own"]).expect(0);
        }
    }
}

macro_rules! rows {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*
        const TESTS: &[&str] = &[$(stringify!($name)),*];
    };
}
rows!(root user_at_minus_1 user_at_0 user_at_1 user_at_2 user_at_3 user_at_4 user_with_perfmon root_of_user_namespace
    container_without_tracefs seccomp_denies_perf_event_open);

/// The table in the documentation has these rows. `PMC_BLESS=1` writes it.
#[test]
fn documentation_has_the_same_table() {
    let names: Vec<&str> = SITUATIONS.iter().map(|row| row.name).collect();
    assert_eq!(names, TESTS, "each row is a test");
    let mut table =
        format!("| test | with | {} |\n", COMMANDS.map(|(title, _)| format!("`{title}`")).join(" | "));
    table += &format!("{}|\n", "|---".repeat(2 + COMMANDS.len()));
    for row in &SITUATIONS {
        let cells: Vec<String> = row.cells.iter().map(|cell| cell.text()).collect();
        table += &format!("| `{}` | {} | {} |\n", row.name, row.what, cells.join(" | "));
    }
    kit::table_of_page("docs/reliability.md", "tests/privilege.rs", &table);
}
