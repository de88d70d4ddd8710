//! Counting on simulated CPUs: recorded files below `/sys`, and counters whose values the test sets
//! (`played/counters.c`, a preloaded library below all of pmc).

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// The counters of a CPU, in the language of `counters.c`.
struct Played {
    folder: tempfile::TempDir,
    cpu: &'static str,
}

/// Skylake with Hyper-Threading: four general counters, and separate counters for instructions, cycles and
/// reference cycles.
const SKYLAKE: &str = "general 4 4
only 0 0xffff 1 0x10000000f
only 0 0xffff 0 0x20000000f
only 4 0xffff 0xc0 0x10000000f
only 4 0xffff 0x3c 0x20000000f
only 4 0xffff 0x300 0x400000000
only 4 0xffff 0x148 0x4
";

impl Played {
    /// Sets up the counters, or returns `None` without a compiler or any counter.
    fn new(cpu: &'static str, counters: &str, events: &[(&str, u64)]) -> Option<Self> {
        if !kit::need_program("gcc") || !kit::need_perf_events() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counting/stat/played/counters.c");
        let library = folder.path().join("counters.so");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]);
        assert!(gcc.status().unwrap().success());
        let values = events.iter().map(|(event, value)| format!("event {event} {value}\n"));
        let text = counters.to_owned() + &values.collect::<String>();
        std::fs::write(folder.path().join("counters"), text).unwrap();
        Some(Self { folder, cpu })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a program run with these counters.
    fn play(&self, mut program: Command) -> Command {
        program.env("LD_PRELOAD", self.path("counters.so"));
        program.env("PLAYED_COUNTERS", self.path("counters")).env("PLAYED_LOG", self.path("log"));
        program
    }

    /// Runs `pmc stat` on this CPU and returns its output.
    #[track_caller]
    fn stat(&self, args: &[&str]) -> kit::Ran {
        let _ = std::fs::remove_file(self.path("log"));
        let mut pmc = self.play(kit::pmc_on(self.cpu));
        pmc.arg("stat").args(args);
        pmc.output().unwrap().into()
    }

    /// Returns the document of `--json=2`.
    #[track_caller]
    fn count(&self, args: &[&str]) -> Document {
        let file = self.path("document");
        let form = ["--json=2", "-o", file.to_str().unwrap()];
        self.stat(&[&form, args].concat()).expect(0);
        Document::read(&file)
    }

    /// Returns the groups that were read: type and config of each event, leaders first.
    fn groups(&self) -> Vec<Vec<String>> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for line in log.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let event = format!("{} {}", fields[2], fields[3]);
            match groups.iter_mut().find(|(leader, _)| *leader == fields[1]) {
                Some((_, group)) => group.push(event),
                None => groups.push((fields[1], vec![event])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// The simulated counters themselves: what pmc and perf report for them, and how they refuse events that do
/// not fit.
#[test]
fn simulated_counters_count_and_refuse() {
    let events =
        [("0 0 0", 2000), ("0 1 0", 3000), ("4 0x1a3 0", 80), ("4 0x2a3 0", 100), ("4 0x3a3 0", 120)];
    let Some(played) = Played::new("skylake-x", SKYLAKE, &events) else { return };
    let counted = played.count(&["-e", "cycles,instructions,page-faults", "--", "true"]);
    assert_eq!((counted.number("cycles"), counted.number("instructions")), (2000.0, 3000.0));
    assert!(counted.number("page-faults") > 0.0, "software events are the kernel's own");
    let counted = played.count(&["-e", "{r1a3,r2a3,r3a3,cycles,instructions}", "--", "true"]);
    assert_eq!(counted.number("r3a3"), 120.0);
    assert_eq!(played.groups(), [["4 0x1a3", "4 0x2a3", "4 0x3a3", "0 0", "0 0x1"]]);
    // Five events on four counters: the group is impossible, and single events take turns.
    let counted = played.count(&["-e", "{r1a3,r1a3,r2a3,r2a3,r3a3}", "--", "true"]);
    assert_eq!(counted.value("r3a3"), None);
    let counted = played.count(&["-e", "r1a3,r1a3,r2a3,r2a3,r3a3", "--", "true"]);
    assert_eq!(counted.number("r3a3"), 120.0);
    let count = &counted.rows()[0]["values"][4]["count"];
    assert_eq!((&count["raw"], &count["share"]), (&Value::from(60), &Value::from(0.5)));
    // An event that the CPU does not support is refused with a reason.
    played.stat(&["-e", "r4a3", "--", "true"]).expect(0).says(&["r4a3: not supported (ENOENT)"]);
}

/// 40,000 slots of a core: half retired, a fifth without instructions, a fifth thrown away.
const SKYLAKE_SLOTS: [(&str, u64); 8] = [
    ("4 0x20003c 0", 20_000),
    ("4 0x3c 0", 10_000),
    ("4 0x19c 0", 8000),
    ("4 0x10e 0", 24_000),
    ("4 0x2c2 0", 20_000),
    ("4 0x20010d 0", 2000),
    ("4 0xc0 0", 12_000),
    ("4 0x4c2 0", 0),
];

/// Returns a metric's value from the only row of a document.
#[track_caller]
fn metric<'a>(counted: &'a Document, name: &str) -> &'a Value {
    let all = counted.rows()[0]["metrics"].as_array().unwrap();
    all.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

#[track_caller]
fn assert_metric(counted: &Document, name: &str, value: f64) {
    let got = metric(counted, name)["value"].as_f64().unwrap_or_else(|| panic!("{}", metric(counted, name)));
    assert!((got - value).abs() < 1e-6, "{name}: {got}, not {value}");
}

#[test]
fn topdown_level_1_is_one_group_on_four_counters() {
    let Some(played) = Played::new("skylake-x", SKYLAKE, &SKYLAKE_SLOTS) else { return };
    let counted = played.count(&["-M", "topdownl1", "--metric-no-threshold", "--", "true"]);
    for (name, share) in [
        ("tma_frontend_bound", 20.0),
        ("tma_bad_speculation", 20.0),
        ("tma_retiring", 50.0),
        ("tma_backend_bound", 10.0),
    ] {
        assert_metric(&counted, name, share);
        assert_eq!(metric(&counted, name)["inexact"], false);
    }
    assert_eq!(metric(&counted, "tma_bad_speculation")["threshold"], "bad");
    assert_eq!(metric(&counted, "tma_backend_bound")["threshold"], "good");
    let mut groups = played.groups();
    assert_eq!(groups.len(), 1, "{groups:?}");
    groups[0].sort();
    assert_eq!(groups[0], ["4 0x10e", "4 0x19c", "4 0x20003c", "4 0x20010d", "4 0x2c2"]);
    // perf's words in lines of JSON, and of CSV.
    let lines = played.stat(&["-j", "-M", "tma_bad_speculation", "--", "true"]).expect(0).stderr;
    let words = r#""metric-value" : 20.000000, "metric-unit" : "%  tma_bad_speculation", "metric-threshold" : "bad"}"#;
    assert!(lines.contains(words), "{lines}");
    let csv = played.stat(&["-x,", "-M", "tma_backend_bound", "--", "true"]).expect(0).stderr;
    assert!(csv.contains(",10.000,%  tma_backend_bound,good\n"), "{csv}");
}

#[test]
fn events_needed_by_thresholds_are_counted() {
    let Some(played) = Played::new("skylake-x", SKYLAKE, &SKYLAKE_SLOTS) else { return };
    // Retiring, together with its heavy operations, raises an alarm. This needs two events more than fit.
    let counted = played.count(&["-M", "TopdownL1", "--", "true"]);
    assert_metric(&counted, "tma_retiring", 50.0);
    assert_eq!(metric(&counted, "tma_retiring")["threshold"], "bad");
    assert_eq!(played.groups().len(), 2, "{:?}", played.groups());
    // The groups took turns. Values within a group are consistent with each other, but still estimate the
    // whole run.
    assert_eq!(metric(&counted, "tma_frontend_bound")["inexact"], false);
    // The tree leaves these events out, because its shares must not take turns.
    let counted = played.count(&["--topdown", "--", "true"]);
    assert_eq!(played.groups().len(), 1, "{:?}", played.groups());
    assert_eq!(metric(&counted, "tma_retiring").get("threshold"), None);
}

#[test]
fn multiplexed_groups_print_their_error() {
    let events: Vec<_> = SKYLAKE_SLOTS.iter().map(|(event, value)| (*event, value * 3)).collect();
    let more = [("4 0xc5 0", 600), ("4 0x10401c3 0", 300)];
    let Some(played) = Played::new("skylake-x", SKYLAKE, &[events, more.to_vec()].concat()) else { return };
    let counted = played.count(&["-M", "tma_branch_mispredicts", "--metric-no-threshold", "--", "true"]);
    // Two thirds of the thrown-away slots are branches.
    assert_metric(&counted, "tma_branch_mispredicts", 20.0 * 600.0 / 900.0);
    let shown = metric(&counted, "tma_branch_mispredicts");
    assert!(shown["inexact"] == true && shown["error"].as_f64().unwrap() > 0.0, "{shown}");
    let groups = played.groups();
    assert!(groups.len() == 2 && groups.concat().len() == 6, "{groups:?}");
    // One event at a time, and separate events for each metric.
    played.count(&[
        "-M",
        "tma_branch_mispredicts",
        "--metric-no-group",
        "--metric-no-threshold",
        "--",
        "true",
    ]);
    assert!(played.groups().iter().all(|group| group.len() == 1), "{:?}", played.groups());
    let two = ["-M", "tma_frontend_bound,tma_info_thread_ipc", "--metric-no-threshold"];
    played.count(&[&two[..], &["--", "true"]].concat());
    let shared = played.groups().concat().len();
    played.count(&[&two[..], &["--metric-no-merge", "--", "true"]].concat());
    assert!(played.groups().len() == 2 && played.groups().concat().len() >= shared, "{:?}", played.groups());
}

/// Sapphire Rapids: eight general counters, and the slots with their parts.
const SAPPHIRE_RAPIDS: &str = "general 4 8
only 4 0xffffff 0xc0 0x1000000ff
only 4 0xffffff 0x3c 0x2000000ff
only 4 0xffff 0x300 0x400000000
only 4 0xffff 0x400 0x800000000
";
const SAPPHIRE_RAPIDS_SLOTS: [(&str, u64); 10] = [
    ("4 0x400 0", 10_000),
    ("4 0x8000 0", 2000),
    ("4 0x8100 0", 500),
    ("4 0x8200 0", 1500),
    ("4 0x8300 0", 6000),
    ("4 0x8400 0", 500),
    ("4 0x8500 0", 400),
    ("4 0x8600 0", 700),
    ("4 0x8700 0", 4500),
    ("4 0x10ad 0", 0),
];

#[test]
fn tree_names_the_bottleneck_and_the_next_command() {
    let Some(played) = Played::new("sapphire-rapids", SAPPHIRE_RAPIDS, &SAPPHIRE_RAPIDS_SLOTS) else {
        return;
    };
    let top = played.stat(&["--topdown", "--", "true"]).expect(0).stderr;
    for line in [
        "level 1 of 6:",
        "   60.0%  tma_backend_bound    <- the bottleneck",
        " bottleneck:   tma_backend_bound\n",
        " measure next: pmc stat --topdown --td-level 2 -- true\n",
        " sample:       pmc record -e TOPDOWN.BACKEND_BOUND_SLOTS -- true\n",
    ] {
        assert!(top.contains(line), "no {line:?} in {top}");
    }
    // The slots lead, otherwise their parts could not be opened.
    let groups = played.groups();
    assert!(groups.len() == 1 && groups[0][0] == "4 0x400", "{groups:?}");
    let two = played.stat(&["--topdown", "--td-level", "2", "--", "true"]).expect(0).stderr;
    for line in [
        "levels 1 to 2 of 6:",
        "tma_backend_bound         <-\n",
        "   45.0%  ├ tma_memory_bound        <- the bottleneck",
        "   15.0%  └ tma_core_bound\n",
        " bottleneck:   tma_backend_bound > tma_memory_bound\n",
        " measure next: pmc stat -M tma_memory_bound_group -- true\n",
    ] {
        assert!(two.contains(line), "no {line:?} in {two}");
    }
    assert_eq!(played.groups().len(), 1, "{:?}", played.groups());
    played.stat(&["--topdown", "--td-level", "7", "--", "true"]).expect(2).says(&["the highest level is 6"]);
    // Without a table the kernel's own events define the top level.
    let mut pmc = played.play(kit::pmc_on("sapphire-rapids"));
    let kernels: kit::Ran =
        pmc.env("PMC_CPUID", "unknown-1-2").args(["stat", "--topdown", "true"]).output().unwrap().into();
    kernels.expect(0).says(&["   60.0%  backend bound    <- the bottleneck"]);
    // If there are no levels, the message names no highest one.
    let mut pmc = kit::pmc_on("zen4");
    let none: kit::Ran = pmc.args(["stat", "--topdown", "--td-level", "2", "true"]).output().unwrap().into();
    none.expect(1).says(&["no top-down events"]);
}

#[test]
fn metric_names_are_case_insensitive_and_missing_ones_reported() {
    let Some(played) = Played::new("sapphire-rapids", SAPPHIRE_RAPIDS, &SAPPHIRE_RAPIDS_SLOTS) else {
        return;
    };
    played.stat(&["-M", "tma_memory_bond", "--", "true"]).expect(2).says(&["did you mean tma_memory_bound"]);
    let counted = played.count(&["-M", "TMA_Retiring,tma_Memory_Bound", "--", "true"]);
    assert_metric(&counted, "tma_retiring", 20.0);
    assert_metric(&counted, "tma_memory_bound", 45.0);
    // The simulated CPU refuses one event; the rest continues.
    let both = played.count(&["-M", "tma_retiring,tma_info_thread_ipc", "--", "true"]);
    assert_metric(&both, "tma_retiring", 20.0);
    let reason = metric(&both, "tma_info_thread_ipc")["reason"]["cause"].as_str().unwrap();
    assert!(reason.contains("INST_RETIRED.ANY"), "{reason}");
    let only = played.stat(&["--metric-only", "-M", "tma_retiring", "--", "true"]).expect(0).stderr;
    assert!(
        only.contains("%  tma_retiring") && only.contains("20.000") && !only.contains("10,000"),
        "{only}"
    );
}

/// Other requested events appear below the tree, and metrics are compared like events.
#[test]
fn tree_and_table_print_all_requested_events() {
    let Some(played) = Played::new("sapphire-rapids", SAPPHIRE_RAPIDS, &SAPPHIRE_RAPIDS_SLOTS) else {
        return;
    };
    let beside =
        played.stat(&["--topdown", "-e", "page-faults", "-M", "tma_info_thread_slots", "--", "true"]);
    let beside = beside.expect(0).stderr;
    let (tree, table) = beside.split_once("measure next").expect(&beside);
    assert!(tree.contains("tma_backend_bound"), "{tree}");
    assert!(table.contains("page-faults") && table.contains("tma_info_thread_slots"), "{table}");
    assert!(!table.contains("tma_backend_bound"), "{table}");
    let alone = played.stat(&["--topdown", "--", "true"]).expect(0).stderr;
    assert!(!alone.contains("TOPDOWN.SLOTS"), "{alone}");

    let both = ["-M", "tma_retiring", "--vs", "true", "--vs", "true", "-r", "2"];
    let text = played.stat(&both).expect(0).stderr;
    let row = text.lines().find(|line| line.starts_with(" tma_retiring %")).expect(&text);
    assert!(row.contains("20.000"), "{row}");
    let only = played.stat(&[&["--metric-only"], &both[..]].concat()).expect(0).stderr;
    assert!(only.contains("tma_retiring") && !only.contains("TOPDOWN.SLOTS"), "{only}");
}

#[test]
fn metric_without_events_has_a_row() {
    for (metric, value) in [("x = 7", "7.000"), ("x = d_ratio(#num_cpus, #num_cpus)", "1.000")] {
        let ran = kit::run(&["stat", "--metric", metric, "--", "true"]).expect(0).stderr;
        assert!(ran.contains(&format!("{value} x")) && ran.contains("duration_time"), "{ran}");
    }
}

/// Events of one PMU do not use up the counters of another.
#[test]
fn pmus_do_not_share_counters() {
    // cpu_core is 4, cpu_atom 8.
    let counters = "general 4 3\ngeneral 8 2\ndefault 1000\n";
    let Some(played) = Played::new("alder-lake", counters, &[]) else { return };
    let runs = |events: &str| {
        let file = played.path("runs");
        std::fs::write(&file, "").unwrap();
        let command = format!("echo x >>{}", file.display());
        let ran = played.stat(&["--exact", "-e", events, "--", "sh", "-c", &command]).expect(0);
        (std::fs::read_to_string(file).unwrap().lines().count(), ran.stderr)
    };
    let (times, text) = runs("cycles,instructions");
    assert_eq!((times, text.matches("cycles").count()), (1, 1), "{text}");
    assert_eq!(runs("cpu_core/r1/,cpu_core/r2/,cpu_core/r3/,cpu_atom/r1/,cpu_atom/r2/").0, 1);
    assert_eq!(runs("cpu_core/r1/,cpu_core/r2/,cpu_atom/r1/,cpu_atom/r2/,cpu_atom/r3/").0, 2);
    let said = played.stat(&["-e", "cycles,instructions", "--", "true"]).expect(0).stderr;
    assert!(!said.contains("times as many counters as are available"), "{said}");
    // Instances of an uncore PMU: 18 and 19.
    let counters = "general 18 4\ngeneral 19 4\ndefault 1000\n";
    let Some(played) = Played::new("skylake-x", counters, &[]) else { return };
    for (events, times) in [
        ("{unc_m_cas_count.rd,unc_m_cas_count.wr}", 1),
        ("unc_m_cas_count.rd,unc_m_cas_count.wr,unc_m_act_count.wr,unc_m_pre_count.rd,unc_m_pre_count.wr", 2),
    ] {
        let said = played.stat(&["-e", events, "--", "true"]).expect(0).stderr;
        assert_eq!(said.contains("need 2 times as many counters"), times == 2, "{said}");
        assert!(times == 2 || !said.contains("times as many counters as are available"), "{said}");
    }
}

#[test]
fn core_types_have_their_own_metrics() {
    let core = SAPPHIRE_RAPIDS.to_owned() + "general 8 6\n";
    let Some(played) = Played::new("alder-lake", &core, &SAPPHIRE_RAPIDS_SLOTS) else { return };
    let counted = played.count(&["-M", "tma_retiring", "--metric-no-threshold", "--", "true"]);
    assert_metric(&counted, "tma_retiring", 20.0);
    let groups = played.groups();
    assert!(groups.concat().iter().all(|event| event.starts_with("4 ")), "{groups:?}");
}

#[test]
fn cpus_without_vendor_metrics_use_builtin_metrics() {
    let zen = "general 4 6\n";
    let events = [("4 0xc0 0", 3000), ("0 0 0", 1000), ("0 1 0", 3000)];
    if let Some(played) = Played::new("zen4", zen, &events) {
        let counted = played.count(&["-e", "ex_ret_instr", "-M", "ipc", "--", "true"]);
        assert_eq!(counted.number("ex_ret_instr"), 3000.0);
        assert_metric(&counted, "ipc", 3.0);
    }
    let events = [("8 0x11 0", 1000), ("8 0x8 0", 1500), ("0 0 0", 1000), ("0 1 0", 1500)];
    if let Some(played) = Played::new("neoverse-n1", "core 8\ngeneral 8 7\n", &events) {
        let own = ["-e", "CPU_CYCLES,INST_RETIRED", "--metric", "x=INST_RETIRED/CPU_CYCLES", "-M", "ipc"];
        let counted = played.count(&[&own[..], &["--", "true"]].concat());
        assert_metric(&counted, "x", 1.5);
        assert_metric(&counted, "ipc", 1.5);
    }
}

/// perf opens the same events for a metric, in the same groups if both have a group.
#[test]
fn newest_perf_opens_the_same_events() {
    let perf = kit::oracle::perfs();
    let Some(perf) = perf.get(1) else { return };
    let counters = SAPPHIRE_RAPIDS.to_owned() + "default 1200\n";
    let Some(played) = Played::new("sapphire-rapids", &counters, &SAPPHIRE_RAPIDS_SLOTS) else { return };
    let opened = || {
        let mut events = played.groups().concat();
        events.sort();
        events.dedup();
        events
    };
    for metric in
        ["TopdownL1", "TopdownL2", "tma_info_thread_ipc", "tma_info_bad_spec_ipmispredict", "tma_l3_bound"]
    {
        played.stat(&["-M", metric, "--", "true"]).expect(0);
        let ours = opened();
        std::fs::remove_file(played.path("log")).unwrap();
        let theirs = kit::oracle::ask_until_answered(|_| {
            let mut command = played.play(Command::new(perf));
            let saved = kit::data("cpus/sapphire-rapids");
            command.env("SYSFS_PATH", saved.join("sys")).env("PERF_CPUID", "GenuineIntel-6-8F-8");
            command.args(["stat", "-M", metric, "--", "true"]);
            command
        });
        assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
        assert_eq!(ours, opened(), "{metric}");
    }
}

#[test]
fn recording_uses_the_table_of_its_own_cpu() {
    // `MEMORY_ACTIVITY.STALLS_L3_MISS` and `CPU_CLK_UNHALTED.THREAD`; the other CPU has no metric like this.
    let events = [("4 0x9000947 0", 300), ("4 0x3c 0", 1000)];
    let Some(played) = Played::new("sapphire-rapids", SAPPHIRE_RAPIDS, &events) else { return };
    let file = played.path("perf.data");
    let file = file.to_str().unwrap();
    let wanted = "MEMORY_ACTIVITY.STALLS_L3_MISS,CPU_CLK_UNHALTED.THREAD";
    played.stat(&["record", "-e", wanted, "-o", file, "--", "true"]).expect(0);
    let document = played.path("document");
    let mut elsewhere = kit::pmc_on("skylake-x");
    elsewhere.args(["stat", "report", "-M", "tma_l3_miss_bound,tma_l3_hit_latency", "--json=2", "-o"]);
    let said: kit::Ran = elsewhere.arg(&document).args(["-i", file]).output().unwrap().into();
    said.expect(0);
    let counted = Document::read(&document);
    assert_metric(&counted, "tma_l3_miss_bound", 30.0);
    // In perf's notation for the CPU in its headers.
    let header: kit::Ran = kit::pmc().args(["report", "--header-only", "-i", file]).output().unwrap().into();
    header.expect(0).prints(&["cpuid : GenuineIntel,6,143,"]);
}

#[test]
fn invalid_metric_is_left_out_of_its_group() {
    let Some(played) = Played::new("sapphire-rapids", SAPPHIRE_RAPIDS, &[("4 0x3c 0", 1000)]) else { return };
    let tree = played.path("tree");
    let map = "Family-model,Version,Filename,EventType\n\
        GenuineIntel-6-8F,V1,/SPR/events/sapphirerapids_core.json,core\n\
        GenuineIntel-6-8F,V1,/SPR/metrics/sapphirerapids_metrics.json,metrics\n";
    let metrics = r#"[
        {"MetricName": "good", "MetricExpr": "A.ONE / 2", "MetricGroup": "Ours"},
        {"MetricName": "bad", "MetricExpr": "A.ONE / * 2", "MetricGroup": "Ours"}]"#;
    for (name, text) in [
        ("mapfile.csv", map),
        (
            "SPR/events/sapphirerapids_core.json",
            r#"{"Events": [{"EventName": "A.ONE", "EventCode": "0x3c"}]}"#,
        ),
        ("SPR/metrics/perf/sapphirerapids_metrics_perf.json", metrics),
    ] {
        let path = tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let pmc = |args: &[&str]| -> kit::Ran {
        let mut pmc = played.play(kit::pmc_on("sapphire-rapids"));
        pmc.env("XDG_DATA_HOME", played.path("data")).args(args).output().unwrap().into()
    };
    pmc(&["list", "--import", tree.to_str().unwrap()])
        .expect(0)
        .prints(&["1 event and 2 metrics of 1 model"]);
    let document = played.path("document");
    let group = ["stat", "-M", "Ours", "--json=2", "-o", document.to_str().unwrap(), "--", "true"];
    pmc(&group).expect(0).says(&[
        "skipped a metric of the event tables: invalid expression of the metric `bad`",
        "pmc list --import",
    ]);
    assert_metric(&Document::read(&document), "good", 500.0);
    // Without other metrics there is nothing else to show.
    pmc(&["stat", "-M", "bad", "--", "true"]).expect(2).says(&["the metric `bad`"]);
}
