//! Recordings made by the installed perf, read by pmc, against what perf says of them.

mod kit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmc::perfdata::{Buffer, Features, Options, Reader, Writer};
use pmc::record::{kind, layout};

/// Work that maps files, starts processes and takes some 50 ms of CPU.
const WORK: &[&str] = &["sh", "-c", "for i in 1 2 3 4 5; do ls -R /usr/share/doc /etc >/dev/null 2>&1; done"];

/// A folder of recordings that goes away with the test.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Records WORK with perf; `false` when perf refuses, which some of its options do on some machines.
fn record(file: &Path, options: &[&str]) -> bool {
    let mut perf = Command::new("perf");
    perf.arg("record").args(options).arg("-o").arg(file).arg("--").args(WORK);
    let run = perf.stdin(Stdio::null()).output().expect("perf starts");
    run.status.success()
}

fn perf(arguments: &[&str], file: &Path) -> String {
    let run = Command::new("perf").args(arguments).arg("-i").arg(file).stdin(Stdio::null()).output();
    String::from_utf8_lossy(&run.expect("perf starts").stdout).into_owned()
}

/// Records of each kind, as perf dumps them.
fn perf_counts(file: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in perf(&["report", "-D"], file).lines() {
        // `…: PERF_RECORD_X …` with numbers before it; text in payloads is not preceded by `0x… [0x…]`.
        let Some((before, after)) = line.split_once(": PERF_RECORD_") else { continue };
        if !before.contains("[0x") {
            continue;
        }
        let name = after.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').next();
        *counts.entry(name.unwrap_or("").to_owned()).or_default() += 1;
    }
    counts
}

/// Records of each kind, as pmc reads them, in a scan and again chunk by chunk.
fn our_counts(reader: &Reader) -> BTreeMap<String, u64> {
    let index = reader.scan(|_| {}).expect("the scan reads");
    let mut buffer = Buffer::default();
    let (mut samples, mut by_chunk) = (0, 0);
    for chunk in &index.chunks {
        for raw in reader.load(chunk, &mut buffer).expect("the chunk loads") {
            assert!(
                raw.parse().is_some(),
                "{:?} of {} bytes does not parse",
                kind::name(raw.kind),
                raw.bytes.len()
            );
            by_chunk += 1;
            if raw.kind == kind::SAMPLE {
                let (_, sample) = reader.layouts().sample(&raw).expect("a sample of a known event");
                let parts = sample.parts().expect("sizes inside the sample");
                assert_eq!(parts.callchain, sample.callchain());
                samples += 1;
            } else if raw.kind < kind::FIRST_USER {
                let timed = reader.layouts().iter().all(|l| l.sample_type() & layout::bits::TIME != 0);
                assert_eq!(reader.layouts().sample_id(&raw).time.is_some(), timed);
            }
        }
    }
    assert_eq!(samples, index.count(kind::SAMPLE));
    assert_eq!(by_chunk, index.counts().map(|(_, n)| n).sum::<u64>());
    let named = index.counts().map(|(kind, n)| (kind::name(kind).expect("a known kind").to_owned(), n));
    named.map(|(name, n)| (name.trim_start_matches("HEADER_").to_owned(), n)).collect()
}

/// What perf's dump and our counts must agree on: everything, except that perf leaves out or renames a few.
#[track_caller]
fn agree(file: &Path) -> Reader {
    let reader = Reader::open(file).expect("pmc reads it");
    let (ours, mut theirs) = (our_counts(&reader), perf_counts(file));
    theirs.remove("COMPRESSED");
    let theirs: BTreeMap<_, _> =
        theirs.into_iter().map(|(name, n)| (name.trim_start_matches("HEADER_").to_owned(), n)).collect();
    assert_eq!(ours, theirs, "{}", file.display());
    reader
}

