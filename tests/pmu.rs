//! `pmc` on hardware counters: many checks in a few boots of the emulated machine of `tests/pmu/`.
//!
//! ```text
//! cargo test ── cross-build pmc and guest/work.c ──> OUT
//!            ── boot MACHINES side by side, run all commands of each ──> OUT/NAME.{out,err,status}
//!                                                                         └─ one test per NAME
//! ```
//! The guest runs one instruction per cycle and per nanosecond, so the counts of a loop of known length are
//! known. `PMC_PMU_TOOL=perf` runs the guest's perf instead, which tests the checks themselves.

#[path = "pmu/archives.rs"]
mod archives;
#[path = "pmu/changes.rs"]
mod changes;
mod kit;
#[path = "pmu/logs.rs"]
mod logs;
#[path = "pmu/netbsd.rs"]
mod netbsd;
#[path = "pmu/probes.rs"]
mod probes;
#[path = "pmu/sampling.rs"]
mod sampling;
#[path = "pmu/traces.rs"]
mod traces;
#[path = "pmu/vendor.rs"]
mod vendor;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use kit::Ran;

/// Commands that the guest runs, by name; `$T` is the tool. `work N M`: 2 N instructions in user mode, then
/// M system calls.
const BATCH: &[(&str, &str)] = &[
    ("counts", "$T stat -x, -e cycles,instructions work 10000000"),
    ("table", "$T stat work 10000000"),
    (
        "group",
        "$T stat -x, -e '{cycles,instructions,instructions,instructions,instructions,instructions,instructions}' work 10000000",
    ),
    (
        "large_group",
        "$T stat -x, -e '{instructions,instructions,instructions,instructions,instructions,instructions,instructions}' work 10000000",
    ),
    (
        "large_group_table",
        "$T stat -e '{instructions,instructions,instructions,instructions,instructions,instructions,instructions}' work 10000000",
    ),
    (
        "weak_group",
        "$T stat -x, -e '{instructions,instructions,instructions,instructions,instructions,instructions,instructions}:W' work 100000000",
    ),
    (
        "shared",
        "$T stat -x, -e instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions work 100000000",
    ),
    (
        "pinned",
        "$T stat -x, -e instructions:D,instructions:D,instructions:D,instructions:D,instructions:D,instructions:D,instructions:D work 10000000",
    ),
    ("levels", "$T stat -x, -e instructions,instructions:u,instructions:k work 10000000"),
    ("levels_with_calls", "$T stat -x, -e instructions,instructions:u,instructions:k work 10000000 10000"),
    ("repeated", "$T stat -x, -r 5 -e instructions:u work 10000000"),
    ("intervals", "$T stat -x, -I 50 -e instructions:u work 100000000"),
    ("delayed", "$T stat -x, -D 100 -e instructions:u work 100000000"),
    (
        "raw",
        "$T stat -x, -e r8:u,armv8_pmuv3/inst_retired/u,armv8_pmuv3/event=0x8/u,instructions:u work 10000000",
    ),
    ("unknown", "$T stat -x, -e cycles,branches,stalled-cycles-backend work 1000000"),
    ("children", "$T stat -x, -e instructions:u sh -c 'work 10000000 & work 10000000; wait'"),
    ("no_children", "$T stat -x, -i -e instructions:u sh -c 'work 10000000 & work 10000000; wait'"),
    (
        "task",
        "work 1000000000 & $T stat -x, -e instructions:u -p $! --timeout 200; status=$?; kill $!; exit $status",
    ),
    ("system", "$T stat -x, -a -A -e instructions:u work 10000000"),
    (
        "cgroup",
        "mkdir -p /sys/fs/cgroup/work; $T stat -x, -a -e instructions:u,instructions:u -G work,/ sh -c 'echo $$ >/sys/fs/cgroup/work/cgroup.procs; work 10000000'",
    ),
    (
        "attrs",
        "strace -v -e trace=perf_event_open -e signal=none $T stat -x, -e cycles,instructions:u,r8,armv8_pmuv3/inst_retired/ true",
    ),
    (
        "exact",
        "$T stat -x, --exact -e instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u work 10000000",
    ),
    ("info", "$T info --json"),
    ("watching", "$T info"),
];

/// The same in a machine where an instruction takes four cycles.
const SLOW_BATCH: &[(&str, &str)] = &[
    ("slow", "$T stat -x, -e cycles:u,instructions:u work 10000000"),
    ("slow_table", "$T stat -e cycles,instructions work 10000000"),
];

