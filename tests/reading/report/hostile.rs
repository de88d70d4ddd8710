//! Damaged recordings in every command that shows them: no panic, no hang, and either a result or an error
//! message.

use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::{HEADER, RawRecord, kind};

use super::branches::{self, Dice};
use super::lab::{Lab, MANY};
use crate::kit::{self, burn::busy_shell};

/// Commands that show a recording.
const WAYS: &[&[&str]] = &[
    &["report", "--stdio", "--no-cache"],
    &["report", "--stdio", "--no-cache", "-b"],
    &["report", "--stdio", "--no-cache", "--mem-mode", "--hierarchy"],
    &["report", "--no-cache", "--json", "-p", ".", "--ignore-callees", "m"],
    &[
        "report",
        "--no-cache",
        "--csv",
        "-s",
        "mem,snoop,tlb,symbol_daddr,dcacheline,data_page_size,transaction,trace",
    ],
    &["report", "--stdio", "--no-cache", "-g", "folded,0", "-T", "--raw-trace", "-s", "pid,trace"],
    &["report", "--stats"],
    &["report", "--mmaps"],
    &["script", "--no-cache"],
    &["script", "--no-cache", "--json"],
    &["script", "--no-cache", "-F", "+insn,+insnlen,+disasm,+brstackinsnlen,+brstackdisasm,+retire_lat"],
    &[
        "script",
        "--no-cache",
        "-F",
        "+misc,+addr,+brstacksym,+data_src,+weight,+phys_addr,+data_page_size,+uregs,+iregs,+cgroup,+srccode,+tod",
        "--show-task-events",
        "--show-mmap-events",
        "--show-switch-events",
        "--show-lost-events",
        "--show-namespace-events",
        "--show-cgroup-events",
        "--show-bpf-events",
        "--show-text-poke-events",
        "--show-round-events",
        "--reltime",
    ],
];

#[track_caller]
fn show(file: &Path, way: &[&str], what: &str) {
    let mut child = kit::pmc()
        .args(way)
        .arg("-i")
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pmc starts");
    let status = kit::wait_for_end(&format!("{what}: {way:?}"), &mut child);
    // A panic exits with status 101, or by a signal.
    assert!(matches!(status.code(), Some(0..=2)), "{what}: {way:?}: {status}");
}

/// Damages the records in one of several ways.
fn damage(whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let size = bytes.len() as u64;
    match dice.below(4) {
        0 => bytes.truncate(dice.below(size) as usize),
        1 => {
            for _ in 0..1 + dice.below(20) {
                let at = 104 + dice.below(size - 104) as usize;
                bytes[at] = dice.below(256) as u8;
            }
        }
        2 => {
            // Overwrite words that may be a count or an address.
            let extremes = [0, 1, u64::MAX, u64::MAX - 511, 1 << 63, 1 << 40, 0xffff];
            for _ in 0..1 + dice.below(8) {
                let at = (13 + dice.below(size / 8 - 14)) as usize * 8;
                let word = extremes[dice.below(extremes.len() as u64) as usize];
                bytes[at..at + 8].copy_from_slice(&u64::to_ne_bytes(word));
            }
        }
        _ => {
            // Copy records to another place.
            let (from, to) = (dice.below(size / 8) as usize * 8, dice.below(size / 8) as usize * 8);
            let count = (dice.below(400) as usize * 8).min(bytes.len() - from.max(to));
            bytes.copy_within(from..from + count, to);
        }
    }
    bytes
}

