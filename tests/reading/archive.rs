//! `pmc archive`: recordings whose output does not depend on the files of the machine that reads them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pmc_perfdata::perfdata::{FeatureNumber, Reader, copy_with_section};

use crate::kit::lab::{self, Lab};
use crate::kit::{self, Ran, oracle};

/// A program that spends its time in inlined functions and in a library of its own.
const PROGRAM: &str = r#"
extern long weigh(long, long);
/* A comment, which listings show. */
static inline __attribute__((always_inline)) long inner(long x, long n) {
    return chain(x, n) + 1;
}
static inline __attribute__((always_inline)) long outer(long x, long n) { return inner(x, n) ^ 5; }
__attribute__((noinline)) long hot(long n) {
    /* Needs a frame, so that chains by frame pointers contain the caller. */
    long x = sink + (__builtin_frame_address(0) == 0);
    for (long i = 0; i < 30; i++)
        x = outer(x, n);
    return x;
}
/* The name is not in the source text. */
long unused[8] __asm__("never_" "used");
int main(void) {
    for_cpu_ms(300) {
        long n = uneven();
        sink += hot(n);
        sink += weigh(sink, n * 20);
    }
    return 0;
}













/* far from all code */
"#;

const LIBRARY: &str = r#"
long weigh(long x, long n) { return chain(x, n); }
"#;

/// Commands that must give the same output for a recording and its archive. `OUT` is a placeholder for the
/// output file.
const COMMANDS: &[&str] = &[
    "report --stdio",
    "report --stdio -v --children",
    "report --stdio --no-children -g caller -s dso,sym,srcline",
    "report --json",
    "annotate --stdio2",
    "annotate --stdio2 -M intel --no-source",
    "annotate --json",
    "script",
    "script --inline -F comm,tid,time,ip,sym,symoff,dso,srcline",
    "script -F ip,sym,insn,disasm",
    "script -F ip,sym,srcline,srccode",
    "diff --stdio perf.data perf.data",
    "buildid-list",
    "export --format html -o OUT",
    "export --format svg -o OUT",
    "export --format folded -o OUT",
    "export --format firefox -o OUT",
    "export --format perfetto -o OUT",
    "export --format speedscope -o OUT",
    "export --format pprof -o OUT",
    "export --format callgrind -o OUT",
    "export --format json -o OUT",
    "export --format csv -o OUT",
];

/// Runs pmc in a folder, with a home folder without caches.
fn pmc(folder: &Path, words: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let mut command = kit::pmc();
    command.current_dir(folder).env("HOME", home.path()).env_remove("XDG_CACHE_HOME").args(words);
    Ran::from(command.output().unwrap())
}

/// Output of each command on `perf.data` in a folder: standard output, messages and the written file.
fn outputs(folder: &Path) -> Vec<(&'static str, Ran, Vec<u8>)> {
    let run = |line: &&'static str| {
        let out = folder.join("written");
        let words: Vec<&str> =
            line.split(' ').map(|word| if word == "OUT" { "written" } else { word }).collect();
        let ran = pmc(folder, &words);
        let written = fs::read(&out).unwrap_or_default();
        let _ = fs::remove_file(out);
        (*line, ran.expect(0), written)
    };
    COMMANDS.iter().map(run).collect()
}

#[track_caller]
fn assert_same(before: &[(&str, Ran, Vec<u8>)], after: &[(&str, Ran, Vec<u8>)]) {
    for ((line, was, file), (_, is, again)) in before.iter().zip(after) {
        assert_eq!(was.stdout, is.stdout, "{line}");
        assert_eq!(was.stderr, is.stderr, "{line}");
        assert!(file == again, "the file of {line} differs");
        assert!(!line.contains("OUT") || !file.is_empty(), "{line}");
    }
}

/// Builds the program, and returns its folder with a recording of it.
fn recorded(lab: &Lab) -> PathBuf {
    let folder = lab.path("work");
    fs::create_dir(&folder).unwrap();
    build(lab, "-O1");
    let words = ["record", "-F", "2000", "-g", "-e", "cpu-clock:u", "-o", "perf.data", "--", "./program"];
    pmc(&folder, &words).expect(0);
    folder
}

