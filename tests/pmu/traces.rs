//! `pmc record` of traces: AUX areas that a PMU of the guest fills (`guest/trace/`), decoded by perf.
//!
//! Each trace record is 64 bytes and gives the location of the CPU, so decoded samples can be counted and
//! their symbols are known: `hot` spends 3 of 4 instructions in `hot_leaf`.

use std::collections::BTreeMap;

use super::*;

/// Decodes a trace with perf: number of samples by command and function.
macro_rules! decoded {
    ($file:literal) => {
        concat!(
            "perf script --itrace=i1i -F comm,ip,sym -i ",
            $file,
            " 2>&1 | awk '{ print $1, $3 }' | sort | uniq -c"
        )
    };
}

/// Commands that the guest runs.
pub(super) const BATCH: &[(&str, &str)] = &[
    ("trace", "$T record -o t.data -e arm_spe_0// hot 20000000"),
    ("trace_decoded", decoded!("t.data")),
    (
        "trace_records",
        "perf script -D -i t.data 2>&1 | grep -E 'PERF_RECORD_(AUX|AUXTRACE|TIME_CONV|ITRACE_START)|PMU Type'",
    ),
    (
        "trace_ours",
        "$T script -D -i t.data | grep -E 'PERF_RECORD_(AUX|AUXTRACE|TIME_CONV)'; $T report --stdio -i t.data",
    ),
    ("trace_header", "$T info t.data; perf report --header-only -i t.data | grep -i aux"),
    ("trace_system", "$T record -a -o ts.data -e arm_spe_0/period=50000/u hot 20000000"),
    ("trace_system_decoded", decoded!("ts.data")),
    (
        "trace_thread",
        "hot 2000000000 & $T record --per-thread -p $! --timeout 100 -o tt.data -e arm_spe_0//u; kill $!",
    ),
    ("trace_thread_decoded", decoded!("tt.data")),
    ("trace_children", "$T record -o tc.data -e arm_spe_0//u sh -c 'hot 5000000 & hot 5000000; wait'"),
    ("trace_children_decoded", decoded!("tc.data")),
    (
        "trace_packed",
        "$T record -z -o tz.data -e arm_spe_0//u -e cpu-clock:u hot 20000000; perf script -F event --itrace=i1i -i tz.data | sort | uniq -c",
    ),
    (
        "trace_piped",
        "$T record -o - -e arm_spe_0//u hot 20000000 2>piped.err | perf script -i - --itrace=i1i -F comm,ip,sym 2>&1 | awk '{ print $1, $3 }' | sort | uniq -c; cat piped.err >&2",
    ),
    ("trace_small", "$T record -m ,8K -c 1 -o tm.data -e arm_spe_0//u hot 100000000"),
    ("trace_small_decoded", decoded!("tm.data")),
    ("trace_small_system", "$T record -a -m ,8K -o tl.data -e arm_spe_0//u hot 100000000"),
    ("trace_small_system_decoded", decoded!("tl.data")),
    (
        "trace_snapshots",
        "hot 400000000 & p=$!; $T record -S -m ,32K -p $p -o tn.data -e arm_spe_0//u & r=$!; sleep 0.5; kill -USR2 $r; sleep 0.5; kill -INT $r; wait $r; kill $p; ls tn.data.* | wc -l",
    ),
    (
        "trace_snapshots_decoded",
        "for f in tn.data.*; do perf script --itrace=i1i -F comm,ip,sym -i $f 2>&1 | awk '{ print $1, $3 }' | sort | uniq -c; done",
    ),
    (
        "trace_rotated",
        "$T record --switch-output=50K -m ,32K -o tr.data -e arm_spe_0//u hot 20000000; for f in tr.data.*; do perf script --itrace=i1i -F comm,ip,sym -i $f 2>&1; done | awk '{ print $1, $3 }' | sort | uniq -c",
    ),
    (
        "trace_unprivileged",
        "cd /tmp; echo 2 >/proc/sys/kernel/perf_event_paranoid; chmod 1777 /tmp; setpriv --reuid=65534 --clear-groups env HOME=/tmp $(command -v $T) record -o tu.data -e arm_spe_0// hot 20000000",
    ),
    ("trace_unprivileged_decoded", concat!("cd /tmp; chown 0 tu.data; ", decoded!("tu.data"))),
    (
        "trace_switched",
        "cd /tmp; mkfifo orders answers; $T record -D -1 --control fifo:orders,answers -o to.data -e arm_spe_0//u hot 100000000 & r=$!; exec 3>orders 4<answers; ask() { echo $1 >&3; read answer <&4; }; ask enable; sleep 0.01; ask disable; sleep 0.01; ask ping; ask stop; wait $r; true",
    ),
    (
        "trace_output",
        "$T record -o tw.data -e '{arm_spe_0/period=1000000/u,timer_into_aux/aux-output,period=20000/u}' hot 20000000; $T script -D -i tw.data | grep -E 'PERF_RECORD_AUX|hw_id'",
    ),
    ("trace_output_alone", "$T record -e 'timer_into_aux/aux-output,period=20000/u' true"),
    ("trace_two", "$T record -e arm_spe_0//u,arm_spe_0//k true"),
    ("trace_clock", "$T record -k monotonic -e arm_spe_0// true"),
    ("trace_top", "$T top --stdio -e arm_spe_0//"),
    ("trace_held", "$T persist add traced -e arm_spe_0//"),
    (
        "trace_action_old",
        "$T record -e '{arm_spe_0/aux-action=start-paused/,cycles/aux-action=resume/}' true",
    ),
    (
        "trace_attrs",
        "strace -v -e trace=perf_event_open -e signal=none $T record -o ta.data -e arm_spe_0// true; strace -v -e trace=perf_event_open -e signal=none $T record -m ,64K -o ta.data -e arm_spe_0/ts_enable=0,pa_enable=1,period=20000/ true",
    ),
];

