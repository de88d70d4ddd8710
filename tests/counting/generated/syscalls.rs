//! Checks the committed tables of system calls against the headers of the kernel, with `tests/syscall-tables`.

use crate::kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tables() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pmc-sys/src/abi/syscall")
}

fn check(folder: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/syscall-tables");
    Command::new("python3").arg(script).arg("--check").arg(folder).output().expect("python3 starts")
}

#[test]
fn tables_of_system_calls_match_the_headers() {
    let headers = Path::new("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
    let reason = "no headers of the x86-64 kernel (package linux-libc-dev)";
    if !kit::need_program("python3") || !kit::need("kernel-headers", headers.exists(), reason) {
        return;
    }
    let said = check(&tables());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
    // A wrong number, a missing call and a wrong flag are found.
    let folder = tempfile::tempdir().unwrap();
    for (file, right, wrong) in [
        ("calls.tsv", "\nopenat\t257\t", "\nopenat\t258\t"),
        ("flags.tsv", "PROT_READ=0x1 ", "PROT_READ=0x8 "),
    ] {
        let table = std::fs::read_to_string(tables().join(file)).unwrap();
        assert!(table.contains(right), "{file}");
        let table = table.replacen(right, wrong, 1).replace("\nfsync\t", "\nfsync2\t");
        std::fs::write(folder.path().join(file), table).unwrap();
    }
    let said = check(folder.path());
    let differences = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{differences}{}", text(&said.stderr));
    assert!(
        differences.contains("calls.tsv: openat\t257\t") && differences.contains("calls.tsv: fsync\t74\t")
    );
    assert_eq!(differences.contains("PROT_READ=0x1 "), cfg!(target_arch = "x86_64"), "{differences}");
}
