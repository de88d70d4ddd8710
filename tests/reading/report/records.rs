//! Records that perf 6.1 and this kernel do not write: deferred call chains (6.18), counts of what was lost.

use pmc::abi::Attr;
use pmc::abi::attr::Flag;
use pmc::abi::sample_type;
use pmc::perfdata::{Features, Options, RecordedEvent, Writer};

use super::against::{pmc_json, script};
use crate::kit;

const USER: u64 = -512i64 as u64;
const KERNEL: u64 = -128i64 as u64;
const DEFERRED: u64 = -640i64 as u64;

fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let mut out = kind.to_ne_bytes().to_vec();
    out.extend(misc.to_ne_bytes());
    out.extend((8 + words.len() as u16 * 8).to_ne_bytes());
    out.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    out
}

fn who(tid: u64) -> u64 {
    100 | tid << 32
}

/// A recording with these records; samples have id, address, thread, time, period and call chain.
fn write(path: &std::path::Path, read_format: u64, records: &[Vec<u8>]) {
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(
        sample_type::IDENTIFIER
            | sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::PERIOD
            | sample_type::CALLCHAIN,
    );
    attr.set_read_format(read_format);
    attr.set(Flag::SampleIdAll, true);
    let event = RecordedEvent { attr, ids: vec![7], name: Some("cpu-clock".to_owned()) };
    let mut writer =
        Writer::create(path, &[event], &Features::default(), Options::default()).expect("it begins");
    for record in records {
        writer.append(&[record]).expect("it is written");
    }
    writer.finish(&Features::default()).expect("it ends");
}

/// The sampled address is the chain's first, unless all of it comes later.
fn sample(misc: u16, tid: u64, time: u64, chain: &[u64]) -> Vec<u8> {
    let ip = if chain[0] == DEFERRED { 0x1111 } else { chain[1] };
    let mut words = vec![7, ip, who(tid), time, 1, chain.len() as u64];
    words.extend(chain);
    record(9, misc, &words)
}

fn deferred(tid: u64, time: u64, cookie: u64, chain: &[u64]) -> Vec<u8> {
    let mut words = vec![cookie, chain.len() as u64];
    words.extend(chain);
    words.extend([who(tid), time, 7]);
    record(22, 0, &words)
}

#[test]
fn deferred_parts_of_chains_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deferred");
    let kernel = 0xffff_ffff_8100_0000;
    write(
        &file,
        0,
        &[
            // Two samples in the kernel wait for the same part; one in the process for another thread's of
            // the same number.
            sample(1, 100, 10, &[KERNEL, kernel, kernel + 16, DEFERRED, 5]),
            sample(1, 100, 20, &[KERNEL, kernel + 32, DEFERRED, 5]),
            sample(2, 101, 25, &[DEFERRED, 5]),
            deferred(100, 30, 5, &[USER, 0xa000, 0xb000, 0xc000]),
            deferred(101, 35, 5, &[USER, 0x1111, 0xd000]),
            // Nobody brings this one's.
            sample(1, 100, 40, &[KERNEL, kernel, DEFERRED, 6]),
        ],
    );
    let text = script("pmc", &file, &["-F", "tid,ip"]);
    let stacks: Vec<Vec<String>> = text
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| part.lines().skip(1).map(|line| line.trim().to_owned()).collect())
        .collect();
    let want: [&[&str]; 4] = [
        &["ffffffff81000000", "ffffffff81000010", "a000", "b000", "c000"],
        &["ffffffff81000020", "a000", "b000", "c000"],
        &["1111", "d000"],
        &["ffffffff81000000"],
    ];
    assert_eq!(stacks, want, "{text}");
    let document = pmc_json(&file, &["--percent-limit", "0"]);
    assert_eq!(document["trust"]["samples"], 4);
    assert_eq!(document["trust"]["frames"], 5 + 4 + 2 + 1);
}

#[test]
fn what_counters_say_they_lost_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lost");
    // PERF_FORMAT_ID | PERF_FORMAT_LOST.
    let read = |tid: u64, value: u64, lost: u64| record(8, 0, &[who(tid), value, 7, lost, who(tid), 50, 7]);
    write(&file, 4 | 16, &[sample(2, 100, 10, &[USER, 0x1111]), read(100, 40, 3), read(101, 60, 4)]);
    assert_eq!(pmc_json(&file, &[])["trust"]["lost_samples"], 7);
    let text = kit::run(&["report", "--stdio", "-T", "-i", file.to_str().unwrap()]).expect(0);
    let text = text.prints(&["7 lost (87.5%)", "PID", "cpu-clock"]).stdout;
    let row = |tid: &str| text.lines().find(|line| line.split_whitespace().nth(1) == Some(tid)).unwrap();
    assert!(row("100").ends_with(" 40") && row("101").ends_with(" 60"), "{text}");
}
