//! `-D`: records in perf's dump format, and damage at its offset.

use std::path::Path;

use super::lab::{DEEP, Lab};
use super::records::{USER, sample, write};
use crate::kit::{self, Ran, oracle};

/// The lines about the records' contents. Lines about header sections and perf's own markers are left out;
/// perf 6.1 and 7.2 also differ there.
fn lines(dump: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in dump.lines() {
        let line = line.trim_end().replace(": unhandled!", "");
        if line.is_empty() || line.starts_with('#') || line.starts_with(". ... raw event") {
            continue;
        }
        if line.contains("Aggregated stats:") {
            break;
        }
        // perf repeats the thread of a group's sample for each member.
        if line.starts_with(" ...") && lines.iter().rev().take(2).any(|before| *before == line) {
            continue;
        }
        // perf 6.1 does not name the markers of a chain.
        let line = line.split(" (PERF_CONTEXT_").next().unwrap_or(&line);
        lines.push(match line.find("PERF_RECORD_FEATURE") {
            Some(at) => line[..at + "PERF_RECORD_FEATURE".len()].to_owned(),
            None => line.to_owned(),
        });
    }
    lines
}

/// A line without thread and program names. perf knows the names it has read so far; pmc uses those valid at
/// the sample's time. In file order, the samples of a thread that moved to another CPU may precede both.
fn without_name(line: String) -> String {
    match (line.strip_prefix(" ... thread: "), line.rsplit_once(':')) {
        (Some(_), Some((_, tid))) => format!(" ... thread: {tid}"),
        _ if line.starts_with(" ...... dso: ") => " ...... dso".to_owned(),
        _ => line,
    }
}

#[track_caller]
fn dumps_agree(file: &Path, command: &[&str]) {
    let lines = |dump: &str| -> Vec<String> {
        let lines = lines(dump).into_iter();
        match command.contains(&"--dump-unsorted-raw-trace") {
            true => lines.map(without_name).collect(),
            false => lines.collect(),
        }
    };
    let arguments: Vec<&str> = command.iter().copied().chain(["-i", file.to_str().unwrap()]).collect();
    let ours = lines(&kit::run(&arguments).expect(0).stdout);
    assert!(ours.iter().any(|line| line.contains("PERF_RECORD_SAMPLE(IP, ")), "{ours:?}");
    for perf in oracle::perfs() {
        let theirs = lines(&oracle::says(&perf, &arguments));
        let different = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        assert_eq!(different, None, "{perf:?} {arguments:?}");
        assert_eq!(ours.len(), theirs.len(), "{perf:?} {arguments:?}");
    }
}

#[track_caller]
fn lost_records_agree(file: &Path) {
    let words = ["report", "-D", "-i", file.to_str().unwrap()];
    let lost = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once(": PERF_RECORD_LOST:"));
        lines.map(|(_, rest)| rest.to_owned()).collect()
    };
    let ours = lost(&kit::run(&words).expect(0).stdout);
    assert!(!ours.is_empty());
    for perf in oracle::perfs() {
        assert_eq!(lost(&oracle::says(&perf, &words)), ours, "{perf:?}");
    }
}

#[test]
fn dumps_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let deep = &[deep.to_str().unwrap()];
    let stacks = ["-e", "cpu-clock", "--call-graph", "dwarf,1024", "-c", "20000000"];
    let all = [
        &["-e", "cpu-clock,page-faults", "-c", "30000000", "-a", "-g", "-d", "-W", "--intr-regs=ip,sp"][..],
        &["--phys-data", "--data-page-size", "--switch-events", "--namespaces", "--all-cgroups"],
    ];
    let groups = ["-e", "{cpu-clock,page-faults}:S", "-c", "20000000"];
    // One page for copies of 32 KiB: none of them fits.
    let lossy = ["-e", "cpu-clock", "-m", "1", "--call-graph", "dwarf,32768", "-F", "1000"];
    for (name, options) in
        [("stacks", &stacks[..]), ("all", &all.concat()), ("groups", &groups), ("lossy", &lossy)]
    {
        let file = lab.record(name, options, deep, false);
        match name {
            "lossy" => lost_records_agree(&file),
            _ => dumps_agree(&file, &["report", "-D"]),
        }
    }
    let file = lab.path("stacks");
    dumps_agree(&file, &["script", "-G", "-F", "time,event", "-D"]);
    dumps_agree(&file, &["script", "-G", "-F", "time,event", "--dump-unsorted-raw-trace"]);
}

/// The dump of a damaged file.
fn dump(file: &Path) -> Ran {
    kit::run(&["report", "-D", "-i", file.to_str().unwrap()]).expect(1)
}

#[test]
fn damage_is_reported_at_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let (mut first, second) = (sample(2, 7, 10, &[USER, 0x1000, 0x2000]), sample(2, 7, 11, &[USER, 0x1000]));
    // The size of the first record covers the second.
    let (own, size) = (first.len(), first.len() + second.len());
    first[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
    let mut last = sample(2, 7, 12, &[USER, 0x3000]);
    let cut = last.len() - 4;
    write(&file, 0, &[first, second, last.clone()]);
    let whole = dump(&file).stdout;
    let samples: Vec<&str> = whole.lines().filter(|line| line.contains("PERF_RECORD_SAMPLE")).collect();
    assert_eq!(samples.len(), 2, "{whole}");
    let (_, behind) = whole.split_once(&format!("[{size:#x}]: PERF_RECORD_SAMPLE")).expect(&whole);
    let said = format!("... damaged: {} bytes after its last field", size - own);
    assert!(behind.lines().nth(1).is_some_and(|line| line == said), "{said}: {whole}");
    // A record that is truncated at the end of the file.
    last.truncate(cut);
    write(&file, 0, &[sample(2, 7, 10, &[USER, 0x1000]), last]);
    let torn = dump(&file).stdout;
    let end = std::fs::metadata(&file).unwrap().len() - cut as u64;
    assert!(torn.contains(&format!("\n{end:#x}@{}: ", file.display())), "{end:#x}: {torn}");
}

#[test]
fn dump_reads_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    write(&file, 0, &[sample(2, 7, 10, &[USER, 0x1000])]);
    for command in ["report", "script"] {
        let mut pmc = kit::pmc();
        pmc.args([command, "-D"]).stdin(std::fs::File::open(&file).unwrap());
        let ran = Ran::from(pmc.output().unwrap()).expect(0);
        assert!(ran.stdout.contains("]: PERF_RECORD_SAMPLE(IP, 0x2): "), "{}", ran.stdout);
    }
}
