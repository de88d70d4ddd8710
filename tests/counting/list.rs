//! `pmc list` on the test machine: filters, suggestions, JSON, tracepoints, and readers that close early.

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

#[test]
fn type_argument_narrows_the_list() {
    let software = json(&["list", "sw", "--json"]);
    assert_eq!(software["version"], 1);
    assert_eq!(names(&software).len(), 12);
    assert!(software["events"].as_array().unwrap().iter().all(|event| event["kind"] == "software"));
    assert_eq!(names(&json(&["list", "hw", "--json"])).len(), 10);
    assert_eq!(names(&json(&["list", "hw", "miss", "--json"])), ["cache-misses", "branch-misses"]);
    assert_eq!(names(&json(&["list", "sw", "tool", "*clock", "--json"])), ["cpu-clock", "task-clock"]);
}

#[test]
fn recorded_cpus_are_listed() {
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
        // The PMU's own events are the recorded machine's.
        let core =
            ["cpu", "cpu_core", "armv8_pmuv3_0"].into_iter().find(|name| seen.contains(name)).expect("cores");
        let names = ran(&["list", core, "--names"]).expect(0).stdout;
        let cycles = if core.starts_with("arm") { "cpu_cycles" } else { "cpu-cycles" };
        assert!(names.lines().any(|name| name == format!("{core}/{cycles}/")), "{cpu}:\n{names}");
    }
}

/// Returns the table rows of a CPU, by file names.
fn rows(files: &[&str]) -> Vec<Vec<String>> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pmc-events/src/event/vendor/tables");
    let read = |file: &&str| std::fs::read_to_string(folder.join(file)).expect("a table");
    let texts = files.iter().map(read).collect::<Vec<_>>();
    let lines = texts.iter().flat_map(|text| text.lines().skip(1));
    lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Table files of each recorded CPU.
const TABLES: [(&str, &[&str], &[&str]); 7] = [
    ("skylake-x", &["intel/skylakex.core.tsv", "intel/skylakex.uncore.tsv"], &["intel/skylakex.metrics.tsv"]),
    (
        "sapphire-rapids",
        &["intel/sapphirerapids.core.tsv", "intel/sapphirerapids.uncore.tsv"],
        &["intel/sapphirerapids.metrics.tsv"],
    ),
    (
        "alder-lake",
        &[
            "intel/alderlake_goldencove.core.tsv",
            "intel/alderlake_gracemont.core.tsv",
            "intel/alderlake.uncore.tsv",
        ],
        &["intel/alderlake_goldencove.metrics.tsv"],
    ),
    (
        "lunar-lake",
        &[
            "intel/lunarlake_lioncove.core.tsv",
            "intel/lunarlake_skymont.core.tsv",
            "intel/lunarlake.uncore.tsv",
        ],
        &["intel/lunarlake_lioncove.metrics.tsv"],
    ),
    ("zen3", &["amd/zen3.events.tsv"], &[]),
    ("zen4", &["amd/zen4.events.tsv"], &[]),
    ("zen5", &["amd/zen5.events.tsv"], &[]),
];

#[test]
fn every_vendor_event_of_a_cpu_is_listed() {
    for (cpu, events, metrics) in TABLES {
        let ran = |words: &[&str]| -> Ran {
            let mut command = kit::pmc_on(cpu);
            // The CPU ID is enough; /proc describes the test machine.
            let id = std::fs::read_to_string(kit::data("cpus").join(cpu).join("cpuid")).expect("its id");
            command.env("PERF_CPUID", id.trim()).env_remove("PROCFS_PATH");
            command.arg("list").args(words).output().expect("the binary starts").into()
        };
        let rows_of = rows(events);
        let names = ran(&["vendor", "--deprecated", "--names"]).expect(0).stdout;
        assert_eq!(names.lines().count(), rows_of.len(), "{cpu}");
        let current =
            rows_of.iter().filter(|row| !row.get(4).is_some_and(|flags| flags.contains('d'))).count();
        assert_eq!(ran(&["vendor", "--names"]).expect(0).stdout.lines().count(), current, "{cpu}");
        let document: Value =
            serde_json::from_str(&ran(&["vendor", "--deprecated", "-j"]).expect(0).stdout).expect("JSON");
        let listed = document["events"].as_array().expect("events");
        assert_eq!(listed.len(), rows_of.len(), "{cpu}");
        for event in listed {
            let is_known = event["encoding"]["config"].is_u64();
            assert!(is_known || event["reason"]["cause"].is_string(), "{cpu}: {event}");
            assert!(event["EventName"].is_string() && event["Unit"] == event["pmu"], "{event}");
        }
        for row in &rows_of {
            let name = row[0].to_lowercase();
            let is_it = |line: &str| line == name || line.split('/').nth(1) == Some(&name);
            assert!(names.lines().any(is_it), "{cpu}: {name}");
        }
        let listed: Value = serde_json::from_str(&ran(&["metric", "-j"]).expect(0).stdout).expect("JSON");
        let listed: Vec<&str> = listed["events"]
            .as_array()
            .expect("metrics")
            .iter()
            .filter_map(|metric| metric["MetricName"].as_str())
            .collect();
        let mut wanted: Vec<String> = rows(metrics).iter().map(|row| row[0].clone()).collect();
        wanted.sort_by_key(|name| name.to_lowercase());
        let mut listed: Vec<String> = listed.into_iter().map(str::to_owned).collect();
        listed.sort_by_key(|name| name.to_lowercase());
        assert_eq!(listed, wanted, "{cpu}");
    }
}

