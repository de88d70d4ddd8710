//! `pmc list` on the machine that runs the tests: filters, suggestions, JSON, tracepoints, and readers that leave.

use crate::kit;

use std::process::{Command, Stdio};

use kit::{Ran, need, need_perf_events, need_program, pmc, run};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).expect(0).stdout).expect("one JSON document")
}

fn names(document: &Value) -> Vec<&str> {
    document["events"]
        .as_array()
        .expect("what the document has")
        .iter()
        .map(|event| event["name"].as_str().expect("what the document has"))
        .collect()
}

fn tracefs() -> bool {
    need("tracefs", std::fs::read_dir("/sys/kernel/tracing/events").is_ok(), "tracefs cannot be read")
}

#[test]
fn kinds_narrow_the_list() {
    let software = json(&["list", "sw", "--json"]);
    assert_eq!(software["version"], 1);
    assert_eq!(names(&software).len(), 12);
    assert!(software["events"].as_array().unwrap().iter().all(|event| event["kind"] == "software"));
    assert_eq!(names(&json(&["list", "hw", "--json"])).len(), 10);
    assert_eq!(names(&json(&["list", "hw", "miss", "--json"])), ["cache-misses", "branch-misses"]);
    assert_eq!(names(&json(&["list", "sw", "tool", "*clock", "--json"])), ["cpu-clock", "task-clock"]);
}

#[test]
fn saved_cpus_are_played() {
    for cpu in kit::CPUS {
        let ran = |words: &[&str]| -> Ran {
            kit::pmc_on(cpu).args(words).output().expect("the binary starts").into()
        };
        let info: Value = serde_json::from_str(&ran(&["info", "--json"]).expect(0).stdout).expect("JSON");
        let devices = kit::data("cpus").join(cpu).join("sys/bus/event_source/devices");
        let mut saved: Vec<String> = std::fs::read_dir(devices)
            .expect("the folder of its PMUs")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        let pmus = info["pmus"].as_array().expect("PMUs").iter();
        let mut seen: Vec<&str> = pmus.map(|pmu| pmu["name"].as_str().expect("a name")).collect();
        saved.sort();
        seen.sort_unstable();
        assert_eq!(seen, saved, "{cpu}");
        let cpuinfo =
            std::fs::read_to_string(kit::data("cpus").join(cpu).join("proc/cpuinfo")).expect("its cpuinfo");
        if let Some(model) = cpuinfo.lines().find_map(|line| line.strip_prefix("model name\t: ")) {
            assert_eq!(info["cpu"]["model"], model);
        }
        assert_eq!(info["cpu"]["cpus"], cpuinfo.lines().filter(|line| line.starts_with("processor")).count());
        // The PMU's own events are those of the saved machine.
        let core =
            ["cpu", "cpu_core", "armv8_pmuv3_0"].into_iter().find(|name| seen.contains(name)).expect("cores");
        let names = ran(&["list", core, "--names"]).expect(0).stdout;
        let cycles = if core.starts_with("arm") { "cpu_cycles" } else { "cpu-cycles" };
        assert!(names.lines().any(|name| name == format!("{core}/{cycles}/")), "{cpu}:\n{names}");
    }
}

#[test]
fn what_opens_is_what_stat_counts() {
    if !need_perf_events() {
        return;
    }
    run(&["list", "task-clock"]).expect(0).prints(&["software", "task-clock"]);
    let list = json(&["list", "hw", "sw", "--json"]);
    for event in list["events"].as_array().unwrap() {
        let name = event["name"].as_str().unwrap();
        let counted = run(&["stat", "-x,", "-e", name, "--", "true"]).expect(0).stderr;
        let supported = !counted.contains("<not supported>");
        assert_eq!(supported, event["opens"] != "no", "{name}: {event}\n{counted}");
        assert_eq!(event["opens"] == "no", event["reason"]["cause"].is_string(), "{event}");
    }
}

