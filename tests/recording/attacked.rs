//! Root runs pmc in folders where another user set traps: links, pipes, files that shrink, endless streams.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::kit::burn::busy_shell;
use crate::kit::{self, Ran};

mod capabilities;
mod channels;
mod memory;
mod outputs;
mod owners;

const OTHER_USER: u32 = 65534;

/// A folder owned by the user `nobody`, and a file of root outside it.
struct Scene {
    folder: tempfile::TempDir,
    root: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Self> {
        if !kit::need_root() || !kit::need_perf_events() || !kit::need_program("setpriv") {
            return None;
        }
        let mut builder = tempfile::Builder::new();
        let folder = builder.permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
        chown(folder.path(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("victim"), "root's own").unwrap();
        Some(Self { folder, root })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn victim(&self) -> PathBuf {
        self.root.path().join("victim")
    }

    fn link(&self, name: &str) {
        self.link_to(&self.victim(), name);
    }

    fn link_to(&self, target: &Path, name: &str) {
        let _ = fs::remove_file(self.at(name));
        symlink(target, self.at(name)).unwrap();
        lchown(self.at(name), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    }

    #[track_caller]
    fn check_replaced(&self, name: &str) {
        assert_eq!(fs::read_to_string(self.victim()).unwrap(), "root's own", "{name}");
        let meta = fs::symlink_metadata(self.at(name)).unwrap();
        assert!(meta.is_file() && meta.uid() == 0 && meta.len() > 0, "{name}: {meta:?}");
    }

    fn pmc(&self, words: &[&str]) -> Ran {
        kit::pmc().current_dir(self.folder.path()).args(words).output().unwrap().into()
    }

    fn spawn_as_nobody(&self, script: &str) -> Attacker {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--pdeathsig=KILL",
            "sh",
            "-c",
            script,
        ]);
        command.current_dir(self.folder.path()).process_group(0);
        Attacker(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// A process that is killed with all its children when the test ends.
struct Attacker(Child);

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn libc() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.split_whitespace().find(|word| word.contains("libc.so.6")).unwrap_or_default().to_owned()
}

/// A library shrinks while pmc reads it: in `report`, whose recording names it, and in the recorder.
#[test]
fn shrinking_library_does_not_crash_pmc() {
    let Some(scene) = Scene::new() else { return };
    let libc = libc();
    if !kit::need("glibc", !libc.is_empty(), "the tests do not run on a shared glibc") {
        return;
    }
    fs::copy(&libc, scene.at("whole")).unwrap();
    let data = scene.root.path().join("perf.data");
    let data = data.to_str().unwrap();
    let begun = "cp whole libc.so.6; LD_LIBRARY_PATH=. sh -c 'while :; do : $((1+1)); done'";
    {
        let _busy = scene.spawn_as_nobody(begun);
        let words = ["record", "-a", "-g", "-e", "cpu-clock", "-o", data, "--", "sh", "-c"];
        scene.pmc(&[&words[..], &[busy_shell(100)]].concat()).expect(0);
    }
    let _attacker = scene.spawn_as_nobody("while :; do cp whole libc.so.6; : > libc.so.6; done");
    for command in ["report", "script", "annotate"] {
        for _ in 0..7 {
            let words: &[&str] = match command {
                "script" => &["script", "-i", data],
                _ => &[command, "--stdio", "-i", data],
            };
            scene.pmc(words).expect(0);
        }
    }
    let _running = scene.spawn_as_nobody(
        "while :; do cp whole own.so; mkdir -p d; cp whole d/libc.so.6; LD_LIBRARY_PATH=d timeout 0.2 \
         sh -c 'while :; do : $((1+1)); done' & sleep 0.05; mv d/libc.so.6 d/old; cp whole d/libc.so.6; \
         : > d/libc.so.6; wait; done",
    );
    for mode in ["dwarf", "auto"].repeat(10) {
        let other = scene.root.path().join("other.data");
        let words = ["record", "-a", "-e", "cpu-clock", "--call-graph", mode, "-o", other.to_str().unwrap()];
        scene.pmc(&[&words[..], &["--", "sleep", "0.1"]].concat()).expect(0);
    }
}

#[test]
fn links_of_other_users_are_replaced_not_followed() {
    let Some(scene) = Scene::new() else { return };
    let record = ["record", "-e", "cpu-clock", "--", "true"];
    scene.link("perf.data");
    scene.pmc(&record).expect(0).says(&["a symbolic link created by another user"]);
    scene.check_replaced("perf.data");
    scene.pmc(&record).expect(0);
    scene.link("perf.data.old");
    scene.pmc(&record).expect(0);
    scene.check_replaced("perf.data.old");
    let outputs: [(&str, &[&str]); 6] = [
        ("a", &["inject", "-i", "perf.data", "-o", "a"]),
        ("b.json", &["export", "-i", "perf.data", "-o", "b.json", "--format", "firefox"]),
        ("c", &["stat", "-e", "task-clock", "-o", "c", "--", "true"]),
        ("d", &["data", "convert", "-f", "-i", "perf.data", "--to-json", "d"]),
        ("e", &["stat", "record", "-e", "task-clock", "-o", "e", "--", "true"]),
        ("f", &["record", "-e", "cpu-clock", "-o", "f", "--", "true"]),
    ];
    for (name, words) in outputs {
        scene.link(name);
        scene.pmc(words).expect(0);
        scene.check_replaced(name);
        // An empty file of another user, who could read what root writes into it.
        fs::remove_file(scene.at(name)).unwrap();
        fs::write(scene.at(name), "").unwrap();
        chown(scene.at(name), Some(OTHER_USER), None).unwrap();
        scene.pmc(words).expect(0);
        scene.check_replaced(name);
    }
}

#[test]
fn own_links_are_followed() {
    let Some(scene) = Scene::new() else { return };
    let own = tempfile::tempdir().unwrap();
    symlink(scene.root.path().join("big"), own.path().join("perf.data")).unwrap();
    for _ in 0..2 {
        let mut command = kit::pmc();
        command.current_dir(own.path()).args(["record", "-e", "cpu-clock", "--", "true"]);
        Ran::from(command.output().unwrap()).expect(0);
    }
    assert!(own.path().join("perf.data").is_symlink());
    let former = scene.root.path().join("big.old");
    assert!(fs::metadata(scene.root.path().join("big")).unwrap().len() > 0 && former.exists());
}

#[test]
fn fifo_at_the_default_path_receives_nothing() {
    let Some(scene) = Scene::new() else { return };
    make_fifo(&scene.at("perf.data"));
    scene.pmc(&["record", "-e", "cpu-clock", "--", "true"]).expect(0).says(&["was a pipe"]);
    scene.check_replaced("perf.data");
    // pmc writes to the user's own pipe. While pmc waits for a reader, it can be interrupted.
    make_fifo(&scene.at("chosen"));
    chown(scene.at("chosen"), Some(0), None).unwrap();
    let words = ["record", "-e", "cpu-clock", "-o", "chosen", "--", "true"];
    let mut waits = kit::pmc();
    waits.current_dir(scene.folder.path()).args(words).stderr(Stdio::null()).stdout(Stdio::null());
    let mut waiting = waits.spawn().unwrap();
    kit::wait_for("a process in its pause", || is_pausing(waiting.id()));
    kit::wait_for("the end", || {
        let _ = rustix::process::kill_process(Pid::from_child(&waiting), Signal::INT);
        waiting.try_wait().unwrap().is_some()
    });
    assert!(fs::symlink_metadata(scene.at("chosen")).unwrap().file_type().is_fifo());
    let reader = Command::new("cat").arg(scene.at("chosen")).stdout(Stdio::piped()).spawn().unwrap();
    scene.pmc(&words).expect(0);
    assert!(reader.wait_with_output().unwrap().stdout.starts_with(b"PERFILE2"));
}

/// The folder has programs, settings and recordings with the names that pmc looks for.
#[test]
fn traps_in_the_current_folder_are_not_used() {
    let Some(scene) = Scene::new() else { return };
    let run = |words: &[&str]| {
        let mut command = kit::pmc();
        command.current_dir(scene.folder.path()).args(words).env("PATH", ":/usr/bin:/bin:.");
        command.env("DEBUGINFOD_URLS", "http://127.0.0.1:1").env("HOME", scene.root.path());
        command.env_remove("PERF_CONFIG").env_remove("PERF_BUILDID_DIR");
        Ran::from(command.output().unwrap())
    };
    for program in ["debuginfod-find", "dpkg-query", "tar", "less", "pager", "sh", "git", "addr2line"] {
        let script = format!("#!/bin/sh\necho {program} >> {}\n", scene.at("ran").display());
        fs::write(scene.at(program), script).unwrap();
        fs::set_permissions(scene.at(program), PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::write(scene.at(".perfconfig"), "[report]\n\tpercent-limit = 200\n").unwrap();
    // `pmc` runs the command that the user typed, as a shell would.
    run(&[
        "record",
        "-e",
        "cpu-clock:u",
        "-F",
        "2000",
        "-o",
        "own.data",
        "--",
        "/bin/sh",
        "-c",
        busy_shell(100),
    ])
    .expect(0);
    run(&["report", "--stdio", "--debuginfod", "-i", "own.data"]).expect(0).prints(&["%"]);
    run(&["archive", "own.data"]).expect(0);
    if kit::need_program("bzip2") && kit::need_program("tar") {
        run(&["archive", "--perf", "own.data"]).expect(0);
    }
    assert!(!scene.at("ran").exists(), "{:?}", fs::read_to_string(scene.at("ran")));

    make_fifo(&scene.at("perf.data"));
    run(&["report", "--stdio"]).expect(1).says(&["perf.data", "a FIFO of another user"]);
    fs::remove_file(scene.at("perf.data")).unwrap();
    symlink("/dev/zero", scene.at("perf.data")).unwrap();
    run(&["report", "--stdio"]).expect(1).says(&["a device, not a perf.data file"]);
    for name in ["data", "data.0"] {
        let _ = fs::remove_dir_all(scene.at("directory"));
        fs::create_dir(scene.at("directory")).unwrap();
        fs::copy(scene.at("own.data"), scene.at("directory/data")).unwrap();
        let _ = fs::remove_file(scene.at("directory").join(name));
        make_fifo(&scene.at("directory").join(name));
        let ran = run(&["report", "--stdio", "-i", "directory"]);
        assert!(ran.status != Some(0) && ran.stderr.contains("directory"), "{name}: {ran:?}");
    }
}

/// `sudo` may keep the user's `HOME`. The user redirects everything that pmc usually reads and writes there.
#[test]
fn root_trusts_nothing_in_the_home_of_another_user() {
    let Some(scene) = Scene::new() else { return };
    let run = |words: &[&str]| {
        let mut command = kit::pmc();
        command.current_dir(scene.root.path()).args(words).env("HOME", scene.folder.path());
        for name in ["PERF_CONFIG", "PERF_BUILDID_DIR", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        Ran::from(command.output().unwrap())
    };
    let taken = scene.root.path().join("taken");
    fs::create_dir(&taken).unwrap();
    for name in [".debug", ".cache"] {
        scene.link_to(&taken, name);
    }
    let record = ["record", "-e", "cpu-clock", "-F", "2000", "--", "/bin/sh", "-c", busy_shell(100)];
    for settings in ["/dev/zero", "/dev/full", "fifo"] {
        let _ = fs::remove_file(scene.at(".perfconfig"));
        match settings {
            "fifo" => make_fifo(&scene.at(".perfconfig")),
            device => symlink(device, scene.at(".perfconfig")).unwrap(),
        }
        run(&record).expect(0).says(&[".perfconfig: not a regular file"]);
    }
    scene.link(".perfconfig");
    run(&["config", "report.percent-limit=1"]).expect(1).says(&["a symbolic link created by another user"]);
    assert_eq!(fs::read_to_string(scene.victim()).unwrap(), "root's own");
    fs::remove_file(scene.at(".perfconfig")).unwrap();
    run(&["list", "--import", "/usr/share"]).expect(1).says(&["belongs to another user"]);
    run(&record).expect(0);
    run(&["report", "--stdio"]).expect(0);
    run(&["annotate", "--stdio"]).expect(0);
    let written: Vec<_> = fs::read_dir(&taken).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(written.is_empty(), "{written:?}");
    run(&["buildid-cache", "-l"]).expect(1).says(&["belongs to another user"]);
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    chown(path, Some(OTHER_USER), None).unwrap();
}

/// Capabilities of the threads of a process (`CapEff`), and their names.
fn capabilities(pid: u32) -> Vec<(String, u64)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks
        .filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let field =
                |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
            Some((field("Name:")?, u64::from_str_radix(&field("CapEff:")?, 16).ok()?))
        })
        .collect()
}

/// `record` opens its events, and then keeps only what reading other processes' files requires.
#[test]
fn capabilities_are_dropped_after_opening() {
    let Some(scene) = Scene::new() else { return };
    const DROPPED: [u32; 8] = [7, 12, 16, 21, 22, 25, 38, 39];
    const KEPT: [u32; 4] = [2, 5, 19, 34];
    let has = |set: u64, number: &u32| set >> number & 1 == 1;
    let all = capabilities(std::process::id())[0].1;
    if !kit::need("root", has(all, &38) && has(all, &19), "root has no CAP_PERFMON or CAP_SYS_PTRACE") {
        return;
    }
    for words in [&["record", "--call-graph", "dwarf", "-o", "own.data"][..], &["top", "--stdio"]] {
        let mut command = kit::pmc();
        command.current_dir(scene.root.path()).args(words).args(["-e", "cpu-clock", "--", "sleep", "600"]);
        let mut pmc = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let threads = kit::wait_for_some("dropped capabilities", || {
            let threads = capabilities(pmc.id());
            let is_done = threads.iter().all(|(_, set)| !DROPPED.iter().any(|number| has(*set, number)));
            (is_done && !threads.is_empty()).then_some(threads)
        });
        for (name, set) in &threads {
            assert!(KEPT.iter().all(|number| has(*set, number)), "{words:?}: {name} has {set:x}");
        }
        // The command is not restricted.
        for child in kit::children(pmc.id()).into_iter().filter(|child| kit::has_name(*child, "sleep")) {
            assert_eq!(capabilities(child)[0].1, all);
        }
        rustix::process::kill_process(Pid::from_child(&pmc), Signal::INT).unwrap();
        kit::wait_for_end("pmc", &mut pmc);
    }
    // The samples of another user's program, in a folder that only that user can enter, get names.
    kit::copy_program("/bin/sh", scene.at("shell"));
    fs::set_permissions(scene.folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let _busy = scene.spawn_as_nobody(&format!("while :; do ./shell -c '{}'; done", busy_shell(10)));
    let data = scene.root.path().join("all.data");
    let data = data.to_str().unwrap();
    scene.pmc(&["record", "-a", "-e", "cpu-clock:u", "-o", data, "--", "sleep", "1"]).expect(0);
    let ran = scene.pmc(&["report", "--stdio", "-s", "dso,sym", "-i", data]).expect(0);
    assert!(ran.stdout.contains("shell"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("EACCES") && !ran.stderr.contains("EACCES"), "{ran:?}");
}

/// Whether the process is waiting for a pipe reader.
fn is_pausing(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let sleep = [libc_number("clock_nanosleep"), libc_number("nanosleep")];
    call.split(' ').next().is_some_and(|number| sleep.contains(&number))
}

fn libc_number(name: &str) -> &'static str {
    match (name, cfg!(target_arch = "x86_64")) {
        ("clock_nanosleep", true) => "230",
        ("clock_nanosleep", false) => "115",
        (_, true) => "35",
        (_, false) => "101",
    }
}

#[test]
fn endless_input_is_rejected_by_its_header() {
    for input in ["yes", "cat /dev/zero"] {
        let script = format!("{input} | {} report -i -", kit::binary());
        let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
        Ran::from(ran).expect(1).says(&["not a perf.data file"]);
    }
    kit::run(&["report", "-i", "/dev/zero"]).expect(1).says(&["a device, not a perf.data file"]);
}

#[test]
fn file_size_limit_is_reported() {
    if !kit::need_perf_events() || !kit::need_program("prlimit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("prlimit");
        command.arg("--fsize=8192").arg(kit::binary()).args(words).current_dir(folder.path());
        command.output().unwrap()
    };
    let ran = run(&["record", "-e", "cpu-clock", "-F", "5000", "--", "sh", "-c", busy_shell(200)]);
    assert_eq!(ran.status.signal(), None, "{ran:?}");
    Ran::from(ran).expect(1).says(&["EFBIG"]);
    // The command still receives SIGXFSZ.
    let ran = run(&["stat", "-e", "task-clock", "--", "sh", "-c", "exec head -c 100000 /dev/zero > much"]);
    Ran::from(ran).expect(128 + 25);
}

#[test]
fn unwritable_output_is_an_error() {
    if !kit::need_perf_events() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let data = data.to_str().unwrap();
    kit::run(&["record", "-e", "cpu-clock", "-o", data, "--", "true"]).expect(0);
    let printing: [&[&str]; 8] = [
        &["report", "-i", data],
        &["script", "--header", "-i", data],
        &["list"],
        &["export", "--format", "folded", "-i", data, "-o", "-"],
        &["help"],
        &["help", "report"],
        &["--version"],
        &["record", "-e", "cpu-clock", "-o", "-", "--", "true"],
    ];
    for words in printing {
        for (to, said) in [(">&-", "standard output is closed"), ("> /dev/full", "ENOSPC")] {
            let script = format!("exec {} \"$@\" {to}", kit::binary());
            let ran = kit_shell(&script, words);
            assert!(
                ran.status == Some(1) && (ran.stderr.contains(said) || ran.stderr.contains("EBADF")),
                "{words:?} {to}: {ran:?}"
            );
        }
    }
    // The measured command inherits the closed standard output.
    let ran = kit_shell(&format!("exec {} stat -e task-clock -- sh -c 'echo x' >&-", kit::binary()), &[]);
    assert!(ran.status != Some(0) && ran.stderr.contains("echo"), "{ran:?}");
}

fn kit_shell(script: &str, words: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    let ran = command.args(["-c", script, "sh"]).args(words).env("PERF_CONFIG", "/dev/null").output();
    ran.unwrap().into()
}

#[test]
fn low_descriptor_and_thread_limits_suffice() {
    if !kit::need_perf_events() || !kit::need_program("prlimit") || !kit::need_program("setpriv") {
        return;
    }
    let Some(scene) = Scene::new() else { return };
    let pmc = scene.at("pmc");
    kit::copy_program(kit::binary(), &pmc);
    let run = |limit: &str, words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", limit]).arg(&pmc);
        command.args(words).current_dir(scene.folder.path()).env("HOME", "/nonexistent");
        Ran::from(command.output().unwrap())
    };
    let words = ["record", "-e", "task-clock:u,page-faults:u", "-o", "mine", "--", "sh", "-c", "exit 0"];
    let needed = 12 + 2 * fs::read_dir("/sys/devices/system/cpu").unwrap().flatten().filter(is_cpu).count();
    run(&format!("--nofile={needed}:{needed}"), &words).expect(0);
    run("--nproc=1:1", &["report", "--stdio", "-i", "mine"]).expect(0);
    assert!(!Path::new("/nonexistent").exists());
}

fn is_cpu(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name().into_string().unwrap();
    name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[test]
fn archive_is_private() {
    if !kit::need_perf_events() || !kit::need_program("bzip2") || !kit::need_program("tar") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = kit::pmc();
        command.current_dir(folder.path()).env_remove("PERF_BUILDID_DIR").env("HOME", folder.path());
        Ran::from(command.args(words).output().unwrap())
    };
    run(&["record", "-e", "cpu-clock:u", "--", "sh", "-c", busy_shell(100)]).expect(0);
    run(&["archive"]).expect(0);
    run(&["archive", "--perf"]).expect(0);
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("perf.data.archive"), mode("perf.data.tar.bz2")), (0o600, 0o600));
    let made = folder.path().join("perf.data.tar.bz2");
    assert!(Command::new("tar").arg("-tf").arg(&made).output().unwrap().status.success());
}

/// When its terminal goes away, the screen exits quietly by the signal that reports it.
#[test]
fn closed_terminal_ends_the_screen_cleanly() {
    if !kit::need_perf_events() || !kit::need_program("script") || !kit::need_program("setsid") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let record = ["record", "-e", "cpu-clock", "-o", at("perf.data").to_str().unwrap(), "--", "true"]
        .map(str::to_owned);
    kit::run(&record.each_ref().map(String::as_str)).expect(0);
    for words in ["top -e cpu-clock", "report -i perf.data", "annotate -i perf.data"] {
        let _ = fs::remove_file(at("status"));
        let inner = format!(
            "trap '' HUP; sh -c 'trap - HUP; echo $$ > pid; exec {} {words} 2> said'; echo $? > status",
            kit::binary()
        );
        let mut terminal = Command::new("script");
        terminal.args(["-q", "-c", &inner, "/dev/null"]).current_dir(folder.path()).env("TERM", "xterm");
        let mut terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = terminal.stdout.take().unwrap();
        let mut seen = Vec::new();
        // The screen is drawn once it enters the alternate screen.
        while !seen.windows(8).any(|part| part == b"\x1b[?1049h") {
            let mut part = [0; 4096];
            let got = std::io::Read::read(&mut output, &mut part).unwrap();
            assert!(got > 0, "{words}: {}", String::from_utf8_lossy(&seen));
            seen.extend(&part[..got]);
        }
        terminal.kill().unwrap();
        terminal.wait().unwrap();
        kit::wait_for("the end of the screen", || {
            fs::read_to_string(at("status")).is_ok_and(|text| text.ends_with('\n'))
        });
        let status = fs::read_to_string(at("status")).unwrap();
        let said = fs::read_to_string(at("said")).unwrap_or_default();
        assert!(["0", "1", "129"].contains(&status.trim()), "{words}: {status} {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
