//! `pmc script` with other fields, filters and records prints perf's lines, byte for byte.

use std::os::unix::fs::PermissionsExt;

use super::against::{lines_agree, script, scripts_agree};
use super::lab::{DEEP, Lab, MANY};
use crate::kit;

/// Options for all fields that a software event's sample can have.
const ALL: &[&str] = &[
    "-e",
    "cpu-clock,page-faults",
    "-F",
    "2000",
    "-g",
    "--user-regs=ip,sp,bp,ax",
    "--intr-regs=ip,sp",
    "-d",
    "-W",
    "--phys-data",
    "--data-page-size",
    "--code-page-size",
    "--switch-events",
    "--namespaces",
    "--all-cgroups",
];

#[test]
fn every_script_field_matches_perf() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("all", ALL, &[deep.to_str().unwrap()], false);
    for fields in [
        "comm,tid,uregs",
        "comm,iregs,ip,sym",
        "+misc",
        "-period,+pid",
        "comm,phys_addr,data_page_size,code_page_size,addr",
        "comm,flags,ip,sym",
        "comm,weight,data_src,ip,dso",
        "+synth,+ipc,+callindent",
        "sw:comm,ip",
    ] {
        scripts_agree(&file, &["-F", fields]);
    }
    scripts_agree(&file, &["-F", "comm,time,srccode,ip,sym", "-G"]);
    scripts_agree(&file, &["-F", "pid", "-F", "comm,ip"]);
    scripts_agree(&file, &["-F", "comm,ip", "-F", "+pid"]);
    let source = script("pmc", &file, &["-F", "comm,srccode,ip", "-G", "-S", "leaf"]);
    assert!(source.contains("|3        __attribute__((noinline)) void leaf(int n)"), "{source}");
    let lines = script("pmc", &file, &["-F", "ip,sym,srcline", "--full-source-path"]);
    assert!(lines.contains("/deep.c:"), "{lines}");
}

#[test]
fn script_filters_and_times_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let file = lab.record("fp", &["-e", "cpu-clock", "-F", "2000", "-g"], &[deep.to_str().unwrap()], false);
    for options in [
        &["-S", "leaf"][..],
        &["--stop-bt", "middle"],
        &["--max-stack", "3"],
        &["--reltime"],
        &["--deltatime", "--ns"],
        &["--dsos", "libc.so.6"],
    ] {
        lines_agree(&file, options);
    }
    let file = lab.record("threads", &["-e", "task-clock", "-F", "2000"], &[many.to_str().unwrap()], false);
    scripts_agree(&file, &["-c", "worker"]);
    let traces = ["-e", "sched:sched_switch,cpu-clock", "-a"];
    let file = lab.record("traces", &traces, &[many.to_str().unwrap()], false);
    scripts_agree(&file, &["-F", "trace:comm,trace", "-F", "sw:"]);
}

#[test]
fn other_script_records_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let many = many.to_str().unwrap();
    let file = lab.record("all", ALL, &[many], false);
    let every = [
        "--show-task-events",
        "--show-mmap-events",
        "--show-switch-events",
        "--show-lost-events",
        "--show-namespace-events",
        "--show-cgroup-events",
        "--show-bpf-events",
    ];
    scripts_agree(&file, &every);
    scripts_agree(&file, &["--show-task-events", "--show-mmap-events", "-F", "+misc", "-G"]);
    let file = lab.record("wide", &["-e", "cpu-clock", "-a", "--switch-events"], &[many], false);
    // If a task runs before its name is recorded, pmc prints its later name.
    scripts_agree(
        &file,
        &["--show-task-events", "--show-switch-events", "-F", "-comm,-ip,-sym,-symoff,-dso"],
    );
    let lines = script("pmc", &file, &["--json", "--show-task-events"]);
    let records: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.iter().any(|record| record["record"] == "FORK" && record["text"].is_string()));
    assert!(records.iter().any(|record| record["stack"].is_array()));
    assert!(records.iter().all(|record| record["version"] == 1));
    let about = kit::run(&["info", "--json", file.to_str().unwrap()]).expect(0);
    let about: serde_json::Value = serde_json::from_str(&about.stdout).unwrap();
    assert_eq!((&about["version"], &about["events"][0]["name"]), (&1.into(), &"cpu-clock".into()));
}

#[test]
fn unsupported_script_features_are_explained() {
    // Options are checked before files. The checkout may contain a `perf.data`.
    let empty = tempfile::tempdir().unwrap();
    let mut pmc = kit::pmc();
    pmc.args(["script", "-F", "comm,+ip"]).current_dir(empty.path());
    kit::Ran::from(pmc.output().expect("pmc starts")).expect(2);
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("flat", &["-e", "cpu-clock"], &[deep.to_str().unwrap()], false);
    let file = file.to_str().unwrap();
    kit::run(&["script", "-i", file, "-F", "comm,+ip"])
        .expect(2)
        .says(&["changes and replaces the default fields"]);
    kit::run(&["script", "-i", file, "-F", "brcntr"]).expect(2).says(&["branch counters"]);
    kit::run(&["script", "-i", file, "-F", "comm,brstackinsn"])
        .expect(0)
        .says(&["recorded without brstackinsn"]);
    kit::run(&["script", "-i", file, "-F", "hardware:comm"]).expect(2).says(&["hw, sw, trace"]);
    kit::run(&["script", "-i", file, "-F", "comm,brstack"]).expect(0).says(&["recorded without brstack"]);
    kit::run(&["script", "-i", file, "-F", "timme"]).expect(2).says(&["did you mean time"]);
    for (option, word) in
        [("--itrace", "instruction traces"), ("--xed", "does not run xed"), ("-l", "Python")]
    {
        kit::run(&["script", "-i", file, option]).expect(2).says(&[word, "try:"]);
    }
}

#[test]
fn per_event_dump_writes_one_file_per_event() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", super::lab::MANY);
    let file = lab.record("two", &["-e", "cpu-clock,page-faults"], &[many.to_str().unwrap()], false);
    let path = file.to_str().unwrap();
    let fields = ["-F", "comm,tid,time,event", "-i", path];
    let whole = kit::run(&[&["script"], &fields[..]].concat()).expect(0).stdout;
    let dumped = kit::run(&[&["script", "--per-event-dump"], &fields[..]].concat()).expect(0);
    assert!(dumped.stdout.is_empty(), "{}", dumped.stdout);
    for event in ["cpu-clock", "page-faults"] {
        let name = format!("{path}.{event}.dump");
        assert!(dumped.stderr.contains(&name), "{}", dumped.stderr);
        let is_of = |line: &&str| line.split_whitespace().any(|word| word.trim_end_matches(':') == event);
        let lines: Vec<&str> = whole.lines().filter(is_of).collect();
        let dump = std::fs::read_to_string(&name).unwrap();
        assert!(!lines.is_empty() && dump.lines().collect::<Vec<_>>() == lines, "{event}\n{dump}");
        assert_eq!(std::fs::metadata(&name).unwrap().permissions().mode() & 0o777, 0o600);
    }
    for accepted in [&["--merge-callchains"][..], &["--addr2line", "x"], &["--unwind-style", "libdw"]] {
        kit::run(&[&["script", "-i", path], accepted].concat()).expect(0);
    }
    for refused in [&["--guest-code"][..], &["--dlarg", "x"], &["--guestmount", "/x"]] {
        kit::run(&[&["script", "-i", path], refused].concat()).expect(2).says(&["pmc script has no", "try:"]);
    }
}