#[test]
fn the_request_is_shown() {
    let list = json(&["list", "page-faults", "L1-dcache-load-misses", "--json"]);
    let of = |name: &str| {
        let events = list["events"].as_array().unwrap();
        events.iter().find(|event| event["name"] == name).unwrap()["encoding"].clone()
    };
    assert_eq!(of("page-faults")["type"], 1);
    assert_eq!(of("page-faults")["config"], 2);
    assert_eq!(
        (of("L1-dcache-load-misses")["type"].as_u64(), of("L1-dcache-load-misses")["config"].as_u64()),
        (Some(3), Some(0x10000))
    );
    run(&["list", "--long", "page-faults"]).expect(0).prints(&["type 1 config 0x2"]);
}

#[test]
fn a_slip_is_answered_with_the_nearest_name() {
    let ran = run(&["list", "cycels"]).expect(1).says(&["no event has `cycels`", "cycles"]);
    assert_eq!(ran.stdout, "");
    run(&["list", "zzzzzzzz"]).expect(1).says(&["no event has `zzzzzzzz`"]);
}

#[test]
fn tracepoints_have_their_fields() {
    if !tracefs() {
        return;
    }
    let list = json(&["list", "sched:sched_switch", "--long", "--json"]);
    let event = &list["events"][0];
    let id = std::fs::read_to_string("/sys/kernel/tracing/events/sched/sched_switch/id").unwrap();
    assert_eq!(
        (event["encoding"]["type"].as_u64(), event["encoding"]["config"].as_u64()),
        (Some(2), id.trim().parse().ok())
    );
    let fields: Vec<&str> =
        event["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect();
    assert!(fields.contains(&"prev_comm") && fields.contains(&"next_pid"), "{fields:?}");
    assert!(!fields.iter().any(|field| field.starts_with("common_")));
    run(&["list", "sched:sched_sw*", "--long"])
        .expect(0)
        .prints(&["sched:sched_switch", "char prev_comm[16]"]);
}

#[test]
fn formats_of_the_tracers_are_no_events() {
    if !tracefs() {
        return;
    }
    let listed = run(&["list", "--names", "tracepoint"]).expect(0).stdout;
    assert!(listed.contains("sched:sched_switch\n") && !listed.contains("ftrace:bprint\n"));
}

#[test]
fn one_tracepoint_stands_for_all() {
    if !tracefs() || !need_perf_events() {
        return;
    }
    let list = json(&["list", "tracepoint", "sched:*", "--json"]);
    let opens: Vec<&str> =
        list["events"].as_array().unwrap().iter().map(|event| event["opens"].as_str().unwrap()).collect();
    if !need("tracepoints", opens[0] == "yes", "tracepoints do not open for this user") {
        return;
    }
    assert!(opens.len() > 10 && opens[1..].iter().all(|&opens| opens == "as-another"), "{opens:?}");
    // Each closing takes some 35 ms, so only a few are tried.
    if need_program("strace") {
        let strace = ["-f", "-e", "trace=perf_event_open", kit::binary(), "list", "tracepoint", "sched:*"];
        let traced: Ran = Command::new("strace").args(strace).output().unwrap().into();
        let tried = traced.expect(0).stderr.matches("PERF_TYPE_TRACEPOINT").count();
        assert!((1..5).contains(&tried), "{tried} of {} were tried", opens.len());
    }
    run(&["list", "sched:*"]).expect(0).prints(&["yes*", "another tracepoint was, and stands for all"]);
}

#[test]
fn names_are_for_completion() {
    let listed = run(&["list", "--names"]).expect(0).stdout;
    let names: Vec<&str> = listed.lines().collect();
    for name in ["cycles", "cpu-cycles", "task-clock", "L1-dcache-load-misses", "duration_time"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(names.iter().all(|name| !name.contains(' ') && !name.is_empty()));
    for pmu in std::fs::read_dir("/sys/bus/event_source/devices").unwrap().flatten() {
        let name = pmu.file_name().into_string().unwrap();
        let numbered = name.rsplit_once('_').is_some_and(|(_, number)| number.parse::<u32>().is_ok());
        for term in std::fs::read_dir(pmu.path().join("format")).into_iter().flatten().flatten() {
            let form = format!("{name}/{}=", term.file_name().to_str().unwrap());
            assert!(numbered || names.contains(&form.as_str()), "{form}");
        }
    }
    assert_eq!(run(&["list", "--names", "sw"]).expect(0).stdout.lines().next(), Some("cpu-clock"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut list = pmc().arg("list").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 8];
    let mut pipe = list.stdout.take().unwrap();
    std::io::Read::read_exact(&mut pipe, &mut first).unwrap();
    drop(pipe);
    let output = list.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    assert_eq!(&first, b"hardware");
}

#[test]
fn a_full_disk_is_said() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    for args in [["list", "sw"], ["list", "--names"], ["list", "--json"]] {
        let full = full.try_clone().unwrap();
        let output = pmc().args(args).stdout(Stdio::from(full)).output().unwrap();
        Ran::from(output).expect(1).says(&["writing the list of events", "ENOSPC"]);
    }
}

/// What completions of shells take: plain names on one line, of what opens here.
#[test]
fn a_raw_dump_is_names_with_spaces() {
    if !need_perf_events() {
        return;
    }
    let dump = run(&["list", "--raw-dump", "sw"]).expect(0).stdout;
    assert!(dump.ends_with(" \n") && dump.lines().count() == 1, "{dump:?}");
    let names: Vec<&str> = dump.split_whitespace().collect();
    assert!(names.contains(&"page-faults") && names.iter().all(|name| !name.contains(',')), "{names:?}");
    if need_program("perf") {
        let theirs = kit::oracle::says("perf", &["list", "--raw-dump", "sw"]);
        let tools = ["duration_time", "user_time", "system_time"];
        for name in theirs.split_whitespace().filter(|name| !tools.contains(name)) {
            assert!(names.contains(&name), "perf has {name}: {names:?}");
        }
    }
    let groups = run(&["list", "--raw-dump", "metricgroup"]).expect(0).stdout;
    assert!(groups.split_whitespace().any(|group| group == "Summary"), "{groups}");
}

#[test]
fn metrics_are_listed_with_their_formulas() {
    let text = run(&["list", "metric", "--details"]).expect(0).stdout;
    assert!(text.contains("instructions / cycles") && !text.contains("page-faults, faults"), "{text}");
    let document = json(&["list", "-j", "metricgroup"]);
    assert_eq!(document["events"][0]["kind"], "metricgroup");
    assert!(document["events"][0]["text"].as_str().expect("its metrics").contains("ipc"));
    // A word finds metrics among the events.
    assert!(run(&["list", "page_fault_rate"]).expect(0).stdout.contains("page faults per second"));
}

#[test]
fn lists_go_to_files_and_may_do_without_texts() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("list");
    let path = file.to_str().expect("UTF-8");
    assert_eq!(run(&["list", "sw", "--no-desc", "-o", path]).expect(0).stdout, "");
    let text = std::fs::read_to_string(&file).expect("the list");
    assert!(text.contains("page-faults, faults") && !text.contains("number of"), "{text}");
    assert!(run(&["list", "sw", "-o", "-"]).expect(0).stdout.contains("page-faults"));
    // What is not found leaves what is there.
    run(&["list", "no_such_event", "-o", path]).expect(1);
    assert_eq!(std::fs::read_to_string(&file).expect("the list"), text);
    run(&["list", "--unit", "nosuchpmu"]).expect(1).says(&["there is no PMU nosuchpmu", "one of: "]);
    let software = run(&["list", "--unit", "soft*", "-v"]).expect(0).stdout;
    assert!(!software.contains("tracepoint\n"), "{software}");
}
