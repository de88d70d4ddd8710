//! Files of recordings in perf's build-id cache: `record` fills the cache, `buildid-cache` manages it, and
//! pmc and perf read each other's entries.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::burn::waiting_shell;
use crate::kit::lab::Lab;
use crate::kit::{self, Ran, oracle};

const SPIN: &str =
    "int spin(void) { for_cpu_ms(100) for (volatile long i = loops(20000); i > 0; i--); return 0; }
    int main(void) { return spin(); }";

struct Cache<'a> {
    lab: &'a Lab,
    folder: PathBuf,
}

impl<'a> Cache<'a> {
    fn new(lab: &'a Lab, name: &str) -> Self {
        Self { lab, folder: lab.path(name) }
    }

    /// Runs `pmc --buildid-dir FOLDER WORDS…` in the lab.
    fn pmc(&self, words: &[&str]) -> Ran {
        let mut command = kit::pmc();
        command.env_remove("PERF_BUILDID_DIR").current_dir(self.lab.path(""));
        command.arg("--buildid-dir").arg(&self.folder).args(words).output().unwrap().into()
    }

    fn perf(&self, words: &[&str]) -> Ran {
        let ask = |_| {
            let mut command = Command::new("perf");
            command.arg("--buildid-dir").arg(&self.folder).args(words).current_dir(self.lab.path(""));
            command
        };
        oracle::ask_until_answered(ask).into()
    }

    fn list(&self) -> String {
        self.pmc(&["buildid-cache", "-l"]).expect(0).stdout
    }

    /// The cached `elf` file of a program's path.
    fn elf(&self, program: &Path) -> PathBuf {
        let above = self.folder.join(program.strip_prefix("/").unwrap());
        std::fs::read_dir(above).unwrap().next().unwrap().unwrap().path().join("elf")
    }
}

#[test]
fn cache_add_list_and_remove_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let cache = Cache::new(&lab, "cache");
    let program = lab.build("prog", "int main(void) { return 0; }", &["-Wl,--build-id=sha1"]);
    let other = lab.build("other", "int main(void) { return 1; }", &["-Wl,--build-id=md5"]);
    let name = program.to_str().unwrap();
    cache.pmc(&["buildid-cache", "-l"]).expect(0).prints(&[""]);
    cache.pmc(&["buildid-cache", "-v", "-a", "prog,other"]).expect(0).says(&["kept", "prog"]);
    cache.pmc(&["buildid-cache", "-v", "-a", "prog"]).expect(0).says(&["kept before"]);
    assert!(cache.list().contains(name) && cache.list().lines().count() == 2);
    assert_eq!(cache.perf(&["buildid-cache", "-l"]).stdout, cache.list());
    assert_eq!(std::fs::read(cache.elf(&program)).unwrap(), std::fs::read(&program).unwrap());
    // pmc lists and removes entries that perf added.
    cache.pmc(&["buildid-cache", "-r", "other"]).expect(0);
    assert!(!cache.folder.join(other.strip_prefix("/").unwrap()).exists());
    cache.perf(&["buildid-cache", "-a", "other"]).expect(0);
    assert_eq!(cache.list().lines().count(), 2);
    // A newer build under the same path.
    std::fs::rename(&other, &program).unwrap();
    cache.pmc(&["buildid-cache", "-u", "prog"]).expect(0);
    cache.pmc(&["buildid-cache", "-p", "prog"]).expect(0);
    assert_eq!(cache.list().lines().filter(|line| line.ends_with(name)).count(), 0, "{}", cache.list());
    cache.pmc(&["buildid-cache", "-p", "prog"]).expect(1).says(&["no entry for", "try:"]);
    cache.pmc(&["buildid-cache", "-a", "prog", "-P"]).expect(0);
    assert_eq!((cache.list(), cache.perf(&["buildid-cache", "-l"]).stdout), Default::default());
    let own = std::process::id().to_string();
    cache.pmc(&["buildid-cache", "--target-ns", &own, "-a", name, "-l"]).expect(0).prints(&[name]);
    cache
        .pmc(&["buildid-cache", "-a", "prog.c,no-file", "-l"])
        .expect(1)
        .says(&["not a program", "ENOENT"])
        .prints(&[name]);
    cache.pmc(&["buildid-cache", "-k", "/proc/kcore"]).expect(2).says(&["why:", "try:"]);
    cache.pmc(&["buildid-cache"]).expect(2).says(&["try:"]);
}

