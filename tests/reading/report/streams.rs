//! `diff --stream`: the hottest call chains of two recordings, from branches and from ordinary chains,
//! compared with perf.

use std::collections::BTreeSet;
use std::path::Path;

use pmc_perfdata::perfdata::{Features, feature::RawSection};
use pmc_sys::abi::sample_type;
use serde_json::Value;

use super::branches::{BASE, BRANCHES, ID, addresses, write_samples};
use super::lab::{DEEP, Lab};
use super::records::USER;
use crate::kit::{self, oracle};

const SAMPLE: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::PERIOD
    | sample_type::CALLCHAIN;

/// The call paths to `leaf`: the calling functions (indices into [`addresses`]) and the cycles of each.
const WAYS: [&[(usize, u64)]; 3] = [&[(2, 5), (3, 9), (4, 1)], &[(3, 20), (4, 2)], &[(4, 7)]];

/// Writes a recording with the given number of samples of each path.
fn write(path: &Path, program: &Path, has_branches: bool, counts: [u64; 3]) {
    let (addresses, _) = addresses(program);
    let code = |function: usize| BASE + addresses[3 * function] + 4;
    let mut samples = Vec::new();
    for (way, count) in WAYS.iter().zip(counts) {
        for _ in 0..count {
            let time = 1000 * (samples.len() as u64 + 1);
            let mut body =
                vec![ID, code(0), 100 | 100 << 32, time, 1000, way.len() as u64 + 2, USER, code(0)];
            body.extend(way.iter().map(|(caller, _)| code(*caller) + 5));
            if has_branches {
                body.push(way.len() as u64);
                let callees = [0].into_iter().chain(way.iter().map(|(caller, _)| *caller));
                for ((caller, cycles), callee) in way.iter().zip(callees) {
                    body.extend([code(*caller), code(callee) - 4, 2 | cycles << 4]);
                }
            }
            samples.push(body);
        }
    }
    let layout = match has_branches {
        true => (SAMPLE | sample_type::BRANCH_STACK, BRANCHES),
        false => (SAMPLE, 0),
    };
    // perf looks for branches only if the header announces them.
    let branch_stack = has_branches.then(RawSection::default);
    write_samples(path, program, layout, &Features { branch_stack, ..Features::default() }, &samples);
}

/// A stream: its section, and its cycles and percentage in both recordings.
type Stream = (u8, Vec<String>);

/// The streams that perf prints.
fn theirs(perf: &Path, files: [&Path; 2]) -> BTreeSet<Stream> {
    let [old, new] = files.map(|file| file.to_str().unwrap());
    let (mut section, mut streams) = (0, BTreeSet::new());
    for line in oracle::says(perf, &["diff", "--stream", old, new]).lines() {
        section += u8::from(line.starts_with("[ "));
        let words: Vec<&str> = line.split_whitespace().filter(|word| word.ends_with([',', '%'])).collect();
        if line.contains("hits:") {
            streams
                .insert((section, words.iter().map(|word| word.trim_end_matches(',').to_owned()).collect()));
        }
    }
    streams
}

fn ours(files: [&Path; 2], options: &[&str]) -> Value {
    let files = files.map(|file| file.to_str().unwrap());
    let ran = kit::run(&[&["diff", "--stream", "--json", "--no-cache"], options, &files].concat()).expect(0);
    serde_json::from_str(&ran.stdout).expect("one JSON document")
}

/// The streams of pmc's document.
fn streams(document: &Value) -> BTreeSet<Stream> {
    let rows = document["events"][0]["rows"].as_array().unwrap().iter();
    let of_row = |row: &Value| {
        let share = |side: usize| row["costs"][side]["percent"].as_f64().unwrap();
        let section = if share(1) == 0.0 { 2 } else { 1 + 2 * u8::from(share(0) == 0.0) };
        let told = (0..2).filter(|side| share(*side) > 0.0);
        let words = |side: usize| [row["cycles"][side].to_string(), format!("{:.2}%", share(side))];
        (section, told.flat_map(words).collect())
    };
    rows.map(of_row).collect()
}

#[test]
fn hottest_streams_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("deep", DEEP);
    let (old, new) = (lab.path("old"), lab.path("new"));
    write(&old, &program, true, [60, 30, 10]);
    write(&new, &program, true, [20, 60, 0]);
    let files = [&*old, &*new];
    let found = streams(&ours(files, &[]));
    let stream = |section: u8, words: &[&str]| (section, words.iter().map(|word| word.to_string()).collect());
    let want = [
        stream(1, &["15", "60.00%", "15", "25.00%"]),
        stream(1, &["22", "30.00%", "22", "75.00%"]),
        stream(2, &["7", "10.00%"]),
    ];
    assert_eq!(found, BTreeSet::from(want));
    for perf in oracle::perfs() {
        assert_eq!(theirs(&perf, files), found, "{}", perf.display());
    }
    // With the files swapped, a removed stream becomes a new one.
    assert!(streams(&ours([&new, &old], &[])).contains(&stream(3, &["7", "10.00%"])));
    let text = kit::run(&["diff", "--stream", old.to_str().unwrap(), new.to_str().unwrap()]).expect(0);
    let text = text.prints(&["[ Matched hot streams ]", "hot chain pair 2:", "cycles: 15, 15", "more", "±"]);
    let frames: Vec<&str> = text.stdout.lines().filter(|line| line.contains("deep.c:")).collect();
    assert_eq!(frames.len(), 4 + 3 + 2, "{frames:?}");
    assert!(frames[0].trim_start().starts_with("[.] leaf"), "{frames:?}");
}

