//! CPUs, cores, sockets, nodes, threads and cgroups. The tests count whole CPUs, so they need root.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command};

use super::{count, kit, perf, pmc};

fn may_count_cpus() -> bool {
    kit::need_perf_events() && kit::need_root()
}

fn online() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn cpu_clock_of_every_cpu_matches_wall_time() {
    if !may_count_cpus() {
        return;
    }
    let counts = count(&["-a", "-A", "-e", "cpu-clock", "--", "sleep", "0.5"]);
    let wall = counts.seconds("elapsed_s") * 1e3;
    let cpus: BTreeSet<u64> = counts.rows().iter().map(|row| row["place"]["cpu"].as_u64().unwrap()).collect();
    assert!(cpus.len() >= online(), "{cpus:?}");
    for row in counts.rows() {
        let clock = row["values"][0]["value"].as_f64().unwrap();
        // The counters start one after another, before the wall clock starts, and stop after it.
        assert!(clock > wall * 0.9 && clock < wall * 1.5 + 500.0, "{clock} of {wall} ms");
    }
}

#[test]
fn only_selected_cpus_are_counted() {
    if !may_count_cpus() {
        return;
    }
    let all = count(&["-a", "-e", "cpu-clock", "--", "sleep", "0.5"]);
    let one = count(&["-C", "0", "-e", "cpu-clock", "--", "sleep", "0.5"]);
    let per_wall = |counts: &super::Document| counts.number("cpu-clock") / 1e3 / counts.seconds("elapsed_s");
    assert!((0.8..2.0).contains(&per_wall(&one)), "{}", per_wall(&one));
    assert!(per_wall(&all) / per_wall(&one) > online() as f64 * 0.6);
    assert_eq!(one.0["target"]["kind"], "cpus");
}

#[test]
fn command_on_another_cpu_is_not_counted() {
    if !may_count_cpus() || online() < 2 || !kit::need_program("taskset") {
        return;
    }
    let faults = |cpu: &str| {
        let dd = "exec dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null";
        count(&["-C", "0", "-e", "page-faults", "--", "taskset", "-c", cpu, "sh", "-c", dd])
            .number("page-faults")
    };
    assert!(faults("0") >= (64 << 20) as f64 / rustix::param::page_size() as f64);
}

/// perf's first field is the name of the place, and the second is the number of summed CPUs.
#[test]
fn aggregation_labels_match_perf() {
    if !may_count_cpus() || !kit::need_program("perf") {
        return;
    }
    for option in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
        let args = ["-a", option, "-x,", "-e", "cpu-clock,context-switches", "--", "sleep", "0.02"];
        let shape = |text: &str| -> Vec<String> {
            let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            rows.map(|f| {
                let summed = if option == "-A" { "" } else { f[1] };
                let name = f.iter().find(|field| **field == "cpu-clock" || **field == "context-switches");
                format!("{} {summed} {} fields {}", f[0], f.len(), name.unwrap_or(&"?"))
            })
            .collect()
        };
        // perf prints event by event with -A and place by place otherwise, so compare the sets of rows.
        let (mut ours, mut perfs) = (shape(&pmc(&args)), shape(&perf(&args)));
        ours.sort();
        perfs.sort();
        assert_eq!(ours, perfs, "{option}");
    }
}

#[test]
fn aggregated_rows_add_up_to_the_total() {
    if !may_count_cpus() {
        return;
    }
    for option in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
        let counts = count(&["-a", option, "-e", "cpu-clock", "--", "sleep", "0.05"]);
        let summed: u64 = counts.rows().iter().map(|row| row["summed"].as_u64().unwrap()).sum();
        assert_eq!(summed as usize, online(), "{option}: {}", counts.0);
        let clocks = counts.number("cpu-clock") / 1e3 / counts.seconds("elapsed_s");
        assert!(clocks > online() as f64 * 0.8, "{option}: {clocks} CPUs' time");
    }
}

