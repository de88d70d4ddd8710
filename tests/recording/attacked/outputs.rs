//! Every output of pmc, at a path where another user has put a link, a FIFO, a device or a hard link.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::OTHER_USER;
use crate::kit::burn::busy_shell;
use crate::kit::{self, Ran};

/// A command line that writes the file `OUT` from the recording `IN`, and what it writes to.
type OutputCommand = (&'static str, Written);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The file `OUT`.
    File,
    /// The file `OUT`, at its end.
    Appended,
    /// A file whose name is `OUT` and this end.
    Named(&'static str),
    /// Files in the folder `OUT`.
    Folder,
}

const COMMANDS: [OutputCommand; 33] = [
    ("record -q -e cpu-clock -o OUT -- true", Written::File),
    ("record -q -z -e cpu-clock -o OUT -- true", Written::File),
    ("record -q --call-graph dwarf -e cpu-clock -o OUT -- true", Written::File),
    ("sched record -q -o OUT -- true", Written::File),
    ("trace record -q -o OUT -- true", Written::File),
    ("lock record -q -o OUT -- true", Written::File),
    ("stat record -e task-clock -o OUT -- true", Written::File),
    ("profile --on-cpu -o OUT -- sleep 0.1", Written::File),
    ("profile --on-cpu -o IN.again --html OUT -- sleep 0.1", Written::File),
    ("stat -e task-clock -o OUT -- true", Written::File),
    ("stat -e task-clock -o OUT --append -- true", Written::Appended),
    ("stat -e task-clock -j -o OUT -- true", Written::File),
    ("stat -e task-clock -I 100 --openmetrics=OUT -- sleep 0.2", Written::File),
    ("trace -o OUT -- true", Written::File),
    ("export -q -i IN --format html -o OUT", Written::File),
    ("export -q -i IN --format svg -o OUT", Written::File),
    ("export -q -i IN --format folded -o OUT", Written::File),
    ("export -q -i IN --format firefox -o OUT", Written::File),
    ("export -q -i IN --format perfetto -o OUT", Written::File),
    ("export -q -i IN --format pprof -o OUT", Written::File),
    ("export -q -i IN --format csv -o OUT", Written::File),
    ("export -q -i IN --format parquet -o OUT", Written::Named(".samples.parquet")),
    ("export -q -i IN --format gmon -o OUT", Written::Folder),
    ("flamegraph -i IN -o OUT.svg", Written::Named(".svg")),
    ("inject -i IN -o OUT", Written::File),
    ("inject --aslr -i IN -o OUT", Written::File),
    ("archive IN -o OUT", Written::File),
    ("archive --anonymous IN -o OUT", Written::File),
    ("data convert -f -i IN --to-json OUT", Written::File),
    ("list -o OUT", Written::File),
    ("script --per-event-dump -i OUT", Written::Named(".cpu-clock.dump")),
    ("latency syscalls:sys_enter_write syscalls:sys_exit_write --folded OUT -- echo", Written::File),
    ("man --output OUT", Written::Folder),
];

/// What the other user has put at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    Link,
    FolderLink,
    Fifo,
    /// A FIFO that the other user reads.
    ReadFifo,
    Device,
    HardLink,
}

impl Trap {
    const ALL: [Self; 6] =
        [Self::Link, Self::FolderLink, Self::Fifo, Self::ReadFifo, Self::Device, Self::HardLink];