fn build(lab: &Lab, optimization: &str) {
    let library = [lab::CHAIN, LIBRARY].concat();
    let flags = [optimization, "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1"];
    lab.build("work/libweigh.so", &library, &flags);
    let program = [lab::CHAIN, PROGRAM].concat();
    let folder = lab.path("work");
    let library = folder.join("libweigh.so");
    let library = library.to_str().unwrap();
    let link = ["-Wl,--build-id=sha1", "-Wl,--no-as-needed", library];
    let flags = [&[optimization, "-g", "-fno-omit-frame-pointer"], &link[..]].concat();
    lab.build("work/program", &program, &flags);
}

#[test]
fn archive_gives_the_same_output_without_the_files() {
    let Some(lab) = Lab::new() else { return };
    let folder = recorded(&lab);
    let before = outputs(&folder);
    let report = &before[0].1.stdout;
    assert!(["hot", "weigh", "inner"].iter().all(|name| report.contains(name)), "{report}");
    let annotated = &before[4].1.stdout;
    assert!(["imul", "always_inline"].iter().all(|text| annotated.contains(text)), "{annotated}");
    pmc(&folder, &["archive"]).expect(0).says(&["perf.data.archive: ", " of symbols and code"]);
    // The code of callers is shown without samples too.
    let callers = || {
        let show = |words: &[&str]| {
            let ran = pmc(&folder, words).expect(0);
            (ran.stdout, ran.stderr)
        };
        [["annotate", "--stdio2", "main"], ["annotate", "--json", "main"]].map(|words| show(&words))
    };
    let callers_before = callers();
    assert!(callers_before[0].0.contains("sink += weigh"), "{}", callers_before[0].0);
    pmc(&folder, &["archive", "--with-debug", "-o", "with-debug"]).expect(0);
    for file in ["program", "program.c", "libweigh.so", "libweigh.so.c", "perf.data"] {
        fs::remove_file(folder.join(file)).unwrap();
    }
    fs::rename(folder.join("perf.data.archive"), folder.join("perf.data")).unwrap();
    assert_same(&before, &outputs(&folder));
    // Other builds at the same paths are not used.
    build(&lab, "-O2");
    assert_same(&before, &outputs(&folder));
    // An archive of an archive has the same contents.
    pmc(&folder, &["archive"]).expect(0);
    fs::rename(folder.join("perf.data.archive"), folder.join("perf.data")).unwrap();
    assert_same(&before, &outputs(&folder));
    fs::rename(folder.join("with-debug"), folder.join("perf.data")).unwrap();
    assert_same(&before, &outputs(&folder));
    assert_eq!(callers_before, callers());
    pmc(&folder, &["archive", "--with-debug"]).expect(0);
    fs::rename(folder.join("perf.data.archive"), folder.join("perf.data")).unwrap();
    assert_eq!(callers_before, callers());
}

#[test]
fn perf_reads_archives_like_recordings() {
    let Some(lab) = Lab::new() else { return };
    let folder = recorded(&lab);
    pmc(&folder, &["archive"]).expect(0);
    for perf in oracle::perfs() {
        let ask = |words: &[&str], file: &str| {
            let mut command = Command::new(&perf);
            command.current_dir(&folder).args(words).args(["-i", file]).env("PERF_CONFIG", "/dev/null");
            let ran = Ran::from(command.stdin(std::process::Stdio::null()).output().unwrap()).expect(0);
            let is_fixed = |line: &&str| !line.starts_with("# (Tip") && !line.starts_with("# captured on");
            let lines: Vec<String> = ran.stdout.lines().filter(is_fixed).map(str::to_owned).collect();
            (lines, ran.stderr)
        };
        for words in
            [&["script"][..], &["report", "--stdio"], &["report", "--header-only"], &["buildid-list"]]
        {
            let (before, after) = (ask(words, "perf.data"), ask(words, "perf.data.archive"));
            assert!(before.0.len() > 1, "{perf:?} {words:?}");
            assert_eq!(before, after, "{perf:?} {words:?}");
        }
    }
}