/// As in perf, an unsupported event has a row for each place, in every format and interval.
#[test]
fn unsupported_events_have_rows() {
    if !may_count_cpus() {
        return;
    }
    const NONE: &str = "software/config=99/";
    let not_supported = |text: &str| {
        let rows = text.lines().filter(|line| line.contains("<not supported>"));
        rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for option in ["-A", "--per-core", "--per-die", "--per-socket", "--per-node"] {
        let text = pmc(&["-a", option, "-e", NONE, "--", "true"]);
        assert!(!not_supported(&text).is_empty() && text.contains("ENOENT"), "{option}: {text}");
        let csv = pmc(&["-a", option, "-x,", "-e", NONE, "--", "true"]);
        assert_eq!(csv.lines().count(), not_supported(&csv).len(), "{option}: {csv}");
        assert_eq!(not_supported(&csv).len(), not_supported(&text).len(), "{option}: {csv}");
    }
    let rows = not_supported(&pmc(&["-a", "-A", "-e", NONE, "--", "true"]));
    assert_eq!(rows.len(), online(), "{rows:?}");
    let intervals = pmc(&["-a", "--per-socket", "-I", "20", "--interval-count", "2", "-e", NONE]);
    assert!(not_supported(&intervals).len() >= 2, "{intervals}");
    let own = std::process::id().to_string();
    let threads = pmc(&["-p", &own, "--per-thread", "-e", NONE, "--timeout", "20"]);
    assert!(threads.contains("<not supported>"), "{threads}");
}

/// An event that names a CPU that does not exist, or that is excluded, gets an explanation of `EINVAL`, as
/// `pmc_allocate(3)` has it.
#[test]
fn event_specific_cpus_must_exist_and_are_counted() {
    if !may_count_cpus() {
        return;
    }
    const FAR: &str = "page-faults,cpu=4000";
    for scope in [&[][..], &["-a"], &["-a", "-A"], &["-a", "--per-core"]] {
        let text = pmc(&[scope, &["-e", FAR, "--", "true"]].concat());
        let words = ["<not supported>", "page-faults", "EINVAL", "CPU 4000 does not exist"];
        assert!(words.iter().all(|word| text.contains(word)), "{scope:?}: {text}");
    }
    kit::run(&["record", "-o", "/dev/null", "-e", FAR, "--", "true"])
        .expect(1)
        .says(&["opening page-faults", "CPU 4000 does not exist"]);
    if online() > 1 {
        let text = pmc(&["-C", "0", "-e", "page-faults,cpu=1", "--", "true"]);
        assert!(text.contains("<not supported>") && text.contains("can be counted only on CPUs 1"), "{text}");
    }
}

#[test]
fn every_thread_has_a_row() {
    if !may_count_cpus() {
        return;
    }
    let mut sleeper = Command::new("sleep").arg("20").spawn().unwrap();
    let counts = count(&["-a", "--per-thread", "-e", "task-clock", "--timeout", "100"]);
    let tids: BTreeSet<u64> =
        counts.rows().iter().filter_map(|row| row["place"]["thread"]["tid"].as_u64()).collect();
    assert!(tids.contains(&u64::from(sleeper.id())) && tids.contains(&1), "{tids:?}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// A private cgroup in the hierarchy that perf events use, with a process in it.
struct Group {
    path: PathBuf,
    name: String,
    process: Child,
}

impl Group {
    fn with(script: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| {
            fields[2] == "cgroup" && fields[3].split(',').any(|o| o == "perf_event") || fields[2] == "cgroup2"
        });
        let name = format!("pmc-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let name = name.replace(['(', ')'], "");
        let path = PathBuf::from(mount.as_ref().map_or("/none", |fields| fields[1])).join(&name);
        let made = std::fs::create_dir(&path).is_ok();
        if !kit::need("cgroups", made, "no cgroup can be made here") {
            return None;
        }
        let enter = format!("echo $$ > {}/cgroup.procs; {script}", path.display());
        let process = Command::new("sh").args(["-c", &enter]).spawn().unwrap();
        super::wait_for("the process to enter", || {
            std::fs::read_to_string(path.join("cgroup.procs")).is_ok_and(|pids| !pids.trim().is_empty())
        });
        Some(Self { path, name, process })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The kernel releases the process a moment later.
        if !std::thread::panicking() {
            kit::wait_for("the end of the group", || std::fs::remove_dir(&self.path).is_ok());
        }
    }
}

#[test]
fn cgroup_is_counted() {
    if !may_count_cpus() {
        return;
    }
    let Some(group) = Group::with("while :; do :; done") else { return };
    let name = group.name.as_str();
    let each = format!("{name},/");
    let counts = count(&["-a", "-e", "task-clock", "--for-each-cgroup", &each, "--", "sleep", "0.3"]);
    let of = |cgroup: &str| {
        let events = counts.0["events"].as_array().unwrap();
        let index = events.iter().position(|event| event["cgroup"] == cgroup).unwrap();
        counts.rows()[0]["values"][index]["value"].as_f64().unwrap()
    };
    let (busy, all, wall) = (of(name), of("/"), counts.seconds("elapsed_s") * 1e3);
    // A busy thread uses at most one CPU's time, and some time however loaded the machine is.
    assert!(busy > wall * 0.01 && busy < wall * 1.3 && busy < all * 1.05, "{busy} of {all}, wall {wall} ms");

    let first = format!("{name},");
    let text = pmc(&["-a", "-x,", "-e", "task-clock,cpu-clock", "-G", &first, "--", "sleep", "0.05"]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines[0][2], lines[0][3], lines[1][2], lines[1][3]), ("task-clock", name, "cpu-clock", ""));
    if kit::need_program("perf") {
        let perfs = perf(&["-a", "-x,", "-e", "task-clock", "-G", name, "--", "sleep", "0.05"]);
        let ours = pmc(&["-a", "-x,", "-e", "task-clock", "-G", name, "--", "sleep", "0.05"]);
        let shape = |text: &str| text.trim().split(',').map(str::to_owned).collect::<Vec<_>>();
        let (ours, perfs) = (shape(&ours), shape(&perfs));
        assert_eq!((ours.len(), &ours[1..4]), (perfs.len(), &perfs[1..4]));
    }
}

#[test]
fn unopenable_cgroup_is_named() {
    if !may_count_cpus() {
        return;
    }
    let Some(group) = Group::with("sleep 5") else { return };
    let ran = kit::run(&["stat", "-a", "-e", "cpu-clock", "-G", &format!("{}/x", group.name), "--", "true"]);
    ran.expect(1).says(&["opening cgroup", &group.name, "ENOENT", "try: ls"]);
}

/// The caches and clusters that sysfs lists, in perf's words.
#[test]
fn caches_and_clusters_have_rows() {
    if !may_count_cpus() {
        return;
    }
    let number = |cpu: u32, file: &str| -> Option<u32> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let names = |option: &str| -> BTreeSet<String> {
        let csv = pmc(&["-a", "-x,", option, "-e", "cpu-clock", "true"]);
        csv.lines().map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    if kit::need("caches", number(0, "cache/index0/level").is_some(), "sysfs tells of no caches") {
        let all = names("--per-cache=L1");
        let id = number(0, "cache/index0/id").unwrap_or(0);
        let own = format!("-L1-ID{id}");
        assert!(all.iter().any(|name| name.ends_with(&own)), "{all:?} lacks {own}");
        let last = (0..9).filter_map(|index| number(0, &format!("cache/index{index}/level"))).max().unwrap();
        let all = names("--per-cache");
        assert!(all.iter().all(|name| name.contains(&format!("-L{last}-ID"))), "{all:?}");
    }
    if let Some(id) = number(0, "topology/cluster_id") {
        let all = names("--per-cluster");
        assert!(all.iter().any(|name| name.ends_with(&format!("-CLS{id}"))), "{all:?} lacks {id}");
    }
    kit::run(&["stat", "-a", "--per-cache=L9", "true"]).expect(2).says(&["not a cache level", "L1, L2"]);
}

/// The wall clock is read once and adds no CPU to the number that a row sums.
#[test]
fn duration_time_does_not_count_as_a_cpu() {
    if !may_count_cpus() {
        return;
    }
    let csv = pmc(&["-a", "-x,", "--per-socket", "-e", "cpu-clock,duration_time", "true"]);
    let cpus: u32 = csv
        .lines()
        .filter(|line| line.contains(",cpu-clock,"))
        .map(|line| line.split(',').nth(1).unwrap().parse::<u32>().unwrap())
        .sum();
    let all = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let all = all.trim().parse::<pmc_sys::host::CpuList>().unwrap().len();
    assert_eq!(cpus as usize, all, "{csv}");
}