/// The same with two CPUs, each with its own area.
pub(super) const TWIN_BATCH: &[(&str, &str)] = &[
    (
        "trace_twin",
        "$T record -a -o t.data -e arm_spe_0/period=50000/u sh -c 'taskset -c 0 hot 40000000; taskset -c 1 hot 40000000'; perf script --itrace=i1i -F comm,cpu,ip,sym -i t.data 2>/dev/null | grep hot_leaf | awk '{ print $2, $1 }' | sort | uniq -c",
    ),
    (
        "trace_twin_task",
        "$T record -o tt.data -e arm_spe_0/period=50000/u sh -c 'taskset -c 0 hot 40000000 & taskset -c 1 hot 40000000; wait'; perf script --itrace=i1i -F comm,cpu,ip,sym -i tt.data 2>/dev/null | grep hot_leaf | awk '{ print $2, $1 }' | sort | uniq -c",
    ),
];

/// The same on the newest kernel.
pub(super) const NEWEST_BATCH: &[(&str, &str)] = &[
    ("trace_newest", "$T record -o t.data -e arm_spe_0// hot 20000000"),
    ("trace_newest_decoded", decoded!("t.data")),
    (
        "trace_paused",
        "$T record -o tp.data -e '{arm_spe_0/aux-action=start-paused/u,page-faults/aux-action=resume,period=1/u}' hot 20000000; $T record -o tq.data -e '{arm_spe_0/aux-action=start-paused/u,sched:sched_kthread_stop/aux-action=resume/}' hot 20000000",
    ),
    ("trace_paused_decoded", decoded!("tp.data")),
    (
        "trace_sampled",
        "$T record -o tx.data --aux-sample=1K -c 1000000 -e '{arm_spe_0//u,cpu-clock:u}' hot 20000000; $T script -D -i tx.data | grep -cE '\\[0x4[0-9a-f]{2}\\]: PERF_RECORD_SAMPLE'",
    ),
];

/// Number of samples that perf decoded, by command and function.
#[track_caller]
fn decoded(name: &str) -> Option<BTreeMap<(String, String), u64>> {
    let ran = guest(name)?.expect(0);
    let row = |line: &str| -> Option<((String, String), u64)> {
        let mut words = line.split_whitespace();
        let count = words.next()?.parse().ok()?;
        Some(((words.next()?.to_owned(), words.next().unwrap_or_default().to_owned()), count))
    };
    let mut rows = BTreeMap::new();
    // A function may have one line per file.
    for (function, count) in ran.stdout.lines().filter_map(row) {
        *rows.entry(function).or_default() += count;
    }
    Some(rows)
}

/// Checks that perf decoded `hot` with the expected shares of its functions. Returns the number of samples.
#[track_caller]
fn is_hot(rows: &BTreeMap<(String, String), u64>) -> u64 {
    let of = |function: &str| rows.get(&("hot".to_owned(), function.to_owned())).copied().unwrap_or(0);
    let (hot, cool) = (of("hot_leaf"), of("cool_leaf"));
    assert!(hot > 100 && cool > 30, "{rows:?}");
    near(hot as f64 / (hot + cool) as f64, 0.75, 0.10);
    hot + cool
}

