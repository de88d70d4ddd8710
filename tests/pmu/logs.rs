//! Counts per thread (`log-exit`, `log-cswitch`). On the newest kernel they add up to the total. Debian 12's
//! kernel does not report a thread's counts when the thread exits, and pmc says so.

use std::collections::BTreeMap;

use super::*;

/// A shell with eight children that take turns on the only CPU.
macro_rules! tree {
    () => {
        "sh -c 'for i in 1 2 3 4 5 6 7 8; do work ${i}00000 50 & done; wait'"
    };
}
const PROCESSES: usize = 9;

/// Commands for the newest kernel.
pub(super) const BATCH: &[(&str, &str)] = &[
    ("exits", concat!("$T stat record --json=2 -o e.data --log-exit -e cycles,instructions ", tree!())),
    ("exits_report", "$T stat report --log-exit --json=2 -i e.data"),
    ("slices", concat!("$T stat record --json=2 -o s.data --log-cswitch -e cycles,instructions ", tree!())),
    ("slices_report", "$T stat report --log-cswitch --json=2 -i s.data"),
];

/// Commands for Debian 12's kernel.
pub(super) const OLDER_BATCH: &[(&str, &str)] = &[
    ("no_exits", "$T stat --log-exit -e cycles true"),
    ("no_exits_sampled", "$T record -s -o n.data -e cycles true"),
    (
        "own_slices",
        // The shell waits for `work`, so it leaves its CPU. A program that only computes need not.
        "$T stat record --json=2 -o o.data -i --log-cswitch -e cycles,instructions sh -c 'work 100000 50; true'",
    ),
    ("own_slices_report", "$T stat report --log-cswitch --json=2 -i o.data"),
];

fn document(name: &str) -> Option<serde_json::Value> {
    let run = guest(name)?.expect(0);
    let text = if run.stdout.is_empty() { run.stderr } else { run.stdout };
    Some(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}")))
}

/// The sum of each event over these rows, and the number of threads in them.
fn sums(document: &serde_json::Value, rows: &[&serde_json::Value]) -> (BTreeMap<String, u64>, usize) {
    let (mut sums, mut threads) = (BTreeMap::new(), std::collections::BTreeSet::new());
    for row in rows {
        threads.extend(row["place"]["thread"]["tid"].as_u64());
        for value in row["values"].as_array().expect("values") {
            let Some(raw) = value["count"]["raw"].as_u64() else { continue };
            let event = &document["events"][value["event"].as_u64().expect("an index") as usize]["name"];
            *sums.entry(event.as_str().expect("a name").to_owned()).or_default() += raw;
        }
    }
    (sums, threads.len())
}

fn rows(of: &serde_json::Value) -> Vec<&serde_json::Value> {
    of["rows"].as_array().expect("rows").iter().collect()
}

#[test]
fn exit_counts_add_up_to_the_total() {
    let (Some(total), Some(ends)) = (document("exits"), document("exits_report")) else { return };
    let (total, _) = sums(&total, &rows(&total["total"]));
    let (ends, threads) = sums(&ends, &rows(&ends["total"]));
    assert_eq!(threads, PROCESSES);
    for event in ["cycles", "instructions"] {
        assert_eq!(ends[event], total[event], "{event}");
    }
    // 2 instructions per iteration, 3.6 million iterations.
    assert!(total["instructions"] > 7_200_000, "{total:?}");
}

#[test]
fn time_slice_counts_add_up_to_the_total() {
    for (counted, logged, threads) in
        [("slices", "slices_report", PROCESSES), ("own_slices", "own_slices_report", 1)]
    {
        let (Some(total), Some(slices)) = (document(counted), document(logged)) else { return };
        let (total, _) = sums(&total, &rows(&total["total"]));
        let intervals: Vec<_> =
            slices["intervals"].as_array().expect("slices").iter().flat_map(rows).collect();
        let (sums, of) = sums(&slices, &intervals);
        assert_eq!(of, threads, "{logged}");
        for event in ["cycles", "instructions"] {
            assert_eq!(sums[event], total[event], "{counted}: {event}");
        }
        assert!(intervals.len() > threads, "more slices than threads");
    }
}

#[test]
fn kernel_without_thread_exit_counts_is_reported() {
    let (Some(refused), Some(warned)) = (guest("no_exits"), guest("no_exits_sampled")) else { return };
    refused.expect(1).says(&[
        "log-exit",
        "does not report a thread's counts when the thread exits",
        "Linux 6.19",
    ]);
    warned.expect(0).says(&["-s: this kernel does not report a thread's counts when the thread exits"]);
}