#[test]
fn kernel_exit_branches_precede_the_callers() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("deep", DEEP);
    let file = lab.path("returns");
    let (leaf, caller) = (BASE + addresses(&program).0[1], BASE + addresses(&program).0[10]);
    let chain = [ID, leaf, 100 | 100 << 32, 1000, 1000, 3, USER, leaf, caller];
    let kernel = 0xffff_ffff_8100_0010;
    let branches = [2, kernel, leaf, 2, leaf, kernel, 2];
    let layout = (SAMPLE | sample_type::BRANCH_STACK, BRANCHES);
    write_samples(&file, &program, layout, &Features::default(), &[[&chain[..], &branches].concat()]);
    let document = ours([&file, &file], &["-s", "sym"]);
    let frames = document["events"][0]["rows"][0]["frames"].as_array().unwrap();
    let levels: String = frames.iter().filter_map(|frame| frame["level"].as_str()).collect();
    let names: Vec<&str> = frames.iter().filter_map(|frame| frame["sym"].as_str()).collect();
    assert_eq!((levels.as_str(), [names[0], names[2], names[3]]), (".k..", ["leaf", "leaf", "middle"]));
}

#[test]
fn chains_without_address_or_marker_do_not_panic() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("deep", DEEP);
    let file = lab.path("bare");
    let leaf = BASE + addresses(&program).0[1];
    let layout = ((SAMPLE & !sample_type::IP) | sample_type::BRANCH_STACK, BRANCHES);
    let sample = |chain: &[u64]| {
        let branches = [1, leaf, leaf, 2];
        [&[ID, 100 | 100 << 32, 1000, 1000, chain.len() as u64], chain, &branches].concat()
    };
    let samples = [sample(&[leaf]), sample(&[leaf, leaf + 1]), sample(&[USER]), sample(&[])];
    write_samples(&file, &program, layout, &Features::default(), &samples);
    let file = file.to_str().unwrap();
    for options in [&["diff", "--stream", file, file][..], &["report", "--stdio", "-g", "-i", file]] {
        let ran = kit::run(options);
        assert!(matches!(ran.status, Some(0 | 1)), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn ordinary_call_chains_form_streams() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("deep", DEEP);
    let (old, new) = (lab.path("old"), lab.path("new"));
    write(&old, &program, false, [60, 30, 10]);
    // The same program, built from the same source in another folder.
    std::fs::create_dir(lab.path("other")).unwrap();
    write(&new, &lab.build("other/deep", DEEP), false, [20, 60, 0]);
    let shares = |options: &[&str]| {
        let document = ours([&old, &new], options);
        let rows = document["events"][0]["rows"].as_array().unwrap().clone();
        let percent = |row: &Value, side: usize| row["costs"][side]["percent"].as_f64().unwrap();
        let of_row =
            |row: &Value| (percent(row, 0), percent(row, 1), row["frames"].as_array().unwrap().len());
        rows.iter().map(of_row).collect::<Vec<_>>()
    };
    let all = vec![(30.0, 75.0, 3), (60.0, 25.0, 4), (10.0, 0.0, 2)];
    assert_eq!((shares(&[]), shares(&["-s", "sym"])), (all.clone(), all.clone()));
    // With programs in the key, the two still match: their paths differ, their names do not.
    assert_eq!(shares(&["-s", "sym,dso,srcfile"]), all);
    // Only the hottest pair.
    assert_eq!(shares(&["--max-rows", "1"]), all[..2]);
    let files = [old.to_str().unwrap(), new.to_str().unwrap()];
    let refused = |options: &[&str]| kit::run(&[&["diff", "--stream"], options, &files].concat()).expect(2);
    refused(&["-s", "cpu"]).says(&["call chains have no cpu", "-s sym,dso,srcline,srcfile"]);
    refused(&["--tree"]);
    let csv = kit::run(&[&["diff", "--stream", "--csv"], &files[..]].concat()).expect(0);
    assert!(csv.stdout.starts_with("Event,Baseline,New,Delta,Low,High,p,Verdict,Stream\n"), "{}", csv.stdout);
    let flat = lab.record("flat", &["-e", "cpu-clock"], &[program.to_str().unwrap()], false);
    let flat = flat.to_str().unwrap();
    kit::run(&["diff", "--stream", flat, flat])
        .expect(1)
        .says(&["has no call chains", "record both with -g"]);
}