#[test]
fn trace_is_recorded_completely_and_decoded_by_perf() {
    let Some(ran) = guest("trace") else { return };
    let ran = ran.expect(0);
    assert!(ran.stderr.contains(" of trace, none lost"), "{}", ran.stderr);
    let records = guest("trace_records").expect("it has run").expect(0);
    for what in ["PERF_RECORD_TIME_CONV", "PERF_RECORD_ITRACE_START", "PMU Type"] {
        assert!(records.stdout.contains(what), "no {what}: {}", records.stdout);
    }
    // The AUX records describe all of the trace data in the file, 64 bytes per sample.
    let told: u64 = sizes(&records.stdout, "PERF_RECORD_AUX ").iter().sum();
    let written: u64 = sizes(&records.stdout, "PERF_RECORD_AUXTRACE ").iter().sum();
    assert!(told > 0 && told == written && told.is_multiple_of(64), "{told} told of, {written} written");
    let rows = decoded("trace_decoded").expect("it has run");
    is_hot(&rows);
    let samples: u64 =
        rows.iter().filter(|((command, _), _)| command != "Warning:").map(|(_, count)| count).sum();
    assert_eq!(samples, told / 64, "{rows:?}");
}

/// The `size:` of each line that contains the word.
fn sizes(text: &str, word: &str) -> Vec<u64> {
    let size = |line: &str| {
        let size = line.split("size: 0x").nth(1)?.split_whitespace().next()?;
        u64::from_str_radix(size, 16).ok()
    };
    text.lines().filter(|line| line.contains(word)).filter_map(size).collect()
}

#[test]
fn reader_skips_traces_and_names_their_decoder() {
    let Some(ran) = guest("trace_ours") else { return };
    let ran = ran.expect(0);
    let perfs = guest("trace_records").expect("it has run").expect(0);
    for record in ["PERF_RECORD_AUX ", "PERF_RECORD_AUXTRACE "] {
        assert_eq!(sizes(&ran.stdout, record), sizes(&perfs.stdout, record), "{}", ran.stdout);
    }
    assert!(ran.stdout.contains("perf script does"), "{}", ran.stdout);
    let header = guest("trace_header").expect("it has run").expect(0);
    assert!(header.stdout.contains("contains AUX area data"), "{}", header.stdout);
}

#[test]
fn cpus_threads_and_children_are_traced() {
    for (recorded, name) in [
        ("trace_system", "trace_system_decoded"),
        ("trace_thread", "trace_thread_decoded"),
        ("trace_children", "trace_children_decoded"),
        ("trace_unprivileged", "trace_unprivileged_decoded"),
    ] {
        let Some(ran) = guest(recorded) else { return };
        assert!(ran.stderr.contains(" of trace, none lost"), "{recorded}: {}", ran.stderr);
        let rows = decoded(name).expect("it has run");
        // A thread that was already running stays in one loop while it is traced.
        match name {
            "trace_thread_decoded" => {
                assert!(rows[&("hot".to_owned(), "hot_leaf".to_owned())] > 1000, "{rows:?}")
            }
            _ => drop(is_hot(&rows)),
        }
    }
    let unprivileged = guest("trace_unprivileged").expect("it has run").expect(0);
    assert!(unprivileged.stderr.contains("user mode"), "{}", unprivileged.stderr);
}

#[test]
fn traces_work_with_compression_pipes_and_rotation() {
    let Some(packed) = guest("trace_packed") else { return };
    let packed = packed.expect(0);
    assert!(
        packed.stdout.contains("cpu-clock:u") && packed.stdout.contains("instructions"),
        "{}",
        packed.stdout
    );
    for name in ["trace_piped", "trace_rotated"] {
        is_hot(&decoded(name).expect("it has run"));
    }
}

#[test]
fn full_trace_buffer_is_reported_and_tracing_continues() {
    let Some(ran) = guest("trace_small") else { return };
    let ran = ran.expect(0);
    assert!(ran.stderr.contains("trace truncated ") && ran.stderr.contains("-m RING,AREA"), "{}", ran.stderr);
    is_hot(&decoded("trace_small_decoded").expect("it has run"));
    // System-wide, no context switch would restart the trace of a CPU.
    let system = guest("trace_small_system").expect("it has run").expect(0);
    assert!(system.stderr.contains("trace truncated "), "{}", system.stderr);
    is_hot(&decoded("trace_small_system_decoded").expect("it has run"));
}

#[test]
fn snapshots_contain_the_newest_trace_data() {
    let Some(ran) = guest("trace_snapshots") else { return };
    let ran = ran.expect(0);
    // One for the signal, one at the end.
    assert_eq!(ran.stdout.trim(), "2", "{}", ran.stderr);
    assert!(ran.stderr.contains("64.0 KiB of trace"), "{}", ran.stderr);
    // Two areas full of samples of 64 bytes, and nothing else.
    let rows = decoded("trace_snapshots_decoded").expect("it has run");
    let own = |function: &str| rows.get(&("hot".to_owned(), function.to_owned())).copied().unwrap_or(0);
    assert_eq!(own("hot_leaf") + own("cool_leaf"), 2 * (32 << 10) / 64, "{rows:?}");
}

