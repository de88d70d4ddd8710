//! Files with names that exist and cannot be opened: each command gives the reason.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::lab::{DEEP, Lab};
use crate::kit::burn::burn_flags;
use crate::kit::{self, Ran};

/// Prints a recording with each command that looks up names.
const COMMANDS: [&[&str]; 3] =
    [&["report", "--stdio", "-i"], &["script", "-i"], &["export", "--format", "folded", "-o", "-", "-i"]];

/// A command that reads neither the user's configuration nor their caches.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PERF_CONFIG", "/dev/null").env("HOME", "/nonexistent").env_remove("XDG_CACHE_HOME");
    command
}

#[test]
fn exhausted_descriptors_are_reported() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let deep = deep.to_str().unwrap();
    assert!(Command::new("strip").arg(deep).status().unwrap().success());
    let file = lab.record("few", &["-e", "cpu-clock:u"], &[deep], false);
    for words in COMMANDS {
        // Opening a file takes a second descriptor to check its kind. One is left next to the standard streams
        // and the recording.
        let limited = "ulimit -n 5 && exec \"$0\" \"$@\" 3>&-";
        let ran = command("sh").args(["-c", limited, kit::binary()]).args(words).arg(&file).output();
        let ran = Ran::from(ran.unwrap()).expect(0);
        assert!(ran.stderr.contains(".debug: Too many open files (EMFILE)"), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("names or source lines are missing: "), "{words:?}: {ran:?}");
    }
}

#[test]
fn unreadable_debug_folder_is_reported_once() {
    if !kit::need_perf_events()
        || !kit::need_root()
        || !kit::need_program("gcc")
        || !kit::need_program("setpriv")
    {
        return;
    }
    let folder =
        |mode| tempfile::Builder::new().permissions(PermissionsExt::from_mode(mode)).tempdir().unwrap();
    let (public, closed) = (folder(0o755), folder(0o700));
    let at = |name: &str| public.path().join(name).to_str().unwrap().to_owned();
    let (pmc, source, program, data) = (at("pmc"), at("deep.c"), at("deep"), at("data"));
    kit::copy_program(kit::binary(), Path::new(&pmc));
    std::fs::write(&source, DEEP).unwrap();
    let mut gcc = Command::new("gcc");
    let built = gcc.args(burn_flags()).args(["-O1", "-Wl,--build-id", "-o", &program, &source]).status();
    assert!(built.unwrap().success());
    kit::run(&["record", "-N", "-e", "cpu-clock:u", "-o", &data, "--", &program]).expect(0);
    std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();

    let mut script = command("setpriv");
    script.args(["--reuid=65534", "--regid=65534", "--clear-groups", &pmc, "script", "-i", &data]);
    script.env("PERF_BUILDID_DIR", closed.path().join("cache"));
    let ran = Ran::from(script.output().unwrap()).expect(0).prints(&["leaf"]);
    let refused: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("(EACCES)")).collect();
    let expected = format!("missing: {}: Permission denied (EACCES)", closed.path().display());
    assert!(matches!(refused[..], [one] if one.ends_with(&expected)), "{refused:?}");
}

#[test]
fn unused_vmlinux_option_is_reported() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_kernel_mode() {
        return;
    }
    let kernel = lab.record("kernel", &["-e", "cpu-clock:k"], &["ls", "-R", "/usr/share"], false);
    let none = lab.path("none");
    std::fs::write(&none, "a text, not a kernel").unwrap();
    let told =
        format!("--vmlinux is not used: {}: not a valid ELF file (Unknown file magic)", none.display());
    for words in COMMANDS {
        let ran = command(kit::binary()).args(words).arg(&kernel).arg("--vmlinux").arg(&none).output();
        let ran = Ran::from(ran.unwrap()).expect(0);
        assert!(ran.stderr.contains(&told), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn cut_recording_of_counts_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording/perf6-stat.data");
    let bytes = std::fs::read(&whole).unwrap();
    // Offset and size of the records.
    let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    std::fs::write(&cut, &bytes[..word(40) + word(48) / 2]).unwrap();
    for (file, status) in [(&whole, 0), (&cut, 1)] {
        let ran = Ran::from(kit::pmc().args(["report", "--stdio", "-T", "-i"]).arg(file).output().unwrap());
        let ran = ran.expect(status);
        assert_eq!(ran.stderr.is_empty(), status == 0, "{ran:?}");
    }
}
