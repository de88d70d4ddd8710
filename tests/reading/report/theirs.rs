//! Recordings made by perf, of every kind that this machine supports: pmc's totals, percentages and lines
//! equal perf's.
//!
//! Together with `options` and `branches`, these are twelve kinds: frame pointers, copied stacks, no stacks,
//! many events, groups (with and without counts), tracepoints, system-wide, compressed, a stream, a single
//! thread, raw samples, a JIT with a map.

use std::path::Path;

use super::against::{agree, children_agree, pmc_json, scripts_agree, shares, stacks_agree, totals_agree};
use super::lab::{DEEP, JIT, Lab, MANY};
use crate::kit::lab::GENERATED;
use crate::kit::{self, oracle};

#[test]
fn perf_recordings_give_perfs_numbers_and_lines() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let (deep, many) = (deep.to_str().expect("plain"), many.to_str().expect("plain"));
    let kinds: &[(&str, &[&str], &str, bool)] = &[
        ("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], deep, false),
        ("flat", &["-e", "task-clock", "-F", "2000"], many, false),
        ("events", &["-e", "cpu-clock,task-clock,page-faults,context-switches", "-g"], many, false),
        ("group", &["-e", "{cpu-clock,task-clock}", "-g"], many, false),
        ("counts", &["-e", "{cpu-clock,page-faults}:S", "-F", "2000"], many, false),
        ("packed", &["-e", "cpu-clock", "-F", "2000", "-g", "-z"], many, false),
        ("stream", &["-e", "cpu-clock", "-F", "2000", "-g"], many, true),
        ("thread", &["-e", "cpu-clock", "-F", "2000", "--per-thread"], deep, false),
        ("timed", &["-e", "cpu-clock", "-F", "2000", "-T", "-d", "--sample-cpu"], many, false),
        ("raw", &["-e", "cpu-clock", "-F", "2000", "-R", "-W", "--phys-data", "-g"], deep, false),
        ("counted", &["-e", "context-switches", "-c", "1", "-g"], many, false),
    ];
    for (name, options, program, pipe) in kinds {
        let file = lab.record(name, options, &[program], *pipe);
        agree(&file, &[]);
        totals_agree(&file);
        scripts_agree(&file, &[]);
        if options.contains(&"-g") {
            scripts_agree(&file, &["-G"]);
            // For a stream, perf does not know that there are chains before it builds its tables.
            if !pipe {
                children_agree(&file, 0.0);
            }
        }
    }
    let file = lab.path("fp");
    scripts_agree(&file, &["--ns"]);
    scripts_agree(&file, &["-F", "comm,pid,tid,time,event,ip,sym"]);
    scripts_agree(&lab.path("timed"), &["-F", "comm,tid,cpu,time,period"]);
}

/// While another recorder asks for build-ids (as perf 7.2 and pmc do), the kernel marks the mappings in all
/// recordings as if they carried build-ids.
#[test]
fn build_ids_of_other_recorders_are_not_searched() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let mut other = kit::pmc();
    let other = other.args(["record", "-q", "-a", "-e", "dummy", "-o"]).arg(lab.path("other"));
    let mut other = other.spawn().expect("pmc starts");
    kit::wait_for_counters(other.id(), 1);
    let file = lab.path("file");
    oracle::Recording {
        file: &file,
        // Without `-B`, perf 6.1 fails on these build-ids itself.
        options: &["-B", "-e", "cpu-clock", "-F", "2000"],
        work: &[deep.to_str().expect("plain")],
        folder: lab.path("").as_path(),
        is_stream: false,
    }
    .make_spoiled();
    other.kill().and_then(|()| other.wait().map(drop)).expect("pmc ends");
    let report = kit::run(&["report", "--stdio", "-i", file.to_str().expect("plain")]).expect(0).stdout;
    assert!(report.contains("[.] ") && !report.contains("another build"), "{report}");
    let row = report.lines().find(|line| line.contains("  deep  ")).expect(&report);
    assert!(!row.contains("[deep]"), "{report}");
}

#[test]
fn stack_copies_are_unwound() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let options = ["-e", "cpu-clock", "-F", "4000", "-m", "8M", "--call-graph", "dwarf,8192"];
    let file = lab.record("dwarf", &options, &[deep.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file, stacks_agree(&file));
    totals_agree(&file);
    let document = pmc_json(&file, &[]);
    let trust = &document["trust"];
    let (stacks, rooted) = (trust["stacks"].as_f64().unwrap(), trust["rooted"].as_f64().unwrap());
    assert!(rooted / stacks > 0.95, "{trust}");
    // Inlined code has its own row, and its cost also counts for its callers.
    let inlined =
        document["events"][0]["rows"].as_array().unwrap().iter().find(|row| row["sym"] == "inlined");
    assert!(inlined.expect("a row for it")["total"]["percent"].as_f64().unwrap() > 1.0);
}