    /// Sets the trap. Returns the reader of a FIFO that has one.
    fn set(self, path: &Path, root: &Path) -> Option<File> {
        let node = |kind, device| mknodat(CWD, path, kind, Mode::from_raw_mode(0o666), device).unwrap();
        match self {
            Self::Link => symlink(root.join("victim"), path).unwrap(),
            Self::FolderLink => symlink(root.join("folder"), path).unwrap(),
            Self::Fifo | Self::ReadFifo => node(FileType::Fifo, 0),
            Self::Device => node(FileType::CharacterDevice, makedev(1, 3)),
            Self::HardLink => fs::hard_link(root.join("victim"), path).unwrap(),
        }
        if self != Self::HardLink {
            lchown(path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        }
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let read = || OpenOptions::new().read(true).custom_flags(nonblocking).open(path).unwrap();
        (self == Self::ReadFifo).then(read)
    }
}

/// Runs pmc, and kills it after a minute.
fn run(folder: &Path, words: &[&str]) -> Ran {
    kit::pmc_started_by(&["timeout", "60"]).args(words).current_dir(folder).output().unwrap().into()
}

/// A folder in which another user can create files, below `/tmp`.
fn folder_of_others(mode: u32, owner: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    chown(folder.path(), Some(owner), Some(owner)).unwrap();
    folder
}

/// A recording of root, and the files of root to which the traps lead.
fn files_of_root() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("victim"), "root's own").unwrap();
    fs::set_permissions(root.path().join("victim"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(root.path().join("folder")).unwrap();
    let data = root.path().join("in.data");
    let record = ["record", "-q", "-g", "-e", "cpu-clock", "-o", data.to_str().unwrap(), "--", "sh", "-c"];
    run(root.path(), &[&record[..], &[busy_shell(100)]].concat()).expect(0);
    (root, data)
}

/// pmc does not wait for the other user, sends that user nothing, and changes no other file of root.
#[test]
fn traps_at_output_paths_are_replaced() {
    if !kit::need_root() || !kit::need_perf_events() || !kit::need_tracefs("sched") {
        return;
    }
    let (root, data) = files_of_root();
    let victim = root.path().join("victim");
    let kept = (fs::read(&victim).unwrap(), fs::metadata(&victim).unwrap().mode());
    let may_make_devices = {
        let (at, mode) = (root.path().join("device"), Mode::from_raw_mode(0o600));
        mknodat(CWD, at, FileType::CharacterDevice, mode, makedev(1, 3)).is_ok()
    };
    let is_harmless = |reader: Option<File>| {
        let mut received = Vec::new();
        let _ = reader.map(|mut reader| reader.read_to_end(&mut received));
        received.is_empty()
            && (fs::read(&victim).unwrap(), fs::metadata(&victim).unwrap().mode()) == kept
            && fs::read_dir(root.path().join("folder")).unwrap().count() == 0
    };
    let fault = |folder: &Path, (line, written): OutputCommand, trap: Trap, number: usize| {
        let out = folder.join(format!("{number}.{trap:?}"));
        let ending = if let Written::Named(ending) = written { ending } else { "" };
        let path = PathBuf::from(format!("{}{ending}", out.display()));
        if line.starts_with("script") {
            fs::copy(&data, &out).unwrap();
        }
        let reader = trap.set(&path, root.path());
        let was = fs::symlink_metadata(&path).unwrap();
        let (of_in, of_out) = (data.to_str().unwrap(), out.to_str().unwrap());
        let typed = line.replace("IN", of_in).replace("OUT", of_out);
        let ran = run(folder, &typed.split(' ').collect::<Vec<_>>());
        let now = fs::symlink_metadata(&path).unwrap();
        let is_refused = written == Written::Folder || written == Written::Appended && trap == Trap::HardLink;
        let is_right = match is_refused {
            true => now.ino() == was.ino() && ran.status == Some(1) && ran.stderr.contains(of_out),
            false => {
                let is_own = now.is_file() && (now.uid(), now.nlink()) == (0, 1) && now.mode() & 0o111 == 0;
                is_own && now.len() > 0 && ran.status == Some(0)
            }
        };
        let is_fine = is_right && is_harmless(reader);
        (!is_fine).then(|| format!("{typed}: {trap:?}: {:?} {}\n{now:?}\n", ran.status, ran.stderr))
    };
    let walk = |(mode, owner)| {
        let folder = folder_of_others(mode, owner);
        let devices = |trap: &Trap| *trap != Trap::Device || may_make_devices;
        let cases = COMMANDS.into_iter().enumerate().flat_map(|(number, command)| {
            Trap::ALL.into_iter().filter(devices).map(move |trap| (number, command, trap))
        });
        cases.filter_map(|(number, command, trap)| fault(folder.path(), command, trap, number)).collect()
    };
    let faults: Vec<Vec<String>> = std::thread::scope(|scope| {
        let walk = &walk;
        let folders = [(0o1777, 0), (0o755, OTHER_USER)].map(|folder| scope.spawn(move || walk(folder)));
        folders.into_iter().map(|folder| folder.join().unwrap()).collect()
    });
    let faults = faults.concat();
    assert!(faults.is_empty(), "{}", faults.concat());
    kit::need("root", may_make_devices, "root may not create devices");
}

/// pmc still writes to standard output, devices, process substitutions and the user's own FIFOs.
#[test]
fn own_special_files_are_written() {
    if !kit::need_perf_events() || !kit::need_program("bash") || !kit::need_tracefs("raw_syscalls") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("in.data");
    let data = data.to_str().unwrap();
    kit::run(&["record", "-q", "-e", "cpu-clock", "-o", data, "--", "sh", "-c", busy_shell(100)]).expect(0);
    let script = |script: &str| {
        let mut command = Command::new("bash");
        let command = command.args(["-ec", script]).env("PMC", kit::binary()).current_dir(folder.path());
        Ran::from(command.env("PERF_CONFIG", "/dev/null").output().unwrap())
    };
    for (line, start) in [
        ("record -q -e cpu-clock -o OUT -- true", "PERFILE2"),
        ("inject -i IN -o OUT", "PERFILE2"),
        ("stat -e task-clock -o OUT -- true", "# started on"),
        ("trace -o OUT -- true", ""),
        ("export -q -i IN --format folded -o OUT", "sh"),
    ] {
        let to = |out: &str| format!("timeout 60 $PMC {}", line.replace("IN", data).replace("OUT", out));
        for shell in [
            format!("{} | cat", to("/dev/stdout")),
            format!("exec 3>&1; {} | cat", to(">(cat >&3)")),
            format!("mkfifo own; cat own & {}; wait; test -p own; rm own", to("own")),
        ] {
            let ran = script(&shell).expect(0);
            assert!(ran.stdout.starts_with(start) && !ran.stdout.is_empty(), "{shell}: {ran:?}");
        }
        script(&format!("{}; test -c /dev/null", to("/dev/null"))).expect(0);
    }
    // An archive must be a file.
    for out in ["own", "/dev/null"] {
        let ran = script(&format!("test -e own || mkfifo own; timeout 60 $PMC archive {data} -o {out}"));
        ran.expect(1).says(&[out, "not a regular file"]);
    }
    script("test -c /dev/null; test -p own").expect(0);
}

/// An export that replaces one of the user's files gets new permissions, which are never executable, and never
/// wider than the umask allows.
#[test]
fn exports_set_permissions_anew() {
    if !kit::need_perf_events() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [data, page] = ["in.data", "page.html"].map(|name| folder.path().join(name));
    let [data_path, page_path] = [&data, &page].map(|path| path.to_str().unwrap());
    kit::run(&["record", "-q", "-e", "cpu-clock", "-o", data_path, "--", "sh", "-c", busy_shell(100)])
        .expect(0);
    let export = format!("umask 022; exec {} export -q -i {data_path} -o {page_path}", kit::binary());
    for (former, now) in [(None, 0o644), (Some(0o755), 0o644), (Some(0o666), 0o644), (Some(0o600), 0o600)] {
        if let Some(former) = former {
            fs::set_permissions(&page, fs::Permissions::from_mode(former)).unwrap();
        }
        Ran::from(Command::new("sh").args(["-c", &export]).output().unwrap()).expect(0);
        assert_eq!(fs::metadata(&page).unwrap().mode() & 0o7777, now, "{former:?}");
    }
}
