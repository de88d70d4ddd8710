//! `--stitch-lbr`: completes the calls that the processor kept with those of earlier samples, like perf. The
//! test machines do not keep calls, so the test writes the recording.

use std::path::Path;

use pmc_perfdata::perfdata::{Features, feature::PmuCaps};
use pmc_sys::abi::{branch_sample_type, sample_type};

use super::against::{pmc_json, script, scripts_agree};
use super::branches::{self, BASE, ID, addresses, write_samples};
use super::lab::{DEEP, Lab};
use super::options::tables_agree;
use super::records::USER;
use crate::kit;

const SAMPLE: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::PERIOD
    | sample_type::CALLCHAIN
    | sample_type::BRANCH_STACK;

/// Number of calls that the processor keeps.
const KEPT: u64 = 4;

/// Thread, the outermost call that was kept, and the depth of the stack.
const SAMPLES: [(u64, u64, u64); 8] = [
    (100, 0, 4),
    (100, 2, 6),
    (100, 3, 7),
    (101, 1, 5),
    (100, 4, 8),
    (100, 6, 10),
    // A call has returned.
    (100, 6, 9),
    (101, 3, 7),
];

fn write(path: &Path, program: &Path, kinds: u64, features: &Features) {
    let code = addresses(program).0;
    let at = |depth: u64| BASE + code[14 - depth as usize];
    let sample = |(time, (tid, lowest, depth)): (u64, (u64, u64, u64))| {
        let mut body = vec![ID, at(depth), 100 | tid << 32, 1000 + time * 1000, 1000, 2, USER, at(depth)];
        body.push(depth - lowest);
        body.extend((kinds & branch_sample_type::HW_INDEX != 0).then_some((depth - 1) % KEPT));
        body.extend((lowest..depth).rev().flat_map(|call| [at(call), at(call + 1), 0]));
        body
    };
    let samples: Vec<Vec<u64>> = (0..).zip(SAMPLES).map(sample).collect();
    write_samples(path, program, (SAMPLE, kinds), features, &samples);
}

const CALLS: u64 = branch_sample_type::USER | branch_sample_type::CALL_STACK;

fn caps() -> Vec<(String, String)> {
    [("branches", "4"), ("max_precise", "3")].map(|(name, value)| (name.into(), value.into())).into()
}

#[test]
fn lbr_stitching_matches_perf() {
    let Some(lab) = Lab::new() else { return };
    let (program, file) = (lab.build("deep", DEEP), lab.path("calls"));
    let features = Features { cpu_pmu_caps: Some(caps()), ..Features::default() };
    write(&file, &program, CALLS | branch_sample_type::HW_INDEX, &features);
    scripts_agree(&file, &["--stitch-lbr", "-F", "tid,time,ip"]);
    scripts_agree(&file, &["-F", "tid,time,ip"]);
    let frames = |options: &[&str]| -> Vec<usize> {
        let text = script("pmc", &file, &[options, &["-F", "tid,ip"]].concat());
        let parts = text.split("\n\n").filter(|part| !part.trim().is_empty());
        parts.map(|part| part.lines().count() - 1).collect()
    };
    assert_eq!(frames(&[]), [5, 5, 5, 5, 5, 5, 4, 5]);
    assert_eq!(frames(&["--stitch-lbr"]), [5, 7, 8, 5, 9, 11, 10, 7]);
    assert_eq!(pmc_json(&file, &["--stitch-lbr"])["trust"]["frames"], 5 + 7 + 8 + 5 + 9 + 11 + 10 + 7);
    tables_agree(&file, &["--stitch-lbr", "--children", "-s", "sym"]);
    let ran =
        kit::run(&["export", "--stitch-lbr", "-o", "-", "--format", "folded", "-i", file.to_str().unwrap()]);
    assert!(ran.expect(0).stdout.starts_with("deep;main;"));
    // On a hybrid CPU, the PMU of each core type has its own number of kept calls.
    let of_core = PmuCaps { caps: caps(), name: "cpu_core".to_owned() };
    let hybrid = Features { pmu_caps: Some(vec![of_core]), ..Features::default() };
    write(&file, &program, CALLS | branch_sample_type::HW_INDEX, &hybrid);
    assert_eq!(frames(&["--stitch-lbr"]), [5, 7, 8, 5, 9, 11, 10, 7]);
}

#[test]
fn impossible_stitching_is_explained() {
    let Some(lab) = Lab::new() else { return };
    let (program, file) = (lab.build("deep", DEEP), lab.path("calls"));
    let known = Features { cpu_pmu_caps: Some(caps()), ..Features::default() };
    let says = |words: &[&str]| {
        for command in ["report", "script"] {
            kit::run(&[command, "--stitch-lbr", "-i", file.to_str().unwrap()]).expect(1).says(words);
        }
    };
    write(&file, &program, CALLS, &known);
    says(&["does not contain LBR indexes", "omit --stitch-lbr"]);
    write(&file, &program, CALLS | branch_sample_type::HW_INDEX, &Features::default());
    says(&["does not contain the number of LBR entries"]);
    std::fs::copy(branches::write(&lab, "branches", 3), &file).unwrap();
    says(&["no event was recorded with LBR call chains", "record --call-graph lbr"]);
    kit::run(&["top", "--stitch-lbr"]).expect(2).says(&["pmc report --stitch-lbr"]);
}