#[test]
fn recording_caches_the_files_it_hit() {
    let Some(lab) = Lab::new() else { return };
    let cache = Cache::new(&lab, "cache");
    let program = lab.build("spin", SPIN, &[]);
    let record =
        |options: &[&str]| cache.pmc(&[&["record", "-e", "cpu-clock:u"], options, &["./spin"]].concat());
    for none in [&["-N"][..], &["-B"], &["--buildid-mmap"]] {
        record(none).expect(0);
        assert!(!cache.folder.exists(), "{none:?}");
    }
    record(&[]).expect(0);
    let name = program.to_str().unwrap();
    assert!(cache.list().contains(name), "{}", cache.list());
    assert_eq!(cache.pmc(&["buildid-cache", "-M", "perf.data"]).expect(0).stdout, "");
    assert_eq!(cache.perf(&["buildid-cache", "-M", "perf.data"]).stdout, "");
    // The program is deleted: both tools find its symbols by build-id.
    std::fs::remove_file(&program).unwrap();
    cache.pmc(&["report", "--stdio", "--no-cache"]).expect(0).prints(&["spin"]);
    let theirs = cache.perf(&["report", "--stdio", "-s", "sym"]);
    assert!(theirs.stdout.contains("] spin"), "{theirs:?}");
    assert!(!Cache::new(&lab, "none").pmc(&["report", "--stdio", "--no-cache"]).stdout.contains("] spin"));
    // The same with a cache that perf filled.
    lab.build("spin", SPIN, &[]);
    let theirs = Cache::new(&lab, "theirs");
    theirs.perf(&["record", "-o", "perf.data", "-e", "cpu-clock:u", "./spin"]).expect(0);
    assert_eq!(theirs.pmc(&["buildid-cache", "-M", "perf.data"]).expect(0).stdout, "");
    std::fs::remove_file(&program).unwrap();
    theirs.pmc(&["report", "--stdio", "--no-cache"]).expect(0).prints(&["spin"]);
}

#[test]
fn damaged_cache_entries_are_reported_and_replaced() {
    let Some(lab) = Lab::new() else { return };
    let cache = Cache::new(&lab, "cache");
    let program = lab.build("spin", SPIN, &[]);
    cache.pmc(&["record", "-e", "cpu-clock:u", "./spin"]).expect(0);
    let (elf, whole) = (cache.elf(&program), std::fs::read(&program).unwrap());
    std::fs::remove_file(&elf).unwrap();
    std::fs::write(&elf, &whole[..whole.len() / 2]).unwrap();
    assert!(!cache.list().contains("spin"));
    cache.pmc(&["buildid-cache", "-v", "-l"]).expect(0).says(&["damaged", "spin"]);
    cache.pmc(&["buildid-cache", "-M", "perf.data"]).expect(0).prints(&["spin"]);
    cache.pmc(&["record", "-e", "cpu-clock:u", "./spin"]).expect(0);
    assert_eq!(std::fs::read(&elf).unwrap(), whole);
    // An unusable cache does not fail the recording.
    let file = Cache { lab: &lab, folder: lab.path("spin.c") };
    file.pmc(&["record", "-e", "cpu-clock:u", "./spin"]).expect(0).says(&["the recording is complete", "-N"]);
    cache.pmc(&["report", "--stdio"]).expect(0).prints(&["spin"]);
    let mut homeless = kit::pmc();
    homeless.env_remove("HOME").env_remove("PERF_BUILDID_DIR").current_dir(lab.path(""));
    let ran: Ran = homeless.args(["record", "-e", "cpu-clock:u", "./spin"]).output().unwrap().into();
    ran.expect(0).says(&["HOME is not set"]);
}