#[test]
fn arm_events_match_the_core() {
    let ran: Ran =
        kit::pmc_on("neoverse-n1").args(["list", "vendor", "-j"]).output().expect("the binary starts").into();
    let document: Value = serde_json::from_str(&ran.expect(0).stdout).expect("JSON");
    let encoding = |name: &str| {
        let events = document["events"].as_array().expect("events").iter();
        let mut found = events.filter(|event| event["name"] == name);
        found.next().map(|event| event["Encoding"].as_str().expect("an encoding").to_owned())
    };
    for (name, code) in [("cpu_cycles", "0x11"), ("l1d_cache_refill", "0x3"), ("ll_cache_miss_rd", "0x37")] {
        assert_eq!(encoding(name), Some(format!("armv8_pmuv3_0/event={code}/")), "{name}");
    }
    assert_eq!(encoding("stall_backend_mem"), None, "that is a later core's");
}

#[test]
fn descriptions_are_searched_and_narrowed() {
    let ran = |words: &[&str]| -> Ran {
        kit::pmc_on("skylake-x").arg("list").args(words).output().expect("the binary starts").into()
    };
    let found = ran(&["L3_MISS", "vendor"]).expect(0).stdout;
    assert!(found.starts_with("vendor cpu (skylakex)\n"), "{found}");
    assert!(found.contains("  mem_load_retired.l3_miss ") && !found.contains("l3_hit"), "{found}");
    let long = ran(&["vendor", "mem_load_retired.l3_miss", "--long"]).expect(0);
    long.prints(&[
        "request  type 4 config 0x20d1",
        "manual   counters 0-3, supports precise sampling, period 100007",
    ]);
    let unit = ran(&["--unit", "uncore_upi", "--names"]).expect(0).stdout;
    assert!(unit.lines().all(|name| name.starts_with("unc_upi")) && unit.lines().count() > 50, "{unit}");
    assert_eq!(
        ran(&["uncore_upi_1", "--names"]).expect(0).stdout,
        unit,
        "an instance has all that they have"
    );
    assert!(!ran(&["vendor", "--names"]).expect(0).stdout.contains("unc_c_llc_lookup.any"));
    assert!(ran(&["vendor", "--names", "--deprecated"]).expect(0).stdout.contains("unc_c_llc_lookup.any"));
    // perf's word `pmu`, for PMU events by name, lists both.
    let pmu = ran(&["pmu", "--names"]).expect(0).stdout;
    assert!(pmu.contains("cpu/mem-loads/") && pmu.contains("\nmem_load_retired.l3_miss\n"), "{pmu}");
    let groups = ran(&["metricgroup"]).expect(0).stdout;
    assert!(groups.contains("TopdownL1") && groups.contains("tma_backend_bound"), "{groups}");
    ran(&["metric", "tma_dram_bound", "-v"])
        .expect(0)
        .prints(&["CYCLE_ACTIVITY.STALLS_L3_MISS", "TopdownL3"]);
    // Completions for -M: metrics and groups.
    let names = ran(&["metric", "--names"]).expect(0).stdout;
    for name in ["ipc", "tma_dram_bound", "TopdownL1", "Summary"] {
        assert!(names.lines().any(|line| line == name), "{name}: {names}");
    }
}