#[test]
fn json_escapes_terminal_control_sequences() {
    if !kit::need_perf_events() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, file) = (folder.path().join("a\u{9b}31m\u{202e}b"), folder.path().join("perf.data"));
    kit::copy_program(kit::on_path("sh").expect("a shell"), &program);
    let mut record = kit::pmc();
    record.args(["record", "-N", "-q", "-e", "task-clock:u", "-c", "100000", "-o"]).arg(&file).arg("--");
    record.arg(&program).args(["-c", busy_shell(20)]);
    assert!(record.status().expect("pmc starts").success());
    let file = file.to_str().expect("a plain path");
    for way in [
        &["report", "--json", "-s", "comm,dso,sym", "-i", file][..],
        &["info", "--json", file],
        &["script", "--json", "-i", file],
        &["export", "-q", "--format", "firefox", "-o", "-", "-i", file],
        &["export", "-q", "--format", "speedscope", "-o", "-", "-i", file],
    ] {
        let json = kit::run(way).expect(0).stdout;
        assert!(!json.contains(['\u{9b}', '\u{202e}']), "{way:?}: {json}");
        let values = serde_json::Deserializer::from_str(&json).into_iter::<serde_json::Value>();
        let values: Result<Vec<_>, _> = values.collect();
        assert!(values.as_ref().is_ok_and(|values| !values.is_empty()), "{way:?}: {values:?}");
    }
    assert!(kit::run(&["info", "--json", file]).stdout.contains(r"a\u009b31m\u202eb"));
}

#[test]
fn damaged_recordings_do_not_panic() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let options =
        ["-e", "cpu-clock,sched:sched_switch", "-F", "200", "-g", "-d", "--all-cgroups", "--switch-events"];
    let recorded = lab.record("recorded", &options, &[many.to_str().unwrap()], false);
    let dwarf =
        ["-e", "cpu-clock", "-F", "100", "--call-graph", "dwarf,2048", "--intr-regs=ip,sp", "--phys-data"];
    let dwarf = lab.record("dwarf", &dwarf, &[many.to_str().unwrap()], false);
    let files = [branches::write(&lab, "branches", 9), recorded, dwarf];
    let mut dice = Dice(20_261_122);
    let hurt = lab.path("hurt");
    for (number, file) in files.iter().enumerate() {
        let whole = std::fs::read(file).unwrap();
        for way in WAYS {
            show(file, way, "the whole recording");
        }
        for round in 0..20 {
            std::fs::write(&hurt, damage(&whole, &mut dice)).unwrap();
            let way = WAYS[dice.below(WAYS.len() as u64) as usize];
            show(&hurt, way, &format!("recording {number}, round {round}"));
            show(
                &hurt,
                WAYS[(round % WAYS.len() as u64) as usize],
                &format!("recording {number}, round {round}"),
            );
        }
    }
}

/// Byte ranges of the samples in a saved recording.
fn samples(bytes: &[u8]) -> Vec<Range<usize>> {
    records(bytes, kind::SAMPLE)
}

/// Byte range of its first mapping with a file's identity.
fn mapping(bytes: &[u8]) -> Range<usize> {
    records(bytes, kind::MMAP2).swap_remove(0)
}

fn records(bytes: &[u8], wanted: u32) -> Vec<Range<usize>> {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)) as usize;
    let (mut at, end) = (word(40), word(40) + word(48));
    let mut found = Vec::new();
    while let Some(raw) = RawRecord::first(&bytes[at..end]) {
        if raw.kind == wanted {
            found.push(at..at + raw.bytes.len());
        }
        at += raw.bytes.len();
    }
    found
}