#[test]
fn recordings_of_every_kind_hold_the_records_that_perf_sees() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let kinds: &[(&str, &[&str])] = &[
        ("fp", &["-e", "cpu-clock", "-g"]),
        ("dwarf", &["-e", "cpu-clock", "--call-graph", "dwarf,4096"]),
        ("flat", &["-e", "task-clock"]),
        ("many", &["-e", "cpu-clock,task-clock,page-faults,context-switches,minor-faults", "-g"]),
        ("groups", &["-e", "{cpu-clock,page-faults}:S"]),
        ("tracepoints", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
        ("everywhere", &["-e", "cpu-clock", "-a", "-g"]),
        ("compressed", &["-e", "cpu-clock", "-g", "-z"]),
        ("thread", &["-e", "cpu-clock", "--per-thread"]),
        ("switches", &["-e", "cpu-clock", "--switch-events", "--namespaces", "--all-cgroups"]),
        (
            "data",
            &["-e", "page-faults", "-d", "--phys-data", "--data-page-size", "--code-page-size", "-c", "1"],
        ),
        ("weights", &["-e", "cpu-clock", "-W", "--sample-cpu", "-T", "-P", "--sample-identifier"]),
        ("registers", &["-e", "cpu-clock", "--user-regs=ip,sp,bp,ax", "--intr-regs=ip,sp"]),
        ("build-ids", &["-e", "cpu-clock", "--buildid-mmap"]),
        ("clock", &["-e", "cpu-clock", "-k", "CLOCK_MONOTONIC", "--buildid-all"]),
    ];
    for (name, options) in kinds {
        let file = lab.path(name);
        assert!(record(&file, options), "perf record {options:?}");
        let reader = agree(&file);
        assert!(reader.notes().is_empty(), "{name}: {:?}", reader.notes());
    }
}

/// Reads everything and writes it again.
fn rewrite(from: &Reader, to: &Path, options: Options) -> u64 {
    let features = Features { compressed: None, ..from.features().clone() };
    let mut writer = Writer::create(to, from.events(), &features, options).expect("the writer begins");
    let index = from.scan(|_| {}).expect("the scan reads");
    let mut buffer = Buffer::default();
    for chunk in &index.chunks {
        let records = from.load(chunk, &mut buffer).expect("the chunk loads");
        // In two slices, as a ring that wraps gives them; headers of perf's own streams are the writer's to make.
        let bytes = records.rest();
        let (first, second) = bytes.split_at(bytes.len() / 16 * 8);
        writer.append(&[first, second]).expect("the writer appends");
    }
    writer.finish(&features).expect("the writer finishes")
}

/// The header without what depends on where things lie in the file.
fn header_text(file: &Path) -> String {
    let text = perf(&["report", "--header-only", "-I"], file);
    let placed =
        ["# captured on", "# data offset", "# data size", "# feat offset", "# compressed", "# missing"];
    let kept = text.lines().filter(|line| !placed.iter().any(|word| line.starts_with(word)));
    kept.map(|line| format!("{line}\n")).collect()
}

fn second_opinion(file: &Path) -> usize {
    let open = std::fs::File::open(file).expect("the file opens");
    let linux_perf_data::PerfFileReader { mut perf_file, mut record_iter } =
        linux_perf_data::PerfFileReader::parse_file(std::io::BufReader::new(open))
            .expect("linux-perf-data reads it");
    let mut samples = 0;
    while let Some(record) = record_iter.next_record(&mut perf_file).expect("its records are whole") {
        if let linux_perf_data::PerfFileRecord::EventRecord { record, .. } = record {
            samples += usize::from(record.record_type.0 == kind::SAMPLE);
        }
    }
    samples
}

#[test]
fn what_is_written_is_what_was_read() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let kinds: &[(&str, &[&str])] = &[
        ("fp", &["-e", "cpu-clock,page-faults", "-g"]),
        ("groups", &["-e", "{cpu-clock,page-faults}"]),
        ("tracepoints", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
        ("packed", &["-e", "cpu-clock", "-g", "-z", "-k", "CLOCK_MONOTONIC"]),
    ];
    for (name, options) in kinds {
        let file = lab.path(name);
        assert!(record(&file, options), "perf record {options:?}");
        let reader = Reader::open(&file).expect("pmc reads it");
        let counts = our_counts(&reader);
        let (script, header) = (perf(&["script"], &file), header_text(&file));
        assert!(script.lines().count() > 10 && header.contains("# cpudesc"), "{name}");
        for compress in [None, Some(3)] {
            let copy = lab.path(&format!("{name}-{compress:?}"));
            let size = rewrite(&reader, &copy, Options { compress });
            assert_eq!(std::fs::metadata(&copy).expect("it is there").len(), size);
            let again = agree(&copy);
            let mut recounted = our_counts(&again);
            if compress.is_some() {
                // The record that tells how far compressed ones unpack.
                assert_eq!(recounted.remove("FEATURE"), Some(1));
            }
            assert_eq!(recounted, counts);
            assert_eq!(again.events(), reader.events());
            let plain = |features: &Features| Features { compressed: None, ..features.clone() };
            assert_eq!(plain(again.features()), plain(reader.features()));
            assert!(perf(&["script"], &copy) == script, "perf script differs: {name} {compress:?}");
            assert_eq!(header_text(&copy), header);
            assert!(!perf(&["report", "--stdio"], &copy).is_empty());
            assert_eq!(second_opinion(&copy) as u64, counts["SAMPLE"]);
        }
    }
}