#[test]
fn archive_has_the_same_callers_if_only_some_events_copied_the_stack() {
    let Some(lab) = Lab::new() else { return };
    if !(kit::need_perf_events() && kit::need_program("perf")) {
        return;
    }
    let folder = recorded(&lab);
    // perf prints callers from copies as addresses inside the calls, and other callers as return addresses.
    for other in ["page-faults/call-graph=fp/u", "page-faults/call-graph=no/u"] {
        let perf = Command::new("perf")
            .args([
                "record",
                "-q",
                "-e",
                "cpu-clock/call-graph=dwarf/u",
                "-e",
                other,
                "-o",
                "perf.data",
                "./program",
            ])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
        pmc(&folder, &["archive", "-o", "new.archive"]).expect(0);
        let [before, after] = ["perf.data", "new.archive"]
            .map(|file| pmc(&folder, &["script", "-F", "event,ip,sym,symoff", "-i", file]).expect(0).stdout);
        assert!(before.contains("main"), "{before}");
        assert_eq!(before, after, "{other}");
    }
}

#[test]
fn streams_and_packed_recordings_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["stream.data", "packed.data", "dwarf.data", "traces.data", "fp.data"] {
        let stored = kit::data("perfdata").join(name);
        let was = folder.path().join("perf.data");
        fs::copy(&stored, &was).unwrap();
        let reports = || {
            let report = pmc(folder.path(), &["report", "--stdio", "--children"]).expect(0);
            let script = pmc(folder.path(), &["script", "-F", "ip,sym,dso"]).expect(0);
            let csv = pmc(folder.path(), &["export", "--format", "csv", "-o", "-"]).expect(0);
            [report, script, csv].map(|ran| (ran.stdout, ran.stderr))
        };
        let before = reports();
        pmc(folder.path(), &["archive", "-o", "archived"]).expect(0);
        fs::rename(folder.path().join("archived"), &was).unwrap();
        assert_eq!(before, reports(), "{name}");
    }
    // A killed recorder leaves no feature sections.
    let whole = kit::data("perfdata").join("fp.data");
    let reader = Reader::open(&whole).unwrap();
    let middle = (reader.data_offset() + reader.data_size() / 2) as usize;
    let killed = folder.path().join("killed.data");
    fs::write(&killed, &fs::read(&whole).unwrap()[..middle]).unwrap();
    pmc(folder.path(), &["archive", "killed.data"]).expect(1);
    pmc(folder.path(), &["report", "--stdio", "-i", "killed.data.archive"]).expect(0).prints(&["%"]);
}

#[test]
fn contents_can_be_left_out_or_extended() {
    let Some(lab) = Lab::new() else { return };
    let folder = recorded(&lab);
    let report = pmc(&folder, &["report", "--stdio"]).expect(0).stdout;
    pmc(&folder, &["archive", "-o", "plain"]).expect(0);
    pmc(&folder, &["archive", "--no-code", "-o", "small"]).expect(0);
    pmc(&folder, &["archive", "--with-source", "-o", "large"]).expect(0);
    pmc(&folder, &["archive", "--with-debug", "-o", "debug"]).expect(0);
    let size = |name: &str| fs::metadata(folder.join(name)).unwrap().len();
    assert!(size("small") < size("plain") && size("plain") < size("large"));
    assert!(size("plain") < size("debug"));
    for name in ["program", "program.c", "libweigh.so", "libweigh.so.c"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for name in ["plain", "small", "large", "debug"] {
        assert_eq!(pmc(&folder, &["report", "--stdio", "-i", name]).expect(0).stdout, report, "{name}");
    }
    let annotated = pmc(&folder, &["annotate", "--stdio2", "-i", "small", "hot"]).expect(0);
    assert!(!annotated.stdout.contains("imul"));
    annotated.prints(&["the archive does not contain this code"]);
    for (name, has_source, has_variables) in
        [("plain", false, false), ("large", true, false), ("debug", false, true)]
    {
        let section = Reader::open(folder.join(name)).unwrap().features().archive.clone().unwrap();
        let unpacked = unpacked(&section.0);
        let has = |text: &[u8]| unpacked.windows(text.len()).any(|window| window == text);
        // Only whole files contain the comment at the end, and nothing refers to the variable.
        assert_eq!(has(b"/* far from all code */"), has_source, "{name}");
        assert_eq!(has(b"never_used"), has_variables, "{name}");
    }
}

#[test]
fn unusable_options_and_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(kit::data("perfdata").join("fp.data"), folder.path().join("perf.data")).unwrap();
    let run = |words: &[&str]| pmc(folder.path(), words);
    run(&["archive", "--all"]).expect(2).says(&["--perf"]);
    run(&["archive", "--perf", "--no-code"]).expect(2).says(&["--no-code"]);
    for other in ["--perf", "--no-code", "--anonymous"] {
        run(&["archive", "--with-debug", other]).expect(2).says(&["--with-debug", other]);
    }
    run(&["archive", "-o", "-"]).expect(2).says(&["pipe"]);
    run(&["archive", "-o", "perf.data"]).expect(2).says(&["the same file"]);
    run(&["archive", "missing"]).expect(1).says(&["ENOENT"]);
    assert!(!folder.path().join("missing.archive").exists());
    run(&["archive"]).expect(0);
    let ran = run(&["report", "--stdio", "-i", "perf.data.archive", "--symfs", "/nowhere"]).expect(0);
    ran.says(&["--symfs, --vmlinux and --kallsyms have no effect"]);
    // A damaged archive does not make the recording unreadable.
    let damaged = [b"pmcA\x01\0\0\0\0".to_vec(), b"damage".to_vec()].concat();
    replace_section(folder.path(), &damaged);
    run(&["report", "--stdio", "-i", "changed"]).expect(0).says(&["cannot be used", "unpacking failed"]);
    replace_section(folder.path(), b"pmcA\x63newer");
    run(&["report", "--stdio", "-i", "changed"]).expect(0).says(&["it has version 99"]);
}

