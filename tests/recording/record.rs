//! Recordings made by pmc, read by perf, linux-perf-data and pmc. Includes recordings after the recorder was
//! killed, the disk was full, or the target died.

use crate::Lab;
use crate::kit;

mod callers;
mod files;
mod losses;
mod options;
mod runs;
mod stacks;
mod targets;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::kit::burn::busy_shell_with;
use crate::kit::oracle;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::kind;

/// Shell command that maps files, starts processes and takes 50 ms of CPU time.
static WORK: LazyLock<[&str; 3]> =
    LazyLock::new(|| ["sh", "-c", busy_shell_with(50, "ls -R /usr/share/doc /etc >/dev/null 2>&1")]);

/// Shell loop that keeps a CPU busy.
const SPIN: &str = "while :; do :; done";

/// Whether this machine can run these tests.
#[track_caller]
fn ready() -> bool {
    // Check all needs, so that every missing one is reported.
    let needs = [kit::need_program("perf"), kit::need_root(), kit::need_perf_events()];
    needs.iter().all(|&met| met)
}

/// Records into `file` and returns the finished run.
#[track_caller]
fn record(file: &Path, options: &[&str], command: &[&str]) -> kit::Ran {
    let mut pmc = kit::pmc();
    pmc.arg("record").args(options).arg("-o").arg(file);
    if !command.is_empty() {
        pmc.arg("--").args(command);
    }
    pmc.output().expect("pmc starts").into()
}

/// Output of perf for a file; perf must succeed.
#[track_caller]
fn perf(arguments: &[&str], file: &Path) -> String {
    ask_perf(Path::new("perf"), arguments, file)
}

/// Output of the given perf for a file.
#[track_caller]
fn ask_perf(perf: &Path, arguments: &[&str], file: &Path) -> String {
    let run = oracle::ask(perf, &[arguments, &["-i", file.to_str().expect("a plain path")]].concat());
    let said = String::from_utf8_lossy(&run.stderr);
    let what = format!("{} {arguments:?} {}", perf.display(), file.display());
    assert!(run.status.success(), "{what}: {said}");
    assert!(!said.contains("unknown sample") && !said.contains("Error:"), "{what}: {said}");
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// Number of samples in the script output of every installed perf. All of them must agree.
#[track_caller]
fn perf_samples(file: &Path) -> usize {
    let samples = |perf: &PathBuf| {
        let lines = ask_perf(perf, &["script", "-F", "event,ip,comm,tid", "-G"], file);
        lines.lines().filter(|line| !line.is_empty()).count()
    };
    let counts: Vec<usize> = oracle::perfs().iter().map(samples).collect();
    assert!(counts.iter().all(|count| *count == counts[0]), "{}: {counts:?}", file.display());
    counts[0]
}

/// Number of samples that pmc's reader finds.
#[track_caller]
fn our_samples(file: &Path) -> usize {
    let reader = Reader::open(file).expect("pmc reads it");
    reader.scan(|_| {}).expect("the scan reads").count(kind::SAMPLE) as usize
}

/// Number of samples that linux-perf-data finds.
#[track_caller]
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

/// The number before `word` in the recording's summary line.
#[track_caller]
fn told(stderr: &str, word: &str) -> usize {
    let line = stderr
        .lines()
        .find(|line| line.contains(" samples, "))
        .unwrap_or_else(|| panic!("no line of truth: {stderr}"));
    let before = line.split(word).next().and_then(|text| text.split_whitespace().next_back());
    before
        .and_then(|number| number.replace(',', "").parse().ok())
        .unwrap_or_else(|| panic!("no number: {line}"))
}