#[test]
fn archive_contains_what_another_machine_needs() {
    let Some(lab) = Lab::new() else { return };
    if !(kit::need_program("tar") && kit::need_program("bzip2")) {
        return;
    }
    let cache = Cache::new(&lab, "cache");
    let program = lab.build("spin", SPIN, &[]);
    // `archive` adds missing files to the cache.
    cache.pmc(&["record", "-N", "-e", "cpu-clock:u", "./spin"]).expect(0);
    let kept = |cache: &Cache<'_>| cache.list().lines().filter(|line| line.ends_with("/spin")).count();
    cache.pmc(&["archive", "--perf"]).expect(0).prints(&["$ tar xvf perf.data.tar.bz2 -C ~/.debug"]);
    cache.pmc(&["archive", "--perf", "--all"]).expect(0).prints(&["--unpack perf.all-"]);
    assert_eq!(kept(&cache), 1);
    std::fs::remove_file(&program).unwrap();
    // Unpack it as perf's users do.
    let plain = Cache::new(&lab, "plain");
    std::fs::create_dir(&plain.folder).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(lab.path("perf.data.tar.bz2")).arg("-C").arg(&plain.folder);
    assert!(tar.status().unwrap().success());
    assert_eq!(kept(&plain), 1);
    assert!(plain.perf(&["report", "-i", "perf.data", "--stdio", "-s", "sym"]).stdout.contains("] spin"));
    let ours = Cache::new(&lab, "ours");
    ours.pmc(&["archive", "--perf", "--unpack"]).expect(2).says(&["2 archives", "try:"]);
    std::fs::remove_file(lab.path("perf.data.tar.bz2")).unwrap();
    std::fs::remove_file(lab.path("perf.data")).unwrap();
    ours.pmc(&["archive", "--perf", "--unpack"]).expect(0);
    assert_eq!(kept(&ours), 1);
    ours.pmc(&["report", "--stdio", "--no-cache"]).expect(0).prints(&["] spin"]);
    let gone = Cache::new(&lab, "gone");
    gone.pmc(&["archive", "--perf", "--exclude-buildids", "no-file"]).expect(1).says(&["ENOENT"]);
    // The libraries still exist; `archive` reports the program as missing.
    gone.pmc(&["archive", "--perf"]).says(&["/spin"]);
}