#[test]
fn system_wide_and_tracepoint_recordings_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let many = many.to_str().expect("plain");
    let file = lab.record("all", &["-e", "cpu-clock", "-F", "1000", "-a", "-g"], &[many], false);
    // Other programs may be demangled differently by the two tools.
    agree(&file, &["many", "worker", "swapper"]);
    totals_agree(&file);
    let work = ["sh", "-c", "for i in 1 2 3 4 5; do ls / >/dev/null; done"];
    let events = "sched:sched_switch,sched:sched_process_exec,sched:sched_process_fork";
    let file = lab.record("traces", &["-e", events, "-a"], &work, false);
    agree(&file, &[]);
    totals_agree(&file);
    scripts_agree(&file, &[]);
}

#[test]
fn jit_code_uses_the_names_of_its_map() {
    let Some(lab) = Lab::new() else { return };
    let jit = lab.build("jit", &[GENERATED, JIT].concat());
    let file = lab.record("jit.data", &["-e", "cpu-clock", "-g"], &[jit.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file, 0.0);
    scripts_agree(&file, &[]);
    let rows = shares(&pmc_json(&file, &[])["events"][0]);
    assert!(rows.keys().any(|(_, dso, symbol)| symbol == "[.] the second one" && dso.starts_with("[JIT]")));
}

/// A saved recording with a single feature section, of this number.
fn with_section(number: usize, section: &[u8]) -> Vec<u8> {
    let mut bytes = std::fs::read(kit::data("perfdata/fp.data")).expect("a saved recording");
    let word = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("a header"));
    let end = word(40) + word(48);
    bytes.truncate(end as usize);
    bytes.extend([end + 16, section.len() as u64].iter().flat_map(|word| word.to_ne_bytes()));
    bytes.extend(section);
    bytes[72..104].fill(0);
    bytes[72 + number / 8] = 1 << (number % 8);
    bytes
}

#[test]
fn simpleperf_symbols_are_used_for_missing_files() {
    if !cfg!(target_endian = "little") {
        return;
    }
    let lab = tempfile::tempdir().expect("a temporary folder");
    // A function of 256 MiB, and 4 bytes of an unmapped file, in both of simpleperf's formats.
    let loader = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
    let sized = |row: Vec<u8>| [(row.len() as u32).to_le_bytes().to_vec(), row].concat();
    let plain = |path: &str, name: &str| {
        let head = [path.as_bytes(), b"\0", &2u32.to_le_bytes(), &0x5000u64.to_le_bytes()].concat();
        let symbol = [&0x5000u64.to_le_bytes()[..], &(256u32 << 20).to_le_bytes(), name.as_bytes(), b"\0"];
        let rest = [&1u32.to_le_bytes()[..], &symbol.concat(), &0u64.to_le_bytes()].concat();
        sized([head, rest].concat())
    };
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let message = |path: &str, name: &str| {
        let range =
            [&[0x08, 0x80, 0xa0, 0x01, 0x10, 0x80, 0x80, 0x80, 0x80, 0x01][..], &field(3, name.as_bytes())];
        let kind = [0x10, 2, 0x18, 0x80, 0xa0, 0x01];
        sized(
            [&field(1, path.as_bytes())[..], &kind, &field(4, &range.concat()), &field(6, &[8, 0])].concat(),
        )
    };
    let (file, empty) = (lab.path().join("android"), lab.path().join("empty"));
    std::fs::create_dir(&empty).expect("a folder");
    for (number, row) in [(128, &plain as &dyn Fn(&str, &str) -> Vec<u8>), (132, &message)] {
        let section = [row(loader, "_ZN7android4load\x1b[7mEv"), row("/nowhere", "unused")].concat();
        for (section, is_named) in [(&section[..], true), (&section[..40], false)] {
            let recording = with_section(number, section);
            if is_named && std::env::var_os("PMC_BLESS").is_some() {
                // A seed of the fuzz targets.
                let seed = format!("fuzz/corpus/recording/simpleperf-{number}.data");
                let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join(seed);
                std::fs::write(seed, &recording).expect("it can be written");
            }
            std::fs::write(&file, recording).expect("it can be written");
            let mut pmc = kit::pmc();
            pmc.args(["script", "-F", "ip,sym,dso", "--symfs"]).arg(&empty).arg("-i").arg(&file);
            let run: kit::Ran = pmc.output().expect("pmc starts").into();
            let stdout = run.expect(0).stdout;
            let lines: Vec<&str> = stdout.lines().filter(|line| line.contains(loader)).collect();
            assert!(!lines.is_empty(), "{stdout}");
            let named = lines.iter().all(|line| line.contains("android") && line.contains("load"));
            assert_eq!(named, is_named, "{number} {lines:?}");
            assert!(!stdout.contains('\x1b') && !stdout.contains("unused"), "{stdout}");
        }
    }
}
