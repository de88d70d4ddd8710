//! `pmc inject`: the same samples plus the requested additions, in a file or stream that both perfs read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::against::script;
use super::lab::{DEEP, Lab};
use crate::kit::{self, Ran, oracle};

/// Number of records of each kind, from `--stats`.
fn kinds(program: impl AsRef<std::ffi::OsStr>, file: &Path) -> BTreeMap<String, u64> {
    let stats =
        oracle::says(program, &["report".as_ref(), "--stats".as_ref(), "-i".as_ref(), file.as_os_str()]);
    let all = stats.lines().skip_while(|line| !line.contains("Aggregated stats:"));
    let all = all.take_while(|line| !line.ends_with(" stats:") || line.contains("Aggregated"));
    let count = |line: &str| {
        let (kind, count) = line.split_once(" events:")?;
        Some((kind.trim().to_owned(), count.split_whitespace().next()?.parse().ok()?))
    };
    all.filter_map(count).collect()
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perfdata").join(name)
}

fn inject(from: &Path, to: &Path, options: &[&str]) -> Ran {
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    kit::run(&[&["inject", "-i", from, "-o", to], options].concat())
}

/// Options that show all fields of samples.
const EVERYTHING: &[&str] = &["--ns"];

/// The header without the time of writing and the file offsets.
fn header(file: &Path) -> Vec<String> {
    let text = kit::run(&["script", "--header-only", "-i", file.to_str().unwrap()]).expect(0).stdout;
    let moves =
        ["form", "captured on", "data offset", "data size", "feat offset", "compressed", "missing features"];
    let label =
        |line: &str| line.trim_start_matches("# ").split(':').next().unwrap_or_default().trim().to_owned();
    let is_kept = |line: &&str| !moves.contains(&label(line).as_str());
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

#[test]
fn injected_copy_is_equal_in_file_and_pipe_form() {
    if !kit::need_program("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["fp.data", "packed.data", "stream.data", "traces.data"] {
        let (from, to, stream) = (stored(name), folder.path().join(name), folder.path().join("stream"));
        inject(&from, &to, &[]).expect(0);
        let mut pmc = kit::pmc();
        pmc.arg("inject").stdin(std::fs::File::open(&from).unwrap());
        let ran = pmc.stdout(std::fs::File::create(&stream).unwrap()).output().unwrap();
        Ran::from(ran).expect(0);
        let lines = script("pmc", &from, EVERYTHING);
        assert!(!lines.is_empty());
        for file in [&to, &stream] {
            assert_eq!(script("pmc", file, EVERYTHING), lines, "{}", file.display());
            // No perf reads a stream of tracepoints, not even its own.
            let perfs = if name == "traces.data" && file == &stream { Vec::new() } else { oracle::perfs() };
            for perf in perfs {
                let (before, after) = (kinds(&perf, &from), kinds(&perf, file));
                assert_eq!(before["SAMPLE"], after["SAMPLE"], "{perf:?} {}", file.display());
            }
        }
        assert_eq!(header(&from), header(&to), "{name}");
        assert!(!header(&to).is_empty());
        // The records have the kinds that perf inject keeps, except compressed ones.
        let theirs = folder.path().join("theirs");
        oracle::says(
            "perf",
            &["inject".as_ref(), "-i".as_ref(), from.as_os_str(), "-o".as_ref(), theirs.as_os_str()],
        );
        let (mut ours, mut theirs) = (kinds("perf", &to), kinds("perf", &theirs));
        [&mut ours, &mut theirs]
            .iter_mut()
            .for_each(|kinds| kinds.retain(|kind, _| kind != "TOTAL" && kind != "COMPRESSED"));
        // perf inject leaves a stream's header in the file, where it is meaningless.
        if name != "stream.data" {
            assert_eq!(ours, theirs, "{name}");
        }
    }
}

#[test]
fn build_ids_are_injected_into_stream_and_mappings() {
    if !kit::need_program("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (stored("fp.data"), folder.path().join("to"));
    let listed = kit::run(&["buildid-list", "-H", "-i", from.to_str().unwrap()]).expect(0).stdout;
    inject(&from, &to, &["-b"]).expect(0);
    let hit = kinds("perf", &to)["BUILD_ID"];
    assert!(hit > 0 && hit as usize >= listed.lines().count(), "{hit}: {listed}");
    inject(&from, &to, &["--buildid-all"]).expect(0);
    assert!(kinds("perf", &to)["BUILD_ID"] >= hit);
    // A build-id from the command line, for a file that does not exist.
    let given = "00112233445566778899aabbccddeeff00112233";
    let mapped = kit::run(&["script", "--show-mmap-events", "-i", from.to_str().unwrap()]).expect(0).stdout;
    let path = mapped.lines().find_map(|line| Some(line.split_once("]: r-xp ")?.1)).expect(&mapped);
    let known = format!("{given} {path}");
    inject(&from, &to, &["--known-build-ids", &known, "--buildid-all"]).expect(0);
    for perf in oracle::perfs() {
        let said = oracle::says(&perf, &["buildid-list".as_ref(), "-i".as_ref(), to.as_os_str()]);
        assert!(said.contains(&known), "{perf:?}: {said}");
    }
    inject(&from, &to, &["--known-build-ids", "nonsense"]).expect(2).says(&["'ID PATH,ID PATH'"]);

    inject(&from, &to, &["--mmap2-buildid-all", "--known-build-ids", &known]).expect(0);
    let mappings = kit::run(&["script", "--show-mmap-events", "-i", to.to_str().unwrap()]).expect(0).stdout;
    assert!(mappings.contains(&format!("<{given}>]: r-xp {path}")), "{mappings}");
    let before = kinds("perf", &from);
    assert_eq!(kinds("perf", &to)["MMAP2"], before["MMAP2"]);
    inject(&from, &to, &["-B"]).expect(0);
    let after = kinds("perf", &to);
    assert!(after["MMAP2"] <= before["MMAP2"] && after["SAMPLE"] == before["SAMPLE"], "{after:?}");
    assert_eq!(script("pmc", &to, EVERYTHING), script("pmc", &from, EVERYTHING));
}

#[test]
fn stack_copies_become_call_chains() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let options = ["-e", "cpu-clock", "-c", "2000000", "--call-graph", "dwarf,4096"];
    let from = lab.record("copies", &options, &[deep.to_str().unwrap()], false);
    let to = lab.path("chains");
    inject(&from, &to, &["--convert-callchain"]).expect(0);
    let size = |file: &Path| std::fs::metadata(file).unwrap().len();
    assert!(size(&to) * 4 < size(&from), "{} of {}", size(&to), size(&from));
    let names = |file: &Path| script("pmc", file, &["-F", "time,sym", "--no-inline"]);
    assert!(names(&from).contains("middle\n") && names(&from).contains("main\n"));
    assert_eq!(names(&to), names(&from));

    // A program that cannot be read has no unwind tables.
    let elsewhere = lab.path("elsewhere");
    let replaced = elsewhere.join(deep.strip_prefix("/").unwrap());
    std::fs::create_dir_all(replaced.parent().unwrap()).unwrap();
    std::fs::write(&replaced, "not a program").unwrap();
    let said =
        inject(&from, &lab.path("poor"), &["--convert-callchain", "--symfs", elsewhere.to_str().unwrap()]);
    said.expect(0).says(&[
        "call chains may lack callers",
        replaced.to_str().unwrap(),
        "not a valid ELF file",
    ]);
    for perf in oracle::perfs() {
        assert_eq!(kinds(&perf, &to)["SAMPLE"], kinds(&perf, &from)["SAMPLE"]);
        let chains = oracle::says(
            &perf,
            &["script".as_ref(), "-F".as_ref(), "ip,sym".as_ref(), "-i".as_ref(), to.as_os_str()],
        );
        assert!(chains.contains(" middle\n") && chains.contains(" main\n"), "{perf:?}: {chains}");
        let asked = oracle::says(&perf, &["evlist".as_ref(), "-v".as_ref(), "-i".as_ref(), to.as_os_str()]);
        assert!(asked.contains("CALLCHAIN") && !asked.contains("STACK_USER"), "{perf:?}: {asked}");
    }
}

/// Generates two functions, the second at the first one's address, and writes both to a jitdump.
const JITDUMP: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
static FILE *f;
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void load(unsigned char *at, const char *name, uint64_t index) {
  memcpy(at, code, sizeof code);
  uint32_t head[2] = {0, 56 + strlen(name) + 1 + sizeof code}, ids[2] = {getpid(), getpid()};
  uint64_t time = now(), rest[4] = {(uint64_t)at, (uint64_t)at, sizeof code, index};
  fwrite(head, 8, 1, f), fwrite(&time, 8, 1, f), fwrite(ids, 8, 1, f), fwrite(rest, 32, 1, f);
  fwrite(name, strlen(name) + 1, 1, f), fwrite(code, sizeof code, 1, f), fflush(f);
}
int main(void) {
  char name[64];
  sprintf(name, "jit-%d.dump", getpid());
  f = fopen(name, "w+");
  uint32_t head[6] = {0x4A695444, 1, 40, 62, 0, getpid()};
  uint64_t rest[2] = {now(), 0};
  fwrite(head, 24, 1, f), fwrite(rest, 16, 1, f), fflush(f);
  mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
  unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const char *names[] = {"first", "second"};
  for (int n = 0; n < 2; n++) {
    load(p, names[n], n);
    for_cpu_ms(100) ((void (*)(int))p)(loops(300000));
  }
  return 0;
}
"#;

#[test]
fn jitdump_code_becomes_elf_files_that_perf_reads() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("jitting", JITDUMP);
    let (from, to) = (lab.path("from"), lab.path("to"));
    let record = |clock: &[&str]| {
        let mut pmc = kit::pmc();
        pmc.args(["record", "-q", "-e", "cpu-clock", "-F", "1000"]).args(clock).arg("-o").arg(&from);
        let status = pmc.arg("--").arg(&program).current_dir(lab.path("")).status().expect("pmc starts");
        assert!(status.success());
    };
    record(&["-k", "mono"]);
    inject(&from, &to, &["-j"]).expect(0);
    let mut readers = oracle::perfs();
    readers.push(kit::binary().into());
    for reader in readers {
        assert_eq!(kinds(&reader, &to)["SAMPLE"], kinds(&reader, &from)["SAMPLE"]);
        let rows = oracle::says(
            &reader,
            &[
                "report".as_ref(),
                "--stdio".as_ref(),
                "-s".as_ref(),
                "sym,dso".as_ref(),
                "-i".as_ref(),
                to.as_os_str(),
            ],
        );
        for (name, file) in [("first", "-0.so"), ("second", "-1.so")] {
            let is_there = |line: &str| line.contains(&format!("[.] {name} ")) && line.contains(file);
            assert!(rows.lines().any(is_there), "{reader:?}: {name}: {rows}");
        }
    }
    // With another clock, the times of the code would be meaningless.
    record(&[]);
    std::fs::remove_file(&to).unwrap();
    inject(&from, &to, &["-j"]).expect(1).says(&["CLOCK_MONOTONIC", "-k mono"]);
    assert!(!to.exists(), "there is no half file");
}

#[test]
fn failed_inject_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, small) = (stored("dwarf.data"), folder.path().join("small"));
    let same = folder.path().join("same");
    std::fs::copy(&from, &same).unwrap();
    inject(&same, &same, &[]).expect(2).says(&["input and output are the same file"]);
    assert_eq!(std::fs::read(&same).unwrap(), std::fs::read(&from).unwrap());
    inject(&from, &same, &["--itrace"]).expect(2).says(&["instruction traces"]);
    std::fs::create_dir(&small).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(&small).stderr(Stdio::null());
    let mounted = kit::need_root() && mount.status().is_ok_and(|status| status.success());
    if !kit::need("mount", mounted, "tmpfs cannot be mounted here") {
        return;
    }
    let ran = inject(&from, &small.join("perf.data"), &[]);
    let left: Vec<_> = std::fs::read_dir(&small).unwrap().flatten().map(|entry| entry.path()).collect();
    Command::new("umount").arg(&small).status().unwrap();
    ran.expect(1).says(&["the file system is full"]);
    assert!(left.is_empty(), "{left:?}");
}