/// Flags for a static program, so that a chroot needs no other files.
const STATIC: &[&str] = &["-static", "-Wl,--build-id=sha1"];
/// Spins until the file `go` is in its folder.
const WAITING: &str = "#include <unistd.h>
    int spin(void) { for_cpu_ms(20) for (volatile long i = loops(20000); i > 0; i--); return 0; }
    int main(void) { while (access(\"go\", F_OK)) spin(); return spin(); }";

/// Records a command. Once a file with this name is in the cache, calls `release_command`, which lets the
/// command end.
#[track_caller]
fn record_until_kept(cache: &Cache<'_>, options: &[&str], name: &str, release_command: impl FnOnce()) {
    let mut pmc = kit::pmc();
    pmc.env_remove("PERF_BUILDID_DIR")
        .current_dir(cache.lab.path(""))
        .arg("--buildid-dir")
        .arg(&cache.folder);
    pmc.args(["record", "-e", "cpu-clock:u"]).args(options).stderr(std::process::Stdio::piped());
    let running = pmc.spawn().unwrap();
    kit::wait_for("a copy of the program", || cache.list().lines().any(|line| line.ends_with(name)));
    release_command();
    Ran::from(running.wait_with_output().unwrap()).expect(0);
}

/// Checks that the reports of pmc and perf have the symbols of [`WAITING`] after its program is gone.
#[track_caller]
fn names_are_kept(cache: &Cache<'_>, program: &str) {
    cache.pmc(&["report", "--stdio", "--no-cache"]).expect(0).prints(&["] spin", program]);
    let theirs = cache.perf(&["report", "--stdio", "-s", "dso,sym"]);
    assert!(theirs.stdout.contains("] spin"), "{theirs:?}");
}

#[test]
fn files_of_a_chroot_are_cached() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_root() || !kit::need_program("chroot") {
        return;
    }
    for options in [&[][..], &["--call-graph", "dwarf"]] {
        // The second path names another program outside the chroot.
        for name in ["/pmc-in-a-chroot", "/bin/true"] {
            let cache = Cache::new(&lab, "cache");
            let (root, program) = (lab.path("root"), lab.build("spin", WAITING, STATIC));
            std::fs::create_dir_all(root.join("bin")).unwrap();
            std::fs::rename(&program, root.join(&name[1..])).unwrap();
            let command = [options, &["--", "chroot", "root", name]].concat();
            record_until_kept(&cache, &command, name, || std::fs::write(root.join("go"), "").unwrap());
            std::fs::remove_dir_all(&root).unwrap();
            names_are_kept(&cache, name.rsplit('/').next().unwrap());
            std::fs::remove_dir_all(&cache.folder).unwrap();
        }
    }
}

#[test]
fn files_of_a_mount_namespace_are_cached() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_mount_namespaces() {
        return;
    }
    let cache = Cache::new(&lab, "cache");
    lab.build("spin", WAITING, STATIC);
    std::fs::create_dir(lab.path("inner")).unwrap();
    let script = "mount -t tmpfs none inner && cp spin inner/hidden && rm spin && inner/hidden; exit $?";
    let command = ["--", "unshare", "-m", "sh", "-c", script];
    record_until_kept(&cache, &command, "/hidden", || std::fs::write(lab.path("go"), "").unwrap());
    assert!(!lab.path("inner/hidden").exists(), "we see it too");
    names_are_kept(&cache, "hidden");
}

#[test]
fn deleted_and_replaced_files_are_cached() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_root() {
        return;
    }
    let in_library =
        "int spin(void) { for_cpu_ms(20) for (volatile long i = loops(20000); i > 0; i--); return 0; }";
    let caller = "#include <unistd.h>
        int spin(void);
        int main(void) { while (access(\"go\", F_OK)) spin(); return spin(); }";
    let id = "-Wl,--build-id=sha1";
    for is_library in [false, true] {
        for is_replaced in [false, true] {
            let cache = Cache::new(&lab, "cache");
            let (program, gone) = match is_library {
                false => {
                    let program = lab.build("spin", WAITING, &[id]);
                    (program.clone(), program)
                }
                true => {
                    let library = lab.build("libspin.so", in_library, &["-shared", "-fPIC", id]);
                    let flags = ["-Wl,--no-as-needed", library.to_str().unwrap()];
                    (lab.build("caller", caller, &flags), library)
                }
            };
            let mut start = Command::new(&program);
            let running = kit::ProcessGuard::start(start.current_dir(lab.path("")));
            kit::wait_for("the program's own code", || {
                let maps =
                    std::fs::read_to_string(format!("/proc/{}/maps", running.id())).unwrap_or_default();
                maps.contains(gone.to_str().unwrap())
            });
            std::fs::remove_file(&gone).unwrap();
            if is_replaced {
                std::fs::copy("/bin/true", &gone).unwrap();
            }
            // The process ends before the recording.
            let pid = running.id().to_string();
            let name = gone.file_name().unwrap().to_str().unwrap();
            record_until_kept(&cache, &["-p", &pid], &format!("/{name}"), || {
                std::fs::write(lab.path("go"), "").unwrap();
            });
            drop(running);
            names_are_kept(&cache, name);
            std::fs::remove_file(lab.path("go")).unwrap();
            std::fs::remove_dir_all(&cache.folder).unwrap();
        }
    }
}

#[test]
fn file_replaced_while_recording_is_cached() {
    let Some(lab) = Lab::new() else { return };
    let cache = Cache::new(&lab, "cache");
    let program = lab.build("spin", WAITING, &["-Wl,--build-id=sha1"]);
    let running = kit::ProcessGuard::start(Command::new(&program).current_dir(lab.path("")));
    let wait = waiting_shell(running.id(), 100);
    let upgrade = format!("{wait}; cp /bin/true new && mv new spin");
    let pid = running.id().to_string();
    cache.pmc(&["record", "-e", "cpu-clock:u", "-p", &pid, "--", "sh", "-c", &upgrade]).expect(0);
    drop(running);
    names_are_kept(&cache, "spin");
}