/// The same in a machine with two CPUs. All its counters follow one count of instructions, so it tests the
/// handling of counts, not their values.
const TWIN_BATCH: &[(&str, &str)] = &[
    ("each_cpu", "$T stat -x, -a -A -e instructions:u work 10000000"),
    ("one_cpu", "$T stat -x, -C 1 -A -e instructions:u,page-faults taskset -c 1 work 10000000"),
    ("each_core", "$T stat -x, -a --per-core -e cycles work 10000000"),
    (
        "moving",
        "$T stat -x, -e instructions:u sh -c 'taskset -c 0 work 10000000; taskset -c 1 work 10000000'",
    ),
];

/// Options of a boot, and the checks run in it: name and shell text.
type Machine = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// The machines: options of run.sh and the commands that run in each.
const MACHINES: &[Machine] = &[
    (&[], BATCH),
    (&["-i", "shift=2"], SLOW_BATCH),
    (&["-s", "2"], TWIN_BATCH),
    (&["-s", "2"], changes::BATCH),
    (&[], sampling::BATCH),
    (&[], probes::BATCH),
    (&[], archives::BATCH),
    (&["-n"], logs::BATCH),
    (&[], logs::OLDER_BATCH),
    (&[], netbsd::BATCH),
    (&["-i", "shift=2"], vendor::BATCH),
    (&["-p"], traces::BATCH),
    (&["-p", "-s", "2"], traces::TWIN_BATCH),
    (&["-n", "-p"], traces::NEWEST_BATCH),
];

/// Commands that only pmc supports.
const OURS: &[&str] = &["exact", "info", "watching", "large_group_table"];

fn rig() -> PathBuf {
    let cache = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("PMURIG").map_or_else(|| cache().unwrap_or_else(home).join("pmurig"), PathBuf::from)
}

fn tool() -> String {
    std::env::var("PMC_PMU_TOOL").unwrap_or_else(|_| "pmc".to_owned())
}

/// Results of the guest's run of this command; `None` without the emulated machine.
#[track_caller]
fn guest(name: &str) -> Option<Ran> {
    let built =
        ["rootfs.ext4", "initrd.cpio", "arm_spe_timer.ko", "newest/initrd.cpio", "newest/arm_spe_timer.ko"];
    let built = built.iter().all(|file| rig().join(file).exists());
    if !kit::need("pmurig", built, "tests/pmu/setup.sh has not built the emulated machine")
        || !kit::need_program("aarch64-linux-gnu-gcc")
    {
        return None;
    }
    let batches = [
        changes::BATCH,
        sampling::BATCH,
        probes::BATCH,
        archives::BATCH,
        logs::BATCH,
        logs::OLDER_BATCH,
        netbsd::BATCH,
        vendor::BATCH,
        traces::BATCH,
        traces::TWIN_BATCH,
        traces::NEWEST_BATCH,
    ];
    let ours = batches.into_iter().flatten();
    let is_ours = OURS.contains(&name) || ours.map(|(name, _)| name).any(|of| *of == name);
    if tool() != "pmc" && is_ours {
        return None;
    }
    static BOOTED: OnceLock<PathBuf> = OnceLock::new();
    let out = BOOTED.get_or_init(boot);
    let read = |what: &str| {
        fs::read_to_string(out.join(format!("{name}.{what}")))
            .unwrap_or_else(|e| panic!("{name}.{what}: {e}"))
    };
    Some(Ran { status: read("status").trim().parse().ok(), stdout: read("out"), stderr: read("err") })
}

