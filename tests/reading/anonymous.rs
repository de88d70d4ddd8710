//! `pmc archive --anonymous` and `pmc inject --aslr`: nothing hidden remains in the bytes, and pmc and perf
//! show the same functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::path::{Path, PathBuf};

use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::{MappedFileId, Mmap2, Record};

use crate::kit::burn::busy_shell_with;
use crate::kit::lab::{self, Lab};
use crate::kit::{self, oracle};

/// Copies a variable of its environment, because the kernel cannot always read the pages of the environment.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
__attribute__((noinline)) void hot(long n) { sink += chain(sink, n * 20); sink++; }
__attribute__((noinline)) void warm(long n) { sink += chain(sink, n * 10); sink++; }
int main(void) {
    char copy[64] = "";
    strncpy(copy, getenv("SECRET"), sizeof copy - 1);
    __asm__ volatile("" : : "r"(copy) : "memory");
    prctl(PR_SET_NAME, "qzxthread");
    for_cpu_ms(150) { long n = uneven(); hot(n); warm(n); }
    __asm__ volatile("" : : "r"(copy) : "memory");
    return 0;
}
"#;

/// Names that an anonymous archive must not contain: of a folder, a thread, an argument and a variable.
const SECRETS: [&str; 4] = ["qzxfolder", "qzxthread", "qzxargument", "qzxvariable"];

/// Records the program with its stack and registers, and if possible with strings in raw data.
fn record(lab: &Lab, name: &str) -> PathBuf {
    fs::create_dir_all(lab.path("qzxfolder")).unwrap();
    let source = [lab::CHAIN, PROGRAM].concat();
    let program = lab.build("qzxfolder/prog", &source, &["-O1", "-g", "-fno-omit-frame-pointer"]);
    let file = lab.path(name);
    let mut command = kit::pmc();
    command.args(["record", "-q", "-e", "cpu-clock:u", "-F", "2000", "--call-graph", "dwarf,65528"]);
    command.args(["--unwind", "deferred", "--user-regs=ip,sp,bp", "-o"]).arg(&file);
    if kit::tracefs().is_some() {
        command.args(["-e", "sched:sched_process_exec"]);
    }
    command.arg(program).arg("qzxargument").env("SECRET", "qzxvariable");
    kit::Ran::from(command.output().unwrap()).expect(0);
    file
}

