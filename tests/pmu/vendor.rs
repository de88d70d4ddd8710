//! Event names from Arm's manuals on a core that supports them, in a machine where an instruction takes four
//! cycles.

use super::*;

pub(super) const BATCH: &[(&str, &str)] = &[
    ("makers_names", "$T stat -x, -e CPU_CYCLES:u,inst_retired:u,armv8_pmuv3/INST_RETIRED/u work 10000000"),
    ("makers_metric", "$T stat -j --metric 'each=CPU_CYCLES:u / INST_RETIRED:u' work 10000000"),
    (
        "makers_samples",
        "$T record -q -e INST_RETIRED:u -c 1000000 -o /tmp/m work 10000000 && $T report --json -i /tmp/m",
    ),
    ("makers_table", "$T info"),
    ("makers_list", "$T list --long inst_retired"),
];

#[test]
fn vendor_events_count() {
    let Some(ran) = guest("makers_names") else { return };
    let rows = plain(ran, 3);
    let names: Vec<&str> = rows.iter().map(|row| row.event.as_str()).collect();
    assert_eq!(names, ["CPU_CYCLES:u", "inst_retired:u", "armv8_pmuv3/INST_RETIRED/u"]);
    near(rows[1].value(), LOOP, 0.005);
    near(rows[2].value(), rows[1].value(), 0.005);
    near(rows[0].value(), 4.0 * rows[1].value(), 0.005);
}

#[test]
fn vendor_metrics_have_values() {
    let Some(ran) = guest("makers_metric") else { return };
    let ran = ran.expect(0);
    let mut lines =
        ran.stderr.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let metric = lines.find(|line| line["metric-unit"] == "each").expect(&ran.stderr);
    near(metric["metric-value"].as_f64().unwrap_or(0.0), 4.0, 0.005);
}

#[test]
fn vendor_events_are_sampled() {
    let Some(ran) = guest("makers_samples") else { return };
    let report: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).expect("JSON");
    let event = &report["events"][0];
    assert_eq!(event["name"], "INST_RETIRED:u");
    near(event["samples"].as_f64().unwrap_or(0.0), LOOP / 1e6, 0.06);
}

#[test]
fn vendor_table_matches_the_core() {
    let (Some(info), Some(list)) = (guest("makers_table"), guest("makers_list")) else { return };
    info.expect(0).prints(&["neoverse-n1"]);
    list.expect(0).prints(&["inst_retired", "0x8"]);
}
