//! Names that a user's process writes to `/tmp` for its generated code, read by root after the process has
//! ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::kit::{self, Ran, lab};

/// Runs generated code for 0.3 s of CPU time, and prints the path of the file with its name.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef __aarch64__
static const unsigned char forever[] = {0, 0, 0, 0x14};
#else
static const unsigned char forever[] = {0xeb, 0xfe};
#endif
int main(void) {
    char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, forever, sizeof forever);
    __builtin___clear_cache(code, code + sizeof forever);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *names = fopen(path, "w");
    fprintf(names, "%lx 10 generated_loop\n", (unsigned long)code);
    fclose(names);
    puts(path);
    fflush(stdout);
    struct itimerval time = {{0, 0}, {0, 300000}};
    setitimer(ITIMER_VIRTUAL, &time, 0);
    ((void (*)(void))code)();
}
"#;
/// 128 and SIGVTALRM.
const ENDED_BY_TIMER: i32 = 154;

#[test]
fn names_of_generated_code_are_read_after_the_process_has_ended() {
    if !kit::need_root() || !kit::need_perf_events() || !kit::need_program("setpriv") {
        return;
    }
    if !kit::need_program("gcc") {
        return;
    }
    let folder = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let program = lab::build(folder.path(), "jit", PROGRAM, &[]);
    let data = folder.path().join("perf.data");
    let data = data.to_str().unwrap();
    let mut command = kit::pmc();
    command.args(["record", "-q", "-e", "cpu-clock", "-o", data, "--", "setpriv", "--reuid=65534"]);
    command.args(["--regid=65534", "--clear-groups"]).arg(&program);
    let ran = Ran::from(command.output().unwrap()).expect(ENDED_BY_TIMER);
    let map = ran.stdout.trim();
    let report = ["report", "--stdio", "-s", "sym", "-i", data];
    let named = kit::run(&report);
    // The same file of a third user is not read.
    Command::new("chown").args(["65533", map]).status().unwrap();
    let other = kit::run(&report);
    fs::remove_file(map).unwrap();
    assert!(named.stdout.contains("generated_loop") && !named.stderr.contains("owned"), "{named:?}");
    assert!(!other.stdout.contains("generated_loop"), "{other:?}");
    assert!(other.stderr.contains("is owned by user 65533"), "{other:?}");
}