/// Returns the bytes of a recording, with the contents of an archive's section.
fn bytes(file: &Path) -> Vec<u8> {
    let mut bytes = fs::read(file).unwrap();
    if let Some(section) = &Reader::open(file).unwrap().features().archive {
        let at = section.0.windows(4).position(|window| window == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
        let mut decoder = zstd::stream::read::Decoder::new(&section.0[at..]).unwrap().single_frame();
        std::io::copy(&mut decoder, &mut bytes).unwrap();
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns the mappings of programs and libraries: start and end.
fn mappings(file: &Path) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let reader = Reader::open(file).unwrap();
    reader
        .scan(|raw| {
            if let Some(Record::Mmap2(Mmap2 { map, .. })) = raw.parse() {
                all.push((map.addr, map.addr + map.len));
            }
        })
        .unwrap();
    all
}

/// Returns the number of places in the bytes with an address in one of the ranges.
fn addresses(bytes: &[u8], ranges: &[(u64, u64)]) -> usize {
    let words = bytes.windows(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.filter(|word| ranges.iter().any(|(start, end)| (start..end).contains(&word))).count()
}

/// Returns the rows of a report by function.
fn rows(program: &str, file: &Path) -> Vec<String> {
    rows_by("sym,dso", program, file)
}

fn rows_by(keys: &str, program: &str, file: &Path) -> Vec<String> {
    let file = file.to_str().unwrap();
    let words = ["report", "--stdio", "--no-children", "-g", "none", "-s", keys, "-i", file];
    let text = oracle::says(program, &words);
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn inject(from: &Path, to: &Path, options: &[&str]) {
    let ran = kit::pmc().arg("inject").args(options).arg("-i").arg(from).arg("-o").arg(to).output();
    kit::Ran::from(ran.unwrap()).expect(0);
}

#[test]
fn anonymous_archive_contains_no_hidden_name_or_address() {
    let Some(lab) = Lab::new() else { return };
    let recorded = record(&lab, "perf.data");
    let archive = lab.path("anonymous");
    let ran = kit::pmc().args(["archive", "--anonymous", "-o"]).args([&archive, &recorded]).output();
    kit::Ran::from(ran.unwrap()).expect(0).says(&["left in the file: names of functions", "CPU model"]);

    let (before, after) = (bytes(&recorded), bytes(&archive));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let temporary = lab.path("").to_str().unwrap().trim_matches('/').rsplit('/').next().unwrap().to_owned();
    // A short name also occurs by chance.
    let host_name = Some(&host[..]).filter(|host| host.len() > 4);
    for name in SECRETS.into_iter().chain([&temporary[..]]).chain(host_name) {
        assert!(contains(&before, name), "the recording lacks {name}");
        assert!(!contains(&after, name), "{name}");
    }
    let ranges: Vec<(u64, u64)> =
        mappings(&recorded).into_iter().filter(|(start, _)| *start > 1 << 40).collect();
    assert!(addresses(&before, &ranges) > 100);
    assert_eq!(addresses(&after, &ranges), 0);

    Reader::open(&archive)
        .unwrap()
        .scan(|raw| {
            if let Some(Record::Mmap2(map)) = raw.parse() {
                let name = String::from_utf8_lossy(map.map.name);
                let is_hidden = ["/folder", "/memfd:", "//", "["].iter().any(|start| name.starts_with(start));
                assert!(is_hidden, "{name}");
                assert!(!matches!(map.file, MappedFileId::Inode { inode: 1.., .. }), "{name}");
            }
        })
        .unwrap();

    let reader = Reader::open(&archive).unwrap();
    assert_eq!(reader.features().hostname.as_deref(), Some("hidden"));
    assert_eq!(reader.features().cmdline.as_deref(), Some(&["hidden".to_owned()][..]));

    let expected = rows(kit::binary(), &recorded);
    assert!(expected[0].contains("hot") && expected[0].contains("prog"), "{expected:?}");
    assert_eq!(rows(kit::binary(), &archive), expected);
    // perf reads it, but does not read the archive's section, and the programs are not at their new paths.
    let chains = lab.path("chains");
    inject(&recorded, &chains, &["--convert-callchain"]);
    assert_eq!(rows_by("dso", "perf", &archive), rows_by("dso", "perf", &chains));
    let again =
        kit::pmc().args(["archive", "--anonymous", "-o"]).args([lab.path("again"), archive.clone()]).output();
    kit::Ran::from(again.unwrap()).expect(1).says(&["is an archive already"]);
    // The same name has the same replacement.
    let names = kit::run(&["report", "--stdio", "-s", "comm,dso", "-i", archive.to_str().unwrap()]).expect(0);
    assert!(names.stdout.contains("thread") && !names.stdout.contains("qzx"), "{}", names.stdout);
    let paths = kit::run(&["script", "-F", "ip,dso", "-i", archive.to_str().unwrap()]).expect(0).stdout;
    assert!(paths.contains("/prog)") && paths.contains("(/folder"), "{paths}");
}

#[test]
fn runs_with_different_layouts_get_the_same_addresses() {
    let Some(lab) = Lab::new() else { return };
    let recorded = ["first", "second"].map(|name| record(&lab, name));
    let moved = recorded.each_ref().map(|file| file.with_extension("moved"));
    for (from, to) in recorded.iter().zip(&moved) {
        inject(from, to, &["--aslr", "--convert-callchain"]);
        assert_eq!(rows(kit::binary(), to), rows(kit::binary(), from));
        let ranges: Vec<(u64, u64)> =
            mappings(from).into_iter().filter(|(start, _)| *start > 1 << 40).collect();
        assert_eq!(addresses(&bytes(to), &ranges), 0);
    }
    let starts = |files: &[PathBuf; 2]| files.each_ref().map(|file| mappings(file));
    let [first, second] = starts(&recorded);
    assert_ne!(first, second, "the kernel does not randomize addresses");
    let [first, second] = starts(&moved);
    assert_eq!(first, second);
    // A stream has the same contents.
    let stream = lab.path("stream");
    let mut command = kit::pmc();
    command.args(["inject", "--aslr", "--convert-callchain", "-o", "-", "-i"]).arg(&recorded[0]);
    let status = command.stdout(fs::File::create(&stream).unwrap()).status().unwrap();
    assert!(status.success());
    assert_eq!(rows(kit::binary(), &stream), rows(kit::binary(), &recorded[0]));
    assert_eq!(mappings(&stream), first);
    // Without converting them, the copied stacks are removed.
    let plain = lab.path("plain");
    inject(&recorded[0], &plain, &["--aslr"]);
    let bytes = bytes(&plain);
    assert!(!contains(&bytes, "SECRET=qzxvariable") && contains(&bytes, "qzxfolder"));
}

#[test]
fn kernel_moves_to_where_it_is_without_randomization() {
    let Some(lab) = Lab::new() else { return };
    if !(kit::need_kernel_mode() && cfg!(target_arch = "x86_64")) {
        return;
    }
    let file = lab.path("perf.data");
    let work = ["sh", "-c", busy_shell_with(200, "head -c 1000000 /dev/zero >/dev/null")];
    let mut command = kit::pmc();
    command.args(["record", "-q", "-e", "cpu-clock:k", "-F", "5000", "-g", "-o"]).arg(&file).args(work);
    kit::Ran::from(command.output().unwrap()).expect(0);
    // The same recording by a kernel at another place.
    const DISTANCE: u64 = 0x0e00_0000;
    let kernel = [(0xffff_ffff_8000_0000, 0xffff_ffff_a000_0000)];
    let mut bytes = fs::read(&file).unwrap();
    for word in bytes.as_chunks_mut::<8>().0 {
        let address = u64::from_le_bytes(*word);
        if (kernel[0].0..kernel[0].1).contains(&address) {
            *word = (address + DISTANCE).to_le_bytes();
        }
    }
    let [random, moved, own] = ["random", "moved", "own"].map(|name| lab.path(name));
    fs::write(&random, bytes).unwrap();
    inject(&random, &moved, &["--aslr"]);
    inject(&file, &own, &["--aslr"]);
    assert!(rows(kit::binary(), &file).len() > 5);
    assert_eq!(rows(kit::binary(), &moved), rows(kit::binary(), &file));
    assert_eq!(rows("perf", &moved), rows("perf", &file));
    // The original address no longer matters.
    assert_eq!(fs::read(&moved).unwrap(), fs::read(&own).unwrap());
}

#[test]
fn all_kinds_of_recordings_are_moved_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording");
    let mut written = 0;
    for path in fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()) {
        let (file, output) = (path.to_str().unwrap(), folder.path().join("output"));
        let output = output.to_str().unwrap();
        for words in [
            &["inject", "--aslr", "-i", file, "-o", output][..],
            &["archive", "--anonymous", "--no-debuginfod", file, "-o", output],
        ] {
            let _ = fs::remove_file(output);
            let ran = kit::run(words);
            let is_written = fs::exists(output).unwrap();
            assert!(
                matches!(ran.status, Some(0..=2)) && !ran.stderr.contains("panicked"),
                "{words:?}: {}",
                ran.stderr
            );
            if is_written {
                kit::run(&["report", "--stdio", "-i", output]);
                written += 1;
            }
        }
    }
    assert!(written > 40, "only {written} written");
}

#[test]
fn mapping_up_to_the_last_address_is_refused() {
    let mut bytes = fs::read(kit::data("perfdata").join("fp.data")).unwrap();
    let name = bytes.windows(9).position(|window| window == b"/usr/bin/").unwrap();
    // In MMAP2 records, the length is 48 bytes before the name.
    bytes[name - 48..name - 40].fill(0xff);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    fs::write(&file, bytes).unwrap();
    let ran = kit::run(&["inject", "--aslr", "-i", file.to_str().unwrap(), "-o", "/dev/null"]);
    ran.expect(1).says(&["the recorded mappings are too large", "the recording may be damaged"]);
}

#[test]
fn imports_become_anonymous_archives_with_their_functions() {
    let folder = tempfile::tempdir().unwrap();
    let (stacks, archive) = (folder.path().join("a.folded"), folder.path().join("a.archive"));
    std::fs::write(&stacks, "secret;main;work 7\nsecret;main;read_[k] 3\n").unwrap();
    let paths = [&stacks, &archive].map(|path| path.to_str().unwrap());
    // The second archive replaces the first.
    for _ in 0..2 {
        let ran = kit::run(&["archive", "--anonymous", "-o", paths[1], paths[0]]).expect(0);
        assert!(!ran.stderr.contains("killed"), "{}", ran.stderr);
    }
    let rows = |path: &str| kit::run(&["report", "--csv", "-s", "sym", "-i", path]).expect(0).stdout;
    assert_eq!(rows(paths[0]), rows(paths[1]));
    assert!(rows(paths[1]).contains("work") && rows(paths[1]).contains("read"), "{}", rows(paths[1]));
    assert!(!contains(&bytes(&archive), "secret"));
}