#[test]
fn trace_pauses_and_resumes_by_control_command() {
    let Some(ran) = guest("trace_switched") else { return };
    let ran = ran.expect(0);
    // 200 ms of work at 64 bytes every 10 us. Tracing was enabled for 10 ms of it.
    let (before, _) = ran.stderr.split_once(" of trace, none lost").expect("what was traced");
    let words: Vec<&str> = before.split_whitespace().rev().take(2).collect();
    let kib: f64 = words[1].parse().expect("a number");
    assert!(words[0] == "KiB" && (10.0..640.0).contains(&kib), "{}", ran.stderr);
}

#[test]
fn untraceable_requests_are_rejected_with_a_reason() {
    for (name, words) in [
        ("trace_two", &["only one trace per recording", "share its AUX buffer"][..]),
        ("trace_clock", &["-k"]),
        ("trace_top", &["requires a decoder", "pmc record -e arm_spe_0//"]),
        ("trace_held", &["requires a decoder"]),
        ("trace_action_old", &["aux_action", "Linux 6.13"]),
    ] {
        let Some(ran) = guest(name) else { return };
        assert_ne!(ran.status, Some(0), "{name}");
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{name}: {}", ran.stderr);
    }
}

#[test]
fn every_cpu_has_its_own_aux_area() {
    for name in ["trace_twin", "trace_twin_task"] {
        let Some(ran) = guest(name) else { return };
        let ran = ran.expect(0);
        for cpu in ["[000] hot", "[001] hot"] {
            let line = ran.stdout.lines().find(|line| line.ends_with(cpu));
            let count = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            // 60 ms in that function, with a sample every 50 us.
            assert!(count.is_some_and(|count| count > 300), "{name}, {cpu}: {} {}", ran.stdout, ran.stderr);
        }
    }
}

/// Another event of the group writes its records into the trace. Most records are from the second event,
/// which occurs 50 times as often.
#[test]
fn aux_samples_are_attached_to_another_event() {
    let Some(ran) = guest("trace_output") else { return };
    let ran = ran.expect(0);
    assert!(ran.stdout.contains("PERF_RECORD_AUX_OUTPUT_HW_ID"), "{}", ran.stdout);
    let records = sizes(&ran.stdout, "PERF_RECORD_AUX ").iter().sum::<u64>() / 64;
    // 40 million instructions are 40 ms of guest time: about 40 records of the leader and 2000 of the other
    // event.
    assert!(records > 1000, "{records}: {}", ran.stdout);
    let alone = guest("trace_output_alone").expect("it has run");
    assert_ne!(alone.status, Some(0));
    assert!(alone.stderr.contains("aux_output requires a trace"), "{}", alone.stderr);
}

/// pmc requests the same as perf: timestamps in the trace unless the event text disables them, the driver's
/// own interval, and a wakeup at each quarter of the area.
#[test]
fn trace_request_matches_perf() {
    let Some(ran) = guest("trace_attrs") else { return };
    let ran = ran.expect(0);
    let asked = |period: &str| {
        let line = ran.stderr.lines().find(|line| line.contains(&format!("sample_period={period},")));
        line.unwrap_or_else(|| panic!("no period of {period}: {}", ran.stderr)).to_owned()
    };
    let usual = asked("10000");
    for word in ["config=0x1,", "PERF_SAMPLE_DATA_SRC", "PERF_SAMPLE_CPU", "freq=0", "aux_watermark=1048576"]
    {
        assert!(usual.contains(word), "no {word}: {usual}");
    }
    let written = asked("20000");
    for word in ["config=0x2,", "PERF_SAMPLE_PHYS_ADDR", "aux_watermark=16384"] {
        assert!(written.contains(word), "no {word}: {written}");
    }
}

#[test]
fn newest_kernel_supports_aux_pause_and_aux_samples() {
    let Some(ran) = guest("trace_newest") else { return };
    ran.expect(0);
    is_hot(&decoded("trace_newest_decoded").expect("it has run"));
    let paused = guest("trace_paused").expect("it has run").expect(0);
    is_hot(&decoded("trace_paused_decoded").expect("it has run"));
    // Nothing resumes the second trace.
    assert!(
        paused.stderr.lines().any(|line| line.contains("tq.data") && !line.contains("of trace")),
        "{}",
        paused.stderr
    );
    let sampled = guest("trace_sampled").expect("it has run").expect(0);
    assert!(
        sampled.stdout.trim().parse::<u32>().is_ok_and(|count| count > 10),
        "{} {}",
        sampled.stdout,
        sampled.stderr
    );
}
