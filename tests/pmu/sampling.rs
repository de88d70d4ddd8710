//! `pmc record` on counters that overflow: the chosen event, the number of samples, and the functions in the
//! report.

use super::*;

/// Commands that the guest runs. `hot N` takes 2 N instructions, 3 of 4 in `hot_leaf`.
pub(super) const BATCH: &[(&str, &str)] = &[
    ("record_cycles", "$T record -e cycles -g -o c.data hot 200000000"),
    ("report_cycles", "$T report -i c.data --json -s sym"),
    ("record_instructions", "$T record -e instructions:u -c 1000000 -o i.data hot 100000000"),
    ("report_instructions", "$T report -i i.data --json -s sym"),
    ("record_default", "strace -v -e trace=perf_event_open -e signal=none $T record -o d.data hot 1000000"),
    ("report_default", "$T report -i d.data --json -s sym"),
    ("record_dwarf", "$T record -e cycles:u -c 500000 --call-graph dwarf -o w.data hotter 100000000"),
    ("report_dwarf", "$T report -i w.data --json -s sym"),
    ("record_system", "$T record -a -e instructions:u -c 1000000 -o s.data hot 100000000"),
    ("report_system", "$T report -i s.data --json -s comm"),
    ("record_group", "$T record -e '{cycles:u,instructions:u}:S' -c 1000000 -o g.data hot 100000000"),
    ("report_group", "$T report -i g.data --json -s sym"),
    (
        "yield_stat",
        "export PCP_PMDAS_DIR=/tmp/pmdas; mkdir -p /tmp/pmdas/perfevent; : >/tmp/pmdas/perfevent/perflock; $T stat -x, -I 100 --reserve yield -e instructions:u,task-clock work 800000000 & s=$!; sleep 0.4; $T reserve sleep 0.6; wait $s",
    ),
    (
        "yield_record",
        "export PCP_PMDAS_DIR=/tmp/pmdas; $T record --reserve yield -e instructions:u -c 1000000 -o y.data work 800000000 & s=$!; sleep 0.4; $T reserve sleep 0.6; wait $s",
    ),
    ("report_yield", "$T report -i y.data --json -s comm"),
    (
        "perf_yield",
        "perf script -i y.data -D 2>/dev/null | grep -E 'PERF_RECORD_(UN)?THROTTLE'; perf script -i y.data -F event 2>/dev/null | grep -c instructions",
    ),
    (
        "period_changed",
        "mkfifo /tmp/orders /tmp/answers; $T record -a -P -c 10000000 -e instructions:u -o p.data --control fifo:/tmp/orders,/tmp/answers sh -c 'work 50000000; echo period 1000000 >/tmp/orders; read answer </tmp/answers; work 50000000'; $T script -i p.data -F comm,period | grep work | sort | uniq -c",
    ),
];

/// Rows of a report: name, self percentage and total percentage.
type Rows = Vec<(String, f64, f64)>;

/// The number of samples and the rows of the report with this name.
#[track_caller]
fn report(name: &str, event: usize) -> Option<(u64, Rows)> {
    let run = guest(name)?.expect(0);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("one JSON document");
    let event = &json["events"][event];
    let row = |row: &serde_json::Value| {
        let name = ["sym", "comm"].iter().find_map(|key| row[key].as_str()).expect("a name").to_owned();
        let own = row["self"]["percent"].as_f64().expect("a percentage");
        (name, own, row["total"]["percent"].as_f64().unwrap_or(own))
    };
    let rows = event["rows"].as_array().expect("rows").iter().map(row).collect();
    Some((event["samples"].as_u64().expect("a count"), rows))
}

#[track_caller]
fn row<'a>(rows: &'a [(String, f64, f64)], name: &str) -> &'a (String, f64, f64) {
    rows.iter().find(|(of, ..)| of == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

#[test]
fn frequency_sampling_finds_the_hot_function() {
    let (Some(run), Some((samples, rows))) = (guest("record_cycles"), report("report_cycles", 0)) else {
        return;
    };
    run.expect(0).says(&["none lost"]);
    // 0.4 s at 4000 samples per second; the kernel takes a while to find the period.
    assert!((400..3000).contains(&samples), "{samples} samples");
    let (_, own, _) = row(&rows, "hot_leaf");
    assert!((65.0..80.0).contains(own), "{rows:?}");
    let (_, _, total) = row(&rows, "outer");
    assert!(*total > 90.0, "callers are found by frame pointers: {rows:?}");
}

#[test]
fn every_millionth_instruction_is_sampled() {
    let (Some(run), Some((samples, rows))) = (guest("record_instructions"), report("report_instructions", 0))
    else {
        return;
    };
    run.expect(0).says(&["none lost"]);
    // One sample per million of 200 million instructions.
    assert!((199..=203).contains(&samples), "{samples} samples");
    let (_, own, _) = row(&rows, "hot_leaf");
    assert!((73.0..77.0).contains(own), "{rows:?}");
}

/// A control command changes the period, and each sample carries its own period.
#[test]
fn period_can_be_changed_while_sampling() {
    let Some(run) = guest("period_changed") else { return };
    let run = run.expect(0);
    let counts: Vec<(u64, u64)> = run
        .stdout
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[2].trim_end_matches(':').parse().unwrap(), words[0].parse().unwrap())
        })
        .collect();
    // 100 million instructions before the change and 100 million after it.
    let of = |period: u64| counts.iter().find(|(of, _)| *of == period).map_or(0, |(_, count)| *count);
    assert!((8..=10).contains(&of(10_000_000)) && (98..=102).contains(&of(1_000_000)), "{}", run.stdout);
}