#[test]
fn unit_option_narrows_any_list() {
    let ran = |words: &[&str]| -> Ran {
        kit::pmc_on("skylake-x").arg("list").args(words).output().expect("the binary starts").into()
    };
    let pmus = |words: &[&str]| -> std::collections::BTreeSet<String> {
        let document: Value = serde_json::from_str(&ran(words).expect(0).stdout).expect("JSON");
        let events = document["events"].as_array().expect("events").iter();
        events.map(|event| format!("{} {}", event["kind"], event["pmu"]).replace('"', "")).collect()
    };
    let only = |wanted: &[&str]| wanted.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(pmus(&["--json", "--unit", "uncore_imc", "vendor"]), only(&["vendor uncore_imc"]));
    assert_eq!(pmus(&["--json", "--unit", "cpu", "metric"]), only(&["metric cpu"]));
    assert_eq!(
        pmus(&["--json", "--unit", "cpu", "cpu", "uncore_upi", "vendor"]),
        only(&["vendor cpu", "pmu cpu", "raw cpu"])
    );
    assert_eq!(pmus(&["--json", "--unit", "software"]), only(&["software null"]));
    ran(&["--unit", "cpu", "hw"])
        .expect(1)
        .says(&["no matching events on PMU cpu", "do not belong to a PMU"]);
    ran(&["--unit", "uncore_imc", "metric"]).expect(1).says(&["no matching metrics on PMU uncore_imc"]);
    ran(&["--unit", "uncore_imc", "l3_miss"]).expect(1).says(&["no event of uncore_imc has `l3_miss`"]);
    ran(&["--unit", "nosuch"]).expect(1).says(&["unknown PMU nosuch"]);
}

#[test]
fn events_of_one_file_are_split_by_pmu() {
    let ran = |words: &[&str]| -> Ran {
        kit::pmc_on("zen4").args(words).output().expect("the binary starts").into()
    };
    let umc = ran(&["list", "umc", "vendor"]).expect(0).stdout;
    assert!(umc.starts_with("vendor amd_umc (amdzen4)\n"), "{umc}");
    ran(&["info"])
        .expect(0)
        .prints(&["  cpu: table amdzen4, 336 events\n", "  uncore: table amdzen4, 166 events\n"]);
}

#[test]
fn missing_pmu_is_reported() {
    let saved = kit::data("cpus").join("zen4");
    let bare = tempfile::tempdir().expect("a folder");
    let mut list = pmc();
    list.env("SYSFS_PATH", bare.path()).env("PROCFS_PATH", saved.join("proc")).args(["list", "vendor"]);
    let ran: Ran = list.output().expect("the binary starts").into();
    ran.expect(1).says(&["table amdzen4 require the PMU cpu, which this machine does not have"]);
    let mut info = pmc();
    info.env("SYSFS_PATH", bare.path()).env("PROCFS_PATH", saved.join("proc")).arg("info");
    let ran: Ran = info.output().expect("the binary starts").into();
    ran.expect(0).prints(&["cpu: table amdzen4, ", "has no PMU that"]);
}

/// Creates a small copy of Intel's tree with one model.
fn perfmon() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a folder");
    let file = |path: &str, text: &str| {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, text).expect("a file");
    };
    file(
        "mapfile.csv",
        "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
         GenuineIntel-6-55-[01234],V9,/SKX/events/skylakex_core.json,core,,,\n",
    );
    file(
        "SKX/events/skylakex_core.json",
        r#"{"Events": [
            {"EventName": "MEM_LOAD_RETIRED.L3_MISS", "EventCode": "0xD1", "UMask": "0x20", "Counter": "0,1,2,3",
             "BriefDescription": "Loads that missed\u001b[31m the L3", "SampleAfterValue": "50021"},
            {"EventName": "BAD.CODE", "EventCode": "0xZZ"}, {"EventName": "BAD.MASK", "EventCode": "0xD1", "UMask": "-1"},
            {"EventName": "BRAND_NEW.EVENT", "EventCode": "0xFE", "UMask": "0x1", "BriefDescription": "Only here"}]}"#,
    );
    tree
}

