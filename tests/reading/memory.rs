//! Memory limit for hostile recordings: ten times their size plus 64 MiB.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, SampleLayout, Task, Thread, encode};
use pmc_sys::abi::{Attr, sample_type};
use pmc_text::units::PerfTime;

use crate::kit;

/// Size of each recording in bytes. In smaller ones the 64 MiB would hide the factor.
const SIZE: u64 = 24 << 20;
/// Samples of different threads: enough that neither output fits into a pipe.
const SAMPLES: u32 = 8000;

/// Writes a recording of records that `one` makes from their numbers, and some samples.
fn write(path: &Path, one: fn(&mut encode::Encoder, u32)) {
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(sample_type::IP | sample_type::TID);
    attr.set_period(1000);
    let mut records = encode::Encoder::new(SampleLayout::new(&attr).trailer_size());
    let event = RecordedEvent { attr, ids: vec![7], name: Some("cpu-clock".to_owned()) };
    let mut writer = Writer::create(path, &[event], &Features::default(), WriteOptions::default()).unwrap();
    let (mut number, mut size) = (0, 0);
    while size < SIZE {
        records.clear();
        (0..1000).for_each(|more| one(&mut records, number + more));
        number += 1000;
        size += records.bytes().len() as u64;
        writer.append(&[records.bytes()]).unwrap();
    }
    records.clear();
    (0..SAMPLES).for_each(|number| sample(&mut records, thread(number), 0x1000));
    writer.append(&[records.bytes()]).unwrap();
    writer.finish(&Features::default()).unwrap();
}

fn thread(number: u32) -> Thread {
    let id = number as i32 + 1;
    Thread { pid: id, tid: id }
}

fn sample(records: &mut encode::Encoder, thread: Thread, address: u64) {
    records.sample(2, &[address, u64::from(thread.pid as u32) | (thread.tid as u64) << 32]);
}

/// Maps a library that no other record names.
fn map(records: &mut encode::Encoder, thread: Thread, addr: u64, number: u32) {
    let path = format!("/l/{number:x}");
    let map = Mmap { thread, addr, len: 4096, pgoff: 0, is_data: false, name: path.as_bytes() };
    let file = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
    records.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
}

/// Peak memory of pmc in bytes. Measured once output has begun, while pmc waits for its reader.
#[track_caller]
fn peak(file: &Path, way: &[&str]) -> u64 {
    let mut pmc = kit::pmc();
    pmc.args(way).args(["--no-cache", "-i"]).arg(file).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = pmc.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > 128 << 10, "{way:?}: the output of {} bytes fits into the pipe", rest.len());
    assert!(kit::wait_for_end("pmc", &mut child).success());
    kit::peak_kib(&status) << 10
}

#[track_caller]
fn is_bounded(one: fn(&mut encode::Encoder, u32)) {
    each_is_bounded(&[&["script"], &["report", "--csv", "-s", "pid"]], one);
}

#[track_caller]
fn each_is_bounded(ways: &[&[&str]], one: fn(&mut encode::Encoder, u32)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    write(&file, one);
    let most = 10 * std::fs::metadata(&file).unwrap().len() + (64 << 20);
    for way in ways {
        let peak = peak(&file, way);
        assert!(peak < most, "{way:?}: {} MiB at the peak, at most {}", peak >> 20, most >> 20);
    }
}

#[test]
fn thread_names_use_little_memory() {
    is_bounded(|records, number| records.comm(thread(number), format!("{number:x}").as_bytes()));
}

#[test]
fn processes_use_little_memory() {
    is_bounded(|records, number| {
        let parent = Thread { pid: number as i32, tid: number as i32 };
        records.fork(&Task { thread: thread(number), parent, time: PerfTime(0) });
    });
}

#[test]
fn libraries_of_one_process_use_little_memory() {
    is_bounded(|records, number| map(records, thread(0), (u64::from(number) + 1) << 12, number));
}

#[test]
fn libraries_of_many_processes_use_little_memory() {
    is_bounded(|records, number| map(records, thread(number), 0x1000, number));
}

/// Each library is searched for, and the search has a result to keep. With `-s sym`, each also has a row.
#[test]
fn libraries_with_samples_use_little_memory() {
    let csv = ["report", "--csv", "-s"];
    let (pid, sym) = ([&csv[..], &["pid"]].concat(), [&csv[..], &["sym"]].concat());
    each_is_bounded(&[&["script"], &pid, &sym], |records, number| {
        let addr = (u64::from(number) + 1) << 12;
        map(records, thread(0), addr, number);
        sample(records, thread(0), addr + 16);
    });
}

#[test]
fn kernel_modules_use_little_memory() {
    is_bounded(|records, number| {
        let name = format!("[{number:x}]");
        records.kernel_mmap((1 << 63) + (u64::from(number) << 12), 4096, 0, name.as_bytes());
    });
}

#[test]
fn libraries_at_one_address_use_little_memory() {
    is_bounded(|records, number| map(records, thread(0), 0x1000, number));
}