#[test]
fn every_command_reports_damage() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(kit::data("perfdata/fp.data")).unwrap();
    let samples = samples(&whole);
    let (third, fourth) = (samples[2].clone(), samples[3].clone());
    assert_eq!(third.end, fourth.start, "two samples, one behind the other");
    let mut swallowed = whole.clone();
    let both = (fourth.end - third.start) as u16;
    swallowed[third.start + 6..][..2].copy_from_slice(&both.to_ne_bytes());
    let mut short = whole.clone();
    short[third.start + 6..][..2].copy_from_slice(&(HEADER as u16 + 8).to_ne_bytes());
    let mut unknown = whole.clone();
    unknown[third.start..][..4].copy_from_slice(&120u32.to_ne_bytes());
    let mut zero = whole.clone();
    zero[third.start + 6..][..2].fill(0);
    let mut packed = std::fs::read(kit::data("perfdata/packed.data")).unwrap();
    let reader = Reader::open(kit::data("perfdata/packed.data")).unwrap();
    let middle = reader.data_offset() as usize + 400;
    packed[middle..middle + 200].fill(0xff);
    let mapping = mapping(&whole);
    let mut endless = whole.clone();
    // The name of a mapping starts 72 bytes into its record.
    endless[mapping.start + 72..mapping.end].fill(b'x');
    // Each message names the record and its offset.
    let cases: [(&str, Vec<u8>, String, i32); 7] = [
        (
            "cut",
            whole[..fourth.start + 12].to_vec(),
            format!("the records are truncated at offset {:#x}, in SAMPLE (9) of ", fourth.start),
            1,
        ),
        (
            "zero",
            zero,
            format!("the records are truncated at offset {:#x}, in SAMPLE (9) of 0 B; ", third.start),
            1,
        ),
        (
            "swallowed",
            swallowed,
            format!(
                "1 samples are damaged: their sizes do not match their fields, the first at offset {:#x}: \
                 SAMPLE (9)",
                third.start
            ),
            1,
        ),
        ("short", short, "samples of unknown events".to_owned(), 1),
        (
            "unknown",
            unknown,
            format!("1 records of unknown type skipped, the first at offset {:#x}: type 120", third.start),
            0,
        ),
        ("packed", packed, "the compressed records are damaged at offset 0x".to_owned(), 1),
        (
            "mapping",
            endless,
            format!("1 damaged records skipped, the first at offset {:#x}: MMAP2 (10)", mapping.start),
            0,
        ),
    ];
    let file = folder.path().join("hurt");
    let page = folder.path().join("page.html");
    let written = folder.path().join("written");
    for (what, bytes, said, status) in cases {
        std::fs::write(&file, bytes).unwrap();
        let path = file.to_str().unwrap();
        let ways: [&[&str]; 9] = [
            &["inject", "-i", path, "-o", written.to_str().unwrap()],
            &["script", "--no-cache", "-i", path],
            &["report", "--no-cache", "--csv", "-i", path],
            &["report", "--stats", "-i", path],
            &["diff", "--no-cache", "--csv", path, path],
            &["export", "--no-cache", "--format", "html", "-o", page.to_str().unwrap(), "-i", path],
            &["annotate", "--no-cache", "--stdio", "-i", path],
            &["annotate", "--no-cache", "--json", "-i", path],
            &["report", "--no-cache", "--stdio", "-i", path],
        ];
        for way in ways {
            let ran = kit::run(way).expect(status);
            let files = if way[0] == "diff" { 2 } else { 1 };
            let has_own_remarks = way.contains(&"--stdio") || way[0] == "annotate";
            if what == "short" && (has_own_remarks || way[0] == "diff") {
                continue;
            }
            // Damage is always reported on stderr, whatever the output contains.
            let told = ran.stderr.matches(&said).count();
            let is_damage = what != "unknown" && what != "short";
            if !has_own_remarks || is_damage {
                assert_eq!(told, files, "{what}, {way:?}:\n{}", ran.stderr);
            }
            if has_own_remarks {
                assert_eq!(ran.stdout.matches(&said).count(), 1, "{what}, {way:?}:\n{}", ran.stdout);
                assert_eq!(ran.stdout.contains("none lost"), !is_damage && way.contains(&"--stdio"));
            }
        }
    }
    // For a truncated file, the commands that show only the header also report missing records.
    std::fs::write(&file, &whole[..fourth.start + 12]).unwrap();
    for command in ["evlist", "buildid-list"] {
        let ran = kit::run(&[command, "-i", file.to_str().unwrap()]).expect(1);
        let said = format!("truncated at offset {:#x}, in SAMPLE (9)", fourth.start);
        assert!(ran.stderr.contains(&said), "{command}: {}", ran.stderr);
    }
    for file in ["fp", "packed", "dwarf", "traces", "stream"] {
        let path = kit::data(&format!("perfdata/{file}.data"));
        let ran = kit::run(&["script", "--no-cache", "-i", path.to_str().unwrap()]).expect(0);
        assert_eq!(ran.stderr, "", "{file} is whole");
    }
}