#[test]
fn imported_tables_take_precedence_with_a_note() {
    let (tree, home) = (perfmon(), tempfile::tempdir().expect("a folder"));
    let ran = |words: &[&str]| -> Ran {
        let mut command = kit::pmc_on("skylake-x");
        command.env("XDG_DATA_HOME", home.path()).args(words).output().expect("the binary starts").into()
    };
    let from = tree.path().to_str().expect("UTF-8");
    ran(&["list", "--import", from]).expect(0).prints(&[
        "Intel's perfmon: 2 events and 0 metrics of 1 model, stored in ",
        "including this CPU: skylakex",
        "skipped: 2 entries with an unreadable name, code or formula",
    ]);
    assert!(home.path().join("pmc/events/intel/skylakex.core.tsv").exists());
    let list = ran(&["list", "cpu", "vendor"]).expect(0).stdout;
    assert!(list.contains("vendor cpu (skylakex, imported)\n"), "{list}");
    assert!(list.contains("Loads that missed [31m the L3") && list.contains("brand_new.event"), "{list}");
    assert!(!list.contains("cycle_activity"), "the embedded table is not looked at: {list}");
    assert!(ran(&["list", "only here"]).expect(0).stdout.contains("brand_new.event"), "texts are searched");
    // Events that were not imported are still listed.
    ran(&["list", "unc_upi", "--names"]).expect(0).prints(&["unc_upi_clockticks"]);
    ran(&["list", "metric", "--names"]).expect(0).prints(&["tma_dram_bound"]);
    ran(&["info"]).expect(0).prints(&["cpu: table skylakex, 2 events and ", "(events imported)"]);
    ran(&["list", "--import", "/nonexistent"]).expect(1).says(&["reading the directory /nonexistent"]);
    std::fs::write(tree.path().join("SKX/events/skylakex_core.json"), "[]").expect("a file");
    ran(&["list", "--import", from]).expect(1).says(&["no readable events", "its files contain no events"]);
    let empty = tempfile::tempdir().expect("a folder");
    let empty = empty.path().to_str().expect("UTF-8");
    ran(&["list", "--import", empty])
        .expect(1)
        .says(&["contains no events that pmc can read", "github.com/intel/perfmon"]);
}