/// Writes a copy of the archive with another section.
fn replace_section(folder: &Path, section: &[u8]) {
    let (from, to) = (folder.join("perf.data.archive"), folder.join("changed"));
    let mut file = fs::File::create(&to).unwrap();
    copy_with_section(&from, (&mut file, &to), FeatureNumber::ARCHIVE, section).unwrap();
}

/// Size of everything before the compressed part of a section.
fn front(section: &[u8]) -> usize {
    9 + u32::from_le_bytes(*section[5..].first_chunk().unwrap()) as usize
}

fn unpacked(section: &[u8]) -> Vec<u8> {
    zstd::decode_all(&section[front(section)..]).unwrap()
}

#[test]
fn mutated_archives_do_no_harm() {
    let Some(lab) = Lab::new() else { return };
    let folder = recorded(&lab);
    pmc(&folder, &["archive"]).expect(0);
    let section = Reader::open(folder.join("perf.data.archive")).unwrap().features().archive.clone();
    let section = section.unwrap().0;
    let contents = unpacked(&section);
    let mut dice = 88_172_645_463_325_252u64;
    let mut random = |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice as usize % below
    };
    let commands: [&[&str]; 3] = [
        &["report", "--stdio", "-i", "changed"],
        &["annotate", "--stdio2", "-i", "changed"],
        &["script", "-F", "ip,sym,srcline,srccode,disasm", "-i", "changed"],
    ];
    for round in 0..60 {
        let mut changed = contents.clone();
        for _ in 0..1 + random(8) {
            let at = random(changed.len());
            match random(3) {
                0 => changed[at] = random(256) as u8,
                1 => changed[at] ^= 1 << random(8),
                _ => drop(changed.drain(at..(at + random(40)).min(changed.len()))),
            }
        }
        let packed = zstd::bulk::compress(&changed, 1).unwrap();
        replace_section(&folder, &[&section[..front(&section)], &packed].concat());
        let ran = pmc(&folder, commands[round % commands.len()]);
        assert!(matches!(ran.status, Some(0 | 1)), "round {round}: {ran:?}");
    }
}

#[test]
fn archive_of_a_program_with_much_debug_information_is_small() {
    let program = Path::new(kit::binary());
    let size = fs::metadata(program).unwrap().len();
    if !kit::need_perf_events() || !kit::need("debug build", size > 60 << 20, "pmc has no debug information")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let read = kit::data("perfdata").join("fp.data");
    let work = [program.to_str().unwrap(), "report", "--stdio", "-i", read.to_str().unwrap()];
    let record = ["record", "-q", "-F", "20000", "-g", "-e", "cpu-clock:u", "-o", "perf.data", "--"];
    pmc(folder.path(), &[&record[..], &work].concat()).expect(0);
    pmc(folder.path(), &["archive"]).expect(0);
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    let (recording, archive) = (size("perf.data"), size("perf.data.archive"));
    assert!(archive <= recording + (recording / 10).max(1 << 20), "{recording} {archive}");
}