#[test]
fn default_sampling_uses_the_highest_precision() {
    let (Some(run), Some((samples, rows))) = (guest("record_default"), report("report_default", 0)) else {
        return;
    };
    let run = run.expect(0);
    assert!(!run.stderr.contains("cpu-clock"), "{}", run.stderr);
    assert!(samples > 2, "{samples} samples");
    row(&rows, "hot_leaf");
    // pmc requests the highest precision first. This PMU supports none, and its driver ignores the request.
    let calls = run.stderr.lines().filter(|line| line.contains("perf_event_open({"));
    let mut cycles =
        calls.filter(|line| line.contains("PERF_COUNT_HW_CPU_CYCLES") && line.contains("SAMPLE_IP"));
    let first = cycles.next().unwrap_or_else(|| panic!("no cycles in {}", run.stderr));
    assert!(
        first.contains("precise_ip=3") && first.contains("freq=1") && !first.contains(" = -1 "),
        "{first}"
    );
    assert_eq!(cycles.next(), None, "the first was good enough");
}

#[test]
fn stacks_are_unwound_without_frame_pointers() {
    let (Some(run), Some((samples, rows))) = (guest("record_dwarf"), report("report_dwarf", 0)) else {
        return;
    };
    run.expect(0).says(&["none lost"]);
    assert!((390..=420).contains(&samples), "{samples} samples");
    for (name, least) in [("hot_leaf", 70.0), ("outer", 95.0), ("main", 95.0)] {
        let (_, _, total) = row(&rows, name);
        assert!(*total > least, "{name}: {rows:?}");
    }
}

#[test]
fn whole_machine_is_sampled() {
    let (Some(run), Some((samples, rows))) = (guest("record_system"), report("report_system", 0)) else {
        return;
    };
    run.expect(0).says(&["none lost"]);
    assert!((199..300).contains(&samples), "{samples} samples");
    assert!(row(&rows, "hot").1 > 60.0, "{rows:?}");
}

#[test]
fn leader_samples_for_its_group() {
    let (Some(run), Some((cycles, _)), Some((instructions, rows))) =
        (guest("record_group"), report("report_group", 0), report("report_group", 1))
    else {
        return;
    };
    run.expect(0);
    assert!((199..=203).contains(&cycles) && cycles == instructions, "{cycles} and {instructions} samples");
    assert!((70.0..80.0).contains(&row(&rows, "hot_leaf").1), "{rows:?}");
}

#[test]
fn reserved_hardware_counters_are_not_used() {
    let (Some(stat), Some(record)) = (guest("yield_stat"), guest("yield_record")) else { return };
    let rows = rows(&stat.expect(0), 1, 0);
    let of = |name: &str| rows.iter().filter(|row| row.event == name).collect::<Vec<_>>();
    let (instructions, clock) = (of("instructions:u"), of("task-clock"));
    assert!(instructions.len() >= 10, "{rows:?}");
    let counted: f64 = instructions.iter().filter_map(|row| row.value.as_ref().ok()).sum();
    // 1.6 billion in total. For 0.6 s of about 1.6 s, pmc did not count.
    assert!((0.3e9..1.35e9).contains(&counted), "{counted}: {rows:?}");
    let gaps =
        instructions.iter().filter(|row| row.value.as_ref().map_or(true, |value| *value == 0.0)).count();
    assert!((3..=8).contains(&gaps), "{gaps} of the intervals without a count: {rows:?}");
    assert!(clock.iter().all(|row| row.value.is_ok()), "a clock is no counter: {rows:?}");

    record.expect(0).says(&["will not use them"]);
    let Some((samples, _)) = report("report_yield", 0) else { return };
    assert!((300..1350).contains(&samples), "{samples} of 1600 samples");
    // The file has a record of the gap, like those that the kernel writes for events that it stops.
    let json: serde_json::Value =
        serde_json::from_str(&guest("report_yield").expect("run").stdout).expect("JSON");
    let gap = json["trust"]["yielded_ns"].as_u64().expect("a number");
    assert!((200_000_000..1_500_000_000).contains(&gap), "{gap} ns");
    assert_eq!(json["trust"]["throttled"], 0, "nothing that the kernel did");
    let perf = guest("perf_yield").expect("run").expect(0);
    let of = |word: &str| perf.stdout.lines().filter(|line| line.contains(word)).count();
    assert_eq!((of("RECORD_THROTTLE"), of("RECORD_UNTHROTTLE")), (1, 1), "{}", perf.stdout);
    assert_eq!(
        perf.stdout.lines().last().map(str::trim),
        Some(samples.to_string().as_str()),
        "{}",
        perf.stdout
    );
}