/// Builds the guest's programs, boots the machines and runs their batches. Returns the folder of results.
fn boot() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pmu");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("a folder for the guest");
    succeed(
        Command::new("aarch64-linux-gnu-gcc")
            .args(["-O2", "-static", "-o"])
            .arg(out.join("work"))
            .arg(here.join("guest/work.c")),
    );
    // One program with frame pointers (which gcc omits from leaf functions by default), and one without.
    let framed = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    for (name, options) in [("hot", &framed[..]), ("hotter", &["-fomit-frame-pointer"])] {
        succeed(
            Command::new("aarch64-linux-gnu-gcc")
                .args(["-O2", "-static", "-o"])
                .arg(out.join(name))
                .args(options)
                .arg(here.join("guest/hot.c")),
        );
    }
    if tool() == "pmc" {
        succeed(
            Command::new(here.join("cross.sh"))
                .arg(env!("CARGO_MANIFEST_DIR"))
                .arg(&out)
                .args(["build", "--release", "--bin", "pmc"])
                .env("PMURIG_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest-target")),
        );
    }
    archives::prepare(&out);
    // Each machine emulates on one CPU, so running them side by side halves the time.
    std::thread::scope(|scope| {
        for (number, (options, batch)) in MACHINES.iter().enumerate() {
            let (here, out) = (&here, &out);
            scope.spawn(move || {
                let mut script = format!("T={}\n", tool());
                for (name, command) in *batch {
                    script += &format!("( {command} ) >{name}.out 2>{name}.err\necho $? >{name}.status\n");
                }
                let file = format!("batch-{number}");
                fs::write(out.join(&file), script).expect("the batch can be written");
                succeed(
                    Command::new(here.join("run.sh"))
                        .args(["-t", "900", "-d"])
                        .arg(out)
                        .args(*options)
                        .arg(format!("sh ./{file}")),
                );
            });
        }
    });
    out
}