#[test]
fn events_marked_as_opening_can_be_counted() {
    if !crate::kit::need_kernel_mode() {
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
fn perf_event_attr_is_shown() {
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
fn typo_suggests_the_nearest_name() {
    let ran = run(&["list", "cycels"]).expect(1).says(&["no event has `cycels`", "cycles"]);
    assert_eq!(ran.stdout, "");
    run(&["list", "zzzzzzzz"]).expect(1).says(&["no event has `zzzzzzzz`"]);
    let ran = run(&["list", "--json", "cycels"]).expect(1).says(&["no event has `cycels`", "cycles"]);
    let document: Value = serde_json::from_str(&ran.stdout).expect("a document all the same");
    assert_eq!(document["events"], Value::Array(Vec::new()));
}

#[test]
fn tracepoint_fields_are_listed() {
    if !kit::need_tracefs("sched") {
        return;
    }
    let list = json(&["list", "sched:sched_switch", "--long", "--json"]);
    let event = &list["events"][0];
    let id = std::fs::read_to_string(kit::tracefs().unwrap().join("sched/sched_switch/id")).unwrap();
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
fn ftrace_formats_are_not_events() {
    if !kit::need_tracefs("sched") {
        return;
    }
    let listed = run(&["list", "--names", "tracepoint"]).expect(0).stdout;
    assert!(listed.contains("sched:sched_switch\n") && !listed.contains("ftrace:bprint\n"));
}

#[test]
fn one_tracepoint_is_opened_for_all() {
    if !kit::need_tracefs("sched") || !need_perf_events() {
        return;
    }
    let list = json(&["list", "tracepoint", "sched:*", "--json"]);
    let opens: Vec<&str> =
        list["events"].as_array().unwrap().iter().map(|event| event["opens"].as_str().unwrap()).collect();
    if !need("tracepoints", opens[0] == "yes", "tracepoints do not open for this user") {
        return;
    }
    assert!(opens.len() > 10 && opens[1..].iter().all(|&opens| opens == "as-another"), "{opens:?}");
    // Each close takes about 35 ms, so pmc tries only a few.
    if need_program("strace") {
        let strace = ["-f", "-e", "trace=perf_event_open", kit::binary(), "list", "tracepoint", "sched:*"];
        let traced: Ran = Command::new("strace").args(strace).output().unwrap().into();
        let tried = traced.expect(0).stderr.matches("PERF_TYPE_TRACEPOINT").count();
        assert!((1..5).contains(&tried), "{tried} of {} were tried", opens.len());
    }
    run(&["list", "sched:*"]).expect(0).prints(&["yes*", "pmc tested one tracepoint on behalf of all"]);
}

#[test]
fn names_option_lists_completions() {
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
fn closed_pipe_is_not_an_error() {
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
fn full_disk_is_reported() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    for args in [["list", "sw"], ["list", "--names"], ["list", "--json"]] {
        let full = full.try_clone().unwrap();
        let output = pmc().args(args).stdout(Stdio::from(full)).output().unwrap();
        Ran::from(output).expect(1).says(&["writing the list of events", "ENOSPC"]);
    }
}

/// Input for shell completions: the plain names of events that open here, on one line.
#[test]
fn raw_dump_separates_names_with_spaces() {
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
    // A word matches metrics as well as events.
    assert!(run(&["list", "page_fault_rate"]).expect(0).stdout.contains("page faults per second"));
}

#[test]
fn lists_are_written_to_files_and_descriptions_can_be_omitted() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("list");
    let path = file.to_str().expect("UTF-8");
    assert_eq!(run(&["list", "sw", "--no-desc", "-o", path]).expect(0).stdout, "");
    let text = std::fs::read_to_string(&file).expect("the list");
    assert!(text.contains("page-faults, faults") && !text.contains("number of"), "{text}");
    assert!(run(&["list", "sw", "-o", "-"]).expect(0).stdout.contains("page-faults"));
    // A failed search leaves the existing file unchanged.
    run(&["list", "no_such_event", "-o", path]).expect(1);
    assert_eq!(std::fs::read_to_string(&file).expect("the list"), text);
    run(&["list", "--unit", "nosuchpmu"]).expect(1).says(&["unknown PMU nosuchpmu", "one of: "]);
    let software = run(&["list", "--unit", "soft*", "-v"]).expect(0).stdout;
    assert!(!software.contains("tracepoint\n"), "{software}");
}

#[test]
fn events_of_another_cpu_are_listed_by_cpu_id() {
    let ran = |words: &[&str]| -> Ran {
        let mut command = kit::pmc_on("neoverse-n1");
        command.env("PMC_CPUID", "GenuineIntel-6-55-7").args(words);
        command.output().expect("the binary starts").into()
    };
    let text = ran(&["list", "l3_miss"]).expect(0).stdout;
    let row = text.lines().find(|line| line.contains("mem_load_retired.l3_miss ")).expect("an event");
    assert!(row.contains(" no 1 "), "{row}");
}

#[test]
fn sdt_markers_in_the_build_id_cache_are_listed() {
    let cache = tempfile::tempdir().expect("a folder");
    let program = std::fs::canonicalize(kit::binary()).expect("pmc");
    let name = program.strip_prefix("/").expect("an absolute path");
    let id = "ac61ec5a8eb1396f9fbd350e3169a558528a40";
    let folder = cache.path().join(name).join(format!("93{id}"));
    let links = cache.path().join(".build-id/93");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::create_dir_all(&links).expect("a folder");
    let target = std::path::Path::new("../..").join(name).join(format!("93{id}"));
    std::os::unix::fs::symlink(target, links.join(id)).expect("a link");
    // As perf buildid-cache --add writes it.
    let list = "%sdt_own:begin=begin\np:sdt_own/begin /bin/x:0x402e1 arg1=%di:u64\n%sdt_own:end=end\n";
    std::fs::write(folder.join("probes"), list).expect("a list");
    let mut command = pmc();
    command.args(["list", "sdt"]).env("PERF_BUILDID_DIR", cache.path());
    let ran = Ran::from(command.output().expect("pmc starts")).expect(0);
    for name in ["sdt_own:begin", "sdt_own:end"] {
        let row = ran.stdout.lines().find(|line| line.contains(name)).expect("a marker");
        assert!(row.contains(&format!("marker in {}", program.display())), "{row}");
        assert!(row.ends_with("[SDT event]"), "{row}");
    }
}

#[test]
fn pipe_output_uses_perfs_type_names() {
    run(&["list", "sw"]).expect(0).prints(&["[Software event]"]);
    run(&["list", "tool"]).expect(0).prints(&["[Tool event]"]);
    if kit::tracefs().is_some() {
        let text = run(&["list", "sched:*"]).expect(0).stdout;
        let rows = text.lines().filter(|line| line.contains("  sched:")).count();
        assert_eq!(text.matches("[Tracepoint event]").count(), rows, "{text}");
    }
}

#[test]
fn raw_dump_has_all_names() {
    let text = run(&["list", "--raw-dump"]).expect(0).stdout;
    let names: Vec<&str> = text.split_whitespace().collect();
    for name in ["page-faults", "faults", "page_fault_rate"] {
        assert!(names.contains(&name), "{name}: {text}");
    }
}