#[track_caller]
fn succeed(command: &mut Command) {
    let ran = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        ran.status.success(),
        "{command:?}: {}\n{}{}",
        ran.status,
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// One line of `-x,` output: the value (or why there is none), the event, and the percentage of time on a
/// counter.
#[derive(Debug)]
struct Row {
    value: Result<f64, String>,
    event: String,
    share: f64,
    fields: Vec<String>,
}

impl Row {
    #[track_caller]
    fn value(&self) -> f64 {
        *self.value.as_ref().unwrap_or_else(|_| panic!("no value: {self:?}"))
    }
}

/// The lines of `-x,`. `places` is the number of columns before the value, `extra` the number between event
/// and run time.
fn rows(ran: &Ran, places: usize, extra: usize) -> Vec<Row> {
    let lines = ran.stderr.lines().filter(|line| line.split(',').count() >= places + extra + 5);
    lines
        .map(|line| {
            let fields: Vec<String> = line.split(',').map(|field| field.trim().to_owned()).collect();
            let value = &fields[places];
            Row {
                value: value.parse().map_err(|_| value.clone()),
                event: fields[places + 2].clone(),
                share: fields[places + 4 + extra].parse().unwrap_or(f64::NAN),
                fields,
            }
        })
        .collect()
}

/// The rows of a plain run, which must succeed.
#[track_caller]
fn plain(ran: Ran, count: usize) -> Vec<Row> {
    let ran = ran.expect(0);
    let rows = rows(&ran, 0, 0);
    assert_eq!(rows.len(), count, "{}", ran.stderr);
    rows
}

#[track_caller]
fn near(got: f64, want: f64, tolerance: f64) {
    assert!(
        (got / want - 1.0).abs() <= tolerance,
        "{got} is not within {:.1} % of {want}",
        tolerance * 100.0
    );
}

/// Twice 10 million instructions plus those of the C library, in user mode.
const LOOP: f64 = 20.1e6;

#[test]
fn cycles_and_instructions_match_a_known_loop() {
    let Some(ran) = guest("counts") else { return };
    let rows = plain(ran, 2);
    assert_eq!((rows[0].event.as_str(), rows[1].event.as_str()), ("cycles", "instructions"));
    // The kernel's part, exec and exit, takes some hundred thousand instructions.
    near(rows[1].value(), LOOP, 0.10);
    near(rows[0].value(), rows[1].value(), 0.001);
    assert!(rows.iter().all(|row| row.share == 100.0), "{rows:?}");
}

#[test]
fn cycles_and_instructions_are_distinct() {
    let (Some(ran), Some(table)) = (guest("slow"), guest("slow_table")) else { return };
    let rows = plain(ran, 2);
    near(rows[1].value(), LOOP, 0.005);
    near(rows[0].value(), 4.0 * rows[1].value(), 0.005);
    table.expect(0).says(&["0.25"]);
}

#[test]
fn every_cpu_has_counters() {
    let (Some(each), Some(one), Some(cores)) = (guest("each_cpu"), guest("one_cpu"), guest("each_core"))
    else {
        return;
    };
    let places = |ran: Ran, columns| -> Vec<String> {
        rows(&ran.expect(0), columns, 0).iter().map(|row| row.fields[0].clone()).collect()
    };
    assert_eq!(places(each, 1), ["CPU0", "CPU1"]);
    assert_eq!(places(one.clone(), 1), ["CPU1", "CPU1"]);
    near(rows(&one, 1, 0)[0].value(), LOOP, 0.30);
    assert_eq!(places(cores, 2).len(), 2);
}

#[test]
fn migrating_task_is_counted_on_every_cpu() {
    let Some(ran) = guest("moving") else { return };
    near(plain(ran, 1)[0].value(), 2.0 * LOOP, 0.15);
}

#[test]
fn table_has_hardware_counters_and_ratio() {
    let Some(ran) = guest("table") else { return };
    let ran = ran.expect(0);
    for word in ["task-clock", "cycles", "instructions", "1.00", "branches"] {
        assert!(ran.stderr.contains(word), "no {word:?} in\n{}", ran.stderr);
    }
}

#[test]
fn fitting_group_counts_together() {
    let Some(ran) = guest("group") else { return };
    let rows = plain(ran, 7);
    for row in &rows[1..] {
        assert_eq!(row.value(), rows[1].value(), "{rows:?}");
        assert_eq!(row.share, 100.0);
    }
    near(rows[1].value(), LOOP, 0.10);
}

#[test]
fn oversized_group_names_the_excess_event() {
    let Some(ran) = guest("large_group") else { return };
    let rows = rows(&ran, 0, 0);
    assert_eq!(rows.len(), 7, "{}", ran.stderr);
    assert_eq!(rows[6].value, Err("<not supported>".to_owned()));
    // The other six events are still a group, which perf leaves uncounted.
    assert!(rows[..6].iter().all(|row| row.value == rows[0].value), "{rows:?}");
    let Some(ran) = guest("large_group_table") else { return };
    for word in ["EINVAL", "why:", "try:"] {
        assert!(ran.stderr.contains(word), "no {word:?} in\n{}", ran.stderr);
    }
}

#[test]
fn oversized_weak_group_is_split() {
    let Some(ran) = guest("weak_group") else { return };
    for row in plain(ran, 7) {
        near(row.value(), 10.0 * LOOP, 0.10);
        assert!(row.share > 70.0 && row.share < 100.0, "{row:?}");
    }
}

#[test]
fn multiplexed_counts_are_scaled_within_error() {
    let Some(ran) = guest("shared") else { return };
    let rows = plain(ran, 10);
    for row in &rows {
        near(row.value(), 10.0 * LOOP, 0.05);
        assert!(row.share > 45.0 && row.share < 75.0, "6 counters for 10 events: {row:?}");
    }
    // Six counters are always in use.
    near(rows.iter().map(|row| row.share).sum(), 600.0, 0.05);
}

#[test]
fn pinned_event_without_counter_is_not_counted() {
    let Some(ran) = guest("pinned") else { return };
    let rows = rows(&ran.expect(0), 0, 0);
    assert_eq!(rows.len(), 7);
    let counted: Vec<&Row> = rows.iter().filter(|row| row.value.is_ok()).collect();
    assert_eq!(counted.len(), 6, "{rows:?}");
    assert!(counted.iter().all(|row| row.share == 100.0));
    assert!(rows.iter().any(|row| row.value == Err("<not counted>".to_owned())), "{rows:?}");
}

#[test]
fn user_and_kernel_counts_are_separate() {
    let (Some(quiet), Some(calling)) = (guest("levels"), guest("levels_with_calls")) else { return };
    let (quiet, calling) = (plain(quiet, 3), plain(calling, 3));
    for rows in [&quiet, &calling] {
        near(rows[1].value() + rows[2].value(), rows[0].value(), 0.001);
    }
    near(quiet[1].value(), LOOP, 0.005);
    let (user, kernel) = (calling[1].value() - quiet[1].value(), calling[2].value() - quiet[2].value());
    assert!((10_000.0..300_000.0).contains(&user), "10000 calls cost {user} instructions in user mode");
    assert!((1e6..50e6).contains(&kernel), "10000 calls cost {kernel} instructions in the kernel");
}

#[test]
fn repeats_give_mean_and_small_deviation() {
    let Some(ran) = guest("repeated") else { return };
    let rows = rows(&ran.expect(0), 0, 1);
    assert_eq!(rows.len(), 1, "{rows:?}");
    near(rows[0].value(), LOOP, 0.005);
    let deviation: f64 =
        rows[0].fields[3].trim_end_matches('%').parse().expect("a variance in the fourth field");
    assert!(deviation < 0.1, "{rows:?}");
}

#[test]
fn intervals_add_up_to_the_total() {
    let Some(ran) = guest("intervals") else { return };
    let rows = rows(&ran.expect(0), 1, 0);
    assert!((4..=7).contains(&rows.len()), "200 ms in intervals of 50: {rows:?}");
    near(rows.iter().map(Row::value).sum(), 10.0 * LOOP, 0.01);
    let times: Vec<f64> = rows.iter().map(|row| row.fields[0].parse().expect("seconds")).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    near(times[1] - times[0], 0.050, 0.10);
}

#[test]
fn delay_excludes_the_beginning() {
    let Some(ran) = guest("delayed") else { return };
    let row = &rows(&ran.expect(0), 0, 0)[0];
    // 200 ms of work; the first 100 ms are not counted.
    near(row.value(), 100e6, 0.15);
}

#[test]
fn event_aliases_count_the_same() {
    let Some(ran) = guest("raw") else { return };
    let rows = plain(ran, 4);
    for row in &rows {
        near(row.value(), rows[3].value(), 0.0001);
    }
}

#[test]
fn unsupported_event_does_not_affect_others() {
    let Some(ran) = guest("unknown") else { return };
    let rows = plain(ran, 3);
    near(rows[0].value(), 2.1e6, 0.5);
    assert_eq!(rows[1].value, Err("<not supported>".to_owned()));
    assert_eq!(rows[2].value(), 0.0, "a count of nothing is a count");
}

#[test]
fn children_are_counted_by_default() {
    let (Some(with), Some(without)) = (guest("children"), guest("no_children")) else { return };
    near(plain(with, 1)[0].value(), 2.0 * LOOP, 0.10);
    assert!(plain(without, 1)[0].value() < 0.2 * LOOP);
}

#[test]
fn running_task_is_counted() {
    let Some(ran) = guest("task") else { return };
    // 200 ms at one instruction per nanosecond, shared with the tool itself.
    near(plain(ran, 1)[0].value(), 190e6, 0.15);
}

#[test]
fn whole_machine_is_counted_per_cpu() {
    let Some(ran) = guest("system") else { return };
    let rows = rows(&ran.expect(0), 1, 0);
    assert_eq!(rows.len(), 1, "one CPU: {rows:?}");
    assert_eq!(rows[0].fields[0], "CPU0");
    near(rows[0].value(), LOOP, 0.30);
}

#[test]
fn cgroup_is_counted() {
    let Some(ran) = guest("cgroup") else { return };
    let rows = plain(ran, 2);
    near(rows[0].value(), LOOP, 0.05);
    assert!(rows[1].value() >= rows[0].value(), "{rows:?}");
}

#[test]
fn requested_attributes_reach_the_kernel() {
    let Some(ran) = guest("attrs") else { return };
    let calls: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("perf_event_open({")).collect();
    let asks = |words: &[&str]| {
        let found = calls.iter().any(|call| words.iter().all(|word| call.contains(word)));
        assert!(found, "no call with {words:?} in\n{}", calls.join("\n"));
    };
    asks(&[
        "type=PERF_TYPE_HARDWARE",
        "config=PERF_COUNT_HW_CPU_CYCLES",
        "exclude_kernel=0",
        "enable_on_exec=1",
        "inherit=1",
    ]);
    asks(&[
        "type=PERF_TYPE_HARDWARE",
        "config=PERF_COUNT_HW_INSTRUCTIONS",
        "exclude_kernel=1",
        "exclude_hv=1",
    ]);
    asks(&["type=PERF_TYPE_RAW", "config=0x8,"]);
    asks(&["type=0x8", "config=0x8,"]);
}

#[test]
fn exact_counts_are_not_scaled() {
    let Some(ran) = guest("exact") else { return };
    for row in plain(ran, 10) {
        near(row.value(), LOOP, 0.005);
        assert_eq!(row.share, 100.0);
    }
}

#[test]
fn info_lists_the_counters() {
    let (Some(json), Some(text)) = (guest("info"), guest("watching")) else { return };
    let json: serde_json::Value = serde_json::from_str(&json.expect(0).stdout).expect("one JSON document");
    let pmu = &json["counters"][0];
    assert_eq!(pmu["pmu"], "armv8_pmuv3", "{json:#}");
    // Seven counters: six for any event, and one for cycles.
    assert_eq!((pmu["general"].as_u64(), pmu["fixed"].as_u64()), (Some(6), Some(1)), "{json:#}");
    text.expect(0).prints(&["armv8_pmuv3", "6 general, 1 fixed"]);
}
